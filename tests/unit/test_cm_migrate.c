/* A move's steps, with cm's own code and the test in the place of two Local Managers. ctest: waits
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"
#include "base/clock.h"
#include "cm/partitions/migrate_impl.h"
#include "cm/partitions/replicas.h"
#include "migrate_world.h"

/* ---- running --------------------------------------------------------------------------------- */

static bool receives(void *world)
{
    const struct migrate_world *w = world;

    return strstr(w->log, "receive1") != NULL;
}

/* ---- the world ------------------------------------------------------------------------------- */

static void stays(const struct migrate_world *w)
{
    assert_int_equal(w->stage.cm.state.part[0].node, 0);
    assert_string_equal(w->stage.cm.state.part[0].password, "old");
    assert_int_equal(w->stage.cm.state.table->epoch, 5);
}

static void has_moved(const struct migrate_world *w)
{
    const struct mfs_table *t = w->stage.cm.state.table;

    assert_int_equal(w->result.moved, 1);
    assert_int_equal(w->stage.cm.state.part[0].node, 1);
    assert_int_equal(t->epoch, 6);
    assert_int_equal(t->part[0].node, 1);
    assert_int_equal(t->part[0].port, 7777);
    assert_string_equal(t->part[0].password, w->stage.cm.state.part[0].password);
    assert_string_not_equal(t->part[0].password, "old");
    assert_string_equal(t->part[1].password, "old");
}

static void goes_from_step_to_step(void **state)
{
    struct migrate_world *w = *state;

    migrate_world_move(w);
    assert_int_equal(mfs_migrate_begin(&w->stage.cm, NULL, 0, &(struct mfs_migrate_opts){0},
                                       migrate_world_ended, w),
                     -EBUSY);
    migrate_world_wait(w, migrate_world_is_calm);
    assert_string_equal(w->log, "receive1 take1 table0 table1 release0 ");
    has_moved(w);
    assert_true(w->result.blocked_us_max >= 1000);
}

static void a_failed_copy_is_undone_and_made_again(void **state)
{
    struct migrate_world *w = *state;

    w->peer[1].fail[MFS_MSG_RECEIVE][0] = -EIO;
    migrate_world_move(w);
    migrate_world_wait(w, migrate_world_is_calm);
    assert_string_equal(w->log, "receive1 fence0 serve0 release1 serve0 receive1 take1 table0 "
                                "table1 release0 ");
    has_moved(w);
}

static void a_failed_cut_is_undone(void **state)
{
    struct migrate_world *w = *state;

    w->peer[1].fail[MFS_MSG_TAKE][0] = -EINVAL; /* not worth another attempt */
    migrate_world_move(w);
    migrate_world_wait(w, migrate_world_is_calm);
    assert_string_equal(w->log, "receive1 take1 fence0 serve0 release1 serve0 ");
    stays(w);
    assert_int_equal(w->result.undone, 1);
    assert_int_equal(w->err.code, -EINVAL);
}

/* Only the source's own Local Manager may say that it is dead. */
static void a_dead_source_is_replaced_by_force(void **state)
{
    struct migrate_world *w = *state;

    w->peer[1].fail[MFS_MSG_TAKE][0] = -EHOSTUNREACH;
    w->peer[0].fail[MFS_MSG_FENCE][0] = -ENOENT;
    migrate_world_move(w);
    migrate_world_wait(w, migrate_world_is_calm);
    assert_string_equal(w->log, "receive1 take1 fence0 release0 force1 table0 table1 release0 ");
    has_moved(w);
}

/* It was revived with less than its copy has: the copy serves, and only then the source is ended.
 */
static void a_revived_source_is_replaced_by_an_exact_copy(void **state)
{
    struct migrate_world *w = *state;

    w->revived = true;
    w->peer[1].fail[MFS_MSG_TAKE][0] = -EHOSTUNREACH;
    w->peer[1].fail[MFS_MSG_TAKE][1] = -EIO; /* it hangs for a moment */
    w->peer[0].fail[MFS_MSG_FENCE][0] = -EAGAIN;
    migrate_world_move(w);
    migrate_world_wait(w, migrate_world_is_calm);
    assert_string_equal(w->log,
                        "receive1 take1 fence0 fence0 match1 match1 table0 table1 release0 ");
    has_moved(w);
}

static void a_revived_source_goes_on_when_its_copy_is_not_exact(void **state)
{
    struct migrate_world *w = *state;

    w->revived = true;
    w->peer[1].fail[MFS_MSG_TAKE][0] = -EINVAL; /* not worth another attempt */
    w->peer[1].fail[MFS_MSG_TAKE][1] = -ENODATA;
    migrate_world_move(w);
    migrate_world_wait(w, migrate_world_is_calm);
    assert_string_equal(w->log, "receive1 take1 fence0 match1 serve0 release1 serve0 ");
    stays(w);
}

