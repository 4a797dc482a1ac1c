/* Slurm by slurmrestd. A look asks for each job by its number, one after the other, as a cluster
 * has many jobs of others, which can't be left out of a list. The list is asked for only where
 * that does not do: the number of a job is not known; or slurmrestd does not tell why it has
 * nothing of a job, as that of Slurm 22.05. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "cm/provider/slurm/impl.h"
#include "cm/provider/slurm/link.h"
#include "cm/provider/slurm/rest_text.h"
#include "proto/secret.h"

#define SAME_NAME_MOST 8         /* jobs of one node */
#define CANCEL_AGAIN   (MFS_SEC) /* after a failure */
#define SLURM_SAYS                                                                                 \
    2000 /* slurm_errno.h: numbers from here on are of what was asked, not of the way there */

struct rest {
    struct mfs_slurm_link *link;
    struct mfs_slurm_call *look;    /* the request of the look that is under way */
    int64_t until;                  /* its end */
    bool list;                      /* the list is needed */
    char asked[MFS_SLURM_JOB_MAX];  /* the job that is asked for */
    bool heard;                     /* its answer says something of it */
    char ending[MFS_SLURM_JOB_MAX]; /* a job that ends soon, and is to be told; "": none */
};

/* What is done for a place: one request after the other. */
struct doing {
    struct mfs_slurm_place *of;
    struct mfs_slurm_call *call;
    struct mfs_buf script;
    uint64_t mib;
    int64_t until;
    struct mfs_timer *again;
    char job[SAME_NAME_MOST][MFS_SLURM_JOB_MAX]; /* still to be cancelled */
    unsigned njobs;
};

static struct rest *rest_of(const struct mfs_slurm *s)
{
    return s->link;
}

static struct doing *start(struct mfs_slurm_place *p, int64_t limit, struct mfs_err *err)
{
    struct doing *d = calloc(1, sizeof *d);

    if (!d) {
        mfs_err_set(err, -ENOMEM, "out of memory");
        return NULL;
    }
    d->of = p;
    d->until = mfs_clock_mono() + limit;
    mfs_buf_init(&d->script);
    p->doing = d;
    return d;
}

static void drop(struct mfs_slurm_place *p, bool end)
{
    struct doing *d = p->doing;

    (void)end;
    if (!d)
        return;
    p->doing = NULL;
    mfs_slurm_link_drop(d->call);
    mfs_timer_cancel(d->again);
    mfs_buf_fini(&d->script);
    free(d);
}

/* Reads an answer; what Slurm refuses is a failure, too. 0 or a negative errno with the reason. */
static int read_answer(const struct mfs_err *why, const char *text, size_t len,
                       struct mfs_slurm_answer *a, struct mfs_err *err)
{
    memset(a, 0, sizeof *a);
    if (why) {
        *err = *why;
        return why->code;
    }
    if (mfs_slurm_rest_read(text, len, NULL, NULL, a, err))
        return mfs_err_prefix(err, "slurmrestd");
    return a->error[0] ? mfs_err_set(err, -EREMOTEIO, "%s", a->error) : 0;
}

/* Of what asks for jobs: an answer without any list of them tells of none. */
static int read_jobs(const struct mfs_err *why, const char *text, size_t len,
                     struct mfs_slurm_answer *a, struct mfs_err *err)
{
    int rc = read_answer(why, text, len, a, err);

    return rc || a->has_jobs
               ? rc
               : mfs_err_set(err, -EPROTO, "slurmrestd: its answer has no list of jobs");
}

/* ---- submitting ------------------------------------------------------------------------------ */

/* What an lm may need of cm's environment. Others are nobody's business on the way. */
static bool is_passed_on(const char *variable)
{
    static const char *const names[] = {
        "PATH",   "HOME", "USER",   "LOGNAME",         "SHELL",          "LANG",
        "LC_ALL", "TZ",   "TMPDIR", "XDG_RUNTIME_DIR", "LD_LIBRARY_PATH"};
    size_t len = strcspn(variable, "=");

    if (!strncmp(variable, "MEMEFS_", 7))
        return strncmp(variable, MFS_SECRET_VARIABLE "=", sizeof MFS_SECRET_VARIABLE) != 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == len && !strncmp(names[i], variable, len))
            return true;
    return false;
}

/* `secret` is its last line. NULL: ENOMEM. */
static const char **make_environment(const char *secret)
{
    const char **list;
    size_t n = 0;

    for (char **at = environ; *at; at++)
        n += is_passed_on(*at);
    list = calloc(n + 2, sizeof *list);
    if (!list)
        return NULL;
    n = 0;
    for (char **at = environ; *at; at++)
        if (is_passed_on(*at))
            list[n++] = *at;
    list[n] = secret;
    return list;
}

