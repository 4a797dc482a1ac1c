/* Replicas, and the cut from one process to the other. */
#include "store/admin/admin_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/args.h"
#include "store/reply.h"

/* Not the password itself: redis sends it to any process that listens where the source was
 * (docs/design/security.md). */
int mfs_admin_copy_word(const char *password, char word[MFS_MAC_TEXT])
{
    static const char *const fields[] = {"memefs1", "copy"};

    return mfs_mac(password, strlen(password), fields, sizeof fields / sizeof *fields, word);
}

int mfs_admin_admit(struct mfs_admin *admin, const char *word, bool replica, struct mfs_err *err)
{
    struct mfs_args args;

    mfs_args_init(&args, "mfs_term");
    mfs_args_str(&args, "admit");
    mfs_args_str(&args, MFS_REDIS_COPY);
    mfs_args_str(&args, word);
    if (replica)
        mfs_args_str(&args, "replica");
    return mfs_admin_plain(admin, &args, err);
}

int mfs_admin_replicate(struct mfs_admin *admin, const char *host, uint16_t port, const char *word,
                        struct mfs_err *err)
{
    struct mfs_args args;
    int rc;

    mfs_args_init(&args, "CONFIG");
    mfs_args_str(&args, "SET");
    mfs_args_str(&args, "masteruser");
    mfs_args_str(&args, MFS_REDIS_COPY);
    mfs_args_str(&args, "masterauth");
    mfs_args_str(&args, word);
    rc = mfs_admin_plain(admin, &args, err);
    if (rc)
        return rc;
    mfs_args_init(&args, "REPLICAOF");
    mfs_args_str(&args, host);
    mfs_args_int(&args, port);
    return mfs_admin_plain(admin, &args, err);
}

int mfs_admin_send_freely(struct mfs_admin *admin, struct mfs_err *err)
{
    int rc = mfs_admin_set(admin, "rdb-key-save-delay", "0", err);

    return rc ? rc : mfs_admin_set(admin, "repl-diskless-sync", "yes", err);
}

int mfs_admin_hold_copy(struct mfs_admin *admin, struct mfs_err *err)
{
    /* With a wrong password it is refused before it asks for anything, once a second. */
    return mfs_admin_set(admin, "masterauth", "-", err);
}

int mfs_admin_replicate_none(struct mfs_admin *admin, struct mfs_err *err)
{
    struct mfs_args args;

    mfs_args_init(&args, "REPLICAOF");
    mfs_args_str(&args, "NO");
    mfs_args_str(&args, "ONE");
    return mfs_admin_plain(admin, &args, err);
}

/* A client that has not logged on is the user "default", which is off. */
int mfs_admin_drop_strangers(struct mfs_admin *admin, struct mfs_err *err)
{
    struct mfs_args args;

    mfs_args_init(&args, "CLIENT");
    mfs_args_str(&args, "KILL");
    mfs_args_str(&args, "USER");
    mfs_args_str(&args, "default");
    return mfs_admin_plain(admin, &args, err);
}

/* REPLCONF GETACK has no reply, so another command goes with it. */
int mfs_admin_acknowledge(struct mfs_admin *admin, struct mfs_err *err)
{
    struct mfs_args ask, ping;
    struct mfs_cmd cmd[2];
    struct mfs_cmd *const both[] = {&cmd[0], &cmd[1]};
    int rc;

    mfs_args_init(&ask, "REPLCONF");
    mfs_args_str(&ask, "GETACK");
    mfs_args_str(&ask, "*");
    mfs_args_init(&ping, "PING");
    cmd[0] = mfs_args_cmd(&ask, 0);
    cmd[1] = mfs_args_cmd(&ping, 0);
    rc = mfs_channel_start(admin->conn, both, 2, mfs_clock_mono() + admin->timeout_ns);
    if (!rc)
        rc = mfs_channel_send(admin->conn, true);
    if (rc > 0)
        rc = mfs_channel_recv(admin->conn, &cmd[1], true, err);
    mfs_cmds_fini(cmd, 2);
    admin->conn->given_up = rc < 0;
    return rc < 0 ? mfs_err_set(err, rc, "redis at %s: %s", admin->name, strerror(-rc)) : 0;
}

