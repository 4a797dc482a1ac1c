#include "meta_fixture.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/phases.h"
#include "cluster/placement.h"
#include "store/args.h"
#include "store/keys.h"
#include "store/reply.h"

struct redis_fixture *meta_redis;

int meta_redis_start(void **state)
{
    (void)state;
    return redis_fixture_start(&meta_redis,
                               &(struct redis_fixture_opts){.nparts = META_REDIS_PARTS});
}

int meta_redis_stop(void **state)
{
    (void)state;
    redis_fixture_stop(meta_redis);
    return 0;
}

static int reap(void *arg, uint64_t ino, uint64_t data_end)
{
    struct meta_client *c = arg;

    (void)ino;
    (void)data_end;
    __atomic_add_fetch(&c->reaped, 1, __ATOMIC_RELAXED);
    return 0;
}

/* Full_wait 0: its table does not say that memory may come. */
static int start(struct meta_client *c, struct redis_fixture *f, int64_t full_wait,
                 struct mfs_meta_opts opts)
{
    struct mfs_store_opts store = {
        .node = REDIS_FIXTURE_NODE, .io_timeout = 10 * MFS_SEC, .full_wait = full_wait};
    struct mfs_table *table = redis_fixture_table(f);
    int rc;

    memset(c, 0, sizeof *c);
    opts.reap = reap;
    opts.arg = c;
    table->growing = full_wait > 0;
    rc = mfs_store_create(&c->store, table, &store);
    return rc ? rc : mfs_meta_create(&c->meta, c->store, &opts);
}

int meta_client_start(struct meta_client *c, struct redis_fixture *f, int64_t session_ttl)
{
    return start(c, f, 0, (struct mfs_meta_opts){.session_ttl = session_ttl});
}

static bool revoked(void *arg, uint64_t ino, bool name, bool own, void (*done)(void *),
                    void *done_arg)
{
    (void)arg, (void)ino, (void)name, (void)own, (void)done, (void)done_arg;
    return true;
}

int meta_client_start_leased(struct meta_client *c, struct redis_fixture *f, int64_t session_ttl)
{
    return start(c, f, 0, (struct mfs_meta_opts){.revoked = revoked, .session_ttl = session_ttl});
}

int meta_client_start_growing(struct meta_client *c, struct redis_fixture *f, int64_t full_wait)
{
    return start(c, f, full_wait, (struct mfs_meta_opts){.revoked = revoked});
}

int meta_pair_start(struct meta_client *a, struct meta_client *b, int64_t session_ttl)
{
    int rc = redis_fixture_reset(meta_redis);

    if (!rc)
        rc = meta_client_start_leased(a, meta_redis, session_ttl);
    return rc ? rc : meta_client_start_leased(b, meta_redis, session_ttl);
}

void meta_pair_stop(struct meta_client *a, struct meta_client *b)
{
    meta_client_stop(a);
    meta_client_stop(b);
}

uint64_t meta_client_round_trips(const struct meta_client *c)
{
    struct mfs_store_stats s;

    mfs_store_stats(c->store, &s);
    return s.round_trips;
}

uint32_t meta_own_round_trips(void)
{
    static _Thread_local struct mfs_phases own;

    mfs_phases_to(&own);
    return own.trips;
}

void meta_client_stop(struct meta_client *c)
{
    mfs_meta_destroy(c->meta);
    mfs_store_destroy(c->store);
    c->meta = NULL;
    c->store = NULL;
}

static int refuse(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    (void)arg;
    (void)part;
    (void)argv;
    (void)argc;
    return -ENOTCONN;
}

static int run(struct meta_client *c, struct mfs_args *args, uint32_t part, struct mfs_cmd *cmd)
{
    *cmd = mfs_args_cmd(args, part);
    return mfs_store_exec(c->store, cmd, 1);
}

void meta_client_alive(struct meta_client *c, bool alive)
{
    uint64_t sid = mfs_meta_session(c->meta);
    char key[MFS_KEY_INO_LEN];
    struct mfs_args args;
    struct mfs_cmd cmd;

    mfs_key_ino(key, 'Z', sid);
    mfs_args_init(&args, alive ? "SET" : "DEL");
    mfs_args_bin(&args, key, sizeof key);
    if (alive) {
        mfs_args_str(&args, "1");
        mfs_args_str(&args, "EX");
        mfs_args_str(&args, "20");
    }
    run(c, &args, (uint32_t)(sid % mfs_store_nparts(c->store)), &cmd);
    mfs_cmds_fini(&cmd, 1);
}

