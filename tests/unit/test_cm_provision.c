/* The contract between cm and what nodes come from, with the test in the place of a provider that
 * has a queue and gives half of what was asked, and with the exec provider and real processes. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cm/change/scale/scale.h"
#include "cm/life/status.h"
#include "cm/nodes/provision.h"
#include "cm/provider/run.h"
#include "cm_stage.h"
#include "loop_until.h"

#define NODES 3

struct world {
    struct cm_stage stage;
    unsigned requests, requested; /* calls, and nodes in them */
    unsigned released[NODES];
    bool release_hangs;
    char handle[MFS_PROVIDER_HANDLE_MAX]; /* that the last release got */
    char lost[NODES][MFS_ERR_MSG_MAX];    /* why, of the exec provider's */
    bool done;
    struct mfs_err why;
    char output[64];
};

static struct world *world;

/* ---- a provider with a queue ----------------------------------------------------------------- */

static int open_queue(const struct mfs_provider_context *c, void **state, struct mfs_err *err)
{
    (void)err;
    *state = (void *)c;
    return 0;
}

static void close_queue(void *state)
{
    (void)state;
}

static enum mfs_provided adopt(void *state, const struct mfs_provider_node *n,
                               char what[MFS_PROVIDER_WHAT_MAX])
{
    (void)state;
    (void)what;
    return n->id ? MFS_PROVIDED_NONE : MFS_PROVIDED_STARTED;
}

static int request(void *state, const struct mfs_provider_node *n, uint32_t count,
                   struct mfs_err *err)
{
    (void)state;
    (void)n;
    (void)err;
    world->requests++;
    world->requested += count;
    return 0;
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
    world->released[n->id]++;
    mfs_text_copy(world->handle, sizeof world->handle, n->handle);
    return !world->release_hangs;
}

static const struct mfs_provider_traits traits = {.name = "queue", .queue_time = 60 * MFS_SEC};
static const struct mfs_provider queue = {.traits = &traits,
                                          .open = open_queue,
                                          .close = close_queue,
                                          .adopt = adopt,
                                          .request = request,
                                          .signal = pass_signal,
                                          .release = release};

/* What the provider tells, as from the loop. */
static const struct mfs_provider_context *told(void)
{
    return &world->stage.cm.provider_context;
}

/* ---- the world ------------------------------------------------------------------------------- */

static bool lost(struct mfs_node *n, int code, const char *why)
{
    (void)code;
    mfs_text_copy(world->lost[n->record->id], sizeof world->lost[0], why);
    return true;
}

static void open_world(const struct mfs_provider *p, const char *const options[][2], unsigned n)
{
    struct mfs_cm *cm = &world->stage.cm;

    cm_stage_state(&cm->state, NODES, NODES);
    cm->state.provider_option = calloc(NODES, sizeof *cm->state.provider_option);
    for (cm->state.nprovider_options = 0; cm->state.nprovider_options < n;) {
        struct mfs_provider_option *o = &cm->state.provider_option[cm->state.nprovider_options];

        mfs_text_copy(o->key, sizeof o->key, options[cm->state.nprovider_options][0]);
        mfs_text_copy(o->value, sizeof o->value, options[cm->state.nprovider_options++][1]);
    }
    cm->provider = p;
    cm->began = mfs_clock_mono() - MFS_RETURN_TIME; /* nobody is waited for any more */
    assert_int_equal(cm_stage_open(&world->stage), 0);
    snprintf(world->stage.paths.log, sizeof world->stage.paths.log, "%s/cm.log", world->stage.dir);
}

static int setup(void **state)
{
    *state = world = calloc(1, sizeof *world);
    return world ? 0 : -1;
}

static int teardown(void **state)
{
    mfs_scale_fini(&world->stage.cm);
    cm_stage_close(&world->stage);
    free(*state);
    return 0;
}

