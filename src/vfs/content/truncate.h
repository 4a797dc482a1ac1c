/* What comes before a file's end is moved back: shared by truncate and by open with O_TRUNC.
 *
 *     while (rc == -ECANCELED && t.tries < MFS_TRUNCATE_TRIES)
 *         prepare, and have the inode's home cut it: -ECANCELED when it was written to meanwhile
 *     rc = mfs_truncate_end(…, rc)
 *
 * Writers of this mount are kept out by the vnode's latch. Appenders on other mounts are kept out
 * from the second try on: else they might defeat each try. Writers there may defeat it; so in the
 * last try what they have stored meanwhile is left, as a void. */
#ifndef MFS_VFS_CONTENT_TRUNCATE_H
#define MFS_VFS_CONTENT_TRUNCATE_H

#include "vfs/vnode/vnode.h"

#define MFS_TRUNCATE_TRIES 10

struct mfs_truncation {
    uint64_t size;      /* that the file is to have */
    struct mfs_cut cut; /* for mfs_meta_truncate */
    bool forgot;        /* written bytes that no other mount knew of */
    bool trims;         /* stripes may have been freed */
    unsigned tries;     /* so far */
    uint64_t place;     /* not 0: the place behind the end is kept from appenders; its number */
};

/* Forgets dirty bytes at or beyond t->size, flushes the others, and frees the stripes 1 … beyond
 * it. What stays of them below t->size, and is no content, is void by then. `v` is NULL when the
 * inode is not open here. After it the file still has its size, with holes: a crash here leaks
 * nothing. */
int mfs_truncate_prepare(struct mfs_vfs *vfs, uint64_t ino, struct mfs_vnode *v,
                         struct mfs_truncation *t);

/* To be called in any case, with the outcome. After a failure the writers of what was forgotten are
 * told, and the pages of what may have been freed are dropped. */
int mfs_truncate_end(struct mfs_vfs *vfs, uint64_t ino, struct mfs_vnode *v,
                     const struct mfs_truncation *t, int rc);

#endif
