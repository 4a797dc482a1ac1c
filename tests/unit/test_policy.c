/* Policies: their numbers, and that no demand, however it goes, makes a deployment grow and shrink
 * in turn. MFS_SEED repeats one run.
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

#include "base/clock.h"
#include "cm/plan/policy.h"
#include "seeded.h"

#define NODE_BYTES 1000000.0
#define LUCK_MOST  1.04

/* A deployment whose nodes come and go at once; `luck`: how much fuller one partition is than the
 * mean. */
struct sim {
    struct mfs_policy policy;
    struct mfs_policy_settings s;
    struct mfs_policy_memory memory;
    struct mfs_policy_decision last;
    double now, luck;
    uint32_t start, nodes, parts;
    bool quick;                /* changes are over before the next look */
    unsigned outs, ins, turns; /* changes; turns: an out after an in or the other way round */
    int direction;
    uint32_t most, fullest_parts;
};

static void begin(struct sim *x, const char *name, uint32_t nodes, uint32_t parts,
                  const struct mfs_policy_settings *given)
{
    struct mfs_err err;

    memset(x, 0, sizeof *x);
    x->start = x->nodes = x->most = nodes;
    x->parts = parts;
    x->luck = 1;
    assert_int_equal(mfs_policy_parse(name, &x->policy, &err), 0);
    assert_int_equal(mfs_policy_settle(&x->policy, given, nodes, parts, &x->s, &err), 0);
}

static double fullest(const struct sim *x, double used)
{
    double on_it = ceil((double)x->parts / x->nodes) / x->parts;

    return used * on_it * x->luck / NODE_BYTES;
}

/* A second goes by. What does not fit is not written, as on a real one. Returns the change. */
static int second(struct sim *x, double demand)
{
    double used = fmin(demand, x->nodes * NODE_BYTES);
    struct mfs_policy_view v = {.now = x->now++,
                                .nodes = x->nodes,
                                .partitions = x->parts,
                                .used = (uint64_t)used,
                                .capacity = (uint64_t)(x->nodes * NODE_BYTES),
                                .fullest = fmin(1, fullest(x, used)),
                                .fullest_parts = x->fullest_parts};
    int change;

    mfs_policy_decide(&x->policy, &x->s, x->start, &x->memory, &v, &x->last);
    change = (int)x->last.target - (int)x->nodes;
    if (!change)
        return 0;
    assert_true(strlen(x->last.why) > 40);
    x->outs += change > 0;
    x->ins += change < 0;
    x->turns += x->direction * change < 0;
    x->direction = change;
    x->nodes = x->last.target;
    x->most = x->nodes > x->most ? x->nodes : x->most;
    v.changing = true; /* for two seconds */
    for (int i = 0; i < 2 && !x->quick; i++) {
        v.now = x->now++;
        mfs_policy_decide(&x->policy, &x->s, x->start, &x->memory, &v, &x->last);
        assert_int_equal(x->last.target, v.nodes);
    }
    return change;
}

static void hold(struct sim *x, double demand, unsigned seconds)
{
    while (seconds--)
        second(x, demand);
}

static const struct mfs_policy_settings plain, from_one = {.min_nodes = 1};

static void names(void **state)
{
    static const char *const good[] = {"none",    "cso",     "nso",     "aso",     "cso+csi",
                                       "cso+asi", "nso+csi", "nso+asi", "aso+csi", "aso+asi"};
    static const char *const bad[] = {"",        "x",           "csi",     "none+csi", "cso+",
                                      "cso+x",   "+csi",        "CSO",     "cs",       "cso+none",
                                      "csi+cso", "cso+csi+asi", "cso csi", "asoo",     "none+"};
    struct mfs_policy p;
    struct mfs_err err;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(mfs_policy_parse(good[i], &p, &err), 0);
    assert_int_equal(p.out, MFS_OUT_ASO);
    assert_int_equal(p.in, MFS_IN_ASI);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(mfs_policy_parse(bad[i], &p, &err), -EINVAL);
}

