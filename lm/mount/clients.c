/* The node's clients: a list of processes and connections, and the distribution of tables to them.
 *
 * An entry is there from the client's start or its HELLO until its process has ended; its
 * connection may come later, and again. A table is sent to each client that is connected and counts
 * as distributed when each has acknowledged it, has ended, or has not answered in time. */
#include "lm/mount/clients_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "net/loop.h"
#include "proto/times.h"

#define AREA        "clients"
#define CLIENTS_MAX 256 /* connections; programs that mount by hand are few */

/* One table on its way to all clients. Lives until the last answer or time-out. */
struct push {
    unsigned open; /* answers outstanding, and one for the sender itself */
    void (*done)(void *arg, const struct mfs_err *err);
    void *arg;
    struct mfs_err err;
};

/* One client's answer. push is NULL when all are not waited for. */
struct ack {
    struct mfs_clients *clients;
    struct push *push;
    uint64_t epoch, id; /* of the table; of the client's entry */
    bool change;        /* it was not sent whole */
};

static struct mfs_client_entry *find(const struct mfs_clients *c, pid_t pid, uint32_t instance)
{
    struct mfs_client_entry *e = c->entries;

    while (e && (e->info.proc.pid != pid || e->info.instance != instance))
        e = e->next;
    return e;
}

static struct mfs_client_entry *find_id(const struct mfs_clients *c, uint64_t id)
{
    struct mfs_client_entry *e = c->entries;

    while (e && e->id != id)
        e = e->next;
    return e;
}

static unsigned name_of(const struct mfs_client_entry *e)
{
    return e->info.proc.pid ? (unsigned)e->info.proc.pid : e->claimed_pid;
}

static void unlink_entry(struct mfs_client_entry *e)
{
    struct mfs_client_entry **at = &e->owner->entries;

    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
}

static void free_entry(struct mfs_client_entry *e)
{
    mfs_metric_snapshot_free(&e->figures);
    mfs_schema_clear(&mfs_hot_schema, &e->hot);
    free(e);
}

/* Takes it off the list first: the hooks see the world without it. */
static void forget_process(struct mfs_client_entry *e, int status)
{
    struct mfs_clients *c = e->owner;

    unlink_entry(e);
    mfs_watch_remove(e->watch);
    if (e->conn) {
        mfs_conn_set_data(e->conn, NULL);
        mfs_conn_close(e->conn);
    }
    c->hooks->gone(c->arg, &e->info, status);
    free_entry(e);
}

/* Its session has ended, or, of a process that is not watched and may live or not, ends by itself.
 */
static void forget(struct mfs_client_entry *e)
{
    struct mfs_clients *c = e->owner;

    unlink_entry(e);
    mfs_watch_remove(e->watch);
    free_entry(e);
    c->hooks->changed(c->arg);
}

static void process_gone(void *arg, pid_t pid, int status)
{
    struct mfs_client_entry *e = arg;

    (void)pid;
    e->watch = NULL;
    forget_process(e, status);
}

static void found_dead(void *arg)
{
    struct mfs_client_entry *e = arg;

    forget_process(e, -1);
}

static struct mfs_client_entry *add(struct mfs_clients *c, const struct mfs_client *info)
{
    struct mfs_client_entry *e = calloc(1, sizeof *e);

    if (!e)
        return NULL;
    e->info = *info;
    e->info.connected = false;
    e->id = ++c->last_id;
    e->owner = c;
    e->next = c->entries;
    c->entries = e;
    return e;
}

