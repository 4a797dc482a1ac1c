#include "cm/provider/run.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/text.h"
#include "cm/provider/children.h"
#include "host/proc.h"

struct mfs_run {
    struct mfs_proc proc;
    struct mfs_watch *watch;
    struct mfs_timer *limit;
    int64_t seconds;
    bool late;  /* it has been killed */
    int output; /* a file without a name, for what it prints; -1: none */
    mfs_run_done *done;
    void *arg;
};

int mfs_run_sibling(const char *name, char *out, size_t n)
{
    return mfs_proc_sibling(name, out, n);
}

void mfs_run_drop(struct mfs_run *r)
{
    if (!r)
        return;
    mfs_timer_cancel(r->limit);
    mfs_watch_remove(r->watch);
    if (r->output >= 0)
        close(r->output);
    free(r);
}

/* What it has printed; the file is closed. The text is for the caller to give back. */
static void take_output(struct mfs_run *r, struct mfs_buf *out)
{
    mfs_buf_init(out);
    if (r->output < 0)
        return;
    if (lseek(r->output, 0, SEEK_SET) || mfs_file_read_fd(r->output, MFS_RUN_OUTPUT_MAX, out) ||
        mfs_buf_append(out, "", 1))
        mfs_buf_clear(out);
    close(r->output);
}

static void ended(void *arg, pid_t pid, int status)
{
    struct mfs_run r = *(struct mfs_run *)arg;
    struct mfs_err why = {0};
    struct mfs_buf text;
    char how[96];

    (void)pid;
    free(arg);
    mfs_timer_cancel(r.limit);
    mfs_children_how(status, how, sizeof how);
    if (r.late)
        mfs_err_set(&why, -ETIMEDOUT, "was not done after %lld s, and was killed",
                    (long long)r.seconds);
    else if (status)
        mfs_err_set(&why, -ECHILD, "%s", how);
    take_output(&r, &text);
    r.done(r.arg, why.code ? &why : NULL, mfs_buf_len(&text) ? mfs_buf_data(&text) : "");
    mfs_buf_fini(&text);
}

static void too_late(void *arg)
{
    struct mfs_run *r = arg;

    r->limit = NULL;
    r->late = true;
    mfs_proc_kill_group(&r->proc);
}

void mfs_run_last_line(const char *text, char *out, size_t n)
{
    size_t len = strlen(text), from;

    while (len && (text[len - 1] == '\n' || text[len - 1] == ' '))
        len--;
    for (from = len; from && text[from - 1] != '\n'; from--)
        ;
    snprintf(out, n, "%.*s", (int)(len - from), text + from);
}

void mfs_run_kill(struct mfs_run *r)
{
    mfs_proc_kill_group(&r->proc);
}

static pid_t spawn(const struct mfs_provider_context *c, const char *const *argv,
                   const struct mfs_run_options *o, int output)
{
    struct mfs_provider_input in;
    pid_t pid;

    if (!o->read)
        return mfs_proc_spawn(argv, c->paths->log);
    if (!o->secret)
        return mfs_proc_spawn_to(argv, output, NULL);
    if (mfs_provider_input(c, &in))
        return -EINVAL;
    pid = mfs_proc_spawn_to(argv, output, &in.input);
    mfs_provider_input_wipe(&in);
    return pid;
}

struct mfs_run *mfs_run_begin(const struct mfs_provider_context *c, const char *const *argv,
                              const struct mfs_run_options *o, mfs_run_done *done, void *arg,
                              struct mfs_err *err)
{
    struct mfs_run *r = calloc(1, sizeof *r);
    int output = o->read ? memfd_create("output", MFD_CLOEXEC) : -1;
    pid_t pid = -ENOMEM;

    assert(o->read || !o->secret);
    if (r && (output >= 0 || !o->read))
        pid = spawn(c, argv, o, output);
    if (pid < 0) {
        if (output >= 0)
            close(output);
        free(r);
        mfs_err_set(err, (int)pid, "%s: %s", argv[0], strerror((int)-pid));
        return NULL;
    }
    *r =
        (struct mfs_run){.seconds = o->limit / MFS_SEC, .output = output, .done = done, .arg = arg};
    if (mfs_proc_identify(pid, &r->proc))
        r->proc = (struct mfs_proc){.pid = pid};           /* it has ended already */
    mfs_text_copy(r->proc.comm, sizeof r->proc.comm, "?"); /* a shell may become another program */
    r->watch = mfs_loop_process(c->loop, pid, ended, r);
    r->limit = r->watch ? mfs_loop_timer(c->loop, o->limit, 0, too_late, r) : NULL;
    if (r->limit)
        return r;
    mfs_err_set(err, -ENOMEM, "out of memory");
    mfs_proc_kill_group(&r->proc);
    mfs_run_drop(r);
    return NULL;
}
