/* Connections that wait for the next call, by partition. A client has them to the partitions that
 * it uses now, not to all that it ever used: one that has waited for opts.idle_time is closed, and
 * of more than opts.idle_most the oldest ones of the partitions in turn. So a client of a
 * deployment with more partitions than a process may have descriptors goes on.
 *
 * Internal to src/store. mfs_store.lock is held; what is returned to be closed is closed without it
 * (mfs_pool_close_all). */
#ifndef MFS_STORE_IDLE_H
#define MFS_STORE_IDLE_H

#include "store/internal.h"

/* The one that was used last, or NULL. */
struct mfs_channel *mfs_idle_pop(struct mfs_store *store, struct mfs_part *part);

/* Keeps it. Returns what is to be closed instead, and whatever else is due; a list, or NULL. */
struct mfs_channel *mfs_idle_push(struct mfs_store *store, struct mfs_part *part,
                                  struct mfs_channel *conn, int64_t now);

/* All of the partition, to be closed. */
struct mfs_channel *mfs_idle_take(struct mfs_store *store, struct mfs_part *part);

#endif
