/* The bytes of what a partition stores about names and inodes, which its module and its clients
 * both read and write: inode records and entries of directories. */
#ifndef MFS_PARTITION_LAYOUT_H
#define MFS_PARTITION_LAYOUT_H

#include <assert.h>
#include <stdint.h>

/* Inode record, little-endian. A time is i64 seconds and u32 nanoseconds. */
#define MFS_RECORD_FORMAT 1
#define MFS_TIME_LEN      12

enum {
    MFS_REC_FORMAT = 0, /* u8 */
    MFS_REC_FLAGS = 1,  /* u8: MFS_ATTR_*, of a directory MFS_RECORD_MTIME */
    MFS_REC_CUTS = 2,   /* u16: how often it was cut off; of a directory, how often its mtime was
                         * set by hand (decisions/0008) */
    MFS_REC_MODE = 4,   /* u32 */
    MFS_REC_UID = 8,    /* u32 */
    MFS_REC_GID = 12,   /* u32 */
    MFS_REC_NLINK = 16, /* u32 */
    MFS_REC_RDEV = 20,  /* u32: of a device, which one; of a directory or regular file MFS_HINT_* */
    MFS_REC_SIZE = 24,  /* i64 */
    MFS_REC_END = 32,   /* i64: no byte at or beyond it is content */
    MFS_REC_STORED = 40,  /* i64: allocated; of a directory, seconds that files in it live, 0: for
                           * ever (decisions/0038) */
    MFS_REC_VERSION = 48, /* i64 */
    MFS_REC_ATIME = 56,
    MFS_REC_MTIME = 68,
    MFS_REC_CTIME = 80,
    MFS_RECORD_FIXED = 92, /* here begins the tail: a symlink's target, or a directory's … */
    MFS_REC_PARENT = 92,   /* 8, big-endian */
    MFS_REC_MOVE = 100,    /* u64, big-endian: generation of its last move */
    MFS_RECORD_DIR = 108   /* bitmap of the partitions that may hold entries of it, as long as its
                            * last bit needs */
};

static_assert(MFS_REC_ATIME + MFS_TIME_LEN == MFS_REC_MTIME &&
                  MFS_REC_MTIME + MFS_TIME_LEN == MFS_REC_CTIME &&
                  MFS_REC_CTIME + MFS_TIME_LEN == MFS_RECORD_FIXED,
              "one after another");

/* Hints (decisions/0038, 0045): what a directory says of files that are yet to be made in it, and a
 * file of how it was made. 0 in records of before there were any. */
#define MFS_HINT_PLACE     0x03U /* one of: */
#define MFS_HINT_LOCAL     0x01U /* at the node whose client makes the file */
#define MFS_HINT_SPREAD    0x02U /* over all partitions, as without a hint */
#define MFS_HINT_NODE      0x03U /* at the node … */
#define MFS_HINT_TOGETHER  0x04U /* file: all of its stripes are in its home partition */
#define MFS_HINT_PIN       0x08U /* no other hint takes its names away */
#define MFS_HINT_STRIPE_AT 4     /* which of the sizes stripes have, 3 bits; 0: the deployment's */
#define MFS_HINT_STRIPES   0x07U
#define MFS_HINT_ALONE     0x80U /* stripes 1 … are not kept at a replica */
#define MFS_HINT_NODE_AT   8     /* … of this id, 16 bits */
#define MFS_HINT_NODES     0x10000U
#define MFS_HINT_READS_AT  24    /* so often a file is read, then its names go; 0: it stays */
#define MFS_HINT_READS     0xffU /* at most */

static inline uint32_t mfs_hint_node(uint32_t hints)
{
    return hints >> MFS_HINT_NODE_AT & (MFS_HINT_NODES - 1);
}

static inline uint32_t mfs_hint_reads(uint32_t hints)
{
    return hints >> MFS_HINT_READS_AT;
}

static inline uint32_t mfs_hint_stripe(uint32_t hints)
{
    return hints >> MFS_HINT_STRIPE_AT & MFS_HINT_STRIPES;
}

/* Seconds; more than a record of now has ever been a time. */
#define MFS_TTL_MAX 0xffffffffLL

/* Flags of a record. */
#define MFS_ATTR_XATTR            0x01U /* has extended attributes */
#define MFS_ATTR_ACL              0x02U /* has an access ACL */
#define MFS_ATTR_DEFACL           0x04U /* has a default ACL (directories) */
#define MFS_ATTR_TMPFILE          0x08U /* a file made without a name, which may get one (O_TMPFILE) */
#define MFS_ATTR_SECCAPS          0x10U /* has security.capability */
#define MFS_RECORD_MTIME          0x20U /* directory: mtime was set by hand, no name came or went since */
#define MFS_RECORD_ROOM           0x20U /* file: it has a key F */
#define MFS_RECORD_REVOKE_PENDING 0x40U /* no name is left, leases are being revoked */
#define MFS_ATTR_VOIDS            0x80U /* of what is below the end of data some may be no content */

/* What a change of attributes sets. */
#define MFS_SET_MODE  0x01U
#define MFS_SET_UID   0x02U
#define MFS_SET_GID   0x04U
#define MFS_SET_ATIME 0x08U
#define MFS_SET_MTIME 0x10U
#define MFS_SET_CTIME 0x20U /* else ctime becomes now */
#define MFS_SET_TTL   0x800U

/* … of the hints, these bits alone. */
#define MFS_SET_PLACE    0x400U
#define MFS_SET_READS    0x1000U
#define MFS_SET_PIN      0x2000U
#define MFS_SET_STRIPE   0x4000U
#define MFS_SET_REPLICAS 0x8000U
#define MFS_SET_HINTS                                                                              \
    (MFS_SET_PLACE | MFS_SET_TTL | MFS_SET_READS | MFS_SET_PIN | MFS_SET_STRIPE | MFS_SET_REPLICAS)

static inline uint32_t mfs_set_bits(int64_t mask)
{
    return (mask & MFS_SET_PLACE
                ? MFS_HINT_PLACE | MFS_HINT_TOGETHER | (MFS_HINT_NODES - 1) << MFS_HINT_NODE_AT
                : 0) |
           (mask & MFS_SET_READS ? MFS_HINT_READS << MFS_HINT_READS_AT : 0) |
           (mask & MFS_SET_PIN ? MFS_HINT_PIN : 0) |
           (mask & MFS_SET_STRIPE ? MFS_HINT_STRIPES << MFS_HINT_STRIPE_AT : 0) |
           (mask & MFS_SET_REPLICAS ? MFS_HINT_ALONE : 0);
}

/* What a change of a file's content or owner takes away, in the same atomic step: capabilities
 * always; set-user-ID, and set-group-ID if its group may execute it, unless the caller may keep
 * them (CAP_FSETID). */
#define MFS_DROP_CAPS 0x40U
#define MFS_DROP_IDS  0x80U
#define MFS_DROP_ALL  (MFS_DROP_CAPS | MFS_DROP_IDS)

/* Entry of a directory shard: ino (8, big-endian), type (mode >> 12), and while a rename to another
 * partition is under way its transaction (16) and the partition that decides it (2, big-endian). */
#define MFS_TXN_LEN    16
#define MFS_ENTRY_LEN  9
#define MFS_INTENT_LEN (MFS_ENTRY_LEN + MFS_TXN_LEN + 2)

/* What a rename with RENAME_WHITEOUT leaves in its source's place, a character device 0:0 that is
 * made there and then: the partition that has the name (2, big-endian), record. */
#define MFS_WHITEOUT_LEN (2 + MFS_RECORD_FIXED)

#endif
