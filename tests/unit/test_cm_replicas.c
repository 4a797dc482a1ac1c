/* Where cm has replicas made, and when it gives one up: promises over many random deployments
 * (MFS_SEED repeats one run).
 * ctest: single */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/text.h"
#include "cluster/capacity.h"
#include "cluster/trust.h"
#include "cm/migrate_impl.h"
#include "cm/planner.h"
#include "cm/replicas_impl.h"
#include "cm/scale_impl.h"
#include "cm/trust.h"
#include "seeded.h"

#define NODES_MOST 12
#define PARTS_MOST 120
#define MIB        (1ULL << 20)
#define NOW        (1000 * MFS_SEC)

struct world {
    struct mfs_cm cm;
    struct mfs_cm_node node[NODES_MOST];
    struct mfs_cm_part part[PARTS_MOST];
    struct mfs_cm_grave grave[4];
    struct mfs_cm_live live[NODES_MOST], *lives[NODES_MOST];
    uint64_t bytes[PARTS_MOST];
};

static char connected; /* what is asked of a connection here is whether there is one */

/* All nodes are there, of one size, and empty; partitions of a size each, primaries in turn. */
static struct world *make(uint32_t nodes, uint32_t parts, uint64_t memory, uint64_t bytes)
{
    struct world *w = calloc(1, sizeof *w);

    w->cm.state = (struct mfs_cm_state){.nnodes = nodes,
                                        .node = w->node,
                                        .nparts = parts,
                                        .part = w->part,
                                        .replicas = 1,
                                        .grave = w->grave};
    w->cm.live = w->lives;
    w->cm.part_bytes = w->bytes;
    for (uint32_t i = 0; i < nodes; i++) {
        w->node[i] = (struct mfs_cm_node){.id = i * 3 + 1, .memory = memory};
        w->live[i] = (struct mfs_cm_live){.cm = &w->cm,
                                          .node = &w->node[i],
                                          .conn = (struct mfs_conn *)&connected,
                                          .heard = NOW,
                                          .reported = true};
        w->live[i].last.memory_capacity = memory;
        w->lives[i] = &w->live[i];
    }
    for (uint32_t p = 0; p < parts; p++) {
        w->part[p].node = w->node[p % nodes].id;
        w->bytes[p] = bytes;
        w->live[p % nodes].last.memory_used += bytes;
    }
    return w;
}

static uint32_t at(const struct world *w, uint32_t id)
{
    for (uint32_t i = 0; i < w->cm.state.nnodes; i++)
        if (w->node[i].id == id)
            return i;
    fail_msg("there is no node %u", id);
    return 0;
}

static bool buried(const struct world *w, uint32_t node, uint32_t part)
{
    for (uint32_t i = 0; i < w->cm.state.ngraves; i++)
        if (w->grave[i].node == node && w->grave[i].part == part)
            return true;
    return false;
}

/* May it be there, apart from room? */
static bool may_hold(const struct world *w, uint32_t i, uint32_t part)
{
    return w->node[i].id != w->part[part].node && !w->node[i].turn[0] && w->live[i].conn &&
           NOW - w->live[i].heard < 1200 * MFS_MSEC && !buried(w, w->node[i].id, part);
}

static bool has_room(const struct world *w, uint32_t i, uint32_t part)
{
    uint64_t may = w->live[i].last.memory_capacity, sum = w->live[i].last.memory_used;

    for (uint32_t p = 0; p < w->cm.state.nparts; p++)
        if (!strcmp(w->part[p].replica_step, MFS_REPLICA_COPY) &&
            w->part[p].replica_node == w->node[i].id)
            sum += w->bytes[p] + MFS_CAPACITY_PROCESS;
    return sum + may / 16 + w->bytes[part] + MFS_CAPACITY_PROCESS <= may;
}

