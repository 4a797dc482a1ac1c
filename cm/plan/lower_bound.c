/* Lower bounds. */
#include "cm/plan/lower_bound.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static double over(double bytes, double rate)
{
    if (!(bytes > 0))
        return 0;
    return rate > 0 ? bytes / rate : INFINITY;
}

double mfs_lower_bound_grow(double node_bytes, double rate, uint32_t n, uint32_t x)
{
    double sum = (double)n + x;

    return n && x ? over(node_bytes, rate) * fmax(n, x) / sum : 0;
}

double mfs_lower_bound_shrink(double node_bytes, double rate, uint32_t n, uint32_t x)
{
    if (!x)
        return 0;
    if (x >= n)
        return node_bytes > 0 ? INFINITY : 0;
    return over(node_bytes, rate) * fmax(1, (double)x / ((double)n - x));
}

struct traffic {
    uint64_t link; /* node and direction */
    uint64_t bytes;
};

static int by_link(const void *a, const void *b)
{
    const struct traffic *x = a, *y = b;

    return (x->link > y->link) - (x->link < y->link);
}

double mfs_lower_bound_links(const struct mfs_scale_move *moves, size_t n,
                             double (*rate)(const void *arg, uint32_t node), const void *arg)
{
    struct traffic *t = calloc(2 * n + 1, sizeof *t);
    double sum = 0, most = 0;

    if (!t)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        t[2 * i] = (struct traffic){2ULL * moves[i].from, moves[i].bytes};
        t[2 * i + 1] = (struct traffic){2ULL * moves[i].to + 1, moves[i].bytes};
    }
    qsort(t, 2 * n, sizeof *t, by_link);
    for (size_t i = 0; i < 2 * n; i++) {
        sum = i && t[i].link == t[i - 1].link ? sum + (double)t[i].bytes : (double)t[i].bytes;
        most = fmax(most, over(sum, rate(arg, (uint32_t)(t[i].link / 2))));
    }
    free(t);
    return most;
}

static double everywhere(const void *arg, uint32_t node)
{
    (void)node;
    return *(const double *)arg;
}

double mfs_lower_bound_moves(const struct mfs_scale_move *moves, size_t n, double rate)
{
    return mfs_lower_bound_links(moves, n, everywhere, &rate);
}
