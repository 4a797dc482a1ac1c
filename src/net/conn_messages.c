/* What a connection carries once both ends have proved themselves: requests, replies and notices,
 * each in a sealed frame. */
#include "net/conn_impl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "proto/frame.h"

#define OUTPUT_MAX (2 * (size_t)MFS_FRAME_MAX)

/* ---- output ---------------------------------------------------------------------------------- */

static int can_send(const struct mfs_conn *c)
{
    if (c->state != MFS_CONN_UP)
        return -ENOTCONN;
    return mfs_buf_len(&c->out) > OUTPUT_MAX ? -ENOBUFS : 0;
}

/* What has been put behind `mark` with the result rc goes to the peer. */
static int send_frame(struct mfs_conn *c, size_t mark, int rc)
{
    if (!rc)
        rc = mfs_cipher_seal(c->sends, &c->out, mark);
    if (!rc)
        mfs_conn_flush(c);
    return rc;
}

static struct mfs_conn_pending **find_pending(struct mfs_conn *c, uint64_t id)
{
    struct mfs_conn_pending **at = &c->pending;

    while (*at && (*at)->id != id)
        at = &(*at)->next;
    return at;
}

static void request_late(void *arg)
{
    struct mfs_conn_pending *p = arg, **at = find_pending(p->conn, p->id);
    struct mfs_err err;

    *at = p->next;
    mfs_err_set(&err, -ETIMEDOUT, "%s: no answer to \"%s\" in time", p->conn->peer,
                mfs_messages[p->type].name);
    p->done(p->arg, &err, NULL);
    free(p);
}

int mfs_conn_request(struct mfs_conn *c, enum mfs_msg type, const void *body, int64_t timeout,
                     void (*done)(void *arg, const struct mfs_err *err, const void *reply),
                     void *arg)
{
    struct mfs_conn_pending *p;
    size_t mark = mfs_buf_len(&c->out);
    int rc = can_send(c);

    if (rc)
        return rc;
    p = calloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    *p = (struct mfs_conn_pending){c->pending, c, ++c->last_id, type, NULL, done, arg};
    p->timer = mfs_loop_timer(c->loop, timeout, 0, request_late, p);
    rc = p->timer ? mfs_message_put_request(&c->out, type, p->id, body) : -ENOMEM;
    rc = send_frame(c, mark, rc);
    if (rc) {
        mfs_timer_cancel(p->timer);
        free(p);
        return rc;
    }
    c->pending = p;
    return 0;
}

int mfs_conn_notify(struct mfs_conn *c, enum mfs_msg type, const void *body)
{
    size_t mark = mfs_buf_len(&c->out);
    int rc = can_send(c);

    return rc ? rc : send_frame(c, mark, mfs_message_put_request(&c->out, type, 0, body));
}

void mfs_conn_fail(struct mfs_conn *c, uint64_t id, int code, const char *fmt, ...)
{
    size_t mark = mfs_buf_len(&c->out);
    char text[MFS_ERR_MSG_MAX];
    va_list ap;

    if (!id || c->state != MFS_CONN_UP)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (send_frame(c, mark, mfs_message_put_error(&c->out, id, code, text)))
        shutdown(c->fd, SHUT_RDWR); /* the asker must not wait for nothing */
}

void mfs_conn_reply(struct mfs_conn *c, enum mfs_msg type, uint64_t id, const void *body)
{
    size_t mark = mfs_buf_len(&c->out);
    int rc;

    if (!id || c->state != MFS_CONN_UP)
        return;
    rc = send_frame(c, mark, mfs_message_put_reply(&c->out, type, id, body));
    if (rc)
        mfs_conn_fail(c, id, rc, "the answer could not be sent: %s", strerror(-rc));
}

/* ---- input ----------------------------------------------------------------------------------- */

static const struct mfs_handler *find_handler(const struct mfs_conn *c, enum mfs_msg type)
{
    for (const struct mfs_handler *h = c->service->handlers; h && h->handle; h++)
        if (h->type == type)
            return h;
    return NULL;
}

static void take_request(struct mfs_conn *c, const struct mfs_envelope *e)
{
    _Alignas(16) char body[MFS_MSG_SIZE_MAX];
    const struct mfs_handler *h = e->type < MFS_MSG_COUNT ? find_handler(c, e->type) : NULL;
    const struct mfs_schema *schema;
    struct mfs_err err = {0};
    int rc;

    if (!h) {
        mfs_conn_fail(c, e->id, -EOPNOTSUPP, "unknown request \"%s\"", e->type_name);
        return;
    }
    schema = mfs_messages[e->type].body;
    rc = mfs_envelope_body(e, schema, body, &err);
    if (rc) {
        mfs_warn("wire", "%s: bad \"%s\": %s", c->peer, e->type_name, err.msg);
        mfs_conn_fail(c, e->id, rc, "%s", err.msg);
        return;
    }
    h->handle(c, e->id, body, c->arg);
    mfs_schema_clear(schema, body);
}

static void take_reply(struct mfs_conn *c, const struct mfs_envelope *e)
{
    _Alignas(16) char body[MFS_MSG_SIZE_MAX];
    struct mfs_conn_pending **at = find_pending(c, e->id), *p = *at;
    const struct mfs_schema *schema;
    struct mfs_err err = e->error;

    if (!p) /* came too late */
        return;
    *at = p->next;
    mfs_timer_cancel(p->timer);
    schema = mfs_messages[p->type].reply;
    if (!err.code && !mfs_envelope_body(e, schema, body, &err)) {
        p->done(p->arg, NULL, body);
        mfs_schema_clear(schema, body);
    } else {
        p->done(p->arg, &err, NULL);
    }
    free(p);
}

int mfs_conn_take(struct mfs_conn *c, char *body, size_t len, struct mfs_err *err)
{
    struct mfs_envelope e;
    int rc = mfs_cipher_open(c->receives, body, &len);

    if (rc)
        return mfs_err_set(err, rc, "%s: sent a frame that is not sealed as it should be", c->peer);
    rc = mfs_envelope_open(&e, body, len);
    if (rc)
        return mfs_err_set(err, rc, "%s: sent something that is no message", c->peer);
    if (e.is_reply)
        take_reply(c, &e);
    else
        take_request(c, &e);
    mfs_envelope_clear(&e);
    return 0;
}
