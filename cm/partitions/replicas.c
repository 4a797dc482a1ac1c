/* The steps of a replica, as they stand in cm.json before each begins:
 *
 *     "" ──► copy ──► term ──► ready ──► take ──► (it is the partition; the next one begins at "")
 *     ▲        │        │        │ ▲       │
 *     └────────┴─ drop ◄┴────────┘ └───────┘ the partition's process lives after all
 *
 * copy: the replica's node receives a copy that goes on following. term: from now on the
 * partition's process serves only while the replica consents, and says so to each client that
 * writes without waiting for the replica; cm waits until the replica has what was written before.
 * ready: it has, and may take over. take: the partition's process has ended or is out of reach; the
 * replica withdraws its consent, waits until no term is left, and serves; all clients are asked to
 * forget what the former process may have granted without its knowledge, and then get to know where
 * the replica is. drop: the partition is to go without; its process is asked to serve without
 * terms, and only then another replica may be made.
 *
 * Only `take` leads to a promotion, only `drop` back to serving without terms, and a state is never
 * in both: so at no time two processes serve one partition. That holds for a cm that comes after us
 * as well, so a step that can't be written does not begin, nor does anything get a table
 * that can't: until it can, all stays as it is. Each step is one message that may be sent again. A
 * process that may still run where it must not (after a promotion, or a replica given up) is stale:
 * its node is asked to end it as soon as the node is there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cm/state/events.h"
#include "cm/partitions/migrate.h"
#include "cm/partitions/replicas_impl.h"

#define TICK         (100 * MFS_MSEC)
#define COPIES_MOST  4                /* at a time */
#define PAUSE        (200 * MFS_MSEC) /* before what failed is tried again, … */
#define PAUSE_MOVE   (2 * MFS_SEC)    /* between two looks at how they are spread */
#define SPREADING    (10 * MFS_SEC)   /* from then on its memory is free, and another may go */
#define PAUSE_COPY   (2 * MFS_SEC)    /* … and before another copy is begun */
#define AVOIDED      (30 * MFS_SEC)   /* a node at which one has failed, if there is another */
#define SILENCE_MOST (10 * MFS_SEC)   /* a node that is to have a copy: it hangs */

static const char *node_name(const struct mfs_cm *cm, uint32_t id)
{
    const struct mfs_cm_node *n = mfs_cm_state_node(&cm->state, id);

    return n ? n->name : "a node that has left";
}

int mfs_replica_enter(struct mfs_replica *r, const char *step)
{
    struct mfs_cm_part *p = mfs_replica_state(r);
    char before[MFS_STATE_MAX];
    int rc;

    memcpy(before, p->replica_step, sizeof before);
    mfs_text_copy(p->replica_step, sizeof p->replica_step, step);
    rc = mfs_replicas_note(r->cm);
    if (rc) {
        memcpy(p->replica_step, before, sizeof before);
        r->again_at = mfs_clock_mono() + PAUSE;
        return rc;
    }
    mfs_replica_forget_call(r);
    r->again_at = 0;
    r->shown = false;
    r->took.port = 0;
    return 0;
}

static void report_dropped(struct mfs_replica *r, const char *why)
{
    const struct mfs_cm_part *p = mfs_replica_state(r);

    mfs_event_add(r->cm->paths->events, "cm", "replica-dropped", "partition %u: at %s: %s", r->part,
                  node_name(r->cm, p->replica_node), why);
}

static void drop(struct mfs_replica *r, const char *why)
{
    if (mfs_replica_enter(r, MFS_REPLICA_DROP))
        return;
    report_dropped(r, why);
    r->table_due = true;
}

static void relieve(struct mfs_replica *r, int64_t now)
{
    mfs_nodes_find(r->cm, mfs_replica_state(r)->replica_node)->relieved_at = now;
    drop(r, "its node holds more than it may");
}

