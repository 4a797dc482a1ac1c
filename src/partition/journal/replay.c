/* Records become keys again. While they are read no hash or set ends: one whose time is over would
 * be gone when a later record opens it, which would make it anew, with nothing but what that record
 * says and to last for ever. So all ends are put off, far enough to be known by that, and what was
 * put off is put right at the end of the journal. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "partition/journal/api.h"
#include "partition/journal/state.h"
#include "partition/journal/lost.h"
#include "partition/keys.h"
#include "partition/places.h"

#define PUT_OFF ((int64_t)1 << 50) /* ms; some 35,000 years */

struct reading {
    struct mfs_journal_found *found;
    bool begun, loading;
    struct mfs_answer put_off; /* names of keys that were, each with its length (2) before it; a key
                                * that went or lasts for ever since may be among them */
};

static struct RedisModuleKey *open_as(struct RedisModuleCtx *ctx, struct mfs_span name, int type)
{
    struct RedisModuleString *s = mfs_redis.CreateString(ctx, name.p, name.n);
    struct RedisModuleKey *key = mfs_redis.OpenKey(ctx, s, MFS_REDIS_READ | MFS_REDIS_WRITE);

    mfs_redis.FreeString(ctx, s);
    if (mfs_redis.KeyType(key) && mfs_redis.KeyType(key) != type)
        mfs_redis.DeleteKey(key);
    return key;
}

static void put_string(struct RedisModuleCtx *ctx, const struct mfs_journal_record *r)
{
    struct RedisModuleKey *key = open_as(ctx, r->key, MFS_REDIS_STRING);

    mfs_places_note_key(r->key);
    mfs_key_set(ctx, key, r->value.p, r->value.n); /* which lets it live for ever */
    if (r->number >= 0)
        mfs_journal_api.SetAbsExpire(key, r->number);
    mfs_key_close(key);
}

static void put_field(struct RedisModuleCtx *ctx, const struct mfs_journal_record *r)
{
    struct RedisModuleKey *key = open_as(ctx, r->key, MFS_REDIS_HASH);
    struct RedisModuleString *field = mfs_redis.CreateString(ctx, r->field.p, r->field.n);

    if (r->kind == MFS_JOURNAL_FIELD)
        mfs_key_set_field(ctx, key, field, r->value.p, r->value.n);
    else if (mfs_redis.KeyType(key))
        mfs_redis.HashSet(key, 0, field, MFS_REDIS_DELETE, NULL);
    mfs_redis.FreeString(ctx, field);
    mfs_key_close(key);
}

static void put_member(struct RedisModuleCtx *ctx, const char *command, struct mfs_span name,
                       struct mfs_span member)
{
    struct RedisModuleCallReply *reply =
        mfs_redis.Call(ctx, command, "bb", name.p, name.n, member.p, member.n);

    if (reply)
        mfs_redis.FreeCallReply(reply);
}

static void put_off(struct reading *g, struct RedisModuleKey *key,
                    const struct mfs_journal_record *r)
{
    uint16_t n = (uint16_t)r->key.n;

    if (r->number < 0 || r->number > INT64_MAX - PUT_OFF)
        return; /* none that a process has written */
    if (mfs_journal_api.GetAbsExpire(key) < PUT_OFF) {
        mfs_answer_add(&g->put_off, &n, sizeof n);
        mfs_answer_span(&g->put_off, r->key);
    }
    mfs_journal_api.SetAbsExpire(key, r->number + PUT_OFF);
}

static void put_right(struct RedisModuleCtx *ctx, const struct mfs_answer *names)
{
    uint16_t n;

    for (size_t at = 0; at < names->n; at += sizeof n + n) {
        struct RedisModuleString *s;
        struct RedisModuleKey *key;

        memcpy(&n, names->p + at, sizeof n);
        s = mfs_redis.CreateString(ctx, names->p + at + sizeof n, n);
        key = mfs_redis.OpenKey(ctx, s, MFS_REDIS_READ | MFS_REDIS_WRITE);
        mfs_redis.FreeString(ctx, s);
        if (mfs_journal_api.GetAbsExpire(key) >= PUT_OFF)
            mfs_journal_api.SetAbsExpire(key, mfs_journal_api.GetAbsExpire(key) - PUT_OFF);
        mfs_key_close(key);
    }
}

