/* What commands on files share with each other. */
#ifndef MFS_PARTITION_FILES_FILES_H
#define MFS_PARTITION_FILES_FILES_H

#include <stdbool.h>

#include "partition/inode.h"

#define MFS_SESSION_LEN 8 /* bytes of a session's number */

/* Bytes for a stripe, as arguments from `first` on: offset, bytes, …; or, unless `at` is negative,
 * the bytes alone, which belong there. */
struct mfs_parts {
    const struct mfs_request *r;
    int first;
    int64_t at;
};

/* What becomes known of a file's content (mfs_commit). */
struct mfs_commit {
    struct mfs_span ino, time, room, sid, named, cuts;
    int64_t size, end, drop;
    struct mfs_parts parts;
};

/* Does it, and adds the new record and behind it the sessions that have to be told: other openers
 * and holders of leases. 0, or an errno, of which *why says more. The caller has the command
 * replicated. */
int mfs_commit_run(struct RedisModuleCtx *ctx, const struct mfs_commit *c, struct mfs_answer *a,
                   const char **why);

/* How many bytes a stripe has here, or had before they were lost. */
int64_t mfs_stripe_length(struct RedisModuleCtx *ctx, struct RedisModuleKey *stripe);

/* The value of a stripe ends after `keep` bytes at the latest; its old and its new length. What is
 * left of a lost one stays lost. */
struct mfs_cut {
    int64_t old, now;
};
struct mfs_cut mfs_stripe_cut(struct RedisModuleCtx *ctx, struct RedisModuleKey *stripe,
                              int64_t keep);

/* May stripes 1 … hold bytes at or beyond `size`? The caller deleted them when it had seen that
 * version; what another client has made known since, also below the end of data that there was, it
 * may have stored after that. */
struct mfs_trim {
    int64_t size, stripe_size, version;
};
bool mfs_file_untrimmed(const char *rec, const struct mfs_trim *t);

/* overlayfs copies a file into one of no name that is root's: it sets size (which is that of what
 * was written), mode and last the owner, which the kernel passes on like ftruncate(2) and
 * fchown(2). Only root has put anything there. */
bool mfs_file_is_copy_up(const char *rec);

/* The key P of a file, whose first 8 bytes are the session that appends beyond stripe 0; none, if
 * there is no such session. Good until the key is closed. */
struct mfs_span mfs_file_appender(struct RedisModuleKey *place);
/* The session, if another one than `sid`, that has a lease of the file's end (P ino, kept); copied
 * to `holder`. */
bool mfs_file_end_is_leased(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_span sid,
                            char holder[MFS_SESSION_LEN]);

/* mfs_sput, of any name: answers. False: nothing was done. */
bool mfs_stripe_put_parts(const struct mfs_request *r);

#endif
