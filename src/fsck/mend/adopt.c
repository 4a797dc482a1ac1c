/* An inode that no name leads to gets one in /lost+found, as other file systems' fsck does it. What
 * holds nothing goes again at once, by the same steps as for any user. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "fsck/mend/adopt.h"
#include "meta/call.h"
#include "meta/coherence/revoke.h"
#include "meta/internal.h"
#include "meta/ops/ops.h"
#include "partition/protocol.h"

#define LOST_FOUND "lost+found"
#define NAME_MAX_  24
#define ATTEMPTS   8

int mfs_mend_record(struct mfs_meta *meta, uint64_t ino, const char *old, const char *new, size_t n)
{
    struct mfs_ino_arg key = mfs_ino_arg(ino);
    struct mfs_call c;
    int rc;

    mfs_call_command(&c, "mfs_fsck_record");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_bin(&c.args, old, n);
    mfs_args_bin(&c.args, new, n);
    rc = mfs_call_run(meta, &c, mfs_placement_home(ino));
    if (!rc && mfs_reply_int(c.cmd.reply) != 1)
        rc = -ESTALE;
    mfs_call_fini(&c);
    return rc;
}

/* Changes a record, whatever it is by now; the change is made to a copy. */
typedef void edit_fn(char *rec, uint64_t arg);

static int edit_once(struct mfs_meta *meta, uint64_t ino, edit_fn *edit, uint64_t arg)
{
    struct mfs_bytes rec;
    struct mfs_call c;
    char *new;
    int rc = mfs_meta_record(meta, ino, &c, &rec);

    if (!rc && rec.n < MFS_RECORD_FIXED)
        rc = -EIO;
    new = rc ? NULL : malloc(rec.n);
    if (!rc && !new)
        rc = -ENOMEM;
    if (!rc) {
        memcpy(new, rec.p, rec.n);
        edit(new, arg);
        rc = mfs_mend_record(meta, ino, rec.p, new, rec.n);
        rc = rc == -ESTALE ? -EAGAIN : rc;
    }
    free(new);
    mfs_call_fini(&c);
    return rc;
}

static int edit_record(struct mfs_meta *meta, uint64_t ino, edit_fn *edit, uint64_t arg)
{
    int rc = -EAGAIN;

    for (int i = 0; i < ATTEMPTS && rc == -EAGAIN; i++)
        rc = edit_once(meta, ino, edit, arg);
    return rc;
}

static void count_one(char *rec, uint64_t arg)
{
    (void)arg;
    mfs_put_le32(rec + MFS_REC_NLINK, 1);
    rec[MFS_REC_FLAGS] &= (char)~MFS_RECORD_REVOKE_PENDING;
}

static void count_less(char *rec, uint64_t arg)
{
    (void)arg;
    mfs_put_le32(rec + MFS_REC_NLINK, mfs_get_le32(rec + MFS_REC_NLINK) - 1);
}

static void belong_to(char *rec, uint64_t parent)
{
    mfs_put_be64(rec + MFS_RECORD_FIXED, parent);
    if (mfs_get_le32(rec + MFS_REC_NLINK) == 0)
        mfs_put_le32(rec + MFS_REC_NLINK, 2);
}

static int lost_found(struct mfs_meta *meta, uint64_t *ino)
{
    struct mfs_new new = {.mode = S_IFDIR | 0700};
    struct mfs_attr attr;
    int rc = mfs_meta_lookup(meta, MFS_ROOT_INO, LOST_FOUND, &attr);

    if (rc == -ENOENT)
        rc = mfs_meta_mknod(meta, MFS_ROOT_INO, LOST_FOUND, &new, &attr);
    if (rc == -EEXIST) /* made meanwhile */
        rc = mfs_meta_lookup(meta, MFS_ROOT_INO, LOST_FOUND, &attr);
    if (!rc && !S_ISDIR(attr.mode))
        rc = -ENOTDIR;
    *ino = attr.ino;
    return rc;
}

