/* The zeros behind the end of a file, and how no reader takes them for content.
 *
 * The kernel fills the rest of the page in which a file ends with zeros. A reader that asked
 * for that page looks at the file's size once more before it takes the bytes: when the kernel has
 * been told meanwhile that the file is longer, as another mount has written, it takes zeros. So a
 * growth is told in this order: it is learned, so that no read ends at the old end any more; the
 * kernel's pages are dropped, those under way included; readers that have their answer, but may not
 * have taken the bytes yet, get time to; the kernel is told. Growth by this mount needs no such
 * care: the kernel makes it itself, in its own pages.
 *
 * All functions are thread-safe. */
#ifndef MFS_VFS_CONTENT_TAIL_H
#define MFS_VFS_CONTENT_TAIL_H

#include "vfs/vnode/vnode.h"

#define MFS_TAIL_PAGE 4096U /* bytes of a page of the kernel's */

/* Up to `size`, where the file ends as far as the reader knew, was read just now for the kernel's
 * pages. False: another mount has changed the file meanwhile, so the read has to be done again. */
bool mfs_tail_read(struct mfs_vnode *v, uint64_t size);

/* The kernel is about to be told that the file ends at *size, which has been learned. If that is a
 * growth that would do harm, waits until the pages are dropped; when that takes too long (100 ms),
 * *size becomes the old end: what is told then is what was true before the other mount's change,
 * which is not over before the pages are dropped. */
void mfs_tail_tell(struct mfs_vnode *v, uint64_t *size);

/* The caller has dropped the pages since `size` was learned: waits for the readers, 50 ms at most.
 */
void mfs_tail_dropped(struct mfs_vnode *v, uint64_t size);

/* The kernel itself has made the file reach to `end`, or end there (`exactly`). */
void mfs_tail_made(struct mfs_vnode *v, uint64_t end, bool exactly);

#endif
