/* Inside the mounter: what its parts share. */
#ifndef MFS_LM_MOUNT_MOUNTER_IMPL_H
#define MFS_LM_MOUNT_MOUNTER_IMPL_H

#include "lm/mount/mounter.h"
#include "lm/mount/unmount.h"

/* What the worker does for a mount: its own copy of everything. */
struct mfs_mount_job {
    struct mfs_job job;
    struct mfs_mounter *m;
    struct mfs_unmount u;          /* path, and the client for ending it */
    struct mfs_bind_mounts *binds; /* the mounter's: jobs come one after another */
    struct mfs_bind_mounts_result bound;
    int rc;
};

/* mounter_jobs.c: in the worker's thread, each with a struct mfs_mount_job. Its rc says how it
 * went, but for a restore, whose result is in `bound`. */
void mfs_mount_prepare(struct mfs_job *job); /* puts the real path into u.path */
void mfs_mount_probe(struct mfs_job *job);   /* -ENOENT: nothing is mounted there */
void mfs_mount_end(struct mfs_job *job);
void mfs_mount_restore(struct mfs_job *job); /* binds of a mount that died */

/* mounter_wait.c: the callers that wait for the same, a list that is NULL at first. */
struct mfs_mounter_waiter;

int mfs_mounter_await(struct mfs_mounter_waiter **list, mfs_mounter_done *done,
                      void *arg); /* 0 or -ENOMEM */
/* Answers all of them. A caller that comes meanwhile waits for the next answer. */
void mfs_mounter_answer(struct mfs_mounter_waiter **list, const struct mfs_err *err);
void mfs_mounter_forget(struct mfs_mounter_waiter **list); /* answers none */
/* Answers one from the loop instead of from inside the call; err->code 0: done. */
void mfs_mounter_answer_later(struct mfs_loop *loop, mfs_mounter_done *done, void *arg,
                              const struct mfs_err *err);

#endif
