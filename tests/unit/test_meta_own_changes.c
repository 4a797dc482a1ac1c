/* What a client knows of files goes on to be known when it changes them itself: no look-up, and no
 * question for attributes, follows. Another client's change, before or meanwhile, ends that. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <cmocka.h>

#include "meta/cache/cache.h"
#include "meta/internal.h"
#include "meta_fixture.h"

#define ROOT MFS_ROOT_INO
#define TTL  (20 * MFS_SEC)

static struct meta_client a, b;
static uint64_t ino;

static int setup(void **state)
{
    (void)state;
    return meta_pair_start(&a, &b, TTL) || meta_client_file(&a, ROOT, "f", &ino);
}

static int teardown(void **state)
{
    (void)state;
    meta_pair_stop(&a, &b);
    return 0;
}

/* b looks at the name, which is what the partitions say; does it ask? */
static bool asks(const char *name)
{
    uint64_t before = meta_client_round_trips(&b);
    struct mfs_attr seen, now;
    bool asked;

    assert_int_equal(mfs_meta_lookup(b.meta, ROOT, name, &seen), 0);
    asked = meta_client_round_trips(&b) > before;
    assert_int_equal(mfs_meta_getattr(a.meta, seen.ino, &now), 0);
    assert_memory_equal(&seen, &now, sizeof now);
    return asked;
}

static void learn(const char *name)
{
    for (unsigned i = 0; asks(name); i++)
        assert_true(i < 20);
}

#define assert_trips(n, expr)                                                                      \
    do {                                                                                           \
        uint32_t before_ = meta_own_round_trips();                                                 \
        assert_int_equal(expr, 0);                                                                 \
        assert_int_equal(meta_own_round_trips() - before_, n);                                     \
    } while (0)

static int set_mode(struct meta_client *c, mode_t mode)
{
    struct mfs_attr attr = {.mode = mode};

    return mfs_meta_setattr(c->meta, ino, MFS_SET_MODE, &attr, NULL);
}

static int set_xattr(const char *value)
{
    return mfs_meta_setxattr(b.meta, ino, "user.x", value, strlen(value), 0, false, NULL);
}

static int append(void)
{
    uint64_t off, number;
    struct mfs_attr attr;

    return mfs_meta_append(b.meta, ino, "more", 4, 0, &off, &number, NULL, &attr);
}

static int cut(void)
{
    struct mfs_attr attr;

    return mfs_meta_truncate(b.meta, ino, 1, 0, 0, NULL, &attr);
}

static int open_cut(void)
{
    struct mfs_cut whole = {0};
    struct mfs_attr attr;
    int rc = mfs_meta_open(b.meta, ino, &whole, &attr, NULL);

    mfs_meta_close(b.meta, ino, false);
    return rc;
}

static void test_known_after(void **state)
{
    (void)state;
    learn("f");
    assert_trips(1, set_mode(&b, 0600));
    assert_false(asks("f"));
    assert_trips(1, set_xattr("1"));
    assert_false(asks("f"));
    assert_trips(1, mfs_meta_removexattr(b.meta, ino, "user.x", NULL));
    assert_false(asks("f"));
    assert_trips(1, append());
    assert_false(asks("f"));
    assert_trips(1, cut());
    assert_false(asks("f"));
    assert_trips(1, open_cut());
    assert_false(asks("f"));
}

static void test_others_change(void **state)
{
    (void)state;
    learn("f");
    assert_int_equal(set_mode(&b, 0600), 0);
    assert_int_equal(set_mode(&a, 0640), 0);
    assert_true(asks("f"));
    learn("f");
    assert_int_equal(set_xattr("1"), 0);
    assert_int_equal(set_mode(&a, 0600), 0);
    assert_true(asks("f"));
}

/* An answer from before another change, or that may be from before another answer, is not kept. */
static void test_overtaken(void **state)
{
    int64_t before = mfs_clock_mono();
    struct mfs_attr attr;

    (void)state;
    learn("f");
    assert_int_equal(mfs_meta_lookup(b.meta, ROOT, "f", &attr), 0);
    mfs_filecache_changed(b.meta->files, &attr, before); /* the look-up's was asked for later */
    assert_true(asks("f"));
    learn("f");
    before = mfs_clock_mono();
    mfs_filecache_revoke(b.meta->files, ino);
    mfs_filecache_changed(b.meta->files, &attr, before);
    assert_true(asks("f"));
}

