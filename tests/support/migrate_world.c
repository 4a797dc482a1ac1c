#include "migrate_world.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/text.h"
#include "cluster/trust.h"
#include "loop_until.h"
#include "store/store.h"

/* ---- Local Managers -------------------------------------------------------------------------- */

static void note(struct migrate_peer *p, const char *what)
{
    size_t len = strlen(p->w->log);
    char *both;

    snprintf(p->w->log + len, sizeof p->w->log - len, "%s%u ", what, p->id);
    /* A table goes to all nodes at once. */
    both = strstr(p->w->log, "table1 table0 ");
    if (both)
        memcpy(both, "table0 table1 ", strlen("table0 table1 "));
}

/* Is the answer an error? Then it has been sent. */
static bool fails(struct migrate_peer *p, struct mfs_conn *c, uint64_t id, enum mfs_msg type)
{
    unsigned n = p->asked[type]++;
    int code = n < 4 ? p->fail[type][n] : 0;

    if (code)
        mfs_conn_fail(c, id, code, "as the test wants it");
    return code != 0;
}

static void hinder_at(struct migrate_world *w, enum mfs_msg type)
{
    if (w->hinders != type)
        return;
    migrate_world_hinder(w, true);
    w->hinders = 0;
}

static void fail_over(struct migrate_world *w, uint32_t but)
{
    struct mfs_cm_state *s = &w->stage.cm.state;

    for (uint32_t i = 0; i < MIGRATE_WORLD_PARTS && w->fails_over; i++) {
        if (i != but)
            s->part[i].node = s->table->part[i].node = w->source;
    }
    w->fails_over = false;
}

static void on_receive(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_receive *m = body;
    struct migrate_peer *p = arg;

    note(p, "receive");
    p->w->ended = false;
    assert_string_equal(m->source_host, "127.0.0.1");
    assert_int_not_equal(m->source_port, 0);
    hinder_at(p->w, MFS_MSG_RECEIVE);
    fail_over(p->w, m->index);
    if (!p->w->silent && !fails(p, c, id, MFS_MSG_RECEIVE))
        mfs_conn_reply(c, MFS_MSG_RECEIVE, id,
                       &(struct mfs_msg_receive_reply){.index = m->index, .bytes = 100});
}

static void on_take(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_take *m = body;
    struct migrate_peer *p = arg;

    note(p, m->stream[0] ? "match" : m->force ? "force" : "take");
    assert_true(m->force || !m->stream[0]);
    if (m->stream[0]) {
        assert_string_equal(m->stream, "stream");
        assert_int_equal(m->offset, 4711);
    }
    hinder_at(p->w, MFS_MSG_TAKE);
    if (!fails(p, c, id, MFS_MSG_TAKE))
        mfs_conn_reply(
            c, MFS_MSG_TAKE, id,
            &(struct mfs_msg_take_reply){.index = m->index, .port = 7777, .blocked_us = 1000});
}

/* The state as another cm would find it. */
static void check_written(const struct migrate_world *w, const char *step)
{
    struct mfs_cm_state s;
    struct mfs_err err;

    if (access(w->stage.paths.state, F_OK))
        return; /* what the test made up was never written */
    assert_int_equal(mfs_cm_state_load(&s, w->stage.paths.state, &err), 0);
    assert_int_equal(s.nmoves, 1);
    assert_string_equal(s.move[0].step, step);
    mfs_cm_state_clear(&s);
}

static void on_fence(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_fence *m = body;
    struct migrate_peer *p = arg;

    note(p, m->on ? "fence" : "serve");
    if (!m->on && !p->w->ended)
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
    struct migrate_peer *p = arg;

    note(p, "release");
    /* The source's process is the one with the old password, the copy has another. */
    assert_int_equal(!strcmp(m->password, "old"), p->id == p->w->source);
    if (fails(p, c, id, MFS_MSG_RELEASE))
        return;
    p->w->ended |= p->id != p->w->source;
    mfs_conn_reply(c, MFS_MSG_RELEASE, id, NULL);
}

static void on_table(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_table *m = body;
    struct migrate_peer *p = arg;

    note(p, "table");
    if (p->w->slow && p->id == 0 && !p->w->late_conn) {
        p->w->late_conn = mfs_conn_get(c);
        p->w->late_id = id;
        return;
    }
    mfs_conn_reply(c, MFS_MSG_TABLE, id,
                   &(struct mfs_msg_epoch){m->table ? m->table->epoch : m->change.epoch});
}

/* A replica is given up ("term"): its partition serves without terms. Or it has got one ("terms"),
 * which is waited for ("whole") before it may take over, and after all wait for it. */
static void on_term(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_term *m = body;
    struct migrate_peer *p = arg;
    const struct mfs_cm_state *s = &p->w->stage.cm.state;

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
    struct migrate_peer *p = arg;

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
    struct migrate_world *w = arg;

    for (uint32_t i = 0; i < MIGRATE_WORLD_NODES; i++)
        if (w->stage.cm.nodes[i]->conn && !w->peer[i].mute)
            mfs_conn_request(w->peer[i].conn, MFS_MSG_BEAT, NULL, MFS_SEC, beaten, &w->peer[i]);
}