static void settings_that_contradict(void **state)
{
    static const struct mfs_policy_settings bad[] = {
        {.in_to = 0.95}, {.out_at = 0.8}, {.min_nodes = 5, .max_nodes = 4}, {.max_nodes = 33}};
    struct mfs_policy_settings s;
    struct mfs_policy p;
    struct mfs_err err;

    (void)state;
    assert_int_equal(mfs_policy_parse("cso+csi", &p, &err), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(mfs_policy_settle(&p, &bad[i], 4, 32, &s, &err), -EINVAL);
    assert_int_equal(mfs_policy_settle(&p, &plain, 4, 32, &s, &err), 0);
    assert_int_equal(s.min_nodes, 4);
    assert_int_equal(s.max_nodes, 32);
    assert_true(mfs_policy_can_grow(&p, &s, 31));
    assert_false(mfs_policy_can_grow(&p, &s, 32));
    assert_int_equal(mfs_policy_parse("none", &p, &err), 0);
    assert_false(mfs_policy_can_grow(&p, &s, 4));
}

/* Above 95 %: by half of the first nodes, by as many, by doubling. */
static void steps_out(void **state)
{
    static const struct {
        const char *name;
        uint32_t first, second;
    } cases[] = {{"cso", 6, 8}, {"nso", 8, 12}, {"aso", 8, 16}, {"none", 4, 4}};
    struct sim x;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin(&x, cases[i].name, 4, 128, &plain);
        hold(&x, 3.75e6, 100);
        assert_int_equal(x.nodes, 4);
        hold(&x, 3.81e6, 10);
        assert_int_equal(x.nodes, cases[i].first);
        hold(&x, 0.96 * cases[i].first * NODE_BYTES, 10);
        assert_int_equal(x.nodes, cases[i].second);
        hold(&x, 0, 1000);
        assert_int_equal(x.nodes, cases[i].second);
    }
    begin(&x, "cso", 1, 4, &plain);
    hold(&x, 0.96e6, 10);
    assert_int_equal(x.nodes, 2);
    begin(&x, "aso", 4, 128, &(struct mfs_policy_settings){.max_nodes = 5});
    hold(&x, 50e6, 100);
    assert_int_equal(x.nodes, 5);
    assert_int_equal(x.outs, 1);
}

/* A quarter at most, a half at most, and never so many that what stays is filled above 85 %. */
static void steps_in(void **state)
{
    static const struct {
        const char *name;
        double used; /* of 8 nodes */
        uint32_t left;
    } cases[] = {{"cso+csi", 0.30, 6}, {"cso+csi", 0.63, 6}, {"cso+csi", 0.70, 7},
                 {"cso+csi", 0.76, 8}, {"cso+asi", 0.30, 4}, {"cso+asi", 0.42, 4},
                 {"cso+asi", 0.45, 5}, {"cso+asi", 0.52, 8}, {"cso", 0.1, 8}};
    struct sim x;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin(&x, cases[i].name, 8, 840, &from_one); /* 840 divides evenly */
        hold(&x, cases[i].used * 8 * NODE_BYTES, 45);
        assert_int_equal(x.nodes, 8);
        hold(&x, cases[i].used * 8 * NODE_BYTES, 3);
        assert_int_equal(x.nodes, cases[i].left);
    }
    /* A quarter of three nodes is less than one: one goes, where two have room for all. */
    begin(&x, "cso+csi", 3, 24, &from_one);
    hold(&x, 0.60 * 3 * NODE_BYTES, 200);
    assert_int_equal(x.nodes, 3);
    hold(&x, 0.55 * 3 * NODE_BYTES, 60);
    assert_int_equal(x.nodes, 2);
    hold(&x, 0.35 * 2 * NODE_BYTES, 60);
    assert_int_equal(x.nodes, 1);
    begin(&x, "cso+asi", 8, 840, &plain); /* as many as at the start stay */
    hold(&x, 0, 500);
    assert_int_equal(x.nodes, 8);
}

/* No scale-in while use grows, nor because of a short trough. */
static void the_window_holds_back(void **state)
{
    struct sim x;

    (void)state;
    begin(&x, "cso+csi", 8, 840, &from_one);
    for (int i = 0; i < 200; i++)
        hold(&x, 1e6 + i * 1e4, 1);
    assert_int_equal(x.ins, 0);
    begin(&x, "cso+csi", 8, 840, &from_one);
    for (int i = 0; i < 20; i++) {
        hold(&x, 6.4e6, 10);
        hold(&x, 1e6, 30);
    }
    assert_int_equal(x.ins, 0);
    hold(&x, 1e6, 50);
    assert_int_equal(x.ins, 1);
    x.quick = true;
    while (x.ins < 2)
        second(&x, 1e6);
    hold(&x, 1e6, 44); /* a window of its own, although no look saw the change under way */
    assert_int_equal(x.ins, 2);
    hold(&x, 1e6, 3);
    assert_int_equal(x.ins, 3);
}

/* One node can be full while the others are not: its share is larger by rounding, or it has bad
 * luck. More nodes help, while it has partitions to give. */
