/* The planner: count, loosen, place; planner_list.c lists what has come of it. */
#include "cm/plan/planner_impl.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cluster/y0.h"

#define EXCHANGES 64 /* tried for a partition, before it is given up */

static uint64_t size_of(const struct mfs_plan_work *w, uint32_t part)
{
    return w->in->part[part].bytes + w->in->part_overhead;
}

static uint64_t free_of(const struct mfs_plan_place *n)
{
    return n->in->memory > n->held ? n->in->memory - n->held : 0;
}

/* ---- what is where --------------------------------------------------------------------------- */

struct id_at {
    uint32_t id, at;
};

static int by_id(const void *a, const void *b)
{
    const struct id_at *x = a, *y = b;

    return (x->id > y->id) - (x->id < y->id);
}

static int locate(struct mfs_plan_work *w, struct mfs_err *err)
{
    size_t n = w->in->nnodes;
    struct id_at *ids = calloc(n, sizeof *ids);
    int rc = 0;

    if (!ids)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < n; i++)
        ids[i] = (struct id_at){w->in->node[i].id, i};
    qsort(ids, n, sizeof *ids, by_id);
    for (size_t i = 1; i < n && !rc; i++)
        if (ids[i].id == ids[i - 1].id)
            rc = mfs_err_set(err, -EINVAL, "node %u is there twice", ids[i].id);
    for (uint32_t p = 0; p < w->in->nparts && !rc; p++) {
        const struct id_at key = {w->in->part[p].node, 0}, *found;

        found = bsearch(&key, ids, n, sizeof *ids, by_id);
        if (!found && key.id != MFS_PLAN_NOWHERE)
            rc = mfs_err_set(err, -EINVAL, "partition %u is on node %u, which is not there", p,
                             key.id);
        w->where[p] = found ? found->at : (uint32_t)n;
    }
    free(ids);
    return rc;
}

struct sized {
    uint64_t bytes;
    uint32_t at, part;
};

static int by_place(const void *a, const void *b)
{
    const struct sized *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return x->part < y->part ? -1 : 1;
}

static int sort_places(struct mfs_plan_work *w, struct mfs_err *err)
{
    struct sized *s = calloc(w->in->nparts, sizeof *s);

    if (!s)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t p = 0; p < w->in->nparts; p++)
        s[p] = (struct sized){w->in->part[p].bytes, w->where[p], p};
    qsort(s, w->in->nparts, sizeof *s, by_place);
    for (uint32_t k = w->in->nparts; k-- > 0;) {
        w->order[k] = s[k].part;
        if (s[k].at == w->in->nnodes)
            continue;
        w->node[s[k].at].first = k;
        w->node[s[k].at].now++;
    }
    free(s);
    return 0;
}

/* ---- targets --------------------------------------------------------------------------------- */

struct active {
    const struct mfs_plan_work *w;
    const uint32_t *at; /* index of the i-th node that stays */
};

/* With one more a node can keep the largest of those that it would give away. */
static double worth(void *arg, size_t i, uint32_t whole)
{
    const struct active *a = arg;
    const struct mfs_plan_place *n = &a->w->node[a->at[i]];

    if (n->now <= whole)
        return 0;
    return (double)a->w->in->part[a->w->order[n->first + n->now - whole - 1]].bytes + 1;
}

static int set_targets(struct mfs_plan_work *w, struct mfs_err *err)
{
    size_t n = w->in->nnodes, stay = 0;
    double *weight = calloc(n, sizeof *weight);
    uint32_t *at = calloc(n, sizeof *at), *counts = calloc(n, sizeof *counts);
    struct active a = {w, at};
    int rc = -ENOMEM;

    if (weight && at && counts) {
        for (uint32_t i = 0; i < n; i++) {
            if (w->in->node[i].weight == 0)
                continue;
            weight[stay] = w->in->node[i].weight;
            at[stay++] = i;
        }
        rc = mfs_y0_counts_by(weight, stay, w->in->nparts, worth, &a, counts);
        for (size_t i = 0; i < stay && !rc; i++)
            w->node[at[i]].target = counts[i];
    }
    if (rc == -EINVAL)
        mfs_err_set(err, rc, "%u partitions can't be divided over %s", w->in->nparts,
                    MFS_TEXT_COUNT(stay, "node"));
    else if (rc)
        mfs_err_set(err, rc, "out of memory");
    free(weight);
    free(at);
    free(counts);
    return rc;
}

