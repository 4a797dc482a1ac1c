#include "partition/files/voids.h"

#include <stdlib.h>

#include "partition/keys.h"

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

/* --- keys of ranges --------------------------------------------------------------------------- */

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

static bool has(const struct mfs_inode *i, int flag)
{
    return i->rec[MFS_REC_FLAGS] & flag;
}

static bool load(struct RedisModuleCtx *ctx, char letter, int flag, struct mfs_span ino,
                 const struct mfs_inode *i, struct mfs_ranges *v)
{
    struct RedisModuleKey *key;
    bool sound;

    if (!has(i, flag))
        return true;
    key = mfs_key_open(ctx, letter, ino, MFS_REDIS_READ);
    sound = mfs_voids_name_list(v, mfs_key_text(key));
    mfs_key_close(key);
    return sound;
}

static void save(struct RedisModuleCtx *ctx, char letter, int flag, struct mfs_span ino,
                 struct mfs_inode *i, struct mfs_ranges *v)
{
    struct RedisModuleKey *key;

    forget_smallest(v);
    if (!v->n && !has(i, flag))
        return;
    key = mfs_key_open(ctx, letter, ino, MFS_REDIS_WRITE);
    if (v->n) {
        put(ctx, key, v);
        i->rec[MFS_REC_FLAGS] |= (char)flag;
    } else {
        mfs_key_delete(key);
        i->rec[MFS_REC_FLAGS] &= (char)~flag;
    }
    mfs_key_close(key);
}

/* --- what of a file is there -------------------------------------------------------------------
 */

void mfs_space_init(struct mfs_space *s)
{
    mfs_ranges_init(&s->voids);
    mfs_ranges_init(&s->room);
}

void mfs_space_fini(struct mfs_space *s)
{
    mfs_ranges_fini(&s->voids);
    mfs_ranges_fini(&s->room);
}

/* What is behind its end of data it has no more. */
bool mfs_space_load(struct RedisModuleCtx *ctx, struct mfs_span ino, const struct mfs_inode *i,
                    struct mfs_space *s)
{
    bool sound = load(ctx, 'V', MFS_ATTR_VOIDS, ino, i, &s->voids) &&
                 load(ctx, 'F', MFS_RECORD_ROOM, ino, i, &s->room);

    mfs_ranges_cut(&s->voids, (uint64_t)mfs_rec_i64(i->rec, MFS_REC_END));
    return sound;
}

static void save_space(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_inode *i,
                       struct mfs_space *s)
{
    save(ctx, 'V', MFS_ATTR_VOIDS, ino, i, &s->voids);
    save(ctx, 'F', MFS_RECORD_ROOM, ino, i, &s->room);
}

static uint64_t round_down(uint64_t n)
{
    return n / MFS_BLOCK * MFS_BLOCK;
}

static uint64_t round_up(uint64_t n)
{
    return round_down(n + MFS_BLOCK - 1);
}

static int64_t allocated(const struct mfs_space *s, int64_t end)
{
    uint64_t last = round_up((uint64_t)end), at = 0;
    struct mfs_ranges used;
    int64_t bytes;

    mfs_ranges_init(&used);
    for (uint32_t i = 0; i < s->voids.n; i++) {
        const struct mfs_range *v = &s->voids.v[i];
        uint64_t lo = round_up(v->lo), hi = v->hi == (uint64_t)end ? last : round_down(v->hi);

        if (lo >= hi)
            continue;
        must(mfs_ranges_add(&used, at, lo));
        at = hi;
    }
    must(mfs_ranges_add(&used, at, last));
    for (uint32_t i = 0; i < s->room.n; i++)
        must(mfs_ranges_add(&used, s->room.v[i].lo, s->room.v[i].hi));
    bytes = (int64_t)mfs_ranges_bytes(&used);
    mfs_ranges_fini(&used);
    return bytes;
}

