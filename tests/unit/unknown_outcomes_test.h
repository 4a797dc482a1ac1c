/* What the tests of lost answers share: client a changes something and does not hear of it, client
 * b knows what was before. */
#ifndef MFS_TESTS_UNKNOWN_OUTCOMES_TEST_H
#define MFS_TESTS_UNKNOWN_OUTCOMES_TEST_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/clock.h"
#include "meta/internal.h"
#include "meta_fixture.h"
#include "store/store.h"

#define ROOT MFS_ROOT_INO
#define PART 1 /* of all names */

static struct meta_client a, b;
static struct mfs_store *other;   /* of a's, by which commands go whose answers a does not get */
static atomic_uint_fast64_t told; /* version of the file that b has open, as it was told */
static const char *lost;          /* command or function whose answers are */
static atomic_bool mute;          /* after that a hears nothing at all */
static bool undone;               /* it does not happen either */
static unsigned losses;

static inline void changed(void *arg, uint64_t ino, uint64_t version, void (*done)(void *),
                           void *done_arg)
{
    (void)arg;
    if (ino)
        atomic_store(&told, version);
    if (done)
        done(done_arg);
}

static inline bool revoked(void *arg, uint64_t ino, bool name, bool own, void (*done)(void *),
                           void *done_arg)
{
    (void)arg, (void)ino, (void)name, (void)own, (void)done, (void)done_arg;
    return true;
}

static inline int start(struct meta_client *c, mfs_meta_changed_fn *fn)
{
    struct mfs_store_opts store = {.node = REDIS_FIXTURE_NODE};
    struct mfs_meta_opts opts = {.changed = fn, .revoked = revoked, .session_ttl = 20 * MFS_SEC};

    memset(c, 0, sizeof *c);
    return mfs_store_create(&c->store, redis_fixture_table(meta_redis), &store) ||
           mfs_meta_create(&c->meta, c->store, &opts);
}

static inline int setup(void **state)
{
    struct mfs_store_opts opts = {.node = REDIS_FIXTURE_NODE};

    (void)state;
    atomic_store(&told, 0);
    return redis_fixture_reset(meta_redis) || start(&a, NULL) || start(&b, changed) ||
           mfs_store_create(&other, redis_fixture_table(meta_redis), &opts);
}

static inline int teardown(void **state)
{
    (void)state;
    mfs_store_set_fault(a.store, NULL, NULL);
    meta_client_stop(&a);
    meta_client_stop(&b);
    mfs_store_destroy(other);
    return 0;
}

/* --- what happens to a's commands ------------------------------------------------------------- */

static inline bool is(const struct mfs_arg *arg, const char *word)
{
    return arg->len == strlen(word) && memcmp(arg->p, word, arg->len) == 0;
}

/* It happens, once, and a does not hear of it. */
static inline int lose(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    struct mfs_cmd cmd = {.part = part, .argv = argv, .argc = argc};

    (void)arg;
    if (losses || !is(&argv[0], lost))
        return mute && losses ? -EIO : 0;
    if (!undone)
        assert_int_equal(mfs_store_exec(other, &cmd, 1), 0);
    mfs_cmds_fini(&cmd, 1);
    losses++;
    return -EIO;
}

static inline void begin(const char *command)
{
    lost = command;
    losses = 0;
    mfs_store_set_fault(a.store, lose, NULL);
}

static inline void end(int rc)
{
    mfs_store_set_fault(a.store, NULL, NULL);
    assert_int_equal(rc, -EIO);
    assert_int_equal(losses, 1);
}

/* --- what b knows ----------------------------------------------------------------------------- */

static inline void name_of(const char *prefix, char out[32])
{
    meta_name_at(&a, ROOT, PART, prefix, out, 32);
}

/* A file or directory by a that b knows under a lease. */
static inline uint64_t known(const char *name, mode_t type)
{
    struct mfs_attr attr;
    uint64_t ino;

    if (S_ISDIR(type))
        assert_int_equal(meta_client_mkdir(&a, ROOT, name, &ino), 0);
    else
        assert_int_equal(meta_client_file(&a, ROOT, name, &ino), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(meta_client_ino(&a, ROOT, name), ino);
        assert_int_equal(meta_client_ino(&b, ROOT, name), ino);
        assert_int_equal(mfs_meta_getattr_leased(b.meta, ino, &attr), 0);
    }
    return ino;
}

static inline struct mfs_attr seen_by_b(uint64_t ino)
{
    struct mfs_attr attr;

    assert_int_equal(mfs_meta_getattr_leased(b.meta, ino, &attr), 0);
    return attr;
}

static inline uint64_t known_open(void)
{
    struct mfs_attr attr;
    char name[32];
    uint64_t ino;

    name_of("file", name);
    ino = known(name, S_IFREG);
    assert_int_equal(mfs_meta_open(b.meta, ino, NULL, &attr, NULL), 0);
    return ino;
}

#endif
