/* FUSE nodeids of directories: the numbers by which the kernel knows them.
 *
 * The kernel lets a directory have one dentry (a name in a parent). When another mount has moved a
 * directory, a look-up at its new name brings a nodeid that the kernel has elsewhere; the kernel
 * then has to move its own dentry, which it refuses with ESTALE where it can't get the locks (in a
 * rename, or beside one), and with ELOOP where a move that it has not heard of yet would make a
 * loop. So a nodeid stands for a directory *at a dentry*: a directory that turns up at another one,
 * because another mount moved it or a directory above it, gets another nodeid, an alias: its ino
 * with a count in bits that inos do not use (base/ino.h; those of a partition's inodes beyond 2^37
 * use them, and such a directory has one nodeid only). What the kernel still holds of the old
 * nodeid goes on to work, as both mean the same inode; and what is looked up below it gets nodeids
 * of its own, which stay as they are, too.
 *
 * States of a nodeid: unknown; held, while the kernel has looked it up more often than it has
 * forgotten it; leased, when the kernel may use its dentry without asking; stale, see dentries.h.
 *
 * Tables of fixed sizes, for some 32,000 dentries and directories, evict the least recently used; a
 * directory that was evicted gets another nodeid. Which nodeids the kernel holds is known exactly,
 * as it tells what it forgets: only a directory that it holds at 1024 dentries gets a nodeid that
 * it has elsewhere. Any thread may call; nothing blocks. */
#ifndef MFS_FUSE_KERNEL_NODEIDS_H
#define MFS_FUSE_KERNEL_NODEIDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ino.h"
#include "fuse/kernel/dentries.h"

#define MFS_NODEIDS_SHIFT  MFS_INO_HIGH_AT
#define MFS_NODEIDS_COUNTS (1ULL << MFS_INO_HIGH_BITS)
#define MFS_NODEIDS_MASK   ((MFS_NODEIDS_COUNTS - 1) << MFS_NODEIDS_SHIFT)

static inline uint64_t mfs_nodeids_ino(uint64_t nodeid)
{
    return nodeid & MFS_INO_LARGE ? nodeid : nodeid & ~MFS_NODEIDS_MASK;
}

/* Files about the mount itself (fuse/inside/): their home is one that no partition has, as there
 * are fewer. */
#define MFS_NODEIDS_INSIDE_HOME MFS_INO_HOME_MASK

static inline bool mfs_nodeids_is_inside(uint64_t nodeid)
{
    return !(nodeid & MFS_INO_LARGE) && mfs_ino_home(nodeid) == MFS_NODEIDS_INSIDE_HOME;
}

struct mfs_nodeids;

struct mfs_nodeids *mfs_nodeids_create(void); /* NULL: ENOMEM */
void mfs_nodeids_destroy(struct mfs_nodeids *ids);

/* The nodeid of directory `ino`, found as `name` in `parent`, a nodeid. It counts as a look-up: the
 * kernel holds the nodeid until it has forgotten it as often as this was called. */
uint64_t mfs_nodeids_lookup(struct mfs_nodeids *ids, uint64_t parent, const char *name,
                            uint64_t ino);

/* Does the kernel hold the directory by another nodeid, too? */
bool mfs_nodeids_has_alias(struct mfs_nodeids *ids, uint64_t nodeid);

/* The kernel has forgotten that many look-ups of the nodeid (a directory's or not), or did not get
 * the answer. */
void mfs_nodeids_forget(struct mfs_nodeids *ids, uint64_t nodeid, uint64_t lookups);

/* A call of this mount has moved the dentry (a directory's or not); its kernel knows. Parents are
 * nodeids. */
void mfs_nodeids_renamed(struct mfs_nodeids *ids, uint64_t parent, const char *name,
                         uint64_t new_parent, const char *new_name, bool exchange);

/* --- dentries under a lease (meta/meta.h) ------------------------------------------------------
 */

/* The kernel may use the dentry of a nodeid that it holds without asking from now on. False: it is
 * stale, the nodeid is not held, the directory has too many aliases, or ENOMEM. */
bool mfs_nodeids_lease(struct mfs_nodeids *ids, uint64_t nodeid, uint64_t parent, const char *name);

/* Where such a dentry is: name[256] in *parent, a nodeid. False: it is not under a lease. */
bool mfs_nodeids_name(struct mfs_nodeids *ids, uint64_t nodeid, uint64_t *parent, char *name);

bool mfs_nodeids_is_leased(struct mfs_nodeids *ids, uint64_t nodeid); /* and not stale */

/* The inode's nodeids (0: the first few of all inodes') with a dentry that is leased or stale;
 * returns their number. */
#define MFS_NODEIDS_ALIASES 64U
size_t mfs_nodeids_leased(struct mfs_nodeids *ids, uint64_t ino,
                          uint64_t nodeids[MFS_NODEIDS_ALIASES]);

/* The dentries of the inode (0: of all) become stale, but those with these keys. Returns how many
 * are stale now. */
size_t mfs_nodeids_revoke(struct mfs_nodeids *ids, uint64_t ino,
                          const struct mfs_dentry_key but[2]);

/* A dentry of the inode (0: of any) that the kernel has to drop. */
struct mfs_nodeids_stale {
    uint64_t nodeid, parent, changes;
    char name[256];
};
bool mfs_nodeids_stale(struct mfs_nodeids *ids, uint64_t ino, struct mfs_nodeids_stale *stale);
/* The kernel has dropped it. It leaves the table, unless it was renamed or leased again meanwhile:
 * then it is still to be dropped where it is now. */
void mfs_nodeids_dropped(struct mfs_nodeids *ids, const struct mfs_nodeids_stale *stale);

#endif
