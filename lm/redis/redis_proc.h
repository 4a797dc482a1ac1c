/* The redis processes of a node: starting, recognising and ending them. Everything blocks, bounded,
 * and belongs into the worker thread. Processes outlive the Local Manager on purpose: they hold the
 * only copy of the data. */
#ifndef MFS_LM_REDIS_REDIS_PROC_H
#define MFS_LM_REDIS_REDIS_PROC_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/proc.h"
#include "cluster/table.h"
#include "store/admin/admin.h"
#include "proto/image_sum.h"

#define MFS_REDIS_START_TIMEOUT 10 /* seconds until a new process must answer */
#define MFS_REDIS_STOP_TIMEOUT  5  /* seconds that one may take to end */

/* What a process is to begin with, instead of empty. */
struct mfs_redis_image {
    char path[PATH_MAX];
    uint64_t bytes; /* of the file */
    char sum[MFS_IMAGE_SUM_TEXT];
};

struct mfs_redis {
    uint32_t part;
    uint16_t port;
    struct mfs_proc proc;
    char unix_path[MFS_UNIXPATH_MAX];
    char password[MFS_SECRET_MAX];       /* of MFS_REDIS_USER */
    char admin_password[MFS_SECRET_MAX]; /* of MFS_REDIS_ADMIN */
    bool format;                         /* on start: write what an empty partition needs */
    bool incoming;                       /* it receives a copy: fenced from the start */
    uint64_t expected;                   /* bytes that such a copy will take */
    uint64_t maxmemory;                  /* bytes it is allowed now */
    const struct mfs_redis_image *image; /* on start: what it loads; it will take `expected` bytes.
                                            Not ours; NULL for nothing */
};

/* What all processes of a node have in common. */
struct mfs_redis_node {
    const char *dir;      /* absolute */
    const char *dump_dir; /* absolute; theirs to work in: dumps go there, made when needed */
    const char *address;
    const char *deployment;
    uint32_t nparts, stripe_size;
};

/* The UNIX socket of a partition. 0, or -ENAMETOOLONG when the kernel does not take such a path. */
int mfs_redis_unix_path(const char *dir, uint32_t part, char path[MFS_UNIXPATH_MAX]);

/* Starts a process for each of r[] (part, passwords, format and maxmemory are set; the rest is
 * filled in) side by side and waits until all answer, have loaded their images and are formatted.
 * Images are checked before anything is started. When one fails, all of them are ended, and their
 * files removed. 0 or a negative errno with the reason. */
int mfs_redis_start(const struct mfs_redis_node *node, struct mfs_redis *r, size_t n,
                    struct mfs_err *err);

struct mfs_revived {
    struct mfs_admin_journal journal; /* what was lost */
    uint64_t us;                      /* until it served */
};

/* Starts another process in place of one that has died: same address, port and passwords, all that
 * its journal tells (decisions/0016). It serves as soon as this returns, unless clients were
 * refused before. 0, or a negative errno with the reason: then nothing runs there, and it may be
 * tried again, as the journal stays. -ENODATA: there is no journal that is whole. */
int mfs_redis_revive(const struct mfs_redis_node *node, struct mfs_redis *r,
                     struct mfs_revived *how, struct mfs_err *err);

/* Bytes in memory that the journal of a partition takes, 0: it has none. */
uint64_t mfs_redis_journal_bytes(const struct mfs_redis_node *node, uint32_t part);

/* Ends those that run in the node's directory and of which listed() does not know: a Local Manager
 * has started them and was killed before cm knew of them, so they hold nothing. 0 or a negative
 * errno. */
int mfs_redis_end_unlisted(const struct mfs_redis_node *node,
                           bool (*listed)(void *arg, const struct mfs_proc *p), void *arg);

/* Ends one that serves no client any more, as fast as can be; otherwise as mfs_redis_stop. */
int mfs_redis_end(const struct mfs_redis_node *node, struct mfs_redis *r);

/* Ends all of r[] at once, without saving, and removes their files. 0, or -ETIMEDOUT when one could
 * not even be killed. */
int mfs_redis_stop(const struct mfs_redis_node *node, struct mfs_redis *r, size_t n);

#endif