static int submission_body(void *arg, int version, struct mfs_buf *out)
{
    const struct doing *d = arg;
    const struct mfs_slurm *s = d->of->of;
    const struct mfs_provider_context *c = s->context;
    char name[96], line[sizeof(struct mfs_provider_input)];
    struct mfs_slurm_submission job = {.name = name,
                                       .comment = s->tag,
                                       .script = mfs_buf_data(&d->script),
                                       .directory = "/",
                                       .partition = mfs_provider_option(c, "slurm-partition"),
                                       .account = mfs_provider_option(c, "slurm-account"),
                                       .minutes = mfs_provider_option(c, "slurm-time"),
                                       .mib = d->mib};
    struct mfs_provider_input in;
    const char **environment;
    int rc = mfs_provider_input(c, &in);

    if (rc)
        return rc;
    mfs_slurm_name(c, d->of->node, name);
    snprintf(line, sizeof line, "%s=%s", in.input.name, in.input.value);
    environment = make_environment(line);
    job.environment = environment;
    rc = environment ? mfs_slurm_rest_body(version, &job, out) : -ENOMEM;
    free(environment);
    explicit_bzero(line, sizeof line);
    mfs_provider_input_wipe(&in);
    return rc;
}

static void submitted(void *arg, const struct mfs_err *why, const char *text, size_t len)
{
    struct mfs_slurm_place *p = ((struct doing *)arg)->of;
    struct mfs_slurm_answer a;
    struct mfs_err err;
    int rc = read_answer(why, text, len, &a, &err);

    ((struct doing *)arg)->call = NULL;
    drop(p, false);
    if (a.job[0]) /* an error beside it says only why it waits */
        rc = 0;
    else if (!rc)
        rc = mfs_err_set(&err, -EPROTO, "slurmrestd: its answer has no number of a job");
    mfs_slurm_submitted(p, rc ? &err : NULL, a.job);
}

static int submit(struct mfs_slurm_place *p, const struct mfs_provider_node *n, struct mfs_err *err)
{
    const struct mfs_slurm_request r = {.method = "POST",
                                        .path = "job/submit",
                                        .limit = MFS_SLURM_SUBMIT_TIME,
                                        .body = submission_body};
    struct doing *d = start(p, MFS_SLURM_SUBMIT_TIME, err);
    int rc;

    if (!d)
        return err->code;
    d->mib = mfs_slurm_mib(n->memory);
    rc = mfs_buf_printf(&d->script, "#!/bin/sh\n");
    rc = rc ? rc : mfs_slurm_script(p->of->context, n, &d->script);
    rc = rc ? rc : mfs_buf_append(&d->script, "\n", 2);
    if (rc)
        mfs_err_set(err, rc, "%s", strerror(-rc));
    else
        d->call = mfs_slurm_link_begin(rest_of(p->of)->link, &r, submitted, d, err);
    if (d->call)
        return 0;
    drop(p, false);
    return err->code;
}

/* ---- cancelling ------------------------------------------------------------------------------ */

static void cancel_next(struct doing *d);
static void cancel_all(struct doing *d);

static void end_cancel(struct doing *d, const struct mfs_err *why)
{
    struct mfs_slurm_place *p = d->of;

    d->call = NULL;
    drop(p, false);
    mfs_slurm_cancelled(p, why);
}

static void cancel_again(void *arg)
{
    struct doing *d = arg;

    d->again = NULL;
    cancel_all(d);
}

/* A job that is left costs its user: what does not reach Slurm is tried again as long as there is
 * time. (Not after a submission that failed: its lm might have been taken meanwhile; as it is, it
 * finds no cm that takes it.) `number` is Slurm's, 0 for none. */
static void fail_cancel(struct doing *d, int64_t number, const struct mfs_err *why)
{
    struct mfs_loop *loop = d->of->of->context->loop;

    d->call = NULL;
    if (d->of->state == MFS_SLURM_CANCELLED && number < SLURM_SAYS &&
        mfs_clock_mono() + 2 * CANCEL_AGAIN < d->until)
        d->again = mfs_loop_timer(loop, CANCEL_AGAIN, 0, cancel_again, d);
    if (!d->again)
        end_cancel(d, why);
}

static void begin(struct doing *d, const char *method, const char *path, mfs_slurm_link_done *done)
{
    const struct mfs_slurm_request r = {
        .method = method, .path = path, .limit = d->until - mfs_clock_mono()};
    struct mfs_err err;

    d->call = mfs_slurm_link_begin(rest_of(d->of->of)->link, &r, done, d, &err);
    if (!d->call)
        end_cancel(d, &err);
}

