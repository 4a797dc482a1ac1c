/* Single operations of src/meta against real partitions: what they do, which errno they give, how
 * many round trips they take. ctest: timeout=120 waits */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "cluster/placement.h"
#include "meta/deferred/deferred.h"
#include "meta/internal.h"
#include "meta_test.h"

static void test_root(void **state)
{
    struct mfs_attr attr = getattr(&a, ROOT);

    (void)state;
    assert_int_equal(attr.mode, S_IFDIR | 01777);
    assert_int_equal(attr.nlink, 2);
    assert_int_equal(attr.parent, ROOT);
    assert_int_equal(meta_client_ino(&a, ROOT, "."), ROOT);
    assert_int_equal(meta_client_ino(&a, ROOT, ".."), ROOT);
    assert_int_equal(meta_client_ino(&a, ROOT, "nothing"), -ENOENT);
}

static void test_create_lookup_unlink(void **state)
{
    struct mfs_new new = {.mode = S_IFREG | 0640, .uid = 7, .gid = 8};
    char name[MFS_NAME_LEN_MAX + 2];
    struct mfs_attr attr, seen;

    (void)state;
    assert_int_equal(mfs_meta_mknod(a.meta, ROOT, "f", &new, &attr), 0);
    assert_int_equal(mfs_placement_home(attr.ino), mfs_placement_entry(ROOT, "f", 1, NPARTS));
    assert_int_equal(mfs_meta_lookup(b.meta, ROOT, "f", &seen), 0);
    assert_memory_equal(&attr, &seen, sizeof attr);
    assert_int_equal(seen.mode, S_IFREG | 0640);
    assert_int_equal(seen.uid, 7);
    assert_int_equal(seen.gid, 8);
    assert_int_equal(seen.nlink, 1);
    assert_int_equal(mfs_meta_mknod(b.meta, ROOT, "f", &new, &attr), -EEXIST);
    assert_int_equal(mfs_meta_rmdir(b.meta, ROOT, "f"), -ENOTDIR);
    assert_int_equal(mfs_meta_unlink(b.meta, ROOT, "f"), 0);
    assert_int_equal(mfs_meta_unlink(b.meta, ROOT, "f"), -ENOENT);
    assert_int_equal(meta_client_ino(&a, ROOT, "f"), -ENOENT);
    assert_int_equal(mfs_meta_getattr(a.meta, seen.ino, &attr), -ESTALE);

    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    assert_int_equal(mfs_meta_mknod(a.meta, ROOT, name, &new, &attr), -ENAMETOOLONG);
    assert_int_equal(mfs_meta_lookup(a.meta, ROOT, name, &attr), -ENAMETOOLONG);
    name[MFS_NAME_LEN_MAX] = 0;
    assert_int_equal(mfs_meta_mknod(a.meta, ROOT, name, &new, &attr), 0);
    assert_int_equal(mfs_meta_unlink(a.meta, ROOT, name), 0);
    assert_int_equal(meta_client_keys(&a, "I*"), 1);
}

static void test_special_files(void **state)
{
    struct mfs_new fifo = {.mode = S_IFIFO | 0600}, dev = {.mode = S_IFCHR | 0600, .rdev = 0x103};
    struct mfs_new link = {.mode = S_IFLNK | 0777, .target = "some/where"};
    char target[32];
    struct mfs_attr attr;

    (void)state;
    assert_int_equal(mfs_meta_mknod(a.meta, ROOT, "p", &fifo, &attr), 0);
    assert_int_equal(mfs_meta_mknod(a.meta, ROOT, "c", &dev, &attr), 0);
    assert_int_equal(getattr(&b, attr.ino).rdev, 0x103);
    assert_int_equal(mfs_meta_readlink(b.meta, attr.ino, target, sizeof target), -EINVAL);
    assert_int_equal(mfs_meta_mknod(a.meta, ROOT, "l", &link, &attr), 0);
    assert_int_equal(getattr(&b, attr.ino).size, 10);
    assert_int_equal(mfs_meta_readlink(b.meta, attr.ino, target, sizeof target), 10);
    assert_memory_equal(target, "some/where", 10);
}

