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

static int64_t now(void)
{
    return mfs_clock_mono();
}

static void nothing_is_shown_at_first(void **state)
{
    assert_false(mfs_recalls_any(*state, 7));
    assert_int_equal(mfs_recalls_untaken(*state, 7, now()), MFS_RECALLS_NONE);
    assert_false(mfs_recalls_take_acl(*state, 7));
}

static void a_known_inode_is_recalled_and_not_waited_for(void **state)
{
    mfs_recalls_show(*state, 7);
    assert_true(mfs_recalls_any(*state, 7));
    assert_int_equal(mfs_recalls_untaken(*state, 7, now()), MFS_RECALLS_NONE);
    mfs_recalls_shown(*state, 7);
    assert_true(mfs_recalls_any(*state, 7));
}

static void the_next_request_proves_it(void **state)
{
    assert_true(mfs_recalls_show_new(*state, 100, 7, false));
    assert_int_equal(mfs_recalls_untaken(*state, 7, now()), MFS_RECALLS_OF_UNKNOWN);
    mfs_recalls_shown_new(*state, 100, 7);
    assert_int_equal(mfs_recalls_untaken(*state, 7, now()), MFS_RECALLS_OF_UNKNOWN);
    mfs_recalls_taken(*state, 100);
    assert_int_equal(mfs_recalls_untaken(*state, 7, now()), MFS_RECALLS_NONE);
    assert_true(mfs_recalls_any(*state, 7));
}

static void that_of_a_create_counts_in_any_case(void **state)
{
    assert_true(mfs_recalls_show_new(*state, 100, 7, true));
    assert_true(mfs_recalls_show_new(*state, 101, 7, false));
    assert_int_equal(mfs_recalls_untaken(*state, 7, now()), MFS_RECALLS_OF_ANY_CASE);
    mfs_recalls_taken(*state, 100);
    assert_int_equal(mfs_recalls_untaken(*state, 7, now()), MFS_RECALLS_OF_UNKNOWN);
}

static void answers_from_after_a_change_do_not_count(void **state)
{
    int64_t changed = now();

    mfs_clock_sleep(1000);
    assert_true(mfs_recalls_show_new(*state, 100, 7, true));
    assert_int_equal(mfs_recalls_untaken(*state, 7, changed), MFS_RECALLS_NONE);
}

/* Threads share places. */
static void what_is_not_taken_keeps_its_place(void **state)
{
    pid_t other = 0;

    assert_true(mfs_recalls_show_new(*state, 1, 7, false));
    for (pid_t t = 2; t < 100000 && other == 0; t++)
        if (!mfs_recalls_show_new(*state, t, 8, false))
            other = t;
    assert_int_not_equal(other, 0);
    mfs_recalls_shown_new(*state, 1, 7);
    assert_false(mfs_recalls_show_new(*state, other, 8, false));
    mfs_clock_sleep(MFS_RECALLS_TAKEN + MFS_MSEC); /* it is taken for granted by then */
    assert_int_equal(mfs_recalls_untaken(*state, 7, now()), MFS_RECALLS_NONE);
    assert_true(mfs_recalls_show_new(*state, other, 8, false));
}

/* Those have all the same number. */
static void threads_of_another_name_space_prove_nothing(void **state)
{
    assert_true(mfs_recalls_show_new(*state, 0, 7, false));
    mfs_recalls_shown_new(*state, 0, 7);
    mfs_recalls_taken(*state, 0);
    assert_false(mfs_recalls_show_new(*state, 0, 7, false));
    assert_true(mfs_recalls_show_new(*state, 0, 8, false));
    assert_int_equal(mfs_recalls_untaken(*state, 7, now()), MFS_RECALLS_OF_UNKNOWN);
}

static void it_is_over_when_it_was_sent_long_ago(void **state)
{
    mfs_recalls_show(*state, 7);
    mfs_clock_sleep(MFS_RECALLS_TAKEN + 2 * MFS_META_SHOWN);
    assert_true(mfs_recalls_any(*state, 7)); /* its sender was stopped */
    mfs_recalls_shown(*state, 7);
    mfs_clock_sleep(MFS_RECALLS_TAKEN + 2 * MFS_META_SHOWN);
    assert_false(mfs_recalls_any(*state, 7));
}

static void an_acl_is_forgotten_once(void **state)
{
    mfs_recalls_acl(*state, 7);
    assert_true(mfs_recalls_take_acl(*state, 7));
    assert_false(mfs_recalls_take_acl(*state, 7));
}

/* Inodes share places, too. */
static void the_acl_of_another_inode_stays(void **state)
{
    uint64_t other = 8;

    mfs_recalls_show(*state, 7);
    mfs_recalls_shown(*state, 7);
    while (!mfs_recalls_any(*state, other))
        other++;
    mfs_recalls_acl(*state, 7);
    assert_false(mfs_recalls_take_acl(*state, other));
    mfs_recalls_acl(*state, other);
    assert_true(mfs_recalls_take_acl(*state, other));
    assert_true(mfs_recalls_take_acl(*state, 7));
}

static void what_is_not_shown_is_not_recalled(void **state)
{
    mfs_recalls_show(*state, 7);
    mfs_recalls_not_shown(*state, 7);
    assert_true(mfs_recalls_show_new(*state, 100, 7, true));
    mfs_recalls_not_shown_new(*state, 100, 7);
    assert_false(mfs_recalls_any(*state, 7));
    assert_int_equal(mfs_recalls_untaken(*state, 7, now()), MFS_RECALLS_NONE);
}

/* It could not be proved that the answer is taken. */
static void nothing_is_created_by_threads_of_another_name_space(void **state)
{
    assert_false(mfs_recalls_show_new(*state, 0, 7, true));
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
        TEST(that_of_a_create_counts_in_any_case),
        TEST(answers_from_after_a_change_do_not_count),
        TEST(it_is_over_when_it_was_sent_long_ago),
        TEST(an_acl_is_forgotten_once),
        TEST(the_acl_of_another_inode_stays),
        TEST(what_is_not_shown_is_not_recalled),
        TEST(nothing_is_created_by_threads_of_another_name_space),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
