/* A checkpoint's steps, with cm's own code and the test in the place of two Local Managers and of
 * the command line: nobody forks before all stand still, and whoever fails, all are told to give
 * up. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/text.h"
#include "cm/change/checkpoint.h"
#include "cm/change/scale/scale.h"
#include "cm_stage.h"
#include "loop_until.h"

#define NODES 2

struct world;

struct peer {
    struct world *w;
    uint32_t id;
    struct mfs_conn *conn;
    const char *fail_step; /* … is answered with this code, so many times */
    int fail_code, fail_times;
    bool keeps; /* has no image to show */
};

struct world {
    struct cm_stage stage;
    struct peer peer[NODES];
    struct mfs_conn *cli;
    char log[512];   /* "halt0 halt1 …": step and node */
    uint32_t ms;     /* of the last halt */
    bool slow_write; /* nobody answers write */
    bool fails_over; /* before node 0 has cut, node 1 is given its partition */
    bool done;
    struct mfs_err err;
    struct mfs_checkpoint result; /* without its list */
};

static void on_image(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_image *m = body;
    struct peer *p = arg;
    size_t len = strlen(p->w->log);
    struct mfs_image_part part = {
        .index = p->id, .bytes = 10, .memory = 20, .sum = "0123456789abcdef"};
    struct mfs_msg_image_reply r = {.halted_us = 1500};

    snprintf(p->w->log + len, sizeof p->w->log - len, "%s%u ", m->step, p->id);
    if (!strcmp(m->step, MFS_IMAGE_HALT)) {
        assert_string_equal(m->dir, "/images");
        assert_int_equal(m->nparts, 1); /* those of its own alone */
        assert_int_equal(m->part[0].index, p->id);
        p->w->ms = m->ms;
    }
    if (p->fail_times && !strcmp(m->step, p->fail_step)) {
        p->fail_times--;
        mfs_conn_fail(c, id, p->fail_code, "as the test wants it");
        return;
    }
    if (p->w->fails_over && p->id == 0 && !strcmp(m->step, MFS_IMAGE_CUT))
        p->w->stage.cm.state.part[0].node = 1;
    if (!strcmp(m->step, MFS_IMAGE_WRITE)) {
        if (p->w->slow_write)
            return;
        r.nparts = !p->keeps;
        r.part = &part;
    }
    mfs_conn_reply(c, MFS_MSG_IMAGE, id, &r);
}

static const struct mfs_handler lm_handlers[] = {{MFS_MSG_IMAGE, on_image}, {0, NULL}};

static void lm_up(struct mfs_conn *c, void *arg)
{
    const struct peer *p = arg;

    cm_stage_join(c, p->id, p->w->stage.cm.state.table->epoch);
}

static const struct mfs_service lm_service = {lm_handlers, lm_up, NULL};

/* ---- the command line ------------------------------------------------------------------------ */

static void answered(void *arg, const struct mfs_err *err, const void *reply)
{
    struct world *w = arg;

    w->done = true;
    w->err = err ? *err : (struct mfs_err){0};
    if (!reply)
        return;
    w->result = *(const struct mfs_checkpoint *)reply;
    for (uint32_t i = 0; i < w->result.nparts; i++) {
        assert_int_equal(w->result.part[i].index, i);
        assert_string_equal(w->result.part[i].sum, "0123456789abcdef");
    }
    w->result.part = NULL;
}

static void cli_up(struct mfs_conn *c, void *arg)
{
    static const struct mfs_msg_checkpoint what = {.dir = "/images"};

    assert_int_equal(mfs_conn_request(c, MFS_MSG_CHECKPOINT, &what, 60 * MFS_SEC, answered, arg),
                     0);
}

static void cli_down(struct mfs_conn *c, const struct mfs_err *why, void *arg)
{
    (void)c;
    (void)why;
    ((struct world *)arg)->cli = NULL;
}

static const struct mfs_service cli_service = {NULL, cli_up, cli_down};

