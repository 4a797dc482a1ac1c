/* What opens.c has for session.c, of what survives the change from one session to the next, and for
 * close.c. */
#ifndef MFS_META_OPENS_H
#define MFS_META_OPENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mfs_meta;

struct mfs_open_state {
    uint64_t ino;
    uint32_t count;
    bool locked;
};

/* Makes `sid` the session of all that follows; opens counted from now on are registered for it by
 * mfs_opens_added. *list (heap, NULL when out of memory) is what the old one had; its locks are
 * forgotten, and what it had closed died with it. Returns its length. */
size_t mfs_opens_renew(struct mfs_meta *meta, uint64_t sid, struct mfs_open_state **list);

/* Registers `count` opens at the inode's home; nobody waits. */
void mfs_opens_register(struct mfs_meta *meta, uint64_t ino, uint64_t sid, uint32_t count);

/* One open less, which the partition learns later; false: it was not counted. */
bool mfs_opens_closed(struct mfs_meta *meta, uint64_t ino);

struct mfs_closed {
    uint64_t ino;
    uint32_t count; /* how many times */
};

/* The caller is to tell the partitions, of session *sid, of what it takes: the closes of one inode;
 * those of up to `most` inodes, the oldest first. Both return how many. */
uint32_t mfs_opens_take_closed_of(struct mfs_meta *meta, uint64_t ino, uint64_t *sid);
size_t mfs_opens_take_closed(struct mfs_meta *meta, struct mfs_closed *list, size_t most,
                             uint64_t *sid);

#endif