int mfs_clients_expect(struct mfs_clients *c, const struct mfs_client *client)
{
    struct mfs_client_entry *e = find(c, client->proc.pid, client->instance);

    if (e)
        return 0;
    e = add(c, client);
    if (!e)
        return -ENOMEM;
    /* Watching first and then looking whether it is still that process leaves no gap. */
    e->watch = mfs_loop_process(c->loop, client->proc.pid, process_gone, e);
    if (e->watch && (mfs_proc_alive(&client->proc) || client->proc.start == 0))
        return 0;
    mfs_watch_remove(e->watch);
    e->watch = NULL;
    if (!mfs_loop_post(c->loop, found_dead, e))
        return 0;
    unlink_entry(e);
    free(e);
    return -ENOMEM;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void push_put(struct push *p)
{
    if (--p->open)
        return;
    if (p->done)
        p->done(p->arg, p->err.code ? &p->err : NULL);
    free(p);
}

static void push_failed(struct push *p, const struct mfs_client_entry *e, const char *why)
{
    if (!p->err.code)
        mfs_err_set(&p->err, -ETIMEDOUT, "client %u still holds an older table: %s", name_of(e),
                    why);
}

static void acknowledged(void *arg, const struct mfs_err *err, const void *reply);

/* Of `change` only what the client lacks, if it has what that is of. Takes `a` over, which fails
 * with a negative errno. */
static int send_to(struct mfs_client_entry *e, struct ack *a, const struct mfs_table_change *change)
{
    struct mfs_clients *c = e->owner;
    struct mfs_msg_table m = {0};
    int rc;

    a->change = change && change->base && change->base == e->sent;
    if (a->change)
        m.change = *change;
    else
        m.table = (struct mfs_table *)c->table;
    a->epoch = c->table->epoch;
    rc = mfs_conn_request(e->conn, MFS_MSG_TABLE, &m, MFS_CLIENT_ACK_TIME, acknowledged, a);
    e->sent = rc ? 0 : a->epoch;
    if (rc)
        mfs_warn(AREA, "client %u: can't send the table: %s", name_of(e), strerror(-rc));
    return rc;
}

static void acknowledged(void *arg, const struct mfs_err *err, const void *reply)
{
    struct ack *a = arg;
    const struct mfs_msg_epoch *m = reply;
    struct mfs_client_entry *e = find_id(a->clients, a->id);

    if (err && err->code == -ESTALE && a->change && e && e->conn && !send_to(e, a, NULL))
        return;
    if (!err && m->epoch >= a->epoch) {
        if (e)
            e->info.epoch = m->epoch;
    } else if (e && e->info.epoch < a->epoch) {
        /* One that is gone by now holds no table any more and delays nothing. */
        mfs_warn(AREA, "client %u did not take table %llu: %s", name_of(e),
                 (unsigned long long)a->epoch, err ? err->msg : "it answers an older epoch");
        if (a->push)
            push_failed(a->push, e, err ? err->msg : "it answers an older epoch");
    }
    if (a->push)
        push_put(a->push);
    free(a);
}

static void send_table(struct mfs_client_entry *e, struct push *push,
                       const struct mfs_table_change *change)
{
    struct ack *a = calloc(1, sizeof *a);
    int rc = -ENOMEM;

    if (a) {
        *a = (struct ack){.clients = e->owner, .push = push, .id = e->id};
        rc = send_to(e, a, change);
    }
    if (!rc) {
        if (push)
            push->open++;
        return;
    }
    free(a);
    if (push)
        push_failed(push, e, strerror(-rc));
}

static void push_sent(void *arg)
{
    push_put(arg);
}

int mfs_clients_push(struct mfs_clients *c, const struct mfs_table *table,
                     const struct mfs_table *before,
                     void (*done)(void *arg, const struct mfs_err *err), void *arg)
{
    struct push *p = calloc(1, sizeof *p);
    struct mfs_table_change change = {0};

    c->table = table;
    if (!p)
        return -ENOMEM;
    *p = (struct push){.open = 1, .done = done, .arg = arg};
    if (mfs_loop_post(c->loop, push_sent, p)) {
        free(p);
        return -ENOMEM;
    }
    if (before && c->entries)
        mfs_table_difference(before, table, &change); /* without memory it goes whole */
    for (struct mfs_client_entry *e = c->entries; e; e = e->next) {
        if (e->conn && e->info.epoch < table->epoch)
            send_table(e, p, &change);
    }
    free(change.patch);
    return 0;
}

/* ---- connections ----------------------------------------------------------------------------- */

/* By the kernel's word, as its own pid may be that of a stranger here. */
static struct mfs_client_entry *entry_for(struct mfs_clients *c, const struct mfs_conn *conn,
                                          uint32_t instance)
{
    struct mfs_client info = {.instance = instance};
    pid_t pid = mfs_conn_peer_pid(conn);
    struct mfs_client_entry *e = pid ? find(c, pid, instance) : NULL;

    if (e)
        return e;
    if (mfs_proc_identify(pid, &info.proc))
        info.proc = (struct mfs_proc){.pid = pid};
    e = add(c, &info);
    if (e && pid)
        e->watch = mfs_loop_process(c->loop, pid, process_gone, e);
    return e;
}

static uint32_t owner_of(pid_t pid)
{
    char path[32];
    struct stat st;

    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    return pid && !stat(path, &st) ? st.st_uid : 0;
}

static void note_hello(struct mfs_client_entry *e, struct mfs_conn *conn,
                       const struct mfs_msg_client_hello *m)
{
    if (e->conn && e->conn != conn) {
        mfs_conn_set_data(e->conn, NULL);
        mfs_conn_close(e->conn);
    }
    e->conn = conn;
    e->claimed_pid = m->pid;
    e->leaves = m->leaves && m->instance != 0;
    e->info.connected = true;
    e->info.epoch = m->epoch;
    e->sent = m->epoch;
    mfs_text_copy(e->info.mount, sizeof e->info.mount, m->mount);
    mfs_text_copy(e->info.session, sizeof e->info.session, m->session);
    mfs_text_copy(e->info.version, sizeof e->info.version, m->program);
    e->info.since = m->since;
    e->info.uid = owner_of(e->info.proc.pid);
    mfs_conn_set_data(conn, e);
    mfs_info(AREA, "client %u (it says %u) at %s, session %s, table %llu", name_of(e), m->pid,
             m->mount, m->session, (unsigned long long)m->epoch);
}

static void handle_hello(struct mfs_conn *conn, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_client_hello *m = body;
    struct mfs_clients *c = arg;
    struct mfs_client_entry *e;

    if (m->version != MFS_PROTOCOL_VERSION) {
        mfs_conn_fail(conn, id, -EPROTO, "protocol version %u is spoken here, not %u",
                      MFS_PROTOCOL_VERSION, m->version);
        return;
    }
    e = mfs_conn_data(conn);
    if (e && e->claimed_pid != m->pid) {
        mfs_conn_fail(conn, id, -EPROTO, "this connection is that of client %u", e->claimed_pid);
        return;
    }
    if (!e && m->pid)
        e = entry_for(c, conn, m->instance);
    if (!e) {
        mfs_conn_fail(conn, id, m->pid ? -ENOMEM : -EINVAL, "can't note client %u", m->pid);
        return;
    }
    note_hello(e, conn, m);
    mfs_conn_reply(conn, MFS_MSG_CLIENT_HELLO, id, &(struct mfs_msg_empty){0});
    if (c->table && m->epoch < c->table->epoch)
        send_table(e, NULL, NULL);
    c->hooks->changed(c->arg);
}

static void handle_ready(struct mfs_conn *conn, uint64_t id, const void *body, void *arg)
{
    struct mfs_client_entry *e = mfs_conn_data(conn);
    struct mfs_clients *c = arg;

    (void)body;
    if (!e) {
        mfs_conn_fail(conn, id, -EPROTO, "client_hello comes first");
        return;
    }
    e->info.ready = true;
    mfs_conn_reply(conn, MFS_MSG_CLIENT_READY, id, &(struct mfs_msg_empty){0});
    c->hooks->ready(c->arg, &e->info);
}

static void handle_beat(struct mfs_conn *conn, uint64_t id, const void *body, void *arg)
{
    struct mfs_clients *c = arg;
    struct mfs_msg_beat_reply m = {0};
    int64_t last = c->hooks->last_heartbeat(c->arg, &m);

    (void)body;
    if (!mfs_conn_data(conn) || !last) {
        mfs_conn_fail(conn, id, -EAGAIN, "cm has not been heard of");
        return;
    }
    m.epoch = c->table ? c->table->epoch : 0;
    m.age_ms = (uint64_t)((mfs_clock_mono() - last + MFS_MSEC - 1) / MFS_MSEC);
    mfs_conn_reply(conn, MFS_MSG_BEAT, id, &m);
}

static void handle_clients(struct mfs_conn *conn, uint64_t id, const void *body, void *arg)
{
    struct mfs_clients *c = arg;

    (void)body;
    c->hooks->ask(c->arg, MFS_MSG_CLIENTS, conn, id);
}

static void handle_events(struct mfs_conn *conn, uint64_t id, const void *body, void *arg)
{
    struct mfs_clients *c = arg;

    (void)body;
    c->hooks->ask(c->arg, MFS_MSG_EVENTS, conn, id);
}

static void conn_down(struct mfs_conn *conn, const struct mfs_err *why, void *arg)
{
    struct mfs_client_entry *e = mfs_conn_data(conn);

    (void)arg;
    if (!e)
        return;
    mfs_info(AREA, "client %u: connection lost: %s", name_of(e), why->msg);
    e->conn = NULL;
    e->info.connected = false;
    if (!e->watch || e->leaves)
        forget(e);
}

static const struct mfs_handler handlers[] = {{MFS_MSG_CLIENT_HELLO, handle_hello},
                                              {MFS_MSG_CLIENT_READY, handle_ready},
                                              {MFS_MSG_BEAT, handle_beat},
                                              {MFS_MSG_METRICS, mfs_clients_on_metrics},
                                              {MFS_MSG_STATS, mfs_clients_on_stats},
                                              {MFS_MSG_CLIENTS, handle_clients},
                                              {MFS_MSG_EVENTS, handle_events},
                                              {MFS_MSG_HOT, mfs_clients_on_hot},
                                              {0, NULL}};
static const struct mfs_service service = {handlers, NULL, conn_down};

struct mfs_clients *mfs_clients_create(struct mfs_loop *loop, const char *address,
                                       const struct mfs_secret *secret, struct mfs_metrics *metrics,
                                       const struct mfs_clients_hooks *hooks, void *arg,
                                       struct mfs_err *err)
{
    struct mfs_clients *c = calloc(1, sizeof *c);

    if (!c) {
        mfs_err_set(err, -ENOMEM, "out of memory");
        return NULL;
    }
    c->loop = loop;
    c->hooks = hooks;
    c->metrics = metrics;
    c->arg = arg;
    c->listener = mfs_listener_create(loop, address, secret, CLIENTS_MAX, &service, c, err);
    if (c->listener)
        return c;
    free(c);
    return NULL;
}

void mfs_clients_close(struct mfs_clients *c)
{
    mfs_listener_destroy(c->listener);
    c->listener = NULL;
    while (c->entries) {
        struct mfs_client_entry *e = c->entries;

        c->entries = e->next;
        mfs_watch_remove(e->watch);
        free_entry(e);
    }
}

void mfs_clients_destroy(struct mfs_clients *c)
{
    if (!c)
        return;
    mfs_clients_close(c);
    free(c);
}

struct mfs_client *mfs_clients_list(const struct mfs_clients *c, size_t *n)
{
    struct mfs_client *list;
    size_t count = 0;

    for (const struct mfs_client_entry *e = c->entries; e; e = e->next)
        count++;
    list = count ? calloc(count, sizeof *list) : NULL;
    *n = list ? count : 0;
    count = 0;
    for (const struct mfs_client_entry *e = c->entries; list && e; e = e->next)
        list[count++] = e->info;
    return list;
}
