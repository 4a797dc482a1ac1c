/* Of the content of files, what is metadata: sizes, what is stored where, what may be removed.
 * ctest: timeout=120 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "meta_test.h"

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
    assert_int_equal(attr.alloc, 4096);
    commit(&a, f, 7, "world", &attr);
    assert_int_equal(attr.size, 12);
    assert_int_equal(attr.data_end, 12);
    assert_int_equal(mfs_meta_open(b.meta, f, NULL, &attr, &head), 0);
    assert_int_equal(head.len, 12);
    assert_memory_equal(buf, "hello\0\0world", 12);
    assert_int_equal(mfs_meta_truncate(b.meta, f, 4, UINT64_MAX >> 1, 0, &old, &attr), 0);
    assert_int_equal(attr.size, 4);
    assert_int_equal(attr.alloc, 4096);
    assert_int_equal(attr.data_end, 4);
    assert_int_equal(mfs_meta_truncate(b.meta, f, 10, UINT64_MAX >> 1, 0, &old, &attr), 0);
    assert_int_equal(attr.size, 10);
    assert_int_equal(attr.data_end, 4);
    assert_int_equal(mfs_meta_append(a.meta, f, "!!", 2, 0, &off, &number, &old, &attr), 0);
    assert_int_equal(number, 0);
    assert_int_equal(off, 10);
    head.len = -1;
    assert_int_equal(mfs_meta_open(b.meta, f, NULL, &attr, &head), 0);
    assert_int_equal(head.len, 12);
    assert_memory_equal(buf, "hell\0\0\0\0\0\0!!", 12);
    assert_int_equal(mfs_meta_truncate(b.meta, f, STRIPE - 1, UINT64_MAX >> 1, 0, &old, &attr), 0);
    assert_int_equal(mfs_meta_append(a.meta, f, "!!", 2, 0, &off, &number, &old, &attr), 0);
    assert_true(number > 0);
    assert_int_equal(off, STRIPE - 1);
    assert_int_equal(getattr(&b, f).size, STRIPE - 1);
    assert_int_equal(mfs_meta_append_end(a.meta, f, number + 1, true, &place, 0, &old, &attr),
                     -ECANCELED);
    assert_int_equal(mfs_meta_append_end(a.meta, f, number, true, &place, 0, &old, &attr), 0);
    assert_int_equal(getattr(&b, f).size, STRIPE + 1);
    assert_int_equal(meta_client_keys(&a, "P*"), 0);
    assert_int_equal(
        mfs_meta_open(b.meta, f, &(struct mfs_cut){.trimmed = attr.version}, &attr, NULL), 0);
    assert_int_equal(attr.size, 0);
    assert_int_equal(attr.alloc, 0);
    assert_int_equal(meta_client_keys(&a, "S*"), 0);
}

/* Three stripes of it, by another client. */
static struct mfs_attr written(uint64_t ino)
{
    struct mfs_range stored = {0, 3 * STRIPE};
    struct mfs_commit c = {
        .end = 3 * STRIPE, .stored = &stored, .nstored = 1, .mtime = mfs_clock_real()};
    struct mfs_attr attr;
    uint64_t old;

    assert_int_equal(mfs_meta_commit(b.meta, ino, &c, &old, &attr), 0);
    return attr;
}

/* Who cuts a file must have deleted the stripes that another client has written meanwhile, too: be
 * they new, or some that he may have deleted before. */
static void test_truncate_written(void **state)
{
    uint64_t f = new_file(ROOT, "f"), old, trimmed = getattr(&a, f).version;
    struct mfs_attr attr;

    (void)state;
    written(f);
    assert_int_equal(mfs_meta_truncate(a.meta, f, 0, trimmed, 0, &old, &attr), -ECANCELED);
    assert_int_equal(mfs_meta_open(a.meta, f, &(struct mfs_cut){.trimmed = trimmed}, &attr, NULL),
                     -ECANCELED);
    assert_int_equal(getattr(&b, f).size, 3 * STRIPE);
    assert_int_equal(meta_client_keys(&a, "O*"), 0);
    assert_int_equal(mfs_meta_truncate(a.meta, f, 4 * STRIPE, 0, 0, &old, &attr), 0);
    trimmed = attr.version;
    assert_int_equal(written(f).data_end, 3 * STRIPE);
    assert_int_equal(mfs_meta_truncate(a.meta, f, STRIPE, trimmed, 0, &old, &attr), -ECANCELED);
    assert_int_equal(mfs_meta_open(a.meta, f, &(struct mfs_cut){.trimmed = trimmed}, &attr, NULL),
                     -ECANCELED);
    trimmed = getattr(&a, f).version;
    assert_int_equal(mfs_meta_truncate(a.meta, f, STRIPE, trimmed, 0, &old, &attr), 0);
    assert_int_equal(attr.data_end, STRIPE);
    assert_int_equal(attr.flags & MFS_ATTR_VOIDS, 0);
    trimmed = 0;
    assert_int_equal(mfs_meta_open(a.meta, f, &(struct mfs_cut){.trimmed = trimmed}, &attr, NULL),
                     0);
    assert_int_equal(attr.size, 0);
}

static void check_void(const struct mfs_attr *attr, uint64_t size, uint64_t data_end)
{
    struct mfs_ranges voids;

    assert_int_equal(attr->size, size);
    assert_int_equal(attr->data_end, data_end);
    assert_true(attr->flags & MFS_ATTR_VOIDS);
    mfs_ranges_init(&voids);
    assert_int_equal(mfs_meta_voids(b.meta, attr->ino, &voids), 0);
    assert_int_equal(voids.n, 1);
    assert_int_equal(voids.v[0].lo, size);
    assert_int_equal(voids.v[0].hi, data_end);
    mfs_ranges_fini(&voids);
}

/* Or he says that it is enough: then what may be left is void, and who removes the file learns of
 * it. */
static void test_truncate_left(void **state)
{
    uint64_t f = new_file(ROOT, "f"), old, enough = MFS_TRIMMED_ENOUGH;
    struct mfs_attr attr;

    (void)state;
    written(f);
    assert_int_equal(mfs_meta_truncate(a.meta, f, STRIPE + 1, enough, 0, &old, &attr), 0);
    check_void(&attr, STRIPE + 1, 3 * STRIPE);
    assert_int_equal(mfs_meta_open(a.meta, f, &(struct mfs_cut){.trimmed = enough}, &attr, NULL),
                     0);
    check_void(&attr, 0, 3 * STRIPE);
    assert_int_equal(mfs_meta_truncate(a.meta, f, 0, attr.version, 0, &old, &attr), 0);
    assert_int_equal(attr.data_end, 0);
}

/* A file that may have more stripes is handed over to whoever removes stripes. */
static void test_reap(void **state)
{
    uint64_t f = new_file(ROOT, "f"), old;
    struct mfs_range stored = {STRIPE, 3 * STRIPE};
    struct mfs_commit c = {
        .end = 3 * STRIPE, .stored = &stored, .nstored = 1, .mtime = mfs_clock_real()};
    struct mfs_attr attr;

    (void)state;
    assert_int_equal(mfs_meta_commit(a.meta, f, &c, &old, &attr), 0);
    assert_int_equal(attr.size, 3 * STRIPE);
    assert_int_equal(mfs_meta_unlink(b.meta, ROOT, "f"), 0);
    assert_int_equal(b.reaped, 1);
    mfs_store_drain(b.store, MFS_SEC);
    assert_int_equal(meta_client_keys(&a, "#reap"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        TEST(test_content),
        TEST(test_truncate_written),
        TEST(test_truncate_left),
        TEST(test_reap),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
