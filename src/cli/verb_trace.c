/* memefs trace: the requests of a mount, as they end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/mount_files.h"
#include "cli/verbs.h"
#include "trace/profile.h"

#define WHOLE   (1U << 20)
#define LONGEST 1e12 /* ms: with a time in ns it stays within 64 bits */

struct trace {
    bool json;
    double slow_ms;
    char below[PATH_MAX]; /* "." for all */
    struct mfs_err *err;
};

int mfs_verb_duration(const char *text, double *ms)
{
    static const struct {
        const char *unit;
        double ms;
    } units[] = {{"ms", 1}, {"us", 1e-3}, {"s", 1e3}, {"min", 6e4}, {"", 1e3}};
    char number[32];
    size_t n = strspn(text, "0123456789.");

    if (n == 0 || n >= sizeof number)
        return -EINVAL;
    memcpy(number, text, n);
    number[n] = '\0';
    for (unsigned i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(text + n, units[i].unit) == 0) {
            int rc = mfs_text_f64(number, ms);

            *ms *= units[i].ms;
            return rc == 0 && *ms > LONGEST ? -EINVAL : rc;
        }
    return -EINVAL;
}

static int show(const struct trace *t, const char *line, size_t len,
                const struct mfs_trace_line *parsed, uint64_t lost)
{
    struct mfs_buf b;
    int rc = 0;

    if (t->json) {
        printf("%.*s\n", (int)len, line);
        return 0;
    }
    mfs_buf_init(&b);
    rc = lost > 0 ? mfs_trace_lost_text(lost, &b) : mfs_trace_text(parsed, &b);
    if (rc == 0)
        fwrite(mfs_buf_data(&b), 1, mfs_buf_len(&b), stdout);
    mfs_buf_fini(&b);
    return rc;
}

static int each(void *arg, char *line, size_t len)
{
    const struct trace *t = arg;
    struct mfs_trace_line l;
    char *copy = strndup(line, len); /* reading changes it */
    uint64_t lost;
    int rc;

    if (copy == NULL)
        return mfs_err_set(t->err, -ENOMEM, "out of memory");
    rc = mfs_trace_parse(copy, len, &l, &lost, t->err);
    if (rc == 1)
        rc = show(t, line, len, &l, lost);
    else if (rc == 0 && l.ms >= t->slow_ms && mfs_profile_is_below(l.path, t->below))
        rc = show(t, line, len, &l, 0);
    free(copy);
    return rc;
}

static int follow(struct trace *t, const struct mfs_mount_files *f, struct mfs_err *err)
{
    struct mfs_line_reader r;
    int rc = mfs_line_reader_open(&r, f, "trace.json", true, err);

    if (rc < 0)
        return rc;
    setvbuf(stdout, NULL, _IOFBF, WHOLE); /* who ends this gets no part of a line */
    do {
        rc = mfs_line_reader_read(&r, each, t);
        if (fflush(stdout) != 0)
            rc = 0; /* nobody reads any more */
    } while (rc == 1 || rc == -EINTR);
    mfs_line_reader_close(&r);
    if (rc < 0 && rc != -ENOTCONN && rc != -ECONNABORTED && err->code == 0)
        return mfs_err_set(err, rc, "%s: %s", f->mount, strerror(-rc));
    return rc == -ENOTCONN || rc == -ECONNABORTED ? 0 : rc;
}

/* From the mount on, or absolute. */
static int set_below(struct trace *t, const struct mfs_verb_call *call,
                     const struct mfs_mount_files *f, struct mfs_err *err)
{
    const char *path = mfs_conf_str(call->conf, "path");
    size_t top = strlen(f->mount);

    if (path == NULL)
        path = f->below;
    else if (path[0] == '/' && (strncmp(path, f->mount, top) != 0 || path[top] != '/'))
        return mfs_err_set(err, -EINVAL, "--path %s: not below %s", path, f->mount);
    else if (path[0] == '/')
        path += top + 1;
    snprintf(t->below, sizeof t->below, "%s", path);
    for (top = strlen(t->below); top > 1 && t->below[top - 1] == '/'; top--)
        t->below[top - 1] = '\0';
    return 0;
}

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    struct trace t = {.json = mfs_conf_flag(call->conf, "json"), .err = err};
    struct mfs_mount_files *f = calloc(1, sizeof *f);
    int rc = 0;

    if (f == NULL)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    err->code = 0;
    if (mfs_verb_duration(mfs_conf_str(call->conf, "slow"), &t.slow_ms) < 0) {
        rc = mfs_err_set(err, -EINVAL, "--slow: a time as 50ms or 2s");
        call->usage = true;
    }
    if (rc == 0)
        rc = mfs_mount_files_open(call->nargs > 0 ? call->args[0] : NULL, f, err);
    if (rc == 0) {
        rc = set_below(&t, call, f, err);
        if (rc == 0)
            rc = follow(&t, f, err);
        mfs_mount_files_close(f);
    }
    free(f);
    return rc;
}

static const struct mfs_conf_option options[] = {
    {"slow", MFS_CONF_STRING, "TIME", "0", 1, 20, "only requests that took so long (50ms, 2s)"},
    {"path", MFS_CONF_STRING, "PATH", NULL, 1, 4000, "only those at or below it"},
    {0}};

const struct mfs_verb mfs_verb_trace = {
    .name = "trace",
    .args = "[PATH]",
    .summary = "show a mount's requests as they end, and where their time went",
    .about =
        "Shows a line for each request of the mount that PATH is on, from now on: when it came,\n"
        "how long it took, operation, path, error, program, and where the time went. Without\n"
        "PATH it is the only mount on this machine. For the mount's owner and root.",
    .most = 1,
    .options = MFS_OPTIONS(mfs_json_options, options),
    .run = run};
