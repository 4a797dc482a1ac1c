/* Single operations of src/meta against real partitions: what they do, which errno they give, how
 * many round trips they take. ctest: timeout=120 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "cluster/placement.h"
#include "meta/internal.h"
#include "meta_fixture.h"

#define ROOT   MFS_ROOT_INO
#define NPARTS 4
#define STRIPE 65536

static struct redis_fixture *redis;
static struct meta_client a, b;

static int start_all(void **state)
{
    (void)state;
    return redis_fixture_start(
        &redis, &(struct redis_fixture_opts){.nparts = NPARTS, .stripe_size = STRIPE});
}

static int stop_all(void **state)
{
    (void)state;
    redis_fixture_stop(redis);
    return 0;
}

static int setup(void **state)
{
    (void)state;
    if (redis_fixture_reset(redis))
        return -1;
    return meta_client_start(&a, redis, 0) || meta_client_start(&b, redis, 0);
}

static int teardown(void **state)
{
    (void)state;
    meta_client_stop(&a);
    meta_client_stop(&b);
    return 0;
}

static uint64_t round_trips(struct meta_client *c)
{
    struct mfs_store_stats s;

    mfs_store_stats(c->store, &s);
    return s.round_trips;
}

#define assert_trips(client, n, expr)                                                              \
    do {                                                                                           \
        uint64_t before_ = round_trips(client);                                                    \
        assert_int_equal(expr, 0);                                                                 \
        assert_int_equal(round_trips(client) - before_, n);                                        \
    } while (0)

static struct mfs_attr getattr(struct meta_client *c, uint64_t ino)
{
    struct mfs_attr attr;

    assert_int_equal(mfs_meta_getattr(c->meta, ino, &attr), 0);
    return attr;
}

static uint64_t new_file(uint64_t dir, const char *name)
{
    uint64_t ino = 0;

    assert_int_equal(meta_client_file(&a, dir, name, &ino), 0);
    return ino;
}

static uint64_t new_dir(uint64_t dir, const char *name)
{
    uint64_t ino = 0;

    assert_int_equal(meta_client_mkdir(&a, dir, name, &ino), 0);
    return ino;
}

/* What is told later has been told. */
static void settle(void)
{
    struct meta_client *both[] = {&a, &b};

    for (int i = 0; i < 2; i++) {
        mfs_debts_flush(both[i]->meta);
        mfs_store_drain(both[i]->store, MFS_SEC);
    }
}

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
    assert_trips(&a, 2, mfs_meta_mknod(a.meta, dir.ino, name, &file, &attr));
    assert_trips(&a, 1, mfs_meta_create_open(a.meta, dir.ino, other, &file, true, &attr, &created));
    assert_trips(&a, 1, mfs_meta_lookup(a.meta, dir.ino, name, &attr));
    assert_trips(&a, 1, mfs_meta_getattr(a.meta, attr.ino, &attr));
    assert_trips(&a, 1, mfs_meta_open(a.meta, attr.ino, NULL, &attr, NULL));
    assert_trips(&a, 0, mfs_meta_close(a.meta, attr.ino, false));
    assert_trips(&a, 1, mfs_meta_unlink(a.meta, dir.ino, other));
    meta_name_at(&a, dir.ino, 1, "h", other, sizeof other);
    assert_trips(&a, 1, mfs_meta_rename(a.meta, dir.ino, name, dir.ino, other, 0));
    meta_name_at(&a, dir.ino, 2, "i", name, sizeof name);
    assert_trips(&a, 4, mfs_meta_rename(a.meta, dir.ino, other, dir.ino, name, 0)); /* new shard */
    assert_trips(&a, 3, mfs_meta_rename(a.meta, dir.ino, name, dir.ino, other, 0));
    mfs_closes_flush(a.meta);
    assert_trips(&a, 1, mfs_meta_unlink(a.meta, dir.ino, other));
    assert_trips(&a, 5, mfs_meta_rmdir(a.meta, ROOT, "d"));
    assert_int_equal(
        mfs_meta_mknod(a.meta, ROOT, "e", &(struct mfs_new){.mode = S_IFDIR | 0755}, &dir), 0);
    assert_trips(&a, 2, mfs_meta_rmdir(a.meta, ROOT, "e"));
}

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
    assert_trips(&a, 6, mfs_meta_rename(a.meta, d, from, e, to, 0));
    mfs_store_drain(a.store, MFS_SEC); /* the lock on moves is given back */
    meta_name_at(&a, d, 2, "s", from, sizeof from);
    assert_trips(&a, 7, mfs_meta_rename(a.meta, e, to, d, from, 0));
    meta_name_at(&a, d, 2, "u", to, sizeof to);
    new_dir(d, to);
    assert_trips(&a, 6, mfs_meta_rename(a.meta, d, from, d, to, 0));
    meta_name_at(&a, d, 3, "u", from, sizeof from);
    new_dir(d, from);
    assert_trips(&a, 9, mfs_meta_rename(a.meta, d, to, d, from, 0));
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
                                      &attr),
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
    assert_int_equal(mfs_meta_setattr(a.meta, ino, MFS_SET_UID, &attr), 0);
    attr = getattr(&b, ino);
    assert_int_equal(attr.uid, 13);
    assert_int_equal(attr.gid, 12);
    assert_int_equal(attr.mode, S_IFREG | 04711);
    assert_true(attr.ctime.tv_sec > 1000000);
    assert_int_equal(mfs_meta_setattr(a.meta, ino + 1000, MFS_SET_UID, &attr), -ESTALE);
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
    assert_int_equal(mfs_meta_setattr(b.meta, dir, MFS_SET_MTIME, &set), 0);
    assert_int_equal(getattr(&a, dir).mtime.tv_sec, 5);
    mfs_clock_sleep(MFS_META_PARENT_DELAY);
    assert_int_equal(getattr(&a, dir).mtime.tv_sec, 5);
    assert_int_equal(getattr(&b, dir).mtime.tv_sec, 5);
    assert_int_equal(mfs_meta_unlink(a.meta, dir, "g"), 0);
    assert_true(getattr(&a, dir).mtime.tv_sec > 5);
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

