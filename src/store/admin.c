/* A Local Manager's view of one redis process: plain commands over one connection. */
#include "store/admin.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cluster/table.h"
#include "store/args.h"
#include "store/channel.h"
#include "store/functions.h"
#include "store/reply.h"

struct mfs_admin {
    struct mfs_channel *conn;
    int64_t timeout_ns;
    char name[MFS_UNIXPATH_MAX + MFS_HOST_MAX + 8]; /* for messages: path or host:port */
};

int mfs_admin_open(struct mfs_admin **out, const char *unix_path, const char *host, uint16_t port,
                   const char *password, int64_t timeout_ns, struct mfs_err *err)
{
    struct mfs_endpoint ep = {unix_path, host, port, MFS_REDIS_ADMIN, password};
    struct mfs_admin *admin = calloc(1, sizeof *admin);
    int rc;

    *out = NULL;
    if (!admin)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    if (unix_path)
        snprintf(admin->name, sizeof admin->name, "%s", unix_path);
    else
        snprintf(admin->name, sizeof admin->name, "%s:%u", host, port);
    admin->timeout_ns = timeout_ns;
    rc = mfs_channel_open(&admin->conn, &ep, timeout_ns, timeout_ns, err);
    if (rc) {
        mfs_err_prefix(err, "redis at %s", admin->name);
        mfs_admin_close(admin);
        return rc;
    }
    *out = admin;
    return 0;
}

void mfs_admin_close(struct mfs_admin *admin)
{
    if (!admin)
        return;
    mfs_channel_close(admin->conn);
    free(admin);
}

int mfs_admin_call(struct mfs_admin *admin, struct mfs_cmd *cmd, struct mfs_err *err)
{
    int rc = mfs_channel_call(admin->conn, cmd, admin->timeout_ns, err);

    if (rc)
        cmd->rc = rc;
    if (cmd->rc)
        mfs_err_prefix(err, "redis at %s: %.*s", admin->name, (int)cmd->argv[0].len,
                       (const char *)cmd->argv[0].p);
    return cmd->rc;
}

static int call_plain(struct mfs_admin *admin, const struct mfs_args *args, struct mfs_err *err)
{
    struct mfs_cmd cmd = mfs_args_cmd(args, 0);
    int rc = mfs_admin_call(admin, &cmd, err);

    mfs_cmds_fini(&cmd, 1);
    return rc;
}

int mfs_admin_format(struct mfs_admin *admin, const struct mfs_admin_format *f, struct mfs_err *err)
{
    struct timespec now = mfs_clock_real();
    struct mfs_args args;
    int rc;

    mfs_args_init(&args, "FUNCTION");
    mfs_args_str(&args, "LOAD");
    mfs_args_str(&args, "REPLACE");
    mfs_args_bin(&args, mfs_functions_text, mfs_functions_len);
    rc = call_plain(admin, &args, err);
    if (rc)
        return rc;
    mfs_args_function(&args, "mfs_format", false);
    mfs_args_str(&args, f->deployment);
    mfs_args_int(&args, f->index);
    mfs_args_int(&args, f->nparts);
    mfs_args_int(&args, f->stripe_size);
    mfs_args_int(&args, now.tv_sec);
    mfs_args_int(&args, now.tv_nsec);
    return call_plain(admin, &args, err);
}

/* The number behind "\nfield:", 0 when there is none. */
static uint64_t info_field(const char *text, const char *field)
{
    char line[64];
    const char *at;

    snprintf(line, sizeof line, "\n%s:", field);
    at = strstr(text, line);
    return at ? strtoull(at + strlen(line), NULL, 10) : 0;
}

/* Likewise the word, "" when there is none or it is too long. */
static void info_word(const char *text, const char *field, char *out, size_t n)
{
    char line[64];
    const char *at;
    size_t len;

    snprintf(line, sizeof line, "\n%s:", field);
    at = strstr(text, line);
    at = at ? at + strlen(line) : "";
    len = strcspn(at, "\r\n");
    len = len < n ? len : 0;
    memcpy(out, at, len);
    out[len] = '\0';
}

/* "db0:keys=12,expires=…"; only database 0 is used. */
static uint64_t info_keys(const char *text)
{
    const char *at = strstr(text, "\ndb0:keys=");

    return at ? strtoull(at + strlen("\ndb0:keys="), NULL, 10) : 0;
}

