/* Reads a mount's files for `memefs top`, each time compared with the time before. One thread at a
 * time. */
#ifndef MFS_CLI_TOP_SAMPLER_H
#define MFS_CLI_TOP_SAMPLER_H

#include "cli/mount_files.h"
#include "cli/top/model.h"

struct mfs_mount_sampler;

/* `files` must stay. NULL: no memory. */
struct mfs_mount_sampler *mfs_mount_sampler_create(const struct mfs_mount_files *files);
void mfs_mount_sampler_destroy(void *sampler);

/* As show/live.h takes them: a struct mfs_mount_top. The first one has no rates. */
void *mfs_mount_sampler_take(void *sampler, struct mfs_err *err);
void mfs_mount_top_free(void *sample); /* takes NULL */

#endif