/* One that Slurm does not know any more has ended. */
static void deleted(void *arg, const struct mfs_err *why, const char *text, size_t len)
{
    struct doing *d = arg;
    struct mfs_slurm_answer a;
    struct mfs_err err;
    int rc = read_answer(why, text, len, &a, &err);

    d->call = NULL;
    if (rc && a.number != MFS_SLURM_NO_SUCH_JOB) {
        fail_cancel(d, a.number, &err);
        return;
    }
    d->njobs--;
    cancel_next(d);
}

static void cancel_next(struct doing *d)
{
    char path[64];

    if (!d->njobs) {
        end_cancel(d, NULL);
        return;
    }
    snprintf(path, sizeof path, "job/%s", d->job[d->njobs - 1]);
    begin(d, "DELETE", path, deleted);
}

static void add_named(void *arg, const struct mfs_slurm_job *j)
{
    struct doing *d = arg;
    const struct mfs_slurm *s = d->of->of;
    char name[96];

    mfs_slurm_name(s->context, d->of->node, name);
    if (strcmp(name, j->name) || strcmp(s->tag, j->comment) || d->njobs == SAME_NAME_MOST ||
        mfs_slurm_phase(j->state) == MFS_SLURM_ENDED)
        return;
    mfs_text_copy(d->job[d->njobs++], sizeof d->job[0], j->id);
}

static void listed_to_cancel(void *arg, const struct mfs_err *why, const char *text, size_t len)
{
    struct doing *d = arg;
    struct mfs_slurm_answer a;
    struct mfs_err err;

    d->call = NULL;
    if (read_jobs(why, text, len, &a, &err)) {
        fail_cancel(d, a.number, &err);
        return;
    }
    mfs_slurm_rest_read(text, len, add_named, d, &a, &err);
    cancel_next(d);
}

static void cancel_all(struct doing *d)
{
    d->njobs = 0;
    if (!d->of->job[0]) {
        begin(d, "GET", "jobs", listed_to_cancel);
        return;
    }
    mfs_text_copy(d->job[d->njobs++], sizeof d->job[0], d->of->job);
    cancel_next(d);
}

/* The first request goes out from the loop: it may fail at once, which must not be told inside this
 * call. */
static int cancel(struct mfs_slurm_place *p, struct mfs_err *err)
{
    struct doing *d = start(p, MFS_SLURM_CANCEL_TIME, err);

    if (!d)
        return err->code;
    d->again = mfs_loop_timer(p->of->context->loop, 0, 0, cancel_again, d);
    if (d->again)
        return 0;
    drop(p, false);
    return mfs_err_set(err, -ENOMEM, "out of memory");
}

/* ---- looking --------------------------------------------------------------------------------- */

static void look_on(struct mfs_slurm *s);

static void end_look(struct mfs_slurm *s, const struct mfs_err *why)
{
    rest_of(s)->look = NULL;
    mfs_slurm_looked(s, why);
}

static int ask(struct mfs_slurm *s, const char *method, const char *path, mfs_slurm_link_done *done,
               struct mfs_err *err)
{
    struct rest *r = rest_of(s);
    const struct mfs_slurm_request request = {
        .method = method, .path = path, .limit = r->until - mfs_clock_mono()};

    r->look = mfs_slurm_link_begin(r->link, &request, done, s, err);
    return r->look ? 0 : err->code;
}

/* Versions that can't have Slurm tell the script of a job (--signal=B:TERM@60) leave it to us. */
static bool is_to_be_told(const struct mfs_slurm *s, const struct mfs_slurm_job *j)
{
    return mfs_slurm_link_version(rest_of(s)->link) < MFS_SLURM_API_TYPED && j->end &&
           mfs_slurm_phase(j->state) == MFS_SLURM_RUNNING &&
           mfs_clock_real().tv_sec + MFS_SLURM_WARNING >= j->end;
}

static void see(void *arg, const struct mfs_slurm_job *j)
{
    struct mfs_slurm *s = arg;

    rest_of(s)->heard |= !strcmp(rest_of(s)->asked, j->id);
    mfs_slurm_see(s, j);
    for (struct mfs_slurm_place *p = s->first; p && is_to_be_told(s, j); p = p->next)
        if (mfs_slurm_is_expected(p) && !strcmp(p->job, j->id) && !p->warned) {
            p->warned = true;
            mfs_text_copy(rest_of(s)->ending, sizeof rest_of(s)->ending, j->id);
        }
}

