/* The agent towards cm: joining, requests of cm, reports and events.
 *
 * A connection counts once cm has accepted the JOIN (a->link.joined); until then nothing is
 * reported. Each request of cm may come again, also after a reconnection: its handler answers what
 * is done already. Events and deaths that cm can't be told now are kept and sent after the next
 * join. */
#include "lm/agent/partitions/incoming.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "lm/redis/health.h"
#include "net/loop.h"

#define AREA         "cm"
#define JOIN_LIMIT   (10 * MFS_SEC)
#define REJOIN_PAUSE (2 * MFS_SEC)

/* NULL while cm is not connected, and before the uplink is there at all. */
static struct mfs_conn *cm_conn(const struct mfs_agent *a)
{
    return a->link.uplink ? mfs_uplink_conn(a->link.uplink) : NULL;
}

/* ---- join ------------------------------------------------------------------------------------ */

static void join(struct mfs_agent *a);

static void join_again(void *arg)
{
    struct mfs_agent *a = arg;

    a->link.rejoin = NULL;
    join(a);
}

/* One that has died since the join was sent cm takes for alive, and its replica would never take
 * over. Of the others it hears twice. */
static void report_left_to_replicas(struct mfs_agent *a)
{
    for (const struct mfs_agent_part *p = a->parts; p; p = p->next)
        if (p->lost && p->termed)
            mfs_agent_report_died(a, &p->redis);
}

/* Whatever has started us need wait no longer. */
static void settle(struct mfs_agent *a)
{
    if (a->opts.joined)
        a->opts.joined(a->arg);
    a->opts.joined = NULL;
}

static void join_done(void *arg, const struct mfs_err *err, const void *reply)
{
    struct mfs_agent *a = arg;

    (void)reply;
    if (!err) {
        a->link.joined = true;
        mfs_agent_has_joined(a);
        settle(a);
        mfs_info(AREA, "joined deployment \"%s\" as node %u", a->opts.name, a->opts.node);
        mfs_agent_send_events(a);
        report_left_to_replicas(a);
        mfs_agent_tell_leave(a);
        return;
    }
    if (err->code == -ECONNABORTED || a->phase != MFS_AGENT_RUNNING)
        return; /* the uplink connects again, and joins then */
    mfs_error(AREA, "joining failed: %s", err->msg);
    if (err->code == -EIDRM) { /* all that is here has other places by now */
        mfs_agent_stop(a, NULL, 0);
        return;
    }
    if (err->code != -ETIMEDOUT && !a->parts && !a->copies) {
        mfs_agent_fail(a, err);
        return;
    }
    /* Refused with data on board: cm may know better later, the data would be gone for good. */
    if (!a->link.rejoin)
        a->link.rejoin = mfs_loop_timer(a->loop, REJOIN_PAUSE, 0, join_again, a);
}

static uint32_t put_running(const struct mfs_agent *a, struct mfs_assigned_part *out)
{
    uint32_t n = 0;

    for (const struct mfs_agent_part *p = a->parts; p; p = p->next) {
        if (p->lost)
            continue;
        if (out) {
            out[n].index = p->redis.part;
            out[n].port = p->redis.port;
            mfs_text_copy(out[n].unix_path, sizeof out[n].unix_path, p->redis.unix_path);
        }
        n++;
    }
    return n;
}

