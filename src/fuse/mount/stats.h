/* How often each operation was asked for, and what that cost. */
#ifndef MFS_FUSE_MOUNT_STATS_H
#define MFS_FUSE_MOUNT_STATS_H

#include <stdatomic.h>

enum mfs_fuse_op {
    MFS_OP_LOOKUP,
    MFS_OP_GETATTR,
    MFS_OP_SETATTR,
    MFS_OP_READLINK,
    MFS_OP_MKNOD,
    MFS_OP_MKDIR,
    MFS_OP_SYMLINK,
    MFS_OP_LINK,
    MFS_OP_UNLINK,
    MFS_OP_RMDIR,
    MFS_OP_RENAME,
    MFS_OP_OPEN,
    MFS_OP_CREATE,
    MFS_OP_READ,
    MFS_OP_WRITE,
    MFS_OP_FLUSH,
    MFS_OP_FSYNC,
    MFS_OP_RELEASE,
    MFS_OP_FALLOCATE,
    MFS_OP_LSEEK,
    MFS_OP_COPY,
    MFS_OP_OPENDIR,
    MFS_OP_READDIR,
    MFS_OP_READDIRPLUS,
    MFS_OP_RELEASEDIR,
    MFS_OP_GETXATTR,
    MFS_OP_LISTXATTR,
    MFS_OP_SETXATTR,
    MFS_OP_REMOVEXATTR,
    MFS_OP_STATFS,
    MFS_OP_GETLK,
    MFS_OP_SETLK,
    MFS_OP_FLOCK,
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
