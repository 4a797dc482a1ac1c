/* Bind mounts: the other mounts of a file system, of all of it or of a directory in it. When its
 * daemon dies they are as dead as the mount itself, and a new mount in its place does not revive
 * them.
 *
 * A list is empty, or holds what was noted; restoring or detaching empties it. Everything blocks,
 * each look at a mount for a second at most. One thread at a time. */
#ifndef MFS_HOST_BIND_MOUNTS_H
#define MFS_HOST_BIND_MOUNTS_H

#include <stdbool.h>

struct mfs_bind_mounts;

struct mfs_bind_mounts *mfs_bind_mounts_create(void); /* NULL: ENOMEM */
void mfs_bind_mounts_destroy(struct mfs_bind_mounts *b);

/* Notes the FUSE file system that is mounted at `path` and all its other mounts; to be called while
 * it is mounted there, dead or alive. Nothing is noted when nothing is mounted. 0 or a negative
 * errno. */
int mfs_bind_mounts_note(struct mfs_bind_mounts *b, const char *path);

/* Is anything noted? */
bool mfs_bind_mounts_any(const struct mfs_bind_mounts *b);

struct mfs_bind_mounts_result {
    unsigned restored, lost;
    char example[1024]; /* one that was lost, why, and what to do */
};

/* Detaches the noted bind mounts that are dead and still in their places, and makes them anew from
 * the file system that is at `path` now. A bind mount that cannot be made anew stays dead, is
 * logged with what to do, and counts as lost; so do dead mounts in other mount name spaces. Then
 * all is forgotten. */
void mfs_bind_mounts_restore(struct mfs_bind_mounts *b, const char *path,
                             struct mfs_bind_mounts_result *result);

/* Detaches the noted bind mounts that are dead, and forgets all. */
void mfs_bind_mounts_detach(struct mfs_bind_mounts *b);

#endif
