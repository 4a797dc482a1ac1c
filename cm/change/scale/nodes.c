/* Nodes come: started, joined, nothing to run yet, table, mount. Nodes go: their Local Managers end
 * what is on them; when it has ended, its files are removed, and the node is no part of the
 * deployment any more. One that is to be forgotten is not waited for: what of it may still run is
 * told to end itself when it comes back (life/service.c). */
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cm/change/bandwidth_estimates.h"
#include "cm/nodes/cleanup.h"
#include "cm/nodes/failure.h"
#include "cm/nodes/provision.h"
#include "cm/nodes/tables.h"
#include "cm/nodes/quorum.h"
#include "cm/state/events.h"
#include "cm/partitions/migrate.h"
#include "cm/change/probe.h"
#include "cm/partitions/replicas.h"
#include "cm/change/scale/impl.h"

#define COME_TIME   (120 * MFS_SEC)
#define ASSIGN_TIME (60 * MFS_SEC)
#define TABLE_TIME  (20 * MFS_SEC)
#define GO_TIME     (45 * MFS_SEC) /* then by force */
#define FORCE_TIME  (5 * MFS_SEC)
#define LOOK        (20 * MFS_MSEC)

static_assert(MFS_MOUNT_TIME < COME_TIME && ASSIGN_TIME < COME_TIME, "steps of the whole");
static_assert(MFS_RETURN_TIME < GO_TIME, "a node that is away may come back, to be asked");

/* ---- coming ---------------------------------------------------------------------------------- */

static bool coming(const struct mfs_node *n)
{
    return mfs_scale_in(n->cm, MFS_SCALE_COME) && !strcmp(n->record->transition, MFS_NODE_COMING);
}

static void stop_looking(struct mfs_scale *s)
{
    mfs_timer_cancel(s->timer);
    s->timer = NULL;
}

void mfs_scale_give_up_coming(struct mfs_scale *s)
{
    stop_looking(s);
    mfs_scale_undo(s);
}

/* Of several failures the first counts. */
static void not_come(struct mfs_node *n, int code, const char *why)
{
    struct mfs_scale *s = n->cm->scale;

    if (s->failure.code)
        return;
    mfs_scale_failed(s, code, "%s: %s", n->record->name, why);
    mfs_failure_write(n->cm, n, s->failure.msg, n->step == MFS_STEP_MOUNT);
    mfs_scale_give_up_coming(s);
}

static bool all_have_come(const struct mfs_cm *cm)
{
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (coming(cm->nodes[i]) && cm->nodes[i]->step != MFS_STEP_DONE)
            return false;
    return true;
}

/* It may have been begun by a change that was given up since. */
static void probed(struct mfs_cm *cm, void *arg)
{
    (void)arg;
    if (mfs_scale_in(cm, MFS_SCALE_COME) && !cm->scale->failure.code && all_have_come(cm))
        mfs_scale_have_come(cm->scale);
}

/* Without what a probe would tell it goes on as well. */
static int probe_coming(struct mfs_cm *cm)
{
    uint32_t *node = calloc(cm->state.nnodes, sizeof *node), n = 0;
    int rc = -ENOMEM;

    for (uint32_t i = 0; node && i < cm->state.nnodes; i++) {
        if (coming(cm->nodes[i]))
            node[n++] = cm->state.node[i].id;
    }
    if (node)
        rc = mfs_cm_probe_begin(cm, node, n, probed, NULL);
    free(node);
    return rc;
}

static void come(struct mfs_node *n)
{
    struct mfs_cm *cm = n->cm;

    n->step = MFS_STEP_DONE;
    memcpy(n->mount, n->record->mount, sizeof n->mount);
    mfs_event_add(cm->paths->events, n->record->name, "came", "%s%s%s", n->record->address,
                  *n->record->mount ? ", mounted at " : "", n->record->mount);
    if (!all_have_come(cm))
        return;
    stop_looking(cm->scale);
    if (mfs_cm_probe_goes_on(cm))
        return;
    if (!cm->state.probe || probe_coming(cm))
        mfs_scale_have_come(cm->scale);
}

static void next_step(struct mfs_node *n);

static void answered(void *arg, const struct mfs_err *err, const void *reply)
{
    struct mfs_node *n = arg;

    (void)reply;
    /* A node that has lost its connection comes again, or its process has ended. */
    if (!coming(n) || (err && err->code == -ECONNABORTED))
        return;
    if (err) {
        not_come(n, err->code, err->msg);
        return;
    }
    n->step++;
    next_step(n);
}

