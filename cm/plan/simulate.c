/* Histories on paper. */
#include "cm/plan/simulate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cluster/y0.h"
#include "cm/plan/planner.h"

#define UNIT      (1ULL << 30) /* memory of a node of weight 1 */
#define HALF_SIZE 0.25 /* partitions are that much larger or smaller than the mean at most */
#define SLACK     1e-6

struct sim {
    const struct mfs_simulate_opts *o;
    struct mfs_simulate_result *r;
    uint64_t seed;
    uint32_t n, next_id, nparts;
    double mean; /* bytes of a partition */
    struct mfs_plan_node *node;
    struct mfs_plan_part *part;
    double ideal, moved;
};

static double chance(struct sim *s)
{
    s->seed = s->seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (double)(s->seed >> 11) / 9007199254740992.0;
}

static uint32_t below(struct sim *s, uint32_t n)
{
    return (uint32_t)(chance(s) * n);
}

static void set_capacity(struct sim *s, struct mfs_plan_node *n)
{
    n->weight = pow(s->o->spread, chance(s));
    n->memory = (uint64_t)(n->weight * (double)UNIT);
}

static void set_size(struct sim *s, uint32_t p)
{
    s->part[p].bytes = (uint64_t)(s->mean * (1 + HALF_SIZE * (2 * chance(s) - 1)));
}

/* ---- changes --------------------------------------------------------------------------------- */

static void join(struct sim *s)
{
    uint32_t most = s->o->max_nodes - s->n, x = 1 + below(s, (s->n + 1) / 2);

    for (x = x < most ? x : most; x; x--) {
        s->node[s->n].id = s->next_id++;
        set_capacity(s, &s->node[s->n++]);
    }
}

static void leave(struct sim *s)
{
    uint32_t x = 1 + below(s, (s->n + 1) / 2);

    for (x = x < s->n ? x : s->n - 1; x; x--)
        s->node[below(s, s->n)].weight = 0;
}

/* Its data are gone, and its place. */
static void crash(struct sim *s)
{
    uint32_t at = below(s, s->n), id = s->node[at].id;

    if (s->n == 1)
        return;
    s->node[at] = s->node[--s->n];
    for (uint32_t p = 0; p < s->nparts; p++)
        if (s->part[p].node == id)
            s->part[p] = (struct mfs_plan_part){MFS_PLAN_NOWHERE, 0};
}

static void change(struct sim *s)
{
    switch (below(s, 4)) {
    case 0:
        join(s);
        break;
    case 1:
        leave(s);
        break;
    case 2:
        crash(s);
        break;
    default:
        set_capacity(s, &s->node[below(s, s->n)]);
    }
}

/* ---- figures --------------------------------------------------------------------------------- */

/* What would have to leave each node if partitions could be cut at will; negative: -ENOMEM. */
static double ideal(const struct sim *s, double weight, double bytes)
{
    double *held = calloc(s->next_id, sizeof *held), sum = 0;

    if (!held)
        return -ENOMEM;
    for (uint32_t p = 0; p < s->nparts; p++)
        if (s->part[p].node != MFS_PLAN_NOWHERE)
            held[s->part[p].node] += (double)s->part[p].bytes;
    for (uint32_t i = 0; i < s->n; i++)
        sum += fmax(0, held[s->node[i].id] - s->node[i].weight / weight * bytes);
    free(held);
    return sum;
}

static void judge(struct sim *s, const struct mfs_plan *plan, double weight, double bytes)
{
    struct mfs_simulate_result *r = s->r;

    for (uint32_t i = 0; i < s->n; i++) {
        double due = s->node[i].weight / weight * s->nparts, bound = (fmax(due, 1) + 1) / due;

        r->violations += plan->held[i] > s->node[i].memory;
        if (due == 0)
            continue;
        r->violations +=
            !plan->bent && (plan->count[i] < 1 || plan->count[i] / due > bound + SLACK);
        if (due < 1 || plan->bent)
            continue;
        r->share_worst = fmax(r->share_worst, plan->count[i] / due);
        r->share_bound = fmax(r->share_bound, bound);
        r->bytes_worst =
            fmax(r->bytes_worst, (double)plan->held[i] / (s->node[i].weight / weight * bytes));
    }
}

