/* One key of a partition: what kind it is, whether it is in order by itself, and what has to be
 * remembered of it to compare it with others. */
#include "fsck/scan/take.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/ino.h"
#include "cluster/placement.h"
#include "meta/meta.h"
#include "store/keys.h"

#define KEY_SHOWN  120
#define KEY_TXN    (1 + MFS_TXN_LEN)
#define KEY_WAIT   17
#define LOCK_OWNER 17 /* bytes: kind, session, owner */
#define LOCK_RANGE 25 /* and first byte */

static int bad_key(struct mfs_census *c, uint32_t part, const char *key, size_t len,
                   const char *what)
{
    char shown[KEY_SHOWN];

    return mfs_findings_add(&c->found, MFS_FAULT_KEY, part, 0, 0, 0, key, len, "key %s: %s",
                            mfs_findings_show(key, len, shown, sizeof shown), what)
               ? 0
               : -ENOMEM;
}

static int bad_item(struct mfs_census *c, uint32_t part, const struct mfs_item *item,
                    const char *what)
{
    return bad_key(c, part, item->key, item->key_len, what);
}

/* The first part, which is a string's value, or its beginning. */
static const char *value_of(const struct mfs_item *item, size_t *n)
{
    *n = item->nparts ? mfs_get_le32(item->parts) : 0;
    return item->nparts ? item->parts + 4 : "";
}

static uint64_t key_ino(const struct mfs_item *item)
{
    return mfs_get_be64(item->key + 1);
}

/* --- inodes -------------------------------------------------------------------------------------
 */

/* Reading changes access times all the time; everything else is evidence. */
uint64_t mfs_census_digest(const char *rec, size_t n)
{
    uint64_t head = mfs_hash64(rec, 56, 0);

    return mfs_hash64(rec + 68, n - 68, head);
}

static int take_inode(struct mfs_census *c, uint32_t part, const struct mfs_item *item)
{
    uint64_t ino = key_ino(item), bits = 0;
    struct mfs_seen_inode *seen;
    struct mfs_attr attr;
    const char *rec, *tail;
    size_t n, tail_len, nbits = 0;

    rec = value_of(item, &n);
    if (!item->all || mfs_meta_record_decode(rec, n, ino, &attr, &tail, &tail_len))
        return bad_item(c, part, item, "not an inode record");
    if (mfs_placement_home(ino) != part)
        return mfs_findings_add(&c->found, MFS_FAULT_INODE_PLACE, part, ino, 0, 0, NULL, 0,
                                "the inode's home is partition %u", mfs_placement_home(ino))
                   ? 0
                   : -ENOMEM;
    if (S_ISDIR(attr.mode)) {
        nbits = n - MFS_RECORD_DIR;
        bits = mfs_census_keep(c, rec + MFS_RECORD_DIR, nbits);
        if (bits == UINT64_MAX)
            return -ENOMEM;
    }
    seen = mfs_flat_add(&c->inodes);
    if (!seen)
        return -ENOMEM;
    seen->ino = ino;
    seen->digest = mfs_census_digest(rec, n);
    seen->end = S_ISDIR(attr.mode) ? bits : attr.data_end;
    seen->parent = attr.parent;
    seen->mode = attr.mode;
    seen->nlink = attr.nlink;
    seen->nbits = (uint32_t)nbits;
    return 0;
}

/* --- names --------------------------------------------------------------------------------------
 */

/* The shard of this key, which is the last one that was begun. */
static struct mfs_seen_shard *shard_of(struct mfs_census *c, uint32_t part, uint64_t dir)
{
    struct mfs_seen_shard *s = c->shards.n ? mfs_flat_at(&c->shards, c->shards.n - 1) : NULL;

    if (s && s->dir == dir && s->part == part)
        return s;
    s = mfs_flat_add(&c->shards);
    if (s) {
        s->dir = dir;
        s->part = part;
    }
    return s;
}

