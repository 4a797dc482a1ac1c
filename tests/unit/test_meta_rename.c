/* Renames: what they replace, what they leave, what they refuse, how many round trips they take.
 * ctest: timeout=120 */
#include <errno.h>
#include <linux/fs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "meta_test.h"

static void test_rename_round_trips(void **state)
{
    uint64_t d = new_dir(ROOT, "d"), e = new_dir(ROOT, "e");
    char from[16], to[16];

    (void)state;
    for (uint32_t p = 0; p < NPARTS; p++) { /* every shard is known */
        meta_name_at(&a, d, p, "f", from, sizeof from);
        new_file(d, from);
        meta_name_at(&a, e, p, "f", from, sizeof from);
        new_file(e, from);
    }
    meta_name_at(&a, d, 1, "s", from, sizeof from);
    meta_name_at(&a, e, 1, "t", to, sizeof to);
    new_dir(d, from);
    assert_trips(6, mfs_meta_rename(a.meta, d, from, e, to, 0));
    mfs_store_drain(a.store, 20 * MFS_SEC); /* the lock on moves is given back */
    meta_name_at(&a, d, 2, "s", from, sizeof from);
    assert_trips(7, mfs_meta_rename(a.meta, e, to, d, from, 0));
    meta_name_at(&a, d, 2, "u", to, sizeof to);
    new_dir(d, to);
    assert_trips(6, mfs_meta_rename(a.meta, d, from, d, to, 0));
    meta_name_at(&a, d, 3, "u", from, sizeof from);
    new_dir(d, from);
    assert_trips(9, mfs_meta_rename(a.meta, d, to, d, from, 0));
}

static void test_rename(void **state)
{
    uint64_t d = new_dir(ROOT, "d"), e = new_dir(ROOT, "e"), f, g, sub;
    char from[16], to[16], third[16];
    struct mfs_attr attr;

    (void)state;
    for (uint32_t p = 0; p < NPARTS; p++) { /* within one partition and across */
        meta_name_at(&a, d, 1, "f", from, sizeof from);
        meta_name_at(&a, e, p, "t", to, sizeof to);
        meta_name_at(&a, d, p, "x", third, sizeof third);
        f = new_file(d, from);
        assert_int_equal(mfs_meta_rename(a.meta, d, from, e, to, 0), 0);
        assert_int_equal(meta_client_ino(&b, d, from), -ENOENT);
        assert_int_equal(meta_client_ino(&b, e, to), f);
        assert_int_equal(mfs_meta_rename(a.meta, d, from, e, to, 0), -ENOENT);
        g = new_file(d, from);
        assert_int_equal(mfs_meta_rename(a.meta, d, from, e, to, RENAME_NOREPLACE), -EEXIST);
        assert_int_equal(meta_client_ino(&b, d, from), g);
        assert_int_equal(mfs_meta_rename(b.meta, d, from, e, to, RENAME_EXCHANGE), 0);
        assert_int_equal(meta_client_ino(&a, d, from), f);
        assert_int_equal(meta_client_ino(&a, e, to), g);
        assert_int_equal(mfs_meta_rename(b.meta, d, from, e, to, 0), 0);
        assert_int_equal(meta_client_ino(&a, e, to), f);
        assert_int_equal(mfs_meta_getattr(a.meta, g, &attr), -ESTALE);
        assert_int_equal(mfs_meta_rename(b.meta, d, from, e, to, RENAME_EXCHANGE), -ENOENT);
        /* Two names of one inode: nothing happens. */
        assert_int_equal(mfs_meta_link(a.meta, f, d, from, &attr), 0);
        assert_int_equal(mfs_meta_rename(b.meta, d, from, e, to, 0), 0);
        assert_int_equal(meta_client_ino(&a, d, from), f);
        assert_int_equal(getattr(&a, f).nlink, 2);
        assert_int_equal(mfs_meta_unlink(a.meta, d, from), 0);
        /* Types. */
        sub = new_dir(d, third);
        assert_int_equal(mfs_meta_rename(b.meta, d, third, e, to, 0), -ENOTDIR);
        assert_int_equal(mfs_meta_rename(b.meta, e, to, d, third, 0), -EISDIR);
        assert_int_equal(mfs_meta_rename(b.meta, e, to, d, third, RENAME_EXCHANGE), 0);
        assert_int_equal(meta_client_ino(&a, e, to), sub);
        assert_int_equal(meta_client_ino(&a, sub, ".."), e);
        assert_int_equal(getattr(&a, d).nlink, 2);
        assert_int_equal(getattr(&a, e).nlink, 3);
        assert_int_equal(mfs_meta_rmdir(a.meta, e, to), 0);
        assert_int_equal(mfs_meta_unlink(a.meta, d, third), 0);
        assert_int_equal(getattr(&a, e).nlink, 2);
    }
    assert_int_equal(meta_client_keys(&a, "I*"), 3);
    settle();
    assert_int_equal(meta_client_keys(&a, "T*"), 0);
    assert_int_equal(meta_client_keys(&a, "#intents"), 0);
    assert_int_equal(meta_client_keys(&a, "#moving"), 0);
}

