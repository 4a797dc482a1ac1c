/* The command line's requests about changes. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cm/change/checkpoint.h"
#include "cm/change/scale.h"
#include "net/deferred.h"
#include "proto/times.h"

#define FIGURES_TIME (5 * MFS_SEC) /* for nodes to tell figures to a new cm */
#define FIGURES_LOOK (100 * MFS_MSEC)

static_assert(2 * MFS_REPORT_EACH < FIGURES_TIME, "one report may be late");

/* A connection that waits for the report. */
struct asker {
    struct mfs_cm *cm;
    struct mfs_deferred from;
    struct mfs_msg_scale what;
    int64_t until; /* that nodes may take to tell figures */
};

static void answer(void *arg, const struct mfs_err *err, const struct mfs_scale_report *r)
{
    struct asker *a = arg;

    if (err)
        mfs_deferred_fail(&a->from, err->code, "%s", err->msg);
    else
        mfs_deferred_reply(&a->from, MFS_MSG_SCALE, r);
    free(a);
}

static void try_begin(void *arg)
{
    struct asker *a = arg;
    struct mfs_err err = {0};
    int rc = mfs_scale_begin(a->cm, &a->what, "the operator", answer, a, &err);

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
    a = malloc(sizeof *a);
    if (!a) {
        mfs_conn_fail(c, id, -ENOMEM, "out of memory");
        return;
    }
    *a = (struct asker){.cm = arg, .from = mfs_reply_later(c, id)};
    a->what = *(const struct mfs_msg_scale *)body;
    a->until = mfs_clock_mono() + FIGURES_TIME;
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
