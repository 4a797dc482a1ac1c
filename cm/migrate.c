/* A list of moves: which begin, what becomes of them, and the end. */
#include "cm/migrate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cluster/capacity.h"
#include "cm/events.h"
#include "cm/migrate_impl.h"
#include "cm/move_order.h"
#include "cm/replicas.h"

#define TICK        (100 * MFS_MSEC)
#define IDLE_MOST   (5 * MFS_SEC)     /* when no node has the memory: reports come each second */
#define REPORT_TIME (3 * MFS_SEC / 2) /* until one has come */
#define ABSENT_MOST (60 * MFS_SEC)    /* when a node is away, or replicas make room */

/* Nodes on one machine share its processors. Nodes of their own have links, and more copies at once
 * hide what each needs besides its bytes: a process that starts, a fork, the cut-over. Not so cold
 * ones: each is without service for its copy's time, which is the longer the more share a link. */
static const struct mfs_order_limits few = {.per_source = 2, .per_target = 2, .all = 4},
                                     many = {.per_source = 4, .per_target = 4};

/* ---- the moves that there are ---------------------------------------------------------------- */

static bool waits(const struct mfs_migrate_one *o)
{
    return o->move.step == MFS_AT_WAITING && !o->move.settled;
}

static void schedule(void *arg);

static void changed(struct mfs_move *m, void *arg)
{
    struct mfs_migrate_one *o = arg;
    struct mfs_migrate *g = o->of;
    struct mfs_cm_live *to = mfs_nodes_find(g->cm, m->to);

    if (m->moved && !o->counted && to) {
        to->last.memory_used += m->bytes;
        o->counted = true;
    }
    /* When this fails the tick does it. */
    if (!g->posted && !mfs_loop_post(g->cm->loop, schedule, g))
        g->posted = true;
}

static struct mfs_migrate_one *add(struct mfs_migrate *g)
{
    struct mfs_migrate_one **more = reallocarray(g->one, g->n + 1, sizeof *more);
    struct mfs_migrate_one *o = more ? calloc(1, sizeof *o) : NULL;

    if (more)
        g->one = more;
    if (!o)
        return NULL;
    o->of = g;
    o->listed = true;
    o->move.cm = g->cm;
    o->move.changed = changed;
    o->move.arg = o;
    g->one[g->n++] = o;
    return o;
}

static void drop(struct mfs_migrate *g, uint32_t i)
{
    mfs_move_fini(&g->one[i]->move);
    free(g->one[i]);
    g->one[i] = g->one[--g->n];
}

static void tick(void *arg);

static struct mfs_migrate *get(struct mfs_cm *cm)
{
    struct mfs_migrate *g = cm->migrate;

    if (!g) {
        g = cm->migrate = calloc(1, sizeof *g);
        if (g)
            g->cm = cm;
    }
    if (g && !g->tick)
        g->tick = mfs_loop_timer(cm->loop, TICK, TICK, tick, g);
    return g && g->tick ? g : NULL;
}

/* ---- the order ------------------------------------------------------------------------------- */

static uint32_t node_index(const struct mfs_cm *cm, uint32_t id)
{
    uint32_t i = 0;

    while (i < cm->state.nnodes && cm->state.node[i].id != id)
        i++;
    return i;
}

/* A partition whose last move is still being cleared away waits for that. */
static bool is_held(const struct mfs_migrate *g, const struct mfs_move *m, int64_t now)
{
    if (m->again_at > now || mfs_replicas_hold(g->cm, m->part))
        return true;
    for (uint32_t i = 0; i < g->cm->state.nmoves; i++)
        if (g->cm->state.move[i].part == m->part)
            return true;
    return false;
}

bool mfs_migrate_wants(const struct mfs_cm *cm, uint32_t part)
{
    const struct mfs_migrate *g = cm->migrate;

    for (uint32_t i = 0; g && i < g->n; i++)
        if (g->one[i]->move.part == part && g->one[i]->move.step != MFS_AT_OVER)
            return true;
    return false;
}

/* Of the target's memory; its process takes some, too. */
static uint64_t size_of(const struct mfs_move *m)
{
    return m->bytes + MFS_CAPACITY_PROCESS;
}

uint64_t mfs_migrate_bringing(const struct mfs_cm *cm, uint32_t node)
{
    const struct mfs_migrate *g = cm->migrate;
    uint64_t sum = 0;

    for (uint32_t i = 0; g && i < g->n; i++)
        if (g->one[i]->move.to == node && !g->one[i]->move.settled)
            sum += size_of(&g->one[i]->move);
    return sum;
}

