/* ctest: threaded timeout=240 waits
 *
 * New names while a partition has no memory and some may come: who makes them waits, nobody else
 * does, and what they rely on is asked again. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/clock.h"
#include "meta/cache/cache.h"
#include "meta/call.h"
#include "meta/internal.h"
#include "meta_fixture.h"

#define ROOT MFS_ROOT_INO
#define FULL 1              /* the partition that has none */
#define WAIT (30 * MFS_SEC) /* for some */
#define SOON (10 * MFS_SEC)

static struct meta_client a, b;

static int setup(void **state)
{
    (void)state;
    return redis_fixture_reset(meta_redis) || meta_client_start_growing(&a, meta_redis, WAIT) ||
           meta_client_start_leased(&b, meta_redis, 0);
}

static int teardown(void **state)
{
    (void)state;
    meta_pair_stop(&a, &b);
    return 0;
}

static void have_memory(bool yes)
{
    assert_int_equal(redis_fixture_admin(meta_redis, FULL,
                                         yes ? "CONFIG SET maxmemory 0" : "CONFIG SET maxmemory 1"),
                     0);
}

static uint64_t file_at(struct meta_client *c, uint32_t part, char name[16])
{
    uint64_t ino = 0;

    meta_name_at(c, ROOT, part, "f", name, 16);
    assert_int_equal(meta_client_file(c, ROOT, name, &ino), 0);
    return ino;
}

/* --- who waits -------------------------------------------------------------------------------- */

/* What a is about to do, in a thread: a new name in `dir`, at the partition without memory. */
static struct {
    int (*make)(void);
    uint64_t dir, file;
    char name[16];
    atomic_uint refused; /* commands there, or about to be */
    int rc;
    pthread_t thread;
} waiter;

static int make_open(void)
{
    struct mfs_new new = {.mode = S_IFREG | 0644};
    struct mfs_attr attr;
    bool created;

    return mfs_meta_create_open(a.meta, waiter.dir, waiter.name, &new, false, &attr, &created);
}

static int make_file(void)
{
    return meta_client_file(&a, waiter.dir, waiter.name, NULL);
}

static int make_directory(void)
{
    return meta_client_mkdir(&a, waiter.dir, waiter.name, NULL);
}

static int make_link(void)
{
    struct mfs_attr attr;

    return mfs_meta_link(a.meta, waiter.file, waiter.dir, waiter.name, &attr);
}

static bool is_word(const struct mfs_arg *arg, const char *word)
{
    return arg->len == strlen(word) && !memcmp(arg->p, word, arg->len);
}

static int count(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    const struct mfs_arg *word = &argv[0];

    (void)argc;
    (void)arg;
    if (part == FULL &&
        (is_word(word, "mfs_create") || is_word(word, "mfs_link") || is_word(word, "mfs_put")))
        atomic_fetch_add(&waiter.refused, 1);
    return 0;
}

static void *make(void *arg)
{
    (void)arg;
    waiter.rc = waiter.make();
    return NULL;
}

/* On return it has been refused, and is going to try again. */
static void begin_waiting(int (*how)(void), uint64_t dir)
{
    int64_t until = mfs_clock_mono() + SOON;

    waiter.make = how;
    waiter.dir = dir;
    meta_name_at(&a, dir, FULL, "x", waiter.name, sizeof waiter.name);
    atomic_store(&waiter.refused, 0);
    have_memory(false);
    mfs_store_set_fault(a.store, count, NULL);
    pthread_create(&waiter.thread, NULL, make, NULL);
    while (atomic_load(&waiter.refused) < 2 && mfs_clock_mono() < until)
        mfs_clock_sleep(MFS_MSEC);
}

static int end_waiting(void)
{
    have_memory(true);
    pthread_join(waiter.thread, NULL);
    mfs_store_set_fault(a.store, NULL, NULL);
    assert_in_range(atomic_load(&waiter.refused), 2, UINT32_MAX);
    return waiter.rc;
}

/* --- others ----------------------------------------------------------------------------------- */

/* Who removes what is in the way of a new file does not wait for that. */
static void test_same_mount_removes(void **state)
{
    char name[16];
    int64_t took;
    int rc, made;

    (void)state;
    file_at(&a, FULL, name);
    begin_waiting(make_open, ROOT);
    took = mfs_clock_mono();
    rc = mfs_meta_unlink(a.meta, ROOT, name);
    took = mfs_clock_mono() - took;
    made = end_waiting();
    assert_true(took < SOON);
    assert_int_equal(rc, 0);
    assert_int_equal(made, 0);
}

static void test_same_mount_renames(void **state)
{
    char name[16], other[16];
    int64_t took;
    int rc, made;

    (void)state;
    file_at(&a, FULL, name);
    meta_name_at(&a, ROOT, FULL, "g", other, sizeof other);
    begin_waiting(make_open, ROOT);
    took = mfs_clock_mono();
    rc = mfs_meta_rename(a.meta, ROOT, name, ROOT, other, 0);
    took = mfs_clock_mono() - took;
    made = end_waiting();
    assert_true(took < SOON);
    assert_int_equal(rc, 0);
    assert_int_equal(made, 0);
}

