/* Locks: flock, fcntl and open file description locks between processes; what a process held is
 * free when it dies. With argv[2] the other process works on the second mount.
 *
 * Offsets beyond 2^53, which numbers in doubles can't tell apart: samba's smb2.lock.range and
 * Connectathon's 64-bit locks show the fault. */
#include "fs_check.h"
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>

static char path[4096];       /* of the file that is locked */
static char other_path[4096]; /* the same file, as the other process sees it */

static int lock_range(int fd, int cmd, short type, off_t start, off_t len)
{
    struct flock fl = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};

    return fcntl(fd, cmd, &fl);
}

static double now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

struct peer {
    pid_t pid;
    int fd; /* readable when the peer has its lock */
};

/* Starts a process that takes a lock on the other path and keeps it for hold_ms (or until killed).
 */
static struct peer peer_start(int cmd, short type, off_t start, off_t len, int hold_ms)
{
    struct peer peer;
    int pipefd[2], fd;

    OK(pipe(pipefd));
    peer.pid = fork();
    OK(peer.pid);
    if (!peer.pid) {
        close(pipefd[0]);
        fd = open(other_path, O_RDWR);
        OK(fd);
        if (cmd == LOCK_EX || cmd == LOCK_SH)
            OK(flock(fd, cmd));
        else
            OK(lock_range(fd, cmd, type, start, len));
        CHECK(write(pipefd[1], "", 1) == 1);
        usleep((useconds_t)hold_ms * 1000);
        _exit(0);
    }
    OK(close(pipefd[1]));
    peer.fd = pipefd[0];
    return peer;
}

static void peer_has_lock(struct peer *peer)
{
    char c;

    CHECK(read(peer->fd, &c, 1) == 1);
}

static void peer_end(struct peer *peer, int want)
{
    int status;

    OK(waitpid(peer->pid, &status, 0));
    EQUAL(want, status);
    OK(close(peer->fd));
}

static void whole_file(void)
{
    int fd = open(path, O_RDWR);
    struct peer peer;

    OK(fd);
    peer = peer_start(LOCK_EX, 0, 0, 0, 400);
    peer_has_lock(&peer);
    FAILS(EWOULDBLOCK, flock(fd, LOCK_SH | LOCK_NB));
    FAILS(EWOULDBLOCK, flock(fd, LOCK_EX | LOCK_NB));
    OK(flock(fd, LOCK_EX)); /* waits until the peer is gone */
    peer_end(&peer, 0);

    OK(flock(fd, LOCK_SH));
    peer = peer_start(LOCK_SH, 0, 0, 0, 1);
    peer_has_lock(&peer);
    peer_end(&peer, 0);
    OK(flock(fd, LOCK_UN));
    OK(close(fd));
}

static void ranges(void)
{
    struct flock fl = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0};
    int fd = open(path, O_RDWR);
    struct peer peer;

    OK(fd);
    peer = peer_start(F_SETLK, F_WRLCK, 100, 50, 300);
    peer_has_lock(&peer);
    OK(lock_range(fd, F_SETLK, F_WRLCK, 0, 100));
    OK(lock_range(fd, F_SETLK, F_WRLCK, 150, 0));
    CHECK(lock_range(fd, F_SETLK, F_RDLCK, 149, 1) == -1 && (errno == EAGAIN || errno == EACCES));
    OK(fcntl(fd, F_GETLK, &fl));
    EQUAL(F_WRLCK, fl.l_type);
    EQUAL(100, fl.l_start);
    EQUAL(50, fl.l_len);
    OK(lock_range(fd, F_SETLKW, F_WRLCK, 100, 50));
    peer_end(&peer, 0);
    OK(lock_range(fd, F_SETLK, F_UNLCK, 0, 0));
    OK(close(fd));
}

