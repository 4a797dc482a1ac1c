/* The order does no harm: what is told of a key is what it is at that moment, and so is all that
 * both files are told later. Large hashes are gone through in pieces, too. */
#include "partition/journal/rewrite.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "partition/journal/api.h"
#include "partition/journal/state.h"
#include "partition/keys.h"

#define STEP_NS (300 * 1000)
#define PIECE   16   /* looks before the clock is read again */
#define LARGE   1024 /* fields */

static struct {
    struct RedisModuleScanCursor *keys;   /* NULL: none is under way */
    struct RedisModuleScanCursor *fields; /* of the large hash, NULL: in none */
    bool keys_done;
    struct mfs_answer large; /* names of large hashes that are still to come, each with its length
                              * (4) before it */
    size_t large_at;
    struct mfs_answer batch;
} now;

void mfs_journal_add_head(struct mfs_answer *batch, bool fenced,
                          const struct mfs_journal_point *point)
{
    struct mfs_journal_record head = {.kind = MFS_JOURNAL_HEAD,
                                      .key = {MFS_JOURNAL_NAME, sizeof MFS_JOURNAL_NAME - 1}};
    struct mfs_journal_record fence = {.kind = MFS_JOURNAL_FENCED, .number = fenced};

    mfs_journal_batch_add(batch, &head);
    mfs_journal_batch_add(batch, &fence);
    if (point->stream[0])
        mfs_point_add(batch, point);
}

static void end(void)
{
    if (now.keys)
        mfs_redis.ScanCursorDestroy(now.keys);
    if (now.fields)
        mfs_redis.ScanCursorDestroy(now.fields);
    now.keys = now.fields = NULL;
    now.keys_done = false;
    now.large.n = now.large_at = 0;
}

int mfs_journal_rewrite_begin(struct mfs_journal_file *f, bool fenced,
                              const struct mfs_journal_point *point)
{
    int rc = mfs_journal_next_open(f);

    end();
    if (rc)
        return rc;
    now.keys = mfs_redis.ScanCursorCreate();
    mfs_journal_batch_begin(&now.batch);
    mfs_journal_add_head(&now.batch, fenced, point);
    mfs_journal_batch_seal(&now.batch);
    rc = mfs_journal_next_write(f, &now.batch);
    mfs_journal_batch_begin(&now.batch);
    if (rc)
        end();
    return rc;
}

static void take_key(struct RedisModuleCtx *ctx, struct RedisModuleString *name,
                     struct RedisModuleKey *key, void *arg)
{
    struct mfs_span s = mfs_string_span(name);
    uint32_t n = (uint32_t)s.n;

    (void)arg;
    if (key && mfs_redis.KeyType(key) == MFS_REDIS_HASH && mfs_redis.ValueLength(key) > LARGE) {
        mfs_answer_add(&now.large, &n, 4);
        mfs_answer_span(&now.large, s);
    } else {
        mfs_journal_encode(ctx, s, false, &now.batch);
    }
}

static struct mfs_span large_name(void)
{
    uint32_t n;

    memcpy(&n, now.large.p + now.large_at, 4);
    return (struct mfs_span){now.large.p + now.large_at + 4, n};
}

static void take_field(struct RedisModuleKey *key, struct RedisModuleString *field,
                       struct RedisModuleString *value, void *arg)
{
    (void)key;
    (void)arg;
    mfs_journal_encode_pair(large_name(), field, value, &now.batch);
}

/* Some fields of a large hash; what it became meanwhile, if it is none any more, both files know.
 * One with a time to live is told of as a whole in the end. */
static void step_large(struct RedisModuleCtx *ctx)
{
    struct mfs_span name = large_name();
    struct RedisModuleString *s = mfs_redis.CreateString(ctx, name.p, name.n);
    struct RedisModuleKey *key = mfs_redis.OpenKey(ctx, s, MFS_REDIS_READ | MFS_REDIS_NOTOUCH);
    bool more = false;

    mfs_redis.FreeString(ctx, s);
    if (!now.fields)
        now.fields = mfs_redis.ScanCursorCreate();
    if (key && mfs_redis.KeyType(key) == MFS_REDIS_HASH)
        more = mfs_redis.ScanKey(key, now.fields, take_field, NULL);
    if (key && !more && mfs_journal_api.GetAbsExpire(key) >= 0)
        mfs_journal_encode(ctx, name, false, &now.batch);
    mfs_key_close(key);
    if (more)
        return;
    mfs_redis.ScanCursorDestroy(now.fields);
    now.fields = NULL;
    now.large_at += 4 + name.n;
}

/* False: all has been told. */
static bool look(struct RedisModuleCtx *ctx)
{
    if (!now.keys_done)
        now.keys_done = !mfs_journal_api.Scan(ctx, now.keys, take_key, NULL);
    else if (now.large_at < now.large.n)
        step_large(ctx);
    return !now.keys_done || now.large_at < now.large.n;
}

static int64_t clock_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int mfs_journal_rewrite_step(struct RedisModuleCtx *ctx, struct mfs_journal_file *f)
{
    bool more = true;
    int64_t until;
    int rc = 0;

    if (f->next_fd < 0) {
        end(); /* it was given up */
        return 0;
    }
    until = clock_ns() + STEP_NS;
    do {
        for (int i = 0; i < PIECE && more; i++)
            more = look(ctx);
    } while (more && clock_ns() < until);
    if (!mfs_journal_batch_empty(&now.batch)) {
        mfs_journal_batch_seal(&now.batch);
        rc = mfs_journal_next_write(f, &now.batch);
        mfs_journal_batch_begin(&now.batch);
    }
    if (!rc && !more)
        rc = mfs_journal_next_replace(f);
    if (rc || !more)
        end();
    return rc ? rc : !more;
}