static void test_create_open(void **state)
{
    struct mfs_new new = {.mode = S_IFREG | 0640};
    struct mfs_attr attr, other;
    bool created;

    (void)state;
    assert_int_equal(mfs_meta_create_open(a.meta, ROOT, "f", &new, false, &attr, &created), 0);
    assert_true(created);
    assert_int_equal(mfs_meta_create_open(b.meta, ROOT, "f", &new, true, &other, &created),
                     -EEXIST);
    assert_int_equal(mfs_meta_create_open(b.meta, ROOT, "f", &new, false, &other, &created), 0);
    assert_false(created);
    assert_int_equal(other.ino, attr.ino);
    assert_int_equal(meta_client_keys(&a, "O*"), 1);

    assert_int_equal(mfs_meta_unlink(a.meta, ROOT, "f"), 0);
    assert_int_equal(getattr(&a, attr.ino).nlink, 0);
    assert_int_equal(mfs_meta_close(a.meta, attr.ino, true), 0);
    assert_int_equal(getattr(&a, attr.ino).nlink, 0);
    assert_int_equal(mfs_meta_close(b.meta, attr.ino, true), 0);
    assert_int_equal(mfs_meta_getattr(a.meta, attr.ino, &other), -ESTALE);
    assert_int_equal(mfs_meta_open(a.meta, attr.ino, NULL, &other, NULL), -ESTALE);
    assert_int_equal(meta_client_keys(&a, "I*"), 1);
    assert_int_equal(meta_client_keys(&a, "#orphans"), 0);
}

static void test_round_trips(void **state)
{
    struct mfs_new file = {.mode = S_IFREG | 0640};
    struct mfs_attr attr, dir;
    char name[16], other[16];
    bool created;

    (void)state;
    assert_int_equal(
        mfs_meta_mknod(a.meta, ROOT, "d", &(struct mfs_new){.mode = S_IFDIR | 0755}, &dir), 0);
    meta_name_at(&a, dir.ino, 1, "f", name, sizeof name);
    meta_name_at(&a, dir.ino, 1, "g", other, sizeof other);
    assert_trips(2, mfs_meta_mknod(a.meta, dir.ino, name, &file, &attr));
    assert_trips(1, mfs_meta_create_open(a.meta, dir.ino, other, &file, true, &attr, &created));
    assert_trips(1, mfs_meta_lookup(a.meta, dir.ino, name, &attr));
    assert_trips(1, mfs_meta_getattr(a.meta, attr.ino, &attr));
    assert_trips(1, mfs_meta_open(a.meta, attr.ino, NULL, &attr, NULL));
    assert_trips(0, mfs_meta_close(a.meta, attr.ino, false));
    assert_trips(1, mfs_meta_unlink(a.meta, dir.ino, other));
    meta_name_at(&a, dir.ino, 1, "h", other, sizeof other);
    assert_trips(1, mfs_meta_rename(a.meta, dir.ino, name, dir.ino, other, 0));
    meta_name_at(&a, dir.ino, 2, "i", name, sizeof name);
    assert_trips(3, mfs_meta_rename(a.meta, dir.ino, other, dir.ino, name, 0)); /* new shard */
    assert_trips(2, mfs_meta_rename(a.meta, dir.ino, name, dir.ino, other, 0));
    mfs_settles_flush(a.meta); /* what the renames left behind would be told in between */
    mfs_closes_flush(a.meta);
    mfs_link_counts_flush(a.meta);
    assert_trips(1, mfs_meta_unlink(a.meta, dir.ino, other));
    assert_trips(4, mfs_meta_rmdir(a.meta, ROOT, "d"));
    assert_int_equal(
        mfs_meta_mknod(a.meta, ROOT, "e", &(struct mfs_new){.mode = S_IFDIR | 0755}, &dir), 0);
    assert_trips(2, mfs_meta_rmdir(a.meta, ROOT, "e"));
}

