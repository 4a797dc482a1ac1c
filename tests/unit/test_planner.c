/* The planner: its promises over many random deployments (MFS_SEED repeats one run), against all
 * possible plans where those can be counted, and its speed.
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
#include "cm/plan/planner.h"
#include "cluster/y0.h"
#include "seeded.h"

#define NODES_MOST 40
#define PARTS_MOST 400
#define MIB        (1ULL << 20)

struct world {
    struct mfs_plan_node node[NODES_MOST];
    struct mfs_plan_part part[PARTS_MOST];
    struct mfs_plan_input in;
};

/* Some nodes stay, some leave, some are new and empty; partitions of sizes that differ, a few from
 * nowhere. */
static void make(struct world *w, uint32_t nodes, uint32_t parts, uint64_t memory, bool even)
{
    w->in = (struct mfs_plan_input){w->node, nodes, w->part, parts, below(2) ? 0 : 1000, false};
    for (uint32_t i = 0; i < nodes; i++) {
        w->node[i] = (struct mfs_plan_node){i * 7 + 3, 1, memory};
        if (!even)
            w->node[i].weight = 1 + below(9);
        if (i && !below(4))
            w->node[i].weight = 0;
    }
    for (uint32_t p = 0; p < parts; p++) {
        uint32_t at = below(nodes);

        at = at % 3 == 2 && at ? at - 1 : at; /* every third has none */
        w->part[p] = (struct mfs_plan_part){w->node[at].id, below(5) ? below(1000000) : 0};
        if (!below(30))
            w->part[p] = (struct mfs_plan_part){MFS_PLAN_NOWHERE, 0};
    }
}

static uint32_t index_of(const struct world *w, uint32_t id)
{
    for (uint32_t i = 0; i < w->in.nnodes; i++)
        if (w->node[i].id == id)
            return i;
    fail_msg("a move names node %u, which is not there", id);
    return 0;
}

/* What is true of every plan: each partition is somewhere, the sums agree, leaving nodes are empty,
 * nobody is beyond its memory. */
static void check_sound(const struct world *w, const struct mfs_plan *plan)
{
    uint32_t at[PARTS_MOST], count[NODES_MOST] = {0};
    uint64_t held[NODES_MOST] = {0}, bytes = 0;
    bool moved[PARTS_MOST] = {false};

    for (uint32_t p = 0; p < w->in.nparts; p++)
        at[p] = w->part[p].node;
    for (uint32_t k = 0; k < plan->nmoves; k++) {
        const struct mfs_scale_move *m = &plan->move[k];

        assert_true(m->index < w->in.nparts);
        assert_false(moved[m->index]);
        moved[m->index] = true;
        assert_int_equal(m->from, at[m->index]);
        assert_int_not_equal(m->to, m->from);
        assert_int_equal(m->bytes, w->part[m->index].bytes);
        at[m->index] = m->to;
        bytes += m->from == MFS_PLAN_NOWHERE ? 0 : m->bytes;
    }
    for (uint32_t p = 0; p < w->in.nparts; p++) {
        count[index_of(w, at[p])]++;
        held[index_of(w, at[p])] += w->part[p].bytes + w->in.part_overhead;
    }
    assert_int_equal(bytes, plan->bytes);
    for (uint32_t i = 0; i < w->in.nnodes; i++) {
        assert_int_equal(count[i], plan->count[i]);
        assert_int_equal(held[i], plan->held[i]);
        assert_true(held[i] <= w->node[i].memory);
        if (w->node[i].weight == 0)
            assert_int_equal(count[i], 0);
    }
}

/* Numbers as the Y0 rule wants them: at least 1, and within rounding of what is due. */
static void check_shares(const struct world *w, const struct mfs_plan *plan)
{
    double sum = 0;
    bool least = false;

    for (uint32_t i = 0; i < w->in.nnodes; i++)
        sum += w->node[i].weight;
    for (uint32_t i = 0; i < w->in.nnodes; i++)
        least |= w->node[i].weight > 0 && w->node[i].weight / sum * w->in.nparts < 1;
    for (uint32_t i = 0; i < w->in.nnodes; i++) {
        double due = w->node[i].weight / sum * w->in.nparts;

        if (w->node[i].weight == 0)
            continue;
        assert_true(plan->count[i] >= 1);
        assert_true(plan->count[i] < fmax(due, 1) + 1);
        if (!least) /* else those with less than 1 due take it from the others */
            assert_true(plan->count[i] > due - 1);
    }
}

