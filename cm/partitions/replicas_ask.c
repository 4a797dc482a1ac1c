/* What a replica's steps ask the nodes for, whether these are there, and stale processes. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cm/nodes/quorum.h"
#include "cm/partitions/replicas_impl.h"
#include "cluster/trust.h"
#include "proto/times.h"

#define SILENT       (1200 * MFS_MSEC) /* without a word: out of reach, for all that is known */
#define QUIET_MS     900 /* a process that has not asked its replica for so long is, too */
#define RECEIVE_TIME (60 * MFS_SEC) /* and what the bytes take, at worst: */
#define RECEIVE_SLOW (2ULL << 20)   /* bytes/s */
#define TERM_TIME    (15 * MFS_SEC)
#define TAKE_TIME    (30 * MFS_SEC)
#define RELEASE_TIME (30 * MFS_SEC)
#define SEND_AGAIN   (500 * MFS_MSEC)

static_assert(4 * MFS_TRUST_HEARTBEAT < SILENT, "heartbeats may be late");
static_assert(SILENT < MFS_TRUST_LOST, "a replica takes over before the node counts as lost");
static_assert(2 * MFS_CONSENT_TIME < TERM_TIME, "a Local Manager gives up first, and says why");

struct mfs_replica_call {
    struct mfs_replica *r;  /* NULL: the answer is not wanted any more */
    struct mfs_replicas *g; /* of a call for a stale process, likewise */
    const struct mfs_conn *conn;
    struct mfs_cm_stale stale;
};

void mfs_replica_forget_call(struct mfs_replica *r)
{
    if (r->call)
        r->call->r = NULL;
    r->call = NULL;
}

static void answered(void *arg, const struct mfs_err *err, const void *reply)
{
    struct mfs_replica_call *call = arg;
    struct mfs_replica *r = call->r;

    free(call);
    if (!r)
        return;
    r->call = NULL;
    if (!mfs_cm_in_phase(r->cm, MFS_PHASE_RUNNING) || (err && err->code == -ECONNABORTED))
        return; /* the tick asks again when the node is there */
    mfs_replica_answer(r, err, reply);
}

static void ask(struct mfs_replica *r, struct mfs_node *n, enum mfs_msg type, const void *body,
                int64_t timeout)
{
    struct mfs_replica_call *call = calloc(1, sizeof *call);
    int rc = call ? 0 : -ENOMEM;

    if (!rc) {
        call->r = r;
        call->conn = n->conn;
        rc = mfs_node_ask(n, type, body, timeout, answered, call);
    }
    if (!rc) {
        r->call = call;
        return;
    }
    free(call);
    mfs_warn("replica", "partition %u: cannot send \"%s\" to %s: %s", r->part,
             mfs_messages[type].name, n->record->name, strerror(-rc));
    r->again_at = mfs_clock_mono() + SEND_AGAIN;
}

static void receive(struct mfs_replica *r, struct mfs_node *n)
{
    const struct mfs_cm_state *st = &r->cm->state;
    const struct mfs_cm_part *p = mfs_replica_state(r);
    const struct mfs_partition *source = &st->table->part[r->part];
    uint64_t bytes = r->cm->part_bytes[r->part];
    struct mfs_msg_receive m = {.index = r->part,
                                .nparts = st->nparts,
                                .stripe_size = st->stripe_size,
                                .memory = n->record->memory,
                                .source_port = source->port,
                                .bytes = bytes,
                                .rate = st->rate};

    memcpy(m.password, p->replica_password, sizeof m.password);
    memcpy(m.admin_password, p->replica_admin_password, sizeof m.admin_password);
    memcpy(m.source_host, source->host, sizeof m.source_host);
    memcpy(m.source_admin_password, p->admin_password, sizeof m.source_admin_password);
    ask(r, n, MFS_MSG_RECEIVE, &m, RECEIVE_TIME + (int64_t)(bytes / RECEIVE_SLOW) * MFS_SEC);
}

static void term(struct mfs_replica *r, struct mfs_node *node, bool on)
{
    const struct mfs_cm_part *p = mfs_replica_state(r);
    const struct mfs_cm_node *n = mfs_cm_state_node(&r->cm->state, p->replica_node);
    struct mfs_msg_term m = {.index = r->part, .on = on, .whole = on && r->shown};

    memcpy(m.password, p->password, sizeof m.password);
    if (on && n) {
        mfs_text_copy(m.replica_host, sizeof m.replica_host, n->address);
        m.replica_port = r->port;
        memcpy(m.replica_admin_password, p->replica_admin_password,
               sizeof m.replica_admin_password);
    }
    ask(r, node, MFS_MSG_TERM, &m, TERM_TIME);
}