static void commit(struct meta_client *c, uint64_t ino, uint64_t off, const char *text,
                   struct mfs_attr *attr)
{
    struct mfs_part part = {(uint32_t)off, (uint32_t)strlen(text), text};
    struct mfs_commit commit = {
        .end = off + strlen(text), .mtime = mfs_clock_real(), .parts = &part, .nparts = 1};
    uint64_t old;

    assert_int_equal(mfs_meta_commit(c->meta, ino, &commit, &old, attr), 0);
    assert_int_equal(old + 1, attr->version);
}

static void test_content(void **state)
{
    uint64_t f = new_file(ROOT, "f"), old, off;
    char buf[64];
    struct mfs_head head = {buf, sizeof buf, -1};
    struct mfs_attr attr;
    struct mfs_range place = {STRIPE - 1, STRIPE + 1};
    uint64_t number;

    (void)state;
    commit(&a, f, 0, "hello", &attr);
    assert_int_equal(attr.size, 5);
    assert_int_equal(attr.alloc, 5);
    commit(&a, f, 7, "world", &attr);
    assert_int_equal(attr.size, 12);
    assert_int_equal(attr.data_end, 12);
    assert_int_equal(mfs_meta_open(b.meta, f, NULL, &attr, &head), 0);
    assert_int_equal(head.len, 12);
    assert_memory_equal(buf, "hello\0\0world", 12);
    assert_int_equal(mfs_meta_truncate(b.meta, f, 4, UINT64_MAX >> 1, 0, &old, &attr), 0);
    assert_int_equal(attr.size, 4);
    assert_int_equal(attr.alloc, 4);
    assert_int_equal(attr.data_end, 4);
    assert_int_equal(mfs_meta_truncate(b.meta, f, 10, UINT64_MAX >> 1, 0, &old, &attr), 0);
    assert_int_equal(attr.size, 10);
    assert_int_equal(attr.data_end, 4);
    assert_int_equal(mfs_meta_append(a.meta, f, "!!", 2, &off, &number, &old, &attr), 0);
    assert_int_equal(number, 0);
    assert_int_equal(off, 10);
    head.len = -1;
    assert_int_equal(mfs_meta_open(b.meta, f, NULL, &attr, &head), 0);
    assert_int_equal(head.len, 12);
    assert_memory_equal(buf, "hell\0\0\0\0\0\0!!", 12);
    assert_int_equal(mfs_meta_truncate(b.meta, f, STRIPE - 1, UINT64_MAX >> 1, 0, &old, &attr), 0);
    assert_int_equal(mfs_meta_append(a.meta, f, "!!", 2, &off, &number, &old, &attr), 0);
    assert_true(number > 0);
    assert_int_equal(off, STRIPE - 1);
    assert_int_equal(getattr(&b, f).size, STRIPE - 1);
    assert_int_equal(mfs_meta_append_end(a.meta, f, number + 1, true, &place, 2, &old, &attr),
                     -ECANCELED);
    assert_int_equal(mfs_meta_append_end(a.meta, f, number, true, &place, 2, &old, &attr), 0);
    assert_int_equal(getattr(&b, f).size, STRIPE + 1);
    assert_int_equal(meta_client_keys(&a, "P*"), 0);
    assert_int_equal(mfs_meta_open(b.meta, f, &(uint64_t){UINT64_MAX >> 1}, &attr, NULL), 0);
    assert_int_equal(attr.size, 0);
    assert_int_equal(attr.alloc, 0);
    assert_int_equal(meta_client_keys(&a, "S*"), 0);
}

