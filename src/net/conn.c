/* Connections. A connection goes CONNECTING → PROVING → UP → CLOSED; mfs_conn_finish takes it
 * through FINISHING, in which it sends what is left, waits for the peer's end and hears nothing.
 *
 * Output is sent at once as far as the socket takes it. An error met there is not reported from
 * inside the call: the socket is shut down, and the loop finds it dead. Only readable() and the
 * timers call back into the owner, always with a reference held. */
#include "net/conn_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "proto/frame.h"

#define READ_CHUNK 65536U
#define READ_PROOF                                                                                 \
    (2U * MFS_AUTH_FRAME_MAX) /* at once, from a peer that has proved nothing yet                  \
                               */
#define READ_ROUNDS 32        /* per wake-up, so that one talker does not starve the others */
#define FINISH_TIME (2 * MFS_SEC)

static const struct mfs_service no_service;

/* ---- life ------------------------------------------------------------------------------------ */

struct mfs_conn *mfs_conn_get(struct mfs_conn *c)
{
    c->refs++;
    return c;
}

void mfs_conn_put(struct mfs_conn *c)
{
    if (!c || --c->refs)
        return;
    mfs_buf_fini(&c->in);
    mfs_buf_fini(&c->out);
    mfs_cipher_destroy(c->sends);
    mfs_cipher_destroy(c->receives);
    mfs_auth_end(&c->auth);
    free(c);
}

struct mfs_conn *mfs_conn_new(struct mfs_loop *loop, const struct mfs_service *service, void *arg,
                              const char *peer)
{
    struct mfs_conn *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->refs = 1;
    c->fd = -1;
    c->loop = loop;
    c->service = service;
    c->arg = arg;
    mfs_buf_init(&c->in);
    mfs_buf_init(&c->out);
    snprintf(c->peer, sizeof c->peer, "%s", peer);
    return c;
}

static void fail_pending(struct mfs_conn *c, int code, const char *why)
{
    struct mfs_err err;

    mfs_err_set(&err, code, "%s", why);
    while (c->pending) {
        struct mfs_conn_pending *p = c->pending;

        c->pending = p->next;
        mfs_timer_cancel(p->timer);
        p->done(p->arg, &err, NULL);
        free(p);
    }
}

void mfs_conn_drop(struct mfs_conn *c, const char *why)
{
    bool was_up = c->state == MFS_CONN_UP || c->state == MFS_CONN_FINISHING;

    if (c->state == MFS_CONN_CLOSED)
        return;
    c->state = MFS_CONN_CLOSED;
    mfs_watch_remove(c->watch);
    c->watch = NULL;
    mfs_timer_cancel(c->deadline);
    c->deadline = NULL;
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    if (c->owner)
        c->owner->closed(c->owner, c, was_up, why);
    c->owner = NULL;
    fail_pending(c, -ECONNABORTED, why);
    mfs_conn_put(c);
}

void mfs_conn_close(struct mfs_conn *c)
{
    mfs_conn_drop(c, "the connection was closed");
}

void mfs_conn_lost(struct mfs_conn *c, const struct mfs_err *why)
{
    if (c->state == MFS_CONN_CLOSED)
        return;
    mfs_conn_get(c);
    mfs_conn_drop(c, why->msg);
    if (c->service->down) // NOLINT(clang-analyzer-unix.Malloc): our reference keeps it
        c->service->down(c, why, c->arg);
    mfs_conn_put(c);
}

static void lost_errno(struct mfs_conn *c, int code)
{
    struct mfs_err why;

    mfs_err_set(&why, code, "%s: %s", c->peer, strerror(-code));
    mfs_conn_lost(c, &why);
}

/* ---- output ---------------------------------------------------------------------------------- */

static void want(struct mfs_conn *c, uint32_t events)
{
    if (c->watch && events != c->events && !mfs_watch_events(c->watch, events))
        c->events = events;
}