static void take(struct mfs_replica *r, struct mfs_node *n)
{
    struct mfs_msg_take m = {
        .index = r->part, .force = true, .quiet_ms = QUIET_MS, .dead = r->dead};

    memcpy(m.password, mfs_replica_state(r)->replica_password, sizeof m.password);
    ask(r, n, MFS_MSG_TAKE, &m, TAKE_TIME);
}

/* TERM is for the partition's node, the others are for the replica's. */
static uint32_t node_of(const struct mfs_replica *r)
{
    const struct mfs_cm_part *p = mfs_replica_state(r);

    return mfs_replica_in(r, MFS_REPLICA_TERM) || mfs_replica_in(r, MFS_REPLICA_DROP)
               ? p->node
               : p->replica_node;
}

bool mfs_replica_ask(struct mfs_replica *r)
{
    struct mfs_node *n = mfs_nodes_find(r->cm, node_of(r));

    if (!n || !n->conn)
        return false;
    if (r->call && r->call->conn == n->conn)
        return true; /* it is being answered */
    mfs_replica_forget_call(r);
    if (mfs_replica_in(r, MFS_REPLICA_COPY))
        receive(r, n);
    else if (mfs_replica_in(r, MFS_REPLICA_TAKE))
        take(r, n);
    else
        term(r, n, mfs_replica_in(r, MFS_REPLICA_TERM));
    return true;
}

/* ---- what is there --------------------------------------------------------------------------- */

bool mfs_replicas_silent(const struct mfs_cm *cm, uint32_t node, int64_t now)
{
    const struct mfs_node *n = mfs_nodes_find(cm, node);

    return !n || !n->conn || now - n->last_contact >= SILENT;
}

int64_t mfs_replicas_silence(const struct mfs_cm *cm, uint32_t node, int64_t now)
{
    const struct mfs_node *n = mfs_nodes_find(cm, node);

    return n ? now - n->last_contact : INT64_MAX;
}

/* ---- stale processes ------------------------------------------------------------------------- */

void mfs_replicas_forget_stale_call(struct mfs_replicas *g)
{
    if (g->stale_call)
        g->stale_call->g = NULL;
    g->stale_call = NULL;
}

static void remove_stale(struct mfs_cm *cm, uint32_t i)
{
    struct mfs_cm_state *s = &cm->state;
    int rc;

    s->stale[i] = s->stale[--s->nstale];
    rc = mfs_cm_state_note(s, cm->paths->state);
    if (rc)
        mfs_error("replica", "%s: %s", cm->paths->state, strerror(-rc));
}

/* Others may have been added and removed since it was asked for. */
static void remove_ended(struct mfs_cm *cm, const struct mfs_cm_stale *one)
{
    const struct mfs_cm_state *s = &cm->state;

    for (uint32_t i = 0; i < s->nstale; i++)
        if (s->stale[i].node == one->node && !strcmp(s->stale[i].password, one->password)) {
            remove_stale(cm, i);
            return;
        }
}

static void stale_ended(void *arg, const struct mfs_err *err, const void *reply)
{
    struct mfs_replica_call *call = arg;
    struct mfs_cm_stale stale = call->stale;
    struct mfs_replicas *g = call->g;

    (void)reply;
    free(call);
    if (!g)
        return;
    g->stale_call = NULL;
    if (err) {
        g->stale_at = mfs_clock_mono() + SEND_AGAIN;
        return;
    }
    remove_ended(g->cm, &stale);
    if (!mfs_cm_in_phase(g->cm, MFS_PHASE_STOPPING))
        mfs_replicas_end_stale(g, mfs_clock_mono()); /* the next: moves may wait for it */
}

/* The first whose node is there. */
void mfs_replicas_end_stale(struct mfs_replicas *g, int64_t now)
{
    const struct mfs_cm_state *s = &g->cm->state;
    struct mfs_replica_call *call;

    for (uint32_t i = 0; i < s->nstale && !g->stale_call && now >= g->stale_at; i++) {
        struct mfs_node *n = mfs_nodes_find(g->cm, s->stale[i].node);
        struct mfs_msg_release m = {.index = s->stale[i].part};

        if (!n) {
            remove_stale(g->cm, i); /* its node has left, and all that ran there has ended */
            return;
        }
        if (mfs_replicas_silent(g->cm, n->record->id, now))
            continue;
        memcpy(m.password, s->stale[i].password, sizeof m.password);
        call = calloc(1, sizeof *call);
        if (!call)
            return;
        call->g = g;
        call->stale = s->stale[i];
        if (mfs_node_ask(n, MFS_MSG_RELEASE, &m, RELEASE_TIME, stale_ended, call))
            free(call);
        else
            g->stale_call = call;
    }
}