/* The least that reaches these numbers: from each node its smallest, as many as it has too many. */
static uint64_t least_bytes(const struct world *w, const uint32_t *count)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < w->in.nnodes; i++) {
        uint64_t sizes[PARTS_MOST];
        uint32_t n = 0;

        for (uint32_t p = 0; p < w->in.nparts; p++) {
            uint32_t k = n;

            if (w->part[p].node != w->node[i].id)
                continue;
            for (; k && sizes[k - 1] > w->part[p].bytes; k--)
                sizes[k] = sizes[k - 1];
            sizes[k] = w->part[p].bytes;
            n++;
        }
        for (uint32_t k = 0; k + count[i] < n; k++)
            total += sizes[k];
    }
    return total;
}

/* What is left on a node that gives of each size is as large on the average as what it had. */
static void of_each_size(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    (void)state;
    for (int round = 0; round < 500; round++) {
        uint64_t had = 0, kept = 0;
        struct mfs_plan plan;
        struct mfs_err err;

        make(w, 3, 30, 1ULL << 40, 0);
        w->in.alike = true;
        for (uint32_t i = 0; i < 3; i++)
            w->node[i].weight = 1;
        for (uint32_t p = 0; p < 30; p++) {
            w->part[p].node = w->node[0].id;
            w->part[p].bytes = 1000 + below(1000);
            had += w->part[p].bytes;
        }
        assert_int_equal(mfs_planner_plan(&w->in, &plan, &err), 0);
        assert_int_equal(plan.nmoves, 20);
        check_sound(w, &plan);
        kept = had - plan.bytes;
        assert_true(kept * 100 > had / 3 * 93 && kept * 100 < had / 3 * 107);
        mfs_planner_clear(&plan);
    }
    free(w);
}

static void promises_hold(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    (void)state;
    for (int round = 0; round < 3000; round++) {
        uint32_t nodes = 1 + below(NODES_MOST), parts = nodes + below(PARTS_MOST - nodes);
        struct mfs_plan plan;
        struct mfs_err err;

        make(w, nodes, parts, 1ULL << 40, below(2));
        assert_int_equal(mfs_planner_plan(&w->in, &plan, &err), 0);
        assert_false(plan.bent);
        check_sound(w, &plan);
        check_shares(w, &plan);
        assert_int_equal(plan.bytes, least_bytes(w, plan.count));
        mfs_planner_clear(&plan);
    }
    free(w);
}

/* What is planned once needs no second plan. */
static void a_plan_is_stable(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    (void)state;
    for (int round = 0; round < 500; round++) {
        uint32_t nodes = 1 + below(NODES_MOST), parts = nodes + below(PARTS_MOST - nodes);
        struct mfs_plan plan, again;

        make(w, nodes, parts, 1ULL << 40, below(2));
        assert_int_equal(mfs_planner_plan(&w->in, &plan, NULL), 0);
        for (uint32_t k = 0; k < plan.nmoves; k++)
            w->part[plan.move[k].index].node = plan.move[k].to;
        assert_int_equal(mfs_planner_plan(&w->in, &again, NULL), 0);
        assert_int_equal(again.nmoves, 0);
        assert_memory_equal(again.count, plan.count, nodes * sizeof *plan.count);
        mfs_planner_clear(&plan);
        mfs_planner_clear(&again);
    }
    free(w);
}

/* ---- against every plan there is ------------------------------------------------------------- */

/* Is this a rounding by largest remainder? Nobody below the whole part or more than one above it,
 * and no node rounded down whose remainder is larger than that of one rounded up. */
static bool by_remainder(const struct world *w, const uint32_t *count)
{
    double sum = 0, up = INFINITY, down = -INFINITY;

    for (uint32_t i = 0; i < w->in.nnodes; i++)
        sum += w->node[i].weight;
    for (uint32_t i = 0; i < w->in.nnodes; i++) {
        double due = w->node[i].weight / sum * w->in.nparts, whole = floor(due + 1e-9);

        if (count[i] != whole && count[i] != whole + 1)
            return false;
        if (count[i] == whole)
            down = fmax(down, due - whole);
        else
            up = fmin(up, due - whole);
    }
    return up > 1e-9 && down <= up + 1e-9;
}

/* Goes through all placements. Fewest bytes among those with right numbers (UINT64_MAX: none), and
 * whether any fits into the memory at all. */
