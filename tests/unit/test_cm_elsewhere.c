/* Nodes whose processes cm can't see, with the test in the place of their Local Managers: that one
 * is connected tells that it lives, and one that may be about to find a new cm is given time.
 * ctest: single waits */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/text.h"
#include "cm/change/scale/scale.h"
#include "cm/nodes/provision.h"
#include "cm_stage.h"
#include "loop_until.h"

#define NODES 2

struct world;

struct peer {
    struct world *w;
    uint32_t id;
    struct mfs_conn *conn;
    bool stop_received, assigned; /* has been asked for that */
};

struct world {
    struct cm_stage stage;
    struct peer peer[NODES];
    int64_t until;
};

/* ---- the provider ---------------------------------------------------------------------------- */

static unsigned starts[NODES]; /* of each node */

static int open_far(const struct mfs_provider_context *c, void **state, struct mfs_err *err)
{
    (void)err;
    *state = (void *)c;
    return 0;
}

static void close_far(void *state)
{
    (void)state;
}

static enum mfs_provided adopt(void *state, const struct mfs_provider_node *n,
                               char what[MFS_PROVIDER_WHAT_MAX])
{
    (void)state;
    (void)n;
    (void)what;
    return MFS_PROVIDED_NONE;
}

static int request(void *state, const struct mfs_provider_node *n, uint32_t count,
                   struct mfs_err *err)
{
    (void)state;
    for (uint32_t i = 0; i < count; i++)
        starts[n[i].id]++;
    return mfs_err_set(err, -EIO, "as the test wants it");
}

static int pass_signal(void *state, uint32_t node, int signo)
{
    (void)state;
    (void)node;
    (void)signo;
    return -ENOSYS;
}

static int release(void *state, const struct mfs_provider_node *n)
{
    (void)state;
    (void)n;
    return 1;
}

static const struct mfs_provider_traits far = {.name = "far away"};
static const struct mfs_provider far_away = {.traits = &far,
                                             .open = open_far,
                                             .close = close_far,
                                             .adopt = adopt,
                                             .request = request,
                                             .signal = pass_signal,
                                             .release = release};

/* ---- Local Managers -------------------------------------------------------------------------- */

static void on_stop(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    (void)c;
    (void)id;
    (void)body;
    ((struct peer *)arg)->stop_received = true;
}

static void on_assign(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    (void)c;
    (void)id;
    (void)body;
    ((struct peer *)arg)->assigned = true;
}

static const struct mfs_handler lm_handlers[] = {
    {MFS_MSG_STOP, on_stop}, {MFS_MSG_ASSIGN, on_assign}, {0, NULL}};

static void lm_up(struct mfs_conn *c, void *arg)
{
    const struct peer *p = arg;

    cm_stage_join(c, p->id, p->w->stage.cm.state.table->epoch);
}

static void lm_down(struct mfs_conn *c, const struct mfs_err *why, void *arg)
{
    (void)c;
    (void)why;
    ((struct peer *)arg)->conn = NULL;
}

static const struct mfs_service lm_service = {lm_handlers, lm_up, lm_down};

static void connect_lm(struct world *w, uint32_t i)
{
    struct mfs_err err;

    w->peer[i].conn = mfs_conn_connect(w->stage.cm.loop, w->stage.address, &w->stage.cm.secret,
                                       "lm", 20 * MFS_SEC, &lm_service, &w->peer[i], &err);
    assert_non_null(w->peer[i].conn);
}

static void hang_up(struct world *w, uint32_t i)
{
    struct mfs_conn *c = w->peer[i].conn;

    w->peer[i].conn = NULL;
    if (c)
        mfs_conn_close(c);
}

/* ---- running --------------------------------------------------------------------------------- */

static bool first_is_connected(void *world)
{
    return ((struct world *)world)->stage.cm.nodes[0]->conn != NULL;
}

static bool second_is_connected(void *world)
{
    return ((struct world *)world)->stage.cm.nodes[1]->conn != NULL;
}

static bool first_is_started(void *world)
{
    (void)world;
    return starts[0] > 0;
}

static bool second_is_started(void *world)
{
    (void)world;
    return starts[1] > 0;
}

static bool second_has_left(void *world)
{
    return !mfs_nodes_find(&((struct world *)world)->stage.cm, 1);
}

static bool second_is_told_or_has_left(void *world)
{
    return ((struct world *)world)->peer[1].stop_received || second_has_left(world);
}

static bool second_is_assigned(void *world)
{
    return ((struct world *)world)->peer[1].assigned;
}

static bool time_is_up(void *world)
{
    return mfs_clock_mono() > ((struct world *)world)->until;
}

static bool it_happens(struct world *w, bool (*holds)(void *world))
{
    return loop_until(w->stage.cm.loop, holds, w);
}

