/* Locks: flock, fcntl and open file description locks between processes; what a process held is
 * free when it dies. With argv[2] the other process works on the second mount. */
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
    dead_holder(LOCK_EX, "flock");
    dead_holder(F_SETLK, "fcntl lock");
    interrupted_wait();
    counter();
    OK(unlink(path));
    fs_leave();
    return 0;
}
