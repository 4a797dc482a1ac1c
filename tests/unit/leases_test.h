/* What the tests of leases share: two clients, and what each is told of the other's changes. */
#ifndef MFS_TESTS_LEASES_TEST_H
#define MFS_TESTS_LEASES_TEST_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/clock.h"
#include "cluster/placement.h"
#include "meta/cache/contents.h"
#include "meta/internal.h"
#include "meta_fixture.h"

#define ROOT MFS_ROOT_INO
#define TTL  (2 * MFS_SEC)

#define HELD_MAX 256

/* What a client is told. */
struct told {
    pthread_mutex_t lock;
    unsigned names, attributes, everything, own;
    uint64_t ino;
    bool hold; /* keep `done` of names for later */
    unsigned distrusted;
    void (*done)(void *arg);
    void *arg[HELD_MAX]; /* one for each time that it was told */
    unsigned held;
};

static struct meta_client a, b;
static struct told by_a, by_b; /* of the other one's changes */

static inline bool revoked(void *arg, uint64_t ino, bool name, bool own, void (*done)(void *),
                           void *done_arg)
{
    struct told *t = arg;
    bool at_once = true;

    pthread_mutex_lock(&t->lock);
    if (own)
        t->own++;
    else if (ino == 0)
        t->everything++;
    else if (name)
        t->names++;
    else
        t->attributes++;
    t->ino = ino;
    if (!own && name && done && t->hold && t->held < HELD_MAX) {
        t->done = done;
        t->arg[t->held++] = done_arg;
        at_once = false;
    }
    pthread_mutex_unlock(&t->lock);
    return at_once;
}

static inline void distrust(void *arg)
{
    struct told *t = arg;

    pthread_mutex_lock(&t->lock);
    t->distrusted++;
    pthread_mutex_unlock(&t->lock);
}

static inline struct told now(struct told *t)
{
    struct told copy;

    pthread_mutex_lock(&t->lock);
    copy = *t;
    pthread_mutex_unlock(&t->lock);
    return copy;
}

static inline void let_go(struct told *t)
{
    struct told copy;

    pthread_mutex_lock(&t->lock);
    copy = *t;
    t->hold = false;
    t->held = 0;
    pthread_mutex_unlock(&t->lock);
    for (unsigned i = 0; i < copy.held; i++)
        copy.done(copy.arg[i]);
}

static inline int start_client(struct meta_client *c, struct told *t)
{
    struct mfs_store_opts store = {.node = REDIS_FIXTURE_NODE, .io_timeout = 10 * MFS_SEC};
    struct mfs_meta_opts opts = {
        .revoked = revoked, .distrust = distrust, .arg = t, .session_ttl = TTL};

    memset(t, 0, sizeof *t);
    pthread_mutex_init(&t->lock, NULL);
    return mfs_store_create(&c->store, redis_fixture_table(meta_redis), &store) ||
           mfs_meta_create(&c->meta, c->store, &opts);
}

static inline int setup(void **state)
{
    (void)state;
    return redis_fixture_reset(meta_redis) || start_client(&a, &by_b) || start_client(&b, &by_a);
}

static inline int teardown(void **state)
{
    (void)state;
    let_go(&by_a);
    let_go(&by_b);
    meta_client_stop(&a);
    meta_client_stop(&b);
    return 0;
}

/* b looks it up; again if a notice that was sent twice came in between. */
static inline bool leased(uint64_t dir, const char *name)
{
    struct mfs_attr attr = {0};

    for (unsigned i = 0; i < 20 && !attr.leased; i++) {
        if (i > 0)
            mfs_clock_sleep(MFS_MSEC);
        assert_int_equal(mfs_meta_lookup(b.meta, dir, name, &attr), 0);
    }
    return attr.leased;
}

static inline mode_t mode_by_b(uint64_t ino)
{
    struct mfs_attr attr;

    assert_int_equal(mfs_meta_getattr_leased(b.meta, ino, &attr), 0);
    return attr.mode & 07777;
}

static inline void chmod_by_a(uint64_t ino, mode_t mode)
{
    struct mfs_attr attr = {.mode = mode};

    assert_int_equal(mfs_meta_setattr(a.meta, ino, MFS_SET_MODE, &attr, NULL), 0);
}

#endif
