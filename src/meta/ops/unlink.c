/* Names of files going away. The name goes first, then the inode's count of names: a crash between
 * them leaks the inode, it never leaves a name without one. */
#include "meta/deferred/unknown_outcomes.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/file.h"
#include "meta/cache/cache.h"
#include "meta/call.h"
#include "meta/coherence/revoke.h"
#include "meta/deferred/deferred.h"
#include "meta/ops/ops.h"
#include "meta/session/session.h"
#include "meta/session/unregistered_opens.h"
#include "meta/txn/txn.h"
#include "partition/protocol.h"

struct mfs_bytes mfs_meta_unref_answer(struct mfs_bytes answer, struct mfs_bytes *holders)
{
    size_t n = answer.n ? (unsigned char)answer.p[0] : 0;

    if (answer.n < 1 + n)
        return *holders = (struct mfs_bytes){NULL, 0};
    *holders = (struct mfs_bytes){answer.p + 1 + n, answer.n - 1 - n};
    return (struct mfs_bytes){answer.p + 1, n};
}

/* All leases are revoked, and all opens registered. (Of clients on a node that is lost that is not
 * so sure: then housekeeping does it, when they are back or dead.) */
static void end_revoking(struct mfs_meta *meta, uint64_t ino)
{
    struct mfs_ino_arg key = mfs_ino_arg(ino);
    struct mfs_call c;

    mfs_call_command(&c, "mfs_told");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_int(&c.args, meta->stripe_size);
    if (!mfs_call_run(meta, &c, mfs_placement_home(ino)))
        mfs_meta_freed(meta, ino, mfs_call_text(&c));
    mfs_call_fini(&c);
}

/* Without leases the file would be freed. A client that has not answered, or can't register what it
 * has open, may hold it by nothing else; housekeeping comes back to it long before they end. */
static void keep_leases(struct mfs_meta *meta, uint64_t ino)
{
    char key[MFS_KEY_INO_LEN];
    struct mfs_call c;

    mfs_key_ino(key, 'Y', ino);
    mfs_call_command(&c, "PEXPIRE");
    mfs_args_bin(&c.args, key, sizeof key);
    mfs_args_int(&c.args, MFS_LEASE_MS);
    c.cmd.idempotent = true;
    mfs_call_run(meta, &c, mfs_placement_home(ino));
    mfs_call_fini(&c);
}

/* It has other names, and this client goes on to know it. */
static bool keep_known(struct mfs_meta *meta, uint64_t ino, int64_t asked, struct mfs_bytes status,
                       const struct mfs_bytes *holders, size_t n)
{
    struct mfs_bytes record = {status.p + 1, status.n - 1};
    struct mfs_attr attr;

    if (status.n <= MFS_RECORD_FIXED || status.p[0] != MFS_UNREF_STAYS ||
        !S_ISREG(mfs_get_le32(record.p + MFS_REC_MODE)) ||
        mfs_meta_take(meta, ino, record, asked, &attr))
        return false;
    mfs_leases_file_set(meta, &attr, asked, holders, n);
    return true;
}

void mfs_meta_unrefed(struct mfs_meta *meta, uint64_t ino, int64_t asked, struct mfs_bytes status,
                      const struct mfs_bytes *holders, size_t n)
{
    bool all;

    mfs_meta_freed(meta, ino, status);
    if (keep_known(meta, ino, asked, status, holders, n))
        return;
    all = mfs_leases_file_changed(meta, ino, holders, n);
    if (status.n == 0 || status.p[0] != MFS_UNREF_REVOKE_PENDING)
        return;
    if (all)
        end_revoking(meta, ino);
    else
        keep_leases(meta, ino);
}

void mfs_meta_revoke_orphan(struct mfs_meta *meta, uint64_t ino)
{
    bool all = false;

    mfs_unregistered_removing(meta->unregistered);
    if (!mfs_unregistered_register(meta->unregistered, mfs_placement_home(ino)))
        mfs_leases_file_changed_at_home(meta, ino, &all);
    if (all)
        end_revoking(meta, ino);
    else
        keep_leases(meta, ino);
    mfs_unregistered_removed(meta->unregistered);
}

static void take_unref(struct mfs_meta *meta, uint64_t ino, int64_t asked, struct mfs_bytes answer,
                       struct mfs_bytes of_name)
{
    struct mfs_bytes holders[2] = {of_name};
    struct mfs_bytes status = mfs_meta_unref_answer(answer, &holders[1]);

    mfs_meta_unrefed(meta, ino, asked, status, holders, 2);
}

int mfs_meta_unref(struct mfs_meta *meta, uint64_t ino, const struct mfs_time_arg *time,
                   const char *txn, struct mfs_bytes holders)
{
    int64_t asked = mfs_clock_mono();
    struct mfs_ino_arg key = mfs_ino_arg(ino), sid = mfs_ino_arg(meta->sid);
    struct mfs_call c;
    int rc = mfs_unregistered_register(meta->unregistered, mfs_placement_home(ino));

    if (rc)
        return rc; /* the count is noted, for housekeeping */
    mfs_call_command(&c, "mfs_unref");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_bin(&c.args, time->b, sizeof time->b);
    mfs_args_int(&c.args, meta->stripe_size);
    mfs_args_bin(&c.args, sid.b, sizeof sid.b);
    mfs_args_bin(&c.args, txn, MFS_TXN_LEN);
    rc = mfs_call_run(meta, &c, mfs_placement_home(ino));
    if (!rc)
        take_unref(meta, ino, asked, mfs_call_text(&c), holders);
    mfs_call_fini(&c);
    return rc;
}

