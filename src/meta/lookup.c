/* From a name to an inode. */
#include "meta/internal.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* An entry whose inode is gone for good (a crash left it) is in the way of new ones. */
static void drop_entry(struct mfs_meta *meta, uint64_t parent, const char *name, uint64_t ino,
                       uint32_t part)
{
    struct mfs_ino_arg dir = mfs_ino_arg(parent), target = mfs_ino_arg(ino);
    struct mfs_call c;

    mfs_call_function(&c, "mfs_drop");
    mfs_args_bin(&c.args, dir.b, sizeof dir.b);
    mfs_args_str(&c.args, name);
    mfs_args_bin(&c.args, target.b, sizeof target.b);
    mfs_call_run(meta, &c, part);
    mfs_call_fini(&c);
}

struct found {
    bool leased;
    struct mfs_entry entry;
    struct mfs_bytes record; /* p NULL: its home is elsewhere; n 0: missing there */
};

/* Asks the entry's partition. *c holds the answer. */
static int ask(struct mfs_meta *meta, uint64_t parent, const char *name, uint32_t part,
               struct mfs_call *c, struct found *f)
{
    struct mfs_ino_arg dir = mfs_ino_arg(parent), sid;
    struct mfs_bytes text;
    char prefix[2];
    size_t n;
    int rc;

    mfs_part_arg(part, prefix);
    mfs_call_command(c, "mfs_lookup");
    c->cmd.idempotent = true;
    mfs_args_bin(&c->args, dir.b, sizeof dir.b);
    mfs_args_str(&c->args, name);
    mfs_args_bin(&c->args, prefix, sizeof prefix);
    mfs_lease_arg(meta, c, &sid);
    rc = mfs_call_run(meta, c, part);
    if (rc)
        return rc;
    text = mfs_call_text(c);
    if (!text.p)
        return -ENOENT;
    n = text.n > 1 ? (unsigned char)text.p[1] : 0;
    if (text.n < 2 + n || mfs_entry_decode(text.p + 2, n, &f->entry))
        return -EIO;
    f->leased = text.p[0] == 1;
    f->record = (struct mfs_bytes){text.p + 2 + n, text.n - 2 - n};
    if (mfs_placement_home(f->entry.ino) != part)
        f->record.p = NULL;
    return 0;
}

/* One attempt. -EAGAIN: the name changed under it; -ESTALE: there is no inode *ino, which the entry
 * names. */
static int look(struct mfs_meta *meta, uint64_t parent, const char *name, uint32_t part,
                struct mfs_attr *attr, uint64_t *ino)
{
    int64_t asked = mfs_clock_mono();
    struct mfs_call c;
    struct found f = {0};
    int rc = ask(meta, parent, name, part, &c, &f);

    if (rc)
        goto out;
    *ino = f.entry.ino;
    if (f.entry.intent) {
        uint64_t before = f.entry.ino;

        rc = mfs_intent_read(meta, parent, name, &f.entry);
        if (rc < 0)
            goto out;
        rc = f.entry.ino ? 0 : -ENOENT;
        if (rc)
            goto out;
        *ino = f.entry.ino;
        if (*ino != before)
            f.record.p = NULL;
    }
    if (!f.record.p) {
        rc = mfs_meta_getattr(meta, *ino, attr);
        if (!rc && attr->nlink == 0)
            rc = -EAGAIN; /* its last name has just gone */
    } else if (f.record.n == 0) {
        drop_entry(meta, parent, name, *ino, part);
        rc = -ENOENT;
    } else {
        rc = mfs_meta_take(meta, *ino, f.record, asked, attr);
        if (!rc && f.leased && S_ISREG(attr->mode))
            mfs_filecache_put(meta->files, parent, name, attr, asked);
        else if (f.leased)
            mfs_dircache_lease(meta->dirs, *ino, asked);
    }
    if (!rc)
        attr->leased =
            f.leased && S_ISDIR(attr->mode) && !mfs_dircache_revoked(meta->dirs, *ino, asked);
out:
    mfs_call_fini(&c);
    return rc;
}

static int lookup_dots(struct mfs_meta *meta, uint64_t dir, const char *name, struct mfs_attr *attr)
{
    int rc = mfs_meta_getattr(meta, dir, attr);

    if (rc || name[1] == 0)
        return rc;
    return mfs_meta_getattr(meta, attr->parent, attr);
}

int mfs_meta_lookup(struct mfs_meta *meta, uint64_t parent, const char *name, struct mfs_attr *attr)
{
    struct mfs_patience patience = {0};
    uint64_t ino = 0, last = 0;
    size_t len = strlen(name);
    uint32_t part;
    int rc;

    if (!strcmp(name, ".") || !strcmp(name, ".."))
        return lookup_dots(meta, parent, name, attr);
    if (len > MFS_NAME_LEN_MAX)
        return -ENAMETOOLONG;
    if (mfs_leases_name(meta, parent, name, attr))
        return 0;
    part = mfs_placement_entry(parent, name, len, meta->nparts);
    if (mfs_leases_absent(meta, parent, part, name))
        return -ENOENT;
    for (;;) {
        rc = look(meta, parent, name, part, attr, &ino);
        if (rc != -EAGAIN && rc != -ESTALE)
            return rc;
        /* The entry names the same inode again, yet it is gone: it will not come back. */
        if (rc == -ESTALE && ino == last) {
            drop_entry(meta, parent, name, ino, part);
            return -ENOENT;
        }
        last = rc == -ESTALE ? ino : 0;
        if (!mfs_patience_wait(meta, &patience))
            return -EBUSY;
    }
}
