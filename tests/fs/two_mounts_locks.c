/* ctest: timeout=240 races long=45
 *
 * Locks between two mounts: flock, fcntl by process and by open file. They exclude, they wake who
 * waits, they go with their file or process, and what was written under a lock is seen by the next
 * holder. */
#include "fs_pair.h"
#include <sys/file.h>
#include <sys/time.h>

enum kind { FLOCK, POSIX, OFD, KINDS };

enum { HOLDER_DEATH_SECONDS = 10 }; /* longest that a dead holder may keep others waiting */

static int set_range(int fd, enum kind kind, short type, bool wait, off_t start, off_t len)
{
    struct flock fl = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};
    int cmd = kind == OFD ? (wait ? F_OFD_SETLKW : F_OFD_SETLK) : (wait ? F_SETLKW : F_SETLK);

    return fcntl(fd, cmd, &fl);
}

/* Locks or unlocks (F_UNLCK) the whole file. */
static int set_lock(int fd, enum kind kind, short type, bool wait)
{
    int how = type == F_WRLCK ? LOCK_EX : type == F_RDLCK ? LOCK_SH : LOCK_UN;

    if (kind == FLOCK)
        return flock(fd, how | (wait ? 0 : LOCK_NB));
    return set_range(fd, kind, type, wait, 0, 0);
}

static void enter(struct pair *p)
{
    EQUAL(0, atomic_fetch_add(&p->shared->value[0], 1));
}

static void leave(struct pair *p)
{
    EQUAL(1, atomic_fetch_sub(&p->shared->value[0], 1));
}

/* Adds one to the number in a file. */
static void increment(int fd)
{
    char text[32] = "";
    unsigned long value;
    int len;

    OK(pread(fd, text, sizeof text - 1, 0));
    value = strtoul(text, NULL, 10) + 1;
    len = snprintf(text, sizeof text, "%lu\n", value);
    fs_write_at(fd, text, (size_t)len, 0);
}

/* A counter in a file, read, changed and written under a lock by both; unlock, or close, publishes.
 */
static void counter(struct pair *p)
{
    enum kind kind = (enum kind)pair_random(p, KINDS);
    bool keep_open = pair_random(p, 2), by_close = pair_random(p, 2);
    enum { TIMES = 25 };
    char text[32];
    int fd;

    if (p->side == 0)
        fs_put(pair_mine(p, "counter"), "0\n", 2);
    pair_meet(p);
    fd = pair_open(pair_mine(p, "counter"), O_RDWR);
    for (unsigned i = 0; i < TIMES; i++) {
        OK(set_lock(fd, kind, F_WRLCK, true));
        enter(p);
        increment(fd);
        leave(p);
        if (keep_open || !by_close)
            OK(set_lock(fd, kind, F_UNLCK, false));
        if (!keep_open) {
            OK(close(fd));
            fd = pair_open(pair_mine(p, "counter"), O_RDWR);
        }
    }
    OK(close(fd));
    pair_meet(p);
    snprintf(text, sizeof text, "%d\n", 2 * TIMES);
    fs_expect(pair_mine(p, "counter"), text, strlen(text));
}

/* The one holds a lock, the other is refused and told by whom, waits, and is woken by the release.
 */
static void waiter(struct pair *p)
{
    enum kind kind = (enum kind)pair_random(p, KINDS);
    bool by_close = pair_random(p, 2);
    int holder = (int)pair_random(p, 2), fd;
    double released;

    fd = pair_open(pair_mine(p, "lock"), O_RDWR | O_CREAT);
    if (p->side == holder)
        OK(set_lock(fd, kind, F_WRLCK, false));
    pair_meet(p);
    if (p->side != holder)
        FAILS(EAGAIN, set_lock(fd, kind, pair_own_random(p, 2) ? F_WRLCK : F_RDLCK, false));
    pair_meet(p);
    if (p->side == holder) {
        usleep(pair_own_random(p, 30000));
        atomic_store(&p->shared->value[2], (int64_t)(pair_now() * 1e6));
        OK(by_close ? close(fd) : set_lock(fd, kind, F_UNLCK, false));
        if (!by_close)
            OK(close(fd));
        return;
    }
    OK(set_lock(fd, kind, F_WRLCK, true));
    released = (double)atomic_load(&p->shared->value[2]) / 1e6;
    CHECK(released > 0);
    if (pair_now() - released > 2)
        fs_fail(__FILE__, __LINE__, "woken %.3f s after the release", pair_now() - released);
    OK(close(fd));
}

