#include "vfs/names/listed.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"

#define SLOTS     8              /* directories */
#define NAMES_MIN 4U             /* with "." and ".."; smaller listings are not kept */
#define FEW       4U             /* files that the first look-up brings */
#define LIFE      (30 * MFS_SEC) /* since the last look-up of a name in it */

struct slot {
    uint64_t dir;
    struct mfs_listing *listing; /* NULL: the slot is free */
    int64_t used;                /* mono */
    unsigned batch;              /* files that were brought last */
    unsigned hits;               /* look-ups since then that had to ask nobody */
};

struct mfs_listed {
    size_t most;           /* names of all of them; constant */
    atomic_uint n;         /* slots in use; written under mutex */
    pthread_mutex_t mutex; /* a leaf; guards what follows */
    struct slot slots[SLOTS];
};

struct mfs_listed *mfs_listed_create(size_t most)
{
    struct mfs_listed *l = calloc(1, sizeof *l);

    if (l == NULL)
        return NULL;
    l->most = most;
    pthread_mutex_init(&l->mutex, NULL);
    return l;
}

void mfs_listed_destroy(struct mfs_listed *l)
{
    if (l == NULL)
        return;
    for (size_t i = 0; i < SLOTS; i++)
        mfs_listing_free(l->slots[i].listing);
    pthread_mutex_destroy(&l->mutex);
    free(l);
}

/* With the mutex held, as what follows: empties the slot. */
static struct mfs_listing *take(struct mfs_listed *l, struct slot *s)
{
    struct mfs_listing *listing = s->listing;

    if (listing != NULL)
        atomic_fetch_sub(&l->n, 1);
    s->listing = NULL;
    return listing;
}

static struct slot *find(struct mfs_listed *l, uint64_t dir)
{
    for (size_t i = 0; i < SLOTS; i++) {
        if (l->slots[i].listing != NULL && l->slots[i].dir == dir)
            return &l->slots[i];
    }
    return NULL;
}

/* A free one, or that which was used least lately. */
static struct slot *oldest(struct mfs_listed *l)
{
    struct slot *s = &l->slots[0];

    for (size_t i = 0; i < SLOTS; i++) {
        if (l->slots[i].listing == NULL)
            return &l->slots[i];
        if (l->slots[i].used < s->used)
            s = &l->slots[i];
    }
    return s;
}

/* A slot for so many names more. What has to make room is moved to *out, *n listings. */
static struct slot *make_room(struct mfs_listed *l, size_t names, struct mfs_listing **out,
                              size_t *n)
{
    for (;;) {
        struct slot *s = NULL;
        size_t sum = names;

        for (size_t i = 0; i < SLOTS; i++) {
            struct slot *o = &l->slots[i];

            if (o->listing == NULL)
                continue;
            sum += mfs_listing_count(o->listing);
            s = s == NULL || o->used < s->used ? o : s;
        }
        if (s == NULL || sum <= l->most)
            break;
        out[(*n)++] = take(l, s);
    }
    return oldest(l);
}

/* The listing goes to the place of the directory's last one, or of older ones. */
static void put(struct mfs_listed *l, const struct slot *new, bool again)
{
    struct mfs_listing *out[SLOTS + 1];
    struct slot *s;
    size_t n = 0;

    pthread_mutex_lock(&l->mutex);
    s = find(l, new->dir);
    if (s != NULL && again) { /* a younger one has come meanwhile */
        out[n++] = new->listing;
    } else {
        if (s != NULL)
            out[n++] = take(l, s);
        s = make_room(l, mfs_listing_count(new->listing), out, &n);
        if (s->listing != NULL)
            out[n++] = take(l, s);
        *s = *new;
        atomic_fetch_add(&l->n, 1);
    }
    pthread_mutex_unlock(&l->mutex);
    while (n > 0)
        mfs_listing_free(out[--n]);
}

void mfs_listed_put(struct mfs_listed *l, uint64_t dir, struct mfs_listing *listing)
{
    const struct slot new = {dir, listing, mfs_clock_mono(), 0, 0};
    size_t n = mfs_listing_count(listing);

    if (l == NULL || n < NAMES_MIN || n > l->most)
        mfs_listing_free(listing);
    else
        put(l, &new, false);
}

/* Takes the directory's slot out, for as long as files are being brought, or because it is too
 * old: others ask meanwhile as if it had not been listed. False: there is none. */
static bool take_out(struct mfs_listed *l, uint64_t dir, struct slot *out)
{
    struct slot *s;

    pthread_mutex_lock(&l->mutex);
    s = find(l, dir);
    if (s != NULL) {
        *out = *s;
        take(l, s);
    }
    pthread_mutex_unlock(&l->mutex);
    return s != NULL;
}

/* The name is known; false: the directory was not listed. */
static void hit(struct mfs_listed *l, uint64_t dir)
{
    struct slot *s;

    pthread_mutex_lock(&l->mutex);
    s = find(l, dir);
    if (s != NULL) {
        s->hits++;
        s->used = mfs_clock_mono();
    }
    pthread_mutex_unlock(&l->mutex);
}

/* Half of what was brought last has been used: the program goes through all of it. */
static unsigned next_batch(const struct slot *s)
{
    unsigned used = s->hits > s->batch ? s->hits : s->batch;

    if (2 * s->hits < s->batch || used < FEW)
        return FEW;
    return 2 * used < MFS_META_LEARN ? 2 * used : MFS_META_LEARN;
}

static bool is_file(const struct mfs_listing *l, size_t at)
{
    return S_ISREG(mfs_listing_at(l, at).type);
}

void mfs_listed_look(struct mfs_listed *l, struct mfs_meta *meta, uint64_t dir, const char *name)
{
    struct slot s;
    size_t at;

    if (l == NULL || atomic_load_explicit(&l->n, memory_order_relaxed) == 0)
        return;
    if (mfs_meta_knows(meta, dir, name)) {
        hit(l, dir);
        return;
    }
    if (!take_out(l, dir, &s))
        return;
    if (mfs_clock_mono() - s.used > LIFE) {
        mfs_listing_free(s.listing);
        return;
    }
    if (mfs_listing_find(s.listing, name, &at)) {
        s.batch = next_batch(&s);
        s.hits = 0;
        mfs_meta_learn(meta, dir, s.listing, at, s.batch);
        s.used = mfs_clock_mono();
        if (is_file(s.listing, at) && !mfs_meta_knows(meta, dir, name)) {
            mfs_listing_free(s.listing); /* as its files get no leases here */
            return;
        }
    }
    put(l, &s, true);
}
