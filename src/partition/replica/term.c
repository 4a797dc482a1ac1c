/* Terms, as commands. Of the process that serves:
 *
 *     mfs_term                                    → [has terms?, ms that are left]
 *     mfs_term admit USER WORD [replica]          a process that logs on so may follow, and no
 *                                                 other any more; an error while there are terms
 *     mfs_term begin HOST PORT USER PASSWORD WORD serve only while that process consents; an error
 *                                                 unless it is the one that was admitted by WORD
 *     mfs_term end [WORD]                         serve without; an error if another one has been
 *                                                 admitted than by WORD
 *     mfs_alone                                   → 1 without terms, 0 with; a client's command
 *                                                 like any other (store/confirm.c)
 *
 * and of its replica:
 *
 *     mfs_term_consent           → 1, or an error once it has been withdrawn: for ever
 *     mfs_term_withdraw QUIET    → ms until no term is left that it has consented to; an error (and
 *                                  nothing is withdrawn) when it was asked less than QUIET ms ago
 *
 * The last is what makes a replica's promotion safe: the other process can't serve after that time,
 * whether it lives, hangs, or is cut off.
 *
 * WAIT counts all replicas that follow. So as long as there are terms only the one replica may
 * follow which may take over, and none that was given up and does not know that (decisions/0026):
 * admitting one closes the links of all others and makes the server forget by which word they
 * logged on. Whether it is a replica, or is to take this process' place in a move, is said then and
 * does not change (a process has one word as long as it lives, and begins with a whole copy): so
 * all that follows in the stream after that copy was meant for what it is, also what it asks for
 * once more after its link broke (files/here.c).
 *
 * The filter gives a refused command another name, for which no client has the right: so it is
 * answered with NOPERM before anything is executed, just as by a fence, and clients do what they do
 * then. It runs before each command, in the same iteration of redis' loop, but not before what a
 * command of the module calls, which was let in. */
#include "partition/replica/term.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "partition/commands.h"
#include "partition/replica/consent.h"
#include "net/proof.h"

#define NO_SELF  1   /* the filter leaves alone what modules call */
#define SLACK_MS 100 /* between two clocks that run by themselves */
#define WORD_MAX 128

static_assert(10 * SLACK_MS < MFS_TERM_MS, "a replica takes over soon after the last term");

static bool withdrawn;
static int64_t consented;           /* mfs_term_clock; 0: never */
static char admitted[WORD_MAX + 1]; /* the word by which a process may follow; "": none may */
static bool replica;                /* that process is one */

/* What goes on without a term: logging on, looking, and what Local Managers and replicas do. */
static const char *const allowed[] = {
    "auth",   "hello",     "info",     "acl",     "config", "client",  "psync", "replconf",
    "memory", "replicaof", "shutdown", "command", "role",   "slowlog", "debug", MFS_PROOF_COMMAND};

static bool is_allowed(const char *name, size_t n)
{
    if (n >= 8 && !strncasecmp(name, "mfs_term", 8))
        return true;
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
        if (strlen(allowed[i]) == n && !strncasecmp(name, allowed[i], n))
            return true;
    return false;
}

static void filter(struct RedisModuleCommandFilterCtx *f)
{
    static const char over[] = "mfs_term_over";
    const char *name;
    size_t n;

    if (mfs_consent_serves())
        return;
    name = mfs_redis.StringPtrLen(mfs_redis.CommandFilterArgGet(f, 0), &n);
    if (!is_allowed(name, n))
        mfs_redis.CommandFilterArgReplace(f, 0,
                                          mfs_redis.CreateString(NULL, over, sizeof over - 1));
}

/* Only a user that may run every command gets here. */
int mfs_command_term_over(const struct mfs_request *r)
{
    return mfs_redis.ReplyWithError(r->ctx, "NOPERM the term of this partition's process is over");
}

int mfs_command_term_consent(const struct mfs_request *r)
{
    if (withdrawn)
        return mfs_redis.ReplyWithError(r->ctx, "DENIED another process serves this partition");
    consented = mfs_term_clock();
    return mfs_redis.ReplyWithLongLong(r->ctx, 1);
}

int mfs_command_term_withdraw(const struct mfs_request *r)
{
    int64_t ago = consented ? (mfs_term_clock() - consented) / 1000000 : INT64_MAX;
    long quiet;

    if (r->argc != 2)
        return mfs_redis.ReplyWithError(r->ctx, "ERR mfs_term_withdraw QUIET-MS");
    quiet = strtol(mfs_redis.StringPtrLen(r->argv[1], NULL), NULL, 10);
    if (!withdrawn && ago < quiet)
        return mfs_redis.ReplyWithError(r->ctx,
                                        "BUSY the partition's process has just been heard of");
    withdrawn = true;
    return mfs_redis.ReplyWithLongLong(
        r->ctx, ago < MFS_TERM_MS + SLACK_MS ? MFS_TERM_MS + SLACK_MS - ago : 0);
}

