/* The module in the stand-in: loading it, running it, telling it of events. */
#include "redis_host.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "redis_parts.h"

#define COMMANDS 96
#define HOOKS    4

struct RedisModuleCtx {
    int (*get)(const char *name, void *function); /* first, by the API's definition */
};

int RedisModule_OnLoad(struct RedisModuleCtx *ctx, struct RedisModuleString **argv, int argc);

static mfs_redis_command *commands[COMMANDS];
static struct {
    uint64_t event;
    mfs_redis_on_event *run;
} hooks[HOOKS];
static unsigned ncommands, nhooks;
static int journal = -1; /* a file in memory */

/* ---- functions that the module asks for ------------------------------------------------------ */

static int replicate(struct RedisModuleCtx *ctx)
{
    (void)ctx;
    return MFS_REDIS_OK;
}

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
    if (!strcmp(name, "mfs_term"))
        return MFS_REDIS_OK; /* begins a thread, and this is for Local Managers alone */
    FUZZ_CHECK(ncommands < COMMANDS);
    commands[ncommands++] = run;
    return MFS_REDIS_OK;
}

static void *register_filter(struct RedisModuleCtx *ctx, mfs_redis_filter *f, int flags)
{
    (void)ctx;
    (void)flags;
    fuzz_call_filter(f);
    return &commands;
}

static int subscribe(struct RedisModuleCtx *ctx, struct mfs_redis_event event,
                     mfs_redis_on_event *run)
{
    (void)ctx;
    FUZZ_CHECK(nhooks < HOOKS);
    hooks[nhooks].event = event.id;
    hooks[nhooks++].run = run;
    return MFS_REDIS_OK;
}

static int subscribe_keys(struct RedisModuleCtx *ctx, int types, mfs_redis_on_key *on_key)
{
    (void)ctx;
    FUZZ_CHECK((types & MFS_NOTIFY_CHANGES) == MFS_NOTIFY_CHANGES);
    fuzz_call_on_key(on_key);
    return MFS_REDIS_OK;
}

static void say(struct RedisModuleCtx *ctx, const char *level, const char *format, ...)
{
    char line[256];
    va_list ap;

    (void)ctx;
    (void)level;
    va_start(ap, format);
    vsnprintf(line, sizeof line, format, ap);
    va_end(ap);
}

