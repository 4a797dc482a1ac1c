/* Where cm has replicas made, and when it gives one up: promises over many random deployments
 * (MFS_SEED repeats one run).
 * ctest: single */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "cluster/trust.h"
#include "replicas_test.h"

/* Nodes that leave, are silent, not connected or nearly full, stale processes, partitions of all
 * sizes. */
static void distort(struct world *w)
{
    for (uint32_t i = 0; i < w->cm.state.nnodes; i++) {
        if (!below(6))
            mfs_text_copy(w->node[i].transition, sizeof w->node[i].transition,
                          below(2) ? MFS_NODE_LEAVING : MFS_NODE_COMING);
        if (!below(6))
            w->nodes[i].last_contact -= (int64_t)below(3) * MFS_SEC;
        if (!below(6))
            w->nodes[i].conn = NULL;
        w->nodes[i].last.memory_used += below(2) ? below(200) * MIB : 0;
    }
    for (uint32_t p = 0; p < w->cm.state.nparts; p++)
        w->bytes[p] = below(12 * MIB);
    w->cm.state.nstale = below(5);
    for (uint32_t i = 0; i < w->cm.state.nstale; i++)
        w->stale[i] = (struct mfs_cm_stale){.node = w->node[below(w->cm.state.nnodes)].id,
                                            .part = below(w->cm.state.nparts)};
}

static void replicas_are_where_they_may_be(void **state)
{
    uint32_t made = 0, full = 0, none = 0;

    (void)state;
    for (int round = 0; round < 1500; round++) {
        uint32_t nodes = 1 + below(NODES_MOST), parts = nodes + below(PARTS_MOST - nodes);
        struct world *w = make(nodes, parts, 256 * MIB, 4 * MIB);

        distort(w);
        for (uint32_t p = 0; p < parts; p++) {
            int rc = protect(w, p);

            made += !rc;
            full += rc == -ENOSPC;
            none += rc == -ENODEV;
        }
        free(w);
    }
    print_message("%u made, %u without room, %u without a node\n", made, full, none);
    assert_true(made > 1000 && full > 1000 && none > 1000);
}

/* Processes of each node, its own and replicas, when all are alike. */
static void check_spread(const struct world *w)
{
    uint32_t count[NODES_MOST] = {0}, least = UINT32_MAX, most = 0;

    for (uint32_t p = 0; p < w->cm.state.nparts; p++) {
        count[at(w, w->part[p].node)]++;
        count[at(w, w->part[p].replica_node)]++;
    }
    for (uint32_t i = 0; i < w->cm.state.nnodes; i++) {
        least = count[i] < least ? count[i] : least;
        most = count[i] > most ? count[i] : most;
    }
    assert_true(most - least <= 2);
}

static void replicas_are_spread(void **state)
{
    (void)state;
    for (int round = 0; round < 300; round++) {
        uint32_t nodes = 2 + below(NODES_MOST - 2), parts = nodes + below(PARTS_MOST - nodes);
        struct world *w = make(nodes, parts, 16384 * MIB, MIB);

        for (uint32_t p = 0; p < parts; p++)
            assert_int_equal(protect(w, p), 0);
        check_spread(w);
        free(w);
    }
}

/* What cm plans for partitions leaves as much again on every node, and the sixteenth that replicas
 * leave free; where all nodes together have not that much, it still finds a place for each. */
