/* Between rename.c and rename_after.c: a rename under way. */
#ifndef MFS_META_OPS_RENAME_H
#define MFS_META_OPS_RENAME_H

#include <linux/fs.h>
#include <sys/stat.h>

#include "meta/call.h"
#include "meta/internal.h"
#include "meta/session/session.h"
#include "meta/txn/txn.h"

/* Partitions that know of holders: where the entry was, which decides, the inode's home. */
enum mfs_rename_teller {
    MFS_RENAME_ENTRY,
    MFS_RENAME_DECIDER,
    MFS_RENAME_HOME,
    MFS_RENAME_TELLERS
};

struct mfs_place {
    uint64_t dir;
    const char *name;
    uint32_t part;
    struct mfs_entry entry; /* ino 0: nothing there */
};

struct mfs_rename {
    struct mfs_meta *meta;
    struct mfs_place from, to; /* the partition of `to` decides */
    unsigned flags;            /* without RENAME_WHITEOUT */
    bool whites;               /* leaves a whiteout: */
    char whiteout[MFS_WHITEOUT_LEN];
    struct timespec now;
    struct mfs_time_arg time;
    int64_t begun;               /* mono */
    char txn[MFS_TXN_LEN];       /* of this attempt, and of the lock and seals taken for it */
    uint64_t generation;         /* 0: the lock on moves is not held */
    char unref_txn[MFS_TXN_LEN]; /* by which a replaced file elsewhere is counted less */
    char checked[16]; /* inos whose move cannot make a loop; see partition/names/rename.c */
    bool has_checked;
    struct mfs_sealed sealed; /* ino 0: none */
    struct mfs_backoff backoff;
    int64_t not_after;                               /* of this attempt, as is what follows */
    int64_t asked;                                   /* when it began; mono */
    struct mfs_bytes holders[2][MFS_RENAME_TELLERS]; /* of leases of source and target */
    struct mfs_bytes record; /* of the source, as its home has it since; p NULL: not known */
    bool ctime_set;          /* its home has been told of the new ctime */
    bool leased;             /* its new name is, to this session */
    bool moved; /* done; else, after success, the names were of one inode already and both stay */
};

static inline bool mfs_place_is_dir(const struct mfs_place *p)
{
    return p->entry.ino && S_ISDIR(p->entry.type);
}

static inline bool mfs_rename_exchanges(const struct mfs_rename *r)
{
    return r->flags & RENAME_EXCHANGE;
}

/* Of mfs_ctime, whose arguments have to stay; what it answered, if it was told: the record, and
 * others. False: the home does not answer. */
struct mfs_rename_ctime {
    struct mfs_ino_arg ino, sid;
};
void mfs_rename_add_ctime(const struct mfs_rename *r, struct mfs_calls *calls, uint64_t ino,
                          struct mfs_rename_ctime *args);
bool mfs_rename_take_ctime(const struct mfs_call *c, struct mfs_bytes *record,
                           struct mfs_bytes *holders);

/* What others would have to do if this client died: known once directories that change their parent
 * have been checked under the lock. */
struct mfs_todo mfs_rename_todo(const struct mfs_rename *r);

/* It is committed; `status`: what unref status of the replaced inode, if its home is there. What
 * fails from here on is housekeeping's. Nothing is held on return. */
void mfs_rename_conclude(struct mfs_rename *r, struct mfs_bytes status);

#endif