static void test_setattr(void **state)
{
    uint64_t ino = new_file(ROOT, "f");
    struct mfs_attr attr = {.mode = S_IFREG | 04711,
                            .uid = 11,
                            .gid = 12,
                            .atime = {100, 1},
                            .mtime = {-200, 2},
                            .ctime = {300, 3}};

    (void)state;
    assert_int_equal(mfs_meta_setattr(a.meta, ino,
                                      MFS_SET_MODE | MFS_SET_UID | MFS_SET_GID | MFS_SET_ATIME |
                                          MFS_SET_MTIME | MFS_SET_CTIME,
                                      &attr, NULL),
                     0);
    attr = getattr(&b, ino);
    assert_int_equal(attr.mode, S_IFREG | 04711);
    assert_int_equal(attr.uid, 11);
    assert_int_equal(attr.gid, 12);
    assert_int_equal(attr.atime.tv_sec, 100);
    assert_int_equal(attr.atime.tv_nsec, 1);
    assert_int_equal(attr.mtime.tv_sec, -200);
    assert_int_equal(attr.mtime.tv_nsec, 2);
    assert_int_equal(attr.ctime.tv_sec, 300);
    attr.uid = 13;
    assert_int_equal(mfs_meta_setattr(a.meta, ino, MFS_SET_UID, &attr, NULL), 0);
    attr = getattr(&b, ino);
    assert_int_equal(attr.uid, 13);
    assert_int_equal(attr.gid, 12);
    assert_int_equal(attr.mode, S_IFREG | 0711); /* nobody has what another made run as its owner */
    assert_true(attr.ctime.tv_sec > 1000000);
    assert_int_equal(mfs_meta_setattr(a.meta, ino + 1000, MFS_SET_UID, &attr, NULL), -ESTALE);
}

/* A parent's times are exact here at once, and elsewhere soon; utimens has the last word. */
static void test_parent_times(void **state)
{
    uint64_t dir = new_dir(ROOT, "d");
    struct mfs_attr before = getattr(&a, dir), after, set = {.mtime = {5, 6}, .atime = {7, 8}};
    int64_t until;

    (void)state;
    new_file(dir, "f");
    after = getattr(&a, dir);
    assert_true(mfs_timespec_cmp(after.mtime, before.mtime) > 0);
    assert_true(mfs_timespec_cmp(after.ctime, before.ctime) > 0);
    until = mfs_clock_mono() + 2 * MFS_SEC;
    while (mfs_timespec_cmp(getattr(&b, dir).mtime, after.mtime) != 0)
        assert_true(mfs_clock_mono() < until);

    new_file(dir, "g");
    assert_int_equal(mfs_meta_setattr(b.meta, dir, MFS_SET_MTIME, &set, NULL), 0);
    assert_int_equal(getattr(&a, dir).mtime.tv_sec, 5);
    mfs_clock_sleep(MFS_META_PARENT_DELAY);
    assert_int_equal(getattr(&a, dir).mtime.tv_sec, 5);
    assert_int_equal(getattr(&b, dir).mtime.tv_sec, 5);
    assert_int_equal(mfs_meta_unlink(a.meta, dir, "g"), 0);
    assert_true(getattr(&a, dir).mtime.tv_sec > 5);
    set.mtime.tv_sec = mfs_clock_real().tv_sec + 3600;
    assert_int_equal(mfs_meta_setattr(b.meta, dir, MFS_SET_MTIME, &set, NULL), 0);
    assert_int_equal(getattr(&a, dir).mtime.tv_sec, set.mtime.tv_sec);
    new_file(dir, "h");
    assert_true(getattr(&a, dir).mtime.tv_sec < set.mtime.tv_sec);
    mfs_parents_flush(a.meta);
    assert_true(getattr(&b, dir).mtime.tv_sec < set.mtime.tv_sec);
}