/* Several may read-lock; a writer waits for all of them; an upgrade works once they are gone. */
static void readers(struct pair *p)
{
    enum kind kind = (enum kind)pair_random(p, KINDS);
    int fd = pair_open(pair_mine(p, "lock"), O_RDWR | O_CREAT);

    OK(set_lock(fd, kind, F_RDLCK, false));
    for (int side = 0; side < 2; side++) {
        pair_meet(p);
        if (p->side != side)
            continue;
        FAILS(EAGAIN, set_lock(fd, kind, F_WRLCK, false));
        if (kind == FLOCK) /* which gives its lock up before it tries to convert it */
            OK(set_lock(fd, kind, F_RDLCK, false));
    }
    pair_meet(p);
    if (p->side == 0)
        OK(close(fd));
    pair_meet(p);
    if (p->side == 1) {
        OK(set_lock(fd, kind, F_WRLCK, false));
        OK(close(fd));
    }
}

/* What is closed is free, at once and for who does not wait. */
static void closed(struct pair *p)
{
    enum kind kind = (enum kind)pair_random(p, KINDS);
    enum { TURNS = 10 };
    int fd;

    for (int turn = 0; turn < TURNS; turn++) {
        bool holder = turn % 2 == p->side;

        fd = pair_open(pair_mine(p, "lock"), O_RDWR | O_CREAT);
        if (holder)
            OK(set_lock(fd, kind, pair_own_random(p, 2) ? F_WRLCK : F_RDLCK, false));
        pair_meet(p);
        if (!holder)
            FAILS(EAGAIN, set_lock(fd, kind, F_WRLCK, false));
        pair_meet(p);
        if (holder)
            OK(close(fd));
        pair_meet(p);
        if (!holder) {
            OK(set_lock(fd, kind, F_WRLCK, false));
            OK(close(fd));
        }
        pair_meet(p);
    }
}

/* A duplicate is closed: the lock stays, and goes with the last descriptor. */
static void duplicated(struct pair *p)
{
    enum kind kind = pair_random(p, 2) ? FLOCK : OFD; /* the others go with any descriptor */
    int fd = pair_open(pair_mine(p, "lock"), O_RDWR | O_CREAT), copy;

    if (p->side == 0) {
        copy = dup(fd);
        OK(copy);
        OK(set_lock(fd, kind, F_WRLCK, false));
        OK(close(copy));
    }
    pair_meet(p);
    for (unsigned i = 0; p->side == 1 && i < 2; i++)
        FAILS(EAGAIN, set_lock(fd, kind, F_RDLCK, false));
    pair_meet(p);
    if (p->side == 0)
        OK(close(fd));
    pair_meet(p);
    if (p->side == 1) {
        OK(set_lock(fd, kind, F_WRLCK, false));
        OK(close(fd));
    }
}

/* Who does not want to wait is told at once, unless the machine is busy: not all are kept. */
static void refused(struct pair *p)
{
    enum kind kind = (enum kind)pair_random(p, KINDS);
    enum { TIMES = 1000 };
    const double slow = 0.02;
    double start, each;
    unsigned fast = 0;
    int fd = pair_open(pair_mine(p, "lock"), O_RDWR | O_CREAT);

    if (p->side == 0)
        OK(set_lock(fd, kind, F_WRLCK, false));
    pair_meet(p);
    start = pair_now();
    for (unsigned i = 0; p->side == 1 && i < TIMES; i++) {
        each = pair_now();
        FAILS(EAGAIN, set_lock(fd, kind, F_WRLCK, false));
        fast += pair_now() - each < slow;
    }
    if (p->side == 1) {
        printf("%d refusals, %.0f a second\n", TIMES, TIMES / (pair_now() - start));
        if (fast < TIMES / 4)
            fs_fail(__FILE__, __LINE__, "%u of %d refusals took %.0f ms or more", TIMES - fast,
                    TIMES, slow * 1e3);
    }
    pair_meet(p);
    OK(close(fd));
}

