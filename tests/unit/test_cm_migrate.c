/* A move's steps, with cm's own code and the test in the place of two Local Managers: they connect,
 * join, and answer by a script. What they are asked, and in which order, is what keeps data safe.
 */
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
#include "base/file.h"
#include "base/text.h"
#include "cluster/trust.h"
#include "cm/migrate.h"
#include "cm/replicas.h"
#include "loop_until.h"
#include "store/store.h"

#define NODES 2
#define PARTS 2

struct world;

struct peer {
    struct world *w;
    uint32_t id;
    struct mfs_conn *conn;
    int fail[MFS_MSG_COUNT][4]; /* codes of the next answers; 0: done */
    unsigned asked[MFS_MSG_COUNT];
    bool mute;                /* does not ask whether cm is there */
    unsigned beaten, refused; /* answers to that */
    uint32_t lost; /* the node that was lost by the last one; MFS_NO_NODE: not just one */
};

struct world {
    char dir[64], address[MFS_ADDRESS_MAX];
    struct mfs_paths paths;
    struct mfs_cm cm;
    struct peer peer[NODES];
    char log[1024];             /* "receive1 take1 …": message and node */
    bool silent;                /* nobody answers receive */
    bool slow;                  /* node 0 takes its time to answer a table, … */
    struct mfs_conn *late_conn; /* … this one, of which a reference is held */
    uint64_t late_id;
    int64_t until;
    bool revived;    /* the source died with a whole copy */
    bool unwritable; /* from the cut to the second fence cm can't write its state */
    bool done;
    struct mfs_err err;
    struct mfs_migrate_result result;
};

/* ---- Local Managers -------------------------------------------------------------------------- */

static void note(struct peer *p, const char *what)
{
    size_t len = strlen(p->w->log);

    snprintf(p->w->log + len, sizeof p->w->log - len, "%s%u ", what, p->id);
}

/* Is the answer an error? Then it has been sent. */
static bool fails(struct peer *p, struct mfs_conn *c, uint64_t id, enum mfs_msg type)
{
    unsigned n = p->asked[type]++;
    int code = n < 4 ? p->fail[type][n] : 0;

    if (code)
        mfs_conn_fail(c, id, code, "as the test wants it");
    return code != 0;
}

static void on_receive(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_receive *m = body;
    struct peer *p = arg;

    note(p, "receive");
    assert_string_equal(m->source_host, "127.0.0.1");
    assert_int_not_equal(m->source_port, 0);
    if (!p->w->silent && !fails(p, c, id, MFS_MSG_RECEIVE))
        mfs_conn_reply(c, MFS_MSG_RECEIVE, id,
                       &(struct mfs_msg_receive_reply){.index = m->index, .bytes = 100});
}

static void on_take(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_take *m = body;
    struct peer *p = arg;

    note(p, m->stream[0] ? "match" : m->force ? "force" : "take");
    assert_true(m->force || !m->stream[0]);
    if (m->stream[0]) {
        assert_string_equal(m->stream, "stream");
        assert_int_equal(m->offset, 4711);
    }
    if (p->w->unwritable)
        snprintf(p->w->paths.state, sizeof p->w->paths.state, "%s/cm.json.no/where", p->w->dir);
    if (!fails(p, c, id, MFS_MSG_TAKE))
        mfs_conn_reply(
            c, MFS_MSG_TAKE, id,
            &(struct mfs_msg_take_reply){.index = m->index, .port = 7777, .blocked_us = 1000});
}

/* The state as another cm would find it. */
static void check_written(const struct world *w, const char *step)
{
    struct mfs_cm_state s;
    struct mfs_err err;

    if (access(w->paths.state, F_OK))
        return; /* what the test made up was never written */
    assert_int_equal(mfs_cm_state_load(&s, w->paths.state, &err), 0);
    assert_int_equal(s.nmoves, 1);
    assert_string_equal(s.move[0].step, step);
    mfs_cm_state_clear(&s);
}

