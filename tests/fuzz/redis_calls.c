/* Commands of redis itself, whoever gives them: a client, or the module. The module's filters see
 * each before, and it is told of what was changed. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "redis_parts.h"

#define FILTERS   4
#define LOOKERS   4
#define RANGE_MAX 1000000
#define STRINGS   (1 << 3) /* classes of notifications */
#define SETS      (1 << 5)
#define HASHES    (1 << 6)
#define GENERIC   (1 << 2)

struct RedisModuleCommandFilterCtx {
    struct RedisModuleString **word;
    int n;
};

static mfs_redis_filter *filters[FILTERS];
static unsigned nfilters;
static mfs_redis_on_key *on_key[LOOKERS];
static unsigned nlookers;
static bool refused; /* clients' rights have been taken away */

void fuzz_call_filter(mfs_redis_filter *f)
{
    FUZZ_CHECK(nfilters < FILTERS);
    filters[nfilters++] = f;
}

void fuzz_call_on_key(mfs_redis_on_key *f)
{
    FUZZ_CHECK(nlookers < LOOKERS);
    on_key[nlookers++] = f;
}

static void tell_key(struct RedisModuleCtx *ctx, int class, const char *event,
                     struct RedisModuleString *name)
{
    for (unsigned i = 0; i < nlookers; i++)
        on_key[i](ctx, class, event, name);
}

void fuzz_call_show(struct RedisModuleString **word, int n)
{
    struct RedisModuleCommandFilterCtx c = {word, n};

    for (unsigned i = 0; i < nfilters; i++)
        filters[i](&c);
}

/* ---- what they do ---------------------------------------------------------------------------- */

typedef struct RedisModuleCallReply *run_fn(struct RedisModuleCtx *ctx,
                                            struct RedisModuleString **word, int n);

static struct RedisModuleCallReply *changed(struct RedisModuleCtx *ctx, int class,
                                            const char *event, struct RedisModuleString *name,
                                            int many)
{
    if (many)
        tell_key(ctx, class, event, name);
    return fuzz_reply_integer(many);
}

static struct RedisModuleCallReply *run_set(struct RedisModuleCtx *ctx,
                                            struct RedisModuleString **word, int n)
{
    (void)n;
    return changed(ctx, STRINGS, "set", word[1], fuzz_key_set(word[1], word[2]));
}

static struct RedisModuleCallReply *run_setrange(struct RedisModuleCtx *ctx,
                                                 struct RedisModuleString **word, int n)
{
    char *behind;
    long off = strtol(word[2]->p, &behind, 10);
    long long is;

    (void)n;
    if (*behind || off < 0 || off > RANGE_MAX)
        return NULL;
    is = fuzz_key_setrange(word[1], (size_t)off, word[3]);
    if (is < 0)
        return NULL;
    if (word[3]->n)
        tell_key(ctx, STRINGS, "setrange", word[1]);
    return fuzz_reply_integer(is);
}

static struct RedisModuleCallReply *run_hset(struct RedisModuleCtx *ctx,
                                             struct RedisModuleString **word, int n)
{
    int many = 0;

    for (int i = 2; i + 1 < n; i += 2)
        many += fuzz_key_hset(word[1], word[i], word[i + 1]);
    return changed(ctx, HASHES, "hset", word[1], many);
}

/* What becomes empty is deleted, of which the server tells, too: `was` has that name then. */
static struct RedisModuleCallReply *
run_less(struct RedisModuleCtx *ctx, struct RedisModuleString **word, int n, int class,
         bool (*take)(struct RedisModuleString *, struct RedisModuleString *))
{
    int many = 0;

    for (int i = 2; i < n; i++)
        many += take(word[1], word[i]);
    return changed(ctx, class, class == HASHES ? "hdel" : "srem", word[1], many);
}

static struct RedisModuleCallReply *run_hdel(struct RedisModuleCtx *ctx,
                                             struct RedisModuleString **word, int n)
{
    return run_less(ctx, word, n, HASHES, fuzz_key_hdel);
}

static struct RedisModuleCallReply *run_srem(struct RedisModuleCtx *ctx,
                                             struct RedisModuleString **word, int n)
{
    return run_less(ctx, word, n, SETS, fuzz_key_srem);
}

static struct RedisModuleCallReply *run_sadd(struct RedisModuleCtx *ctx,
                                             struct RedisModuleString **word, int n)
{
    int many = 0;

    for (int i = 2; i < n; i++)
        many += fuzz_key_sadd(word[1], word[i]);
    return changed(ctx, SETS, "sadd", word[1], many);
}

static struct RedisModuleCallReply *run_del(struct RedisModuleCtx *ctx,
                                            struct RedisModuleString **word, int n)
{
    (void)n;
    return changed(ctx, GENERIC, "del", word[1], fuzz_key_del(word[1]));
}

