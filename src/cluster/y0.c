/* Layer 2 of placement. The sum of the capacities cancels out of P_v / P, so counts are simply
 * proportional to cap; the rule's n, β and log2 n set P. */
#include "cluster/y0.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "cluster/placement.h"

struct remainder {
    double part;
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

/* Nodes below 1 got 1 for nothing; the excess comes from those that exceed their due share most. */
static void give_back(const double *cap, size_t n, uint32_t parts, double sum, uint64_t excess,
                      uint32_t *counts)
{
    while (excess--) {
        double worst = -INFINITY;
        size_t at = 0;

        for (size_t i = 0; i < n; i++) {
            double over = counts[i] - cap[i] / sum * parts;

            if (counts[i] > 1 && over >= worst) {
                worst = over;
                at = i;
            }
        }
        counts[at]--;
    }
}

int mfs_y0_counts(const double *cap, size_t n, uint32_t parts, uint32_t *counts)
{
    struct remainder *rest;
    uint64_t given = 0;
    double sum;

    if (!valid(cap, n, parts, &sum))
        return -EINVAL;
    rest = calloc(n, sizeof *rest);
    if (!rest)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        double due = cap[i] / sum * parts, whole = floor(due);

        counts[i] = (uint32_t)whole;
        rest[i] = (struct remainder){due - whole, i};
        given += counts[i];
    }
    qsort(rest, n, sizeof *rest, larger_first);
    for (size_t k = 0; given < parts; k++, given++)
        counts[rest[k % n].index]++;
    for (size_t i = 0; i < n; i++) {
        if (!counts[i]) {
            counts[i] = 1;
            given++;
        }
    }
    if (given > parts)
        give_back(cap, n, parts, sum, given - parts, counts);
    free(rest);
    return 0;
}

double mfs_y0_share(uint32_t count, uint32_t parts, double cap, double cap_sum)
{
    if (!parts || !(cap > 0) || !(cap_sum > 0))
        return 0;
    return ((double)count / parts) / (cap / cap_sum);
}
