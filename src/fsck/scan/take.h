/* Takes note of what a partition has. 0 or a negative errno. */
#ifndef MFS_FSCK_SCAN_TAKE_H
#define MFS_FSCK_SCAN_TAKE_H

#include "fsck/census/census.h"

struct mfs_item {
    const char *key;
    size_t key_len;
    int type; /* as redis' module API numbers them */
    bool all; /* the parts are all there is */
    int64_t ttl;
    uint64_t len;
    const char *parts; /* each with its length (4, little-endian) before it */
    size_t parts_len;
    uint32_t nparts;
};
enum { MFS_KEY_STRING = 1, MFS_KEY_HASH = 3, MFS_KEY_SET = 4 };
/* 1: its fields have to be gone through one by one, each to mfs_take_field, before the next item.
 */
int mfs_take_item(struct mfs_census *c, uint32_t part, const struct mfs_item *item);
int mfs_take_field(struct mfs_census *c, uint32_t part, const char *key, size_t key_len,
                   const char *field, size_t field_len, const char *value, size_t value_len);

#endif
