/* memefs profile: what requests there are below a path for some seconds, and why they take as long
 * as they do (trace/profile.h). */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/mount_files.h"
#include "cli/verbs.h"
#include "trace/profile.h"

#define NAP (20 * MFS_MSEC)

struct profile {
    struct mfs_mount_files files;
    struct mfs_profile *p;
    double ms; /* how long */
    bool open; /* only requests that have not ended count */
    struct mfs_err *err;
};

static volatile sig_atomic_t enough;

static void stop(int signo)
{
    (void)signo;
    enough = 1;
}

static int add(void *arg, char *line, size_t len)
{
    struct profile *o = arg;
    struct mfs_trace_line l;
    uint64_t lost;
    int rc = mfs_trace_parse(line, len, &l, &lost, o->err);

    if (rc == 1)
        mfs_profile_lost(o->p, lost);
    else if (rc == 0 && (l.open || !o->open))
        rc = mfs_profile_add(o->p, &l, o->ms) < 0 ? mfs_err_set(o->err, -ENOMEM, "out of memory")
                                                  : 0;
    return rc < 0 ? rc : 0;
}

/* Until the time is over, or somebody has enough of it. *ms: how long it was. */
static int listen_for(struct profile *o, double *ms, struct mfs_err *err)
{
    int64_t began = mfs_clock_mono(), end = began + (int64_t)(o->ms * 1e6);
    struct mfs_line_reader r;
    int rc = mfs_line_reader_open(&r, &o->files, "trace.json", false, err);

    if (rc < 0)
        return rc;
    do {
        rc = mfs_line_reader_read(&r, add, o);
        if (rc == -EAGAIN || rc == -EINTR) {
            mfs_clock_sleep(NAP);
            rc = 1;
        }
    } while (rc == 1 && !enough && mfs_clock_mono() < end);
    mfs_line_reader_close(&r);
    *ms = (double)(mfs_clock_mono() - began) / 1e6;
    if (rc < 0 && err->code == 0)
        return mfs_err_set(err, rc, "%s: %s", o->files.mount, strerror(-rc));
    return rc < 0 ? rc : 0;
}

static int add_open(struct profile *o, struct mfs_err *err)
{
    struct mfs_buf b;
    char *at, *end;
    int rc;

    mfs_buf_init(&b);
    rc = mfs_mount_files_read(&o->files, "slow.json", &b, err);
    o->open = true;
    for (at = mfs_buf_data(&b); rc == 0 && at < mfs_buf_data(&b) + mfs_buf_len(&b); at = end + 1) {
        end = memchr(at, '\n', (size_t)(mfs_buf_data(&b) + mfs_buf_len(&b) - at));
        if (end == NULL)
            break;
        rc = add(o, at, (size_t)(end - at));
    }
    mfs_buf_fini(&b);
    return rc;
}

static int read_nodes(struct profile *o, struct mfs_trace_nodes *nodes, struct mfs_err *err)
{
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    rc = mfs_mount_files_read(&o->files, "nodes.json", &b, err);
    if (rc == 0)
        rc = mfs_trace_nodes_parse(mfs_buf_data(&b), mfs_buf_len(&b), nodes, err);
    mfs_buf_fini(&b);
    return rc;
}

static int show(struct profile *o, double ms, bool json, struct mfs_err *err)
{
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    rc = json ? mfs_profile_json(o->p, ms / 1e3, &b) : mfs_profile_text(o->p, ms / 1e3, &b);
    if (rc == 0)
        fwrite(mfs_buf_data(&b), 1, mfs_buf_len(&b), stdout);
    mfs_buf_fini(&b);
    return rc < 0 ? mfs_err_set(err, rc, "out of memory") : 0;
}

static int observe(struct profile *o, bool json, struct mfs_err *err)
{
    struct mfs_trace_nodes before = {0}, after = {0};
    double ms = 0;
    int rc;

    o->p = mfs_profile_create(o->files.below);
    if (o->p == NULL)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    rc = read_nodes(o, &before, err);
    if (rc == 0)
        rc = listen_for(o, &ms, err);
    if (rc == 0)
        rc = add_open(o, err);
    if (rc == 0)
        rc = read_nodes(o, &after, err);
    if (rc == 0 && mfs_profile_nodes(o->p, &before, &after) < 0)
        rc = mfs_err_set(err, -ENOMEM, "out of memory");
    if (rc == 0)
        rc = show(o, ms, json, err);
    mfs_trace_nodes_free(&before);
    mfs_trace_nodes_free(&after);
    mfs_profile_destroy(o->p);
    return rc;
}

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    const struct sigaction stops = {.sa_handler = stop};
    struct profile *o = calloc(1, sizeof *o);
    int rc = 0;

    if (o == NULL)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    err->code = 0;
    o->err = err;
    if (mfs_verb_duration(mfs_conf_str(call->conf, "for"), &o->ms) < 0) {
        call->usage = true;
        rc = mfs_err_set(err, -EINVAL, "--for: a time as 10s or 1min");
    }
    if (rc == 0)
        rc = mfs_mount_files_open(call->args[0], &o->files, err);
    if (rc == 0) {
        sigaction(SIGINT, &stops, NULL);
        rc = observe(o, mfs_conf_flag(call->conf, "json"), err);
        mfs_mount_files_close(&o->files);
    }
    free(o);
    return rc;
}

static const struct mfs_conf_option options[] = {
    {"for", MFS_CONF_STRING, "TIME", "10s", 1, 20, "how long (10s, 1min); also until Ctrl-C"}, {0}};

const struct mfs_verb mfs_verb_profile = {
    .name = "profile",
    .args = "PATH",
    .summary = "tell what programs do below a path, and what they wait for",
    .about =
        "Looks at the requests that this mount gets for what is at or below PATH, and tells who\n"
        "asks for what, where the time goes, and in the last line what is to be seen in that.\n"
        "For the mount's owner and root. Other mounts' requests are not seen.",
    .least = 1,
    .most = 1,
    .options = MFS_OPTIONS(mfs_json_options, options),
    .run = run};
