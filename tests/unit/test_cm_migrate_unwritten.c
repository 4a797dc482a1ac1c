/* Moves of partitions when what happens can't be written down: by a target's Local Manager, which
 * is the test, or by cm, whose own code runs (a state directory on a small tmpfs that fills 1.2 s
 * after cm scale 5 --migration cold --rate 500K began). ctest: waits */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "cm/partitions/migrate_impl.h"
#include "migrate_world.h"

static void has_moved(const struct migrate_world *w)
{
    const struct mfs_cm_state *s = &w->stage.cm.state;

    assert_int_equal(w->err.code, 0);
    assert_int_equal(s->part[0].node, 1);
    assert_int_equal(s->table->part[0].node, 1);
}

static void stays(const struct migrate_world *w)
{
    assert_int_equal(w->stage.cm.state.part[0].node, 0);
    assert_string_equal(w->stage.cm.state.part[0].password, "old");
    assert_int_equal(w->result.undone, 1);
}

static void unwritable_for(struct migrate_world *w, int64_t time)
{
    w->stage.cm.migrate->one[0]->move.unsaved_since -= time;
}

/* ---- by the target --------------------------------------------------------------------------- */

/* The source's process has died. As long as the target says that it is busy it has the copy. */
static void be_busy(struct migrate_world *w)
{
    w->peer[1].fail[MFS_MSG_TAKE][0] = -EINVAL;
    for (unsigned i = 1; i < 4; i++)
        w->peer[1].fail[MFS_MSG_TAKE][i] = -EBUSY;
    migrate_world_move(w);
    migrate_world_wait(w, migrate_world_is_calm);
}

static void the_last_copy_is_not_given_up(void **state)
{
    struct migrate_world *w = *state;

    w->peer[0].fail[MFS_MSG_FENCE][0] = -ENOENT;
    be_busy(w);
    assert_string_equal(w->log, "receive1 take1 fence0 release0 force1 force1 force1 force1 "
                                "table0 table1 release0 ");
    has_moved(w);
}

static void nor_is_one_that_has_more_than_the_revived_source(void **state)
{
    struct migrate_world *w = *state;

    w->revived = true;
    be_busy(w);
    assert_string_equal(w->log, "receive1 take1 fence0 match1 match1 match1 match1 "
                                "table0 table1 release0 ");
    has_moved(w);
}

/* ---- by cm ----------------------------------------------------------------------------------- */

static bool is_taken_again(void *world)
{
    const struct migrate_world *w = world;

    return strstr(w->log, "take1 take1") != NULL || strstr(w->log, "table") != NULL;
}

/* Else a cm that came now could have the source serve again, and clients have the target's table.
 */
static void nobody_has_a_table_that_is_not_written(void **state)
{
    struct migrate_world *w = *state;
    struct mfs_cm_state s;
    struct mfs_err err;

    w->hinders = MFS_MSG_TAKE;
    migrate_world_move(w);
    migrate_world_wait(w, is_taken_again);
    assert_string_equal(w->log, "receive1 take1 take1 ");
    assert_int_equal(w->stage.cm.state.part[0].node, 0);
    assert_string_equal(w->stage.cm.state.part[0].password, "old");
    assert_int_equal(mfs_cm_state_load(&s, w->stage.paths.state, &err), 0);
    assert_string_equal(s.move[0].step, "cut");
    assert_string_equal(s.move[0].password, w->stage.cm.state.move[0].password);
    mfs_cm_state_clear(&s);
    migrate_world_hinder(w, false);
    migrate_world_wait(w, migrate_world_is_calm);
    assert_non_null(strstr(w->log, "table0 table1 release0 "));
    has_moved(w);
}

/* Clients wait for that, but not until there is room. */
static void nor_is_it_waited_for(void **state)
{
    struct migrate_world *w = *state;

    w->hinders = MFS_MSG_TAKE;
    migrate_world_move(w);
    migrate_world_wait(w, is_taken_again);
    unwritable_for(w, 2 * MFS_SEC);
    migrate_world_wait(w, migrate_world_is_calm);
    assert_non_null(strstr(w->log, "take1 take1 "));
    assert_non_null(strstr(w->log, "take1 fence0 release1 serve0 "));
    assert_null(strstr(w->log, "table"));
    assert_int_equal(w->err.code, -EIO);
    stays(w);
    migrate_world_hinder(w, false);
}

static bool is_received_again(void *world)
{
    const struct migrate_world *w = world;

    return strstr(w->log, "receive1 receive1") != NULL || strstr(w->log, "take") != NULL ||
           strstr(w->log, "fence") != NULL;
}

/* Nobody is fenced before that can be written; then it is done. */
static void wait_with_the_cut(struct migrate_world *w)
{
    w->hinders = MFS_MSG_RECEIVE;
    migrate_world_move(w);
    migrate_world_wait(w, is_received_again);
    assert_string_equal(w->log, "receive1 receive1 ");
    migrate_world_hinder(w, false);
    migrate_world_wait(w, migrate_world_is_calm);
    assert_non_null(strstr(w->log, "receive1 take1 table0 table1 release0 "));
    has_moved(w);
}

