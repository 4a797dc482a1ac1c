/* The dentries that the kernel uses without asking, as their directories are under leases
 * (meta/meta.h). A dentry is a name in a parent directory, and the directory that it stands for.
 *
 * A dentry is *leased* when it is added. A revocation makes it *stale*: the kernel may still use
 * it, and has to be told to drop it. It leaves the table when the kernel has dropped it, or has
 * forgotten the nodeid. Not thread-safe: nodeids.c locks. */
#ifndef MFS_FUSE_KERNEL_DENTRIES_H
#define MFS_FUSE_KERNEL_DENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mfs_dentries;

/* Of a name in a parent, a nodeid. */
uint64_t mfs_dentry_hash(uint64_t parent, const char *name);

struct mfs_dentry {
    uint64_t nodeid, parent;
    char *name;
    bool stale;       /* revoked, but the kernel may still use it */
    uint64_t changes; /* of parent and name, ever */
};

struct mfs_dentries *mfs_dentries_create(void); /* NULL: ENOMEM */
void mfs_dentries_destroy(struct mfs_dentries *d);

/* The kernel may use the dentry from now on. False: it is stale, and has to be removed first; or
 * ENOMEM. Then nothing has changed. */
bool mfs_dentries_add(struct mfs_dentries *d, uint64_t ino, uint64_t nodeid, uint64_t parent,
                      const char *name);
void mfs_dentries_remove(struct mfs_dentries *d, uint64_t ino, uint64_t nodeid);
const struct mfs_dentry *mfs_dentries_find(struct mfs_dentries *d, uint64_t ino, uint64_t nodeid);

/* The kernel itself moves the dentry that it has there, or exchanges the two. */
void mfs_dentries_renamed(struct mfs_dentries *d, uint64_t parent, const char *name,
                          uint64_t new_parent, const char *new_name, bool exchange);

/* Puts the nodeids of the inode (0: of all) into nodeids[most]; returns how many it has put. */
size_t mfs_dentries_nodeids(struct mfs_dentries *d, uint64_t ino, uint64_t *nodeids, size_t most);

struct mfs_dentry_key {
    uint64_t parent; /* 0: none */
    const char *name;
};

/* The dentries of the inode (0: of all) become stale, but those with these keys; returns how many
 * are stale now. */
size_t mfs_dentries_revoke(struct mfs_dentries *d, uint64_t ino,
                           const struct mfs_dentry_key but[2]);

/* A stale dentry of the inode (0: of any), or NULL. */
const struct mfs_dentry *mfs_dentries_stale(struct mfs_dentries *d, uint64_t ino);

#endif
