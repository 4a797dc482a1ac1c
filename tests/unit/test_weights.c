/* Weights: water-filling's promises over random nodes (MFS_SEED repeats one run), which rule is
 * used, and with the planner: shares within one partition of what bandwidth says, memory kept.
 * ctest: single */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cluster/capacity.h"
#include "cluster/fill.h"
#include "cluster/hose.h"
#include "cm/plan/planner.h"
#include "cm/state/weights.h"
#include "seeded.h"

#define NODES_MOST 24
#define PARTS_MOST 400
#define MIB        (1ULL << 20)
#define NEARLY     1e-6

/* ---- water-filling --------------------------------------------------------------------------- */

struct pond {
    double rate[NODES_MOST], room[NODES_MOST], share[NODES_MOST], sum;
    size_t n;
};

static void make_pond(struct pond *p)
{
    *p = (struct pond){.n = 1 + below(NODES_MOST)};
    for (size_t i = 0; i < p->n; i++) {
        p->rate[i] = pow(10, below(4000) / 1000.0);
        p->room[i] = below(8) ? 1 + below(1000) : 0;
        p->sum += p->room[i];
    }
}

/* All is given out, nobody takes more than he has room for, and who could take more has as much per
 * unit of his rate as anybody. */
static void check_pond(const struct pond *p, double amount)
{
    double total = 0, level = 0;

    for (size_t i = 0; i < p->n; i++)
        level = fmax(level, p->share[i] / p->rate[i]);
    for (size_t i = 0; i < p->n; i++) {
        bool full = p->share[i] * amount >= p->room[i] * (1 - NEARLY);

        assert_true(p->share[i] > 0);
        assert_true(p->share[i] * amount <= p->room[i] * (1 + NEARLY) + amount * 1e-8);
        assert_true(full || p->share[i] >= level * p->rate[i] * (1 - NEARLY));
        total += p->share[i];
    }
    assert_true(fabs(total - 1) < NEARLY);
}

static void water_finds_its_level(void **state)
{
    (void)state;
    for (int round = 0; round < 20000; round++) {
        struct pond p;
        double amount;

        make_pond(&p);
        if (!(p.sum > 0))
            continue;
        amount = p.sum * below(1000) / 1000;
        assert_int_equal(mfs_fill_shares(p.rate, p.room, p.n, amount, p.share), 0);
        check_pond(&p, amount);
    }
}

static void full_ponds_are_as_their_rooms(void **state)
{
    (void)state;
    for (int round = 0; round < 2000; round++) {
        struct pond p;

        make_pond(&p);
        assert_int_equal(mfs_fill_shares(p.rate, p.room, p.n, p.sum * (1 + below(5)), p.share), 0);
        for (size_t i = 0; i < p.n; i++)
            assert_true(!(p.sum > 0) || fabs(p.share[i] - p.room[i] / p.sum) < NEARLY);
    }
}

static void nonsense_is_refused(void **state)
{
    const double good[2] = {1, 2}, zero[2] = {1, 0}, minus[2] = {1, -1}, nan_[2] = {1, NAN};
    double share[2];

    (void)state;
    assert_int_equal(mfs_fill_shares(good, good, 0, 1, share), -EINVAL);
    assert_int_equal(mfs_fill_shares(zero, good, 2, 1, share), -EINVAL);
    assert_int_equal(mfs_fill_shares(nan_, good, 2, 1, share), -EINVAL);
    assert_int_equal(mfs_fill_shares(good, minus, 2, 1, share), -EINVAL);
    assert_int_equal(mfs_fill_shares(good, nan_, 2, 1, share), -EINVAL);
    assert_int_equal(mfs_fill_shares(good, good, 2, -1, share), -EINVAL);
    assert_int_equal(mfs_fill_shares(good, zero, 2, 0, share), 0);
}

/* ---- links that are busy alike --------------------------------------------------------------- */

/* What crosses the link of a node that holds and does that part of everything. */
static double load(double share)
{
    return share * (1 - share);
}

/* How long the busiest link takes. */
static double busiest(const double *rate, size_t n, const double *share)
{
    double most = 0;

    for (size_t i = 0; i < n; i++)
        most = fmax(most, load(share[i]) / rate[i]);
    return most;
}

/* Sums to 1; the faster has no less; the fastest alone may be less busy, and has a half or more
 * then; and it is no slower than shares in proportion. */
static void check_hose(const double *rate, size_t n, const double *share)
{
    double sum = 0, rates = 0, proportional[NODES_MOST], most = busiest(rate, n, share);

    for (size_t i = 0; i < n; i++) {
        sum += share[i];
        rates += rate[i];
        assert_true(share[i] > 0);
        assert_true(share[i] > 0.5 - NEARLY || fabs(load(share[i]) / rate[i] / most - 1) < 1e-4);
        for (size_t k = 0; k < n; k++)
            assert_true(rate[i] > rate[k] || share[i] <= share[k] * (1 + NEARLY));
    }
    assert_true(fabs(sum - 1) < NEARLY);
    for (size_t i = 0; i < n; i++)
        proportional[i] = rate[i] / rates;
    assert_true(most <= busiest(rate, n, proportional) * (1 + NEARLY));
}

