/* A change of the nodes, from the request to the report.
 *
 * The step is state.scale.step, saved before it begins: take() enters `come` or `move`, and each
 * step enters the next when its work is done; mfs_scale_resume goes on with it after a restart of
 * cm. What is needed in memory alone is cm->scale, which exists exactly while a step is set. The
 * first failure decides the report; all callers in `waiters` get it at the end. */
#include "cm/change/scale/scale.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cm/change/checkpoint.h"
#include "cm/nodes/copies.h"
#include "cm/state/events.h"
#include "cm/partitions/migrate.h"
#include "cm/change/scale/impl.h"

#define ATTEMPTS      3 /* to move, each with a plan of its own */
#define ATTEMPT_PAUSE MFS_SEC
#define RETURN_TIME   (60 * MFS_SEC) /* for the nodes to find a new cm, before it plans without */
#define LOOK          (100 * MFS_MSEC)

static void move(struct mfs_scale *s);

bool mfs_scale_in(const struct mfs_cm *cm, const char *step)
{
    return cm->scale && !strcmp(cm->state.scale.step, step) &&
           !mfs_cm_in_phase(cm, MFS_PHASE_STOPPING);
}

int mfs_scale_set_step(struct mfs_scale *s, const char *step)
{
    int rc;

    mfs_text_copy(s->cm->state.scale.step, sizeof s->cm->state.scale.step, step);
    rc = mfs_cm_state_save(&s->cm->state, s->cm->paths->state);
    if (rc)
        mfs_error("scale", "%s: %s", s->cm->paths->state, strerror(-rc));
    else
        mfs_copies_send(s->cm); /* so that a cm on another machine goes on with it */
    return rc;
}