/* ---- what has to move ------------------------------------------------------------------------ */

static void loosen(struct mfs_plan_work *w, struct mfs_plan_place *n, uint32_t part)
{
    w->to[part] = (uint32_t)w->in->nnodes;
    w->loose[w->nloose++] = part;
    n->held -= size_of(w, part);
}

/* A node beyond its memory gives the smallest partition that is enough, or its largest. */
static void relieve(struct mfs_plan_work *w, struct mfs_plan_place *n, uint32_t index)
{
    while (n->held > n->in->memory) {
        uint32_t best = UINT32_MAX;

        for (uint32_t k = 0; k < n->now; k++) {
            uint32_t part = w->order[n->first + k];

            if (w->to[part] != index)
                continue;
            best = part;
            if (n->held - size_of(w, part) <= n->in->memory)
                break;
        }
        if (best == UINT32_MAX)
            return;
        loosen(w, n, best);
        n->relieved = w->bent = true;
    }
}

/* Which of its partitions, the smallest first, is the k-th of `give`. */
static uint32_t given(const struct mfs_plan_work *w, const struct mfs_plan_place *n, uint32_t give,
                      uint32_t k)
{
    if (!w->in->alike || give >= n->now)
        return k;
    return (uint32_t)(((uint64_t)2 * k + 1) * n->now / (2 * (uint64_t)give));
}

/* by_targets false: only what can't stay at all is loosened. */
static void loosen_all(struct mfs_plan_work *w, bool by_targets)
{
    uint32_t nn = (uint32_t)w->in->nnodes, placed = 0;

    w->nloose = 0;
    memcpy(w->to, w->where, w->in->nparts * sizeof *w->to);
    for (uint32_t i = 0; i < nn; i++) {
        struct mfs_plan_place *n = &w->node[i];
        uint32_t give = n->now > n->target ? n->now - n->target : 0, before = w->nloose;

        n->held = 0;
        n->relieved = false;
        for (uint32_t k = 0; k < n->now; k++)
            n->held += size_of(w, w->order[n->first + k]);
        if (!by_targets && n->target)
            give = 0;
        for (uint32_t k = 0; k < give; k++)
            loosen(w, n, w->order[n->first + given(w, n, give, k)]);
        if (n->target)
            relieve(w, n, i);
        give = n->now - (w->nloose - before); /* that stay */
        n->slots = n->target > give ? n->target - give : 0;
        placed += n->now;
    }
    for (; placed < w->in->nparts; placed++)
        w->loose[w->nloose++] = w->order[placed];
}

static int large_first(const void *a, const void *b, void *arg)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const struct mfs_plan_work *w = arg;
    uint64_t bx = w->in->part[x].bytes, by = w->in->part[y].bytes;

    if (bx != by)
        return bx > by ? -1 : 1;
    return x < y ? -1 : 1;
}

/* ---- where it goes --------------------------------------------------------------------------- */

static double room(const struct mfs_plan_work *w, uint32_t i)
{
    const struct mfs_plan_place *n = &w->node[i];

    return (double)free_of(n) / n->slots;
}

static bool before(const struct mfs_plan_work *w, uint32_t a, uint32_t b)
{
    double x = room(w, a), y = room(w, b);

    return x != y ? x > y : a < b;
}

static void sift(struct mfs_plan_work *w, uint32_t at)
{
    uint32_t *h = w->heap;

    for (uint32_t child = 2 * at + 1; child < w->nheap; child = 2 * at + 1) {
        uint32_t tmp = h[at];

        if (child + 1 < w->nheap && before(w, h[child + 1], h[child]))
            child++;
        if (!before(w, h[child], tmp))
            return;
        h[at] = h[child];
        h[child] = tmp;
        at = child;
    }
}

