/* Where the kernel may believe files to end, so that nobody is led behind the end by what it
 * missed.
 *
 * An answer that shows attributes is not believed when a notice about the inode comes in the way:
 * the kernel asks again when it needs them, but a read of what it takes for the inside of the file
 * does not. Nor is an answer to a read that ends early believed then. So while another mount
 * changes a file that it has cut before, a reader may get zeros up to the old end. No notice makes
 * a file shorter; but an open can bypass the kernel's pages, and what it believes with them.
 *
 * A table of a fixed size, a slot per hash of the inode; who has lost his slot is not in doubt. Any
 * thread; does not block. */
#ifndef MFS_FUSE_KERNEL_ENDS_H
#define MFS_FUSE_KERNEL_ENDS_H

#include <stdbool.h>
#include <stdint.h>

struct mfs_ends;

struct mfs_ends *mfs_ends_create(void); /* NULL: ENOMEM */
void mfs_ends_destroy(struct mfs_ends *e);

/* `now` is that of mfs_clock_mono in all of these. */

/* The kernel is told that the file ends at `size`. */
void mfs_ends_told(struct mfs_ends *e, uint64_t ino, uint64_t size, int64_t now);

/* The kernel itself has made the file reach to `end` at least. */
void mfs_ends_reach(struct mfs_ends *e, uint64_t ino, uint64_t end);

/* The kernel is to be told that the file reaches to `end`, where it ended after the time `seen`.
 * False: it has been told of a nearer end since then, and must not be. */
bool mfs_ends_grow(struct mfs_ends *e, uint64_t ino, uint64_t end, int64_t seen);

/* A notice about the inode goes to the kernel, or has gone just now. */
void mfs_ends_noticed(struct mfs_ends *e, uint64_t ino, int64_t now);

/* The file ends at `size`: may the kernel believe that it is longer? */
bool mfs_ends_doubt(struct mfs_ends *e, uint64_t ino, uint64_t size, int64_t now);

#endif
