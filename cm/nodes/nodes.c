/* The nodes: what their Local Managers tell, and what happens when one comes or goes. */
#include "cm/nodes/control.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cm/change/autoscale.h"
#include "cm/change/bandwidth.h"
#include "cm/change/checkpoint.h"
#include "cm/state/events.h"
#include "cm/partitions/migrate.h"
#include "cm/partitions/replicas.h"
#include "cm/change/scale.h"
#include "cm/nodes/trust.h"

#define DELAY_FIRST MFS_SEC
#define LACKING     3 /* reports: the first may be of before it took a partition over */

struct mfs_cm_live *mfs_nodes_find(const struct mfs_cm *cm, uint32_t id)
{
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (cm->live[i]->node->id == id)
            return cm->live[i];
    return NULL;
}

/* The array of the state may have moved. */
static void point(struct mfs_cm *cm)
{
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        cm->live[i]->node = &cm->state.node[i];
}

static struct mfs_cm_live *make(struct mfs_cm *cm)
{
    struct mfs_cm_live *l = calloc(1, sizeof *l);

    if (l) {
        l->cm = cm;
        l->delay = DELAY_FIRST;
        l->heard = l->lost_at = mfs_clock_mono(); /* what a cm before us has said may hold */
    }
    return l;
}

int mfs_nodes_init(struct mfs_cm *cm)
{
    cm->live = calloc(cm->state.nnodes, sizeof *cm->live);
    cm->part_bytes = calloc(cm->state.nparts, sizeof *cm->part_bytes);
    if (!cm->live || !cm->part_bytes)
        return -ENOMEM;
    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        cm->live[i] = make(cm);
        if (!cm->live[i])
            return -ENOMEM;
    }
    point(cm);
    return 0;
}

struct mfs_cm_live *mfs_nodes_add(struct mfs_cm *cm, const struct mfs_cm_node *n)
{
    struct mfs_cm_live **more = reallocarray(cm->live, cm->state.nnodes + 1, sizeof *more);
    struct mfs_cm_live *l = make(cm);

    if (more)
        cm->live = more;
    if (!more || !l || mfs_cm_state_add(&cm->state, n)) {
        free(l);
        return NULL;
    }
    cm->live[cm->state.nnodes - 1] = l;
    point(cm);
    return l;
}

void mfs_nodes_remove(struct mfs_cm *cm, struct mfs_cm_live *l)
{
    struct mfs_conn *c = l->conn;
    uint32_t at = 0;

    mfs_bandwidth_forget(cm, l);
    mfs_timer_cancel(l->restart);
    mfs_watch_remove(l->watch);
    l->restart = NULL;
    l->watch = NULL;
    l->conn = NULL;
    if (c) {
        mfs_conn_set_data(c, NULL);
        mfs_conn_close(c);
    }
    while (cm->live[at] != l)
        at++;
    l->left = *l->node;
    l->node = &l->left;
    l->next_left = cm->left;
    cm->left = l;
    memmove(&cm->live[at], &cm->live[at + 1], (cm->state.nnodes - at - 1) * sizeof *cm->live);
    mfs_cm_state_drop(&cm->state, cm->state.node[at].id);
    point(cm);
}

void mfs_nodes_fini(struct mfs_cm *cm)
{
    while (cm->subscribers) {
        struct mfs_cm_subscriber *s = cm->subscribers;

        cm->subscribers = s->next;
        free(s);
    }
    for (uint32_t i = 0; cm->live && i < cm->state.nnodes; i++)
        free(cm->live[i]);
    free(cm->live);
    cm->live = NULL;
    free(cm->part_bytes);
    cm->part_bytes = NULL;
    while (cm->left) {
        struct mfs_cm_live *l = cm->left;

        cm->left = l->next_left;
        free(l);
    }
}

/* ---- what they tell -------------------------------------------------------------------------- */

