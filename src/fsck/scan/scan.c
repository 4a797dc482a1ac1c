/* Reading all partitions at once, some keys of each at a time, so that none keeps its clients
 * waiting; and at the end what each knows of orphans, transactions and numbers given out. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"
#include "fsck/scan/scan.h"
#include "fsck/scan/take.h"
#include "store/args.h"
#include "store/keys.h"
#include "store/reply.h"

#define KEYS_AT_ONCE   "128" /* below a millisecond in the partition */
#define FIELDS_AT_ONCE 1024
#define CURSOR_MAX     24
#define RUN_LEN        8
#define ITEM_FIXED     22 /* bytes of an item behind the key */
#define SLOW           (2 * MFS_SEC)

struct cursor {
    char text[CURSOR_MAX], run[RUN_LEN];
    size_t run_len;
    bool done;
    struct mfs_arg argv[4];
};

struct scan {
    struct mfs_census *c;
    struct mfs_store *store;
    struct mfs_err *err;
    bool disturbed;
};

/* 0 where the census goes on without the partition. */
static int fail(struct scan *s, int rc, uint32_t part, const char *what)
{
    if (s->c->partial && rc != -ENOMEM && rc != -EAGAIN) {
        mfs_info("fsck", "partition %u: %s: %s", part, what, strerror(-rc));
        s->c->unread[part] = true;
        return 0;
    }
    return mfs_err_set(s->err, rc, "partition %u: %s: %s", part, what, strerror(-rc));
}

static int timed_exec(struct scan *s, struct mfs_cmd *cmds, size_t n)
{
    int64_t begun = mfs_clock_mono();
    int rc = mfs_store_exec(s->store, cmds, n);

    if (mfs_clock_mono() - begun > SLOW)
        s->disturbed = true;
    return rc;
}

static int ask(struct scan *s, const struct mfs_args *args, uint32_t part, struct mfs_cmd *cmd)
{
    *cmd = mfs_args_cmd(args, part);
    cmd->idempotent = true;
    return timed_exec(s, cmd, 1);
}

/* --- big hashes and sets ------------------------------------------------------------------------
 */

typedef int field_fn(struct scan *s, uint32_t part, const char *key, size_t key_len,
                     const struct mfs_reply *field, const struct mfs_reply *value);

static int take_step(struct scan *s, uint32_t part, const char *key, size_t key_len, size_t width,
                     field_fn *fn, const struct mfs_reply *list)
{
    int rc = 0;

    for (size_t i = 0; i + width <= mfs_reply_count(list) && !rc; i += width)
        rc = fn(s, part, key, key_len, mfs_reply_at(list, i),
                width > 1 ? mfs_reply_at(list, i + 1) : NULL);
    return rc;
}

/* Each field of a hash (HSCAN), each member of a set (SSCAN). */
static int walk(struct scan *s, uint32_t part, const char *command, const char *key, size_t key_len,
                field_fn *fn)
{
    char cursor[CURSOR_MAX] = "0";
    size_t width = command[0] == 'H' ? 2 : 1;
    int rc;

    do {
        const char *next;
        struct mfs_args args;
        struct mfs_cmd cmd;

        mfs_args_init(&args, command);
        mfs_args_bin(&args, key, key_len);
        mfs_args_str(&args, cursor);
        mfs_args_str(&args, "COUNT");
        mfs_args_int(&args, FIELDS_AT_ONCE);
        rc = ask(s, &args, part, &cmd);
        next = mfs_reply_str(mfs_reply_at(cmd.reply, 0), NULL);
        if (!rc)
            rc = take_step(s, part, key, key_len, width, fn, mfs_reply_at(cmd.reply, 1));
        snprintf(cursor, sizeof cursor, "%s", next ? next : "0");
        mfs_cmds_fini(&cmd, 1);
    } while (!rc && strcmp(cursor, "0") != 0);
    return rc;
}

