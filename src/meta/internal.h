/* What the files of src/meta share: the state. */
#ifndef MFS_META_INTERNAL_H
#define MFS_META_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/threads/ticker.h"
#include "cluster/placement.h"
#include "meta/meta.h"
#include "meta/record.h"
#include "store/args.h"
#include "store/keys.h"
#include "store/reply.h"
#include "store/store.h"

struct mfs_dircache;
struct mfs_dirnames;
struct mfs_contents;
struct mfs_filecache;
struct mfs_shards;
struct mfs_parents;
struct mfs_opens;
struct mfs_notices;
struct mfs_giveback;
struct mfs_unregistered;
struct mfs_link_counts;
struct mfs_settles;
struct mfs_outcomes;
struct mfs_reads;

/* When something counts as left behind. Tests shorten them. */
struct mfs_meta_limits {
    _Atomic int64_t others_wait;    /* ns to wait for what another client is about to finish */
    _Atomic int64_t intent_seconds; /* then housekeeping ends a transaction */
    _Atomic int64_t holder_seconds; /* then others end the holder of the lock on moves */
    _Atomic int64_t chores_ms;      /* a partition is looked at no more often than this */
    _Atomic int64_t stale_open;     /* ns that an open that only its partition has may last */
    _Atomic int64_t idle_lease;     /* ns; what was not used for so long is given back */
    _Atomic int64_t step_max_age;   /* ns that what a step relies on may be old: mfs_not_after */
};

#define MFS_HINTS 64

/* How large an inode was that was appended to. */
struct mfs_hint {
    _Atomic uint64_t ino, size;
};

/* What was last forgotten because partitions were reached anew. */
struct mfs_meta_forgotten {
    _Atomic uint64_t resets; /* mfs_store_resets when all leases were last forgotten, … */
    _Atomic uint64_t resets_reported; /* … and when the kernel had dropped all that it kept */
    _Atomic uint64_t failovers;       /* mfs_store_failovers when all that is kept by version was */
    atomic_uint drops;                /* of all that the kernel keeps, under way */
    bool stuck;                       /* the last that was waited for was not done in time */
};

/* Why something that no list of chores has may be left in partitions. */
struct mfs_meta_leftovers {
    atomic_bool search_wanted; /* sessions have died */
    atomic_bool answer_lost;   /* this session, too, may have left something */
    bool ever_lost_answer;     /* … at some time; of the session's thread */
};

/* Which partitions housekeeping looks at next: chores.c. */
struct mfs_meta_round {
    uint32_t next, share;      /* a partition; so many at once */
    _Atomic int64_t all_until; /* mono: all of them until then */
};

/* The room that was found last (space.c). */
struct mfs_meta_room {
    pthread_mutex_t mutex; /* guards the rest */
    struct mfs_meta_space space;
    int64_t at; /* mono */
};

/* Names that were read without being remembered (ops/glance.c): in the slot of each name's hash
 * some more bits of it, or 0. A name takes the slot of an older one. */
#define MFS_META_GLANCED 65536U
struct mfs_meta_glanced {
    _Atomic uint16_t marks[MFS_META_GLANCED];
};

struct mfs_meta {
    struct mfs_store *store;
    struct mfs_meta_opts opts;
    struct mfs_meta_limits limits;
    struct mfs_metric_set *metrics; /* meta/metrics.h */
    uint32_t nparts, stripe_size;
    _Atomic uint64_t sid;
    _Atomic int64_t
        refreshed_at; /* mono: the session was alive then, and is for its time to live */
    _Atomic int64_t session_began; /* mono: all that is taken since then is taken in its name */
    atomic_bool unsubscribed;      /* notices for the present session are not subscribed to */
    bool was_out;                  /* of contact, at the last tick; its thread's */
    struct mfs_meta_forgotten forgotten;
    struct mfs_meta_leftovers leftovers;
    struct mfs_meta_round round;
    _Atomic uint64_t appends; /* begun so far, which numbers them */
    _Atomic uint64_t waits;   /* for locks; likewise */
    struct mfs_dircache *dirs;
    struct mfs_dirnames *dirnames; /* NULL: not opts.dir_names */
    struct mfs_filecache *files;
    struct mfs_contents *contents;
    struct mfs_shards *shards;
    struct mfs_parents *parents;
    struct mfs_opens *opens;
    struct mfs_notices *notices;
    struct mfs_giveback *giveback;
    struct mfs_unregistered *unregistered;
    struct mfs_link_counts *link_counts;
    struct mfs_settles *settles;
    struct mfs_outcomes *outcomes;
    struct mfs_reads *reads;
    struct mfs_ticker session_ticker, contact_ticker, parents_ticker, closes_ticker, chores_ticker;
    struct mfs_ticker giveback_ticker;
    struct mfs_store_watch contact_watch;
    struct mfs_hint hints[MFS_HINTS];
    struct mfs_meta_room room;
    struct mfs_meta_glanced glanced;
};

#endif
