#include "partition/voids.h"

#include <stdlib.h>

#include "partition/journal.h"

#define PAIR     16    /* bytes of a range in the key */
#define LIST_MAX 65536 /* ranges in one, more than a client names at once */

/* There is no memory for the few MiB that LIST_MAX ranges take: the server ends as well then. */
static void must(int rc)
{
    if (rc)
        abort();
}

void mfs_voids_name(struct mfs_ranges *named, int64_t lo, int64_t hi)
{
    must(mfs_ranges_add(named, (uint64_t)lo, (uint64_t)hi));
}

bool mfs_voids_name_list(struct mfs_ranges *named, struct mfs_span list)
{
    int64_t behind = 0;

    if (list.n % PAIR || list.n / PAIR > LIST_MAX)
        return false;
    for (size_t at = 0; at < list.n; at += PAIR) {
        int64_t lo = mfs_rec_i64(list.p, at), hi = mfs_rec_i64(list.p, at + 8);

        if (lo < behind || lo >= hi)
            return false;
        mfs_voids_name(named, lo, hi);
        behind = hi;
    }
    return true;
}

static int by_length(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* The length up to which ranges have to go, so that no more than MFS_VOIDS_MAX stay. */
static uint64_t length_to_forget(const struct mfs_ranges *v)
{
    uint64_t *lengths = malloc(v->n * sizeof *lengths), most;

    must(!lengths);
    for (uint32_t i = 0; i < v->n; i++)
        lengths[i] = v->v[i].hi - v->v[i].lo;
    qsort(lengths, v->n, sizeof *lengths, by_length);
    most = lengths[v->n - MFS_VOIDS_MAX - 1];
    free(lengths);
    return most;
}

static void forget_smallest(struct mfs_ranges *v)
{
    uint32_t over = v->n > MFS_VOIDS_MAX ? v->n - MFS_VOIDS_MAX : 0, n = 0;
    uint64_t most = over ? length_to_forget(v) : 0;

    for (uint32_t i = 0; over && i < v->n; i++) {
        if (v->v[i].hi - v->v[i].lo <= most && i - n < over)
            continue;
        v->v[n++] = v->v[i];
    }
    v->n = over ? n : v->n;
}

static void put(struct RedisModuleCtx *ctx, struct RedisModuleKey *key, const struct mfs_ranges *v)
{
    struct mfs_answer list = {0};

    for (uint32_t i = 0; i < v->n; i++) {
        char pair[PAIR];

        mfs_rec_put_i64(pair, 0, (int64_t)v->v[i].lo);
        mfs_rec_put_i64(pair, 8, (int64_t)v->v[i].hi);
        mfs_answer_add(&list, pair, sizeof pair);
    }
    mfs_key_set(ctx, key, list.p, list.n);
    free(list.p);
}

static bool has_voids(const struct mfs_inode *i)
{
    return i->rec[MFS_REC_FLAGS] & MFS_FLAG_VOIDS;
}

/* What is behind its end of data it has no more. */
bool mfs_voids_load(struct RedisModuleCtx *ctx, struct mfs_span ino, const struct mfs_inode *i,
                    struct mfs_ranges *voids)
{
    struct RedisModuleKey *key;
    bool sound;

    if (!has_voids(i))
        return true;
    key = mfs_key_open(ctx, 'V', ino, MFS_REDIS_READ);
    sound = mfs_voids_name_list(voids, mfs_key_text(key));
    mfs_key_close(key);
    mfs_ranges_cut(voids, (uint64_t)mfs_rec_i64(i->rec, MFS_REC_END));
    return sound;
}

static void save(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_inode *i,
                 const struct mfs_ranges *v)
{
    struct RedisModuleKey *key;

    if (!v->n && !has_voids(i))
        return;
    key = mfs_key_open(ctx, 'V', ino, MFS_REDIS_WRITE);
    if (v->n) {
        put(ctx, key, v);
        i->rec[MFS_REC_FLAGS] |= (char)MFS_FLAG_VOIDS;
    } else {
        mfs_key_delete(key);
        i->rec[MFS_REC_FLAGS] &= (char)~MFS_FLAG_VOIDS;
    }
    mfs_key_close(key);
}

void mfs_voids_grow(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_inode *i,
                    int64_t end, const struct mfs_ranges *named, struct mfs_ranges *voids)
{
    int64_t old = mfs_rec_i64(i->rec, MFS_REC_END), last = (int64_t)mfs_ranges_end(named);

    end = end > last ? end : last;
    if (end > old) {
        mfs_voids_name(voids, old, end);
        mfs_rec_put_i64(i->rec, MFS_REC_END, end);
    }
    for (uint32_t n = 0; voids->n && n < named->n; n++)
        must(mfs_ranges_take(voids, named->v[n].lo, named->v[n].hi));
    forget_smallest(voids);
    save(ctx, ino, i, voids);
}

bool mfs_voids_head(const struct mfs_inode *i, struct RedisModuleKey *stripe0,
                    struct mfs_span *content)
{
    size_t end = (size_t)mfs_rec_i64(i->rec, MFS_REC_END);

    *content = mfs_key_text(stripe0);
    if (content->n > end)
        content->n = end;
    return !has_voids(i);
}
