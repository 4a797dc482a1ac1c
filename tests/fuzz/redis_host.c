#include "redis_host.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "partition/redis.h"

#define COMMANDS   32
#define KEYS       256
#define FIELDS     64
#define STRING_MAX (512U << 20)

struct RedisModuleString {
    unsigned refs;
    size_t n;
    char *p; /* n bytes and a NUL */
};

struct field {
    struct RedisModuleString *name, *value;
};

/* Of neither kind: there is no such key. */
struct value {
    struct RedisModuleString *name;
    struct RedisModuleString *string;
    bool is_hash;
    struct field field[FIELDS];
    unsigned nfields;
    unsigned open; /* handles */
};

struct RedisModuleKey {
    struct value *value;
    int mode;
};

struct RedisModuleScanCursor {
    bool done;
};

struct RedisModuleCtx {
    int (*get)(const char *name, void *function); /* first, by the API's definition */
};

int RedisModule_OnLoad(struct RedisModuleCtx *ctx, struct RedisModuleString **argv, int argc);

static struct value keys[KEYS];
static struct {
    mfs_redis_command *run;
} commands[COMMANDS];
static unsigned ncommands, open_keys;

/* The reply under way: values that are still to come, 0 when it is whole. */
static struct {
    bool begun, postponed;
    long due, given;
} reply;

/* ---- strings --------------------------------------------------------------------------------- */

static struct RedisModuleString *create_string(struct RedisModuleCtx *ctx, const char *p, size_t n)
{
    struct RedisModuleString *s = malloc(sizeof *s);

    (void)ctx;
    FUZZ_CHECK(s && n <= STRING_MAX);
    *s = (struct RedisModuleString){1, n, calloc(1, n + 1)};
    FUZZ_CHECK(s->p);
    if (p && n)
        memcpy(s->p, p, n);
    return s;
}

static void free_string(struct RedisModuleCtx *ctx, struct RedisModuleString *s)
{
    (void)ctx;
    if (!s || --s->refs)
        return;
    free(s->p);
    free(s);
}

static struct RedisModuleString *share(struct RedisModuleString *s)
{
    s->refs++;
    return s;
}

static const char *string_ptr_len(const struct RedisModuleString *s, size_t *n)
{
    if (n)
        *n = s->n;
    return s->p;
}

