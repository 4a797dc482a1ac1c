/* New files with their content, each by one command at the name's partition (mfs_replace): what
 * follows a creation, and for what was replaced what follows an unlink. Commands of one call go out
 * together. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "meta/cache/cache.h"
#include "meta/cache/contents.h"
#include "meta/call.h"
#include "meta/coherence/leases.h"
#include "meta/coherence/notices.h"
#include "meta/coherence/revoke.h"
#include "meta/deferred/deferred.h"
#include "meta/deferred/unknown_outcomes.h"
#include "meta/ops/ops.h"
#include "meta/record.h"
#include "meta/session/session.h"
#include "meta/session/unregistered_opens.h"
#include "partition/protocol.h"

#define BLOCK 4096U

/* One of them under way. */
struct step {
    struct mfs_put *put;
    uint32_t part;
    enum mfs_keeper keeper;
    struct mfs_attr attr;
    struct mfs_args args;
    struct mfs_ino_arg dir, sid;
    char prefix[2], how[3], record[MFS_RECORD_FIXED];
};

struct batch {
    struct mfs_meta *meta;
    struct timespec now;
    struct mfs_time_arg time;
    int64_t asked, not_after;
    bool many; /* which are not leased, and so not remembered (decisions/0048) */
    size_t n;
    struct step *of;
    struct mfs_cmd *cmds;
};

/* --- before ----------------------------------------------------------------------------------- */

/* The content is stripe 0. */
static int check(const struct mfs_meta *meta, const struct mfs_put *p)
{
    if (strlen(p->name) > MFS_NAME_LEN_MAX)
        return -ENAMETOOLONG;
    if (p->len > MFS_META_CONTENT)
        return -EMSGSIZE;
    if (p->len > meta->stripe_size)
        return -EAGAIN;
    return p->new->nxattrs > MFS_NEW_XATTRS ? -E2BIG : 0;
}

static void make_record(const struct batch *b, struct step *s)
{
    const struct mfs_new *new = s->put->new;

    s->attr = (struct mfs_attr){
        .flags = mfs_new_flags(new),
        .mode = new->mode,
        .uid = new->uid,
        .gid = new->gid,
        .hints = new->hints,
        .nlink = 1,
        .size = s->put->len,
        .data_end = s->put->len,
        .alloc = (int64_t)((s->put->len + BLOCK - 1) / BLOCK * BLOCK),
        .version = 1,
        .atime = s->put->times ? s->put->times[0] : b->now,
        .mtime = s->put->times ? s->put->times[1] : b->now,
        .ctime = b->now,
    };
    mfs_meta_record_encode(&s->attr, s->record);
}

/* What an earlier rename of this client has left under the name. */
static void settle(struct mfs_meta *meta, const struct mfs_put *p)
{
    struct mfs_settle *left = mfs_settles_take(meta, p->parent, p->name);
    struct mfs_ino_arg dir = mfs_ino_arg(p->parent);
    struct mfs_calls calls;

    if (!left)
        return;
    calls.n = 0;
    mfs_settles_call(&calls, left, &dir);
    mfs_calls_run(meta, &calls);
    mfs_settles_called(meta, left, &calls.call[0]);
    mfs_calls_fini(&calls);
}

static void add_args(const struct batch *b, struct step *s)
{
    const struct mfs_put *p = s->put;
    size_t how = b->meta->opts.revoked == NULL ? 1 : b->many ? 3 : 2;

    s->dir = mfs_ino_arg(p->parent);
    s->sid = mfs_ino_arg(b->meta->sid);
    s->how[0] = p->exclusive ? 'x' : 'o';
    s->how[1] = "nkp"[mfs_shards_adding(b->meta->shards, p->parent, s->part, p->name)];
    s->how[2] = 'b';
    mfs_part_arg(s->part, s->prefix);
    mfs_args_init(&s->args, "mfs_replace");
    mfs_args_bin(&s->args, s->dir.b, sizeof s->dir.b);
    mfs_args_str(&s->args, p->name);
    mfs_args_bin(&s->args, s->prefix, sizeof s->prefix);
    mfs_args_bin(&s->args, s->how, how);
    mfs_args_bin(&s->args, s->sid.b, sizeof s->sid.b);
    mfs_args_bin(&s->args, b->time.b, sizeof b->time.b);
    mfs_args_int(&s->args, b->meta->stripe_size);
    mfs_args_bin(&s->args, s->record, sizeof s->record);
    mfs_args_bin(&s->args, p->buf, p->len);
    for (size_t i = 0; i < p->new->nxattrs; i++) {
        mfs_args_str(&s->args, p->new->xattrs[i].name);
        mfs_args_bin(&s->args, p->new->xattrs[i].value, p->new->xattrs[i].len);
    }
}