/* An unlink under way. */
struct removal {
    struct mfs_meta *meta;
    uint64_t parent;
    const char *name;
    uint32_t part;
    struct mfs_time_arg time;
    int64_t begun; /* mono */
    char txn[MFS_TXN_LEN];
    const struct mfs_attr *seen; /* NULL: whatever it is */
    struct mfs_backoff backoff;
};

/* The name is gone, its inode's home does not know yet; `holders` of a lease of the name. */
static int finish_elsewhere(struct removal *r, uint64_t ino, struct mfs_bytes holders)
{
    int rc = mfs_meta_unref(r->meta, ino, &r->time, r->txn, holders);

    if (!rc)
        mfs_link_counts_done(r->meta, r->txn, r->begun, r->part, mfs_placement_home(ino));
    else
        mfs_leases_file_changed(r->meta, ino, &holders, 1);
    mfs_outcomes_attributes(r->meta, ino, rc); /* the name is known here no more */
    return rc;
}

/* The answer of mfs_unlink: '\0' freed or counted here, '\1' elsewhere, '\3' a rename in the way.
 */
static int finish(struct removal *r, struct mfs_bytes text)
{
    struct mfs_entry e;
    int rc;

    if (!text.p || text.n < 2)
        return -EIO;
    switch (text.p[0]) {
    case MFS_ANSWER_DONE:
        return 0;
    case MFS_ANSWER_ELSEWHERE:
        if (text.n < 9)
            return -EIO;
        mfs_filecache_drop_name(r->meta->files, r->parent, r->name);
        return finish_elsewhere(r, mfs_get_be64(text.p + 1),
                                (struct mfs_bytes){text.p + 9, text.n - 9});
    case MFS_ANSWER_INTENT:
        rc = mfs_entry_decode(text.p + 1, text.n - 1, &e);
        if (!rc)
            rc = mfs_intent_clear(r->meta, r->parent, r->name, &e, &r->backoff);
        return rc ? rc : -EAGAIN;
    default:
        return -EIO;
    }
}

static int attempt(struct removal *r)
{
    struct mfs_ino_arg dir = mfs_ino_arg(r->parent), sid = mfs_ino_arg(r->meta->sid), ino;
    int64_t asked = mfs_clock_mono();
    struct mfs_time_arg ctime;
    struct mfs_bytes text;
    struct mfs_call c;
    char prefix[2];
    int rc;

    mfs_part_arg(r->part, prefix);
    mfs_call_command(&c, "mfs_unlink");
    mfs_args_bin(&c.args, dir.b, sizeof dir.b);
    mfs_args_str(&c.args, r->name);
    mfs_args_bin(&c.args, prefix, sizeof prefix);
    mfs_args_bin(&c.args, r->time.b, sizeof r->time.b);
    mfs_args_int(&c.args, r->meta->stripe_size);
    mfs_args_bin(&c.args, sid.b, sizeof sid.b);
    mfs_args_bin(&c.args, r->txn, sizeof r->txn);
    if (r->seen) {
        ino = mfs_ino_arg(r->seen->ino);
        ctime = mfs_time_arg(r->seen->ctime);
        mfs_args_bin(&c.args, ino.b, sizeof ino.b);
        mfs_args_bin(&c.args, ctime.b, sizeof ctime.b);
    }
    rc = mfs_call_run(r->meta, &c, r->part);
    if (rc)
        goto out;
    text = mfs_call_text(&c);
    rc = finish(r, text);
    if (!rc && text.p[0] == MFS_ANSWER_DONE && text.n > 9) {
        mfs_filecache_drop_name(r->meta->files, r->parent, r->name);
        take_unref(r->meta, mfs_get_be64(text.p + 1), asked,
                   (struct mfs_bytes){text.p + 9, text.n - 9}, (struct mfs_bytes){0});
    }
    /* Again: until the file had changed, an answer from before could bring the name back. */
    if (!rc)
        mfs_filecache_drop_name(r->meta->files, r->parent, r->name);
out:
    mfs_call_fini(&c);
    return rc;
}

static int unlink_name(struct mfs_meta *meta, uint64_t parent, const char *name,
                       const struct mfs_attr *seen)
{
    struct timespec now = mfs_clock_real();
    struct removal r = {.meta = meta,
                        .parent = parent,
                        .name = name,
                        .time = mfs_time_arg(now),
                        .seen = seen,
                        .begun = mfs_clock_mono()};
    size_t len = strlen(name);
    int64_t asked;
    int rc;

    if (len > MFS_NAME_LEN_MAX)
        return -ENAMETOOLONG;
    if (!len || !strcmp(name, ".") || !strcmp(name, ".."))
        return len ? -EISDIR : -ENOENT;
    rc = mfs_random(r.txn, sizeof r.txn);
    if (rc)
        return rc;
    r.part = mfs_placement_entry(parent, name, len, meta->nparts);
    mfs_unregistered_removing(meta->unregistered);
    rc = mfs_unregistered_register(meta->unregistered, r.part);
    if (!rc) {
        do {
            asked = mfs_clock_mono();
            rc = attempt(&r);
        } while (rc == -EAGAIN);
    }
    mfs_unregistered_removed(meta->unregistered);
    mfs_outcomes_removed(meta, parent, name, rc);
    if (!rc) {
        mfs_shards_removed(meta->shards, parent, r.part, name, asked);
        mfs_parents_touch(meta, parent, now);
    }
    return rc;
}

int mfs_meta_unlink(struct mfs_meta *meta, uint64_t parent, const char *name)
{
    return unlink_name(meta, parent, name, NULL);
}

int mfs_meta_unlink_seen(struct mfs_meta *meta, uint64_t parent, const char *name,
                         const struct mfs_attr *seen)
{
    return unlink_name(meta, parent, name, seen);
}
