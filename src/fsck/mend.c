#include "fsck/mend.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "data/stripe_keys.h"
#include "data/stripes.h"
#include "meta/internal.h"

#define NLINK_AT  16
#define END_AT    32
#define PARENT_AT MFS_RECORD_FIXED

struct mfs_mender {
    struct mfs_store *store;
    struct mfs_meta *meta;
};

typedef int mend_fn(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f);

static int reap(void *arg, uint64_t ino, uint64_t data_end)
{
    struct mfs_mender *m = arg;

    return mfs_stripes_trim(m->store, ino, 0, data_end, false, NULL);
}

int mfs_mender_create(struct mfs_mender **out, struct mfs_store *store)
{
    struct mfs_mender *m = calloc(1, sizeof *m);
    struct mfs_meta_opts opts = {.reap = reap, .arg = m};
    int rc;

    *out = NULL;
    if (!m)
        return -ENOMEM;
    m->store = store;
    rc = mfs_meta_create(&m->meta, store, &opts);
    if (rc) {
        free(m);
        return rc;
    }
    m->meta->limits.chores_ms = 1; /* does not keep others from theirs */
    *out = m;
    return 0;
}

void mfs_mender_destroy(struct mfs_mender *m)
{
    if (!m)
        return;
    mfs_meta_destroy(m->meta);
    free(m);
}

void mfs_mender_keep_house(struct mfs_mender *m)
{
    mfs_chores_tick(m->meta);
}

/* --- helpers ------------------------------------------------------------------------------------
 */

static int done(struct mfs_mender *m, struct mfs_call *call, uint32_t part)
{
    int rc = mfs_call_run(m->meta, call, part);

    mfs_call_fini(call);
    return rc;
}

/* The same for one that answers 1 when it has changed something. */
static int changed(struct mfs_mender *m, struct mfs_call *call, uint32_t part)
{
    int rc = mfs_call_run(m->meta, call, part);

    if (!rc && mfs_reply_int(call->cmd.reply) != 1)
        rc = -ESTALE;
    mfs_call_fini(call);
    return rc;
}

/* 1, 0 or a negative errno. */
static int exists(struct mfs_mender *m, uint64_t ino)
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

/* 0; -ESTALE: the inode is there after all. */
static int still_absent(struct mfs_mender *m, uint64_t ino)
{
    int rc = exists(m, ino);

    return rc > 0 ? -ESTALE : rc;
}