static void test_rename_directories(void **state)
{
    uint64_t d = new_dir(ROOT, "d"), e = new_dir(ROOT, "e"), s, t;
    char from[16], to[16];

    (void)state;
    for (uint32_t p = 0; p < NPARTS; p++) {
        meta_name_at(&a, d, 1, "s", from, sizeof from);
        meta_name_at(&a, e, p, "t", to, sizeof to);
        s = new_dir(d, from);
        new_file(s, "inside");
        assert_int_equal(mfs_meta_rename(a.meta, ROOT, "d", s, "x", 0), -EINVAL);
        assert_int_equal(mfs_meta_rename(a.meta, d, from, e, to, 0), 0);
        assert_int_equal(meta_client_ino(&b, s, ".."), e);
        assert_int_equal(getattr(&b, d).nlink, 2);
        assert_int_equal(getattr(&b, e).nlink, 3);
        /* Onto an empty directory, which had entries; then onto one that has some. */
        t = new_dir(d, from);
        for (int i = 0; i < 8; i++) {
            char name[8];

            snprintf(name, sizeof name, "%d", i);
            new_file(t, name);
            assert_int_equal(mfs_meta_rename(a.meta, e, to, d, from, 0), -ENOTEMPTY);
            assert_int_equal(mfs_meta_unlink(a.meta, t, name), 0);
        }
        assert_int_equal(mfs_meta_rename(b.meta, e, to, d, from, 0), 0);
        assert_int_equal(meta_client_ino(&a, d, from), s);
        assert_int_equal(meta_client_ino(&a, s, ".."), d);
        assert_int_equal(meta_client_ino(&a, e, to), -ENOENT);
        assert_int_equal(meta_client_file(&a, t, "0", NULL), -ENOENT);
        assert_int_equal(getattr(&b, d).nlink, 3);
        assert_int_equal(getattr(&b, e).nlink, 2);
        /* Within one parent, onto an empty directory. */
        meta_name_at(&a, d, p, "u", to, sizeof to);
        new_dir(d, to);
        assert_int_equal(mfs_meta_rename(b.meta, d, from, d, to, 0), 0);
        assert_int_equal(getattr(&b, d).nlink, 3);
        assert_int_equal(mfs_meta_unlink(a.meta, s, "inside"), 0);
        assert_int_equal(mfs_meta_rmdir(a.meta, d, to), 0);
    }
    assert_int_equal(meta_client_keys(&a, "I*"), 3);
    settle();
    assert_int_equal(meta_client_keys(&a, "T*"), 0);
    assert_int_equal(meta_client_keys(&a, "#intents"), 0);
    assert_int_equal(meta_client_keys(&a, "#moving"), 0);
}

static int whiteout(uint64_t d, const char *from, uint64_t e, const char *to, unsigned flags)
{
    return meta_client_rename(&a, d, from, e, to, flags | RENAME_WHITEOUT);
}

static void assert_whiteout(uint64_t dir, const char *name)
{
    struct mfs_attr attr;

    assert_int_equal(mfs_meta_lookup(b.meta, dir, name, &attr), 0);
    assert_int_equal(attr.mode, S_IFCHR);
    assert_int_equal(attr.rdev, 0);
    assert_int_equal(attr.nlink, 1);
    assert_int_equal(attr.uid, META_WHITEOUT_UID);
    assert_int_equal(mfs_meta_unlink(b.meta, dir, name), 0);
    assert_int_equal(meta_client_ino(&a, dir, name), -ENOENT);
}

/* overlayfs, as a container's upper layer, asks for RENAME_WHITEOUT before it takes the place. */
static void test_rename_whiteout(void **state)
{
    uint64_t d = new_dir(ROOT, "d"), e = new_dir(ROOT, "e"), f, s;
    char from[16], to[16];

    (void)state;
    for (uint32_t p = 0; p < NPARTS; p++) {
        meta_name_at(&a, d, 1, "f", from, sizeof from);
        meta_name_at(&a, e, p, "t", to, sizeof to);
        assert_int_equal(whiteout(d, from, e, to, 0), -ENOENT);
        f = new_file(d, from);
        assert_int_equal(whiteout(d, from, e, to, RENAME_EXCHANGE), -EINVAL);
        assert_int_equal(whiteout(d, from, e, to, RENAME_NOREPLACE), 0);
        assert_int_equal(meta_client_ino(&b, e, to), f);
        assert_whiteout(d, from);
        f = new_file(d, from);
        assert_int_equal(whiteout(d, from, e, to, RENAME_NOREPLACE), -EEXIST);
        assert_int_equal(whiteout(d, from, e, to, 0), 0); /* another file goes */
        assert_int_equal(meta_client_ino(&b, e, to), f);
        assert_whiteout(d, from);
        assert_int_equal(mfs_meta_unlink(a.meta, e, to), 0);
        s = new_dir(d, from);
        new_dir(e, to);
        assert_int_equal(whiteout(d, from, e, to, 0), 0); /* onto an empty directory */
        assert_int_equal(meta_client_ino(&b, e, to), s);
        assert_int_equal(getattr(&b, d).nlink, 2);
        assert_int_equal(getattr(&b, e).nlink, 3);
        assert_int_equal(mfs_meta_rmdir(b.meta, ROOT, "d"), -ENOTEMPTY);
        assert_whiteout(d, from);
        assert_int_equal(mfs_meta_rmdir(a.meta, e, to), 0);
    }
    assert_int_equal(meta_client_keys(&a, "I*"), 3);
    settle();
    assert_int_equal(meta_client_keys(&a, "T*"), 0);
    assert_int_equal(meta_client_keys(&a, "#intents"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        TEST(test_rename_round_trips),
        TEST(test_rename),
        TEST(test_rename_directories),
        TEST(test_rename_whiteout),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
