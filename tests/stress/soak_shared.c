/* What several mounts change at the same time: a counter under a lock, and a file that two append
 * to.
 *
 * The counter: who has the lock raises it by one and stores it, before the lock is given back. No
 * value that was stored is ever lost, and none is stored by two.
 *
 * Appends: what was closed is there exactly once; what failed at most once. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "soak.h"

#define PATIENCE 20 /* s: then what can't be read is taken for lost, and another file for it */

/* --- the counter ------------------------------------------------------------------------------ */

/* It is under our lock. */
static int raise_counter(struct soak_worker *w, int fd, unsigned file, const char *path)
{
    struct soak *s = w->s;
    uint32_t acked = atomic_load(&s->counter_acked[file]), value = 0, tried;
    ssize_t n = soak_read(w, fd, &value, sizeof value, 0, path);
    int rc;

    if (n < 0)
        return (int)n;
    tried = atomic_load(&s->counter_tried[file]);
    if (value < acked || value > tried) {
        soak_wrong_file(s, path, soak_ino(fd),
                        "%u, %u was stored under the lock, and no more than %u tried", value, acked,
                        tried);
        return -EIO;
    }
    if (++value >= SOAK_COUNTS)
        return -EFBIG;
    while (tried < value && !atomic_compare_exchange_weak(&s->counter_tried[file], &tried, value))
        ;
    rc = soak_write(w, fd, &value, sizeof value, 0, path);
    if (rc == 0)
        rc = soak_fsync(w, fd, path);
    if (rc < 0)
        return rc;
    if (atomic_exchange(&s->acked[file][value], 1))
        soak_wrong_file(s, path, soak_ino(fd), "%u was stored by two under the lock", value);
    while (acked < value && !atomic_compare_exchange_weak(&s->counter_acked[file], &acked, value))
        ;
    return 0;
}

static int count(struct soak_worker *w, unsigned file)
{
    char path[SOAK_PATH];
    int fd, rc;

    soak_path(w, w->mount, path, "counter%u", file);
    fd = soak_open(w, path, O_RDWR | O_CREAT);
    if (fd < 0)
        return fd;
    rc = soak_lock(w, fd, true, path);
    if (rc == 0) {
        rc = raise_counter(w, fd, file, path);
        soak_lock(w, fd, false, path);
    }
    soak_close(w, fd, path);
    return rc;
}

struct counter_look {
    unsigned file, mount;
};

static int look_counter(struct soak_worker *w, void *arg)
{
    struct counter_look *l = arg;
    uint32_t value[SOAK_BLOCK / 4] __attribute__((aligned(4096))) = {0};
    char path[SOAK_PATH];
    uint64_t ino;
    ssize_t n;
    int fd;

    soak_path(w, l->mount, path, "counter%u", l->file);
    fd = soak_open(w, path, O_RDONLY | O_DIRECT);
    if (fd < 0)
        return fd;
    ino = soak_ino(fd);
    n = soak_read(w, fd, value, sizeof value, 0, path);
    soak_close(w, fd, path);
    if (n < 0)
        return (int)n;
    if (value[0] < atomic_load(&w->s->counter_acked[l->file]) ||
        value[0] > atomic_load(&w->s->counter_tried[l->file]))
        soak_wrong_file(w->s, path, ino, "%u in the end, %u was stored, %u tried", value[0],
                        atomic_load(&w->s->counter_acked[l->file]),
                        atomic_load(&w->s->counter_tried[l->file]));
    return 0;
}

/* The others may be at it, so one of them looks. */
static void last_counts(struct soak_worker *w)
{
    struct counter_look l;
    char path[SOAK_PATH];

    for (l.file = 0; l.file <= atomic_load(&w->s->counter_file); l.file++)
        for (l.mount = 0; l.mount < w->s->mounts; l.mount++) {
            int rc = soak_settle(w, look_counter, &l);

            if (rc < 0) {
                soak_gone(w, soak_path(w, l.mount, path, "counter%u", l.file), rc);
                break;
            }
        }
}

void soak_counter(struct soak_worker *w)
{
    int64_t good = soak_now();

    while (soak_go_on(w)) {
        unsigned file = atomic_load(&w->s->counter_file);
        int rc = count(w, file);

        if (rc == 0 || rc == -EAGAIN)
            good = soak_now();
        else if (file + 1 < SOAK_COUNTERS &&
                 (rc == -EFBIG || (rc == -EIO && w->s->lost_fd >= 0 &&
                                   soak_now() - good > PATIENCE * 1000000000LL))) {
            atomic_compare_exchange_strong(&w->s->counter_file, &file, file + 1);
            good = soak_now();
        }
        usleep(rc ? 20000 : 2000);
    }
    if (w->mount == 0)
        last_counts(w);
}

/* --- appends ---------------------------------------------------------------------------------- */

enum { NOT_TRIED, UNSURE, WRITTEN, CLOSED };

struct record {
    uint64_t round;
    uint32_t writer, number;
    uint64_t rest[6];
};

static struct record record_of(const struct soak *s, unsigned round, unsigned writer,
                               unsigned number)
{
    struct record r = {.round = round, .writer = writer, .number = number};

    for (unsigned i = 0; i < 6; i++)
        r.rest[i] = soak_mix(s->seed ^ ((uint64_t)round << 32 | writer << 31 | number << 3 | i));
    return r;
}

