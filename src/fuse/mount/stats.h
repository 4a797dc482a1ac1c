/* How often each operation was asked for, and what that cost. */
#ifndef MFS_FUSE_MOUNT_STATS_H
#define MFS_FUSE_MOUNT_STATS_H

#include <stdatomic.h>

enum mfs_fuse_op {
#define OP(name, NAME, opcode, waits) MFS_OP_##NAME,
#include "fuse/ops.def"
#undef OP
    MFS_OP_COUNT
};

struct mfs_fuse_stats {
    atomic_ulong requests[MFS_OP_COUNT];
    atomic_ulong bytes_read, bytes_written;
};

unsigned long mfs_fuse_stats_requests(const struct mfs_fuse_stats *s); /* of all kinds */

struct mfs_store;

/* Writes all of it to the log. */
void mfs_fuse_stats_log(struct mfs_fuse_stats *s, struct mfs_store *store);

#endif
