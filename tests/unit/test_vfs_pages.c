/* When the kernel's pages of a file may stay, and when not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "vfs/pages.h"

static int setup(void **state)
{
    *state = mfs_pages_create();
    return *state == NULL;
}

static int teardown(void **state)
{
    mfs_pages_destroy(*state);
    return 0;
}

static void stays_while_unchanged(void **state)
{
    struct mfs_pages_ticket t;

    assert_false(mfs_pages_open(*state, 7, 1, &t));
    mfs_pages_adopt(*state, 7, &t);
    assert_true(mfs_pages_known(*state, 7));
    assert_true(mfs_pages_open(*state, 7, 1, &t));
    assert_false(mfs_pages_open(*state, 7, 2, &t));
}

/* Before the new handle has been used nobody knows that the kernel has dropped the old pages. */
static void not_before_adoption(void **state)
{
    struct mfs_pages_ticket first, second;

    assert_false(mfs_pages_open(*state, 7, 1, &first));
    assert_false(mfs_pages_open(*state, 7, 1, &second));
    mfs_pages_adopt(*state, 7, &first); /* the second open has started anew */
    assert_false(mfs_pages_known(*state, 7));
    mfs_pages_adopt(*state, 7, &second);
    assert_true(mfs_pages_open(*state, 7, 1, &first));
}

static void own_changes_carry(void **state)
{
    struct mfs_pages_ticket t;

    assert_false(mfs_pages_open(*state, 7, 1, &t));
    mfs_pages_adopt(*state, 7, &t);
    mfs_pages_carry(*state, 7, 1, 2);
    assert_true(mfs_pages_open(*state, 7, 2, &t));
    mfs_pages_carry(*state, 7, 3, 4); /* somebody else made 3 */
    assert_false(mfs_pages_open(*state, 7, 4, &t));
}

static void nothing_stays_when_versions_mean_nothing(void **state)
{
    struct mfs_pages_ticket early, t;

    assert_false(mfs_pages_open(*state, 7, 1, &t));
    mfs_pages_adopt(*state, 7, &t);
    assert_false(mfs_pages_open(*state, 8, 1, &early));
    mfs_pages_forget_all(*state);
    mfs_pages_adopt(*state, 8, &early);
    assert_false(mfs_pages_known(*state, 7));
    assert_false(mfs_pages_known(*state, 8));
    assert_false(mfs_pages_open(*state, 7, 1, &t));
}

static void a_change_before_adoption(void **state)
{
    struct mfs_pages_ticket t;

    assert_false(mfs_pages_open(*state, 7, 1, &t));
    mfs_pages_carry(*state, 7, 1, 2);
    mfs_pages_adopt(*state, 7, &t);
    assert_false(mfs_pages_known(*state, 7));
    assert_false(mfs_pages_open(*state, 7, 2, &t));
    mfs_pages_forget(*state, 7);
    mfs_pages_adopt(*state, 7, &t);
    assert_false(mfs_pages_known(*state, 7));
}

/* More files than slots: what is lost is unknown, never wrong. */
static void crowded(void **state)
{
    struct mfs_pages_ticket t;
    unsigned kept = 0;

    for (uint64_t ino = 1; ino <= 50000; ino++) {
        assert_false(mfs_pages_open(*state, ino, ino, &t));
        mfs_pages_adopt(*state, ino, &t);
    }
    for (uint64_t ino = 1; ino <= 50000; ino++) {
        kept += mfs_pages_known(*state, ino);
        mfs_pages_carry(*state, ino, ino + 1, ino + 2);
        assert_false(mfs_pages_known(*state, ino));
    }
    assert_in_range(kept, 1000, 16384);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(stays_while_unchanged, setup, teardown),
        cmocka_unit_test_setup_teardown(not_before_adoption, setup, teardown),
        cmocka_unit_test_setup_teardown(own_changes_carry, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_stays_when_versions_mean_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_change_before_adoption, setup, teardown),
        cmocka_unit_test_setup_teardown(crowded, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
