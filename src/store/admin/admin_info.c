/* What INFO says of a process. */
#include "store/admin/admin_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "partition/protocol.h"
#include "store/args.h"
#include "store/reply.h"

uint64_t mfs_admin_field(const char *text, const char *field)
{
    char line[64];
    const char *at;

    snprintf(line, sizeof line, "\n%s:", field);
    at = strstr(text, line);
    return at ? strtoull(at + strlen(line), NULL, 10) : 0;
}

/* As mfs_admin_field: the word, "" when there is none or it is too long. */
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

/* The number behind a word, 0 when there is none. */
static uint64_t info_behind(const char *text, const char *word)
{
    const char *at = strstr(text, word);

    return at ? strtoull(at + strlen(word), NULL, 10) : 0;
}

/* "db0:keys=12,expires=…"; only database 0 is used. */
static uint64_t info_keys(const char *text)
{
    return info_behind(text, "\ndb0:keys=");
}

static struct mfs_admin_info info_of(const char *text)
{
    return (struct mfs_admin_info){
        .used_memory = mfs_admin_field(text, "used_memory"),
        .used_memory_rss = mfs_admin_field(text, "used_memory_rss"),
        .maxmemory = mfs_admin_field(text, "maxmemory"),
        .not_counted = mfs_admin_field(text, "mem_not_counted_for_evict"),
        .active = mfs_admin_field(text, "allocator_active"),
        .resident = mfs_admin_field(text, "allocator_resident"),
        .copied = mfs_admin_field(text, "current_cow_size"),
        .keys = info_keys(text),
        .net_in = mfs_admin_field(text, "total_net_input_bytes"),
        .net_out = mfs_admin_field(text, "total_net_output_bytes"),
        .commands = mfs_admin_field(text, "total_commands_processed"),
        .errors = mfs_admin_field(text, "total_error_replies"),
        .out_of_memory = info_behind(text, "\nerrorstat_OOM:count="),
        .pid = (uint32_t)mfs_admin_field(text, "process_id"),
        .connections = (uint32_t)mfs_admin_field(text, "connected_clients"),
    };
}

static uint64_t number_at(const struct mfs_reply *list, size_t i)
{
    const char *text = mfs_reply_str(mfs_reply_at(list, i), NULL);

    return text ? strtoull(text, NULL, 10) : 0;
}

static struct mfs_admin_counts counts_of(const struct mfs_reply *list)
{
    uint64_t made = number_at(list, 0), freed = number_at(list, 1);

    return (struct mfs_admin_counts){.inodes = made > freed ? made - freed : 0,
                                     .losses = number_at(list, 2)};
}

int mfs_admin_ask(struct mfs_admin *admin, bool counts, struct mfs_err *err)
{
    struct mfs_args info, mget;
    struct mfs_cmd cmd[2];

    mfs_args_init(&info, "INFO");
    mfs_args_init(&mget, "MGET");
    mfs_args_str(&mget, "#seq");
    mfs_args_str(&mget, "#freed");
    mfs_args_str(&mget, MFS_LOSSES_KEY);
    cmd[0] = mfs_args_cmd(&info, 0);
    cmd[1] = mfs_args_cmd(&mget, 0);
    admin->counts_asked = counts;
    return mfs_admin_send(admin, cmd, counts ? 2 : 1, err);
}

static int take_info(struct mfs_admin *admin, struct mfs_admin_info *info, struct mfs_err *err)
{
    struct mfs_cmd cmd = {0};
    int rc = mfs_admin_receive(admin, &cmd, err);
    const char *text = rc ? NULL : mfs_reply_str(cmd.reply, NULL);

    if (text)
        *info = info_of(text);
    else if (!rc)
        rc = mfs_err_set(err, -EPROTO, "redis at %s: INFO gave no text", admin->name);
    mfs_cmds_fini(&cmd, 1);
    return rc;
}

/* An error that the process answers with is none here. */
static int take_counts(struct mfs_admin *admin, struct mfs_admin_counts *counts,
                       struct mfs_err *err)
{
    struct mfs_cmd cmd = {0};
    int rc = mfs_admin_receive(admin, &cmd, err);

    if (!rc && mfs_reply_count(cmd.reply) != 3)
        rc = mfs_err_set(err, -EPROTO, "redis at %s: MGET gave no three", admin->name);
    else if (!rc && counts)
        *counts = counts_of(cmd.reply);
    else if (!admin->conn->given_up)
        rc = 0;
    mfs_cmds_fini(&cmd, 1);
    return rc;
}

int mfs_admin_told(struct mfs_admin *admin, struct mfs_admin_info *info,
                   struct mfs_admin_counts *counts, struct mfs_err *err)
{
    int rc = take_info(admin, info, err), also = 0;

    if (admin->counts_asked && !admin->conn->given_up)
        also = take_counts(admin, counts, rc ? NULL : err);
    admin->counts_asked = false;
    return rc ? rc : also;
}

int mfs_admin_info(struct mfs_admin *admin, struct mfs_admin_info *info, struct mfs_err *err)
{
    int rc = mfs_admin_ask(admin, false, err);

    return rc ? rc : mfs_admin_told(admin, info, NULL, err);
}

static bool info_is(const char *text, const char *line)
{
    const char *at = strstr(text, line);

    return at && at > text && at[-1] == '\n';
}

struct mfs_admin_replication mfs_admin_replication_of(const char *text)
{
    struct mfs_admin_replication r = {
        .replica = info_is(text, "role:slave"),
        .link_up = info_is(text, "master_link_status:up"),
        .loading = info_is(text, "loading:1"),
        .used_memory = mfs_admin_field(text, "used_memory"),
        .maxmemory = mfs_admin_field(text, "maxmemory"),
        .keys = info_keys(text),
        .full_copies = mfs_admin_field(text, "sync_full"),
        .saved_keys = mfs_admin_field(text, "current_save_keys_processed"),
        .loaded = mfs_admin_field(text, "loading_loaded_bytes"),
    };

    r.offset = mfs_admin_field(text, r.replica ? "slave_repl_offset" : "master_repl_offset");
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
    if (text && mfs_admin_field(text, "master_repl_offset") + info_is(text, "role:"))
        *r = mfs_admin_replication_of(text);
    else
        rc =
            mfs_err_set(err, -EPROTO, "redis at %s: INFO says nothing of replication", admin->name);
out:
    mfs_cmds_fini(&cmd, 1);
    return rc;
}