static void links_are_busy_alike(void **state)
{
    const double two[2] = {1, 3}, equal[4] = {5, 5, 5, 5}, bad[2] = {1, 0};
    double share[NODES_MOST], rate[NODES_MOST];

    (void)state;
    for (int round = 0; round < 20000; round++) {
        size_t n = 1 + below(NODES_MOST);

        for (size_t i = 0; i < n; i++)
            rate[i] = pow(10, below(2000) / 1000.0);
        assert_int_equal(mfs_hose_shares(rate, n, share), 0);
        check_hose(rate, n, share);
    }
    assert_int_equal(mfs_hose_shares(two, 2, share), 0);
    assert_true(fabs(share[1] - 0.75) < NEARLY);
    assert_int_equal(mfs_hose_shares(equal, 4, share), 0);
    assert_true(fabs(share[0] - 0.25) < NEARLY);
    assert_int_equal(mfs_hose_shares(equal, 0, share), -EINVAL);
    assert_int_equal(mfs_hose_shares(bad, 2, share), -EINVAL);
}

/* ---- which rule ------------------------------------------------------------------------------ */

struct world {
    struct mfs_cm_state st;
    struct mfs_cm_node node[NODES_MOST];
    const struct mfs_cm_node *at[NODES_MOST];
    double weight[NODES_MOST];
    struct mfs_plan_node plan_node[NODES_MOST];
    struct mfs_plan_part part[PARTS_MOST];
};

static void make(struct world *w, const char *rule, uint32_t nodes, uint64_t memory)
{
    *w = (struct world){.st = {.nnodes = nodes, .nparts = 12 * nodes, .stripe_size = MIB}};
    snprintf(w->st.weights, sizeof w->st.weights, "%s", rule);
    for (uint32_t i = 0; i < nodes; i++) {
        w->node[i] = (struct mfs_cm_node){.id = i, .memory = memory};
        w->at[i] = &w->node[i];
    }
}

static bool weigh(struct world *w, uint64_t used)
{
    bool by_bandwidth = mfs_weights_make(&w->st, w->at, w->st.nnodes, used, w->weight);
    double sum = 0;

    for (uint32_t i = 0; i < w->st.nnodes; i++)
        sum += w->weight[i];
    for (uint32_t i = 0; i < w->st.nnodes; i++)
        w->weight[i] /= sum;
    return by_bandwidth;
}

static void rules(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    (void)state;
    make(w, "bandwidth", 4, 4096 * MIB);
    assert_false(weigh(w, 0)); /* nothing is known */
    w->node[1].bandwidth = 1e6;
    assert_true(weigh(w, 0)); /* the others are as fast, as far as is known */
    assert_true(fabs(w->weight[0] - 0.25) < NEARLY);
    w->node[2].bandwidth = 3e6;
    assert_true(weigh(w, 0)); /* 3 1 3 3 */
    assert_true(fabs(w->weight[0] - 0.3) < NEARLY && fabs(w->weight[1] - 0.1) < NEARLY);
    strcpy(w->st.weights, "auto");
    assert_true(weigh(w, 0)); /* 4/13 · 9/13 is three times 1/13 · 12/13 */
    assert_true(fabs(w->weight[0] - 4.0 / 13) < NEARLY && fabs(w->weight[1] - 1.0 / 13) < NEARLY);
    w->node[0].bandwidth_seen = 4e6; /* 4 1 3 3 */
    assert_true(weigh(w, 0));
    assert_true(fabs(load(w->weight[0]) / 4 - load(w->weight[1])) < NEARLY);
    assert_true(fabs(load(w->weight[3]) / 3 - load(w->weight[1])) < NEARLY);
    w->node[2].bandwidth_seen = 6e6; /* is no news of who is known */
    assert_true(weigh(w, 0));
    assert_true(fabs(w->weight[2] - w->weight[3]) < NEARLY);
    make(w, "auto", 2, 4096 * MIB);
    w->node[0].bandwidth = 1.1e6;
    w->node[1].bandwidth = 1e6;
    assert_false(weigh(w, 0)); /* nearly alike */
    strcpy(w->node[0].bandwidth_from, MFS_BANDWIDTH_CONFIGURED);
    assert_false(weigh(w, 0));
    strcpy(w->node[1].bandwidth_from, MFS_BANDWIDTH_CONFIGURED);
    assert_true(weigh(w, 0));
    w->node[0].bandwidth = 1.04e6;
    assert_false(weigh(w, 0));
    strcpy(w->node[1].bandwidth_from, MFS_BANDWIDTH_PROBED);
    w->node[0].bandwidth = 1.3e6;
    assert_true(weigh(w, 0));
    make(w, "memory", 2, 4096 * MIB);
    w->node[0].bandwidth = 1e6;
    assert_false(weigh(w, 0));
    assert_true(fabs(w->weight[0] - 0.5) < NEARLY);
    free(w);
}

