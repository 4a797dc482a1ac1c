/* Slurm by its own commands, as every cluster has them, configured and allowed to its users. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cm/provider/run.h"
#include "cm/provider/slurm/impl.h"

#define SUBMIT_MAX 1024 /* bytes of its line: --slurm-args has up to 511 */

static void last_words(struct mfs_err *err, const char *command, const struct mfs_err *why,
                       const char *output)
{
    char last[160];

    mfs_run_last_line(output, last, sizeof last);
    mfs_err_set(err, why->code, "%s %s; it said: %s", command, why->msg, last);
}

static void drop(struct mfs_slurm_place *p, bool end)
{
    if (p->doing && end)
        mfs_run_kill(p->doing);
    mfs_run_drop(p->doing);
    p->doing = NULL;
}

/* ---- sbatch ---------------------------------------------------------------------------------- */

static void submitted(void *arg, const struct mfs_err *why, const char *output)
{
    struct mfs_slurm_place *p = arg;
    char job[MFS_SLURM_JOB_MAX], last[160];
    struct mfs_err err;

    p->doing = NULL;
    if (!why && !mfs_slurm_number(output, job)) {
        mfs_slurm_submitted(p, NULL, job);
        return;
    }
    mfs_run_last_line(output, last, sizeof last);
    if (!why)
        mfs_err_set(&err, -EPROTO, "%s: is no number of a job", last);
    else
        mfs_err_set(&err, why->code, "%s", last[0] ? last : why->msg);
    mfs_slurm_submitted(p, &err, "");
}

/* The lm's command line as one word for sbatch's own shell. */
static int wrap(const struct mfs_slurm *s, const struct mfs_provider_node *n, struct mfs_buf *out)
{
    int rc = mfs_slurm_script(s->context, n, out);

    return rc ? rc : mfs_buf_append(out, "", 1);
}

/* Arguments of sbatch for an option of ours. */
static size_t add(const struct mfs_slurm *s, const char *option, const char *argument,
                  char out[MFS_TEXT_MAX], const char **argv)
{
    const char *value = mfs_provider_option(s->context, option);

    if (!value || mfs_text_format(out, MFS_TEXT_MAX, "%s=%s", argument, value))
        return 0;
    *argv = out;
    return 1;
}

/* The operator's arguments are read by a shell, as those of exec; the last of several counts. */
static int submit(struct mfs_slurm_place *p, const struct mfs_provider_node *n, struct mfs_err *err)
{
    const struct mfs_run_options options = {
        .limit = MFS_SLURM_SUBMIT_TIME, .read = true, .secret = true};
    const char *args = mfs_provider_option(p->of->context, "slurm-args");
    char name[96], job_name[128], memory[40], command[SUBMIT_MAX];
    char partition[MFS_TEXT_MAX], account[MFS_TEXT_MAX], minutes[MFS_TEXT_MAX];
    const char *argv[] = {"/bin/sh", "-c", command, NULL /* $0 */, job_name,
                          memory,    NULL, NULL,    NULL,          NULL};
    struct mfs_buf line;
    size_t at = 6;
    int rc;

    mfs_slurm_name(p->of->context, n->id, name);
    snprintf(job_name, sizeof job_name, "--job-name=%s", name);
    snprintf(memory, sizeof memory, "--mem=%lluM", (unsigned long long)mfs_slurm_mib(n->memory));
    at += add(p->of, "slurm-partition", "--partition", partition, &argv[at]);
    at += add(p->of, "slurm-account", "--account", account, &argv[at]);
    add(p->of, "slurm-time", "--time", minutes, &argv[at]);
    snprintf(command, sizeof command,
             "exec sbatch --parsable --nodes=1 --ntasks=1 --exclusive --no-requeue --export=ALL "
             "--signal=" MFS_SLURM_SIGNAL " --output=/dev/null \"$@\" %s --comment=%s --wrap "
             "\"$0\"",
             args ? args : "", p->of->tag);
    mfs_buf_init(&line);
    rc = wrap(p->of, n, &line);
    if (rc) {
        mfs_err_set(err, rc, "%s", strerror(-rc));
    } else {
        argv[3] = mfs_buf_data(&line);
        p->doing = mfs_run_begin(p->of->context, argv, &options, submitted, p, err);
        rc = p->doing ? 0 : err->code;
    }
    mfs_buf_fini(&line);
    return rc;
}