static int ask(struct mfs_node *n)
{
    const struct mfs_cm_state *st = &n->cm->state;
    struct mfs_msg_assign assign = {
        .nparts = st->nparts, .stripe_size = st->stripe_size, .memory = n->record->memory};
    struct mfs_msg_mount mount = {0};

    switch (n->step) {
    case MFS_STEP_ASSIGN:
        return mfs_node_ask(n, MFS_MSG_ASSIGN, &assign, ASSIGN_TIME, answered, n);
    case MFS_STEP_TABLE:
        return mfs_tables_ask(n, TABLE_TIME, answered, n);
    default:
        memcpy(mount.path, n->record->mount, sizeof mount.path);
        memcpy(mount.options, st->mount_options, sizeof mount.options);
        return mfs_node_ask(n, MFS_MSG_MOUNT, &mount, MFS_MOUNT_TIME, answered, n);
    }
}

static void next_step(struct mfs_node *n)
{
    int rc;

    if (n->step == MFS_STEP_DONE || (n->step == MFS_STEP_MOUNT && !n->record->mount[0])) {
        come(n);
        return;
    }
    rc = ask(n);
    if (rc && rc != -ENOTCONN)
        not_come(n, rc, strerror(-rc));
}

void mfs_scale_joined(struct mfs_cm *cm, struct mfs_node *n, const struct mfs_msg_join *m)
{
    (void)cm;
    (void)m;
    if (!coming(n))
        return;
    n->step = MFS_STEP_ASSIGN; /* each may be asked again */
    next_step(n);
}

static int64_t come_time(const struct mfs_cm *cm)
{
    return COME_TIME + cm->provider->traits->queue_time;
}

static void too_late(void *arg)
{
    static const char *const waited_for[] = {"to connect", "to be ready", "to take the table",
                                             "to mount"};
    struct mfs_scale *s = arg;
    struct mfs_cm *cm = s->cm;
    char reason[MFS_PROVIDER_REASON_MAX + 8], why[96 + sizeof reason];

    s->timer = NULL;
    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        struct mfs_node *n = cm->nodes[i];

        if (!coming(n) || n->step == MFS_STEP_DONE)
            continue;
        mfs_provision_reason(n, reason, sizeof reason);
        snprintf(why, sizeof why, "waited %lld s for it %s%s", (long long)(come_time(cm) / MFS_SEC),
                 waited_for[n->step], reason);
        not_come(n, -ETIMEDOUT, why);
        return;
    }
}

void mfs_scale_come(struct mfs_scale *s)
{
    struct mfs_cm *cm = s->cm;
    struct mfs_node **to_request = calloc(cm->state.nnodes, sizeof(struct mfs_node *));
    struct mfs_err err;
    uint32_t count = 0;

    if (!to_request) {
        mfs_scale_failed(s, -ENOMEM, "out of memory");
        mfs_scale_undo(s);
        return;
    }
    s->timer = mfs_loop_timer(cm->loop, come_time(cm), 0, too_late, s);
    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        struct mfs_node *n = cm->nodes[i];

        if (strcmp(n->record->transition, MFS_NODE_COMING))
            continue;
        n->step = MFS_STEP_JOIN;
        /* After a restart of cm it may be there already, or be given time to find us. */
        if (n->provided == MFS_PROVIDED_NONE && !n->restart)
            to_request[count++] = n;
    }
    if (count && mfs_provision_request(cm, to_request, count, &err))
        not_come(to_request[0], err.code, err.msg);
    free(to_request);
}

/* ---- going ----------------------------------------------------------------------------------- */

static void stopped(void *arg, const struct mfs_err *err, const void *reply)
{
    struct mfs_node *n = arg;

    (void)reply;
    if (err && err->code != -ECONNABORTED)
        mfs_warn("scale", "%s: stop: %s", n->record->name, err->msg);
}

/* A move may still have to end its source's process there, and a replica is given up first. */
static bool needed(const struct mfs_node *n)
{
    const struct mfs_cm_state *st = &n->cm->state;

    if (mfs_replicas_at(n->cm, n->record->id))
        return true;
    for (uint32_t i = 0; i < st->nmoves; i++)
        if (st->move[i].from == n->record->id || st->move[i].to == n->record->id)
            return true;
    return false;
}

/* One that was killed is not started again only to end: what it left behind is cleared away. */
static bool may_answer(const struct mfs_node *n, int64_t left)
{
    return n->conn || mfs_provision_runs(n) || n->restart || left > GO_TIME - MFS_RETURN_TIME;
}

/* SIGINT means the same to it. */
static void send_stop(struct mfs_node *n)
{
    n->stop_sent = true;
    mfs_timer_cancel(n->restart);
    n->restart = NULL;
    if (!n->conn || mfs_node_ask(n, MFS_MSG_STOP, NULL, GO_TIME, stopped, n))
        mfs_provision_end(n);
}

