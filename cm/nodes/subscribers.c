#include "cm/nodes/subscribers.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "cm/nodes/tables.h"

static void subscriber_has(void *arg, const struct mfs_err *err, const void *reply)
{
    (void)arg;
    (void)reply;
    if (err)
        mfs_warn("subscribers", "a client did not take the table: %s", err->msg);
}

static bool is_subscriber(const struct mfs_cm *cm, const struct mfs_conn *c)
{
    for (const struct mfs_cm_subscriber *s = cm->subscribers; s; s = s->next)
        if (s->conn == c)
            return true;
    return false;
}

void mfs_subscribers_on_hello(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_client_hello *m = body;
    struct mfs_cm *cm = arg;
    const struct mfs_table *table = cm->state.table;
    struct mfs_cm_subscriber *s;

    if (m->version != MFS_PROTOCOL_VERSION || !table) {
        mfs_conn_fail(c, id, table ? -EPROTO : -EAGAIN, "%s",
                      table ? "another protocol version" : "the deployment is being started");
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
    s->sent = m->epoch;
    if (m->epoch < table->epoch)
        mfs_tables_ask_client(cm, s, 10 * MFS_SEC, subscriber_has, NULL);
}

void mfs_subscribers_on_ready(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    (void)body;
    (void)arg;
    mfs_info("subscribers", "%s: a client is mounted", mfs_conn_peer(c));
    mfs_conn_reply(c, MFS_MSG_CLIENT_READY, id, NULL);
}

void mfs_subscribers_hung_up(struct mfs_cm *cm, const struct mfs_conn *c)
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

void mfs_subscribers_fini(struct mfs_cm *cm)
{
    while (cm->subscribers) {
        struct mfs_cm_subscriber *s = cm->subscribers;

        cm->subscribers = s->next;
        free(s);
    }
}