static void on_fence(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_fence *m = body;
    struct peer *p = arg;

    note(p, m->on ? "fence" : "serve");
    if (m->on && p->w->unwritable && p->asked[MFS_MSG_FENCE])
        *strstr(p->w->paths.state, ".no/where") = '\0';
    if (!m->on)
        check_written(p->w, "drop");
    assert_string_equal(m->password, "old");
    if (!fails(p, c, id, MFS_MSG_FENCE))
        mfs_conn_reply(c, MFS_MSG_FENCE, id,
                       p->w->revived && m->on
                           ? &(struct mfs_msg_fence_reply){.stream = "stream", .offset = 4711}
                           : &(struct mfs_msg_fence_reply){.offset = 0});
}

static void on_release(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_release *m = body;
    struct peer *p = arg;

    note(p, "release");
    /* The source's process is the one with the old password, the copy has another. */
    assert_int_equal(!strcmp(m->password, "old"), p->id == 0);
    if (!fails(p, c, id, MFS_MSG_RELEASE))
        mfs_conn_reply(c, MFS_MSG_RELEASE, id, NULL);
}

static void on_table(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_table *m = body;
    struct peer *p = arg;

    note(p, "table");
    if (p->w->slow && p->id == 0 && !p->w->late_conn) {
        p->w->late_conn = mfs_conn_get(c);
        p->w->late_id = id;
        return;
    }
    mfs_conn_reply(c, MFS_MSG_TABLE, id, &(struct mfs_msg_epoch){m->table->epoch});
}

/* A replica is given up ("term"): its partition serves without terms. Or it has got one ("terms"),
 * which is waited for ("whole") before it may take over, and after all wait for it. */
static void on_term(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_term *m = body;
    struct peer *p = arg;
    const struct mfs_cm_state *s = &p->w->cm.state;

    note(p, !m->on ? "term" : m->whole ? "whole" : "terms");
    assert_string_equal(s->part[m->index].replica_step,
                        m->on ? MFS_REPLICA_TERM : MFS_REPLICA_DROP);
    assert_int_equal(s->table->part[m->index].replica, m->whole);
    if (!fails(p, c, id, MFS_MSG_TERM))
        mfs_conn_reply(c, MFS_MSG_TERM, id, NULL);
}

static const struct mfs_handler lm_handlers[] = {{MFS_MSG_RECEIVE, on_receive},
                                                 {MFS_MSG_TAKE, on_take},
                                                 {MFS_MSG_FENCE, on_fence},
                                                 {MFS_MSG_RELEASE, on_release},
                                                 {MFS_MSG_TABLE, on_table},
                                                 {MFS_MSG_TERM, on_term},
                                                 {0, NULL}};

static void beaten(void *arg, const struct mfs_err *err, const void *reply)
{
    const struct mfs_msg_beat_reply *m = reply;
    struct peer *p = arg;

    assert_true(err ? err->code == -ECONNABORTED || err->code == -EAGAIN : m->age_ms == 0);
    if (err) {
        p->refused++;
        return;
    }
    p->beaten++;
    p->lost = m->nlost == 1 ? m->lost[0].node : MFS_NO_NODE;
}

/* All that are there ask for cm, by which it knows that they are. */
static void beat(void *arg)
{
    struct world *w = arg;

    for (uint32_t i = 0; i < NODES; i++)
        if (w->cm.live[i]->conn && !w->peer[i].mute)
            mfs_conn_request(w->peer[i].conn, MFS_MSG_BEAT, NULL, MFS_SEC, beaten, &w->peer[i]);
}

static void joined(void *arg, const struct mfs_err *err, const void *reply)
{
    (void)arg;
    (void)reply;
    assert_true(!err || err->code == -ECONNABORTED);
}

static void lm_up(struct mfs_conn *c, void *arg)
{
    struct peer *p = arg;
    struct mfs_msg_join m = {.version = MFS_PROTOCOL_VERSION,
                             .node = p->id,
                             .epoch = p->w->cm.state.table->epoch,
                             .nassigned = 0};

    mfs_text_copy(m.name, sizeof m.name, "unit");
    assert_int_equal(mfs_conn_request(c, MFS_MSG_JOIN, &m, MFS_SEC, joined, NULL), 0);
}

static const struct mfs_service lm_service = {lm_handlers, lm_up, NULL};

static void connect_peer(struct world *w, uint32_t i)
{
    struct mfs_err err;

    w->peer[i].conn = mfs_conn_connect(w->cm.loop, w->address, &w->cm.secret, "lm", 5 * MFS_SEC,
                                       &lm_service, &w->peer[i], &err);
    assert_non_null(w->peer[i].conn);
}

