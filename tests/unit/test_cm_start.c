/* Connections that are lost for a moment while a deployment starts, with cm's own code and the test
 * in the place of two Local Managers: who is back in time is no reason to end it, and nobody is
 * once the deployment runs. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/text.h"
#include "cm/change/autoscale.h"
#include "cm/life/shutdown.h"
#include "cm_stage.h"
#include "loop_until.h"

#define NODES     2
#define PATIENCE  MFS_SEC /* of cm, with a node that has hung up during the start */
#define LONG_PAST (PATIENCE + 300 * MFS_MSEC)

struct world;

struct peer {
    struct world *w;
    uint32_t id;
    struct mfs_conn *conn;
};

struct world {
    struct cm_stage stage;
    struct peer peer[NODES];
    struct mfs_conn *mounting; /* node 1 has been asked to mount and will answer this one; a */
    uint64_t mount_id;         /* reference is held */
    int64_t until;
};

/* ---- Local Managers -------------------------------------------------------------------------- */

static void on_assign(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_assign *m = body;
    struct mfs_assigned_part part = {.port = 7777};
    struct mfs_msg_assign_reply r = {.nassigned = 1, .assigned = &part};

    (void)arg;
    assert_int_equal(m->nparts, NODES);
    part.index = m->assigned[0].index;
    mfs_conn_reply(c, MFS_MSG_ASSIGN, id, &r);
}

static void on_table(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_table *m = body;

    (void)arg;
    assert_non_null(m->table);
    mfs_conn_reply(c, MFS_MSG_TABLE, id, &(struct mfs_msg_epoch){m->table->epoch});
}

static void on_mount(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    struct world *w = ((struct peer *)arg)->w;

    (void)body;
    assert_null(w->mounting);
    w->mounting = mfs_conn_get(c);
    w->mount_id = id;
}

static void on_stop(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    (void)body;
    (void)arg;
    mfs_conn_reply(c, MFS_MSG_STOP, id, NULL);
}

static const struct mfs_handler lm_handlers[] = {{MFS_MSG_ASSIGN, on_assign},
                                                 {MFS_MSG_TABLE, on_table},
                                                 {MFS_MSG_MOUNT, on_mount},
                                                 {MFS_MSG_STOP, on_stop},
                                                 {0, NULL}};

static void lm_up(struct mfs_conn *c, void *arg)
{
    const struct peer *p = arg;

    cm_stage_join(c, p->id, 0);
}

static void lm_down(struct mfs_conn *c, const struct mfs_err *why, void *arg)
{
    struct peer *p = arg;

    (void)why;
    if (p->conn == c)
        p->conn = NULL;
}

static const struct mfs_service lm_service = {lm_handlers, lm_up, lm_down};

/* ---- running --------------------------------------------------------------------------------- */

/* Whatever is waited for: a start that fails has come to its end. */
static void wait_until(struct world *w, bool (*holds)(void *world))
{
    if (!loop_until(w->stage.cm.loop, holds, w) && !w->stage.cm.start.failure.code)
        fail_msg("did not come to it, in step %d, %s", w->stage.cm.step, w->stage.cm.state.phase);
}

static bool failed(const struct world *w)
{
    return w->stage.cm.start.failure.code != 0;
}

static bool first_is_there(void *world)
{
    const struct world *w = world;

    return w->stage.cm.nodes[0]->conn || failed(w);
}

static bool first_is_away(void *world)
{
    const struct world *w = world;

    return !w->stage.cm.nodes[0]->conn || failed(w);
}

static bool other_mounts(void *world)
{
    const struct world *w = world;

    return w->mounting || failed(w);
}

static bool it_runs(void *world)
{
    const struct world *w = world;

    return mfs_cm_in_phase(&w->stage.cm, MFS_PHASE_RUNNING) || failed(w);
}

static bool it_fails(void *world)
{
    return failed(world);
}

static bool time_is_over(void *world)
{
    const struct world *w = world;

    return mfs_clock_mono() >= w->until;
}

static void wait_long(struct world *w)
{
    w->until = mfs_clock_mono() + LONG_PAST;
    wait_until(w, time_is_over);
}

static void check_it_runs(const struct world *w)
{
    assert_string_equal(w->stage.cm.start.failure.msg, "");
    assert_string_equal(w->stage.cm.state.phase, MFS_PHASE_RUNNING);
    assert_int_equal(w->stage.cm.step, MFS_STEP_DONE);
}

