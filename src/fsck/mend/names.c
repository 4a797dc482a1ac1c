/* Mending names: entries, shards, link counts, parents. */
#include "fsck/mend/mend_impl.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "fsck/mend/adopt.h"
#include "meta/cache/cache.h"
#include "meta/call.h"
#include "meta/coherence/revoke.h"
#include "meta/internal.h"
#include "meta/ops/ops.h"

#define PARENT_AT MFS_RECORD_FIXED

/* An entry, as it was, becomes another; n 0: it goes. */
static int change_entry(struct mfs_mender *m, uint32_t part, uint64_t dir, const char *name,
                        size_t len, struct mfs_bytes old, struct mfs_bytes new)
{
    struct mfs_ino_arg key = mfs_ino_arg(dir);
    struct mfs_call c;

    mfs_call_command(&c, "mfs_fsck_entry");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_bin(&c.args, name, len);
    mfs_args_bin(&c.args, old.p, old.n);
    mfs_args_bin(&c.args, new.p, new.n);
    return mfs_mend_changed(m, &c, part);
}

static struct mfs_bytes entry_bytes(uint64_t ino, uint64_t type, char out[MFS_ENTRY_LEN])
{
    mfs_entry_encode(ino, (uint32_t)type << 12, out);
    return (struct mfs_bytes){out, MFS_ENTRY_LEN};
}

static int drop_entry(struct mfs_mender *m, const struct mfs_census *c,
                      const struct mfs_seen_entry *e)
{
    char old[MFS_ENTRY_LEN];

    return change_entry(m, e->part, e->dir, mfs_census_name(c, e->name), e->len,
                        entry_bytes(e->ino, e->type, old), (struct mfs_bytes){"", 0});
}

int mfs_mend_dangling(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    char old[MFS_ENTRY_LEN];
    int rc = mfs_mend_absent(m, f->ino);

    (void)c;
    return rc ? rc
              : change_entry(m, f->part, f->dir, f->name, f->name_len,
                             entry_bytes(f->ino, f->a, old), (struct mfs_bytes){"", 0});
}

int mfs_mend_type(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    char old[MFS_ENTRY_LEN], new[MFS_ENTRY_LEN];

    (void)c;
    return change_entry(m, f->part, f->dir, f->name, f->name_len, entry_bytes(f->ino, f->a, old),
                        entry_bytes(f->ino, f->b, new));
}

/* First where it belongs, then not where it was. */
int mfs_mend_name_place(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    char entry[MFS_ENTRY_LEN];
    struct mfs_bytes bytes = entry_bytes(f->ino, f->a, entry);
    int rc = mfs_mend_put_name(m->meta, f->dir, f->name, f->name_len, entry);

    (void)c;
    return rc ? rc
              : change_entry(m, f->part, f->dir, f->name, f->name_len, bytes,
                             (struct mfs_bytes){"", 0});
}

int mfs_mend_bit(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    (void)c;
    mfs_dircache_drop(m->meta->dirs, f->ino);
    return mfs_meta_spread(m->meta, f->ino, f->part);
}

static int drop_names(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    int rc = 0;

    for (size_t i = 0; i < c->entries.n && !rc; i++) {
        const struct mfs_seen_entry *e = mfs_census_entry(c, i);

        if (e->dir == f->ino && e->part == f->part)
            rc = drop_entry(m, c, e);
    }
    return rc;
}

/* Names that can't be reached: what they name gets others if it has none left. */
int mfs_mend_shard(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    static const char none[sizeof f->txn];
    char key[MFS_KEY_INO_LEN];
    int rc = mfs_mend_absent(m, f->ino);

    if (!rc && f->a)
        rc = drop_names(m, c, f);
    if (rc || (f->a && !memcmp(f->txn, none, sizeof none)))
        return rc;
    mfs_key_ino(key, 'D', f->ino);
    if (!memcmp(f->txn, none, sizeof none))
        return mfs_mend_expire(m, f->part, key, sizeof key, 120);
    return change_entry(m, f->part, f->ino, "", 0, (struct mfs_bytes){f->txn, sizeof f->txn},
                        (struct mfs_bytes){"", 0});
}

int mfs_mend_tomb(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    char key[MFS_KEY_INO_LEN];
    struct mfs_call call;
    int rc;

    (void)c;
    mfs_key_ino(key, 'D', f->ino);
    mfs_call_command(&call, "PERSIST");
    mfs_args_bin(&call.args, key, sizeof key);
    rc = mfs_mend_done(m, &call, f->part);
    if (!rc)
        rc = change_entry(m, f->part, f->ino, "", 0, (struct mfs_bytes){"X", 1},
                          (struct mfs_bytes){"", 0});
    return rc == -ESTALE ? 0 : rc;
}

int mfs_mend_nameless(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    const struct mfs_seen_inode *seen = mfs_census_inode(c, f->ino);
    struct mfs_bytes rec;
    struct mfs_call call;
    int rc = mfs_meta_record(m->meta, f->ino, &call, &rec);

    if (!rc && (!seen || mfs_census_digest(rec.p, rec.n) != seen->digest))
        rc = -ESTALE;
    mfs_call_fini(&call);
    return rc ? rc : mfs_adopt(m->meta, f->ino);
}

int mfs_mend_links(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    char count[4];
    int rc;

    mfs_put_le32(count, (uint32_t)f->a);
    rc = mfs_mend_splice(m, c, f->ino, MFS_REC_NLINK, count, sizeof count);
    if (!rc && f->fault == MFS_FAULT_DIR_LINKS)
        mfs_leases_changed(m->meta, f->ino);
    else if (!rc)
        mfs_leases_file_changed_at_home(m->meta, f->ino, NULL);
    return rc;
}

int mfs_mend_parent(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    char parent[8];
    int rc;

    mfs_put_be64(parent, f->a);
    rc = mfs_mend_splice(m, c, f->ino, PARENT_AT, parent, sizeof parent);
    if (!rc)
        mfs_leases_changed(m->meta, f->ino);
    return rc;
}

/* The one in the directory that is recorded stays, or the first. */
int mfs_mend_two_names(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    size_t first = mfs_census_first_entry(c, f->ino), keep = first;
    int rc = 0;

    for (size_t i = first; i < c->entries.n && mfs_census_entry(c, i)->ino == f->ino; i++)
        if (mfs_census_entry(c, i)->dir == f->a)
            keep = i;
    for (size_t i = first; !rc && i < c->entries.n && mfs_census_entry(c, i)->ino == f->ino; i++)
        if (i != keep)
            rc = drop_entry(m, c, mfs_census_entry(c, i));
    return rc;
}

/* Another name first; then the one that made the cycle goes. */
int mfs_mend_cycle(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    int rc = mfs_mend_nameless(m, c, f);

    return rc ? rc : drop_entry(m, c, mfs_census_entry(c, mfs_census_first_entry(c, f->ino)));
}
