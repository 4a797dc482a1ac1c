/* Where the pieces of a file are, told through a virtual extended attribute that no listing shows.
 *
 * "system.memefs.layout" reads as lines of text,
 *
 *     memefs-layout 1
 *     deployment NAME / epoch N / ino N / size N / data_end N / stripe_size N / partitions P
 *     p INDEX NODE HOST:PORT          (for the first MFS_LAYOUT_CHUNK partitions)
 *
 * and "system.memefs.layout.K", K ≥ 1, as the p lines from partition K · MFS_LAYOUT_CHUNK on. Which
 * stripe is in which partition is computed from this (cluster/placement.h). */
#ifndef MFS_FUSE_LAYOUT_H
#define MFS_FUSE_LAYOUT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MFS_LAYOUT_XATTR "system.memefs.layout"
#define MFS_LAYOUT_CHUNK 512U
#define MFS_LAYOUT_MAX   65536U

struct mfs_fuse;

/* As getxattr; `rest` is what follows MFS_LAYOUT_XATTR in the name. */
ssize_t mfs_layout_xattr(struct mfs_fuse *m, uint64_t ino, const char *rest, void *buf, size_t cap);

#endif
