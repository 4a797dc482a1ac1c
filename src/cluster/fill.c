/* Water-filling. A node that is at its limit at one level of water is so at every higher one, and
 * the level only rises as more of them are: so each pass only adds to them. */
#include "cluster/fill.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>

#define OPEN     (-1.0) /* in share[]: not at its limit */
#define SMALLEST 1e-9   /* a node without any room still counts as one */

static bool valid(const double *rate, const double *room, size_t n, double *room_sum)
{
    *room_sum = 0;
    for (size_t i = 0; i < n; i++) {
        if (!(rate[i] > 0) || !isfinite(rate[i]) || !(room[i] >= 0) || !isfinite(room[i]))
            return false;
        *room_sum += room[i];
    }
    return n > 0;
}

static void by_room(const double *room, size_t n, double sum, double *share)
{
    for (size_t i = 0; i < n; i++)
        share[i] = sum > 0 ? fmax(room[i] / sum, SMALLEST) : 1.0 / (double)n;
}

/* What is left of 1 for the nodes that are not at their limit, per unit of their rates. */
static double level(const double *rate, size_t n, const double *share)
{
    double left = 1, rates = 0;

    for (size_t i = 0; i < n; i++) {
        if (share[i] < 0)
            rates += rate[i];
        else
            left -= share[i];
    }
    return rates > 0 ? fmax(left, 0) / rates : 0;
}

/* Was any node beyond its limit at this level? */
static bool limit(const double *rate, const double *room, size_t n, double amount, double at,
                  double *share)
{
    bool any = false;

    for (size_t i = 0; i < n; i++) {
        if (share[i] >= 0 || rate[i] * at * amount <= room[i])
            continue;
        share[i] = room[i] / amount;
        any = true;
    }
    return any;
}

int mfs_fill_shares(const double *rate, const double *room, size_t n, double amount, double *share)
{
    double sum, at;

    if (!(amount >= 0) || !isfinite(amount) || !valid(rate, room, n, &sum))
        return -EINVAL;
    if (sum <= amount) {
        by_room(room, n, sum, share);
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        share[i] = OPEN;
    do {
        at = level(rate, n, share);
    } while (limit(rate, room, n, amount, at, share));
    for (size_t i = 0; i < n; i++)
        share[i] = fmax(share[i] < 0 ? rate[i] * at : share[i], SMALLEST);
    return 0;
}
