#include "partition/locks/lock_keys.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/table.h"
#include "partition/journal/api.h"
#include "partition/answer.h"
#include "partition/keys.h"

#define INO     8
#define FIELD   (MFS_LOCK_OWNER + 8)
#define VALUE   13
#define CLOSING 2000 /* ms; so long after its mark a file is taken for one that may be closed */

/* The indices of files with locks. */
static struct known {
    char ino[INO];
    struct mfs_lock_index *index;
    UT_hash_handle hh;
} * known;

/* ---- fields ---------------------------------------------------------------------------------- */

static void write_field(char field[FIELD], const struct mfs_locked *l)
{
    memcpy(field, l->owner, MFS_LOCK_OWNER);
    mfs_put_be64(field + MFS_LOCK_OWNER, (uint64_t)l->first);
}

static void write_value(char value[VALUE], const struct mfs_locked *l)
{
    value[0] = (char)l->type;
    mfs_put_le32(value + 1, l->pid);
    mfs_put_le64(value + 5, (uint64_t)l->last);
}

/* False: it is no range. */
static bool read_range(struct mfs_span field, struct mfs_span value, struct mfs_locked *l)
{
    if (field.n != FIELD || value.n != VALUE || (field.p[0] != 'P' && field.p[0] != 'F'))
        return false;
    memcpy(l->owner, field.p, sizeof l->owner);
    l->first = (int64_t)mfs_get_be64(field.p + MFS_LOCK_OWNER);
    l->type = (uint8_t)value.p[0];
    l->pid = mfs_get_le32(value.p + 1);
    l->last = (int64_t)mfs_get_le64(value.p + 5);
    return (l->type == MFS_RANGE_READ || l->type == MFS_RANGE_WRITE) && l->first >= 0 &&
           l->last >= l->first;
}

static void set_field(struct mfs_locks *l, const void *field, size_t n, const void *value,
                      size_t nvalue)
{
    struct RedisModuleString *s = mfs_redis.CreateString(l->ctx, field, n);

    mfs_key_set_field(l->ctx, l->key, s, value, nvalue);
    mfs_redis.FreeString(l->ctx, s);
}

static void drop_field(struct mfs_locks *l, const void *field, size_t n)
{
    struct RedisModuleString *s = mfs_redis.CreateString(l->ctx, field, n);

    mfs_key_drop_field(l->key, s);
    mfs_redis.FreeString(l->ctx, s);
}

/* ---- the index ------------------------------------------------------------------------------- */

static void add_range(struct RedisModuleKey *key, struct RedisModuleString *field,
                      struct RedisModuleString *value, void *arg)
{
    struct mfs_locked l;

    (void)key;
    if (read_range(mfs_string_span(field), mfs_string_span(value), &l))
        mfs_lock_index_put(arg, &l);
}

static bool is_hash(struct RedisModuleKey *key)
{
    return key && mfs_redis.KeyType(key) == MFS_REDIS_HASH;
}

static void each_field(struct RedisModuleKey *key, mfs_redis_scan *look, void *arg)
{
    struct RedisModuleScanCursor *cursor = mfs_redis.ScanCursorCreate();

    while (mfs_redis.ScanKey(key, cursor, look, arg)) {
    }
    mfs_redis.ScanCursorDestroy(cursor);
}

/* The server itself ends when there is no memory, and so do we. */
static struct known *learn(struct mfs_span ino, struct RedisModuleKey *key)
{
    struct known *k = malloc(sizeof *k);

    if (!k)
        abort();
    memcpy(k->ino, ino.p, INO);
    k->index = mfs_lock_index_create();
    HASH_ADD(hh, known, ino, INO, k);
    if (!k->hh.tbl)
        abort();
    if (is_hash(key))
        each_field(key, add_range, k->index);
    return k;
}

static void forget(struct known *k)
{
    HASH_DEL(known, k);
    mfs_lock_index_destroy(k->index);
    free(k);
}

void mfs_locks_forget(struct mfs_span ino)
{
    struct known *k = NULL;

    if (ino.n == INO)
        HASH_FIND(hh, known, ino.p, INO, k);
    if (k)
        forget(k);
}

struct mfs_locks mfs_locks_open(struct RedisModuleCtx *ctx, struct mfs_span ino, int mode)
{
    struct mfs_locks l = {.ctx = ctx, .ino = ino, .key = mfs_key_open(ctx, 'L', ino, mode)};
    struct known *k = NULL;

    HASH_FIND(hh, known, ino.p, INO, k);
    if (k && !is_hash(l.key)) { /* all keys went at once, which is not told key by key */
        forget(k);
        k = NULL;
    }
    l.index = (k ? k : learn(ino, l.key))->index;
    return l;
}

