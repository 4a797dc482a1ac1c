/* What `cm top` shows, computed from samples of the status. Pure. */
#ifndef MFS_CM_CLI_TOP_MODEL_H
#define MFS_CM_CLI_TOP_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "cm/state/events.h"
#include "proto/messages.h"

enum mfs_top_order {
    MFS_TOP_BY_NAME,
    MFS_TOP_BY_MEMORY,
    MFS_TOP_BY_IN,
    MFS_TOP_BY_OUT,
    MFS_TOP_BY_OPERATIONS,
    MFS_TOP_ORDERS
};

extern const char *const mfs_top_order_names[MFS_TOP_ORDERS];

#define MFS_TOP_EVENTS 64 /* the last ones that are kept */

/* A partition on its way. */
struct mfs_top_move {
    uint32_t partition;
    char from[MFS_NAME_MAX], to[MFS_NAME_MAX]; /* nodes */
    char step[MFS_STATE_MAX];
    uint64_t bytes, bytes_total;
    double rate;         /* bytes/s since the sample before; 0: not known, or it stands */
    double left_seconds; /* at that rate; below 0: not known */
};

/* What a client does, by what it has told last; rates since the sample before, 0 while not known.
 */
struct mfs_top_mount {
    char path[MFS_PATH_MAX];
    char node[MFS_NAME_MAX];
    uint32_t pid;
    int64_t at;                                             /* ns, monotonic: of what it has told */
    uint64_t operations, errors, read_bytes, written_bytes; /* so far */
    uint64_t sent_bytes, received_bytes;                    /* to and from partitions */
    double operations_rate, errors_rate, read_rate, written_rate, sent_rate, received_rate;
    double p50, p99, max; /* s, of all operations so far */
};

/* A kind of operation, on all mounts; rates as a mount's. */
struct mfs_top_op {
    char name[24];
    uint64_t operations, errors; /* so far, as are the next two */
    double seconds, max;
    double operations_rate, errors_rate, mean; /* mean: s, of those since the sample before */
};

struct mfs_top_sample {
    int64_t when; /* ns, monotonic; 0: none yet */
    struct mfs_status status;
    uint32_t nmoves;
    struct mfs_top_move *move; /* those that wait behind the others */
    uint32_t nmounts;
    struct mfs_top_mount *mount; /* by path */
    uint32_t nops;
    struct mfs_top_op *op; /* most operations per second first */
    int64_t ops_at;        /* ns, monotonic: of what the last client told that they are made of */
    uint32_t nfiles, ndirs;
    struct mfs_mounts_hot *file, *dir; /* with the most operations, estimated */
    uint32_t nevents;
    struct mfs_event *event; /* oldest first */
};

/* status, moves and mounts with their rates, and events: cm top --json */
extern const struct mfs_schema mfs_top_schema;

void mfs_top_clear(struct mfs_top_sample *s);

/* Takes the status over (zeroed then) as of `when`; `mounts` may be NULL. What moves and what
 * mounts have done is compared with `before`, a sample of earlier, or NULL. 0 or -ENOMEM. */
int mfs_top_make(struct mfs_top_sample *s, int64_t when, struct mfs_status *status,
                 const struct mfs_mounts *mounts, const struct mfs_top_sample *before);

/* The nodes in that order into out[nnodes], as places in s->status.node; most first, names
 * ascending, and what is equal by name. */
void mfs_top_sort(const struct mfs_top_sample *s, enum mfs_top_order order, uint32_t *out);

/* Likewise the mounts: by operations per second in that order, else by path. */
void mfs_top_sort_mounts(const struct mfs_top_sample *s, enum mfs_top_order order, uint32_t *out);

/* One sample as text. 0 or -ENOMEM. */
int mfs_top_render(const struct mfs_top_sample *s, struct mfs_buf *out);

/* "3 s", "2:05", "1:02:03", or "-". Returns out. */
const char *mfs_top_left(double seconds, char out[16]);

#endif