/* Who cuts a file must have deleted the stripes that another client has added meanwhile, too. */
static void test_truncate_grown(void **state)
{
    uint64_t f = new_file(ROOT, "f"), old, trimmed = STRIPE;
    struct mfs_range stored = {0, 3 * STRIPE};
    struct mfs_commit c = {
        .end = 3 * STRIPE, .stored = &stored, .nstored = 1, .mtime = mfs_clock_real()};
    struct mfs_attr attr;

    (void)state;
    assert_int_equal(mfs_meta_commit(b.meta, f, &c, &old, &attr), 0);
    assert_int_equal(mfs_meta_truncate(a.meta, f, 0, trimmed, 0, &old, &attr), -ECANCELED);
    assert_int_equal(mfs_meta_open(a.meta, f, &trimmed, &attr, NULL), -ECANCELED);
    assert_int_equal(getattr(&b, f).size, 3 * STRIPE);
    assert_int_equal(meta_client_keys(&a, "O*"), 0);
    assert_int_equal(mfs_meta_truncate(a.meta, f, 4 * STRIPE, 0, 0, &old, &attr), 0);
    trimmed = 3 * STRIPE;
    assert_int_equal(mfs_meta_truncate(a.meta, f, STRIPE, trimmed, 0, &old, &attr), 0);
    assert_int_equal(attr.data_end, STRIPE);
    trimmed = 0;
    assert_int_equal(mfs_meta_open(a.meta, f, &trimmed, &attr, NULL), 0);
    assert_int_equal(attr.size, 0);
}

