/* Names of directories that the kernel uses without asking, under leases (meta/meta.h): of which
 * inode, and where they are to be taken from the kernel when the lease is revoked. Not thread-safe:
 * places.c locks. */
#ifndef MFS_FUSE_KERNEL_KEPT_H
#define MFS_FUSE_KERNEL_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mfs_kept;

/* What stands for a place: a name in a parent's node. */
uint64_t mfs_kept_place_hash(uint64_t parent, const char *name);

struct mfs_kept_name {
    uint64_t node, parent;
    char *name;
    bool stale;       /* revoked, but the kernel may still use it */
    uint64_t changes; /* of this entry, ever */
};

struct mfs_kept *mfs_kept_create(void); /* NULL: ENOMEM */
void mfs_kept_destroy(struct mfs_kept *k);

/* The kernel may use it from now on; false: not before it has been taken from there, or ENOMEM;
 * then nothing has changed. */
bool mfs_kept_add(struct mfs_kept *k, uint64_t ino, uint64_t node, uint64_t parent,
                  const char *name);
void mfs_kept_remove(struct mfs_kept *k, uint64_t ino, uint64_t node);
const struct mfs_kept_name *mfs_kept_find(struct mfs_kept *k, uint64_t ino, uint64_t node);

/* The kernel itself gives the name that it has there another place, or exchanges the two. */
void mfs_kept_renamed(struct mfs_kept *k, uint64_t parent, const char *name, uint64_t new_parent,
                      const char *new_name, bool exchange);

/* The nodes of the inode (0: of all) into nodes[most]; returns how many these are. */
size_t mfs_kept_nodes(struct mfs_kept *k, uint64_t ino, uint64_t *nodes, size_t most);

struct mfs_kept_place {
    uint64_t parent; /* 0: none */
    const char *name;
};

/* The names of the inode (0: of all) become stale, but those at these places; returns how many are
 * stale now. */
size_t mfs_kept_revoke(struct mfs_kept *k, uint64_t ino, const struct mfs_kept_place but[2]);

/* A stale one of the inode (0: of any), or NULL. */
const struct mfs_kept_name *mfs_kept_stale(struct mfs_kept *k, uint64_t ino);

#endif
