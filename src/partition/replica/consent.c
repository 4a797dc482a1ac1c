/* One thread and one connection: demand a proof, log on, then ask, again and again. Any answer but
 * a consent ends the connection; the next round opens another one.
 *
 * redis' thread sets which replica is asked, under a new generation each time; a consent counts
 * only if the generation is still the one under which it was asked for. The term's end is read
 * without the lock, before each command, and moves only forward while a generation lasts. */
#include "partition/replica/consent.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "net/proof.h"

#define TEXT_MAX  128
#define CALL_MS   400 /* that one step of a conversation may take */
#define REPLY_MAX 256

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static bool running;        /* the thread; lock */
static bool needed;         /* lock; `terms` is its copy for readers without it */
static uint64_t generation; /* of the settings that follow; lock */
static struct sockaddr_storage address;
static socklen_t address_len;
static char user[TEXT_MAX + 1], password[TEXT_MAX + 1];

static atomic_bool terms;        /* needed */
static _Atomic int64_t term_end; /* mfs_term_clock */

int64_t mfs_term_clock(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

bool mfs_consent_needed(void)
{
    return atomic_load(&terms);
}

int64_t mfs_consent_left(void)
{
    return atomic_load(&term_end) - mfs_term_clock();
}

bool mfs_consent_serves(void)
{
    return !atomic_load_explicit(&terms, memory_order_relaxed) || mfs_consent_left() > 0;
}

/* ---- the conversation ------------------------------------------------------------------------ */

static int await(int fd, short what)
{
    struct pollfd p = {.fd = fd, .events = what};
    int rc = poll(&p, 1, CALL_MS);

    return rc > 0 ? 0 : rc ? -errno : -ETIMEDOUT;
}

static int send_text(int fd, const char *text)
{
    size_t n = strlen(text);

    /* The little that goes out here fits into an empty socket; else the other end does not read. */
    return send(fd, text, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n ? 0 : -EIO;
}

/* One line is the whole answer to all that is asked here; 0: it begins with `kind`. */
static int read_answer(int fd, char kind)
{
    char line[REPLY_MAX];
    size_t n = 0;

    while (n < sizeof line) {
        int rc = await(fd, POLLIN);
        ssize_t got = rc ? -1 : recv(fd, line + n, sizeof line - n, MSG_DONTWAIT);

        if (rc)
            return rc;
        if (got <= 0)
            return -ECONNRESET;
        n += (size_t)got;
        if (line[n - 1] == '\n')
            return line[0] == kind ? 0 : -EACCES;
    }
    return -EPROTO;
}

static int dial(const struct sockaddr_storage *to, socklen_t len)
{
    int fd = socket(to->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int error = 0, rc;
    socklen_t n = sizeof error;

    if (fd < 0)
        return -errno;
    rc = connect(fd, (const struct sockaddr *)to, len) ? -errno : 0;
    if (rc == -EINPROGRESS) {
        rc = await(fd, POLLOUT);
        if (!rc && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n))
            rc = -errno;
        if (!rc)
            rc = -error;
    }
    if (!rc)
        return fd;
    close(fd);
    return rc;
}

/* The process that has the address now gets the password only if it has proved that it knows it. */
static int log_on(const struct sockaddr_storage *to, socklen_t len, const char *who,
                  const char *secret)
{
    char command[3 * TEXT_MAX];
    int fd = dial(to, len), rc;

    if (fd < 0)
        return fd;
    rc = mfs_proof_demand(fd, who, secret, CALL_MS * 1000000LL, NULL);
    snprintf(command, sizeof command, "AUTH %s %s\r\n", who, secret);
    if (!rc)
        rc = send_text(fd, command);
    if (!rc)
        rc = read_answer(fd, '+');
    if (!rc)
        return fd;
    close(fd);
    return rc;
}

static int ask(int fd)
{
    int rc = send_text(fd, "mfs_term_consent\r\n");

    return rc ? rc : read_answer(fd, ':');
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* One question, on *fd or a new connection (-1). */
static void one_round(uint64_t mine, int *fd)
{
    struct sockaddr_storage to = address;
    socklen_t len = address_len;
    char who[sizeof user], secret[sizeof password];
    int64_t asked;
    bool granted;

    memcpy(who, user, sizeof who);
    memcpy(secret, password, sizeof secret);
    pthread_mutex_unlock(&lock);
    if (*fd < 0)
        *fd = log_on(&to, len, who, secret);
    asked = mfs_term_clock();
    granted = *fd >= 0 && !ask(*fd);
    if (!granted && *fd >= 0) {
        close(*fd);
        *fd = -1;
    }
    pthread_mutex_lock(&lock);
    if (granted && needed && generation == mine)
        atomic_store(&term_end, asked + MFS_TERM_NS);
}

static void pause_round(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += MFS_TERM_ROUND_NS;
    if (t.tv_nsec >= 1000000000L) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000L;
    }
    pthread_cond_timedwait(&changed, &lock, &t);
}

static void *work(void *arg)
{
    uint64_t mine = 0;
    int fd = -1;

    pthread_mutex_lock(&lock);
    for (;;) {
        if (generation != mine && fd >= 0) {
            close(fd);
            fd = -1;
        }
        mine = generation;
        if (!needed) {
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        one_round(mine, &fd);
        if (generation == mine)
            pause_round();
    }
    return arg;
}

static int start_thread(void)
{
    pthread_condattr_t attr;
    sigset_t all, old;
    pthread_t thread;
    int rc;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attr);
    pthread_condattr_destroy(&attr);
    sigfillset(&all); /* they are redis' */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&thread, NULL, work, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc)
        return -rc;
    pthread_detach(thread);
    running = true;
    return 0;
}

static int set_address(const char *host, uint16_t port)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)&address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address;

    memset(&address, 0, sizeof address);
    if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        address_len = sizeof *v4;
    } else if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        address_len = sizeof *v6;
    } else {
        return -EINVAL;
    }
    return 0;
}

int mfs_consent_begin(const char *host, uint16_t port, const char *who, const char *secret)
{
    int rc;

    if (strlen(who) > TEXT_MAX || strlen(secret) > TEXT_MAX || strpbrk(who, " \r\n\"'\\") ||
        strpbrk(secret, " \r\n\"'\\"))
        return -EINVAL;
    pthread_mutex_lock(&lock);
    rc = running ? 0 : start_thread();
    if (!rc)
        rc = set_address(host, port);
    if (!rc) {
        snprintf(user, sizeof user, "%s", who);
        snprintf(password, sizeof password, "%s", secret);
        generation++;
        needed = true;
        atomic_store(&term_end, mfs_term_clock());
        atomic_store(&terms, true);
        pthread_cond_signal(&changed);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

void mfs_consent_end(void)
{
    pthread_mutex_lock(&lock);
    generation++;
    needed = false;
    atomic_store(&terms, false);
    if (running)
        pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}