/* Nodes 1 and 2 come, as a cm finds it that goes on with that. */
static void two_come(void)
{
    struct mfs_cm *cm = &world->stage.cm;

    mfs_text_copy(cm->state.scale.step, sizeof cm->state.scale.step, MFS_SCALE_COME);
    for (uint32_t i = 1; i < NODES; i++)
        mfs_text_copy(cm->state.node[i].transition, sizeof cm->state.node[i].transition,
                      MFS_NODE_COMING);
    mfs_scale_resume(cm);
}

static bool one_node_is_left(void *w)
{
    return ((struct world *)w)->stage.cm.state.nnodes == 1;
}

static bool it_happens(bool (*holds)(void *world))
{
    return loop_until(world->stage.cm.loop, holds, world);
}

static void check_event(const char *words)
{
    struct mfs_buf b;

    mfs_buf_init(&b);
    assert_int_equal(mfs_file_read(world->stage.paths.events, 1 << 20, &b), 0);
    assert_int_equal(mfs_buf_append(&b, "", 1), 0);
    if (!strstr(mfs_buf_data(&b), words))
        fail_msg("no \"%s\" in %s", words, (const char *)mfs_buf_data(&b));
    mfs_buf_fini(&b);
}

/* ---- tests: a queue -------------------------------------------------------------------------- */

static void half_of_what_was_asked_is_given_back(void **state)
{
    struct mfs_err none = {.code = -EAGAIN, .msg = "no such machine to be had"};

    (void)state;
    open_world(&queue, NULL, 0);
    two_come();
    assert_int_equal(world->requests, 1);
    assert_int_equal(world->requested, 2);
    told()->calls->ready(told()->arg, 1, "job 7");
    assert_int_equal(world->stage.cm.nodes[1]->provided, MFS_PROVIDED_STARTED);
    told()->calls->failed(told()->arg, 2, &none);
    assert_true(it_happens(one_node_is_left));
    assert_int_equal(world->released[0], 0);
    assert_int_equal(world->released[1], 1);
    assert_int_equal(world->released[2], 1);
    check_event("node-2: no such machine to be had");
}

static void what_a_node_waits_for_is_shown(void **state)
{
    struct mfs_progress p;
    struct mfs_status s;

    (void)state;
    open_world(&queue, NULL, 0);
    two_come();
    told()->calls->waiting(told()->arg, 2, "Resources");
    assert_int_equal(mfs_status_make(&world->stage.cm, &s), 0);
    assert_string_equal(s.node[1].waits_for, "");
    assert_string_equal(s.node[2].waits_for, "Resources");
    mfs_schema_clear(&mfs_status_schema, &s);
    mfs_scale_progress(&world->stage.cm, &p);
    assert_string_equal(p.what, "starting 2 nodes: Resources");
    check_event("\"waiting\"");
    told()->calls->ready(told()->arg, 2, "job 8");
    assert_string_equal(world->stage.cm.nodes[2]->waits_for, "");
}

static void a_release_that_hangs_is_given_up(void **state)
{
    struct mfs_err none = {.code = -EAGAIN, .msg = "none"};

    (void)state;
    open_world(&queue, NULL, 0);
    world->release_hangs = true;
    two_come();
    told()->calls->failed(told()->arg, 1, &none);
    for (uint32_t i = 1; i < NODES; i++) {
        assert_false(mfs_provision_released(world->stage.cm.nodes[i]));
        world->stage.cm.nodes[i]->released_since -= MFS_RELEASE_TIME;
    }
    assert_true(it_happens(one_node_is_left));
    assert_int_equal(world->released[1], 1);
    check_event("release-failed");
    told()->calls->released(told()->arg, 1, NULL); /* too late, and harmless */
}

static void what_is_noted_outlives_cm(void **state)
{
    struct mfs_cm_state s;
    struct mfs_err err;

    (void)state;
    open_world(&queue, NULL, 0);
    free(world->stage.cm.state.table); /* one that no node has a place in can't be read */
    world->stage.cm.state.table = NULL;
    assert_int_equal(told()->calls->note(told()->arg, 1, "job 7"), 0);
    if (mfs_cm_state_load(&s, world->stage.paths.state, &err))
        fail_msg("%s", err.msg);
    assert_string_equal(mfs_cm_state_node(&s, 1)->handle, "job 7");
    mfs_cm_state_clear(&s);
    assert_true(mfs_provision_released(world->stage.cm.nodes[1]));
    assert_string_equal(world->handle, "job 7");
    assert_int_equal(told()->calls->note(told()->arg, 9, "job 7"), -ENOENT);
}

