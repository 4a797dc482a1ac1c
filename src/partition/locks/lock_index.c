/* Each node is in two trees: by owner and first byte, with the number of nodes below it; and by
 * first byte and owner, one tree for each kind, with the last byte that is locked below it, by any
 * owner and by writers. Both are kept in balance by the same random number of each node (a treap),
 * so depth, and with it recursion, is logarithmic, whatever clients lock. */
#include "partition/locks/lock_index.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "partition/redis.h"

enum order { BY_OWNER, BY_PLACE, ORDERS };
enum { ANYBODY, WRITERS };

struct node {
    struct mfs_locked l;
    uint32_t weight; /* random: greater ones are above */
    uint32_t n;      /* nodes below and this one, by owner */
    int64_t most[2]; /* last byte below and here, by place: of ANYBODY, of WRITERS (-1: none) */
    struct node *left[ORDERS], *right[ORDERS];
};

struct mfs_lock_index {
    struct node *owners, *places[2]; /* places: of fcntl locks, of flocks */
};

static uint32_t random_weight(void)
{
    static uint64_t state;

    if (!state && getrandom(&state, sizeof state, 0) != (ssize_t)sizeof state)
        state = (uint64_t)time(NULL);
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(state >> 32);
}

/* ---- trees ----------------------------------------------------------------------------------- */

static int compare(enum order by, const struct mfs_locked *a, const struct mfs_locked *b)
{
    int owner = memcmp(a->owner, b->owner, sizeof a->owner);
    int place = a->first < b->first ? -1 : a->first > b->first;

    if (by == BY_OWNER)
        return owner ? owner : place;
    return place ? place : owner;
}

static uint32_t size_of(const struct node *t)
{
    return t ? t->n : 0;
}

static void raise(struct node *t, const struct node *below)
{
    for (int who = ANYBODY; below && who <= WRITERS; who++) {
        if (below->most[who] > t->most[who])
            t->most[who] = below->most[who];
    }
}

/* What a node says of those below it, once one of them is another. */
static void sum_up(enum order by, struct node *t)
{
    if (by == BY_OWNER) {
        t->n = 1 + size_of(t->left[by]) + size_of(t->right[by]);
        return;
    }
    t->most[ANYBODY] = t->l.last;
    t->most[WRITERS] = t->l.type == MFS_RANGE_WRITE ? t->l.last : -1;
    raise(t, t->left[by]);
    raise(t, t->right[by]);
}

/* Those before the key go to *before, the others to *behind. */
static void split(enum order by, struct node *t, const struct mfs_locked *key, struct node **before,
                  struct node **behind)
{
    if (!t) {
        *before = *behind = NULL;
    } else if (compare(by, &t->l, key) < 0) {
        split(by, t->right[by], key, &t->right[by], behind);
        *before = t;
        sum_up(by, t);
    } else {
        split(by, t->left[by], key, before, &t->left[by]);
        *behind = t;
        sum_up(by, t);
    }
}

/* All of a come before all of b. */
static struct node *join(enum order by, struct node *a, struct node *b)
{
    if (!a || !b)
        return a ? a : b;
    if (a->weight > b->weight) {
        a->right[by] = join(by, a->right[by], b);
        sum_up(by, a);
        return a;
    }
    b->left[by] = join(by, a, b->left[by]);
    sum_up(by, b);
    return b;
}

static void put(enum order by, struct node **t, struct node *n)
{
    if (!*t || n->weight > (*t)->weight) {
        split(by, *t, &n->l, &n->left[by], &n->right[by]);
        *t = n;
    } else {
        put(by, compare(by, &n->l, &(*t)->l) < 0 ? &(*t)->left[by] : &(*t)->right[by], n);
    }
    sum_up(by, *t);
}

/* The node of the key, which is in the tree no more; NULL: it was not. */
static struct node *take(enum order by, struct node **t, const struct mfs_locked *key)
{
    struct node *n = *t;
    int side = n ? compare(by, key, &n->l) : 0;

