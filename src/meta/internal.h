/* What the files of src/meta share: the state, and how a function in a partition is called. */
#ifndef MFS_META_INTERNAL_H
#define MFS_META_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/ticker.h"
#include "cluster/placement.h"
#include "meta/meta.h"
#include "meta/record.h"
#include "store/args.h"
#include "store/keys.h"
#include "store/reply.h"
#include "store/store.h"

struct mfs_dircache;
struct mfs_contents;
struct mfs_filecache;
struct mfs_shards;
struct mfs_parents;
struct mfs_opens;
struct mfs_notices;
struct mfs_untold;
struct mfs_debts;
struct mfs_doubts;

/* When something counts as left behind. Tests shorten them. */
struct mfs_meta_limits {
    _Atomic int64_t patience;       /* ns to wait for what another client is about to finish */
    _Atomic int64_t intent_seconds; /* then housekeeping ends a transaction */
    _Atomic int64_t holder_seconds; /* then others end the holder of the lock on moves */
    _Atomic int64_t chores_ms;      /* a partition is looked at no more often than this */
    _Atomic int64_t forsaken;       /* ns that an open of which only its partition knows lasts */
    _Atomic int64_t late; /* ns that what a step relies on may be old, see mfs_not_after */
};

#define MFS_HINTS 64

/* How large an inode was that was appended to. */
struct mfs_hint {
    _Atomic uint64_t ino, size;
};

struct mfs_meta {
    struct mfs_store *store;
    struct mfs_meta_opts opts;
    struct mfs_meta_limits limits;
    uint32_t nparts, stripe_size;
    _Atomic uint64_t sid;
    _Atomic int64_t proved; /* mono: the session was alive then, and is for its time to live */
    _Atomic int64_t session_began; /* mono: all that is taken since then is taken in its name */
    _Atomic uint64_t resets;       /* mfs_store_resets when all leases were last forgotten, … */
    _Atomic uint64_t resets_told;  /* … and when who keeps content was told */
    _Atomic uint64_t failovers;    /* mfs_store_failovers when all that is kept by version was */
    atomic_uint drops;             /* of all that others keep, under way */
    bool stuck;                    /* the last that was waited for was not done in time */
    atomic_bool remains;      /* some have died, who may have left what no list of chores has */
    atomic_bool unsure;       /* an answer was lost: so may this one */
    bool was_unsure;          /* … at some time; of the session's thread */
    atomic_bool deaf;         /* nobody listens for the session that there is now */
    bool was_out;             /* of touch, at the last tick; its thread's */
    _Atomic uint64_t appends; /* begun so far, which numbers them */
    _Atomic uint64_t waits;   /* for locks; likewise */
    struct mfs_dircache *dirs;
    struct mfs_filecache *files;
    struct mfs_contents *contents;
    struct mfs_shards *shards;
    struct mfs_parents *parents;
    struct mfs_opens *opens;
    struct mfs_notices *notices;
    struct mfs_untold *untold;
    struct mfs_debts *debts;
    struct mfs_doubts *doubts;
    struct mfs_ticker session_ticker, touch_ticker, parents_ticker, closes_ticker, chores_ticker;
    struct mfs_hint hints[MFS_HINTS];
    pthread_mutex_t space_mutex;
    struct mfs_meta_space space; /* under space_mutex, as is space_at */
    int64_t space_at;
};

/* --- calls --------------------------------------------------------------------------------- */

/* One function or command, its arguments and its answer; fits on the stack. */
struct mfs_call {
    struct mfs_args args;
    struct mfs_cmd cmd;
};

struct mfs_bytes {
    const char *p;
    size_t n;
};

void mfs_call_function(struct mfs_call *c, const char *name); /* in Lua; writes */
void mfs_call_query(struct mfs_call *c, const char *name);    /* in Lua; reads only */
void mfs_call_command(struct mfs_call *c, const char *name);  /* redis' own, or src/partition's */
/* Runs it; 0 or -errno. mfs_call_fini in any case. */
int mfs_call_run(struct mfs_meta *meta, struct mfs_call *c, uint32_t part);
void mfs_call_post(struct mfs_meta *meta, struct mfs_call *c, uint32_t part);
void mfs_call_fini(struct mfs_call *c);
/* The answer's text; p is NULL when it is no string. */
struct mfs_bytes mfs_call_text(const struct mfs_call *c);
struct mfs_bytes mfs_reply_bytes(const struct mfs_reply *r);