/* ---- squeue ---------------------------------------------------------------------------------- */

static void looked(void *arg, const struct mfs_err *why, const char *output)
{
    struct mfs_slurm *s = arg;
    struct mfs_slurm_job j;
    struct mfs_err err;

    s->link = NULL;
    if (why) {
        last_words(&err, "squeue", why, output);
        mfs_slurm_looked(s, &err);
        return;
    }
    for (const char *at = output; *at;) {
        size_t len = strcspn(at, "\n");

        if (!mfs_slurm_parse(at, len, &j))
            mfs_slurm_see(s, &j);
        at += len + (at[len] == '\n');
    }
    mfs_slurm_looked(s, NULL);
}

static int look(struct mfs_slurm *s, struct mfs_err *err)
{
    const struct mfs_run_options options = {.limit = MFS_SLURM_LOOK_TIME, .read = true};
    char uid[16];
    const char *argv[] = {"squeue",   "--noheader",     "--user", uid,
                          "--format", mfs_slurm_format, NULL};

    snprintf(uid, sizeof uid, "%u", (unsigned)geteuid());
    s->link = mfs_run_begin(s->context, argv, &options, looked, s, err);
    return s->link ? 0 : err->code;
}

/* ---- scancel --------------------------------------------------------------------------------- */

static void cancelled(void *arg, const struct mfs_err *why, const char *output)
{
    struct mfs_slurm_place *p = arg;
    struct mfs_err err;

    p->doing = NULL;
    if (why)
        last_words(&err, "scancel", why, output);
    mfs_slurm_cancelled(p, why ? &err : NULL);
}

/* Jobs of the name, of which ours is that with the number or the tag. None: it has ended. */
static const char cancel_script[] =
    "list=$(squeue --noheader --user \"$1\" --name \"$2\" --format '%i %k') || exit\n"
    "jobs=$(printf '%s\\n' \"$list\" | while read -r job tag; do\n"
    "    if [ \"$job\" = \"$3\" ] || [ \"$tag\" = \"$4\" ]; then echo \"$job\"; fi\n"
    "done)\n"
    "[ -z \"$jobs\" ] || exec scancel --quiet $jobs\n";

static int cancel(struct mfs_slurm_place *p, struct mfs_err *err)
{
    const struct mfs_run_options options = {.limit = MFS_SLURM_CANCEL_TIME, .read = true};
    char name[96], uid[16];
    const char *argv[] = {"/bin/sh", "-c",   cancel_script, "scancel", uid,
                          name,      p->job, p->of->tag,    NULL};

    mfs_slurm_name(p->of->context, p->node, name);
    snprintf(uid, sizeof uid, "%u", (unsigned)geteuid());
    p->doing = mfs_run_begin(p->of->context, argv, &options, cancelled, p, err);
    return p->doing ? 0 : err->code;
}

/* ---- the way --------------------------------------------------------------------------------- */

static int open_commands(struct mfs_slurm *s, struct mfs_err *err)
{
    (void)s;
    (void)err;
    return 0;
}

static void close_commands(struct mfs_slurm *s)
{
    mfs_run_drop(s->link); /* the look that is under way */
    s->link = NULL;
}

const struct mfs_slurm_way mfs_slurm_commands = {.open = open_commands,
                                                 .close = close_commands,
                                                 .submit = submit,
                                                 .look = look,
                                                 .cancel = cancel,
                                                 .drop = drop};
