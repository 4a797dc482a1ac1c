/* What follows a rename's commit: the source entry, the parents' link counts and times, the
 * replaced inode, and for directories what mfs_todo_run does. */
#include "meta/ops/rename.h"

#include "base/bytes.h"
#include "meta/cache/cache.h"
#include "meta/call.h"
#include "meta/coherence/leases.h"
#include "meta/coherence/notices.h"
#include "meta/coherence/revoke.h"
#include "meta/deferred/deferred.h"
#include "meta/deferred/unknown_outcomes.h"
#include "meta/ops/ops.h"
#include "meta/session/unregistered_opens.h"
#include "meta/txn/txn.h"

static struct mfs_todo todo_of(const struct mfs_rename *r, uint64_t moved, uint64_t other)
{
    bool across = r->from.part != r->to.part;

    return (struct mfs_todo){
        .src_dir = across ? r->from.dir : 0,
        .src_part = r->from.part,
        .src_name = across ? r->from.name : NULL,
        .moved = moved,
        .moved_parent = moved ? r->to.dir : 0,
        .other = other,
        .other_parent = other ? r->from.dir : 0,
        .generation = r->generation,
        .dead = r->sealed.ino,
        .bits = r->sealed.bits,
        .nbits = r->sealed.nbits,
        .time = r->time,
    };
}

struct mfs_todo mfs_rename_todo(const struct mfs_rename *r)
{
    if (!r->has_checked)
        return todo_of(r, 0, 0);
    return todo_of(r, mfs_get_be64(r->checked), mfs_get_be64(r->checked + 8));
}

static int parent_delta(const struct mfs_rename *r, const struct mfs_place *p)
{
    bool from = p == &r->from;
    int delta = 0;

    if (mfs_place_is_dir(&r->from))
        delta += from ? -1 : 1;
    if (mfs_place_is_dir(&r->to))
        delta += from ? mfs_rename_exchanges(r) : -1;
    return delta;
}

struct after {
    struct mfs_calls calls;
    struct mfs_ino_arg dir[2], replaced, sid;
    struct mfs_rename_ctime args[2];
    int64_t asked;
    size_t nlink[2], ctime[2], unref; /* calls; SIZE_MAX: none */
    struct mfs_time_arg time;
};

static void add_parent(struct mfs_rename *r, struct after *a, int i, const struct mfs_place *p,
                       int delta)
{
    struct mfs_call *c;

    a->nlink[i] = SIZE_MAX;
    a->dir[i] = mfs_ino_arg(p->dir);
    if (!delta) {
        mfs_parents_touch(r->meta, p->dir, r->now);
        return;
    }
    a->nlink[i] = a->calls.n;
    c = mfs_calls_add(&a->calls, "mfs_nlink", mfs_placement_home(p->dir));
    mfs_args_bin(&c->args, a->dir[i].b, sizeof a->dir[i].b);
    mfs_args_int(&c->args, delta);
    mfs_args_bin(&c->args, a->time.b, sizeof a->time.b);
    mfs_args_int(&c->args, mfs_parents_seen(r->meta, p->dir));
}

void mfs_rename_add_ctime(const struct mfs_rename *r, struct mfs_calls *calls, uint64_t ino,
                          struct mfs_rename_ctime *args)
{
    struct mfs_call *c = mfs_calls_add(calls, "mfs_ctime", mfs_placement_home(ino));

    args->ino = mfs_ino_arg(ino);
    mfs_args_bin(&c->args, args->ino.b, sizeof args->ino.b);
    mfs_args_bin(&c->args, r->time.b, sizeof r->time.b);
    mfs_lease_arg(r->meta, c, &args->sid);
}

bool mfs_rename_take_ctime(const struct mfs_call *c, struct mfs_bytes *record,
                           struct mfs_bytes *holders)
{
    struct mfs_bytes text = mfs_call_text(c);

    if (c->cmd.rc)
        return false;
    if (text.n > MFS_RECORD_FIXED) { /* none: it is gone */
        *record = (struct mfs_bytes){text.p + 1, text.n - 1};
        if (S_ISREG(mfs_get_le32(record->p + MFS_REC_MODE)))
            *holders = mfs_record_rest(record);
    }
    return true;
}

/* The partition of `to` set the times of inodes that have their home there. */
static void add_ctime(struct mfs_rename *r, struct after *a, int i, const struct mfs_place *p)
{
    a->ctime[i] = SIZE_MAX;
    if (mfs_placement_home(p->entry.ino) == r->to.part || (i == 0 && r->ctime_set))
        return;
    a->ctime[i] = a->calls.n;
    mfs_rename_add_ctime(r, &a->calls, p->entry.ino, &a->args[i]);
}
static bool replaces_file(const struct mfs_rename *r)
{
    return r->to.entry.ino && !mfs_rename_exchanges(r) && !mfs_place_is_dir(&r->to);
}

