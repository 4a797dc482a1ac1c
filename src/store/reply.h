/* What a partition answered. Opaque; valid until mfs_cmds_fini of its command. */
#ifndef MFS_STORE_REPLY_H
#define MFS_STORE_REPLY_H

#include <stddef.h>
#include <stdint.h>

struct mfs_reply;

enum mfs_reply_type {
    MFS_REPLY_NIL,
    MFS_REPLY_INT,
    MFS_REPLY_STR, /* bulk or status */
    MFS_REPLY_ARRAY,
    MFS_REPLY_ERROR
};

enum mfs_reply_type mfs_reply_type(const struct mfs_reply *r);     /* NULL counts as NIL */
int64_t mfs_reply_int(const struct mfs_reply *r);                  /* 0 when it is no integer */
const char *mfs_reply_str(const struct mfs_reply *r, size_t *len); /* NULL when it is no string */
size_t mfs_reply_count(const struct mfs_reply *r); /* elements of an array, else 0 */
const struct mfs_reply *mfs_reply_at(const struct mfs_reply *r, size_t i); /* NULL out of range */

/* The errno of an error reply's text: "ERRNO n …" (what our functions raise) → -n, "OOM …" →
 * -ENOSPC, "NOAUTH/WRONGPASS/NOPERM" → -EACCES, "LOADING/BUSY/TRYAGAIN/MASTERDOWN" → -EAGAIN,
 * "READONLY" → -EROFS, anything else → -EIO. */
int mfs_reply_errno(const char *text, size_t len);

#endif
