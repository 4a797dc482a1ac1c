#include "lm/agent/request_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool mfs_request_job_run(struct mfs_agent *a, const char *name, struct mfs_request_job *j,
                         struct mfs_conn *conn, uint64_t id)
{
    int rc = -ENOMEM;

    if (j) {
        j->agent = a;
        j->from = mfs_reply_later(conn, id);
        rc = mfs_job_threads_run(a->job_threads, name, &j->job);
    }
    if (!rc)
        return true;
    mfs_agent_refuse(a, conn, id, rc, strerror(-rc));
    if (j)
        mfs_deferred_drop(&j->from);
    free(j);
    return false;
}

void mfs_request_job_end(struct mfs_request_job *j, enum mfs_msg type, const void *reply)
{
    if (j->rc)
        mfs_deferred_fail(&j->from, j->rc, "node %u: %s", j->agent->opts.node, j->err.msg);
    else
        mfs_deferred_reply(&j->from, type, reply);
    free(j);
}
