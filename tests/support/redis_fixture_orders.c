/* What a fixture's processes are told as administrator: commands, fences, and to become copies of
 * others. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "redis_fixture_impl.h"
#include "store/admin/admin.h"
#include "store/args.h"
#include "store/reply.h"
#include "store/rights.h"

/* Runs a command, words separated by blanks; an integer `field` of its text reply goes to *value.
 */
static int order(struct mfs_admin *admin, const char *command, const char *field, int64_t *value)
{
    char words[256], *save = NULL, *word;
    struct mfs_args args;
    struct mfs_err err;
    struct mfs_cmd cmd;
    const char *at;
    int rc;

    snprintf(words, sizeof words, "%s", command);
    mfs_args_init(&args, strtok_r(words, " ", &save));
    while ((word = strtok_r(NULL, " ", &save)))
        mfs_args_str(&args, word);
    cmd = mfs_args_cmd(&args, 0);
    rc = mfs_admin_call(admin, &cmd, &err);
    if (rc)
        redis_fixture_complain(rc, err.msg);
    if (!rc && field) {
        at = strstr(mfs_reply_str(cmd.reply, NULL), field);
        *value = at ? strtoll(at + strlen(field), NULL, 10) : -1;
    }
    mfs_cmds_fini(&cmd, 1);
    return rc;
}

int redis_fixture_admin(struct redis_fixture *f, uint32_t part, const char *command)
{
    struct mfs_admin *admin;
    int rc = redis_fixture_open_admin(f, part, &admin);

    if (rc)
        return rc;
    rc = order(admin, command, NULL, NULL);
    mfs_admin_close(admin);
    return rc;
}

static int set_rights(struct mfs_admin *admin, bool fenced)
{
    const char *rights = fenced ? MFS_CLIENT_RIGHTS_FENCED : CLIENT_RIGHTS;
    struct mfs_err err;
    int rc = mfs_admin_set_user(admin, rights, &err);

    return rc ? redis_fixture_complain(rc, err.msg) : 0;
}

int redis_fixture_fence(struct redis_fixture *f, uint32_t part, bool on)
{
    struct mfs_admin *admin;
    int rc = redis_fixture_open_admin(f, part, &admin);

    if (!rc)
        rc = set_rights(admin, on);
    mfs_admin_close(admin);
    return rc;
}

/* Makes the process a copy of the one at `port` and waits until it has everything. */
static int replicate(struct mfs_admin *to, uint16_t port)
{
    int64_t until = mfs_clock_mono() + START_NS, down = 0;
    char follow[64];
    int rc = set_rights(to, true);

    snprintf(follow, sizeof follow, "REPLICAOF 127.0.0.1 %u", port);
    if (!rc)
        rc = order(to, "CONFIG SET masteruser " MFS_REDIS_ADMIN, NULL, NULL);
    if (!rc)
        rc = order(to, "CONFIG SET masterauth " REDIS_FIXTURE_ADMIN_PASSWORD, NULL, NULL);
    if (!rc)
        rc = order(to, follow, NULL, NULL);
    while (!rc && mfs_clock_mono() < until) {
        rc = order(to, "INFO replication", "master_link_status:up", &down);
        if (!rc && down != -1)
            return 0;
        mfs_clock_sleep(MFS_MSEC);
    }
    return rc ? rc : redis_fixture_complain(-ETIMEDOUT, "replication");
}

/* Waits until the copy has what has been executed at `from` by now. */
static int catch_up(struct mfs_admin *from, struct mfs_admin *to)
{
    int64_t until = mfs_clock_mono() + START_NS, offset = 0, has = -1;
    int rc = order(from, "INFO replication", "\nmaster_repl_offset:", &offset);

    while (!rc && has < offset && mfs_clock_mono() < until)
        rc = order(to, "INFO replication", "\nslave_repl_offset:", &has);
    if (!rc && has < offset)
        rc = redis_fixture_complain(-ETIMEDOUT, "replication offset");
    return rc;
}