/* Both names of a file are known at one time, and go with it. */
static void test_names(void **state)
{
    struct mfs_attr attr;
    char name[16];
    uint64_t other;

    (void)state;
    meta_name_at(&a, ROOT, mfs_placement_home(ino), "g", name, sizeof name);
    assert_int_equal(mfs_meta_link(a.meta, ino, ROOT, name, &attr), 0);
    learn("f");
    learn(name);
    assert_false(asks("f"));
    assert_int_equal(set_mode(&b, 0600), 0);
    assert_false(asks("f"));
    assert_false(asks(name));
    assert_int_equal(mfs_meta_unlink(a.meta, ROOT, name), 0);
    assert_int_equal(meta_client_ino(&b, ROOT, name), -ENOENT);
    assert_int_equal(meta_client_file(&a, ROOT, name, &other), 0);
    learn("f");
    learn(name);
    assert_int_equal(mfs_meta_lookup(b.meta, ROOT, name, &attr), 0);
    assert_int_equal(attr.ino, other);
}

/* No file is kept of which no name is; the oldest name goes first. */
static void test_bounds(void **state)
{
    struct mfs_filecache *c = mfs_filecache_create(2);
    struct mfs_attr attr = {.ino = 7, .mode = S_IFREG}, got;
    int64_t asked = mfs_clock_mono();

    (void)state;
    mfs_filecache_put(c, ROOT, "1", &attr, asked);
    mfs_filecache_put(c, ROOT, "2", &attr, mfs_clock_mono());
    mfs_filecache_put(c, ROOT, "3", &attr, mfs_clock_mono());
    assert_false(mfs_filecache_name(c, ROOT, "1", &got));
    assert_true(mfs_filecache_name(c, ROOT, "2", &got));
    assert_true(mfs_filecache_name(c, ROOT, "3", &got));
    attr.ino = 8;
    mfs_filecache_put(c, ROOT, "4", &attr, mfs_clock_mono());
    mfs_filecache_put(c, ROOT, "3", &attr, mfs_clock_mono());
    assert_false(mfs_filecache_attr(c, 7, &got));
    assert_true(mfs_filecache_name(c, ROOT, "3", &got));
    assert_int_equal(got.ino, 8);
    mfs_filecache_forget(c, ROOT, "3", 0);
    assert_false(mfs_filecache_name(c, ROOT, "4", &got));
    mfs_filecache_destroy(c);
}

static int get_xattr(const char *name)
{
    char value[8];

    return (int)mfs_meta_getxattr(b.meta, ino, name, value, sizeof value);
}

/* That there is none is known. */
static void test_getxattr(void **state)
{
    uint64_t before;

    (void)state;
    learn("f");
    before = meta_client_round_trips(&b);
    assert_int_equal(get_xattr("user.x"), -ENODATA);
    assert_int_equal(get_xattr("security.capability"), -ENODATA);
    assert_int_equal(mfs_meta_listxattr(b.meta, ino, NULL, 0), 0);
    assert_int_equal(meta_client_round_trips(&b), before);
    assert_int_equal(mfs_meta_setxattr(a.meta, ino, "user.x", "1", 1, 0, false, NULL), 0);
    assert_int_equal(get_xattr("user.x"), 1);
    learn("f");
    before = meta_client_round_trips(&b);
    assert_int_equal(get_xattr("security.capability"), -ENODATA);
    assert_int_equal(meta_client_round_trips(&b), before);
    assert_int_equal(get_xattr("user.y"), -ENODATA);
    assert_int_equal(get_xattr("user.x"), 1);
}