/* Several calls, all at once. */
#define MFS_CALLS_MAX 12
struct mfs_calls {
    struct mfs_call call[MFS_CALLS_MAX];
    uint32_t part[MFS_CALLS_MAX];
    size_t n;
};
/* The next call, a function for `part`; its arguments are to be added before the batch runs. */
struct mfs_call *mfs_calls_add(struct mfs_calls *b, const char *function, uint32_t part);
struct mfs_call *mfs_calls_add_command(struct mfs_calls *b, const char *name, uint32_t part);
/* 0 or the first error; each call's cmd.rc tells its own. mfs_calls_fini in any case. */
int mfs_calls_run(struct mfs_meta *meta, struct mfs_calls *b);
void mfs_calls_fini(struct mfs_calls *b);
/* And in the same round trip `c` to every partition of the bitmap; those answers are dropped, but
 * their errors count. */
int mfs_calls_run_bits(struct mfs_meta *meta, struct mfs_calls *b, struct mfs_call *c,
                       const unsigned char *bits, size_t nbits);

/* The same call to many partitions at once: those whose bit is set. Each answer is handed to `each`
 * (which may be NULL). */
typedef void mfs_call_each_fn(void *arg, uint32_t part, int rc, struct mfs_bytes answer);
int mfs_call_bits(struct mfs_meta *meta, struct mfs_call *c, const unsigned char *bits, size_t n,
                  mfs_call_each_fn *each, void *arg);

/* How many partitions a bitmap of so many bytes can name, at most. */
size_t mfs_bits_most(const struct mfs_meta *meta, size_t nbits);

/* Arguments in the form that functions take them. */
struct mfs_ino_arg {
    char b[8];
};
struct mfs_time_arg {
    char b[MFS_TIME_LEN];
};
struct mfs_ino_arg mfs_ino_arg(uint64_t ino);
struct mfs_time_arg mfs_time_arg(struct timespec ts);
struct mfs_time_arg mfs_now_arg(void);
void mfs_part_arg(uint32_t part, char out[2]);

/* --- patience ------------------------------------------------------------------------------ */

/* Bounded waiting for something that another client is about to finish. */
struct mfs_patience {
    int64_t since;
    unsigned n;
};
/* Sleeps a little longer each time, with jitter; false, at once, when it has been enough. */
bool mfs_patience_wait(const struct mfs_meta *meta, struct mfs_patience *p);

/* The same for memory, while some may come, between attempts to add a name. Their commands don't
 * wait for it (full_at_once): what they rely on grows old, and others wait for them (untold.h). */
bool mfs_room_wait(const struct mfs_meta *meta, struct mfs_patience *p);

/* For a command that relies on what is asked from now on, and is not refused much later. */
int64_t mfs_not_after(const struct mfs_meta *meta);

/* --- inodes -------------------------------------------------------------------------------- */

/* Takes note of a record that an answer brought, asked for at mono time `asked`: fills *attr,
 * remembers directories, merges their pending times. 0 or -EIO. */
int mfs_meta_take(struct mfs_meta *meta, uint64_t ino, struct mfs_bytes record, int64_t asked,
                  struct mfs_attr *attr);

/* The same of a directory whose link count this client has changed, which no answer from before may
 * hide from it. */
void mfs_meta_counted(struct mfs_meta *meta, uint64_t dir, struct mfs_bytes record, int64_t asked);

/* The record itself: -ESTALE. *c holds it. */
int mfs_meta_record(struct mfs_meta *meta, uint64_t ino, struct mfs_call *c,
                    struct mfs_bytes *record);

/* One name less for a file, for the transaction `txn`, which is done once however often it is asked
 * for; deletes what is left of the file when that was the last. Within mfs_untold_removing. */
int mfs_meta_unref(struct mfs_meta *meta, uint64_t ino, const struct mfs_time_arg *time,
                   const char *txn);

/* What command mfs_unref answered: what unref said, and who else had a lease of the file. */
struct mfs_bytes mfs_meta_unref_answer(struct mfs_bytes answer, struct mfs_bytes *holders);

/* Does what that asks for: on return nobody shows the file as it was, and it is freed if nobody has
 * it open. */
void mfs_meta_unrefed(struct mfs_meta *meta, uint64_t ino, struct mfs_bytes said,
                      struct mfs_bytes holders);

/* The same for a client that died after it had taken the last name, and before all knew: a file
 * with no openers that are registered. */
void mfs_meta_unrefed_by_the_dead(struct mfs_meta *meta, uint64_t ino);

/* What unref, close and so on said: deletes what is left of the file's stripes. If it is open yet,
 * and that only because nobody was told that this client has closed it, tells. */