/* An entry, as it was, becomes another; n 0: it goes. */
static int change_entry(struct mfs_mender *m, uint32_t part, uint64_t dir, const char *name,
                        size_t len, struct mfs_bytes old, struct mfs_bytes new)
{
    struct mfs_ino_arg key = mfs_ino_arg(dir);
    struct mfs_call c;

    mfs_call_function(&c, "mfs_fsck_entry");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_bin(&c.args, name, len);
    mfs_args_bin(&c.args, old.p, old.n);
    mfs_args_bin(&c.args, new.p, new.n);
    return changed(m, &c, part);
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

/* Puts bytes into a record that is still the one that was judged. */
static int splice(struct mfs_mender *m, const struct mfs_census *c, uint64_t ino, size_t at,
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

static int expire(struct mfs_mender *m, uint32_t part, const char *key, size_t len, int64_t seconds)
{
    struct mfs_call c;

    mfs_call_function(&c, "mfs_fsck_expire");
    mfs_args_bin(&c.args, key, len);
    mfs_args_int(&c.args, seconds);
    return changed(m, &c, part);
}

/* --- names --------------------------------------------------------------------------------------
 */

static int mend_dangling(struct mfs_mender *m, const struct mfs_census *c,
                         const struct mfs_found *f)
{
    char old[MFS_ENTRY_LEN];
    int rc = still_absent(m, f->ino);

    (void)c;
    return rc ? rc
              : change_entry(m, f->part, f->dir, f->name, f->name_len,
                             entry_bytes(f->ino, f->a, old), (struct mfs_bytes){"", 0});
}

static int mend_type(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    char old[MFS_ENTRY_LEN], new[MFS_ENTRY_LEN];

    (void)c;
    return change_entry(m, f->part, f->dir, f->name, f->name_len, entry_bytes(f->ino, f->a, old),
                        entry_bytes(f->ino, f->b, new));
}

/* First where it belongs, then not where it was. */
static int mend_name_place(struct mfs_mender *m, const struct mfs_census *c,
                           const struct mfs_found *f)
{
    uint32_t right = mfs_placement_entry(f->dir, f->name, f->name_len, m->meta->nparts);
    struct mfs_ino_arg dir = mfs_ino_arg(f->dir), sid = mfs_ino_arg(m->meta->sid);
    char entry[MFS_ENTRY_LEN];
    struct mfs_bytes bytes = entry_bytes(f->ino, f->a, entry);
    struct mfs_call call;
    int rc = mfs_meta_spread(m->meta, f->dir, right);

    (void)c;
    if (rc)
        return rc;
    mfs_call_function(&call, "mfs_put");
    mfs_args_bin(&call.args, dir.b, sizeof dir.b);
    mfs_args_bin(&call.args, f->name, f->name_len);
    mfs_args_bin(&call.args, bytes.p, bytes.n);
    mfs_args_bin(&call.args, sid.b, sizeof sid.b);
    rc = done(m, &call, right);
    return rc ? rc
              : change_entry(m, f->part, f->dir, f->name, f->name_len, bytes,
                             (struct mfs_bytes){"", 0});
}

static int mend_bit(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
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

/* Names that nobody can reach: what they name gets others if it has none left. */
static int mend_shard(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    static const char none[sizeof f->txn];
    char key[MFS_KEY_INO_LEN];
    int rc = still_absent(m, f->ino);

    if (!rc && f->a)
        rc = drop_names(m, c, f);
    if (rc || (f->a && !memcmp(f->txn, none, sizeof none)))
        return rc;
    mfs_key_ino(key, 'D', f->ino);
    if (!memcmp(f->txn, none, sizeof none))
        return expire(m, f->part, key, sizeof key, 120);
    return change_entry(m, f->part, f->ino, "", 0, (struct mfs_bytes){f->txn, sizeof f->txn},
                        (struct mfs_bytes){"", 0});
}

static int mend_tomb(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    char key[MFS_KEY_INO_LEN];
    struct mfs_call call;
    int rc;

    (void)c;
    mfs_key_ino(key, 'D', f->ino);
    mfs_call_command(&call, "PERSIST");
    mfs_args_bin(&call.args, key, sizeof key);
    rc = done(m, &call, f->part);
    if (!rc)
        rc = change_entry(m, f->part, f->ino, "", 0, (struct mfs_bytes){"X", 1},
                          (struct mfs_bytes){"", 0});
    return rc == -ESTALE ? 0 : rc;
}

static int mend_nameless(struct mfs_mender *m, const struct mfs_census *c,
                         const struct mfs_found *f)
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

static int mend_links(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    char count[4];
    int rc;

    mfs_put_le32(count, (uint32_t)f->a);
    rc = splice(m, c, f->ino, NLINK_AT, count, sizeof count);
    if (!rc && f->fault == MFS_FAULT_DIR_LINKS)
        mfs_leases_changed(m->meta, f->ino);
    else if (!rc)
        mfs_leases_file_changed_at_home(m->meta, f->ino);
    return rc;
}

static int mend_parent(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    char parent[8];
    int rc;

    mfs_put_be64(parent, f->a);
    rc = splice(m, c, f->ino, PARENT_AT, parent, sizeof parent);
    if (!rc)
        mfs_leases_changed(m->meta, f->ino);
    return rc;
}

/* The one in the directory that is recorded stays, or the first. */
static int mend_two_names(struct mfs_mender *m, const struct mfs_census *c,
                          const struct mfs_found *f)
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
static int mend_cycle(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    int rc = mend_nameless(m, c, f);

    return rc ? rc : drop_entry(m, c, mfs_census_entry(c, mfs_census_first_entry(c, f->ino)));
}

/* --- data ---------------------------------------------------------------------------------------
 */

static int delete_run(struct mfs_mender *m, const struct mfs_census *c, uint64_t ino, size_t from,
                      size_t to)
{
    uint32_t *stripes = calloc(to - from + 1, sizeof *stripes);
    int64_t grown = 0;
    int rc = stripes ? 0 : -ENOMEM;

    for (size_t i = from; i < to && !rc; i++)
        stripes[i - from] = ((struct mfs_seen_stripe *)mfs_flat_at(&c->stripes, i))->n;
    for (size_t i = 0; i < to - from && !rc; i += 4096)
        rc = mfs_stripe_delete(m->store, ino, NULL, 0, stripes + i,
                               to - from - i < 4096 ? to - from - i : 4096, &grown);
    free(stripes);
    return rc;
}

static int mend_stripes(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    int rc = still_absent(m, f->ino);

    return rc ? rc : delete_run(m, c, f->ino, f->a, f->b);
}

/* The record follows: somebody may be about to write there. They go with the file. */
static int mend_beyond(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    const struct mfs_seen_inode *seen = mfs_census_inode(c, f->ino);
    char end[8];

    if (!seen || !S_ISREG(seen->mode))
        return -EOPNOTSUPP;
    mfs_put_le64(end, f->a);
    return splice(m, c, f->ino, END_AT, end, sizeof end);
}

static int edit_stripe(struct mfs_mender *m, const char *function, const struct mfs_found *f,
                       int64_t keep)
{
    char key[MFS_KEY_STRIPE_LEN];
    struct mfs_call c;

    mfs_key_stripe(key, f->ino, (uint32_t)f->a);
    mfs_call_function(&c, function);
    mfs_args_bin(&c.args, key, sizeof key);
    if (keep > 0)
        mfs_args_int(&c.args, keep);
    return done(m, &c, f->part);
}

/* What is beyond a stripe's size nobody can read. */
static int mend_stripe_long(struct mfs_mender *m, const struct mfs_census *c,
                            const struct mfs_found *f)
{
    return edit_stripe(m, "mfs_strim", f, c->stripe_size);
}

static int mend_stripe_place(struct mfs_mender *m, const struct mfs_census *c,
                             const struct mfs_found *f)
{
    int rc = exists(m, f->ino);

    (void)c;
    if (rc > 0)
        return -EOPNOTSUPP; /* it may be the only copy */
    return rc ? rc : edit_stripe(m, "mfs_sdel", f, 0);
}

/* --- beside inodes ------------------------------------------------------------------------------
 */

static int mend_loose(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    struct mfs_ino_arg key = mfs_ino_arg(f->ino);
    const char letter = (char)f->a;
    struct mfs_call call;
    int rc = still_absent(m, f->ino);

    (void)c;
    if (rc)
        return rc;
    mfs_call_function(&call, "mfs_fsck_loose");
    mfs_args_bin(&call.args, &letter, 1);
    mfs_args_bin(&call.args, key.b, sizeof key.b);
    return changed(m, &call, f->part);
}

static int mend_dead(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    struct mfs_ino_arg ino = mfs_ino_arg(f->ino), sid = mfs_ino_arg(f->a);
    uint64_t session = f->a;
    struct mfs_call call;
    bool alive;
    int rc;

    (void)c;
    mfs_session_alive(m->meta, &session, 1, &alive);
    if (alive)
        return -ESTALE;
    if (f->fault == MFS_FAULT_DEAD_OPENER)
        mfs_call_command(&call, "mfs_disown");
    else
        mfs_call_function(&call, f->fault == MFS_FAULT_DEAD_LOCK ? "mfs_unlock_session"
                                                                 : "mfs_append_break");
    mfs_args_bin(&call.args, ino.b, sizeof ino.b);
    if (f->fault == MFS_FAULT_DEAD_OPENER)
        mfs_args_int(&call.args, m->meta->stripe_size);
    mfs_args_bin(&call.args, sid.b, sizeof sid.b);
    rc = mfs_call_run(m->meta, &call, f->part);
    if (!rc && f->fault == MFS_FAULT_DEAD_OPENER)
        mfs_meta_freed(m->meta, f->ino, mfs_call_text(&call));
    mfs_call_fini(&call);
    return rc;
}

static int mend_forever(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    static const struct {
        char letter;
        int64_t seconds;
    } lives[] = {{'Y', 120}, {'K', 120}, {'Z', 20}, {'W', 15}, {'T', 600}};

    (void)c;
    for (size_t i = 0; i < sizeof lives / sizeof *lives; i++)
        if (lives[i].letter == f->name[0])
            return expire(m, f->part, f->name, f->name_len, lives[i].seconds);
    return -EOPNOTSUPP;
}

/* --- transactions -------------------------------------------------------------------------------
 */

static int mend_intent(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
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

    mfs_call_function(&c, "mfs_forget");
    mfs_args_bin(&c.args, f->txn, MFS_TXN_LEN);
    return done(m, &c, f->part);
}

static int mend_seal(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    struct mfs_ino_arg key = mfs_ino_arg(f->ino);
    struct mfs_call call;
    int rc = mfs_txn_end(m->meta, f->txn, mfs_get_be16(f->txn + MFS_TXN_LEN));

    (void)c;
    if (rc < 0)
        return rc;
    mfs_call_function(&call, "mfs_unseal");
    mfs_args_bin(&call.args, key.b, sizeof key.b);
    mfs_args_bin(&call.args, f->txn, sizeof f->txn);
    return done(m, &call, f->part);
}

/* What it entails is done again, which does no harm. */
static int mend_outcome(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
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
static int mend_transaction(struct mfs_mender *m, const struct mfs_census *c,
                            const struct mfs_found *f)
{
    struct mfs_call call;
    int rc;

    (void)c;
    mfs_call_command(&call, "DEL");
    mfs_args_str(&call.args, "#chores");
    rc = done(m, &call, f->part);
    if (rc)
        return rc;
    mfs_chores_tick(m->meta);
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

static int mend_listed(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    struct mfs_ino_arg ino = mfs_ino_arg(f->ino);
    struct mfs_call call;

    (void)c;
    if (f->fault == MFS_FAULT_ORPHAN) {
        mfs_call_function(&call, "mfs_fsck_orphan");
    } else {
        mfs_call_command(&call, "HDEL");
        mfs_args_str(&call.args, "#reap");
    }
    mfs_args_bin(&call.args, ino.b, sizeof ino.b);
    return done(m, &call, f->part);
}

static int mend_sequence(struct mfs_mender *m, const struct mfs_census *c,
                         const struct mfs_found *f)
{
    struct mfs_call call;

    (void)c;
    mfs_call_function(&call, "mfs_fsck_seq");
    mfs_args_int(&call.args, (int64_t)f->a);
    return done(m, &call, f->part);
}

/* --- all ----------------------------------------------------------------------------------------
 */

static mend_fn *const menders[MFS_FAULT_COUNT] = {
    [MFS_FAULT_DANGLING] = mend_dangling,
    [MFS_FAULT_TYPE] = mend_type,
    [MFS_FAULT_NAME_PLACE] = mend_name_place,
    [MFS_FAULT_BIT] = mend_bit,
    [MFS_FAULT_SHARD] = mend_shard,
    [MFS_FAULT_TOMB] = mend_tomb,
    [MFS_FAULT_NAMELESS] = mend_nameless,
    [MFS_FAULT_LINKS_MANY] = mend_links,
    [MFS_FAULT_LINKS_FEW] = mend_links,
    [MFS_FAULT_DIR_LINKS] = mend_links,
    [MFS_FAULT_PARENT] = mend_parent,
    [MFS_FAULT_TWO_NAMES] = mend_two_names,
    [MFS_FAULT_CYCLE] = mend_cycle,
    [MFS_FAULT_STRIPES] = mend_stripes,
    [MFS_FAULT_BEYOND] = mend_beyond,
    [MFS_FAULT_STRIPE_LONG] = mend_stripe_long,
    [MFS_FAULT_STRIPE_PLACE] = mend_stripe_place,
    [MFS_FAULT_LOOSE] = mend_loose,
    [MFS_FAULT_DEAD_OPENER] = mend_dead,
    [MFS_FAULT_DEAD_LOCK] = mend_dead,
    [MFS_FAULT_DEAD_APPENDER] = mend_dead,
    [MFS_FAULT_FOREVER] = mend_forever,
    [MFS_FAULT_INTENT] = mend_intent,
    [MFS_FAULT_SEAL] = mend_seal,
    [MFS_FAULT_OUTCOME] = mend_outcome,
    [MFS_FAULT_TRANSACTION] = mend_transaction,
    [MFS_FAULT_MOVE_LOCK] = mend_transaction,
    [MFS_FAULT_REAP] = mend_listed,
    [MFS_FAULT_ORPHAN] = mend_listed,
    [MFS_FAULT_SEQUENCE] = mend_sequence,
};

int mfs_mender_mend(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    return menders[f->fault] ? menders[f->fault](m, c, f) : -EOPNOTSUPP;
}
