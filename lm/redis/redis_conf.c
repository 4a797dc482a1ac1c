/* Writes redis.conf for redis 7.0. Paths are quoted as redis' own parser wants it; everything else
 * is numbers, addresses and hexadecimal. */
#include "lm/redis/redis_conf.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <openssl/sha.h>
#include <stdbool.h>
#include <string.h>

#include "base/text.h"
#include "cluster/table.h"
#include "store/rights.h"
#include "net/proof.h"

/* Nothing but what this line of business needs: memory only, one database, no scripts from
 * outside, no modules but our own, no dangerous knobs at run time. */
static const char fixed_settings[] =
    "daemonize no\n"
    "supervised no\n"
    "databases 1\n"
    "always-show-logo no\n"
    "proc-title-template \"{title} {unixsocket}\"\n"
    /* The default user is off and has no password, so protected mode has nothing to protect; left
     * on it could refuse the node's own address. */
    "protected-mode no\n"
    "enable-debug-command no\n"
    "enable-module-command no\n"
    "enable-protected-configs no\n"
    "\n"
    /* Nothing is ever written to disk unless a dump is asked for. */
    "save \"\"\n"
    "appendonly no\n"
    "shutdown-on-sigterm nosave now force\n"
    "shutdown-on-sigint nosave now force\n"
    "stop-writes-on-bgsave-error no\n"
    "rdbcompression no\n"
    "rdbchecksum no\n"
    "\n"
    /* A copy of a partition goes from memory to memory and starts at once. */
    "repl-diskless-sync yes\n"
    "repl-diskless-sync-delay 0\n"
    "repl-diskless-load on-empty-db\n"
    "rdb-del-sync-files yes\n"
    /* A target answers its Local Manager while it loads, however slowly the data come. */
    "loading-process-events-interval-bytes 16384\n"
    /* A link that breaks in the last moments goes on where it was; a process without replicas needs
     * no memory for that. Where all have replicas, both ends keep it for ever: so no more than what
     * a copy may be behind when it counts as in step (LAG_SMALL of lm/copy/mover.c). */
    "repl-backlog-size 1mb\n"
    "repl-backlog-ttl 5\n"
    "repl-timeout 20\n"
    "repl-ping-replica-period 5\n"
    "repl-disable-tcp-nodelay no\n"
    "\n"
    "maxmemory-policy noeviction\n"
    /* What is deleted is free when the deletion is answered, so that the next write may use it. */
    "lazyfree-lazy-eviction no\n"
    "lazyfree-lazy-expire no\n"
    "lazyfree-lazy-server-del no\n"
    "lazyfree-lazy-user-del no\n"
    "lazyfree-lazy-user-flush no\n"
    /* Lets a table that shrank finish shrinking when no commands come any more. */
    "activerehashing yes\n"
    "jemalloc-bg-thread yes\n"
    /* Directory shards are hashes, with names as fields. Up to these bounds they are kept packed,
     * in a third of the memory; beyond, the search in the packed form would be felt. */
    "hash-max-listpack-entries 128\n"
    "hash-max-listpack-value 256\n"
    "\n"
    "timeout 0\n"
    "tcp-keepalive 60\n"
    "tcp-backlog 1024\n"
    "maxclients 4096\n"
    /* The largest value is a stripe; replies queue only as far as a client's window goes. Past
     * these bounds a peer is broken, and its buffers would eat the memory of the data. */
    "proto-max-bulk-len 64mb\n"
    "client-query-buffer-limit 128mb\n"
    "client-output-buffer-limit normal 512mb 256mb 60\n"
    /* What is written while a partition is copied waits here, outside maxmemory. */
    "client-output-buffer-limit replica 512mb 0 0\n"
    "client-output-buffer-limit pubsub 32mb 8mb 60\n"
    "\n"
    /* Idle processes should cost nothing, busy ones not measure themselves. */
    "hz 2\n"
    "dynamic-hz yes\n"
    "latency-tracking no\n"
    "slowlog-log-slower-than 50000\n"
    "crash-memcheck-enabled no\n"
    "loglevel notice\n";

/* The data have no other copy, the application can be started again: when the machine runs out of
 * memory, another process should be chosen. */
static const char protection[] = "oom-score-adj relative\noom-score-adj-values -500 -500 800\n";

const char *mfs_redis_user_rules(bool fenced)
{
    return fenced ? MFS_CLIENT_RIGHTS_FENCED : MFS_CLIENT_RIGHTS;
}

static bool is_plain(const char *text)
{
    if (!text || !*text)
        return false;
    for (; *text; text++) {
        if (!isgraph((unsigned char)*text) || strchr("\"'\\#", *text))
            return false;
    }
    return true;
}

