/* Which replicas make room, and when: for partitions that move, on nodes that hold more than they
 * may, and on others that get some back (MFS_SEED repeats one run).
 * ctest: single */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "replicas_test.h"

/* ---- partitions come first ------------------------------------------------------------------- */

static void a_replica_leaves_room_for_what_moves(void **state)
{
    struct world *w = make(3, 3, 256 * MIB, 20 * MIB);
    struct mfs_migrate_one one = {.move = {.part = 1, .from = 4, .to = 7, .bytes = 215 * MIB}};
    struct mfs_migrate_one *list[] = {&one};
    struct mfs_migrate migrate = {.cm = &w->cm, .n = 1, .one = list};
    struct mfs_replica r = {.cm = &w->cm};

    (void)state;
    w->nodes[1].last.memory_used = 230 * MIB; /* so that it has to be the third */
    assert_int_equal(mfs_replica_choose(&r, NOW), 0);
    assert_int_equal(w->part[0].replica_node, 7);
    w->cm.migrate = &migrate;
    assert_int_equal(mfs_migrate_bringing(&w->cm, 7), 215 * MIB + MFS_CAPACITY_PROCESS);
    assert_int_equal(mfs_replica_choose(&r, NOW), -ENOSPC);
    one.move.settled = true; /* what has moved is in the node's own figures */
    assert_int_equal(mfs_replica_choose(&r, NOW), 0);
    free(w);
}

/* Is there a replica on the first node of at least so many bytes, and less than `below_that`? */
static bool any_of(const struct world *w, uint64_t least, uint64_t below_that)
{
    for (uint32_t p = 0; p < w->cm.state.nparts; p++)
        if (w->part[p].replica_node == w->node[0].id &&
            !strcmp(w->part[p].replica_step, MFS_REPLICA_READY) &&
            w->bytes[p] + MFS_CAPACITY_PROCESS >= least &&
            w->bytes[p] + MFS_CAPACITY_PROCESS < below_that)
            return true;
    return false;
}

/* Replicas on the first node, some of which go already. Their bytes that may go. */
static uint64_t place_replicas(struct world *w)
{
    uint64_t sum = 0;

    for (uint32_t p = 0; p < w->cm.state.nparts; p++) {
        bool here = w->part[p].node != w->node[0].id && below(2);

        w->bytes[p] = below(20 * MIB);
        w->part[p].replica_node = w->node[here ? 0 : 1].id;
        mfs_text_copy(w->part[p].replica_step, sizeof w->part[p].replica_step,
                      below(4) ? MFS_REPLICA_READY : MFS_REPLICA_TAKE);
        if (here && w->part[p].replica_step[0] == 'r')
            sum += w->bytes[p] + MFS_CAPACITY_PROCESS;
    }
    return sum;
}

static void the_least_that_is_enough_makes_room(void **state)
{
    uint32_t none = 0, enough = 0, largest = 0;

    (void)state;
    for (int round = 0; round < 1000; round++) {
        struct world *w = make(3, 3 + below(60), 256 * MIB, 0);
        struct mfs_replica one[PARTS_MOST] = {0}, *r;
        struct mfs_replicas g = {.cm = &w->cm, .one = one};
        uint64_t sum = place_replicas(w), used = (128 + below(128)) * MIB;
        uint64_t need = below(120 * MIB), size;
        uint64_t missing = used + need > 256 * MIB ? used + need - 256 * MIB : 0;

        for (uint32_t p = 0; p < w->cm.state.nparts; p++)
            one[p] = (struct mfs_replica){.cm = &w->cm, .part = p};
        w->nodes[0].last.memory_used = used;
        r = mfs_replica_to_yield(&g, &w->nodes[0], need);
        assert_int_equal(!r, !missing || sum < missing);
        size = r ? w->bytes[r->part] + MFS_CAPACITY_PROCESS : 0;
        if (!r) {
            none++;
        } else if (size >= missing) {
            enough++;
            assert_false(any_of(w, missing, size));
        } else {
            largest++;
            assert_false(any_of(w, size + 1, UINT64_MAX));
        }
        free(w);
    }
    print_message("%u times none, %u one is enough, %u the largest\n", none, enough, largest);
    assert_true(none > 50 && enough > 50 && largest > 5);
}