static int take_field(struct scan *s, uint32_t part, const char *key, size_t key_len,
                      const struct mfs_reply *field, const struct mfs_reply *value)
{
    size_t n, m;
    const char *f = mfs_reply_str(field, &n), *v = mfs_reply_str(value, &m);

    return f && v ? mfs_take_field(s->c, part, key, key_len, f, n, v, m) : -EIO;
}

/* --- items --------------------------------------------------------------------------------------
 */

/* Reads one item at *p, which it moves on; -EIO: the bytes are none. */
static int read_item(const char **p, const char *end, struct mfs_item *item)
{
    const char *at = *p;

    if (end - at < 2)
        return -EIO;
    item->key_len = mfs_get_le16(at);
    at += 2;
    if ((size_t)(end - at) < item->key_len + ITEM_FIXED)
        return -EIO;
    item->key = at;
    at += item->key_len;
    item->type = (unsigned char)at[0];
    item->all = at[1] & 1;
    item->ttl = (int64_t)mfs_get_le64(at + 2);
    item->len = mfs_get_le64(at + 10);
    item->nparts = mfs_get_le32(at + 18);
    at += ITEM_FIXED;
    item->parts = at;
    for (uint32_t i = 0; i < item->nparts; i++) {
        if (end - at < 4 || (size_t)(end - at - 4) < mfs_get_le32(at))
            return -EIO;
        at += 4 + mfs_get_le32(at);
    }
    item->parts_len = (size_t)(at - item->parts);
    *p = at;
    return 0;
}

static int take_items(struct scan *s, uint32_t part, const char *p, size_t n)
{
    const char *end = p + n;
    int rc = 0;

    while (p < end && !rc) {
        struct mfs_item item;

        rc = read_item(&p, end, &item);
        if (!rc)
            rc = mfs_take_item(s->c, part, &item);
        if (rc == 1)
            rc = walk(s, part, "HSCAN", item.key, item.key_len, take_field);
    }
    return rc;
}

/* { run, cursor, items } of mfs_scan */
static int take_answer(struct scan *s, struct cursor *cur, uint32_t part, const struct mfs_reply *r)
{
    size_t run_len, next_len, n;
    const char *run = mfs_reply_str(mfs_reply_at(r, 0), &run_len);
    const char *next = mfs_reply_str(mfs_reply_at(r, 1), &next_len);
    const char *items = mfs_reply_str(mfs_reply_at(r, 2), &n);

    if (!run || run_len != RUN_LEN || !next || next_len >= CURSOR_MAX || !items)
        return -EIO;
    memcpy(cur->run, run, run_len);
    cur->run_len = run_len;
    memcpy(cur->text, next, next_len);
    cur->text[next_len] = 0;
    cur->done = strcmp(cur->text, "0") == 0;
    return take_items(s, part, items, n);
}

static struct mfs_cmd command_of(struct cursor *cur, uint32_t part)
{
    const struct mfs_arg argv[] = {{"mfs_scan", 8},
                                   {cur->run, cur->run_len},
                                   {cur->text, strlen(cur->text)},
                                   {KEYS_AT_ONCE, strlen(KEYS_AT_ONCE)}};

    memcpy(cur->argv, argv, sizeof argv);
    return (struct mfs_cmd){.part = part, .argv = cur->argv, .argc = 4, .idempotent = true};
}

/* Some keys of each partition that is not through yet; *left: how many those are. */
static int scan_round(struct scan *s, struct cursor *cursors, struct mfs_cmd *cmds, size_t *left)
{
    size_t n = 0;
    int rc;

    for (uint32_t part = 0; part < s->c->nparts; part++)
        if (!cursors[part].done && !s->c->unread[part])
            cmds[n++] = command_of(&cursors[part], part);
    *left = n;
    if (!n)
        return 0;
    timed_exec(s, cmds, n);
    rc = 0;
    for (size_t i = 0; i < n && !rc; i++) {
        rc = cmds[i].rc;
        if (rc == -ECANCELED) /* it has moved to another process */
            rc = mfs_err_set(s->err, -EAGAIN, "partition %u moved meanwhile", cmds[i].part);
        else if (!rc)
            rc = take_answer(s, &cursors[cmds[i].part], cmds[i].part, cmds[i].reply);
        if (rc && rc != -EAGAIN)
            rc = fail(s, rc, cmds[i].part, "can't be read");
    }
    mfs_cmds_fini(cmds, n);
    return rc;
}

