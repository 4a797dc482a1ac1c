/* What the tests of src/data share: partitions, random numbers with a printed seed, and a file with
 * the little of metadata that write-behind talks to. */
#ifndef MFS_TESTS_DATA_TEST_H
#define MFS_TESTS_DATA_TEST_H

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/ino.h"
#include "data/stripes/geometry.h"
#include "data/readahead/readahead.h"
#include "data/stripes/stripe_keys.h"
#include "data/stripes/stripes.h"
#include "data/writeback/writeback.h"
#include "redis_fixture.h"
#include "store/store.h"

struct data_test {
    struct redis_fixture *fixture;
    struct mfs_store *store;
};

static inline void data_test_open(struct data_test *t, const struct redis_fixture_opts *how,
                                  int64_t io_timeout)
{
    struct mfs_store_opts opts = {.node = REDIS_FIXTURE_NODE, .io_timeout = io_timeout};

    assert_int_equal(redis_fixture_start(&t->fixture, how), 0);
    assert_int_equal(mfs_store_create(&t->store, redis_fixture_table(t->fixture), &opts), 0);
}

static inline void data_test_close(struct data_test *t)
{
    mfs_store_destroy(t->store);
    redis_fixture_stop(t->fixture);
}

/* --- random numbers ----------------------------------------------------------------------- */

static inline uint64_t rnd(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static inline uint64_t rnd_below(uint64_t *state, uint64_t n)
{
    return rnd(state) % n;
}

/* From the environment (SEED), or new; printed, so that a failure can be repeated. */
static inline uint64_t rnd_seed(void)
{
    const char *text = getenv("SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : (uint64_t)mfs_clock_mono() | 1;

    print_message("SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

static inline void rnd_fill(uint64_t *state, char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (char)(1 + rnd_below(state, 255));
}

/* A repeatable content that differs from stripe to stripe and never is zero. */
static inline void pattern(char *p, uint64_t off, size_t n, unsigned salt)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (char)(((off + i) * 31 + (off + i) / 4096 * 7 + salt) % 255 + 1);
}

/* Copies what a view shows, which has to be `len` bytes. */
static inline void view_copy(const struct mfs_view *view, size_t len, char *to)
{
    for (int i = 0; i < view->n; i++) {
        assert_true(view->iov[i].iov_len <= len);
        memcpy(to, view->iov[i].iov_base, view->iov[i].iov_len);
        to += view->iov[i].iov_len;
        len -= view->iov[i].iov_len;
    }
    assert_int_equal(len, 0);
}

/* --- a file ------------------------------------------------------------------------------- */

struct file {
    struct mfs_store *store;
    uint64_t ino;
    pthread_mutex_t lock; /* guards what follows: what metadata would know */
    uint64_t size;
    int64_t alloc;
    unsigned commits, commits_with_parts;
    struct timespec mtime;
    int fail; /* commits fail with this */
    struct mfs_dirty *d;
    uint64_t seen; /* errors that file_flush has told */
};

static inline int file_commit(void *arg, const struct mfs_dirty_commit *c)
{
    struct file *f = arg;
    int64_t alloc = 0;
    int rc;

    pthread_mutex_lock(&f->lock);
    rc = f->fail;
    for (size_t i = 0; i < c->nparts && !rc; i++)
        rc = mfs_stripes_write(f->store, f->ino, c->parts[i].off, c->parts[i].len, c->parts[i].p,
                               &alloc);
    if (!rc) {
        f->alloc += c->alloc + alloc;
        f->size = c->end > f->size ? c->end : f->size;
        f->commits++;
        f->commits_with_parts += c->nparts > 0;
        f->mtime = c->mtime;
    }
    pthread_mutex_unlock(&f->lock);
    return rc;
}

static inline void file_open(struct file *f, struct mfs_store *store, struct mfs_writeback *wb,
                             uint64_t ino)
{
    *f = (struct file){.store = store, .ino = ino};
    pthread_mutex_init(&f->lock, NULL);
    assert_int_equal(mfs_dirty_create(&f->d, wb, ino, file_commit, f), 0);
}

static inline void file_close(struct file *f)
{
    mfs_dirty_destroy(f->d);
    pthread_mutex_destroy(&f->lock);
}

static inline int file_flush(struct file *f)
{
    return mfs_dirty_flush(f->d, &f->seen);
}

static inline uint64_t file_size(struct file *f)
{
    uint64_t size;

    pthread_mutex_lock(&f->lock);
    size = f->size;
    pthread_mutex_unlock(&f->lock);
    return size;
}

/* Bytes that the stripes below `end` really hold. */
static inline int64_t stored_bytes(struct mfs_store *store, uint64_t ino, uint64_t end)
{
    uint32_t n = mfs_geometry_stripes(end, mfs_store_stripe_of(store, ino)), *lengths;
    int64_t sum = 0;

    lengths = calloc(n + 1, sizeof *lengths);
    if (n)
        assert_int_equal(mfs_stripe_lengths(store, ino, 0, n, lengths), 0);
    for (uint32_t i = 0; i < n; i++)
        sum += lengths[i];
    free(lengths);
    return sum;
}

/* Waits until cond(arg), at most ten seconds. */
static inline bool wait_for(bool (*cond)(void *), void *arg)
{
    int64_t until = mfs_clock_mono() + 10 * MFS_SEC;

    while (!cond(arg)) {
        if (mfs_clock_mono() > until)
            return false;
        mfs_clock_sleep(MFS_MSEC);
    }
    return true;
}

/* A number from the environment, for longer runs by hand. */
static inline unsigned long steps(unsigned long usual)
{
    const char *text = getenv("STEPS");

    return text ? strtoul(text, NULL, 0) : usual;
}

#endif
