/* Listings: every shard of the directory at once, large ones in several steps. HSCAN returns what
 * is there throughout at least once, so names of shards that took more than one step are
 * deduplicated.
 *
 * Which shards there are, the directory's record says. Those that this client knows of are asked in
 * the same round trip, the others after it: a shard gets its bit before its first name, so what was
 * there when the listing began is in one of them. */
#include "meta/internal.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "meta/cache/cache.h"
#include "meta/call.h"
#include "meta/ops/ops.h"
#include "meta/txn/txn.h"

#define SCAN_COUNT 4096

/* In `names`: entries as u32 length, u32 type, u64 ino, name, NUL; `at` has their offsets. */
struct mfs_listing {
    atomic_uint refs;
    struct mfs_buf names;
    size_t *at;
    size_t n, cap;
    uint32_t *table; /* of all names, by hash: indices + 1, open addressing; made when needed */
    size_t slots;    /* a power of two */
};

struct head {
    uint32_t len, type;
    uint64_t ino;
};

static int add(struct mfs_listing *l, const char *name, size_t len, uint64_t ino, uint32_t type)
{
    struct head h = {(uint32_t)len, type, ino};

    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 64;
        size_t *at = realloc(l->at, cap * sizeof *at);

        if (!at)
            return -ENOMEM;
        l->at = at;
        l->cap = cap;
    }
    l->at[l->n] = mfs_buf_len(&l->names);
    if (mfs_buf_append(&l->names, &h, sizeof h) || mfs_buf_append(&l->names, name, len) ||
        mfs_buf_append(&l->names, "", 1))
        return -ENOMEM;
    l->n++;
    return 0;
}

size_t mfs_listing_count(const struct mfs_listing *l)
{
    return l->n;
}

struct mfs_dirent mfs_listing_at(const struct mfs_listing *l, size_t i)
{
    const char *p = mfs_buf_data(&l->names) + l->at[i];
    struct head h;

    memcpy(&h, p, sizeof h);
    return (struct mfs_dirent){.name = p + sizeof h, .len = h.len, .ino = h.ino, .type = h.type};
}

struct mfs_listing *mfs_listing_ref(struct mfs_listing *l)
{
    atomic_fetch_add(&l->refs, 1);
    return l;
}

void mfs_listing_free(struct mfs_listing *l)
{
    if (!l || atomic_fetch_sub(&l->refs, 1) > 1)
        return;
    mfs_buf_fini(&l->names);
    free(l->table);
    free(l->at);
    free(l);
}

/* One shard's progress. */
struct shard {
    uint32_t part;
    char cursor[24];
    bool more;
    struct mfs_args args;
};

struct scan {
    struct mfs_meta *meta;
    uint64_t dir;
    char key[MFS_KEY_INO_LEN];
    struct mfs_listing *l;
    struct shard *shards;
    struct mfs_cmd *cmds;
    size_t nshards;
    unsigned char *known; /* bitmap of those that were asked with the record */
    size_t nknown;
    bool repeats; /* some shard took more than one step */
};

static int take_entry(struct scan *s, const char *name, size_t len, struct mfs_bytes value)
{
    char text[MFS_NAME_LEN_MAX + 1];
    struct mfs_entry e;
    int rc;

    if (!len || len > MFS_NAME_LEN_MAX || mfs_entry_decode(value.p, value.n, &e))
        return 0; /* a seal, or nothing that we wrote */
    if (e.intent) {
        memcpy(text, name, len);
        text[len] = 0;
        rc = mfs_intent_read(s->meta, s->dir, text, &e);
        if (rc == -EAGAIN) {
            struct mfs_attr attr;

            rc = mfs_meta_lookup(s->meta, s->dir, text, &attr);
            e = (struct mfs_entry){.ino = rc ? 0 : attr.ino, .type = attr.mode & S_IFMT};
            rc = rc == -ENOENT ? 0 : rc;
        }
        if (rc < 0 || !e.ino)
            return rc < 0 ? rc : 0;
    }
    return add(s->l, name, len, e.ino, e.type);
}

static int take_step(struct scan *s, struct shard *shard, const struct mfs_reply *reply)
{
    struct mfs_bytes cursor = mfs_reply_bytes(mfs_reply_at(reply, 0));
    const struct mfs_reply *pairs = mfs_reply_at(reply, 1);
    size_t n = mfs_reply_count(pairs);
    int rc = 0;

    if (!cursor.p || cursor.n >= sizeof shard->cursor)
        return -EIO;
    memcpy(shard->cursor, cursor.p, cursor.n + 1);
    shard->more = strcmp(shard->cursor, "0") != 0;
    if (shard->more)
        s->repeats = true;
    for (size_t i = 0; i + 1 < n && !rc; i += 2) {
        struct mfs_bytes name = mfs_reply_bytes(mfs_reply_at(pairs, i));

        rc = take_entry(s, name.p, name.n, mfs_reply_bytes(mfs_reply_at(pairs, i + 1)));
    }
    return rc;
}