/* A look-up brings a link's text. */
static void test_readlink(void **state)
{
    struct mfs_new new = {.mode = S_IFLNK | 0777, .target = "somewhere"};
    struct mfs_attr attr;
    uint64_t before;
    char text[32];

    (void)state;
    assert_int_equal(mfs_meta_mknod(a.meta, ROOT, "l", &new, &attr), 0);
    assert_int_equal(mfs_meta_lookup(b.meta, ROOT, "l", &attr), 0);
    before = meta_client_round_trips(&b);
    assert_int_equal(mfs_meta_readlink(b.meta, attr.ino, text, sizeof text), 9);
    assert_memory_equal(text, "somewhere", 9);
    assert_int_equal(mfs_meta_readlink(b.meta, attr.ino, text, 4), 4);
    assert_int_equal(meta_client_round_trips(&b), before);
    assert_int_equal(mfs_meta_readlink(b.meta, ino, text, sizeof text), -EINVAL);
}

/* A link's text stays what it is when one of its names goes, wherever that was; by an unlink, or by
 * a rename over it. */
static void test_readlink_by_names(void **state)
{
    struct mfs_new new = {.mode = S_IFLNK | 0777, .target = "somewhere"};
    struct mfs_attr attr;
    char first[16], second[16], moved[16], text[32];
    uint64_t other;

    (void)state;
    for (uint32_t i = 0; i < 2 * META_REDIS_PARTS; i++) {
        meta_name_at(&a, ROOT, i % META_REDIS_PARTS, "l", first, sizeof first);
        meta_name_at(&a, ROOT, 1, "k", second, sizeof second);
        assert_int_equal(mfs_meta_mknod(a.meta, ROOT, first, &new, &attr), 0);
        assert_int_equal(mfs_meta_link(a.meta, attr.ino, ROOT, second, &attr), 0);
        if (i < META_REDIS_PARTS) {
            assert_int_equal(mfs_meta_unlink(b.meta, ROOT, first), 0);
        } else {
            meta_name_at(&a, ROOT, i / 2 % META_REDIS_PARTS, "m", moved, sizeof moved);
            assert_int_equal(meta_client_file(&b, ROOT, moved, &other), 0);
            assert_int_equal(mfs_meta_rename(b.meta, ROOT, moved, ROOT, first, 0), 0);
            assert_int_equal(mfs_meta_unlink(b.meta, ROOT, first), 0);
        }
        assert_int_equal(mfs_meta_readlink(b.meta, attr.ino, text, sizeof text), 9);
        assert_memory_equal(text, "somewhere", 9);
        assert_int_equal(mfs_meta_getattr(b.meta, attr.ino, &attr), 0);
        assert_int_equal(attr.nlink, 1);
        assert_int_equal(mfs_meta_unlink(b.meta, ROOT, second), 0);
    }
}

/* In a new directory a look-up is the beginning of a create, of which it does the first half; in
 * others it is not. */
static void test_first_names(void **state)
{
    struct mfs_new file = {.mode = S_IFREG | 0644};
    struct mfs_attr attr;
    uint64_t own, others;
    char name[16];

    (void)state;
    mfs_ticker_stop(&b.meta->closes_ticker); /* what is told would count */
    mfs_ticker_stop(&b.meta->parents_ticker);
    assert_int_equal(meta_client_mkdir(&b, ROOT, "own", &own), 0);
    assert_int_equal(meta_client_mkdir(&a, ROOT, "others", &others), 0);
    assert_int_equal(meta_client_ino(&b, ROOT, "others"), others);
    for (uint32_t p = 0; p < META_REDIS_PARTS; p++) {
        meta_name_at(&b, own, p, "f", name, sizeof name);
        assert_int_equal(mfs_meta_lookup(b.meta, own, name, &attr), -ENOENT);
        assert_trips(1, mfs_meta_mknod(b.meta, own, name, &file, &attr));
        meta_name_at(&b, others, p, "f", name, sizeof name);
        assert_int_equal(mfs_meta_lookup(b.meta, others, name, &attr), -ENOENT);
        assert_trips(2, mfs_meta_mknod(b.meta, others, name, &file, &attr));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        TEST(test_known_after), TEST(test_others_change),
        TEST(test_overtaken),   TEST(test_names),
        TEST(test_bounds),      TEST(test_getxattr),
        TEST(test_readlink),    TEST(test_readlink_by_names),
        TEST(test_first_names),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, meta_redis_start, meta_redis_stop);
}