static void description_locks(void)
{
    int a = open(path, O_RDWR), b = open(path, O_RDWR);

    OK(a);
    OK(b);
    OK(lock_range(a, F_OFD_SETLK, F_WRLCK, 0, 10));
    CHECK(lock_range(b, F_OFD_SETLK, F_WRLCK, 5, 10) == -1 && errno == EAGAIN);
    OK(close(a));
    OK(lock_range(b, F_OFD_SETLK, F_WRLCK, 5, 10));
    OK(close(b));
}

/* The write lock of so many bytes there: taken, or it is another one's. */
static bool may_lock(int fd, off_t start, off_t len)
{
    int rc = lock_range(fd, F_OFD_SETLK, F_WRLCK, start, len);

    CHECK(rc == 0 || errno == EAGAIN);
    return rc == 0;
}

static void check_holder(int fd, off_t asked, off_t start, off_t len)
{
    struct flock fl = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = asked, .l_len = 1};

    OK(fcntl(fd, F_OFD_GETLK, &fl));
    EQUAL(len ? F_WRLCK : F_UNLCK, fl.l_type);
    if (len) {
        EQUAL(start, fl.l_start);
        EQUAL(len == INT64_MAX ? 0 : len, fl.l_len); /* to the end of everything */
    }
}

static void neighbours(int a, int b, off_t at)
{
    CHECK(may_lock(a, at, 2));
    OK(lock_range(a, F_OFD_SETLK, F_UNLCK, at + 1, 1));
    CHECK(!may_lock(b, at, 1));
    check_holder(b, at, at, 1);
    check_holder(b, at + 1, 0, 0);
    check_holder(b, at - 1, 0, 0);
    CHECK(may_lock(b, at + 1, 1));
    CHECK(may_lock(b, at - 1, 1));
    check_holder(a, at + 1, at + 1, 1);
    OK(lock_range(a, F_OFD_SETLK, F_UNLCK, 0, 0));
    CHECK(may_lock(b, at - 1, 3)); /* one range of three */
    check_holder(a, at, at - 1, 3);
    OK(lock_range(b, F_OFD_SETLK, F_UNLCK, 0, 0));
}

static void far_offsets(void)
{
    int a = open(path, O_RDWR), b = open(other_path, O_RDWR);
    const off_t last = INT64_MAX;

    OK(a);
    OK(b);
    for (int bits = 52; bits < 63; bits++) {
        neighbours(a, b, (off_t)1 << bits);
        neighbours(a, b, ((off_t)1 << bits) + 5);
    }
    CHECK(may_lock(a, (off_t)1 << 60, 1));
    CHECK(may_lock(b, (off_t)1 << 61, 1));
    CHECK(may_lock(b, ((off_t)1 << 61) + 1, 0)); /* to the end */
    check_holder(a, (off_t)1 << 62, (off_t)1 << 61, INT64_MAX);
    OK(lock_range(b, F_OFD_SETLK, F_UNLCK, 0, 0));
    CHECK(may_lock(a, last, 1));
    CHECK(may_lock(b, last - 1, 1));
    CHECK(!may_lock(b, last, 1));
    CHECK(!may_lock(b, last - 5, 0));
    check_holder(b, last, last, INT64_MAX);
    check_holder(a, last - 1, last - 1, 1);
    OK(close(a));
    OK(close(b));
}

/* Each open file's lock goes when that is closed, and no other one does. */
static void many_descriptors(void)
{
    enum { n = 600 };
    int fd[n], other = open(other_path, O_RDWR);
    double start;

    OK(other);
    for (int i = 0; i < n; i++) {
        fd[i] = open(path, O_RDWR);
        OK(fd[i]);
        OK(lock_range(fd[i], i % 2 ? F_OFD_SETLK : F_SETLK, F_WRLCK, i, 1));
    }
    CHECK(!may_lock(other, 0, 1));
    start = now();
    for (int i = 1; i < n; i += 4)
        OK(close(fd[i])); /* with the process' locks, of which the first one takes all */
    printf("%d closes: %.3f s\n", n / 4, now() - start);
    for (int i = 0; i < n; i++) {
        bool held = i % 4 == 3;

        if (may_lock(other, i, 1) == held)
            fs_fail(__FILE__, __LINE__, "byte %d is %sheld", i, held ? "not " : "");
        if (i % 4 != 1)
            OK(close(fd[i]));
    }
    CHECK(may_lock(other, 0, 0));
    OK(close(other));
}

