/* MemEFS, for programs that use a mounted deployment: how to recognise one, and how to ask where
 * the pieces of a file are, e.g. to run a task on the node that holds its input.
 *
 * A mount shows as file system type "fuse.memefs" in /proc/self/mountinfo, its source is the
 * deployment's name.
 *
 * getxattr(2) of MEMEFS_XATTR_LAYOUT on a file (no listing shows it) gives lines of text:
 *
 *     memefs-layout 4
 *     deployment NAME
 *     epoch N
 *     ino N
 *     size N                     bytes
 *     data_end N                 no byte at or beyond this offset is stored
 *     stripe_size N              bytes
 *     partitions P
 *     step N
 *     p INDEX NODE HOST:PORT     one line each for the first MEMEFS_LAYOUT_CHUNK partitions
 *
 * and MEMEFS_XATTR_LAYOUT ".K" (K ≥ 1) the p lines from partition K · MEMEFS_LAYOUT_CHUNK on.
 * Stripe n is in partition (home + shift + step · (n mod P)) mod P: home is ino >> 37 & 65535;
 * shift is 0 for n < P, else XXH64 of 12 bytes (ino, 8 bytes, and n div P, 4 bytes, both
 * big-endian; seed 0). If bit 36 of ino is set all stripes are in the home partition.
 * `memefs layout FILE --json` does all of it.
 *
 * Lines may be added behind these; the first one changes when they change. */
#ifndef MEMEFS_MEMEFS_H
#define MEMEFS_MEMEFS_H

#define MEMEFS_FSTYPE       "fuse.memefs"
#define MEMEFS_XATTR_LAYOUT "system.memefs.layout"
#define MEMEFS_LAYOUT_CHUNK 512U   /* partitions per attribute */
#define MEMEFS_LAYOUT_MAX   65536U /* bytes of one attribute, at most */

#endif
