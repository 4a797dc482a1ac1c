/* New names for new inodes. */
#include "meta/deferred/unknown_outcomes.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/file.h"
#include "meta/cache/cache.h"
#include "meta/call.h"
#include "meta/coherence/leases.h"
#include "meta/coherence/revoke.h"
#include "meta/deferred/deferred.h"
#include "meta/ops/ops.h"
#include "meta/session/session.h"
#include "meta/session/unregistered_opens.h"
#include "meta/txn/txn.h"
#include "partition/protocol.h"

static_assert(MFS_DIR_AGE + MFS_STEP_MAX_AGE < MFS_TOMBSTONE_MS * MFS_MSEC / 3 * 2,
              "tombstones outlive what clients believe of a removed directory, and commands");

int mfs_meta_spread(struct mfs_meta *meta, uint64_t dir, uint32_t part)
{
    struct mfs_backoff backoff = {0};
    struct mfs_ino_arg key = mfs_ino_arg(dir);
    int rc;

    if (mfs_dircache_bit(meta->dirs, dir, part, MFS_DIR_AGE))
        return 0;
    do {
        int64_t asked = mfs_clock_mono();
        struct mfs_bytes text;
        struct mfs_attr attr;
        struct mfs_call c;

        mfs_call_command(&c, "mfs_dirbit");
        mfs_args_bin(&c.args, key.b, sizeof key.b);
        mfs_args_int(&c.args, part);
        c.cmd.idempotent = true;
        rc = mfs_call_run(meta, &c, mfs_placement_home(dir));
        text = mfs_call_text(&c);
        if (!rc && (!text.p || !text.n)) {
            rc = -EIO;
        } else if (!rc && text.p[0] == MFS_ANSWER_SEALED) {
            rc = mfs_seal_met(meta, dir, mfs_placement_home(dir),
                              (struct mfs_bytes){text.p + 1, text.n - 1}, &backoff);
            if (!rc)
                rc = -EAGAIN;
        } else if (!rc) {
            rc = mfs_meta_take(meta, dir, (struct mfs_bytes){text.p + 1, text.n - 1}, asked, &attr);
        }
        mfs_call_fini(&c);
    } while (rc == -EAGAIN);
    return rc == -ESTALE ? -ENOENT : rc;
}

/* A create under way. */
struct creation {
    struct mfs_meta *meta;
    uint64_t parent, sid;
    const char *name; /* NULL: of none */
    const struct mfs_new *new;
    char how; /* 'x' or 'o', see mfs_create in partition/names/names.c */
    enum mfs_shard_state shard;
    enum mfs_keeper keeper;
    bool open, unregistered;
    uint32_t part;
    struct mfs_attr fresh; /* what it will be */
    struct mfs_attr *attr;
    struct timespec now;
    char *record; /* heap */
    size_t record_len;
    struct mfs_backoff backoff, room;
    int64_t not_after;
    size_t at; /* of its call, among those that go together */
};

uint32_t mfs_new_flags(const struct mfs_new *new)
{
    uint32_t flags = new->nxattrs ? MFS_ATTR_XATTR : 0;

    for (size_t i = 0; i < new->nxattrs; i++) {
        if (!strcmp(new->xattrs[i].name, "system.posix_acl_access"))
            flags |= MFS_ATTR_ACL;
        if (!strcmp(new->xattrs[i].name, "system.posix_acl_default"))
            flags |= MFS_ATTR_DEFACL;
    }
    return flags;
}

static int creation_record(struct creation *b, uint32_t flags)
{
    const struct mfs_new *new = b->new;
    size_t target = new->target ? strlen(new->target) : 0;
    struct mfs_attr attr = {
        .flags = flags | mfs_new_flags(new),
        .mode = new->mode,
        .uid = new->uid,
        .gid = new->gid,
        .rdev = new->rdev,
        .nlink = b->name == NULL      ? 0
                 : S_ISDIR(new->mode) ? 2
                                      : 1,
        .size = target,
        .version = 1,
        .atime = b->now,
        .mtime = b->now,
        .ctime = b->now,
        .parent = S_ISDIR(new->mode) ? b->parent : 0,
    };

    if (mfs_mode_has_hints(new->mode))
        attr.hints = new->hints;
    if (S_ISDIR(new->mode))
        attr.ttl = new->ttl;
    b->record_len = S_ISDIR(new->mode) ? MFS_RECORD_DIR : MFS_RECORD_FIXED + target;
    b->record = calloc(1, b->record_len);
    if (!b->record)
        return -ENOMEM;
    mfs_meta_record_encode(&attr, b->record);
    if (S_ISDIR(new->mode))
        mfs_put_be64(b->record + MFS_RECORD_FIXED, b->parent);
    else if (target)
        memcpy(b->record + MFS_RECORD_FIXED, new->target, target);
    b->fresh = attr;
    return 0;
}

