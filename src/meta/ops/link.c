/* Hard links. The inode counts the new name before it exists, so that no name is ever uncounted. */
#include "meta/coherence/notices.h"
#include "meta/deferred/unknown_outcomes.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/file.h"
#include "meta/cache/cache.h"
#include "meta/call.h"
#include "meta/coherence/revoke.h"
#include "meta/deferred/deferred.h"
#include "meta/ops/ops.h"
#include "meta/session/session.h"
#include "meta/session/unregistered_opens.h"
#include "meta/txn/txn.h"
#include "partition/protocol.h"

struct link {
    struct mfs_meta *meta;
    uint64_t ino, parent;
    const char *name;
    uint32_t home, part;
    struct mfs_time_arg time;
    int64_t begun;         /* mono */
    char txn[MFS_TXN_LEN]; /* which `part` decides, when home is another one */
    struct mfs_attr *attr;
    struct mfs_backoff backoff, room;
    int64_t not_after;
};

/* A status that is not success: -EAGAIN after the cause is out of the way. */
static int refused(struct link *l, struct mfs_bytes text)
{
    struct mfs_entry e, intent;
    int rc = -EIO;

    if (!text.p || text.n < 2)
        return -EIO;
    if (text.p[0] == MFS_ANSWER_INTENT) {
        rc = mfs_entry_decode(text.p + 1, text.n - 1, &e);
        intent = e;
        if (!rc)
            rc = mfs_intent_read(l->meta, l->parent, l->name, &e);
        if (rc >= 0 && e.ino)
            rc = -EEXIST;
        else if (rc >= 0)
            rc = mfs_intent_clear(l->meta, l->parent, l->name, &intent, &l->backoff);
    } else if (text.p[0] == MFS_ANSWER_SEALED) {
        rc = mfs_seal_met(l->meta, l->parent, l->part, (struct mfs_bytes){text.p + 1, text.n - 1},
                          &l->backoff);
    }
    return rc ? rc : -EAGAIN;
}

/* The name is leased by what was asked for then; the file is known, or not. */
static void learn_name(struct link *l, int64_t asked)
{
    mfs_filecache_add_name(l->meta->files, l->parent, l->name, l->ino, asked);
}

/* Whether there is a lease, length of the shard's other keeper (1 byte each), that, record, other
 * holders of a lease of a file. */
static int take_counted(struct link *l, struct mfs_bytes answer, int64_t asked)
{
    size_t keeper = answer.n > 1 ? 2 + (unsigned char)answer.p[1] : 2;
    struct mfs_bytes record, holders;
    int rc;

    if (answer.n < keeper)
        return -EIO;
    record = (struct mfs_bytes){answer.p + keeper, answer.n - keeper};
    mfs_leases_name_added(l->meta, l->parent, l->part,
                          (struct mfs_bytes){answer.p + 2, keeper - 2});
    rc = mfs_meta_take(l->meta, l->ino, record, asked, l->attr);
    if (rc || !S_ISREG(l->attr->mode))
        return rc;
    holders = mfs_record_rest(&record);
    if (answer.p[0] && l->home == l->part)
        learn_name(l, asked);
    mfs_leases_file_set(l->meta, l->attr, asked, &holders, 1);
    return 0;
}

static void lease_arg(const struct link *l, struct mfs_call *c)
{
    if (l->meta->opts.revoked)
        mfs_args_str(&c->args, "1");
}

/* Counts the name, and adds it when its partition is the inode's home. */
static int count(struct link *l)
{
    struct mfs_ino_arg key = mfs_ino_arg(l->ino), dir = mfs_ino_arg(l->parent);
    struct mfs_ino_arg sid = mfs_ino_arg(l->meta->sid);
    int64_t asked = mfs_clock_mono();
    bool here = l->home == l->part;
    struct mfs_bytes text;
    struct mfs_call c;
    char decider[2];
    int rc;

    mfs_part_arg(l->part, decider);
    mfs_call_command(&c, here ? "mfs_link" : "mfs_link_begin");
    c.cmd.full_at_once = true;
    c.cmd.not_after = l->not_after;
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_bin(&c.args, l->time.b, sizeof l->time.b);
    mfs_args_bin(&c.args, sid.b, sizeof sid.b);
    if (here) {
        mfs_args_bin(&c.args, dir.b, sizeof dir.b);
        mfs_args_str(&c.args, l->name);
    } else {
        mfs_args_bin(&c.args, l->txn, sizeof l->txn);
        mfs_args_bin(&c.args, decider, sizeof decider);
    }
    lease_arg(l, &c);
    rc = mfs_call_run(l->meta, &c, l->home);
    text = mfs_call_text(&c);
    if (!rc && text.p && text.n > 1 && text.p[0] == MFS_ANSWER_DONE)
        rc = take_counted(l, (struct mfs_bytes){text.p + 1, text.n - 1}, asked);
    else if (!rc)
        rc = refused(l, text);
    mfs_call_fini(&c);
    return rc;
}

