/* Threads for jobs: one each for jobs that take their time, several at once, while the worker
 * (worker.h) does one after another. Belongs to the loop's thread, as do all `done` calls. */
#ifndef MFS_LM_JOBS_JOB_THREADS_H
#define MFS_LM_JOBS_JOB_THREADS_H

#include "lm/jobs/worker.h"
#include "net/loop.h"

struct mfs_job_threads;

struct mfs_job_threads *mfs_job_threads_create(struct mfs_loop *loop); /* NULL: ENOMEM */

/* Waits for those that run, each bounded by its own limits, and calls their `done`. NULL is fine.
 */
void mfs_job_threads_destroy(struct mfs_job_threads *es);

/* Runs the job in a thread of this name (at most 15 bytes). On failure (a negative errno) neither
 * run nor done is called. */
int mfs_job_threads_run(struct mfs_job_threads *es, const char *name, struct mfs_job *job);

#endif
