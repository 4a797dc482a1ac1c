#include "cm/plan/relief.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CROWDED 0.85 /* the fullest node */
#define APART   0.03 /* and so much above all of them together */
#define HELPS   0.02 /* so much less full must the fuller of both be after a move */

struct place {
    uint32_t id;
    double used, room;
    bool stuck; /* nothing helps it */
};

struct work {
    const struct mfs_relief_input *in;
    struct place *node;
    uint32_t *where; /* partition → index of its node, nnodes for none */
    double all;
};

struct choice {
    uint32_t part, to;
    double after; /* how full the fuller of both is then */
};

static double fill(double used, double room)
{
    return used / fmax(room, 1);
}

void mfs_relief_look(const struct mfs_relief_node *node, size_t n, double *fullest, double *all)
{
    double used = 0, room = 0;

    *fullest = 0;
    for (size_t i = 0; i < n; i++) {
        used += (double)node[i].used;
        room += (double)node[i].room;
        *fullest = fmax(*fullest, fill((double)node[i].used, (double)node[i].room));
    }
    *all = fill(used, room);
}

bool mfs_relief_crowded(double fullest, double all)
{
    return fullest > CROWDED && fullest > all + APART;
}

/* The fullest node that may still be helped; nnodes: none. */
static uint32_t fullest(const struct work *w)
{
    uint32_t best = (uint32_t)w->in->nnodes;
    double most = 0;

    for (uint32_t i = 0; i < w->in->nnodes; i++) {
        double f = fill(w->node[i].used, w->node[i].room);

        if (w->node[i].stuck || f <= most)
            continue;
        most = f;
        best = i;
    }
    return best;
}

/* The two emptiest ones: the first may hold the replica of what is to go there. */
static void emptiest(const struct work *w, uint32_t from, uint32_t to[2])
{
    uint32_t n = (uint32_t)w->in->nnodes;

    to[0] = to[1] = n;
    for (uint32_t i = 0; i < n; i++) {
        double f = fill(w->node[i].used, w->node[i].room);

        if (i == from)
            continue;
        if (to[0] == n || f < fill(w->node[to[0]].used, w->node[to[0]].room)) {
            to[1] = to[0];
            to[0] = i;
        } else if (to[1] == n || f < fill(w->node[to[1]].used, w->node[to[1]].room)) {
            to[1] = i;
        }
    }
}

/* INFINITY: it does not fit there. */
static double fuller_after(const struct work *w, uint32_t from, uint32_t to, uint32_t part)
{
    double bytes = (double)w->in->part[part].bytes, process = (double)w->in->process;
    const struct place *a = &w->node[from], *b = &w->node[to];
    double here = fill(a->used - bytes, a->room + process),
           there = fill(b->used + bytes, b->room - process);

    return there > 1 ? INFINITY : fmax(here, there);
}

/* False: nothing helps that node. */
static bool choose(const struct work *w, uint32_t from, struct choice *best)
{
    const double now = fill(w->node[from].used, w->node[from].room);
    const uint32_t none = (uint32_t)w->in->nnodes;
    uint32_t to[2];

    *best = (struct choice){0, none, INFINITY};
    emptiest(w, from, to);
    for (uint32_t p = 0; p < w->in->nparts; p++) {
        const struct mfs_relief_part *part = &w->in->part[p];
        uint32_t there = to[0] < none && w->node[to[0]].id == part->replica ? to[1] : to[0];
        double after;

        if (w->where[p] != from || part->stays || there == none)
            continue;
        after = fuller_after(w, from, there, p);
        if (after < best->after)
            *best = (struct choice){p, there, after};
    }
    return best->after <= now - HELPS;
}

static void carry_out(struct work *w, uint32_t from, const struct choice *c, struct mfs_plan *out)
{
    uint64_t bytes = w->in->part[c->part].bytes;
    struct place *a = &w->node[from], *b = &w->node[c->to];

    a->used -= (double)bytes;
    a->room += (double)w->in->process;
    b->used += (double)bytes;
    b->room -= (double)w->in->process;
    w->where[c->part] = (uint32_t)w->in->nnodes; /* it moves once */
    out->move[out->nmoves++] = (struct mfs_scale_move){c->part, a->id, b->id, bytes};
    out->bytes += bytes;
}

static int begin(struct work *w, const struct mfs_relief_input *in)
{
    double most;

    *w = (struct work){.in = in,
                       .node = calloc(in->nnodes + 1, sizeof *w->node),
                       .where = calloc(in->nparts + 1, sizeof *w->where)};
    if (!w->node || !w->where)
        return -ENOMEM;
    mfs_relief_look(in->node, in->nnodes, &most, &w->all);
    for (size_t i = 0; i < in->nnodes; i++)
        w->node[i] = (struct place){in->node[i].id, (double)in->node[i].used,
                                    (double)in->node[i].room, false};
    for (uint32_t p = 0; p < in->nparts; p++) {
        uint32_t i = 0;

        while (i < in->nnodes && in->node[i].id != in->part[p].node)
            i++;
        w->where[p] = i;
    }
    return 0;
}

int mfs_relief_plan(const struct mfs_relief_input *in, struct mfs_plan *out)
{
    struct choice c;
    struct work w;
    int rc = begin(&w, in);

    *out = (struct mfs_plan){.move = calloc(MFS_RELIEF_MOST, sizeof *out->move)};
    if (!rc && !out->move)
        rc = -ENOMEM;
    while (!rc && out->nmoves < MFS_RELIEF_MOST) {
        uint32_t from = fullest(&w);

        if (from == in->nnodes ||
            !mfs_relief_crowded(fill(w.node[from].used, w.node[from].room), w.all))
            break;
        if (choose(&w, from, &c))
            carry_out(&w, from, &c, out);
        else
            w.node[from].stuck = true;
    }
    free(w.node);
    free(w.where);
    return rc;
}