static void creation_xattrs(const struct creation *b, struct mfs_call *c)
{
    for (size_t i = 0; i < b->new->nxattrs; i++) {
        mfs_args_str(&c->args, b->new->xattrs[i].name);
        mfs_args_bin(&c->args, b->new->xattrs[i].value, b->new->xattrs[i].len);
    }
}

/* The call's arguments; `dir` and `sid` must stay. */
static void creation_args(struct creation *b, struct mfs_call *c, const struct mfs_ino_arg *dir,
                          struct mfs_ino_arg *sid, const char prefix[2], const char type[1],
                          const char how[3])
{
    size_t how_len = b->meta->opts.revoked ? 2 : 1;

    c->cmd.full_at_once = true;
    c->cmd.not_after = b->not_after;
    mfs_args_bin(&c->args, dir->b, sizeof dir->b);
    mfs_args_str(&c->args, b->name);
    mfs_args_bin(&c->args, prefix, 2);
    mfs_args_bin(&c->args, type, 1);
    mfs_args_bin(&c->args, how, b->unregistered ? 3 : how_len);
    if (S_ISDIR(b->new->mode))
        mfs_lease_arg(b->meta, c, sid);
    else
        mfs_args_bin(&c->args, sid->b, b->open ? sizeof sid->b : 0);
    mfs_args_bin(&c->args, b->record, b->record_len);
    creation_xattrs(b, c);
}

/* The parent counts a new directory, in the same round trip as its creation (and as if it had not
 * been when that failed). */
static void add_nlink(struct mfs_call *c, const struct mfs_ino_arg *dir, int delta,
                      const struct mfs_time_arg *time, int32_t seen)
{
    mfs_args_bin(&c->args, dir->b, sizeof dir->b);
    mfs_args_int(&c->args, delta);
    mfs_args_bin(&c->args, time->b, sizeof time->b);
    mfs_args_int(&c->args, seen);
}

/* The parent was told along with the creation, at `asked`. */
static void creation_counted(struct creation *b, const struct mfs_calls *calls, int64_t asked,
                             const struct mfs_ino_arg *dir, const struct mfs_time_arg *time)
{
    struct mfs_bytes answer = mfs_call_text(&calls->call[b->at]);
    const struct mfs_call *nlink = &calls->call[b->at + 1];
    struct mfs_bytes counted = mfs_call_text(nlink);
    struct mfs_call undo;

    if (nlink->cmd.rc || !counted.p)
        return;
    if (!calls->call[b->at].cmd.rc && answer.p && answer.p[0] == MFS_ANSWER_DONE) {
        mfs_meta_counted(b->meta, b->parent, counted, asked);
        return;
    }
    mfs_call_command(&undo, "mfs_nlink");
    add_nlink(&undo, dir, -1, time, -1);
    mfs_call_post(b->meta, &undo, mfs_placement_home(b->parent));
}

/* What a rename of this client's has left under the name goes first, in the same round trip. */
static int creation_send(struct creation *b, struct mfs_calls *calls)
{
    struct mfs_settle *left = mfs_settles_take(b->meta, b->parent, b->name);
    struct mfs_ino_arg dir = mfs_ino_arg(b->parent), sid;
    struct mfs_time_arg time = mfs_time_arg(b->now);
    const char how[3] = {b->how, "nkp"[b->shard], 'u'};
    char prefix[2], type = (char)(b->new->mode >> 12);
    int64_t asked = mfs_clock_mono();

    b->sid = b->meta->sid;
    sid = mfs_ino_arg(b->sid);
    mfs_part_arg(b->part, prefix);
    if (left)
        mfs_settles_call(calls, left, &dir);
    b->at = calls->n;
    creation_args(b, mfs_calls_add(calls, "mfs_create", b->part), &dir, &sid, prefix, &type, how);
    if (S_ISDIR(b->new->mode))
        add_nlink(mfs_calls_add(calls, "mfs_nlink", mfs_placement_home(b->parent)), &dir, 1, &time,
                  mfs_parents_seen(b->meta, b->parent));
    mfs_calls_run(b->meta, calls);
    mfs_settles_called(b->meta, left, &calls->call[0]);
    if (S_ISDIR(b->new->mode))
        creation_counted(b, calls, asked, &dir, &time);
    return calls->call[b->at].cmd.rc;
}