static unsigned copies(const struct mfs_replicas *g)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < g->cm->state.nparts; i++)
        n += mfs_replica_in(&g->one[i], MFS_REPLICA_COPY) ||
             (mfs_replica_in(&g->one[i], MFS_REPLICA_TERM) && !g->one[i].again_at);
    return n;
}

/* ---- the steps ------------------------------------------------------------------------------- */

static void at_none(struct mfs_replica *r, int64_t now)
{
    int rc;

    if (r->cm->state.replicas == 0 || mfs_replica_in_trouble(r, now) ||
        mfs_migrate_wants(r->cm, r->part) || copies(r->cm->replicas) >= COPIES_MOST)
        return;
    rc = mfs_replica_choose(r, now);
    if (rc) {
        if (rc == -ENOSPC && !r->wanting_since) {
            mfs_event_add(r->cm->paths->events, "cm", "replica-waits",
                          "partition %u: no node has room for a replica of %s", r->part,
                          MFS_TEXT_BYTES(r->cm->part_bytes[r->part]));
            r->wanting_since = now;
        }
        r->again_at = now + PAUSE_COPY;
        return;
    }
    r->replica_dead = false;
    r->replica_silent_since = r->starved_since = 0;
    if (!mfs_replica_enter(r, MFS_REPLICA_COPY))
        mfs_replica_ask(r);
}

static void at_copy(struct mfs_replica *r, int64_t now)
{
    if (!mfs_replica_stays(r))
        drop(r, "its node leaves, or its process has ended");
    else if (mfs_migrate_wants(r->cm, r->part))
        drop(r, "the partition is about to move");
    else if (r->dead)
        drop(r, "the partition's process has ended");
    else if (mfs_replica_crowds(r, now))
        relieve(r, now);
    else if (mfs_replicas_silence(r->cm, mfs_replica_state(r)->replica_node, now) >= SILENCE_MOST ||
             (!mfs_replica_ask(r) &&
              mfs_replicas_silent(r->cm, mfs_replica_state(r)->replica_node, now)))
        drop(r, "its node is out of reach");
}

static void begin_take(struct mfs_replica *r, int64_t now)
{
    if (mfs_replica_enter(r, MFS_REPLICA_TAKE))
        return;
    r->trouble_at = now;
    mfs_event_add(r->cm->paths->events, "cm", "failover-begins", "partition %u: %s %s", r->part,
                  node_name(r->cm, mfs_replica_state(r)->node),
                  r->dead     ? "has lost its process"
                  : r->silent ? "has a process that does not answer"
                              : "is out of reach");
    mfs_replica_ask(r);
}

static void at_ready(struct mfs_replica *r, int64_t now)
{
    const struct mfs_cm_part *p = mfs_replica_state(r);
    bool trouble = mfs_replica_in_trouble(r, now);
    const char *why = trouble ? NULL : mfs_replica_fault(r, now);

    if (r->replica_dead && !r->dead)
        drop(r, "its process has ended");
    else if (trouble && !mfs_replicas_silent(r->cm, p->replica_node, now))
        begin_take(r, now);
    else if (why)
        drop(r, why);
    else if (!trouble && mfs_migrate_wants(r->cm, r->part))
        drop(r, "the partition is about to move");
    else if (!trouble && mfs_replica_crowds(r, now))
        relieve(r, now);
}

static void promote(struct mfs_replica *r);

static void at_take(struct mfs_replica *r, int64_t now)
{
    const struct mfs_cm_part *p = mfs_replica_state(r);
    const struct mfs_node *n = mfs_nodes_find(r->cm, p->replica_node);

    /* Whether it has withdrawn its consent or not: no client knows it as the partition yet,
     * and what ends it first makes sure that none ever does. */
    if (!n || n->stop_sent)
        drop(r, "its node has left");
    else if (r->took.port && r->replica_dead)
        drop(r, "its process has ended, too");
    else if (mfs_replica_revoked(r, now))
        promote(r);
    else if (!mfs_replica_in_trouble(r, now) && mfs_replicas_silent(r->cm, p->replica_node, now))
        drop(r, "its node is out of reach, and the partition's is back");
    else if (!r->took.port)
        mfs_replica_ask(r);
}