/* The source serves: it goes on to do so until it can be written that it does no more, … */
static void a_cut_that_cannot_be_written_waits(void **state)
{
    wait_with_the_cut(*state);
}

/* … also when the copy fails, as the target's Local Manager can't write either. */
static void so_does_an_undo(void **state)
{
    struct migrate_world *w = *state;

    w->peer[1].fail[MFS_MSG_RECEIVE][0] = w->peer[1].fail[MFS_MSG_RECEIVE][1] = -EBUSY;
    wait_with_the_cut(w);
}

/* A state directory that fills: a source that is fenced does not wait for room there. It serves
 * when no copy is left by which a later cm, which finds an older step, could go on. */
static void a_source_serves_when_that_is_written_or_the_copy_has_ended(void **state)
{
    struct migrate_world *w = *state;

    w->peer[1].fail[MFS_MSG_TAKE][0] = -EINVAL;
    w->hinders = MFS_MSG_TAKE;
    migrate_world_move(w);
    migrate_world_wait(w, migrate_world_is_calm);
    assert_string_equal(w->log, "receive1 take1 fence0 release1 serve0 ");
    stays(w);
    migrate_world_hinder(w, false);
}

static bool release_has_failed(void *world)
{
    const struct migrate_world *w = world;

    return strstr(w->log, "release1 ") != NULL || strstr(w->log, "serve") != NULL;
}

/* The copy can't be ended: then "drop" is written as soon as it can be. */
static void or_when_it_can_be_written_at_last(void **state)
{
    struct migrate_world *w = *state;
    struct mfs_move *m;

    w->peer[1].fail[MFS_MSG_TAKE][0] = -EINVAL;
    w->peer[1].fail[MFS_MSG_RELEASE][0] = -EIO;
    w->hinders = MFS_MSG_TAKE;
    migrate_world_move(w);
    migrate_world_wait(w, release_has_failed);
    assert_string_equal(w->log, "receive1 take1 fence0 release1 ");
    migrate_world_hinder(w, false);
    m = &w->stage.cm.migrate->one[0]->move;
    m->away_since = mfs_clock_mono() - 16 * MFS_SEC;
    mfs_move_tick(m, mfs_clock_mono());
    assert_int_equal(m->step, MFS_AT_UNFENCE);
    migrate_world_wait(w, migrate_world_is_calm);
    assert_string_equal(w->log, "receive1 take1 fence0 release1 serve0 release1 serve0 ");
    stays(w);
}

/* In a cold copy clients wait from its beginning on: for a moment that may pass … */
static void a_cold_copy_waits_for_a_moment(void **state)
{
    struct migrate_world *w = *state;

    w->hinders = MFS_MSG_RECEIVE;
    migrate_world_move_cold(w);
    migrate_world_wait(w, is_received_again);
    assert_string_equal(w->log, "receive1 receive1 ");
    migrate_world_hinder(w, false);
    migrate_world_wait(w, migrate_world_is_calm);
    assert_non_null(strstr(w->log, "receive1 take1 table0 table1 release0 "));
    has_moved(w);
    assert_true(w->result.blocked_us_max >= 1000);
}

/* … and no longer. The report has the time that they waited in vain. */
static void and_is_undone_after_that(void **state)
{
    struct migrate_world *w = *state;

    w->hinders = MFS_MSG_RECEIVE;
    migrate_world_move_cold(w);
    migrate_world_wait(w, is_received_again);
    unwritable_for(w, 2 * MFS_SEC);
    w->stage.cm.migrate->one[0]->move.fenced_since -= 5 * MFS_SEC;
    migrate_world_wait(w, migrate_world_is_calm);
    assert_non_null(strstr(w->log, "receive1 fence0 release1 serve0 "));
    assert_null(strstr(w->log, "take"));
    assert_int_equal(w->err.code, -EIO);
    stays(w);
    assert_true(w->result.blocked_us_max >= 5000000 && w->result.blocked_us_max < 30000000);
    migrate_world_hinder(w, false);
}

/* Also when it fails, as the target's Local Manager can't write either. */
static void so_is_one_that_fails(void **state)
{
    struct migrate_world *w = *state;

    w->peer[1].fail[MFS_MSG_RECEIVE][0] = -EBUSY;
    w->hinders = MFS_MSG_RECEIVE;
    migrate_world_move_cold(w);
    migrate_world_wait(w, migrate_world_is_calm);
    assert_string_equal(w->log, "receive1 fence0 release1 serve0 ");
    stays(w);
    migrate_world_hinder(w, false);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, migrate_world_setup, migrate_world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_last_copy_is_not_given_up),
        TEST(nor_is_one_that_has_more_than_the_revived_source),
        TEST(nobody_has_a_table_that_is_not_written),
        TEST(nor_is_it_waited_for),
        TEST(a_cut_that_cannot_be_written_waits),
        TEST(so_does_an_undo),
        TEST(a_source_serves_when_that_is_written_or_the_copy_has_ended),
        TEST(or_when_it_can_be_written_at_last),
        TEST(a_cold_copy_waits_for_a_moment),
        TEST(and_is_undone_after_that),
        TEST(so_is_one_that_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