void mfs_meta_freed(struct mfs_meta *meta, uint64_t ino, struct mfs_bytes said);

/* --- counts that follow names elsewhere, see debts.c ---------------------------------------- */

struct mfs_debts *mfs_debts_create(void);
void mfs_debts_destroy(struct mfs_debts *d);
/* Transaction `txn`, begun at mono time `begun` and noted at `noted`, is done, which `decider`
 * remembers: both may forget it. Nobody waits. Any thread. */
void mfs_debts_paid(struct mfs_meta *meta, const char *txn, int64_t begun, uint32_t noted,
                    uint32_t decider);
/* Tells all that of all of them, and waits for who is about to. */
void mfs_debts_flush(struct mfs_meta *meta);
/* Ends one that was left: the note that `part` has had for `age` seconds, but for its beginning. */
void mfs_debts_end(struct mfs_meta *meta, uint32_t part, const char *txn, struct mfs_bytes note,
                   int64_t age);
/* Is it such a note? */
bool mfs_debts_is(struct mfs_bytes note);

/* --- directories --------------------------------------------------------------------------- */

struct mfs_dircache *mfs_dircache_create(void);
void mfs_dircache_destroy(struct mfs_dircache *cache);
void mfs_dircache_put(struct mfs_dircache *cache, const struct mfs_attr *attr, const char *bits,
                      size_t nbits, int64_t asked);
void mfs_dircache_drop(struct mfs_dircache *cache, uint64_t ino);
/* A lease of the directory's attributes, asked for at mono time `asked`; false: it has been revoked
 * since. */
bool mfs_dircache_lease(struct mfs_dircache *cache, uint64_t ino, int64_t asked);
bool mfs_dircache_revoked(struct mfs_dircache *cache, uint64_t ino, int64_t since);
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

/* Has the directory's inode say that `part` may hold entries of it. -ENOENT, -ENOTDIR */
int mfs_meta_spread(struct mfs_meta *meta, uint64_t dir, uint32_t part);

struct mfs_parents *mfs_parents_create(void);
void mfs_parents_destroy(struct mfs_parents *p);
/* Names came or went in the directory now. */
void mfs_parents_touch(struct mfs_meta *meta, uint64_t dir, struct timespec now);
/* For calls by which directories came or went in it: which of the settings of its times this client
 * has seen (decisions/0008), as mfs_dircache_times_set. */
int32_t mfs_parents_seen(struct mfs_meta *meta, uint64_t dir);
/* Adds to attributes what has not gone out yet. */
void mfs_parents_merge(struct mfs_meta *meta, struct mfs_attr *attr);
void mfs_parents_flush(void *meta);

/* --- files, under leases -------------------------------------------------------------------- */

struct mfs_filecache *mfs_filecache_create(uint32_t most); /* files; 0: 65,536 */
void mfs_filecache_destroy(struct mfs_filecache *cache);
bool mfs_filecache_name(struct mfs_filecache *cache, uint64_t parent, const char *name,
                        struct mfs_attr *attr);
bool mfs_filecache_attr(struct mfs_filecache *cache, uint64_t ino, struct mfs_attr *attr);
/* Leased, by an answer to what was asked at mono time `asked`. */
void mfs_filecache_put(struct mfs_filecache *cache, uint64_t parent, const char *name,
                       const struct mfs_attr *attr, int64_t asked);
/* What is known of a file after this client has changed its content, by the answer. */
void mfs_filecache_update(struct mfs_filecache *cache, const struct mfs_attr *attr, int64_t asked);
void mfs_filecache_atime(struct mfs_filecache *cache, uint64_t ino, struct timespec atime);
/* The name's partition says that it means this inode, or nothing (0): what is known of it goes if
 * that is another. */
void mfs_filecache_forget(struct mfs_filecache *cache, uint64_t parent, const char *name,
                          uint64_t ino);
/* Attributes just fetched: what is known of the file goes if they are others. */
void mfs_filecache_compare(struct mfs_filecache *cache, const struct mfs_attr *attr, int64_t asked);
/* Somebody has changed it: forgets it, and what was asked for before now; ino 0: any. */
void mfs_filecache_revoke(struct mfs_filecache *cache, uint64_t ino);

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

/* --- names in transition -------------------------------------------------------------------- */

/* An entry with an intent, met by a reader. 1: the name means *e; 0: *e is what it means by now
 * (e->ino 0: nothing); -EAGAIN: look again. */
int mfs_intent_read(struct mfs_meta *meta, uint64_t dir, const char *name, struct mfs_entry *e);

/* The same, met by somebody who wants to change the name: finishes, waits for or ends the rename.
 * 0: try again; or -errno. */