void meta_client_kill(struct meta_client *c)
{
    mfs_store_set_fault(c->store, NULL, NULL);
    meta_client_alive(c, false);
    mfs_store_set_fault(c->store, refuse, NULL);
    meta_client_stop(c);
}

static int make(struct meta_client *c, uint64_t dir, const char *name, uint32_t mode, uint64_t *ino)
{
    struct mfs_new new = {.mode = mode, .uid = 1, .gid = 2};
    struct mfs_attr attr;
    int rc = mfs_meta_mknod(c->meta, dir, name, &new, &attr);

    if (!rc && ino)
        *ino = attr.ino;
    return rc;
}

int meta_client_file(struct meta_client *c, uint64_t dir, const char *name, uint64_t *ino)
{
    return make(c, dir, name, S_IFREG | 0644, ino);
}

int meta_client_mkdir(struct meta_client *c, uint64_t dir, const char *name, uint64_t *ino)
{
    return make(c, dir, name, S_IFDIR | 0755, ino);
}

int meta_client_rename(struct meta_client *c, uint64_t dir, const char *name, uint64_t to_dir,
                       const char *to_name, unsigned flags)
{
    const struct mfs_new whiteout = {.mode = S_IFCHR, .uid = META_WHITEOUT_UID};

    if (flags & RENAME_WHITEOUT)
        return mfs_meta_rename_leaving(c->meta, dir, name, to_dir, to_name,
                                       flags & ~RENAME_WHITEOUT, &whiteout);
    return mfs_meta_rename(c->meta, dir, name, to_dir, to_name, flags);
}

int64_t meta_client_ino(struct meta_client *c, uint64_t dir, const char *name)
{
    struct mfs_attr attr;
    int rc = mfs_meta_lookup(c->meta, dir, name, &attr);

    return rc ? rc : (int64_t)attr.ino;
}

void meta_name_at(struct meta_client *c, uint64_t dir, uint32_t part, const char *prefix, char *out,
                  size_t n)
{
    uint32_t nparts = mfs_store_nparts(c->store);

    for (unsigned i = 0;; i++) {
        snprintf(out, n, "%s%u", prefix, i);
        if (mfs_placement_entry(dir, out, strlen(out), nparts) == part)
            return;
    }
}

int64_t meta_client_exists(struct meta_client *c, const char *key)
{
    int64_t n = 0;

    for (uint32_t p = 0; p < mfs_store_nparts(c->store); p++) {
        struct mfs_args args;
        struct mfs_cmd cmd;

        mfs_args_init(&args, "EXISTS");
        mfs_args_str(&args, key);
        run(c, &args, p, &cmd);
        n += mfs_reply_int(cmd.reply);
        mfs_cmds_fini(&cmd, 1);
    }
    return n;
}

/* SCAN is open to clients where KEYS is not. */
static int64_t count_at(struct meta_client *c, uint32_t part, const char *pattern)
{
    char cursor[24] = "0";
    int64_t n = 0;

    do {
        struct mfs_args args;
        struct mfs_cmd cmd;
        const char *next;

        mfs_args_init(&args, "SCAN");
        mfs_args_str(&args, cursor);
        mfs_args_str(&args, "MATCH");
        mfs_args_str(&args, pattern);
        mfs_args_str(&args, "COUNT");
        mfs_args_int(&args, 10000);
        if (run(c, &args, part, &cmd)) {
            mfs_cmds_fini(&cmd, 1);
            return -1;
        }
        n += (int64_t)mfs_reply_count(mfs_reply_at(cmd.reply, 1));
        next = mfs_reply_str(mfs_reply_at(cmd.reply, 0), NULL);
        snprintf(cursor, sizeof cursor, "%s", next ? next : "0");
        mfs_cmds_fini(&cmd, 1);
    } while (strcmp(cursor, "0"));
    return n;
}

int64_t meta_client_keys(struct meta_client *c, const char *pattern)
{
    int64_t total = 0;

    for (uint32_t p = 0; p < mfs_store_nparts(c->store); p++)
        total += count_at(c, p, pattern);
    return total;
}
