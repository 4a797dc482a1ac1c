/* What a client may do in a redis process as lm starts it: what partition/protocol.h lists, and
 * nothing else of all that this redis knows. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "lm/redis/instances.h"
#include "store/admin/admin.h"
#include "store/args.h"
#include "store/channel.h"
#include "store/reply.h"
#include "store/rights.h"

#define TIMEOUT   (30 * MFS_SEC)
#define WORDS_MAX 16

static const char *const listed[] = {
#define SERVER(command, effect)            command,
#define MODULE(name, words, first, effect) "mfs_" #name,
    MFS_SERVER_COMMANDS(SERVER) MFS_CLIENT_COMMANDS(MODULE)};
#define NLISTED (sizeof listed / sizeof *listed)

struct world {
    char dir[64];
    struct mfs_instances *instances;
    struct mfs_redis r;
    struct mfs_admin *admin;
    struct mfs_channel *client;
};

static struct world w;
static bool met[NLISTED];
static char refused[16384]; /* names, each between blanks */

static int setup(void **state)
{
    struct mfs_instances_opts opts = {.dir = w.dir,
                                      .dump_dir = w.dir,
                                      .address = "127.0.0.1",
                                      .deployment = "test",
                                      .nparts = 1,
                                      .stripe_size = 1 << 20,
                                      .memory = 64 << 20};
    struct mfs_endpoint ep = {.user = MFS_REDIS_USER};
    struct mfs_err err = {0};

    (void)state;
    mfs_text_copy(w.dir, sizeof w.dir, "/tmp/memefs-lm-XXXXXX");
    if (!mkdtemp(w.dir) || mfs_instances_create(&w.instances, &opts))
        return -1;
    w.r = (struct mfs_redis){.format = true};
    mfs_random_hex(w.r.password, 32);
    mfs_random_hex(w.r.admin_password, 32);
    if (mfs_instances_start(w.instances, &w.r, 1, &err) ||
        mfs_instances_find(w.instances, 0, &w.r) ||
        mfs_admin_open(&w.admin, w.r.unix_path, NULL, 0, w.r.admin_password, TIMEOUT, &err))
        goto fail;
    ep.unix_path = w.r.unix_path;
    ep.password = w.r.password;
    if (!mfs_channel_open(&w.client, &ep, TIMEOUT, TIMEOUT, &err))
        return 0;
fail:
    print_error("%s\n", err.msg);
    return -1;
}

static int teardown(void **state)
{
    (void)state;
    mfs_channel_close(w.client);
    mfs_admin_close(w.admin);
    if (w.instances)
        mfs_instances_stop_all(w.instances);
    mfs_instances_destroy(w.instances);
    mfs_file_remove_tree(w.dir);
    return 0;
}

/* What the client is told; the connection must live on. */
static int says(const struct mfs_arg *argv, uint32_t argc, struct mfs_err *err)
{
    struct mfs_cmd cmd = {.argc = argc, .argv = argv};

    *err = (struct mfs_err){0};
    if (mfs_channel_call(w.client, &cmd, TIMEOUT, err))
        fail_msg("%.*s: %s", (int)argv[0].len, (const char *)argv[0].p, err->msg);
    mfs_cmds_fini(&cmd, 1);
    return cmd.rc;
}

static bool is_listed(const char *name)
{
    bool found = false;

    for (size_t i = 0; i < NLISTED; i++) {
        if (strcmp(name, listed[i]) != 0)
            continue;
        found = met[i] = true;
    }
    return found;
}

static bool may_without_login(const struct mfs_reply *flags)
{
    bool found = false;

    for (size_t i = 0; i < mfs_reply_count(flags); i++)
        found = found || strcmp(mfs_reply_str(mfs_reply_at(flags, i), NULL), "no_auth") == 0;
    return found;
}

/* Some are off for everybody, and that is looked at before the rights. */
static bool is_refusal(const char *text)
{
    return (strstr(text, "NOPERM ") != NULL && strstr(text, "to run the") != NULL) ||
           strstr(text, "command not allowed") != NULL;
}

