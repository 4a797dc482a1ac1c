/* Contents that come in parts: each is whole and its sender's, whatever others send.
 * ctest: single */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/kernel/parts.h"
#include "proto/put.h"

static const struct mfs_parts_of one = {.file = 1, .id = 7, .uid = 1000};

static void is(struct mfs_parts *p, const struct mfs_parts_of *of, const char *bytes)
{
    char *got = mfs_parts_take(p, of, strlen(bytes));

    assert_non_null(got);
    assert_memory_equal(got, bytes, strlen(bytes));
    memset(got, 'x', MFS_PUT_CONTENT); /* has room for all */
    free(got);
}

static void test_in_order(void **state)
{
    struct mfs_parts *p = mfs_parts_create();

    (void)state;
    assert_int_equal(mfs_parts_add(p, &one, 3, "def", 3), -EAGAIN);
    assert_int_equal(mfs_parts_add(p, &one, 0, "lost", 4), 0);
    assert_int_equal(mfs_parts_add(p, &one, 0, "abc", 3), 0);
    assert_int_equal(mfs_parts_add(p, &one, 4, "ef", 2), -EAGAIN);
    assert_int_equal(mfs_parts_add(p, &one, 2, "cd", 2), -EAGAIN);
    assert_int_equal(mfs_parts_add(p, &one, 3, "def", 3), 0);
    assert_null(mfs_parts_take(p, &one, 5));
    is(p, &one, "abcdef");
    assert_null(mfs_parts_take(p, &one, 6));
    mfs_parts_destroy(p);
}

static void test_of_one_sender(void **state)
{
    const struct mfs_parts_of others[] = {{.file = 2, .id = 7, .uid = 1000},
                                          {.file = 1, .id = 8, .uid = 1000},
                                          {.file = 1, .id = 7, .uid = 1001}};
    struct mfs_parts *p = mfs_parts_create();

    (void)state;
    assert_int_equal(mfs_parts_add(p, &one, 0, "secret", 6), 0);
    for (int i = 0; i < 3; i++) {
        assert_null(mfs_parts_take(p, &others[i], 6));
        assert_int_equal(mfs_parts_add(p, &others[i], 6, "more", 4), -EAGAIN);
        assert_int_equal(mfs_parts_add(p, &others[i], 0, "other", 5), 0);
    }
    is(p, &one, "secret");
    for (int i = 0; i < 3; i++)
        is(p, &others[i], "other");
    mfs_parts_destroy(p);
}

static void test_bounds(void **state)
{
    struct mfs_parts *p = mfs_parts_create();
    char *most = calloc(1, MFS_PUT_CONTENT);

    (void)state;
    assert_int_equal(mfs_parts_add(p, &one, 0, most, MFS_PUT_CONTENT), 0);
    assert_int_equal(mfs_parts_add(p, &one, MFS_PUT_CONTENT, "x", 1), -EINVAL);
    free(mfs_parts_take(p, &one, MFS_PUT_CONTENT));
    for (uint64_t i = 0; i < 1000; i++) { /* of so many files not all are kept, … */
        const struct mfs_parts_of of = {.file = 1, .id = i};

        assert_int_equal(mfs_parts_add(p, &of, 0, &i, sizeof i), 0);
    }
    for (uint64_t i = 0; i < 1000; i++) { /* … but those that came last */
        const struct mfs_parts_of of = {.file = 1, .id = i};
        char *got = mfs_parts_take(p, &of, sizeof i);

        assert_true(got ? !memcmp(got, &i, sizeof i) : i < 900);
        assert_false(got && i < 500);
        free(got);
    }
    free(most);
    mfs_parts_destroy(p);
}

static void test_closed(void **state)
{
    const struct mfs_parts_of other = {.file = 2, .id = 7, .uid = 1000};
    struct mfs_parts *p = mfs_parts_create();

    (void)state;
    assert_int_equal(mfs_parts_add(p, &one, 0, "gone", 4), 0);
    assert_int_equal(mfs_parts_add(p, &other, 0, "stays", 5), 0);
    mfs_parts_drop(p, one.file);
    assert_null(mfs_parts_take(p, &one, 4));
    assert_int_equal(mfs_parts_add(p, &one, 4, "more", 4), -EAGAIN);
    is(p, &other, "stays");
    mfs_parts_destroy(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_of_one_sender),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_closed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