int mfs_intent_clear(struct mfs_meta *meta, uint64_t dir, const char *name,
                     const struct mfs_entry *e, struct mfs_patience *patience);

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
                 struct mfs_patience *patience);

/* A shard that holds nothing but the source of a rename that may have happened (length of the name,
 * name, entry): gets that out of the way. 0: try again; or -errno. */
int mfs_leftover_met(struct mfs_meta *meta, uint64_t dir, struct mfs_bytes leftover,
                     struct mfs_patience *patience);

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

/* What a transaction entails beyond its decider, kept there until it is done, whoever does it. */
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

/* Does all of it (again); `becomes`: what the source entry becomes. Of who has made the rename:
 * calls that are in *calls already go along, and the first that is added, if there is a source
 * elsewhere, says 1 when this session has a lease of what that has become. 0 or the first error of
 * what is to be done. */
int mfs_todo_run(struct mfs_meta *meta, const struct mfs_todo *t, const char *txn,
                 struct mfs_bytes becomes, uint32_t decider, struct mfs_calls *calls);

/* Decides the transaction at `decider`, if it is open: it will not happen. 1: it had been
 * committed; 0; or -errno. */
int mfs_txn_abort(struct mfs_meta *meta, const char *txn, uint32_t decider);

/* Learns the transaction's outcome at `decider`, aborting it if it is open; does what it entails if
 * it was committed. 0: aborted; 1: committed and done; or -errno. */
int mfs_txn_end(struct mfs_meta *meta, const char *txn, uint32_t decider);

/* --- renames of directories ------------------------------------------------------------------ */

/* Takes the lock on moves for txn, whose outcome `decider` knows; waits, bounded. 0 and
 * *generation. */
int mfs_move_lock(struct mfs_meta *meta, const char *txn, uint32_t decider, uint64_t *generation);
void mfs_move_unlock(struct mfs_meta *meta, const char *txn);
/* Housekeeping: ends a holder of the lock that is too old; `lock` is what #moving holds. */
void mfs_move_expire(struct mfs_meta *meta, struct mfs_bytes lock, int64_t now);
/* -EINVAL if `ino` is `dir` or one of its ancestors. Under the lock on moves. */
int mfs_move_check(struct mfs_meta *meta, uint64_t dir, uint64_t ino);

/* --- locks ----------------------------------------------------------------------------------- */

enum { MFS_LOCK_READ = 1, MFS_LOCK_WRITE = 2 }; /* in partition/locks/lock_index.h */

/* One attempt to give a lock back, of type F_UNLCK. */
int mfs_lock_give_back(struct mfs_meta *meta, uint64_t ino, bool flock,
                       const struct mfs_lock *lock);

/* An owner that the inode has to have, if it matters. */
void mfs_owned_arg(struct mfs_call *c, bool matters, uint32_t id);

/* --- leases, see partition/files/leases.h
 * ---------------------------------------------------------- */

/* What a function takes for the session that wants a lease: nothing when none are wanted. Points to
 * *sid. */
void mfs_lease_arg(struct mfs_meta *meta, struct mfs_call *c, struct mfs_ino_arg *sid);

/* A call for the holders of leases, at a partition that knows of them; its key is to stay. */
void mfs_leases_ask(struct mfs_call *c, uint64_t ino, char key[MFS_KEY_INO_LEN]);

/* What this client has changed of a directory. */
struct mfs_lease_change {
    uint64_t ino;
    uint32_t part; /* that knows of the leases: where the entry was, or its home */
    bool name;     /* it has lost the name that it had, else its attributes have changed */
};
#define MFS_LEASE_CHANGES 4
/* On return nobody shows it as it was. Calls that are in *calls already go along; the caller frees
 * those. NULL: none. */
void mfs_leases_revoke(struct mfs_meta *meta, const struct mfs_lease_change *changes, size_t n,
                       struct mfs_calls *calls);
/* The same of its attributes alone. */
void mfs_leases_changed(struct mfs_meta *meta, uint64_t ino);

/* Forgets all that is known here under leases. Any thread, does not block. */
void mfs_leases_forget(struct mfs_meta *meta);

/* What is known of a file under a lease, by name or number. False: nothing that can be relied on.
 */
bool mfs_leases_name(struct mfs_meta *meta, uint64_t parent, const char *name,
                     struct mfs_attr *attr);