static void ask(struct world *w)
{
    struct mfs_err err;

    w->done = false;
    w->cli = mfs_conn_connect(w->stage.cm.loop, w->stage.address, &w->stage.cm.secret, "cli",
                              5 * MFS_SEC, &cli_service, w, &err);
    assert_non_null(w->cli);
}

/* ---- running --------------------------------------------------------------------------------- */

static void wait_until(struct world *w, bool (*holds)(void *world))
{
    if (!loop_until(w->stage.cm.loop, holds, w))
        fail_msg("did not come to it: %s", w->log);
}

static bool all_joined(void *world)
{
    const struct world *w = world;

    return w->stage.cm.nodes[0]->conn && w->stage.cm.nodes[1]->conn;
}

static bool is_over(void *world)
{
    const struct world *w = world;

    return w->done && !mfs_checkpoint_busy(&w->stage.cm);
}

static bool is_idle(void *world)
{
    const struct world *w = world;

    return !mfs_checkpoint_busy(&w->stage.cm);
}

static bool writes(void *world)
{
    const struct world *w = world;

    return strstr(w->log, "write0") && strstr(w->log, "write1");
}

static bool is_answered(void *world)
{
    const struct world *w = world;

    return w->done;
}

static bool has_dropped(void *world)
{
    const struct world *w = world;

    return strstr(w->log, "drop0") && strstr(w->log, "drop1");
}

static void run(struct world *w)
{
    ask(w);
    wait_until(w, is_over);
    if (w->cli)
        mfs_conn_close(w->cli);
    w->cli = NULL;
}

/* Both nodes' steps, in either order within a step. */
static void expect_log(const struct world *w, const char *steps)
{
    char *copy = strdup(steps), *rest = copy;
    const char *at = w->log;

    for (char *step; (step = strsep(&rest, " "));) {
        char one[64], other[64];

        snprintf(one, sizeof one, "%s0 %s1 ", step, step);
        snprintf(other, sizeof other, "%s1 %s0 ", step, step);
        if (strncmp(at, one, strlen(one)) && strncmp(at, other, strlen(other)))
            fail_msg("\"%s\", not %s", w->log, steps);
        at += strlen(one);
    }
    assert_string_equal(at, "");
    free(copy);
}

/* ---- the world ------------------------------------------------------------------------------- */

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    struct mfs_cm *cm = &w->stage.cm;
    struct mfs_err err;

    cm_stage_state(&cm->state, NODES, NODES);
    for (uint32_t i = 0; i < NODES; i++)
        cm->state.part[i].node = i;
    if (cm_stage_open(&w->stage))
        return -1;
    for (uint32_t i = 0; i < NODES; i++) {
        w->peer[i].w = w;
        w->peer[i].id = i;
        w->peer[i].conn = mfs_conn_connect(cm->loop, w->stage.address, &cm->secret, "lm",
                                           5 * MFS_SEC, &lm_service, &w->peer[i], &err);
        assert_non_null(w->peer[i].conn);
    }
    wait_until(w, all_joined);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    mfs_checkpoint_fini(&w->stage.cm);
    if (w->cli)
        mfs_conn_close(w->cli);
    for (uint32_t i = 0; i < NODES; i++)
        if (w->peer[i].conn)
            mfs_conn_close(w->peer[i].conn);
    cm_stage_close(&w->stage);
    free(w);
    return 0;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_all_stand_still_before_one_forks(void **state)
{
    struct world *w = *state;

    run(w);
    assert_int_equal(w->err.code, 0);
    expect_log(w, "halt cut write");
    assert_int_equal(w->result.nparts, NODES);
    assert_int_equal(w->result.attempts, 1);
    assert_int_equal(w->result.epoch, 5);
    assert_true(w->result.halted_ms > 1.4 && w->result.halted_ms < 1.6);
}

