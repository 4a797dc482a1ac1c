/* Requests that may wait for other mounts are admitted so many at once, the deferred ones in the
 * order they came. ctest: single */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/clock.h"
#include "fuse/kernel/admission.h"
#include "fuse/kernel/killed.h"

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

/* What is not the letter is served, later; what has come only now is not even asked about. */
static bool is_letter(void *arg, const char *request, size_t len)
{
    assert_int_equal(len, 2);
    *(unsigned *)arg += 1;
    return *request == 'x';
}

static void test_what_is_gone_is_forgotten(void **state)
{
    struct mfs_admission *a = mfs_admission_create(1);
    unsigned asked = 0;

    (void)state;
    assert_non_null(a);
    assert_true(admit(a, "x"));
    assert_false(admit(a, "x"));
    assert_false(admit(a, "1"));
    assert_false(admit(a, "x"));
    assert_false(admit(a, "2"));
    mfs_admission_look(a, is_letter, &asked);
    assert_int_equal(asked, 0);
    mfs_clock_sleep(MFS_KILLED_LOOK);
    mfs_admission_look(a, is_letter, &asked);
    assert_int_equal(asked, 4);
    next_is(a, "1");
    next_is(a, "2");
    no_next(a);
    assert_true(admit(a, "3"));
    mfs_admission_destroy(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_so_many_at_once),
        cmocka_unit_test(test_deferred_ones_come_in_order),
        cmocka_unit_test(test_all_at_once),
        cmocka_unit_test(test_what_is_gone_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
