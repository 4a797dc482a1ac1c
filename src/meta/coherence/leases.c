#include "meta/coherence/leases.h"

#include <assert.h>
#include <errno.h>

#include "cluster/trust.h"
#include "meta/cache/cache.h"
#include "meta/call.h"
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

void mfs_leases_forget(struct mfs_meta *meta)
{
    mfs_dircache_revoke(meta->dirs, 0);
    mfs_filecache_revoke(meta->files, 0);
    mfs_shards_revoke_all(meta->shards);
}

void mfs_leases_renewed(struct mfs_meta *meta)
{
    mfs_filecache_renewed(meta->files);
    mfs_shards_renewed(meta->shards);
}

int mfs_lease_ask(struct mfs_meta *meta, uint64_t ino, int64_t asked, struct mfs_attr *attr,
                  bool *leased)
{
    struct mfs_ino_arg key = mfs_ino_arg(ino), sid;
    struct mfs_bytes text;
    struct mfs_call c;
    int rc;

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
    *leased = !rc && text.p[0] == 1;
    mfs_call_fini(&c);
    return rc;
}

int mfs_meta_getattr_leased(struct mfs_meta *meta, uint64_t ino, struct mfs_attr *attr)
{
    int64_t asked = mfs_clock_mono();
    bool leased;
    int rc;

    if (mfs_leases_attr(meta, ino, attr)) {
        mfs_meta_cached(meta, MFS_CACHE_ATTRIBUTES, true);
        return 0;
    }
    if (mfs_contact_leases(meta, MFS_TRUST) && mfs_dircache_leased(meta->dirs, ino, attr)) {
        mfs_meta_cached(meta, MFS_CACHE_ATTRIBUTES, true);
        mfs_parents_merge(meta, attr);
        attr->leased = asked;
        return 0;
    }
    mfs_meta_cached(meta, MFS_CACHE_ATTRIBUTES, false);
    if (!meta->opts.revoked || !mfs_dircache_known(meta->dirs, ino))
        return mfs_meta_getattr(meta, ino, attr);
    rc = mfs_lease_ask(meta, ino, asked, attr, &leased);
    if (!rc)
        attr->leased = leased && mfs_dircache_lease(meta->dirs, ino, asked) ? asked : 0;
    else if (rc == -ESTALE)
        mfs_dircache_drop(meta->dirs, ino);
    return rc;
}

bool mfs_meta_is_leased(struct mfs_meta *meta, const struct mfs_attr *attr)
{
    return attr->leased && mfs_contact_grants(meta, attr->leased) &&
           !mfs_dircache_revoked(meta->dirs, attr->ino, attr->leased);
}

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

bool mfs_leases_absent(struct mfs_meta *meta, uint64_t dir, uint32_t part, const char *name)
{
    return sure(meta) && mfs_shards_absent(meta->shards, dir, part, name);
}
