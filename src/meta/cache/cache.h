/* What this client remembers of directories, of files, and of which names there are none. Each is
 * bounded and has a mutex of its own: any thread, does not block. */
#ifndef MFS_META_CACHE_CACHE_H
#define MFS_META_CACHE_CACHE_H

#include "meta/internal.h"

/* --- directories ------------------------------------------------------------------------------ */

struct mfs_dircache *mfs_dircache_create(void);
void mfs_dircache_destroy(struct mfs_dircache *cache);
void mfs_dircache_put(struct mfs_dircache *cache, const struct mfs_attr *attr, const char *bits,
                      size_t nbits, int64_t asked);
/* This client has just made the directory, which is known; did it so a moment ago? */
void mfs_dircache_made(struct mfs_dircache *cache, uint64_t ino);
bool mfs_dircache_is_new(struct mfs_dircache *cache, uint64_t ino);
void mfs_dircache_drop(struct mfs_dircache *cache, uint64_t ino);
/* A lease of the directory's attributes, asked for at mono time `asked`; false: it has been revoked
 * since. */
bool mfs_dircache_lease(struct mfs_dircache *cache, uint64_t ino, int64_t asked);
bool mfs_dircache_revoked(struct mfs_dircache *cache, uint64_t ino, int64_t since);
/* This client has changed the directory's link count, and was given these attributes in the same
 * step: what was asked for before now counts no more. A lease that there was stands, unless another
 * answer or change overlaps with this one. */
void mfs_dircache_counted(struct mfs_dircache *cache, const struct mfs_attr *attr, const char *bits,
                          size_t nbits, int64_t asked);
/* Forgets all of the directory but that it is one, and lets nothing count as leased that was asked
 * for before now; ino 0: all of them. */
void mfs_dircache_revoke(struct mfs_dircache *cache, uint64_t ino);
bool mfs_dircache_known(struct mfs_dircache *cache, uint64_t ino);
/* Under a lease, and asked for within MFS_META_LEASE_TIMES? */
bool mfs_dircache_leased(struct mfs_dircache *cache, uint64_t ino, struct mfs_attr *attr);
/* Asked for within the last max_age ns, or under a lease? */
bool mfs_dircache_attr(struct mfs_dircache *cache, uint64_t ino, int64_t max_age,
                       struct mfs_attr *attr);
/* How often its times have been set by hand, when this client would have been told of one more;
 * -1: it is not certain. */
int32_t mfs_dircache_times_set(struct mfs_dircache *cache, uint64_t ino);
bool mfs_dircache_bit(struct mfs_dircache *cache, uint64_t ino, uint32_t part, int64_t max_age);
/* A copy of all that is known of its bitmap, however old, *n bytes; the caller frees it. NULL:
 * nothing. */
unsigned char *mfs_dircache_bits(struct mfs_dircache *cache, uint64_t ino, size_t *n);

/* --- files, under leases ---------------------------------------------------------------------- */

struct mfs_filecache *mfs_filecache_create(uint32_t most); /* names; 0: 65,536 */
void mfs_filecache_destroy(struct mfs_filecache *cache);
bool mfs_filecache_name(struct mfs_filecache *cache, uint64_t parent, const char *name,
                        struct mfs_attr *attr);
bool mfs_filecache_attr(struct mfs_filecache *cache, uint64_t ino, struct mfs_attr *attr);
/* One of the names of a file, as it was known last: for people. name has room for MFS_NAME_LEN_MAX
 * bytes and NUL. */
bool mfs_filecache_a_name(struct mfs_filecache *cache, uint64_t ino, uint64_t *parent, char *name);
/* Leased, by an answer to what was asked at mono time `asked`. */
void mfs_filecache_put(struct mfs_filecache *cache, uint64_t parent, const char *name,
                       const struct mfs_attr *attr, int64_t asked);
/* What is known of a file after this client has changed its content, by the answer. */
void mfs_filecache_update(struct mfs_filecache *cache, const struct mfs_attr *attr, int64_t asked);
/* The same of attributes: whatever was asked for before now counts no more. */
void mfs_filecache_changed(struct mfs_filecache *cache, const struct mfs_attr *attr, int64_t asked);
/* One more name of a file that is known here, or one less. The name's partition has leased it by
 * what was asked at `asked`. */
