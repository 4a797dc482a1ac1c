/* A thread for what blocks. The daemon's only other thread, its event loop, submits jobs; they run
 * one after another in the order of submission, and their results come back to the loop.
 *
 * A job owns everything that its run function touches: nothing is shared, so nothing is locked. */
#ifndef MFS_LM_JOBS_WORKER_H
#define MFS_LM_JOBS_WORKER_H

#include <stdint.h>

struct mfs_worker;

/* Embed it as the first member of a job of your own. */
struct mfs_job {
    void (*run)(struct mfs_job *job);  /* in the worker; may block, bounded */
    void (*done)(struct mfs_job *job); /* in mfs_worker_collect; frees the job */
    struct mfs_job *next;              /* the worker's */
};

int mfs_worker_create(struct mfs_worker **w, const char *name); /* 0 or -errno */

/* Readable when results wait to be collected. Watch it in the loop and call collect. */
int mfs_worker_fd(const struct mfs_worker *w);

void mfs_worker_submit(struct mfs_worker *w, struct mfs_job *job);
void mfs_worker_collect(struct mfs_worker *w);           /* calls `done` of every finished job */
uint32_t mfs_worker_pending(const struct mfs_worker *w); /* submitted and not collected */

/* Waits for the job that runs, finishes those that wait and calls `done` of all. NULL is fine. */
void mfs_worker_destroy(struct mfs_worker *w);

#endif