int mfs_admin_info(struct mfs_admin *admin, struct mfs_admin_info *info, struct mfs_err *err)
{
    struct mfs_args args;
    struct mfs_cmd cmd;
    const char *text;
    int rc;

    mfs_args_init(&args, "INFO");
    cmd = mfs_args_cmd(&args, 0);
    rc = mfs_admin_call(admin, &cmd, err);
    if (rc)
        goto out;
    text = mfs_reply_str(cmd.reply, NULL);
    if (!text) {
        rc = mfs_err_set(err, -EPROTO, "redis at %s: INFO gave no text", admin->name);
        goto out;
    }
    *info = (struct mfs_admin_info){
        .used_memory = info_field(text, "used_memory"),
        .used_memory_rss = info_field(text, "used_memory_rss"),
        .maxmemory = info_field(text, "maxmemory"),
        .not_counted = info_field(text, "mem_not_counted_for_evict"),
        .active = info_field(text, "allocator_active"),
        .resident = info_field(text, "allocator_resident"),
        .copied = info_field(text, "current_cow_size"),
        .keys = info_keys(text),
        .net_in = info_field(text, "total_net_input_bytes"),
        .net_out = info_field(text, "total_net_output_bytes"),
        .pid = (uint32_t)info_field(text, "process_id"),
        .connections = (uint32_t)info_field(text, "connected_clients"),
    };
out:
    mfs_cmds_fini(&cmd, 1);
    return rc;
}

static bool info_is(const char *text, const char *line)
{
    const char *at = strstr(text, line);

    return at && at > text && at[-1] == '\n';
}

static struct mfs_admin_replication replication_of(const char *text)
{
    struct mfs_admin_replication r = {
        .replica = info_is(text, "role:slave"),
        .link_up = info_is(text, "master_link_status:up"),
        .loading = info_is(text, "loading:1"),
        .used_memory = info_field(text, "used_memory"),
        .maxmemory = info_field(text, "maxmemory"),
        .keys = info_keys(text),
        .full_copies = info_field(text, "sync_full"),
        .saved_keys = info_field(text, "current_save_keys_processed"),
    };

    r.offset = info_field(text, r.replica ? "slave_repl_offset" : "master_repl_offset");
    info_word(text, "master_replid", r.stream, sizeof r.stream);
    info_word(text, "run_id", r.process, sizeof r.process);
    return r;
}

int mfs_admin_replication(struct mfs_admin *admin, bool full, struct mfs_admin_replication *r,
                          struct mfs_err *err)
{
    struct mfs_args args;
    struct mfs_cmd cmd;
    const char *text;
    int rc;

    mfs_args_init(&args, "INFO");
    if (!full)
        mfs_args_str(&args, "replication");
    cmd = mfs_args_cmd(&args, 0);
    rc = mfs_admin_call(admin, &cmd, err);
    if (rc)
        goto out;
    text = mfs_reply_str(cmd.reply, NULL);
    if (text && info_field(text, "master_repl_offset") + info_is(text, "role:"))
        *r = replication_of(text);
    else
        rc =
            mfs_err_set(err, -EPROTO, "redis at %s: INFO says nothing of replication", admin->name);
out:
    mfs_cmds_fini(&cmd, 1);
    return rc;
}

int mfs_admin_replicate(struct mfs_admin *admin, const char *host, uint16_t port,
                        const char *password, struct mfs_err *err)
{
    struct mfs_args args;
    int rc;

    mfs_args_init(&args, "CONFIG");
    mfs_args_str(&args, "SET");
    mfs_args_str(&args, "masteruser");
    mfs_args_str(&args, MFS_REDIS_ADMIN);
    mfs_args_str(&args, "masterauth");
    mfs_args_str(&args, password);
    rc = call_plain(admin, &args, err);
    if (rc)
        return rc;
    mfs_args_init(&args, "REPLICAOF");
    mfs_args_str(&args, host);
    mfs_args_int(&args, port);
    return call_plain(admin, &args, err);
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
    return call_plain(admin, &args, err);
}