/* The fuller, the more as by memory; at two thirds wholly so. */
static void memory_takes_over(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    double last = 1;
    uint64_t room;

    (void)state;
    make(w, "bandwidth", 4, 4096 * MIB);
    for (uint32_t i = 0; i < 4; i++)
        w->node[i].bandwidth = i ? 1e6 : 1e7;
    room = 4 * mfs_capacity_used(4096 * MIB, 12) - 48 * 4 * MIB;
    for (unsigned percent = 0; percent < 100; percent += 5) {
        uint64_t used = room / 100 * percent;

        assert_true(weigh(w, used));
        assert_true(w->weight[0] <= last + NEARLY);
        last = w->weight[0];
        assert_true(w->weight[0] * (double)used < 4096.0 * MIB);
        if (percent == 0)
            assert_true(w->weight[0] > 0.7);
        if (percent >= 70)
            assert_true(fabs(w->weight[0] - 0.25) < 0.001);
    }
    free(w);
}

/* ---- with the planner ------------------------------------------------------------------------ */

/* Partitions about as large as each other, where the last plan left them. */
static void fill_up(struct world *w, uint64_t used)
{
    uint64_t each = used / w->st.nparts;

    for (uint32_t p = 0; p < w->st.nparts; p++)
        w->part[p].bytes = each / 4 * 3 + below((uint32_t)(each / 2) + 1);
}

static void plan(struct world *w, struct mfs_plan *out)
{
    struct mfs_plan_input in = {w->plan_node, w->st.nnodes, w->part, w->st.nparts, 0, false};
    struct mfs_err err = {0};

    for (uint32_t i = 0; i < w->st.nnodes; i++) {
        uint32_t due = (uint32_t)ceil(w->weight[i] * w->st.nparts);

        w->plan_node[i] =
            (struct mfs_plan_node){i, w->weight[i], mfs_capacity_used(w->node[i].memory, due)};
    }
    if (mfs_planner_plan(&in, out, &err))
        fail_msg("no plan: %s", err.msg);
    for (uint32_t k = 0; k < out->nmoves; k++)
        w->part[out->move[k].index].node = out->move[k].to;
}

/* Nobody beyond his memory; and within one partition of what is due to him, unless some node is due
 * less than one, or memory bends the plan. */
static void check_plan(const struct world *w, const struct mfs_plan *p)
{
    double least = 1;

    for (uint32_t i = 0; i < w->st.nnodes; i++)
        least = fmin(least, w->weight[i] * w->st.nparts);
    for (uint32_t i = 0; i < w->st.nnodes; i++) {
        assert_true(p->held[i] <= w->plan_node[i].memory);
        assert_true(p->count[i] >= 1);
        if (!p->bent && least >= 1)
            assert_true(fabs(p->count[i] - w->weight[i] * w->st.nparts) < 1 + NEARLY);
    }
}

/* From empty to nearly full, planned anew on the way: what is due is had, and moved is little. */
static void filling_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    uint32_t bent = 0, plans = 0;

    (void)state;
    for (int round = 0; round < 200; round++) {
        uint64_t room;

        make(w, "bandwidth", 2 + below(NODES_MOST - 1), 2048 * MIB);
        for (uint32_t i = 0; i < w->st.nnodes; i++)
            w->node[i].bandwidth = below(6) ? 1e6 * (1 + below(12)) : 0;
        w->node[0].bandwidth = 5e6;
        room = w->st.nnodes * mfs_capacity_used(2048 * MIB, 12) - w->st.nparts * 4 * MIB;
        for (unsigned percent = 0; percent <= 80; percent += 10) {
            struct mfs_plan p;

            fill_up(w, room / 100 * percent);
            weigh(w, room / 100 * percent);
            plan(w, &p);
            check_plan(w, &p);
            bent += p.bent;
            plans++;
            mfs_planner_clear(&p);
        }
    }
    print_message("%u of %u plans were bent by memory\n", bent, plans);
    assert_true(bent * 50 < plans);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(water_finds_its_level),
        cmocka_unit_test(full_ponds_are_as_their_rooms),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(links_are_busy_alike),
        cmocka_unit_test(rules),
        cmocka_unit_test(memory_takes_over),
        cmocka_unit_test(filling_up),
    };

    return cmocka_run_group_tests(tests, choose_seed, NULL);
}
