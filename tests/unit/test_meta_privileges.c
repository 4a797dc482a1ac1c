/* What the commands that change content or owner take away, each in one step and one round trip:
 * shown by a program that became root through a mode which its writer did not know
 * (tests/fs/two_mounts_privileges.c). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "meta_test.h"

#define CAPS "security.capability"

static uint64_t file;
static struct mfs_attr attr;

static void give(uint32_t mode)
{
    attr.mode = S_IFREG | mode;
    assert_int_equal(mfs_meta_setattr(a.meta, file, MFS_SET_MODE, &attr, NULL), 0);
    assert_int_equal(mfs_meta_setxattr(a.meta, file, CAPS, "caps", 4, 0, false, NULL), 0);
    assert_int_equal(mfs_meta_setxattr(a.meta, file, "user.a", "1", 1, 0, false, NULL), 0);
    attr = getattr(&b, file);
    assert_int_equal(attr.mode & 07777, mode);
    assert_int_equal(attr.flags & MFS_ATTR_SECCAPS, MFS_ATTR_SECCAPS);
}

/* --- changes ---------------------------------------------------------------------------------- */

static int commit_parts(uint32_t drop)
{
    struct mfs_part part = {0, 3, "abc"};
    struct mfs_commit c = {
        .end = 3, .mtime = mfs_clock_real(), .parts = &part, .nparts = 1, .drop = drop};

    return mfs_meta_commit(b.meta, file, &c, NULL, &attr);
}

static int commit_end(uint32_t drop)
{
    struct mfs_commit c = {.end = 1000, .mtime = mfs_clock_real(), .drop = drop};

    return mfs_meta_commit(b.meta, file, &c, NULL, &attr);
}

static int cut(uint32_t drop)
{
    return mfs_meta_truncate(b.meta, file, 1, UINT64_MAX >> 1, drop, NULL, &attr);
}

static int cut_and_left(uint32_t drop)
{
    return mfs_meta_truncate(b.meta, file, 1, MFS_TRIMMED_ENOUGH, drop, NULL, &attr);
}

static int open_cut(uint32_t drop)
{
    int rc = mfs_meta_open(
        b.meta, file, &(struct mfs_cut){.trimmed = UINT64_MAX >> 1, .drop = drop}, &attr, NULL);

    mfs_meta_close(b.meta, file, false);
    return rc;
}

static int append(uint32_t drop)
{
    uint64_t off, number;

    return mfs_meta_append(b.meta, file, "x", 1, drop, &off, &number, NULL, &attr);
}

static int append_beyond(uint32_t drop)
{
    struct mfs_range place;
    uint64_t off, number;
    int rc = mfs_meta_append(b.meta, file, NULL, STRIPE, drop, &off, &number, NULL, &attr);

    if (rc)
        return rc;
    place = (struct mfs_range){off, off + STRIPE};
    return mfs_meta_append_end(b.meta, file, number, true, &place, drop, NULL, &attr);
}

static int set(uint32_t drop)
{
    return mfs_meta_setattr(b.meta, file, drop | MFS_SET_MTIME, &attr, NULL);
}

static const struct {
    int (*make)(uint32_t drop);
    unsigned trips;
} changes[] = {{commit_parts, 1}, {commit_end, 1}, {cut, 1},           {cut_and_left, 1},
               {open_cut, 1},     {append, 1},     {append_beyond, 2}, {set, 1}};

static void is_left(uint32_t mode, bool caps)
{
    char buf[8];

    assert_int_equal(attr.mode & 07777, mode);
    attr = getattr(&a, file);
    assert_int_equal(attr.mode & 07777, mode);
    assert_int_equal(attr.flags & (MFS_ATTR_SECCAPS | MFS_ATTR_XATTR),
                     MFS_ATTR_XATTR | (caps ? MFS_ATTR_SECCAPS : 0));
    assert_int_equal(mfs_meta_getxattr(a.meta, file, CAPS, buf, sizeof buf), caps ? 4 : -ENODATA);
}

/* Set-group-ID of what the group may not execute is something else. */
static void test_changes(void **state)
{
    static const struct {
        uint32_t before, drop, after;
    } cases[] = {
        {06755, 0, 06755},           {06755, MFS_DROP_CAPS, 06755}, {06755, MFS_DROP_ALL, 0755},
        {04711, MFS_DROP_ALL, 0711}, {06700, MFS_DROP_ALL, 02700},  {01755, MFS_DROP_ALL, 01755}};

    (void)state;
    file = new_file(ROOT, "f");
    for (size_t c = 0; c < sizeof changes / sizeof *changes; c++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            give(cases[i].before);
            assert_trips(changes[c].trips, changes[c].make(cases[i].drop));
            is_left(cases[i].after, !(cases[i].drop & MFS_DROP_CAPS));
        }
}

