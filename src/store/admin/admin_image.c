/* The moment that images are of, and a process that has begun with one. */
#include "store/admin/admin_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/table.h"
#include "partition/protocol.h"
#include "store/args.h"
#include "store/reply.h"

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
    cut->changes = mfs_admin_field(text, "rdb_changes_since_last_save");
    cut->used_memory = mfs_admin_field(text, "used_memory");
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
    rc = mfs_admin_both(admin, cmd, err);
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
    rc = mfs_admin_both(admin, cmd, err);
    if (!rc)
        rc = take_cut(admin, &cmd[0], cut, err);
    mfs_cmds_fini(cmd, 2);
    return rc;
}

int mfs_admin_losses(struct mfs_admin *admin, uint64_t *losses, struct mfs_err *err)
{
    struct mfs_args args;
    struct mfs_cmd cmd;
    const char *text;
    int rc;

    mfs_args_init(&args, "GET");
    mfs_args_str(&args, MFS_LOSSES_KEY);
    cmd = mfs_args_cmd(&args, 0);
    rc = mfs_admin_call(admin, &cmd, err);
    text = rc ? NULL : mfs_reply_str(cmd.reply, NULL);
    *losses = text ? strtoull(text, NULL, 10) : 0;
    mfs_cmds_fini(&cmd, 1);
    return rc;
}

/* Not functions of our library: the image may have brought an older one. The first answers with the
 * next cursor. */
static const char restored_name[] =
    "if redis.call('EXISTS', '#super') == 0 then "
    "return redis.error_reply('ERRNO 22 it holds no partition') end "
    "redis.call('HSET', '#super', 'deployment', ARGV[1]) "
    "redis.call('DEL', '#sessions', '#chores', '#tidy') return '0'";
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