static int scan_keys(struct scan *s, const struct mfs_fsck_opts *opts)
{
    uint32_t nparts = s->c->nparts;
    struct cursor *cursors = calloc(nparts, sizeof *cursors);
    struct mfs_cmd *cmds = calloc(nparts, sizeof *cmds);
    size_t left = nparts;
    int rc = -ENOMEM;

    if (!cursors || !cmds)
        goto out; /* which the caller tells */
    rc = 0;
    for (uint32_t part = 0; part < nparts; part++)
        strcpy(cursors[part].text, "0");
    while (left && !rc) {
        rc = scan_round(s, cursors, cmds, &left);
        if (!rc && opts->stop && *opts->stop)
            rc = mfs_err_set(s->err, -EINTR, "stopped");
        if (opts->progress)
            opts->progress(opts->arg, "keys read", s->c->keys, 0);
    }
out:
    free(cursors);
    free(cmds);
    return rc;
}

/* --- what a partition knows besides -------------------------------------------------------------
 */

static int take_listed(struct scan *s, uint32_t part, struct mfs_flat *list, const char *key,
                       const struct mfs_reply *field)
{
    struct mfs_seen_listed *seen;
    size_t n;
    const char *ino = mfs_reply_str(field, &n);

    if (!ino || n != 8)
        return mfs_findings_add(&s->c->found, MFS_FAULT_KEY, part, 0, 0, 0, key, strlen(key),
                                "key %s: holds what is no inode number", key)
                   ? 0
                   : -ENOMEM;
    seen = mfs_flat_add(list);
    if (!seen)
        return -ENOMEM;
    *seen = (struct mfs_seen_listed){mfs_get_be64(ino), part};
    return 0;
}

static int take_orphan(struct scan *s, uint32_t part, const char *key, size_t key_len,
                       const struct mfs_reply *field, const struct mfs_reply *value)
{
    (void)key_len;
    (void)value;
    return take_listed(s, part, &s->c->orphans, key, field);
}

static int take_reap(struct scan *s, uint32_t part, const char *key, size_t key_len,
                     const struct mfs_reply *field, const struct mfs_reply *value)
{
    (void)key_len;
    (void)value;
    return take_listed(s, part, &s->c->reaps, key, field);
}

static int add_note(struct scan *s, uint32_t part, const char *txn, int64_t since, bool lock)
{
    struct mfs_seen_note *seen = mfs_flat_add(&s->c->notes);

    if (!seen)
        return -ENOMEM;
    memcpy(seen->txn, txn, MFS_TXN_LEN);
    seen->part = part;
    seen->age = mfs_clock_real().tv_sec - since;
    seen->lock = lock;
    return 0;
}

static int take_note(struct scan *s, uint32_t part, const char *key, size_t key_len,
                     const struct mfs_reply *field, const struct mfs_reply *value)
{
    size_t n, m;
    const char *txn = mfs_reply_str(field, &n), *v = mfs_reply_str(value, &m);

    (void)key_len;
    if (!txn || n != MFS_TXN_LEN || !v || m < 8)
        return mfs_findings_add(&s->c->found, MFS_FAULT_KEY, part, 0, 0, 0, key, strlen(key),
                                "key %s: holds what is no transaction", key)
                   ? 0
                   : -ENOMEM;
    return add_note(s, part, txn, (int64_t)mfs_get_be64(v), false);
}

