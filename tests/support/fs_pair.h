/* What the tests/fs/two_mounts programs share: scenarios that run for many rounds on two mounts of
 * one deployment.
 *
 * A scenario is either a *script* (one process that uses both mounts in turn, so that "it returned
 * on the one, then started on the other" is simply the program's order) or a *race* (a process for
 * each mount, side 0 and side 1, that wait for each other by pair_meet). Every scenario runs in
 * lanes: so many at once, each in a directory of its own, so that the file system has several
 * things to do. A failed check ends its lane; the program says which round and seed it was and goes
 * on with the next scenario.
 *
 * Arguments: MOUNT MOUNT2 [--seed N] [--rounds N] [--seconds N] [--lanes N] [--only SCENARIO]. With
 * the same directory twice it tests itself on any file system. A line is printed for each scenario:
 * "ok", "FAILED" or "skipped", its name, and details. */
#ifndef MFS_TESTS_FS_PAIR_H
#define MFS_TESTS_FS_PAIR_H

#include "fs_check.h"
#include <dirent.h>
#include <ftw.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

enum {
    PAIR_LANES_MAX = 8,
    PAIR_MEET_SECONDS = 60,   /* longest wait for the other side */
    PAIR_GRACE_SECONDS = 120, /* after its time a scenario may need to end a round */
    PAIR_PATH = 1024,
    PAIR_STRIPE = 1020 << 10, /* of a deployment that was asked for no other size */
};

/* What the processes of a lane share. */
struct pair_shared {
    _Atomic uint32_t arrived, generation;
    _Atomic uint32_t rounds;  /* completed */
    _Atomic uint32_t stop;    /* side 0 decides at a meeting that the time is over */
    _Atomic int64_t value[8]; /* for the scenario; zeroed before every round */
};

struct pair {
    char dir[2][PAIR_PATH]; /* the lane's directory as each mount sees it */
    int side;               /* of this process, in a race */
    unsigned round;
    uint64_t random; /* the same on both sides as long as both draw alike */
    uint64_t own;    /* differs between the sides */
    struct pair_shared *shared;
};

struct pair_scenario {
    const char *name;
    void (*script)(struct pair *); /* one of the two: a round of a script … */
    void (*race)(struct pair *);   /* … or of a race, called by both sides */
    unsigned cost;                 /* does one round where others do that many; 0 is 1 */
};

struct pair_options {
    const char *mount[2];
    const char *only;
    uint64_t seed;
    unsigned rounds, seconds, lanes;
};

