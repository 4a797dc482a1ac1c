/* Attributes of inodes. */
#include "meta/coherence/notices.h"
#include "meta/deferred/unknown_outcomes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/log.h"
#include "cluster/trust.h"
#include "meta/cache/cache.h"
#include "meta/cache/contents.h"
#include "meta/call.h"
#include "meta/coherence/revoke.h"
#include "meta/deferred/deferred.h"
#include "meta/ops/ops.h"
#include "meta/session/opens.h"
#include "meta/session/session.h"
#include "partition/protocol.h"

#define ATIME_DAY (24 * 60 * 60)

#define TARGET 0 /* a link's text never changes; files have no such version */

/* Decodes a record; of a directory, *bits (n of them in bytes) is where its entries may be. */
static int decode(uint64_t ino, struct mfs_bytes record, struct mfs_attr *attr, const char **bits,
                  size_t *n)
{
    size_t dir = MFS_RECORD_DIR - MFS_RECORD_FIXED;
    int rc = record.p ? mfs_meta_record_decode(record.p, record.n, ino, attr, bits, n) : -EIO;

    if (rc) {
        mfs_error("meta", "inode %" PRIx64 ": its record of %zu bytes makes no sense", ino,
                  record.n);
        return rc;
    }
    if (S_ISDIR(attr->mode)) {
        *bits += dir;
        *n -= dir;
    }
    return 0;
}

int mfs_meta_take(struct mfs_meta *meta, uint64_t ino, struct mfs_bytes record, int64_t asked,
                  struct mfs_attr *attr)
{
    const char *bits;
    size_t n;
    int rc = decode(ino, record, attr, &bits, &n);

    if (rc)
        return rc;
    mfs_contact_check(meta);
    if (S_ISDIR(attr->mode)) {
        if (attr->nlink > 0)
            mfs_dircache_put(meta->dirs, attr, bits, n, asked);
        else
            mfs_dircache_drop(meta->dirs, ino);
        mfs_parents_merge(meta, attr);
    } else if (S_ISLNK(attr->mode)) {
        mfs_contents_put(meta->contents, ino, TARGET, bits, n);
    }
    mfs_opens_merge_read(meta, attr);
    return 0;
}

void mfs_meta_counted(struct mfs_meta *meta, uint64_t dir, struct mfs_bytes record, int64_t asked)
{
    struct mfs_attr attr;
    const char *bits;
    size_t n;

    mfs_contact_check(meta);
    if (!decode(dir, record, &attr, &bits, &n) && S_ISDIR(attr.mode) && attr.nlink > 0)
        mfs_dircache_counted(meta->dirs, &attr, bits, n, asked);
    else
        mfs_dircache_revoke(meta->dirs, dir);
}

int mfs_meta_record(struct mfs_meta *meta, uint64_t ino, struct mfs_call *c,
                    struct mfs_bytes *record)
{
    char key[MFS_KEY_INO_LEN];
    int rc;

    mfs_key_ino(key, 'I', ino);
    mfs_call_command(c, "GET");
    mfs_args_bin(&c->args, key, sizeof key);
    c->cmd.idempotent = true;
    rc = mfs_call_run(meta, c, mfs_placement_home(ino));
    if (rc)
        return rc;
    *record = mfs_call_text(c);
    return record->p ? 0 : -ESTALE;
}

/* It is gone. */
static void forget(struct mfs_meta *meta, uint64_t ino)
{
    mfs_dircache_drop(meta->dirs, ino);
    mfs_filecache_revoke(meta->files, ino);
}

int mfs_meta_getattr(struct mfs_meta *meta, uint64_t ino, struct mfs_attr *attr)
{
    int64_t asked = mfs_clock_mono();
    struct mfs_bytes record;
    struct mfs_call c;
    int rc = mfs_meta_record(meta, ino, &c, &record);

    if (!rc)
        rc = mfs_meta_take(meta, ino, record, asked, attr);
    else if (rc == -ESTALE)
        forget(meta, ino);
    if (!rc)
        mfs_filecache_compare(meta->files, attr, asked);
    mfs_call_fini(&c);
    return rc;
}

int mfs_meta_dir(struct mfs_meta *meta, uint64_t ino, int64_t max_age, struct mfs_attr *attr)
{
    int rc;

    if (mfs_contact_leases(meta, MFS_TRUST) && mfs_dircache_attr(meta->dirs, ino, max_age, attr)) {
        mfs_parents_merge(meta, attr);
        return 0;
    }
    rc = mfs_meta_getattr_leased(meta, ino, attr);
    if (rc)
        return rc;
    return S_ISDIR(attr->mode) ? 0 : -ENOTDIR;
}

/* --- changes -------------------------------------------------------------------------------- */

void mfs_owned_arg(struct mfs_call *c, bool matters, uint32_t id)
{
    if (matters)
        mfs_args_int(&c->args, id);
    else
        mfs_args_str(&c->args, "");
}

static void tell_holders(struct mfs_meta *meta, const struct mfs_attr *attr, int64_t asked,
                         struct mfs_bytes answer)
{
    struct mfs_bytes holders = mfs_record_rest(&answer);

    mfs_leases_file_set(meta, attr, asked, &holders, 1);
}