bool mfs_room_parse(struct mfs_span text, struct mfs_room *room)
{
    *room = (struct mfs_room){0};
    if (!text.n)
        return true;
    if (text.n != 33 || (text.p[0] != '+' && text.p[0] != '-'))
        return false;
    *room = (struct mfs_room){text.p[0], mfs_rec_i64(text.p, 1), mfs_rec_i64(text.p, 9),
                              mfs_rec_i64(text.p, 17), mfs_rec_i64(text.p, 25)};
    return room->lo >= 0 && room->hi >= 0 && room->hi <= INT64_MAX - MFS_BLOCK &&
           room->void_lo >= 0 && room->void_hi >= 0;
}

/* Only whole blocks can be given back; what is wanted is wanted with all that it touches. */
static void change_room(struct mfs_space *s, const struct mfs_room *room, int64_t end)
{
    uint64_t lo = (uint64_t)room->lo, hi = (uint64_t)room->hi;

    if (room->how == '+')
        must(mfs_ranges_add(&s->room, round_down(lo), round_up(hi)));
    else if (room->how == '-')
        must(mfs_ranges_take(&s->room, round_up(lo), round_down(hi)));
    if (room->how)
        mfs_voids_name(&s->voids, room->void_lo, room->void_hi < end ? room->void_hi : end);
}

/* Only what has changed is counted: of a file in very many pieces not all voids are known. */
static void count(struct mfs_inode *i, int64_t before, int64_t after)
{
    int64_t stored = mfs_rec_i64(i->rec, MFS_REC_STORED);

    if (after > before)
        stored += after - before;
    mfs_rec_put_i64(i->rec, MFS_REC_STORED, stored < after ? stored : after);
}

void mfs_voids_grow(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_inode *i,
                    int64_t end, const struct mfs_ranges *named, const struct mfs_room *room,
                    struct mfs_space *s)
{
    int64_t old = mfs_rec_i64(i->rec, MFS_REC_END), last = (int64_t)mfs_ranges_end(named);
    int64_t before = allocated(s, old);

    end = end > last ? end : last;
    end = end > old ? end : old;
    if (end > old) {
        mfs_voids_name(&s->voids, old, end);
        mfs_rec_put_i64(i->rec, MFS_REC_END, end);
    }
    for (uint32_t n = 0; s->voids.n && n < named->n; n++)
        must(mfs_ranges_take(&s->voids, named->v[n].lo, named->v[n].hi));
    change_room(s, room, end);
    count(i, before, allocated(s, end));
    save_space(ctx, ino, i, s);
}

void mfs_voids_leave(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_inode *i,
                     int64_t end)
{
    struct mfs_ranges none;
    struct mfs_space s;

    mfs_ranges_init(&none);
    mfs_space_init(&s);
    if (mfs_space_load(ctx, ino, i, &s))
        mfs_voids_grow(ctx, ino, i, end, &none, &(struct mfs_room){0}, &s);
    mfs_ranges_fini(&none);
    mfs_space_fini(&s);
}

void mfs_voids_cut(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_inode *i)
{
    struct mfs_space s;
    int64_t after;

    mfs_space_init(&s);
    if (mfs_inode_is_sound(i) && mfs_space_load(ctx, ino, i, &s)) {
        mfs_ranges_cut(&s.room, round_up((uint64_t)mfs_rec_i64(i->rec, MFS_REC_SIZE)));
        after = allocated(&s, mfs_rec_i64(i->rec, MFS_REC_END));
        count(i, after, after);
        save_space(ctx, ino, i, &s);
    }
    mfs_space_fini(&s);
}

bool mfs_voids_head(const struct mfs_inode *i, struct RedisModuleKey *stripe0,
                    struct mfs_span *content)
{
    size_t end = (size_t)mfs_rec_i64(i->rec, MFS_REC_END);

    *content = mfs_key_text(stripe0);
    if (content->n > end)
        content->n = end;
    return !has(i, MFS_ATTR_VOIDS);
}
