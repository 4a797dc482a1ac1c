/* What the kernel is shown of files, so that it need not ask (meta/coherence/shown.h). */
#include "meta/coherence/notices_impl.h"

#include <sys/stat.h>

#include "cluster/trust.h"
#include "meta/coherence/leases.h"
#include "meta/coherence/shown.h"
#include "meta/session/session.h"

bool mfs_meta_show(struct mfs_meta *meta, uint64_t dir, const struct mfs_dirent *e,
                   struct mfs_attr *attr)
{
    struct mfs_shown *shown = meta->notices->shown;

    if (e->type != S_IFREG || !mfs_shown_begin(shown, e->ino, MFS_META_SHOWN))
        return false;
    if (mfs_leases_name(meta, dir, e->name, attr) && attr->ino == e->ino)
        return true;
    mfs_shown_end(shown, &e->ino, 1, 0);
    return false;
}

bool mfs_meta_show_names(struct mfs_meta *meta, uint64_t dir)
{
    return mfs_shown_begin(meta->notices->shown, dir, MFS_META_SHOWN);
}

bool mfs_meta_shows_names(struct mfs_meta *meta, uint64_t dir)
{
    return !mfs_shown_is_over(meta->notices->shown, dir);
}

void mfs_meta_wait_for_names(struct mfs_meta *meta, uint64_t dir)
{
    mfs_shown_wait(meta->notices->shown, dir);
}

bool mfs_meta_may_show(struct mfs_meta *meta, uint64_t ino, struct mfs_attr *attr)
{
    return mfs_contact_leases(meta, MFS_TRUST_KEPT) && mfs_leases_attr(meta, ino, attr);
}

void mfs_meta_shown(struct mfs_meta *meta, const uint64_t *inos, size_t n, int64_t life)
{
    mfs_shown_end(meta->notices->shown, inos, n, life);
}