static uint64_t best_of_all(const struct world *w, bool *fits)
{
    uint32_t at[8] = {0}, nodes = (uint32_t)w->in.nnodes, parts = w->in.nparts;
    uint64_t best = UINT64_MAX;

    *fits = false;
    for (;;) {
        uint32_t count[4] = {0}, p = 0;
        uint64_t held[4] = {0}, bytes = 0;
        bool ok = true;

        for (uint32_t q = 0; q < parts; q++) {
            count[at[q]]++;
            held[at[q]] += w->part[q].bytes + w->in.part_overhead;
            if (w->part[q].node != w->node[at[q]].id && w->part[q].node != MFS_PLAN_NOWHERE)
                bytes += w->part[q].bytes;
        }
        for (uint32_t i = 0; i < nodes; i++)
            ok &= held[i] <= w->node[i].memory && (!count[i] || w->node[i].weight > 0);
        *fits |= ok;
        if (ok && bytes < best && by_remainder(w, count))
            best = bytes;
        while (p < parts && ++at[p] == nodes)
            at[p++] = 0;
        if (p == parts)
            return best;
    }
}

/* Weights so near to each other that everyone is due 1 or more. */
static void make_small(struct world *w, uint64_t memory)
{
    uint32_t nodes = 2 + below(3);

    make(w, nodes, 2 * nodes > 7 ? 7 : 2 * nodes + below(8 - 2 * nodes), memory, true);
    for (uint32_t i = 0; i < nodes; i++)
        if (w->node[i].weight > 0)
            w->node[i].weight = below(2) ? 4 : 5;
    if (nodes == 4)
        w->node[3].weight = 0;
}

static void no_plan_moves_less(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    (void)state;
    for (int round = 0; round < 600; round++) {
        struct mfs_plan plan;
        bool fits;

        make_small(w, 1ULL << 40);
        assert_int_equal(mfs_planner_plan(&w->in, &plan, NULL), 0);
        assert_int_equal(plan.bytes, best_of_all(w, &fits));
        mfs_planner_clear(&plan);
    }
    free(w);
}

/* Memory nearly full: never beyond it, a refusal only when it is really tight, and the bytes near
 * the least. To fill memories exactly is bin packing, so perfection is not asked for. */
static void tight_memory(void **state)
{
    uint32_t feasible = 0, missed = 0, exact = 0, comparable = 0;
    struct world *w = calloc(1, sizeof *w);

    (void)state;
    for (int round = 0; round < 1500; round++) {
        struct mfs_plan plan;
        struct mfs_err err;
        uint64_t best;
        bool fits;
        int rc;

        make_small(w, 600000 + below(2000000));
        best = best_of_all(w, &fits);
        rc = mfs_planner_plan(&w->in, &plan, &err);
        assert_true(rc == 0 || rc == -ENOSPC);
        assert_true(fits || rc == -ENOSPC);
        feasible += fits;
        missed += fits && rc;
        if (!rc) {
            check_sound(w, &plan);
            comparable += best != UINT64_MAX && !plan.bent;
            exact += best == plan.bytes && !plan.bent;
        } else {
            assert_true(strlen(err.msg) > 20);
        }
        mfs_planner_clear(&plan);
    }
    print_message("tight: %u of %u that fit were refused; %u of %u moved the least\n", missed,
                  feasible, exact, comparable);
    assert_true(feasible > 500);
    assert_true(missed * 50 < feasible);
    assert_true(exact * 10 > comparable * 9);
    free(w);
}

/* ---- particular cases ------------------------------------------------------------------------ */

static void doubling_moves_half(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    struct mfs_plan plan;

    (void)state;
    w->in = (struct mfs_plan_input){w->node, 4, w->part, 8, 0, false};
    for (uint32_t i = 0; i < 4; i++)
        w->node[i] = (struct mfs_plan_node){i, 1, 100 * MIB};
    for (uint32_t p = 0; p < 8; p++)
        w->part[p] = (struct mfs_plan_part){p % 2, MIB};
    assert_int_equal(mfs_planner_plan(&w->in, &plan, NULL), 0);
    assert_int_equal(plan.nmoves, 4);
    assert_int_equal(plan.bytes, 4 * MIB);
    for (uint32_t k = 0; k < 4; k++)
        assert_int_equal(plan.move[k].from, k % 2); /* sources take turns */
    mfs_planner_clear(&plan);
    free(w);
}

