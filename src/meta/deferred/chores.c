/* Housekeeping: what clients that died, or did not wait, have left. Every client does a little of
 * it every few seconds; a partition lets only one of them look at a time.
 *
 * Clients share the partitions without speaking of it. A client that mostly comes too late, as
 * another has just looked, halves the number of partitions that it looks at in one go, and one that
 * mostly comes first doubles it. So all of them together look at each partition once or twice per
 * interval, however many they are. Each takes the partitions in turn, from one that is its own, so
 * none is forgotten.
 *
 * Only what a client has open without knowing it can be found by nobody else: after an answer was
 * lost it looks at all. */
#include "meta/deferred/unknown_outcomes.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"
#include "meta/call.h"
#include "meta/deferred/deferred.h"
#include "meta/ops/ops.h"
#include "meta/session/opens.h"
#include "meta/session/session.h"
#include "meta/txn/txn.h"
#include "partition/protocol.h"

#define LEAST_SHARE 32U             /* partitions that a client looks at in one round */
#define AT_ONCE     32U             /* of these: bounds the connections and answers */
#define DOUBT       (600 * MFS_SEC) /* two looks, longer apart than an open may last, and once more */

static void reap(struct mfs_meta *meta, uint32_t part, const struct mfs_reply *list)
{
    for (size_t i = 0; i + 1 < mfs_reply_count(list); i += 2) {
        struct mfs_bytes ino = mfs_reply_bytes(mfs_reply_at(list, i));
        struct mfs_bytes data_end = mfs_reply_bytes(mfs_reply_at(list, i + 1));
        char status[9] = {1}; /* as mfs_inode_unref adds (partition/inode.h) */

        if (ino.n != 8 || data_end.n != 8 || mfs_placement_home(mfs_get_be64(ino.p)) != part)
            continue;
        memcpy(status + 1, data_end.p, 8);
        mfs_meta_freed(meta, mfs_get_be64(ino.p), (struct mfs_bytes){status, sizeof status});
    }
}

/* One less of the opens that this client does not know of, as an answer was lost; not all, as it
 * may be opening the file just now. Only this client can know, so it may not depend on winning the
 * look. */
static void close_stale(struct mfs_meta *meta, uint32_t part, const struct mfs_reply *list)
{
    for (size_t i = 0; i < mfs_reply_count(list); i++) {
        struct mfs_bytes b = mfs_reply_bytes(mfs_reply_at(list, i));
        uint64_t ino = b.n == 8 ? mfs_get_be64(b.p) : 0;

        if (ino && mfs_placement_home(ino) == part && mfs_opens_stale(meta, ino))
            mfs_meta_close(meta, ino, true);
    }
}

/* Openers whose session is dead open nothing any more. What is there without openers waits for
 * holders of leases to be told, by a client that may be dead. */
static void disown(struct mfs_meta *meta, uint64_t ino, const struct mfs_reply *sids)
{
    size_t n = mfs_reply_count(sids), most = MFS_ARGS_MAX - 8;
    struct mfs_ino_arg key = mfs_ino_arg(ino), dead[MFS_ARGS_MAX];
    uint64_t sid[MFS_ARGS_MAX];
    bool alive[MFS_ARGS_MAX];
    struct mfs_bytes status;
    struct mfs_call c;
    bool revoke_pending = false;
    size_t ndead = 0;

    n = n < most ? n : most;
    for (size_t i = 0; i < n; i++) {
        struct mfs_bytes b = mfs_reply_bytes(mfs_reply_at(sids, i));

        if (b.n != 8)
            return;
        sid[i] = mfs_get_be64(b.p);
    }
    if (n)
        mfs_session_alive(meta, sid, n, alive);
    mfs_call_command(&c, "mfs_disown");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_int(&c.args, meta->stripe_size);
    for (size_t i = 0; i < n; i++) {
        if (alive[i])
            continue;
        dead[ndead] = mfs_ino_arg(sid[i]);
        mfs_args_bin(&c.args, dead[ndead].b, sizeof dead[ndead].b);
        ndead++;
    }
    if (n && !ndead)
        return;
    if (!mfs_call_run(meta, &c, mfs_placement_home(ino))) {
        status = mfs_call_text(&c);
        mfs_meta_freed(meta, ino, status);
        revoke_pending = n == ndead && status.n && status.p[0] == MFS_UNREF_STAYS;
    }
    mfs_call_fini(&c);
    if (revoke_pending)
        mfs_meta_revoke_orphan(meta, ino);
}

static void adopt_orphans(struct mfs_meta *meta, uint32_t part, const struct mfs_reply *list)
{
    for (size_t i = 0; i + 1 < mfs_reply_count(list); i += 2) {
        struct mfs_bytes ino = mfs_reply_bytes(mfs_reply_at(list, i));

        if (ino.n == 8 && mfs_placement_home(mfs_get_be64(ino.p)) == part)
            disown(meta, mfs_get_be64(ino.p), mfs_reply_at(list, i + 1));
    }
}

/* `source`: a directory and a name of it, whose entry has the intent. */
static void end_intent(struct mfs_meta *meta, const char *txn, struct mfs_bytes source)
{
    char name[MFS_NAME_LEN_MAX + 1];
    uint64_t dir = mfs_get_be64(source.p);

    if (source.n - 8 > MFS_NAME_LEN_MAX)
        return;
    memcpy(name, source.p + 8, source.n - 8);
    name[source.n - 8] = 0;
    mfs_intent_end_of(meta, dir, name, txn);
}