static bool is_path(const char *text)
{
    if (!text || *text != '/')
        return false;
    for (; *text; text++) {
        if (iscntrl((unsigned char)*text))
            return false;
    }
    return true;
}

/* Appends "key "path", but for the closing quote. */
static int append_quoted(struct mfs_buf *out, const char *key, const char *path)
{
    int rc = mfs_buf_printf(out, "%s \"", key);

    for (; *path && rc >= 0; path++)
        rc = mfs_buf_printf(out, *path == '"' || *path == '\\' ? "\\%c" : "%c", *path);
    return rc;
}

/* A path of the partition's in dir. */
static int append_path(struct mfs_buf *out, const char *key, const char *dir, uint32_t part,
                       const char *suffix)
{
    int rc = append_quoted(out, key, dir);

    if (rc >= 0 && suffix)
        rc = mfs_buf_printf(out, "/redis-%u.%s", part, suffix);
    return rc < 0 ? rc : mfs_buf_printf(out, "\"\n");
}

static int append_user(struct mfs_buf *out, const char *name, const char *password,
                       const char *rules)
{
    unsigned char sum[SHA256_DIGEST_LENGTH];
    char hex[2 * sizeof sum + 1];

    SHA256((const unsigned char *)password, strlen(password), sum);
    mfs_text_hex(sum, sizeof sum, hex);
    return mfs_buf_printf(out, "user %s reset on #%s ~* %s\n", name, hex, rules);
}

/* What its process proves to clients that connect (partition/prove.h). */
static int append_key(struct mfs_buf *out, const char *user, const char *password)
{
    char key[MFS_MAC_TEXT];
    int rc = mfs_proof_key(password, key);

    return rc ? rc : mfs_buf_printf(out, " key %s %s", user, key);
}

static int append_module(const struct mfs_redis_conf *c, struct mfs_buf *out)
{
    int rc = append_quoted(out, "loadmodule", c->module);

    if (rc >= 0 && c->journal)
        rc = append_quoted(out, "\" journal", c->journal);
    if (rc >= 0)
        rc = mfs_buf_printf(out, "\"%s at %s %u", c->replay ? " replay" : "", c->address, c->port);
    if (rc >= 0)
        rc = append_key(out, MFS_REDIS_USER, c->user_password);
    if (rc >= 0)
        rc = append_key(out, MFS_REDIS_ADMIN, c->admin_password);
    return rc < 0 ? rc : mfs_buf_printf(out, "\n");
}

static int append_place(const struct mfs_redis_conf *c, struct mfs_buf *out)
{
    int rc = append_path(out, "dir", c->dump_dir, c->part, NULL);

    if (rc >= 0)
        rc = append_path(out, "unixsocket", c->dir, c->part, "sock");
    if (rc >= 0)
        rc = append_path(out, "logfile", c->dir, c->part, "log");
    if (rc >= 0)
        rc = append_module(c, out);
    if (rc >= 0)
        rc = mfs_buf_printf(out, "unixsocketperm 600\ndbfilename redis-%u.rdb\n", c->part);
    return rc;
}

int mfs_redis_conf_render(const struct mfs_redis_conf *c, struct mfs_buf *out)
{
    int rc;

    if (!is_path(c->dir) || !is_path(c->dump_dir) || !is_path(c->module) || !is_plain(c->address) ||
        (c->journal && !is_path(c->journal)) || !c->port || !c->maxmemory ||
        !is_plain(c->user_password) || !is_plain(c->admin_password))
        return -EINVAL;
    rc = mfs_buf_printf(out, "# Partition %u. Written by lm; changes are lost.\n", c->part);
    if (rc >= 0)
        rc = mfs_buf_printf(out, "bind %s\nport %u\n", c->address, c->port);
    if (rc >= 0)
        rc = append_place(c, out);
    if (rc >= 0)
        rc = mfs_buf_printf(out, "maxmemory %" PRIu64 "\n%s", c->maxmemory, fixed_settings);
    if (rc >= 0 && c->protect)
        rc = mfs_buf_printf(out, "%s", protection);
    if (rc >= 0)
        rc = mfs_buf_printf(out, "user default reset off\n");
    if (rc >= 0)
        rc = append_user(out, MFS_REDIS_USER, c->user_password, mfs_redis_user_rules(c->fenced));
    if (rc >= 0)
        rc = append_user(out, MFS_REDIS_ADMIN, c->admin_password, "&* +@all");
    return rc < 0 ? rc : 0;
}