static void a_source_out_of_reach_is_never_ended(void **state)
{
    struct migrate_world *w = *state;

    w->peer[1].fail[MFS_MSG_RECEIVE][0] = -EINVAL;
    w->peer[0].fail[MFS_MSG_FENCE][0] = -EIO; /* it may live */
    migrate_world_move(w);
    migrate_world_wait(w, migrate_world_is_calm);
    assert_string_equal(w->log, "receive1 fence0 fence0 serve0 release1 serve0 ");
    stays(w);
}

static void a_partition_without_a_whole_copy_is_lost(void **state)
{
    struct migrate_world *w = *state;

    w->peer[1].fail[MFS_MSG_RECEIVE][0] = -EHOSTUNREACH;
    w->peer[0].fail[MFS_MSG_FENCE][0] = -ENOENT;
    w->peer[1].fail[MFS_MSG_TAKE][0] = -ENODATA;
    migrate_world_move(w);
    migrate_world_wait(w, migrate_world_is_calm);
    assert_string_equal(w->log, "receive1 fence0 release0 force1 release1 ");
    stays(w);
    assert_int_equal(w->err.code, -EOWNERDEAD);
}

static void the_source_is_released_until_it_answers(void **state)
{
    struct migrate_world *w = *state;

    w->peer[0].fail[MFS_MSG_RELEASE][0] = w->peer[0].fail[MFS_MSG_RELEASE][1] = -ETIMEDOUT;
    migrate_world_move(w);
    migrate_world_wait(w, migrate_world_is_calm);
    assert_string_equal(w->log, "receive1 take1 table0 table1 release0 release0 release0 ");
    has_moved(w);
}

static void a_node_that_comes_back_is_asked_again(void **state)
{
    struct migrate_world *w = *state;

    w->silent = true;
    migrate_world_move(w);
    migrate_world_wait(w, receives);
    w->silent = false;
    mfs_conn_close(w->peer[1].conn);
    migrate_world_connect(w, 1);
    migrate_world_wait(w, migrate_world_is_calm);
    assert_string_equal(w->log, "receive1 receive1 take1 table0 table1 release0 ");
    has_moved(w);
}

/* What another cm left in the state, at each step. */
static void resume(struct migrate_world *w, const char *step, const char *password)
{
    struct mfs_cm_state *s = &w->stage.cm.state;

    s->move = calloc(1, sizeof *s->move);
    s->nmoves = 1;
    s->move[0].to = 1;
    mfs_text_copy(s->move[0].step, sizeof s->move[0].step, step);
    mfs_text_copy(s->move[0].password, sizeof s->move[0].password, password);
    mfs_migrate_resume(&w->stage.cm);
    assert_true(mfs_migrate_await(&w->stage.cm, migrate_world_ended, w));
    assert_false(mfs_migrate_await(&w->stage.cm, migrate_world_ended, w));
    migrate_world_wait(w, migrate_world_is_calm);
}

static void a_new_cm_goes_on_with_a_copy(void **state)
{
    struct migrate_world *w = *state;

    resume(w, "copy", "new");
    assert_string_equal(w->log, "receive1 take1 table0 table1 release0 ");
    has_moved(w);
    assert_string_equal(w->stage.cm.state.part[0].password, "new");
}

static void a_new_cm_goes_on_with_a_cut(void **state)
{
    struct migrate_world *w = *state;

    resume(w, "cut", "new");
    assert_string_equal(w->log, "take1 table0 table1 release0 ");
    has_moved(w);
}

static void a_new_cm_goes_on_undoing(void **state)
{
    struct migrate_world *w = *state;

    resume(w, "undo", "new");
    assert_non_null(strstr(w->log, "fence0 serve0 release1 serve0 "));
}

static void a_new_cm_goes_on_matching(void **state)
{
    struct migrate_world *w = *state;

    w->revived = true;
    resume(w, "match", "new");
    assert_string_equal(w->log, "fence0 match1 table0 table1 release0 ");
    has_moved(w);
}

static void so_it_does_with_the_name_that_step_had(void **state)
{
    struct migrate_world *w = *state;

    w->revived = true;
    resume(w, "prove", "new");
    assert_string_equal(w->log, "fence0 match1 table0 table1 release0 ");
    has_moved(w);
}

static void a_new_cm_goes_on_dropping(void **state)
{
    struct migrate_world *w = *state;

    resume(w, "drop", "new");
    assert_memory_equal(w->log, "serve0 release1 serve0 receive1 ", 32);
    has_moved(w); /* by another attempt */
}

static void a_new_cm_goes_on_forcing(void **state)
{
    struct migrate_world *w = *state;

    resume(w, "force", "new");
    assert_string_equal(w->log, "release0 force1 table0 table1 release0 ");
    has_moved(w);
}