/* No function is running. */
static int context_flags(struct RedisModuleCtx *ctx)
{
    (void)ctx;
    return 0;
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

static void *alloc(size_t n)
{
    void *p = malloc(n);

    FUZZ_CHECK(p);
    return p;
}

static struct fuzz_redis_api api = {
    .redis.Alloc = alloc,
    .redis.Free = free,
    .redis.SetModuleAttribs = attribs,
    .redis.CreateCommand = create_command,
    .redis.ReplicateVerbatim = replicate,
    .redis.SubscribeToServerEvent = subscribe,
    .redis.RegisterCommandFilter = register_filter,
    .redis.GetContextFlags = context_flags,
    .redis.GetClientId = client_id,
    .redis.GetClientInfoById = client_info,
    .redis.DeauthenticateAndCloseClient = close_client,
    .journal.SubscribeToKeyspaceEvents = subscribe_keys,
    .journal.Log = say,
};

/* By their names. One that is not in `api` is bound, and never called. */
static int get(const char *name, void *function)
{
    static const struct {
        const char *name;
        size_t at; /* in api */
    } functions[] = {
#define REDIS(f) {"RedisModule_" #f, offsetof(struct fuzz_redis_api, redis.f)}
#define JOURNAL(f)                                                                                 \
    {                                                                                              \
        "RedisModule_" #f, offsetof(struct fuzz_redis_api, journal.f)                              \
    }
        REDIS(SetModuleAttribs),
        REDIS(CreateCommand),
        REDIS(CreateString),
        REDIS(FreeString),
        REDIS(Alloc),
        REDIS(Free),
        REDIS(StringPtrLen),
        REDIS(OpenKey),
        REDIS(CloseKey),
        REDIS(ValueLength),
        REDIS(DeleteKey),
        REDIS(SetExpire),
        REDIS(StringDMA),
        REDIS(StringSet),
        REDIS(StringTruncate),
        REDIS(HashGet),
        REDIS(HashSet),
        REDIS(ScanCursorCreate),
        REDIS(ScanCursorDestroy),
        REDIS(ScanKey),
        REDIS(Call),
        REDIS(FreeCallReply),
        REDIS(ReplyWithStringBuffer),
        REDIS(ReplyWithNull),
        REDIS(ReplyWithError),
        REDIS(ReplyWithLongLong),
        REDIS(ReplyWithArray),
        REDIS(ReplyWithCallReply),
        REDIS(ReplySetArrayLength),
        REDIS(Replicate),
        REDIS(ReplicateVerbatim),
        REDIS(SubscribeToServerEvent),
        REDIS(RegisterCommandFilter),
        REDIS(CommandFilterArgGet),
        REDIS(CommandFilterArgReplace),
        REDIS(KeyType),
        REDIS(GetKeyNameFromModuleKey),
        REDIS(GetExpire),
        REDIS(CallReplyArrayElement),
        REDIS(CallReplyLength),
        REDIS(CallReplyInteger),
        REDIS(CallReplyType),
        REDIS(CallReplyStringPtr),
        REDIS(GetContextFlags),
        REDIS(GetClientId),
        REDIS(GetClientInfoById),
        REDIS(DeauthenticateAndCloseClient),
        JOURNAL(SubscribeToKeyspaceEvents),
        JOURNAL(CommandFilterArgsCount),
        JOURNAL(Scan),
        JOURNAL(GetAbsExpire),
        JOURNAL(SetAbsExpire),
        JOURNAL(Log),
#undef REDIS
#undef JOURNAL
    };

    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (!strcmp(name, functions[i].name)) {
            memcpy(function, (const char *)&api + functions[i].at, sizeof(void *));
            return MFS_REDIS_OK;
        }
    }
    return MFS_REDIS_ERR;
}

static struct RedisModuleCtx context = {get};

/* ---- loading --------------------------------------------------------------------------------- */