static void refusals_tell_the_figures(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    struct mfs_plan plan;
    struct mfs_err err;

    (void)state;
    w->in = (struct mfs_plan_input){w->node, 2, w->part, 4, 0, false};
    for (uint32_t i = 0; i < 2; i++)
        w->node[i] = (struct mfs_plan_node){i, i ? 0 : 1, 100 * MIB};
    for (uint32_t p = 0; p < 4; p++)
        w->part[p] = (struct mfs_plan_part){p % 2, 30 * MIB};
    assert_int_equal(mfs_planner_plan(&w->in, &plan, &err), -ENOSPC);
    assert_non_null(strstr(err.msg, "120 MiB"));
    assert_non_null(strstr(err.msg, "1 node "));
    assert_non_null(strstr(err.msg, "100 MiB"));
    w->node[0].weight = 0;
    assert_int_equal(mfs_planner_plan(&w->in, &plan, &err), -EINVAL);
    w->node[0].weight = 1;
    w->node[1].id = 0;
    assert_int_equal(mfs_planner_plan(&w->in, &plan, &err), -EINVAL);
    w->node[1].id = 1;
    w->part[2].node = 9;
    assert_int_equal(mfs_planner_plan(&w->in, &plan, &err), -EINVAL);
    w->in.nparts = 0;
    assert_int_equal(mfs_planner_plan(&w->in, &plan, &err), -EINVAL);
    free(w);
}

/* Bandwidth may rule the weights; memory still limits. */
static void memory_bends_the_numbers(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    struct mfs_plan plan;

    (void)state;
    w->in = (struct mfs_plan_input){w->node, 2, w->part, 10, 0, false};
    w->node[0] = (struct mfs_plan_node){0, 1, 100 * MIB};
    w->node[1] = (struct mfs_plan_node){1, 9, 35 * MIB};
    for (uint32_t p = 0; p < 10; p++)
        w->part[p] = (struct mfs_plan_part){0, 10 * MIB};
    assert_int_equal(mfs_planner_plan(&w->in, &plan, NULL), 0);
    assert_true(plan.bent);
    assert_int_equal(plan.nmoves, 3);
    check_sound(w, &plan);
    mfs_planner_clear(&plan);
    w->node[1].memory = 0; /* it has shrunk below what it holds: it gives all */
    w->part[4].node = 1;
    assert_int_equal(mfs_planner_plan(&w->in, &plan, NULL), 0);
    check_sound(w, &plan);
    assert_int_equal(plan.nmoves, 1);
    mfs_planner_clear(&plan);
    free(w);
}

/* ---- speed ----------------------------------------------------------------------------------- */

static void plans_fast(void **state)
{
    const uint32_t nodes = 10000, parts = 160000;
    struct mfs_plan_node *node = calloc(nodes, sizeof *node);
    struct mfs_plan_part *part = calloc(parts, sizeof *part);
    struct mfs_plan_input in = {node, nodes, part, parts, 1000, false};
    struct mfs_plan plan;
    int64_t began, took;

    (void)state;
    for (uint32_t i = 0; i < nodes; i++) {
        node[i] = (struct mfs_plan_node){i, 1 + below(16), 64 * MIB};
        if (!below(5))
            node[i].weight = 0;
    }
    for (uint32_t p = 0; p < parts; p++)
        part[p] = (struct mfs_plan_part){below(nodes * 3 / 4), below(MIB)};
    began = mfs_clock_mono();
    assert_int_equal(mfs_planner_plan(&in, &plan, NULL), 0);
    took = mfs_clock_mono() - began;
    print_message("%u nodes, %u partitions, %u moves: planned in %lld ms\n", nodes, parts,
                  plan.nmoves, (long long)(took / MFS_MSEC));
    assert_true(took < 30 * MFS_SEC);
    mfs_planner_clear(&plan);
    free(node);
    free(part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(promises_hold),
        cmocka_unit_test(of_each_size),
        cmocka_unit_test(a_plan_is_stable),
        cmocka_unit_test(no_plan_moves_less),
        cmocka_unit_test(tight_memory),
        cmocka_unit_test(doubling_moves_half),
        cmocka_unit_test(refusals_tell_the_figures),
        cmocka_unit_test(memory_bends_the_numbers),
        cmocka_unit_test(plans_fast),
    };

    return cmocka_run_group_tests(tests, choose_seed, NULL);
}