/* It is there, and not opened yet: opens it or looks at it. -EAGAIN: it is gone again. */
static int creation_found(struct creation *b, const struct mfs_entry *e)
{
    int rc;

    if (b->how == 'x')
        return -EEXIST;
    if (S_ISREG(e->type))
        rc = mfs_meta_open(b->meta, e->ino, NULL, b->attr, NULL);
    else
        rc = mfs_meta_getattr(b->meta, e->ino, b->attr);
    if (rc != -ESTALE)
        return rc;
    return mfs_backoff_wait(b->meta, &b->backoff) ? -EAGAIN : -EBUSY;
}

static int creation_intent(struct creation *b, struct mfs_bytes bytes)
{
    struct mfs_entry e, intent;
    int rc = mfs_entry_decode(bytes.p, bytes.n, &e);

    if (rc)
        return rc;
    intent = e;
    rc = mfs_intent_read(b->meta, b->parent, b->name, &e);
    if (rc < 0)
        return rc;
    if (e.ino)
        return creation_found(b, &e);
    rc = mfs_intent_clear(b->meta, b->parent, b->name, &intent, &b->backoff);
    return rc ? rc : -EAGAIN;
}

/* Reads the answer of mfs_create. 1: created; 0: found; -EAGAIN: to be tried again. */
static int creation_answer(struct creation *b, struct mfs_bytes text, int64_t asked)
{
    struct mfs_entry e;
    struct mfs_bytes rest;
    int rc;

    if (!text.p || text.n < 2)
        return -EIO;
    rest = (struct mfs_bytes){text.p + 1, text.n - 1};
    switch (text.p[0]) {
    case MFS_ANSWER_DONE:
        if (rest.n < 9)
            return -EIO;
        *b->attr = b->fresh;
        b->attr->ino = mfs_get_be64(rest.p);
        b->keeper = (enum mfs_keeper)rest.p[8];
        mfs_leases_name_added(b->meta, b->parent, b->part,
                              (struct mfs_bytes){rest.p + 9, rest.n - 9});
        if (S_ISDIR(b->attr->mode)) {
            mfs_dircache_put(b->meta->dirs, b->attr, NULL, 0, asked);
            mfs_dircache_made(b->meta->dirs, b->attr->ino);
            if (b->meta->opts.revoked && mfs_dircache_lease(b->meta->dirs, b->attr->ino, asked))
                b->attr->leased = asked;
        }
        if (b->open && !b->unregistered)
            mfs_opens_add_registered(b->meta, b->attr->ino, b->sid);
        if (b->open && b->meta->opts.revoked)
            mfs_filecache_put(b->meta->files, b->parent, b->name, b->attr, asked);
        return 1;
    case MFS_ANSWER_OPENED:
        if (rest.n < 8)
            return -EIO;
        mfs_opens_add_registered(b->meta, mfs_get_be64(rest.p), b->sid);
        return mfs_meta_take(b->meta, mfs_get_be64(rest.p),
                             (struct mfs_bytes){rest.p + 8, rest.n - 8}, asked, b->attr);
    case MFS_ANSWER_EXISTS:
        rc = mfs_entry_decode(rest.p, rest.n, &e);
        return rc ? rc : creation_found(b, &e);
    case MFS_ANSWER_INTENT:
        return creation_intent(b, rest);
    case MFS_ANSWER_SEALED:
        rc = mfs_seal_met(b->meta, b->parent, b->part, rest, &b->backoff);
        return rc ? rc : -EAGAIN;
    default:
        return -EIO;
    }
}

static int creation_attempt(struct creation *b)
{
    struct mfs_shards *shards = b->meta->shards;
    struct mfs_unregistered_creation creation;
    struct mfs_calls calls;
    int64_t asked;
    int rc;

    b->not_after = mfs_not_after(b->meta);
    rc = mfs_meta_spread(b->meta, b->parent, b->part);
    if (rc)
        return rc;
    calls.n = 0;
    b->keeper = MFS_KEEPER_NOT;
    b->shard = mfs_shards_adding(shards, b->parent, b->part, b->name);
    b->unregistered = b->open && b->meta->opts.revoked &&
                      mfs_unregistered_creating(b->meta->unregistered, &creation, b->part);
    asked = mfs_clock_mono();
    rc = creation_send(b, &calls);
    if (rc == -ECANCELED)
        rc = -EAGAIN; /* too late to rely on what the directory was */
    else if (!rc)
        rc = creation_answer(b, mfs_call_text(&calls.call[b->at]), asked);
    if (b->unregistered)
        mfs_unregistered_created(b->meta->unregistered, &creation, rc == 1 ? b->attr->ino : 0);
    mfs_shards_added(shards, b->parent, b->part, b->name, b->keeper, asked);
    mfs_calls_fini(&calls);
    return rc;
}

static int check_new(const char *name, const struct mfs_new *new)
{
    if (strlen(name) > MFS_NAME_LEN_MAX)
        return -ENAMETOOLONG;
    if (new->target && strlen(new->target) > MFS_SYMLINK_MAX)
        return -ENAMETOOLONG;
    if (new->nxattrs > MFS_NEW_XATTRS)
        return -E2BIG;
    if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
        return -EEXIST;
    return 0;
}

