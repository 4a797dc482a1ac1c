/* The planner: the list of moves, in their order. */
#include "cm/plan/planner_impl.h"

#include <errno.h>
#include <stdlib.h>

struct listed {
    struct mfs_scale_move move;
    uint32_t round; /* of its source: 0 moves first */
};

static int by_source(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;

    if (x->move.from != y->move.from)
        return x->move.from < y->move.from ? -1 : 1;
    if (x->move.bytes != y->move.bytes)
        return x->move.bytes > y->move.bytes ? -1 : 1;
    return x->move.index < y->move.index ? -1 : 1;
}

static int by_round(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;

    if (x->round != y->round)
        return x->round < y->round ? -1 : 1;
    return by_source(a, b);
}

/* Sources alternate, so that all of them are at work. What a node gives because of its memory goes
 * before everything else: others may need the room. */
static void set_rounds(const struct mfs_plan_work *w, struct listed *l, uint32_t n)
{
    uint32_t round = 0;

    qsort(l, n, sizeof *l, by_source);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t at = w->where[l[k].move.index];

        round = k && l[k].move.from == l[k - 1].move.from ? round + 1 : 1;
        l[k].round = at < w->in->nnodes && w->node[at].relieved ? 0 : round;
    }
    qsort(l, n, sizeof *l, by_round);
}

int mfs_plan_list(const struct mfs_plan_work *w, struct mfs_plan *out)
{
    struct listed *l;
    uint32_t n = 1;

    for (uint32_t p = 0; p < w->in->nparts; p++)
        n += w->to[p] != w->where[p];
    l = calloc(n, sizeof *l);
    out->move = calloc(n, sizeof *out->move);
    out->count = calloc(w->in->nnodes, sizeof *out->count);
    out->held = calloc(w->in->nnodes, sizeof *out->held);
    if (!l || !out->move || !out->count || !out->held) {
        free(l);
        return -ENOMEM;
    }
    n = 0;
    for (uint32_t p = 0; p < w->in->nparts; p++) {
        const struct mfs_plan_part *part = &w->in->part[p];

        out->count[w->to[p]]++;
        if (w->to[p] == w->where[p])
            continue;
        l[n++].move = (struct mfs_scale_move){p, part->node, w->in->node[w->to[p]].id, part->bytes};
        out->bytes += part->node == MFS_PLAN_NOWHERE ? 0 : part->bytes;
    }
    set_rounds(w, l, n);
    for (uint32_t k = 0; k < n; k++)
        out->move[k] = l[k].move;
    for (size_t i = 0; i < w->in->nnodes; i++)
        out->held[i] = w->node[i].held;
    out->nmoves = n;
    out->bent = w->bent;
    free(l);
    return 0;
}