/* The count is right before the name is there, and after a death in between too high at most. */
static int adopt_file(struct mfs_meta *meta, const struct mfs_attr *attr, uint64_t dir,
                      const char *name)
{
    struct mfs_attr linked;
    int rc = edit_record(meta, attr->ino, count_one, 0);

    if (!rc)
        rc = mfs_meta_link(meta, attr->ino, dir, name, &linked);
    if (!rc)
        rc = edit_record(meta, attr->ino, count_less, 0);
    if (rc)
        return rc;
    mfs_leases_file_changed_at_home(meta, attr->ino, NULL);
    if (S_ISREG(attr->mode) && (attr->size > 0 || attr->data_end > 0))
        return 0;
    return mfs_meta_unlink(meta, dir, name);
}

int mfs_mend_put_name(struct mfs_meta *meta, uint64_t dir, const char *name, size_t len,
                      const char entry[MFS_ENTRY_LEN])
{
    struct mfs_ino_arg key = mfs_ino_arg(dir), sid = mfs_ino_arg(meta->sid);
    uint32_t part = mfs_placement_entry(dir, name, len, meta->nparts);
    struct mfs_bytes text;
    struct mfs_call c;
    int rc = mfs_meta_spread(meta, dir, part);

    if (rc)
        return rc;
    mfs_call_command(&c, "mfs_put");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_bin(&c.args, name, len);
    mfs_args_bin(&c.args, entry, MFS_ENTRY_LEN);
    mfs_args_bin(&c.args, sid.b, sizeof sid.b);
    rc = mfs_call_run(meta, &c, part);
    text = mfs_call_text(&c);
    if (!rc && (text.n < 2 || text.p[0] != MFS_ANSWER_DONE))
        rc = -EBUSY;
    if (!rc)
        mfs_leases_name_added(meta, dir, part, (struct mfs_bytes){text.p + 2, text.n - 2});
    mfs_call_fini(&c);
    return rc;
}

static int count_subdir(struct mfs_meta *meta, uint64_t dir)
{
    struct mfs_ino_arg key = mfs_ino_arg(dir);
    struct mfs_time_arg time = mfs_now_arg();
    struct mfs_call c;
    int rc;

    mfs_call_command(&c, "mfs_nlink");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_int(&c.args, 1);
    mfs_args_bin(&c.args, time.b, sizeof time.b);
    mfs_args_int(&c.args, -1);
    rc = mfs_call_run(meta, &c, mfs_placement_home(dir));
    mfs_call_fini(&c);
    return rc;
}

static int adopt_directory(struct mfs_meta *meta, const struct mfs_attr *attr, uint64_t dir,
                           const char *name)
{
    char entry[MFS_ENTRY_LEN];
    int rc = count_subdir(meta, dir);

    mfs_entry_encode(attr->ino, S_IFDIR, entry);
    if (!rc)
        rc = mfs_mend_put_name(meta, dir, name, strlen(name), entry);
    if (!rc)
        rc = edit_record(meta, attr->ino, belong_to, dir);
    if (rc)
        return rc;
    mfs_leases_changed(meta, attr->ino);
    rc = mfs_meta_rmdir(meta, dir, name);
    return rc == -ENOTEMPTY ? 0 : rc;
}

int mfs_adopt(struct mfs_meta *meta, uint64_t ino)
{
    char name[NAME_MAX_];
    struct mfs_attr attr;
    uint64_t dir;
    int rc = mfs_meta_getattr(meta, ino, &attr);

    if (!rc)
        rc = lost_found(meta, &dir);
    if (rc)
        return rc;
    snprintf(name, sizeof name, "#%" PRIu64, ino);
    return S_ISDIR(attr.mode) ? adopt_directory(meta, &attr, dir, name)
                              : adopt_file(meta, &attr, dir, name);
}
