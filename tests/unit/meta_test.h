/* What the tests of single operations of src/meta share: two clients of empty partitions, and short
 * ways to make and to count. */
#ifndef MFS_TESTS_META_TEST_H
#define MFS_TESTS_META_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "meta/deferred/deferred.h"
#include "meta/internal.h"
#include "meta_fixture.h"

#define ROOT MFS_ROOT_INO
#ifndef NPARTS
#define NPARTS 4
#endif
#define STRIPE 65536

static struct redis_fixture *redis;
static struct meta_client a, b;

static inline int start_all(void **state)
{
    (void)state;
    return redis_fixture_start(
        &redis, &(struct redis_fixture_opts){.nparts = NPARTS, .stripe_size = STRIPE});
}

static inline int stop_all(void **state)
{
    (void)state;
    redis_fixture_stop(redis);
    return 0;
}

static inline int setup(void **state)
{
    (void)state;
    if (redis_fixture_reset(redis))
        return -1;
    return meta_client_start(&a, redis, 0) || meta_client_start(&b, redis, 0);
}

static inline int teardown(void **state)
{
    (void)state;
    meta_client_stop(&a);
    meta_client_stop(&b);
    return 0;
}

#define assert_trips(n, expr)                                                                      \
    do {                                                                                           \
        uint32_t before_ = meta_own_round_trips();                                                 \
        assert_int_equal(expr, 0);                                                                 \
        assert_int_equal(meta_own_round_trips() - before_, n);                                     \
    } while (0)

static inline struct mfs_attr getattr(struct meta_client *c, uint64_t ino)
{
    struct mfs_attr attr;

    assert_int_equal(mfs_meta_getattr(c->meta, ino, &attr), 0);
    return attr;
}

static inline uint64_t new_file(uint64_t dir, const char *name)
{
    uint64_t ino = 0;

    assert_int_equal(meta_client_file(&a, dir, name, &ino), 0);
    return ino;
}

static inline uint64_t new_dir(uint64_t dir, const char *name)
{
    uint64_t ino = 0;

    assert_int_equal(meta_client_mkdir(&a, dir, name, &ino), 0);
    return ino;
}

/* What is told later has been told. */
static inline void settle(void)
{
    struct meta_client *both[] = {&a, &b};

    for (int i = 0; i < 2; i++) {
        mfs_settles_flush(both[i]->meta);
        mfs_link_counts_flush(both[i]->meta);
        mfs_store_drain(both[i]->store, MFS_SEC);
    }
}

#endif