/* #intents: txn → since (8), and for the source of a rename its directory and name, or what
 * link_counts.c knows; otherwise this partition decided txn, and what it entails is to be done. */
static void end_transactions(struct mfs_meta *meta, uint32_t part, const struct mfs_reply *list,
                             int64_t now)
{
    for (size_t i = 0; i + 1 < mfs_reply_count(list); i += 2) {
        struct mfs_bytes txn = mfs_reply_bytes(mfs_reply_at(list, i));
        struct mfs_bytes value = mfs_reply_bytes(mfs_reply_at(list, i + 1));
        struct mfs_bytes what;
        int64_t age;

        if (txn.n != MFS_TXN_LEN || value.n < 8)
            continue;
        what = (struct mfs_bytes){value.p + 8, value.n - 8};
        age = (int64_t)((uint64_t)now - mfs_get_be64(value.p));
        if (age < meta->limits.intent_seconds)
            continue;
        if (mfs_link_counts_is_note(what))
            mfs_link_counts_finish(meta, part, txn.p, what, age);
        else if (what.n > 8)
            end_intent(meta, txn.p, what);
        else
            mfs_txn_end(meta, txn.p, part);
    }
}

static void look_at_all(struct mfs_meta *meta, uint32_t part, const struct mfs_reply *answer)
{
    int64_t now = mfs_reply_int(mfs_reply_at(answer, 1));

    reap(meta, part, mfs_reply_at(answer, 2));
    adopt_orphans(meta, part, mfs_reply_at(answer, 3));
    end_transactions(meta, part, mfs_reply_at(answer, 4), now);
    if (part == 0)
        mfs_move_expire(meta, mfs_reply_bytes(mfs_reply_at(answer, 5)), now);
    if (mfs_reply_int(mfs_reply_at(answer, 6)) > 0)
        meta->leftovers.search_wanted = true;
    mfs_expire_look(meta, part, mfs_reply_at(answer, 7), now);
}

/* True: no other client had just looked. */
static bool take_answer(struct mfs_meta *meta, const struct mfs_cmd *answered)
{
    const struct mfs_reply *reply = answered->reply;

    if (answered->rc || !mfs_reply_count(reply))
        return false;
    close_stale(meta, answered->part, mfs_reply_at(reply, 0));
    if (mfs_reply_count(reply) < 2)
        return false;
    look_at_all(meta, answered->part, reply);
    return true;
}

/* Asks up to AT_ONCE partitions, of which `part` is the first, all before any of them is waited
 * for. At how many no other client had just looked. */
static uint32_t look_at(struct mfs_meta *meta, uint32_t part, uint32_t n)
{
    struct mfs_ino_arg sid = mfs_ino_arg(meta->sid);
    struct mfs_cmd cmds[AT_ONCE];
    struct mfs_args args;
    uint32_t first = 0;

    assert(n <= AT_ONCE && n <= meta->nparts);
    mfs_args_init(&args, "mfs_chores");
    mfs_args_bin(&args, sid.b, sizeof sid.b);
    mfs_args_int(&args, meta->limits.chores_ms);
    for (uint32_t i = 0; i < n; i++)
        cmds[i] = mfs_args_cmd(&args, (part + i) % meta->nparts);
    mfs_session_note_outcome(meta, mfs_store_exec(meta->store, cmds, n));
    for (uint32_t i = 0; i < n; i++)
        first += take_answer(meta, &cmds[i]);
    mfs_cmds_fini(cmds, n);
    return first;
}

/* As look_at, at any number of partitions. */
static uint32_t look_at_many(struct mfs_meta *meta, uint32_t part, uint32_t n)
{
    uint32_t first = 0;

    for (uint32_t done = 0; done < n; done += AT_ONCE)
        first +=
            look_at(meta, (part + done) % meta->nparts, n - done < AT_ONCE ? n - done : AT_ONCE);
    return first;
}

static uint32_t least_share(const struct mfs_meta *meta)
{
    return meta->nparts < LEAST_SHARE ? meta->nparts : LEAST_SHARE;
}

static void adapt_share(struct mfs_meta *meta, uint32_t looked, uint32_t first)
{
    struct mfs_meta_round *r = &meta->round;

    if (first < looked / 4)
        r->share /= 2;
    else if (first > looked / 2)
        r->share *= 2;
    if (r->share < least_share(meta))
        r->share = least_share(meta);
    if (r->share > meta->nparts)
        r->share = meta->nparts;
}

void mfs_chores_begin(struct mfs_meta *meta)
{
    meta->round.next = (uint32_t)(meta->sid % meta->nparts);
    meta->round.share = least_share(meta);
}

void mfs_chores_doubt(struct mfs_meta *meta)
{
    atomic_store(&meta->round.all_until, mfs_clock_mono() + DOUBT);
}

void mfs_chores_all(struct mfs_meta *meta)
{
    mfs_outcomes_retry(meta);
    look_at_many(meta, 0, meta->nparts);
}

void mfs_chores_tick(void *arg)
{
    struct mfs_meta *meta = arg;
    struct mfs_meta_round *r = &meta->round;
    uint32_t n = mfs_clock_mono() < r->all_until ? meta->nparts : r->share;
    uint32_t first;

    mfs_outcomes_retry(meta);
    first = look_at_many(meta, r->next, n);
    r->next = (r->next + n) % meta->nparts;
    adapt_share(meta, n, first);
}
