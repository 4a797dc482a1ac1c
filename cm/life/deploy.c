/* The start of a deployment: JOIN (every Local Manager has connected, and the links are
 * measured, if that is wanted) → ASSIGN (each runs its redis
 * processes) → TABLE (made, saved, and every node holds it) → MOUNT → DONE. A step begins when
 * every node is done with the one before. Whatever fails ends the start, and all that was started.
 */
#include "cm/life/deploy.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cm/change/autoscale.h"
#include "cm/nodes/quorum.h"
#include "cm/state/events.h"
#include "cm/change/probe.h"
#include "cm/life/shutdown.h"
#include "cm/nodes/failure.h"
#include "cm/nodes/provision.h"
#include "cm/nodes/tables.h"
#include "cm/partitions/replicas.h"
#include "cm/state/spec.h"
#include "net/supervisor.h"

#define ASSIGN_TIME (90 * MFS_SEC)
#define TABLE_TIME  (20 * MFS_SEC)

static_assert(ASSIGN_TIME + TABLE_TIME + MFS_MOUNT_TIME < MFS_DEPLOY_TIME, "steps of a start");
static_assert(MFS_CLIENT_ACK_TIME < TABLE_TIME, "a Local Manager names the client that is late");

static void next_step(struct mfs_cm *cm);

/* ---- failure --------------------------------------------------------------------------------- */