static void put_other(struct RedisModuleCtx *ctx, const struct mfs_journal_record *r,
                      struct reading *g)
{
    struct RedisModuleString *s = mfs_redis.CreateString(ctx, r->key.p, r->key.n);
    struct RedisModuleKey *key = mfs_redis.OpenKey(ctx, s, MFS_REDIS_READ | MFS_REDIS_WRITE);

    mfs_redis.FreeString(ctx, s);
    if (r->kind == MFS_JOURNAL_STRIPE)
        mfs_lost_put(ctx, key, r->number);
    else if (r->kind == MFS_JOURNAL_EXPIRE)
        put_off(g, key, r);
    else
        mfs_redis.DeleteKey(key);
    mfs_key_close(key);
}

static void apply(struct RedisModuleCtx *ctx, const struct mfs_journal_record *r, struct reading *g)
{
    switch (r->kind) {
    case MFS_JOURNAL_STRING:
        put_string(ctx, r);
        break;
    case MFS_JOURNAL_FIELD:
    case MFS_JOURNAL_NO_FIELD:
        put_field(ctx, r);
        break;
    case MFS_JOURNAL_MEMBER:
        put_member(ctx, "SADD", r->key, r->field);
        break;
    case MFS_JOURNAL_NO_MEMBER:
        put_member(ctx, "SREM", r->key, r->field);
        break;
    default:
        put_other(ctx, r, g);
    }
}

/* What is about the journal itself; false: it is of a key. */
static bool note(struct reading *g, const struct mfs_journal_record *r)
{
    switch (r->kind) {
    case MFS_JOURNAL_HEAD:
        g->begun = r->key.n == sizeof MFS_JOURNAL_NAME - 1 &&
                   !memcmp(r->key.p, MFS_JOURNAL_NAME, r->key.n);
        return true;
    case MFS_JOURNAL_LOADING:
    case MFS_JOURNAL_LOADED:
        g->loading = r->kind == MFS_JOURNAL_LOADING;
        return true;
    case MFS_JOURNAL_FENCED:
        g->found->fenced = r->number != 0;
        return true;
    case MFS_JOURNAL_POINT:
        g->found->point = mfs_point_of(r->key, r->number);
        return true;
    default:
        return false;
    }
}

/* One batch: 0, or -EINVAL: these are no records of ours. */
static int take_batch(struct RedisModuleCtx *ctx, struct mfs_span batch, struct reading *g)
{
    struct mfs_journal_record r;
    int rc;

    while ((rc = mfs_journal_next(&batch, &r)) > 0) {
        if (note(g, &r))
            continue;
        if (!g->begun)
            return -EINVAL;
        apply(ctx, &r, g);
    }
    return rc ? -EINVAL : 0;
}

static void count_lost(struct RedisModuleCtx *ctx, struct RedisModuleString *name,
                       struct RedisModuleKey *key, void *arg)
{
    struct mfs_journal_found *found = arg;
    struct mfs_span s = mfs_string_span(name);
    int64_t bytes = s.n && s.p[0] == 'S' ? mfs_lost_bytes(ctx, key) : -1;

    if (bytes < 0)
        return;
    found->stripes++;
    found->bytes += (uint64_t)bytes;
}

static void count_all_lost(struct RedisModuleCtx *ctx, struct mfs_journal_found *found)
{
    struct RedisModuleScanCursor *cursor = mfs_redis.ScanCursorCreate();

    while (mfs_journal_api.Scan(ctx, cursor, count_lost, found)) {
    }
    mfs_redis.ScanCursorDestroy(cursor);
}

/* Up to the first batch that is not whole. */
static int take_all(struct RedisModuleCtx *ctx, struct mfs_span *rest, struct reading *g)
{
    struct mfs_span batch;
    int rc = 0;

    while (!rc && mfs_journal_next_batch(rest, &batch) > 0)
        rc = take_batch(ctx, batch, g);
    return rc ? rc : !g->begun || g->loading ? -ENODATA : 0;
}

int mfs_journal_replay(struct RedisModuleCtx *ctx, struct mfs_span journal,
                       struct mfs_journal_found *found)
{
    struct reading g = {.found = found};
    struct mfs_span rest = journal;
    int rc;

    *found = (struct mfs_journal_found){0};
    rc = take_all(ctx, &rest, &g);
    if (!rc)
        put_right(ctx, &g.put_off);
    free(g.put_off.p);
    if (rc)
        return rc;
    found->whole = journal.n - rest.n;
    count_all_lost(ctx, found);
    return 0;
}
