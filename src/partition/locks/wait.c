/* Which owner of fcntl locks waits for which other one, all of it in partition 0. Key: W, session
 * (8), owner (8). Value: the owner that it waits for (session, owner), then what tells this wait
 * from others and says what it is for (src/meta/wait.c). Each owner has one note at most. */
#include "partition/commands.h"

#include <errno.h>
#include <string.h>

#include "partition/protocol.h"

#define OWNER 16 /* bytes */

static void note(const struct mfs_request *r, int64_t ms)
{
    struct RedisModuleKey *key = mfs_key_open(r->ctx, 'W', mfs_request_arg(r, 1), MFS_REDIS_WRITE);
    struct mfs_span text = mfs_request_arg(r, 2);

    mfs_key_set(r->ctx, key, text.p, text.n);
    mfs_key_expire(key, ms);
    mfs_key_close(key);
}

/* Adds length (2 bytes) and bytes of the holder's note, and sets *holder to the owner that it waits
 * for; false: it waits for none. */
static bool follow(const struct mfs_request *r, char holder[OWNER], struct mfs_answer *notes)
{
    struct RedisModuleKey *key =
        mfs_key_open(r->ctx, 'W', (struct mfs_span){holder, OWNER}, MFS_REDIS_READ);
    struct mfs_span text = mfs_key_text(key);
    bool waits = text.n >= OWNER && text.n <= UINT16_MAX;
    uint16_t n = (uint16_t)text.n;

    if (waits) {
        mfs_answer_add(notes, holder, OWNER);
        mfs_answer_add(notes, &n, sizeof n);
        mfs_answer_span(notes, text);
        memcpy(holder, text.p, OWNER);
    }
    mfs_key_close(key);
    return waits;
}

static int answer_cycle(const struct mfs_request *r, const struct mfs_answer *notes, long steps)
{
    const char *p = notes->p;
    uint16_t n;

    mfs_redis.ReplyWithArray(r->ctx, 2 * steps);
    while (steps--) {
        memcpy(&n, p + OWNER, sizeof n);
        mfs_redis.ReplyWithStringBuffer(r->ctx, p, OWNER);
        mfs_redis.ReplyWithStringBuffer(r->ctx, p + OWNER + sizeof n, n);
        p += OWNER + sizeof n + n;
    }
    return MFS_REDIS_OK;
}

/* mfs_wait owner note ttl_ms: takes the note. If the owners in the way wait for each other and the
 * last of them for the owner: owner, note, … of these in this order; else nil. */
int mfs_command_wait(const struct mfs_request *r)
{
    struct mfs_span text = mfs_request_arg(r, 2);
    int64_t ms = mfs_request_int(r, 3);
    struct mfs_answer notes = {0};
    char holder[OWNER];
    bool cycle = false;
    long steps = 0;

    if (text.n < OWNER || ms <= 0)
        return mfs_request_fail(r, EINVAL, "not a note and a time to live");
    note(r, ms);
    mfs_redis.ReplicateVerbatim(r->ctx);
    memcpy(holder, text.p, OWNER);
    while (!cycle && steps < MFS_WAIT_STEPS && follow(r, holder, &notes)) {
        steps++;
        cycle = !memcmp(holder, mfs_request_arg(r, 1).p, OWNER);
    }
    if (cycle)
        answer_cycle(r, &notes, steps);
    else
        mfs_redis.ReplyWithNull(r->ctx);
    mfs_answer_fini(&notes);
    return MFS_REDIS_OK;
}

static bool stands(const struct mfs_request *r, int owner)
{
    struct RedisModuleKey *key;
    bool is;

    if (!mfs_request_has(r, owner, OWNER))
        return false;
    key = mfs_key_open(r->ctx, 'W', mfs_request_arg(r, owner), MFS_REDIS_READ);
    is = mfs_span_is(mfs_key_text(key), mfs_request_arg(r, owner + 1));
    mfs_key_close(key);
    return is;
}

/* mfs_wait_over owner note [owner note …]: if all these notes stand, the first one goes, and 1. */
int mfs_command_wait_over(const struct mfs_request *r)
{
    bool all = true;

    for (int i = 1; i < r->argc && all; i += 2)
        all = stands(r, i);
    if (all) {
        mfs_key_drop(r->ctx, 'W', mfs_request_arg(r, 1));
        mfs_redis.ReplicateVerbatim(r->ctx);
    }
    return mfs_redis.ReplyWithLongLong(r->ctx, all);
}
