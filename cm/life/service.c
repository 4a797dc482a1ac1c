/* The messages that cm takes, and the part that handles each; what happens when a connection comes
 * and goes. */
#include "cm/life/service.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "cm/change/autoscale.h"
#include "cm/change/bandwidth_estimates.h"
#include "cm/change/checkpoint.h"
#include "cm/change/departures.h"
#include "cm/change/scale/scale.h"
#include "cm/history/keep.h"
#include "cm/life/deploy.h"
#include "cm/life/handover.h"
#include "cm/life/remount.h"
#include "cm/life/shutdown.h"
#include "cm/life/status.h"
#include "cm/nodes/copies.h"
#include "cm/nodes/follow.h"
#include "cm/nodes/mounts.h"
#include "cm/nodes/provision.h"
#include "cm/nodes/quorum.h"
#include "cm/nodes/subscribers.h"
#include "cm/nodes/trust.h"
#include "cm/partitions/migrate.h"
#include "cm/partitions/replicas.h"
#include "cm/state/events.h"
#include "cm/state/mark.h"

/* ---- Local Managers -------------------------------------------------------------------------- */

static void settle(struct mfs_cm *cm)
{
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (!cm->nodes[i]->conn && !cm->nodes[i]->record->transition[0])
            return;
    if (!cm->settled)
        mfs_event_add(cm->paths->events, "cm", "adopted", "%s, epoch %llu, %lld ms",
                      MFS_TEXT_COUNT(cm->state.nnodes, "node"),
                      (unsigned long long)(cm->state.table ? cm->state.table->epoch : 0),
                      (long long)((mfs_clock_mono() - cm->began) / MFS_MSEC));
    cm->settled = true;
}

/* A node of a running deployment is (again) there. */
static void take_up(struct mfs_cm *cm, struct mfs_node *n, const struct mfs_msg_join *m)
{
    uint32_t due = mfs_cm_state_count(&cm->state, n->record->id);

    mfs_nodes_counted(n, m);
    n->delay = MFS_RESTART_FIRST;
    mfs_migrate_joined(cm, n, m);
    mfs_replicas_joined(cm, n, m);
    if (m->nassigned < due)
        mfs_event_add(cm->paths->events, n->record->name, "partitions-lost",
                      "runs %u of its %u partitions", m->nassigned, due);
    if (cm->state.table && m->epoch < cm->state.table->epoch)
        mfs_deploy_push(cm, n);
    if (n->record->mount[0] && !m->mount[0] && !mfs_nodes_goes(n))
        mfs_deploy_mount(cm, n);
    settle(cm);
}

/* One that hung up during the start is no reason to end it any more. */
static void is_back(struct mfs_node *n)
{
    if (n->cm->step == MFS_STEP_DONE)
        return;
    mfs_timer_cancel(n->restart);
    n->restart = NULL;
}

/* Where its partitions can be reached: what is given to it, or what it says when it joins for the
 * first time. One that holds partitions stays where the table says. */
static int take_address(struct mfs_cm *cm, struct mfs_node *n, const struct mfs_msg_join *m)
{
    struct mfs_cm_node *r = n->record;
    bool moved = m->address[0] && strcmp(r->address, m->address) != 0;

    if (moved && r->address[0] && cm->state.table && mfs_cm_state_count(&cm->state, r->id))
        return -EADDRNOTAVAIL;
    if (!moved && m->control == r->control && m->metrics == r->metrics)
        return 0;
    if (moved)
        mfs_text_copy(r->address, sizeof r->address, m->address);
    r->control = m->control;
    r->metrics = m->metrics;
    if (cm->step == MFS_STEP_JOIN)
        return 0; /* of all nodes at once, when the table is saved */
    return mfs_cm_state_save(&cm->state, cm->paths->state);
}