static bool same(const struct RedisModuleString *a, const struct RedisModuleString *b)
{
    return a->n == b->n && !memcmp(a->p, b->p, a->n);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static bool exists(const struct value *v)
{
    return v->string || v->is_hash;
}

static void drop_field(struct value *v, unsigned i)
{
    free_string(NULL, v->field[i].name);
    free_string(NULL, v->field[i].value);
    v->field[i] = v->field[--v->nfields];
}

static void drop(struct value *v)
{
    while (v->nfields)
        drop_field(v, v->nfields - 1);
    free_string(NULL, v->string);
    v->string = NULL;
    v->is_hash = false;
}

static struct value *find(const struct RedisModuleString *name)
{
    struct value *spare = NULL;

    for (unsigned i = 0; i < KEYS; i++) {
        if (keys[i].name && same(keys[i].name, name))
            return &keys[i];
        if (!keys[i].name && !spare)
            spare = &keys[i];
    }
    FUZZ_CHECK(spare);
    return spare;
}

static struct RedisModuleKey *open_key(struct RedisModuleCtx *ctx, struct RedisModuleString *name,
                                       int mode)
{
    struct value *v = find(name);
    struct RedisModuleKey *key;

    (void)ctx;
    if (!exists(v) && !(mode & MFS_REDIS_WRITE))
        return NULL;
    if (!v->name)
        v->name = share(name);
    key = malloc(sizeof *key);
    FUZZ_CHECK(key);
    *key = (struct RedisModuleKey){v, mode};
    v->open++;
    open_keys++;
    return key;
}

static void forget_name(struct value *v)
{
    free_string(NULL, v->name);
    v->name = NULL;
}

static void close_key(struct RedisModuleKey *key)
{
    if (!key)
        return;
    open_keys--;
    if (!--key->value->open && !exists(key->value))
        forget_name(key->value);
    free(key);
}

static size_t value_length(struct RedisModuleKey *key)
{
    if (!key || !exists(key->value))
        return 0;
    return key->value->is_hash ? key->value->nfields : key->value->string->n;
}

static int key_type(struct RedisModuleKey *key)
{
    if (!key || !exists(key->value))
        return 0;
    return key->value->is_hash ? MFS_REDIS_HASH : MFS_REDIS_STRING;
}

static bool writable(const struct RedisModuleKey *key)
{
    return key && key->mode & MFS_REDIS_WRITE;
}

static int delete_key(struct RedisModuleKey *key)
{
    if (!writable(key))
        return MFS_REDIS_ERR;
    drop(key->value);
    return MFS_REDIS_OK;
}

static int set_expire(struct RedisModuleKey *key, long long ms)
{
    return writable(key) && exists(key->value) && ms >= 0 ? MFS_REDIS_OK : MFS_REDIS_ERR;
}

/* Who writes gets bytes of his own. */
static void unshare(struct value *v)
{
    struct RedisModuleString *s = v->string;

    if (s->refs == 1)
        return;
    v->string = create_string(NULL, s->p, s->n);
    free_string(NULL, s);
}

static char *string_dma(struct RedisModuleKey *key, size_t *n, int mode)
{
    static char nothing[] = "<dma-empty-string>";

    if (!exists(key->value)) {
        *n = 0;
        return nothing;
    }
    if (key->value->is_hash)
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
    share(s);
    drop(key->value);
    key->value->string = s;
    return MFS_REDIS_OK;
}

static int string_truncate(struct RedisModuleKey *key, size_t n)
{
    struct RedisModuleString *old;

    if (!writable(key) || key->value->is_hash || n > STRING_MAX)
        return MFS_REDIS_ERR;
    old = key->value->string;
    if (!old && !n)
        return MFS_REDIS_OK;
    key->value->string = create_string(NULL, NULL, n);
    if (old)
        memcpy(key->value->string->p, old->p, old->n < n ? old->n : n);
    free_string(NULL, old);
    return MFS_REDIS_OK;
}

/* ---- hashes ---------------------------------------------------------------------------------- */

static struct field *find_field(struct value *v, const struct RedisModuleString *name)
{
    for (unsigned i = 0; i < v->nfields; i++)
        if (same(v->field[i].name, name))
            return &v->field[i];
    return NULL;
}

static int hash_get(struct RedisModuleKey *key, int flags, ...)
{
    struct RedisModuleString *name, **value;
    va_list ap;

    FUZZ_CHECK(key && !flags);
    if (key->value->string)
        return MFS_REDIS_ERR;
    va_start(ap, flags);
    while ((name = va_arg(ap, struct RedisModuleString *))) {
        struct field *f = find_field(key->value, name);

        value = va_arg(ap, struct RedisModuleString **);
        *value = f ? share(f->value) : NULL;
    }
    va_end(ap);
    return MFS_REDIS_OK;
}

static void put_field(struct value *v, struct RedisModuleString *name,
                      struct RedisModuleString *value)
{
    struct field *f = find_field(v, name);

    if (value == MFS_REDIS_DELETE) {
        if (f)
            drop_field(v, (unsigned)(f - v->field));
        return;
    }
    if (!f) {
        FUZZ_CHECK(v->nfields < FIELDS);
        f = &v->field[v->nfields++];
        f->name = create_string(NULL, name->p, name->n);
        f->value = NULL;
    }
    free_string(NULL, f->value);
    f->value = create_string(NULL, value->p, value->n);
}

static int hash_set(struct RedisModuleKey *key, int flags, ...)
{
    struct RedisModuleString *name;
    int n = 0;
    va_list ap;

    if (flags || !writable(key) || key->value->string)
        return 0;
    key->value->is_hash = true;
    va_start(ap, flags);
    for (; (name = va_arg(ap, struct RedisModuleString *)); n++)
        put_field(key->value, name, va_arg(ap, struct RedisModuleString *));
    va_end(ap);
    if (!key->value->nfields)
        drop(key->value);
    return n;
}

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
    if (!key || !key->value->is_hash || c->done)
        return 0;
    for (unsigned i = 0; i < key->value->nfields; i++)
        fn(key, key->value->field[i].name, key->value->field[i].value, arg);
    c->done = true;
    return 0;
}

/* ---- calls and replies ----------------------------------------------------------------------- */

/* Only sets are changed so, which nothing here reads. SCAN is refused, as with a bad cursor: what a
 * server says of its keys is no input of a client's. */
static struct RedisModuleCallReply *call(struct RedisModuleCtx *ctx, const char *command,
                                         const char *format, ...)
{
    (void)ctx;
    if (!strcmp(command, "SCAN"))
        return NULL;
    FUZZ_CHECK((!strcmp(command, "SADD") || !strcmp(command, "SREM")) && !strcmp(format, "cb"));
    return (struct RedisModuleCallReply *)&reply;
}

static void free_call_reply(struct RedisModuleCallReply *r)
{
    (void)r;
}