/* One whose process can't be seen may be there all the same, and is to find a new cm. */
static bool may_find_us(const struct mfs_node *n, int64_t now)
{
    return !n->cm->provider->traits->sees_processes && now - n->cm->began < MFS_RETURN_TIME;
}

/* To end what it runs. */
static bool may_come_back(struct mfs_node *n, int64_t now, int64_t left)
{
    if (!n->stop_sent && may_find_us(n, now))
        return true;
    return left > 0 && mfs_provision_brought_back(n);
}

static bool has_ended(struct mfs_node *n, int64_t left)
{
    if (left < 0)
        mfs_provision_signal(n, SIGKILL);
    /* Of one elsewhere there may be nothing but its connection to tell. */
    if ((n->conn || mfs_provision_runs(n)) && left > -FORCE_TIME)
        return false;
    /* Its lm may have been killed, and left the others alone. */
    return !n->cm->provider->traits->sees_processes ||
           !mfs_cleanup_node_processes(n->cm->paths, n->record->id) || left <= -FORCE_TIME;
}

/* Another cm could begin with its vote. `cm forget` states that the node is gone for good. */
static bool may_be_removed(const struct mfs_node *n)
{
    return !n->record->votes || n->cm->state.scale.forget;
}

static void remove_node(struct mfs_node *n)
{
    struct mfs_cm *cm = n->cm;
    struct mfs_err err = {0};
    int rc;

    if (!cm->provider->traits->sees_processes)
        mfs_cleanup_start_files(cm->paths, n->record->id);
    else if (mfs_cleanup_node_files(cm->paths, n->record->id, &err))
        mfs_warn("scale", "%s: %s", n->record->name, err.msg);
    mfs_bandwidth_estimates_forget(cm, n);
    mfs_nodes_remove(cm, n);
    mfs_migrate_left(cm, n->record->id);
    mfs_event_add(cm->paths->events, n->record->name, cm->state.scale.forget ? "forgotten" : "left",
                  "%s now", MFS_TEXT_COUNT(cm->state.nnodes, "node"));
    rc = mfs_cm_state_save(&cm->state, cm->paths->state);
    if (rc)
        mfs_error("scale", "%s: %s", cm->paths->state, strerror(-rc));
}

/* Is there an lm that can be told to stop? One that is about to be started again is not, where
 * nothing is left for it to do; one that was started for that is told when it has joined. */
static bool is_to_be_told(const struct mfs_node *n)
{
    const struct mfs_cm *cm = n->cm;

    if (n->conn || n->brought_back)
        return n->conn != NULL;
    return mfs_provision_runs(n) ||
           (n->restart && (cm->provider->traits->sees_processes || cm->state.scale.forget));
}

static void look(void *arg)
{
    struct mfs_scale *s = arg;
    struct mfs_cm *cm = s->cm;
    int64_t now = mfs_clock_mono(), left = s->until - now;
    bool any = false, filled = false;

    for (uint32_t i = cm->state.nnodes; i-- > 0;) {
        struct mfs_node *n = cm->nodes[i];

        if (!mfs_nodes_goes(n))
            continue;
        if (!n->stop_sent && mfs_cm_state_count(&cm->state, n->record->id)) {
            filled = true; /* a replica there has taken over */
            continue;
        }
        any = true;
        if (!cm->state.scale.forget && needed(n) && left > 0 && may_answer(n, left))
            continue;
        if (!n->stop_sent && is_to_be_told(n))
            send_stop(n);
        else if (!cm->state.scale.forget && may_come_back(n, now, left))
            continue;
        else if (has_ended(n, left) && may_be_removed(n) && mfs_provision_released(n))
            remove_node(n);
    }
    if (any)
        return;
    stop_looking(s);
    if (filled)
        mfs_scale_move_again(s);
    else
        mfs_scale_have_gone(s);
}

void mfs_scale_go(struct mfs_scale *s)
{
    s->until = mfs_clock_mono() + (s->cm->state.scale.forget ? 0 : GO_TIME);
    s->timer = mfs_loop_timer(s->cm->loop, LOOK, LOOK, look, s);
    if (!s->timer) /* the nodes stay marked; the next cm goes on with it */
        mfs_error("scale", "out of memory");
}

bool mfs_scale_gone(struct mfs_cm *cm, struct mfs_node *n, int code, const char *why)
{
    (void)cm;
    if (coming(n)) {
        not_come(n, code, why);
        return true;
    }
    return mfs_nodes_goes(n);
}
