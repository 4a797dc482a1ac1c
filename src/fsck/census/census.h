/* What one pass over all partitions has seen, as flat arrays; sorted when all is in. */
#ifndef MFS_FSCK_CENSUS_CENSUS_H
#define MFS_FSCK_CENSUS_CENSUS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "fsck/census/findings.h"
#include "fsck/census/flat.h"
#include "meta/record.h"
#include "store/store.h"

struct mfs_seen_inode {
    uint64_t ino, digest; /* of the record without its access time */
    uint64_t end;         /* of data; of a directory, where its bitmap is in `bytes` */
    uint64_t parent;
    uint32_t mode, nlink;
    uint32_t nbits; /* bytes of the bitmap */
    uint32_t names, subdirs;
    uint8_t mark; /* of the walk for cycles */
    bool moving;  /* a rename of it, or of what is in it, is under way */
};

struct mfs_seen_entry {
    uint64_t ino, dir;
    uint64_t name; /* in `bytes` */
    uint16_t part;
    uint8_t type, len; /* mode >> 12; of the name */
    bool intent, misplaced;
};

struct mfs_seen_intent {
    uint64_t dir, name;
    uint32_t part;
    uint8_t len;
    char bytes[MFS_INTENT_LEN]; /* the entry */
};

struct mfs_seen_shard {
    uint64_t dir;
    uint32_t part, names;
    char seal[MFS_TXN_LEN + 2];
    bool sealed, tomb, expires;
};

struct mfs_seen_stripe {
    uint64_t ino;
    uint32_t n, len;
};

/* A O L P, and each session in them. */
struct mfs_seen_side {
    uint64_t ino, sid; /* 0: the key itself */
    uint32_t part;
    char letter;
};

struct mfs_seen_txn {
    char txn[MFS_TXN_LEN];
    uint32_t part;
    bool committed;
    uint64_t digest;
};

/* Of #intents, and the lock on moves. */
struct mfs_seen_note {
    char txn[MFS_TXN_LEN];
    uint32_t part;
    int64_t age; /* s */
    bool lock;
};

struct mfs_seen_listed { /* in #orphans or #reap */
    uint64_t ino;
    uint32_t part;
};

struct mfs_census {
    uint32_t nparts, stripe_size;
    int64_t stale; /* s */
    /* With several slices only what is to be judged of the inodes of one of them is kept. */
    uint32_t slice, slices; /* 0: one */
    struct mfs_flat inodes, entries, intents, shards, stripes, sides, txns, notes, orphans, reaps,
        sessions;
    struct mfs_flat lost; /* stripes whose bytes were lost with a process
                           * (partition/journal/lost.h); they are among the others, too */
    struct mfs_buf bytes; /* names and bitmaps */
    struct mfs_findings found;
    uint64_t *seq; /* of each partition: the last number that was given out */
    uint64_t keys;
    /* To be set before the scan: it goes on without partitions that can't be read, and notes which
     * those are in unread[nparts]. What others have is seen all the same. */
    bool partial;
    bool *unread;
};

/* Is the inode of the slice? */
bool mfs_census_has(const struct mfs_census *c, uint64_t ino);

/* 0 or -ENOMEM; to be ended in any case. */
int mfs_census_init(struct mfs_census *c, struct mfs_store *store);
void mfs_census_fini(struct mfs_census *c);
void mfs_census_sort(struct mfs_census *c);

/* Keeps bytes; where they are, or UINT64_MAX: no memory. */
uint64_t mfs_census_keep(struct mfs_census *c, const void *p, size_t n);

/* Of a whole record, its access time left out. */
uint64_t mfs_census_digest(const char *rec, size_t n);

/* After the sort. NULL: not seen. */
struct mfs_seen_inode *mfs_census_inode(const struct mfs_census *c, uint64_t ino);
const struct mfs_seen_entry *mfs_census_entry(const struct mfs_census *c, size_t i);
/* Where the names of an inode begin in `entries`, if it has any. */
size_t mfs_census_first_entry(const struct mfs_census *c, uint64_t ino);
const char *mfs_census_name(const struct mfs_census *c, uint64_t name);
bool mfs_census_alive(const struct mfs_census *c, uint64_t sid);
bool mfs_census_orphan(const struct mfs_census *c, uint64_t ino);
bool mfs_census_reaped(const struct mfs_census *c, uint64_t ino);
/* Has a session that lives it open, or the place behind its end? */
bool mfs_census_open(const struct mfs_census *c, uint64_t ino);
/* Of stripes 1 …. */
bool mfs_census_has_stripes(const struct mfs_census *c, uint64_t ino);
bool mfs_census_noted(const struct mfs_census *c, const char *txn);

/* The path of an inode by its first name, or of a name in a directory; into out, which is cleared.
 * Ends in what can't be told: "…/name". */
int mfs_census_path(const struct mfs_census *c, uint64_t ino, struct mfs_buf *out);
int mfs_census_path_of(const struct mfs_census *c, uint64_t dir, const char *name, size_t len,
                       struct mfs_buf *out);

#endif