static int put(struct link *l)
{
    struct mfs_ino_arg dir = mfs_ino_arg(l->parent), sid = mfs_ino_arg(l->meta->sid);
    int64_t asked = mfs_clock_mono();
    char entry[MFS_ENTRY_LEN];
    struct mfs_bytes text;
    struct mfs_call c;
    int rc;

    mfs_entry_encode(l->ino, l->attr->mode, entry);
    mfs_call_command(&c, "mfs_put");
    c.cmd.full_at_once = true;
    c.cmd.not_after = l->not_after;
    mfs_args_bin(&c.args, dir.b, sizeof dir.b);
    mfs_args_str(&c.args, l->name);
    mfs_args_bin(&c.args, entry, sizeof entry);
    mfs_args_bin(&c.args, sid.b, sizeof sid.b);
    mfs_args_bin(&c.args, l->txn, sizeof l->txn);
    lease_arg(l, &c);
    rc = mfs_call_run(l->meta, &c, l->part);
    text = mfs_call_text(&c);
    if (!rc && (!text.p || text.n < 2 || text.p[0] != MFS_ANSWER_DONE))
        rc = refused(l, text);
    else if (!rc)
        mfs_link_counts_done(l->meta, l->txn, l->begun, l->home, l->part);
    if (!rc && text.p && text.p[1])
        learn_name(l, asked);
    if (!rc)
        mfs_leases_name_added(l->meta, l->parent, l->part,
                              (struct mfs_bytes){text.p + 2, text.n - 2});
    mfs_call_fini(&c);
    return rc;
}

static int attempt(struct link *l, bool *counted)
{
    int rc;

    l->not_after = mfs_not_after(l->meta);
    rc = mfs_meta_spread(l->meta, l->parent, l->part);
    if (rc)
        return rc;
    mfs_shards_adding(l->meta->shards, l->parent, l->part, l->name);
    if (!*counted)
        rc = count(l);
    *counted = *counted || (!rc && l->home != l->part);
    if (*counted)
        rc = put(l);
    if (rc == -ECANCELED) { /* others take it for left behind, and see to the count */
        *counted = false;
        rc = mfs_random(l->txn, sizeof l->txn);
        rc = rc ? rc : -EAGAIN;
    }
    mfs_shards_added(l->meta->shards, l->parent, l->part, l->name, MFS_KEEPER_NOT, 0);
    return rc;
}

/* The name was not added. Meanwhile others may have taken the one that the inode had. */
static void take_back(struct link *l)
{
    mfs_unregistered_removing(l->meta->unregistered);
    if (!mfs_meta_unref(l->meta, l->ino, &l->time, l->txn, (struct mfs_bytes){0}))
        mfs_link_counts_done(l->meta, l->txn, l->begun, l->home, l->home);
    mfs_unregistered_removed(l->meta->unregistered);
}

int mfs_meta_link(struct mfs_meta *meta, uint64_t ino, uint64_t parent, const char *name,
                  struct mfs_attr *attr)
{
    struct timespec now = mfs_clock_real();
    struct link l = {.meta = meta,
                     .ino = ino,
                     .parent = parent,
                     .name = name,
                     .home = mfs_placement_home(ino),
                     .time = mfs_time_arg(now),
                     .begun = mfs_clock_mono(),
                     .attr = attr};
    size_t len = strlen(name);
    bool counted = false;
    int rc;

    if (len > MFS_NAME_LEN_MAX)
        return -ENAMETOOLONG;
    if (!len || !strcmp(name, ".") || !strcmp(name, ".."))
        return -EEXIST;
    rc = mfs_random(l.txn, sizeof l.txn);
    if (rc)
        return rc;
    l.part = mfs_placement_entry(parent, name, len, meta->nparts);
    do {
        rc = attempt(&l, &counted);
    } while (rc == -EAGAIN || (rc == -ENOSPC && mfs_room_wait(meta, &l.room)));
    /* Whether the name was added is not known after a lost answer: housekeeping will learn it. */
    if (rc && counted && !mfs_outcome_is_unknown(rc))
        take_back(&l);
    mfs_outcomes_attributes(meta, ino, rc);
    mfs_outcomes_added(meta, parent, l.part, rc);
    if (!rc)
        mfs_parents_touch(meta, parent, now);
    return rc;
}
