/* The sizes that the kernel may believe a file to have, so that no reader is led behind the file's
 * end by what the kernel has missed.
 *
 * The kernel does not believe attributes in a reply when an invalidation of the inode comes in
 * between: it asks again when it needs them, but a read of what it takes for the inside of the file
 * does not ask. Nor does it believe then that a file ends where a read was answered short. So while
 * another mount changes a file that it has cut before, a reader may get zeros up to the old end. No
 * notification makes a file shorter; but an open can bypass the kernel's pages, and with them the
 * size that it believes.
 *
 * Kept are the furthest end that was replied lately, the furthest that the kernel may have believed
 * before, the last reply and the last invalidation. A reply makes the ends before it history once
 * no invalidation is near it. Invariant: the kernel believes no end beyond max(latest, before), as
 * replies and writes of this kernel alone tell it ends.
 *
 * Pure; all zero, nothing was replied: then none of these but mfs_sizes_replied changes anything.
 * `now` is that of mfs_clock_mono. */
#ifndef MFS_FUSE_KERNEL_SIZES_H
#define MFS_FUSE_KERNEL_SIZES_H

#include <stdbool.h>
#include <stdint.h>

struct mfs_sizes {
    uint64_t latest; /* the furthest end that was replied, or written to, since `since` */
    uint64_t before; /* the furthest that may have been believed until then */
    int64_t since;
    uint64_t replied; /* last, and when; 0: never */
    int64_t replied_at;
    int64_t invalidated; /* when last; 0: never */
};

/* A reply tells the kernel that the file ends at `size`. */
void mfs_sizes_replied(struct mfs_sizes *z, uint64_t size, int64_t now);

/* The kernel itself has made the file reach to `end` at least. */
void mfs_sizes_extended(struct mfs_sizes *z, uint64_t end);

/* May the kernel be told that the file reaches to `end`, where it ended at the time `seen`? False:
 * a reply has told it of a nearer end since then. */
bool mfs_sizes_may_extend(struct mfs_sizes *z, uint64_t end, int64_t seen);

/* An invalidation of the inode goes to the kernel, or has gone just now. */
void mfs_sizes_invalidated(struct mfs_sizes *z, int64_t now);

/* The file ends at `size`: may the kernel believe that it is longer? */
bool mfs_sizes_may_be_stale(const struct mfs_sizes *z, uint64_t size, int64_t now);

#endif
