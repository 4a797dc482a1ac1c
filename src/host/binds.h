/* Binds: the other mounts of a file system, of all of it or of a directory in it. When its daemon
 * dies they are as dead as the mount itself, and of a new mount in its place they know nothing.
 *
 * Everything blocks, each look at a mount for a second at most. One thread at a time. */
#ifndef MFS_HOST_BINDS_H
#define MFS_HOST_BINDS_H

#include <stdbool.h>

struct mfs_binds;

struct mfs_binds *mfs_binds_create(void); /* NULL: ENOMEM */
void mfs_binds_destroy(struct mfs_binds *b);

/* Notes the FUSE file system that is mounted at `path` and all its other mounts; to be called while
 * it is mounted there, dead or alive. Nothing is noted when nothing is mounted. 0 or a negative
 * errno. */
int mfs_binds_note(struct mfs_binds *b, const char *path);

/* Has any file system been noted since they were restored or detached? */
bool mfs_binds_any(const struct mfs_binds *b);

struct mfs_binds_result {
    unsigned restored, lost;
    char example[1024]; /* one that was lost, why, and what to do */
};

/* Detaches those that are dead and still in their places, and makes them anew from the file system
 * that is at `path` now. What cannot be made anew stays dead, is logged with what to do, and counts
 * as lost; so do dead mounts in other mount name spaces. Then all is forgotten. */
void mfs_binds_restore(struct mfs_binds *b, const char *path, struct mfs_binds_result *result);

/* Detaches those that are dead, and forgets all. */
void mfs_binds_detach(struct mfs_binds *b);

#endif