static void join(struct mfs_agent *a)
{
    struct mfs_conn *conn = cm_conn(a);
    struct mfs_msg_join m = {
        .version = MFS_PROTOCOL_VERSION,
        .node = a->opts.node,
        .pid = (uint32_t)getpid(),
        .epoch = a->table ? a->table->epoch : 0,
        .memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE),
        .nassigned = put_running(a, NULL),
        .ncopies = mfs_agent_copies_list(a, NULL),
    };
    int rc;

    if (!conn)
        return;
    if (mfs_agent_vote_left(a)) {
        if (!a->link.rejoin)
            a->link.rejoin = mfs_loop_timer(a->loop, mfs_agent_vote_left(a), 0, join_again, a);
        return;
    }
    m.control = a->succession.port;
    m.metrics = mfs_agent_serve_port(a);
    m.term = a->succession.term;
    m.vote_term = a->succession.vote_term;
    m.copy_term = a->succession.copy_term;
    m.copy_revision = a->succession.copy_revision;
    mfs_text_copy(m.name, sizeof m.name, a->opts.name);
    mfs_text_copy(m.address, sizeof m.address, a->opts.address);
    if (mfs_mounter_up(a->mounter))
        mfs_text_copy(m.mount, sizeof m.mount, mfs_mounter_path(a->mounter));
    m.assigned = calloc(m.nassigned + 1, sizeof *m.assigned);
    m.copy = calloc(m.ncopies + 1, sizeof *m.copy);
    rc = m.assigned && m.copy ? 0 : -ENOMEM;
    if (!rc) {
        put_running(a, m.assigned);
        mfs_agent_copies_list(a, m.copy);
        rc = mfs_conn_request(conn, MFS_MSG_JOIN, &m, JOIN_LIMIT, join_done, a);
    }
    free(m.assigned);
    free(m.copy);
    if (rc) {
        mfs_error(AREA, "can't join: %s", strerror(-rc));
        if (!a->link.rejoin)
            a->link.rejoin = mfs_loop_timer(a->loop, REJOIN_PAUSE, 0, join_again, a);
    }
}

/* What could not be reached at the beginning is most likely never: whatever started us should know.
 */
static void never_joined(void *arg)
{
    struct mfs_agent *a = arg;
    struct mfs_err err = {0};

    if (a->link.joined || a->table || a->parts || a->copies || a->phase != MFS_AGENT_RUNNING) {
        settle(a);
        return;
    }
    mfs_err_set(&err, -EHOSTUNREACH,
                "cm at %s has not answered in %lld s: can this machine (%s) reach it?", a->opts.cm,
                (long long)(a->opts.first_contact / MFS_SEC), a->opts.address);
    mfs_agent_fail(a, &err);
}

int mfs_agent_expect_cm(struct mfs_agent *a)
{
    if (!a->opts.first_contact)
        return 0;
    return mfs_loop_timer(a->loop, a->opts.first_contact, 0, never_joined, a) ? 0 : -ENOMEM;
}

static void cm_up(struct mfs_conn *conn, void *arg)
{
    (void)conn;
    join(arg);
}

static void cm_down(struct mfs_conn *conn, const struct mfs_err *why, void *arg)
{
    struct mfs_agent *a = arg;

    (void)conn;
    mfs_warn(AREA, "cm is gone (%s); going on without it", why->msg);
    a->link.joined = false;
    mfs_agent_images_drop(a); /* no checkpoint would come of them */
    mfs_timer_cancel(a->link.rejoin);
    a->link.rejoin = NULL;
}

/* ---- what cm asks ---------------------------------------------------------------------------- */

static void handle_assign(struct mfs_conn *conn, uint64_t id, const void *body, void *arg)
{
    mfs_agent_assign(arg, body, conn, id);
}

/* An answer that comes later. */
struct later {
    struct mfs_agent *agent;
    struct mfs_deferred from;
    enum mfs_msg type;
    uint64_t epoch;
};

static struct later *answer_later(struct mfs_agent *a, struct mfs_conn *conn, uint64_t id,
                                  enum mfs_msg type)
{
    struct later *l = calloc(1, sizeof *l);

    if (!l) {
        mfs_conn_fail(conn, id, -ENOMEM, "out of memory");
        return NULL;
    }
    *l = (struct later){.agent = a, .from = mfs_reply_later(conn, id), .type = type};
    return l;
}

