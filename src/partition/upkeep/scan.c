/* Looking through all keys, some at a time, for memefs fsck. */
#include "partition/commands.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

#define FIELDS_SHOWN 128   /* of a hash; larger ones are for the caller to go through */
#define VALUE_SHOWN  64    /* bytes of a value */
#define RECORD_SHOWN 16384 /* bytes of an inode record, more than any has */
#define SHOWN_ALL    1U    /* flag of an item */

/* Little-endian, `width` bytes. */
static void add_number(struct mfs_answer *a, uint64_t v, size_t width)
{
    for (size_t i = 0; i < width; i++, v >>= 8)
        mfs_answer_byte(a, v & 0xff);
}

static void put_number(struct mfs_answer *a, size_t at, uint64_t v, size_t width)
{
    for (size_t i = 0; i < width; i++, v >>= 8)
        a->p[at + i] = (char)(v & 0xff);
}

static void add_part(struct mfs_answer *a, struct mfs_span s, size_t most)
{
    size_t n = s.n < most ? s.n : most;

    add_number(a, n, 4);
    mfs_answer_add(a, s.p, n);
}

struct fields {
    struct mfs_answer *a;
    uint32_t n;
};

static void add_field(struct RedisModuleKey *key, struct RedisModuleString *field,
                      struct RedisModuleString *value, void *arg)
{
    struct fields *f = arg;

    (void)key;
    add_part(f->a, mfs_string_span(field), SIZE_MAX);
    add_part(f->a, mfs_string_span(value), VALUE_SHOWN);
    f->n += 2;
}

static uint32_t add_hash(struct RedisModuleKey *key, struct mfs_answer *a)
{
    struct RedisModuleScanCursor *cursor = mfs_redis.ScanCursorCreate();
    struct fields f = {a, 0};

    while (mfs_redis.ScanKey(key, cursor, add_field, &f)) {
    }
    mfs_redis.ScanCursorDestroy(cursor);
    return f.n;
}

/* What a key holds; how many parts that were. Content and attributes of files are left out. */
static uint32_t add_parts(struct RedisModuleKey *key, char letter, struct mfs_answer *a, bool *all)
{
    size_t n = mfs_redis.ValueLength(key), most = letter == 'I' ? RECORD_SHOWN : VALUE_SHOWN;
    int type = mfs_redis.KeyType(key);

    *all = false;
    if (type == MFS_REDIS_STRING && letter != 'S') {
        *all = n <= most;
        add_part(a, mfs_key_text(key), most);
        return 1;
    }
    if (type == MFS_REDIS_HASH && letter != 'A' && n <= FIELDS_SHOWN) {
        *all = true;
        return add_hash(key, a);
    }
    return 0;
}

/* Length of the key (2 bytes), key, type (1), flags (1), ms to live (8, -1: for ever), length or
 * number of fields (8), number of parts (4), each with its length (4) before it. */
static void add_item(struct RedisModuleCtx *ctx, struct mfs_span name, struct mfs_answer *a)
{
    struct RedisModuleString *s = mfs_redis.CreateString(ctx, name.p, name.n);
    struct RedisModuleKey *key = mfs_redis.OpenKey(ctx, s, MFS_REDIS_READ);
    size_t flags, parts;
    bool all;

    mfs_redis.FreeString(ctx, s);
    if (!key)
        return; /* its time is over */
    add_number(a, name.n, 2);
    mfs_answer_span(a, name);
    add_number(a, (uint64_t)mfs_redis.KeyType(key), 1);
    flags = a->n;
    add_number(a, 0, 1);
    add_number(a, (uint64_t)mfs_redis.GetExpire(key), 8);
    add_number(a, mfs_redis.ValueLength(key), 8);
    parts = a->n;
    add_number(a, 0, 4);
    put_number(a, parts, add_parts(key, name.n ? name.p[0] : 0, a, &all), 4);
    put_number(a, flags, all ? SHOWN_ALL : 0, 1);
    mfs_key_close(key);
}

static void add_items(struct RedisModuleCtx *ctx, struct RedisModuleCallReply *keys,
                      struct mfs_answer *a)
{
    size_t n = mfs_redis.CallReplyLength(keys);

    for (size_t i = 0; i < n; i++) {
        struct RedisModuleCallReply *one = mfs_redis.CallReplyArrayElement(keys, i);
        struct mfs_span name;

        name.p = mfs_redis.CallReplyStringPtr(one, &name.n);
        if (name.p && name.n <= UINT16_MAX)
            add_item(ctx, name, a);
    }
}

/* A cursor means nothing to another process: which one this is. */
static struct mfs_span this_run(void)
{
    static char run[8];
    static bool known;

    if (!known)
        known = getrandom(run, sizeof run, 0) == (ssize_t)sizeof run;
    return (struct mfs_span){run, sizeof run};
}

/* mfs_scan run cursor count: about so many keys. { run, next cursor (0: that was all), items };
 * begun with an empty run and cursor 0. ECANCELED: the run is another process's, the scan is to
 * begin anew. Keys that are there throughout are in one answer at least. */
int mfs_command_scan(const struct mfs_request *r)
{
    struct mfs_span run = this_run(), given = mfs_request_arg(r, 1);
    struct mfs_span cursor = mfs_request_arg(r, 2), count = mfs_request_arg(r, 3), next;
    struct RedisModuleCallReply *reply, *keys;
    struct mfs_answer a = {0};

    if (given.n && (given.n != run.n || memcmp(given.p, run.p, run.n)))
        return mfs_request_fail(r, ECANCELED, "another process");
    reply = mfs_redis.Call(r->ctx, "SCAN", "bcb", cursor.p, cursor.n, "COUNT", count.p, count.n);
    keys = reply ? mfs_redis.CallReplyArrayElement(reply, 1) : NULL;
    if (!keys) {
        if (reply)
            mfs_redis.FreeCallReply(reply);
        return mfs_request_fail(r, EINVAL, "no cursor or count");
    }
    next.p = mfs_redis.CallReplyStringPtr(mfs_redis.CallReplyArrayElement(reply, 0), &next.n);
    mfs_redis.ReplyWithArray(r->ctx, 3);
    mfs_redis.ReplyWithStringBuffer(r->ctx, run.p, run.n);
    mfs_redis.ReplyWithStringBuffer(r->ctx, next.p, next.n);
    add_items(r->ctx, keys, &a);
    mfs_redis.FreeCallReply(reply);
    return mfs_answer_send(&a, r->ctx);
}