/* No other attribute, no flag. */
static void test_only_attribute(void **state)
{
    (void)state;
    file = new_file(ROOT, "f");
    give(0755);
    assert_int_equal(mfs_meta_removexattr(a.meta, file, "user.a", NULL), 0);
    assert_int_equal(commit_parts(MFS_DROP_CAPS), 0);
    assert_false(getattr(&a, file).flags & MFS_ATTR_XATTR);
}

/* There is no moment at which the new owner has what the old one made run as its owner. */
static void test_new_owner(void **state)
{
    (void)state;
    file = new_file(ROOT, "f");
    for (uint32_t mask = MFS_SET_UID; mask <= MFS_SET_GID; mask *= 2) {
        give(06755);
        attr.uid = attr.gid = 7;
        assert_trips(1, mfs_meta_setattr(b.meta, file, mask, &attr, NULL));
        is_left(0755, false);
    }
}

static void test_directory(void **state)
{
    struct mfs_new new = {.mode = S_IFDIR | 06755};
    uint64_t ino;

    (void)state;
    assert_int_equal(mfs_meta_mknod(a.meta, ROOT, "d", &new, &attr), 0);
    ino = attr.ino;
    attr.uid = 7;
    assert_int_equal(mfs_meta_setattr(b.meta, ino, MFS_SET_UID | MFS_DROP_ALL, &attr, NULL), 0);
    assert_int_equal(getattr(&a, ino).mode & 07777, 06755);
}

/* Who gives privileges makes a version, so that no answer from before counts where the file is
 * open. */
static void test_version(void **state)
{
    uint64_t before;

    (void)state;
    file = new_file(ROOT, "f");
    give(02700); /* gives capabilities */
    before = getattr(&b, file).version;
    attr.mode = S_IFREG | 0755;
    assert_int_equal(mfs_meta_setattr(a.meta, file, MFS_SET_MODE, &attr, NULL), 0);
    assert_int_equal(getattr(&b, file).version, before);
    attr.mode = S_IFREG | 04755;
    assert_int_equal(mfs_meta_setattr(a.meta, file, MFS_SET_MODE, &attr, NULL), 0);
    assert_true(getattr(&b, file).version > before);
    before = getattr(&b, file).version;
    assert_int_equal(mfs_meta_setxattr(a.meta, file, CAPS, "caps", 4, 0, false, NULL), 0);
    assert_true(getattr(&b, file).version > before);
}

/* Who may do it goes by the owner and the group of that very moment. */
static void test_owned(void **state)
{
    const struct mfs_owned former = {.user = true, .uid = 1}, owner = {.user = true, .uid = 7};
    const struct mfs_owned former_group = {.user = true, .group = true, .uid = 7, .gid = 1};

    (void)state;
    file = new_file(ROOT, "f");
    attr.uid = attr.gid = 7;
    assert_int_equal(
        mfs_meta_setattr(a.meta, file, MFS_SET_UID | MFS_SET_GID | MFS_SET_MODE, &attr, NULL), 0);
    attr.mode = S_IFREG | 06777;
    assert_int_equal(mfs_meta_setattr(b.meta, file, MFS_SET_MODE, &attr, &former), -EPERM);
    assert_int_equal(mfs_meta_setattr(b.meta, file, MFS_SET_MODE, &attr, &former_group),
                     -ECANCELED);
    assert_int_equal(mfs_meta_setxattr(b.meta, file, "user.a", "1", 1, 0, false, &former), -EPERM);
    assert_int_equal(mfs_meta_removexattr(b.meta, file, "user.a", &former), -EPERM);
    assert_int_equal(getattr(&a, file).flags & MFS_ATTR_XATTR, 0);
    assert_int_not_equal(getattr(&a, file).mode & 07777, 06777);
    assert_int_equal(mfs_meta_setxattr(b.meta, file, "user.a", "1", 1, 0, false, &owner), 0);
    attr.mode = S_IFREG | 06777;
    assert_int_equal(mfs_meta_setattr(b.meta, file, MFS_SET_MODE, &attr, &owner), 0);
    assert_int_equal(getattr(&a, file).mode & 07777, 06777);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        TEST(test_changes),   TEST(test_only_attribute), TEST(test_new_owner),
        TEST(test_directory), TEST(test_version),        TEST(test_owned),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