static void join(struct world *w, uint32_t i)
{
    struct mfs_err err;

    w->peer[i].conn = mfs_conn_connect(w->stage.cm.loop, w->stage.address, &w->stage.cm.secret,
                                       "lm", 5 * MFS_SEC, &lm_service, &w->peer[i], &err);
    assert_non_null(w->peer[i].conn);
}

/* The first node's connection is lost. When: before cm can know. */
static int64_t hang_up(struct world *w)
{
    int64_t now = mfs_clock_mono();

    mfs_conn_close(w->peer[0].conn);
    w->peer[0].conn = NULL;
    wait_until(w, first_is_away);
    return now;
}

/* Had cm reason to lose its patience, as this machine is so busy? */
static void skip_when_late(int64_t since)
{
    if (mfs_clock_mono() - since >= PATIENCE)
        skip();
}

/* ---- the world ------------------------------------------------------------------------------- */

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    struct mfs_cm *cm = &w->stage.cm;

    cm_stage_state(&cm->state, NODES, NODES);
    mfs_text_copy(cm->state.phase, sizeof cm->state.phase, MFS_PHASE_STARTING);
    mfs_text_copy(cm->state.policy, sizeof cm->state.policy, "none");
    for (uint32_t i = 0; i < NODES; i++) {
        mfs_text_copy(cm->state.node[i].address, sizeof cm->state.node[i].address, "127.0.0.1");
        cm->state.part[i].node = i;
        w->peer[i] = (struct peer){w, i, NULL};
    }
    mfs_text_copy(cm->state.node[1].mount, sizeof cm->state.node[1].mount, "/mnt");
    cm->foreground = true;
    cm->provider = mfs_provider_find(cm->state.provider);
    if (cm_stage_open(&w->stage) || mfs_autoscale_init(cm))
        return -1;
    cm->step = MFS_STEP_JOIN; /* as mfs_deploy_begin does, which would start processes */
    cm->start.assigned = calloc(NODES, sizeof *cm->start.assigned);
    *state = w;
    return cm->start.assigned ? 0 : -1;
}

static int teardown(void **state)
{
    struct world *w = *state;

    mfs_conn_put(w->mounting);
    cm_stage_deafen(&w->stage);
    for (uint32_t i = 0; i < NODES; i++)
        if (w->peer[i].conn)
            mfs_conn_close(w->peer[i].conn);
    mfs_autoscale_fini(&w->stage.cm);
    mfs_shutdown_fini(&w->stage.cm);
    free(w->stage.cm.start.assigned);
    cm_stage_close(&w->stage);
    free(w);
    return 0;
}

/* To where all but node 1, which mounts, are done. */
static void start_up_to_the_mount(struct world *w)
{
    join(w, 1);
    wait_until(w, other_mounts);
    assert_string_equal(w->stage.cm.start.failure.msg, "");
}

static void let_mount(struct world *w)
{
    mfs_conn_reply(w->mounting, MFS_MSG_MOUNT, w->mount_id, NULL);
    wait_until(w, it_runs);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void who_is_back_in_time_ends_nothing(void **state)
{
    struct world *w = *state;
    int64_t since;

    join(w, 0);
    wait_until(w, first_is_there);
    since = hang_up(w);
    join(w, 0);
    wait_until(w, first_is_there);
    skip_when_late(since);
    start_up_to_the_mount(w);
    let_mount(w);
    check_it_runs(w);
    wait_long(w);
    check_it_runs(w);
}

/* Nothing else is wanted of it: the start ends without it. */
static void who_is_away_when_it_runs_is_waited_for(void **state)
{
    struct world *w = *state;
    int64_t since;

    join(w, 0);
    start_up_to_the_mount(w);
    since = hang_up(w);
    let_mount(w);
    skip_when_late(since);
    check_it_runs(w);
    assert_null(w->stage.cm.nodes[0]->restart); /* which would keep a dead one from being started */
    wait_long(w);
    check_it_runs(w);
    join(w, 0);
    wait_until(w, first_is_there);
    check_it_runs(w);
}

static void who_stays_away_ends_the_start(void **state)
{
    struct world *w = *state;

    join(w, 0);
    wait_until(w, first_is_there);
    hang_up(w);
    wait_until(w, it_fails);
    assert_int_equal(w->stage.cm.start.failure.code, -ECONNRESET);
    assert_non_null(strstr(w->stage.cm.start.failure.msg, "node-0: its lm hung up"));
    assert_string_equal(w->stage.cm.state.phase, MFS_PHASE_STOPPING);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(who_is_back_in_time_ends_nothing),
        TEST(who_is_away_when_it_runs_is_waited_for),
        TEST(who_stays_away_ends_the_start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