static void add_unref(struct mfs_rename *r, struct after *a)
{
    struct mfs_call *c;

    a->unref = a->calls.n;
    a->replaced = mfs_ino_arg(r->to.entry.ino);
    a->sid = mfs_ino_arg(r->meta->sid);
    c = mfs_calls_add(&a->calls, "mfs_unref", mfs_placement_home(r->to.entry.ino));
    mfs_args_bin(&c->args, a->replaced.b, sizeof a->replaced.b);
    mfs_args_bin(&c->args, a->time.b, sizeof a->time.b);
    mfs_args_int(&c->args, r->meta->stripe_size);
    mfs_args_bin(&c->args, a->sid.b, sizeof a->sid.b);
    mfs_args_bin(&c->args, r->unref_txn, sizeof r->unref_txn);
}

static void add_all(struct mfs_rename *r, struct after *a)
{
    uint32_t home = mfs_placement_home(r->to.entry.ino);
    bool one = r->from.dir == r->to.dir;
    int from = parent_delta(r, &r->from), to = parent_delta(r, &r->to);

    a->calls.n = 0;
    a->time = r->time;
    a->asked = mfs_clock_mono();
    add_parent(r, a, 0, &r->from, one ? from + to : from);
    a->nlink[1] = SIZE_MAX;
    if (!one)
        add_parent(r, a, 1, &r->to, to);
    add_ctime(r, a, 0, &r->from);
    a->ctime[1] = SIZE_MAX;
    if (mfs_rename_exchanges(r))
        add_ctime(r, a, 1, &r->to);
    a->unref = SIZE_MAX;
    if (replaces_file(r) && home != r->to.part &&
        !mfs_unregistered_register(r->meta->unregistered, home))
        add_unref(r, a); /* else the count is noted, for housekeeping */
}

static void take_parents(struct mfs_rename *r, struct after *a)
{
    for (int i = 0; i < 2; i++) {
        struct mfs_call *c = a->nlink[i] == SIZE_MAX ? NULL : &a->calls.call[a->nlink[i]];

        if (c && !c->cmd.rc && mfs_call_text(c).p)
            mfs_meta_counted(r->meta, mfs_get_be64(a->dir[i].b), mfs_call_text(c), a->asked);
    }
}

static size_t add_lost(struct mfs_lease_change *changes, size_t n, const struct mfs_place *old)
{
    uint64_t ino = old->entry.ino;
    uint32_t home = mfs_placement_home(ino);

    if (!mfs_place_is_dir(old))
        return n;
    changes[n++] = (struct mfs_lease_change){ino, old->part, true};
    if (home != old->part)
        changes[n++] = (struct mfs_lease_change){ino, home, true};
    return n;
}

/* No client shows directories by names any more that are no longer theirs. */
static void revoke(const struct mfs_rename *r, bool leased)
{
    struct mfs_lease_change changes[MFS_LEASE_CHANGES];
    size_t n = add_lost(changes, add_lost(changes, 0, &r->from), &r->to);

    if (n)
        mfs_leases_revoke(r->meta, changes, n, NULL);
    /* This client's kernel had better ask for what was not leased with the exchange. It forgets the
     * name then, which overlayfs does not expect: what was to be removed stays. */
    if (mfs_place_is_dir(&r->to) && mfs_rename_exchanges(r) && r->from.part != r->to.part &&
        !leased && r->meta->opts.revoked)
        r->meta->opts.revoked(r->meta->opts.arg, r->to.entry.ino, true, false, NULL, NULL);
}

/* What there was is a file, which has another name now: others have to forget that. False: not all
 * who would have to could be asked for. */
static bool tell_moved(struct mfs_rename *r, const struct after *a, int i,
                       const struct mfs_place *p)
{
    struct mfs_bytes *holders = r->holders[i], record = r->record;
    bool all = a->ctime[i] == SIZE_MAX || mfs_rename_take_ctime(&a->calls.call[a->ctime[i]],
                                                                &record, &holders[MFS_RENAME_HOME]);
    struct mfs_attr attr;

    if (!S_ISREG(p->entry.type))
        return true;
    if (mfs_rename_exchanges(r) || !record.n ||
        mfs_meta_take(r->meta, p->entry.ino, record, r->asked, &attr)) {
        mfs_leases_file_changed(r->meta, p->entry.ino, holders, MFS_RENAME_TELLERS);
    } else {
        if (r->leased)
            mfs_filecache_add_name(r->meta->files, r->to.dir, r->to.name, attr.ino, r->asked);
        mfs_filecache_drop_name(r->meta->files, r->from.dir, r->from.name);
        mfs_leases_file_set(r->meta, &attr, r->asked, holders, MFS_RENAME_TELLERS);
        /* Again: until then an answer from before could bring it back. */
        mfs_filecache_drop_name(r->meta->files, r->from.dir, r->from.name);
    }
    return all;
}