static void a_plan_keeps_half_free(void **state)
{
    uint32_t planned = 0, bare = 0;

    (void)state;
    for (int round = 0; round < 300; round++) {
        uint32_t nodes = 1 + below(NODES_MOST), parts = nodes + below(PARTS_MOST - nodes);
        struct world *w = make(nodes, parts, (64 + below(1000)) * MIB, 0);
        uint32_t most = (parts + nodes - 1) / nodes; /* that the node may have, all being alike */
        uint64_t room = mfs_capacity_used(w->node[0].memory, 2 * most) / 16 * 15 / 2, sum = 0;
        struct mfs_plan plan;

        for (uint32_t p = 0; p < parts; p++) {
            w->bytes[p] = below(20 * MIB);
            w->part[p].node = w->node[below(nodes)].id;
            sum += w->bytes[p];
        }
        if (!mfs_scale_plan(&w->cm, false, &plan, NULL)) {
            uint64_t fullest = 0;

            for (uint32_t i = 0; i < nodes; i++)
                fullest = plan.held[i] > fullest ? plan.held[i] : fullest;
            planned++;
            bare += fullest > room + 16;
            if (sum > nodes * (room + 16))
                assert_true(fullest <= mfs_capacity_used(w->node[0].memory, most));
            else if (sum < nodes * room / 2)
                assert_true(fullest <= room + 16);
        }
        mfs_planner_clear(&plan);
        free(w);
    }
    print_message("%u of 300 were planned, %u of them without room for replicas\n", planned, bare);
    assert_true(planned > 50 && planned < 300 && bare > 5 && bare < planned);
}

/* Fewer nodes than can hold each partition twice, with the sixteenth, are refused. */
static void a_node_may_leave_if_replicas_have_room(void **state)
{
    struct world *w = make(3, 12, 256 * MIB, 0);
    uint64_t room = mfs_capacity_replicated(mfs_capacity_used(256 * MIB, 12)) / 2; /* of two */
    struct mfs_msg_scale what = {.how = "to", .migration = "hot", .n = 2, .dry_run = true};
    struct mfs_scale_draft draft;
    struct mfs_err err;

    (void)state;
    for (uint32_t p = 0; p < 12; p++) {
        w->bytes[p] = room / 6;
        w->nodes[p % 3].parts_seen++;
    }
    assert_int_equal(mfs_scale_draft_make(&w->cm, &what, &draft, &err), 0);
    assert_int_equal(draft.plan.nmoves, 4);
    mfs_scale_draft_clear(&draft);
    w->bytes[0] += 16;
    assert_int_equal(mfs_scale_draft_make(&w->cm, &what, &draft, &err), -ENOSPC);
    assert_non_null(strstr(err.msg, "have room for"));
    free(w);
}

/* ---- a node that holds more than it may ------------------------------------------------------ */

/* What stood first was of a node that had left, and nobody else's was ever ended again. */
static void a_node_that_has_left_keeps_no_stale_process(void **state)
{
    struct world *w = make(2, 4, 256 * MIB, MIB);
    struct mfs_replica one[4] = {{0}};
    struct mfs_replicas g = {.cm = &w->cm, .one = one};
    char dir[] = "/tmp/test-cm-replicas-XXXXXX";
    struct mfs_paths paths = {0};

    (void)state;
    assert_non_null(mkdtemp(dir));
    mfs_text_format(paths.state, sizeof paths.state, "%s/cm.json", dir);
    w->cm.paths = &paths;
    w->stale[0] = (struct mfs_cm_stale){.node = 99, .part = 1, .password = "gone"};
    w->stale[1] = (struct mfs_cm_stale){.node = w->node[0].id, .part = 2, .password = "silent"};
    w->cm.state.nstale = 2;
    w->nodes[0].conn = NULL; /* it is asked when it is there again */
    mfs_replicas_end_stale(&g, NOW);
    assert_int_equal(w->cm.state.nstale, 1);
    assert_string_equal(w->stale[0].password, "silent");
    mfs_replicas_end_stale(&g, NOW);
    assert_int_equal(w->cm.state.nstale, 1);
    unlink(paths.state);
    assert_int_equal(rmdir(dir), 0);
    free(w);
}

/* ---- when it can't stay ---------------------------------------------------------------------- */

