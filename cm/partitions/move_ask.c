/* The messages of a move's steps. At most one is unanswered (m->call); a step is one message that
 * may be repeated, so it is sent again when a node has come back. Each call is bounded: by a time
 * of its own, that of a copy also by its bytes, and less where clients wait meanwhile. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cm/nodes/quorum.h"
#include "cm/partitions/move_impl.h"

/* A copy, and what its bytes take at worst, in bytes/s. One that stands still is given up by the
 * Local Manager. Clients of a cold one wait, for two minutes (MOVE_WAIT of fuse/mount/mount.c). */
#define RECEIVE_TIME (60 * MFS_SEC)
#define RECEIVE_SLOW (64ULL << 10)
#define BLOCKED_TIME (100 * MFS_SEC)
#define BLOCKED_SLOW (2ULL << 20)

#define TAKE_TIME    (30 * MFS_SEC)
#define FENCE_TIME   (10 * MFS_SEC)
#define RELEASE_TIME (30 * MFS_SEC)
#define SEND_AGAIN   (500 * MFS_MSEC)

static_assert(FENCE_TIME < TAKE_TIME && TAKE_TIME < BLOCKED_TIME, "a step is a part of the whole");

struct mfs_move_call {
    struct mfs_move *m; /* NULL: the answer is not wanted any more */
    const struct mfs_conn *conn;
};

void mfs_move_forget_call(struct mfs_move *m)
{
    if (m->call)
        m->call->m = NULL;
    m->call = NULL;
}

uint32_t mfs_move_node(const struct mfs_move *m)
{
    switch (m->step) {
    case MFS_AT_RECEIVE:
    case MFS_AT_TAKE:
    case MFS_AT_MATCH:
    case MFS_AT_DROP:
    case MFS_AT_FORCE:
        return m->to;
    default:
        return m->from;
    }
}

static void answered(void *arg, const struct mfs_err *err, const void *reply)
{
    struct mfs_move_call *call = arg;
    struct mfs_move *m = call->m;

    free(call);
    if (!m)
        return;
    m->call = NULL;
    if (mfs_cm_in_phase(m->cm, MFS_PHASE_STOPPING))
        return;
    if (err && err->code == -ECONNABORTED)
        m->away_since = mfs_clock_mono(); /* mfs_move_node_changed sends again */
    else
        mfs_move_answer(m, err, reply);
}

static void ask(struct mfs_move *m, struct mfs_node *n, enum mfs_msg type, const void *body,
                int64_t timeout)
{
    struct mfs_move_call *call = malloc(sizeof *call);
    int rc = call ? 0 : -ENOMEM;

    m->away_since = 0;
    if (!rc) {
        *call = (struct mfs_move_call){m, n->conn};
        rc = mfs_node_ask(n, type, body, timeout, answered, call);
    }
    if (!rc) {
        m->call = call;
        return;
    }
    free(call);
    mfs_warn("move", "partition %u: cannot send \"%s\" to %s: %s", m->part, mfs_messages[type].name,
             n->record->name, strerror(-rc));
    m->again_at = mfs_clock_mono() + SEND_AGAIN;
}

/* All that leaves at once shares the link, so each takes as long as all of them. */
static int64_t left_at_once(const struct mfs_move *m)
{
    int64_t left = m->step_began + BLOCKED_TIME - mfs_clock_mono();

    return left > MFS_SEC ? left : MFS_SEC;
}

static int64_t receive_time(const struct mfs_move *m)
{
    uint64_t slowest = m->cold ? BLOCKED_SLOW : RECEIVE_SLOW;

    if (m->diskless)
        return left_at_once(m);

    if (m->rate && m->rate / 2 < slowest)
        slowest = m->rate / 2 + 1;
    return (m->cold ? BLOCKED_TIME : RECEIVE_TIME) + (int64_t)(m->bytes / slowest) * MFS_SEC;
}

static void receive(struct mfs_move *m, struct mfs_node *n, const struct mfs_cm_move *s)
{
    const struct mfs_cm_state *st = &m->cm->state;
    const struct mfs_partition *p = &st->table->part[m->part];
    struct mfs_msg_receive r = {.index = m->part,
                                .nparts = st->nparts,
                                .stripe_size = st->stripe_size,
                                .memory = n->record->memory,
                                .source_port = p->port,
                                .cold = m->cold,
                                .diskless = m->diskless,
                                .moves = true,
                                .bytes = m->bytes,
                                .rate = m->rate};

    memcpy(r.password, s->password, sizeof r.password);
    memcpy(r.admin_password, s->admin_password, sizeof r.admin_password);
    memcpy(r.source_host, p->host, sizeof r.source_host);
    memcpy(r.source_admin_password, st->part[m->part].admin_password,
           sizeof r.source_admin_password);
    ask(m, n, MFS_MSG_RECEIVE, &r, receive_time(m));
}

static void take(struct mfs_move *m, struct mfs_node *n, const struct mfs_cm_move *s)
{
    struct mfs_msg_take t = {.index = m->part, .force = m->step != MFS_AT_TAKE};

    if (m->step == MFS_AT_MATCH) {
        memcpy(t.stream, m->died_at.stream, sizeof t.stream);
        t.offset = m->died_at.offset;
    }
    memcpy(t.password, s->password, sizeof t.password);
    ask(m, n, MFS_MSG_TAKE, &t, TAKE_TIME);
}

/* FENCE and RELEASE of the source's process before the cut; after it, its password is kept in the
 * move, as the partition has the new one. */
static void fence(struct mfs_move *m, struct mfs_node *n, bool on)
{
    struct mfs_msg_fence f = {.index = m->part, .on = on};

    memcpy(f.password, m->cm->state.part[m->part].password, sizeof f.password);
    ask(m, n, MFS_MSG_FENCE, &f, FENCE_TIME);
}

static void release(struct mfs_move *m, struct mfs_node *n, const char *password)
{
    struct mfs_msg_release r = {.index = m->part};

    mfs_text_copy(r.password, sizeof r.password, password);
    ask(m, n, MFS_MSG_RELEASE, &r, RELEASE_TIME);
}

static void send_to(struct mfs_move *m, struct mfs_node *n, const struct mfs_cm_move *s)
{
    switch (m->step) {
    case MFS_AT_RECEIVE:
        receive(m, n, s);
        break;
    case MFS_AT_TAKE:
    case MFS_AT_MATCH:
    case MFS_AT_FORCE:
        take(m, n, s);
        break;
    case MFS_AT_ASK:
        fence(m, n, true);
        break;
    case MFS_AT_UNFENCE:
    case MFS_AT_UNFENCE_LAST:
        fence(m, n, false);
        break;
    case MFS_AT_RELEASE:
    case MFS_AT_DROP:
        release(m, n, s->password);
        break;
    case MFS_AT_END_SOURCE:
        release(m, n, m->cm->state.part[m->part].password);
        break;
    default:
        break;
    }
}

void mfs_move_send(struct mfs_move *m)
{
    struct mfs_node *n = mfs_nodes_find(m->cm, mfs_move_node(m));
    const struct mfs_cm_move *s = mfs_move_state(m);
    struct mfs_err gone;

    if (m->call && n && m->call->conn == n->conn)
        return; /* it is being answered */
    mfs_move_forget_call(m);
    if (!n) {
        /* It has left the deployment, and its processes with it. */
        mfs_err_set(&gone, -ENODEV, "node %u has left", mfs_move_node(m));
        mfs_move_answer(m, &gone, NULL);
    } else if (!n->conn) {
        if (!m->away_since)
            m->away_since = mfs_clock_mono();
    } else if (s) {
        send_to(m, n, s);
    }
}
