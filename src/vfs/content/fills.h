/* Reads that fill the kernel's pages, beside writes that bypass them, or come too late.
 *
 * Linux drops the pages of a range before it sends a write that bypasses them (O_DIRECT, O_APPEND),
 * and recent versions once more behind it: when it has been answered, but when it has only been
 * sent if it is asynchronous (io_submit(2), io_uring). A page that is read meanwhile has what was
 * there before the write, and keeps it. So such a write is answered only when pages of its range
 * that were read before it took effect are dropped.
 *
 * A write through the pages puts the bytes there, lets the pages go, and is only then sent
 * (fs/fuse/file.c: fuse_perform_write). When the kernel has them dropped in between, at our word,
 * they may be read anew before the write has come, and show what was there before it. So such a
 * write has what was read in its range dropped, too, if the kernel has just been told to drop
 * pages. An open drops them before its own descriptor can write.
 *
 * What the kernel reads into pages is noted per file, and forgotten when a write has it dropped: as
 * long as no process reads through pages, writes have nothing to drop. A file that is opened anew
 * starts with nothing: reads of before are over, and the kernel drops what they brought by itself.
 *
 * All functions are thread-safe and do not block. */
#ifndef MFS_VFS_CONTENT_FILLS_H
#define MFS_VFS_CONTENT_FILLS_H

#include "vfs/vnode/vnode.h"

/* The range is about to be read for the kernel's pages. Before the bytes are looked for. */
void mfs_fills_read(struct mfs_vnode *v, uint64_t off, size_t len);

/* An append was stored elsewhere than where the kernel believes the end: any page may be wrong. */
void mfs_fills_append_moved(struct mfs_vnode *v);

/* A write that bypassed the pages has taken effect in the range. True: pages in *drop (whole pages)
 * may be older, and have to be dropped before it is answered; then mfs_fills_direct_dropped is
 * called. */
bool mfs_fills_direct_written(struct mfs_vnode *v, uint64_t off, size_t len,
                              struct mfs_range *drop);
void mfs_fills_direct_dropped(struct mfs_vnode *v);

/* The kernel is about to drop pages, or has just dropped them, because of `dropper`'s open, or
 * (NULL) of something else. */
void mfs_fills_invalidated(struct mfs_vnode *v, const struct mfs_file *dropper);

/* A write through the pages, by `f`, that came at mono time `since`, has taken effect in the range.
 * True: pages in *drop may be older. */
bool mfs_fills_cached_written(struct mfs_vnode *v, const struct mfs_file *f, uint64_t off,
                              size_t len, int64_t since, struct mfs_range *drop);

#endif
