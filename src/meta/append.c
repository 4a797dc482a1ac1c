/* O_APPEND: the end of the file is taken at its home, in one step for all clients. */
#include "meta/notices.h"

#include <errno.h>
#include <string.h>

/* Data are sent along only where they are likely to fit into stripe 0, which the size that this
 * client saw last tells; to be wrong is harmless. */
static bool likely_small(struct mfs_meta *meta, uint64_t ino, size_t len)
{
    struct mfs_hint *hint = &meta->hints[ino % MFS_HINTS];
    uint64_t size = hint->ino == ino ? hint->size : 0;

    return len <= meta->stripe_size && size <= meta->stripe_size - len;
}

static void remember(struct mfs_meta *meta, const struct mfs_attr *attr)
{
    struct mfs_hint *hint = &meta->hints[attr->ino % MFS_HINTS];

    hint->size = attr->size;
    hint->ino = attr->ino;
}

int mfs_meta_append(struct mfs_meta *meta, uint64_t ino, const void *data, size_t len,
                    uint64_t *off, bool *stored, uint64_t *old_version, struct mfs_attr *attr)
{
    struct mfs_ino_arg key = mfs_ino_arg(ino), sid = mfs_ino_arg(meta->sid);
    struct mfs_time_arg time = mfs_now_arg();
    int64_t asked = mfs_clock_mono();
    struct mfs_bytes text, others;
    struct mfs_call c;
    int rc;

    mfs_call_function(&c, "mfs_append");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_bin(&c.args, time.b, sizeof time.b);
    mfs_args_int(&c.args, (int64_t)len);
    mfs_args_int(&c.args, meta->stripe_size);
    mfs_args_bin(&c.args, sid.b, sizeof sid.b);
    if (likely_small(meta, ino, len))
        mfs_args_bin(&c.args, data, len);
    rc = mfs_call_run(meta, &c, mfs_placement_home(ino));
    if (rc)
        goto out;
    text = mfs_call_text(&c);
    if (!text.p || !text.n) {
        rc = -EIO;
        goto out;
    }
    *stored = text.p[--text.n] == '1';
    others = mfs_record_rest(&text);
    rc = mfs_meta_take(meta, ino, text, asked, attr);
    if (rc)
        goto out;
    mfs_notices_send(meta, ino, attr->version, others);
    *off = attr->size - len;
    if (old_version)
        *old_version = attr->version - 1;
    remember(meta, attr);
out:
    mfs_call_fini(&c);
    return rc;
}

int mfs_meta_unappend(struct mfs_meta *meta, uint64_t ino, uint64_t off, size_t len)
{
    struct mfs_ino_arg key = mfs_ino_arg(ino);
    struct mfs_time_arg time = mfs_now_arg();
    struct mfs_call c;
    int rc;

    mfs_call_function(&c, "mfs_unappend");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_bin(&c.args, time.b, sizeof time.b);
    mfs_args_int(&c.args, (int64_t)off);
    mfs_args_int(&c.args, (int64_t)len);
    rc = mfs_call_run(meta, &c, mfs_placement_home(ino));
    mfs_call_fini(&c);
    return rc;
}