/* One at a time, and the next when the node has told what that was good for. */
static void replicas_make_room_one_by_one(void **state)
{
    struct world *w = make(3, 3, 256 * MIB, 20 * MIB);
    struct mfs_replicas g = {.cm = &w->cm};

    (void)state;
    assert_false(mfs_replica_yields(&g, &w->nodes[0], NOW));
    w->nodes[0].relieved_at = NOW;
    assert_true(mfs_replica_yields(&g, &w->nodes[0], NOW + MFS_SEC));
    assert_false(mfs_replica_yields(&g, &w->nodes[1], NOW + MFS_SEC));
    assert_false(mfs_replica_yields(&g, &w->nodes[0], NOW + 4 * MFS_SEC));
    w->part[1].replica_node = w->node[0].id;
    strcpy(w->part[1].replica_step, MFS_REPLICA_DROP);
    assert_true(mfs_replica_yields(&g, &w->nodes[0], NOW + 4 * MFS_SEC));
    w->part[1].replica_step[0] = '\0';
    assert_false(mfs_replica_yields(&g, &w->nodes[0], NOW + 4 * MFS_SEC));
    w->stale[0] = (struct mfs_cm_stale){.node = w->node[0].id, .part = 1};
    w->cm.state.nstale = 1; /* its process may still be there */
    assert_true(mfs_replica_yields(&g, &w->nodes[0], NOW + 4 * MFS_SEC));
    free(w);
}

/* ---- a node that holds more than it may ------------------------------------------------------ */

static uint32_t crowding(struct world *w, uint32_t *which, int64_t now)
{
    uint32_t n = 0;

    for (uint32_t p = 0; p < w->cm.state.nparts; p++) {
        struct mfs_replica r = {.cm = &w->cm, .part = p};

        if (!strcmp(w->part[p].replica_step, MFS_REPLICA_READY) && mfs_replica_crowds(&r, now)) {
            *which = p;
            n++;
        }
    }
    return n;
}

static void report(struct world *w, uint64_t used, int64_t now)
{
    w->nodes[0].last_contact = now;
    w->nodes[0].last.memory_used = used;
    mfs_replicas_weigh(&w->nodes[0]);
}

static void the_largest_goes_when_a_node_is_full(void **state)
{
    struct world *w = make(3, 30, 256 * MIB, MIB);
    uint32_t which = 0, largest = 2;

    (void)state;
    for (uint32_t p = 0; p < 30; p++) {
        w->bytes[p] = (p * 7 % 30 + 1) * MIB;              /* no two are alike */
        w->part[p].replica_node = w->node[(p + 1) % 3].id; /* node 0: of those with p % 3 == 2 */
        strcpy(w->part[p].replica_step, MFS_REPLICA_READY);
    }
    strcpy(w->part[17].replica_step, MFS_REPLICA_DROP); /* it goes already */
    for (uint32_t p = 2; p < 30; p += 3)
        if (p != 17 && w->bytes[p] > w->bytes[largest])
            largest = p;
    report(w, 256 * MIB, NOW);
    assert_int_equal(crowding(w, &which, NOW + 60 * MFS_SEC), 0);
    report(w, 256 * MIB + 256 * MIB / 31, NOW); /* more than the slack: not at once */
    assert_int_equal(crowding(w, &which, NOW + 2 * MFS_SEC), 0);
    report(w, 256 * MIB, NOW + 2 * MFS_SEC);
    report(w, 270 * MIB, NOW + 3 * MFS_SEC);
    assert_int_equal(crowding(w, &which, NOW + 5 * MFS_SEC), 0);
    assert_int_equal(crowding(w, &which, NOW + 6 * MFS_SEC), 1);
    assert_int_equal(which, largest);
    w->nodes[0].relieved_at = NOW + 6 * MFS_SEC;
    assert_int_equal(crowding(w, &which, NOW + 7 * MFS_SEC), 0);
    report(w, 256 * MIB, NOW + 10 * MFS_SEC);
    report(w, 256 * MIB + 33 * MIB, NOW + 11 * MFS_SEC); /* more than an eighth: at once */
    assert_int_equal(crowding(w, &which, NOW + 11 * MFS_SEC), 1);
    free(w);
}

