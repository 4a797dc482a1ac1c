/* A step of a copy: its work, and the request for it. */
#include "lm/agent/partitions/copy_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "lm/jobs/job_threads.h"

#define AREA "move"

struct mfs_copy_job *mfs_copy_job_create(struct mfs_agent_copy *c, void (*run)(struct mfs_job *),
                                         void (*done)(struct mfs_job *))
{
    struct mfs_copy_job *j = calloc(1, sizeof *j);

    if (j)
        *j = (struct mfs_copy_job){.job = {run, done, NULL}, .copy = c};
    return j;
}

void mfs_copy_report_failed(struct mfs_agent_copy *c, const struct mfs_err *err)
{
    if (err->code == -ENOSPC) /* memory was taken while it was planned */
        mfs_warn(AREA, "%s", err->msg);
    else
        mfs_error(AREA, "%s", err->msg);
    mfs_deferred_fail(&c->asker, err->code, "node %u: %s", c->agent->opts.node, err->msg);
}

void mfs_copy_fail(struct mfs_agent_copy *c, const struct mfs_err *err)
{
    mfs_copy_report_failed(c, err);
    mfs_agent_copy_end(c);
}

bool mfs_copy_step_over(struct mfs_agent_copy *c, struct mfs_copy_job *j)
{
    if (c->agent->phase != MFS_AGENT_RUNNING) {
        c->step = MFS_COPY_IDLE; /* what ends everything ends its process */
        return true;
    }
    if (c->releaser.conn) {
        mfs_agent_copy_end(c);
        return true;
    }
    if (mfs_agent_copy_alive(c))
        return false;
    j->rc = mfs_err_set(&j->err, -EIO, "the redis-server that was receiving partition %u died",
                        c->redis.part);
    mfs_copy_fail(c, &j->err);
    return true;
}

void mfs_copy_run(struct mfs_agent_copy *c, enum mfs_copy_step step, struct mfs_copy_job *j)
{
    struct mfs_err err;
    char name[16];
    int rc = -ENOMEM;

    c->step = step;
    mfs_text_format(name, sizeof name, "move-%u", c->redis.part);
    if (j)
        rc = mfs_job_threads_run(c->agent->job_threads, name, &j->job);
    if (!rc)
        return;
    free(j);
    mfs_err_set(&err, c->whole ? -EBUSY : rc, "can't work on partition %u: %s", c->redis.part,
                strerror(-rc));
    if (c->whole) {
        c->step = MFS_COPY_IDLE;
        mfs_copy_report_failed(c, &err);
    } else {
        mfs_copy_fail(c, &err);
    }
}