    if (!n)
        return NULL;
    if (!side) {
        *t = join(by, n->left[by], n->right[by]);
        return n;
    }
    n = take(by, side < 0 ? &(*t)->left[by] : &(*t)->right[by], key);
    sum_up(by, *t);
    return n;
}

/* ---- the index ------------------------------------------------------------------------------- */

static size_t kind_of(const struct mfs_locked *l)
{
    return l->owner[0] == 'F';
}

struct mfs_lock_index *mfs_lock_index_create(void)
{
    struct mfs_lock_index *x = mfs_redis.Alloc(sizeof *x);

    *x = (struct mfs_lock_index){0};
    return x;
}

static void free_all(struct node *t)
{
    if (!t)
        return;
    free_all(t->left[BY_OWNER]);
    free_all(t->right[BY_OWNER]);
    mfs_redis.Free(t);
}

void mfs_lock_index_destroy(struct mfs_lock_index *x)
{
    if (!x)
        return;
    free_all(x->owners);
    mfs_redis.Free(x);
}

size_t mfs_lock_index_size(const struct mfs_lock_index *x)
{
    return size_of(x->owners);
}

/* How many come before the owner's; `with` these, or without. */
static size_t rank(const struct node *t, const char *owner, int with)
{
    size_t n = 0;

    while (t) {
        if (memcmp(t->l.owner, owner, MFS_LOCK_OWNER) < with) {
            n += 1 + size_of(t->left[BY_OWNER]);
            t = t->right[BY_OWNER];
        } else {
            t = t->left[BY_OWNER];
        }
    }
    return n;
}

size_t mfs_lock_index_count(const struct mfs_lock_index *x, const char *owner)
{
    return rank(x->owners, owner, 1) - rank(x->owners, owner, 0);
}

void mfs_lock_index_put(struct mfs_lock_index *x, const struct mfs_locked *l)
{
    struct node *n = mfs_redis.Alloc(sizeof *n);

    mfs_lock_index_take(x, l);
    *n = (struct node){.l = *l, .weight = random_weight()};
    put(BY_OWNER, &x->owners, n);
    put(BY_PLACE, &x->places[kind_of(l)], n);
}

void mfs_lock_index_take(struct mfs_lock_index *x, const struct mfs_locked *l)
{
    struct node *n = take(BY_OWNER, &x->owners, l);

    if (!n)
        return;
    take(BY_PLACE, &x->places[kind_of(l)], l);
    mfs_redis.Free(n);
}

const struct mfs_locked *mfs_lock_index_own(const struct mfs_lock_index *x, const char *owner,
                                            int64_t from)
{
    const struct node *t = x->owners, *best = NULL;

    while (t) {
        int side = memcmp(owner, t->l.owner, MFS_LOCK_OWNER);

        if (side < 0 || (!side && t->l.last >= from)) {
            best = side ? best : t;
            t = t->left[BY_OWNER];
        } else {
            t = t->right[BY_OWNER];
        }
    }
    return best ? &best->l : NULL;
}

static bool is_in_way(const struct mfs_locked *l, const struct mfs_locked *want)
{
    return l->last >= want->first &&
           (l->type == MFS_RANGE_WRITE || want->type == MFS_RANGE_WRITE) &&
           memcmp(l->owner, want->owner, MFS_LOCK_OWNER) != 0;
}

static const struct node *find(const struct node *t, const struct mfs_locked *want,
                               const struct mfs_locked *after)
{
    const struct node *n;

    if (!t || t->most[want->type == MFS_RANGE_WRITE ? ANYBODY : WRITERS] < want->first)
        return NULL;
    if (after && compare(BY_PLACE, &t->l, after) <= 0)
        return find(t->right[BY_PLACE], want, after);
    n = find(t->left[BY_PLACE], want, after);
    if (n || t->l.first > want->last)
        return n;
    return is_in_way(&t->l, want) ? t : find(t->right[BY_PLACE], want, after);
}

const struct mfs_locked *mfs_lock_index_in_way(const struct mfs_lock_index *x,
                                               const struct mfs_locked *want,
                                               const struct mfs_locked *after)
{
    const struct node *n = find(x->places[kind_of(want)], want, after);

    return n ? &n->l : NULL;
}