void mfs_deploy_fail(struct mfs_cm *cm, const struct mfs_node *node, int code, const char *fmt, ...)
{
    char why[MFS_ERR_MSG_MAX];
    va_list ap;

    if (cm->start.failure.code || mfs_cm_in_phase(cm, MFS_PHASE_STOPPING))
        return;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    if (node)
        mfs_err_set(&cm->start.failure, code, "%s: %s", node->record->name, why);
    else
        mfs_err_set(&cm->start.failure, code, "%s", why);
    mfs_event_add(cm->paths->events, "cm", "start-failed", "%s", cm->start.failure.msg);
    if (!cm->foreground)
        mfs_failure_write(cm, node, cm->start.failure.msg, cm->step == MFS_STEP_MOUNT);
    mfs_shutdown_begin(cm);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void node_done(struct mfs_node *n)
{
    struct mfs_cm *cm = n->cm;

    n->done = true;
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (!cm->nodes[i]->done)
            return;
    next_step(cm);
}

/* Is this the answer that the step waits for? One that comes later than the end is of no use, and
 * when the connection is lost nodes.c finds out why. */
static bool current(const struct mfs_node *n, enum mfs_cm_step step, const struct mfs_err *err)
{
    return n->cm->step == step && !mfs_cm_in_phase(n->cm, MFS_PHASE_STOPPING) &&
           (!err || err->code != -ECONNABORTED);
}

static void request(struct mfs_node *n, enum mfs_msg type, const void *body, int64_t timeout,
                    void (*done)(void *arg, const struct mfs_err *err, const void *reply))
{
    int rc = n->conn ? mfs_node_ask(n, type, body, timeout, done, n) : -ENOTCONN;

    if (rc)
        mfs_deploy_fail(n->cm, n, rc, "cannot send \"%s\": %s", mfs_messages[type].name,
                        strerror(-rc));
}

static void assigned(void *arg, const struct mfs_err *err, const void *reply)
{
    const struct mfs_msg_assign_reply *r = reply;
    struct mfs_node *n = arg;
    struct mfs_cm *cm = n->cm;

    if (!current(n, MFS_STEP_ASSIGN, err))
        return;
    if (err) {
        mfs_deploy_fail(cm, n, err->code, "%s", err->msg);
        return;
    }
    for (uint32_t i = 0; i < r->nassigned; i++) {
        const struct mfs_assigned_part *p = &r->assigned[i];

        if (p->index < cm->state.nparts && cm->state.part[p->index].node == n->record->id)
            cm->start.assigned[p->index] = *p;
    }
    node_done(n);
}

static void assign(struct mfs_node *n)
{
    const struct mfs_cm_state *s = &n->cm->state;
    struct mfs_msg_assign m = {
        .nparts = s->nparts, .stripe_size = s->stripe_size, .memory = n->record->memory};

    memcpy(m.image_dir, s->image_dir, sizeof m.image_dir);
    m.assigned = calloc(s->nparts, sizeof *m.assigned);
    if (!m.assigned) {
        mfs_deploy_fail(n->cm, NULL, -ENOMEM, "out of memory");
        return;
    }
    for (uint32_t i = 0; i < s->nparts; i++) {
        struct mfs_assign_part *p = &m.assigned[m.nassigned];

        if (s->part[i].node != n->record->id)
            continue;
        p->index = i;
        p->format = true;
        if (s->nimages)
            p->image = s->image[i];
        memcpy(p->password, s->part[i].password, sizeof p->password);
        memcpy(p->admin_password, s->part[i].admin_password, sizeof p->admin_password);
        m.nassigned++;
    }
    request(n, MFS_MSG_ASSIGN, &m, ASSIGN_TIME + mfs_cm_state_load_time(s), assigned);
    free(m.assigned);
}

/* Epoch 1 from what the nodes have answered. */
static int make_table(struct mfs_cm *cm)
{
    struct mfs_cm_state *s = &cm->state;
    struct mfs_table *t = mfs_table_new(s->nparts);

    if (!t)
        return -ENOMEM;
    t->epoch = s->image_epoch + 1; /* it goes on after that of the checkpoint, if there is one */
    t->stripe_size = s->stripe_size;
    t->growing = mfs_autoscale_growing(cm);
    t->replicated = s->replicas > 0;
    mfs_text_copy(t->name, sizeof t->name, s->name);
    for (uint32_t i = 0; i < s->nparts; i++) {
        const struct mfs_cm_node *node = mfs_cm_state_node(s, s->part[i].node);
        struct mfs_partition *p = &t->part[i];

        p->node = node->id;
        p->port = (uint16_t)cm->start.assigned[i].port;
        memcpy(p->host, node->address, sizeof p->host);
        memcpy(p->unix_path, cm->start.assigned[i].unix_path, sizeof p->unix_path);
        memcpy(p->password, s->part[i].password, sizeof p->password);
        if (!p->port) {
            free(t);
            return -EPROTO;
        }
    }
    free(s->table);
    s->table = t;
    return mfs_cm_state_save(s, cm->paths->state);
}

static void table_held(void *arg, const struct mfs_err *err, const void *reply)
{
    struct mfs_node *n = arg;

    (void)reply;
    if (!current(n, MFS_STEP_TABLE, err))
        return;
    if (err)
        mfs_deploy_fail(n->cm, n, err->code, "%s", err->msg);
    else
        node_done(n);
}

static void push_all(struct mfs_cm *cm)
{
    for (uint32_t i = 0; i < cm->state.nnodes && cm->step == MFS_STEP_TABLE; i++) {
        struct mfs_node *n = cm->nodes[i];
        int rc = n->conn ? mfs_tables_ask(n, TABLE_TIME, table_held, n) : -ENOTCONN;

        if (rc)
            mfs_deploy_fail(cm, n, rc, "cannot send the table: %s", strerror(-rc));
    }
}

static void mounted(void *arg, const struct mfs_err *err, const void *reply)
{
    struct mfs_node *n = arg;

    (void)reply;
    if (!err) {
        mfs_text_copy(n->mount, sizeof n->mount, n->record->mount);
        mfs_event_add(n->cm->paths->events, n->record->name, "mounted", "%s", n->record->mount);
    }
    if (current(n, MFS_STEP_MOUNT, err)) {
        if (err)
            mfs_deploy_fail(n->cm, n, err->code, "%s", err->msg);
        else
            node_done(n);
    } else if (err && err->code != -ECONNABORTED) {
        mfs_event_add(n->cm->paths->events, n->record->name, "mount-failed", "%s: %s",
                      n->record->mount, err->msg);
    }
}

void mfs_deploy_mount(struct mfs_cm *cm, struct mfs_node *n)
{
    struct mfs_msg_mount m = {0};

    mfs_text_copy(m.path, sizeof m.path, n->record->mount);
    mfs_text_copy(m.options, sizeof m.options, cm->state.mount_options);
    if (cm->step == MFS_STEP_MOUNT)
        request(n, MFS_MSG_MOUNT, &m, MFS_MOUNT_TIME, mounted);
    else if (n->conn)
        mfs_node_ask(n, MFS_MSG_MOUNT, &m, MFS_MOUNT_TIME, mounted, n);
}

static void mount_all(struct mfs_cm *cm)
{
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        cm->nodes[i]->done = !cm->nodes[i]->record->mount[0];
    for (uint32_t i = 0; i < cm->state.nnodes && cm->step == MFS_STEP_MOUNT; i++)
        if (cm->nodes[i]->record->mount[0])
            mfs_deploy_mount(cm, cm->nodes[i]);
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (!cm->nodes[i]->done)
            return;
    next_step(cm);
}

/* A node that has just lost its connection is waited for, as by any deployment that runs. */
static void end_waits(struct mfs_cm *cm)
{
    mfs_timer_cancel(cm->start.deadline);
    cm->start.deadline = NULL;
    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        mfs_timer_cancel(cm->nodes[i]->restart);
        cm->nodes[i]->restart = NULL;
    }
}