static void dead_holder(int cmd, const char *what)
{
    int fd = open(path, O_RDWR);
    struct peer peer;
    double start;

    OK(fd);
    peer = peer_start(cmd, F_WRLCK, 0, 0, 60000);
    peer_has_lock(&peer);
    start = now();
    OK(kill(peer.pid, SIGKILL));
    if (cmd == LOCK_EX)
        OK(flock(fd, LOCK_EX));
    else
        OK(lock_range(fd, F_SETLKW, F_WRLCK, 0, 0));
    peer_end(&peer, SIGKILL);
    if (now() - start > 5)
        fs_fail(__FILE__, __LINE__, "%s of a dead process held for %.1f s", what, now() - start);
    OK(close(fd));
}

static void on_signal(int sig)
{
    (void)sig;
}

/* A wait for a lock ends when a signal comes. */
static void interrupted_wait(void)
{
    struct sigaction sa = {.sa_handler = on_signal};
    int fd = open(path, O_RDWR);
    struct peer peer;

    OK(fd);
    peer = peer_start(LOCK_EX, 0, 0, 0, 1500);
    peer_has_lock(&peer);
    OK(sigaction(SIGALRM, &sa, NULL));
    ualarm(200000, 0);
    FAILS(EINTR, flock(fd, LOCK_EX));
    peer_end(&peer, 0);
    OK(close(fd));
}

/* Processes count up a number in the file, each under the lock: none may be lost. */
static void counter(void)
{
    enum { processes = 4, rounds = 100 };
    char buf[32] = "";
    int fd;

    fs_put(path, "0", 1);
    for (int p = 0; p < processes; p++) {
        pid_t pid = fork();

        OK(pid);
        if (pid)
            continue;
        fd = open(p % 2 ? other_path : path, O_RDWR);
        OK(fd);
        for (int i = 0; i < rounds; i++) {
            OK(lock_range(fd, F_SETLKW, F_WRLCK, 0, 0));
            memset(buf, 0, sizeof buf);
            CHECK(pread(fd, buf, sizeof buf - 1, 0) > 0);
            snprintf(buf, sizeof buf, "%d", atoi(buf) + 1);
            fs_write_at(fd, buf, strlen(buf), 0);
            OK(lock_range(fd, F_SETLK, F_UNLCK, 0, 0));
        }
        _exit(0);
    }
    for (int p = 0; p < processes; p++) {
        int status;

        OK(wait(&status));
        EQUAL(0, status);
    }
    fd = open(path, O_RDONLY);
    OK(fd);
    CHECK(pread(fd, buf, sizeof buf - 1, 0) > 0);
    EQUAL(processes * rounds, atoi(buf));
    OK(close(fd));
}

int main(int argc, char **argv)
{
    char here[2048];

    fs_enter(argc, argv);
    CHECK(getcwd(here, sizeof here));
    snprintf(path, sizeof path, "%s/lock", here);
    snprintf(other_path, sizeof other_path, "%s%s/lock", argc > 2 ? argv[2] : "",
             argc > 2 ? strrchr(here, '/') : here);
    fs_put(path, "", 0);
    whole_file();
    ranges();
    description_locks();
    far_offsets();
    many_descriptors();
    dead_holder(LOCK_EX, "flock");
    dead_holder(F_SETLK, "fcntl lock");
    interrupted_wait();
    counter();
    OK(unlink(path));
    fs_leave();
    return 0;
}