static struct RedisModuleCallReply *run_sismember(struct RedisModuleCtx *ctx,
                                                  struct RedisModuleString **word, int n)
{
    (void)ctx;
    (void)n;
    return fuzz_reply_integer(fuzz_key_is_member(word[1], word[2]));
}

/* ACL GETUSER memefs, and ACL SETUSER memefs RIGHTS, of which the sign counts. */
static struct RedisModuleCallReply *run_acl(struct RedisModuleCtx *ctx,
                                            struct RedisModuleString **word, int n)
{
    struct RedisModuleCallReply *user;

    (void)ctx;
    if (n > 3)
        refused = word[3]->p[0] == '-';
    user = fuzz_reply_array();
    fuzz_reply_add(user, fuzz_reply_text("commands", 8));
    fuzz_reply_add(user, fuzz_reply_text(refused ? "-@all" : "+@all", 5));
    return user;
}

static struct RedisModuleCallReply *run_info(struct RedisModuleCtx *ctx,
                                             struct RedisModuleString **word, int n)
{
    static const char text[] = "# Replication\r\nrole:master\r\n"
                               "master_replid:0123456789abcdef0123456789abcdef01234567\r\n"
                               "master_repl_offset:77\r\n";

    (void)ctx;
    (void)word;
    (void)n;
    return fuzz_reply_text(text, sizeof text - 1);
}

static void add_name(void *names, struct RedisModuleString *name)
{
    fuzz_reply_add(names, fuzz_reply_text(name->p, name->n));
}

/* SCAN CURSOR COUNT N: all at once. */
static struct RedisModuleCallReply *run_scan(struct RedisModuleCtx *ctx,
                                             struct RedisModuleString **word, int n)
{
    static const char digits[] = "0123456789";
    struct RedisModuleCallReply *all, *names;

    (void)ctx;
    if (n != 4 || !word[1]->n || word[1]->p[strspn(word[1]->p, digits)] ||
        strtol(word[3]->p, NULL, 10) < 1)
        return NULL;
    all = fuzz_reply_array();
    names = fuzz_reply_array();
    fuzz_reply_add(all, fuzz_reply_text("0", 1));
    fuzz_keys_each(add_name, names);
    fuzz_reply_add(all, names);
    return all;
}

struct RedisModuleCallReply *fuzz_call(struct RedisModuleCtx *ctx, struct RedisModuleString **word,
                                       int n)
{
    static const struct {
        const char *name;
        int least; /* words */
        run_fn *run;
    } commands[] = {{"SET", 3, run_set},    {"HSET", 4, run_hset},
                    {"HMSET", 4, run_hset}, {"SETRANGE", 4, run_setrange},
                    {"HDEL", 3, run_hdel},  {"SADD", 3, run_sadd},
                    {"SREM", 3, run_srem},  {"DEL", 2, run_del},
                    {"ACL", 3, run_acl},    {"SISMEMBER", 3, run_sismember},
                    {"INFO", 2, run_info},  {"SCAN", 2, run_scan}};

    fuzz_call_show(word, n);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (!strcasecmp(word[0]->p, commands[i].name))
            return n < commands[i].least ? NULL : commands[i].run(ctx, word, n);
    return NULL;
}

static void touch(void *ctx, struct RedisModuleString *name)
{
    tell_key(ctx, GENERIC, "rename_to", name);
}

void fuzz_call_touch_all(struct RedisModuleCtx *ctx)
{
    fuzz_keys_each(touch, ctx);
}

/* ---- the functions --------------------------------------------------------------------------- */

/* c: text, b: bytes and their number, s: a string. */
static struct RedisModuleCallReply *call(struct RedisModuleCtx *ctx, const char *command,
                                         const char *format, ...)
{
    struct RedisModuleString *word[FUZZ_WORDS];
    struct RedisModuleCallReply *r;
    const char *p;
    int n = 0;
    va_list ap;

    word[n++] = fuzz_string(command, strlen(command));
    va_start(ap, format);
    for (; *format; format++) {
        FUZZ_CHECK(n < FUZZ_WORDS && strchr("cbs", *format));
        if (*format == 's') {
            word[n++] = fuzz_string_share(va_arg(ap, struct RedisModuleString *));
            continue;
        }
        p = va_arg(ap, const char *);
        word[n++] = fuzz_string(p, *format == 'c' ? strlen(p) : va_arg(ap, size_t));
    }
    va_end(ap);
    r = fuzz_call(ctx, word, n);
    while (n)
        fuzz_string_free(word[--n]);
    return r;
}

static int args_count(struct RedisModuleCommandFilterCtx *c)
{
    return c->n;
}

static const struct RedisModuleString *arg_get(struct RedisModuleCommandFilterCtx *c, int at)
{
    return at >= 0 && at < c->n ? c->word[at] : NULL;
}

void fuzz_calls_give(struct fuzz_redis_api *api)
{
    api->redis.Call = call;
    api->redis.CommandFilterArgGet = arg_get;
    api->journal.CommandFilterArgsCount = args_count;
}
