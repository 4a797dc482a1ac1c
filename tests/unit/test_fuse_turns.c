/* Requests that may wait for other mounts get their turn, so many at once, in the order they came.
 * ctest: single */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "fuse/kernel/turns.h"

#define ROOM 64

static bool take(struct mfs_turns *t, const char *request)
{
    return mfs_turns_take(t, request, strlen(request) + 1);
}

static void next_is(struct mfs_turns *t, const char *request)
{
    char got[ROOM] = "";

    assert_int_equal(mfs_turns_next(t, got), strlen(request) + 1);
    assert_string_equal(got, request);
}

static void no_next(struct mfs_turns *t)
{
    char got[ROOM] = "untouched";

    assert_int_equal(mfs_turns_next(t, got), 0);
    assert_string_equal(got, "untouched");
}

static void test_so_many_at_once(void **state)
{
    struct mfs_turns *t = mfs_turns_create(2);

    (void)state;
    assert_non_null(t);
    assert_true(take(t, "1"));
    assert_true(take(t, "2"));
    no_next(t);
    assert_true(take(t, "3"));
    assert_false(take(t, "4"));
    assert_false(take(t, "5, which is longer"));
    mfs_turns_destroy(t);
}

static void test_kept_ones_come_in_order(void **state)
{
    struct mfs_turns *t = mfs_turns_create(1);

    (void)state;
    assert_non_null(t);
    assert_true(take(t, "1"));
    assert_false(take(t, "2"));
    assert_false(take(t, "3, which is longer"));
    next_is(t, "2");
    assert_false(take(t, "4")); /* 2 has the turn that 1 had */
    next_is(t, "3, which is longer");
    next_is(t, "4");
    no_next(t);
    assert_true(take(t, "5"));
    no_next(t);
    mfs_turns_destroy(t);
}

static void test_all_at_once(void **state)
{
    struct mfs_turns *t = mfs_turns_create(UINT32_MAX);

    (void)state;
    assert_non_null(t);
    for (unsigned i = 0; i < 1000; i++)
        assert_true(take(t, "1"));
    for (unsigned i = 0; i < 1000; i++)
        no_next(t);
    mfs_turns_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_so_many_at_once),
        cmocka_unit_test(test_kept_ones_come_in_order),
        cmocka_unit_test(test_all_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