/* ---- running --------------------------------------------------------------------------------- */

static void wait_until(struct world *w, bool (*holds)(void *world))
{
    if (!loop_until(w->cm.loop, holds, w))
        fail_msg("did not come to it: %s", w->log);
}

static bool all_joined(void *world)
{
    const struct world *w = world;

    return w->cm.live[0]->conn && w->cm.live[1]->conn;
}

static bool is_calm(void *world)
{
    const struct world *w = world;

    return w->done && !w->cm.state.nmoves;
}

static bool receives(void *world)
{
    const struct world *w = world;

    return strstr(w->log, "receive1") != NULL;
}

static void ended(void *arg, const struct mfs_err *err, const struct mfs_migrate_result *r)
{
    struct world *w = arg;

    w->done = true;
    w->err = err ? *err : (struct mfs_err){0};
    w->result = *r;
}

static void move_one(struct world *w)
{
    static const struct mfs_scale_move move = {.index = 0, .from = 0, .to = 1, .bytes = 100};
    struct mfs_migrate_opts opts = {0};

    assert_int_equal(mfs_migrate_begin(&w->cm, &move, 1, &opts, ended, w), 0);
}

/* ---- the world ------------------------------------------------------------------------------- */

static void make_state(struct mfs_cm_state *s)
{
    mfs_text_copy(s->name, sizeof s->name, "unit");
    mfs_text_copy(s->phase, sizeof s->phase, MFS_PHASE_RUNNING);
    mfs_text_copy(s->provider, sizeof s->provider, "local");
    s->stripe_size = MFS_STRIPE_SIZE_DEFAULT;
    s->nnodes = NODES;
    s->node = calloc(NODES, sizeof *s->node);
    s->nparts = PARTS;
    s->part = calloc(PARTS, sizeof *s->part);
    s->table = mfs_table_new(PARTS);
    s->table->epoch = 5;
    s->table->stripe_size = s->stripe_size;
    mfs_text_copy(s->table->name, sizeof s->table->name, "unit");
    for (uint32_t i = 0; i < NODES; i++) {
        s->node[i].id = i;
        s->node[i].memory = 1 << 30;
        snprintf(s->node[i].name, sizeof s->node[i].name, "node-%u", i);
        mfs_text_copy(s->node[i].address, sizeof s->node[i].address, "127.0.0.1");
    }
    for (uint32_t i = 0; i < PARTS; i++) {
        mfs_text_copy(s->part[i].password, sizeof s->part[i].password, "old");
        mfs_text_copy(s->part[i].admin_password, sizeof s->part[i].admin_password, "admin");
        mfs_text_copy(s->table->part[i].host, sizeof s->table->part[i].host, "127.0.0.1");
        s->table->part[i].port = 6379;
        mfs_text_copy(s->table->part[i].password, sizeof s->table->part[i].password, "old");
    }
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    struct mfs_cm *cm = &w->cm;
    struct mfs_err err;

    strcpy(w->dir, "/tmp/memefs-unit-XXXXXX");
    if (!mkdtemp(w->dir))
        return -1;
    snprintf(w->paths.state, sizeof w->paths.state, "%s/cm.json", w->dir);
    snprintf(w->paths.events, sizeof w->paths.events, "%s/events.jsonl", w->dir);
    snprintf(w->paths.secret, sizeof w->paths.secret, "%s/secret", w->dir);
    if (mfs_secret_create(w->paths.secret, &cm->secret))
        return -1;
    make_state(&cm->state);
    cm->paths = &w->paths;
    cm->step = MFS_STEP_DONE;
    cm->loop = mfs_loop_create();
    if (mfs_nodes_init(cm))
        return -1;
    cm->listener =
        mfs_listener_create(cm->loop, "127.0.0.1:0", &cm->secret, 16, &mfs_cm_service, cm, &err);
    mfs_listener_address(cm->listener, w->address);
    for (uint32_t i = 0; i < NODES; i++) {
        w->peer[i].w = w;
        w->peer[i].id = i;
        connect_peer(w, i);
    }
    if (!mfs_loop_timer(cm->loop, 0, MFS_TRUST_BEAT, beat, w))
        return -1;
    wait_until(w, all_joined);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    mfs_listener_destroy(w->cm.listener);
    for (uint32_t i = 0; i < NODES; i++)
        mfs_conn_close(w->peer[i].conn);
    mfs_migrate_fini(&w->cm);
    mfs_loop_destroy(w->cm.loop);
    mfs_nodes_fini(&w->cm);
    mfs_cm_state_clear(&w->cm.state);
    mfs_file_remove_tree(w->dir);
    free(w);
    return 0;
}