static void answer(void *arg, const struct mfs_err *err)
{
    struct later *l = arg;
    struct mfs_msg_epoch epoch = {.epoch = l->epoch};

    if (err)
        mfs_deferred_fail(&l->from, err->code, "node %u: %s", l->agent->opts.node, err->msg);
    else
        mfs_deferred_reply(&l->from, l->type, l->type == MFS_MSG_TABLE ? &epoch : NULL);
    free(l);
}

/* All clients have the table, or some don't: the operator should know which. */
static void table_pushed(void *arg, const struct mfs_err *err)
{
    struct later *l = arg;

    if (err)
        mfs_agent_event(l->agent, "client-behind", "%s", err->msg);
    answer(l, err);
}

static int check_table(const struct mfs_agent *a, const struct mfs_table *t, struct mfs_err *err)
{
    if (strcmp(t->name, a->opts.name) || (a->nparts && t->nparts != a->nparts))
        return mfs_err_set(err, -EINVAL, "a table of another deployment");
    return 0;
}

static void take_table(struct mfs_agent *a, struct mfs_table *t, struct later *l)
{
    struct mfs_table *old = a->table;
    struct mfs_err err = {0};
    int rc;

    a->table = t;
    l->epoch = t->epoch;
    mfs_metric_add(a->figures, MFS_AGENT_TABLES, 0, 1);
    mfs_agent_heartbeat_follow(a);
    mfs_agent_health_follow(a);
    mfs_agent_traffic_table(a);
    rc = mfs_clients_push(a->clients, t, old, table_pushed, l);
    free(old);
    mfs_info(AREA, "table %llu", (unsigned long long)t->epoch);
    mfs_agent_save(a);
    if (rc) {
        mfs_err_set(&err, rc, "%s", strerror(-rc));
        answer(l, &err);
    }
}

static void handle_table(struct mfs_conn *conn, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_table *m = body;
    struct mfs_agent *a = arg;
    struct mfs_err err = {0};
    struct mfs_table *t;
    struct later *l;
    int rc = mfs_table_of_message(m, a->table, &t, &err);

    if (!rc && t)
        rc = check_table(a, t, &err);
    if (rc) {
        mfs_agent_refuse(a, conn, id, rc, err.msg);
        free(t);
        return;
    }
    if (!t) {
        mfs_conn_reply(conn, MFS_MSG_TABLE, id, &(struct mfs_msg_epoch){a->table->epoch});
        return;
    }
    l = answer_later(a, conn, id, MFS_MSG_TABLE);
    if (l)
        take_table(a, t, l);
    else
        free(t);
}

static void handle_mount(struct mfs_conn *conn, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_mount *m = body;
    struct mfs_agent *a = arg;
    struct later *l;

    if (a->phase != MFS_AGENT_RUNNING || !a->table) {
        mfs_agent_refuse(a, conn, id, a->table ? -ESHUTDOWN : -EAGAIN,
                         a->table ? "it is stopping" : "there is no partition table yet");
        return;
    }
    l = answer_later(a, conn, id, MFS_MSG_MOUNT);
    if (l)
        mfs_mounter_start(a->mounter, m->path, m->options, answer, l);
}

static void handle_umount(struct mfs_conn *conn, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_mount *m = body;
    struct mfs_agent *a = arg;
    const char *path = mfs_mounter_path(a->mounter);
    struct later *l;

    if (m->path[0] && path[0] && strcmp(m->path, path)) {
        mfs_conn_fail(conn, id, -EINVAL, "node %u: %s is mounted here, not %s", a->opts.node, path,
                      m->path);
        return;
    }
    l = answer_later(a, conn, id, MFS_MSG_UMOUNT);
    if (l)
        mfs_mounter_stop(a->mounter, answer, l);
}

static void handle_end_clients(struct mfs_conn *conn, uint64_t id, const void *body, void *arg)
{
    (void)body;
    mfs_agent_end_clients(arg, conn, id);
}

static void handle_stop(struct mfs_conn *conn, uint64_t id, const void *body, void *arg)
{
    (void)body;
    mfs_agent_stop(arg, conn, id);
}