/* A cut may fail after the target was promoted. Then the target has not followed what the source
 * has taken since it serves again. */
static void a_source_that_served_again_is_not_replaced(void **state)
{
    struct migrate_world *w = *state;

    w->peer[1].fail[MFS_MSG_TAKE][0] = -EIO;
    w->peer[0].fail[MFS_MSG_FENCE][1] = -EIO;    /* nobody knows whether it serves … */
    w->peer[0].fail[MFS_MSG_FENCE][2] = -ENOENT; /* … and it is dead */
    migrate_world_move(w);
    migrate_world_wait(w, migrate_world_is_calm);
    assert_string_equal(w->log, "receive1 take1 fence0 serve0 serve0 release1 ");
    stays(w);
    assert_int_equal(w->err.code, -EOWNERDEAD);
}

static void nor_is_it_by_a_new_cm(void **state)
{
    struct migrate_world *w = *state;

    w->peer[0].fail[MFS_MSG_FENCE][0] = -ENOENT;
    resume(w, "drop", "new");
    assert_string_equal(w->log, "serve0 release1 ");
    stays(w);
    assert_int_equal(w->err.code, -EOWNERDEAD);
}

static void a_new_cm_goes_on_releasing(void **state)
{
    resume(*state, "release", "old");
    assert_string_equal(((struct migrate_world *)*state)->log, "release0 ");
}

/* ---- what takes too long --------------------------------------------------------------------- */

static bool fences_again(void *world)
{
    const struct migrate_world *w = world;

    return strstr(w->log, "fence0 fence0") != NULL;
}

static bool is_done(void *world)
{
    const struct migrate_world *w = world;

    return w->done;
}

/* The source's process hangs, its Local Manager does not: nobody waits for it for ever, but it
 * serves again as soon as it answers. */
static void an_undo_that_takes_too_long_is_not_waited_for(void **state)
{
    struct migrate_world *w = *state;
    int *fails = w->peer[0].fail[MFS_MSG_FENCE];

    w->peer[1].fail[MFS_MSG_RECEIVE][0] = -EINVAL;
    fails[0] = fails[1] = fails[2] = -ETIMEDOUT;
    migrate_world_move(w);
    migrate_world_wait(w, fences_again);
    assert_false(w->done);
    w->stage.cm.migrate->one[0]->move.step_began -= 61 * MFS_SEC;
    migrate_world_wait(w, is_done);
    assert_int_equal(w->err.code, -EINVAL);
    assert_int_equal(w->result.undone, 1);
    assert_null(strstr(w->log, "serve0"));
    migrate_world_wait(w, migrate_world_is_calm);
    assert_string_equal(w->log, "receive1 fence0 fence0 fence0 fence0 serve0 release1 serve0 ");
    stays(w);
}

/* The link had its time. */
static void what_left_at_once_too_slowly_is_not_tried_again(void **state)
{
    static const struct mfs_scale_move move = {.index = 0, .from = 0, .to = 1, .bytes = 100};
    const struct mfs_migrate_opts opts = {.cold = true, .at_once = true};
    struct migrate_world *w = *state;

    w->peer[1].fail[MFS_MSG_RECEIVE][0] = -ETIMEDOUT;
    assert_int_equal(mfs_migrate_begin(&w->stage.cm, &move, 1, &opts, migrate_world_ended, w), 0);
    migrate_world_wait(w, migrate_world_is_calm);
    assert_string_equal(w->log, "receive1 fence0 serve0 release1 serve0 ");
    assert_int_equal(w->err.code, -ETIMEDOUT);
    stays(w);
}

