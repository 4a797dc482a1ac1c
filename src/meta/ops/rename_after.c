/* What follows a rename's commit: the source entry, the parents' link counts and times, the
 * replaced inode, and for directories what mfs_todo_run does. */
#include "meta/ops/rename.h"

#include "base/bytes.h"
#include "meta/call.h"
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
    struct mfs_ino_arg dir[2], ctime[2], replaced, sid;
    char lease[2][MFS_KEY_INO_LEN];
    int64_t asked;
    size_t nlink[2], holders[2], unref; /* calls; SIZE_MAX: none */
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

/* The partition of `to` set the times of inodes that have their home there. */
static void add_ctime(struct mfs_rename *r, struct after *a, int i, const struct mfs_place *p)
{
    uint32_t home = mfs_placement_home(p->entry.ino);
    struct mfs_call *c;

    if (home == r->to.part)
        return;
    a->ctime[i] = mfs_ino_arg(p->entry.ino);
    c = mfs_calls_add(&a->calls, "mfs_ctime", home);
    mfs_args_bin(&c->args, a->ctime[i].b, sizeof a->ctime[i].b);
    mfs_args_bin(&c->args, a->time.b, sizeof a->time.b);
}

/* Clients that may show a file by the name that it had. */
static void add_holders(const struct mfs_rename *r, struct after *a, int i,
                        const struct mfs_place *p)
{
    a->holders[i] = SIZE_MAX;
    if (!p->entry.ino || !S_ISREG(p->entry.type) || r->holders[i].p)
        return;
    a->holders[i] = a->calls.n;
    a->calls.part[a->calls.n] = mfs_placement_home(p->entry.ino);
    mfs_leases_ask(&a->calls.call[a->calls.n++], p->entry.ino, a->lease[i]);
}

static void take_holders(struct mfs_rename *r, struct after *a, int i, const struct mfs_place *p,
                         struct mfs_bytes status)
{
    const struct mfs_call *c = a->holders[i] == SIZE_MAX ? NULL : &a->calls.call[a->holders[i]];

    if (c && !c->cmd.rc)
        r->holders[i] = mfs_call_text(c);
    if (p->entry.ino && S_ISREG(p->entry.type) && !(c && c->cmd.rc)) {
        mfs_meta_unrefed(r->meta, p->entry.ino, status, r->holders[i]);
        return;
    }
    mfs_meta_freed(r->meta, p->entry.ino, status);
    if (c) /* they have it open, perhaps, without registration: not to be freed */
        mfs_outcomes_attributes(r->meta, p->entry.ino, -EIO);
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
    if (mfs_rename_exchanges(r))
        add_ctime(r, a, 1, &r->to);
    a->unref = SIZE_MAX;
    if (replaces_file(r) && home != r->to.part &&
        !mfs_unregistered_register(r->meta->unregistered, home))
        add_unref(r, a); /* else the count is noted, for housekeeping */
    add_holders(r, a, 0, &r->from);
    a->holders[1] = SIZE_MAX;
    if (a->unref == SIZE_MAX) /* that tells them */
        add_holders(r, a, 1, &r->to);
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

void mfs_rename_conclude(struct mfs_rename *r, struct mfs_bytes status)
{
    bool across = r->from.part != r->to.part;
    struct mfs_todo todo = mfs_rename_todo(r);
    char becomes[MFS_ENTRY_LEN];
    struct mfs_bytes source = {becomes, mfs_rename_exchanges(r) ? sizeof becomes : 0};
    struct after a;
    size_t settle;
    bool leased;

    if (r->whites)
        source = (struct mfs_bytes){r->whiteout, sizeof r->whiteout};
    mfs_entry_encode(r->to.entry.ino, r->to.entry.type, becomes);
    add_all(r, &a);
    settle = a.calls.n;
    if (across || r->generation || r->sealed.ino)
        mfs_todo_run(r->meta, &todo, r->txn, source, r->to.part, &a.calls);
    else
        mfs_calls_run(r->meta, &a.calls);
    leased = across && !a.calls.call[settle].cmd.rc &&
             mfs_reply_int(a.calls.call[settle].cmd.reply) == 1;
    take_parents(r, &a);
    if (a.unref != SIZE_MAX && !a.calls.call[a.unref].cmd.rc)
        mfs_link_counts_done(r->meta, r->unref_txn, r->begun, r->to.part,
                             mfs_placement_home(r->to.entry.ino));
    if (a.unref != SIZE_MAX)
        status = mfs_meta_unref_answer(mfs_call_text(&a.calls.call[a.unref]), &r->holders[1]);
    take_holders(r, &a, 0, &r->from, (struct mfs_bytes){0});
    take_holders(r, &a, 1, &r->to, status);
    mfs_calls_fini(&a.calls);
    revoke(r, leased);
    r->generation = 0;
    mfs_seal_done(&r->sealed);
}