static int run_creation(struct creation *b)
{
    int rc = check_new(b->name, b->new);

    if (rc)
        return rc;
    b->part = mfs_placement_entry(b->parent, b->name, strlen(b->name), b->meta->nparts);
    b->now = mfs_clock_real();
    rc = creation_record(b, 0);
    if (rc)
        return rc;
    do {
        rc = creation_attempt(b);
    } while (rc == -EAGAIN || (rc == -ENOSPC && mfs_room_wait(b->meta, &b->room)));
    mfs_outcomes_added(b->meta, b->parent, b->part, rc);
    if (rc == 1 && !S_ISDIR(b->new->mode))
        mfs_parents_touch(b->meta, b->parent, b->now);
    free(b->record);
    return rc;
}

static bool is_elsewhere(const struct mfs_meta *meta, uint64_t parent, const char *name,
                         const struct mfs_new *new)
{
    return S_ISREG(new->mode) && (new->hints &MFS_HINT_TOGETHER) &&
           new->home != mfs_placement_entry(parent, name, strlen(name), meta->nparts);
}

int mfs_meta_mknod(struct mfs_meta *meta, uint64_t parent, const char *name,
                   const struct mfs_new *new, struct mfs_attr *attr)
{
    struct creation b = {
        .meta = meta, .parent = parent, .name = name, .new = new, .how = 'x', .attr = attr};
    bool created;
    int rc;

    if (is_elsewhere(meta, parent, name, new)) {
        rc = mfs_create_elsewhere(meta, parent, name, new, true, attr, &created);
        if (!rc)
            mfs_meta_close(meta, attr->ino, false);
        return rc;
    }
    rc = run_creation(&b);
    return rc < 0 ? rc : 0;
}

int mfs_meta_create_open(struct mfs_meta *meta, uint64_t parent, const char *name,
                         const struct mfs_new *new, bool exclusive, struct mfs_attr *attr,
                         bool *created)
{
    struct creation b = {.meta = meta,
                         .parent = parent,
                         .name = name,
                         .new = new,
                         .how = exclusive ? 'x' : 'o',
                         .open = true,
                         .attr = attr};
    int rc;

    if (is_elsewhere(meta, parent, name, new))
        return mfs_create_elsewhere(meta, parent, name, new, exclusive, attr, created);
    rc = run_creation(&b);
    *created = rc == 1;
    return rc < 0 ? rc : 0;
}

/* Any partition will do but for a hint, where it is not known what its name is going to be. */
static int place_tmpfile(struct creation *b, const char *name)
{
    char random[16];
    int rc;

    b->part = b->new->home;
    if (b->new->hints & MFS_HINT_TOGETHER)
        return 0;
    if (name) {
        b->part = mfs_placement_entry(b->parent, name, strlen(name), b->meta->nparts);
        return 0;
    }
    rc = mfs_random(random, sizeof random);
    b->part = mfs_placement_entry(b->parent, random, sizeof random, b->meta->nparts);
    return rc;
}

int mfs_meta_tmpfile(struct mfs_meta *meta, uint64_t parent, const char *name,
                     const struct mfs_new *new, bool linkable, struct mfs_attr *attr)
{
    struct creation b = {.meta = meta, .parent = parent, .new = new, .now = mfs_clock_real()};
    struct mfs_ino_arg sid;
    struct mfs_call c;
    char prefix[2];
    int rc = place_tmpfile(&b, name);

    if (!rc)
        rc = creation_record(&b, linkable ? MFS_ATTR_TMPFILE : 0);
    if (rc)
        return rc;
    b.sid = meta->sid;
    sid = mfs_ino_arg(b.sid);
    mfs_part_arg(b.part, prefix);
    mfs_call_command(&c, "mfs_tmpfile");
    c.cmd.full_at_once = new->hints &MFS_HINT_TOGETHER; /* there may be memory elsewhere */
    mfs_args_bin(&c.args, prefix, sizeof prefix);
    mfs_args_bin(&c.args, sid.b, sizeof sid.b);
    mfs_args_bin(&c.args, b.record, b.record_len);
    creation_xattrs(&b, &c);
    rc = mfs_call_run(meta, &c, b.part);
    if (!rc && mfs_call_text(&c).n != 8)
        rc = -EIO;
    if (!rc) {
        *attr = b.fresh;
        attr->ino = mfs_get_be64(mfs_call_text(&c).p);
        mfs_opens_add_registered(meta, attr->ino, b.sid);
    }
    mfs_call_fini(&c);
    free(b.record);
    return rc;
}