/* One value of the reply; all of it, or an element of the array that was begun. */
static int give(void)
{
    FUZZ_CHECK(!reply.begun || reply.postponed || reply.due > 0);
    reply.begun = true;
    reply.given++;
    if (reply.due > 0)
        reply.due--;
    return MFS_REDIS_OK;
}

static int reply_string(struct RedisModuleCtx *ctx, const char *p, size_t n)
{
    (void)ctx;
    if (n) /* a sanitizer sees whether they are there */
        FUZZ_CHECK(p && memchr(p, p[n - 1], n));
    return give();
}

static int reply_null(struct RedisModuleCtx *ctx)
{
    (void)ctx;
    return give();
}

static int reply_error(struct RedisModuleCtx *ctx, const char *text)
{
    (void)ctx;
    FUZZ_CHECK(*text && !reply.begun);
    return give();
}

static int reply_integer(struct RedisModuleCtx *ctx, long long v)
{
    (void)ctx;
    (void)v;
    return give();
}

static int reply_array(struct RedisModuleCtx *ctx, long n)
{
    (void)ctx;
    FUZZ_CHECK(!reply.begun);
    reply.begun = true;
    reply.postponed = n == MFS_REDIS_POSTPONED;
    reply.due = reply.postponed ? 0 : n;
    return MFS_REDIS_OK;
}

static void reply_array_length(struct RedisModuleCtx *ctx, long n)
{
    (void)ctx;
    FUZZ_CHECK(reply.postponed && reply.given == n);
    reply.postponed = false;
}

static int replicate(struct RedisModuleCtx *ctx)
{
    (void)ctx;
    return MFS_REDIS_OK;
}

/* ---- the module ------------------------------------------------------------------------------ */

static int attribs(struct RedisModuleCtx *ctx, const char *name, int version, int api)
{
    (void)ctx;
    (void)name;
    (void)version;
    FUZZ_CHECK(api == MFS_REDIS_API);
    return MFS_REDIS_OK;
}

static int create_command(struct RedisModuleCtx *ctx, const char *name, mfs_redis_command *run,
                          const char *flags, int first, int last, int step)
{
    (void)ctx;
    (void)flags;
    (void)first;
    (void)last;
    (void)step;
    if (!strncmp(name, "mfs_term", 8))
        return MFS_REDIS_OK; /* for Local Managers alone, and with a thread */
    FUZZ_CHECK(ncommands < COMMANDS);
    commands[ncommands++].run = run;
    return MFS_REDIS_OK;
}

/* What is set aside for a filter is never called, as it is registered with a server that calls
 * none.
 */
static void *register_filter(struct RedisModuleCtx *ctx, mfs_redis_filter *f, int flags)
{
    (void)ctx;
    (void)f;
    (void)flags;
    return &commands;
}

/* Every connection asks twice. */
static unsigned long long client_id(struct RedisModuleCtx *ctx)
{
    static unsigned long long calls;

    (void)ctx;
    return 1 + calls++ / 2;
}

static int client_info(void *to, uint64_t id)
{
    struct mfs_redis_client *info = to;

    *info = (struct mfs_redis_client){.version = 1, .id = id, .address = "127.0.0.1", .port = 2};
    return MFS_REDIS_OK;
}

static int close_client(struct RedisModuleCtx *ctx, uint64_t id)
{
    (void)ctx;
    (void)id;
    return MFS_REDIS_OK;
}

