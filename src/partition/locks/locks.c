/* fcntl and flock locks, as commands. A range has a kind of its own for reading and for writing, as
 * POSIX has it; neighbours of one type and process are one range. */
#include "partition/commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "partition/inode.h"
#include "partition/locks/lock_keys.h"

#define RANGES_MAX  16384 /* of one owner in one file (docs/reference/limits.md) */
#define RANGES_FULL 64    /* likewise, that may be taken when memory is full */
#define GOING_MAX   1024  /* ranges about to go that are looked at, for one that is not */

#define UNLOCK  0 /* in the place of a type */
#define SESSION 8 /* bytes of its number */

enum { INO = 1, OWNER, TYPE, FIRST, LAST, PID, HOLDER = PID }; /* of the commands */

/* What is asked for; false: it is no range. */
static bool read_want(const struct mfs_request *r, struct mfs_locked *want)
{
    struct mfs_span owner = mfs_request_arg(r, OWNER);
    int64_t type = mfs_request_int(r, TYPE);

    if (owner.n != MFS_LOCK_OWNER || (owner.p[0] != 'P' && owner.p[0] != 'F') || type < UNLOCK ||
        type > MFS_RANGE_WRITE)
        return false;
    memcpy(want->owner, owner.p, owner.n);
    want->type = (uint8_t)type;
    want->pid = (uint32_t)mfs_request_int(r, PID);
    want->first = mfs_request_int(r, FIRST);
    want->last = mfs_request_int(r, LAST);
    return want->first >= 0 && want->last >= want->first;
}

/* ---- in the way ------------------------------------------------------------------------------ */

/* The first range in the way that is not about to go, or else (*going) the first one. Where very
 * many are about to go, one that is not may be missed: then the call is refused a moment later. */
static const struct mfs_locked *find_blocker(const struct mfs_locks *l,
                                             const struct mfs_locked *want, bool *going)
{
    const struct mfs_locked *first = NULL, *last = NULL, *each;
    unsigned looked = 0;

    while (looked++ < GOING_MAX && (each = mfs_lock_index_in_way(l->index, want, last))) {
        if ((!last || memcmp(last->owner, each->owner, sizeof last->owner) != 0) &&
            !mfs_locks_closing(l, each->owner)) {
            *going = false;
            return each;
        }
        first = first ? first : each;
        last = each;
    }
    *going = true;
    return first;
}

/* Session, owner, type, process, first and last byte, 1 if all locks in its way may go soon. */
static int answer_blocker(const struct mfs_request *r, const struct mfs_locked *b, bool going)
{
    mfs_redis.ReplyWithArray(r->ctx, 7);
    mfs_redis.ReplyWithStringBuffer(r->ctx, b->owner + 1, SESSION);
    mfs_redis.ReplyWithStringBuffer(r->ctx, b->owner + 1 + SESSION, sizeof b->owner - 1 - SESSION);
    mfs_redis.ReplyWithLongLong(r->ctx, b->type);
    mfs_redis.ReplyWithLongLong(r->ctx, b->pid);
    mfs_redis.ReplyWithLongLong(r->ctx, b->first);
    mfs_redis.ReplyWithLongLong(r->ctx, b->last);
    return mfs_redis.ReplyWithLongLong(r->ctx, going);
}

/* mfs_getlk ino owner type first last: nil, or the lock in the way (answer_blocker). */
int mfs_command_getlk(const struct mfs_request *r)
{
    const struct mfs_locked *blocker;
    struct mfs_locked want;
    struct mfs_locks l;
    bool going;
    int rc;

    if (!read_want(r, &want))
        return mfs_request_fail(r, EINVAL, "not a range");
    l = mfs_locks_open(r->ctx, mfs_request_arg(r, INO), MFS_REDIS_READ);
    blocker = find_blocker(&l, &want, &going);
    rc = blocker ? answer_blocker(r, blocker, going) : mfs_redis.ReplyWithNull(r->ctx);
    mfs_locks_close(&l);
    return rc;
}

/* mfs_in_way ino owner type first last holder: 1 if this holder has a range in the way, else 0. */
int mfs_command_in_way(const struct mfs_request *r)
{
    struct mfs_span holder = mfs_request_arg(r, HOLDER);
    const struct mfs_locked *h;
    struct mfs_locked want;
    struct mfs_locks l;
    bool stands = false;

    if (!read_want(r, &want) || holder.n != MFS_LOCK_OWNER)
        return mfs_request_fail(r, EINVAL, "not a range");
    l = mfs_locks_open(r->ctx, mfs_request_arg(r, INO), MFS_REDIS_READ);
    h = mfs_lock_index_own(l.index, holder.p, want.first);
    for (; h && h->first <= want.last && !stands;
         h = h->last < INT64_MAX ? mfs_lock_index_own(l.index, holder.p, h->last + 1) : NULL)
        stands = want.type == MFS_RANGE_WRITE || h->type == MFS_RANGE_WRITE;
    stands = stands && holder.p[0] == want.owner[0] && memcmp(holder.p, want.owner, holder.n) != 0;
    mfs_locks_close(&l);
    return mfs_redis.ReplyWithLongLong(r->ctx, stands);
}

/* ---- taking and giving back ------------------------------------------------------------------ */

/* What a change makes of an owner's ranges: those in `whole` go, and what is left of the first and
 * last of them comes, and `whole` itself, if it is a lock. */
struct change {
    struct mfs_locked whole, rest[2];
    size_t gone, rests;
};