/* Chooses for one partition and checks that; then its copy begins, or is there already. */
static int protect(struct world *w, uint32_t part)
{
    struct mfs_replica r = {.cm = &w->cm, .part = part};
    struct mfs_cm_part *p = &w->part[part];
    int rc = mfs_replica_choose(&r, NOW);
    bool any = false, room = false;

    for (uint32_t i = 0; i < w->cm.state.nnodes; i++) {
        any |= may_hold(w, i, part);
        room |= may_hold(w, i, part) && has_room(w, i, part);
    }
    assert_int_equal(rc, room ? 0 : any ? -ENOSPC : -ENODEV);
    if (rc)
        return rc;
    assert_int_not_equal(p->replica_node, p->node);
    assert_true(may_hold(w, at(w, p->replica_node), part));
    assert_true(has_room(w, at(w, p->replica_node), part));
    assert_true(p->replica_password[0] && p->replica_admin_password[0]);
    if (below(2)) {
        strcpy(p->replica_step, MFS_REPLICA_COPY);
    } else {
        mfs_text_copy(p->replica_step, sizeof p->replica_step, MFS_REPLICA_READY);
        w->live[at(w, p->replica_node)].last.memory_used += w->bytes[part] + MFS_CAPACITY_PROCESS;
    }
    return 0;
}

/* Nodes that leave, are silent, not connected or nearly full, graves, partitions of all sizes. */
static void distort(struct world *w)
{
    for (uint32_t i = 0; i < w->cm.state.nnodes; i++) {
        if (!below(6))
            mfs_text_copy(w->node[i].turn, sizeof w->node[i].turn,
                          below(2) ? MFS_NODE_LEAVING : MFS_NODE_COMING);
        if (!below(6))
            w->live[i].heard -= (int64_t)below(3) * MFS_SEC;
        if (!below(6))
            w->live[i].conn = NULL;
        w->live[i].last.memory_used += below(2) ? below(200) * MIB : 0;
    }
    for (uint32_t p = 0; p < w->cm.state.nparts; p++)
        w->bytes[p] = below(12 * MIB);
    w->cm.state.ngraves = below(5);
    for (uint32_t i = 0; i < w->cm.state.ngraves; i++)
        w->grave[i] = (struct mfs_cm_grave){.node = w->node[below(w->cm.state.nnodes)].id,
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
        if (!mfs_scale_plan(&w->cm, &plan, NULL)) {
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
        w->live[p % 3].parts_seen++;
    }
    assert_int_equal(mfs_scale_draft_make(&w->cm, &what, &draft, &err), 0);
    assert_int_equal(draft.plan.nmoves, 4);
    mfs_scale_draft_clear(&draft);
    w->bytes[0] += 16;
    assert_int_equal(mfs_scale_draft_make(&w->cm, &what, &draft, &err), -ENOSPC);
    assert_non_null(strstr(err.msg, "have room for"));
    free(w);
}

/* ---- partitions come first ------------------------------------------------------------------- */

static void a_replica_leaves_room_for_what_moves(void **state)
{
    struct world *w = make(3, 3, 256 * MIB, 20 * MIB);
    struct mfs_migrate_one one = {.move = {.part = 1, .from = 4, .to = 7, .bytes = 215 * MIB}};
    struct mfs_migrate_one *list[] = {&one};
    struct mfs_migrate migrate = {.cm = &w->cm, .n = 1, .one = list};
    struct mfs_replica r = {.cm = &w->cm};

    (void)state;
    w->live[1].last.memory_used = 230 * MIB; /* so that it has to be the third */
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
        w->live[0].last.memory_used = used;
        r = mfs_replica_to_yield(&g, &w->live[0], need);
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
    assert_false(mfs_replica_yields(&g, &w->live[0], NOW));
    w->live[0].relieved_at = NOW;
    assert_true(mfs_replica_yields(&g, &w->live[0], NOW + MFS_SEC));
    assert_false(mfs_replica_yields(&g, &w->live[1], NOW + MFS_SEC));
    assert_false(mfs_replica_yields(&g, &w->live[0], NOW + 4 * MFS_SEC));
    w->part[1].replica_node = w->node[0].id;
    strcpy(w->part[1].replica_step, MFS_REPLICA_DROP);
    assert_true(mfs_replica_yields(&g, &w->live[0], NOW + 4 * MFS_SEC));
    w->part[1].replica_step[0] = '\0';
    assert_false(mfs_replica_yields(&g, &w->live[0], NOW + 4 * MFS_SEC));
    w->grave[0] = (struct mfs_cm_grave){.node = w->node[0].id, .part = 1};
    w->cm.state.ngraves = 1; /* its process may still be there */
    assert_true(mfs_replica_yields(&g, &w->live[0], NOW + 4 * MFS_SEC));
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
    w->live[0].heard = now;
    w->live[0].last.memory_used = used;
    mfs_replicas_weigh(&w->live[0]);
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
    w->live[0].relieved_at = NOW + 6 * MFS_SEC;
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
        w->live[to].last.memory_used += w->bytes[p];
        w->live[p % nodes].last.memory_used += w->bytes[p];
    }
    for (uint32_t i = 0; i < nodes; i++)
        most = w->live[i].last.memory_used > most ? w->live[i].last.memory_used : most;
    for (uint32_t i = 0; i < nodes; i++)
        w->live[i].last.memory_capacity = w->node[i].memory = most / 100 * (80 + below(120));
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
            struct mfs_msg_report *from = &w->live[at(w, p->replica_node)].last;
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
        w->live[i].last.memory_capacity = 256 * MIB;
        w->live[i].last.memory_used = 242 * MIB;
        w->live[i].heard = NOW + 30 * MFS_SEC;
    }
    assert_int_equal(mfs_replica_choose(&r, NOW), -ENOSPC);
    r.wanting_since = NOW;
    assert_int_equal(mfs_replica_choose(&r, NOW + 29 * MFS_SEC), -ENOSPC);
    assert_int_equal(mfs_replica_choose(&r, NOW + 30 * MFS_SEC), 0);
    assert_int_not_equal(w->part[0].replica_node, w->part[0].node);
    w->live[1].last.memory_used = w->live[2].last.memory_used = 250 * MIB; /* it does not fit */
    assert_int_equal(mfs_replica_choose(&r, NOW + 30 * MFS_SEC), -ENOSPC);
    free(w);
}

