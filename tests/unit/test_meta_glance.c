/* ctest: threaded
 *
 * Many small files read at once by name, without leases: what is told, what is left to a look-up,
 * and that the answers are from after the call began. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "meta_test.h"

#define FILES 60
#define NAMES (FILES + 3)
#define LARGE 60000 /* bytes: a partition's answer has room for no more than eight */

static char text[NAMES][16];
static struct mfs_name names[NAMES];
static uint64_t dir, inos[FILES];
static struct mfs_glances *glances;

struct told {
    bool is;
    int rc;
    struct mfs_attr attr;
    size_t n;
    char first;
};
static struct told told[NAMES];

static void tell(void *arg, size_t i, int rc, const struct mfs_attr *attr, const void *content,
                 size_t n)
{
    assert_ptr_equal(arg, told);
    assert_true(i < NAMES && !told[i].is);
    told[i] = (struct told){.is = true, .rc = rc, .n = n};
    if (!rc)
        told[i].attr = *attr;
    if (n)
        memcpy(&told[i].first, content, 1);
}

static size_t glance(size_t n)
{
    size_t count = 0;

    memset(told, 0, sizeof told);
    mfs_meta_glance(glances, names, n, tell, told);
    for (size_t i = 0; i < n; i++)
        count += told[i].is;
    return count;
}

static void write_file(int i, size_t len)
{
    static char bytes[LARGE];
    struct mfs_part part = {.off = 0, .len = (uint32_t)len, .p = bytes};
    struct mfs_commit change = {.end = len, .mtime = mfs_clock_real(), .parts = &part, .nparts = 1};
    struct mfs_attr attr = {0};

    memset(bytes, 'a' + i % 26, len);
    assert_int_equal(mfs_meta_commit(a.meta, inos[i], &change, NULL, &attr), 0);
    mfs_meta_settle(a.meta, inos[i]);
}

/* Files of that many bytes, a directory, a name of nothing and no name at all. */
static void make(size_t len)
{
    dir = new_dir(ROOT, "d");
    for (int i = 0; i < NAMES; i++) {
        snprintf(text[i], sizeof text[i], "f%d", i);
        names[i] = (struct mfs_name){dir, text[i]};
        if (i >= FILES)
            continue;
        inos[i] = new_file(dir, text[i]);
        write_file(i, len);
    }
    new_dir(dir, text[FILES]);
    names[NAMES - 1].name = NULL;
    settle();
    glances = mfs_glances_create(b.meta);
    assert_non_null(glances);
}

static int end(void **state)
{
    mfs_glances_destroy(glances);
    return teardown(state);
}

static void check_files(size_t len)
{
    for (int i = 0; i < FILES; i++) {
        assert_true(told[i].is);
        assert_int_equal(told[i].rc, 0);
        assert_int_equal(told[i].attr.ino, inos[i]);
        assert_int_equal(told[i].attr.size, len);
        assert_int_equal(told[i].n, len);
        assert_int_equal(told[i].first, 'a' + i % 26);
    }
}

static void test_kinds(void **state)
{
    (void)state;
    make(100);
    assert_int_equal(glance(NAMES), FILES + 1);
    check_files(100);
    assert_false(told[FILES].is); /* a directory takes a look-up */
    assert_true(told[FILES + 1].is);
    assert_int_equal(told[FILES + 1].rc, -ENOENT);
    assert_false(told[NAMES - 1].is);
}

/* The second time they are worth a lease. */
static void test_again(void **state)
{
    (void)state;
    make(100);
    assert_int_equal(glance(FILES), FILES);
    assert_int_equal(glance(FILES), 0);
}

/* Names that were never asked for are not taken for others that were. */
static void test_many(void **state)
{
    static char other[NAMES][16];
    struct mfs_name many[NAMES];
    size_t left = 0;

    (void)state;
    make(100);
    for (int round = 0; round < 400; round++) {
        for (int i = 0; i < NAMES; i++) {
            snprintf(other[i], sizeof other[i], "o%d-%d", round, i);
            many[i] = (struct mfs_name){dir, other[i]};
        }
        memset(told, 0, sizeof told);
        mfs_meta_glance(glances, many, NAMES, tell, told);
        for (int i = 0; i < NAMES; i++)
            left += !told[i].is;
    }
    assert_in_range(left, 0, 10);
    assert_in_range(glance(FILES), FILES - 1, FILES);
}

/* Partitions tell of some, and are asked for the others again. */
static void test_no_room(void **state)
{
    (void)state;
    make(LARGE);
    assert_int_equal(glance(NAMES), FILES + 1);
    check_files(LARGE);
}

/* What the client knew of a file does not survive that it was seen to be another. */
static void test_newer(void **state)
{
    struct mfs_attr attr;

    (void)state;
    make(100);
    assert_int_equal(mfs_meta_lookup(b.meta, dir, text[0], &attr), 0);
    write_file(0, 200);
    assert_true(glance(FILES) >= FILES - 1);
    assert_int_equal(mfs_meta_lookup(b.meta, dir, text[0], &attr), 0);
    assert_int_equal(attr.size, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_kinds, setup, end),
        cmocka_unit_test_setup_teardown(test_again, setup, end),
        cmocka_unit_test_setup_teardown(test_many, setup, end),
        cmocka_unit_test_setup_teardown(test_no_room, setup, end),
        cmocka_unit_test_setup_teardown(test_newer, setup, end),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
