/* Contents that come in parts, before the request that makes a file of them (proto/put.h). Of a
 * fixed number of files: the one that got a part the longest ago goes for another one. Any thread
 * may call; nothing blocks. */
#ifndef MFS_FUSE_KERNEL_PARTS_H
#define MFS_FUSE_KERNEL_PARTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct mfs_parts;

/* Whose they are: another user's requests find none, though numbers are used again. */
struct mfs_parts_of {
    uint64_t file, id; /* the open file by which they come, and the sender's number */
    uid_t uid;
};

struct mfs_parts *mfs_parts_create(void); /* NULL: ENOMEM */
void mfs_parts_destroy(struct mfs_parts *p);

/* Those that come first (at 0) begin anew. 0; -EAGAIN: those before are not there; -EINVAL: more
 * than MFS_PUT_CONTENT in all; -ENOMEM. */
int mfs_parts_add(struct mfs_parts *p, const struct mfs_parts_of *of, uint64_t at, const void *part,
                  size_t len);

/* All of them, which are the caller's to free, with room for MFS_PUT_CONTENT bytes. NULL: there are
 * none, or not so many bytes. */
char *mfs_parts_take(struct mfs_parts *p, const struct mfs_parts_of *of, uint64_t len);

/* Those that have come by that open file, which is closed. */
void mfs_parts_drop(struct mfs_parts *p, uint64_t file);

#endif