void mfs_scale_failed(struct mfs_scale *s, int code, const char *fmt, ...)
{
    char why[MFS_ERR_MSG_MAX];
    va_list ap;

    if (s->failure.code)
        return;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    mfs_err_set(&s->failure, code, "%s", why);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Microseconds of the real clock, as it outlives cm. */
static uint64_t now(void)
{
    struct timespec t = mfs_clock_real();

    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void fill_report(const struct mfs_cm *cm, struct mfs_scale_report *r)
{
    const struct mfs_cm_scale *sc = &cm->state.scale;

    *r = (struct mfs_scale_report){.from = sc->from,
                                   .to = cm->state.nnodes,
                                   .partitions_moved = sc->moved,
                                   .bytes_moved = sc->bytes,
                                   .blocked_ms_max = sc->blocked_ms_max,
                                   .blocked_ms_total = sc->blocked_ms_total,
                                   .lower_bound_ms = sc->lower_bound_ms,
                                   .partitions_lost = sc->lost,
                                   .bytes_lost = sc->lost_bytes};
    r->duration_ms = (double)(now() - sc->began) / 1e3;
}

static void notify_waiters(struct mfs_scale *s, const struct mfs_err *err,
                           const struct mfs_scale_report *r)
{
    while (s->waiters) {
        struct mfs_scale_waiter *w = s->waiters;

        s->waiters = w->next;
        w->done(w->arg, err, r);
        free(w);
    }
}

static void destroy(struct mfs_scale *s)
{
    mfs_timer_cancel(s->timer);
    free(s);
}

static void finish(struct mfs_scale *s)
{
    struct mfs_cm *cm = s->cm;
    struct mfs_scale_report r;

    mfs_renew_fini(s);
    fill_report(cm, &r);
    if (s->failure.code)
        mfs_event_add(cm->paths->events, "cm", "scale-failed", "%u -> %s, there are %u now: %s",
                      r.from, MFS_TEXT_COUNT(cm->state.scale.to, "node"), r.to, s->failure.msg);
    else
        mfs_event_add(cm->paths->events, "cm", "scaled",
                      "%u -> %s: %s, %s moved, %.0f ms; blocked %.1f ms at most", r.from,
                      MFS_TEXT_COUNT(r.to, "node"), MFS_TEXT_COUNT(r.partitions_moved, "partition"),
                      MFS_TEXT_BYTES(r.bytes_moved), r.duration_ms, r.blocked_ms_max);
    cm->state.scale = (struct mfs_cm_scale){0};
    mfs_scale_set_step(s, "");
    cm->scale = NULL; /* a caller that waited may begin the next */
    notify_waiters(s, s->failure.code ? &s->failure : NULL, &r);
    destroy(s);
}

void mfs_scale_have_gone(struct mfs_scale *s)
{
    finish(s);
}

void mfs_scale_renewed(struct mfs_scale *s)
{
    if (s->failure.code) {
        for (uint32_t i = 0; i < s->cm->state.nnodes; i++)
            s->cm->state.node[i].transition[0] = '\0';
        finish(s);
        return;
    }
    mfs_scale_set_step(s, MFS_SCALE_GO);
    mfs_scale_go(s);
}

/* ---- moving ---------------------------------------------------------------------------------- */

static void again(void *arg)
{
    struct mfs_scale *s = arg;

    s->timer = NULL;
    if (mfs_scale_in(s->cm, MFS_SCALE_MOVE))
        move(s);
}

/* What could not be emptied stays. */
void mfs_scale_moved(struct mfs_scale *s)
{
    struct mfs_cm *cm = s->cm;
    bool any = false;

    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        struct mfs_cm_node *n = &cm->state.node[i];

        if (strcmp(n->transition, MFS_NODE_LEAVING))
            continue;
        if (mfs_cm_state_count(&cm->state, n->id))
            n->transition[0] = '\0';
        else
            any = true;
    }
    if (!any) {
        finish(s);
        return;
    }
    mfs_scale_set_step(s, MFS_SCALE_GO);
    mfs_scale_go(s);
}

static void take_result(struct mfs_cm_scale *sc, const struct mfs_migrate_result *r)
{
    double worst = (double)r->blocked_us_max / 1e3;

    sc->moved += r->moved;
    sc->bytes += r->bytes;
    sc->blocked_ms_total += (double)r->blocked_us_total / 1e3;
    if (worst > sc->blocked_ms_max)
        sc->blocked_ms_max = worst;
}

/* A new cm plans anew when the nodes have reported what they hold. */
static void look_for_nodes(void *arg)
{
    struct mfs_scale *s = arg;

    if (!mfs_scale_in(s->cm, MFS_SCALE_MOVE) ||
        (mfs_scale_silent(s->cm) && mfs_clock_mono() < s->until))
        return;
    mfs_timer_cancel(s->timer);
    s->timer = NULL;
    move(s);
}

static void wait_for_nodes(struct mfs_scale *s)
{
    s->until = mfs_clock_mono() + RETURN_TIME;
    s->timer = mfs_loop_timer(s->cm->loop, LOOK, LOOK, look_for_nodes, s);
}

static void moved(void *arg, const struct mfs_err *err, const struct mfs_migrate_result *r)
{
    struct mfs_scale *s = arg;

    if (!mfs_scale_in(s->cm, MFS_SCALE_MOVE))
        return;
    take_result(&s->cm->state.scale, r);
    if (s->replan) {
        s->replan = false;
        mfs_scale_set_step(s, MFS_SCALE_MOVE);
        move(s);
        return;
    }
    /* What was to leave at once was weighed for once. */
    if (err && (++s->attempts >= ATTEMPTS || s->cm->state.scale.at_once))
        mfs_scale_failed(s, err->code, "%s", err->msg);
    if (s->failure.code || (!err && !s->inherited)) {
        if (!s->failure.code && mfs_scale_filled(s->cm))
            mfs_scale_move_again(s);
        else
            mfs_scale_moved(s);
        return;
    }
    mfs_scale_set_step(s, MFS_SCALE_MOVE); /* saves what has been moved */
    if (err)
        mfs_event_add(s->cm->paths->events, "cm", "scale-again",
                      "%u partitions have not moved (%s); planning anew", r->undone, err->msg);
    if (s->inherited)
        wait_for_nodes(s);
    else
        s->timer = mfs_loop_timer(s->cm->loop, ATTEMPT_PAUSE, 0, again, s);
    s->inherited = false;
}

static void move(struct mfs_scale *s)
{
    const struct mfs_cm_scale *sc = &s->cm->state.scale;
    struct mfs_migrate_opts opts = {sc->cold, sc->at_once, sc->urgent, sc->rate};
    struct mfs_plan plan;
    struct mfs_err err = {0};
    int rc = mfs_scale_plan(s->cm, s->cm->state.scale.by_bytes, &plan, &err);

    if (!rc && plan.nmoves) {
        rc = mfs_migrate_begin(s->cm, plan.move, plan.nmoves, &opts, moved, s);
        if (rc)
            mfs_err_set(&err, rc, "cannot begin to move partitions: %s", strerror(-rc));
    }
    if (rc)
        mfs_scale_failed(s, rc, "%s", err.msg);
    if (rc || !plan.nmoves)
        mfs_scale_moved(s);
    mfs_planner_clear(&plan);
}

bool mfs_scale_extend(struct mfs_cm *cm, struct mfs_node *n)
{
    struct mfs_scale *s = cm->scale;

    if (!mfs_scale_in(cm, MFS_SCALE_MOVE) || n->record->transition[0])
        return false;
    mfs_text_copy(n->record->transition, sizeof n->record->transition, MFS_NODE_LEAVING);
    cm->state.scale.to--;
    cm->state.scale.drain = cm->state.scale.urgent = true;
    mfs_scale_set_step(s, MFS_SCALE_MOVE);
    s->replan = !s->timer; /* else it is about to be planned anyway */
    if (s->replan)
        mfs_migrate_cancel(cm, "another node leaves, too");
    return true;
}

void mfs_scale_move_again(struct mfs_scale *s)
{
    const struct mfs_node *n = mfs_scale_filled(s->cm);

    if (++s->attempts >= ATTEMPTS)
        mfs_scale_failed(s, -EBUSY, "%s still has partitions%s", n->record->name,
                         n->conn ? ": replicas there have taken over"
                                 : ", and its lm is not connected (see cm events)");
    mfs_scale_set_step(s, MFS_SCALE_MOVE);
    if (s->failure.code)
        mfs_scale_moved(s);
    else
        s->timer = mfs_loop_timer(s->cm->loop, ATTEMPT_PAUSE, 0, again, s);
}

void mfs_scale_have_come(struct mfs_scale *s)
{
    for (uint32_t i = 0; i < s->cm->state.nnodes; i++)
        if (!strcmp(s->cm->state.node[i].transition, MFS_NODE_COMING))
            s->cm->state.node[i].transition[0] = '\0';
    mfs_scale_set_step(s, MFS_SCALE_MOVE);
    move(s);
}

void mfs_scale_undo(struct mfs_scale *s)
{
    for (uint32_t i = 0; i < s->cm->state.nnodes; i++)
        if (!strcmp(s->cm->state.node[i].transition, MFS_NODE_LEAVING))
            s->cm->state.node[i].transition[0] = '\0';
    mfs_event_add(s->cm->paths->events, "cm", "scale-undone", "%s", s->failure.msg);
    mfs_scale_set_step(s, MFS_SCALE_UNDO);
    mfs_scale_go(s);
}

/* ---- the beginning --------------------------------------------------------------------------- */

static void report_begin(const struct mfs_cm *cm, const struct mfs_scale_draft *d, const char *who)
{
    mfs_event_add(cm->paths->events, "cm", "scale",
                  "%u -> %s, by %s: %s of %s used (%.1f%%); %s, %s to move, %s", d->from,
                  MFS_TEXT_COUNT(d->to, "node"), who, MFS_TEXT_BYTES(d->used),
                  MFS_TEXT_BYTES(d->capacity),
                  d->capacity ? 100.0 * (double)d->used / (double)d->capacity : 0.0,
                  MFS_TEXT_COUNT(d->plan.nmoves, "partition"), MFS_TEXT_BYTES(d->plan.bytes),
                  d->cold ? "cold" : "hot");
}

int mfs_scale_wait(struct mfs_scale *s, mfs_scale_done *done, void *arg)
{
    struct mfs_scale_waiter *w = malloc(sizeof *w);

    if (!w)
        return -ENOMEM;
    *w = (struct mfs_scale_waiter){done, arg, s->waiters};
    s->waiters = w;
    return 0;
}

static struct mfs_scale *make(struct mfs_cm *cm)
{
    struct mfs_scale *s = calloc(1, sizeof *s);

    if (s)
        s->cm = cm;
    return s;
}

static void describe(struct mfs_cm_scale *sc, const struct mfs_scale_draft *d, const char *who)
{
    *sc = (struct mfs_cm_scale){.from = d->from,
                                .to = d->to,
                                .cold = d->cold,
                                .at_once = d->at_once,
                                .drain = d->drain,
                                .forget = d->forget,
                                .urgent = d->urgent,
                                .by_bytes = d->by_bytes,
                                .rate = d->rate,
                                .began = now(),
                                .lower_bound_ms = d->lower_bound_ms,
                                .lost_bytes = d->lost_bytes};
    mfs_text_copy(sc->who, sizeof sc->who, who);
    mfs_text_copy(sc->step, sizeof sc->step,
                  d->ncoming     ? MFS_SCALE_COME
                  : d->nrenewals ? MFS_SCALE_RENEW
                  : d->forget    ? MFS_SCALE_GO
                                 : MFS_SCALE_MOVE);
}

/* Takes back what take() has changed. */
static void untake(struct mfs_cm *cm, const struct mfs_scale_draft *d)
{
    while (cm->state.nnodes > d->from)
        mfs_nodes_remove(cm, cm->nodes[cm->state.nnodes - 1]);
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        cm->state.node[i].transition[0] = '\0';
    free(cm->state.renewal);
    cm->state.renewal = NULL;
    cm->state.nrenewals = 0;
    cm->state.scale = (struct mfs_cm_scale){0};
}

/* The decision, on disk. */
static int take(struct mfs_cm *cm, struct mfs_scale_draft *d, const char *who)
{
    int rc = 0;

    describe(&cm->state.scale, d, who);
    for (uint32_t i = 0; i < d->from; i++)
        if (mfs_scale_leaves(d, &cm->state.node[i]))
            mfs_text_copy(cm->state.node[i].transition, sizeof cm->state.node[i].transition,
                          MFS_NODE_LEAVING);
    for (uint32_t i = 0; i < d->ncoming && !rc; i++)
        rc = mfs_nodes_add(cm, &d->coming[i]) ? 0 : -ENOMEM;
    if (!rc) {
        free(cm->state.renewal); /* a list that was read has memory even when it is empty */
        cm->state.renewal = d->renewal;
        cm->state.nrenewals = d->nrenewals;
        d->renewal = NULL; /* the state's */
        cm->state.next_node += d->ncoming;
        rc = mfs_cm_state_save(&cm->state, cm->paths->state);
    }
    if (rc)
        untake(cm, d);
    else
        mfs_copies_send(cm);
    return rc;
}

static int begin(struct mfs_cm *cm, struct mfs_scale_draft *d, const char *who,
                 mfs_scale_done *done, void *arg, struct mfs_err *err)
{
    struct mfs_scale *s = make(cm);
    int rc = s ? mfs_scale_wait(s, done, arg) : -ENOMEM;

    if (!rc)
        rc = take(cm, d, who);
    if (rc) {
        if (s)
            free(s->waiters);
        free(s);
        return mfs_err_set(err, rc, "cannot begin: %s", strerror(-rc));
    }
    cm->scale = s;
    report_begin(cm, d, who);
    if (d->ncoming)
        mfs_scale_come(s);
    else if (cm->state.nrenewals)
        mfs_renew_begin(s);
    else if (d->forget)
        mfs_scale_go(s);
    else
        move(s);
    return 0;
}

/* Another caller's change. */
static int join_or_refuse(struct mfs_cm *cm, const struct mfs_msg_scale *what, mfs_scale_done *done,
                          void *arg, struct mfs_err *err)
{
    const struct mfs_cm_scale *sc = &cm->state.scale;
    bool same = (!strcmp(what->how, "to") && what->n == sc->to) ||
                (what->nnodes && mfs_scale_drains(cm, what));

    if (same && !what->dry_run && cm->scale && !mfs_scale_wait(cm->scale, done, arg))
        return 0;
    return mfs_err_set(err, -EBUSY, "a change from %u to %s is under way (by %s, step %s)",
                       sc->from, MFS_TEXT_COUNT(sc->to, "node"), sc->who, sc->step);
}

static void report_plan(const struct mfs_scale_draft *d, mfs_scale_done *done, void *arg)
{
    struct mfs_scale_report r = {.from = d->from,
                                 .to = d->to,
                                 .partitions_moved = d->plan.nmoves,
                                 .bytes_moved = d->plan.bytes,
                                 .lower_bound_ms = d->lower_bound_ms,
                                 .partitions_lost = d->nrenewals,
                                 .bytes_lost = d->lost_bytes,
                                 .nmoves = d->plan.nmoves,
                                 .move = d->plan.move};

    done(arg, NULL, &r);
}

int mfs_scale_begin(struct mfs_cm *cm, const struct mfs_msg_scale *what, const char *who,
                    mfs_scale_done *done, void *arg, struct mfs_err *err)
{
    struct mfs_scale_draft d;
    int rc;

    if (!mfs_cm_in_phase(cm, MFS_PHASE_RUNNING) || cm->step != MFS_STEP_DONE)
        return mfs_err_set(err, -EBUSY, "the deployment is %s", cm->state.phase);
    if (!strcmp(what->how, MFS_SCALE_CANCEL))
        return mfs_scale_cancel(cm, done, arg, err);
    if (mfs_cm_changing(cm))
        return join_or_refuse(cm, what, done, arg, err);
    if (mfs_checkpoint_busy(cm) && !what->dry_run)
        return mfs_err_set(err, -EBUSY, "a checkpoint is being written; try again when it is done");
    rc = mfs_scale_draft_make(cm, what, &d, err);
    if (rc)
        return rc;
    if (what->dry_run || (d.from == d.to && !d.plan.nmoves && !d.ncoming)) /* it is so already */
        report_plan(&d, done, arg);
    else
        rc = begin(cm, &d, who, done, arg, err);
    mfs_scale_draft_clear(&d);
    return rc;
}

/* ---- a new cm -------------------------------------------------------------------------------- */

void mfs_scale_resume(struct mfs_cm *cm)
{
    const struct mfs_cm_scale *sc = &cm->state.scale;

    if (!mfs_cm_changing(cm))
        return;
    cm->scale = make(cm);
    if (!cm->scale) {
        mfs_error("scale", "out of memory");
        return;
    }
    mfs_event_add(cm->paths->events, "cm", "scale-resumed", "%u -> %s, by %s, step %s", sc->from,
                  MFS_TEXT_COUNT(sc->to, "node"), sc->who, sc->step);
    if (!strcmp(sc->step, MFS_SCALE_COME)) {
        mfs_scale_come(cm->scale);
    } else if (!strcmp(sc->step, MFS_SCALE_MOVE)) {
        cm->scale->inherited = mfs_migrate_await(cm, moved, cm->scale);
        if (!cm->scale->inherited)
            wait_for_nodes(cm->scale);
    } else if (!strcmp(sc->step, MFS_SCALE_RENEW)) {
        mfs_renew_begin(cm->scale);
    } else {
        if (!strcmp(sc->step, MFS_SCALE_UNDO))
            mfs_scale_failed(cm->scale, -ECANCELED, "undone");
        mfs_scale_go(cm->scale);
    }
}

/* ---- for the others -------------------------------------------------------------------------- */

void mfs_scale_progress(const struct mfs_cm *cm, struct mfs_progress *p)
{
    const struct mfs_cm_scale *sc = &cm->state.scale;
    bool come = !strcmp(sc->step, MFS_SCALE_COME), undo = !strcmp(sc->step, MFS_SCALE_UNDO);
    const char *waits_for = "", *which = come || undo ? MFS_NODE_COMING : MFS_NODE_LEAVING;
    uint32_t n = 0;

    *p = (struct mfs_progress){0};
    if (!mfs_cm_changing(cm))
        return;
    if (!strcmp(sc->step, MFS_SCALE_MOVE)) {
        mfs_migrate_progress(cm, p);
        if (!p->what[0])
            mfs_text_copy(p->what, sizeof p->what, "planning");
        return;
    }
    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        n += !strcmp(cm->state.node[i].transition, which);
        if (cm->nodes[i]->waits_for[0])
            waits_for = cm->nodes[i]->waits_for;
    }
    snprintf(p->what, sizeof p->what, "%s %u node%s%s%s",
             come                                 ? "starting"
             : !strcmp(sc->step, MFS_SCALE_RENEW) ? "finding out what is lost with"
                                                  : "stopping",
             n, n == 1 ? "" : "s", *waits_for ? ": " : "", waits_for);
}

void mfs_scale_stop(struct mfs_cm *cm)
{
    struct mfs_scale *s = cm->scale;
    struct mfs_err err;

    if (!s)
        return;
    mfs_renew_fini(s);
    mfs_timer_cancel(s->timer);
    s->timer = NULL;
    mfs_err_set(&err, -ECANCELED, "the deployment is being stopped");
    notify_waiters(s, &err, NULL);
}

void mfs_scale_fini(struct mfs_cm *cm)
{
    struct mfs_scale *s = cm->scale;

    if (!s)
        return;
    cm->scale = NULL;
    while (s->waiters) {
        struct mfs_scale_waiter *w = s->waiters;

        s->waiters = w->next;
        free(w);
    }
    mfs_renew_fini(s);
    free(s); /* its timer goes with the loop */
}