static void cut(struct change *c, const struct mfs_locked *h, const struct mfs_locked *want)
{
    if (h->first < want->first && c->rests < 2) {
        c->rest[c->rests] = *h;
        c->rest[c->rests++].last = want->first - 1;
    }
    if (h->last > want->last && c->rests < 2) {
        c->rest[c->rests] = *h;
        c->rest[c->rests++].first = want->last + 1;
    }
}

/* The owner's ranges from the one before what is wanted to the one behind it. */
static struct change plan(const struct mfs_lock_index *x, const struct mfs_locked *want)
{
    struct change c = {.whole = *want};
    const struct mfs_locked *h =
        mfs_lock_index_own(x, want->owner, want->first - (want->first > 0));

    while (h && h->first - 1 <= want->last) {
        bool same = h->type == want->type && h->pid == want->pid;

        if (same || (h->first <= want->last && h->last >= want->first))
            c.gone++;
        if (same && h->first < c.whole.first)
            c.whole.first = h->first;
        if (same && h->last > c.whole.last)
            c.whole.last = h->last;
        if (!same && h->first <= want->last && h->last >= want->first)
            cut(&c, h, want);
        h = h->last < INT64_MAX ? mfs_lock_index_own(x, want->owner, h->last + 1) : NULL;
    }
    return c;
}

/* A copy takes what its process has taken. */
static bool is_full(struct RedisModuleCtx *ctx)
{
    int flags = mfs_redis.GetContextFlags(ctx);

    return (flags & MFS_REDIS_OOM) && !(flags & MFS_REDIS_REPLICATED);
}

static bool is_too_much(const struct mfs_locks *l, const struct change *c)
{
    size_t has = mfs_lock_index_count(l->index, c->whole.owner);
    size_t will = has - c->gone + c->rests + (c->whole.type != UNLOCK);

    if (will <= has)
        return false;
    return will > RANGES_MAX || (will > RANGES_FULL && c->whole.type != UNLOCK && is_full(l->ctx));
}

/* True: there was something to do. */
static bool apply(struct mfs_locks *l, const struct change *c)
{
    const struct mfs_locked *h, *w = &c->whole;

    while ((h = mfs_lock_index_own(l->index, w->owner, w->first)) && h->first <= w->last)
        mfs_locks_take(l, h);
    for (size_t i = 0; i < c->rests; i++)
        mfs_locks_put(l, &c->rest[i]);
    if (w->type != UNLOCK)
        mfs_locks_put(l, w);
    return mfs_locks_unmark(l, w->owner) || c->gone || w->type != UNLOCK;
}

static int set(const struct mfs_request *r, struct mfs_locks *l, const struct mfs_inode *i,
               const struct mfs_locked *want)
{
    const struct mfs_locked *blocker = NULL;
    struct change c;
    bool going;

    if (want->type != UNLOCK)
        blocker = find_blocker(l, want, &going);
    if (blocker)
        return answer_blocker(r, blocker, going);
    c = plan(l->index, want);
    if (is_too_much(l, &c))
        return mfs_request_fail(r, ENOLCK, "too many ranges");
    if (apply(l, &c))
        mfs_redis.ReplicateVerbatim(r->ctx);
    return mfs_redis.ReplyWithStringBuffer(r->ctx, i->rec, i->n);
}

/* mfs_setlk ino owner type first last pid; type 0 gives back. The inode's record, or as getlk.
 * ENOLCK: the owner would have too many ranges. */
int mfs_command_setlk(const struct mfs_request *r)
{
    struct mfs_span ino = mfs_request_arg(r, INO);
    struct mfs_inode i;
    struct mfs_locked want;
    struct mfs_locks l;
    int rc;

    if (!read_want(r, &want))
        return mfs_request_fail(r, EINVAL, "not a range");
    i = mfs_inode_open(r->ctx, ino, MFS_REDIS_READ);
    if (!i.rec) {
        mfs_inode_close(&i);
        return mfs_request_fail(r, ESTALE, "no inode");
    }
    l = mfs_locks_open(r->ctx, ino, MFS_REDIS_WRITE);
    rc = set(r, &l, &i, &want);
    mfs_locks_close(&l);
    mfs_inode_close(&i);
    return rc;
}

/* ---- files that are closed, sessions that have ended ----------------------------------------- */

/* mfs_closing ino owners: locks of these (16 bytes each: session, owner) may be about to go. */
int mfs_command_closing(const struct mfs_request *r)
{
    struct mfs_locks l = mfs_locks_open(r->ctx, mfs_request_arg(r, 1), MFS_REDIS_WRITE);
    struct mfs_span owners = mfs_request_arg(r, 2);
    char owner[MFS_LOCK_OWNER];

    for (size_t at = 0; at + sizeof owner - 1 <= owners.n; at += sizeof owner - 1) {
        memcpy(owner + 1, owners.p + at, sizeof owner - 1);
        for (int k = 0; k < 2; k++) {
            owner[0] = "PF"[k];
            if (mfs_lock_index_count(l.index, owner))
                mfs_locks_mark(&l, owner);
        }
    }
    mfs_locks_close(&l);
    mfs_redis.ReplicateVerbatim(r->ctx);
    return mfs_redis.ReplyWithNull(r->ctx);
}

/* mfs_unlock_session ino sid: drops every lock of a session. */
int mfs_command_unlock_session(const struct mfs_request *r)
{
    struct mfs_locks l = mfs_locks_open(r->ctx, mfs_request_arg(r, 1), MFS_REDIS_WRITE);
    struct mfs_span sid = mfs_request_arg(r, 2);

    if (sid.n == SESSION)
        mfs_locks_take_session(&l, sid);
    mfs_locks_close(&l);
    mfs_redis.ReplicateVerbatim(r->ctx);
    return mfs_redis.ReplyWithNull(r->ctx);
}