/* As a new cm does that finds this change under way. */
static void go_on(struct world *w, const char *step, const char *transition)
{
    struct mfs_cm *cm = &w->stage.cm;

    mfs_text_copy(cm->state.scale.step, sizeof cm->state.scale.step, step);
    mfs_text_copy(cm->state.node[1].transition, sizeof cm->state.node[1].transition, transition);
    mfs_provision_adopt(cm);
    mfs_scale_resume(cm);
}

/* ---- the world ------------------------------------------------------------------------------- */

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    struct mfs_cm *cm = &w->stage.cm;

    memset(starts, 0, sizeof starts);
    cm_stage_state(&cm->state, NODES, NODES);
    cm->provider = &far_away;
    cm->began = mfs_clock_mono();
    if (cm_stage_open(&w->stage))
        return -1;
    mfs_text_copy(w->stage.paths.dir, sizeof w->stage.paths.dir, w->stage.dir);
    for (uint32_t i = 0; i < NODES; i++)
        w->peer[i] = (struct peer){.w = w, .id = i};
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    for (uint32_t i = 0; i < NODES; i++)
        hang_up(w, i);
    mfs_scale_fini(&w->stage.cm);
    cm_stage_close(&w->stage);
    free(w);
    return 0;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_one_that_finds_the_new_cm_is_not_started(void **state)
{
    struct world *w = *state;

    connect_lm(w, 0);
    assert_true(it_happens(w, first_is_connected));
    mfs_provision_adopt(&w->stage.cm);
    assert_true(it_happens(w, second_is_started)); /* as it does not come by itself */
    assert_non_null(w->stage.cm.nodes[0]->conn);
    assert_int_equal(starts[0], 0);
}

static void test_one_that_is_lost_is_started(void **state)
{
    struct world *w = *state;

    connect_lm(w, 0);
    assert_true(it_happens(w, first_is_connected));
    hang_up(w, 0);
    assert_true(it_happens(w, first_is_started));
}

static void test_one_that_leaves_is_told_and_waited_for(void **state)
{
    struct world *w = *state;

    connect_lm(w, 1);
    assert_true(it_happens(w, second_is_connected));
    go_on(w, MFS_SCALE_GO, MFS_NODE_LEAVING);
    assert_true(it_happens(w, second_is_told_or_has_left));
    assert_true(w->peer[1].stop_received);
    w->until = mfs_clock_mono() + MFS_SEC;
    assert_true(it_happens(w, time_is_up));
    assert_false(second_has_left(w)); /* it has not ended yet */
    hang_up(w, 1);
    assert_true(it_happens(w, second_has_left));
}

static void test_one_that_leaves_has_time_to_find_the_new_cm(void **state)
{
    struct world *w = *state;

    w->stage.cm.began += 20 * MFS_SEC; /* however busy the machine is */
    go_on(w, MFS_SCALE_GO, MFS_NODE_LEAVING);
    w->until = mfs_clock_mono() + 200 * MFS_MSEC;
    assert_true(it_happens(w, time_is_up));
    assert_false(second_has_left(w));
    connect_lm(w, 1);
    assert_true(it_happens(w, second_is_told_or_has_left));
    assert_true(w->peer[1].stop_received);
    assert_int_equal(starts[1], 0);
}

static void test_one_that_never_comes_is_forgotten(void **state)
{
    struct world *w = *state;

    go_on(w, MFS_SCALE_GO, MFS_NODE_LEAVING);
    assert_true(it_happens(w, second_has_left));
    assert_int_equal(starts[1], 1); /* in vain, to end what its lm may have left there */
}

static void test_one_that_comes_has_time_to_find_the_new_cm(void **state)
{
    struct world *w = *state;

    connect_lm(w, 0);
    go_on(w, MFS_SCALE_COME, MFS_NODE_COMING);
    connect_lm(w, 1);
    assert_true(it_happens(w, second_is_assigned));
    assert_int_equal(starts[1], 0);
}

static void test_one_that_comes_and_is_not_there_is_started(void **state)
{
    struct world *w = *state;

    go_on(w, MFS_SCALE_COME, MFS_NODE_COMING);
    assert_int_equal(starts[1], 0);
    assert_true(it_happens(w, second_is_started));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_one_that_finds_the_new_cm_is_not_started),
        TEST(test_one_that_is_lost_is_started),
        TEST(test_one_that_leaves_is_told_and_waited_for),
        TEST(test_one_that_leaves_has_time_to_find_the_new_cm),
        TEST(test_one_that_never_comes_is_forgotten),
        TEST(test_one_that_comes_has_time_to_find_the_new_cm),
        TEST(test_one_that_comes_and_is_not_there_is_started),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
