/* What -o takes: one table of our own options; the rest is what mount(8) and the kernel know. */
#ifndef MFS_FUSE_MOUNT_OPTIONS_H
#define MFS_FUSE_MOUNT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"

enum mfs_mount_uring { MFS_MOUNT_URING_AUTO, MFS_MOUNT_URING_ON, MFS_MOUNT_URING_OFF };

struct mfs_mount_options {
    bool relaxed; /* cache=relaxed: names and attributes may be 1 s old */
    bool no_atime;
    bool no_diratime;           /* … of directories */
    bool no_awake;              /* processors may halt between requests, see awake.h */
    enum mfs_mount_uring uring; /* see fuse/uring/uring.h */
    uint32_t workers;           /* threads that serve requests */
    uint32_t threads;           /* senders, and as many fetchers, of data */
    uint64_t memory;            /* bytes that the client may take */
    size_t write_window;        /* bytes dirty and on the way, all files; 0: a part of memory */
    size_t read_window;         /* bytes read ahead, all files; 0: likewise */
    uint32_t io_timeout;        /* s that a partition may take to answer */
    uint32_t full_wait;         /* s to wait for memory while the deployment can grow */
    bool no_stats;              /* no files about the mount: fuse/inside/inside.h */
    int64_t slow;               /* ns: a request that takes so long is logged; 0: none is */
    enum mfs_log_level log_level;
    const char *log_format; /* of MFS_LOG_FORMATS; static */
    struct mfs_buf kernel; /* ",ro,suid…": for the kernel, as given; libfuse begins with nosuid and
                            * nodev */
};

/* What a list "a,b=c" says, and the defaults; later ones win. To be finished in any case. -EINVAL
 * names the culprit. */
int mfs_mount_options_parse(struct mfs_mount_options *o, const char *list, struct mfs_err *err);
void mfs_mount_options_fini(struct mfs_mount_options *o);
void mfs_mount_options_help(FILE *to);

#endif