/* `how` of hints: mfs_xattr_how; NULL: they are not set. */
static int set_attributes(struct mfs_meta *meta, uint64_t ino, uint32_t mask, const char *how,
                          struct mfs_attr *attr, const struct mfs_owned *owned)
{
    struct mfs_ino_arg key = mfs_ino_arg(ino), sid = mfs_ino_arg(meta->sid);
    struct mfs_time_arg atime = mfs_time_arg(attr->atime), mtime = mfs_time_arg(attr->mtime);
    struct mfs_time_arg ctime = mask & MFS_SET_CTIME ? mfs_time_arg(attr->ctime) : mfs_now_arg();
    int64_t asked = mfs_clock_mono();
    struct mfs_bytes answer;
    struct mfs_call c;
    bool grants = (mask & MFS_SET_MODE) && mfs_mode_grants(attr->mode);
    int rc;

    if (mask & MFS_SET_ATIME)
        mfs_closes_flush_of(meta, ino); /* a read before it has no say after it */
    mfs_call_command(&c, "mfs_setattr");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_int(&c.args, mask);
    mfs_args_int(&c.args, attr->mode);
    mfs_args_int(&c.args, attr->uid);
    mfs_args_int(&c.args, attr->gid);
    mfs_args_bin(&c.args, atime.b, sizeof atime.b);
    mfs_args_bin(&c.args, mtime.b, sizeof mtime.b);
    mfs_args_bin(&c.args, ctime.b, sizeof ctime.b);
    mfs_args_bin(&c.args, sid.b, sizeof sid.b);
    mfs_owned_arg(&c, owned && owned->user, owned ? owned->uid : 0);
    mfs_owned_arg(&c, owned && owned->group, owned ? owned->gid : 0);
    if (how) {
        mfs_args_int(&c.args, attr->hints);
        mfs_args_str(&c.args, how);
        if (mask & MFS_SET_TTL)
            mfs_args_int(&c.args, attr->ttl);
    }
    rc = mfs_call_run(meta, &c, mfs_placement_home(ino));
    answer = mfs_call_text(&c);
    if (!rc)
        rc = mfs_meta_take(meta, ino, answer, asked, attr);
    grants = grants && S_ISREG(attr->mode);
    if (!rc && grants)
        rc = mfs_leases_granted(meta, ino, attr->version);
    else if (!rc && S_ISREG(attr->mode))
        tell_holders(meta, attr, asked, answer);
    mfs_call_fini(&c);
    if (!rc && S_ISDIR(attr->mode))
        mfs_leases_changed(meta, ino);
    mfs_outcomes_attributes(meta, ino, rc);
    if (grants && mfs_outcome_is_unknown(rc)) {
        mfs_outcomes_content(meta, ino, rc);
        mfs_meta_settle(meta, ino);
    }
    return rc;
}

int mfs_meta_setattr(struct mfs_meta *meta, uint64_t ino, uint32_t mask, struct mfs_attr *attr,
                     const struct mfs_owned *owned)
{
    return set_attributes(meta, ino, mask & ~MFS_SET_HINTS, NULL, attr, owned);
}

int mfs_meta_set_hint(struct mfs_meta *meta, uint64_t ino, uint32_t mask, int flags,
                      struct mfs_attr *attr)
{
    return set_attributes(meta, ino, mask, mfs_xattr_how(flags), attr, NULL);
}

bool mfs_meta_atime_is_due(const struct mfs_attr *attr)
{
    return mfs_timespec_cmp(attr->atime, attr->mtime) <= 0 ||
           mfs_timespec_cmp(attr->atime, attr->ctime) <= 0 ||
           mfs_clock_real().tv_sec - attr->atime.tv_sec >= ATIME_DAY;
}

void mfs_meta_touch_atime(struct mfs_meta *meta, uint64_t ino, struct mfs_attr *attr)
{
    struct timespec now = mfs_clock_real();

    if (!mfs_meta_atime_is_due(attr))
        return;
    attr->atime = now;
    mfs_filecache_atime(meta->files, ino, now);
    mfs_opens_read(meta, ino, now);
}

int mfs_meta_readlink(struct mfs_meta *meta, uint64_t ino, char *buf, size_t cap)
{
    struct mfs_bytes record;
    struct mfs_attr attr;
    struct mfs_call c;
    const char *tail;
    size_t n;
    int rc = (int)mfs_contents_whole(meta->contents, ino, TARGET, buf, cap);

    if (rc >= 0)
        return rc;
    rc = mfs_meta_record(meta, ino, &c, &record);
    if (!rc)
        rc = mfs_meta_record_decode(record.p, record.n, ino, &attr, &tail, &n);
    if (!rc && !S_ISLNK(attr.mode))
        rc = -EINVAL;
    if (!rc) {
        rc = (int)(n < cap ? n : cap);
        memcpy(buf, tail, (size_t)rc);
    }
    mfs_call_fini(&c);
    return rc;
}

void mfs_meta_freed(struct mfs_meta *meta, uint64_t ino, struct mfs_bytes status)
{
    struct mfs_ino_arg field = mfs_ino_arg(ino);
    struct mfs_call c;

    if (status.n && status.p[0] == MFS_UNREF_STAYS)
        mfs_closes_flush_of(meta, ino);
    if (!status.p || status.n < 9 || status.p[0] != MFS_UNREF_STRIPES || !meta->opts.reap ||
        meta->opts.reap(meta->opts.arg, ino, mfs_get_le64(status.p + 1)))
        return;
    mfs_call_command(&c, "HDEL");
    mfs_args_str(&c.args, "#reap");
    mfs_args_bin(&c.args, field.b, sizeof field.b);
    mfs_call_post(meta, &c, mfs_placement_home(ino));
}