static void handle_receive(struct mfs_conn *conn, uint64_t id, const void *body, void *arg)
{
    mfs_agent_receive(arg, body, conn, id);
}

static void handle_take(struct mfs_conn *conn, uint64_t id, const void *body, void *arg)
{
    mfs_agent_take(arg, body, conn, id);
}

static void handle_fence(struct mfs_conn *conn, uint64_t id, const void *body, void *arg)
{
    mfs_agent_fence(arg, body, conn, id);
}

static void handle_release(struct mfs_conn *conn, uint64_t id, const void *body, void *arg)
{
    mfs_agent_release(arg, body, conn, id);
}

static void handle_image(struct mfs_conn *conn, uint64_t id, const void *body, void *arg)
{
    mfs_agent_image(arg, body, conn, id);
}

static void handle_term(struct mfs_conn *conn, uint64_t id, const void *body, void *arg)
{
    mfs_agent_term(arg, body, conn, id);
}

static void handle_probe(struct mfs_conn *conn, uint64_t id, const void *body, void *arg)
{
    mfs_agent_probe(arg, body, conn, id);
}

static void handle_state(struct mfs_conn *conn, uint64_t id, const void *body, void *arg)
{
    struct mfs_err err;
    int rc = mfs_agent_take_copy(arg, body, &err);

    if (rc)
        mfs_conn_fail(conn, id, rc, "%s", err.msg);
    else
        mfs_conn_reply(conn, MFS_MSG_STATE, id, NULL);
}

static void handle_follow(struct mfs_conn *conn, uint64_t id, const void *body, void *arg)
{
    mfs_agent_succeeded(arg, body);
    mfs_conn_reply(conn, MFS_MSG_FOLLOW, id, NULL);
}

static void handle_adopt(struct mfs_conn *conn, uint64_t id, const void *body, void *arg)
{
    (void)body;
    mfs_agent_adopt(arg, conn, id);
}

static void handle_mounts(struct mfs_conn *conn, uint64_t id, const void *body, void *arg)
{
    mfs_agent_mounts(arg, body, conn, id);
}

static const struct mfs_handler handlers[] = {
    {MFS_MSG_ASSIGN, handle_assign},   {MFS_MSG_TABLE, handle_table},
    {MFS_MSG_MOUNT, handle_mount},     {MFS_MSG_UMOUNT, handle_umount},
    {MFS_MSG_RECEIVE, handle_receive}, {MFS_MSG_TAKE, handle_take},
    {MFS_MSG_FENCE, handle_fence},     {MFS_MSG_RELEASE, handle_release},
    {MFS_MSG_IMAGE, handle_image},     {MFS_MSG_END_CLIENTS, handle_end_clients},
    {MFS_MSG_STOP, handle_stop},       {MFS_MSG_TERM, handle_term},
    {MFS_MSG_PROBE, handle_probe},     {MFS_MSG_STATE, handle_state},
    {MFS_MSG_FOLLOW, handle_follow},   {MFS_MSG_ADOPT, handle_adopt},
    {MFS_MSG_MOUNTS, handle_mounts},   {0, NULL},
};

const struct mfs_service mfs_agent_cm_service = {handlers, cm_up, cm_down};

/* ---- reports to cm --------------------------------------------------------------------------- */

static uint32_t put_parts(const struct mfs_agent *a, struct mfs_report_part *out)
{
    uint32_t n = 0;

    for (size_t i = 0; i < a->measured.sample.n; i++) {
        const struct mfs_instances_part *p = &a->measured.sample.part[i];
        const struct mfs_agent_part *own = mfs_agent_part_find(a, p->part);
        const struct mfs_health *health = own ? own->health : NULL;

        if (!p->incoming)
            out[n++] = (struct mfs_report_part){p->part,
                                                p->told ? p->used : 0,
                                                p->keys,
                                                p->silent || mfs_health_silent(health),
                                                mfs_health_starved(health),
                                                p->inodes,
                                                p->losses};
    }
    return n;
}