static void heapify(struct mfs_plan_work *w)
{
    w->nheap = 0;
    for (uint32_t i = 0; i < w->in->nnodes; i++)
        if (w->node[i].slots)
            w->heap[w->nheap++] = i;
    for (uint32_t i = w->nheap / 2; i-- > 0;)
        sift(w, i);
}

static void put(struct mfs_plan_work *w, uint32_t part, uint32_t i)
{
    w->to[part] = i;
    w->node[i].held += size_of(w, part);
    if (w->node[i].slots)
        w->node[i].slots--;
}

/* Into a slot. False when no node with one has room. */
static bool put_by_count(struct mfs_plan_work *w, uint32_t part)
{
    uint64_t size = size_of(w, part);
    uint32_t top = w->nheap ? w->heap[0] : 0, best = top;

    if (!w->nheap)
        return false;
    if (free_of(&w->node[top]) >= size) {
        put(w, part, top);
        if (!w->node[top].slots)
            w->heap[0] = w->heap[--w->nheap];
        sift(w, 0);
        return true;
    }
    for (uint32_t k = 1; k < w->nheap; k++)
        if (free_of(&w->node[w->heap[k]]) > free_of(&w->node[best]))
            best = w->heap[k];
    if (free_of(&w->node[best]) < size)
        return false;
    put(w, part, best);
    heapify(w);
    return true;
}

/* On any node that stays, whatever its number: the one with most free, or with the least that is
 * enough. */
static bool put_by_memory(struct mfs_plan_work *w, uint32_t part, bool tightly)
{
    uint32_t best = UINT32_MAX, home = w->where[part];
    uint64_t size = size_of(w, part);

    w->bent = true;
    if (home < w->in->nnodes && w->node[home].target && free_of(&w->node[home]) >= size) {
        put(w, part, home);
        return true;
    }
    for (uint32_t i = 0; i < w->in->nnodes; i++) {
        uint64_t room_here = free_of(&w->node[i]);

        if (!w->node[i].target || room_here < size)
            continue;
        if (best == UINT32_MAX ||
            (tightly ? room_here < free_of(&w->node[best]) : room_here > free_of(&w->node[best])))
            best = i;
    }
    if (best != UINT32_MAX)
        put(w, part, best);
    return best != UINT32_MAX;
}

/* What finds no place stays at the front of `loose`; their number is returned. */
static uint32_t place(struct mfs_plan_work *w)
{
    uint32_t left = 0, none = 0;

    qsort_r(w->loose, w->nloose, sizeof *w->loose, large_first, w);
    heapify(w);
    for (uint32_t k = 0; k < w->nloose; k++)
        if (!put_by_count(w, w->loose[k]))
            w->loose[left++] = w->loose[k];
    for (uint32_t k = 0; k < left; k++)
        if (!put_by_memory(w, w->loose[k], false))
            w->loose[none++] = w->loose[k];
    return none;
}

/* The last resort: a smaller partition makes room by going elsewhere. */
static bool put_by_exchange(struct mfs_plan_work *w, uint32_t part)
{
    uint64_t size = size_of(w, part);
    unsigned tries = EXCHANGES;

    for (uint32_t q = 0; q < w->in->nparts && tries; q++) {
        uint32_t i = w->to[q];
        struct mfs_plan_place *n = i < w->in->nnodes ? &w->node[i] : NULL;

        if (!n || size_of(w, q) >= size || free_of(n) + size_of(w, q) < size)
            continue;
        tries--;
        n->held += size; /* it is not to come back */
        if (put_by_memory(w, q, true)) {
            n->held -= size_of(w, q);
            n->relieved = true;
            w->to[part] = i;
            return true;
        }
        n->held -= size;
    }
    return false;
}

