/* Under which node number the kernel knows a directory, and where.
 *
 * The kernel lets a directory have one name. When another mount has moved one, a look-up at its new
 * name brings a node that the kernel has elsewhere; it then has to move its own entry, which it
 * refuses with ESTALE where it can't get the locks (in a rename, or beside one), and with ELOOP
 * where what it has not heard of yet would make a loop. So a node number stands for a directory *at
 * a place*, which is a name in a parent's node: where a directory turns up at another place,
 * because it or one above it was moved by another mount, it gets another node number: its ino with
 * a count in bits that inos do not use (base/ino.h; those of a partition's inodes beyond 2^37 do,
 * and have one number only). What the kernel still holds of the old number goes on to work, as both
 * mean the same inode; and what is looked up below it gets numbers of its own, which stay as they
 * are, too.
 *
 * Fixed tables, of some 32,000 places and directories, forget what has not been looked up for
 * longest; what is forgotten gets another number. What the kernel holds is known exactly, as it
 * tells what it forgets: only a directory that it holds at 1024 places gets a number that it has
 * elsewhere. Any thread; does not block. */
#ifndef MFS_FUSE_KERNEL_PLACES_H
#define MFS_FUSE_KERNEL_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ino.h"
#include "fuse/kernel/kept.h"

#define MFS_PLACES_SHIFT  MFS_INO_HIGH_AT
#define MFS_PLACES_COUNTS (1ULL << MFS_INO_HIGH_BITS)
#define MFS_PLACES_MASK   ((MFS_PLACES_COUNTS - 1) << MFS_PLACES_SHIFT)

static inline uint64_t mfs_places_ino(uint64_t node)
{
    return node & MFS_INO_LARGE ? node : node & ~MFS_PLACES_MASK;
}

struct mfs_places;

struct mfs_places *mfs_places_create(void); /* NULL: ENOMEM */
void mfs_places_destroy(struct mfs_places *p);

/* The node number of directory `ino`, found as `name` in `parent`, a node; for the kernel, which
 * holds it from then on until it has forgotten it as often as it was told. */
uint64_t mfs_places_node(struct mfs_places *p, uint64_t parent, const char *name, uint64_t ino);

/* Does the kernel hold the directory by another number, too? */
bool mfs_places_is_elsewhere(struct mfs_places *p, uint64_t node);

/* The kernel has forgotten that many look-ups of the node (a directory or not), or was not told. */
void mfs_places_forget(struct mfs_places *p, uint64_t node, uint64_t lookups);

/* This mount's kernel moved what it has there (a directory or not), and knows. Parents are nodes.
 */
void mfs_places_renamed(struct mfs_places *p, uint64_t parent, const char *name,
                        uint64_t new_parent, const char *new_name, bool exchange);

/* --- names under a lease (meta/meta.h) ---------------------------------------------------------
 */

/* The kernel, which holds the node, may use its name without asking from now on; false: it had
 * better not. */
bool mfs_places_keep(struct mfs_places *p, uint64_t node, uint64_t parent, const char *name);

bool mfs_places_is_kept(struct mfs_places *p, uint64_t node); /* and not stale, see below */

/* The nodes that stand for the inode (0: the first few of any) and whose names are kept; returns
 * their number. */
#define MFS_PLACES_ALIASES 64U
size_t mfs_places_kept(struct mfs_places *p, uint64_t ino, uint64_t nodes[MFS_PLACES_ALIASES]);

/* The names of the inode (0: of any) become stale, but those at these two places. How many are? */
size_t mfs_places_revoke(struct mfs_places *p, uint64_t ino, const struct mfs_kept_place but[2]);

/* A name of the inode (0: of any) that is to be taken from the kernel. */
struct mfs_places_stale {
    uint64_t node, parent, changes;
    char name[256];
};
bool mfs_places_stale(struct mfs_places *p, uint64_t ino, struct mfs_places_stale *stale);
/* The kernel has it there no more; unless it was renamed or kept again meanwhile, that is all. */
void mfs_places_dropped(struct mfs_places *p, const struct mfs_places_stale *stale);

#endif