/* Replicas are crowded on some nodes, of which the fullest is between half full and overfull. */
static void crowd(struct world *w)
{
    uint32_t nodes = w->cm.state.nnodes, few = 1 + below(nodes);
    uint64_t most = 1;

    for (uint32_t p = 0; p < w->cm.state.nparts; p++) {
        uint32_t to = below(few);

        to = w->node[to].id == w->part[p].node ? (to + 1) % nodes : to;
        w->bytes[p] = below(12 * MIB);
        w->part[p].replica_node = w->node[to].id;
        strcpy(w->part[p].replica_step, MFS_REPLICA_READY);
        w->nodes[to].last.memory_used += w->bytes[p];
        w->nodes[p % nodes].last.memory_used += w->bytes[p];
    }
    for (uint32_t i = 0; i < nodes; i++)
        most = w->nodes[i].last.memory_used > most ? w->nodes[i].last.memory_used : most;
    for (uint32_t i = 0; i < nodes; i++)
        w->nodes[i].last.memory_capacity = w->node[i].memory = most / 100 * (80 + below(120));
}

static void a_node_that_is_nearly_full_gives_to_one_that_is_not(void **state)
{
    uint32_t moved = 0;

    (void)state;
    for (int round = 0; round < 400; round++) {
        uint32_t nodes = 2 + below(NODES_MOST - 2), parts = nodes + below(PARTS_MOST - nodes);
        struct world *w = make(nodes, parts, MIB, 0);
        struct mfs_replica one[PARTS_MOST], *r;
        struct mfs_replicas g = {.cm = &w->cm, .one = one};

        for (uint32_t p = 0; p < parts; p++)
            one[p] = (struct mfs_replica){.cm = &w->cm, .part = p};
        crowd(w);
        r = mfs_replicas_to_move(&g, NOW);
        if (r) {
            struct mfs_cm_part *p = &w->part[r->part];
            struct mfs_msg_report *from = &w->nodes[at(w, p->replica_node)].last;
            uint32_t node = p->replica_node;

            moved++;
            assert_true(from->memory_used > from->memory_capacity / 8 * 7);
            from->memory_used -= w->bytes[r->part];
            p->replica_step[0] = '\0';
            assert_int_equal(protect(w, r->part), 0);
            assert_int_not_equal(p->replica_node, node);
        }
        free(w);
    }
    print_message("%u of 400 were moved\n", moved);
    assert_true(moved > 40 && moved < 400);
}

static void room_that_stays_free_is_taken_after_half_a_minute(void **state)
{
    struct world *w = make(3, 3, 256 * MIB, 8 * MIB);
    struct mfs_replica r = {.cm = &w->cm, .part = 0};

    (void)state;
    for (uint32_t i = 0; i < 3; i++) { /* a copy fits, but then less than a sixteenth is free */
        w->nodes[i].last.memory_capacity = 256 * MIB;
        w->nodes[i].last.memory_used = 242 * MIB;
        w->nodes[i].last_contact = NOW + 30 * MFS_SEC;
    }
    assert_int_equal(mfs_replica_choose(&r, NOW), -ENOSPC);
    r.wanting_since = NOW;
    assert_int_equal(mfs_replica_choose(&r, NOW + 29 * MFS_SEC), -ENOSPC);
    assert_int_equal(mfs_replica_choose(&r, NOW + 30 * MFS_SEC), 0);
    assert_int_not_equal(w->part[0].replica_node, w->part[0].node);
    w->nodes[1].last.memory_used = w->nodes[2].last.memory_used = 250 * MIB; /* it does not fit */
    assert_int_equal(mfs_replica_choose(&r, NOW + 30 * MFS_SEC), -ENOSPC);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_replica_leaves_room_for_what_moves),
        cmocka_unit_test(the_least_that_is_enough_makes_room),
        cmocka_unit_test(replicas_make_room_one_by_one),
        cmocka_unit_test(the_largest_goes_when_a_node_is_full),
        cmocka_unit_test(a_node_that_is_nearly_full_gives_to_one_that_is_not),
        cmocka_unit_test(room_that_stays_free_is_taken_after_half_a_minute),
    };

    return cmocka_run_group_tests(tests, choose_seed, NULL);
}