/* Nor does another mount that changes a file there, of which this one has a lease. */
static void test_other_mount_changes(void **state)
{
    struct mfs_attr attr = {.mode = 0600};
    char name[16];
    uint64_t ino = file_at(&a, FULL, name);
    int64_t took;
    int rc, made;

    (void)state;
    assert_int_equal(meta_client_ino(&a, ROOT, name), ino);
    begin_waiting(make_open, ROOT);
    took = mfs_clock_mono();
    rc = mfs_meta_setattr(b.meta, ino, MFS_SET_MODE, &attr, NULL);
    took = mfs_clock_mono() - took;
    made = end_waiting();
    assert_true(took < SOON);
    assert_int_equal(rc, 0);
    assert_int_equal(made, 0);
}

/* --- what it relies on ------------------------------------------------------------------------ */

/* The directory is removed, so long ago that nothing is left of it. */
static void remove_long_ago(uint64_t dir, const char *name)
{
    char key[MFS_KEY_INO_LEN];

    assert_int_equal(mfs_meta_rmdir(b.meta, ROOT, name), 0);
    mfs_store_drain(b.store, SOON);
    mfs_key_ino(key, 'D', dir);
    for (uint32_t p = 0; p < META_REDIS_PARTS; p++) {
        struct mfs_call c;

        mfs_call_command(&c, "DEL");
        mfs_args_bin(&c.args, key, sizeof key);
        assert_int_equal(mfs_call_run(b.meta, &c, p), 0);
        mfs_call_fini(&c);
    }
    mfs_dircache_drop(a.meta->dirs, dir);
}

static void check_removed_meanwhile(int (*how)(void), int64_t inodes)
{
    char name[16];
    uint64_t dir = 0;

    meta_name_at(&b, ROOT, FULL + 1, "d", name, sizeof name);
    assert_int_equal(meta_client_mkdir(&b, ROOT, name, &dir), 0);
    begin_waiting(how, dir);
    remove_long_ago(dir, name);
    assert_int_equal(end_waiting(), -ENOENT);
    assert_int_equal(meta_client_keys(&b, "I*"), inodes);
    assert_int_equal(meta_client_keys(&b, "D*"), inodes > 1 ? 1 : 0);
}

static void test_directory_removed_meanwhile(void **state)
{
    (void)state;
    check_removed_meanwhile(make_open, 1);
    check_removed_meanwhile(make_file, 1);
    check_removed_meanwhile(make_directory, 1);
}

static int64_t nlink_of(uint64_t ino)
{
    struct mfs_attr attr;
    int rc = mfs_meta_getattr(b.meta, ino, &attr);

    return rc ? rc : (int64_t)attr.nlink;
}

/* With the inode in the same partition, and in another one, where it counts the name already. */
static void test_removed_meanwhile_linked(void **state)
{
    int64_t until;
    char name[16];

    (void)state;
    for (uint32_t home = FULL; home < FULL + 2; home++) {
        waiter.file = file_at(&b, home, name);
        check_removed_meanwhile(make_link, 2);
        until = mfs_clock_mono() + SOON; /* if somebody's housekeeping has begun to see to it */
        while (nlink_of(waiter.file) != 1)
            assert_true(mfs_clock_mono() < until);
        assert_int_equal(mfs_meta_unlink(b.meta, ROOT, name), 0);
    }
}

/* --- its end ---------------------------------------------------------------------------------- */

static void test_waits_no_longer(void **state)
{
    int (*const ways[])(void) = {make_open, make_file, make_directory, make_link};
    const int64_t wait = 300 * MFS_MSEC;
    int64_t began;
    char name[16];

    (void)state;
    meta_client_stop(&a);
    assert_int_equal(meta_client_start_growing(&a, meta_redis, wait), 0);
    waiter.file = file_at(&b, FULL + 1, name);
    waiter.dir = ROOT;
    meta_name_at(&a, ROOT, FULL, "x", waiter.name, sizeof waiter.name);
    have_memory(false);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        began = mfs_clock_mono();
        assert_int_equal(ways[i](), -ENOSPC);
        assert_true(mfs_clock_mono() - began >= wait);
        assert_true(mfs_clock_mono() - began < SOON);
    }
    have_memory(true);
    mfs_store_drain(a.store, SOON);
    assert_int_equal(nlink_of(waiter.file), 1);
    assert_int_equal(nlink_of(ROOT), 2);
    assert_int_equal(meta_client_keys(&b, "I*"), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        TEST(test_same_mount_removes),       TEST(test_same_mount_renames),
        TEST(test_other_mount_changes),      TEST(test_directory_removed_meanwhile),
        TEST(test_removed_meanwhile_linked), TEST(test_waits_no_longer),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, meta_redis_start, meta_redis_stop);
}
