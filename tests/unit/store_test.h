/* What the store's tests share: a fixture, a store on it, and short ways to run commands. */
#ifndef MFS_TESTS_STORE_TEST_H
#define MFS_TESTS_STORE_TEST_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "redis_fixture.h"
#include "store/args.h"
#include "store/reply.h"
#include "store/store.h"

struct store_test {
    struct redis_fixture *fixture;
    struct mfs_store *store;
};

static inline void store_test_open(struct store_test *t, const struct redis_fixture_opts *how,
                                   const struct mfs_store_opts *opts)
{
    assert_int_equal(redis_fixture_start(&t->fixture, how), 0);
    assert_int_equal(mfs_store_create(&t->store, redis_fixture_table(t->fixture), opts), 0);
}

static inline void store_test_close(struct store_test *t)
{
    mfs_store_destroy(t->store);
    redis_fixture_stop(t->fixture);
}

/* The words of one command; its arguments stay valid as long as *a. */
static inline struct mfs_cmd cmd_of(struct mfs_args *a, uint32_t part, const char *word0,
                                    const char *word1, const char *word2)
{
    mfs_args_init(a, word0);
    if (word1)
        mfs_args_str(a, word1);
    if (word2)
        mfs_args_str(a, word2);
    return mfs_args_cmd(a, part);
}

/* Runs one command and drops its reply. */
static inline int run3(struct mfs_store *store, uint32_t part, const char *word0, const char *word1,
                       const char *word2, bool idempotent)
{
    struct mfs_args a;
    struct mfs_cmd cmd = cmd_of(&a, part, word0, word1, word2);
    int rc;

    cmd.idempotent = idempotent;
    rc = mfs_store_exec(store, &cmd, 1);
    mfs_cmds_fini(&cmd, 1);
    return rc;
}

static inline struct mfs_cmd set_cmd(struct mfs_args *a, uint32_t part, const char *key,
                                     const void *p, size_t len)
{
    mfs_args_init(a, "SET");
    mfs_args_str(a, key);
    mfs_args_bin(a, p, len);
    return mfs_args_cmd(a, part);
}

static inline struct mfs_cmd get_cmd(struct mfs_args *a, uint32_t part, const char *key, void *into,
                                     size_t cap)
{
    struct mfs_cmd cmd = cmd_of(a, part, "GET", key, NULL);

    cmd.into = into;
    cmd.into_cap = cap;
    cmd.idempotent = true;
    return cmd;
}

/* Bytes that tell where they belong. */
static inline void fill_pattern(unsigned char *p, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)((i * 2654435761U + seed * 40503U) >> 11);
}

#endif