static void describe(const struct mfs_migrate *g, const struct mfs_move *m, int64_t now,
                     struct mfs_order_move *out)
{
    *out = (struct mfs_order_move){.from = node_index(g->cm, m->from),
                                   .to = node_index(g->cm, m->to),
                                   .bytes = size_of(m),
                                   .cold = m->cold,
                                   .copied = m->step != MFS_AT_RECEIVE,
                                   .state = MFS_ORDER_UNDER_WAY};
    if (m->settled || out->from == g->cm->state.nnodes || out->to == g->cm->state.nnodes)
        out->state = MFS_ORDER_OVER;
    else if (m->step == MFS_AT_WAITING)
        out->state = is_held(g, m, now) ? MFS_ORDER_HELD : MFS_ORDER_WAITING;
}

static void describe_node(const struct mfs_cm_live *l, struct mfs_order_node *out)
{
    *out = (struct mfs_order_node){.used = l->last.memory_used,
                                   .capacity = l->last.memory_capacity
                                                   ? l->last.memory_capacity
                                                   : mfs_capacity_partitions(l->node->memory),
                                   .up = l->conn != NULL};
}

static struct mfs_order_limits limits_of(const struct mfs_migrate *g)
{
    bool local = !strcmp(g->cm->state.provider, "local");
    struct mfs_order_limits limits = local || (g->n && g->one[0]->move.cold) ? few : many;

    if (!local)
        limits.all = limits.per_target * g->cm->state.nnodes;
    return limits;
}

/* The one to begin now, or NULL. */
static struct mfs_migrate_one *choose(struct mfs_migrate *g, int64_t now)
{
    uint32_t nnodes = g->cm->state.nnodes;
    struct mfs_order_node *node = calloc(nnodes, sizeof *node);
    struct mfs_order_move *move = calloc(g->n, sizeof *move);
    struct mfs_order_limits limits = limits_of(g);
    int i = -1;

    if (node && move) {
        for (uint32_t k = 0; k < nnodes; k++)
            describe_node(g->cm->live[k], &node[k]);
        for (uint32_t k = 0; k < g->n; k++)
            describe(g, &g->one[k]->move, now, &move[k]);
        i = mfs_order_next(node, nnodes, move, g->n, &limits);
    }
    free(node);
    free(move);
    return i < 0 ? NULL : g->one[i];
}

/* ---- the end --------------------------------------------------------------------------------- */

static void tell_end(struct mfs_migrate *g, struct mfs_migrate_each *each)
{
    struct mfs_migrate_result r;
    mfs_migrate_done *done = g->done;
    struct mfs_err err;
    uint32_t n = 0;

    mfs_migrate_sum(g, &r, &err);
    for (uint32_t i = 0; i < g->n; i++) {
        const struct mfs_move *m = &g->one[i]->move;

        if (each && g->one[i]->listed)
            each[n++] = (struct mfs_migrate_each){m->part,  m->from,    m->to,        m->moved,
                                                  m->bytes, m->copy_us, m->blocked_us};
        g->one[i]->listed = false;
    }
    r.n = n;
    r.each = each;
    g->listed = false;
    g->done = NULL;
    if (done)
        done(g->arg, r.undone ? &err : NULL, &r);
}

static void check_end(struct mfs_migrate *g)
{
    struct mfs_migrate_each *each;

    if (!g->listed)
        return;
    for (uint32_t i = 0; i < g->n; i++)
        if (g->one[i]->listed && !g->one[i]->move.settled)
            return;
    each = calloc(g->n + 1, sizeof *each);
    tell_end(g, each);
    free(each);
}

static void clear_away(struct mfs_migrate *g)
{
    for (uint32_t i = g->n; i-- > 0;)
        if (g->one[i]->move.step == MFS_AT_OVER && !g->one[i]->listed)
            drop(g, i);
    if (!g->n && !g->listed) {
        mfs_timer_cancel(g->tick);
        g->tick = NULL;
    }
}

static void give_up(struct mfs_migrate_one *o, int code, const char *why)
{
    mfs_err_set(&o->move.why, code, "%s", why);
    o->move.step = MFS_AT_OVER;
    o->move.settled = true;
}

static bool is_away(const struct mfs_migrate *g, uint32_t node)
{
    const struct mfs_cm_live *l = mfs_nodes_find(g->cm, node);

    return l && !l->conn;
}

/* Does something wait, and nothing is under way? */
static bool is_idle(const struct mfs_migrate *g)
{
    bool waiting = false;

    for (uint32_t i = 0; i < g->n; i++) {
        if (!g->one[i]->move.settled && !waits(g->one[i]))
            return false;
        waiting |= waits(g->one[i]);
    }
    return waiting;
}

