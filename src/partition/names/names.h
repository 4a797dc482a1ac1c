/* What commands on names share with each other. */
#ifndef MFS_PARTITION_NAMES_NAMES_H
#define MFS_PARTITION_NAMES_NAMES_H

#include <stdbool.h>

#include "partition/answer.h"
#include "partition/request.h"

/* What takes a name away from an inode needs to know. */
struct mfs_unref {
    struct mfs_span time; /* 12 bytes */
    int64_t stripe_size;
    struct mfs_span sid;
};

/* Adds the length of what mfs_inode_unref adds (1 byte), that, and the other holders of a lease. */
void mfs_names_unref(struct RedisModuleCtx *ctx, struct mfs_span ino, const struct mfs_unref *u,
                     struct mfs_answer *a);

/* Makes an inode of the record, with the extended attributes that are the arguments from `xattrs`
 * on. False: no numbers are left. */
bool mfs_names_make(const struct mfs_request *r, struct mfs_span here, struct mfs_span record,
                    int xattrs, char ino[8]);

#endif