/* False: the first of `loose` has no place. */
static bool place_tightly(struct mfs_plan_work *w)
{
    qsort_r(w->loose, w->nloose, sizeof *w->loose, large_first, w);
    for (uint32_t k = 0; k < w->nloose; k++) {
        if (put_by_memory(w, w->loose[k], true) || put_by_exchange(w, w->loose[k]))
            continue;
        w->loose[0] = w->loose[k];
        return false;
    }
    return true;
}

static void totals(const struct mfs_plan_work *w, uint64_t *need, uint64_t *have)
{
    *need = *have = 0;
    for (uint32_t p = 0; p < w->in->nparts; p++)
        *need += size_of(w, p);
    for (uint32_t i = 0; i < w->in->nnodes; i++)
        *have += w->node[i].target ? w->in->node[i].memory : 0;
}

static int no_room(const struct mfs_plan_work *w, struct mfs_err *err)
{
    uint64_t need, have, most = 0, size = size_of(w, w->loose[0]);
    uint32_t stay = 0;

    totals(w, &need, &have);
    for (uint32_t i = 0; i < w->in->nnodes; i++) {
        const struct mfs_plan_place *n = &w->node[i];

        if (!n->target)
            continue;
        stay++;
        most = free_of(n) > most ? free_of(n) : most;
    }
    if (need > have)
        return mfs_err_set(err, -ENOSPC, "the data are %s, the %s that would be left can hold %s",
                           MFS_TEXT_BYTES(need), MFS_TEXT_COUNT(stay, "node"),
                           MFS_TEXT_BYTES(have));
    return mfs_err_set(err, -ENOSPC,
                       "the data are %s of the %s that the %s would hold, but partition %u of %s "
                       "fits none: at most %s would be free on one",
                       MFS_TEXT_BYTES(need), MFS_TEXT_BYTES(have), MFS_TEXT_COUNT(stay, "node"),
                       w->loose[0], MFS_TEXT_BYTES(size), MFS_TEXT_BYTES(most));
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int plan(struct mfs_plan_work *w, struct mfs_plan *out, struct mfs_err *err)
{
    int rc = locate(w, err);
    uint64_t need, have;

    if (!rc)
        rc = sort_places(w, err);
    if (!rc)
        rc = set_targets(w, err);
    if (rc)
        return rc;
    totals(w, &need, &have);
    if (need > have)
        return no_room(w, err);
    loosen_all(w, true);
    if (place(w)) {
        loosen_all(w, false);
        if (!place_tightly(w))
            return no_room(w, err);
    }
    rc = mfs_plan_list(w, out);
    return rc ? mfs_err_set(err, rc, "out of memory") : 0;
}

int mfs_planner_plan(const struct mfs_plan_input *in, struct mfs_plan *out, struct mfs_err *err)
{
    struct mfs_plan_work w = {.in = in};
    int rc;

    memset(out, 0, sizeof *out);
    if (!in->nnodes || !in->nparts || in->nnodes >= UINT32_MAX)
        return mfs_err_set(err, -EINVAL, "there are no nodes or no partitions");
    w.node = calloc(in->nnodes, sizeof *w.node);
    w.heap = calloc(in->nnodes, sizeof *w.heap);
    w.order = calloc(in->nparts, sizeof *w.order);
    w.where = calloc(in->nparts, sizeof *w.where);
    w.to = calloc(in->nparts, sizeof *w.to);
    w.loose = calloc(in->nparts, sizeof *w.loose);
    if (w.node && w.heap && w.order && w.where && w.to && w.loose) {
        for (size_t i = 0; i < in->nnodes; i++)
            w.node[i].in = &in->node[i];
        rc = plan(&w, out, err);
    } else {
        rc = mfs_err_set(err, -ENOMEM, "out of memory");
    }
    free(w.node);
    free(w.heap);
    free(w.order);
    free(w.where);
    free(w.to);
    free(w.loose);
    return rc;
}

void mfs_planner_clear(struct mfs_plan *p)
{
    free(p->move);
    free(p->count);
    free(p->held);
    memset(p, 0, sizeof *p);
}
