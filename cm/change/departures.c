/* A node that is told to end has a time in its record (leave_by) from then on:
 *
 *     told ──► drained (it is marked as leaving, and goes like any other) ──► gone
 *      │
 *      └─────► ended with what had not moved ──► forgotten, when replicas have taken over
 *                                           └──► stays, dead, until cm forget
 *
 * Each LOOK all that were told and are not leaving yet begin to: by a drain of their own, or by
 * joining the change that moves partitions just then. What can't begin now (a checkpoint is
 * written; no other node has room) is tried again. What does not fit elsewhere is said before, and
 * saved, where --on-end asks for it; so is all when no node stays. When no node is left that could
 * take anything, all of them are told to stop: nothing is gained by waiting. */
#include "cm/change/departures.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "cluster/capacity.h"
#include "cm/change/on_end.h"
#include "cm/change/scale/scale.h"
#include "cm/nodes/quorum.h"
#include "cm/state/events.h"

#define LOOK      (100 * MFS_MSEC)
#define AGAIN     (2 * MFS_SEC)
#define STOP_TIME (30 * MFS_SEC)
#define TAKE_OVER (10 * MFS_SEC) /* for replicas, before it is said that something is lost */

struct mfs_departures {
    struct mfs_cm *cm;
    struct mfs_timer *timer;
    int64_t again_at;              /* a drain is tried */
    char refused[MFS_ERR_MSG_MAX]; /* why the last one was; "": it was not */
    bool said;                     /* that something will be lost */
    struct mfs_on_end *on_end;
};

static uint64_t real_us(void)
{
    struct timespec t = mfs_clock_real();

    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static bool is_told(const struct mfs_node *n)
{
    return n->record->leave_by;
}

/* Could it take partitions? */
static bool stays(const struct mfs_node *n)
{
    return n->conn && !is_told(n) && !n->record->transition[0];
}

/* ns until the first of those told ends. */
static int64_t time_left(const struct mfs_cm *cm)
{
    uint64_t first = UINT64_MAX, now = real_us();

    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (is_told(cm->nodes[i]) && cm->nodes[i]->conn && cm->state.node[i].leave_by < first)
            first = cm->state.node[i].leave_by;
    return first == UINT64_MAX || first <= now ? 0 : (int64_t)(first - now) * (MFS_MSEC / 1000);
}

/* Told, there, and not leaving yet. */
static bool is_waiting(const struct mfs_node *n)
{
    return is_told(n) && n->conn && !n->record->transition[0] && !n->stop_sent;
}

/* ---- nodes that are there -------------------------------------------------------------------- */

static void stopped(void *arg, const struct mfs_err *err, const void *reply)
{
    const struct mfs_node *n = arg;

    (void)reply;
    if (err && err->code != -ECONNABORTED)
        mfs_warn("departures", "%s: stop: %s", n->record->name, err->msg);
}

/* With them all ends that is stored, but for a checkpoint. */
static void stop_all(const struct mfs_departures *d)
{
    struct mfs_cm *cm = d->cm;
    bool saved = mfs_on_end_saved(d->on_end);

    mfs_event_add(cm->paths->events, "cm", "all-leave", "every node has been told to end: %s%s",
                  saved ? "what is stored is in the checkpoint in "
                        : "what is stored is lost with them",
                  saved ? mfs_on_end_dir(cm) : "");
    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        struct mfs_node *n = cm->nodes[i];

        if (!is_told(n) || !n->conn || n->stop_sent)
            continue;
        n->stop_sent = true;
        n->record->leave_by = real_us();
        mfs_node_ask(n, MFS_MSG_STOP, NULL, STOP_TIME, stopped, n);
    }
    mfs_cm_state_save(&cm->state, cm->paths->state);
}

static void drained(void *arg, const struct mfs_err *err, const struct mfs_scale_report *r)
{
    struct mfs_departures *d = arg;

    (void)r;
    if (err) /* which an event has said */
        d->again_at = mfs_clock_mono() + AGAIN;
}

