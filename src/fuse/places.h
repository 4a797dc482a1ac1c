/* Under which node number the kernel knows a directory, and where.
 *
 * The kernel lets a directory have one name. When another mount has moved one, a look-up at its new
 * name brings a node that the kernel has elsewhere; it then has to move its own entry, for which it
 * only tries the locks: beside a rename under way on this mount the look-up fails with ESTALE. So a
 * directory that turns up at another place than before gets another node number: its ino with a
 * count in bits that inos do not use (inos of a partition are counted by 40 bits before that
 * matters). What the kernel still holds of the old number goes on to work, as both mean the same
 * inode.
 *
 * A fixed table; what has been overwritten counts as never moved, which is harmless. Any thread. */
#ifndef MFS_FUSE_PLACES_H
#define MFS_FUSE_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#define MFS_PLACES_SHIFT 40
#define MFS_PLACES_MASK  (0xffULL << MFS_PLACES_SHIFT)

static inline uint64_t mfs_places_ino(uint64_t node)
{
    return node & ~MFS_PLACES_MASK;
}

struct mfs_places;

struct mfs_places *mfs_places_create(void); /* NULL: ENOMEM */
void mfs_places_destroy(struct mfs_places *p);

/* The node number of directory `ino`, found as `name` in `parent` (an ino). */
uint64_t mfs_places_node(struct mfs_places *p, uint64_t parent, const char *name, uint64_t ino);

/* This mount's kernel moved it, and knows. */
void mfs_places_renamed(struct mfs_places *p, uint64_t parent, const char *name,
                        uint64_t new_parent, const char *new_name, bool exchange);

#endif
