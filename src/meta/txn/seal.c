/* Seals: how a directory is held empty while it loses its name. A seal names the transaction that
 * wants it and the partition that decides; the shards of a directory that is gone are tombstones.
 */
#include "meta/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"
#include "meta/cache/cache.h"
#include "meta/call.h"
#include "meta/session/session.h"
#include "meta/txn/txn.h"
#include "partition/protocol.h"

static void unseal(struct mfs_meta *meta, uint64_t dir, const char *seal, const uint32_t *parts,
                   size_t n)
{
    struct mfs_ino_arg key = mfs_ino_arg(dir);
    struct mfs_calls b;

    b.n = 0;
    for (size_t i = 0; i < n; i++) {
        struct mfs_call *c = mfs_calls_add(&b, "mfs_unseal", parts[i]);

        mfs_args_bin(&c->args, key.b, sizeof key.b);
        mfs_args_bin(&c->args, seal, MFS_SEAL_LEN);
    }
    mfs_calls_run(meta, &b);
    mfs_calls_fini(&b);
}

/* What this seal was set for was not finished: ends that, and takes the seal away. */
static int end_seal(struct mfs_meta *meta, uint64_t dir, uint32_t part, const char *seal)
{
    uint32_t parts[] = {part, mfs_placement_home(dir)};
    uint32_t decider = mfs_get_be16(seal + MFS_TXN_LEN);
    int rc = mfs_txn_end(meta, seal, decider);

    if (rc < 0)
        return rc;
    if (rc > 0)
        return -ENOENT;
    mfs_info("meta", "directory %" PRIx64 ": took away a seal that was left behind", dir);
    unseal(meta, dir, seal, parts, parts[0] == parts[1] ? 1 : 2);
    return 0;
}

int mfs_seal_met(struct mfs_meta *meta, uint64_t dir, uint32_t part, struct mfs_bytes seal,
                 struct mfs_backoff *backoff)
{
    struct mfs_attr attr;
    int rc;

    mfs_dircache_drop(meta->dirs, dir);
    if (seal.n != MFS_SEAL_LEN)
        return -ENOENT;
    rc = mfs_meta_getattr(meta, dir, &attr);
    if (rc == -ESTALE || (!rc && attr.nlink == 0))
        return -ENOENT;
    if (rc)
        return rc;
    if (mfs_backoff_wait(meta, backoff))
        return 0;
    *backoff = (struct mfs_backoff){0};
    return end_seal(meta, dir, part, seal.p);
}

int mfs_leftover_met(struct mfs_meta *meta, uint64_t dir, struct mfs_bytes leftover,
                     struct mfs_backoff *backoff)
{
    char name[MFS_NAME_LEN_MAX + 1];
    struct mfs_entry e;
    size_t n = leftover.n ? (unsigned char)leftover.p[0] : 0;
    int rc = -EIO;

    if (leftover.n > 1 + n)
        rc = mfs_entry_decode(leftover.p + 1 + n, leftover.n - 1 - n, &e);
    if (rc)
        return rc;
    memcpy(name, leftover.p + 1, n);
    name[n] = 0;
    return mfs_intent_clear(meta, dir, name, &e, backoff);
}

int mfs_seal_bits(struct mfs_sealed *s, struct mfs_bytes record)
{
    uint32_t home = mfs_placement_home(s->ino);
    size_t n;

    if (record.n < MFS_RECORD_DIR)
        return -EIO;
    n = record.n - MFS_RECORD_DIR;
    free(s->bits);
    s->bits = calloc(1, n > home / 8 ? n : home / 8 + 1);
    if (!s->bits)
        return -ENOMEM;
    memcpy(s->bits, record.p + MFS_RECORD_DIR, n);
    s->nbits = n > home / 8 ? n : home / 8 + 1;
    s->bits[home / 8] |= (unsigned char)(1U << home % 8);
    return 0;
}

void mfs_seal_done(struct mfs_sealed *s)
{
    free(s->bits);
    s->bits = NULL;
    s->nbits = 0;
    s->ino = 0;
}

void mfs_seal_undo(struct mfs_meta *meta, struct mfs_sealed *s)
{
    struct mfs_ino_arg key = mfs_ino_arg(s->ino);
    struct mfs_call c;

    if (!s->ino)
        return;
    mfs_call_command(&c, "mfs_unseal");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_bin(&c.args, s->seal, sizeof s->seal);
    c.cmd.idempotent = true;
    mfs_call_bits(meta, &c, s->bits, s->nbits, NULL, NULL);
    mfs_seal_done(s);
}