static void a_replica_that_does_no_harm_stays(void **state)
{
    struct world *w = make(2, 2, 256 * MIB, MIB);
    struct mfs_replica r = {.cm = &w->cm, .part = 0};
    struct mfs_node *there = &w->nodes[1];

    (void)state;
    w->part[0].replica_node = w->node[1].id;
    strcpy(w->part[0].replica_step, MFS_REPLICA_READY);
    assert_null(mfs_replica_fault(&r, NOW));
    /* Its node or process is silent, and the partition has its consent: it stays for a while. */
    there->conn = NULL;
    assert_null(mfs_replica_fault(&r, NOW + 5 * MFS_SEC));
    r.replica_silent_since = NOW;
    assert_null(mfs_replica_fault(&r, NOW + 5 * MFS_SEC));
    assert_non_null(mfs_replica_fault(&r, NOW + 11 * MFS_SEC));
    /* It hasn't: at once. */
    r.starved_since = NOW;
    assert_string_equal(mfs_replica_fault(&r, NOW), "its node is out of reach");
    there->conn = (struct mfs_conn *)&connected;
    assert_string_equal(mfs_replica_fault(&r, NOW), "its process does not answer");
    /* All is well but between the two. */
    r.replica_silent_since = 0;
    assert_null(mfs_replica_fault(&r, NOW + MFS_SEC));
    there->last_contact = NOW + 2 * MFS_SEC;
    assert_non_null(mfs_replica_fault(&r, NOW + 2 * MFS_SEC));
    r.starved_since = 0;
    assert_null(mfs_replica_fault(&r, NOW + 2 * MFS_SEC));
    r.replica_dead = true;
    assert_non_null(mfs_replica_fault(&r, NOW + 2 * MFS_SEC));
    free(w);
}

/* Of a table that was pushed `ago`. */
static bool trusted(const struct world *w, int64_t ago)
{
    return !mfs_trust_over(&w->cm, 7, NOW - ago, NOW);
}

/* A replica serves only when nobody relies any more on what he learned before: he has the table, or
 * has not been told for long enough that cm is there. */
static void nobody_trusts_for_long_unheard(void **state)
{
    struct world *w = make(3, 3, 256 * MIB, MIB);

    (void)state;
    w->cm.subscriber_left = NOW - 10 * MFS_SEC;
    assert_true(trusted(w, 0));
    for (uint32_t i = 0; i < 3; i++)
        mfs_trust_has(&w->nodes[i], 6);
    assert_true(trusted(w, 0));
    mfs_trust_has(&w->nodes[0], 7);
    mfs_trust_has(&w->nodes[1], 8);
    mfs_trust_has(&w->nodes[1], 5);
    assert_true(trusted(w, 0));
    w->nodes[2].last_contact = NOW - MFS_TRUST_OVER + 1; /* it may be cut off */
    assert_true(trusted(w, 0));
    w->nodes[2].last_contact = NOW - MFS_TRUST_OVER;
    assert_false(trusted(w, 0));
    w->nodes[2].last_contact = NOW; /* it is there, but a client of it does not answer */
    assert_true(trusted(w, MFS_TRUST_OVER - 1));
    assert_false(trusted(w, MFS_TRUST_OVER));
    mfs_trust_has(&w->nodes[2], 7);
    assert_false(trusted(w, 0));
    w->cm.subscriber_left = NOW - MFS_TRUST_OVER + 1; /* who may live on */
    assert_true(trusted(w, 0));
    assert_false(trusted(w, MFS_TRUST_OVER));
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replicas_are_where_they_may_be),
        cmocka_unit_test(replicas_are_spread),
        cmocka_unit_test(a_plan_keeps_half_free),
        cmocka_unit_test(a_node_may_leave_if_replicas_have_room),
        cmocka_unit_test(a_node_that_has_left_keeps_no_stale_process),
        cmocka_unit_test(a_replica_that_does_no_harm_stays),
        cmocka_unit_test(nobody_trusts_for_long_unheard),
    };

    return cmocka_run_group_tests(tests, choose_seed, NULL);
}
