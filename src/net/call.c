/* One blocking request, on a loop of its own. */
#include "net/call.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "net/conn.h"

struct call {
    struct mfs_loop *loop;
    struct mfs_conn *conn;
    enum mfs_msg type;
    const void *body;
    int64_t until;
    void *reply;
    struct mfs_err err;
    bool answered;
};

static void answered(void *arg, const struct mfs_err *err, const void *reply)
{
    struct call *c = arg;
    size_t size = mfs_messages[c->type].reply->size;

    if (c->answered)
        return;
    c->answered = true;
    if (err) {
        c->err = *err;
    } else if (reply) {
        /* The caller gets the lists behind it, too: what is zero is not freed after our return. */
        memcpy(c->reply, reply, size);
        memset((void *)reply, 0, size);
    }
    mfs_loop_stop(c->loop);
}

static void up(struct mfs_conn *conn, void *arg)
{
    struct call *c = arg;
    int rc = mfs_conn_request(conn, c->type, c->body, c->until - mfs_clock_mono(), answered, c);
    struct mfs_err err;

    if (!rc)
        return;
    mfs_err_set(&err, rc, "%s: %s", mfs_conn_peer(conn), strerror(-rc));
    answered(c, &err, NULL);
}

static void down(struct mfs_conn *conn, const struct mfs_err *why, void *arg)
{
    struct call *c = arg;

    (void)conn;
    c->conn = NULL;
    answered(c, why, NULL);
}

int mfs_call(const char *address, const struct mfs_secret *secret, const char *role,
             enum mfs_msg type, const void *body, int64_t timeout, void *reply, struct mfs_err *err)
{
    static const struct mfs_service service = {NULL, up, down};
    struct call c = {.loop = mfs_loop_create(), .type = type, .body = body, .reply = reply};
    int rc = c.loop ? 0 : -errno;

    if (rc)
        return mfs_err_set(err, rc, "cannot make an event loop: %s", strerror(-rc));
    c.until = mfs_clock_mono() + timeout;
    memset(reply, 0, mfs_messages[type].reply->size);
    c.conn = mfs_conn_connect(c.loop, address, secret, role, timeout, &service, &c, &c.err);
    if (c.conn)
        rc = mfs_loop_run(c.loop);
    if (rc)
        mfs_err_set(&c.err, rc, "event loop: %s", strerror(-rc));
    c.answered = true;
    if (c.conn)
        mfs_conn_close(c.conn);
    mfs_loop_destroy(c.loop);
    if (c.err.code && err)
        *err = c.err;
    return c.err.code;
}
