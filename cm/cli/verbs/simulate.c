/* `cm simulate`: long random histories on paper, for work on the planner. */
#include <errno.h>
#include <stdio.h>

#include "cm/plan/simulate.h"
#include "cm/cli/verbs.h"

static const uint32_t sizes[] = {2, 4, 16, 64, 256};
static const double spreads[] = {1, 4, 16};

static int one(const struct mfs_conf *conf, uint32_t nodes, double spread, struct mfs_err *err)
{
    struct mfs_simulate_opts o = {.nodes = nodes,
                                  .max_nodes = 2 * nodes,
                                  .beta = 4,
                                  .steps = (uint32_t)mfs_conf_uint(conf, "steps"),
                                  .spread = spread,
                                  .fill = mfs_conf_real(conf, "fill") / 100,
                                  .seed = mfs_conf_uint(conf, "seed")};
    struct mfs_simulate_result r;
    int rc = mfs_simulate_run(&o, &r, err);

    if (rc)
        return rc;
    printf("%5u %6g %6u %8u %8u %5u..%-5u %7.3f %7.3f %7.3f %7.3f %8.2f\n", nodes, spread,
           r.partitions, r.changes, r.refused, r.nodes_least, r.nodes_most, r.share_worst,
           r.share_bound, r.bytes_worst, r.moved, r.slowest_ms);
    fflush(stdout);
    if (!r.violations)
        return 0;
    return mfs_err_set(err, -EDOM, "%u promises broken (nodes %u, spread %g, seed %llu)",
                       r.violations, nodes, spread, (unsigned long long)o.seed);
}

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    int rc = 0;

    printf("START SPREAD  PARTS  CHANGES  REFUSED NODES        SHARE   BOUND   BYTES   MOVED  "
           "PLAN ms\n");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && !rc; i++)
        for (size_t k = 0; k < sizeof spreads / sizeof *spreads && !rc; k++)
            rc = one(call->conf, sizes[i], spreads[k], err);
    return rc;
}

static const struct mfs_conf_option options[] = {
    {"steps", MFS_CONF_UINT, "N", "1000", 1, 1000000, "changes in each history"},
    {"seed", MFS_CONF_UINT, "N", "1", 0, 0, "of the random numbers"},
    {"fill", MFS_CONF_REAL, "PERCENT", "60", 0, 99, "data, of the memory at the start"},
    {0}};

const struct mfs_verb mfs_cm_simulate = {
    .name = "simulate", .options = MFS_OPTIONS(options), .run = run};
