/* Inodes at their home: records (layout.h), openers, and their end. */
#ifndef MFS_PARTITION_INODE_H
#define MFS_PARTITION_INODE_H

#include <stdbool.h>
#include <stdint.h>

#include "partition/answer.h"
#include "partition/request.h"
#include "partition/layout.h"
#include "partition/protocol.h"

enum { MFS_TYPE_CHAR = 2, MFS_TYPE_DIR = 4, MFS_TYPE_FILE = 8 }; /* mode / 4096 */

uint32_t mfs_rec_u32(const char *rec, size_t at);
int64_t mfs_rec_i64(const char *rec, size_t at);
void mfs_rec_put_u32(char *rec, size_t at, uint32_t v);
void mfs_rec_put_i64(char *rec, size_t at, int64_t v);
/* A number that would not fit stays as it was: `by` may be anything that a client says. */
void mfs_rec_add_i64(char *rec, size_t at, int64_t by);

/* How often its content was cut off, modulo 65536; and once more. */
uint32_t mfs_rec_cuts(const char *rec);
void mfs_rec_count_cut(char *rec);

/* Is the time a after b (12 bytes each)? */
bool mfs_rec_is_later(const char *a, const char *b);

/* An inode's record, to be read or, when opened for writing, changed in place. */
struct mfs_inode {
    struct RedisModuleKey *key;
    char *rec; /* NULL: there is no such inode */
    size_t n;
};
struct mfs_inode mfs_inode_open(struct RedisModuleCtx *ctx, struct mfs_span ino, int mode);
void mfs_inode_close(struct mfs_inode *i);

unsigned
mfs_inode_type(const struct mfs_inode *i); /* MFS_TYPE_*, or another; of one that is there */
/* Is its number at `at` (owner or group) another one than the argument says? Empty: it may be any.
 */
bool mfs_inode_differs(const struct mfs_inode *i, size_t at, const struct mfs_request *r, int arg);

/* Is it a record as clients write them? What others wrote, or damage has left, is refused where its
 * numbers matter; that it is there, and how many names it has, is believed. */
bool mfs_inode_is_sound(const struct mfs_inode *i);

/* Is its home the partition `here` (2 bytes, big-endian), which is this one? */
bool mfs_inode_is_here(struct mfs_span ino, struct mfs_span here);

/* Bytes of its stripes, where a client says what the deployment's are. */
int64_t mfs_inode_stripe_size(struct mfs_span ino, int64_t usual);

/* That many openers more, or less; how many the session is now (never below 0). */
int64_t mfs_inode_opened(struct RedisModuleCtx *ctx, struct mfs_span ino,
                         struct RedisModuleString *sid, int64_t by);

/* One name less. Adds '\0': the inode stays, and its record if it is a regular file that has names;
 * '\1' and the end of data: it is freed, but for stripes that are the client's to delete; '\2': it
 * is freed; '\3': it was not there; '\4': no name is left, but others have leases (`leased`) and
 * perhaps opens of which nothing is known here: it stays until mfs_told. */
void mfs_inode_unref(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_span time,
                     int64_t stripe_size, bool leased, struct mfs_answer *a);

/* #freed: how many inodes of those that #seq counts are gone. */
void mfs_inode_count_freed(struct RedisModuleCtx *ctx);
/* #orphans has those of no name that are open. False: it was as it is to be. */
bool mfs_inode_orphan(struct RedisModuleCtx *ctx, struct mfs_span ino, bool orphan);

/* How often a regular file is read until its names go, or those of a directory's files; 0: they
 * stay. */
uint32_t mfs_rec_reads(const char *rec);

/* Files in a directory live as long as its record says, or until they have been read: #ttl has
 * those that are to be looked at, and when that was done last (seconds, as text). Puts it there, or
 * takes it away when the record says no such thing any more, or there is none (NULL). */
void mfs_inode_list_ttl(struct RedisModuleCtx *ctx, struct mfs_span ino, const char *rec);

/* #reads: of regular files that are to be read so often, how often that was done since their
 * content changed (files/reads.c). Forgets this one. */
void mfs_inode_forget_reads(struct RedisModuleCtx *ctx, struct mfs_span ino);

/* Takes away what of MFS_DROP_* it has; not of a directory. The inode is open for writing, and the
 * caller tells the journal of its record. */
void mfs_inode_drop(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_inode *i,
                    int64_t what);

/* The inode was read at that time (12 bytes; zeros: it was not), which never goes backwards. */
void mfs_inode_read(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_span time);

/* All leases of other sessions have been revoked since the last name went. */
void mfs_inode_revoked(struct RedisModuleCtx *ctx, struct mfs_span ino);

/* Frees the inode when neither a name nor an opener is left, nor leases that are still being
 * revoked, and adds the same. */
void mfs_inode_free_if_idle(struct RedisModuleCtx *ctx, struct mfs_span ino, int64_t stripe_size,
                            struct mfs_answer *a);

#endif
