/* What an inode record says, decoded. */
#ifndef MFS_META_ATTR_H
#define MFS_META_ATTR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "partition/layout.h"

struct mfs_attr {
    uint64_t ino;
    uint32_t mode; /* type and permissions, as st_mode */
    uint32_t uid, gid, nlink;
    union {
        uint32_t rdev;  /* as the kernel's new_encode_dev: what st_rdev of a device holds */
        uint32_t hints; /* MFS_HINT_*, of a directory or a regular file */
    };
    uint32_t flags;    /* MFS_ATTR_* */
    uint64_t size;     /* bytes; for a symlink the length of its target */
    uint64_t data_end; /* no content is at or beyond this offset: it reads as zeros */
    union {
        int64_t
            alloc;   /* bytes of blocks (4 KiB) that hold content or were asked for by fallocate */
        int64_t ttl; /* of a directory: seconds that files in it live; 0: for ever */
    };
    uint64_t version; /* grows with every change of the content */
    uint64_t cuts;    /* times that its end was set (truncate), modulo 65536; of a directory, times
                       * that its mtime was set by hand */
    struct timespec atime, mtime, ctime;
    uint64_t parent; /* of a directory, its parent's ino (the root's is the root) */
    int64_t leased;  /* not 0: may be shown for a while without asking, see meta.h; when it was
                      * asked for, by mfs_clock_mono. Not in the record. As wide as the others, so
                      * that two of them can be compared */
};

static inline bool mfs_mode_has_hints(uint32_t mode)
{
    return S_ISREG(mode) || S_ISDIR(mode);
}

#define MFS_STAT_BLKSIZE (64U << 10)

/* As stat(2) shows it; st_dev is 0. What is kept in an inode's word for a device may be hints. */
static inline struct stat mfs_attr_stat(const struct mfs_attr *attr)
{
    return (struct stat){
        .st_ino = attr->ino,
        .st_mode = attr->mode,
        .st_nlink = attr->nlink,
        .st_uid = attr->uid,
        .st_gid = attr->gid,
        .st_rdev = mfs_mode_has_hints(attr->mode) ? 0 : attr->rdev,
        .st_size = (off_t)attr->size,
        .st_blksize = MFS_STAT_BLKSIZE,
        .st_blocks = !S_ISDIR(attr->mode) && attr->alloc > 0 ? (attr->alloc + 511) / 512 : 0,
        .st_atim = attr->atime,
        .st_mtim = attr->mtime,
        .st_ctim = attr->ctime,
    };
}

/* Does a program of that mode run as its owner, or as its group? */
static inline bool mfs_mode_grants(uint32_t mode)
{
    return (mode & S_ISUID) || (mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP);
}

/* Has the file anything that a change of its content takes away? */
static inline bool mfs_attr_grants(const struct mfs_attr *attr)
{
    return S_ISREG(attr->mode) && ((attr->flags & MFS_ATTR_SECCAPS) || mfs_mode_grants(attr->mode));
}

#endif
