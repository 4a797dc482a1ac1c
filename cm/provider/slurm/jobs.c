/* Nodes that are jobs: what becomes of them, however Slurm is spoken to. A look tells of all jobs.
 * What it does not tell, because Slurm does not answer, has not ended; a job that Slurm does not
 * know any more has. A submission that fails may have left a job all the same (its answer got
 * lost): it is cancelled before the failure is told. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "cm/provider/slurm/impl.h"

#define PATIENCE   (8 * MFS_SEC) /* with a submission of a node that is to be given back */
#define LOOKS_MOST 10            /* for a job that an earlier cm may have submitted */

static_assert(PATIENCE + MFS_SLURM_CANCEL_TIME < MFS_RELEASE_TIME,
              "the provider says first what is wrong");

/* ---- giving back ----------------------------------------------------------------------------- */

/* Tells why it was refused, and what that may have left. */
static void refused(struct mfs_slurm_place *p, bool left)
{
    char name[96], more[300] = "";

    mfs_slurm_name(p->of->context, p->node, name);
    if (left)
        snprintf(more, sizeof more,
                 "a job may wait all the same, which `scancel --name %s` cancels", name);
    mfs_slurm_failed(p, p->refusal.code, p->refusal.msg, more);
    mfs_slurm_unlist(p);
}

static void released(struct mfs_slurm_place *p, const struct mfs_err *why)
{
    struct mfs_err err;
    char name[96];

    mfs_slurm_name(p->of->context, p->node, name);
    if (why && p->job[0])
        mfs_err_set(&err, why->code, "job %s may still run: %s", p->job, why->msg);
    else if (why)
        mfs_err_set(&err, why->code, "a job named %s may still run: %s", name, why->msg);
    mfs_notices_released(p->of->notices, p->node, why ? &err : NULL);
    mfs_slurm_unlist(p);
}

void mfs_slurm_cancelled(struct mfs_slurm_place *p, const struct mfs_err *why)
{
    if (p->state == MFS_SLURM_REFUSED)
        refused(p, why != NULL);
    else
        released(p, why);
}

static void cancel_now(struct mfs_slurm_place *p)
{
    struct mfs_err err;

    p->of->way->drop(p, true);
    if (p->of->way->cancel(p, &err))
        mfs_slurm_cancelled(p, &err);
}

static void lose_patience(void *arg)
{
    struct mfs_slurm_place *p = arg;

    p->patience = NULL;
    p->state = MFS_SLURM_CANCELLED;
    cancel_now(p);
}

/* A job whose submission is under way has to be there before it can be cancelled. */
void mfs_slurm_cancel(struct mfs_slurm_place *p)
{
    switch (p->state) {
    case MFS_SLURM_CANCELLED:
    case MFS_SLURM_UNWANTED:
        return;
    case MFS_SLURM_REFUSED: /* which is being cancelled */
        p->state = MFS_SLURM_CANCELLED;
        return;
    case MFS_SLURM_SUBMITTED:
        p->patience = mfs_loop_timer(p->of->context->loop, PATIENCE, 0, lose_patience, p);
        if (p->patience) {
            p->state = MFS_SLURM_UNWANTED;
            return;
        }
        break;
    default:
        break;
    }
    p->state = MFS_SLURM_CANCELLED;
    cancel_now(p);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static void not_submitted(struct mfs_slurm_place *p, const struct mfs_err *why)
{
    p->refusal = *why;
    p->state = MFS_SLURM_REFUSED;
    if (why->code == -EREMOTEIO || why->code == -EACCES || why->code == -ENOTCONN)
        refused(p, false);
    else
        cancel_now(p);
}

void mfs_slurm_submitted(struct mfs_slurm_place *p, const struct mfs_err *why, const char *job)
{
    if (!why)
        mfs_text_copy(p->job, sizeof p->job, job);
    if (p->state == MFS_SLURM_UNWANTED) {
        mfs_timer_cancel(p->patience);
        lose_patience(p);
    } else if (why) {
        not_submitted(p, why);
    } else {
        p->state = MFS_SLURM_WAITS;
        p->seen = true; /* by the look that is under way, which may have begun before */
        if (mfs_slurm_note(p))
            mfs_warn("slurm", "job %s of node %u could not be noted", p->job, p->node);
    }
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

bool mfs_slurm_is_expected(const struct mfs_slurm_place *p)
{
    return p->state == MFS_SLURM_WAITS || p->state == MFS_SLURM_RUNS;
}

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

/* Another deployment of this name may have jobs of the same names: the tag tells them apart. */
static struct mfs_slurm_place *find_job(const struct mfs_slurm *s, const struct mfs_slurm_job *j)
{
    char name[96];

    for (struct mfs_slurm_place *p = s->first; p; p = p->next) {
        if (!mfs_slurm_is_expected(p))
            continue;
        mfs_slurm_name(s->context, p->node, name);
        if (p->job[0] ? !strcmp(p->job, j->id)
                      : !strcmp(name, j->name) && !strcmp(s->tag, j->comment))
            return p;
    }
    return NULL;
}

void mfs_slurm_see(const struct mfs_slurm *s, const struct mfs_slurm_job *j)
{
    enum mfs_slurm_phase phase = mfs_slurm_phase(j->state);
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

/* Of which there is no job any more; or not yet, when an earlier cm was killed while it submitted
 * one: what it began goes on for a while. */
static void missed(struct mfs_slurm_place *p)
{
    if (p->state == MFS_SLURM_RUNS) {
        p->state = MFS_SLURM_LOST;
        mfs_notices_ended(p->of->notices, p->node, "ended");
    } else if (p->job[0]) {
        mfs_slurm_lost(p);
    } else if (++p->missed >= LOOKS_MOST) {
        mfs_slurm_failed(p, -ENODEV, "it had no job", "");
        mfs_slurm_unlist(p);
    }
}

void mfs_slurm_looked(struct mfs_slurm *s, const struct mfs_err *why)
{
    s->looking = false;
    if (why) { /* Slurm may be away for a while: what is not known has not ended */
        if (!s->failing)
            mfs_warn("slurm", "jobs can't be looked after, and count as they were: %s", why->msg);
        s->failing = true;
        return;
    }
    if (s->failing)
        mfs_info("slurm", "jobs are looked after again");
    s->failing = false;
    for (struct mfs_slurm_place *p = s->first, *next; p; p = next) {
        next = p->next;
        if (mfs_slurm_is_expected(p) && !p->seen)
            missed(p);
    }
}

/* What was submitted after this has begun is not expected in its answer. */
void mfs_slurm_look(void *arg)
{
    struct mfs_slurm *s = arg;
    struct mfs_err err;
    bool any = false;

    if (s->looking)
        return;
    for (struct mfs_slurm_place *p = s->first; p; p = p->next) {
        p->seen = !mfs_slurm_is_expected(p);
        p->asked = false;
        any |= !p->seen;
    }
    if (!any)
        return;
    s->looking = true;
    if (s->way->look(s, &err))
        mfs_slurm_looked(s, &err);
}
