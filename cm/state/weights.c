/* Weights from what is known of the nodes. */
#include "cm/state/weights.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cluster/capacity.h"
#include "cluster/fill.h"
#include "cluster/hose.h"

#define RATE_LEAST 1024 /* bytes/s: less was meant in another unit */
/* Fastest to slowest: less is not worth a thought, or may be a mistake of the measurement. */
#define DIFFERENT            1.15
#define DIFFERENT_CONFIGURED 1.05 /* all are configured: the operator knows */
#define FILL_LEAST           0.25 /* of the room: so much is always reckoned with */
#define FILL_GROWS           1.5  /* and that the data grow so many times */

/* ---- bandwidth ------------------------------------------------------------------------------- */

void mfs_weights_bandwidth(const struct mfs_cm_node *const *node, size_t n, double *bandwidth)
{
    double most = 0;

    for (size_t i = 0; i < n; i++)
        most = fmax(most, node[i]->bandwidth);
    for (size_t i = 0; i < n; i++)
        bandwidth[i] = node[i]->bandwidth > 0 || !(most > 0) ? node[i]->bandwidth
                                                             : fmax(most, node[i]->bandwidth_seen);
}

static bool differ(const struct mfs_cm_node *const *node, const double *bandwidth, size_t n)
{
    double least = INFINITY, most = 0;
    bool configured = true;

    for (size_t i = 0; i < n; i++) {
        least = fmin(least, bandwidth[i]);
        most = fmax(most, bandwidth[i]);
        configured = configured && !strcmp(node[i]->bandwidth_from, MFS_BANDWIDTH_CONFIGURED);
    }
    return most > least * (configured ? DIFFERENT_CONFIGURED : DIFFERENT);
}

static bool wanted(const char *rule, const struct mfs_cm_node *const *node, const double *bandwidth,
                   size_t n)
{
    if (!n || !(bandwidth[0] > 0)) /* then it is unknown of all */
        return false;
    return !strcmp(rule, MFS_WEIGHTS_BANDWIDTH) ||
           (!strcmp(rule, MFS_WEIGHTS_AUTO) && differ(node, bandwidth, n));
}

/* ---- limited by memory ----------------------------------------------------------------------- */

/* Bytes of a node for partitions and what each costs besides its data; of what processes may use,
 * replicas take their part. */
static double room(const struct mfs_cm_state *st, const struct mfs_cm_node *n)
{
    uint64_t usable = mfs_capacity_partitions(n->memory);

    if (st->replicas)
        usable = mfs_capacity_replicated(usable);
    return (double)usable / (1 + st->replicas);
}

/* How much is to find room: data that may yet come included, and what each partition costs and
 * needs besides. */
static double amount(const struct mfs_cm_state *st, double rooms, uint64_t used)
{
    uint64_t each = MFS_CAPACITY_PROCESS + (uint64_t)MFS_CAPACITY_NEXT_WRITES * st->stripe_size;
    double besides = (double)st->nparts * (double)each, data = fmax(rooms - besides, 0);

    return besides + fmin(data, fmax(FILL_LEAST * data, FILL_GROWS * (double)used));
}

static int limited(const struct mfs_cm_state *st, const struct mfs_cm_node *const *node, size_t n,
                   uint64_t used, const double *bandwidth, double *weight)
{
    double *rooms = calloc(2 * n, sizeof *rooms), *due, sum = 0;
    int rc = 0;

    if (!rooms)
        return -ENOMEM;
    due = rooms + n;
    for (size_t i = 0; i < n; i++) {
        rooms[i] = room(st, node[i]);
        sum += rooms[i];
    }
    /* The rule of the paper, in proportion, when it is asked for by name. */
    if (strcmp(st->weights, MFS_WEIGHTS_AUTO))
        memcpy(due, bandwidth, n * sizeof *due);
    else
        rc = mfs_hose_shares(bandwidth, n, due);
    if (!rc)
        rc = mfs_fill_shares(due, rooms, n, amount(st, sum, used), weight);
    free(rooms);
    return rc;
}

bool mfs_weights_make(const struct mfs_cm_state *st, const struct mfs_cm_node *const *node,
                      size_t n, uint64_t used, double *weight)
{
    double *bandwidth =
        strcmp(st->weights, MFS_WEIGHTS_MEMORY) ? calloc(n + 1, sizeof *bandwidth) : NULL;
    bool by_bandwidth = false;

    if (bandwidth) {
        mfs_weights_bandwidth(node, n, bandwidth);
        by_bandwidth = wanted(st->weights, node, bandwidth, n) &&
                       !limited(st, node, n, used, bandwidth, weight);
        free(bandwidth);
    }
    for (size_t i = 0; i < n && !by_bandwidth; i++)
        weight[i] = (double)node[i]->memory;
    return by_bandwidth;
}

/* ---- configured ------------------------------------------------------------------------------ */

static int rate_of(const char *text, size_t len, uint64_t *rate)
{
    char one[32];
    int rc = mfs_text_format(one, sizeof one, "%.*s", (int)len, text);

    if (!rc)
        rc = mfs_text_size(one, rate);
    return !rc && *rate && *rate < RATE_LEAST ? -ERANGE : rc;
}

int mfs_weights_configured(const char *list, uint32_t slot, double *bandwidth, struct mfs_err *err)
{
    uint64_t rate;

    *bandwidth = 0;
    for (uint32_t i = 0; *list || i; i++) {
        size_t len = strcspn(list, ",");
        int rc = rate_of(list, len, &rate);

        if (rc)
            return mfs_err_set(err, -EINVAL,
                               "bandwidth: \"%.*s\" is no rate: wanted are bytes per second, like "
                               "125M, at least 1K, or 0 for unknown",
                               len < 60 ? (int)len : 60, list);
        if (i <= slot)
            *bandwidth = (double)rate;
        if (!list[len])
            break;
        list += len + 1;
    }
    return 0;
}