/* ---- tests: real commands -------------------------------------------------------------------- */

static bool both_are_told(void *w)
{
    const struct world *x = w;

    return x->lost[1][0] && x->stage.cm.nodes[2]->provided == MFS_PROVIDED_STARTED;
}

static bool is_released(void *w)
{
    return mfs_provision_released(((struct world *)w)->stage.cm.nodes[2]);
}

static void a_command_answers_for_each_node(void **state)
{
    static const char *const options[][2] = {
        {"exec-start", "test {node} = 0 || exit 3; sleep 0.1; exec sleep 60"},
        {"exec-stop", "exit 4"}};
    struct mfs_cm *cm;
    struct mfs_err err;
    pid_t pid;

    (void)state;
    open_world(&mfs_provider_exec, options, 2);
    cm = &world->stage.cm;
    cm->lm_lost = lost;
    cm->state.node[1].slot = 1;
    if (mfs_provision_request(cm, &cm->nodes[1], 2, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(cm->nodes[2]->provided, MFS_PROVIDED_REQUESTED); /* not told inside the call */
    assert_true(it_happens(both_are_told));
    assert_string_equal(world->lost[1], "its lm exited with status 3");
    check_event("exited with status 3");
    assert_int_equal(sscanf(cm->nodes[2]->what, "process %d", &pid), 1);
    mfs_clock_sleep(300 * MFS_MSEC); /* the shell has become another program */
    assert_int_equal(kill(pid, 0), 0);
    assert_true(it_happens(is_released));
    check_event("the stop command exited with status 4");
    assert_int_equal(world->lost[2][0], 0); /* nothing is told after a release */
    for (int64_t until = mfs_clock_mono() + 10 * MFS_SEC; !kill(pid, 0);) {
        assert_true(mfs_clock_mono() < until);
        loop_until(cm->loop, is_released, world);
    }
}

static void run_done(void *arg, const struct mfs_err *why, const char *output)
{
    struct world *w = arg;

    w->done = true;
    w->why = why ? *why : (struct mfs_err){0};
    snprintf(w->output, sizeof w->output, "%s", output);
}

static bool is_done(void *w)
{
    return ((struct world *)w)->done;
}

static void a_command_that_hangs_is_killed(void **state)
{
    static const char *const argv[] = {"/bin/sh", "-c", "sleep 60 & wait", NULL};
    const struct mfs_run_options options = {.limit = 100 * MFS_MSEC};
    struct mfs_err err;

    (void)state;
    open_world(&mfs_provider_exec, NULL, 0);
    if (!mfs_run_begin(told(), argv, &options, run_done, world, &err))
        fail_msg("%s", err.msg);
    assert_true(it_happens(is_done));
    assert_int_equal(world->why.code, -ETIMEDOUT);
    assert_string_equal(world->output, "");
}

static void what_a_command_prints_is_read(void **state)
{
    static const char *const argv[] = {"/bin/sh", "-c", "echo a; echo b >&2; exit 3", NULL};
    const struct mfs_run_options options = {.limit = 10 * MFS_SEC, .read = true};
    struct mfs_err err;

    (void)state;
    open_world(&mfs_provider_exec, NULL, 0);
    if (!mfs_run_begin(told(), argv, &options, run_done, world, &err))
        fail_msg("%s", err.msg);
    assert_true(it_happens(is_done));
    assert_string_equal(world->why.msg, "exited with status 3");
    assert_string_equal(world->output, "a\nb\n");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(half_of_what_was_asked_is_given_back), TEST(what_a_node_waits_for_is_shown),
        TEST(a_release_that_hangs_is_given_up),     TEST(what_is_noted_outlives_cm),
        TEST(a_command_answers_for_each_node),      TEST(a_command_that_hangs_is_killed),
        TEST(what_a_command_prints_is_read),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