/* 0: sealed, *s filled; -EAGAIN: another client's seal is out of the way now. */
static int seal_home(struct mfs_meta *meta, struct mfs_sealed *s, struct mfs_backoff *backoff)
{
    struct mfs_ino_arg key = mfs_ino_arg(s->ino);
    uint32_t home = mfs_placement_home(s->ino);
    struct mfs_bytes text, rest;
    struct mfs_call c;
    int rc;

    mfs_call_command(&c, "mfs_seal_home");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_bin(&c.args, s->seal, sizeof s->seal);
    rc = mfs_call_run(meta, &c, home);
    text = mfs_call_text(&c);
    if (!rc && (!text.p || !text.n))
        rc = -EIO;
    if (rc)
        goto out;
    rest = (struct mfs_bytes){text.p + 1, text.n - 1};
    if (text.p[0] == MFS_ANSWER_SEALED) {
        rc = mfs_seal_met(meta, s->ino, home, rest, backoff);
        rc = rc == -ENOENT ? -ESTALE : rc ? rc : -EAGAIN;
    } else if (text.p[0] == MFS_ANSWER_LEFTOVER) {
        rc = mfs_leftover_met(meta, s->ino, rest, backoff);
        rc = rc ? rc : -EAGAIN;
    } else {
        rc = mfs_seal_bits(s, rest);
    }
out:
    mfs_call_fini(&c);
    return rc;
}

/* What the shards answered. */
struct verdict {
    int rc;
    char met; /* sealed, leftover: what that shard has in our way */
    uint32_t part;
    char what[MFS_SEAL_LEN + 1 + MFS_NAME_LEN_MAX + MFS_INTENT_LEN];
    size_t len;
};

static void take_shard(void *arg, uint32_t part, int rc, struct mfs_bytes answer)
{
    struct verdict *v = arg;

    if (rc) {
        if (!v->rc || rc == -ENOTEMPTY)
            v->rc = rc;
    } else if (answer.p && answer.n && answer.p[0] != MFS_ANSWER_DONE &&
               answer.n - 1 <= sizeof v->what) {
        v->met = answer.p[0];
        v->part = part;
        v->len = answer.n - 1;
        memcpy(v->what, answer.p + 1, v->len);
    }
}

/* 0: another attempt is worth it. */
static int overcome(struct mfs_meta *meta, uint64_t ino, const struct verdict *v,
                    struct mfs_backoff *backoff)
{
    struct mfs_bytes what = {v->what, v->len};
    int rc;

    if (v->met == MFS_ANSWER_LEFTOVER)
        return mfs_leftover_met(meta, ino, what, backoff);
    rc = mfs_seal_met(meta, ino, v->part, what, backoff);
    return rc == -ENOENT ? -ESTALE : rc;
}

static int seal_shards(struct mfs_meta *meta, struct mfs_sealed *s, struct mfs_backoff *backoff)
{
    struct mfs_ino_arg key = mfs_ino_arg(s->ino);
    struct verdict v = {0};
    uint64_t ino = s->ino;
    struct mfs_call c;
    int rc;

    mfs_call_command(&c, "mfs_seal");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_bin(&c.args, s->seal, sizeof s->seal);
    rc = mfs_call_bits(meta, &c, s->bits, s->nbits, take_shard, &v);
    if (v.rc)
        rc = v.rc;
    if (!rc && !v.met)
        return 0;
    mfs_seal_undo(meta, s);
    s->ino = ino;
    if (!rc) {
        rc = overcome(meta, ino, &v, backoff);
        rc = rc ? rc : -EAGAIN;
    }
    return rc;
}

int mfs_seal_all(struct mfs_meta *meta, struct mfs_sealed *s, bool home_done)
{
    struct mfs_backoff backoff = {0};
    int rc;

    do {
        rc = home_done ? 0 : seal_home(meta, s, &backoff);
        if (!rc)
            rc = seal_shards(meta, s, &backoff);
        home_done = false;
    } while (rc == -EAGAIN);
    if (rc)
        mfs_seal_done(s);
    return rc;
}