/* Commands to each shard that has more, *n of them, behind `first`; *of has the shards. */
static int begin_step(struct scan *s, size_t first, struct shard ***of, size_t *n)
{
    *n = 0;
    *of = malloc((s->nshards + 1) * sizeof **of);
    if (!*of)
        return -ENOMEM;
    for (size_t i = 0; i < s->nshards; i++) {
        struct shard *shard = &s->shards[i];
        struct mfs_cmd *cmd = &s->cmds[first + *n];

        if (!shard->more)
            continue;
        mfs_args_init(&shard->args, "HSCAN");
        mfs_args_bin(&shard->args, s->key, sizeof s->key);
        mfs_args_str(&shard->args, shard->cursor);
        mfs_args_str(&shard->args, "COUNT");
        mfs_args_int(&shard->args, SCAN_COUNT);
        *cmd = mfs_args_cmd(&shard->args, shard->part);
        cmd->idempotent = true;
        (*of)[(*n)++] = shard;
    }
    return 0;
}

static int end_step(struct scan *s, size_t first, struct shard **of, size_t n)
{
    int rc = 0;

    for (size_t i = 0; i < n && !rc; i++)
        rc = take_step(s, of[i], s->cmds[first + i].reply);
    return rc;
}

/* One HSCAN to each shard that has more. */
static int step(struct scan *s)
{
    struct shard **of;
    size_t n;
    int rc = begin_step(s, 0, &of, &n);

    if (rc)
        return rc;
    rc = mfs_store_exec(s->meta->store, s->cmds, n);
    if (!rc)
        rc = end_step(s, 0, of, n);
    mfs_cmds_fini(s->cmds, n);
    free(of);
    return rc;
}

static bool any_more(const struct scan *s)
{
    for (size_t i = 0; i < s->nshards; i++) {
        if (s->shards[i].more)
            return true;
    }
    return false;
}

/* Where the name is in the table, or would be. */
static uint32_t *slot_of(const struct mfs_listing *l, const char *name, size_t len)
{
    size_t slot = mfs_hash64(name, len, 0) & (l->slots - 1);

    for (; l->table[slot]; slot = (slot + 1) & (l->slots - 1)) {
        struct mfs_dirent e = mfs_listing_at(l, l->table[slot] - 1);

        if (e.len == len && !memcmp(e.name, name, len))
            break;
    }
    return &l->table[slot];
}

/* Makes the table; of entries with one name the first stays. Without any such nothing else is
 * written, as others may be reading. */
static int deduplicate(struct mfs_listing *l)
{
    size_t kept = 0;

    for (l->slots = 64; l->slots < 2 * l->n;)
        l->slots *= 2;
    l->table = calloc(l->slots, sizeof *l->table);
    if (!l->table)
        return -ENOMEM;
    for (size_t i = 0; i < l->n; i++) {
        struct mfs_dirent e = mfs_listing_at(l, i);
        uint32_t *slot = slot_of(l, e.name, e.len);

        if (*slot)
            continue;
        if (kept < i)
            l->at[kept] = l->at[i];
        *slot = (uint32_t)++kept;
    }
    if (kept < l->n)
        l->n = kept;
    return 0;
}

bool mfs_listing_find(struct mfs_listing *l, const char *name, size_t *at)
{
    uint32_t slot;

    if (!l->table && deduplicate(l))
        return false;
    slot = *slot_of(l, name, strlen(name));
    *at = slot ? slot - 1 : 0;
    return slot;
}

/* Those of the bitmap that are not yet among the shards. */
static int add_shards(struct scan *s, const unsigned char *bits, size_t n)
{
    size_t most = s->nshards + mfs_bits_most(s->meta, n);
    struct shard *shards = realloc(s->shards, (most + 1) * sizeof *shards);
    struct mfs_cmd *cmds;

    if (!shards)
        return -ENOMEM;
    s->shards = shards;
    cmds = realloc(s->cmds, (most + 2) * sizeof *cmds); /* and one for the record */
    if (!cmds)
        return -ENOMEM;
    s->cmds = cmds;
    for (uint32_t p = 0; p < s->meta->nparts && p / 8 < n; p++) {
        if (mfs_bits_test(bits, n, p) && !mfs_bits_test(s->known, s->nknown, p))
            s->shards[s->nshards++] = (struct shard){.part = p, .cursor = "0", .more = true};
    }
    return 0;
}

