/* Between opens.c and session.c: what survives the change from one session to the next. */
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
 * forgotten. Returns its length. */
size_t mfs_opens_renew(struct mfs_meta *meta, uint64_t sid, struct mfs_open_state **list);

/* Registers `count` opens at the inode's home; nobody waits. */
void mfs_opens_register(struct mfs_meta *meta, uint64_t ino, uint64_t sid, uint32_t count);

#endif
