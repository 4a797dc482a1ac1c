/* One connection on a loop of its own: the demand, whose answer comes at the end, and meanwhile a
 * question after the progress now and then, which also shows that cm is alive. */
#include "cm/scale_call.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cm/client.h"
#include "cm/options.h"
#include "cm/render.h"
#include "wire/conn.h"

#define CONNECT_TIME  (10 * MFS_SEC)
#define PROGRESS_STEP (200 * MFS_MSEC)
#define ALIVE_TIME    (60 * MFS_SEC)                /* that cm may take to answer at all */
#define SCALE_TIME    (365LL * 24 * 3600 * MFS_SEC) /* progress tells when it hangs */
#define FAILURE_MAX   (64U << 10)

struct scaling {
    struct mfs_loop *loop;
    struct mfs_conn *conn;
    struct mfs_msg_scale what;
    bool terminal, shown; /* progress: wanted, on the screen */
    bool asked;           /* a question after the progress is open */
    bool begun, ended;
    struct mfs_scale_report report;
    struct mfs_err err;
};

static void end(struct scaling *s, const struct mfs_err *err)
{
    if (s->ended)
        return;
    s->ended = true;
    if (err)
        s->err = *err;
    mfs_loop_stop(s->loop);
}

/* ---- progress -------------------------------------------------------------------------------- */

static void told(void *arg, const struct mfs_err *err, const void *reply)
{
    struct scaling *s = arg;
    struct mfs_buf b;

    s->asked = false;
    if (err && err->code == -ETIMEDOUT) {
        mfs_err_set(&s->err, -ETIMEDOUT,
                    "cm does not answer; the change goes on when it does (see cm status)");
        end(s, NULL);
    }
    if (err || !s->terminal || s->ended)
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
    struct scaling *s = arg;

    if (s->conn && !s->asked &&
        !mfs_conn_request(s->conn, MFS_MSG_PROGRESS, NULL, ALIVE_TIME, told, s))
        s->asked = true;
}

/* ---- the demand ------------------------------------------------------------------------------ */

static void answered(void *arg, const struct mfs_err *err, const void *reply)
{
    struct scaling *s = arg;

    if (reply && !s->ended) {
        memcpy(&s->report, reply, sizeof s->report);
        memset((void *)reply, 0, sizeof s->report); /* the list is ours now */
    }
    end(s, err);
}

static void up(struct mfs_conn *c, void *arg)
{
    struct scaling *s = arg;
    int rc;

    s->begun = true;
    rc = mfs_conn_request(c, MFS_MSG_SCALE, &s->what, SCALE_TIME, answered, s);

    if (rc) {
        mfs_err_set(&s->err, rc, "cannot ask cm: %s", strerror(-rc));
        end(s, NULL);
    }
}

static void down(struct mfs_conn *c, const struct mfs_err *why, void *arg)
{
    struct scaling *s = arg;

    (void)c;
    s->conn = NULL;
    end(s, why);
}

static int run(struct scaling *s, const struct mfs_paths *p, struct mfs_err *err)
{
    static const struct mfs_service service = {NULL, up, down};
    char address[MFS_ADDRESS_MAX];
    struct mfs_secret secret;
    int rc = mfs_client_find(p, address, &secret, err);

    if (rc)
        return rc;
    s->loop = mfs_loop_create();
    if (!s->loop)
        return mfs_err_set(err, -errno, "cannot make an event loop: %s", strerror(errno));
    s->conn =
        mfs_conn_connect(s->loop, address, &secret, "cli", CONNECT_TIME, &service, s, &s->err);
    if (s->conn && !mfs_loop_timer(s->loop, PROGRESS_STEP, PROGRESS_STEP, ask, s))
        mfs_err_set(&s->err, -ENOMEM, "out of memory");
    if (!s->err.code) {
        rc = mfs_loop_run(s->loop);
        if (rc)
            mfs_err_set(&s->err, rc, "event loop: %s", strerror(-rc));
    }
    s->ended = true;
    if (s->conn)
        mfs_conn_close(s->conn);
    mfs_loop_destroy(s->loop);
    if (s->shown)
        fprintf(stderr, "\r\033[K");
    *err = s->err;
    return err->code;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* What cm has left for us: the ends of the logs of a node that did not come. */
static void show_logs(const struct mfs_paths *p, const struct mfs_err *err)
{
    const char *text, *rest;
    struct mfs_buf b;

    mfs_buf_init(&b);
    if (!mfs_file_read(p->failure, FAILURE_MAX, &b) && !mfs_buf_append(&b, "", 1)) {
        text = mfs_buf_data(&b);
        rest = strchr(text, '\n');
        if (rest && !strncmp(text, err->msg, (size_t)(rest - text)))
            fputs(rest + 1, stderr);
    }
    mfs_buf_fini(&b);
}

static int print(const struct scaling *s, bool json, const char *name)
{
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    if (json) {
        rc = mfs_record_encode(&mfs_scale_report_record, &s->report, false, &b);
        if (!rc)
            rc = mfs_buf_append(&b, "\n", 1);
    } else {
        rc = mfs_render_scale(name, &s->report, s->what.dry_run, &b);
    }
    if (!rc)
        fwrite(mfs_buf_data(&b), 1, mfs_buf_len(&b), stdout);
    mfs_buf_fini(&b);
    return rc;
}

int mfs_scale_call(struct mfs_verb_call *call, const char *how, uint32_t n, struct mfs_err *err)
{
    struct scaling s = {.what = {.n = n, .dry_run = mfs_conf_flag(call->conf, "dry-run")}};
    int rc;

    mfs_text_copy(s.what.how, sizeof s.what.how, how);
    if (mfs_conf_given(call->conf, "migration"))
        mfs_text_copy(s.what.migration, sizeof s.what.migration,
                      mfs_conf_str(call->conf, "migration"));
    if (mfs_conf_given(call->conf, "rate"))
        s.what.rate = mfs_conf_uint(call->conf, "rate");
    s.terminal = isatty(STDERR_FILENO) && !s.what.dry_run;
    rc = run(&s, &call->paths, err);
    if (!rc) {
        rc = print(&s, mfs_conf_flag(call->conf, "json"), call->paths.name);
        if (rc)
            mfs_err_set(err, rc, "out of memory");
    } else if (s.loop) {
        show_logs(&call->paths, err);
        if (!mfs_client_daemon(&call->paths).pid)
            mfs_err_set(err, -ESRCH, "the cm of deployment %s does not run; cm start %s",
                        call->paths.name,
                        s.begun ? "starts it again, and it goes on" : "starts it again");
    }
    mfs_record_clear(&mfs_scale_report_record, &s.report);
    return rc;
}