void mfs_filecache_add_name(struct mfs_filecache *cache, uint64_t parent, const char *name,
                            uint64_t ino, int64_t asked);
void mfs_filecache_drop_name(struct mfs_filecache *cache, uint64_t parent, const char *name);
void mfs_filecache_atime(struct mfs_filecache *cache, uint64_t ino, struct timespec atime);
/* The name's partition says that it means this inode, or nothing (0): what is known of it goes if
 * that is another. */
void mfs_filecache_forget(struct mfs_filecache *cache, uint64_t parent, const char *name,
                          uint64_t ino);
/* Attributes just fetched: what is known of the file goes if they are others. */
void mfs_filecache_compare(struct mfs_filecache *cache, const struct mfs_attr *attr, int64_t asked);
/* Another client has changed it: forgets it, and what was asked for before now; ino 0: any. */
void mfs_filecache_revoke(struct mfs_filecache *cache, uint64_t ino);
/* The same of one file. If it had not been used here for `idle` ns: the directory of a name that
 * was known of it; else 0. */
uint64_t mfs_filecache_revoke_idle(struct mfs_filecache *cache, uint64_t ino, int64_t idle);

/* Forgets up to `most` files with a name in the directory that have not been used for `idle` ns,
 * the oldest first, of some more; calls fn for each name that was known of them, with the cache
 * locked. A file stays if fn returns false, for its first name or all. No answer about the others
 * is kept until mfs_filecache_given, once for each of them; or, after mfs_filecache_lost, as the
 * lease may be given back at any time, until there is another session. */
typedef bool mfs_filecache_give_fn(void *arg, uint64_t ino, uint64_t dir, const char *name,
                                   size_t len);
void mfs_filecache_give(struct mfs_filecache *cache, uint64_t dir, int64_t idle, size_t most,
                        mfs_filecache_give_fn *fn, void *arg);
void mfs_filecache_given(struct mfs_filecache *cache, uint64_t ino);
void mfs_filecache_lost(struct mfs_filecache *cache, uint64_t ino);
void mfs_filecache_renewed(struct mfs_filecache *cache);

/* --- shards all of whose names are known ------------------------------------------------------ */

enum mfs_shard_state { MFS_SHARD_UNKNOWN, MFS_SHARD_KNOWN, MFS_SHARD_OLD };

/* What mfs_create says of this session and the shard that it has put a name into. */
enum mfs_keeper {
    MFS_KEEPER_NOT,
    MFS_KEEPER_FIRST, /* it is the keeper now; the name is the only one there */
    MFS_KEEPER_STILL, /* it is the keeper for another while */
};

struct mfs_shards *mfs_shards_create(uint32_t most); /* names; 0: 2^18 */
void mfs_shards_destroy(struct mfs_shards *s);
/* Certainly not there? */
bool mfs_shards_absent(struct mfs_shards *s, uint64_t dir, uint32_t part, const char *name);
/* Around each step by which this client may add a name. Old: mfs_create should prolong its right.
 */
enum mfs_shard_state mfs_shards_adding(struct mfs_shards *s, uint64_t dir, uint32_t part,
                                       const char *name);
void mfs_shards_added(struct mfs_shards *s, uint64_t dir, uint32_t part, const char *name,
                      enum mfs_keeper keeper, int64_t asked);
/* This client has taken the name away, by what was asked at mono time `asked`. */
void mfs_shards_removed(struct mfs_shards *s, uint64_t dir, uint32_t part, const char *name,
                        int64_t asked);
/* Others add names, or may do so unheard. */
void mfs_shards_revoke(struct mfs_shards *s, uint64_t dir, uint32_t part);
void mfs_shards_revoke_all(struct mfs_shards *s);
/* Around giving the keeper's right back: nothing makes the shard known meanwhile; after
 * mfs_shards_lost, which stands for mfs_shards_given, not until there is another session. */
void mfs_shards_giving(struct mfs_shards *s, uint64_t dir, uint32_t part);
void mfs_shards_given(struct mfs_shards *s, uint64_t dir, uint32_t part);
void mfs_shards_lost(struct mfs_shards *s, uint64_t dir, uint32_t part);
void mfs_shards_renewed(struct mfs_shards *s);

#endif
