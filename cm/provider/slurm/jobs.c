/* Nodes that are jobs: submitted, looked after and cancelled by Slurm's own commands. One squeue
 * tells of all jobs. What it does not tell, because slurmctld is away, has not ended; a job that it
 * does not name any more has. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "cm/provider/slurm/impl.h"

#define LOOK_TIME   (20 * MFS_SEC) /* for squeue */
#define SUBMIT_MAX  1024           /* bytes of its line: --slurm-args has up to 511 */
#define SUBMIT_TIME (60 * MFS_SEC) /* for sbatch */
#define CANCEL_TIME (25 * MFS_SEC) /* for scancel */

static_assert(CANCEL_TIME < MFS_RELEASE_TIME, "the provider says first what is wrong");

/* ---- jobs ------------------------------------------------------------------------------------ */

static void submitted(void *arg, const struct mfs_err *why, const char *output)
{
    struct mfs_slurm_place *p = arg;
    char last[160];

    p->run = NULL;
    if (!why && !mfs_slurm_submitted(output, p->job)) {
        p->state = MFS_SLURM_WAITS;
        if (mfs_slurm_note(p))
            mfs_warn("slurm", "job %s of node %u could not be noted", p->job, p->node);
        return;
    }
    mfs_run_last_line(output, last, sizeof last);
    mfs_slurm_failed(p, why ? why->code : -EPROTO, last, why ? "" : "is no number of a job");
    mfs_slurm_unlist(p);
}

/* The lm's command line as one word for sbatch's own shell. */
static int wrap(const struct mfs_slurm *s, const struct mfs_provider_node *n, struct mfs_buf *out)
{
    struct mfs_lm_command lm;
    int rc = mfs_provider_command(s->context, n, &lm);

    if (!rc)
        rc = mfs_buf_printf(out, "exec ");
    if (!rc)
        rc = mfs_provider_quote(&lm, out);
    return rc ? rc : mfs_buf_append(out, "", 1);
}

/* The operator's arguments are read by a shell, as those of exec; the last of several counts. */
int mfs_slurm_submit(struct mfs_slurm_place *p, const struct mfs_provider_node *n,
                     struct mfs_err *err)
{
    const struct mfs_run_options options = {.limit = SUBMIT_TIME, .read = true, .secret = true};
    const char *args = mfs_provider_option(p->of->context, "slurm-args");
    char name[96], job_name[128], memory[40], command[SUBMIT_MAX];
    const char *argv[] = {"/bin/sh", "-c", command, NULL /* $0 */, job_name, memory, NULL};
    struct mfs_buf line;
    int rc;

    mfs_slurm_name(p->of->context, n->id, name);
    snprintf(job_name, sizeof job_name, "--job-name=%s", name);
    snprintf(memory, sizeof memory, "--mem=%lluM", (unsigned long long)mfs_slurm_mib(n->memory));
    snprintf(command, sizeof command,
             "exec sbatch --parsable --nodes=1 --ntasks=1 --exclusive --no-requeue --export=ALL "
             "--signal=B:TERM@60 --output=/dev/null \"$@\" %s --wrap \"$0\"",
             args ? args : "");
    mfs_buf_init(&line);
    rc = wrap(p->of, n, &line);
    if (rc) {
        mfs_err_set(err, rc, "%s", strerror(-rc));
    } else {
        argv[3] = mfs_buf_data(&line);
        p->run = mfs_run_begin(p->of->context, argv, &options, submitted, p, err);
        rc = p->run ? 0 : err->code;
    }
    mfs_buf_fini(&line);
    return rc;
}

void mfs_slurm_lost(struct mfs_slurm_place *p)
{
    char why[200];

    p->state = MFS_SLURM_LOST;
    snprintf(why, sizeof why,
             "its job %s has ended%s; `scontrol show job %s` tells why, as long as Slurm knows it",
             p->job, p->why[0] ? " without having run" : "", p->job);
    mfs_slurm_failed(p, -ENODEV, "", why);
}

/* ---- looking after jobs ---------------------------------------------------------------------- */

static void waits(struct mfs_slurm_place *p, const struct mfs_slurm_job *j)
{
    const struct mfs_provider_context *c = p->of->context;
    char why[MFS_PROVIDER_REASON_MAX];

    mfs_slurm_why(j, why);
    if (!strcmp(why, p->why))
        return;
    memcpy(p->why, why, sizeof why);
    c->calls->waiting(c->arg, p->node, why);
}

static void runs(struct mfs_slurm_place *p, const struct mfs_slurm_job *j)
{
    char what[MFS_PROVIDER_WHAT_MAX];

    p->state = MFS_SLURM_RUNS;
    snprintf(what, sizeof what, "job %s on %.32s", j->id, j->host);
    mfs_notices_ready(p->of->notices, p->node, what);
}

static struct mfs_slurm_place *find_job(const struct mfs_slurm *s, const struct mfs_slurm_job *j)
{
    char name[96];