static void finish(struct mfs_cm *cm)
{
    const struct mfs_cm_state *s = &cm->state;

    end_waits(cm);
    free(cm->start.assigned);
    cm->start.assigned = NULL;
    cm->settled = true;
    if (cm->state.nimages)
        mfs_event_add(cm->paths->events, "cm", "restored", "%u partitions of %s", s->nparts,
                      s->image_dir);
    mfs_cm_state_loaded(&cm->state);
    if (mfs_cm_set_phase(cm, MFS_PHASE_RUNNING)) {
        mfs_deploy_fail(cm, NULL, -EIO, "%s: cannot be written", cm->paths->state);
        return;
    }
    if (mfs_replicas_begin(cm))
        mfs_error("deploy", "out of memory: there will be no replicas");
    mfs_event_add(cm->paths->events, "cm", "running", "%s, %s, %llu bytes per node, %lld ms",
                  MFS_TEXT_COUNT(s->nnodes, "node"), MFS_TEXT_COUNT(s->nparts, "partition"),
                  (unsigned long long)s->memory,
                  (long long)((mfs_clock_mono() - cm->began) / MFS_MSEC));
    mfs_supervisor_ready(cm->loop);
}

static void next_step(struct mfs_cm *cm)
{
    int rc;

    if (mfs_cm_in_phase(cm, MFS_PHASE_STOPPING))
        return;
    cm->step++;
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        cm->nodes[i]->done = false;
    switch (cm->step) {
    case MFS_STEP_ASSIGN:
        for (uint32_t i = 0; i < cm->state.nnodes && !cm->start.failure.code; i++)
            assign(cm->nodes[i]);
        break;
    case MFS_STEP_TABLE:
        rc = make_table(cm);
        if (rc)
            mfs_deploy_fail(cm, NULL, rc, "cannot make the partition table: %s", strerror(-rc));
        else
            push_all(cm);
        break;
    case MFS_STEP_MOUNT:
        mount_all(cm);
        break;
    default:
        finish(cm);
    }
}

/* Nothing runs yet: the partitions are given out anew, by what is known now. */
static void probed(struct mfs_cm *cm, void *arg)
{
    struct mfs_err err = {0};

    (void)arg;
    if (mfs_cm_in_phase(cm, MFS_PHASE_STOPPING) || cm->step != MFS_STEP_JOIN)
        return;
    if (mfs_spec_divide(&cm->state, &err))
        mfs_deploy_fail(cm, NULL, err.code, "%s", err.msg);
    else
        next_step(cm);
}

/* Without what a probe would tell it goes on as well. */
static int probe_all(struct mfs_cm *cm)
{
    uint32_t *node = calloc(cm->state.nnodes, sizeof *node);
    int rc = -ENOMEM;

    for (uint32_t i = 0; node && i < cm->state.nnodes; i++)
        node[i] = cm->state.node[i].id;
    if (node)
        rc = mfs_cm_probe_begin(cm, node, cm->state.nnodes, probed, NULL);
    free(node);
    return rc;
}

void mfs_deploy_joined(struct mfs_cm *cm)
{
    if (mfs_cm_probe_goes_on(cm))
        return;
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (!cm->nodes[i]->conn)
            return;
    if (!cm->state.probe || probe_all(cm))
        next_step(cm);
}

int64_t mfs_deploy_time(const struct mfs_cm_state *s)
{
    return MFS_DEPLOY_TIME + mfs_cm_state_load_time(s) +
           mfs_provider_traits(s->provider)->queue_time;
}

static void too_late(void *arg)
{
    static const char *const waited_for[] = {"to connect", "to start its redis processes",
                                             "to take the partition table", "to mount"};
    char reason[MFS_PROVIDER_REASON_MAX + 8];
    struct mfs_cm *cm = arg;

    cm->start.deadline = NULL;
    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        const struct mfs_node *n = cm->nodes[i];

        if (cm->step == MFS_STEP_JOIN ? !n->conn : !n->done) {
            mfs_provision_reason(n, reason, sizeof reason);
            mfs_deploy_fail(cm, n, -ETIMEDOUT, "waited %lld s for it %s%s",
                            (long long)(mfs_deploy_time(&cm->state) / MFS_SEC),
                            waited_for[cm->step], reason);
            return;
        }
    }
}

void mfs_deploy_begin(struct mfs_cm *cm)
{
    struct mfs_err err;

    cm->step = MFS_STEP_JOIN;
    cm->start.deadline = mfs_loop_timer(cm->loop, mfs_deploy_time(&cm->state), 0, too_late, cm);
    cm->start.assigned = calloc(cm->state.nparts, sizeof *cm->start.assigned);
    if (!cm->start.deadline || !cm->start.assigned) {
        mfs_deploy_fail(cm, NULL, -ENOMEM, "out of memory");
        return;
    }
    if (mfs_provision_request(cm, cm->nodes, cm->state.nnodes, &err))
        mfs_deploy_fail(cm, NULL, err.code, "%s", err.msg);
}

/* ---- later ----------------------------------------------------------------------------------- */

static void pushed(void *arg, const struct mfs_err *err, const void *reply)
{
    struct mfs_node *n = arg;

    (void)reply;
    if (err && err->code != -ECONNABORTED)
        mfs_event_add(n->cm->paths->events, n->record->name, "table-refused", "%s", err->msg);
}

void mfs_deploy_push(struct mfs_cm *cm, struct mfs_node *n)
{
    if (n->conn && cm->state.table)
        mfs_tables_ask(n, TABLE_TIME, pushed, n);
}