static void dropped(struct mfs_replica *r);

/* The table first: no client is to wait for the replica any more. */
static void at_drop(struct mfs_replica *r)
{
    if (r->table_due && mfs_replica_show(r, false))
        return;
    r->table_due = false;
    if (!mfs_nodes_find(r->cm, mfs_replica_state(r)->node))
        dropped(r);
    else
        mfs_replica_ask(r);
}

void mfs_replica_step(struct mfs_replica *r, int64_t now)
{
    if (r->again_at > now)
        return;
    if (mfs_replica_in(r, ""))
        at_none(r, now);
    else if (mfs_replica_in(r, MFS_REPLICA_COPY) || mfs_replica_in(r, MFS_REPLICA_TERM))
        at_copy(r, now);
    else if (mfs_replica_in(r, MFS_REPLICA_READY))
        at_ready(r, now);
    else if (mfs_replica_in(r, MFS_REPLICA_TAKE))
        at_take(r, now);
    else
        at_drop(r);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void copied(struct mfs_replica *r, const struct mfs_msg_receive_reply *reply)
{
    r->port = (uint16_t)reply->port;
    if (!mfs_replica_enter(r, MFS_REPLICA_TERM))
        mfs_replica_ask(r);
}

/* Since the process serves by terms no client writes without waiting for the replica, whatever
 * table the client has (decisions/0023). The replica must have what was written before that before
 * it may take over. */
static void termed(struct mfs_replica *r)
{
    if (r->shown) {
        if (!mfs_replica_enter(r, MFS_REPLICA_READY))
            r->wanting_since = 0;
    } else if (mfs_replica_show(r, true)) {
        drop(r, "the table cannot be changed");
    } else {
        r->shown = true;
        mfs_replica_ask(r);
    }
}

static void not_taken(struct mfs_replica *r, const struct mfs_err *err)
{
    int64_t now = mfs_clock_mono();

    if (err->code == -ENOENT || err->code == -ENODATA) {
        drop(r, "its process has ended, too");
    } else if (err->code == -EAGAIN && !mfs_replica_in_trouble(r, now)) {
        if (!mfs_replica_enter(r, MFS_REPLICA_READY))
            mfs_event_add(r->cm->paths->events, "cm", "failover-undone",
                          "partition %u: its process serves", r->part);
    } else {
        r->again_at = now + PAUSE;
    }
}

static void promote(struct mfs_replica *r)
{
    struct mfs_cm_part *p = mfs_replica_state(r);
    const char *from = node_name(r->cm, p->node);
    int64_t began = r->trouble_at ? r->trouble_at : mfs_clock_mono();

    if (mfs_replica_promote(r)) {
        r->again_at = mfs_clock_mono() + PAUSE;
        return;
    }
    mfs_event_add(r->cm->paths->events, "cm", "failed-over",
                  "partition %u: %s to %s, %lld ms after that was noticed", r->part, from,
                  node_name(r->cm, p->node), (long long)((mfs_clock_mono() - began) / MFS_MSEC));
    r->dead = r->silent = r->replica_dead = false;
    r->trouble_at = r->replica_silent_since = r->starved_since = 0;
}

static void taken(struct mfs_replica *r, const struct mfs_msg_take_reply *reply)
{
    if (mfs_replica_revoke(r, reply))
        r->again_at = mfs_clock_mono() + PAUSE; /* it will be answered the same way */
}

/* Its process serves without terms, or has ended. */
static void dropped(struct mfs_replica *r)
{
    struct mfs_cm_part *p = mfs_replica_state(r);

    if (mfs_replica_add_stale(r->cm, p->replica_node, r->part, p->replica_password)) {
        r->again_at = mfs_clock_mono() + PAUSE;
        return;
    }
    if (mfs_replica_enter(r, "")) {
        r->cm->state.nstale--;
        return;
    }
    r->again_at = mfs_clock_mono() + PAUSE_COPY;
}

/* Another node is better for the next one. */
static void not_copied(struct mfs_replica *r, const struct mfs_err *err)
{
    int64_t now = mfs_clock_mono();

    if (mfs_replica_in(r, MFS_REPLICA_COPY)) {
        r->avoided = mfs_replica_state(r)->replica_node;
        r->avoided_until = now + AVOIDED;
    }
    drop(r, err->msg);
    if (!mfs_replica_in(r, MFS_REPLICA_DROP))
        r->again_at = now + PAUSE_COPY;
}

void mfs_replica_answer(struct mfs_replica *r, const struct mfs_err *err, const void *reply)
{
    bool gone = err && (err->code == -ENOENT || err->code == -ESRCH);

    if (mfs_replica_in(r, MFS_REPLICA_DROP)) {
        if (!err || gone)
            dropped(r);
        else
            r->again_at = mfs_clock_mono() + PAUSE;
    } else if (mfs_replica_in(r, MFS_REPLICA_TAKE)) {
        if (err)
            not_taken(r, err);
        else
            taken(r, reply);
    } else if (err && mfs_replica_in(r, MFS_REPLICA_TERM) && err->code == -EBUSY) {
        r->again_at = mfs_clock_mono() + PAUSE_COPY; /* the copy stays: another one is dear */
    } else if (err) {
        not_copied(r, err);
    } else if (mfs_replica_in(r, MFS_REPLICA_COPY)) {
        copied(r, reply);
    } else {
        termed(r);
    }
}

/* ---- time and news --------------------------------------------------------------------------- */

bool mfs_replicas_ready(const struct mfs_cm_state *s, uint32_t part)
{
    return !strcmp(s->part[part].replica_step, MFS_REPLICA_READY);
}

bool mfs_replicas_at(const struct mfs_cm *cm, uint32_t node)
{
    for (uint32_t i = 0; i < cm->state.nparts; i++) {
        const struct mfs_cm_part *p = &cm->state.part[i];

        if (p->replica_node == node && p->replica_step[0] &&
            strcmp(p->replica_step, MFS_REPLICA_DROP) != 0)
            return true;
    }
    return false;
}

uint32_t mfs_replicas_missing(const struct mfs_cm *cm)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < cm->state.nparts && cm->state.replicas; i++)
        n += !mfs_replicas_ready(&cm->state, i);
    return n;
}

