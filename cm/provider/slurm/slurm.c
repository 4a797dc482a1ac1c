/* The Slurm provider. A node has its place in one of two ways:
 *
 * - In the allocation that `cm start` was called in (SLURM_JOB_ID) each host is a place, and the lm
 *   is a job step there: `srun --overlap`, which takes neither processors nor memory from steps of
 *   the application. The srun is a process of ours (children.h) that lives until the lm has joined.
 * - Beyond it, a node is a job of its own, whose script is the lm: submitted, looked after every
 *   MFS_SLURM_LOOK and cancelled by Slurm's commands (commands.c), or by slurmrestd (rest.c) where
 *   its URL is given. A job has a name made of the deployment's name and the node's id, and a
 *   comment made of its secret, so that one whose number could not be noted any more is found all
 *   the same.
 *
 *               srun                                    the srun ends, or the lm hangs up
 *     HOST ------------> runs in the allocation  ------------------------------> ended
 *              sbatch                 squeue: it runs             squeue: gone
 *     none ------------> job waits ----------------> job runs -----------------> ended
 *                            | squeue: gone
 *                            +--------------> failed
 *
 * What is noted of a node is "host NAME" or "job NUMBER". A node whose job has ended is not given
 * another job: its place is lost, and with it what the node held (`failed`, at each request). */
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/crypto/mac.h"
#include "base/text.h"
#include "cm/provider/options.h"
#include "cm/provider/slurm/impl.h"

/* ---- places ---------------------------------------------------------------------------------- */

static struct mfs_slurm_place *find(const struct mfs_slurm *s, uint32_t node)
{
    struct mfs_slurm_place *p = s->first;

    while (p && p->node != node)
        p = p->next;
    return p;
}

static struct mfs_slurm_place *list(struct mfs_slurm *s, uint32_t node, enum mfs_slurm_state state)
{
    struct mfs_slurm_place *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    *p = (struct mfs_slurm_place){
        .of = s, .node = node, .state = state, .seen = true, .next = s->first};
    s->first = p;
    return p;
}

void mfs_slurm_unlist(struct mfs_slurm_place *p)
{
    struct mfs_slurm_place **at = &p->of->first;

    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    mfs_timer_cancel(p->patience);
    p->of->way->drop(p, false);
    free(p);
}

/* By what was noted of the node. NULL: no memory, or (errno 0) nothing was noted. */
static struct mfs_slurm_place *take_up(struct mfs_slurm *s, const struct mfs_provider_node *n)
{
    bool host = !strncmp(n->handle, "host ", 5), job = !strncmp(n->handle, "job ", 4);
    struct mfs_slurm_place *p =
        host || job ? list(s, n->id, host ? MFS_SLURM_STEP : MFS_SLURM_WAITS) : NULL;

    if (!host && !job)
        errno = 0;
    else if (p && host)
        mfs_text_copy(p->host, sizeof p->host, n->handle + 5);
    else if (p)
        mfs_text_copy(p->job, sizeof p->job, n->handle + 4);
    return p;
}

int mfs_slurm_note(const struct mfs_slurm_place *p)
{
    const struct mfs_provider_context *c = p->of->context;
    char handle[MFS_PROVIDER_HANDLE_MAX];
    int rc = p->host[0] ? mfs_text_format(handle, sizeof handle, "host %s", p->host)
                        : mfs_text_format(handle, sizeof handle, "job %s", p->job);

    return rc ? rc : c->calls->note(c->arg, p->node, handle);
}

void mfs_slurm_failed(const struct mfs_slurm_place *p, int code, const char *what, const char *why)
{
    struct mfs_err err;

    mfs_err_set(&err, code, "%s%s%s", what, *what && *why ? ": " : "", why);
    mfs_notices_failed(p->of->notices, p->node, &err);
}

int mfs_slurm_script(const struct mfs_provider_context *c, const struct mfs_provider_node *n,
                     struct mfs_buf *out)
{
    struct mfs_lm_command lm;
    int rc = mfs_provider_command(c, n, &lm);

    rc = rc ? rc : mfs_buf_printf(out, "exec ");
    return rc ? rc : mfs_provider_quote(&lm, out);
}

/* ---- steps in the allocation ----------------------------------------------------------------- */

static bool taken(const struct mfs_slurm *s, const char *host)
{
    const struct mfs_slurm_place *p = s->first;

    while (p && strcmp(p->host, host) != 0)
        p = p->next;
    return p != NULL;
}

/* Are we in the allocation, or in a job of a node's own since cm has moved? */
static bool is_in_allocation(const struct mfs_slurm *s)
{
    const char *job = getenv("SLURM_JOB_ID");

    return s->job && job && !strcmp(s->job, job);
}

/* A cm that was started elsewhere may have outlived the allocation: its hosts are not for new
 * nodes. */
