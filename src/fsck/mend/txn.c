/* Ending transactions that no client ends, and what else a partition lists. */
#include "fsck/mend/mend_impl.h"

#include <errno.h>
#include <string.h>

#include "meta/call.h"
#include "meta/deferred/deferred.h"
#include "meta/internal.h"
#include "meta/txn/txn.h"

int mfs_mend_intent(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    char key[MFS_KEY_INO_LEN];
    struct mfs_bytes text;
    struct mfs_entry e;
    struct mfs_call call;
    int rc;

    (void)c;
    mfs_key_ino(key, 'D', f->dir);
    mfs_call_command(&call, "HGET");
    mfs_args_bin(&call.args, key, sizeof key);
    mfs_args_bin(&call.args, f->name, f->name_len);
    rc = mfs_call_run(m->meta, &call, f->part);
    text = mfs_call_text(&call);
    if (!rc && (!text.p || mfs_entry_decode(text.p, text.n, &e) || !e.intent ||
                memcmp(e.txn, f->txn, MFS_TXN_LEN) != 0))
        rc = -ESTALE;
    mfs_call_fini(&call);
    return rc ? rc : mfs_intent_end(m->meta, f->dir, f->name, &e);
}

static int forget(struct mfs_mender *m, const struct mfs_found *f)
{
    struct mfs_call c;

    mfs_call_command(&c, "mfs_forget");
    mfs_args_bin(&c.args, f->txn, MFS_TXN_LEN);
    return mfs_mend_done(m, &c, f->part);
}

int mfs_mend_seal(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    struct mfs_ino_arg key = mfs_ino_arg(f->ino);
    struct mfs_call call;
    int rc = mfs_txn_end(m->meta, f->txn, mfs_get_be16(f->txn + MFS_TXN_LEN));

    (void)c;
    if (rc < 0)
        return rc;
    mfs_call_command(&call, "mfs_unseal");
    mfs_args_bin(&call.args, key.b, sizeof key.b);
    mfs_args_bin(&call.args, f->txn, sizeof f->txn);
    return mfs_mend_done(m, &call, f->part);
}

/* What it entails is done again, which does no harm. */
int mfs_mend_outcome(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    int rc = mfs_txn_end(m->meta, f->txn, f->part);

    (void)c;
    return rc < 0 ? rc : forget(m, f);
}

/* 1, 0 or a negative errno. */
static int noted(struct mfs_mender *m, const struct mfs_found *f)
{
    struct mfs_call c;
    int rc;

    mfs_call_command(&c, "HEXISTS");
    mfs_args_str(&c.args, "#intents");
    mfs_args_bin(&c.args, f->txn, MFS_TXN_LEN);
    rc = mfs_call_run(m->meta, &c, f->part);
    if (!rc)
        rc = mfs_reply_int(c.cmd.reply) == 1;
    mfs_call_fini(&c);
    return rc;
}

/* Housekeeping knows how. */
int mfs_mend_transaction(struct mfs_mender *m, const struct mfs_census *c,
                         const struct mfs_found *f)
{
    struct mfs_call call;
    int rc;

    (void)c;
    mfs_call_command(&call, "DEL");
    mfs_args_str(&call.args, "#chores");
    rc = mfs_mend_done(m, &call, f->part);
    if (rc)
        return rc;
    mfs_chores_all(m->meta);
    mfs_store_drain(m->store, MFS_SEC);
    if (f->fault == MFS_FAULT_MOVE_LOCK)
        return 0; /* the next round tells */
    rc = noted(m, f);
    if (rc > 0) { /* without an outcome there is nothing to do but to forget it */
        rc = mfs_txn_end(m->meta, f->txn, f->part);
        rc = rc ? (rc < 0 ? rc : -EBUSY) : forget(m, f);
    }
    return rc;
}

int mfs_mend_listed(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    struct mfs_ino_arg ino = mfs_ino_arg(f->ino);
    struct mfs_call call;

    (void)c;
    if (f->fault == MFS_FAULT_ORPHAN) {
        mfs_call_command(&call, "mfs_fsck_orphan");
    } else {
        mfs_call_command(&call, "HDEL");
        mfs_args_str(&call.args, "#reap");
    }
    mfs_args_bin(&call.args, ino.b, sizeof ino.b);
    return mfs_mend_done(m, &call, f->part);
}

int mfs_mend_sequence(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    struct mfs_call call;

    (void)c;
    mfs_call_command(&call, "mfs_fsck_seq");
    mfs_args_int(&call.args, (int64_t)f->a);
    mfs_args_int(&call.args, (int64_t)(f->a - f->b));
    return mfs_mend_done(m, &call, f->part);
}