static void stays(const struct world *w)
{
    assert_int_equal(w->cm.state.part[0].node, 0);
    assert_string_equal(w->cm.state.part[0].password, "old");
    assert_int_equal(w->cm.state.table->epoch, 5);
}

static void has_moved(const struct world *w)
{
    const struct mfs_table *t = w->cm.state.table;

    assert_int_equal(w->result.moved, 1);
    assert_int_equal(w->cm.state.part[0].node, 1);
    assert_int_equal(t->epoch, 6);
    assert_int_equal(t->part[0].node, 1);
    assert_int_equal(t->part[0].port, 7777);
    assert_string_equal(t->part[0].password, w->cm.state.part[0].password);
    assert_string_not_equal(t->part[0].password, "old");
    assert_string_equal(t->part[1].password, "old");
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void goes_from_step_to_step(void **state)
{
    struct world *w = *state;

    move_one(w);
    assert_int_equal(mfs_migrate_begin(&w->cm, NULL, 0, &(struct mfs_migrate_opts){0}, ended, w),
                     -EBUSY);
    wait_until(w, is_calm);
    assert_string_equal(w->log, "receive1 take1 table0 table1 release0 ");
    has_moved(w);
    assert_true(w->result.blocked_us_max >= 1000);
}

static void a_failed_copy_is_undone_and_made_again(void **state)
{
    struct world *w = *state;

    w->peer[1].fail[MFS_MSG_RECEIVE][0] = -EIO;
    move_one(w);
    wait_until(w, is_calm);
    assert_string_equal(w->log, "receive1 fence0 serve0 release1 serve0 receive1 take1 table0 "
                                "table1 release0 ");
    has_moved(w);
}

static void a_failed_cut_is_undone(void **state)
{
    struct world *w = *state;

    w->peer[1].fail[MFS_MSG_TAKE][0] = -EINVAL; /* not worth another attempt */
    move_one(w);
    wait_until(w, is_calm);
    assert_string_equal(w->log, "receive1 take1 fence0 serve0 release1 serve0 ");
    stays(w);
    assert_int_equal(w->result.undone, 1);
    assert_int_equal(w->err.code, -EINVAL);
}

/* Only the source's own Local Manager may say that it is dead. */
static void a_dead_source_is_replaced_by_force(void **state)
{
    struct world *w = *state;

    w->peer[1].fail[MFS_MSG_TAKE][0] = -EHOSTUNREACH;
    w->peer[0].fail[MFS_MSG_FENCE][0] = -ENOENT;
    move_one(w);
    wait_until(w, is_calm);
    assert_string_equal(w->log, "receive1 take1 fence0 release0 force1 table0 table1 release0 ");
    has_moved(w);
}

/* It was revived with less than its copy has: the copy serves, and only then the source is ended.
 */
static void a_revived_source_is_replaced_by_an_exact_copy(void **state)
{
    struct world *w = *state;

    w->revived = true;
    w->peer[1].fail[MFS_MSG_TAKE][0] = -EHOSTUNREACH;
    w->peer[1].fail[MFS_MSG_TAKE][1] = -EIO; /* it hangs for a moment */
    w->peer[0].fail[MFS_MSG_FENCE][0] = -EAGAIN;
    move_one(w);
    wait_until(w, is_calm);
    assert_string_equal(w->log,
                        "receive1 take1 fence0 fence0 match1 match1 table0 table1 release0 ");
    has_moved(w);
}

static void a_revived_source_goes_on_when_its_copy_is_not_exact(void **state)
{
    struct world *w = *state;

    w->revived = true;
    w->peer[1].fail[MFS_MSG_TAKE][0] = -EINVAL; /* not worth another attempt */
    w->peer[1].fail[MFS_MSG_TAKE][1] = -ENODATA;
    move_one(w);
    wait_until(w, is_calm);
    assert_string_equal(w->log, "receive1 take1 fence0 match1 serve0 release1 serve0 ");
    stays(w);
}

static void a_source_out_of_reach_is_never_ended(void **state)
{
    struct world *w = *state;

    w->peer[1].fail[MFS_MSG_RECEIVE][0] = -EINVAL;
    w->peer[0].fail[MFS_MSG_FENCE][0] = -EIO; /* it may live */
    move_one(w);
    wait_until(w, is_calm);
    assert_string_equal(w->log, "receive1 fence0 fence0 serve0 release1 serve0 ");
    stays(w);
}

static void a_partition_without_a_whole_copy_is_lost(void **state)
{
    struct world *w = *state;

    w->peer[1].fail[MFS_MSG_RECEIVE][0] = -EHOSTUNREACH;
    w->peer[0].fail[MFS_MSG_FENCE][0] = -ENOENT;
    w->peer[1].fail[MFS_MSG_TAKE][0] = -ENODATA;
    move_one(w);
    wait_until(w, is_calm);
    assert_string_equal(w->log, "receive1 fence0 release0 force1 release1 ");
    stays(w);
    assert_int_equal(w->err.code, -EOWNERDEAD);
}

static void the_source_is_released_until_it_answers(void **state)
{
    struct world *w = *state;

    w->peer[0].fail[MFS_MSG_RELEASE][0] = w->peer[0].fail[MFS_MSG_RELEASE][1] = -ETIMEDOUT;
    move_one(w);
    wait_until(w, is_calm);
    assert_string_equal(w->log, "receive1 take1 table0 table1 release0 release0 release0 ");
    has_moved(w);
}

static void a_node_that_comes_back_is_asked_again(void **state)
{
    struct world *w = *state;

    w->silent = true;
    move_one(w);
    wait_until(w, receives);
    w->silent = false;
    mfs_conn_close(w->peer[1].conn);
    connect_peer(w, 1);
    wait_until(w, is_calm);
    assert_string_equal(w->log, "receive1 receive1 take1 table0 table1 release0 ");
    has_moved(w);
}

/* What another cm left in the state, at each step. */
static void resume(struct world *w, const char *step, const char *password)
{
    struct mfs_cm_state *s = &w->cm.state;

    s->move = calloc(1, sizeof *s->move);
    s->nmoves = 1;
    s->move[0].to = 1;
    mfs_text_copy(s->move[0].step, sizeof s->move[0].step, step);
    mfs_text_copy(s->move[0].password, sizeof s->move[0].password, password);
    mfs_migrate_resume(&w->cm);
    assert_true(mfs_migrate_await(&w->cm, ended, w));
    assert_false(mfs_migrate_await(&w->cm, ended, w));
    wait_until(w, is_calm);
}

static void a_new_cm_goes_on_with_a_copy(void **state)
{
    struct world *w = *state;

    resume(w, "copy", "new");
    assert_string_equal(w->log, "receive1 take1 table0 table1 release0 ");
    has_moved(w);
    assert_string_equal(w->cm.state.part[0].password, "new");
}

static void a_new_cm_goes_on_with_a_cut(void **state)
{
    struct world *w = *state;

    resume(w, "cut", "new");
    assert_string_equal(w->log, "take1 table0 table1 release0 ");
    has_moved(w);
}

static void a_new_cm_goes_on_undoing(void **state)
{
    struct world *w = *state;

    resume(w, "undo", "new");
    assert_non_null(strstr(w->log, "fence0 serve0 release1 serve0 "));
}

static void a_new_cm_goes_on_matching(void **state)
{
    struct world *w = *state;

    w->revived = true;
    resume(w, "match", "new");
    assert_string_equal(w->log, "fence0 match1 table0 table1 release0 ");
    has_moved(w);
}

static void so_it_does_with_the_name_that_step_had(void **state)
{
    struct world *w = *state;

    w->revived = true;
    resume(w, "prove", "new");
    assert_string_equal(w->log, "fence0 match1 table0 table1 release0 ");
    has_moved(w);
}

static void a_new_cm_goes_on_dropping(void **state)
{
    struct world *w = *state;

    resume(w, "drop", "new");
    assert_memory_equal(w->log, "serve0 release1 serve0 receive1 ", 32);
    has_moved(w); /* by another attempt */
}

static void a_new_cm_goes_on_forcing(void **state)
{
    struct world *w = *state;

    resume(w, "force", "new");
    assert_string_equal(w->log, "release0 force1 table0 table1 release0 ");
    has_moved(w);
}

/* A cut may fail after the target was promoted. Then the target has not followed what the source
 * has taken since it serves again. */
static void a_source_that_served_again_is_not_replaced(void **state)
{
    struct world *w = *state;

    w->peer[1].fail[MFS_MSG_TAKE][0] = -EIO;
    w->peer[0].fail[MFS_MSG_FENCE][1] = -EIO;    /* nobody knows whether it serves … */
    w->peer[0].fail[MFS_MSG_FENCE][2] = -ENOENT; /* … and it is dead */
    move_one(w);
    wait_until(w, is_calm);
    assert_string_equal(w->log, "receive1 take1 fence0 serve0 serve0 release1 ");
    stays(w);
    assert_int_equal(w->err.code, -EOWNERDEAD);
}

static void nor_is_it_by_a_new_cm(void **state)
{
    struct world *w = *state;

    w->peer[0].fail[MFS_MSG_FENCE][0] = -ENOENT;
    resume(w, "drop", "new");
    assert_string_equal(w->log, "serve0 release1 ");
    stays(w);
    assert_int_equal(w->err.code, -EOWNERDEAD);
}

static void a_source_does_not_serve_before_that_is_written_down(void **state)
{
    struct world *w = *state;

    w->peer[1].fail[MFS_MSG_TAKE][0] = -EINVAL;
    w->unwritable = true;
    move_one(w);
    wait_until(w, is_calm);
    assert_string_equal(w->log, "receive1 take1 fence0 fence0 serve0 release1 serve0 ");
    stays(w);
}

static void a_new_cm_goes_on_releasing(void **state)
{
    resume(*state, "release", "old");
    assert_string_equal(((struct world *)*state)->log, "release0 ");
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* What has been told of the target: so many of 1000 MiB are in use. */
static void target_uses(struct world *w, uint64_t mib)
{
    w->cm.live[1]->last.memory_used = mib << 20;
    w->cm.live[1]->last.memory_capacity = 1000U << 20;
    w->cm.live[0]->last.memory_capacity = 1000U << 20;
}

static void a_full_target_is_refused_with_figures(void **state)
{
    struct world *w = *state;

    target_uses(w, 998); /* 100 bytes would do, but not a process besides */
    move_one(w);
    wait_until(w, is_calm);
    assert_string_equal(w->log, "");
    stays(w);
    assert_int_equal(w->err.code, -ENOSPC);
    assert_non_null(strstr(w->err.msg, "node-1 has no memory for it: it takes 2.5 MiB, and 998 MiB "
                                       "of 1000 MiB are in use"));
}

static bool replica_is_gone(void *world)
{
    const struct world *w = world;

    return !w->cm.state.part[1].replica_step[0] && !w->cm.state.ngraves;
}

static bool replica_is_ready(void *world)
{
    const struct world *w = world;

    return !strcmp(w->cm.state.part[0].replica_step, MFS_REPLICA_READY);
}

/* One that lacks what was written before all waited for it is given up, and another one made. */
static void a_replica_is_ready_when_it_has_all(void **state)
{
    struct world *w = *state;

    w->cm.state.replicas = 1;
    w->cm.state.part[1].node = 1;
    for (uint32_t i = 0; i < NODES; i++) {
        w->cm.live[i]->reported = true;
        w->cm.live[i]->last.memory_capacity = 1 << 30;
    }
    w->peer[0].fail[MFS_MSG_TERM][1] = -ETIMEDOUT;
    assert_int_equal(mfs_replicas_begin(&w->cm), 0);
    wait_until(w, replica_is_ready);
    assert_true(w->cm.state.table->part[0].replica);
    assert_true(w->peer[0].asked[MFS_MSG_TERM] >= 5); /* terms, whole, term, terms, whole */
    mfs_replicas_fini(&w->cm);
}

static bool time_is_over(void *world)
{
    const struct world *w = world;

    return mfs_clock_mono() >= w->until;
}

static bool replica_serves(void *world)
{
    const struct world *w = world;

    return w->cm.state.part[0].node == 1;
}

static bool old_process_is_buried(void *world)
{
    const struct world *w = world;

    return !w->cm.state.ngraves;
}

/* A node is slow to tell that it has heard of a failover. When it does the replica has been the
 * partition for long, and has none. */
static void who_hears_late_of_a_failover_makes_no_replica(void **state)
{
    struct mfs_msg_died died = {.index = 0};
    struct world *w = *state;
    struct mfs_cm_part *p = &w->cm.state.part[0];

    w->cm.state.replicas = 1;
    mfs_text_copy(p->replica_step, sizeof p->replica_step, MFS_REPLICA_READY);
    mfs_text_copy(p->replica_password, sizeof p->replica_password, "replica");
    p->replica_node = 1;
    w->slow = true;
    assert_int_equal(mfs_replicas_begin(&w->cm), 0);
    mfs_text_copy(died.password, sizeof died.password, "old");
    mfs_replicas_died(&w->cm, &died);
    wait_until(w, replica_serves);
    assert_non_null(w->late_conn);
    w->log[0] = '\0';
    mfs_conn_reply(w->late_conn, MFS_MSG_TABLE, w->late_id, &(struct mfs_msg_epoch){0});
    mfs_conn_put(w->late_conn);
    wait_until(w, old_process_is_buried);
    w->until = mfs_clock_mono() + 500 * MFS_MSEC;
    wait_until(w, time_is_over);
    assert_string_equal(p->replica_step, "");
    assert_null(strstr(w->log, "term"));
    mfs_replicas_fini(&w->cm);
}

static bool other_is_lost(void *world)
{
    const struct world *w = world;

    return w->peer[0].beaten && w->peer[0].lost == 1;
}

static bool nobody_is_lost(void *world)
{
    const struct world *w = world;

    return w->peer[0].lost == MFS_NO_NODE;
}

static bool other_is_answered(void *world)
{
    const struct world *w = world;

    return w->peer[1].beaten > 0;
}

/* Who was told that a node is lost may count on that for a while: so long that node's clients are
 * told nothing that they could rely on. */
static void a_lost_node_is_told_of_and_then_not_answered(void **state)
{
    struct world *w = *state;
    int64_t said;

    w->peer[1].mute = true;
    w->peer[0].lost = MFS_NO_NODE;
    wait_until(w, other_is_lost);
    said = mfs_clock_mono();
    assert_true(said - w->cm.live[1]->heard >= MFS_TRUST_LOST);
    w->peer[1].mute = false;
    w->peer[1].beaten = w->peer[1].refused = 0;
    wait_until(w, other_is_answered);
    assert_true(w->peer[1].refused > 0);
    assert_true(mfs_clock_mono() - said >= MFS_TRUST_OVER - MFS_TRUST_BEAT);
    assert_int_equal(w->peer[1].lost, MFS_NO_NODE);
    wait_until(w, nobody_is_lost);
}

/* The other partition's replica is on the target, which its Local Manager ends before it tells that
 * there is room. */
static void a_replica_makes_room_on_a_full_target(void **state)
{
    struct world *w = *state;
    struct mfs_cm_part *other = &w->cm.state.part[1];

    w->cm.state.replicas = 1;
    mfs_text_copy(other->replica_step, sizeof other->replica_step, MFS_REPLICA_READY);
    mfs_text_copy(other->replica_password, sizeof other->replica_password, "replica");
    other->replica_node = 1;
    w->cm.part_bytes[1] = 20 << 20;
    assert_int_equal(mfs_replicas_begin(&w->cm), 0);
    target_uses(w, 998);
    move_one(w);
    wait_until(w, replica_is_gone);
    assert_null(strstr(w->log, "receive"));
    assert_non_null(strstr(w->log, "term0 release1 "));
    target_uses(w, 976);
    wait_until(w, is_calm);
    assert_int_equal(w->err.code, 0);
    assert_int_equal(w->cm.state.part[0].node, 1);
    assert_string_equal(other->password, "old");
    mfs_replicas_fini(&w->cm);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

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
        TEST(a_source_does_not_serve_before_that_is_written_down),
        TEST(a_new_cm_goes_on_releasing),
        TEST(a_full_target_is_refused_with_figures),
        TEST(a_replica_makes_room_on_a_full_target),
        TEST(a_replica_is_ready_when_it_has_all),
        TEST(who_hears_late_of_a_failover_makes_no_replica),
        TEST(a_lost_node_is_told_of_and_then_not_answered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
