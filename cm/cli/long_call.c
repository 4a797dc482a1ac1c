/* One connection on a loop of its own: the demand, whose answer comes at the end, and meanwhile the
 * questions after the progress. */
#include "cm/cli/long_call.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cm/ask/client.h"
#include "cm/cli/render.h"
#include "net/conn.h"

#define CONNECT_TIME  (10 * MFS_SEC)
#define PROGRESS_STEP (200 * MFS_MSEC)
#define ALIVE_TIME    (60 * MFS_SEC)                /* that cm may take to answer at all */
#define CALL_TIME     (365LL * 24 * 3600 * MFS_SEC) /* progress tells when it hangs */

struct calling {
    struct mfs_long_call *call;
    struct mfs_loop *loop;
    struct mfs_conn *conn;
    bool shown; /* progress is on the screen */
    bool asked; /* a question after the progress is open */
    bool ended;
    struct mfs_err err;
};

static void end(struct calling *s, const struct mfs_err *err)
{
    if (s->ended)
        return;
    s->ended = true;
    if (err)
        s->err = *err;
    mfs_loop_stop(s->loop);
}

static void progress_arrived(void *arg, const struct mfs_err *err, const void *reply)
{
    struct calling *s = arg;
    struct mfs_buf b;

    s->asked = false;
    if (err && err->code == -ETIMEDOUT) {
        mfs_err_set(&s->err, -ETIMEDOUT, "cm does not answer; %s", s->call->if_silent);
        end(s, NULL);
    }
    if (err || !s->call->terminal || s->ended)
        return;
    mfs_buf_init(&b);
    if (!mfs_render_progress(reply, &b) && mfs_buf_len(&b)) {
        fprintf(stderr, "\r\033[K%.*s", (int)mfs_buf_len(&b), mfs_buf_data(&b));
        s->shown = true;
    }
    mfs_buf_fini(&b);
}

static void ask(void *arg)
{
    struct calling *s = arg;

    if (s->conn && !s->asked &&
        !mfs_conn_request(s->conn, MFS_MSG_PROGRESS, NULL, ALIVE_TIME, progress_arrived, s))
        s->asked = true;
}

static void answered(void *arg, const struct mfs_err *err, const void *reply)
{
    struct calling *s = arg;
    size_t size = mfs_messages[s->call->type].reply->size;

    if (reply && !s->ended) {
        memcpy(s->call->reply, reply, size);
        memset((void *)reply, 0, size); /* its lists are ours now */
    }
    end(s, err);
}

static void up(struct mfs_conn *c, void *arg)
{
    struct calling *s = arg;
    int rc;

    s->call->begun = true;
    rc = mfs_conn_request(c, s->call->type, s->call->body, CALL_TIME, answered, s);

    if (rc) {
        mfs_err_set(&s->err, rc, "cannot ask cm: %s", strerror(-rc));
        end(s, NULL);
    }
}

static void down(struct mfs_conn *c, const struct mfs_err *why, void *arg)
{
    struct calling *s = arg;

    (void)c;
    s->conn = NULL;
    end(s, why);
}

int mfs_long_call(const struct mfs_paths *p, struct mfs_long_call *call, struct mfs_err *err)
{
    static const struct mfs_service service = {NULL, up, down};
    struct calling s = {.call = call};
    char address[MFS_ADDRESS_MAX];
    struct mfs_secret secret;
    int rc = mfs_client_find(p, address, &secret, err);

    call->tried = call->begun = false;
    memset(call->reply, 0, mfs_messages[call->type].reply->size);
    if (rc)
        return rc;
    call->tried = true;
    s.loop = mfs_loop_create();
    if (!s.loop) {
        mfs_secret_free(&secret);
        return mfs_err_set(err, -errno, "cannot make an event loop: %s", strerror(errno));
    }
    s.conn = mfs_conn_connect(s.loop, address, &secret, "cli", CONNECT_TIME, &service, &s, &s.err);
    if (s.conn && !mfs_loop_timer(s.loop, PROGRESS_STEP, PROGRESS_STEP, ask, &s))
        mfs_err_set(&s.err, -ENOMEM, "out of memory");
    if (!s.err.code) {
        rc = mfs_loop_run(s.loop);
        if (rc)
            mfs_err_set(&s.err, rc, "event loop: %s", strerror(-rc));
    }
    s.ended = true;
    if (s.conn)
        mfs_conn_close(s.conn);
    mfs_loop_destroy(s.loop);
    mfs_secret_free(&secret);
    if (s.shown)
        fprintf(stderr, "\r\033[K");
    *err = s.err;
    return err->code;
}
