/* Who goes on to show a directory's name or attributes is told of another's change of them. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "leases_test.h"
#include "meta/deferred/deferred.h"
#include "meta/internal.h"

static void test_attributes(void **state)
{
    struct mfs_attr attr;
    uint64_t dir, file, before;

    (void)state;
    assert_int_equal(meta_client_mkdir(&a, ROOT, "d", &dir), 0);
    assert_int_equal(meta_client_file(&a, ROOT, "f", &file), 0);
    assert_true(leased(ROOT, "d"));
    assert_false(leased(ROOT, "f"));
    before = meta_client_round_trips(&b);
    assert_int_equal(mode_by_b(dir), 0755);
    assert_int_equal(meta_client_round_trips(&b), before); /* it came along with the name */
    for (mode_t mode = 0700; mode < 0720; mode++) {
        chmod_by_a(dir, mode);
        assert_int_equal(mode_by_b(dir), mode);
    }
    assert_true(now(&by_a).attributes >= 020);
    assert_int_equal(now(&by_a).names, 0);
    assert_int_equal(now(&by_a).ino, dir);
    assert_int_equal(mfs_meta_setxattr(a.meta, dir, "user.x", "y", 1, 0, false, NULL), 0);
    assert_true(now(&by_a).attributes > 020);
    chmod_by_a(file, 0600); /* nobody has a lease of a file */
    assert_int_equal(now(&by_a).ino, dir);

    before = meta_client_round_trips(&b);
    assert_int_equal(mfs_meta_getattr_leased(b.meta, dir, &attr), 0);
    assert_true(attr.leased);
    assert_int_equal(mfs_meta_getattr_leased(b.meta, dir, &attr), 0);
    assert_int_equal(meta_client_round_trips(&b), before + 1);
    mfs_clock_sleep(MFS_META_LEASE_TIMES + MFS_MSEC); /* link counts and times are not told of */
    assert_int_equal(mfs_meta_getattr_leased(b.meta, dir, &attr), 0);
    assert_true(meta_client_round_trips(&b) >= before + 2); /* its session's are among them */
}

/* The root has no name, but attributes. */
static void test_root(void **state)
{
    (void)state;
    assert_int_equal(mode_by_b(ROOT), 01777);
    assert_int_equal(mode_by_b(ROOT), 01777); /* now it is known as a directory */
    chmod_by_a(ROOT, 0755);
    assert_int_equal(mode_by_b(ROOT), 0755);
    assert_int_equal(now(&by_a).ino, ROOT);
}

/* This client's own changes count for it at once. */
static void test_own(void **state)
{
    struct mfs_attr attr = {.mode = 0711};
    uint64_t dir, sub, before, asked = 0;

    (void)state;
    assert_int_equal(meta_client_mkdir(&b, ROOT, "d", &dir), 0);
    assert_int_equal(mode_by_b(dir), 0755);
    assert_int_equal(mfs_meta_setattr(b.meta, dir, MFS_SET_MODE, &attr, NULL), 0);
    assert_int_equal(mode_by_b(dir), 0711);
    for (unsigned links = 3; links < 23; links++) {
        char name[8];

        snprintf(name, sizeof name, "%u", links);
        assert_int_equal(meta_client_mkdir(&b, dir, name, &sub), 0);
        before = meta_client_round_trips(&b);
        assert_int_equal(mfs_meta_getattr_leased(b.meta, dir, &attr), 0);
        asked += meta_client_round_trips(&b) - before;
        assert_int_equal(attr.nlink, links);
    }
    assert_true(asked < 20); /* the lease outlives what this client itself has counted */
    assert_int_equal(now(&by_a).names + now(&by_a).attributes, 0);
}

