/* The bytes of what a partition stores about names and inodes. Pure; decodes hostile bytes safely.
 *
 * Inode record, little-endian; src/store/functions/record.lua has the same layout:
 *    0 u8 format = 1   1 u8 flags   2 u16 cuts    4 u32 mode    8 u32 uid     12 u32 gid
 *   16 u32 nlink      20 u32 rdev  24 i64 size   32 i64 end of data            40 i64 allocated
 *   48 i64 version    56 atime     68 mtime      80 ctime      92 tail
 * Cuts: of a directory, how often its mtime was set by hand (decisions/0008).
 * Each time is i64 seconds and u32 nanoseconds. The tail is a symlink's target, or a directory's
 * parent (8 bytes, big-endian), generation of its last move (8, big-endian) and bitmap of the
 * partitions that may hold entries of it, as long as its last bit needs. */
#ifndef MFS_META_RECORD_H
#define MFS_META_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "meta/attr.h"

#define MFS_RECORD_FORMAT 1
#define MFS_RECORD_FIXED  92
#define MFS_RECORD_DIR    108   /* where a directory's bitmap begins */
#define MFS_RECORD_MTIME  0x20U /* flag: mtime was set by hand, no name came or went since */

#define MFS_TIME_LEN 12

void mfs_time_encode(struct timespec ts, char out[MFS_TIME_LEN]);
struct timespec mfs_time_decode(const char *p);

/* Fills *attr; ino is the caller's knowledge. *tail points into the record. 0, or -EIO for bytes
 * that are no record. */
int mfs_meta_record_decode(const void *p, size_t n, uint64_t ino, struct mfs_attr *attr,
                           const char **tail, size_t *tail_len);

/* The fixed part. */
void mfs_meta_record_encode(const struct mfs_attr *attr, char out[MFS_RECORD_FIXED]);

/* Entry of a directory shard: ino (8, big-endian), type (mode >> 12), and while a rename to another
 * partition is under way its transaction (16) and the partition that decides it (2, big-endian). */
#define MFS_TXN_LEN    16
#define MFS_ENTRY_LEN  9
#define MFS_INTENT_LEN (MFS_ENTRY_LEN + MFS_TXN_LEN + 2)

struct mfs_entry {
    uint64_t ino;
    uint32_t type; /* S_IFMT bits */
    bool intent;
    char txn[MFS_TXN_LEN];
    uint32_t decider;
};

int mfs_entry_decode(const void *p, size_t n, struct mfs_entry *e); /* 0 or -EIO */
void mfs_entry_encode(uint64_t ino, uint32_t mode, char out[MFS_ENTRY_LEN]);

/* What a rename with RENAME_WHITEOUT leaves in its source's place, a character device 0:0 that is
 * made there and then: the partition that has the name (2, big-endian), record. */
#define MFS_WHITEOUT_LEN (2 + MFS_RECORD_FIXED)

/* Bitmap of partitions, as in a directory's tail. */
bool mfs_bits_test(const unsigned char *bits, size_t n, uint32_t part);

#endif
