/* A list of moves: begins as many at once as the nodes' memory and the options allow, counts what
 * has become of each, and reports at the end. A move is listed while the list waits for it; one
 * that is settled may still be cleared away after the list is over. Moves of an earlier cm are
 * taken up from the state. */
#include "cm/partitions/migrate.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cm/state/events.h"
#include "cm/partitions/migrate_impl.h"

#define TICK (100 * MFS_MSEC)

/* ---- the moves that there are ---------------------------------------------------------------- */

static void schedule(void *arg);

static void changed(struct mfs_move *m, void *arg)
{
    struct mfs_migrate_one *o = arg;
    struct mfs_migrate *g = o->of;
    struct mfs_node *to = mfs_nodes_find(g->cm, m->to);

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

/* ---- the end --------------------------------------------------------------------------------- */

static void report_end(struct mfs_migrate *g, struct mfs_migrate_each *each)
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
    report_end(g, each);
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

static void schedule(void *arg)
{
    struct mfs_migrate *g = arg;
    struct mfs_migrate_one *o;
    int64_t now = mfs_clock_mono();

    g->posted = false;
    if (mfs_cm_in_phase(g->cm, MFS_PHASE_STOPPING))
        return;
    while ((o = mfs_migrate_choose(g, now))) {
        g->idle_since = 0;
        o->move.again_at = 0;
        if (g->cm->state.part[o->move.part].node == o->move.from)
            mfs_move_begin(&o->move);
        else
            mfs_migrate_give_up(o, -EAGAIN, "its replica on another node has taken over meanwhile");
    }
    mfs_migrate_check_idle(g, now);
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
        o->move.diskless = opts->at_once;
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
    g->at_once = opts->at_once;
    g->small_first = opts->small_first;
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
        if (mfs_migrate_waits(g->one[i]))
            mfs_migrate_give_up(g->one[i], -ECANCELED, why);
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
    g->at_once = cm->state.scale.at_once;
    g->small_first = cm->state.scale.urgent;
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

void mfs_migrate_joined(struct mfs_cm *cm, struct mfs_node *n, const struct mfs_msg_join *join)
{
    catch_up(cm, join);
    node_changed(cm, n->record->id);
}

void mfs_migrate_left(struct mfs_cm *cm, uint32_t node)
{
    node_changed(cm, node);
}

void mfs_migrate_reported(struct mfs_cm *cm, struct mfs_node *node,
                          const struct mfs_msg_report *report)
{
    struct mfs_migrate *g = cm->migrate;

    for (uint32_t i = 0; g && i < g->n; i++) {
        struct mfs_move *m = &g->one[i]->move;

        if (m->to != node->record->id || m->step != MFS_AT_RECEIVE)
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