/* Wherever the entries are: both in one partition, or not; and the inode's home elsewhere. */
static void test_names(void **state)
{
    char from[16], to[16];
    uint64_t dir;

    (void)state;
    meta_name_at(&a, ROOT, 0, "d", from, sizeof from);
    assert_int_equal(meta_client_mkdir(&a, ROOT, from, &dir), 0);
    for (uint32_t i = 1; i < 3 * META_REDIS_PARTS; i++) {
        meta_name_at(&a, ROOT, i / 2 % META_REDIS_PARTS, i % 2 ? "e" : "f", to, sizeof to);
        assert_true(leased(ROOT, from));
        assert_int_equal(mfs_meta_rename(a.meta, ROOT, from, ROOT, to, 0), 0);
        assert_true(now(&by_a).names >= i);
        assert_int_equal(now(&by_a).ino, dir);
        memcpy(from, to, sizeof from);
    }
    assert_int_equal(now(&by_b).names + now(&by_b).attributes, 0);
    /* Who moved it has the new name leased without another word. */
    assert_int_equal(mfs_meta_rename(b.meta, ROOT, from, ROOT, "last", 0), 0);
    assert_true(now(&by_b).names >= 1);
    assert_true(leased(ROOT, "last"));
    assert_int_equal(mfs_meta_rmdir(a.meta, ROOT, "last"), 0);
    assert_true(now(&by_a).names >= 3 * META_REDIS_PARTS);
}

/* What is replaced, and what is exchanged. */
static void test_replaced(void **state)
{
    uint64_t d, e;

    (void)state;
    assert_int_equal(meta_client_mkdir(&a, ROOT, "d", &d), 0);
    assert_int_equal(meta_client_mkdir(&a, ROOT, "e", &e), 0);
    assert_true(leased(ROOT, "e"));
    assert_int_equal(mfs_meta_rename(a.meta, ROOT, "d", ROOT, "e", 0), 0);
    assert_true(now(&by_a).names >= 1);
    assert_int_equal(now(&by_a).ino, e);
    assert_int_equal(meta_client_mkdir(&a, ROOT, "g", &e), 0);
    assert_true(leased(ROOT, "e") && leased(ROOT, "g"));
    assert_int_equal(mfs_meta_rename(a.meta, ROOT, "e", ROOT, "g", 2 /* RENAME_EXCHANGE */), 0);
    assert_true(now(&by_a).names >= 3);
}

/* Who makes a directory has a lease of it. */
static void test_made(void **state)
{
    uint64_t dir;

    (void)state;
    assert_int_equal(meta_client_mkdir(&b, ROOT, "d", &dir), 0);
    chmod_by_a(dir, 0700);
    assert_true(now(&by_a).attributes >= 1); /* more when the answer took long */
    assert_int_equal(mode_by_b(dir), 0700);
    assert_int_equal(mfs_meta_rmdir(a.meta, ROOT, "d"), 0);
    assert_true(now(&by_a).names >= 1);
}

static struct timespec moved(int64_t sec)
{
    struct timespec t = mfs_clock_real();

    t.tv_sec += sec;
    return t;
}

static int64_t mtime(struct meta_client *c, uint64_t dir)
{
    struct mfs_attr attr;

    assert_int_equal(mfs_meta_getattr(c->meta, dir, &attr), 0);
    return attr.mtime.tv_sec;
}

/* A directory's time that is set by hand, and names that come and go, are in order also when clocks
 * are not. */
static void test_times_by_other_clocks(void **state)
{
    struct mfs_attr attr, set = {.mtime = moved(7200)};
    struct timespec slow = moved(-3600), fast = moved(3600);
    uint64_t dir;

    (void)state;
    assert_int_equal(meta_client_mkdir(&a, ROOT, "d", &dir), 0);
    assert_true(leased(ROOT, "d"));
    mfs_parents_touch(b.meta, dir, fast); /* before it is set, sent after that */
    assert_int_equal(mfs_meta_setattr(a.meta, dir, MFS_SET_MTIME, &set, NULL), 0);
    assert_int_equal(mtime(&b, dir), set.mtime.tv_sec);
    mfs_parents_flush(b.meta);
    assert_int_equal(mtime(&a, dir), set.mtime.tv_sec);

    assert_int_equal(mfs_meta_getattr_leased(b.meta, dir, &attr), 0);
    mfs_parents_touch(b.meta, dir, slow);
    assert_int_equal(mtime(&b, dir), slow.tv_sec);
    mfs_parents_flush(b.meta);
    assert_int_equal(mtime(&a, dir), slow.tv_sec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_attributes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_root, setup, teardown),
        cmocka_unit_test_setup_teardown(test_own, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_replaced, setup, teardown),
        cmocka_unit_test_setup_teardown(test_made, setup, teardown),
        cmocka_unit_test_setup_teardown(test_times_by_other_clocks, setup, teardown),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, meta_redis_start, meta_redis_stop);
}