static void on_join(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_join *m = body;
    struct mfs_cm *cm = arg;
    struct mfs_node *n = mfs_nodes_find(cm, m->node);
    char why[128];
    int rc;

    if (!n && !strcmp(m->name, cm->state.name) && m->node < cm->state.next_node) {
        mfs_conn_fail(c, id, -EIDRM, "node-%u has left deployment %s", m->node, cm->state.name);
        return;
    }
    if (strcmp(mfs_conn_role(c), "lm") || strcmp(m->name, cm->state.name) || !n) {
        mfs_conn_fail(c, id, -EPERM, "deployment %s has no such node", cm->state.name);
        return;
    }
    if (m->version != MFS_PROTOCOL_VERSION) {
        mfs_conn_fail(c, id, -EPROTO, "protocol version %u is needed, lm speaks %u",
                      MFS_PROTOCOL_VERSION, m->version);
        return;
    }
    rc = take_address(cm, n, m);
    if (rc) {
        mfs_conn_fail(c, id, rc, "%s is known at %s, lm says %s: %s", n->record->name,
                      n->record->address, m->address, strerror(-rc));
        return;
    }
    if (m->term > cm->state.term) {
        mfs_conn_fail(c, id, -ESTALE, "this cm is of an earlier term");
        snprintf(why, sizeof why, "%s knows of a cm of term %llu", n->record->name,
                 (unsigned long long)m->term);
        mfs_superseded(cm, why);
        return;
    }
    if (mfs_conn_data(c) && mfs_conn_data(c) != n) {
        mfs_conn_fail(c, id, -EPROTO, "this connection is that of another node");
        return;
    }
    if (n->conn && n->conn != c)
        mfs_conn_close(n->conn); /* it has noticed sooner than we that the old one is dead */
    n->conn = c;
    n->record->leave_by = 0; /* if it still holds, it says so */
    mfs_conn_set_data(c, n);
    n->sent = m->epoch;
    mfs_copies_joined(n, m);
    mfs_quorum_joined(n, m);
    is_back(n);
    mfs_provision_joined(n);
    mfs_event_add(cm->paths->events, n->record->name, "joined", "process %u at %s, %u partitions",
                  m->pid, m->address, m->nassigned);
    mfs_conn_reply(c, MFS_MSG_JOIN, id, NULL);
    if (mfs_cm_in_phase(cm, MFS_PHASE_STOPPING)) {
        mfs_shutdown_joined(n);
        return;
    }
    if (cm->step == MFS_STEP_JOIN)
        mfs_deploy_joined(cm);
    else if (!strcmp(n->record->transition, MFS_NODE_COMING))
        mfs_scale_joined(cm, n, m);
    else if (cm->step == MFS_STEP_DONE)
        take_up(cm, n, m);
    else
        mfs_deploy_fail(cm, n, -ECONNRESET, "its lm connected anew during the start");
}

static void on_report(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_report *m = body;
    struct mfs_node *n = mfs_conn_data(c);

    if (!n) {
        mfs_conn_fail(c, id, -EPERM, "join first");
        return;
    }
    mfs_nodes_reported(n, m);
    mfs_bandwidth_estimates_reported(arg, n, m);
    mfs_migrate_reported(arg, n, m);
    mfs_replicas_reported(arg, n, m);
    mfs_conn_reply(c, MFS_MSG_REPORT, id, NULL);
}

static void on_died(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    if (!mfs_conn_data(c)) {
        mfs_conn_fail(c, id, -EPERM, "join first");
        return;
    }
    mfs_conn_reply(c, MFS_MSG_DIED, id, NULL);
    mfs_replicas_died(arg, body);
}

static void on_event(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_event *m = body;
    struct mfs_node *n = mfs_conn_data(c);
    struct mfs_cm *cm = arg;

    if (!n) {
        mfs_conn_fail(c, id, -EPERM, "join first");
        return;
    }
    mfs_event_add(cm->paths->events, n->record->name, m->what, "%s", m->text);
    mfs_conn_reply(c, MFS_MSG_EVENT, id, NULL);
}

/* ---- operators ------------------------------------------------------------------------------- */

static void on_status(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    struct mfs_status s;

    (void)body;
    if (mfs_status_make(arg, &s)) {
        mfs_conn_fail(c, id, -ENOMEM, "out of memory");
        return;
    }
    mfs_conn_reply(c, MFS_MSG_STATUS, id, &s);
    mfs_schema_clear(&mfs_status_schema, &s);
}

static void on_events(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    struct mfs_event list[MFS_EVENTS_RECENT];
    struct mfs_events m = {.event = list};

    (void)body;
    (void)arg;
    m.n = mfs_event_recent(list);
    mfs_conn_reply(c, MFS_MSG_EVENTS, id, &m);
}

static void on_stop(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_stop *m = body;
    struct mfs_cm *cm = arg;

    if (strcmp(mfs_conn_role(c), "cli")) {
        mfs_conn_fail(c, id, -EPERM, "only an operator may stop the deployment");
        return;
    }
    cm->clears |= m->clear;
    mfs_shutdown_begin(arg);
    mfs_shutdown_wait(arg, c, id);
}

