/* Which attributes the kernel may have, and which answers it may not have taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fuse/kernel/recalls.h"
#include "meta/meta.h"

static int setup(void **state)
{
    *state = mfs_recalls_create();
    return *state == NULL;
}

static int teardown(void **state)
{
    mfs_recalls_destroy(*state);
    return 0;
}

static void nothing_is_shown_at_first(void **state)
{
    assert_false(mfs_recalls_any(*state, 7));
    assert_false(mfs_recalls_untaken(*state, 7));
}

static void a_known_inode_is_recalled_and_not_waited_for(void **state)
{
    mfs_recalls_show(*state, 7);
    assert_true(mfs_recalls_any(*state, 7));
    assert_false(mfs_recalls_untaken(*state, 7));
}

static void the_next_request_proves_it(void **state)
{
    assert_true(mfs_recalls_show_new(*state, 100, 7));
    assert_true(mfs_recalls_untaken(*state, 7)); /* not even sent */
    mfs_recalls_sent(*state, 100, 7);
    assert_true(mfs_recalls_untaken(*state, 7));
    mfs_recalls_taken(*state, 100);
    assert_false(mfs_recalls_untaken(*state, 7));
    assert_true(mfs_recalls_any(*state, 7));
}

/* Threads share places. */
static void what_is_not_taken_keeps_its_place(void **state)
{
    pid_t other = 0;

    assert_true(mfs_recalls_show_new(*state, 1, 7));
    for (pid_t t = 2; t < 100000 && other == 0; t++)
        if (!mfs_recalls_show_new(*state, t, 8))
            other = t;
    assert_int_not_equal(other, 0);
    assert_true(mfs_recalls_untaken(*state, 7));
    mfs_recalls_sent(*state, 1, 7);
    assert_false(mfs_recalls_show_new(*state, other, 8));
    mfs_clock_sleep(MFS_RECALLS_TAKEN + MFS_MSEC); /* it is taken for granted by then */
    assert_false(mfs_recalls_untaken(*state, 7));
    assert_true(mfs_recalls_show_new(*state, other, 8));
}

/* Those have all the same number. */
static void threads_of_another_name_space_prove_nothing(void **state)
{
    assert_true(mfs_recalls_show_new(*state, 0, 7));
    mfs_recalls_sent(*state, 0, 7);
    mfs_recalls_taken(*state, 0);
    assert_false(mfs_recalls_show_new(*state, 0, 7));
    assert_true(mfs_recalls_show_new(*state, 0, 8));
    assert_true(mfs_recalls_untaken(*state, 7));
}

static void it_is_over_in_the_end(void **state)
{
    mfs_recalls_show(*state, 7);
    mfs_clock_sleep(MFS_RECALLS_TAKEN + 2 * MFS_META_SHOWN);
    assert_false(mfs_recalls_any(*state, 7));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        TEST(nothing_is_shown_at_first),
        TEST(a_known_inode_is_recalled_and_not_waited_for),
        TEST(the_next_request_proves_it),
        TEST(what_is_not_taken_keeps_its_place),
        TEST(threads_of_another_name_space_prove_nothing),
        TEST(it_is_over_in_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
