/* The contents of the files that are one state of things: appended to `to`, for people or as JSON.
 * 0 or -errno. */
#ifndef MFS_FUSE_INSIDE_TEXTS_H
#define MFS_FUSE_INSIDE_TEXTS_H

#include <stdbool.h>

#include "base/buf.h"

struct mfs_fuse;

int mfs_text_of_stats(struct mfs_fuse *m, bool json, struct mfs_buf *to);
int mfs_text_of_nodes(struct mfs_fuse *m, bool json, struct mfs_buf *to);
int mfs_text_of_hot(struct mfs_fuse *m, bool json, struct mfs_buf *to);
/* These two ask cm, by way of the Local Manager, and wait for it, but not for long. */
int mfs_text_of_clients(struct mfs_fuse *m, bool json, struct mfs_buf *to);
int mfs_text_of_events(struct mfs_fuse *m, bool json, struct mfs_buf *to);
int mfs_text_of_slow(struct mfs_fuse *m, bool json, struct mfs_buf *to);

#endif
