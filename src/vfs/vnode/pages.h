/* Which version of a file the kernel's cached pages belong to, so that an open can keep them.
 *
 * A small fixed table, a slot per hash of the ino; a file whose slot another one has taken counts
 * as unknown, which only costs its pages. A slot's state moves like this:
 *
 *   nothing ── adopt ──> known(v) ── carry(v → v+1) ──> known(v+1)
 *      ^                    │
 *      └──── forget ────────┘  (also when a carry does not continue v)
 *
 * When an open finds a newer version than the known one, the kernel will drop all pages, but only
 * after it has got our answer. Until the first request through the new handle proves that, the slot
 * stays at "nothing"; then the handle adopts the version that it was opened with, or what this
 * mount has made of it since. A ticket taken at the open makes sure that nothing else came between.
 *
 * Any thread; does not block. */
#ifndef MFS_VFS_VNODE_PAGES_H
#define MFS_VFS_VNODE_PAGES_H

#include <stdbool.h>
#include <stdint.h>

struct mfs_pages;

struct mfs_pages_ticket {
    uint64_t generation;
};

struct mfs_pages *mfs_pages_create(void); /* NULL: ENOMEM */
void mfs_pages_destroy(struct mfs_pages *p);

/* Do the pages belong to `version`, or to what this mount has made of it? If not the slot is
 * emptied, and *ticket lets mfs_pages_adopt fill it once the pages are gone. */
bool mfs_pages_open(struct mfs_pages *p, uint64_t ino, uint64_t version,
                    struct mfs_pages_ticket *ticket);

/* Are they known to be older? If this mount has made `version` that may be over in a moment. */
bool mfs_pages_behind(struct mfs_pages *p, uint64_t ino, uint64_t version);

void mfs_pages_adopt(struct mfs_pages *p, uint64_t ino, const struct mfs_pages_ticket *ticket);

/* This mount has changed the file from version `from` to `to`, its pages along with it. */
void mfs_pages_carry(struct mfs_pages *p, uint64_t ino, uint64_t from, uint64_t to);
void mfs_pages_forget(struct mfs_pages *p, uint64_t ino);
void mfs_pages_forget_all(struct mfs_pages *p); /* of all files: versions mean nothing any more */

bool mfs_pages_known(struct mfs_pages *p, uint64_t ino); /* at some version */

#endif
