#include "partition/names/txn.h"

#include "partition/protocol.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "partition/commands.h"
#include "partition/layout.h"

bool mfs_txn_is(const struct mfs_request *r, int txn)
{
    return mfs_request_arg(r, txn).n == MFS_TXN_LEN;
}

static struct RedisModuleKey *open_outcome(const struct mfs_request *r, int txn, int mode)
{
    return mfs_key_open(r->ctx, 'T', mfs_request_arg(r, txn), mode);
}

bool mfs_txn_is_decided(const struct mfs_request *r, int txn)
{
    struct RedisModuleKey *key = open_outcome(r, txn, MFS_REDIS_READ);

    mfs_key_close(key);
    return key != NULL;
}

void mfs_txn_decide(const struct mfs_request *r, int txn, const void *outcome, size_t n, int64_t ms)
{
    struct RedisModuleKey *key = open_outcome(r, txn, MFS_REDIS_WRITE);

    mfs_key_set(r->ctx, key, outcome, n);
    if (ms)
        mfs_key_expire(key, ms);
    mfs_key_close(key);
}

void mfs_txn_commit(const struct mfs_request *r, int txn, struct mfs_span becomes,
                    struct mfs_span todo, int64_t ms)
{
    struct mfs_answer outcome = {0};

    mfs_answer_byte(&outcome, MFS_OUTCOME_COMMITTED);
    mfs_answer_byte(&outcome, becomes.n);
    mfs_answer_span(&outcome, becomes);
    mfs_answer_span(&outcome, todo);
    mfs_txn_decide(r, txn, outcome.p, outcome.n, ms);
    mfs_answer_fini(&outcome);
}

void mfs_txn_note(const struct mfs_request *r, int txn, const void *what, size_t n)
{
    struct RedisModuleKey *key = mfs_key_named(r->ctx, "#intents", MFS_REDIS_WRITE);
    struct mfs_answer value = {0};
    char since[8];

    mfs_put_be64(since, (uint64_t)time(NULL));
    mfs_answer_add(&value, since, sizeof since);
    mfs_answer_add(&value, what, n);
    mfs_key_set_field(r->ctx, key, r->argv[txn], value.p, value.n);
    mfs_answer_fini(&value);
    mfs_key_close(key);
}

void mfs_txn_unnote(const struct mfs_request *r, int txn)
{
    struct RedisModuleKey *key = mfs_key_named(r->ctx, "#intents", MFS_REDIS_WRITE);

    mfs_key_drop_field(key, r->argv[txn]);
    mfs_key_close(key);
}

/* mfs_abort txn: the outcome, which is 'A' unless it is decided already. */
int mfs_command_abort(const struct mfs_request *r)
{
    struct RedisModuleKey *key = open_outcome(r, 1, MFS_REDIS_READ);
    struct mfs_span outcome = mfs_key_text(key);
    const char aborted = MFS_OUTCOME_ABORTED;

    if (key) {
        mfs_redis.ReplyWithStringBuffer(r->ctx, outcome.p ? outcome.p : "", outcome.n);
        mfs_key_close(key);
        return MFS_REDIS_OK;
    }
    mfs_txn_decide(r, 1, &aborted, 1, MFS_TXN_LIFE_MS);
    mfs_redis.ReplicateVerbatim(r->ctx);
    return mfs_redis.ReplyWithStringBuffer(r->ctx, &aborted, 1);
}

/* mfs_forget txn: everything that it entailed is done. */
int mfs_command_forget(const struct mfs_request *r)
{
    struct RedisModuleKey *key = open_outcome(r, 1, MFS_REDIS_WRITE);
    struct mfs_span outcome = mfs_key_text(key);

    if (outcome.n && outcome.p[0] == MFS_OUTCOME_COMMITTED)
        mfs_key_delete(key);
    mfs_key_close(key);
    mfs_txn_unnote(r, 1);
    mfs_redis.ReplicateVerbatim(r->ctx);
    return mfs_redis.ReplyWithNull(r->ctx);
}