/* Who has not logged on is the user "default", which is off. */
int mfs_admin_drop_strangers(struct mfs_admin *admin, struct mfs_err *err)
{
    struct mfs_args args;

    mfs_args_init(&args, "CLIENT");
    mfs_args_str(&args, "KILL");
    mfs_args_str(&args, "USER");
    mfs_args_str(&args, "default");
    return call_plain(admin, &args, err);
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

/* Two commands in one round trip; the second is executed also when the first is refused. */
static int call_both(struct mfs_admin *admin, struct mfs_cmd cmd[2], struct mfs_err *err)
{
    struct mfs_cmd *const both[] = {&cmd[0], &cmd[1]};
    struct mfs_err why = {0};
    int rc;

    rc = mfs_channel_start(admin->conn, both, 2, mfs_clock_mono() + admin->timeout_ns);
    if (!rc)
        rc = mfs_channel_send(admin->conn, true);
    for (int i = 0; i < 2 && rc > 0; i++) {
        rc = mfs_channel_recv(admin->conn, &cmd[i], true, why.code ? NULL : &why);
        if (rc > 0 && cmd[i].rc && !why.code)
            mfs_err_set(&why, cmd[i].rc, "%s", strerror(-cmd[i].rc));
    }
    if (rc < 0 && !why.code)
        mfs_err_set(&why, rc, "%s", rc == -ETIMEDOUT ? "no answer in time" : strerror(-rc));
    admin->conn->given_up = rc < 0;
    if (why.code)
        mfs_err_set(err, why.code, "redis at %s: %s", admin->name, why.msg);
    return why.code;
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
    rc = call_both(admin, cmd, err);
    text = rc ? NULL : mfs_reply_str(cmd[1].reply, NULL);
    if (text)
        *offset = replication_of(text).offset;
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
    rc = call_both(admin, cmd, err);
    mfs_cmds_fini(cmd, 2);
out:
    set_user_fini(&serve);
    return rc;
}

static void args_cut(struct mfs_args *args)
{
    mfs_args_init(args, "INFO");
    mfs_args_str(args, "persistence");
    mfs_args_str(args, "memory");
}

static int take_cut(const struct mfs_admin *admin, const struct mfs_cmd *info,
                    struct mfs_admin_cut *cut, struct mfs_err *err)
{
    const char *text = mfs_reply_str(info->reply, NULL);

    if (!text || !strstr(text, "rdb_changes_since_last_save:"))
        return mfs_err_set(err, -EPROTO, "redis at %s: INFO says nothing of changes", admin->name);
    cut->changes = info_field(text, "rdb_changes_since_last_save");
    cut->used_memory = info_field(text, "used_memory");
    return 0;
}

int mfs_admin_hold(struct mfs_admin *admin, uint32_t ms, struct mfs_admin_cut *cut,
                   struct mfs_err *err)
{
    struct mfs_args pause, info;
    struct mfs_cmd cmd[2];
    int rc;

    mfs_args_init(&pause, "CLIENT");
    mfs_args_str(&pause, "PAUSE");
    mfs_args_int(&pause, ms);
    mfs_args_str(&pause, "WRITE");
    args_cut(&info);
    cmd[0] = mfs_args_cmd(&pause, 0);
    cmd[1] = mfs_args_cmd(&info, 0);
    rc = call_both(admin, cmd, err);
    if (!rc)
        rc = take_cut(admin, &cmd[1], cut, err);
    mfs_cmds_fini(cmd, 2);
    return rc;
}

int mfs_admin_resume(struct mfs_admin *admin, struct mfs_admin_cut *cut, struct mfs_err *err)
{
    struct mfs_args info, resume;
    struct mfs_cmd cmd[2];
    int rc;

    args_cut(&info);
    mfs_args_init(&resume, "CLIENT");
    mfs_args_str(&resume, "UNPAUSE");
    cmd[0] = mfs_args_cmd(&info, 0);
    cmd[1] = mfs_args_cmd(&resume, 0);
    rc = call_both(admin, cmd, err);
    if (!rc)
        rc = take_cut(admin, &cmd[0], cut, err);
    mfs_cmds_fini(cmd, 2);
    return rc;
}

/* Not functions of our library: the image may have brought an older one. The first answers with the
 * next cursor. */
static const char restored_name[] =
    "if redis.call('EXISTS', '#super') == 0 then "
    "return redis.error_reply('ERRNO 22 it holds no partition') end "
    "redis.call('HSET', '#super', 'deployment', ARGV[1]) "
    "redis.call('DEL', '#sessions', '#chores') return '0'";
static const char restored_keys[] =
    "local r = redis.call('SCAN', ARGV[1], 'COUNT', 2000) "
    "for _, key in ipairs(r[2]) do "
    "if string.find(key, '^[OLPYKWZ]') then redis.call('DEL', key) end end "
    "return r[1]";

/* EVAL with one argument, whose answer takes its place. */
static int eval(struct mfs_admin *admin, const char *script, char *arg, size_t n,
                struct mfs_err *err)
{
    struct mfs_args args;
    struct mfs_cmd cmd;
    const char *text;
    int rc;

    mfs_args_init(&args, "EVAL");
    mfs_args_str(&args, script);
    mfs_args_int(&args, 0);
    mfs_args_str(&args, arg);
    cmd = mfs_args_cmd(&args, 0);
    rc = mfs_admin_call(admin, &cmd, err);
    text = rc ? NULL : mfs_reply_str(cmd.reply, NULL);
    if (text)
        snprintf(arg, n, "%s", text);
    else if (!rc)
        rc = mfs_err_set(err, -EPROTO, "redis at %s: EVAL gave no text", admin->name);
    mfs_cmds_fini(&cmd, 1);
    return rc;
}

int mfs_admin_restored(struct mfs_admin *admin, const char *deployment, struct mfs_err *err)
{
    char arg[MFS_NAME_MAX];
    int rc;

    snprintf(arg, sizeof arg, "%s", deployment);
    rc = eval(admin, restored_name, arg, sizeof arg, err);
    do
        if (!rc)
            rc = eval(admin, restored_keys, arg, sizeof arg, err);
    while (!rc && strcmp(arg, "0"));
    return rc;
}

int mfs_admin_set(struct mfs_admin *admin, const char *option, const char *value,
                  struct mfs_err *err)
{
    struct mfs_args args;

    mfs_args_init(&args, "CONFIG");
    mfs_args_str(&args, "SET");
    mfs_args_str(&args, option);
    mfs_args_str(&args, value);
    return call_plain(admin, &args, err);
}

int mfs_admin_flush(struct mfs_admin *admin, struct mfs_err *err)
{
    struct mfs_args args;

    mfs_args_init(&args, "FLUSHALL");
    mfs_args_str(&args, "SYNC");
    return call_plain(admin, &args, err);
}

int mfs_admin_set_maxmemory(struct mfs_admin *admin, uint64_t bytes, struct mfs_err *err)
{
    char number[24];

    snprintf(number, sizeof number, "%" PRIu64, bytes);
    return mfs_admin_set(admin, "maxmemory", number, err);
}

int mfs_admin_purge(struct mfs_admin *admin, struct mfs_err *err)
{
    struct mfs_args args;

    mfs_args_init(&args, "MEMORY");
    mfs_args_str(&args, "PURGE");
    return call_plain(admin, &args, err);
}

int mfs_admin_journal(struct mfs_admin *admin, struct mfs_admin_journal *j, struct mfs_err *err)
{
    const struct mfs_reply *r;
    struct mfs_args args;
    struct mfs_cmd cmd;
    const char *stream;
    size_t len;
    int rc;

    mfs_args_init(&args, "mfs_journal");
    cmd = mfs_args_cmd(&args, 0);
    rc = mfs_admin_call(admin, &cmd, err);
    r = rc ? NULL : cmd.reply;
    if (!rc && mfs_reply_count(r) < 8)
        rc = mfs_err_set(err, -EPROTO, "redis at %s: no journal's state", admin->name);
    if (!rc)
        *j = (struct mfs_admin_journal){.fenced = mfs_reply_int(mfs_reply_at(r, 0)) != 0,
                                        .stripes = (uint64_t)mfs_reply_int(mfs_reply_at(r, 1)),
                                        .lost = (uint64_t)mfs_reply_int(mfs_reply_at(r, 2)),
                                        .whole = mfs_reply_int(mfs_reply_at(r, 3)) != 0,
                                        .bytes = (uint64_t)mfs_reply_int(mfs_reply_at(r, 4)),
                                        .offset = (uint64_t)mfs_reply_int(mfs_reply_at(r, 7))};
    stream = rc ? NULL : mfs_reply_str(mfs_reply_at(r, 6), &len);
    if (stream && len < sizeof j->stream)
        memcpy(j->stream, stream, len);
    mfs_cmds_fini(&cmd, 1);
    return rc;
}

int mfs_admin_copied(struct mfs_admin *admin, struct mfs_err *err)
{
    struct mfs_args args;

    mfs_args_init(&args, "mfs_journal");
    mfs_args_str(&args, "copied");
    return call_plain(admin, &args, err);
}

int mfs_admin_shutdown(struct mfs_admin *admin, struct mfs_err *err)
{
    struct mfs_args args;
    struct mfs_cmd cmd;
    int rc;

    mfs_args_init(&args, "SHUTDOWN");
    mfs_args_str(&args, "NOSAVE");
    mfs_args_str(&args, "NOW"); /* not for replicas that are behind, either */
    mfs_args_str(&args, "FORCE");
    cmd = mfs_args_cmd(&args, 0);
    rc = mfs_admin_call(admin, &cmd, err);
    mfs_cmds_fini(&cmd, 1);
    if (rc == -ECONNRESET || rc == -EPIPE)
        return 0;
    return rc ? rc : mfs_err_set(err, -EPROTO, "redis at %s: did not shut down", admin->name);
}
