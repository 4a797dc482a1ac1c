/* Leases: taking them along with what is asked for, and calling for those of others. A partition
 * knows the sessions that have one (partition/files/leases.h); meta/coherence/notices.c tells these
 * and waits for their answers. A change is made first: a client that asks after it sees it, one
 * that asked before it is among the holders. */
#include "meta/coherence/notices.h"

#include <assert.h>
#include <errno.h>

#include "cluster/trust.h"
#include "meta/cache/cache.h"
#include "meta/call.h"
#include "meta/coherence/leases.h"
#include "meta/deferred/deferred.h"
#include "meta/ops/ops.h"
#include "meta/session/session.h"
#include "partition/protocol.h"

static_assert(MFS_META_LEASE < MFS_LEASE_MS * MFS_MSEC &&
                  MFS_META_LEASE_FILE < MFS_LEASE_MS * MFS_MSEC,
              "a partition knows of each lease that is relied on");

void mfs_lease_arg(struct mfs_meta *meta, struct mfs_call *c, struct mfs_ino_arg *sid)
{
    *sid = mfs_ino_arg(meta->sid);
    mfs_args_bin(&c->args, sid->b, meta->opts.revoked ? sizeof sid->b : 0);
}

void mfs_leases_ask(struct mfs_call *c, uint64_t ino, char key[MFS_KEY_INO_LEN])
{
    mfs_key_ino(key, 'Y', ino);
    mfs_call_command(c, "GET");
    mfs_args_bin(&c->args, key, MFS_KEY_INO_LEN);
    c->cmd.idempotent = true;
}

void mfs_leases_forget(struct mfs_meta *meta)
{
    mfs_dircache_revoke(meta->dirs, 0);
    mfs_filecache_revoke(meta->files, 0);
    mfs_shards_revoke_all(meta->shards);
}

int mfs_meta_getattr_leased(struct mfs_meta *meta, uint64_t ino, struct mfs_attr *attr)
{
    struct mfs_ino_arg key = mfs_ino_arg(ino), sid;
    int64_t asked = mfs_clock_mono();
    struct mfs_bytes text;
    struct mfs_call c;
    int rc;

    if (mfs_leases_attr(meta, ino, attr))
        return 0;
    if (mfs_contact_leases(meta, MFS_TRUST) && mfs_dircache_leased(meta->dirs, ino, attr)) {
        mfs_parents_merge(meta, attr);
        attr->leased = asked;
        return 0;
    }
    if (!meta->opts.revoked || !mfs_dircache_known(meta->dirs, ino))
        return mfs_meta_getattr(meta, ino, attr);
    mfs_call_command(&c, "mfs_lease");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_lease_arg(meta, &c, &sid);
    c.cmd.idempotent = true;
    rc = mfs_call_run(meta, &c, mfs_placement_home(ino));
    text = mfs_call_text(&c);
    if (!rc && !text.n)
        rc = text.p ? -EIO : -ESTALE;
    if (!rc)
        rc = mfs_meta_take(meta, ino, (struct mfs_bytes){text.p + 1, text.n - 1}, asked, attr);
    if (!rc)
        attr->leased = text.p[0] == 1 && mfs_dircache_lease(meta->dirs, ino, asked) ? asked : 0;
    else if (rc == -ESTALE)
        mfs_dircache_drop(meta->dirs, ino);
    mfs_call_fini(&c);
    return rc;
}

bool mfs_meta_is_leased(struct mfs_meta *meta, const struct mfs_attr *attr)
{
    return attr->leased && mfs_contact_grants(meta, attr->leased) &&
           !mfs_dircache_revoked(meta->dirs, attr->ino, attr->leased);
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

        mfs_dircache_revoke(meta->dirs, ch->ino);
        mfs_notices_revoke(meta, ch->ino, ch->name, mfs_call_text(&b->call[first + i]));
        if (meta->opts.revoked)
            meta->opts.revoked(meta->opts.arg, ch->ino, ch->name, true, NULL, NULL);
    }
    mfs_calls_fini(&own);
    for (size_t i = 0; i < n; i++)
        mfs_meta_settle(meta, changes[i].ino);
}

void mfs_leases_changed(struct mfs_meta *meta, uint64_t ino)
{
    const struct mfs_lease_change change = {ino, mfs_placement_home(ino), false};

    mfs_leases_revoke(meta, &change, 1, NULL);
}

/* --- files ---------------------------------------------------------------------------------- */

static bool sure(struct mfs_meta *meta)
{
    return mfs_contact_leases(meta, MFS_TRUST);
}

bool mfs_leases_name(struct mfs_meta *meta, uint64_t parent, const char *name,
                     struct mfs_attr *attr)
{
    return sure(meta) && mfs_filecache_name(meta->files, parent, name, attr);
}

bool mfs_leases_attr(struct mfs_meta *meta, uint64_t ino, struct mfs_attr *attr)
{
    return sure(meta) && mfs_filecache_attr(meta->files, ino, attr);
}

bool mfs_leases_file_changed(struct mfs_meta *meta, uint64_t ino, struct mfs_bytes holders)
{
    int64_t now = mfs_clock_mono();

    mfs_filecache_revoke(meta->files, ino);
    mfs_notices_file(meta, ino, holders);
    return mfs_notices_settle(meta, ino, now);
}

int mfs_leases_file_changed_at_home(struct mfs_meta *meta, uint64_t ino, bool *all)
{
    char key[MFS_KEY_INO_LEN];
    struct mfs_call c;
    bool settled;
    int rc;

    mfs_leases_ask(&c, ino, key);
    rc = mfs_call_run(meta, &c, mfs_placement_home(ino));
    settled = mfs_leases_file_changed(meta, ino, mfs_call_text(&c));
    mfs_call_fini(&c);
    if (all)
        *all = !rc && settled;
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

int mfs_leases_granted(struct mfs_meta *meta, uint64_t ino, uint64_t version)
{
    struct mfs_call c;
    int rc = mfs_leases_ask_openers(meta, ino, &c);

    mfs_filecache_revoke(meta->files, ino);
    if (!rc)
        mfs_notices_granted(meta, ino, version, mfs_call_text(&c));
    mfs_call_fini(&c);
    mfs_meta_settle(meta, ino);
    return rc;
}

/* --- names that are not there --------------------------------------------------------------- */

bool mfs_leases_absent(struct mfs_meta *meta, uint64_t dir, uint32_t part, const char *name)
{
    return sure(meta) && mfs_shards_absent(meta->shards, dir, part, name);
}

void mfs_leases_name_added(struct mfs_meta *meta, uint64_t dir, uint32_t part,
                           struct mfs_bytes keeper)
{
    if (keeper.n == 0)
        return;
    mfs_notices_shard(meta, dir, part, keeper);
    mfs_meta_settle(meta, dir);
}