static const char *free_host(const struct mfs_slurm *s)
{
    if (s->context->moved && !is_in_allocation(s))
        return NULL;
    for (uint32_t i = 0; i < s->allocation.n; i++)
        if (!taken(s, s->allocation.host[i]))
            return s->allocation.host[i];
    return NULL;
}

#define STEP_WORDS 15

/* Words of a step on one host of the job, which takes neither processors nor memory from others. */
static void name_step(const char *job, const char *host, const char *input, const char **argv)
{
    const char *const words[STEP_WORDS] = {"srun",
                                           "--quiet",
                                           "--overlap",
                                           "--jobid",
                                           job,
                                           "--nodes=1",
                                           "--ntasks=1",
                                           "--nodelist",
                                           host,
                                           input,
                                           "--export=ALL",
                                           "--mem=0",
                                           "--cpu-bind=none",
                                           "--job-name=memefs",
                                           "--chdir=/"};

    memcpy(argv, words, sizeof words);
}

static int start_step(const struct mfs_slurm_place *p, const struct mfs_provider_node *n,
                      struct mfs_err *err)
{
    const char *argv[48] = {0};
    struct mfs_lm_command lm;
    size_t at = STEP_WORDS;
    int rc = mfs_provider_command(p->of->context, n, &lm);

    if (rc)
        return mfs_err_set(err, rc, "%s", strerror(-rc));
    static_assert(STEP_WORDS + 1 + sizeof lm.argv / sizeof *lm.argv <= sizeof argv / sizeof *argv,
                  "room for both commands");
    name_step(p->of->job, p->host, "--input=all", argv);
    argv[at++] = "--";
    for (size_t i = 0; lm.argv[i]; i++)
        argv[at++] = lm.argv[i];
    return mfs_children_start(p->of->children, n, argv, err);
}

/* As a step of its own: what is in the step of a job's script ends with the script, at once.
 * Nothing is to be done on a host that is none of the job's (salloc's), or where the job is a
 * node's. */
static uint32_t run_daemon(const struct mfs_provider_option *option, uint32_t noptions,
                           const char *out[MFS_PROVIDER_RUN_DAEMON_MAX])
{
    const struct mfs_provider_context c = {.option = option, .noptions = noptions};
    const char *job = mfs_provider_option(&c, "slurm-job"), *here = getenv("SLURM_JOB_ID"),
               *host = getenv("SLURMD_NODENAME");

    if (!job || !here || strcmp(job, here) != 0 || !host || !*host)
        return 0;
    static_assert(STEP_WORDS + 3 <= MFS_PROVIDER_RUN_DAEMON_MAX, "room for the step");
    name_step(job, host, "--input=none", out);
    out[STEP_WORDS] = "--output=none";
    out[STEP_WORDS + 1] = "--";
    out[STEP_WORDS + 2] = NULL;
    return STEP_WORDS + 2;
}

static int begin_step(struct mfs_slurm *s, const struct mfs_provider_node *n, const char *host,
                      struct mfs_err *err)
{
    struct mfs_slurm_place *p = list(s, n->id, MFS_SLURM_STEP);
    int rc;

    if (!p)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    mfs_text_copy(p->host, sizeof p->host, host);
    rc = mfs_slurm_note(p);
    rc = rc ? mfs_err_set(err, rc, "%s: %s", host, strerror(-rc)) : start_step(p, n, err);
    if (rc)
        mfs_slurm_unlist(p);
    return rc;
}

static int begin_job(struct mfs_slurm *s, const struct mfs_provider_node *n, struct mfs_err *err)
{
    struct mfs_slurm_place *p = list(s, n->id, MFS_SLURM_SUBMITTED);
    int rc = p ? s->way->submit(p, n, err) : mfs_err_set(err, -ENOMEM, "out of memory");

    if (rc && p)
        mfs_slurm_unlist(p);
    return rc;
}

/* ---- requests -------------------------------------------------------------------------------- */

static int again(struct mfs_slurm_place *p, const struct mfs_provider_node *n, struct mfs_err *err)
{
    switch (p->state) {
    case MFS_SLURM_STEP:
        return start_step(p, n, err);
    case MFS_SLURM_LOST:
        mfs_slurm_lost(p);
        return 0;
    default: /* its job is looked after, and has the same lm: its end told cm to ask */
        return mfs_err_set(err, -EALREADY, "job %s is there already", p->job);
    }
}

static int begin(struct mfs_slurm *s, const struct mfs_provider_node *n, struct mfs_err *err)
{
    struct mfs_slurm_place *p = find(s, n->id);
    const char *host;

    if (p)
        return again(p, n, err);
    p = take_up(s, n);
    if (p)
        return p->state == MFS_SLURM_STEP ? start_step(p, n, err) : 0; /* a look tells the rest */
    host = free_host(s);
    return host ? begin_step(s, n, host, err) : begin_job(s, n, err);
}

static int request(void *state, const struct mfs_provider_node *n, uint32_t count,
                   struct mfs_err *err)
{
    struct mfs_slurm *s = state;

