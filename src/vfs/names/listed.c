#include "vfs/names/listed.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "vfs/names/ahead.h"
#include "vfs/names/streaks.h"

#define SLOTS     8              /* directories */
#define NAMES_MIN 4U             /* with "." and ".."; smaller listings are not kept */
#define LIFE      (30 * MFS_SEC) /* since the last look-up of a name in it */

/* A kept listing. */
struct slot {
    uint64_t dir;
    struct mfs_listing *listing; /* NULL: the slot is free */
    int64_t used;                /* mono */
    uint64_t saved;              /* look-ups that had to ask nobody */
    struct mfs_ahead ahead;
    bool unasked; /* the program has not listed it */
};

struct mfs_listed {
    size_t most;           /* names of all of them; constant */
    atomic_uint n;         /* slots in use; written under mutex */
    pthread_mutex_t mutex; /* a leaf; guards what follows */
    struct slot slots[SLOTS];
    struct mfs_streaks streaks;
};

static void free_slot(const struct slot *s)
{
    mfs_listing_free(s->listing);
    mfs_ahead_fini(&s->ahead);
}

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
        free_slot(&l->slots[i]);
    pthread_mutex_destroy(&l->mutex);
    free(l);
}

/* With the mutex held, as what follows: empties the slot. */
static struct slot take(struct mfs_listed *l, struct slot *s)
{
    struct slot taken = *s;

    if (s->listing != NULL)
        atomic_fetch_sub(&l->n, 1);
    *s = (struct slot){0};
    return taken;
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

/* A slot for so many names more. What has to make room is moved to *out, *n slots. */
static struct slot *make_room(struct mfs_listed *l, size_t names, struct slot *out, size_t *n)
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
    struct slot out[SLOTS + 1];
    struct slot *s;
    size_t n = 0;

    pthread_mutex_lock(&l->mutex);
    s = find(l, new->dir);
    if (s != NULL && again) { /* a younger one has come meanwhile */
        out[n++] = *new;
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
        free_slot(&out[--n]);
}

/* Takes the listing over. False: it is not kept. */
static bool keep(struct mfs_listed *l, const struct slot *new)
{
    size_t n = mfs_listing_count(new->listing);
    bool kept = n >= NAMES_MIN && n <= l->most;

    if (kept)
        put(l, new, false);
    else
        free_slot(new);
    return kept;
}

void mfs_listed_put(struct mfs_listed *l, uint64_t dir, struct mfs_listing *listing)
{
    if (l == NULL)
        mfs_listing_free(listing);
    else
        keep(l, &(struct slot){.dir = dir, .listing = listing, .used = mfs_clock_mono()});
}

/* Takes the directory's slot out, for as long as files are being brought, or because it is too
 * old: others ask meanwhile as if it had not been listed. False: there is none. */
static bool take_out(struct mfs_listed *l, uint64_t dir, struct slot *out)
{
    struct slot *s;

    pthread_mutex_lock(&l->mutex);
    s = find(l, dir);
    if (s != NULL)
        *out = take(l, s);
    pthread_mutex_unlock(&l->mutex);
    return s != NULL;
}

/* The name is known. */
static void hit(struct mfs_listed *l, uint64_t dir)
{
    struct slot *s;

    pthread_mutex_lock(&l->mutex);
    s = find(l, dir);
    if (s != NULL) {
        s->ahead.hits++;
        s->saved++;
        s->used = mfs_clock_mono();
    }
    pthread_mutex_unlock(&l->mutex);
}

static bool is_file(const struct mfs_listing *l, size_t at)
{
    return S_ISREG(mfs_listing_at(l, at).type);
}

/* Brings it, and others, along. False: its files get no leases here, or a partition that others
 * are in does not answer. */
static bool bring(struct mfs_meta *meta, struct slot *s, const char *name, size_t at)
{
    const uint32_t *order;
    int rc;

    mfs_ahead_next(&s->ahead, s->listing);
    order = s->ahead.order[s->ahead.how];
    rc = mfs_meta_learn(meta, s->dir, s->listing, order,
                        order ? mfs_order_find(s->listing, order, s->ahead.how, name) : at,
                        s->ahead.batch);
    s->used = mfs_clock_mono();
    return rc == 0 && (!is_file(s->listing, at) || mfs_meta_knows(meta, s->dir, name));
}

/* The program has looked at many files of the directory one by one. */
static bool list_for_it(struct mfs_listed *l, struct mfs_meta *meta, uint64_t dir)
{
    struct slot new = {.dir = dir, .unasked = true}, *old;
    int64_t saved = -1;

    pthread_mutex_lock(&l->mutex);
    old = find(l, dir);
    if (old != NULL && old->unasked)
        saved = (int64_t)old->saved;
    pthread_mutex_unlock(&l->mutex);
    new.used = mfs_clock_mono();
    if (mfs_meta_list(meta, dir, &new.listing) == 0) {
        size_t at;

        mfs_listing_find(new.listing, "", &at); /* which leaves each name in it once */
        mfs_ahead_begin(&new.ahead, new.listing, MFS_ORDER_NUMBERS);
    }
    pthread_mutex_lock(&l->mutex);
    if (new.listing != NULL)
        mfs_streaks_listed(&l->streaks, dir, saved);
    else
        mfs_streaks_failed(&l->streaks, dir);
    pthread_mutex_unlock(&l->mutex);
    if (new.listing == NULL)
        return false;
    return keep(l, &new);
}

/* Does it pay to list the directory? */
static bool is_due(struct mfs_listed *l, struct mfs_meta *meta, uint64_t dir, const char *name)
{
    int64_t names;
    bool due;

    pthread_mutex_lock(&l->mutex);
    due = mfs_streaks_due(&l->streaks, dir);
    pthread_mutex_unlock(&l->mutex);
    if (!due)
        return false;
    names = mfs_meta_names_about(meta, dir, name);
    pthread_mutex_lock(&l->mutex);
    due = mfs_streaks_sized(&l->streaks, dir, names, l->most);
    pthread_mutex_unlock(&l->mutex);
    return due;
}

bool mfs_listed_look(struct mfs_listed *l, struct mfs_meta *meta, uint64_t dir, const char *name)
{
    struct slot s;
    size_t at;

    if (l == NULL)
        return false;
    if (mfs_meta_knows(meta, dir, name)) {
        if (atomic_load_explicit(&l->n, memory_order_relaxed) > 0)
            hit(l, dir);
        return false;
    }
    if (is_due(l, meta, dir, name) && !list_for_it(l, meta, dir))
        return true;
    if (atomic_load_explicit(&l->n, memory_order_relaxed) == 0 || !take_out(l, dir, &s))
        return true;
    if (mfs_clock_mono() - s.used > LIFE) {
        free_slot(&s);
        return true;
    }
    if (!mfs_listing_find(s.listing, name, &at)) {
        put(l, &s, true);
        return true;
    }
    if (bring(meta, &s, name, at)) {
        put(l, &s, true);
        return false;
    }
    free_slot(&s);
    pthread_mutex_lock(&l->mutex);
    mfs_streaks_failed(&l->streaks, dir);
    pthread_mutex_unlock(&l->mutex);
    return false;
}

void mfs_listed_found(struct mfs_listed *l, uint64_t dir)
{
    pthread_mutex_lock(&l->mutex);
    mfs_streaks_found(&l->streaks, dir, mfs_clock_mono());
    pthread_mutex_unlock(&l->mutex);
}