static void settle(struct mfs_cm *cm)
{
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (!cm->live[i]->conn && !cm->live[i]->node->turn[0])
            return;
    if (!cm->settled)
        mfs_event_add(cm->paths->events, "cm", "adopted", "%s, epoch %llu, %lld ms",
                      MFS_TEXT_COUNT(cm->state.nnodes, "node"),
                      (unsigned long long)(cm->state.table ? cm->state.table->epoch : 0),
                      (long long)((mfs_clock_mono() - cm->began) / MFS_MSEC));
    cm->settled = true;
}

bool mfs_nodes_lacks(const struct mfs_cm_live *l)
{
    return l->lacking >= LACKING;
}

/* A node of a running deployment is (again) there. */
static void take_up(struct mfs_cm *cm, struct mfs_cm_live *l, const struct mfs_msg_join *m)
{
    uint32_t due = mfs_cm_state_count(&cm->state, l->node->id);

    l->lacking = m->nassigned < due ? LACKING : 0;
    l->lack_epoch = cm->state.table ? cm->state.table->epoch : 0;
    l->delay = DELAY_FIRST;
    l->parts_seen = m->nassigned;
    mfs_migrate_joined(cm, l, m);
    mfs_replicas_joined(cm, l, m);
    mfs_text_copy(l->mount, sizeof l->mount, m->mount);
    if (m->nassigned < due)
        mfs_event_add(cm->paths->events, l->node->name, "partitions-lost",
                      "runs %u of its %u partitions", m->nassigned, due);
    if (cm->state.table && m->epoch < cm->state.table->epoch)
        mfs_deploy_push(cm, l);
    if (l->node->mount[0] && !m->mount[0] && !mfs_scale_goes(l))
        mfs_deploy_mount(cm, l);
    settle(cm);
}

/* One that hung up during the start is no reason to end it any more. */
static void is_back(struct mfs_cm_live *l)
{
    if (l->cm->step == MFS_STEP_DONE)
        return;
    mfs_timer_cancel(l->restart);
    l->restart = NULL;
}

static void on_join(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_join *m = body;
    struct mfs_cm *cm = arg;
    struct mfs_cm_live *l = mfs_nodes_find(cm, m->node);

    if (strcmp(mfs_conn_role(c), "lm") || strcmp(m->name, cm->state.name) || !l) {
        mfs_conn_fail(c, id, -EPERM, "deployment %s has no such node", cm->state.name);
        return;
    }
    if (m->version != MFS_PROTOCOL_VERSION) {
        mfs_conn_fail(c, id, -EPROTO, "protocol version %u is needed, lm speaks %u",
                      MFS_PROTOCOL_VERSION, m->version);
        return;
    }
    if (mfs_conn_data(c) && mfs_conn_data(c) != l) {
        mfs_conn_fail(c, id, -EPROTO, "this connection is that of another node");
        return;
    }
    if (l->conn && l->conn != c)
        mfs_conn_close(l->conn); /* it has noticed sooner than we that the old one is dead */
    l->conn = c;
    mfs_conn_set_data(c, l);
    is_back(l);
    mfs_event_add(cm->paths->events, l->node->name, "joined", "process %u at %s, %u partitions",
                  m->pid, m->address, m->nassigned);
    mfs_conn_reply(c, MFS_MSG_JOIN, id, NULL);
    if (mfs_cm_in_phase(cm, MFS_PHASE_STOPPING))
        return;
    if (cm->step == MFS_STEP_JOIN)
        mfs_deploy_joined(cm);
    else if (!strcmp(l->node->turn, MFS_NODE_COMING))
        mfs_scale_joined(cm, l, m);
    else if (cm->step == MFS_STEP_DONE)
        take_up(cm, l, m);
    else
        mfs_deploy_fail(cm, l, -ECONNRESET, "its lm connected anew during the start");
}

/* The node's own mount is what is shown; clients that users have mounted count only without it. */
static void take_mount(struct mfs_cm_live *l, const struct mfs_msg_report *m)
{
    const char *found = "";

    for (uint32_t i = 0; i < m->nclients; i++) {
        if (!m->client[i].ready)
            continue;
        if (!*found || !strcmp(m->client[i].mount, l->node->mount))
            found = m->client[i].mount;
    }
    mfs_text_copy(l->mount, sizeof l->mount, found);
}

