/* With s (1 − s) = level · rate each share grows with the level, up to the half that the fastest
 * reaches first: so the level is found by halving. */
#include "cluster/hose.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>

#define HALVINGS 60

static bool valid(const double *rate, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(rate[i] > 0) || !isfinite(rate[i]))
            return false;
    return n > 0;
}

static size_t fastest(const double *rate, size_t n)
{
    size_t best = 0;

    for (size_t i = 1; i < n; i++)
        if (rate[i] > rate[best])
            best = i;
    return best;
}

/* The smaller solution of s (1 − s) = load, written so that small ones are exact, too. */
static double share_of(double load)
{
    return 2 * load / (1 + sqrt(fmax(1 - 4 * load, 0)));
}

/* Shares of all but one node at a level; what they are together. */
static double fill(const double *rate, size_t n, size_t without, double level, double *share)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        if (i == without)
            continue;
        share[i] = share_of(level * rate[i]);
        sum += share[i];
    }
    return sum;
}

/* Has all but one node share `total`; false when there is no such level. */
static bool divide(const double *rate, size_t n, size_t without, double total, double *share)
{
    double most = 0, low = 0, high, sum;

    for (size_t i = 0; i < n; i++)
        most = i == without ? most : fmax(most, rate[i]);
    high = 0.25 / most;
    if (fill(rate, n, without, high, share) < total)
        return false;
    for (unsigned i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;

        if (fill(rate, n, without, middle, share) < total)
            low = middle;
        else
            high = middle;
    }
    sum = fill(rate, n, without, high, share);
    for (size_t i = 0; i < n; i++)
        share[i] *= i == without ? 1 : total / sum;
    return true;
}

int mfs_hose_shares(const double *rate, size_t n, double *share)
{
    double sum = 0;
    size_t first;

    if (!valid(rate, n))
        return -EINVAL;
    if (divide(rate, n, n, 1, share))
        return 0;
    for (size_t i = 0; i < n; i++)
        sum += rate[i];
    first = fastest(rate, n);
    share[first] = fmax(0.5, rate[first] / sum);
    if (n > 1)
        (void)divide(rate, n, first, 1 - share[first], share);
    return 0;
}
