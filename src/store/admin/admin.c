/* A Local Manager's view of one redis process: plain commands over one connection. */
#include "store/admin/admin_impl.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cluster/table.h"
#include "store/args.h"
#include "store/reply.h"

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

int mfs_admin_plain(struct mfs_admin *admin, const struct mfs_args *args, struct mfs_err *err)
{
    struct mfs_cmd cmd = mfs_args_cmd(args, 0);
    int rc = mfs_admin_call(admin, &cmd, err);

    mfs_cmds_fini(&cmd, 1);
    return rc;
}

/* What the connection says from now on is not known. */
static int broken(struct mfs_admin *admin, int rc, const char *why, struct mfs_err *err)
{
    if (!why)
        why = rc == -ETIMEDOUT ? "no answer in time" : strerror(-rc);
    admin->conn->given_up = true;
    return mfs_err_set(err, rc, "redis at %s: %s", admin->name, why);
}

int mfs_admin_send(struct mfs_admin *admin, struct mfs_cmd *cmd, size_t n, struct mfs_err *err)
{
    struct mfs_cmd *list[MFS_ADMIN_SEND_MAX];
    int rc;

    assert(n <= MFS_ADMIN_SEND_MAX);
    for (size_t i = 0; i < n; i++)
        list[i] = &cmd[i];
    rc = mfs_channel_start(admin->conn, list, n, mfs_clock_mono() + admin->timeout_ns);
    if (!rc)
        rc = mfs_channel_send(admin->conn, true);
    return rc < 0 ? broken(admin, rc, NULL, err) : 0;
}

int mfs_admin_receive(struct mfs_admin *admin, struct mfs_cmd *cmd, struct mfs_err *err)
{
    struct mfs_err why = {0};
    int rc = mfs_channel_recv(admin->conn, cmd, true, &why);

    if (rc < 0)
        return cmd->rc = broken(admin, rc, why.code ? why.msg : NULL, err);
    if (cmd->rc)
        mfs_err_set(err, cmd->rc, "redis at %s: %s", admin->name,
                    why.code ? why.msg : strerror(-cmd->rc));
    return cmd->rc;
}

int mfs_admin_both(struct mfs_admin *admin, struct mfs_cmd cmd[2], struct mfs_err *err)
{
    int rc = mfs_admin_send(admin, cmd, 2, err);

    for (int i = 0; i < 2 && !admin->conn->given_up; i++) {
        int one = mfs_admin_receive(admin, &cmd[i], rc ? NULL : err);

        rc = rc ? rc : one;
    }
    return rc;
}

int mfs_admin_format(struct mfs_admin *admin, const struct mfs_admin_format *f, struct mfs_err *err)
{
    struct timespec now = mfs_clock_real();
    struct mfs_args args;

    mfs_args_init(&args, "mfs_format");
    mfs_args_str(&args, f->deployment);
    mfs_args_int(&args, f->index);
    mfs_args_int(&args, f->nparts);
    mfs_args_int(&args, f->stripe_size);
    mfs_args_int(&args, now.tv_sec);
    mfs_args_int(&args, now.tv_nsec);
    return mfs_admin_plain(admin, &args, err);
}

int mfs_admin_set(struct mfs_admin *admin, const char *option, const char *value,
                  struct mfs_err *err)
{
    struct mfs_args args;

    mfs_args_init(&args, "CONFIG");
    mfs_args_str(&args, "SET");
    mfs_args_str(&args, option);
    mfs_args_str(&args, value);
    return mfs_admin_plain(admin, &args, err);
}

int mfs_admin_flush(struct mfs_admin *admin, struct mfs_err *err)
{
    struct mfs_args args;

    mfs_args_init(&args, "FLUSHALL");
    mfs_args_str(&args, "SYNC");
    return mfs_admin_plain(admin, &args, err);
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
    return mfs_admin_plain(admin, &args, err);
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
    return mfs_admin_plain(admin, &args, err);
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