static void test_a_change_in_between_is_cut_anew(void **state)
{
    struct world *w = *state;
    uint32_t first;

    w->peer[1].fail_step = MFS_IMAGE_CUT;
    w->peer[1].fail_code = -EAGAIN;
    w->peer[1].fail_times = 1;
    run(w);
    assert_int_equal(w->err.code, 0);
    expect_log(w, "halt cut drop halt cut write");
    assert_int_equal(w->result.attempts, 2);
    first = w->ms;
    w->log[0] = '\0';
    w->peer[1].fail_times = 9;
    run(w);
    assert_int_equal(w->err.code, -EAGAIN);
    expect_log(w, "halt cut drop halt cut drop halt cut drop");
    assert_true(w->ms > first); /* they may stand still for longer each time */
}

static void test_what_fails_ends_it_everywhere(void **state)
{
    static const char *const steps[] = {MFS_IMAGE_HALT, MFS_IMAGE_CUT, MFS_IMAGE_WRITE};
    static const char *const logs[] = {"halt drop", "halt cut drop", "halt cut write drop"};
    struct world *w = *state;

    for (int i = 0; i < 3; i++) {
        w->log[0] = '\0';
        w->peer[0].fail_step = steps[i];
        w->peer[0].fail_code = -ENOSPC;
        w->peer[0].fail_times = 1;
        run(w);
        assert_int_equal(w->err.code, -ENOSPC);
        expect_log(w, logs[i]);
    }
    w->log[0] = '\0';
    run(w); /* and nothing is left of it */
    assert_int_equal(w->err.code, 0);
}

static void test_a_missing_image_is_noticed(void **state)
{
    struct world *w = *state;

    w->peer[1].keeps = true;
    run(w);
    assert_int_equal(w->err.code, -EIO);
    expect_log(w, "halt cut write drop");
}

static void test_a_node_that_is_not_there(void **state)
{
    struct world *w = *state;

    mfs_conn_close(w->peer[0].conn);
    w->peer[0].conn = NULL;
    w->stage.cm.nodes[0]->conn = NULL;
    run(w);
    assert_int_equal(w->err.code, -ENOTCONN);
    assert_non_null(strstr(w->err.msg, "node-0"));
    assert_string_equal(w->log, "halt1 drop1 ");
}

/* It has images, and children that write them, all the same. */
static void test_a_node_that_has_lost_its_partitions_gives_up_as_well(void **state)
{
    struct world *w = *state;

    w->fails_over = true;
    run(w);
    assert_int_equal(w->err.code, -EIO);
    assert_non_null(strstr(w->log, " write1 "));
    assert_non_null(strstr(w->log, " drop0 "));
    assert_non_null(strstr(w->log, " drop1 "));
}

static void no_report(void *arg, const struct mfs_err *err, const struct mfs_scale_report *r)
{
    (void)arg;
    (void)err;
    (void)r;
}

/* Nothing else is changed meanwhile; and who asked goes away. */
static void test_one_at_a_time_until_who_asked_has_gone(void **state)
{
    struct mfs_msg_scale what = {.how = "to", .n = 3};
    struct world *w = *state;
    struct mfs_conn *first;
    struct mfs_err err = {0};

    w->slow_write = true;
    ask(w);
    wait_until(w, writes);
    assert_int_equal(mfs_scale_begin(&w->stage.cm, &what, "test", no_report, NULL, &err), -EBUSY);
    first = w->cli;
    ask(w);
    wait_until(w, is_answered);
    assert_int_equal(w->err.code, -EBUSY);
    mfs_conn_close(w->cli);
    w->cli = NULL;
    assert_true(mfs_checkpoint_busy(&w->stage.cm));
    mfs_conn_close(first);
    wait_until(w, has_dropped);
    /* As a Local Manager does that has given up. */
    for (uint32_t i = 0; i < NODES; i++) {
        mfs_conn_close(w->peer[i].conn);
        w->peer[i].conn = NULL;
    }
    wait_until(w, is_idle);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_all_stand_still_before_one_forks),
        TEST(test_a_change_in_between_is_cut_anew),
        TEST(test_what_fails_ends_it_everywhere),
        TEST(test_a_missing_image_is_noticed),
        TEST(test_a_node_that_is_not_there),
        TEST(test_a_node_that_has_lost_its_partitions_gives_up_as_well),
        TEST(test_one_at_a_time_until_who_asked_has_gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
