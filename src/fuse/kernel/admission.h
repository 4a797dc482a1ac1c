/* Admission of requests that may have to wait for other mounts: only so many are served at once.
 *
 * A change of a file is complete when the other mounts have dropped its pages. Their kernels wait
 * for pages that are locked by reads and writes, and those wait for a worker. Were all workers of
 * two mounts in such requests, each mount would wait for the other for ever. So some of the workers
 * serve none of them: a request beyond the limit is deferred, in the order of arrival, until one
 * that is being served is complete.
 *
 * All functions are thread-safe and do not block. */
#ifndef MFS_FUSE_KERNEL_ADMISSION_H
#define MFS_FUSE_KERNEL_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>

struct mfs_admission;

struct mfs_admission *mfs_admission_create(unsigned most); /* at once; NULL: ENOMEM */
void mfs_admission_destroy(
    struct mfs_admission *a); /* takes NULL; what is deferred is not answered */

/* Is the request to be served now? Else it was copied and deferred, for mfs_admission_next. */
bool mfs_admission_admit(struct mfs_admission *a, const char *request, size_t len);

/* A request that was admitted is complete. Puts the next deferred one, which is admitted in its
 * stead, to `request`; returns its length; 0: none. */
size_t mfs_admission_next(struct mfs_admission *a, char *request);

/* Calls `gone` with each request that has been deferred for MFS_KILLED_LOOK, and forgets it where
 * that returns true: somebody answers it. With the lock held: it must not call back. Returns
 * whether any is deferred still. */
bool mfs_admission_look(struct mfs_admission *a,
                        bool (*gone)(void *arg, const char *request, size_t len), void *arg);

#endif
