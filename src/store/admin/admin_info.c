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
out:
    mfs_cmds_fini(&cmd, 1);
    return rc;
}

static uint64_t number_at(const struct mfs_reply *list, size_t i)
{
    const char *text = mfs_reply_str(mfs_reply_at(list, i), NULL);

    return text ? strtoull(text, NULL, 10) : 0;
}

int mfs_admin_counts(struct mfs_admin *admin, struct mfs_admin_counts *counts, struct mfs_err *err)
{
    struct mfs_args args;
    struct mfs_cmd cmd;
    int rc;

    mfs_args_init(&args, "MGET");
    mfs_args_str(&args, "#seq");
    mfs_args_str(&args, "#freed");
    mfs_args_str(&args, MFS_LOSSES_KEY);
    cmd = mfs_args_cmd(&args, 0);
    rc = mfs_admin_call(admin, &cmd, err);
    if (!rc && mfs_reply_count(cmd.reply) != 3)
        rc = mfs_err_set(err, -EPROTO, "redis at %s: MGET gave no three", admin->name);
    if (!rc) {
        uint64_t made = number_at(cmd.reply, 0), freed = number_at(cmd.reply, 1);

        counts->inodes = made > freed ? made - freed : 0;
        counts->losses = number_at(cmd.reply, 2);
    }
    mfs_cmds_fini(&cmd, 1);
    return rc;
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
