/* The mender's client, and from each fault to the step that mends it (data.c, names.c, txn.c,
 * adopt.c). A step changes a key only if it is still as it was found, and is refused with -ESTALE
 * otherwise. */
#include "fsck/mend/mend_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "data/stripes/stripes.h"
#include "fsck/mend/adopt.h"
#include "meta/call.h"
#include "meta/deferred/deferred.h"
#include "meta/internal.h"
#include "meta/ops/ops.h"

static int reap(void *arg, uint64_t ino, uint64_t data_end)
{
    struct mfs_mender *m = arg;

    return mfs_stripes_trim(m->store, ino, 0, data_end, false, NULL);
}

int mfs_mender_create(struct mfs_mender **out, struct mfs_store *store, struct mfs_meta *meta)
{
    struct mfs_mender *m = calloc(1, sizeof *m);
    struct mfs_meta_opts opts = {.reap = reap, .arg = m};
    int rc;

    *out = NULL;
    if (!m)
        return -ENOMEM;
    m->store = store;
    m->meta = meta;
    m->borrowed = meta != NULL;
    rc = meta ? 0 : mfs_meta_create(&m->meta, store, &opts);
    if (rc) {
        free(m);
        return rc;
    }
    if (!meta)
        m->meta->limits.chores_ms = 1; /* does not keep others from theirs */
    *out = m;
    return 0;
}

void mfs_mender_destroy(struct mfs_mender *m)
{
    if (!m)
        return;
    if (!m->borrowed)
        mfs_meta_destroy(m->meta);
    free(m);
}

void mfs_mender_keep_house(struct mfs_mender *m)
{
    mfs_chores_all(m->meta);
}

/* --- steps --------------------------------------------------------------------------------------
 */

int mfs_mend_done(struct mfs_mender *m, struct mfs_call *call, uint32_t part)
{
    int rc = mfs_call_run(m->meta, call, part);

    mfs_call_fini(call);
    return rc;
}

int mfs_mend_changed(struct mfs_mender *m, struct mfs_call *call, uint32_t part)
{
    int rc = mfs_call_run(m->meta, call, part);

    if (!rc && mfs_reply_int(call->cmd.reply) != 1)
        rc = -ESTALE;
    mfs_call_fini(call);
    return rc;
}

int mfs_mend_exists(struct mfs_mender *m, uint64_t ino)
{
    char key[MFS_KEY_INO_LEN];
    struct mfs_call c;
    int rc;

    if (mfs_placement_home(ino) >= m->meta->nparts)
        return 0;
    mfs_key_ino(key, 'I', ino);
    mfs_call_command(&c, "EXISTS");
    mfs_args_bin(&c.args, key, sizeof key);
    c.cmd.idempotent = true;
    rc = mfs_call_run(m->meta, &c, mfs_placement_home(ino));
    if (!rc)
        rc = mfs_reply_int(c.cmd.reply) == 1;
    mfs_call_fini(&c);
    return rc;
}

int mfs_mend_absent(struct mfs_mender *m, uint64_t ino)
{
    int rc = mfs_mend_exists(m, ino);

    return rc > 0 ? -ESTALE : rc;
}

int mfs_mend_splice(struct mfs_mender *m, const struct mfs_census *c, uint64_t ino, size_t at,
                    const void *bytes, size_t len)
{
    const struct mfs_seen_inode *seen = mfs_census_inode(c, ino);
    struct mfs_bytes rec;
    struct mfs_call call;
    char *new = NULL;
    int rc = mfs_meta_record(m->meta, ino, &call, &rec);

    if (!rc && (!seen || rec.n < at + len || mfs_census_digest(rec.p, rec.n) != seen->digest))
        rc = -ESTALE;
    if (!rc) {
        new = malloc(rec.n);
        rc = new ? 0 : -ENOMEM;
    }
    if (!rc) {
        memcpy(new, rec.p, rec.n);
        memcpy(new + at, bytes, len);
        rc = mfs_mend_record(m->meta, ino, rec.p, new, rec.n);
    }
    free(new);
    mfs_call_fini(&call);
    return rc;
}

int mfs_mend_expire(struct mfs_mender *m, uint32_t part, const char *key, size_t len,
                    int64_t seconds)
{
    struct mfs_call c;

    mfs_call_command(&c, "mfs_fsck_expire");
    mfs_args_bin(&c.args, key, len);
    mfs_args_int(&c.args, seconds);
    return mfs_mend_changed(m, &c, part);
}

/* --- all ----------------------------------------------------------------------------------------
 */

static mfs_mend_fn *const menders[MFS_FAULT_COUNT] = {
    [MFS_FAULT_DANGLING] = mfs_mend_dangling,
    [MFS_FAULT_TYPE] = mfs_mend_type,
    [MFS_FAULT_NAME_PLACE] = mfs_mend_name_place,
    [MFS_FAULT_BIT] = mfs_mend_bit,
    [MFS_FAULT_SHARD] = mfs_mend_shard,
    [MFS_FAULT_TOMB] = mfs_mend_tomb,
    [MFS_FAULT_NAMELESS] = mfs_mend_nameless,
    [MFS_FAULT_LINKS_MANY] = mfs_mend_links,
    [MFS_FAULT_LINKS_FEW] = mfs_mend_links,
    [MFS_FAULT_DIR_LINKS] = mfs_mend_links,
    [MFS_FAULT_PARENT] = mfs_mend_parent,
    [MFS_FAULT_TWO_NAMES] = mfs_mend_two_names,
    [MFS_FAULT_CYCLE] = mfs_mend_cycle,
    [MFS_FAULT_STRIPES] = mfs_mend_stripes,
    [MFS_FAULT_BEYOND] = mfs_mend_beyond,
    [MFS_FAULT_STRIPE_LONG] = mfs_mend_stripe_long,
    [MFS_FAULT_STRIPE_PLACE] = mfs_mend_stripe_place,
    [MFS_FAULT_LOOSE] = mfs_mend_loose,
    [MFS_FAULT_DEAD_OPENER] = mfs_mend_dead,
    [MFS_FAULT_DEAD_LOCK] = mfs_mend_dead,
    [MFS_FAULT_DEAD_APPENDER] = mfs_mend_dead,
    [MFS_FAULT_FOREVER] = mfs_mend_forever,
    [MFS_FAULT_INTENT] = mfs_mend_intent,
    [MFS_FAULT_SEAL] = mfs_mend_seal,
    [MFS_FAULT_OUTCOME] = mfs_mend_outcome,
    [MFS_FAULT_TRANSACTION] = mfs_mend_transaction,
    [MFS_FAULT_MOVE_LOCK] = mfs_mend_transaction,
    [MFS_FAULT_REAP] = mfs_mend_listed,
    [MFS_FAULT_ORPHAN] = mfs_mend_listed,
    [MFS_FAULT_SEQUENCE] = mfs_mend_sequence,
};

int mfs_mender_mend(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    return menders[f->fault] ? menders[f->fault](m, c, f) : -EOPNOTSUPP;
}
