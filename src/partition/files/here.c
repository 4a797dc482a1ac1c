/* Bytes of stripes that a replica does not get (decisions/0046).
 *
 * A client's command that changes such a stripe is carried out by this process alone. The replica
 * is told in its place that the stripe has so many bytes, and that they are lost (journal/lost.h):
 * each time, as it may have got the bytes of before with its copy. So when it takes over, who reads
 * them gets EIO, never zeros and never what was there before. All other commands on stripes do the
 * same to one that is lost, and reach the replica as ever.
 *
 * A process that follows to take this one's place (a move) is sent everything. */
#include "partition/commands.h"

#include <errno.h>
#include <strings.h>

#include "partition/files/files.h"
#include "partition/journal/lost.h"
#include "partition/replica/term.h"

/* Commands with a key as first argument, which answer by themselves; false: nothing was done. */
typedef bool change_fn(const struct mfs_request *r);

static bool answer_as(const struct mfs_request *r, struct RedisModuleCallReply *reply)
{
    bool done;

    if (!reply) {
        mfs_request_fail(r, EINVAL, "the server refuses the command");
        return false;
    }
    done = mfs_redis.CallReplyType(reply) != MFS_REDIS_REPLY_ERROR;
    mfs_redis.ReplyWithCallReply(r->ctx, reply);
    mfs_redis.FreeCallReply(reply);
    return done;
}

static bool set(const struct mfs_request *r)
{
    return answer_as(r, mfs_redis.Call(r->ctx, "SET", "ss", r->argv[1], r->argv[2]));
}

static bool setrange(const struct mfs_request *r)
{
    return answer_as(r,
                     mfs_redis.Call(r->ctx, "SETRANGE", "sss", r->argv[1], r->argv[2], r->argv[3]));
}

static const struct {
    const char *name;
    int least, most; /* words */
    change_fn *run;
} changes[] = {{"SET", 3, 3, set},
               {"SETRANGE", 4, 4, setrange},
               {"mfs_sput", 4, INT32_MAX, mfs_stripe_put_parts}};

static change_fn *find(const struct mfs_request *r)
{
    const char *name = mfs_request_arg(r, 0).p;

    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        if (!strcasecmp(name, changes[i].name) && r->argc >= changes[i].least &&
            r->argc <= changes[i].most)
            return changes[i].run;
    return NULL;
}

/* Of anything else the replica would lose what it has. */
static bool is_stripe(struct mfs_span key)
{
    return key.n > 0 && key.p[0] == 'S';
}

static void tell_replica(struct RedisModuleCtx *ctx, struct RedisModuleString *name)
{
    struct RedisModuleKey *key = mfs_redis.OpenKey(ctx, name, MFS_REDIS_READ);

    mfs_redis.Replicate(ctx, "mfs_slost", "sl", name, (long long)mfs_stripe_length(ctx, key));
    mfs_key_close(key);
}

/* mfs_here COMMAND key …: what SET key bytes, SETRANGE key off bytes or mfs_sput answers. */
int mfs_command_here(const struct mfs_request *r)
{
    const struct mfs_request change = {r->ctx, r->argv + 1, r->argc - 1};
    change_fn *run = find(&change);

    if (!run || !is_stripe(mfs_request_arg(&change, 1)))
        return mfs_request_fail(r, EINVAL, "not a change of a stripe's bytes");
    if (!run(&change))
        return MFS_REDIS_OK;
    if (mfs_term_follower_is_replica())
        tell_replica(r->ctx, change.argv[1]);
    else
        mfs_redis.ReplicateVerbatim(r->ctx);
    return MFS_REDIS_OK;
}

/* mfs_slost key bytes: the stripe has so many, which are not here. How many it has now. */
int mfs_command_slost(const struct mfs_request *r)
{
    int64_t bytes = mfs_request_int(r, 2);
    struct RedisModuleKey *stripe;

    if (bytes < 0 || !is_stripe(mfs_request_arg(r, 1)))
        return mfs_request_fail(r, EINVAL, "not of a stripe");
    stripe = mfs_redis.OpenKey(r->ctx, r->argv[1], MFS_REDIS_WRITE);
    if (!bytes)
        mfs_key_delete(stripe);
    else if (mfs_lost_bytes(r->ctx, stripe) != bytes)
        mfs_lost_put(r->ctx, stripe, bytes);
    mfs_key_close(stripe);
    mfs_redis.ReplicateVerbatim(r->ctx);
    return mfs_redis.ReplyWithLongLong(r->ctx, bytes);
}
