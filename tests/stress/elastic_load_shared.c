/* Load by which both mounts meet: appends to one file, and a counter. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "elastic_load.h"

#define RECORD 192U /* of an append */

/* --- appends: both mounts to one file, until it is full; then it is read and emptied -------- */

#define APPENDS 2000U /* of each mount to one file */

static atomic_bool append_end;

struct record {
    uint64_t round, writer, number;
    unsigned char rest[RECORD - 24];
};

static bool append_all(struct worker *w, uint64_t round, uint64_t count, const char *path)
{
    int fd = load_open(path, O_WRONLY | O_APPEND | O_CREAT);
    bool ok = fd >= 0;
    struct record r;

    for (uint64_t i = 0; ok && i < count && !atomic_load(&load.failed); i++) {
        int64_t t = load_now_ns();
        ssize_t n;

        r.round = round;
        r.writer = w->mount;
        r.number = i;
        load_fill(r.rest, sizeof r.rest, load_mix(load.seed + round * 2 + w->mount) & ~7ULL, i * 8);
        n = write(fd, &r, sizeof r);
        ok = load_check(APPEND, t, n < 0 ? -1 : 0, path);
        if (ok && n != (ssize_t)sizeof r)
            ok = load_wrong("append %s: %zd of %zu bytes", path, n, sizeof r);
        atomic_fetch_add(&load.written, sizeof r);
        if (load.pause_us)
            usleep(load.pause_us);
    }
    return fd < 0 ? false : load_close(fd, path) && ok;
}

/* Every record of both is there, once and in order. */
static bool appends_same(struct worker *w, uint64_t round, const uint64_t count[2],
                         const char *path)
{
    uint64_t next[2] = {0}, off = 0;
    int fd = load_open(path, O_RDONLY);
    bool ok = fd >= 0;
    struct record r;
    ssize_t n;

    while (ok && (n = load_read(fd, w->buf, CHUNK / RECORD * RECORD, off, path)) > 0) {
        for (ssize_t at_ = 0; ok && at_ < n; at_ += RECORD, off += RECORD) {
            memcpy(&r, w->buf + at_, sizeof r);
            if (n - at_ < (ssize_t)RECORD || r.round != round || r.writer > 1 ||
                r.number != next[r.writer]++)
                ok = load_wrong("%s: no such record at %llu: round %llu, %llu's number %llu", path,
                                (unsigned long long)off, (unsigned long long)r.round,
                                (unsigned long long)r.writer, (unsigned long long)r.number);
            else
                ok = load_same(r.rest, sizeof r.rest,
                               load_mix(load.seed + round * 2 + r.writer) & ~7ULL, r.number * 8,
                               path);
        }
    }
    if (ok && (next[0] != count[0] || next[1] != count[1]))
        ok = load_wrong("%s: %llu and %llu records, not %llu and %llu", path,
                        (unsigned long long)next[0], (unsigned long long)next[1],
                        (unsigned long long)count[0], (unsigned long long)count[1]);
    return fd < 0 ? false : load_close(fd, path) && ok;
}

void *load_appends(void *arg)
{
    struct worker *w = arg;
    char path[PATHS];
    uint64_t count[2];

    for (uint64_t round = 0;; round++) {
        load_at(path, w->mount, "appends%llu", (unsigned long long)round);
        w->done = 1 + load_rnd(&w->random, APPENDS);
        append_all(w, round, w->done, path);
        pthread_barrier_wait(&load.append_barrier);
        count[w->mount] = w->done;
        count[1 - w->mount] = w->peer->done;
        if (!atomic_load(&load.failed))
            appends_same(w, round, count, path);
        pthread_barrier_wait(&load.append_barrier);
        if (w->mount == 0) {
            if (!atomic_load(&load.failed))
                load_unlink(path);
            atomic_store(&append_end, !load_go_on());
        }
        pthread_barrier_wait(&load.append_barrier);
        if (atomic_load(&append_end))
            return NULL;
    }
}

/* --- a counter that both mounts raise under a lock ------------------------------------------ */

static bool raise_counter(struct worker *w, int fd, const char *path)
{
    uint64_t value = 0;
    bool ok;

    if (!load_lock(fd, F_WRLCK, path))
        return false;
    ok = load_read(fd, &value, sizeof value, 0, path) >= 0;
    value++;
    ok = ok && load_write(fd, &value, sizeof value, 0, path);
    if (ok)
        w->done++;
    return load_lock(fd, F_UNLCK, path) && ok;
}

void *load_counters(void *arg)
{
    struct worker *w = arg;
    char path[PATHS];
    int fd = load_open(load_at(path, w->mount, "counter"), O_RDWR | O_CREAT);
    bool ok = fd >= 0;

    while (ok && load_go_on())
        ok = raise_counter(w, fd, path);
    if (fd >= 0)
        load_close(fd, path);
    return NULL;
}

void load_check_counter(const struct worker *a, const struct worker *b)
{
    uint64_t value = 0;
    char path[PATHS];
    int fd = load_open(load_at(path, 1, "counter"), O_RDONLY);

    if (fd < 0)
        return;
    load_read(fd, &value, sizeof value, 0, path);
    if (value != a->done + b->done)
        load_wrong("%s: %llu, not %llu", path, (unsigned long long)value,
                   (unsigned long long)(a->done + b->done));
    load_close(fd, path);
}