static int add_known(struct scan *s)
{
    size_t n;
    unsigned char *bits = mfs_dircache_bits(s->meta->dirs, s->dir, &n);
    int rc = add_shards(s, bits, n);

    s->known = bits;
    s->nknown = n;
    return rc;
}

/* The directory's record, and what the first step has of the shards that were known, `of`. */
static int take_record(struct scan *s, struct mfs_bytes record, int64_t asked, struct shard **of,
                       size_t n)
{
    struct mfs_attr attr;
    int rc = record.p ? mfs_meta_take(s->meta, s->dir, record, asked, &attr) : -ESTALE;

    if (!rc && !S_ISDIR(attr.mode))
        rc = -ENOTDIR;
    if (!rc)
        rc = add(s->l, ".", 1, s->dir, S_IFDIR);
    if (!rc)
        rc = add(s->l, "..", 2, attr.parent, S_IFDIR);
    if (!rc && attr.nlink == 0) {
        s->nshards = 0;
        return 0;
    }
    if (!rc)
        rc = end_step(s, 1, of, n);
    if (!rc)
        rc = add_shards(s, (const unsigned char *)record.p + MFS_RECORD_DIR,
                        record.n - MFS_RECORD_DIR);
    return rc;
}

/* The record and the shards that are known. */
static int first_step(struct scan *s)
{
    int64_t asked = mfs_clock_mono();
    char key[MFS_KEY_INO_LEN];
    struct shard **of = NULL;
    struct mfs_args args;
    size_t n = 0;
    int rc = add_known(s);

    if (rc)
        return rc;
    mfs_key_ino(key, 'I', s->dir);
    mfs_args_init(&args, "GET");
    mfs_args_bin(&args, key, sizeof key);
    s->cmds[0] = mfs_args_cmd(&args, mfs_placement_home(s->dir));
    s->cmds[0].idempotent = true;
    rc = begin_step(s, 1, &of, &n);
    if (rc)
        return rc;
    rc = mfs_store_exec(s->meta->store, s->cmds, n + 1);
    if (!rc)
        rc = take_record(s, mfs_reply_bytes(s->cmds[0].reply), asked, of, n);
    mfs_cmds_fini(s->cmds, n + 1);
    free(of);
    return rc;
}

static int scan_all(struct scan *s)
{
    int rc = first_step(s);

    while (!rc && any_more(s))
        rc = step(s);
    if (!rc && s->repeats)
        rc = deduplicate(s->l);
    return rc;
}

int mfs_meta_list(struct mfs_meta *meta, uint64_t ino, struct mfs_listing **listing)
{
    struct scan s = {.meta = meta, .dir = ino};
    int rc;

    *listing = NULL;
    s.l = calloc(1, sizeof *s.l);
    if (!s.l)
        return -ENOMEM;
    atomic_init(&s.l->refs, 1);
    mfs_buf_init(&s.l->names);
    mfs_key_ino(s.key, 'D', ino);
    rc = scan_all(&s);
    free(s.shards);
    free(s.cmds);
    free(s.known);
    if (rc)
        mfs_listing_free(s.l);
    else
        *listing = s.l;
    return rc;
}

int64_t mfs_meta_names_about(struct mfs_meta *meta, uint64_t dir, const char *name)
{
    uint32_t part = mfs_placement_entry(dir, name, strlen(name), meta->nparts);
    unsigned char ailing[(MFS_PARTITIONS_MAX + 7) / 8], *bits;
    char key[MFS_KEY_INO_LEN];
    struct mfs_call c;
    size_t n, shards = 0;
    int64_t names;

    if (mfs_store_ailing(meta->store, ailing) > 0)
        return -EAGAIN;
    mfs_key_ino(key, 'D', dir);
    mfs_call_command(&c, "HLEN");
    mfs_args_bin(&c.args, key, sizeof key);
    c.cmd.idempotent = true;
    names = mfs_call_run(meta, &c, part);
    if (!names)
        names = mfs_reply_int(c.cmd.reply);
    mfs_call_fini(&c);
    bits = mfs_dircache_bits(meta->dirs, dir, &n);
    for (uint32_t p = 0; bits && p < meta->nparts; p++)
        shards += mfs_bits_test(bits, n, p);
    free(bits);
    return names < 0 ? names : names * (int64_t)(shards ? shards : meta->nparts);
}
