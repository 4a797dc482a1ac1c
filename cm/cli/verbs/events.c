/* `cm events`: what has happened, and with --follow what happens until the deployment is stopped.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "cm/ask/client.h"
#include "cm/cli/render.h"
#include "cm/cli/verbs.h"

#define LOOK_STEP  (100 * MFS_MSEC)
#define READ_CHUNK 65536

struct view {
    int fd;
    struct mfs_buf b;
    bool json;
    bool torn; /* that was said */
};

/* Half of a line may be there after a crash, with the next event behind it. */
static void leave_out(struct view *v)
{
    if (!v->torn)
        fprintf(stderr, "cm: events: what is in no whole line is left out\n");
    v->torn = true;
}

static int show_line(struct view *v, const char *line, size_t len, struct mfs_err *err)
{
    struct mfs_event e;
    struct mfs_buf b;
    int rc = mfs_schema_decode(&mfs_event_schema, line, len, &e, err);

    if (rc == -EINVAL) {
        leave_out(v);
        return 0;
    }
    if (rc)
        return rc;
    mfs_buf_init(&b);
    rc = v->json ? mfs_buf_append(&b, line, len + 1) : mfs_render_event(&e, &b);
    if (!rc && fwrite(mfs_buf_data(&b), 1, mfs_buf_len(&b), stdout) != mfs_buf_len(&b))
        rc = mfs_err_set(err, -EIO, "output: %s", strerror(errno));
    mfs_buf_fini(&b);
    return rc;
}

/* Shows the whole lines of what the file has now. What is behind them is read again later, as cm
 * may have to take it back. */
static int show(struct view *v, struct mfs_err *err)
{
    struct mfs_buf *b = &v->b;
    const char *end;
    ssize_t n;
    char *to;
    int rc;

    for (;;) {
        to = mfs_buf_reserve(b, READ_CHUNK);
        n = to ? read(v->fd, to, READ_CHUNK) : -1;
        if (n <= 0)
            break;
        mfs_buf_commit(b, (size_t)n);
        while ((end = memchr(mfs_buf_data(b), '\n', mfs_buf_len(b)))) {
            size_t len = (size_t)(end - mfs_buf_data(b));

            rc = show_line(v, mfs_buf_data(b), len, err);
            if (rc)
                return rc;
            mfs_buf_consume(b, len + 1);
        }
    }
    if (n < 0 || lseek(v->fd, -(off_t)mfs_buf_len(b), SEEK_CUR) < 0)
        return mfs_err_set(err, to ? -errno : -ENOMEM, "events: %s", strerror(errno));
    mfs_buf_clear(b);
    return fflush(stdout) ? mfs_err_set(err, -errno, "output: %s", strerror(errno)) : 0;
}

/* With the deployment ends its state; the file of events may be kept. */
static bool ended(const struct mfs_paths *p, int fd)
{
    struct stat st;

    return fstat(fd, &st) || !st.st_nlink || access(p->state, F_OK);
}

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    struct view v = {.fd = open(call->paths.events, O_RDONLY | O_CLOEXEC),
                     .json = mfs_conf_flag(call->conf, "json")};
    bool follow = mfs_conf_flag(call->conf, "follow");
    char cm[MFS_ADDRESS_MAX];
    int rc;

    if (v.fd < 0 && mfs_client_is_elsewhere(&call->paths, cm))
        return mfs_err_set(err, -ESRCH, "the events of deployment %s are where its cm is, at %s",
                           call->paths.name, cm);
    if (v.fd < 0)
        return mfs_err_set(err, -errno, "deployment %s has no events: %s: %s", call->paths.name,
                           call->paths.events, strerror(errno));
    mfs_buf_init(&v.b);
    rc = show(&v, err);
    while (!rc && follow) {
        bool last = ended(&call->paths, v.fd);

        mfs_clock_sleep(LOOK_STEP);
        rc = show(&v, err);
        if (last)
            break;
    }
    mfs_buf_fini(&v.b);
    close(v.fd);
    return rc;
}

static const struct mfs_conf_option options[] = {
    {"follow", MFS_CONF_FLAG, NULL, NULL, 0, 0, "go on until the deployment is stopped"},
    {"json", MFS_CONF_FLAG, NULL, NULL, 0, 0, "one JSON object per line"},
    {0}};

const struct mfs_verb mfs_cm_events = {.name = "events",
                                       .summary = "show what has happened",
                                       .options = MFS_OPTIONS(options, mfs_deployment_options),
                                       .run = run};