/* Ranges: only what overlaps conflicts, and F_GETLK says with what. */
static void ranges(struct pair *p)
{
    enum kind kind = pair_random(p, 2) ? POSIX : OFD;
    int fd = pair_open(pair_mine(p, "lock"), O_RDWR | O_CREAT);
    off_t base = (off_t)pair_random(p, 1000) * 1000;
    struct flock fl = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = base + 5, .l_len = 10};

    OK(set_range(fd, kind, F_WRLCK, false, base + 100 * p->side, 100));
    pair_meet(p);
    FAILS(EAGAIN, set_range(fd, kind, F_RDLCK, false, base + 100 * !p->side + 99, 1));
    fl.l_start = base + 100 * !p->side + 50;
    OK(fcntl(fd, kind == OFD ? F_OFD_GETLK : F_GETLK, &fl));
    EQUAL(F_WRLCK, fl.l_type);
    EQUAL(base + 100 * !p->side, fl.l_start);
    EQUAL(100, fl.l_len);
    pair_meet(p);
    /* Gives back the middle: the other side gets just that. */
    OK(set_range(fd, kind, F_UNLCK, false, base + 100 * p->side + 40, 20));
    pair_meet(p);
    OK(set_range(fd, kind, F_WRLCK, false, base + 100 * !p->side + 40, 20));
    FAILS(EAGAIN, set_range(fd, kind, F_WRLCK, false, base + 100 * !p->side + 39, 1));
    FAILS(EAGAIN, set_range(fd, kind, F_WRLCK, false, base + 100 * !p->side + 60, 1));
    pair_meet(p);
    OK(close(fd));
    pair_meet(p);
    fd = pair_open(pair_mine(p, "lock"), O_RDWR);
    fl = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
    OK(fcntl(fd, kind == OFD ? F_OFD_GETLK : F_GETLK, &fl));
    EQUAL(F_UNLCK, fl.l_type);
    OK(close(fd));
}