static void carry_out(struct sim *s, const struct mfs_plan *plan)
{
    uint32_t stay = 0;

    for (uint32_t k = 0; k < plan->nmoves; k++)
        s->part[plan->move[k].index].node = plan->move[k].to;
    for (uint32_t i = 0; i < s->n; i++)
        if (s->node[i].weight > 0)
            s->node[stay++] = s->node[i];
    s->n = stay;
    for (uint32_t p = 0; p < s->nparts; p++) /* applications write and remove */
        set_size(s, p);
}

static int plan_change(struct sim *s, bool *planned, struct mfs_err *err)
{
    const struct mfs_plan_input in = {s->node, s->n, s->part, s->nparts, 0, false};
    double weight = 0, bytes = 0, least;
    struct mfs_plan plan;
    int64_t began = mfs_clock_mono();
    int rc = mfs_planner_plan(&in, &plan, err);

    *planned = !rc;
    s->r->slowest_ms = fmax(s->r->slowest_ms, (double)(mfs_clock_mono() - began) / 1e6);
    if (rc == -ENOSPC)
        return 0;
    if (rc)
        return rc;
    for (uint32_t i = 0; i < s->n; i++)
        weight += s->node[i].weight;
    for (uint32_t p = 0; p < s->nparts; p++)
        bytes += (double)s->part[p].bytes;
    judge(s, &plan, weight, bytes);
    least = ideal(s, weight, bytes);
    if (least < 0) {
        mfs_planner_clear(&plan);
        return mfs_err_set(err, -ENOMEM, "out of memory");
    }
    s->ideal += least;
    s->moved += (double)plan.bytes;
    carry_out(s, &plan);
    mfs_planner_clear(&plan);
    return 0;
}

/* A change that is refused has not happened. */
static int step(struct sim *s, struct sim *saved, struct mfs_err *err)
{
    struct mfs_plan_node *node = saved->node;
    struct mfs_plan_part *part = saved->part;
    bool planned;
    int rc;

    memcpy(node, s->node, s->n * sizeof *node);
    memcpy(part, s->part, s->nparts * sizeof *part);
    saved->n = s->n;
    change(s);
    rc = plan_change(s, &planned, err);
    if (rc)
        return rc;
    if (planned) {
        s->r->changes++;
        s->r->nodes_most = s->n > s->r->nodes_most ? s->n : s->r->nodes_most;
        s->r->nodes_least = s->n < s->r->nodes_least ? s->n : s->r->nodes_least;
        return 0;
    }
    s->r->refused++;
    memcpy(s->node, node, saved->n * sizeof *node);
    memcpy(s->part, part, s->nparts * sizeof *part);
    s->n = saved->n;
    return 0;
}

static int begin(struct sim *s, struct mfs_err *err)
{
    double memory = 0;
    bool planned;

    for (; s->n < s->o->nodes; s->n++) {
        s->node[s->n].id = s->next_id++;
        set_capacity(s, &s->node[s->n]);
        memory += (double)s->node[s->n].memory;
    }
    s->mean = memory * s->o->fill / s->nparts;
    for (uint32_t p = 0; p < s->nparts; p++) {
        s->part[p].node = MFS_PLAN_NOWHERE;
        set_size(s, p);
    }
    return plan_change(s, &planned, err);
}

int mfs_simulate_run(const struct mfs_simulate_opts *o, struct mfs_simulate_result *r,
                     struct mfs_err *err)
{
    struct sim s = {.o = o, .r = r, .seed = o->seed}, saved = {0};
    int rc;

    *r = (struct mfs_simulate_result){.nodes_least = o->nodes, .nodes_most = o->nodes};
    if (!o->nodes || o->max_nodes < o->nodes || !(o->spread >= 1) || !(o->fill >= 0 && o->fill < 1))
        return mfs_err_set(err, -EINVAL, "nodes, spread or fill make no sense");
    s.nparts = r->partitions = mfs_y0_partitions(o->nodes, o->beta, o->max_nodes);
    s.node = calloc(o->max_nodes, sizeof *s.node);
    s.part = calloc(s.nparts, sizeof *s.part);
    saved.node = calloc(o->max_nodes, sizeof *s.node);
    saved.part = calloc(s.nparts, sizeof *s.part);
    rc = s.node && s.part && saved.node && saved.part ? begin(&s, err)
                                                      : mfs_err_set(err, -ENOMEM, "out of memory");
    s.ideal = s.moved = 0;
    for (uint32_t i = 0; i < o->steps && !rc; i++)
        rc = step(&s, &saved, err);
    r->moved = s.ideal > 0 ? s.moved / s.ideal : 0;
    free(s.node);
    free(s.part);
    free(saved.node);
    free(saved.part);
    return rc;
}