bool mfs_leases_attr(struct mfs_meta *meta, uint64_t ino, struct mfs_attr *attr);
/* Asks who else has the file open or a lease of it; the caller frees *c. */
int mfs_leases_ask_openers(struct mfs_meta *meta, uint64_t ino, struct mfs_call *c);
/* This client has given a file privileges, with that version. On return all who have it open know,
 * and what they had written before is committed. -errno: they can't be asked for. */
int mfs_leases_granted(struct mfs_meta *meta, uint64_t ino, uint64_t version);
/* This client has changed a file's attributes, or taken a name of it; `holders` of a lease (8 bytes
 * each). On return nobody shows it as it was; false: some have not been waited for
 * (mfs_meta_settle). */
bool mfs_leases_file_changed(struct mfs_meta *meta, uint64_t ino, struct mfs_bytes holders);
/* The same when the holders have to be asked for; 0, or -errno when they can't be. *all (or NULL):
 * all have been told, and waited for. */
int mfs_leases_file_changed_at_home(struct mfs_meta *meta, uint64_t ino, bool *all);

/* Is it known that the name is not there? */
bool mfs_leases_absent(struct mfs_meta *meta, uint64_t dir, uint32_t part, const char *name);
/* This client has added a name; `keeper` of the shard (8 bytes, or none). On return nobody says
 * that it is not there. */
void mfs_leases_name_added(struct mfs_meta *meta, uint64_t dir, uint32_t part,
                           struct mfs_bytes keeper);

/* --- failovers and silence, see touch.c ------------------------------------------------------- */

/* If there has been one, forgets all leases, and after a failover all that is kept by a file's
 * version. To be called before an answer is used that may be the new process'. Any thread, does not
 * block. */
void mfs_touch_check(struct mfs_meta *meta);
/* … and whether those there are now can be relied on: others wait for this session, and cm was
 * there within so many ns. */
bool mfs_touch_leases(struct mfs_meta *meta, int64_t within);
/* May the kernel keep for MFS_META_LEASE what was leased by a question of mono time `asked`? */
bool mfs_touch_grants(struct mfs_meta *meta, int64_t asked);
void mfs_touch_tick(void *meta);

/* --- open files and sessions ------------------------------------------------------------------ */

struct mfs_opens *mfs_opens_create(void);
void mfs_opens_destroy(struct mfs_opens *o);
/* Counts an open that was registered for `sid`; it is to be registered again if the session is
 * another by now. */
void mfs_opens_added(struct mfs_meta *meta, uint64_t ino, uint64_t sid);
void mfs_opens_locked(struct mfs_meta *meta, uint64_t ino); /* has, or had, locks */

/* Tells the partitions of all closes that nobody waits for. */
void mfs_closes_flush(void *meta);
/* And of those of this inode at once. */
void mfs_closes_flush_of(struct mfs_meta *meta, uint64_t ino);

/* Session `sid` has the inode open no more; posted. Housekeeping frees what that leaves. */
void mfs_session_disown(struct mfs_meta *meta, uint64_t ino, uint64_t sid);

int mfs_session_start(struct mfs_meta *meta);
void mfs_session_end(struct mfs_meta *meta);
void mfs_session_tick(void *meta);
/* What was asked of a partition ended so; if nobody knows whether it was done, something may be
 * left of it. Returns rc. */
int mfs_session_doubt(struct mfs_meta *meta, int rc);
/* Is the session alive, and for a quarter of its time to come? Any thread, does not block. */
bool mfs_session_sure(const struct mfs_meta *meta);
/* … and is it told of what others change? */
bool mfs_session_hears(const struct mfs_meta *meta);
/* Makes sure of the former, under a new session if need be: before anything is taken in its name
 * that others give to whom they like once it is dead. 0, or -EIO after 2 s: nobody could tell. */
int mfs_session_prove(struct mfs_meta *meta);
/* alive[i] tells of sids[i]; the unknown (an error) count as alive. */
void mfs_session_alive(struct mfs_meta *meta, const uint64_t *sids, size_t n, bool *alive);
/* … and of which nodes they are; MFS_NO_NODE where that is not known. */
void mfs_session_find(struct mfs_meta *meta, const uint64_t *sids, size_t n, bool *alive,
                      uint32_t *node);

void mfs_chores_tick(void *meta);

/* --- appending ------------------------------------------------------------------------------ */

struct mfs_place_wait { /* zeros before the first */
    int64_t since, pause;
};
/* Session `holder` has the place behind the end of the file: pauses, and takes it from one that is
 * dead. -EAGAIN: ask again; -EBUSY: that has taken too long in all. */
int mfs_place_wait(struct mfs_meta *meta, uint64_t ino, uint64_t holder, struct mfs_place_wait *w);

#endif
