/* Requests that may wait for other mounts are admitted so many at once, the deferred ones in the
 * order they came. ctest: single */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "fuse/kernel/admission.h"

#define ROOM 64

static bool admit(struct mfs_admission *a, const char *request)
{
    return mfs_admission_admit(a, request, strlen(request) + 1);
}

static void next_is(struct mfs_admission *a, const char *request)
{
    char got[ROOM] = "";

    assert_int_equal(mfs_admission_next(a, got), strlen(request) + 1);
    assert_string_equal(got, request);
}

static void no_next(struct mfs_admission *a)
{
    char got[ROOM] = "untouched";

    assert_int_equal(mfs_admission_next(a, got), 0);
    assert_string_equal(got, "untouched");
}

static void test_so_many_at_once(void **state)
{
    struct mfs_admission *a = mfs_admission_create(2);

    (void)state;
    assert_non_null(a);
    assert_true(admit(a, "1"));
    assert_true(admit(a, "2"));
    no_next(a);
    assert_true(admit(a, "3"));
    assert_false(admit(a, "4"));
    assert_false(admit(a, "5, which is longer"));
    mfs_admission_destroy(a);
}

static void test_deferred_ones_come_in_order(void **state)
{
    struct mfs_admission *a = mfs_admission_create(1);

    (void)state;
    assert_non_null(a);
    assert_true(admit(a, "1"));
    assert_false(admit(a, "2"));
    assert_false(admit(a, "3, which is longer"));
    next_is(a, "2");
    assert_false(admit(a, "4")); /* 2 was admitted in the stead of 1 */
    next_is(a, "3, which is longer");
    next_is(a, "4");
    no_next(a);
    assert_true(admit(a, "5"));
    no_next(a);
    mfs_admission_destroy(a);
}

static void test_all_at_once(void **state)
{
    struct mfs_admission *a = mfs_admission_create(UINT32_MAX);

    (void)state;
    assert_non_null(a);
    for (unsigned i = 0; i < 1000; i++)
        assert_true(admit(a, "1"));
    for (unsigned i = 0; i < 1000; i++)
        no_next(a);
    mfs_admission_destroy(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_so_many_at_once),
        cmocka_unit_test(test_deferred_ones_come_in_order),
        cmocka_unit_test(test_all_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