/* One that has not said hello yet has none. */
static uint32_t clients_behind(const struct mfs_msg_report *m)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->nclients; i++)
        n += m->client[i].ready && m->client[i].epoch < m->epoch;
    return n;
}

static void take_figures(struct mfs_cm *cm, struct mfs_cm_live *l, const struct mfs_msg_report *m)
{
    uint32_t due = mfs_cm_state_count(&cm->state, l->node->id);

    l->reported = true;
    l->parts_seen = m->nparts;
    l->behind = clients_behind(m);
    if (m->nparts >= due || !cm->state.table || m->epoch != cm->state.table->epoch)
        l->lacking = 0;
    else
        l->lacking = l->lack_epoch == m->epoch ? l->lacking + 1 : 1;
    l->lack_epoch = m->epoch;
    for (uint32_t i = 0; i < m->nparts; i++)
        if (m->part[i].index < cm->state.nparts &&
            cm->state.part[m->part[i].index].node == l->node->id)
            cm->part_bytes[m->part[i].index] = m->part[i].memory_used;
}

/* Of two reports in a row the less, as one alone may be of a burst. */
static void take_seen(struct mfs_cm_live *l, const struct mfs_msg_report *m)
{
    double is = fmax(m->bandwidth_in, m->bandwidth_out),
           was = fmax(l->last.bandwidth_in, l->last.bandwidth_out);

    l->node->bandwidth_seen = fmax(l->node->bandwidth_seen, fmin(is, was));
}

static void on_report(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_report *m = body;
    struct mfs_cm_live *l = mfs_conn_data(c);

    if (!l) {
        mfs_conn_fail(c, id, -EPERM, "join first");
        return;
    }
    take_seen(l, m);
    l->last = *m;
    l->last.part = NULL;
    l->last.client = NULL;
    l->last.nparts = l->last.nclients = 0;
    l->last.copy = NULL;
    l->last.ncopies = 0;
    l->last.peer = NULL;
    l->last.npeers = 0;
    take_figures(arg, l, m);
    mfs_bandwidth_reported(arg, l, m);
    take_mount(l, m);
    mfs_migrate_reported(arg, l, m);
    mfs_replicas_reported(arg, l, m);
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
    struct mfs_cm_live *l = mfs_conn_data(c);
    struct mfs_cm *cm = arg;

    if (!l) {
        mfs_conn_fail(c, id, -EPERM, "join first");
        return;
    }
    mfs_event_add(cm->paths->events, l->node->name, m->what, "%s", m->text);
    mfs_conn_reply(c, MFS_MSG_EVENT, id, NULL);
}

/* ---- clients and operators ------------------------------------------------------------------- */

static void subscriber_has(void *arg, const struct mfs_err *err, const void *reply)
{
    (void)arg;
    (void)reply;
    if (err)
        mfs_warn("nodes", "a client did not take the table: %s", err->msg);
}

static bool is_subscriber(const struct mfs_cm *cm, const struct mfs_conn *c)
{
    for (const struct mfs_cm_subscriber *s = cm->subscribers; s; s = s->next)
        if (s->conn == c)
            return true;
    return false;
}

static void on_client_hello(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_client_hello *m = body;
    struct mfs_cm *cm = arg;
    struct mfs_msg_table t = {cm->state.table};
    struct mfs_cm_subscriber *s;

    if (m->version != MFS_PROTOCOL_VERSION || !t.table) {
        mfs_conn_fail(c, id, t.table ? -EPROTO : -EAGAIN, "%s",
                      t.table ? "another protocol version" : "the deployment is being started");
        return;
    }
    if (is_subscriber(cm, c)) {
        mfs_conn_fail(c, id, -EPROTO, "a connection says hello once");
        return;
    }
    s = calloc(1, sizeof *s);
    if (!s) {
        mfs_conn_fail(c, id, -ENOMEM, "out of memory");
        return;
    }
    s->conn = c;
    s->next = cm->subscribers;
    cm->subscribers = s;
    mfs_conn_reply(c, MFS_MSG_CLIENT_HELLO, id, NULL);
    if (m->epoch < t.table->epoch)
        mfs_conn_request(c, MFS_MSG_TABLE, &t, 10 * MFS_SEC, subscriber_has, NULL);
}