void mfs_locks_close(struct mfs_locks *l)
{
    mfs_key_close(l->key);
    if (!mfs_lock_index_size(l->index))
        mfs_locks_forget(l->ino);
}

void mfs_locks_put(struct mfs_locks *l, const struct mfs_locked *range)
{
    char field[FIELD], value[VALUE];

    write_field(field, range);
    write_value(value, range);
    set_field(l, field, sizeof field, value, sizeof value);
    mfs_lock_index_put(l->index, range);
}

void mfs_locks_take(struct mfs_locks *l, const struct mfs_locked *range)
{
    char field[FIELD];

    write_field(field, range);
    drop_field(l, field, sizeof field);
    mfs_lock_index_take(l->index, range);
}

struct of_session {
    struct mfs_span session;
    struct mfs_answer fields; /* each with its length (4) before it */
};

static void add_if_of_session(struct RedisModuleKey *key, struct RedisModuleString *field,
                              struct RedisModuleString *value, void *arg)
{
    struct of_session *o = arg;
    struct mfs_span f = mfs_string_span(field);
    uint32_t n = (uint32_t)f.n;

    (void)key;
    (void)value;
    if (f.n < 1 + o->session.n || memcmp(f.p + 1, o->session.p, o->session.n) != 0)
        return;
    mfs_answer_add(&o->fields, &n, sizeof n);
    mfs_answer_span(&o->fields, f);
}

void mfs_locks_take_session(struct mfs_locks *l, struct mfs_span session)
{
    struct of_session o = {.session = session};
    uint32_t n;

    if (!is_hash(l->key))
        return;
    each_field(l->key, add_if_of_session, &o);
    for (size_t at = 0; at < o.fields.n; at += sizeof n + n) {
        memcpy(&n, o.fields.p + at, sizeof n);
        drop_field(l, o.fields.p + at + sizeof n, n);
    }
    free(o.fields.p);
    mfs_locks_forget(l->ino);
    l->index = learn(l->ino, l->key)->index;
}

/* ---- marks ----------------------------------------------------------------------------------- */

static int64_t now_ms(void)
{
    struct timespec t = mfs_clock_real();

    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static struct RedisModuleString *mark_of(const struct mfs_locks *l, const char *owner)
{
    struct RedisModuleString *s = mfs_redis.CreateString(l->ctx, owner, MFS_LOCK_OWNER);
    struct RedisModuleString *mark = mfs_key_field(l->key, s);

    mfs_redis.FreeString(l->ctx, s);
    return mark;
}

void mfs_locks_mark(struct mfs_locks *l, const char *owner)
{
    char mark[8];

    mfs_put_le64(mark, (uint64_t)now_ms());
    set_field(l, owner, MFS_LOCK_OWNER, mark, sizeof mark);
}

bool mfs_locks_unmark(struct mfs_locks *l, const char *owner)
{
    struct RedisModuleString *mark = mark_of(l, owner);

    if (!mark)
        return false;
    mfs_redis.FreeString(l->ctx, mark);
    drop_field(l, owner, MFS_LOCK_OWNER);
    return true;
}

/* After a move the mark is by another clock, which may be ahead of this one. */
bool mfs_locks_closing(const struct mfs_locks *l, const char *owner)
{
    struct RedisModuleString *mark = mark_of(l, owner);
    int64_t now = now_ms(), at = INT64_MIN;

    if (!mark)
        return false;
    if (mfs_string_span(mark).n == 8)
        at = (int64_t)mfs_get_le64(mfs_string_span(mark).p);
    mfs_redis.FreeString(l->ctx, mark);
    return at > now - CLOSING && at < now + CLOSING;
}

/* ---- what others change ---------------------------------------------------------------------- */

static void forget_all(void)
{
    struct known *k, *next;

    HASH_ITER(hh, known, k, next)
    forget(k);
}

static int on_key(struct RedisModuleCtx *ctx, int type, const char *event,
                  struct RedisModuleString *name)
{
    struct mfs_span key = mfs_string_span(name);

    (void)ctx;
    (void)event;
    if (type == MFS_NOTIFY_LOADED)
        forget_all(); /* all keys are replaced */
    else if (key.n == 1 + INO && key.p[0] == 'L')
        mfs_locks_forget((struct mfs_span){key.p + 1, INO});
    return MFS_REDIS_OK;
}

int mfs_locks_load(struct RedisModuleCtx *ctx)
{
    if (mfs_journal_api_bind(ctx) != MFS_REDIS_OK)
        return MFS_REDIS_ERR;
    return mfs_journal_api.SubscribeToKeyspaceEvents(ctx, MFS_NOTIFY_CHANGES | MFS_NOTIFY_LOADED,
                                                     on_key);
}