static void a_new_cm_knows_how_it_left(void **state)
{
    struct migrate_world *w = *state;
    struct mfs_cm_state *s = &w->stage.cm.state;
    const struct mfs_migrate *g;

    s->move = calloc(1, sizeof *s->move);
    s->nmoves = 1;
    s->move[0] = (struct mfs_cm_move){
        .to = 1, .step = MFS_MOVE_COPY, .cold = true, .diskless = true, .rate = 4711};
    s->scale.at_once = true;
    mfs_migrate_resume(&w->stage.cm);
    g = w->stage.cm.migrate;
    assert_true(g->at_once && g->one[0]->move.diskless && g->one[0]->move.cold);
    assert_int_equal(g->one[0]->move.rate, 4711);
    assert_true(mfs_migrate_await(&w->stage.cm, migrate_world_ended, w));
    migrate_world_wait(w, migrate_world_is_calm);
    has_moved(w);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* What has been told of the target: so many of 1000 MiB are in use. */
static void target_uses(struct migrate_world *w, uint64_t mib)
{
    w->stage.cm.nodes[1]->last.memory_used = mib << 20;
    w->stage.cm.nodes[1]->last.memory_capacity = 1000U << 20;
    w->stage.cm.nodes[0]->last.memory_capacity = 1000U << 20;
}

static void a_full_target_is_refused_with_figures(void **state)
{
    struct migrate_world *w = *state;

    target_uses(w, 998); /* 100 bytes would do, but not a process besides */
    migrate_world_move(w);
    migrate_world_wait(w, migrate_world_is_calm);
    assert_string_equal(w->log, "");
    stays(w);
    assert_int_equal(w->err.code, -ENOSPC);
    assert_non_null(strstr(w->err.msg, "node-1 has no memory for it: it takes 2.5 MiB, and 998 MiB "
                                       "of 1000 MiB are in use"));
}

static bool replica_is_gone(void *world)
{
    const struct migrate_world *w = world;

    return !w->stage.cm.state.part[1].replica_step[0] && !w->stage.cm.state.nstale;
}

/* The other partition's replica is on the target, which its Local Manager ends before it tells that
 * there is room. */
static void a_replica_makes_room_on_a_full_target(void **state)
{
    struct migrate_world *w = *state;
    struct mfs_cm_part *other = &w->stage.cm.state.part[1];

    w->stage.cm.state.replicas = 1;
    mfs_text_copy(other->replica_step, sizeof other->replica_step, MFS_REPLICA_READY);
    mfs_text_copy(other->replica_password, sizeof other->replica_password, "replica");
    other->replica_node = 1;
    w->stage.cm.part_bytes[1] = 20 << 20;
    assert_int_equal(mfs_replicas_begin(&w->stage.cm), 0);
    target_uses(w, 998);
    migrate_world_move(w);
    migrate_world_wait(w, replica_is_gone);
    assert_null(strstr(w->log, "receive"));
    assert_non_null(strstr(w->log, "term0 release1 "));
    target_uses(w, 976);
    migrate_world_wait(w, migrate_world_is_calm);
    assert_int_equal(w->err.code, 0);
    assert_int_equal(w->stage.cm.state.part[0].node, 1);
    assert_string_equal(other->password, "old");
    mfs_replicas_fini(&w->stage.cm);
}

/* A replica that was given up, so that its partition may move to where it is, has to end before. */
static void a_former_process_goes_before_the_next_comes(void **state)
{
    struct migrate_world *w = *state;
    struct mfs_cm_state *s = &w->stage.cm.state;

    s->replicas = 1;
    s->stale = calloc(1, sizeof *s->stale);
    s->nstale = 1;
    s->stale[0] = (struct mfs_cm_stale){.node = 1, .part = 0, .password = "replica"};
    w->peer[1].fail[MFS_MSG_RELEASE][0] = -ETIMEDOUT;
    w->stage.cm.part_bytes[1] = 20 << 20;
    target_uses(w, 990); /* no room for replicas */
    assert_int_equal(mfs_replicas_begin(&w->stage.cm), 0);
    migrate_world_move(w);
    migrate_world_wait(w, is_done);
    assert_memory_equal(w->log, "release1 release1 receive1 ", 27);
    assert_int_equal(w->err.code, 0);
    mfs_replicas_fini(&w->stage.cm);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, migrate_world_setup, migrate_world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(goes_from_step_to_step),
        TEST(a_failed_copy_is_undone_and_made_again),
        TEST(a_failed_cut_is_undone),
        TEST(a_dead_source_is_replaced_by_force),
        TEST(a_revived_source_is_replaced_by_an_exact_copy),
        TEST(a_revived_source_goes_on_when_its_copy_is_not_exact),
        TEST(a_source_out_of_reach_is_never_ended),
        TEST(a_partition_without_a_whole_copy_is_lost),
        TEST(the_source_is_released_until_it_answers),
        TEST(a_node_that_comes_back_is_asked_again),
        TEST(a_new_cm_goes_on_with_a_copy),
        TEST(a_new_cm_goes_on_with_a_cut),
        TEST(a_new_cm_goes_on_undoing),
        TEST(a_new_cm_goes_on_matching),
        TEST(so_it_does_with_the_name_that_step_had),
        TEST(a_new_cm_goes_on_dropping),
        TEST(a_new_cm_goes_on_forcing),
        TEST(a_source_that_served_again_is_not_replaced),
        TEST(nor_is_it_by_a_new_cm),
        TEST(a_new_cm_goes_on_releasing),
        TEST(an_undo_that_takes_too_long_is_not_waited_for),
        TEST(what_left_at_once_too_slowly_is_not_tried_again),
        TEST(a_new_cm_knows_how_it_left),
        TEST(a_former_process_goes_before_the_next_comes),
        TEST(a_full_target_is_refused_with_figures),
        TEST(a_replica_makes_room_on_a_full_target),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