/* What was written since the last close is as sure as this close. */
static void close_appended(struct soak_worker *w, int fd, const char *path)
{
    unsigned char *mine = w->s->appended[w->mount];
    bool ok = soak_close(w, fd, path) == 0;

    for (unsigned i = 0; i < SOAK_APPENDS; i++)
        if (mine[i] == WRITTEN)
            mine[i] = ok ? CLOSED : UNSURE;
}

static void append_some(struct soak_worker *w, unsigned round)
{
    unsigned char *mine = w->s->appended[w->mount];
    char path[SOAK_PATH];
    int fd = -1;

    soak_path(w, w->mount, path, "append%u", round);
    memset(mine, NOT_TRIED, SOAK_APPENDS);
    for (unsigned i = 0; i < SOAK_APPENDS && soak_go_on(w); i++) {
        struct record r = record_of(w->s, round, w->mount, i);
        int rc;

        if (fd < 0)
            fd = soak_open(w, path, O_WRONLY | O_APPEND | O_CREAT);
        if (fd < 0)
            continue;
        rc = soak_append(w, fd, &r, sizeof r, path);
        mine[i] = rc ? UNSURE : WRITTEN;
        if (rc || soak_rnd(w, 20) == 0) {
            close_appended(w, fd, path);
            fd = -1;
        }
        usleep(2000);
    }
    if (fd >= 0)
        close_appended(w, fd, path);
}

struct append_look {
    unsigned round, mount;
};

static void judge_record(struct soak_worker *w, const struct record *r, unsigned round,
                         unsigned char times[2][SOAK_APPENDS], uint64_t at, const char *path,
                         uint64_t ino)
{
    struct record want = record_of(w->s, round, r->writer, r->number);

    if (r->writer > 1 || r->number >= SOAK_APPENDS || memcmp(r, &want, sizeof want) != 0) {
        soak_wrong_file(w->s, path, ino, "no record at %llu: round %llu, %u's number %u",
                        (unsigned long long)at, (unsigned long long)r->round, r->writer, r->number);
        return;
    }
    times[r->writer][r->number]++;
}

static int look_appended(struct soak_worker *w, void *arg)
{
    static unsigned char times[2][SOAK_APPENDS];
    struct append_look *l = arg;
    char path[SOAK_PATH];
    uint64_t ino;
    ssize_t n;
    int fd;

    soak_path(w, l->mount, path, "append%u", l->round);
    fd = soak_open(w, path, O_RDONLY);
    if (fd < 0)
        return fd;
    ino = soak_ino(fd);
    n = soak_read(w, fd, w->buf, SOAK_BUF, 0, path);
    soak_close(w, fd, path);
    if (n < 0)
        return (int)n;
    memset(times, 0, sizeof times);
    for (ssize_t at = 0; at + (ssize_t)sizeof(struct record) <= n; at += sizeof(struct record))
        judge_record(w, (const struct record *)(w->buf + at), l->round, times, (uint64_t)at, path,
                     ino);
    if (n % (ssize_t)sizeof(struct record))
        soak_wrong_file(w->s, path, ino, "%zd bytes, half a record", n);
    for (unsigned who = 0; who < 2; who++)
        for (unsigned i = 0; i < SOAK_APPENDS; i++) {
            unsigned state = w->s->appended[who][i];

            if (times[who][i] > (state != NOT_TRIED) || (state == CLOSED && !times[who][i]))
                soak_wrong_file(w->s, path, ino, "%u's number %u is there %u times (%s)", who, i,
                                times[who][i], state == CLOSED ? "closed" : "or failed");
        }
    atomic_fetch_add(&w->s->verified, 1);
    return 0;
}

static bool nothing_closed(const struct soak *s)
{
    return !memchr(s->appended[0], CLOSED, SOAK_APPENDS) &&
           !memchr(s->appended[1], CLOSED, SOAK_APPENDS);
}

/* Each through a mount of its own. What can't be read for long is left to `memefs lost`: false. */
static bool look_at_appended(struct soak_worker *w, unsigned round)
{
    struct append_look l = {round, w->mount};
    int64_t until = soak_now() + PATIENCE * 1000000000LL;
    char path[SOAK_PATH];
    int rc;

    if (nothing_closed(w->s))
        return true;
    if (w->s->lost_fd < 0)
        rc = soak_settle(w, look_appended, &l);
    else
        while ((rc = look_appended(w, &l)) < 0 && soak_now() < until)
            usleep(200000);
    if (rc < 0 && w->mount == 0)
        soak_gone(w, soak_path(w, l.mount, path, "append%u", round), rc);
    return rc >= 0;
}

/* Until the other one is there, too. */
static void meet(struct soak_worker *w, unsigned at)
{
    atomic_store(&w->s->append_ready[w->mount], at);
    while (atomic_load(&w->s->append_ready[1 - w->mount]) < at)
        usleep(5000);
}

void soak_appender(struct soak_worker *w)
{
    char path[SOAK_PATH];

    for (unsigned round = 0;; round++) {
        bool seen;

        append_some(w, round);
        meet(w, 2 * round + 1);
        seen = look_at_appended(w, round);
        if (w->mount == 0)
            atomic_store(&w->s->append_end, atomic_load(&w->s->stop));
        meet(w, 2 * round + 2);
        if (w->mount == 0 && seen)
            soak_unlink(w, soak_path(w, w->mount, path, "append%u", round));
        if (atomic_load(&w->s->append_end))
            return;
    }
}
