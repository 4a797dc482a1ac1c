/* The census' arrays: made, filled by scan/take.c, sorted once, and then looked up by binary
 * search. Nothing is added to a sorted array later. With several slices only inodes of one hash
 * class are kept, and a pass is made for each slice. */
#include "fsck/census/census.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

bool mfs_census_has(const struct mfs_census *c, uint64_t ino)
{
    return c->slices <= 1 || mfs_hash64(&ino, sizeof ino, 0) % c->slices == c->slice;
}

int mfs_census_init(struct mfs_census *c, struct mfs_store *store)
{
    memset(c, 0, sizeof *c);
    c->nparts = mfs_store_nparts(store);
    c->stripe_size = mfs_store_stripe_size(store);
    mfs_flat_init(&c->inodes, sizeof(struct mfs_seen_inode));
    mfs_flat_init(&c->entries, sizeof(struct mfs_seen_entry));
    mfs_flat_init(&c->intents, sizeof(struct mfs_seen_intent));
    mfs_flat_init(&c->shards, sizeof(struct mfs_seen_shard));
    mfs_flat_init(&c->stripes, sizeof(struct mfs_seen_stripe));
    mfs_flat_init(&c->sides, sizeof(struct mfs_seen_side));
    mfs_flat_init(&c->txns, sizeof(struct mfs_seen_txn));
    mfs_flat_init(&c->notes, sizeof(struct mfs_seen_note));
    mfs_flat_init(&c->orphans, sizeof(struct mfs_seen_listed));
    mfs_flat_init(&c->reaps, sizeof(struct mfs_seen_listed));
    mfs_flat_init(&c->sessions, sizeof(uint64_t));
    mfs_flat_init(&c->lost, sizeof(struct mfs_seen_stripe));
    mfs_buf_init(&c->bytes);
    mfs_findings_init(&c->found);
    c->seq = calloc(c->nparts, sizeof *c->seq);
    c->unread = calloc(c->nparts, sizeof *c->unread);
    return c->seq && c->unread ? 0 : -ENOMEM;
}

void mfs_census_fini(struct mfs_census *c)
{
    struct mfs_flat *all[] = {&c->inodes,  &c->entries, &c->intents,  &c->shards,
                              &c->stripes, &c->sides,   &c->txns,     &c->notes,
                              &c->orphans, &c->reaps,   &c->sessions, &c->lost};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        mfs_flat_fini(all[i]);
    mfs_buf_fini(&c->bytes);
    mfs_findings_fini(&c->found);
    free(c->seq);
    free(c->unread);
    c->seq = NULL;
}

/* --- orders -------------------------------------------------------------------------------------
 */

static int by_number(const void *x, const void *y) /* first field: an ino or a session */
{
    uint64_t a, b;

    memcpy(&a, x, sizeof a);
    memcpy(&b, y, sizeof b);
    return mfs_flat_order(a, b);
}

/* One name of one inode once, so the bytes of the names decide: they are compared by `sort_names`.
 * Each thread sorts a census of its own. */
static _Thread_local const struct mfs_buf *sort_names;

static int by_ino_and_name(const void *x, const void *y)
{
    const struct mfs_seen_entry *a = x, *b = y;
    int rc = mfs_flat_order(a->ino, b->ino);

    if (!rc)
        rc = mfs_flat_order(a->dir, b->dir);
    if (!rc)
        rc = mfs_flat_order(a->part, b->part);
    if (!rc)
        rc = mfs_flat_order(a->len, b->len);
    return rc ? rc
              : memcmp(mfs_buf_data(sort_names) + a->name, mfs_buf_data(sort_names) + b->name,
                       a->len);
}

static int by_shard(const void *x, const void *y)
{
    const struct mfs_seen_shard *a = x, *b = y;

    return a->dir == b->dir ? mfs_flat_order(a->part, b->part) : mfs_flat_order(a->dir, b->dir);
}

static int by_stripe(const void *x, const void *y)
{
    const struct mfs_seen_stripe *a = x, *b = y;

    return a->ino == b->ino ? mfs_flat_order(a->n, b->n) : mfs_flat_order(a->ino, b->ino);
}