/* From now on mfs_shards_added has to follow. */
static void add(struct batch *b, struct mfs_put *p)
{
    struct mfs_meta *meta = b->meta;
    struct step *s = &b->of[b->n];

    p->rc = check(meta, p);
    if (p->rc)
        return;
    s->put = p;
    s->part = mfs_placement_entry(p->parent, p->name, strlen(p->name), meta->nparts);
    s->keeper = MFS_KEEPER_NOT;
    p->rc = mfs_meta_spread(meta, p->parent, s->part);
    if (!p->rc)
        p->rc = mfs_unregistered_register(meta->unregistered, s->part);
    if (p->rc)
        return;
    settle(meta, p);
    make_record(b, s);
    add_args(b, s);
    b->cmds[b->n] = mfs_args_cmd(&s->args, s->part);
    b->cmds[b->n].full_at_once = true;
    b->cmds[b->n].not_after = b->not_after;
    b->n++;
}

/* --- after ------------------------------------------------------------------------------------ */

/* Whether the lease is had, the inode, and what mfs_lease_keeper says. */
static int take_made(struct batch *b, struct step *s, struct mfs_bytes made)
{
    struct mfs_meta *meta = b->meta;
    const struct mfs_put *p = s->put;

    if (made.n < 10)
        return -EIO;
    s->attr.ino = mfs_get_be64(made.p + 1);
    s->keeper = (enum mfs_keeper)made.p[9];
    mfs_leases_name_added(meta, p->parent, s->part, (struct mfs_bytes){made.p + 10, made.n - 10});
    if (!b->many)
        mfs_contents_put(meta->contents, s->attr.ino, s->attr.version, p->buf, p->len);
    if (made.p[0] == 1)
        mfs_filecache_put(meta->files, p->parent, p->name, &s->attr, b->asked);
    return 0;
}

static void take_replaced(struct batch *b, struct mfs_bytes gone)
{
    struct mfs_bytes holders, status;

    if (gone.n < 9)
        return;
    status = mfs_meta_unref_answer((struct mfs_bytes){gone.p + 8, gone.n - 8}, &holders);
    mfs_meta_unrefed(b->meta, mfs_get_be64(gone.p), b->asked, status, &holders, 1);
}

static int take_answer(struct batch *b, struct step *s, const struct mfs_cmd *cmd)
{
    const struct mfs_put *p = s->put;
    int status = (int)mfs_reply_int(mfs_reply_at(cmd->reply, 0));

    if (cmd->rc == -ENOSPC || cmd->rc == -ECANCELED)
        return -EAGAIN;
    if (cmd->rc)
        return cmd->rc;
    if (mfs_reply_count(cmd->reply) < 2)
        return -EIO;
    if (status != MFS_ANSWER_DONE)
        return -EAGAIN;
    mfs_filecache_drop_name(b->meta->files, p->parent, p->name);
    take_replaced(b, mfs_reply_bytes(mfs_reply_at(cmd->reply, 2)));
    /* Again: an answer from before the file had changed could have brought the name back. */
    mfs_filecache_drop_name(b->meta->files, p->parent, p->name);
    return take_made(b, s, mfs_reply_bytes(mfs_reply_at(cmd->reply, 1)));
}

static void finish(struct batch *b, struct step *s, const struct mfs_cmd *cmd)
{
    struct mfs_put *p = s->put;
    struct mfs_meta *meta = b->meta;

    p->rc = take_answer(b, s, cmd);
    mfs_shards_added(meta->shards, p->parent, s->part, p->name, s->keeper, b->asked);
    mfs_outcomes_added(meta, p->parent, s->part, p->rc);
    mfs_outcomes_removed(meta, p->parent, p->name, p->rc);
    if (!p->rc)
        mfs_parents_touch(meta, p->parent, b->now);
}