    for (struct mfs_slurm_place *p = s->first; p; p = p->next) {
        if (p->state != MFS_SLURM_WAITS && p->state != MFS_SLURM_RUNS)
            continue;
        mfs_slurm_name(s->context, p->node, name);
        if (p->job[0] ? !strcmp(p->job, j->id) : !strcmp(name, j->name))
            return p;
    }
    return NULL;
}

static void see(const struct mfs_slurm *s, const struct mfs_slurm_job *j)
{
    enum mfs_slurm_phase phase = mfs_slurm_phase(j);
    struct mfs_slurm_place *p = find_job(s, j);

    if (!p || phase == MFS_SLURM_ENDED)
        return;
    p->seen = true;
    if (!p->job[0]) {
        mfs_text_copy(p->job, sizeof p->job, j->id);
        mfs_slurm_note(p);
    }
    if (p->state == MFS_SLURM_WAITS && phase == MFS_SLURM_PENDING)
        waits(p, j);
    else if (p->state == MFS_SLURM_WAITS && phase == MFS_SLURM_RUNNING)
        runs(p, j);
}

static void see_all(const struct mfs_slurm *s, const char *output)
{
    struct mfs_slurm_job j;

    for (const char *at = output; *at;) {
        size_t len = strcspn(at, "\n");

        if (!mfs_slurm_parse(at, len, &j))
            see(s, &j);
        at += len + (at[len] == '\n');
    }
}

/* Of which there is no job any more. */
static void missed(struct mfs_slurm_place *p)
{
    if (p->state == MFS_SLURM_RUNS) {
        p->state = MFS_SLURM_LOST;
        mfs_notices_ended(p->of->notices, p->node, "ended");
    } else if (p->job[0]) {
        mfs_slurm_lost(p);
    } else {
        mfs_slurm_failed(p, -ENODEV, "it had no job",
                         ""); /* an earlier cm was killed before it had */
        mfs_slurm_unlist(p);
    }
}

static void looked(void *arg, const struct mfs_err *why, const char *output)
{
    struct mfs_slurm *s = arg;
    char last[160];

    s->look = NULL;
    if (why) { /* slurmctld may be away for a while: what is not known has not ended */
        mfs_run_last_line(output, last, sizeof last);
        if (!s->failing)
            mfs_warn("slurm", "squeue %s; it said: %s", why->msg, last);
        s->failing = true;
        return;
    }
    s->failing = false;
    see_all(s, output);
    for (struct mfs_slurm_place *p = s->first, *next; p; p = next) {
        next = p->next;
        if ((p->state == MFS_SLURM_WAITS || p->state == MFS_SLURM_RUNS) && !p->seen)
            missed(p);
    }
}

/* What was submitted after this has begun is not expected in its answer. */
void mfs_slurm_look(void *arg)
{
    const struct mfs_run_options options = {.limit = LOOK_TIME, .read = true};
    struct mfs_slurm *s = arg;
    char uid[16];
    const char *argv[] = {"squeue",   "--noheader",     "--user", uid,
                          "--format", mfs_slurm_format, NULL};
    struct mfs_err err;
    bool any = false;

    if (s->look)
        return;
    for (struct mfs_slurm_place *p = s->first; p; p = p->next) {
        p->seen = p->state != MFS_SLURM_WAITS && p->state != MFS_SLURM_RUNS;
        any |= !p->seen;
    }
    if (!any)
        return;
    snprintf(uid, sizeof uid, "%u", (unsigned)geteuid());
    s->look = mfs_run_begin(s->context, argv, &options, looked, s, &err);
    if (!s->look)
        mfs_warn("slurm", "%s", err.msg);
}

/* ---- giving back ----------------------------------------------------------------------------- */

static void cancelled(void *arg, const struct mfs_err *why, const char *output)
{
    struct mfs_slurm_place *p = arg;
    struct mfs_err err;
    char last[160];

    p->run = NULL;
    mfs_run_last_line(output, last, sizeof last);
    if (why)
        mfs_err_set(&err, why->code, "scancel %s; it said: %s", why->msg, last);
    mfs_notices_released(p->of->notices, p->node, why ? &err : NULL);
    mfs_slurm_unlist(p);
}

/* By its name, which is right also where the number is not known. */
int mfs_slurm_cancel(struct mfs_slurm_place *p, struct mfs_err *err)
{
    const struct mfs_run_options options = {.limit = CANCEL_TIME, .read = true};
    char name[96], uid[16];
    const char *argv[] = {"scancel", "--quiet", "--user", uid, "--name", name, NULL};

    mfs_slurm_name(p->of->context, p->node, name);
    snprintf(uid, sizeof uid, "%u", (unsigned)geteuid());
    mfs_run_drop(p->run); /* sbatch goes on, and is too late if it has not been heard by now */
    p->run = mfs_run_begin(p->of->context, argv, &options, cancelled, p, err);
    p->state = MFS_SLURM_CANCELLED;
    return p->run ? 0 : err->code;
}