/* Is it only a matter of time? Partitions come before replicas: when nothing else makes room, one
 * of those on the target goes. */
static bool is_patient(const struct mfs_migrate *g, const struct mfs_move *m, int64_t now)
{
    if (is_away(g, m->from) || is_away(g, m->to) || is_held(g, m, now))
        return true;
    return now - g->idle_since >= REPORT_TIME && mfs_replicas_yield(g->cm, m->to, size_of(m), now);
}

static void give_up_for_memory(struct mfs_migrate_one *o)
{
    const struct mfs_cm_live *to = mfs_nodes_find(o->of->cm, o->move.to);
    struct mfs_order_node n = {0};
    struct mfs_err why;

    if (to)
        describe_node(to, &n);
    mfs_err_set(&why, -ENOSPC, "%s has no memory for it: it takes %s, and %s of %s are in use",
                to ? to->node->name : "its node", MFS_TEXT_BYTES(size_of(&o->move)),
                MFS_TEXT_BYTES(n.used), MFS_TEXT_BYTES(n.capacity));
    give_up(o, why.code, why.msg);
}

static void give_up_waiting(struct mfs_migrate_one *o, int64_t now)
{
    const struct mfs_migrate *g = o->of;

    if (is_away(g, o->move.from) || is_away(g, o->move.to))
        give_up(o, -ENODEV, "a node that it needs is not connected");
    else if (is_held(g, &o->move, now))
        give_up(o, -EBUSY, "its replica, or what its last move left, has not ended in time");
    else
        give_up_for_memory(o);
}

/* Nothing is under way, and what waits can't begin. */
static void check_idle(struct mfs_migrate *g, int64_t now)
{
    int64_t most = IDLE_MOST;

    if (!is_idle(g)) {
        g->idle_since = 0;
        return;
    }
    if (!g->idle_since)
        g->idle_since = now;
    for (uint32_t i = 0; i < g->n; i++)
        if (waits(g->one[i]) && is_patient(g, &g->one[i]->move, now))
            most = ABSENT_MOST;
    for (uint32_t i = 0; i < g->n && now - g->idle_since > most; i++)
        if (waits(g->one[i]))
            give_up_waiting(g->one[i], now);
}

static void schedule(void *arg)
{
    struct mfs_migrate *g = arg;
    struct mfs_migrate_one *o;
    int64_t now = mfs_clock_mono();

    g->posted = false;
    if (mfs_cm_in_phase(g->cm, MFS_PHASE_STOPPING))
        return;
    while ((o = choose(g, now))) {
        g->idle_since = 0;
        o->move.again_at = 0;
        if (g->cm->state.part[o->move.part].node == o->move.from)
            mfs_move_begin(&o->move);
        else
            give_up(o, -EAGAIN, "its replica on another node has taken over meanwhile");
    }
    check_idle(g, now);
    check_end(g);
    clear_away(g);
}

static void tick(void *arg)
{
    struct mfs_migrate *g = arg;
    int64_t now = mfs_clock_mono();

    if (mfs_cm_in_phase(g->cm, MFS_PHASE_STOPPING))
        return;
    for (uint32_t i = 0; i < g->n; i++)
        mfs_move_tick(&g->one[i]->move, now);
    mfs_migrate_sample(g, now);
    schedule(g);
}

/* ---- beginning ------------------------------------------------------------------------------- */

static int check(const struct mfs_cm *cm, const struct mfs_scale_move *moves, uint32_t n)
{
    bool *seen = calloc(cm->state.nparts, sizeof *seen);
    int rc = seen ? 0 : -ENOMEM;

    for (uint32_t i = 0; i < n && !rc; i++) {
        const struct mfs_scale_move *m = &moves[i];

        if (m->index >= cm->state.nparts || seen[m->index] || m->from == m->to ||
            cm->state.part[m->index].node != m->from || !mfs_nodes_find(cm, m->to) ||
            !mfs_nodes_find(cm, m->from))
            rc = -EINVAL;
        else
            seen[m->index] = true;
    }
    free(seen);
    return rc;
}

static int add_all(struct mfs_migrate *g, const struct mfs_scale_move *moves, uint32_t n,
                   const struct mfs_migrate_opts *opts)
{
    uint32_t before = g->n;

    for (uint32_t i = 0; i < n; i++) {
        struct mfs_migrate_one *o = add(g);

        if (!o) {
            while (g->n > before)
                drop(g, g->n - 1);
            return -ENOMEM;
        }
        o->move.part = moves[i].index;
        o->move.from = moves[i].from;
        o->move.to = moves[i].to;
        o->move.bytes = moves[i].bytes;
        o->move.cold = opts->cold;
        o->move.rate = opts->rate;
    }
    return 0;
}