static uint32_t put_copies(const struct mfs_agent *a, struct mfs_report_copy *out)
{
    uint32_t n = mfs_agent_copies_list(a, out);

    for (uint32_t i = 0; i < n; i++)
        for (size_t k = 0; k < a->measured.sample.n; k++)
            out[i].silent |= a->measured.sample.part[k].incoming &&
                             a->measured.sample.part[k].silent &&
                             a->measured.sample.part[k].part == out[i].index;
    return n;
}

static uint32_t put_clients(const struct mfs_client *list, size_t n, struct mfs_report_client *out)
{
    for (size_t i = 0; i < n; i++) {
        out[i].pid = (uint32_t)list[i].proc.pid;
        out[i].ready = list[i].ready;
        out[i].epoch = list[i].epoch;
        mfs_text_copy(out[i].mount, sizeof out[i].mount, list[i].mount);
    }
    return (uint32_t)n;
}

void mfs_agent_report(struct mfs_agent *a)
{
    struct mfs_conn *conn = cm_conn(a);
    struct mfs_msg_report m = {.node = a->opts.node,
                               .epoch = a->table ? a->table->epoch : 0,
                               .memory_used = a->measured.sample.used,
                               .memory_capacity = a->measured.sample.capacity,
                               .rss = a->measured.sample.rss,
                               .image_bytes = mfs_agent_images_written(a)};
    struct mfs_client *clients;
    size_t n;

    if (!conn || !a->link.joined)
        return;
    m.bandwidth_in = a->measured.meter.in;
    m.bandwidth_out = a->measured.meter.out;
    m.bytes_in = a->measured.meter.last.in;
    m.bytes_out = a->measured.meter.last.out;
    m.commands = a->measured.sample.commands;
    m.out_of_memory = a->measured.sample.out_of_memory;
    m.deaths = mfs_metric_sum(a->figures, MFS_AGENT_DEATHS);
    m.revivals = mfs_metric_sum(a->figures, MFS_AGENT_REVIVAL_TIME);
    clients = mfs_clients_list(a->clients, &n);
    m.part = calloc(a->measured.sample.n + 1, sizeof *m.part);
    m.client = calloc(n + 1, sizeof *m.client);
    m.copy = calloc(mfs_agent_copies_list(a, NULL) + 1, sizeof *m.copy);
    m.peer = mfs_agent_traffic_peers(a, &m.npeers);
    if (m.part && m.client && m.copy) {
        m.ncopies = put_copies(a, m.copy);
        m.nparts = put_parts(a, m.part);
        m.nclients = put_clients(clients, n, m.client);
        if (!mfs_conn_notify(conn, MFS_MSG_REPORT, &m))
            mfs_metric_add(a->figures, MFS_AGENT_REPORTS, 0, 1);
    }
    free(clients);
    free(m.part);
    free(m.client);
    free(m.copy);
    free(m.peer);
}

void mfs_agent_send_events(struct mfs_agent *a)
{
    struct mfs_conn *conn = cm_conn(a);
    unsigned sent = 0;

    if (!conn || !a->link.joined)
        return;
    while (sent < a->link.nevents && !mfs_conn_notify(conn, MFS_MSG_EVENT, &a->link.event[sent]))
        sent++;
    a->link.nevents -= sent;
    memmove(a->link.event, a->link.event + sent, a->link.nevents * sizeof *a->link.event);
}

void mfs_agent_report_died(struct mfs_agent *a, const struct mfs_redis *r)
{
    struct mfs_conn *conn = cm_conn(a);
    struct mfs_msg_died m = {.index = r->part};

    mfs_text_copy(m.password, sizeof m.password, r->password);
    if (conn && a->link.joined)
        mfs_conn_notify(conn, MFS_MSG_DIED, &m);
}
