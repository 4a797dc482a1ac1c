/* Which directory a name means, for a client whose caller keeps no names itself: a kernel does, the
 * library does not (meta/meta.h: dir_names). Whether it still means it is for the caller to find
 * out, by the lease that came with the name (mfs_dircache_revoked since `asked`). Bounded; the
 * oldest goes first. Any thread, does not block. */
#ifndef MFS_META_CACHE_DIRNAMES_H
#define MFS_META_CACHE_DIRNAMES_H

#include <stdbool.h>
#include <stdint.h>

struct mfs_dirnames;

struct mfs_dirnames *mfs_dirnames_create(void);
void mfs_dirnames_destroy(struct mfs_dirnames *d); /* takes NULL */

/* Leased, by an answer to what was asked at mono time `asked`. */
void mfs_dirnames_put(struct mfs_dirnames *d, uint64_t parent, const char *name, uint64_t ino,
                      int64_t asked);
bool mfs_dirnames_find(struct mfs_dirnames *d, uint64_t parent, const char *name, uint64_t *ino,
                       int64_t *asked);

#endif