/* A command that gives MFS_REDIS_USER other rights, with all that it is made of. */
struct set_user {
    struct mfs_arg *argv;
    uint32_t argc;
    char *words; /* the rules, cut into words */
};

static int set_user_init(struct set_user *u, const char *rules)
{
    char *rest;
    size_t n = 4;

    for (const char *p = rules; *p; p++)
        n += *p == ' ';
    u->words = rest = strdup(rules);
    u->argv = calloc(n, sizeof *u->argv);
    u->argc = 0;
    if (!u->words || !u->argv)
        return -ENOMEM;
    u->argv[u->argc++] = (struct mfs_arg){"ACL", 3};
    u->argv[u->argc++] = (struct mfs_arg){"SETUSER", 7};
    u->argv[u->argc++] = (struct mfs_arg){MFS_REDIS_USER, sizeof MFS_REDIS_USER - 1};
    for (char *rule; (rule = strsep(&rest, " "));)
        u->argv[u->argc++] = (struct mfs_arg){rule, strlen(rule)};
    return 0;
}

static void set_user_fini(struct set_user *u)
{
    free(u->argv);
    free(u->words);
}

static struct mfs_cmd set_user_cmd(const struct set_user *u)
{
    return (struct mfs_cmd){.argc = u->argc, .argv = u->argv};
}

int mfs_admin_set_user(struct mfs_admin *admin, const char *rules, struct mfs_err *err)
{
    struct set_user user;
    struct mfs_cmd cmd;
    int rc = set_user_init(&user, rules);

    if (rc) {
        mfs_err_set(err, rc, "out of memory");
    } else {
        cmd = set_user_cmd(&user);
        rc = mfs_admin_call(admin, &cmd, err);
        mfs_cmds_fini(&cmd, 1);
    }
    set_user_fini(&user);
    return rc;
}

int mfs_admin_halt(struct mfs_admin *admin, const char *rules, uint64_t *offset,
                   struct mfs_err *err)
{
    struct set_user fence;
    struct mfs_args info;
    struct mfs_cmd cmd[2] = {0};
    const char *text;
    int rc = set_user_init(&fence, rules);

    if (rc) {
        mfs_err_set(err, rc, "out of memory");
        goto out;
    }
    mfs_args_init(&info, "INFO");
    mfs_args_str(&info, "replication");
    cmd[0] = set_user_cmd(&fence);
    cmd[1] = mfs_args_cmd(&info, 0);
    rc = mfs_admin_both(admin, cmd, err);
    text = rc ? NULL : mfs_reply_str(cmd[1].reply, NULL);
    if (text)
        *offset = mfs_admin_replication_of(text).offset;
    else if (!rc)
        rc = mfs_err_set(err, -EPROTO, "redis at %s: INFO gave no text", admin->name);
    mfs_cmds_fini(cmd, 2);
out:
    set_user_fini(&fence);
    return rc;
}

int mfs_admin_promote(struct mfs_admin *admin, const char *rules, struct mfs_err *err)
{
    struct set_user serve;
    struct mfs_args none;
    struct mfs_cmd cmd[2] = {0};
    int rc = set_user_init(&serve, rules);

    if (rc) {
        mfs_err_set(err, rc, "out of memory");
        goto out;
    }
    mfs_args_init(&none, "REPLICAOF");
    mfs_args_str(&none, "NO");
    mfs_args_str(&none, "ONE");
    cmd[0] = mfs_args_cmd(&none, 0);
    cmd[1] = set_user_cmd(&serve);
    rc = mfs_admin_both(admin, cmd, err);
    mfs_cmds_fini(cmd, 2);
out:
    set_user_fini(&serve);
    return rc;
}