static void listed(void *arg, const struct mfs_err *why, const char *text, size_t len)
{
    struct mfs_slurm *s = arg;
    struct mfs_slurm_answer a;
    struct mfs_err err;
    int rc = read_jobs(why, text, len, &a, &err);

    if (!rc)
        mfs_slurm_rest_read(text, len, see, s, &a, &err);
    end_look(s, rc ? &err : NULL);
}

/* Of one job. That Slurm says no word of it, or not why, is not the end of it. */
static void saw(void *arg, const struct mfs_err *why, const char *text, size_t len)
{
    struct mfs_slurm *s = arg;
    struct mfs_slurm_answer a;
    struct mfs_err err;
    int rc = read_answer(why, text, len, &a, &err);

    rest_of(s)->look = NULL;
    rest_of(s)->heard = false;
    if (rc && rc != -EREMOTEIO) {
        end_look(s, &err);
        return;
    }
    if (!rc)
        mfs_slurm_rest_read(text, len, see, s, &a, &err);
    if (!rest_of(s)->heard && a.number != MFS_SLURM_NO_SUCH_JOB)
        rest_of(s)->list = true;
    look_on(s);
}

static struct mfs_slurm_place *next_to_ask(const struct mfs_slurm *s)
{
    struct mfs_slurm_place *p = s->first;

    while (p && (!mfs_slurm_is_expected(p) || p->seen || p->asked || !p->job[0]))
        p = p->next;
    return p;
}

static bool needs_list(const struct mfs_slurm *s)
{
    bool any = rest_of(s)->list;

    for (const struct mfs_slurm_place *p = s->first; p; p = p->next)
        any |= mfs_slurm_is_expected(p) && !p->seen && !p->job[0];
    return any;
}

static void told(void *arg, const struct mfs_err *why, const char *text, size_t len)
{
    struct mfs_slurm *s = arg;
    struct mfs_slurm_answer a;
    struct mfs_err err;

    rest_of(s)->look = NULL;
    if (read_answer(why, text, len, &a, &err))
        mfs_warn("slurm", "a job that ends soon could not be told: %s", err.msg);
    look_on(s);
}

static int tell(struct mfs_slurm *s, struct mfs_err *err)
{
    struct rest *r = rest_of(s);
    char path[64];

    snprintf(path, sizeof path, "job/%s?signal=TERM", r->ending);
    r->ending[0] = '\0';
    return ask(s, "DELETE", path, told, err);
}

/* Asks for the next one. 1: there is nothing to ask for any more. */
static int ask_next(struct mfs_slurm *s, struct mfs_err *err)
{
    struct mfs_slurm_place *p = next_to_ask(s);
    char path[64];

    if (rest_of(s)->ending[0])
        return tell(s, err);
    if (!p)
        return needs_list(s) ? ask(s, "GET", "jobs", listed, err) : 1;
    p->asked = true;
    mfs_text_copy(rest_of(s)->asked, sizeof rest_of(s)->asked, p->job);
    snprintf(path, sizeof path, "job/%s", p->job);
    return ask(s, "GET", path, saw, err);
}

static void look_on(struct mfs_slurm *s)
{
    struct mfs_err err;
    int rc = ask_next(s, &err);

    if (rc)
        end_look(s, rc < 0 ? &err : NULL);
}

static int look(struct mfs_slurm *s, struct mfs_err *err)
{
    int rc;

    rest_of(s)->until = mfs_clock_mono() + MFS_SLURM_LOOK_TIME;
    rest_of(s)->list = false;
    rest_of(s)->ending[0] = '\0';
    rc = ask_next(s, err);
    return rc < 0 ? rc : 0; /* jobs are expected, or there would be no look */
}

/* ---- the way --------------------------------------------------------------------------------- */

static int open_rest(struct mfs_slurm *s, struct mfs_err *err)
{
    const char *url = mfs_provider_option(s->context, "slurm-rest");
    struct rest *r = calloc(1, sizeof *r);

    if (!r)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    r->link = mfs_slurm_link_create(s->context->loop, url,
                                    mfs_provider_option(s->context, "slurm-token-file"), err);
    if (!r->link) {
        free(r);
        return err->code;
    }
    s->link = r;
    return 0;
}

static void close_rest(struct mfs_slurm *s)
{
    struct rest *r = s->link;

    if (!r)
        return;
    mfs_slurm_link_destroy(r->link);
    free(r);
    s->link = NULL;
}

const struct mfs_slurm_way mfs_slurm_rest = {.open = open_rest,
                                             .close = close_rest,
                                             .submit = submit,
                                             .look = look,
                                             .cancel = cancel,
                                             .drop = drop};
