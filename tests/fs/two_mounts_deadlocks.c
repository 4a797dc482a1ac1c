/* ctest: timeout=240 races
 *
 * Processes on two mounts, or on one, that wait for each other's fcntl locks: one of them hears
 * EDEADLK, soon, the others get what they wait for; and nobody hears it who is in no such ring,
 * however long the chains are and however often waits end by signals. */
#include "fs_pair.h"
#include <sys/time.h>

enum { LOCKS = 8, PROCESSES = 10, RING_MAX = 5, SECONDS_MAX = 60 };

/* value[] of what the processes share. */
enum { DEADLOCKS, READY };

static int set_byte(int fd, short type, bool wait, off_t at)
{
    struct flock fl = {.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};

    return fcntl(fd, wait ? F_SETLKW : F_SETLK, &fl);
}

static int unlock_all(int fd)
{
    struct flock fl = {.l_type = F_UNLCK, .l_whence = SEEK_SET};

    return fcntl(fd, F_SETLK, &fl);
}

/* A process for number i of n; it ends by exit, or by a signal when it takes too long. */
static pid_t start(struct pair *p, unsigned i)
{
    pid_t pid = fork();

    OK(pid);
    if (pid == 0) {
        signal(SIGALRM, SIG_DFL);
        alarm(SECONDS_MAX);
        p->own = p->own * 31 + i;
    }
    return pid;
}

/* One that fails is not waited for alone: the others may wait for it in vain. */
static void all_end(const pid_t *pid, unsigned n)
{
    unsigned failed = 0;

    for (unsigned ended = 0; ended < n; ended++) {
        int status;

        OK(wait(&status));
        if (status == 0)
            continue;
        if (WIFSIGNALED(status) && !failed)
            fprintf(stderr, "a process was ended by signal %d\n", WTERMSIG(status));
        for (unsigned i = 0; i < n && !failed; i++)
            kill(pid[i], SIGKILL);
        failed++;
    }
    EQUAL(0, failed);
}

/* --- a ring ----------------------------------------------------------------------------------- */

static void all_ready(struct pair *p, unsigned n)
{
    atomic_fetch_add(&p->shared->value[READY], 1);
    while (atomic_load(&p->shared->value[READY]) < (int64_t)n)
        usleep(200);
}

/* Holds lock i and wants the next one's. */
static void ring_process(struct pair *p, const char *path, unsigned i, unsigned n, useconds_t later)
{
    int fd = pair_open(path, O_RDWR);

    OK(set_byte(fd, F_WRLCK, false, i));
    all_ready(p, n);
    usleep(later);
    if (set_byte(fd, pair_own_random(p, 2) ? F_WRLCK : F_RDLCK, true, (i + 1) % n) < 0) {
        EQUAL(EDEADLK, errno);
        atomic_fetch_add(&p->shared->value[DEADLOCKS], 1);
        FAILS(EAGAIN, set_byte(fd, F_WRLCK, false, (i + 1) % n)); /* it has got nothing */
    }
    exit(0); /* which gives all back */
}

/* Two to five of them, on one mount or both, all at once or one after the other. */
static void ring(struct pair *p)
{
    unsigned n = 2 + pair_random(p, RING_MAX - 1), on = pair_random(p, 4);
    bool at_once = pair_random(p, 2);
    pid_t pid[RING_MAX];
    double begin = pair_now();

    atomic_store(&p->shared->value[DEADLOCKS], 0);
    atomic_store(&p->shared->value[READY], 0);
    OK(close(pair_open(pair_path(p, 0, "ring"), O_RDWR | O_CREAT)));
    for (unsigned i = 0; i < n; i++) {
        useconds_t later = at_once ? 0 : (useconds_t)pair_random(p, 250000);

        pid[i] = start(p, i);
        if (pid[i] == 0)
            ring_process(p, pair_path(p, on < 2 ? (int)on : (int)(i % 2), "ring"), i, n, later);
    }
    all_end(pid, n);
    EQUAL(1, atomic_load(&p->shared->value[DEADLOCKS]));
    if (pair_now() - begin > 15)
        fs_fail(__FILE__, __LINE__, "a ring of %u lasted for %.1f s", n, pair_now() - begin);
}

/* --- many owners ------------------------------------------------------------------------------ */

static void on_alarm(int sig)
{
    (void)sig;
}

/* Signals end waits of this process every now and then. */
static void be_interrupted(void)
{
    struct sigaction action = {.sa_handler = on_alarm};
    struct itimerval timer = {.it_value.tv_usec = 170000, .it_interval.tv_usec = 170000};

    OK(sigaction(SIGALRM, &action, NULL));
    OK(setitimer(ITIMER_REAL, &timer, NULL));
}

/* Takes some locks one by one and keeps them for a while; in the order of their places nobody can
 * come to wait for himself. False: it was refused or interrupted before it had them all. */
static bool hold_some(struct pair *p, int fd, bool ordered)
{
    unsigned count = 2 + pair_own_random(p, 2), held = 0;
    off_t at = (off_t)pair_own_random(p, 4);
    int rc = 0;

    while (held < count && rc == 0) {
        rc = set_byte(fd, pair_own_random(p, 4) ? F_WRLCK : F_RDLCK, true, at);
        if (rc < 0 && errno != EINTR) {
            EQUAL(EDEADLK, errno);
            CHECK(held > 0 && !ordered);
            atomic_fetch_add(&p->shared->value[DEADLOCKS], 1);
        }
        held += rc == 0;
        at = ordered ? at + 1 + pair_own_random(p, 2) : (at + 1 + pair_own_random(p, 7)) % LOCKS;
    }
    if (rc == 0)
        usleep(pair_own_random(p, 4) ? pair_own_random(p, 20000) : 150000);
    OK(unlock_all(fd));
    return rc == 0;
}

static void many(struct pair *p, bool ordered)
{
    pid_t pid[PROCESSES];

    OK(close(pair_open(pair_path(p, 0, "many"), O_RDWR | O_CREAT)));
    for (unsigned i = 0; i < PROCESSES; i++) {
        int fd;

        pid[i] = start(p, i);
        if (pid[i])
            continue;
        fd = pair_open(pair_path(p, (int)(i % 2), "many"), O_RDWR);
        if (i % 3 == 0 && ordered)
            be_interrupted();
        for (unsigned done = 0; done < 4;)
            done += hold_some(p, fd, ordered) || ordered;
        exit(0);
    }
    all_end(pid, PROCESSES);
}

/* Long chains of waits, and no ring: nobody is refused. */
static void ordered(struct pair *p)
{
    many(p, true);
}

/* Rings come up all the time: all get what they want in the end, as each is broken. */
static void disordered(struct pair *p)
{
    many(p, false);
}

int main(int argc, char **argv)
{
    static const struct pair_scenario scenarios[] = {
        {"ring", .script = ring, .cost = 10},
        {"ordered", .script = ordered, .cost = 50},
        {"disordered", .script = disordered, .cost = 50},
        {NULL},
    };

    return pair_main(argc, argv, scenarios);
}