static int by_side(const void *x, const void *y)
{
    const struct mfs_seen_side *a = x, *b = y;
    int rc = mfs_flat_order(a->ino, b->ino);

    if (!rc)
        rc = mfs_flat_order(a->letter, b->letter);
    if (!rc)
        rc = mfs_flat_order(a->sid, b->sid);
    return rc ? rc : mfs_flat_order(a->part, b->part);
}

static int by_txn(const void *x, const void *y) /* first field */
{
    return memcmp(x, y, MFS_TXN_LEN);
}

static int by_txn_and_part(const void *x, const void *y)
{
    const struct mfs_seen_note *a = x, *b = y;
    int rc = memcmp(a->txn, b->txn, sizeof a->txn);

    if (!rc)
        rc = mfs_flat_order(a->part, b->part);
    return rc ? rc : mfs_flat_order(a->lock, b->lock);
}

static int by_ino(const void *x, const void *y)
{
    uint64_t a = ((const struct mfs_seen_entry *)x)->ino;
    uint64_t b = ((const struct mfs_seen_entry *)y)->ino;

    return mfs_flat_order(a, b);
}

void mfs_census_sort(struct mfs_census *c)
{
    sort_names = &c->bytes;
    mfs_flat_sort(&c->inodes, by_number);
    mfs_flat_sort(&c->entries, by_ino_and_name);
    mfs_flat_sort(&c->shards, by_shard);
    mfs_flat_sort(&c->stripes, by_stripe);
    mfs_flat_sort(&c->lost, by_stripe);
    mfs_flat_sort(&c->sides, by_side);
    mfs_flat_sort(&c->txns, by_txn);
    mfs_flat_sort(&c->notes, by_txn_and_part);
    mfs_flat_sort(&c->orphans, by_number);
    mfs_flat_sort(&c->reaps, by_number);
    mfs_flat_sort(&c->sessions, by_number);
}

/* --- looking up ---------------------------------------------------------------------------------
 */

uint64_t mfs_census_keep(struct mfs_census *c, const void *p, size_t n)
{
    uint64_t at = mfs_buf_len(&c->bytes);

    return mfs_buf_append(&c->bytes, p, n) ? UINT64_MAX : at;
}

struct mfs_seen_inode *mfs_census_inode(const struct mfs_census *c, uint64_t ino)
{
    return mfs_flat_find(&c->inodes, &ino, by_number);
}

const struct mfs_seen_entry *mfs_census_entry(const struct mfs_census *c, size_t i)
{
    return mfs_flat_at(&c->entries, i);
}

const char *mfs_census_name(const struct mfs_census *c, uint64_t name)
{
    return mfs_buf_data(&c->bytes) + name;
}

bool mfs_census_alive(const struct mfs_census *c, uint64_t sid)
{
    return mfs_flat_find(&c->sessions, &sid, by_number);
}

bool mfs_census_orphan(const struct mfs_census *c, uint64_t ino)
{
    return mfs_flat_find(&c->orphans, &ino, by_number);
}

bool mfs_census_reaped(const struct mfs_census *c, uint64_t ino)
{
    return mfs_flat_find(&c->reaps, &ino, by_number);
}

bool mfs_census_noted(const struct mfs_census *c, const char *txn)
{
    return mfs_flat_find(&c->notes, txn, by_txn);
}

bool mfs_census_open(const struct mfs_census *c, uint64_t ino)
{
    const struct mfs_seen_side key = {.ino = ino};

    for (size_t i = mfs_flat_lower(&c->sides, &key, by_side); i < c->sides.n; i++) {
        const struct mfs_seen_side *s = mfs_flat_at(&c->sides, i);

        if (s->ino != ino)
            return false;
        if ((s->letter == 'O' || s->letter == 'P') && s->sid && mfs_census_alive(c, s->sid))
            return true;
    }
    return false;
}

size_t mfs_census_first_entry(const struct mfs_census *c, uint64_t ino)
{
    const struct mfs_seen_entry key = {.ino = ino};

    return mfs_flat_lower(&c->entries, &key, by_ino);
}

bool mfs_census_has_stripes(const struct mfs_census *c, uint64_t ino)
{
    const struct mfs_seen_stripe key = {.ino = ino, .n = 1};
    size_t i = mfs_flat_lower(&c->stripes, &key, by_stripe);

    return i < c->stripes.n && ((struct mfs_seen_stripe *)mfs_flat_at(&c->stripes, i))->ino == ino;
}