/* What stood first was of a node that had left, and nobody else's was ever ended again. */
static void who_has_left_keeps_no_grave(void **state)
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
    w->grave[0] = (struct mfs_cm_grave){.node = 99, .part = 1, .password = "gone"};
    w->grave[1] = (struct mfs_cm_grave){.node = w->node[0].id, .part = 2, .password = "silent"};
    w->cm.state.ngraves = 2;
    w->live[0].conn = NULL; /* it is asked when it is there again */
    mfs_replicas_bury(&g, NOW);
    assert_int_equal(w->cm.state.ngraves, 1);
    assert_string_equal(w->grave[0].password, "silent");
    mfs_replicas_bury(&g, NOW);
    assert_int_equal(w->cm.state.ngraves, 1);
    unlink(paths.state);
    assert_int_equal(rmdir(dir), 0);
    free(w);
}

/* ---- when it can't stay ---------------------------------------------------------------------- */

static void a_replica_that_does_no_harm_stays(void **state)
{
    struct world *w = make(2, 2, 256 * MIB, MIB);
    struct mfs_replica r = {.cm = &w->cm, .part = 0};
    struct mfs_cm_live *there = &w->live[1];

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
    there->heard = NOW + 2 * MFS_SEC;
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
        mfs_trust_has(&w->live[i], 6);
    assert_true(trusted(w, 0));
    mfs_trust_has(&w->live[0], 7);
    mfs_trust_has(&w->live[1], 8);
    mfs_trust_has(&w->live[1], 5);
    assert_true(trusted(w, 0));
    w->live[2].heard = NOW - MFS_TRUST_OVER + 1; /* it may be cut off */
    assert_true(trusted(w, 0));
    w->live[2].heard = NOW - MFS_TRUST_OVER;
    assert_false(trusted(w, 0));
    w->live[2].heard = NOW; /* it is there, but a client of it does not answer */
    assert_true(trusted(w, MFS_TRUST_OVER - 1));
    assert_false(trusted(w, MFS_TRUST_OVER));
    mfs_trust_has(&w->live[2], 7);
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
        cmocka_unit_test(a_replica_leaves_room_for_what_moves),
        cmocka_unit_test(the_least_that_is_enough_makes_room),
        cmocka_unit_test(replicas_make_room_one_by_one),
        cmocka_unit_test(the_largest_goes_when_a_node_is_full),
        cmocka_unit_test(a_node_that_is_nearly_full_gives_to_one_that_is_not),
        cmocka_unit_test(room_that_stays_free_is_taken_after_half_a_minute),
        cmocka_unit_test(who_has_left_keeps_no_grave),
        cmocka_unit_test(a_replica_that_does_no_harm_stays),
        cmocka_unit_test(nobody_trusts_for_long_unheard),
    };

    return cmocka_run_group_tests(tests, choose_seed, NULL);
}
