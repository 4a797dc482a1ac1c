/* Writing the images of a node's partitions for a checkpoint: halt them, have them fork, let them
 * go on, write what the children send. Here are no messages; see agent/image.c for those and
 * docs/design/checkpoint.md for how all goes together.
 *
 * The functions block, each wait bounded, and belong into a thread of their own; one at a time.
 * They return 0 or a negative errno with the reason:
 *   -EAGAIN    something was changed, or a process did not fork, while all should have stood still
 *   -ENOENT    the directory is not there
 *   -EPERM     others may change what is in it (base/trusted_dir.h)
 *   -ENOTSUP   it lies in the deployment's own mount
 *   -ECANCELED as was asked for
 *   others     a process or the file system failed */
#ifndef MFS_LM_COPY_IMAGER_H
#define MFS_LM_COPY_IMAGER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "lm/redis/redis_proc.h"
#include "proto/image_sum.h"

struct mfs_imager_part {
    uint32_t part;
    uint64_t bytes; /* of the file */
    char sum[MFS_IMAGE_SUM_TEXT];
    uint64_t memory; /* bytes that the process used at the cut */
    uint64_t losses; /* of MFS_LOSSES_KEY */
};

struct mfs_imager;

/* For these processes (copied), into files DIR/partition-P.rdb. NULL: ENOMEM. */
struct mfs_imager *mfs_imager_create(const char *deployment, const char *dir,
                                     const struct mfs_redis *r, size_t n);
/* Ends what is under way and lets the partitions go on. Blocks only as closing does; what is halted
 * and can't be told goes on by itself. NULL is fine. */
void mfs_imager_destroy(struct mfs_imager *im);

/* Looks at the directory, then has all of them execute nothing that changes anything, for at most
 * `ms`. On failure those halted go on. */
int mfs_imager_halt(struct mfs_imager *im, uint32_t ms, struct mfs_err *err);
/* Each forks and goes on. *halted_us: the longest that one stood still. On failure all go on. */
int mfs_imager_cut(struct mfs_imager *im, uint64_t *halted_us, struct mfs_err *err);
/* Writes the files, and sees to it that they are on the disk. */
int mfs_imager_write(struct mfs_imager *im, struct mfs_err *err);

/* Valid after a write. */
const struct mfs_imager_part *mfs_imager_parts(const struct mfs_imager *im, size_t *n);

/* From any thread. */
void mfs_imager_cancel(struct mfs_imager *im);            /* has a call return soon */
uint64_t mfs_imager_written(const struct mfs_imager *im); /* bytes, so far */

#endif
