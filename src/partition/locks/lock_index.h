/* The ranges that are locked of one file, found by owner and by place: a treap in two orders. Pure
 * but for the server's memory, which counts what is here.
 *
 * What an owner holds of one kind is expected not to overlap. If it does, answers may leave
 * something out; nothing else happens. */
#ifndef MFS_PARTITION_LOCKS_LOCK_INDEX_H
#define MFS_PARTITION_LOCKS_LOCK_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MFS_LOCK_OWNER 17 /* bytes: kind ('P' fcntl, 'F' flock), session, owner */

enum { MFS_RANGE_READ = 1, MFS_RANGE_WRITE = 2 };

struct mfs_locked {
    char owner[MFS_LOCK_OWNER];
    uint8_t type; /* MFS_RANGE_READ … */
    uint32_t pid;
    int64_t first, last; /* 0 <= first <= last; INT64_MAX: the end of everything */
};

struct mfs_lock_index;

struct mfs_lock_index *mfs_lock_index_create(void);
void mfs_lock_index_destroy(struct mfs_lock_index *x); /* takes NULL */

size_t mfs_lock_index_size(const struct mfs_lock_index *x);
/* How many ranges the owner has. */
size_t mfs_lock_index_count(const struct mfs_lock_index *x, const char *owner);

/* A range that replaces the owner's one with the same first byte, if there is one. */
void mfs_lock_index_put(struct mfs_lock_index *x, const struct mfs_locked *l);
void mfs_lock_index_take(struct mfs_lock_index *x, const struct mfs_locked *l);

/* The owner's first range that ends at or behind `from`. NULL: there is none. Good until the next
 * change, as all that is returned here. */
const struct mfs_locked *mfs_lock_index_own(const struct mfs_lock_index *x, const char *owner,
                                            int64_t from);

/* The first range of another owner, by where it begins, that stands in the way of what is wanted;
 * behind `after`, if that is not NULL. */
const struct mfs_locked *mfs_lock_index_in_way(const struct mfs_lock_index *x,
                                               const struct mfs_locked *want,
                                               const struct mfs_locked *after);

#endif
