/* The bytes of what a partition stores about names and inodes. Pure; decodes hostile bytes safely.
 * The layouts are in partition/layout.h. */
#ifndef MFS_META_RECORD_H
#define MFS_META_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "meta/attr.h"
#include "partition/layout.h"

void mfs_time_encode(struct timespec ts, char out[MFS_TIME_LEN]);
struct timespec mfs_time_decode(const char *p);

/* Fills *attr; ino is the caller's knowledge. *tail points into the record. 0, or -EIO for bytes
 * that are no record. */
int mfs_meta_record_decode(const void *p, size_t n, uint64_t ino, struct mfs_attr *attr,
                           const char **tail, size_t *tail_len);

/* The fixed part. */
void mfs_meta_record_encode(const struct mfs_attr *attr, char out[MFS_RECORD_FIXED]);

struct mfs_entry {
    uint64_t ino;
    uint32_t type; /* S_IFMT bits */
    bool intent;
    char txn[MFS_TXN_LEN];
    uint32_t decider;
};

int mfs_entry_decode(const void *p, size_t n, struct mfs_entry *e); /* 0 or -EIO */
void mfs_entry_encode(uint64_t ino, uint32_t mode, char out[MFS_ENTRY_LEN]);

/* Bitmap of partitions, as in a directory's tail. */
bool mfs_bits_test(const unsigned char *bits, size_t n, uint32_t part);

#endif
