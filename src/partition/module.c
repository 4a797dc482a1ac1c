/* What runs inside each partition's redis-server: the steps that must be atomic there, as commands
 * (protocol.h lists them; decisions/0012). */
#include "partition/commands.h"
#include "partition/journal/journal.h"
#include "partition/locks/lock_keys.h"
#include "partition/numbers.h"
#include "partition/places.h"
#include "partition/prove.h"
#include "partition/replica/term.h"

#include <signal.h>
#include <string.h>

typedef int command_fn(const struct mfs_request *r);

static int run(command_fn *command, int least, size_t first, struct RedisModuleCtx *ctx,
               struct RedisModuleString **argv, int argc)
{
    struct mfs_request r = {ctx, argv, argc};
    int rc;

    if (argc < least || (first && mfs_request_arg(&r, 1).n != first))
        return mfs_redis.ReplyWithError(ctx, "ERR wrong number or form of arguments");
    rc = command(&r);
    mfs_journal_settle(ctx);
    return rc;
}

/* Redis calls back with the words alone, so each has a function of its own. */
#define DEFINE(name, words, first, effect)                                                         \
    static int name##_command(struct RedisModuleCtx *ctx, struct RedisModuleString **argv,         \
                              int argc)                                                            \
    {                                                                                              \
        return run(mfs_command_##name, words, first, ctx, argv, argc);                             \
    }
MFS_COMMANDS(DEFINE)

/* mfs_journal [copied]: whether clients were refused when the process before this one died, stripes
 * and bytes that were lost with it; whether this one's journal is whole, its bytes, how often it
 * was written anew; stream and offset of the process before it, if a copy of that may be whole.
 * "copied": there is one of this process. */
int mfs_command_journal(const struct mfs_request *r)
{
    struct mfs_journal_status s;

    if (r->argc > 1)
        mfs_journal_copied(r->ctx);
    s = mfs_journal_status();
    mfs_redis.ReplyWithArray(r->ctx, 8);
    mfs_redis.ReplyWithLongLong(r->ctx, s.fenced);
    mfs_redis.ReplyWithLongLong(r->ctx, (long long)s.stripes);
    mfs_redis.ReplyWithLongLong(r->ctx, (long long)s.lost);
    mfs_redis.ReplyWithLongLong(r->ctx, s.whole);
    mfs_redis.ReplyWithLongLong(r->ctx, (long long)s.bytes);
    mfs_redis.ReplyWithLongLong(r->ctx, (long long)s.rewrites);
    mfs_redis.ReplyWithStringBuffer(r->ctx, s.died_at.stream, strlen(s.died_at.stream));
    return mfs_redis.ReplyWithLongLong(r->ctx, s.died_at.offset);
}

static const char *const flags_of[] = {
#define FLAGS(effect, flags, confirm) [MFS_##effect] = (flags),
    MFS_EFFECTS(FLAGS)};

static const struct {
    const char *name;
    enum mfs_effect effect;
    mfs_redis_command *run;
} commands[] = {
#define ENTRY(name, words, first, effect) {"mfs_" #name, MFS_##effect, name##_command},
    MFS_COMMANDS(ENTRY)};

static int create_commands(struct RedisModuleCtx *ctx)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (mfs_redis.CreateCommand(ctx, commands[i].name, commands[i].run,
                                    flags_of[commands[i].effect], 0, 0, 0) != MFS_REDIS_OK)
            return MFS_REDIS_ERR;
    }
    return MFS_REDIS_OK;
}

/* Arguments of the module, in any order. */
struct settings {
    struct mfs_span journal;
    bool replay;
};

/*     journal PATH        keep one there
 *     replay              … and take up what it says: it is another process'
 *     at ADDRESS PORT     where this process listens, and
 *     key USER KEY        what it proves to others of itself there (prove.h) */
static int take_settings(struct settings *s, struct RedisModuleString **argv, int argc)
{
    struct mfs_request words = {NULL, argv, argc};

    for (int i = 0; i < argc; i++) {
        struct mfs_span word = mfs_request_arg(&words, i), one = mfs_request_arg(&words, i + 1),
                        two = mfs_request_arg(&words, i + 2);
        int rc = MFS_REDIS_OK;

        if (!strcmp(word.p, "replay")) {
            s->replay = true;
        } else if (!strcmp(word.p, "journal")) {
            s->journal = one;
            i += 1;
        } else if (!strcmp(word.p, "at")) {
            rc = mfs_prove_at(one, two);
            i += 2;
        } else if (!strcmp(word.p, "key")) {
            rc = mfs_prove_key(one, two);
            i += 2;
        } else {
            rc = MFS_REDIS_ERR;
        }
        if (rc != MFS_REDIS_OK || i >= argc)
            return MFS_REDIS_ERR;
    }
    return MFS_REDIS_OK;
}

/* Redis 8 sends a copy, and what is written meanwhile, by two connections, of which the one goes on
 * when the other has broken: that a copy does not get on, which end is gone and what it takes
 * of memory would be seen late, or not at all (lm/copy/mover.h). Redis 7 does not know the option,
 * and has just one. */
static void copy_by_one_connection(struct RedisModuleCtx *ctx)
{
    struct RedisModuleCallReply *reply =
        mfs_redis.Call(ctx, "CONFIG", "ccc", "SET", "repl-rdb-channel", "no");

    if (reply)
        mfs_redis.FreeCallReply(reply);
}

int RedisModule_OnLoad(struct RedisModuleCtx *ctx, struct RedisModuleString **argv, int argc);

int RedisModule_OnLoad(struct RedisModuleCtx *ctx, struct RedisModuleString **argv, int argc)
{
    struct settings s = {0};

    /* A batch system sends it to all of a job's processes when the job is to end; the Local Manager
     * says when this one may. */
    signal(SIGTERM, SIG_IGN);
    if (mfs_redis_bind(ctx) != MFS_REDIS_OK)
        return MFS_REDIS_ERR;
    mfs_redis.SetModuleAttribs(ctx, "memefs", 1, MFS_REDIS_API);
    copy_by_one_connection(ctx);
    if (create_commands(ctx) != MFS_REDIS_OK || mfs_locks_load(ctx) != MFS_REDIS_OK ||
        mfs_places_load(ctx) != MFS_REDIS_OK || mfs_term_load(ctx) != MFS_REDIS_OK ||
        mfs_numbers_load(ctx) != MFS_REDIS_OK)
        return MFS_REDIS_ERR;
    if (take_settings(&s, argv, argc) != MFS_REDIS_OK)
        return MFS_REDIS_ERR;
    return s.journal.n ? mfs_journal_open(ctx, s.journal, s.replay) : MFS_REDIS_OK;
}