    for (uint32_t i = 0; i < count; i++)
        if (begin(s, &n[i], err))
            mfs_notices_failed(s->notices, n[i].id, err);
    return 0;
}

static enum mfs_provided adopt(void *state, const struct mfs_provider_node *n,
                               char what[MFS_PROVIDER_WHAT_MAX])
{
    struct mfs_slurm *s = state;
    const struct mfs_slurm_place *p = take_up(s, n);

    if (p && p->state == MFS_SLURM_STEP)
        return mfs_children_adopt(s->children, n, what) ? MFS_PROVIDED_STARTED : MFS_PROVIDED_NONE;
    if (!p && !errno)
        p = list(s, n->id, MFS_SLURM_WAITS); /* it may have been submitted: its name tells */
    return p ? MFS_PROVIDED_REQUESTED : MFS_PROVIDED_NONE;
}

/* A srun must not outlive cm, nor die with it: a process beside it cancels the step of a srun that
 * is killed alone. So both are killed at one time while they are not needed any more. */
static bool joined(void *state, uint32_t node)
{
    struct mfs_slurm *s = state;
    const struct mfs_slurm_place *p = find(s, node);

    if (!p || p->state != MFS_SLURM_STEP)
        return false;
    mfs_children_drop(s->children, node);
    return true;
}

static int pass_signal(void *state, uint32_t node, int signo)
{
    const struct mfs_slurm *s = state;
    const struct mfs_slurm_place *p = find(s, node);

    if (p && p->state == MFS_SLURM_STEP)
        return signo == SIGTERM ? mfs_children_signal(s->children, node, signo) : -ENOSYS;
    return p ? -ENOSYS : -ESRCH;
}

static bool ends_with_cm(const void *state, const char *handle)
{
    return !strncmp(handle, "host ", 5) && is_in_allocation(state);
}

/* ---- giving back ----------------------------------------------------------------------------- */

static int release(void *state, const struct mfs_provider_node *n)
{
    struct mfs_slurm *s = state;
    struct mfs_slurm_place *p = find(s, n->id);

    if (!p)
        p = take_up(s, n);
    if (!p || p->state == MFS_SLURM_STEP) {
        mfs_children_drop(s->children, n->id);
        if (p)
            mfs_slurm_unlist(p);
        return 1;
    }
    mfs_slurm_cancel(p);
    return 0;
}

/* ---- the provider ---------------------------------------------------------------------------- */

static void close_slurm(void *state)
{
    struct mfs_slurm *s = state;

    while (s->first)
        mfs_slurm_unlist(s->first);
    mfs_timer_cancel(s->timer);
    s->way->close(s);
    mfs_children_destroy(s->children);
    mfs_notices_destroy(s->notices);
    mfs_hostlist_clear(&s->allocation);
    free(s);
}

static int make_tag(struct mfs_slurm *s)
{
    const char *fields[] = {"slurm", "deployment"};
    char mac[MFS_MAC_TEXT];
    int rc = mfs_mac(s->context->secret->bytes, s->context->secret->len, fields, 2, mac);

    return rc ? rc : mfs_text_format(s->tag, sizeof s->tag, "%.16s", mac);
}

static int open_slurm(const struct mfs_provider_context *c, void **state, struct mfs_err *err)
{
    const char *hosts = mfs_provider_option(c, "slurm-hosts");
    struct mfs_slurm *s = calloc(1, sizeof *s);

    if (!s)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    s->context = c;
    s->way = mfs_provider_option(c, "slurm-rest") ? &mfs_slurm_rest : &mfs_slurm_commands;
    s->job = mfs_provider_option(c, "slurm-job");
    s->notices = mfs_notices_create(c);
    s->children = mfs_children_create(c, s->notices);
    s->timer = mfs_loop_timer(c->loop, MFS_SLURM_LOOK, MFS_SLURM_LOOK, mfs_slurm_look, s);
    if (!s->notices || !s->children || !s->timer || make_tag(s))
        mfs_err_set(err, -ENOMEM, "out of memory");
    else if ((!hosts || !mfs_hostlist_parse(hosts, &s->allocation, err)) && !s->way->open(s, err))
        err->code = 0;
    if (err->code) {
        close_slurm(s);
        return err->code;
    }
    *state = s;
    return 0;
}

static const struct mfs_provider_traits traits = {
    .name = "slurm", .own_machines = true, .queue_time = 24 * 3600 * MFS_SEC};

const struct mfs_provider mfs_provider_slurm = {.traits = &traits,
                                                .options = mfs_slurm_options,
                                                .is_here = mfs_slurm_is_here,
                                                .environment = mfs_slurm_environment,
                                                .check = mfs_slurm_check,
                                                .open = open_slurm,
                                                .close = close_slurm,
                                                .adopt = adopt,
                                                .request = request,
                                                .joined = joined,
                                                .signal = pass_signal,
                                                .ends_with_cm = ends_with_cm,
                                                .run_daemon = run_daemon,
                                                .release = release};