static void test_directories(void **state)
{
    uint64_t d = new_dir(ROOT, "d"), e = new_dir(d, "e");
    struct mfs_new dir = {.mode = S_IFDIR | 0755};
    struct mfs_attr attr;

    (void)state;
    assert_int_equal(getattr(&b, ROOT).nlink, 3);
    assert_int_equal(getattr(&b, d).nlink, 3);
    assert_int_equal(getattr(&b, e).nlink, 2);
    assert_int_equal(meta_client_ino(&b, e, ".."), d);
    assert_int_equal(mfs_meta_unlink(a.meta, ROOT, "d"), -EISDIR);
    assert_int_equal(mfs_meta_rmdir(b.meta, ROOT, "d"), -ENOTEMPTY);
    assert_int_equal(mfs_meta_mknod(b.meta, ROOT, "d", &dir, &attr), -EEXIST);
    mfs_store_drain(b.store, MFS_SEC);
    assert_int_equal(getattr(&a, ROOT).nlink, 3);
    assert_int_equal(mfs_meta_rmdir(b.meta, d, "e"), 0);
    assert_int_equal(getattr(&a, d).nlink, 2);
    assert_int_equal(mfs_meta_rmdir(b.meta, ROOT, "d"), 0);
    assert_int_equal(getattr(&a, ROOT).nlink, 2);
    assert_int_equal(meta_client_file(&a, d, "f", NULL), -ENOENT);
    assert_int_equal(meta_client_file(&a, e, "f", NULL), -ENOENT);
    assert_int_equal(mfs_meta_rmdir(b.meta, ROOT, "d"), -ENOENT);
    assert_int_equal(meta_client_keys(&a, "I*"), 1);
    settle();
    assert_int_equal(meta_client_keys(&a, "T*"), 0);
}

static void test_rmdir_spread(void **state)
{
    uint64_t d = new_dir(ROOT, "d");
    struct mfs_attr attr;
    char name[16];

    (void)state;
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "f%d", i);
        new_file(d, name);
    }
    for (int i = 0; i < 20; i++) {
        assert_int_equal(mfs_meta_rmdir(b.meta, ROOT, "d"), -ENOTEMPTY);
        snprintf(name, sizeof name, "f%d", i);
        assert_int_equal(mfs_meta_unlink(a.meta, d, name), 0);
    }
    assert_int_equal(mfs_meta_open(b.meta, d, NULL, &attr, NULL), 0);
    assert_int_equal(mfs_meta_rmdir(b.meta, ROOT, "d"), 0);
    assert_int_equal(getattr(&a, d).nlink, 0);
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "f%d", i);
        assert_int_equal(meta_client_file(&a, d, name, NULL), -ENOENT);
        assert_int_equal(meta_client_file(&b, d, name, NULL), -ENOENT);
    }
    assert_int_equal(mfs_meta_close(b.meta, d, true), 0);
    assert_int_equal(mfs_meta_getattr(a.meta, d, &attr), -ESTALE);
    settle();
    assert_int_equal(meta_client_keys(&a, "T*"), 0);
    assert_int_equal(meta_client_keys(&a, "#intents"), 0);
}

static void test_link(void **state)
{
    uint64_t f = new_file(ROOT, "f"), d = new_dir(ROOT, "d");
    struct mfs_attr attr;
    char name[16];

    (void)state;
    for (uint32_t p = 0; p < NPARTS; p++) {
        meta_name_at(&a, d, p, "l", name, sizeof name);
        assert_int_equal(mfs_meta_link(a.meta, f, d, name, &attr), 0);
        assert_int_equal(attr.nlink, p + 2);
        assert_int_equal(mfs_meta_link(b.meta, f, d, name, &attr), -EEXIST);
        assert_int_equal(meta_client_ino(&b, d, name), f);
        assert_int_equal(getattr(&b, f).nlink, p + 2);
    }
    assert_int_equal(mfs_meta_link(a.meta, d, ROOT, "x", &attr), -EPERM);
    assert_int_equal(mfs_meta_link(a.meta, f + 99, ROOT, "x", &attr), -ESTALE);
    assert_int_equal(mfs_meta_unlink(b.meta, ROOT, "f"), 0);
    for (uint32_t p = 0; p < NPARTS; p++) {
        meta_name_at(&a, d, p, "l", name, sizeof name);
        assert_int_equal(getattr(&b, f).nlink, NPARTS - p);
        assert_int_equal(mfs_meta_unlink(b.meta, d, name), 0);
    }
    assert_int_equal(mfs_meta_getattr(a.meta, f, &attr), -ESTALE);
}