static void begin(struct mfs_departures *d, struct mfs_msg_scale *what)
{
    struct mfs_err err = {0};
    int rc =
        mfs_scale_begin(d->cm, what, "SIGTERM to the lm of nodes that leave", drained, d, &err);

    if (!rc)
        d->refused[0] = '\0';
    if (!rc || rc == -EAGAIN || rc == -EBUSY)
        return;
    d->again_at = mfs_clock_mono() + AGAIN;
    if (strcmp(d->refused, err.msg))
        mfs_event_add(d->cm->paths->events, "cm", "drain-refused", "%s", err.msg);
    mfs_text_copy(d->refused, sizeof d->refused, err.msg);
    mfs_on_end_saves(d->on_end, time_left(d->cm));
}

static void drain(struct mfs_departures *d)
{
    struct mfs_cm *cm = d->cm;
    struct mfs_msg_scale what = {
        .how = "drain", .urgent = true, .node = calloc(cm->state.nnodes, sizeof *what.node)};

    for (uint32_t i = 0; i < cm->state.nnodes && what.node; i++)
        if (is_waiting(cm->nodes[i]))
            mfs_text_copy(what.node[what.nnodes++].name, sizeof what.node->name,
                          cm->state.node[i].name);
    if (what.nnodes)
        begin(d, &what);
    free(what.node);
}

/* What the nodes that are told to end hold, and the others have room for. */
static void measure(const struct mfs_cm *cm, uint64_t *held, uint64_t *room)
{
    *held = *room = 0;
    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        const struct mfs_msg_report *r = &cm->nodes[i]->last;

        if (stays(cm->nodes[i]) && r->memory_capacity > r->memory_used)
            *room += r->memory_capacity - r->memory_used;
    }
    for (uint32_t i = 0; i < cm->state.nparts; i++) {
        const struct mfs_node *n = mfs_nodes_find(cm, cm->state.part[i].node);

        if (n && is_told(n) && n->conn)
            *held += cm->part_bytes[i] + MFS_CAPACITY_PROCESS;
    }
}

uint64_t mfs_departures_will_lose(const struct mfs_cm *cm)
{
    uint64_t held, room;

    if (!cm->departures || cm->state.replicas)
        return 0;
    measure(cm, &held, &room);
    return held > room ? held - room : 0;
}

static void say_lost(const struct mfs_departures *d, uint64_t held, uint64_t room)
{
    const char *dir = mfs_on_end_dir(d->cm);

    mfs_event_add(d->cm->paths->events, "cm", "will-lose",
                  "nodes that end within %.0f s hold %s, others have room for %s: the rest is lost "
                  "with them; %s%s",
                  (double)time_left(d->cm) / 1e9, MFS_TEXT_BYTES(held), MFS_TEXT_BYTES(room),
                  dir ? "a checkpoint is written to " : "cm checkpoint DIR saves it",
                  dir ? dir : "");
}

/* Said early enough to do something about it. True: what does not fit is being saved first, in half
 * of the time there is. */
static bool saves_first(struct mfs_departures *d)
{
    uint64_t held, room;

    if (d->cm->state.replicas)
        return false;
    measure(d->cm, &held, &room);
    if (held <= room)
        return false;
    if (!d->said)
        say_lost(d, held, room);
    d->said = true;
    return mfs_on_end_saves(d->on_end, time_left(d->cm) / 2);
}

static void look_at_those_there(struct mfs_departures *d)
{
    struct mfs_cm *cm = d->cm;
    bool any = false, one_stays = false;

    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        any |= is_waiting(cm->nodes[i]);
        one_stays |= stays(cm->nodes[i]);
    }
    if (!any || (!one_stays && mfs_nodes_awaited(cm)))
        return;
    if (!one_stays && mfs_on_end_saves(d->on_end, time_left(cm)))
        return;
    if (!one_stays)
        stop_all(d);
    else if (!mfs_cm_changing(cm) && mfs_clock_mono() >= d->again_at && !saves_first(d))
        drain(d);
    else if (mfs_cm_changing(cm))
        for (uint32_t i = 0; i < cm->state.nnodes; i++)
            if (is_waiting(cm->nodes[i]))
                mfs_scale_extend(cm, cm->nodes[i]);
}

/* ---- nodes that have ended ------------------------------------------------------------------- */

static void forgotten(void *arg, const struct mfs_err *err, const struct mfs_scale_report *r)
{
    (void)arg;
    (void)err;
    (void)r;
}