static void on_client_ready(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    (void)body;
    (void)arg;
    mfs_info("nodes", "%s: a client is mounted", mfs_conn_peer(c));
    mfs_conn_reply(c, MFS_MSG_CLIENT_READY, id, NULL);
}

static void on_status(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    struct mfs_status s;

    (void)body;
    if (mfs_status_make(arg, &s)) {
        mfs_conn_fail(c, id, -ENOMEM, "out of memory");
        return;
    }
    mfs_conn_reply(c, MFS_MSG_STATUS, id, &s);
    mfs_record_clear(&mfs_status_record, &s);
}

static void on_stop(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    (void)body;
    if (strcmp(mfs_conn_role(c), "cli")) {
        mfs_conn_fail(c, id, -EPERM, "only an operator may stop the deployment");
        return;
    }
    mfs_shutdown_wait(arg, c, id);
    mfs_shutdown_begin(arg);
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

/* ---- connections ----------------------------------------------------------------------------- */

static void drop_subscriber(struct mfs_cm *cm, const struct mfs_conn *c)
{
    struct mfs_cm_subscriber **at = &cm->subscribers, *s;

    while (*at && (*at)->conn != c)
        at = &(*at)->next;
    s = *at;
    if (!s)
        return;
    *at = s->next;
    cm->subscriber_left = mfs_clock_mono();
    free(s);
}

static void hung_up(void *arg)
{
    struct mfs_cm_live *l = arg;

    l->restart = NULL;
    mfs_deploy_fail(l->cm, l, -ECONNRESET, "its lm hung up");
}

static void down(struct mfs_conn *c, const struct mfs_err *why, void *arg)
{
    struct mfs_cm_live *l = mfs_conn_data(c);
    struct mfs_cm *cm = arg;

    drop_subscriber(cm, c);
    mfs_checkpoint_hung_up(cm, c);
    if (!l || l->conn != c)
        return;
    l->conn = NULL;
    if (mfs_cm_in_phase(cm, MFS_PHASE_STOPPING))
        return;
    if (mfs_scale_goes(l))
        return;
    mfs_event_add(cm->paths->events, l->node->name, "disconnected", "%s", why->msg);
    /* During the start that is the end of it; how its process ended tells more, if it did. */
    if (cm->step != MFS_STEP_DONE && !l->restart)
        l->restart = mfs_loop_timer(cm->loop, MFS_SEC, 0, hung_up, l);
    else if (cm->step == MFS_STEP_DONE)
        mfs_nodes_hung_up(l);
}

static const struct mfs_handler handlers[] = {{MFS_MSG_JOIN, on_join},
                                              {MFS_MSG_REPORT, on_report},
                                              {MFS_MSG_EVENT, on_event},
                                              {MFS_MSG_DIED, on_died},
                                              {MFS_MSG_BEAT, mfs_trust_on_beat},
                                              {MFS_MSG_CLIENT_HELLO, on_client_hello},
                                              {MFS_MSG_CLIENT_READY, on_client_ready},
                                              {MFS_MSG_STATUS, on_status},
                                              {MFS_MSG_MOUNT, on_mount},
                                              {MFS_MSG_STOP, on_stop},
                                              {MFS_MSG_POLICY, mfs_autoscale_on_policy},
                                              {MFS_MSG_SCALE, mfs_scale_on_scale},
                                              {MFS_MSG_PROGRESS, mfs_scale_on_progress},
                                              {MFS_MSG_CHECKPOINT, mfs_checkpoint_on_ask},
                                              {MFS_MSG_CHECKPOINTED, mfs_checkpoint_on_committed},
                                              {0, NULL}};

const struct mfs_service mfs_cm_service = {handlers, NULL, down};