static void lm_up(struct mfs_conn *c, void *arg)
{
    const struct migrate_peer *p = arg;

    cm_stage_join(c, p->id, p->w->stage.cm.state.table->epoch);
}

/* cm has closed it. */
static void lm_down(struct mfs_conn *c, const struct mfs_err *why, void *arg)
{
    struct migrate_peer *p = arg;

    (void)why;
    if (p->conn == c)
        p->conn = NULL;
}

static const struct mfs_service lm_service = {lm_handlers, lm_up, lm_down};

void migrate_world_connect(struct migrate_world *w, uint32_t i)
{
    struct mfs_err err;

    w->peer[i].conn = mfs_conn_connect(w->stage.cm.loop, w->stage.address, &w->stage.cm.secret,
                                       "lm", 5 * MFS_SEC, &lm_service, &w->peer[i], &err);
    assert_non_null(w->peer[i].conn);
}

/* ---- running --------------------------------------------------------------------------------- */

void migrate_world_wait(struct migrate_world *w, bool (*holds)(void *world))
{
    if (!loop_until(w->stage.cm.loop, holds, w))
        fail_msg("did not come to it: %s", w->log);
}

/* A directory in the place of the file that is written beside it, and then renamed (base/file.c).
 */
void migrate_world_hinder(struct migrate_world *w, bool on)
{
    char path[128];

    snprintf(path, sizeof path, "%s/cm.json.new.%d", w->stage.dir, (int)getpid());
    assert_int_equal(on ? mkdir(path, 0700) : rmdir(path), 0);
}

static bool all_joined(void *world)
{
    const struct migrate_world *w = world;

    return w->stage.cm.nodes[0]->conn && w->stage.cm.nodes[1]->conn;
}

bool migrate_world_is_calm(void *world)
{
    const struct migrate_world *w = world;

    return w->done && !w->stage.cm.state.nmoves;
}

void migrate_world_ended(void *arg, const struct mfs_err *err, const struct mfs_migrate_result *r)
{
    struct migrate_world *w = arg;

    w->done = true;
    w->err = err ? *err : (struct mfs_err){0};
    w->result = *r;
}

static void begin_move(struct migrate_world *w, bool cold)
{
    static const struct mfs_scale_move move = {.index = 0, .from = 0, .to = 1, .bytes = 100};
    struct mfs_migrate_opts opts = {.cold = cold};

    assert_int_equal(mfs_migrate_begin(&w->stage.cm, &move, 1, &opts, migrate_world_ended, w), 0);
}

void migrate_world_move(struct migrate_world *w)
{
    begin_move(w, false);
}

void migrate_world_move_cold(struct migrate_world *w)
{
    begin_move(w, true);
}

/* ---- the world ------------------------------------------------------------------------------- */

static void make_state(struct mfs_cm_state *s)
{
    cm_stage_state(s, MIGRATE_WORLD_NODES, MIGRATE_WORLD_PARTS);
    mfs_text_copy(s->table->name, sizeof s->table->name, "unit");
    for (uint32_t i = 0; i < MIGRATE_WORLD_NODES; i++)
        mfs_text_copy(s->node[i].address, sizeof s->node[i].address, "127.0.0.1");
    for (uint32_t i = 0; i < MIGRATE_WORLD_PARTS; i++) {
        mfs_text_copy(s->part[i].password, sizeof s->part[i].password, "old");
        mfs_text_copy(s->part[i].admin_password, sizeof s->part[i].admin_password, "admin");
        mfs_text_copy(s->table->part[i].host, sizeof s->table->part[i].host, "127.0.0.1");
        s->table->part[i].port = 6379;
        mfs_text_copy(s->table->part[i].password, sizeof s->table->part[i].password, "old");
    }
}

int migrate_world_setup(void **state)
{
    struct migrate_world *w = calloc(1, sizeof *w);
    struct mfs_cm *cm = &w->stage.cm;

    make_state(&cm->state);
    if (cm_stage_open(&w->stage))
        return -1;
    for (uint32_t i = 0; i < MIGRATE_WORLD_NODES; i++) {
        w->peer[i].w = w;
        w->peer[i].id = i;
        migrate_world_connect(w, i);
    }
    if (!mfs_loop_timer(cm->loop, 0, MFS_TRUST_HEARTBEAT, beat, w))
        return -1;
    migrate_world_wait(w, all_joined);
    *state = w;
    return 0;
}

int migrate_world_teardown(void **state)
{
    struct migrate_world *w = *state;

    cm_stage_deafen(&w->stage);
    for (uint32_t i = 0; i < MIGRATE_WORLD_NODES; i++)
        if (w->peer[i].conn)
            mfs_conn_close(w->peer[i].conn);
    mfs_migrate_fini(&w->stage.cm);
    cm_stage_close(&w->stage);
    free(w);
    return 0;
}