static int take_seal(struct mfs_census *c, uint32_t part, struct mfs_seen_shard *s, const char *key,
                     size_t key_len, const char *value, size_t len)
{
    s->sealed = true;
    s->tomb = len == 1 && value[0] == 'X';
    if (s->tomb)
        return 0;
    if (len != sizeof s->seal)
        return bad_key(c, part, key, key_len, "not a seal");
    memcpy(s->seal, value, len);
    return 0;
}

static bool is_name(const char *name, size_t len)
{
    return len <= MFS_NAME_LEN_MAX && !memchr(name, 0, len) && !memchr(name, '/', len) &&
           !(name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.')));
}

static int take_intent(struct mfs_census *c, uint32_t part, const struct mfs_seen_entry *e,
                       const char *value)
{
    struct mfs_seen_intent *i = mfs_flat_add(&c->intents);

    if (!i)
        return -ENOMEM;
    *i = (struct mfs_seen_intent){.dir = e->dir, .name = e->name, .part = part, .len = e->len};
    memcpy(i->bytes, value, sizeof i->bytes);
    return 0;
}

static int take_name(struct mfs_census *c, uint32_t part, struct mfs_seen_shard *s,
                     const char *name, size_t len, const char *value, size_t value_len)
{
    char shown[KEY_SHOWN];
    struct mfs_seen_entry *seen;
    struct mfs_entry e;
    uint64_t at;

    if (!is_name(name, len) || mfs_entry_decode(value, value_len, &e))
        return mfs_findings_add(&c->found, MFS_FAULT_KEY, part, 0, s->dir, 0, name, len,
                                "not an entry: %s",
                                mfs_findings_show(name, len, shown, sizeof shown))
                   ? 0
                   : -ENOMEM;
    s->names++;
    if (!mfs_census_has(c, e.ino) && !e.intent && !(S_ISDIR(e.type) && mfs_census_has(c, s->dir)))
        return 0;
    at = mfs_census_keep(c, name, len);
    seen = at == UINT64_MAX ? NULL : mfs_flat_add(&c->entries);
    if (!seen)
        return -ENOMEM;
    *seen = (struct mfs_seen_entry){.ino = e.ino,
                                    .dir = s->dir,
                                    .name = at,
                                    .part = (uint16_t)part,
                                    .type = (uint8_t)(e.type >> 12),
                                    .len = (uint8_t)len,
                                    .intent = e.intent};
    seen->misplaced = mfs_placement_entry(s->dir, name, len, c->nparts) != part;
    return e.intent ? take_intent(c, part, seen, value) : 0;
}

static int take_entry(struct mfs_census *c, uint32_t part, const char *key, size_t key_len,
                      const char *field, size_t len, const char *value, size_t value_len)
{
    struct mfs_seen_shard *s = shard_of(c, part, mfs_get_be64(key + 1));

    if (!s)
        return -ENOMEM;
    return len ? take_name(c, part, s, field, len, value, value_len)
               : take_seal(c, part, s, key, key_len, value, value_len);
}

/* --- stripes ------------------------------------------------------------------------------------
 */

static int take_stripe(struct mfs_census *c, uint32_t part, const struct mfs_item *item)
{
    uint64_t ino = key_ino(item);
    uint32_t n = mfs_get_be32(item->key + MFS_KEY_INO_LEN);
    uint32_t right = mfs_placement_stripe(ino, n, c->nparts);
    uint32_t most = mfs_ino_stripe_size(ino, c->stripe_size);
    struct mfs_seen_stripe *seen;
    struct mfs_found *f;

    if (right != part) {
        f = mfs_findings_add(&c->found, MFS_FAULT_STRIPE_PLACE, part, ino, 0, n, NULL, 0,
                             "stripe %u belongs into partition %u", n, right);
        if (f)
            f->a = n;
        return f ? 0 : -ENOMEM;
    }
    if (item->len > most) {
        f = mfs_findings_add(&c->found, MFS_FAULT_STRIPE_LONG, part, ino, 0, n, NULL, 0,
                             "stripe %u has %llu bytes, more than a stripe", n,
                             (unsigned long long)item->len);
        if (!f)
            return -ENOMEM;
        f->a = n;
    }
    seen = mfs_flat_add(&c->stripes);
    if (!seen)
        return -ENOMEM;
    seen->ino = ino;
    seen->n = n;
    seen->len = item->len > most ? most : (uint32_t)item->len;
    return 0;
}

/* One whose bytes were lost is as long as it was. */
static int take_lost(struct mfs_census *c, uint32_t part, const struct mfs_item *item)
{
    static const char field[] = "lost";
    const char *p = item->parts;
    struct mfs_item stripe = *item;
    struct mfs_seen_stripe *seen;
    char text[24] = "";
    uint32_t n, m, most = mfs_ino_stripe_size(key_ino(item), c->stripe_size);

    n = item->nparts == 2 ? mfs_get_le32(p) : 0;
    if (n != sizeof field - 1 || memcmp(p + 4, field, n) != 0)
        return bad_item(c, part, item, "neither a stripe nor one that was lost");
    m = mfs_get_le32(p + 4 + n);
    memcpy(text, p + 8 + n, m < sizeof text ? m : sizeof text - 1);
    stripe.len = strtoull(text, NULL, 10);
    seen = mfs_flat_add(&c->lost);
    if (!seen)
        return -ENOMEM;
    *seen = (struct mfs_seen_stripe){key_ino(item), mfs_get_be32(item->key + MFS_KEY_INO_LEN),
                                     stripe.len > most ? most : (uint32_t)stripe.len};
    return take_stripe(c, part, &stripe);
}

/* --- what is beside inodes ----------------------------------------------------------------------
 */

static int take_side(struct mfs_census *c, uint32_t part, const char *key, uint64_t sid)
{
    struct mfs_seen_side *seen = mfs_flat_add(&c->sides);

    if (!seen)
        return -ENOMEM;
    *seen = (struct mfs_seen_side){mfs_get_be64(key + 1), sid, part, key[0]};
    return 0;
}

static int take_opener(struct mfs_census *c, uint32_t part, const char *key, size_t key_len,
                       const char *field, size_t len, const char *value, size_t value_len)
{
    char text[24] = "";

    memcpy(text, value, value_len < sizeof text ? value_len : sizeof text - 1);
    if (len != 8 || atoll(text) <= 0)
        return bad_key(c, part, key, key_len, "not an opener");
    return take_side(c, part, key, mfs_get_be64(field));
}

/* A session may have thousands of ranges of a file. */
static int take_lock_of(struct mfs_census *c, uint32_t part, const char *key, uint64_t sid)
{
    const struct mfs_seen_side *last = c->sides.n ? mfs_flat_at(&c->sides, c->sides.n - 1) : NULL;

    if (last && last->letter == 'L' && last->sid == sid && last->part == part &&
        last->ino == mfs_get_be64(key + 1))
        return 0;
    return take_side(c, part, key, sid);
}

static int take_lock(struct mfs_census *c, uint32_t part, const char *key, size_t key_len,
                     const char *field, size_t len)
{
    if ((len != LOCK_OWNER && len != LOCK_RANGE) || (field[0] != 'P' && field[0] != 'F'))
        return bad_key(c, part, key, key_len, "not a lock");
    return take_lock_of(c, part, key, mfs_get_be64(field + 1));
}

static int take_voids(struct mfs_census *c, uint32_t part, const struct mfs_item *item)
{
    return take_side(c, part, item->key, 0);
}

static int take_appender(struct mfs_census *c, uint32_t part, const struct mfs_item *item)
{
    size_t n;
    const char *value = value_of(item, &n);

    if (n <= 8)
        return bad_item(c, part, item, "not an appender");
    return take_side(c, part, item->key, mfs_get_be64(value));
}

/* What ends by itself needs an end. */
static int check_end(struct mfs_census *c, uint32_t part, const struct mfs_item *item)
{
    char shown[KEY_SHOWN];

    if (item->ttl >= 0)
        return 0;
    return mfs_findings_add(&c->found, MFS_FAULT_FOREVER, part, 0, 0, 0, item->key, item->key_len,
                            "key %s has no time to live",
                            mfs_findings_show(item->key, item->key_len, shown, sizeof shown))
               ? 0
               : -ENOMEM;
}

static int take_lease(struct mfs_census *c, uint32_t part, const struct mfs_item *item)
{
    if (item->len == 0 || item->len % 8)
        return bad_item(c, part, item, "not a list of sessions");
    return check_end(c, part, item);
}

static int take_session(struct mfs_census *c, uint32_t part, const struct mfs_item *item)
{
    uint64_t *seen, sid = key_ino(item);

    if (sid % c->nparts != part)
        return bad_item(c, part, item, "a session that belongs elsewhere");
    seen = mfs_flat_add(&c->sessions);
    if (!seen)
        return -ENOMEM;
    *seen = sid;
    return check_end(c, part, item);
}

static int take_txn(struct mfs_census *c, uint32_t part, const struct mfs_item *item)
{
    struct mfs_seen_txn *seen;
    size_t n;
    const char *value = value_of(item, &n);

    if (n == 1 && value[0] == 'A')
        return check_end(c, part, item);
    if (n < 2 || value[0] != 'C')
        return bad_item(c, part, item, "not an outcome");
    if (item->ttl >= 0) /* of a link: it ends by itself */
        return 0;
    seen = mfs_flat_add(&c->txns);
    if (!seen)
        return -ENOMEM;
    memcpy(seen->txn, item->key + 1, MFS_TXN_LEN);
    seen->part = part;
    seen->committed = true;
    seen->digest = mfs_hash64(value, n, item->len);
    return 0;
}

static int take_wait(struct mfs_census *c, uint32_t part, const struct mfs_item *item)
{
    return part == 0 ? check_end(c, part, item) : bad_item(c, part, item, "belongs elsewhere");
}

/* --- all ----------------------------------------------------------------------------------------
 */

typedef int take_fn(struct mfs_census *c, uint32_t part, const struct mfs_item *item);

static const struct {
    char letter;
    size_t len;
    int type;
    take_fn *take; /* NULL: field by field */
} kinds[] = {
    {'I', MFS_KEY_INO_LEN, MFS_KEY_STRING, take_inode},
    {'D', MFS_KEY_INO_LEN, MFS_KEY_HASH, NULL},
    {'S', MFS_KEY_STRIPE_LEN, MFS_KEY_STRING, take_stripe},
    {'A', MFS_KEY_INO_LEN, MFS_KEY_HASH, NULL},
    {'O', MFS_KEY_INO_LEN, MFS_KEY_HASH, NULL},
    {'L', MFS_KEY_INO_LEN, MFS_KEY_HASH, NULL},
    {'P', MFS_KEY_INO_LEN, MFS_KEY_STRING, take_appender},
    {'V', MFS_KEY_INO_LEN, MFS_KEY_STRING, take_voids},
    {'F', MFS_KEY_INO_LEN, MFS_KEY_STRING, take_voids},
    {'T', KEY_TXN, MFS_KEY_STRING, take_txn},
    {'Y', MFS_KEY_INO_LEN, MFS_KEY_STRING, take_lease},
    {'K', MFS_KEY_INO_LEN, MFS_KEY_STRING, take_lease},
    {'Z', MFS_KEY_INO_LEN, MFS_KEY_STRING, take_session},
    {'W', KEY_WAIT, MFS_KEY_STRING, take_wait},
};

static const struct {
    const char *name;
    int type;
} singles[] = {
    {"#super", MFS_KEY_HASH},   {"#seq", MFS_KEY_STRING},    {"#moves", MFS_KEY_STRING},
    {"#freed", MFS_KEY_STRING}, {"#orphans", MFS_KEY_SET},   {"#reap", MFS_KEY_HASH},
    {"#intents", MFS_KEY_HASH}, {"#moving", MFS_KEY_STRING}, {"#chores", MFS_KEY_STRING},
    {"#sessions", MFS_KEY_SET}, {"#tidy", MFS_KEY_STRING},   {"#losses", MFS_KEY_STRING},
    {"#ttl", MFS_KEY_HASH},     {"#reads", MFS_KEY_HASH},
};

static int take_single(struct mfs_census *c, uint32_t part, const struct mfs_item *item)
{
    for (size_t i = 0; i < sizeof singles / sizeof *singles; i++) {
        if (strlen(singles[i].name) != item->key_len ||
            memcmp(singles[i].name, item->key, item->key_len) != 0)
            continue;
        return singles[i].type == item->type ? 0 : bad_item(c, part, item, "of a wrong type");
    }
    return bad_item(c, part, item, "unknown");
}

int mfs_take_field(struct mfs_census *c, uint32_t part, const char *key, size_t key_len,
                   const char *field, size_t field_len, const char *value, size_t value_len)
{
    switch (key[0]) {
    case 'D':
        return take_entry(c, part, key, key_len, field, field_len, value, value_len);
    case 'O':
        return take_opener(c, part, key, key_len, field, field_len, value, value_len);
    case 'L':
        return take_lock(c, part, key, key_len, field, field_len);
    default:
        return 0;
    }
}

static int take_fields(struct mfs_census *c, uint32_t part, const struct mfs_item *item)
{
    const char *p = item->parts;
    int rc = 0;

    for (uint32_t i = 0; i + 1 < item->nparts && !rc; i += 2) {
        uint32_t n = mfs_get_le32(p), m = mfs_get_le32(p + 4 + n);
        const char *field = p + 4, *value = field + n + 4;

        rc = mfs_take_field(c, part, item->key, item->key_len, field, n, value, m);
        p = value + m;
    }
    return rc;
}

/* Names that vanish by themselves, and closed shards that do not. */
static int take_shard_end(struct mfs_census *c, uint32_t part, const struct mfs_item *item)
{
    struct mfs_seen_shard *s = shard_of(c, part, key_ino(item));

    if (!s)
        return -ENOMEM;
    s->expires = item->ttl >= 0;
    return 0;
}

static int take_hash(struct mfs_census *c, uint32_t part, const struct mfs_item *item)
{
    int rc;

    if (item->key[0] == 'D') {
        rc = take_shard_end(c, part, item);
    } else {
        rc = take_side(c, part, item->key, 0);
        if (item->key[0] == 'A')
            return rc;
    }
    if (rc)
        return rc;
    return item->all ? take_fields(c, part, item) : 1;
}

/* A key of one inode, which is not of this slice. */
static bool is_of_others(const struct mfs_census *c, const struct mfs_item *item)
{
    return item->key_len >= MFS_KEY_INO_LEN && memchr("ISAOLPV", item->key[0], 7) &&
           !mfs_census_has(c, key_ino(item));
}

int mfs_take_item(struct mfs_census *c, uint32_t part, const struct mfs_item *item)
{
    c->keys++;
    if (is_of_others(c, item))
        return 0;
    if (item->key_len && item->key[0] == '#')
        return take_single(c, part, item);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!item->key_len || kinds[i].letter != item->key[0] || kinds[i].len != item->key_len)
            continue;
        if (item->key[0] == 'S' && item->type == MFS_KEY_HASH)
            return take_lost(c, part, item);
        if (kinds[i].type != item->type)
            return bad_item(c, part, item, "of a wrong type");
        return kinds[i].take ? kinds[i].take(c, part, item) : take_hash(c, part, item);
    }
    return bad_item(c, part, item, "unknown");
}
