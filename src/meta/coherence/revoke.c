/* Calling for the leases of others. A partition knows the sessions that have one
 * (partition/files/leases.h); meta/coherence/notices.c tells these and waits for their answers. A
 * change is made first: a client that asks after it sees it, one that asked before it is among the
 * holders. */
#include "meta/coherence/revoke.h"

#include "meta/cache/cache.h"
#include "meta/coherence/notices.h"

void mfs_leases_ask(struct mfs_call *c, uint64_t ino, char key[MFS_KEY_INO_LEN])
{
    mfs_key_ino(key, 'Y', ino);
    mfs_call_command(c, "GET");
    mfs_args_bin(&c->args, key, MFS_KEY_INO_LEN);
    c->cmd.idempotent = true;
}

static void tell(struct mfs_meta *meta, uint64_t ino, bool name, struct mfs_bytes holders)
{
    mfs_dircache_revoke(meta->dirs, ino);
    mfs_notices_revoke(meta, ino, name, holders);
    if (meta->opts.revoked)
        meta->opts.revoked(meta->opts.arg, ino, name, true, NULL, NULL);
}

void mfs_leases_revoke(struct mfs_meta *meta, const struct mfs_lease_change *changes, size_t n,
                       struct mfs_calls *calls)
{
    char key[MFS_LEASE_CHANGES][MFS_KEY_INO_LEN];
    struct mfs_calls own, *b = calls ? calls : &own;
    size_t first;

    own.n = 0;
    first = b->n;
    for (size_t i = 0; i < n; i++) {
        b->part[b->n] = changes[i].part;
        mfs_leases_ask(&b->call[b->n++], changes[i].ino, key[i]);
    }
    mfs_calls_run(meta, b);
    for (size_t i = 0; i < n; i++) {
        const struct mfs_lease_change *ch = &changes[i];

        tell(meta, ch->ino, ch->name, mfs_call_text(&b->call[first + i]));
    }
    mfs_calls_fini(&own);
    for (size_t i = 0; i < n; i++)
        mfs_meta_settle(meta, changes[i].ino);
}

void mfs_leases_removed(struct mfs_meta *meta, uint64_t ino, struct mfs_bytes holders)
{
    tell(meta, ino, true, holders);
}

void mfs_leases_changed(struct mfs_meta *meta, uint64_t ino)
{
    const struct mfs_lease_change change = {ino, mfs_placement_home(ino), false};

    mfs_leases_revoke(meta, &change, 1, NULL);
}

/* What this client's own kernel may be just learning is from before. */
static void recall_own(struct mfs_meta *meta, uint64_t ino)
{
    if (meta->opts.recalled)
        meta->opts.recalled(meta->opts.arg, ino, NULL, NULL);
}

bool mfs_leases_file_changed(struct mfs_meta *meta, uint64_t ino, const struct mfs_bytes *holders,
                             size_t n)
{
    int64_t now = mfs_clock_mono();

    mfs_filecache_revoke(meta->files, ino);
    recall_own(meta, ino);
    mfs_notices_file(meta, ino, holders, n);
    return mfs_notices_settle(meta, ino, now);
}

void mfs_leases_file_set(struct mfs_meta *meta, const struct mfs_attr *attr, int64_t asked,
                         const struct mfs_bytes *holders, size_t n)
{
    mfs_filecache_changed(meta->files, attr, asked);
    recall_own(meta, attr->ino);
    mfs_notices_file(meta, attr->ino, holders, n);
    mfs_meta_settle(meta, attr->ino);
}

int mfs_leases_file_changed_at_home(struct mfs_meta *meta, uint64_t ino, bool *all)
{
    char key[MFS_KEY_INO_LEN];
    struct mfs_bytes holders;
    struct mfs_call c;
    bool settled;
    int rc;

    mfs_leases_ask(&c, ino, key);
    rc = mfs_call_run(meta, &c, mfs_placement_home(ino));
    holders = mfs_call_text(&c);
    settled = mfs_leases_file_changed(meta, ino, &holders, 1);
    mfs_call_fini(&c);
    if (all)
        *all = !rc && settled;
    return rc;
}

int mfs_leases_file_changed_at(struct mfs_meta *meta, uint64_t ino, uint32_t part)
{
    const uint32_t at[2] = {mfs_placement_home(ino), part};
    size_t n = at[0] == part ? 1 : 2;
    char key[2][MFS_KEY_INO_LEN];
    struct mfs_bytes holders[2];
    struct mfs_calls b;
    int rc;

    for (b.n = 0; b.n < n; b.n++) {
        b.part[b.n] = at[b.n];
        mfs_leases_ask(&b.call[b.n], ino, key[b.n]);
    }
    rc = mfs_calls_run(meta, &b);
    for (size_t i = 0; i < n; i++)
        holders[i] = mfs_call_text(&b.call[i]);
    mfs_leases_file_changed(meta, ino, holders, n);
    mfs_calls_fini(&b);
    return rc;
}

int mfs_leases_ask_openers(struct mfs_meta *meta, uint64_t ino, struct mfs_call *c)
{
    struct mfs_ino_arg key = mfs_ino_arg(ino), sid = mfs_ino_arg(meta->sid);

    mfs_call_command(c, "mfs_holders");
    mfs_args_bin(&c->args, key.b, sizeof key.b);
    mfs_args_bin(&c->args, sid.b, sizeof sid.b);
    mfs_args_str(&c->args, "open");
    c->cmd.idempotent = true;
    return mfs_call_run(meta, c, mfs_placement_home(ino));
}

void mfs_leases_granted_to(struct mfs_meta *meta, uint64_t ino, uint64_t version,
                           struct mfs_bytes openers)
{
    mfs_filecache_revoke(meta->files, ino);
    recall_own(meta, ino);
    mfs_notices_granted(meta, ino, version, openers);
    mfs_meta_settle(meta, ino);
}

int mfs_leases_granted(struct mfs_meta *meta, uint64_t ino, uint64_t version)
{
    struct mfs_call c;
    int rc = mfs_leases_ask_openers(meta, ino, &c);

    mfs_leases_granted_to(meta, ino, version, mfs_call_text(&c));
    mfs_call_fini(&c);
    return rc;
}

void mfs_leases_name_added(struct mfs_meta *meta, uint64_t dir, uint32_t part,
                           struct mfs_bytes keeper)
{
    if (keeper.n == 0)
        return;
    mfs_notices_shard(meta, dir, part, keeper);
    mfs_meta_settle(meta, dir);
}
