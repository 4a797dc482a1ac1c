/* A job of its own thread that does what a request of cm asks for, and whose result answers it. */
#ifndef MFS_LM_AGENT_REQUEST_JOB_H
#define MFS_LM_AGENT_REQUEST_JOB_H

#include "lm/agent/agent_impl.h"
#include "lm/jobs/job_threads.h"

/* Embed it as the first member of a job of your own, made by calloc. */
struct mfs_request_job {
    struct mfs_job job;
    struct mfs_agent *agent;
    struct mfs_deferred from;
    int rc; /* and *err: of run */
    struct mfs_err err;
};

/* Runs it in a thread of that name, as mfs_job_threads_run does; j may be NULL: out of memory.
 * What can't be run is refused and freed: false. */
bool mfs_request_job_run(struct mfs_agent *a, const char *name, struct mfs_request_job *j,
                         struct mfs_conn *conn, uint64_t id);

/* For `done`: refuses with rc and err, or answers; frees it. */
void mfs_request_job_end(struct mfs_request_job *j, enum mfs_msg type, const void *reply);

#endif