/* Did the server answer OK? *reply is released. */
static bool is_done(struct RedisModuleCallReply *reply)
{
    size_t n = 0;
    const char *text = reply ? mfs_redis.CallReplyStringPtr(reply, &n) : NULL;
    bool done = text && n >= 2 && !memcmp(text, "OK", 2);

    if (reply)
        mfs_redis.FreeCallReply(reply);
    return done;
}

/* Without its user a connection is closed before the server's loop comes to the next round. */
static bool replace_follower(struct RedisModuleCtx *ctx, struct RedisModuleString *user,
                             struct RedisModuleString *word)
{
    struct RedisModuleCallReply *gone = mfs_redis.Call(ctx, "ACL", "cs", "DELUSER", user);
    char password[WORD_MAX + 2];

    if (gone)
        mfs_redis.FreeCallReply(gone);
    admitted[0] = '\0';
    replica = false;
    snprintf(password, sizeof password, ">%s", mfs_redis.StringPtrLen(word, NULL));
    if (!is_done(mfs_redis.Call(ctx, "ACL", "cscccccc", "SETUSER", user, "reset", "on", password,
                                "+ping", "+replconf", "+psync")))
        return false;
    snprintf(admitted, sizeof admitted, "%s", password + 1);
    return true;
}

static bool is_admitted(struct RedisModuleString *word)
{
    return admitted[0] && !strcmp(mfs_redis.StringPtrLen(word, NULL), admitted);
}

bool mfs_term_follower_is_replica(void)
{
    return replica;
}

static int admit(struct RedisModuleCtx *ctx, struct RedisModuleString **argv, bool as_replica)
{
    size_t n;

    mfs_redis.StringPtrLen(argv[3], &n);
    if (!n || n > WORD_MAX)
        return mfs_redis.ReplyWithError(ctx, "ERR no such word");
    if (is_admitted(argv[3]))
        return mfs_redis.ReplyWithLongLong(ctx, 1);
    if (mfs_consent_needed())
        return mfs_redis.ReplyWithError(ctx, "BUSY this partition's process has a replica");
    if (!replace_follower(ctx, argv[2], argv[3]))
        return mfs_redis.ReplyWithError(ctx, "ERR no such user");
    replica = as_replica;
    return mfs_redis.ReplyWithLongLong(ctx, 1);
}

static int begin(struct RedisModuleCtx *ctx, struct RedisModuleString **argv)
{
    long port = strtol(mfs_redis.StringPtrLen(argv[3], NULL), NULL, 10);
    int rc = -EINVAL;

    if (!is_admitted(argv[6]))
        return mfs_redis.ReplyWithError(ctx, "ERR another process may follow");
    if (port > 0 && port < 65536)
        rc = mfs_consent_begin(mfs_redis.StringPtrLen(argv[2], NULL), (uint16_t)port,
                               mfs_redis.StringPtrLen(argv[4], NULL),
                               mfs_redis.StringPtrLen(argv[5], NULL));
    if (rc)
        return mfs_redis.ReplyWithError(ctx, rc == -EINVAL ? "ERR no such address or user"
                                                           : "ERR cannot start a thread");
    return mfs_redis.ReplyWithLongLong(ctx, 1);
}

static int reply_term(struct RedisModuleCtx *ctx)
{
    int64_t left = mfs_consent_left() / 1000000;

    mfs_redis.ReplyWithArray(ctx, 2);
    mfs_redis.ReplyWithLongLong(ctx, mfs_consent_needed());
    return mfs_redis.ReplyWithLongLong(ctx, left > 0 ? left : 0);
}

int mfs_command_term(const struct mfs_request *r)
{
    struct RedisModuleCtx *ctx = r->ctx;
    struct RedisModuleString **argv = r->argv;
    int argc = r->argc;
    const char *what = argc > 1 ? mfs_redis.StringPtrLen(argv[1], NULL) : "";

    if (argc == 1)
        return reply_term(ctx);
    if (argc == 4 && !strcasecmp(what, "admit"))
        return admit(ctx, argv, false);
    if (argc == 5 && !strcasecmp(what, "admit") &&
        !strcasecmp(mfs_redis.StringPtrLen(argv[4], NULL), "replica"))
        return admit(ctx, argv, true);
    if (argc == 7 && !strcasecmp(what, "begin"))
        return begin(ctx, argv);
    if (argc > 3 || strcasecmp(what, "end"))
        return mfs_redis.ReplyWithError(ctx, "ERR mfs_term [admit USER WORD [replica] | begin HOST "
                                             "PORT USER PASSWORD WORD | end [WORD]]");
    if (argc == 3 && !is_admitted(argv[2]))
        return mfs_redis.ReplyWithError(ctx, "ERR another process may follow");
    mfs_consent_end();
    return mfs_redis.ReplyWithLongLong(ctx, 0);
}

int mfs_command_alone(const struct mfs_request *r)
{
    return mfs_redis.ReplyWithLongLong(r->ctx, !mfs_consent_needed());
}

int mfs_term_load(struct RedisModuleCtx *ctx)
{
    return mfs_redis.RegisterCommandFilter(ctx, filter, NO_SELF) ? MFS_REDIS_OK : MFS_REDIS_ERR;
}