/* The partition is of this deployment, and has not begun anew, empty. */
static int check_super(struct scan *s, const struct mfs_cmd *cmd)
{
    size_t n = 0, m = 0;
    const char *have = mfs_reply_str(mfs_reply_at(cmd->reply, 0), &n);
    const char *at = mfs_reply_str(mfs_reply_at(cmd->reply, 1), &m);
    char want[24], index[24];

    snprintf(want, sizeof want, "%u", s->c->nparts);
    snprintf(index, sizeof index, "%u", cmd->part);
    if (cmd->rc)
        return fail(s, cmd->rc, cmd->part, "can't be read");
    if (have && at && n == strlen(want) && !memcmp(have, want, n) && m == strlen(index) &&
        !memcmp(at, index, m))
        return 0;
    return mfs_err_set(s->err, -EINVAL,
                       "partition %u: #super is missing or another partition's: its data are "
                       "lost, and nothing can be said of the rest",
                       cmd->part);
}

/* All at once: those that are out of reach are waited for together. */
static int check_supers(struct scan *s)
{
    uint32_t nparts = s->c->nparts;
    struct mfs_cmd *cmds = calloc(nparts, sizeof *cmds);
    struct mfs_args args;
    int rc = 0;

    if (!cmds)
        return -ENOMEM;
    mfs_args_init(&args, "HMGET");
    mfs_args_str(&args, "#super");
    mfs_args_str(&args, "nparts");
    mfs_args_str(&args, "index");
    for (uint32_t part = 0; part < nparts; part++) {
        cmds[part] = mfs_args_cmd(&args, part);
        cmds[part].idempotent = true;
    }
    timed_exec(s, cmds, nparts);
    for (uint32_t part = 0; part < nparts && !rc; part++)
        rc = check_super(s, &cmds[part]);
    mfs_cmds_fini(cmds, nparts);
    free(cmds);
    return rc;
}

/* A string's value into buf; its length, or a negative errno. 0: not there. */
static int get(struct scan *s, uint32_t part, const char *key, char *buf, size_t cap)
{
    struct mfs_args args;
    struct mfs_cmd cmd;
    const char *text;
    size_t n = 0;
    int rc;

    mfs_args_init(&args, "GET");
    mfs_args_str(&args, key);
    rc = ask(s, &args, part, &cmd);
    text = mfs_reply_str(cmd.reply, &n);
    if (!rc && text && n < cap) {
        memcpy(buf, text, n);
        buf[n] = 0;
        rc = (int)n;
    }
    mfs_cmds_fini(&cmd, 1);
    return rc;
}

static int read_numbers(struct scan *s, uint32_t part)
{
    char text[64];
    int n = get(s, part, "#seq", text, sizeof text);

    if (n < 0)
        return n;
    s->c->seq[part] = n ? strtoull(text, NULL, 10) : 0;
    if (part > 0)
        return 0;
    n = get(s, part, "#moving", text, sizeof text);
    if (n == MFS_TXN_LEN + 2 + 8)
        n = add_note(s, part, text, (int64_t)mfs_get_be64(text + MFS_TXN_LEN + 2), true);
    return n < 0 ? n : 0;
}

static int read_rest(struct scan *s, uint32_t part)
{
    int rc = walk(s, part, "SSCAN", "#orphans", 8, take_orphan);

    if (!rc)
        rc = walk(s, part, "HSCAN", "#reap", 5, take_reap);
    if (!rc)
        rc = walk(s, part, "HSCAN", "#intents", 8, take_note);
    if (!rc)
        rc = read_numbers(s, part);
    return rc ? fail(s, rc, part, "its lists can't be read") : 0;
}

int mfs_census_scan(struct mfs_census *c, struct mfs_store *store, const struct mfs_fsck_opts *opts,
                    bool *disturbed, struct mfs_err *err)
{
    struct scan s = {.c = c, .store = store, .err = err};
    uint64_t epoch = mfs_store_epoch(store);
    int rc = check_supers(&s);

    if (!rc)
        rc = scan_keys(&s, opts);
    for (uint32_t part = 0; part < c->nparts && !rc; part++)
        if (!c->unread[part])
            rc = read_rest(&s, part);
    *disturbed = s.disturbed || mfs_store_epoch(store) != epoch;
    if (!rc)
        mfs_census_sort(c);
    return rc;
}
