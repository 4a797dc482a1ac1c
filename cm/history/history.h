/* What a deployment has been like: an hour by the second and a day by the minute of the whole, an
 * hour by ten seconds of each node. Its memory is fixed: 260 KiB, and 4.3 KiB for each of at most
 * 256 nodes; beyond that many nodes, those that come are not kept. Pure. */
#ifndef MFS_CM_HISTORY_HISTORY_H
#define MFS_CM_HISTORY_HISTORY_H

#include "base/buf.h"
#include "base/err.h"
#include "cm/history/ring.h"
#include "proto/messages.h"

#define MFS_HISTORY_NODES 256

/* Bytes, bytes/s, seconds; what cm has not been told is NaN. */
enum mfs_history_figure {
    MFS_HISTORY_USED,      /* by data */
    MFS_HISTORY_CAPACITY,  /* that data may take */
    MFS_HISTORY_ALLOCATED, /* that the nodes give */
    MFS_HISTORY_NODES_THERE,
    MFS_HISTORY_OPERATIONS, /* of all mounts, 1/s */
    MFS_HISTORY_IN,
    MFS_HISTORY_OUT,
    MFS_HISTORY_P99,
    MFS_HISTORY_MOVES, /* under way */
    MFS_HISTORY_PAID,  /* nodes that the provider was asked for and has not got back */
    MFS_HISTORY_READ,  /* by all mounts, bytes/s */
    MFS_HISTORY_WRITTEN,
    MFS_HISTORY_FIGURES
};

extern const char *const mfs_history_names[MFS_HISTORY_FIGURES];

enum mfs_history_node_figure {
    MFS_HISTORY_NODE_USED,
    MFS_HISTORY_NODE_IN,
    MFS_HISTORY_NODE_OUT,
    MFS_HISTORY_NODE_FIGURES
};

struct mfs_history_node {
    char name[MFS_NAME_MAX];
    struct mfs_history_ring *ring;
};

struct mfs_history {
    struct mfs_history_ring *hour, *day;
    uint32_t nnodes;
    struct mfs_history_node node[MFS_HISTORY_NODES];
};

/* NULL: no memory. */
struct mfs_history *mfs_history_create(void);
void mfs_history_destroy(struct mfs_history *h); /* takes NULL */

/* `time`: wall clock, s. */
void mfs_history_put(struct mfs_history *h, int64_t time, const float figures[MFS_HISTORY_FIGURES]);
/* The node that has been silent for longest, an hour at least, makes room for a new one. */
void mfs_history_put_node(struct mfs_history *h, int64_t time, const char *name,
                          const float figures[MFS_HISTORY_NODE_FIGURES]);

/* Appends {"hour":…,"day":…,"nodes":[…]}, for curves: the hour by 4 s, of at most 64 nodes by 30 s
 * what they have used. 0 or -ENOMEM. */
int mfs_history_json(const struct mfs_history *h, struct mfs_buf *out);

/* All of it, for a file of this machine. 0 or -ENOMEM. */
int mfs_history_save(const struct mfs_history *h, struct mfs_buf *out);
/* 0; -ENOMEM; or -EINVAL: torn, or of another version of MemEFS, and `h` is empty. */
int mfs_history_load(struct mfs_history *h, const void *p, size_t n);
#define MFS_HISTORY_FILE_MAX (4U << 20)

#endif