void mfs_conn_flush(struct mfs_conn *c)
{
    while (mfs_buf_len(&c->out)) {
        ssize_t n = send(c->fd, mfs_buf_data(&c->out), mfs_buf_len(&c->out), MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        if (n < 0) {
            shutdown(c->fd, SHUT_RDWR);
            mfs_buf_clear(&c->out);
            break;
        }
        mfs_buf_consume(&c->out, (size_t)n);
    }
    want(c, mfs_buf_len(&c->out) ? EPOLLIN | EPOLLOUT : EPOLLIN);
    if (c->state == MFS_CONN_FINISHING && !mfs_buf_len(&c->out))
        shutdown(c->fd, SHUT_WR);
}

static void finish_late(void *arg)
{
    struct mfs_conn *c = arg;

    c->deadline = NULL;
    mfs_conn_close(c);
}

void mfs_conn_finish(struct mfs_conn *c)
{
    if (c->state != MFS_CONN_UP) {
        if (c->state != MFS_CONN_FINISHING)
            mfs_conn_close(c);
        return;
    }
    c->service = &no_service;
    c->deadline = mfs_loop_timer(c->loop, FINISH_TIME, 0, finish_late, c);
    if (!c->deadline) {
        mfs_conn_close(c);
        return;
    }
    c->state = MFS_CONN_FINISHING;
    mfs_conn_get(c);
    fail_pending(c, -ECONNABORTED, "the connection was closed");
    if (c->state == MFS_CONN_FINISHING)
        mfs_conn_flush(c);
    mfs_conn_put(c);
}

/* ---- input ----------------------------------------------------------------------------------- */

int mfs_conn_proved(struct mfs_conn *c)
{
    int rc = mfs_auth_ciphers(&c->auth, &c->sends, &c->receives);

    mfs_auth_end(&c->auth);
    if (rc)
        return rc;
    c->state = MFS_CONN_UP;
    mfs_timer_cancel(c->deadline);
    c->deadline = NULL;
    return 0;
}

static int take_proof(struct mfs_conn *c, const char *body, size_t len, struct mfs_err *err)
{
    int rc = mfs_auth_step(&c->auth, body, len, &c->out, err);

    if (rc < 0)
        return mfs_err_prefix(err, "%s", c->peer) ? rc : -EPROTO;
    mfs_conn_flush(c);
    if (rc != MFS_AUTH_DONE)
        return 0;
    rc = mfs_conn_proved(c);
    if (rc)
        return mfs_err_set(err, rc, "%s: cannot make its keys: %s", c->peer, strerror(-rc));
    if (c->owner)
        c->owner->authenticated(c->owner, c);
    if (c->service->up)
        c->service->up(c, c->arg);
    return 0;
}

/* The longest frame that is taken now. */
static size_t longest(const struct mfs_conn *c)
{
    return c->state == MFS_CONN_UP ? MFS_FRAME_MAX + MFS_CIPHER_TAG : MFS_AUTH_FRAME_MAX;
}

/* Handles every whole frame. 0 or a negative errno: hang up. */
static int take_frames(struct mfs_conn *c, struct mfs_err *err)
{
    while (c->state == MFS_CONN_PROVING || c->state == MFS_CONN_UP) {
        bool up = c->state == MFS_CONN_UP;
        char *body;
        size_t len;
        int rc = mfs_frame_next(&c->in, longest(c), &body, &len);

        if (!rc)
            return 0;
        if (rc < 0)
            return mfs_err_set(err, rc, "%s: sent no frame, or one too long", c->peer);
        rc = up ? mfs_conn_take(c, body, len, err) : take_proof(c, body, len, err);
        if (rc)
            return rc;
        mfs_frame_done(&c->in, len);
    }
    return 0;
}

/* Reads what is there. 1 when the peer has ended, 0, or a negative errno. */
static int fill(struct mfs_conn *c)
{
    bool proving = c->state == MFS_CONN_PROVING;
    size_t chunk = proving ? READ_PROOF : READ_CHUNK;

    for (int i = 0; i < (proving ? 1 : READ_ROUNDS); i++) {
        char *to = mfs_buf_reserve(&c->in, chunk);
        ssize_t n = to ? recv(c->fd, to, chunk, 0) : -1;

        if (!to)
            return -ENOMEM;
        if (!n)
            return 1;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
        mfs_buf_commit(&c->in, (size_t)n);
        if (c->state == MFS_CONN_FINISHING)
            mfs_buf_clear(&c->in);
        if ((size_t)n < chunk)
            return 0;
    }
    return 0;
}

/* A listener that rejects a proof hangs up without a word. */
static void hung_up(struct mfs_conn *c, int code)
{
    struct mfs_err why;

    if (c->state == MFS_CONN_PROVING && c->auth.caller && c->auth.step) {
        mfs_err_set(&why, -EACCES, "%s: refused our proof of the secret", c->peer);
        mfs_conn_lost(c, &why);
    } else {
        lost_errno(c, code);
    }
}

static void readable(struct mfs_conn *c)
{
    struct mfs_err err = {0};
    int ended = fill(c), rc;

    if (c->state == MFS_CONN_FINISHING) {
        if (ended)
            mfs_conn_close(c);
        return;
    }
    rc = take_frames(c, &err);
    if (c->state != MFS_CONN_PROVING && c->state != MFS_CONN_UP)
        return;
    if (rc)
        mfs_conn_lost(c, &err);
    else if (ended)
        hung_up(c, ended < 0 ? ended : -ECONNRESET);
}

static void connected(struct mfs_conn *c)
{
    int code = 0;
    socklen_t len = sizeof code;

    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &code, &len))
        code = errno;
    if (code) {
        lost_errno(c, -code);
        return;
    }
    c->state = MFS_CONN_PROVING;
    want(c, EPOLLIN);
}

void mfs_conn_ready(void *arg, uint32_t events)
{
    struct mfs_conn *c = arg;

    mfs_conn_get(c);
    if (c->state == MFS_CONN_CONNECTING)
        connected(c);
    else if (events & EPOLLOUT)
        mfs_conn_flush(c);
    // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): our reference keeps it
    if (c->state != MFS_CONN_CLOSED && c->state != MFS_CONN_CONNECTING &&
        events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        readable(c);
    mfs_conn_put(c); // NOLINT(clang-analyzer-unix.Malloc): our reference keeps it
}

/* ---- what it is ------------------------------------------------------------------------------ */

void mfs_conn_set_owner(struct mfs_conn *c, struct mfs_conn_owner *owner)
{
    c->owner = owner;
}

bool mfs_conn_is_up(const struct mfs_conn *c)
{
    return c->state == MFS_CONN_UP;
}

const char *mfs_conn_role(const struct mfs_conn *c)
{
    return c->auth.role;
}

const char *mfs_conn_peer(const struct mfs_conn *c)
{
    return c->peer;
}

void *mfs_conn_data(const struct mfs_conn *c)
{
    return c->data;
}

void mfs_conn_set_data(struct mfs_conn *c, void *data)
{
    c->data = data;
}