/* What is only asked about SCAN's answer is bound, and never called. */
static int get(const char *name, void *function)
{
    static const struct mfs_redis_api api = {
        .SetModuleAttribs = attribs,
        .CreateCommand = create_command,
        .CreateString = create_string,
        .FreeString = free_string,
        .StringPtrLen = string_ptr_len,
        .OpenKey = open_key,
        .CloseKey = close_key,
        .ValueLength = value_length,
        .KeyType = key_type,
        .DeleteKey = delete_key,
        .SetExpire = set_expire,
        .StringDMA = string_dma,
        .StringSet = string_set,
        .StringTruncate = string_truncate,
        .HashGet = hash_get,
        .HashSet = hash_set,
        .ScanCursorCreate = scan_cursor_create,
        .ScanCursorDestroy = scan_cursor_destroy,
        .ScanKey = scan_key,
        .Call = call,
        .FreeCallReply = free_call_reply,
        .ReplyWithStringBuffer = reply_string,
        .ReplyWithNull = reply_null,
        .ReplyWithError = reply_error,
        .ReplyWithLongLong = reply_integer,
        .ReplyWithArray = reply_array,
        .ReplySetArrayLength = reply_array_length,
        .ReplicateVerbatim = replicate,
        .RegisterCommandFilter = register_filter,
        .GetClientId = client_id,
        .GetClientInfoById = client_info,
        .DeauthenticateAndCloseClient = close_client,
    };
    static const struct {
        const char *name;
        size_t at; /* in api */
    } functions[] = {
#define FUNCTION(f) {#f, offsetof(struct mfs_redis_api, f)}
        FUNCTION(SetModuleAttribs),
        FUNCTION(CreateCommand),
        FUNCTION(CreateString),
        FUNCTION(FreeString),
        FUNCTION(StringPtrLen),
        FUNCTION(OpenKey),
        FUNCTION(CloseKey),
        FUNCTION(ValueLength),
        FUNCTION(DeleteKey),
        FUNCTION(SetExpire),
        FUNCTION(StringDMA),
        FUNCTION(StringSet),
        FUNCTION(StringTruncate),
        FUNCTION(HashGet),
        FUNCTION(HashSet),
        FUNCTION(ScanCursorCreate),
        FUNCTION(ScanCursorDestroy),
        FUNCTION(ScanKey),
        FUNCTION(Call),
        FUNCTION(FreeCallReply),
        FUNCTION(ReplyWithStringBuffer),
        FUNCTION(ReplyWithNull),
        FUNCTION(ReplyWithError),
        FUNCTION(ReplyWithLongLong),
        FUNCTION(ReplyWithArray),
        FUNCTION(ReplySetArrayLength),
        FUNCTION(ReplicateVerbatim),
        FUNCTION(RegisterCommandFilter),
        FUNCTION(CommandFilterArgGet),
        FUNCTION(CommandFilterArgReplace),
        FUNCTION(KeyType),
        FUNCTION(GetExpire),
        FUNCTION(CallReplyArrayElement),
        FUNCTION(CallReplyLength),
        FUNCTION(CallReplyStringPtr),
        FUNCTION(GetClientId),
        FUNCTION(GetClientInfoById),
        FUNCTION(DeauthenticateAndCloseClient),
#undef FUNCTION
    };

    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (strcmp(name, "RedisModule_") > 0 && !strcmp(name + 12, functions[i].name)) {
            memcpy(function, (const char *)&api + functions[i].at, sizeof(void *));
            return MFS_REDIS_OK;
        }
    }
    return MFS_REDIS_ERR;
}

static struct RedisModuleCtx context = {get};

unsigned fuzz_redis_load(void)
{
    static const char *const words[] = {
        "at",  "127.0.0.1", "1",
        "key", "session1",  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"};
    enum { N = sizeof words / sizeof *words };
    struct RedisModuleString *argv[N];

    if (ncommands)
        return ncommands;
    for (int i = 0; i < N; i++)
        argv[i] = create_string(NULL, words[i], strlen(words[i]));
    FUZZ_CHECK(RedisModule_OnLoad(&context, argv, N) == MFS_REDIS_OK);
    for (int i = 0; i < N; i++)
        free_string(NULL, argv[i]);
    return ncommands;
}

static struct RedisModuleString *string_of(struct fuzz_input text)
{
    return create_string(NULL, (const char *)text.p, text.n);
}

void fuzz_redis_set(struct fuzz_input name, struct fuzz_input value)
{
    struct RedisModuleString *n = string_of(name), *v = string_of(value);
    struct RedisModuleKey *key = open_key(&context, n, MFS_REDIS_WRITE);

    string_set(key, v);
    close_key(key);
    free_string(NULL, n);
    free_string(NULL, v);
}

void fuzz_redis_hset(struct fuzz_input name, struct fuzz_input field, struct fuzz_input value)
{
    struct RedisModuleString *n = string_of(name), *f = string_of(field), *v = string_of(value);
    struct RedisModuleKey *key = open_key(&context, n, MFS_REDIS_WRITE);

    hash_set(key, 0, f, v, NULL);
    close_key(key);
    free_string(NULL, n);
    free_string(NULL, f);
    free_string(NULL, v);
}

void fuzz_redis_command(unsigned which, const struct fuzz_input *args, int n)
{
    struct RedisModuleString *argv[1 + FUZZ_REDIS_ARGS];

    argv[0] = create_string(NULL, "command", 7);
    for (int i = 0; i < n; i++)
        argv[1 + i] = string_of(args[i]);
    memset(&reply, 0, sizeof reply);
    commands[which % ncommands].run(&context, argv, 1 + n);
    FUZZ_CHECK(reply.begun && !reply.due && !reply.postponed && !open_keys);
    for (int i = 0; i <= n; i++)
        free_string(NULL, argv[i]);
}

void fuzz_redis_flush(void)
{
    for (unsigned i = 0; i < KEYS; i++) {
        drop(&keys[i]);
        forget_name(&keys[i]);
    }
}
