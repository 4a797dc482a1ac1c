/* What the operations of a mount share. Made by session.c; never changes while requests are served,
 * other than what is atomic or has a lock of its own. */
#ifndef MFS_FUSE_MOUNT_SESSION_H
#define MFS_FUSE_MOUNT_SESSION_H

#define FUSE_USE_VERSION FUSE_MAKE_VERSION(3, 12)

#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdatomic.h>

#include "cluster/capacity.h"
#include "cluster/table.h"
#include "fuse/kernel/replied.h"
#include "fuse/mount/notify.h"
#include "fuse/kernel/nodeids.h"
#include "fuse/mount/retries.h"
#include "fuse/mount/request_metrics.h"
#include "fuse/mount/workers.h"
#include "fuse/kernel/admission.h"
#include "fuse/kernel/lookup_attrs.h"
#include "fuse/kernel/parts.h"
#include "fuse/kernel/recalls.h"
#include "vfs/vfs.h"

struct mfs_client;
struct mfs_inside;
struct mfs_mount_config;
struct mfs_uring;
struct mfs_recaller;

struct mfs_fuse {
    const struct mfs_mount_config *config;
    struct mfs_client *client;
    struct mfs_vfs *vfs;       /* the client's */
    struct mfs_notify *notify; /* of pages */
    struct mfs_notify *names;  /* another thread: these wait for locks that may be held for long */
    struct mfs_notify *writes; /* and another, of pages that this mount's own writes have bypassed:
                                * they wait for no partition */
    struct mfs_recaller *recaller;
    struct mfs_replied *replied;
    struct mfs_nodeids *nodeids;
    struct mfs_retries *retries;
    struct mfs_lookup_attrs *lookup_attrs;
    struct mfs_recalls *recalls;
    struct mfs_parts *parts;
    struct mfs_admission *admission;
    struct fuse_session *se;
    struct mfs_workers *workers;
    struct mfs_awake *awake;   /* while they serve; may be NULL */
    struct mfs_inside *inside; /* .memefs, and what is slow: fuse/inside/inside.h */
    bool (*serve_inside)(struct mfs_fuse *m, const char *raw, size_t len);   /* true: it was its */
    enum mfs_workers_urgency (*urgency_inside)(const char *raw, size_t len); /* with that */
    struct mfs_uring *uring;           /* NULL: requests come by /dev/fuse alone */
    struct mfs_capacity_shares shares; /* of the memory that it may take */
    double timeout;                    /* of names and attributes, s */
    struct mfs_metrics *metrics;       /* of all that the mount is made of */
    struct mfs_metric_set *requests;   /* request_metrics.h */
    atomic_bool answers;               /* the kernel has sent INIT */
    _Atomic dev_t device; /* of the mount, 0 until it has answered; of signals' thread */
};

extern const struct fuse_lowlevel_ops mfs_fuse_ops;

#endif