/* --- together --------------------------------------------------------------------------------- */

/* A directory that may not have names in the partition yet, as far as is known. */
struct spread {
    uint64_t dir;
    uint32_t part;
    struct mfs_ino_arg key;
    struct mfs_args args;
};

static bool is_among(const struct spread *all, size_t n, uint64_t dir, uint32_t part)
{
    for (size_t i = 0; i < n; i++)
        if (all[i].dir == dir && all[i].part == part)
            return true;
    return false;
}

static size_t find_spreads(struct mfs_meta *meta, const struct mfs_put *puts, size_t n,
                           struct spread *all)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++) {
        const struct mfs_put *p = &puts[i];
        uint32_t part = mfs_placement_entry(p->parent, p->name, strlen(p->name), meta->nparts);

        if (!check(meta, p) && mfs_placement_home(p->parent) < meta->nparts &&
            !mfs_dircache_bit(meta->dirs, p->parent, part, MFS_DIR_AGE) &&
            !is_among(all, count, p->parent, part))
            all[count++] = (struct spread){.dir = p->parent, .part = part};
    }
    return count;
}

static void add_spread(struct spread *s, struct mfs_cmd *cmd)
{
    s->key = mfs_ino_arg(s->dir);
    mfs_args_init(&s->args, "mfs_dirbit");
    mfs_args_bin(&s->args, s->key.b, sizeof s->key.b);
    mfs_args_int(&s->args, s->part);
    *cmd = mfs_args_cmd(&s->args, mfs_placement_home(s->dir));
    cmd->idempotent = true;
}

/* What each file would ask for by itself (mfs_meta_spread) is asked for at once. A directory whose
 * answer is another one is left to that. */
static void spread_all(struct batch *b, const struct mfs_put *puts, size_t n)
{
    struct spread *all = malloc(n * sizeof *all);
    size_t count = all ? find_spreads(b->meta, puts, n, all) : 0;
    int64_t asked = mfs_clock_mono();

    for (size_t i = 0; i < count; i++)
        add_spread(&all[i], &b->cmds[i]);
    if (count)
        mfs_session_note_outcome(b->meta, mfs_store_exec(b->meta->store, b->cmds, count));
    for (size_t i = 0; i < count; i++) {
        struct mfs_bytes text = mfs_reply_bytes(b->cmds[i].reply);
        struct mfs_attr attr;

        if (!b->cmds[i].rc && text.n > 1 && text.p[0] == MFS_ANSWER_DONE)
            mfs_meta_take(b->meta, all[i].dir, (struct mfs_bytes){text.p + 1, text.n - 1}, asked,
                          &attr);
    }
    mfs_cmds_fini(b->cmds, count);
    free(all);
}

static void run(struct batch *b, struct mfs_put *puts, size_t n)
{
    struct mfs_meta *meta = b->meta;

    b->now = mfs_clock_real();
    b->time = mfs_time_arg(b->now);
    if (n > 1)
        spread_all(b, puts, n);
    b->not_after = mfs_not_after(meta);
    mfs_unregistered_removing(meta->unregistered);
    for (size_t i = 0; i < n; i++)
        add(b, &puts[i]);
    b->asked = mfs_clock_mono();
    if (b->n)
        mfs_store_exec(meta->store, b->cmds, b->n);
    for (size_t i = 0; i < b->n; i++)
        finish(b, &b->of[i], &b->cmds[i]);
    mfs_unregistered_removed(meta->unregistered);
    mfs_cmds_fini(b->cmds, b->n);
}

void mfs_meta_put(struct mfs_meta *meta, struct mfs_put *puts, size_t n)
{
    struct batch b = {.meta = meta, .many = n > 1};

    b.of = malloc(n * sizeof *b.of + 1);
    b.cmds = calloc(n + 1, sizeof *b.cmds);
    if (b.of && b.cmds)
        run(&b, puts, n);
    for (size_t i = 0; (!b.of || !b.cmds) && i < n; i++)
        puts[i].rc = -ENOMEM;
    free(b.of);
    free(b.cmds);
}