/* A file that was replaced; `status` of its unref, where its home is the new name's partition. */
static bool tell_replaced(struct mfs_rename *r, const struct after *a, struct mfs_bytes status)
{
    struct mfs_bytes *holders = r->holders[1];
    const struct mfs_call *unref = a->unref == SIZE_MAX ? NULL : &a->calls.call[a->unref];
    bool known = unref ? !unref->cmd.rc : mfs_placement_home(r->to.entry.ino) == r->to.part;

    if (unref && known)
        status = mfs_meta_unref_answer(mfs_call_text(unref), &holders[MFS_RENAME_HOME]);
    if (S_ISREG(r->to.entry.type) && known)
        mfs_meta_unrefed(r->meta, r->to.entry.ino, r->asked, status, holders, MFS_RENAME_TELLERS);
    else if (S_ISREG(r->to.entry.type))
        mfs_leases_file_changed(r->meta, r->to.entry.ino, holders, MFS_RENAME_TELLERS);
    else if (known)
        mfs_meta_freed(r->meta, r->to.entry.ino, status);
    return known;
}

static void tell(struct mfs_rename *r, const struct after *a, struct mfs_bytes status)
{
    const struct mfs_place *to = &r->to;

    mfs_filecache_drop_name(r->meta->files, to->dir, to->name);
    if (!tell_moved(r, a, 0, &r->from))
        mfs_outcomes_attributes(r->meta, r->from.entry.ino, -EIO);
    if (mfs_rename_exchanges(r) && !tell_moved(r, a, 1, to))
        mfs_outcomes_attributes(r->meta, to->entry.ino, -EIO);
    /* Others may have it open without registration: then it is not to be freed. */
    if (replaces_file(r) && !tell_replaced(r, a, status) && S_ISREG(to->entry.type))
        mfs_outcomes_attributes(r->meta, to->entry.ino, -EIO);
}

/* Nobody needs the source entry to be gone who does not meet it: its intent says that it is. */
static bool may_settle_later(const struct mfs_rename *r, const struct after *a)
{
    return r->from.part != r->to.part && !r->generation && !r->sealed.ino && !r->whites &&
           !mfs_rename_exchanges(r) && !mfs_place_is_dir(&r->from) && a->calls.n == 0;
}

/* Does what is left to do; whether the source entry is leased as what it has become. */
static bool run_after(struct mfs_rename *r, struct after *a)
{
    bool across = r->from.part != r->to.part;
    struct mfs_todo todo = mfs_rename_todo(r);
    char becomes[MFS_ENTRY_LEN];
    struct mfs_bytes source = {becomes, mfs_rename_exchanges(r) ? sizeof becomes : 0};
    size_t settle = a->calls.n;

    if (r->whites)
        source = (struct mfs_bytes){r->whiteout, sizeof r->whiteout};
    mfs_entry_encode(r->to.entry.ino, r->to.entry.type, becomes);
    if (across || r->generation || r->sealed.ino)
        mfs_todo_run(r->meta, &todo, r->txn, source, r->to.part, &a->calls);
    else if (a->calls.n)
        mfs_calls_run(r->meta, &a->calls);
    return across && !a->calls.call[settle].cmd.rc &&
           mfs_reply_int(a->calls.call[settle].cmd.reply) == 1;
}

void mfs_rename_conclude(struct mfs_rename *r, struct mfs_bytes status)
{
    struct after a;
    bool leased = false;

    add_all(r, &a);
    if (may_settle_later(r, &a))
        mfs_settles_add(r->meta, r->from.dir, r->from.name, r->from.part, r->txn, r->to.part);
    else
        leased = run_after(r, &a);
    take_parents(r, &a);
    if (a.unref != SIZE_MAX && !a.calls.call[a.unref].cmd.rc)
        mfs_link_counts_done(r->meta, r->unref_txn, r->begun, r->to.part,
                             mfs_placement_home(r->to.entry.ino));
    tell(r, &a, status);
    mfs_calls_fini(&a.calls);
    revoke(r, leased);
    r->generation = 0;
    mfs_seal_done(&r->sealed);
}