static void one_full_node_counts(void **state)
{
    struct sim x;

    (void)state;
    begin(&x, "cso", 3, 4, &plain); /* 2, 1, 1 */
    hold(&x, 1.97e6, 10);           /* of 3 */
    assert_int_equal(x.nodes, 4);
    hold(&x, 1.97e6, 100);
    assert_int_equal(x.outs, 1);
    begin(&x, "cso", 4, 32, &plain);
    hold(&x, 3.85e6, 10);
    x.luck =
        1.3; /* eight nodes have 4 each: with ten somebody would still have 4, with 11 nobody */
    hold(&x, 5.2e6, 10);
    hold(&x, 6.2e6, 10);
    assert_int_equal(x.nodes, 11);
    begin(&x, "aso", 8, 8, &plain);
    x.luck = 3; /* one partition of eight has three times its part: nothing helps */
    hold(&x, 2.7e6, 100);
    assert_int_equal(x.outs, 0);
    for (uint32_t left = 1; left <= 2; left++) { /* partitions: it has given the others away */
        begin(&x, "cso", 4, 32, &plain);
        x.luck = 3;
        x.fullest_parts = left;
        hold(&x, 1.5e6, 100);
        assert_int_equal(x.outs > 0, left > 1);
    }
}

static void constant_demand(struct sim *x, double demand)
{
    unsigned before;

    hold(x, demand, 3000);
    before = x->outs + x->ins;
    hold(x, demand, 600);
    if (x->outs + x->ins != before)
        fail_msg("still changing: %u nodes of %u partitions, demand %g, luck %g", x->nodes,
                 x->parts, demand, x->luck);
    /* It may overshoot and come back, once; never again out after that. */
    assert_true(x->turns <= 1);
    assert_false(x->turns == 1 && x->direction > 0);
}

static const char *const mixes[] = {"cso+csi", "cso+asi", "nso+csi",
                                    "nso+asi", "aso+csi", "aso+asi"};

static void constant_demand_comes_to_rest(void **state)
{
    struct sim x;

    (void)state;
    for (int round = 0; round < 3000; round++) {
        uint32_t nodes = 1 + below(12);

        begin(&x, mixes[below(6)], nodes, nodes * (1 + below(20)), &from_one);
        x.luck = 1 + below(1000) / 1000.0 * (LUCK_MOST - 1);
        x.quick = below(2);
        constant_demand(&x, below(1000) / 1000.0 * nodes * 3 * NODE_BYTES);
    }
}

/* Demand that trembles by less than out_at / in_to: no out ever follows an in. */
static void trembling_demand(void **state)
{
    struct sim x;

    (void)state;
    for (int round = 0; round < 1000; round++) {
        uint32_t nodes = 1 + below(12);
        double demand = below(1000) / 1000.0 * nodes * 3 * NODE_BYTES;

        begin(&x, mixes[below(6)], nodes, nodes * 16, &from_one);
        for (int i = 0; i < 2000; i++)
            hold(&x, demand * (0.955 + below(1000) / 1000.0 * 0.09), 1);
        assert_true(x.turns <= 1);
        assert_false(x.turns == 1 && x.direction > 0);
    }
}

/* A curve that rises and falls makes as many turns as it has itself. */
static void waves_are_followed(void **state)
{
    struct sim x;

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        begin(&x, mixes[i], 4, 256, &from_one);
        for (int t = 0; t < 4 * 3600; t++)
            second(&x, (6.5 - 5.5 * cos(t * 2 * 3.14159265 / 3600)) * 1e6);
        print_message("%s: %u out, %u in, %u turns, most %u nodes\n", mixes[i], x.outs, x.ins,
                      x.turns, x.most);
        assert_true(x.most >= 12 && x.most <= 26);
        assert_true(x.outs >= 2 && x.ins >= 4);
        assert_true(x.turns <= 16);
    }
}

static void no_figures_no_decision(void **state)
{
    struct mfs_policy_view v = {.nodes = 4, .partitions = 8};
    struct sim x;

    (void)state;
    begin(&x, "aso+asi", 4, 8, &from_one);
    for (int i = 0; i < 100; i++) {
        v.now = i;
        mfs_policy_decide(&x.policy, &x.s, 4, &x.memory, &v, &x.last);
        assert_int_equal(x.last.target, 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(settings_that_contradict),
        cmocka_unit_test(steps_out),
        cmocka_unit_test(steps_in),
        cmocka_unit_test(the_window_holds_back),
        cmocka_unit_test(one_full_node_counts),
        cmocka_unit_test(constant_demand_comes_to_rest),
        cmocka_unit_test(trembling_demand),
        cmocka_unit_test(waves_are_followed),
        cmocka_unit_test(no_figures_no_decision),
    };

    return cmocka_run_group_tests(tests, choose_seed, NULL);
}