static void report_whole(struct mfs_replicas *g)
{
    bool whole = !mfs_replicas_missing(g->cm);

    if (whole && !g->whole)
        mfs_event_add(g->cm->paths->events, "cm", "protected",
                      "each of the %u partitions has a replica", g->cm->state.nparts);
    g->whole = whole;
}

/* None is being made or given up, nor takes over. Those that no node has room for do not count: the
 * room may be on the node of their partitions, and they get some once others have gone there. */
static bool settled(const struct mfs_replicas *g)
{
    for (uint32_t i = 0; i < g->cm->state.nparts; i++) {
        const struct mfs_replica *r = &g->one[i];

        if (!mfs_replica_in(r, MFS_REPLICA_READY) && !(mfs_replica_in(r, "") && r->wanting_since))
            return false;
    }
    return true;
}

/* One after the other, and only while nothing else is going on. */
static void spread(struct mfs_replicas *g, int64_t now)
{
    struct mfs_replica *r;

    if (now < g->move_at || !settled(g) || mfs_cm_exclusive(g->cm))
        return;
    g->move_at = now + PAUSE_MOVE;
    r = mfs_replicas_to_move(g, now);
    if (!r)
        return;
    g->moved_at = now;
    drop(r, "its node is nearly full, another one is not");
}

bool mfs_replicas_spread(const struct mfs_cm *cm, int64_t now)
{
    struct mfs_replicas *g = cm->replicas;

    if (!g || mfs_cm_exclusive(cm))
        return false;
    if (g->moved_at && now - g->moved_at < SPREADING)
        return true;
    return settled(g) ? mfs_replicas_to_move(g, now) != NULL : copies(g) > 0;
}

