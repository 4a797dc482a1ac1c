/* Changes that take steps in several partitions, and those met half done: intents of names, seals
 * of directories, the lock on moves (docs/design/metadata.md). Any thread; blocks. */
#ifndef MFS_META_TXN_TXN_H
#define MFS_META_TXN_TXN_H

#include "meta/call.h"
#include "meta/internal.h"

struct mfs_backoff; /* meta/session/session.h */

/* --- names in transition ---------------------------------------------------------------------- */

/* An entry with an intent, met by a reader. 1: the name means *e; 0: *e is what it means by now
 * (e->ino 0: nothing); -EAGAIN: look again. */
int mfs_intent_read(struct mfs_meta *meta, uint64_t dir, const char *name, struct mfs_entry *e);

/* The same, met by a client that wants to change the name: finishes, waits for or ends the rename.
 * 0: try again; or -errno. */
int mfs_intent_clear(struct mfs_meta *meta, uint64_t dir, const char *name,
                     const struct mfs_entry *e, struct mfs_backoff *backoff);

/* Ends it either way, without waiting. 0 or -errno. */
int mfs_intent_end(struct mfs_meta *meta, uint64_t dir, const char *name,
                   const struct mfs_entry *e);

/* The same by what the entry has: if it is the intent of another transaction, or none, only the
 * note of this one goes. */
int mfs_intent_end_of(struct mfs_meta *meta, uint64_t dir, const char *name, const char *txn);

/* Takes the intent of txn out of the entry, which stays what it is. */
int mfs_intent_undo(struct mfs_meta *meta, uint64_t dir, const char *name, const char *txn);

#define MFS_SEAL_LEN (MFS_TXN_LEN + 2)

/* A sealed shard at `part`. -ENOENT: the directory is gone; 0: try again; or -errno. */
int mfs_seal_met(struct mfs_meta *meta, uint64_t dir, uint32_t part, struct mfs_bytes seal,
                 struct mfs_backoff *backoff);

/* A shard that holds nothing but the source of a rename that may have happened (length of the name,
 * name, entry): gets that out of the way. 0: try again; or -errno. */
int mfs_leftover_met(struct mfs_meta *meta, uint64_t dir, struct mfs_bytes leftover,
                     struct mfs_backoff *backoff);

/* A directory that is about to lose its name. */
struct mfs_sealed {
    uint64_t ino;
    char seal[MFS_SEAL_LEN];
    unsigned char *bits; /* partitions that hold sealed shards; heap */
    size_t nbits;
};
/* Seals it wholly, for the transaction that `seal` names; home_done: the inode is sealed already,
 * *sealed is filled. -ENOTEMPTY, -ESTALE: nothing is sealed then. */
int mfs_seal_all(struct mfs_meta *meta, struct mfs_sealed *s, bool home_done);
int mfs_seal_bits(struct mfs_sealed *s, struct mfs_bytes record); /* from the inode's record */
void mfs_seal_undo(struct mfs_meta *meta, struct mfs_sealed *s);  /* and forgets */
void mfs_seal_done(struct mfs_sealed *s);                         /* frees memory only */

/* What a transaction entails beyond its decider, kept there until it is done, by whichever
 * client. */
struct mfs_todo {
    uint64_t src_dir; /* 0: no source entry to settle */
    uint32_t src_part;
    const char *src_name;
    uint64_t moved, moved_parent; /* 0: none */
    uint64_t other, other_parent; /* of an exchange; 0: none */
    uint64_t generation;          /* of the lock on moves; 0: not taken */
    uint64_t dead;                /* directory that lost its name; 0: none */
    const unsigned char *bits;    /* its shards */
    size_t nbits;
    struct mfs_time_arg time;
    char name[MFS_NAME_LEN_MAX + 1]; /* where decode puts src_name */
};
#define MFS_TODO_NAME_AT 71 /* of the encoded bytes: the name's length */
/* Bytes to keep; heap, NULL when out of memory. */
char *mfs_todo_encode(const struct mfs_todo *t, size_t *n);
int mfs_todo_decode(const void *p, size_t n, struct mfs_todo *t); /* 0 or -EIO; bits point into p */

/* Does all of it (again); `becomes`: what the source entry becomes. For the client that made the
 * rename: calls that are in *calls already go along, and the first that is added, if there is a
 * source elsewhere, says 1 when this session has a lease of what that has become. 0 or the first
 * error of what is to be done. */
int mfs_todo_run(struct mfs_meta *meta, const struct mfs_todo *t, const char *txn,
                 struct mfs_bytes becomes, uint32_t decider, struct mfs_calls *calls);

/* Decides the transaction at `decider`, if it is open: it will not happen. 1: it had been
 * committed; 0; or -errno. */
int mfs_txn_abort(struct mfs_meta *meta, const char *txn, uint32_t decider);

/* Learns the transaction's outcome at `decider`, aborting it if it is open; does what it entails if
 * it was committed. 0: aborted; 1: committed and done; or -errno. */
int mfs_txn_end(struct mfs_meta *meta, const char *txn, uint32_t decider);

/* --- renames of directories ------------------------------------------------------------------- */

/* Takes the lock on moves for txn, whose outcome `decider` knows; waits, bounded. 0 and
 * *generation. */
int mfs_move_lock(struct mfs_meta *meta, const char *txn, uint32_t decider, uint64_t *generation);
void mfs_move_unlock(struct mfs_meta *meta, const char *txn);
/* Housekeeping: ends a holder of the lock that is too old; `lock` is what #moving holds. */
void mfs_move_expire(struct mfs_meta *meta, struct mfs_bytes lock, int64_t now);
/* -EINVAL if `ino` is `dir` or one of its ancestors. Under the lock on moves. */
int mfs_move_check(struct mfs_meta *meta, uint64_t dir, uint64_t ino);

#endif