/* A file that may have more stripes is handed over to whoever removes stripes. */
static void test_reap(void **state)
{
    uint64_t f = new_file(ROOT, "f"), old;
    struct mfs_range stored = {STRIPE, 3 * STRIPE};
    struct mfs_commit c = {.end = 3 * STRIPE,
                           .stored = &stored,
                           .nstored = 1,
                           .alloc = 2 * STRIPE,
                           .mtime = mfs_clock_real()};
    struct mfs_attr attr;

    (void)state;
    assert_int_equal(mfs_meta_commit(a.meta, f, &c, &old, &attr), 0);
    assert_int_equal(attr.size, 3 * STRIPE);
    assert_int_equal(mfs_meta_unlink(b.meta, ROOT, "f"), 0);
    assert_int_equal(b.reaped, 1);
    mfs_store_drain(b.store, MFS_SEC);
    assert_int_equal(meta_client_keys(&a, "#reap"), 0);
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

static void put_acl(char *p, unsigned tag, unsigned perm, uint32_t id)
{
    p[0] = (char)tag;
    p[1] = 0;
    p[2] = (char)perm;
    p[3] = 0;
    mfs_put_le32(p + 4, id);
}

static void test_xattr(void **state)
{
    uint64_t f = new_file(ROOT, "f");
    char buf[64];

    (void)state;
    assert_int_equal(mfs_meta_getxattr(a.meta, f, "user.a", buf, sizeof buf), -ENODATA);
    assert_int_equal(mfs_meta_getxattr(a.meta, f + 77, "user.a", buf, sizeof buf), -ESTALE);
    assert_int_equal(mfs_meta_listxattr(a.meta, f, buf, sizeof buf), 0);
    assert_int_equal(mfs_meta_setxattr(a.meta, f, "user.a", "1", 1, XATTR_REPLACE, false),
                     -ENODATA);
    assert_int_equal(mfs_meta_setxattr(a.meta, f, "user.a", "one", 3, XATTR_CREATE, false), 0);
    assert_int_equal(mfs_meta_setxattr(a.meta, f, "user.a", "1", 1, XATTR_CREATE, false), -EEXIST);
    assert_int_equal(mfs_meta_setxattr(a.meta, f, "user.e", "", 0, 0, false), 0);
    assert_int_equal(getattr(&b, f).flags & MFS_ATTR_XATTR, MFS_ATTR_XATTR);
    assert_int_equal(mfs_meta_getxattr(b.meta, f, "user.a", NULL, 0), 3);
    assert_int_equal(mfs_meta_getxattr(b.meta, f, "user.a", buf, 2), -ERANGE);
    assert_int_equal(mfs_meta_getxattr(b.meta, f, "user.a", buf, sizeof buf), 3);
    assert_memory_equal(buf, "one", 3);
    assert_int_equal(mfs_meta_getxattr(b.meta, f, "user.e", buf, sizeof buf), 0);
    assert_int_equal(mfs_meta_listxattr(b.meta, f, NULL, 0), 14);
    assert_int_equal(mfs_meta_listxattr(b.meta, f, buf, 13), -ERANGE);
    assert_int_equal(mfs_meta_listxattr(b.meta, f, buf, sizeof buf), 14);
    assert_int_equal(mfs_meta_removexattr(b.meta, f, "user.a"), 0);
    assert_int_equal(mfs_meta_removexattr(b.meta, f, "user.a"), -ENODATA);
    assert_int_equal(mfs_meta_removexattr(b.meta, f, "user.e"), 0);
    assert_int_equal(getattr(&b, f).flags & MFS_ATTR_XATTR, 0);
}

static void test_acl(void **state)
{
    uint64_t f = new_file(ROOT, "f");
    const char *name = "system.posix_acl_access";
    struct mfs_attr attr = {.mode = 0};
    char acl[44] = {2}, buf[64];

    (void)state;
    put_acl(acl + 4, 1, 7, UINT32_MAX);   /* u::rwx */
    put_acl(acl + 12, 2, 6, 1000);        /* u:1000:rw- */
    put_acl(acl + 20, 4, 5, UINT32_MAX);  /* g::r-x */
    put_acl(acl + 28, 16, 4, UINT32_MAX); /* m::r-- */
    put_acl(acl + 36, 32, 1, UINT32_MAX); /* o::--x */
    assert_int_equal(mfs_meta_setxattr(a.meta, f, name, acl, 44, 0, false), 0);
    attr = getattr(&b, f);
    assert_int_equal(attr.mode, S_IFREG | 0741);
    assert_true(attr.flags & MFS_ATTR_ACL);
    attr.mode = S_IFREG | 0620;
    assert_int_equal(mfs_meta_setattr(b.meta, f, MFS_SET_MODE, &attr), 0);
    assert_int_equal(mfs_meta_getxattr(b.meta, f, name, buf, sizeof buf), 44);
    assert_int_equal(buf[4 + 2], 6);
    assert_int_equal(buf[12 + 2], 6);
    assert_int_equal(buf[20 + 2], 5); /* the mask took the group's bits */
    assert_int_equal(buf[28 + 2], 2);
    assert_int_equal(buf[36 + 2], 0);

    put_acl(acl + 12, 4, 5, UINT32_MAX); /* no more than a mode */
    put_acl(acl + 20, 32, 1, UINT32_MAX);
    assert_int_equal(mfs_meta_setxattr(a.meta, f, name, acl, 28, 0, false), 0);
    attr = getattr(&b, f);
    assert_int_equal(attr.mode, S_IFREG | 0751);
    assert_false(attr.flags & (MFS_ATTR_ACL | MFS_ATTR_XATTR));
    assert_int_equal(mfs_meta_getxattr(b.meta, f, name, buf, sizeof buf), -ENODATA);
    assert_int_equal(mfs_meta_setxattr(a.meta, f, name, acl, 20, 0, false), -EINVAL);
    assert_int_equal(mfs_meta_setxattr(a.meta, f, "system.posix_acl_default", acl, 28, 0, false),
                     -EACCES);
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

static int lk(struct meta_client *c, uint64_t ino, uint64_t owner, int type, uint64_t start,
              uint64_t end)
{
    struct mfs_lock lock = {.type = type, .start = start, .end = end, .owner = owner, .pid = 42};
    struct mfs_attr attr;

    return mfs_meta_setlk(c->meta, ino, &lock, &attr, NULL);
}

static void test_locks(void **state)
{
    uint64_t f = new_file(ROOT, "f");
    struct mfs_lock q = {.type = F_WRLCK, .start = 0, .end = INT64_MAX, .owner = 9};
    struct mfs_attr attr;

    (void)state;
    assert_int_equal(lk(&a, f, 1, F_WRLCK, 10, 19), 0);
    assert_int_equal(lk(&b, f, 1, F_RDLCK, 0, 10), -EAGAIN);
    assert_int_equal(lk(&b, f, 1, F_RDLCK, 0, 9), 0);
    assert_int_equal(lk(&b, f, 1, F_RDLCK, 20, INT64_MAX), 0);
    assert_int_equal(lk(&a, f, 2, F_RDLCK, 0, 5), 0);
    assert_int_equal(lk(&a, f, 2, F_WRLCK, 0, 5), -EAGAIN);
    assert_int_equal(mfs_meta_getlk(b.meta, f, &q, NULL), 0);
    assert_int_not_equal(q.type, F_UNLCK);
    /* Splitting: 14 and 15 become free. */
    assert_int_equal(lk(&a, f, 1, F_UNLCK, 14, 15), 0);
    assert_int_equal(lk(&b, f, 3, F_WRLCK, 14, 15), 0);
    assert_int_equal(lk(&b, f, 3, F_WRLCK, 13, 15), -EAGAIN);
    assert_int_equal(lk(&b, f, 3, F_WRLCK, 14, 16), -EAGAIN);
    q = (struct mfs_lock){.type = F_WRLCK, .start = 16, .end = 17, .owner = 9};
    assert_int_equal(mfs_meta_getlk(b.meta, f, &q, NULL), 0);
    assert_int_equal(q.start, 16);
    assert_int_equal(q.end, 19);
    assert_int_equal(q.type, F_WRLCK);
    q = (struct mfs_lock){.type = F_WRLCK, .start = 100, .end = 100, .owner = 9};
    assert_int_equal(mfs_meta_getlk(a.meta, f, &q, NULL), 0);
    assert_int_equal(q.end, INT64_MAX);
    /* flock is another world. */
    assert_int_equal(mfs_meta_flock(a.meta, f, 1, F_WRLCK, &attr, NULL), 0);
    assert_int_equal(mfs_meta_flock(b.meta, f, 1, F_RDLCK, &attr, NULL), -EAGAIN);
    assert_int_equal(mfs_meta_flock(a.meta, f, 1, F_RDLCK, &attr, NULL), 0);
    assert_int_equal(mfs_meta_flock(b.meta, f, 1, F_RDLCK, &attr, NULL), 0);
    assert_int_equal(mfs_meta_flock(b.meta, f, 1, F_UNLCK, &attr, NULL), 0);
    /* A dead client's locks are nobody's. */
    meta_client_kill(&a);
    assert_int_equal(lk(&b, f, 3, F_WRLCK, 10, 19), 0);
    assert_int_equal(mfs_meta_flock(b.meta, f, 1, F_WRLCK, &attr, NULL), 0);
    assert_int_equal(meta_client_start(&a, redis, 0), 0);
    assert_int_equal(lk(&a, f, 1, F_WRLCK, 15, 15), -EAGAIN);
    meta_client_stop(&b);
    assert_int_equal(lk(&a, f, 1, F_WRLCK, 0, INT64_MAX), 0);
    assert_int_equal(lk(&a, f, 1, F_UNLCK, 0, INT64_MAX), 0);
    assert_int_equal(meta_client_keys(&a, "L*"), 0);
    assert_int_equal(meta_client_start(&b, redis, 0), 0);
}

/* Another client's try: refused; is it only for those who have just closed? */
static bool refused_by_closing(uint64_t ino)
{
    struct mfs_lock_holder holder = {0};
    struct mfs_attr attr;

    assert_int_equal(mfs_meta_flock(b.meta, ino, 1, F_WRLCK, &attr, &holder), -EAGAIN);
    return holder.closing;
}

static void test_locks_closing(void **state)
{
    const uint64_t one = 1, two = 2, both[] = {2, 1};
    uint64_t f = new_file(ROOT, "f"), many[100];
    struct mfs_attr attr;

    (void)state;
    assert_int_equal(mfs_meta_flock(a.meta, f, 1, F_WRLCK, &attr, NULL), 0);
    assert_false(refused_by_closing(f));
    assert_trips(&a, 1, mfs_meta_closing(a.meta, f, &one, 1));
    assert_true(refused_by_closing(f));
    /* It is open, as somebody uses it. */
    assert_int_equal(mfs_meta_flock(a.meta, f, 1, F_RDLCK, &attr, NULL), 0);
    assert_false(refused_by_closing(f));
    /* Who stays counts, wherever he stands in the list. */
    assert_int_equal(mfs_meta_flock(a.meta, f, 2, F_RDLCK, &attr, NULL), 0);
    assert_int_equal(mfs_meta_closing(a.meta, f, &one, 1), 0);
    assert_false(refused_by_closing(f));
    assert_int_equal(mfs_meta_flock(a.meta, f, 1, F_RDLCK, &attr, NULL), 0);
    assert_int_equal(mfs_meta_closing(a.meta, f, &two, 1), 0);
    assert_false(refused_by_closing(f));
    for (unsigned i = 0; i < 100; i++) /* most of them have nothing */
        many[i] = 100 - i;
    assert_trips(&a, 1, mfs_meta_closing(a.meta, f, many, 100));
    assert_true(refused_by_closing(f));
    assert_int_equal(mfs_meta_flock(a.meta, f, 2, F_UNLCK, &attr, NULL), 0);
    assert_true(refused_by_closing(f));
    assert_int_equal(mfs_meta_flock(a.meta, f, 1, F_UNLCK, &attr, NULL), 0);
    assert_int_equal(mfs_meta_closing(a.meta, f, both, 2), 0);
    assert_int_equal(meta_client_keys(&a, "L*"), 0);
    assert_int_equal(mfs_meta_flock(b.meta, f, 1, F_WRLCK, &attr, NULL), 0);
}

static void test_ranges_closing(void **state)
{
    struct mfs_lock q = {.type = F_WRLCK, .start = 0, .end = INT64_MAX, .owner = 9}, found;
    uint64_t f = new_file(ROOT, "f"), one = 1;
    struct mfs_lock_holder holder;

    (void)state;
    assert_int_equal(lk(&a, f, 1, F_WRLCK, 10, 19), 0);
    assert_int_equal(lk(&a, f, 1, F_RDLCK, 30, 39), 0);
    for (unsigned i = 0; i < 2; i++) { /* a mark replaces the one before */
        assert_int_equal(mfs_meta_closing(a.meta, f, &one, 1), 0);
        found = q;
        assert_int_equal(mfs_meta_getlk(b.meta, f, &found, &holder), 0);
        assert_true(holder.closing);
        assert_int_equal(found.start, 10);
        assert_int_equal(found.end, 19);
    }
    assert_int_equal(lk(&b, f, 1, F_RDLCK, 19, 29), -EAGAIN);
    assert_int_equal(lk(&b, f, 1, F_RDLCK, 20, 39), 0);
    assert_int_equal(lk(&a, f, 1, F_UNLCK, 10, 12), 0);
    found = q;
    assert_int_equal(mfs_meta_getlk(b.meta, f, &found, &holder), 0);
    assert_false(holder.closing);
    assert_int_equal(found.start, 13);
    /* A dead client that stays drops out; what is left is closing. */
    assert_int_equal(lk(&b, f, 2, F_WRLCK, 100, 100), 0);
    meta_client_kill(&a);
    assert_int_equal(mfs_meta_closing(b.meta, f, (uint64_t[]){1, 2}, 2), 0);
    found = q;
    assert_int_equal(mfs_meta_getlk(b.meta, f, &found, &holder), 0);
    assert_true(holder.closing);
    assert_int_equal(meta_client_start(&a, redis, 0), 0);
}

static void test_closing_ages(void **state)
{
    uint64_t f = new_file(ROOT, "f"), one = 1;
    int64_t start = mfs_clock_mono(), age;
    struct mfs_attr attr;

    (void)state;
    assert_int_equal(mfs_meta_flock(a.meta, f, 1, F_WRLCK, &attr, NULL), 0);
    assert_int_equal(mfs_meta_closing(a.meta, f, &one, 1), 0);
    while (refused_by_closing(f)) {
        assert_true(mfs_clock_mono() - start < 15 * MFS_SEC);
        mfs_clock_sleep(5 * MFS_MSEC);
    }
    age = mfs_clock_mono() - start;
    assert_true(age > MFS_META_CLOSING - 100 * MFS_MSEC);
    assert_int_equal(mfs_meta_closing(a.meta, f, &one, 1), 0); /* the next close */
    assert_true(refused_by_closing(f));
}

static void test_statfs(void **state)
{
    struct mfs_meta_space space;

    (void)state;
    assert_int_equal(mfs_meta_statfs(a.meta, &space), 0);
    assert_true(space.total > space.used);
    assert_true(space.used > 1000000);
    assert_true(space.files > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        TEST(test_root),
        TEST(test_create_lookup_unlink),
        TEST(test_special_files),
        TEST(test_create_open),
        TEST(test_round_trips),
        TEST(test_rename_round_trips),
        TEST(test_setattr),
        TEST(test_parent_times),
        TEST(test_directories),
        TEST(test_rmdir_spread),
        TEST(test_link),
        TEST(test_content),
        TEST(test_truncate_grown),
        TEST(test_reap),
        TEST(test_list),
        TEST(test_xattr),
        TEST(test_acl),
        TEST(test_rename),
        TEST(test_rename_directories),
        TEST(test_locks),
        TEST(test_locks_closing),
        TEST(test_ranges_closing),
        TEST(test_closing_ages),
        TEST(test_statfs),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
