/* Keys: strings, hashes and sets, in memory, and the functions of the module API for them, with
 * what the server documents, also for keys that are not there or of another type. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "redis_values.h"

#define STRING_MAX (512U << 20)
#define NOW_MS     1700000000000LL /* the stand-in's clock stands still */

struct RedisModuleKey {
    struct value *value;
    int mode;
};

struct RedisModuleScanCursor {
    bool done;
};

static unsigned open_keys;

static struct RedisModuleString *create_string(struct RedisModuleCtx *ctx, const char *p, size_t n)
{
    (void)ctx;
    return fuzz_string(p, n);
}

static void free_string(struct RedisModuleCtx *ctx, struct RedisModuleString *s)
{
    (void)ctx;
    fuzz_string_free(s);
}

static const char *string_ptr_len(const struct RedisModuleString *s, size_t *n)
{
    if (n)
        *n = s->n;
    return s->p;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static struct RedisModuleKey *open_value(struct value *v, int mode)
{
    struct RedisModuleKey *key = malloc(sizeof *key);

    FUZZ_CHECK(key);
    *key = (struct RedisModuleKey){v, mode};
    v->open++;
    open_keys++;
    return key;
}

static struct RedisModuleKey *open_key(struct RedisModuleCtx *ctx, struct RedisModuleString *name,
                                       int mode)
{
    struct value *v = fuzz_value_find(name);

    (void)ctx;
    if (!v->type && !(mode & MFS_REDIS_WRITE))
        return NULL;
    if (!v->name) {
        v->name = fuzz_string_share(name);
        v->expires = -1;
    }
    return open_value(v, mode);
}

static void close_key(struct RedisModuleKey *key)
{
    if (!key)
        return;
    open_keys--;
    if (!--key->value->open && !key->value->type)
        fuzz_value_forget(key->value);
    free(key);
}

static size_t value_length(struct RedisModuleKey *key)
{
    if (!key || !key->value->type)
        return 0;
    return key->value->string ? key->value->string->n : key->value->nfields;
}

static int key_type(struct RedisModuleKey *key)
{
    return key ? key->value->type : 0;
}

static bool writable(const struct RedisModuleKey *key)
{
    return key && key->mode & MFS_REDIS_WRITE;
}

static int delete_key(struct RedisModuleKey *key)
{
    if (!writable(key))
        return MFS_REDIS_ERR;
    fuzz_value_drop(key->value);
    return MFS_REDIS_OK;
}

static const struct RedisModuleString *name_of(struct RedisModuleKey *key)
{
    return key->value->name;
}

static int set_abs_expire(struct RedisModuleKey *key, long long ms)
{
    if (!writable(key) || !key->value->type || ms < -1)
        return MFS_REDIS_ERR;
    key->value->expires = ms;
    return MFS_REDIS_OK;
}

static int set_expire(struct RedisModuleKey *key, long long ms)
{
    return set_abs_expire(key, ms < 0 ? ms : NOW_MS + ms);
}

static long long get_abs_expire(struct RedisModuleKey *key)
{
    return key && key->value->type ? key->value->expires : -1;
}

static long long get_expire(struct RedisModuleKey *key)
{
    long long at = get_abs_expire(key);

    return at < 0 ? -1 : at < NOW_MS ? 0 : at - NOW_MS;
}

/* ---- strings as values ----------------------------------------------------------------------- */

/* Who writes gets bytes of his own. */
static void unshare(struct value *v)
{
    struct RedisModuleString *s = v->string;

    if (s->refs == 1)
        return;
    v->string = fuzz_string(s->p, s->n);
    fuzz_string_free(s);
}

static char *string_dma(struct RedisModuleKey *key, size_t *n, int mode)
{
    static char nothing[] = "<dma-empty-string>";

    if (!key->value->type) {
        *n = 0;
        return nothing;
    }
    if (!key->value->string)
        return NULL; /* and *n is as it was */
    if (mode & MFS_REDIS_WRITE)
        unshare(key->value);
    *n = key->value->string->n;
    return key->value->string->p;
}

static int string_set(struct RedisModuleKey *key, struct RedisModuleString *s)
{
    if (!writable(key))
        return MFS_REDIS_ERR;
    fuzz_string_share(s);
    fuzz_value_drop(key->value);
    key->value->type = MFS_REDIS_STRING;
    key->value->string = s;
    return MFS_REDIS_OK;
}

static int string_truncate(struct RedisModuleKey *key, size_t n)
{
    struct RedisModuleString *old;

    if (!writable(key) || (key->value->type && !key->value->string) || n > STRING_MAX)
        return MFS_REDIS_ERR;
    old = key->value->string;
    if (!old && !n)
        return MFS_REDIS_OK;
    key->value->type = MFS_REDIS_STRING;
    key->value->string = fuzz_string(NULL, n);
    if (old)
        memcpy(key->value->string->p, old->p, old->n < n ? old->n : n);
    fuzz_string_free(old);
    return MFS_REDIS_OK;
}

/* ---- hashes ---------------------------------------------------------------------------------- */

static int hash_get(struct RedisModuleKey *key, int flags, ...)
{
    struct RedisModuleString *name, **value;
    va_list ap;

    FUZZ_CHECK(key && !flags);
    if (!fuzz_value_may_be(key->value, MFS_REDIS_HASH))
        return MFS_REDIS_ERR;
    va_start(ap, flags);
    while ((name = va_arg(ap, struct RedisModuleString *))) {
        struct field *f = fuzz_field_find(key->value, name);

        value = va_arg(ap, struct RedisModuleString **);
        *value = f ? fuzz_string_share(f->value) : NULL;
    }
    va_end(ap);
    return MFS_REDIS_OK;
}

static void put_field(struct value *v, const struct RedisModuleString *name,
                      struct RedisModuleString *value)
{
    struct field *f = fuzz_field_find(v, name);

    if (value == MFS_REDIS_DELETE) {
        if (f)
            fuzz_field_drop(v, f);
        return;
    }
    if (!f)
        f = fuzz_field_add(v, name);
    fuzz_string_free(f->value);
    f->value = fuzz_string(value->p, value->n);
}

static int hash_set(struct RedisModuleKey *key, int flags, ...)
{
    struct RedisModuleString *name;
    int n = 0;
    va_list ap;

    if (flags || !writable(key) || !fuzz_value_may_be(key->value, MFS_REDIS_HASH))
        return 0;
    key->value->type = MFS_REDIS_HASH;
    va_start(ap, flags);
    for (; (name = va_arg(ap, struct RedisModuleString *)); n++)
        put_field(key->value, name, va_arg(ap, struct RedisModuleString *));
    va_end(ap);
    if (!key->value->nfields)
        fuzz_value_drop(key->value);
    return n;
}

/* ---- looking through ------------------------------------------------------------------------- */

static struct RedisModuleScanCursor *scan_cursor_create(void)
{
    return calloc(1, sizeof(struct RedisModuleScanCursor));
}

static void scan_cursor_destroy(struct RedisModuleScanCursor *c)
{
    free(c);
}

static int scan_key(struct RedisModuleKey *key, struct RedisModuleScanCursor *c, mfs_redis_scan *fn,
                    void *arg)
{
    if (!key || !key->value->type || key->value->string || c->done)
        return 0;
    for (size_t i = 0; i < key->value->nfields; i++)
        fn(key, key->value->field[i].name, key->value->field[i].value, arg);
    c->done = true;
    return 0;
}

static int scan(struct RedisModuleCtx *ctx, struct RedisModuleScanCursor *c, mfs_redis_on_scan *fn,
                void *arg)
{
    struct value *v;
    size_t at = 0;

    while (!c->done && (v = fuzz_value_next(&at))) {
        struct RedisModuleKey *key = open_value(v, MFS_REDIS_READ);

        fn(ctx, v->name, key, arg);
        close_key(key);
    }
    c->done = true;
    return 0;
}

void fuzz_keys_give(struct fuzz_redis_api *api)
{
    struct mfs_redis_api *r = &api->redis;

    r->CreateString = create_string;
    r->FreeString = free_string;
    r->StringPtrLen = string_ptr_len;
    r->OpenKey = open_key;
    r->CloseKey = close_key;
    r->ValueLength = value_length;
    r->KeyType = key_type;
    r->DeleteKey = delete_key;
    r->SetExpire = set_expire;
    r->GetExpire = get_expire;
    r->StringDMA = string_dma;
    r->StringSet = string_set;
    r->StringTruncate = string_truncate;
    r->HashGet = hash_get;
    r->HashSet = hash_set;
    r->ScanCursorCreate = scan_cursor_create;
    r->ScanCursorDestroy = scan_cursor_destroy;
    r->ScanKey = scan_key;
    api->journal.Scan = scan;
    api->journal.GetAbsExpire = get_abs_expire;
    api->journal.SetAbsExpire = set_abs_expire;
    r->GetKeyNameFromModuleKey = name_of;
}

/* ---- for the other parts --------------------------------------------------------------------- */

bool fuzz_key_set(struct RedisModuleString *name, struct RedisModuleString *value)
{
    struct RedisModuleKey *key = open_key(NULL, name, MFS_REDIS_WRITE);

    string_set(key, value);
    close_key(key);
    return true;
}

long long fuzz_key_setrange(struct RedisModuleString *name, size_t off,
                            struct RedisModuleString *part)
{
    struct RedisModuleKey *key = open_key(NULL, name, MFS_REDIS_WRITE);
    size_t old = value_length(key), n = off + part->n;
    bool is = key_type(key) != MFS_REDIS_HASH && key_type(key) != MFS_REDIS_SET;

    if (is && part->n)
        is = string_truncate(key, n > old ? n : old) == MFS_REDIS_OK;
    if (is && part->n)
        memcpy(string_dma(key, &n, MFS_REDIS_WRITE) + off, part->p, part->n);
    n = value_length(key);
    close_key(key);
    return is ? (long long)n : -1;
}

bool fuzz_key_hset(struct RedisModuleString *name, struct RedisModuleString *field,
                   struct RedisModuleString *value)
{
    struct RedisModuleKey *key = open_key(NULL, name, MFS_REDIS_WRITE);
    bool done = hash_set(key, 0, field, value, NULL) > 0;

    close_key(key);
    return done;
}

bool fuzz_key_hdel(struct RedisModuleString *name, struct RedisModuleString *field)
{
    struct value *v = fuzz_value_find(name);

    return v->type == MFS_REDIS_HASH && fuzz_field_find(v, field) &&
           fuzz_key_hset(name, field, MFS_REDIS_DELETE);
}

bool fuzz_key_is_member(struct RedisModuleString *name, struct RedisModuleString *member)
{
    struct value *v = fuzz_value_find(name);

    return v->type == MFS_REDIS_SET && fuzz_field_find(v, member);
}

bool fuzz_key_sadd(struct RedisModuleString *name, struct RedisModuleString *member)
{
    struct RedisModuleKey *key = open_key(NULL, name, MFS_REDIS_WRITE);
    struct value *v = key->value;
    bool done = fuzz_value_may_be(v, MFS_REDIS_SET) && !fuzz_field_find(v, member);

    if (done) {
        v->type = MFS_REDIS_SET;
        fuzz_field_add(v, member);
    }
    close_key(key);
    return done;
}

bool fuzz_key_srem(struct RedisModuleString *name, struct RedisModuleString *member)
{
    struct RedisModuleKey *key = open_key(NULL, name, MFS_REDIS_WRITE);
    struct value *v = key->value;
    struct field *f = v->type == MFS_REDIS_SET ? fuzz_field_find(v, member) : NULL;

    if (f)
        fuzz_field_drop(v, f);
    if (f && !v->nfields)
        fuzz_value_drop(v);
    close_key(key);
    return f;
}

bool fuzz_key_del(struct RedisModuleString *name)
{
    struct RedisModuleKey *key = open_key(NULL, name, MFS_REDIS_WRITE);
    bool was = key->value->type != 0;

    delete_key(key);
    close_key(key);
    return was;
}

unsigned fuzz_keys_open(void)
{
    return open_keys;
}