/* Of all keys and values, whatever their order. */
static const char digest_script[] =
    "local all = {}\n"
    "for _, key in ipairs(redis.call('KEYS', '*')) do\n"
    "  local kind, value = redis.call('TYPE', key).ok\n"
    "  if key == '#moving' then value = { redis.call('GETRANGE', key, 0, 17) }\n"
    "  elseif kind == 'string' then value = { redis.call('GET', key) }\n"
    "  elseif kind == 'hash' then\n"
    "    value = {}\n"
    "    local pairs = redis.call('HGETALL', key)\n"
    "    for i = 1, #pairs, 2 do\n"
    "      if key == '#intents' then pairs[i + 1] = string.sub(pairs[i + 1], 9) end\n"
    "      value[#value + 1] = redis.sha1hex(pairs[i]) .. redis.sha1hex(pairs[i + 1])\n"
    "    end\n"
    "    table.sort(value)\n"
    "  elseif kind == 'set' then\n"
    "    value = redis.call('SMEMBERS', key)\n"
    "    table.sort(value)\n"
    "  else value = { kind, redis.call('DUMP', key) } end\n"
    "  value[#value + 1] = redis.call('PTTL', key) >= 0 and 'expires' or 'stays'\n"
    "  all[#all + 1] = redis.sha1hex(key) .. redis.sha1hex(table.concat(value, ','))\n"
    "end\n"
    "table.sort(all)\n"
    "return redis.sha1hex(table.concat(all)) .. ' of ' .. #all";

#define DIGEST_MAX 64

static int digest(struct mfs_admin *admin, char out[DIGEST_MAX])
{
    struct mfs_args args;
    struct mfs_err err;
    struct mfs_cmd cmd;
    int rc;

    mfs_args_init(&args, "EVAL_RO");
    mfs_args_str(&args, digest_script);
    mfs_args_int(&args, 0);
    cmd = mfs_args_cmd(&args, 0);
    rc = mfs_admin_call(admin, &cmd, &err);
    if (rc)
        redis_fixture_complain(rc, err.msg);
    else
        snprintf(out, DIGEST_MAX, "%s", mfs_reply_str(cmd.reply, NULL));
    mfs_cmds_fini(&cmd, 1);
    return rc;
}

/* What the partition's commands do depends on nothing but their arguments and its keys, but for
 * since when a transaction is noted, in #intents, or held, in #moving: that is by the process' own
 * clock.
 */
static int compare(struct mfs_admin *from, struct mfs_admin *to)
{
    char one[DIGEST_MAX], other[DIGEST_MAX];
    int rc = digest(from, one);

    if (!rc)
        rc = digest(to, other);
    return !rc && strcmp(one, other) ? redis_fixture_complain(-EIO, "the replica differs") : rc;
}

/* Nothing more is executed at `from`, and `to`, which has all that was, serves. */
static int cut_over(struct mfs_admin *from, struct mfs_admin *to)
{
    int rc = catch_up(from, to);

    if (!rc)
        rc = set_rights(from, true);
    if (!rc)
        rc = catch_up(from, to);
    if (!rc)
        rc = compare(from, to);
    if (!rc)
        rc = order(to, "REPLICAOF NO ONE", NULL, NULL);
    return rc ? rc : set_rights(to, false);
}

int redis_fixture_migrate(struct redis_fixture *f, uint32_t part)
{
    struct mfs_admin *from = NULL, *to = NULL;
    uint16_t port = f->table->part[part].port;
    int rc = redis_fixture_open_admin(f, part, &from);

    if (!rc)
        rc = redis_fixture_leave_behind(f, part);
    if (!rc)
        rc = redis_fixture_launch(f, part);
    if (!rc)
        rc = redis_fixture_open_admin(f, part, &to);
    if (!rc)
        rc = replicate(to, port);
    if (!rc)
        rc = cut_over(from, to);
    mfs_admin_close(to);
    mfs_admin_close(from);
    return rc;
}

int redis_fixture_reset(struct redis_fixture *f)
{
    int rc = 0;

    for (uint32_t i = 0; i < f->opts.nparts && !rc; i++) {
        rc = redis_fixture_admin(f, i, "FLUSHALL");
        if (!rc)
            rc = redis_fixture_format(f, i);
    }
    return rc;
}