/* So those that have taken over may serve now, not only at the next tick. */
void mfs_replicas_table_pushed(struct mfs_replicas *g)
{
    int64_t now = mfs_clock_mono();

    for (uint32_t i = 0; i < g->cm->state.nparts; i++)
        if (mfs_replica_in(&g->one[i], MFS_REPLICA_TAKE))
            mfs_replica_step(&g->one[i], now);
}

static void tick(void *arg)
{
    struct mfs_replicas *g = arg;
    int64_t now = mfs_clock_mono();

    if (!mfs_cm_in_phase(g->cm, MFS_PHASE_RUNNING) || g->cm->step != MFS_STEP_DONE)
        return;
    mfs_replicas_end_stale(g, now);
    for (uint32_t i = 0; i < g->cm->state.nparts; i++)
        mfs_replica_step(&g->one[i], now);
    report_whole(g);
    spread(g, now);
}

bool mfs_replicas_yield(struct mfs_cm *cm, uint32_t node, uint64_t bytes, int64_t now)
{
    struct mfs_node *n = mfs_nodes_find(cm, node);
    struct mfs_replica *r;

    if (!cm->replicas || !n)
        return false;
    if (mfs_replica_yields(cm->replicas, n, now))
        return true;
    r = mfs_replica_to_yield(cm->replicas, n, bytes);
    if (!r)
        return false;
    n->relieved_at = now;
    drop(r, "its node has no memory left for a partition that moves there");
    return true;
}

void mfs_replicas_renew(struct mfs_cm *cm, uint32_t part)
{
    struct mfs_cm_part *p = &cm->state.part[part];
    struct mfs_replica *r = cm->replicas ? &cm->replicas->one[part] : NULL;

    if (p->replica_step[0])
        mfs_replica_add_stale(cm, p->replica_node, part, p->replica_password);
    p->replica_step[0] = '\0';
    if (!r)
        return;
    mfs_replica_forget_call(r);
    *r = (struct mfs_replica){.cm = cm, .part = part};
}

bool mfs_replicas_hold(const struct mfs_cm *cm, uint32_t part)
{
    return cm->state.part[part].replica_step[0];
}

int mfs_replicas_begin(struct mfs_cm *cm)
{
    struct mfs_replicas *g;

    if (!cm->state.replicas || cm->replicas)
        return 0;
    g = calloc(1, sizeof *g);
    if (g)
        g->one = calloc(cm->state.nparts, sizeof *g->one);
    if (!g || !g->one) {
        free(g);
        return -ENOMEM;
    }
    g->cm = cm;
    cm->replicas = g;
    for (uint32_t i = 0; i < cm->state.nparts; i++) {
        g->one[i] = (struct mfs_replica){.cm = cm, .part = i};
        /* The port is not kept: the copy is asked for it again. */
        if (mfs_replica_in(&g->one[i], MFS_REPLICA_TERM))
            strcpy(cm->state.part[i].replica_step, MFS_REPLICA_COPY);
        g->one[i].table_due = mfs_replica_in(&g->one[i], MFS_REPLICA_DROP);
    }
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        cm->nodes[i]->last_contact = mfs_clock_mono(); /* they have to find us first */
    cm->subscriber_left = mfs_clock_mono();            /* likewise those of a cm before us */
    g->tick = mfs_loop_timer(cm->loop, TICK, TICK, tick, g);
    return g->tick ? 0 : -ENOMEM;
}

void mfs_replicas_fini(struct mfs_cm *cm)
{
    struct mfs_replicas *g = cm->replicas;

    if (!g)
        return;
    for (uint32_t i = 0; i < cm->state.nparts; i++)
        mfs_replica_forget_call(&g->one[i]);
    mfs_replicas_forget_stale_call(g);
    free(g->one);
    free(g);
    cm->replicas = NULL;
}
