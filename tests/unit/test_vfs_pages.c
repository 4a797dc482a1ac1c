/* When the kernel's pages of a file may stay, and when not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "vfs/vnode/file.h"
#include "vfs/content/fills.h"
#include "vfs/vnode/pages.h"

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

/* The open and the own change were answered in another order than they took effect. */
static void an_own_change_passes_an_open(void **state)
{
    struct mfs_pages_ticket t;

    assert_false(mfs_pages_open(*state, 7, 1, &t));
    assert_false(mfs_pages_behind(*state, 7, 2));
    mfs_pages_adopt(*state, 7, &t);
    assert_true(mfs_pages_behind(*state, 7, 2));
    mfs_pages_carry(*state, 7, 1, 2);
    assert_false(mfs_pages_behind(*state, 7, 2));
    assert_true(mfs_pages_open(*state, 7, 1, &t));
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
    assert_false(mfs_pages_known(*state, 7));
    mfs_pages_adopt(*state, 7, &t);
    assert_true(mfs_pages_open(*state, 7, 2, &t));
    assert_false(mfs_pages_open(*state, 7, 3, &t));
    mfs_pages_carry(*state, 7, 4, 5); /* somebody else made 4 */
    mfs_pages_adopt(*state, 7, &t);
    assert_false(mfs_pages_known(*state, 7));
    assert_false(mfs_pages_open(*state, 7, 5, &t));
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

/* --- beside writes that bypass them ----------------------------------------------------------- */

static struct mfs_vnode *file_new(void)
{
    static struct mfs_vnode v;

    v = (struct mfs_vnode){0};
    pthread_mutex_init(&v.lock, NULL);
    mfs_ranges_init(&v.fills.ranges);
    return &v;
}

static void a_write_drops_what_was_read_once(void **state)
{
    struct mfs_vnode *v = file_new();
    struct mfs_range drop;

    (void)state;
    assert_false(mfs_fills_direct_written(v, 0, 1 << 20, &drop));
    mfs_fills_read(v, 8192, 4096);
    assert_false(mfs_fills_direct_written(v, 0, 8192, &drop));
    assert_false(mfs_fills_direct_written(v, 12288, 1, &drop));
    assert_true(mfs_fills_direct_written(v, 12287, 1, &drop));
    assert_int_equal(drop.lo, 8192);
    assert_int_equal(drop.hi, 12288);
    mfs_fills_direct_dropped(v);
    assert_false(mfs_fills_direct_written(v, 8192, 4096, &drop));
}

/* The pages that the first one wants dropped may be older than the second one, and still there. */
static void a_write_waits_for_what_is_being_dropped(void **state)
{
    struct mfs_vnode *v = file_new();
    struct mfs_range drop;

    (void)state;
    mfs_fills_read(v, 0, 4096);
    assert_true(mfs_fills_direct_written(v, 0, 4096, &drop));
    assert_true(mfs_fills_direct_written(v, 100, 5, &drop));
    mfs_fills_direct_dropped(v);
    mfs_fills_direct_dropped(v);
    assert_false(mfs_fills_direct_written(v, 100, 5, &drop));
}

static void a_moved_append_drops_all(void **state)
{
    struct mfs_vnode *v = file_new();
    struct mfs_range drop;

    (void)state;
    mfs_fills_append_moved(v);
    assert_false(mfs_fills_direct_written(v, 50000, 10, &drop));
    mfs_fills_read(v, 0, 4096);
    mfs_fills_append_moved(v);
    assert_true(mfs_fills_direct_written(v, 50000, 10, &drop));
    assert_int_equal(drop.lo, 0);
    assert_int_equal(drop.hi, INT64_MAX);
    mfs_fills_direct_dropped(v);
}

static void many_places_are_taken_for_all(void **state)
{
    struct mfs_vnode *v = file_new();
    struct mfs_range drop;

    (void)state;
    for (unsigned i = 0; i < 1000; i++)
        mfs_fills_read(v, 8192 * i, 4096);
    assert_true(v->fills.ranges.n <= 64);
    for (unsigned i = 0; i < 1000; i++) {
        assert_true(mfs_fills_direct_written(v, 8192 * i, 1, &drop));
        mfs_fills_direct_dropped(v);
    }
    mfs_ranges_fini(&v->fills.ranges);
}

/* --- beside writes through them --------------------------------------------------------------- */

static void a_write_that_was_late(void **state)
{
    struct mfs_vnode *v = file_new();
    struct mfs_file first, second;
    int64_t now = mfs_clock_mono();
    struct mfs_range drop;

    (void)state;
    mfs_fills_read(v, 0, 8192);
    assert_false(mfs_fills_cached_written(v, &first, 0, 100, now, &drop)); /* nothing was dropped */
    mfs_fills_invalidated(v, &first);
    assert_false(
        mfs_fills_cached_written(v, &first, 0, 100, now, &drop)); /* not when it could write */
    assert_false(mfs_fills_cached_written(v, &second, 0, 100, now + 60 * MFS_SEC, &drop));
    assert_true(mfs_fills_cached_written(v, &second, 0, 100, now, &drop));
    assert_int_equal(drop.hi, 4096);
    assert_false(mfs_fills_cached_written(v, &second, 0, 100, now, &drop));
    mfs_fills_invalidated(v, &second);
    assert_true(mfs_fills_cached_written(v, &second, 4096, 100, now, &drop)); /* not by it alone */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_drops_what_was_read_once),
        cmocka_unit_test(a_write_waits_for_what_is_being_dropped),
        cmocka_unit_test(a_moved_append_drops_all),
        cmocka_unit_test(many_places_are_taken_for_all),
        cmocka_unit_test(a_write_that_was_late),
        cmocka_unit_test_setup_teardown(stays_while_unchanged, setup, teardown),
        cmocka_unit_test_setup_teardown(not_before_adoption, setup, teardown),
        cmocka_unit_test_setup_teardown(own_changes_carry, setup, teardown),
        cmocka_unit_test_setup_teardown(an_own_change_passes_an_open, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_stays_when_versions_mean_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_change_before_adoption, setup, teardown),
        cmocka_unit_test_setup_teardown(crowded, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