unsigned fuzz_redis_load(void)
{
    char path[32];
    const char *const words[] = {
        "at",      "127.0.0.1", "1",
        "key",     "session1",  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        "journal", path};
    enum { N = sizeof words / sizeof *words };
    struct RedisModuleString *argv[N];

    if (ncommands)
        return ncommands;
    journal = memfd_create("journal", MFD_CLOEXEC);
    FUZZ_CHECK(journal >= 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", journal);
    fuzz_keys_give(&api);
    fuzz_answers_give(&api);
    fuzz_calls_give(&api);
    for (int i = 0; i < N; i++)
        argv[i] = fuzz_string(words[i], strlen(words[i]));
    FUZZ_CHECK(RedisModule_OnLoad(&context, argv, N) == MFS_REDIS_OK);
    for (int i = 0; i < N; i++)
        fuzz_string_free(argv[i]);
    return ncommands;
}

/* ---- running --------------------------------------------------------------------------------- */

static void tell(uint64_t event, uint64_t sub)
{
    for (unsigned i = 0; i < nhooks; i++)
        if (hooks[i].event == event)
            hooks[i].run(&context, (struct mfs_redis_event){event, 1}, sub, NULL);
}

static void wake(void)
{
    tell(MFS_EVENT_LOOP, MFS_LOOP_AFTER_SLEEP);
}

/* Nothing is open, and the journal is whole. */
static void sleep_again(void)
{
    FUZZ_CHECK(!fuzz_keys_open() && !fuzz_replies());
    tell(MFS_EVENT_LOOP, MFS_LOOP_BEFORE_SLEEP);
    FUZZ_CHECK(mfs_journal_status().whole);
}

static struct RedisModuleString *string_of(struct fuzz_input text)
{
    return fuzz_string(text.p, text.n);
}

static void run_other(const char *name, const struct fuzz_input *args, int n)
{
    struct RedisModuleString *word[1 + FUZZ_REDIS_ARGS];
    struct RedisModuleCallReply *reply;

    word[0] = fuzz_string(name, strlen(name));
    for (int i = 0; i < n; i++)
        word[1 + i] = string_of(args[i]);
    wake();
    reply = fuzz_call(&context, word, 1 + n);
    api.redis.FreeCallReply(reply);
    sleep_again();
    for (int i = 0; i <= n; i++)
        fuzz_string_free(word[i]);
}

void fuzz_redis_set(struct fuzz_input name, struct fuzz_input value)
{
    run_other("SET", (struct fuzz_input[]){name, value}, 2);
}

void fuzz_redis_hset(struct fuzz_input name, struct fuzz_input field, struct fuzz_input value)
{
    run_other("HSET", (struct fuzz_input[]){name, field, value}, 3);
}

void fuzz_redis_other(unsigned which, const struct fuzz_input *args, int n)
{
    static const char *const names[] = {"SET",  "HSET", "HDEL",    "SADD",    "SREM",
                                        "DEL",  "ACL",  "HSETNX",  "HINCRBY", "HMSET",
                                        "hset", "xyz",  "SETRANGE"};

    run_other(names[which % (sizeof names / sizeof *names)], args, n);
}

void fuzz_redis_command(unsigned which, const struct fuzz_input *args, int n)
{
    struct RedisModuleString *argv[1 + FUZZ_REDIS_ARGS];

    argv[0] = fuzz_string("mfs_command", 11);
    for (int i = 0; i < n; i++)
        argv[1 + i] = string_of(args[i]);
    wake();
    fuzz_call_show(argv, 1 + n);
    fuzz_answer_begin();
    commands[which % ncommands](&context, argv, 1 + n);
    fuzz_answer_end();
    sleep_again();
    for (int i = 0; i <= n; i++)
        fuzz_string_free(argv[i]);
}

/* ---- the journal ----------------------------------------------------------------------------- */

/* Awake: so nothing of it is journalled before somebody asks for it. */
int fuzz_redis_replay(struct mfs_span bytes, struct mfs_journal_found *found)
{
    int rc;

    wake();
    rc = mfs_journal_replay(&context, bytes, found);
    FUZZ_CHECK(!fuzz_keys_open() && !fuzz_replies());
    FUZZ_CHECK(rc == 0 || rc == -EINVAL || rc == -ENODATA);
    return rc;
}

void fuzz_redis_journal_all(void)
{
    fuzz_call_touch_all(&context);
    sleep_again();
}

void fuzz_redis_check_journal(void)
{
    off_t n = lseek(journal, 0, SEEK_END);
    struct mfs_journal_found found;
    char *bytes = malloc((size_t)n);

    FUZZ_CHECK(bytes && pread(journal, bytes, (size_t)n, 0) == n);
    fuzz_keys_put_aside();
    FUZZ_CHECK(!fuzz_redis_replay((struct mfs_span){bytes, (size_t)n}, &found));
    FUZZ_CHECK(found.whole == (uint64_t)n);
    fuzz_keys_compare();
    free(bytes);
}

/* Whoever was refused is let in again, so that the next input finds what this one has found. */
void fuzz_redis_flush(void)
{
    static const struct fuzz_input let_in[] = {{(const uint8_t *)"SETUSER", 7},
                                               {(const uint8_t *)"memefs", 6},
                                               {(const uint8_t *)"+@all", 5}};

    run_other("ACL", let_in, 3);
    fuzz_keys_drop();
    tell(MFS_EVENT_FLUSHDB, MFS_FLUSHDB_END);
}