static inline double pair_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static inline uint64_t pair_draw(uint64_t *state)
{
    uint64_t x = (*state += 0x9e3779b97f4a7c15ULL);

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

/* A number below n that both sides of a race agree on. */
static inline unsigned pair_random(struct pair *p, unsigned n)
{
    return (unsigned)(pair_draw(&p->random) % n);
}

/* A number below n that only this side knows. */
static inline unsigned pair_own_random(struct pair *p, unsigned n)
{
    return (unsigned)(pair_draw(&p->own) % n);
}

/* A path in the lane's directory through a mount; good for the next 32 calls. */
__attribute__((format(printf, 3, 4))) static inline const char *pair_path(struct pair *p, int mount,
                                                                          const char *fmt, ...)
{
    static char ring[32][PAIR_PATH + 512];
    static unsigned next;
    char *path = ring[next++ % 32], name[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    snprintf(path, sizeof ring[0], "%s/%s", p->dir[mount], name);
    return path;
}

/* A path through this side's own mount. */
#define pair_mine(p, ...) pair_path((p), (p)->side, __VA_ARGS__)

static inline void pair_futex_wait(_Atomic uint32_t *word, uint32_t seen)
{
    struct timespec limit = {.tv_nsec = 50000000};

    syscall(SYS_futex, (void *)word, FUTEX_WAIT, seen, &limit, NULL, 0);
}

/* Waits for the other side to come here, too; both go on at the same moment. */
static inline void pair_meet(struct pair *p)
{
    struct pair_shared *s = p->shared;
    uint32_t generation = atomic_load(&s->generation);
    double deadline = pair_now() + PAIR_MEET_SECONDS;

    if (atomic_fetch_add(&s->arrived, 1) == 1) {
        atomic_store(&s->arrived, 0);
        atomic_fetch_add(&s->generation, 1);
        syscall(SYS_futex, (void *)&s->generation, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
        return;
    }
    for (unsigned spin = 0; atomic_load(&s->generation) == generation; spin++) {
        if (spin > 200)
            pair_futex_wait(&s->generation, generation);
        else
            sched_yield();
        if (pair_now() > deadline)
            fs_fail(__FILE__, __LINE__, "side %d waited %d s for the other", p->side,
                    PAIR_MEET_SECONDS);
    }
}

/* --- helpers for scenarios ------------------------------------------------------------------- */

static inline int pair_open(const char *path, int flags)
{
    int fd = open(path, flags, 0644);

    if (fd < 0)
        fs_fail(__FILE__, __LINE__, "open %s with flags %o", path, (unsigned)flags);
    return fd;
}

/* The path must not exist, neither to stat nor to open. */
static inline void pair_absent(const char *path)
{
    struct stat st;

    if (lstat(path, &st) == 0)
        fs_fail(__FILE__, __LINE__, "%s is still there", path);
    FAILS(ENOENT, open(path, O_RDONLY));
}

static inline bool pair_same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* Every attribute but the time of access must be the same. */
static inline void pair_same_attributes(const struct stat *a, const struct stat *b)
{
    EQUAL(a->st_ino, b->st_ino);
    EQUAL(a->st_mode, b->st_mode);
    EQUAL(a->st_nlink, b->st_nlink);
    EQUAL(a->st_uid, b->st_uid);
    EQUAL(a->st_gid, b->st_gid);
    EQUAL(a->st_rdev, b->st_rdev);
    EQUAL(a->st_size, b->st_size);
    EQUAL(a->st_mtim.tv_sec, b->st_mtim.tv_sec);
    EQUAL(a->st_mtim.tv_nsec, b->st_mtim.tv_nsec);
    EQUAL(a->st_ctim.tv_sec, b->st_ctim.tv_sec);
    EQUAL(a->st_ctim.tv_nsec, b->st_ctim.tv_nsec);
}

/* How often a name is in a directory; *total, if wanted, counts all entries but . and .. */
static inline unsigned pair_listed(const char *dir, const char *name, unsigned *total)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    unsigned found = 0, all = 0;

    if (!d)
        fs_fail(__FILE__, __LINE__, "opendir %s", dir);
    for (errno = 0; (e = readdir(d)); errno = 0) {
        found += strcmp(e->d_name, name) == 0;
        all += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    }
    EQUAL(0, errno);
    OK(closedir(d));
    if (total)
        *total = all;
    return found;
}

static inline int pair_remove_entry(const char *path, const struct stat *st, int kind,
                                    struct FTW *ftw)
{
    (void)st, (void)kind, (void)ftw;
    return remove(path);
}

static inline void pair_remove_tree(const char *path)
{
    if (fs_exists(path) && nftw(path, pair_remove_entry, 32, FTW_DEPTH | FTW_PHYS))
        fs_fail(__FILE__, __LINE__, "remove the tree %s", path);
}

/* --- running --------------------------------------------------------------------------------- */

static inline void pair_script_rounds(struct pair *p, const struct pair_scenario *s,
                                      unsigned rounds, double until)
{
    for (p->round = 0; p->round < rounds && pair_now() < until; p->round++) {
        s->script(p);
        atomic_fetch_add(&p->shared->rounds, 1);
    }
}

static inline void pair_race_rounds(struct pair *p, const struct pair_scenario *s, unsigned rounds,
                                    double until)
{
    for (p->round = 0; p->round < rounds; p->round++) {
        if (p->side == 0) {
            atomic_store(&p->shared->stop, pair_now() >= until);
            for (unsigned i = 0; i < 8; i++)
                atomic_store(&p->shared->value[i], 0);
        }
        pair_meet(p);
        if (atomic_load(&p->shared->stop))
            break;
        s->race(p);
        pair_meet(p);
        if (p->side == 0)
            atomic_fetch_add(&p->shared->rounds, 1);
    }
}

static inline pid_t pair_start_side(const struct pair *lane, int side,
                                    const struct pair_scenario *s, unsigned rounds, double until)
{
    struct pair p = *lane;
    pid_t pid = fork();

    OK(pid);
    if (pid)
        return pid;
    p.side = side;
    p.own = lane->random * 2 + (uint64_t)side;
    if (s->script)
        pair_script_rounds(&p, s, rounds, until);
    else
        pair_race_rounds(&p, s, rounds, until);
    exit(0);
}

/* The lane's process: starts one or two sides, and ends the other when one has failed. */
static inline int pair_run_lane(const struct pair *lane, const struct pair_scenario *s,
                                unsigned rounds, double until)
{
    pid_t side[2] = {-1, -1}, ended;
    int sides = s->script ? 1 : 2, failed = 0, status;

    for (int i = 0; i < sides; i++)
        side[i] = pair_start_side(lane, i, s, rounds, until);
    alarm((unsigned)(until - pair_now()) + PAIR_GRACE_SECONDS);
    for (int i = 0; i < sides; i++) {
        ended = wait(&status);
        if (ended < 0 || status == 0 || failed)
            continue;
        failed = 1;
        if (WIFSIGNALED(status))
            fprintf(stderr, "%s: a side was ended by signal %d\n", s->name, WTERMSIG(status));
        for (int j = 0; j < sides; j++)
            if (side[j] != ended)
                kill(side[j], SIGKILL);
    }
    return failed;
}

static inline void pair_too_long(int sig)
{
    static const char text[] = "a lane did not end in time\n";

    (void)sig;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(4);
    killpg(0, SIGKILL);
}

static inline pid_t pair_start_lane(struct pair *lane, const struct pair_scenario *s,
                                    unsigned rounds, double until)
{
    pid_t pid = fork();

    OK(pid);
    if (pid)
        return pid;
    setpgid(0, 0);
    signal(SIGALRM, pair_too_long);
    exit(pair_run_lane(lane, s, rounds, until));
}

static inline void pair_init_lane(struct pair *lane, const struct pair_options *o, unsigned index,
                                  const char *top)
{
    memset(lane, 0, sizeof *lane);
    for (int i = 0; i < 2; i++)
        snprintf(lane->dir[i], sizeof lane->dir[i], "%s/%s/%u", o->mount[i], top, index);
    lane->random = o->seed * 1000003 + index;
    lane->shared =
        mmap(NULL, sizeof *lane->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(lane->shared != MAP_FAILED);
    OK(mkdir(lane->dir[0], 0755));
}

/* Runs a scenario in its lanes; false when a check failed. */
static inline bool pair_run_scenario(const struct pair_options *o, const struct pair_scenario *s)
{
    struct pair lane[PAIR_LANES_MAX];
    pid_t pid[PAIR_LANES_MAX];
    char top[64], path[PAIR_PATH];
    unsigned rounds = o->rounds / (s->cost ? s->cost : 1) + 1, done = 0;
    double start = pair_now();
    bool good = true;

    snprintf(top, sizeof top, "pair-%s-%d", s->name, (int)getpid());
    snprintf(path, sizeof path, "%s/%s", o->mount[0], top);
    OK(mkdir(path, 0755));
    fflush(NULL);
    for (unsigned i = 0; i < o->lanes; i++) {
        pair_init_lane(&lane[i], o, i, top);
        pid[i] = pair_start_lane(&lane[i], s, rounds, start + o->seconds);
    }
    for (unsigned i = 0; i < o->lanes; i++) {
        int status;
        uint32_t completed;

        OK(waitpid(pid[i], &status, 0));
        completed = atomic_load(&lane[i].shared->rounds);
        if (status)
            printf("FAILED   %-20s lane %u, round %u, seed %llu\n", s->name, i, completed,
                   (unsigned long long)o->seed);
        good = good && status == 0;
        done += completed;
        munmap(lane[i].shared, sizeof *lane[i].shared);
    }
    pair_remove_tree(path);
    if (good)
        printf("ok       %-20s %u rounds in %.1f s\n", s->name, done, pair_now() - start);
    fflush(stdout);
    return good;
}

static inline void pair_parse(int argc, char **argv, struct pair_options *o)
{
    *o = (struct pair_options){
        .rounds = 300, .seconds = 4, .lanes = 4, .seed = (uint64_t)time(NULL) ^ (uint64_t)getpid()};
    if (argc < 3) {
        fprintf(stderr,
                "usage: %s MOUNT MOUNT2 [--seed N] [--rounds N] [--seconds N] [--lanes N] "
                "[--only SCENARIO]\n",
                argv[0]);
        exit(2);
    }
    o->mount[0] = argv[1];
    o->mount[1] = argv[2];
    for (int i = 3; i + 1 < argc; i += 2) {
        uint64_t number = strtoull(argv[i + 1], NULL, 10);

        if (!strcmp(argv[i], "--seed"))
            o->seed = number;
        else if (!strcmp(argv[i], "--rounds"))
            o->rounds = (unsigned)number;
        else if (!strcmp(argv[i], "--seconds"))
            o->seconds = (unsigned)number;
        else if (!strcmp(argv[i], "--lanes") && number >= 1 && number <= PAIR_LANES_MAX)
            o->lanes = (unsigned)number;
        else if (!strcmp(argv[i], "--only"))
            o->only = argv[i + 1];
        else {
            fprintf(stderr, "%s: no such option, or bad value: %s\n", argv[0], argv[i]);
            exit(2);
        }
    }
}

static inline int pair_main(int argc, char **argv, const struct pair_scenario *scenarios)
{
    struct pair_options o;
    bool good = true;

    pair_parse(argc, argv, &o);
    umask(022);
    printf("seed %llu\n", (unsigned long long)o.seed);
    for (const struct pair_scenario *s = scenarios; s->name; s++)
        if (!o.only || !strcmp(o.only, s->name))
            good = pair_run_scenario(&o, s) && good;
    return good ? 0 : 1;
}

#endif