static void on_mount(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    struct mfs_cm *cm = arg;

    (void)body;
    if (strcmp(mfs_conn_role(c), "cli"))
        mfs_conn_fail(c, id, -EPERM, "only an operator may have it mounted");
    else if (cm->step != MFS_STEP_DONE || !mfs_cm_in_phase(cm, MFS_PHASE_RUNNING))
        mfs_conn_fail(c, id, -EAGAIN, "the deployment is %s", cm->state.phase);
    else
        mfs_remount(cm, c, id);
}

/* ---- ends ------------------------------------------------------------------------------------ */

bool mfs_service_lm_lost(struct mfs_node *n, int code, const char *why)
{
    if (mfs_scale_gone(n->cm, n, code, why))
        return true;
    if (n->cm->step == MFS_STEP_DONE)
        return false;
    mfs_deploy_fail(n->cm, n, code, "%s", why);
    return true;
}

static void hung_up(void *arg)
{
    struct mfs_node *n = arg;

    n->restart = NULL;
    mfs_deploy_fail(n->cm, n, -ECONNRESET, "its lm hung up");
}

static void down(struct mfs_conn *c, const struct mfs_err *why, void *arg)
{
    struct mfs_node *n = mfs_conn_data(c);
    struct mfs_cm *cm = arg;

    mfs_subscribers_hung_up(cm, c);
    mfs_checkpoint_hung_up(cm, c);
    if (!n || n->conn != c)
        return;
    n->conn = NULL;
    mfs_mounts_forget(n);
    if (mfs_cm_in_phase(cm, MFS_PHASE_STOPPING))
        return;
    if (mfs_nodes_goes(n))
        return;
    mfs_event_add(cm->paths->events, n->record->name, "disconnected", "%s", why->msg);
    /* During the start that is the end of it; how its process ended tells more, if it did. */
    if (cm->step != MFS_STEP_DONE && !n->restart)
        n->restart = mfs_loop_timer(cm->loop, MFS_SEC, 0, hung_up, n);
    else if (cm->step == MFS_STEP_DONE)
        mfs_provision_hung_up(n);
}

static void on_mark(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_mark *m = body;
    struct mfs_cm *cm = arg;
    struct mfs_err err;

    if (strcmp(mfs_conn_role(c), "cli") != 0) {
        mfs_conn_fail(c, id, -EPERM, "only an operator may mark a stage");
    } else if (mfs_mark_check(m->text, &err)) {
        mfs_conn_fail(c, id, err.code, "%s", err.msg);
    } else {
        mfs_event_add(cm->paths->events, "cm", MFS_MARK_EVENT, "%s", m->text);
        mfs_conn_reply(c, MFS_MSG_MARK, id, NULL);
    }
}

static const struct mfs_handler handlers[] = {{MFS_MSG_JOIN, on_join},
                                              {MFS_MSG_REPORT, on_report},
                                              {MFS_MSG_EVENT, on_event},
                                              {MFS_MSG_DIED, on_died},
                                              {MFS_MSG_BEAT, mfs_trust_on_beat},
                                              {MFS_MSG_CLIENT_HELLO, mfs_subscribers_on_hello},
                                              {MFS_MSG_CLIENT_READY, mfs_subscribers_on_ready},
                                              {MFS_MSG_STATUS, on_status},
                                              {MFS_MSG_CLIENTS, mfs_mounts_on_clients},
                                              {MFS_MSG_EVENTS, on_events},
                                              {MFS_MSG_HISTORY, mfs_history_on_ask},
                                              {MFS_MSG_MARK, on_mark},
                                              {MFS_MSG_MOUNT, on_mount},
                                              {MFS_MSG_STOP, on_stop},
                                              {MFS_MSG_POLICY, mfs_autoscale_on_policy},
                                              {MFS_MSG_SCALE, mfs_scale_on_scale},
                                              {MFS_MSG_PROGRESS, mfs_scale_on_progress},
                                              {MFS_MSG_CHECKPOINT, mfs_checkpoint_on_ask},
                                              {MFS_MSG_CHECKPOINTED, mfs_checkpoint_on_committed},
                                              {MFS_MSG_LEAVE, mfs_departures_on_leave},
                                              {MFS_MSG_HANDOVER, mfs_handover_on_ask},
                                              {MFS_MSG_ADOPT, mfs_handover_on_leave},
                                              {0, NULL}};

const struct mfs_service mfs_cm_service = {handlers, NULL, down};