/* With as many words as it has to have, so that nothing but its rights is in the way. */
static void try_command(const char *name, int64_t arity)
{
    char words[64];
    struct mfs_arg argv[WORDS_MAX];
    uint32_t argc = 0, least = (uint32_t)(arity < 0 ? -arity : arity);
    struct mfs_err err;
    bool forbidden;

    mfs_text_copy(words, sizeof words, name);
    for (char *rest = words, *word; (word = strsep(&rest, "|"));)
        argv[argc++] = (struct mfs_arg){word, strlen(word)};
    while (argc < least && argc < WORDS_MAX)
        argv[argc++] = (struct mfs_arg){"1", 1};
    says(argv, argc, &err);
    forbidden = is_refusal(err.msg);
    if (forbidden == is_listed(name))
        fail_msg("%s is %s: %s", name, forbidden ? "refused" : "not refused", err.msg);
    if (forbidden)
        snprintf(refused + strlen(refused), sizeof refused - strlen(refused), " %s ", name);
}

/* An element of what COMMAND answers: name, arity, flags, … , and at last its subcommands. */
static void try_described(const struct mfs_reply *r)
{
    const struct mfs_reply *sub = mfs_reply_at(r, 9);

    for (size_t i = 0; i < mfs_reply_count(sub); i++)
        try_described(mfs_reply_at(sub, i));
    if (!mfs_reply_count(sub) && !may_without_login(mfs_reply_at(r, 2)))
        try_command(mfs_reply_str(mfs_reply_at(r, 0), NULL), mfs_reply_int(mfs_reply_at(r, 1)));
}

static void test_what_is_listed_and_nothing_else(void **state)
{
    struct mfs_args args;
    struct mfs_cmd cmd;
    struct mfs_err err;

    (void)state;
    mfs_args_init(&args, "COMMAND");
    cmd = mfs_args_cmd(&args, 0);
    if (mfs_admin_call(w.admin, &cmd, &err))
        fail_msg("%s", err.msg);
    assert_true(mfs_reply_count(cmd.reply) > 200);
    for (size_t i = 0; i < mfs_reply_count(cmd.reply); i++)
        try_described(mfs_reply_at(cmd.reply, i));
    mfs_cmds_fini(&cmd, 1);
    for (size_t i = 0; i < NLISTED; i++) {
        if (!met[i])
            fail_msg("redis knows no %s", listed[i]);
    }
}

/* Those that would give power over the process or over others, by name. */
static void test_dangerous(void **state)
{
    static const char *const bad[] = {
        "config|get",   "config|set",      "debug",        "keys",           "flushall",
        "flushdb",      "script|load",     "eval",         "evalsha",        "acl|list",
        "acl|setuser",  "replicaof",       "module|list",  "function|load",  "shutdown",
        "save",         "bgsave",          "monitor",      "client|kill",    "client|list",
        "swapdb",       "migrate",         "psync",        "function|flush", "pubsub|channels",
        "psubscribe",   "client|no-evict", "slowlog|get",  "latency|reset",  "client|unblock",
        "client|pause", "failover",        "cluster|info", "restore",        "function|dump"};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char name[32];

        snprintf(name, sizeof name, " %s ", bad[i]);
        if (!strstr(refused, name))
            fail_msg("%s was not refused", bad[i]);
    }
}

static int publish(const char *channel)
{
    const struct mfs_arg argv[] = {{"PUBLISH", 7}, {channel, strlen(channel)}, {"m", 1}};
    struct mfs_err err;

    return says(argv, 3, &err);
}

static void test_channels(void **state)
{
    (void)state;
    assert_int_equal(publish("N12345678"), 0);
    assert_int_equal(publish("other"), -EACCES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_listed_and_nothing_else),
        cmocka_unit_test(test_dangerous),
        cmocka_unit_test(test_channels),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
