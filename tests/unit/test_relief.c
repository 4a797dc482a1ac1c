/* What leaves a full node: every plan helps, fits, and ends where nothing helps any more; over
 * random deployments (MFS_SEED repeats one run).
 * ctest: single */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cm/plan/relief.h"
#include "seeded.h"

#define NODES_MOST 12
#define PARTS_MOST 96
#define PROCESS    2

struct world {
    struct mfs_relief_node node[NODES_MOST];
    struct mfs_relief_part part[PARTS_MOST];
    struct mfs_relief_input in;
};

static void add(struct world *w, uint32_t node, uint64_t bytes)
{
    w->part[w->in.nparts++] = (struct mfs_relief_part){
        .node = w->node[node].id, .replica = MFS_PLAN_NOWHERE, .bytes = bytes};
    w->node[node].used += bytes;
}

static void begin(struct world *w, uint32_t nodes, uint64_t room)
{
    *w = (struct world){.in = {w->node, nodes, w->part, 0, PROCESS}};
    for (uint32_t i = 0; i < nodes; i++)
        w->node[i] = (struct mfs_relief_node){3 * i + 1, 0, room};
}

static double fill(const struct world *w, size_t i)
{
    return (double)w->node[i].used / (double)w->node[i].room;
}

static size_t at(const struct world *w, uint32_t id)
{
    for (size_t i = 0; i < w->in.nnodes; i++)
        if (w->node[i].id == id)
            return i;
    fail_msg("no node %u", id);
    return 0;
}

static void carry_out(struct world *w, const struct mfs_scale_move *m)
{
    size_t from = at(w, m->from), to = at(w, m->to);
    double now = fill(w, from);

    assert_int_equal(w->part[m->index].node, m->from);
    assert_int_not_equal(w->part[m->index].replica, m->to);
    assert_int_equal(w->part[m->index].bytes, m->bytes);
    assert_false(w->part[m->index].stays);
    w->node[from].used -= m->bytes;
    w->node[from].room += PROCESS;
    w->node[to].used += m->bytes;
    w->node[to].room -= PROCESS;
    w->part[m->index].node = m->to;
    assert_true(fill(w, to) <= 1);
    assert_true(fmax(fill(w, from), fill(w, to)) <= now - 0.02 + 1e-9);
}

static uint32_t relieve(struct world *w)
{
    struct mfs_plan plan;
    uint32_t n;

    assert_int_equal(mfs_relief_plan(&w->in, &plan), 0);
    for (uint32_t i = 0; i < plan.nmoves; i++)
        carry_out(w, &plan.move[i]);
    n = plan.nmoves;
    assert_true(n <= MFS_RELIEF_MOST);
    mfs_planner_clear(&plan);
    return n;
}

static double fullest_of(const struct world *w)
{
    double fullest, all;

    mfs_relief_look(w->node, w->in.nnodes, &fullest, &all);
    return fullest;
}

static void when_a_node_is_crowded(void **state)
{
    (void)state;
    assert_true(mfs_relief_crowded(0.9, 0.5));
    assert_true(mfs_relief_crowded(0.99, 0.95));
    assert_false(mfs_relief_crowded(0.9, 0.88));
    assert_false(mfs_relief_crowded(0.7, 0.1));
}

/* Three nodes are full, and two have room for one partition more each. */
static void as_many_as_there_is_room_for(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 5, 1000);
    for (uint32_t i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++)
            add(&w, i, 247);
    for (int k = 0; k < 3; k++)
        add(&w, 3, 200);
    for (int k = 0; k < 4; k++)
        add(&w, 4, 170);
    assert_int_equal(relieve(&w), 2);
    assert_int_equal(relieve(&w), 0);
}

static void nothing_helps_where_partitions_are_large(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 2, 1000);
    add(&w, 0, 990);
    add(&w, 1, 300);
    assert_int_equal(relieve(&w), 0);
    begin(&w, 1, 1000);
    add(&w, 0, 500);
    add(&w, 0, 490);
    assert_int_equal(relieve(&w), 0);
}

static void not_where_its_replica_is_nor_what_stays(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 3, 1000);
    for (int k = 0; k < 10; k++)
        add(&w, 0, 95);
    add(&w, 1, 100);
    add(&w, 2, 200);
    for (uint32_t p = 0; p < 10; p++)
        w.part[p].replica = w.node[1].id;
    assert_true(relieve(&w) > 0);
    assert_int_equal(w.node[1].used, 100);
    begin(&w, 2, 1000);
    for (int k = 0; k < 10; k++)
        add(&w, 0, 95);
    for (uint32_t p = 0; p < 10; p++)
        w.part[p].stays = true;
    assert_int_equal(relieve(&w), 0);
}

/* Of the fullest node: none of its partitions makes it and the emptiest one clearly less full. */
static void nothing_else_helps(const struct world *w)
{
    size_t most = 0, least = 0;
    double all, fullest;

    mfs_relief_look(w->node, w->in.nnodes, &fullest, &all);
    for (size_t i = 0; i < w->in.nnodes; i++) {
        most = fill(w, i) > fill(w, most) ? i : most;
        least = fill(w, i) < fill(w, least) ? i : least;
    }
    for (uint32_t p = 0; p < w->in.nparts && mfs_relief_crowded(fullest, all); p++) {
        double bytes = (double)w->part[p].bytes,
               here = ((double)w->node[most].used - bytes) / (double)w->node[most].room,
               there = ((double)w->node[least].used + bytes) / (double)w->node[least].room;

        if (w->part[p].node == w->node[most].id && there < 0.999)
            assert_true(fmax(here, there) > fullest - 0.021);
    }
}

/* Eight on each node, of which one has fuller ones. */
static void what_is_left_are_whole_partitions(void **state)
{
    uint32_t moved = 0;

    (void)state;
    for (int round = 0; round < 500; round++) {
        uint32_t nodes = 2 + below(7), full = below(nodes);
        struct world w;

        begin(&w, nodes, 100000);
        for (uint32_t i = 0; i < nodes; i++)
            for (int k = 0; k < 8; k++)
                add(&w, i, i == full ? 11500 + below(1000) : 8000 + below(4000));
        moved += relieve(&w);
        nothing_else_helps(&w);
    }
    assert_true(moved > 200);
}

static void random_ones_never_get_worse(void **state)
{
    uint32_t helped = 0;

    (void)state;
    for (int round = 0; round < 2000; round++) {
        uint32_t nodes = 1 + below(NODES_MOST), parts = nodes + below(PARTS_MOST - nodes);
        struct world w;
        double before;

        begin(&w, nodes, 4000 + below(4000));
        for (uint32_t p = 0; p < parts; p++) {
            add(&w, below(nodes), 1 + below(600));
            w.part[p].stays = !below(10);
            w.part[p].replica = below(2) ? w.node[below(nodes)].id : MFS_PLAN_NOWHERE;
        }
        before = fullest_of(&w);
        helped += relieve(&w) > 0;
        assert_true(fullest_of(&w) <= before);
    }
    assert_true(helped > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(when_a_node_is_crowded),
        cmocka_unit_test(as_many_as_there_is_room_for),
        cmocka_unit_test(nothing_helps_where_partitions_are_large),
        cmocka_unit_test(not_where_its_replica_is_nor_what_stays),
        cmocka_unit_test(what_is_left_are_whole_partitions),
        cmocka_unit_test(random_ones_never_get_worse),
    };

    return cmocka_run_group_tests(tests, choose_seed, NULL);
}
