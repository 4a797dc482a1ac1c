/* Layer 2 of placement. The sum of the capacities cancels out of P_v / P, so counts are simply
 * proportional to cap; the rule's n, β and log2 n set P. */
#include "cluster/y0.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/placement.h"

#define TIE 1e6 /* remainders are compared in units of 1 / TIE */

struct remainder {
    int64_t part; /* of a whole, in units of 1 / TIE */
    double worth;
    size_t index;
};

uint32_t mfs_y0_partitions(size_t nodes, double beta, uint32_t least)
{
    double n = (double)nodes, p = round(n * beta * (nodes > 1 ? log2(n) : 1));

    p = fmax(p, fmax(n, fmax(least, 1)));
    return p < MFS_PARTITIONS_MAX ? (uint32_t)p : MFS_PARTITIONS_MAX;
}

static int larger_first(const void *a, const void *b)
{
    const struct remainder *x = a, *y = b;

    if (x->part != y->part)
        return x->part > y->part ? -1 : 1;
    if (x->worth != y->worth)
        return x->worth > y->worth ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static bool valid(const double *cap, size_t n, uint32_t parts, double *sum)
{
    *sum = 0;
    for (size_t i = 0; i < n; i++) {
        if (!(cap[i] > 0) || !isfinite(cap[i]))
            return false;
        *sum += cap[i];
    }
    return n && n <= parts && isfinite(*sum);
}

/* Nodes to which less than 1 is due get 1; what is due to the others shrinks by that, perhaps below
 * 1, too. Leaves counts[] 0 for those that are to divide *parts in proportion, *sum theirs. */
static void give_least(const double *cap, size_t n, uint32_t *parts, double *sum, uint32_t *counts)
{
    bool again = true;

    memset(counts, 0, n * sizeof *counts);
    while (again) {
        double due = *parts / *sum;

        again = false;
        for (size_t i = 0; i < n; i++) {
            if (counts[i] || cap[i] * due >= 1 - 1 / TIE)
                continue;
            counts[i] = 1;
            (*parts)--;
            *sum -= cap[i];
            again = true;
        }
    }
}

int mfs_y0_counts_by(const double *cap, size_t n, uint32_t parts,
                     double (*worth)(void *arg, size_t node, uint32_t whole), void *arg,
                     uint32_t *counts)
{
    struct remainder *rest;
    size_t nrest = 0;
    double sum;

    if (!valid(cap, n, parts, &sum))
        return -EINVAL;
    rest = calloc(n, sizeof *rest);
    if (!rest)
        return -ENOMEM;
    give_least(cap, n, &parts, &sum, counts);
    for (size_t i = 0; i < n; i++) {
        double due = cap[i] / sum * parts, whole = floor(due + 1 / TIE);

        if (counts[i])
            continue;
        counts[i] = (uint32_t)whole;
        rest[nrest++] = (struct remainder){llround((due - whole) * TIE),
                                           worth ? worth(arg, i, counts[i]) : 0, i};
    }
    for (size_t k = 0; k < nrest; k++)
        parts -= counts[rest[k].index];
    qsort(rest, nrest, sizeof *rest, larger_first);
    for (size_t k = 0; k < parts && k < nrest; k++)
        counts[rest[k].index]++;
    free(rest);
    return 0;
}

int mfs_y0_counts(const double *cap, size_t n, uint32_t parts, uint32_t *counts)
{
    return mfs_y0_counts_by(cap, n, parts, NULL, NULL, counts);
}

double mfs_y0_share(uint32_t count, uint32_t parts, double cap, double cap_sum)
{
    if (!parts || !(cap > 0) || !(cap_sum > 0))
        return 0;
    return ((double)count / parts) / (cap / cap_sum);
}