static void test_list(void **state)
{
    uint64_t d = new_dir(ROOT, "d");
    struct mfs_listing *l;
    char name[32];
    bool seen[500] = {false};

    (void)state;
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "file-%d", i);
        new_file(d, name);
    }
    assert_int_equal(mfs_meta_list(b.meta, d, &l), 0);
    assert_int_equal(mfs_listing_count(l), 502);
    assert_string_equal(mfs_listing_at(l, 0).name, ".");
    assert_string_equal(mfs_listing_at(l, 1).name, "..");
    assert_int_equal(mfs_listing_at(l, 1).ino, ROOT);
    for (size_t i = 2; i < 502; i++) {
        struct mfs_dirent e = mfs_listing_at(l, i);
        unsigned n = 500;

        assert_int_equal(sscanf(e.name, "file-%u", &n), 1);
        assert_true(n < 500 && !seen[n]);
        seen[n] = true;
        assert_int_equal(e.type, S_IFREG);
    }
    mfs_listing_free(l);
    assert_int_equal(mfs_meta_list(b.meta, new_file(ROOT, "f"), &l), -ENOTDIR);
    assert_int_equal(mfs_meta_list(b.meta, 12345, &l), -ESTALE);
}

/* Shards that the client knows of are listed in one round trip; of others it learns by that. */
static void test_list_round_trips(void **state)
{
    uint64_t d = new_dir(ROOT, "d");
    struct mfs_listing *l;
    char name[32];

    (void)state;
    meta_name_at(&a, d, 1, "f", name, sizeof name);
    new_file(d, name);
    assert_trips(2, mfs_meta_list(b.meta, d, &l));
    assert_int_equal(mfs_listing_count(l), 3);
    mfs_listing_free(l);
    assert_trips(1, mfs_meta_list(b.meta, d, &l));
    assert_int_equal(mfs_listing_count(l), 3);
    mfs_listing_free(l);
    meta_name_at(&a, d, 2, "f", name, sizeof name);
    new_file(d, name);
    assert_trips(2, mfs_meta_list(b.meta, d, &l)); /* by an old copy of the bitmap */
    assert_int_equal(mfs_listing_count(l), 4);
    mfs_listing_free(l);
}

static void test_statfs(void **state)
{
    struct mfs_meta_space space;

    (void)state;
    new_file(ROOT, "f");
    new_file(ROOT, "g");
    new_dir(ROOT, "d");
    assert_int_equal(mfs_meta_statfs(a.meta, &space), 0);
    assert_true(space.total > space.used);
    assert_true(space.used > 1000000);
    assert_int_equal(space.files, 4);
    assert_int_equal(mfs_meta_unlink(a.meta, ROOT, "g"), 0);
    assert_int_equal(mfs_meta_rmdir(a.meta, ROOT, "d"), 0);
    assert_int_equal(mfs_meta_statfs(b.meta, &space), 0);
    assert_int_equal(space.files, 2); /* what df -i shows as used: no keys beside inodes */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        TEST(test_root),          TEST(test_create_lookup_unlink),
        TEST(test_special_files), TEST(test_create_open),
        TEST(test_round_trips),   TEST(test_list_round_trips),
        TEST(test_setattr),       TEST(test_parent_times),
        TEST(test_directories),   TEST(test_rmdir_spread),
        TEST(test_link),          TEST(test_list),
        TEST(test_statfs),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
