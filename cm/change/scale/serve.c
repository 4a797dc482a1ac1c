/* The command line's requests about changes. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cm/change/checkpoint.h"
#include "cm/change/scale/scale.h"
#include "net/deferred.h"
#include "proto/times.h"

#define FIGURES_TIME (5 * MFS_SEC) /* for nodes to tell figures to a new cm */
#define FIGURES_LOOK (100 * MFS_MSEC)

static_assert(2 * MFS_REPORT_EACH < FIGURES_TIME, "one report may be late");

/* A connection that waits for the report. */
struct asker {
    struct mfs_cm *cm;
    struct mfs_deferred from;
    struct mfs_msg_scale what; /* its list is ours */
    int64_t until;             /* that nodes may take to tell figures */
};

static void asker_free(struct asker *a)
{
    if (a)
        free(a->what.node);
    free(a);
}

static struct asker *asker_create(struct mfs_cm *cm, const struct mfs_msg_scale *what)
{
    struct asker *a = calloc(1, sizeof *a);

    if (!a)
        return NULL;
    a->cm = cm;
    a->what = *what;
    a->what.node = calloc(what->nnodes + 1, sizeof *what->node);
    if (!a->what.node) {
        free(a);
        return NULL;
    }
    if (what->nnodes)
        memcpy(a->what.node, what->node, what->nnodes * sizeof *what->node);
    a->until = mfs_clock_mono() + FIGURES_TIME;
    return a;
}

static void answer(void *arg, const struct mfs_err *err, const struct mfs_scale_report *r)
{
    struct asker *a = arg;

    bool as_asked = err && err->code == -ECANCELED && r && !strcmp(a->what.how, MFS_SCALE_CANCEL);

    if (err && !as_asked)
        mfs_deferred_fail(&a->from, err->code, "%s", err->msg);
    else
        mfs_deferred_reply(&a->from, MFS_MSG_SCALE, r);
    asker_free(a);
}

/* Of many nodes the first ones. */
static void name_cause(const struct mfs_msg_scale *what, char *out, size_t n)
{
    size_t at = (size_t)snprintf(out, n, "the operator%s%s", what->nnodes ? " (" : "",
                                 what->nnodes ? what->how : "");

    for (uint32_t i = 0; i < what->nnodes && at < n; i++)
        at += (size_t)snprintf(out + at, n - at, " %s", what->node[i].name);
    if (what->nnodes && at < n)
        snprintf(out + at, n - at, "%s%s)", what->host[0] ? " by one on " : "", what->host);
}

static void try_begin(void *arg)
{
    struct asker *a = arg;
    struct mfs_err err = {0};
    char who[MFS_TEXT_MAX];
    int rc;

    name_cause(&a->what, who, sizeof who);
    rc = mfs_scale_begin(a->cm, &a->what, who, answer, a, &err);

    if (rc == -EAGAIN && mfs_clock_mono() < a->until &&
        mfs_loop_timer(a->cm->loop, FIGURES_LOOK, 0, try_begin, a))
        return;
    if (rc)
        answer(a, &err, NULL);
}

void mfs_scale_on_scale(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    struct asker *a;

    if (strcmp(mfs_conn_role(c), "cli")) {
        mfs_conn_fail(c, id, -EPERM, "only an operator may change the nodes");
        return;
    }
    a = asker_create(arg, body);
    if (!a) {
        mfs_conn_fail(c, id, -ENOMEM, "out of memory");
        return;
    }
    a->from = mfs_reply_later(c, id);
    try_begin(a);
}

void mfs_scale_on_progress(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    struct mfs_progress p;

    (void)body;
    if (mfs_checkpoint_busy(arg) && !mfs_cm_changing(arg)) /* else it waits */
        mfs_checkpoint_progress(arg, &p);
    else
        mfs_scale_progress(arg, &p);
    mfs_conn_reply(c, MFS_MSG_PROGRESS, id, &p);
}