static void forget(struct mfs_departures *d, const struct mfs_node *n)
{
    struct mfs_scale_node name;
    struct mfs_msg_scale what = {.how = "forget", .nnodes = 1, .node = &name};
    struct mfs_err err;

    mfs_text_copy(name.name, sizeof name.name, n->record->name);
    mfs_scale_begin(d->cm, &what, "a node that was told to end has ended", forgotten, d, &err);
}

static void look_at_ended(struct mfs_departures *d, struct mfs_node *n)
{
    uint32_t count = mfs_cm_state_count(&d->cm->state, n->record->id);

    if (!count && !mfs_cm_exclusive(d->cm)) {
        forget(d, n);
        return;
    }
    if (!count || n->missed || mfs_clock_mono() - n->last_contact < TAKE_OVER)
        return;
    n->missed = true;
    mfs_event_add(d->cm->paths->events, n->record->name, "ended",
                  "with %s that had not moved; cm forget %s lets these begin empty elsewhere",
                  MFS_TEXT_COUNT(count, "partition"), n->record->name);
}

/* ---- time ------------------------------------------------------------------------------------ */

static void look(void *arg)
{
    struct mfs_departures *d = arg;
    struct mfs_cm *cm = d->cm;

    if (!mfs_cm_in_phase(cm, MFS_PHASE_RUNNING) || cm->step != MFS_STEP_DONE)
        return;
    look_at_those_there(d);
    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        struct mfs_node *n = cm->nodes[i];

        if (mfs_node_is_over(n) && !n->conn && !n->record->transition[0]) {
            look_at_ended(d, n);
            return; /* the list may have changed */
        }
    }
}

static int watch(struct mfs_cm *cm)
{
    struct mfs_departures *d = cm->departures;

    if (d)
        return 0;
    d = calloc(1, sizeof *d);
    if (!d)
        return -ENOMEM;
    d->cm = cm;
    d->on_end = mfs_on_end_create(cm);
    d->timer = mfs_loop_timer(cm->loop, 0, LOOK, look, d);
    cm->departures = d;
    if (d->on_end && d->timer)
        return 0;
    mfs_departures_fini(cm);
    return -ENOMEM;
}

static void note(struct mfs_node *n, uint64_t ms)
{
    struct mfs_cm *cm = n->cm;
    bool is_news = !n->record->leave_by;
    int rc;

    if (is_news) {
        mfs_on_end_again(cm->departures->on_end);
        cm->departures->said = false;
    }
    n->record->leave_by = real_us() + ms * 1000;
    rc = mfs_cm_state_save(&cm->state, cm->paths->state);
    if (rc)
        mfs_error("departures", "%s: %s", cm->paths->state, strerror(-rc));
    if (is_news)
        mfs_event_add(cm->paths->events, n->record->name, "told-to-end",
                      "leaves within %.1f s; what it has moves to other nodes", (double)ms / 1e3);
}

void mfs_departures_on_leave(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_leave *m = body;
    struct mfs_node *n = mfs_conn_data(c);
    struct mfs_cm *cm = arg;

    if (!n) {
        mfs_conn_fail(c, id, -EPERM, "join first");
        return;
    }
    if (!mfs_cm_in_phase(cm, MFS_PHASE_RUNNING) || cm->step != MFS_STEP_DONE) {
        mfs_conn_fail(c, id, -ESHUTDOWN, "the deployment is %s", cm->state.phase);
        return;
    }
    if (watch(cm)) {
        mfs_conn_fail(c, id, -ENOMEM, "out of memory");
        return;
    }
    note(n, m->ms);
    mfs_conn_reply(c, MFS_MSG_LEAVE, id, NULL);
}

void mfs_departures_resume(struct mfs_cm *cm)
{
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (cm->state.node[i].leave_by && watch(cm))
            mfs_error("departures", "out of memory");
}

void mfs_departures_fini(struct mfs_cm *cm)
{
    if (!cm->departures)
        return;
    mfs_timer_cancel(cm->departures->timer);
    mfs_on_end_destroy(cm->departures->on_end);
    free(cm->departures);
    cm->departures = NULL;
}