/* A process that takes a lock, says so, and stays until it is killed. */
static pid_t start_holder(struct pair *p, enum kind kind)
{
    int ready[2], fd;
    char c;
    pid_t pid;

    OK(pipe(ready));
    pid = fork();
    OK(pid);
    if (pid == 0) {
        fd = open(pair_mine(p, "lock"), O_RDWR | O_CREAT, 0644);
        if (fd < 0 || set_lock(fd, kind, F_WRLCK, true) < 0 || pwrite(fd, "written", 7, 0) != 7 ||
            write(ready[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    OK(close(ready[1]));
    EQUAL(1, read(ready[0], &c, 1));
    OK(close(ready[0]));
    return pid;
}

/* The holder is killed with its lock held; who waits on the other mount gets it. */
static void killed(struct pair *p)
{
    enum kind kind = (enum kind)pair_random(p, KINDS);
    int holder = (int)pair_random(p, 2), fd;
    double start;
    pid_t pid = -1;

    if (p->side == holder)
        pid = start_holder(p, kind);
    pair_meet(p);
    if (p->side == holder) {
        usleep(pair_own_random(p, 20000));
        atomic_store(&p->shared->value[1], 1);
        OK(kill(pid, SIGKILL));
        EQUAL(pid, waitpid(pid, NULL, 0));
        return;
    }
    fd = pair_open(pair_mine(p, "lock"), O_RDWR);
    if (!atomic_load(&p->shared->value[1]) && pair_own_random(p, 2))
        set_lock(fd, kind, F_WRLCK, false); /* refused, unless the holder has just died */
    start = pair_now();
    OK(set_lock(fd, kind, F_WRLCK, true));
    EQUAL(1, atomic_load(&p->shared->value[1]));
    if (pair_now() - start > HOLDER_DEATH_SECONDS)
        fs_fail(__FILE__, __LINE__, "the lock came %.1f s after its holder died",
                pair_now() - start);
    OK(close(fd));
}

static void on_alarm(int sig)
{
    (void)sig;
}

/* A signal ends the wait for a lock with EINTR, and the lock is not held afterwards. */
static void interrupted(struct pair *p)
{
    enum kind kind = (enum kind)pair_random(p, KINDS);
    int fd = pair_open(pair_mine(p, "lock"), O_RDWR | O_CREAT);
    struct sigaction action = {.sa_handler = on_alarm};
    suseconds_t delay = 1000 + (suseconds_t)pair_random(p, 20000);
    /* Again and again: the first signal may come before the wait has begun. */
    struct itimerval timer = {.it_value.tv_usec = delay, .it_interval.tv_usec = 50000}, off = {0};

    if (p->side == 0)
        OK(set_lock(fd, kind, F_WRLCK, false));
    pair_meet(p);
    if (p->side == 1) {
        OK(sigaction(SIGALRM, &action, NULL));
        OK(setitimer(ITIMER_REAL, &timer, NULL));
        FAILS(EINTR, set_lock(fd, kind, F_WRLCK, true));
        OK(setitimer(ITIMER_REAL, &off, NULL));
    }
    pair_meet(p);
    if (p->side == 0) {
        OK(set_lock(fd, kind, F_UNLCK, false));
        OK(set_lock(fd, kind, F_WRLCK, false));
    }
    pair_meet(p);
    OK(close(fd));
}

/* Data written under the lock by fcntl, to several places, never fsynced or closed: the next holder
 * sees all of it, though it has read the old content before. */
static void handed_over(struct pair *p)
{
    enum kind kind = (enum kind)pair_random(p, KINDS);
    enum { SLOTS = 5, SLOT = 300000, TURNS = 6 };
    uint64_t expect[SLOTS], value;
    int fd;

    if (p->side == 0)
        OK(close(pair_open(pair_mine(p, "data"), O_RDWR | O_CREAT | O_TRUNC)));
    pair_meet(p);
    memset(expect, 0, sizeof expect);
    fd = pair_open(pair_mine(p, "data"), O_RDWR);
    for (unsigned turn = 0; turn < TURNS; turn++) {
        uint64_t fresh = pair_draw(&p->random);
        unsigned slot = pair_random(p, SLOTS);

        if ((int)(turn % 2) == p->side) {
            OK(set_lock(fd, kind, F_WRLCK, true));
            for (unsigned i = 0; i < SLOTS; i++) {
                value = 0;
                OK(pread(fd, &value, sizeof value, (off_t)i * SLOT));
                EQUAL(expect[i], value);
            }
            fs_write_at(fd, &fresh, sizeof fresh, (off_t)slot * SLOT);
            OK(set_lock(fd, kind, F_UNLCK, false));
        }
        expect[slot] = fresh;
        pair_meet(p);
    }
    OK(close(fd));
}

/* The lock is one file's, the data are another's: fsync before the unlock has the next holder see
 * them by a descriptor that was open and read before (docs/design/consistency.md). */
static void of_another_file(struct pair *p)
{
    uint64_t expect = 0, value = 0;
    int lock, fd;

    if (p->side == 0) {
        OK(close(pair_open(pair_mine(p, "lock"), O_RDWR | O_CREAT)));
        fd = pair_open(pair_mine(p, "data"), O_RDWR | O_CREAT);
        fs_write_at(fd, &value, sizeof value, 0);
        OK(close(fd));
    }
    pair_meet(p);
    lock = pair_open(pair_mine(p, "lock"), O_RDWR);
    fd = pair_open(pair_mine(p, "data"), O_RDWR);
    for (int turn = 0; turn < 6; turn++) {
        if (turn % 2 == p->side) {
            OK(set_lock(lock, FLOCK, F_WRLCK, true));
            OK(pread(fd, &value, sizeof value, 0));
            EQUAL(expect, value);
            value++;
            fs_write_at(fd, &value, sizeof value, 0);
            OK(fsync(fd));
            OK(set_lock(lock, FLOCK, F_UNLCK, false));
        }
        expect++;
        pair_meet(p);
    }
    OK(close(fd));
    OK(close(lock));
}

int main(int argc, char **argv)
{
    static const struct pair_scenario scenarios[] = {
        {"counter", .race = counter, .cost = 10},
        {"waiter", .race = waiter, .cost = 5},
        {"readers", .race = readers},
        {"closed", .race = closed, .cost = 5},
        {"duplicated", .race = duplicated, .cost = 20},
        {"refused", .race = refused, .cost = 50},
        {"ranges", .race = ranges},
        {"killed", .race = killed, .cost = 5},
        {"interrupted", .race = interrupted, .cost = 5},
        {"handed_over", .race = handed_over},
        {"of_another_file", .race = of_another_file},
        {NULL},
    };

    return pair_main(argc, argv, scenarios);
}