static void list(struct mfs_migrate *g)
{
    g->listed = true;
    g->began = mfs_clock_mono();
    g->nsamples = 0;
    g->idle_since = 0;
    if (!g->posted && !mfs_loop_post(g->cm->loop, schedule, g))
        g->posted = true;
}

int mfs_migrate_begin(struct mfs_cm *cm, const struct mfs_scale_move *moves, uint32_t n,
                      const struct mfs_migrate_opts *opts, mfs_migrate_done *done, void *arg)
{
    struct mfs_migrate *g = get(cm);
    uint64_t bytes = 0;
    int rc;

    if (!g)
        return -ENOMEM;
    if (g->listed)
        return -EBUSY;
    rc = check(cm, moves, n);
    if (!rc)
        rc = add_all(g, moves, n, opts);
    if (rc)
        return rc;
    g->done = done;
    g->arg = arg;
    for (uint32_t i = 0; i < n; i++)
        bytes += moves[i].bytes;
    mfs_event_add(cm->paths->events, "cm", "migrating", "%u partitions, %s, %s", n,
                  MFS_TEXT_BYTES(bytes), opts->cold ? "cold" : "hot");
    list(g);
    return 0;
}

void mfs_migrate_cancel(struct mfs_cm *cm, const char *why)
{
    struct mfs_migrate *g = cm->migrate;

    if (!g)
        return;
    for (uint32_t i = 0; i < g->n; i++)
        if (waits(g->one[i]))
            give_up(g->one[i], -ECANCELED, why);
    if (!g->posted && !mfs_loop_post(cm->loop, schedule, g))
        g->posted = true;
}

void mfs_migrate_resume(struct mfs_cm *cm)
{
    struct mfs_migrate *g = cm->state.nmoves && !cm->migrate ? get(cm) : NULL;

    if (!g) {
        if (cm->state.nmoves && !cm->migrate)
            mfs_error("migrate", "out of memory: moves are not resumed");
        return;
    }
    for (uint32_t i = 0; i < cm->state.nmoves; i++) {
        struct mfs_migrate_one *o = add(g);

        if (o)
            mfs_move_adopt(&o->move, &cm->state.move[i]);
    }
    list(g);
}

bool mfs_migrate_await(struct mfs_cm *cm, mfs_migrate_done *done, void *arg)
{
    struct mfs_migrate *g = cm->migrate;

    if (!g || !g->listed || g->done)
        return false;
    g->done = done;
    g->arg = arg;
    return true;
}

/* ---- what the nodes tell --------------------------------------------------------------------- */

/* A table that was pushed, but whose save the machine has forgotten: the next one must be newer. */
static void catch_up(struct mfs_cm *cm, const struct mfs_msg_join *join)
{
    struct mfs_table *t;

    if (!cm->state.table || join->epoch <= cm->state.table->epoch)
        return;
    t = mfs_table_dup(cm->state.table);
    if (!t)
        return;
    t->epoch = join->epoch;
    free(cm->state.table);
    cm->state.table = t;
}

static void node_changed(struct mfs_cm *cm, uint32_t node)
{
    struct mfs_migrate *g = cm->migrate;

    for (uint32_t i = 0; g && i < g->n; i++)
        mfs_move_node_changed(&g->one[i]->move, node);
}

void mfs_migrate_joined(struct mfs_cm *cm, struct mfs_cm_live *l, const struct mfs_msg_join *join)
{
    catch_up(cm, join);
    node_changed(cm, l->node->id);
}

void mfs_migrate_left(struct mfs_cm *cm, uint32_t node)
{
    node_changed(cm, node);
}

void mfs_migrate_reported(struct mfs_cm *cm, struct mfs_cm_live *l,
                          const struct mfs_msg_report *report)
{
    struct mfs_migrate *g = cm->migrate;

    for (uint32_t i = 0; g && i < g->n; i++) {
        struct mfs_move *m = &g->one[i]->move;

        if (m->to != l->node->id || m->step != MFS_AT_RECEIVE)
            continue;
        for (uint32_t k = 0; k < report->ncopies; k++)
            if (report->copy[k].index == m->part)
                m->arrived = report->copy[k].bytes;
    }
}

void mfs_migrate_fini(struct mfs_cm *cm)
{
    struct mfs_migrate *g = cm->migrate;

    if (!g)
        return;
    while (g->n)
        drop(g, g->n - 1);
    free(g->one);
    free(g);
    cm->migrate = NULL;
}
