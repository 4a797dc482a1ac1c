/* The work on a copy (incoming.h), one step after the other: each is done by a thread of its own or
 * by the `redis` worker, and its `done` says what comes next. Loop thread, but for `run`. */
#ifndef MFS_LM_AGENT_PARTITIONS_COPY_JOB_H
#define MFS_LM_AGENT_PARTITIONS_COPY_JOB_H

#include "lm/agent/partitions/incoming.h"

struct mfs_copy_job {
    struct mfs_job job;
    struct mfs_agent_copy *copy;     /* stays as long as its step is not IDLE */
    struct mfs_instances *instances; /* of a start */
    struct mfs_redis redis;          /* likewise */
    uint64_t memory;                 /* likewise */
    uint64_t blocked_us;             /* of a cut */
    struct mfs_msg_take take;        /* likewise */
    int rc;
    struct mfs_err err;
};

/* For the caller to fill, and to free in `done`. NULL: ENOMEM. */
struct mfs_copy_job *mfs_copy_job_create(struct mfs_agent_copy *c, void (*run)(struct mfs_job *),
                                         void (*done)(struct mfs_job *));
/* Begins the step, in a thread of its own; j NULL: there was no memory for it. Owns j. What fails
 * ends the copy, unless that is whole, and then perhaps the only one: cm may ask again
 * (-EBUSY). */
void mfs_copy_run(struct mfs_agent_copy *c, enum mfs_copy_step step, struct mfs_copy_job *j);

/* Common to all steps when their work is done: true when the copy is to go no further. */
bool mfs_copy_step_over(struct mfs_agent_copy *c, struct mfs_copy_job *j);

/* Logs it, and fails the request. */
void mfs_copy_report_failed(struct mfs_agent_copy *c, const struct mfs_err *err);
void mfs_copy_fail(struct mfs_agent_copy *c, const struct mfs_err *err); /* likewise, and ends it */

#endif
