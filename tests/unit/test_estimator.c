/* The estimator against a model of links and clients (hose_model.h): what it says of a node is what
 * the node's link carries, or nothing. MFS_SEED repeats one run.
 * ctest: single release timeout=300 long=30 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "cm/plan/estimator.h"
#include "hose_model.h"
#include "seeded.h"

#define CLUSTERS 1000
#define WITHIN   0.1
#define NOTICED  10 /* s */
#define MB       1e6

struct world {
    struct hose hose;
    struct mfs_estimator *e;
};

static void begin(struct world *w, uint32_t n)
{
    hose_init(&w->hose, ((uint64_t)below(1U << 31) << 31) + below(1U << 31), n, 0.25 * MB);
    w->hose.rate_noise = 0.03;
    w->hose.busy_noise = 0.03;
    w->hose.lost = 0.03;
    w->e = mfs_estimator_create();
    assert_non_null(w->e);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(mfs_estimator_add(w->e, i), 0);
}

static void end(struct world *w)
{
    mfs_estimator_destroy(w->e);
}

static void hand_over(void *arg, double now, uint32_t node, double in, double out,
                      const struct mfs_report_peer *peer, uint32_t npeers)
{
    mfs_estimator_report(arg, now, node, in, out, peer, npeers);
}

static void second(struct world *w)
{
    hose_second(&w->hose, hand_over, w->e);
    mfs_estimator_look(w->e, w->hose.now);
}

static void seconds(struct world *w, unsigned n)
{
    while (n--)
        second(w);
}

static double claim(const struct world *w, uint32_t node)
{
    return mfs_estimator_capacity(w->e, node);
}

static void all(struct world *w, enum hose_mode mode)
{
    for (uint32_t i = 0; i < w->hose.n; i++)
        w->hose.node[i].mode = mode;
    hose_change(&w->hose);
}

static bool right(double claimed, double truth)
{
    return fabs(claimed - truth) <= WITHIN * truth;
}

static void assert_known(const struct world *w, uint32_t node)
{
    double claimed = claim(w, node), truth = w->hose.node[node].capacity;

    if (!right(claimed, truth))
        fail_msg("node %u: %.0f instead of %.0f after %.0f s", node, claimed, truth, w->hose.now);
}

/* Nothing, or the truth. */
static void assert_not_wrong(const struct world *w)
{
    for (uint32_t i = 0; i < w->hose.n; i++)
        if (claim(w, i) > 0)
            assert_known(w, i);
}

static void assert_all_unknown(const struct world *w)
{
    for (uint32_t i = 0; i < w->hose.n; i++)
        if (claim(w, i) > 0)
            fail_msg("node %u: %.0f, and nothing shows that, after %.0f s", i, claim(w, i),
                     w->hose.now);
}

/* ---- particular cases ------------------------------------------------------------------------ */

static void slowest_is_known(void **state)
{
    static const enum hose_mode modes[] = {HOSE_WRITE, HOSE_READ};

    (void)state;
    for (unsigned m = 0; m < 2; m++) {
        struct world w;

        begin(&w, 4);
        w.hose.node[0].capacity = 5 * MB;
        w.hose.node[3].capacity = 2.5 * MB;
        all(&w, modes[m]);
        seconds(&w, 10);
        assert_known(&w, 3);
        seconds(&w, 50);
        assert_known(&w, 3);
        assert_not_wrong(&w);
        end(&w);
    }
}

/* Everybody reads what is on one node: its link is the limit, and is as good as the others'. */
static void hot_node_is_not_slow(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 6);
    all(&w, HOSE_WRITE);
    seconds(&w, 10);
    w.hose.node[2].share = 20;
    all(&w, HOSE_READ);
    seconds(&w, 15);
    assert_known(&w, 2);
    assert_not_wrong(&w);
    end(&w);
}

/* Either may be what limits them. */
static void two_nodes_tell_nothing(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 2);
    w.hose.node[1].capacity = 1 * MB;
    all(&w, HOSE_WRITE);
    seconds(&w, 30);
    assert_all_unknown(&w);
    end(&w);
}

static void equal_nodes_are_not_slow(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 5);
    for (unsigned i = 0; i < 60; i++) {
        if (i % 20 == 0)
            all(&w, i == 20 ? HOSE_READ : HOSE_WRITE);
        second(&w);
        assert_not_wrong(&w);
    }
    end(&w);
}

/* A redis process that is slow itself, and a move of a partition at a limited rate. */
static void other_limits_are_not_the_link(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 4);
    w.hose.node[1].served = 2 * MB;
    all(&w, HOSE_WRITE);
    seconds(&w, 20);
    w.hose.move = (struct hose_move){.from = 3, .to = 0, .rate = 3 * MB};
    seconds(&w, 20);
    all(&w, HOSE_IDLE);
    seconds(&w, 20);
    assert_not_wrong(&w);
    end(&w);
}

static void idle_stages_change_nothing(void **state)
{
    struct world w;
    double known;

    (void)state;
    begin(&w, 4);
    seconds(&w, 20);
    assert_all_unknown(&w);
    w.hose.node[1].capacity = 3 * MB;
    all(&w, HOSE_WRITE);
    seconds(&w, 10);
    assert_known(&w, 1);
    all(&w, HOSE_IDLE);
    seconds(&w, 3); /* until the last reports of it have come */
    known = claim(&w, 1);
    seconds(&w, 60);
    all(&w, HOSE_WRITE);
    for (uint32_t i = 0; i < 4; i++)
        w.hose.node[i].limit = 0.3 * MB;
    seconds(&w, 60);
    assert_true(claim(&w, 1) == known);
    end(&w);
}

static void nodes_come_and_go(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 6);
    w.hose.node[4].capacity = 2 * MB;
    all(&w, HOSE_WRITE);
    seconds(&w, 10);
    assert_known(&w, 4);
    mfs_estimator_remove(w.e, 4);
    assert_true(claim(&w, 4) == 0);
    for (uint32_t id = 100; id < 140; id++)
        assert_int_equal(mfs_estimator_add(w.e, id), 0);
    assert_int_equal(mfs_estimator_add(w.e, 4), 0);
    assert_true(claim(&w, 4) == 0);
    seconds(&w, 10);
    assert_known(&w, 4);
    end(&w);
}

/* ---- properties ------------------------------------------------------------------------------ */

static void random_cluster(struct world *w)
{
    begin(w, 3 + below(HOSE_NODES - 2));
    for (uint32_t i = 0; i < w->hose.n; i++) {
        struct hose_node *n = &w->hose.node[i];

        n->capacity = MB * exp2(hose_random(&w->hose) * 4);
        n->share = below(2) ? 1 : 0.5 + hose_random(&w->hose);
        n->window = 8 + below(25);
    }
}

/* Partitions that are slow themselves are a case of their own, above. */
static void random_stage(struct world *w)
{
    enum hose_mode mode = (enum hose_mode)below(3);
    bool mixed = !below(3), some = !below(3);

    for (uint32_t i = 0; i < w->hose.n; i++) {
        struct hose_node *n = &w->hose.node[i];

        n->mode = mixed ? (enum hose_mode)below(3) : mode;
        if (some && below(2))
            n->mode = HOSE_IDLE;
        n->limit = below(4) ? 0 : MB * exp2(hose_random(&w->hose) * 4 - 2);
    }
    w->hose.move = (struct hose_move){0};
    if (!below(3)) {
        w->hose.move.from = below(w->hose.n);
        w->hose.move.to = below(w->hose.n - 1);
        w->hose.move.to += w->hose.move.to >= w->hose.move.from;
        w->hose.move.rate = MB * exp2(hose_random(&w->hose) * 6 - 2);
    }
    hose_change(&w->hose);
}

/* The first wrong claim of a cluster is told. */
static bool check(const struct world *w, bool bad)
{
    for (uint32_t i = 0; i < w->hose.n && !bad; i++) {
        double truth = w->hose.node[i].capacity;

        bad = claim(w, i) > 0 && !right(claim(w, i), truth);
        if (bad)
            print_message("node %u of %u: %.0f instead of %.0f, after %.0f s\n", i, w->hose.n,
                          claim(w, i), truth, w->hose.now);
    }
    return bad;
}

struct tally {
    unsigned nodes, known, clusters, wrong;
};

static void run_cluster(struct tally *t, void change(struct world *w))
{
    struct world w;
    bool bad = false;

    random_cluster(&w);
    for (unsigned s = 0; s < 40; s++) {
        if (s % 8 == 0)
            change(&w);
        second(&w);
        bad = check(&w, bad);
    }
    for (uint32_t i = 0; i < w.hose.n; i++)
        t->known += claim(&w, i) > 0;
    t->nodes += w.hose.n;
    t->clusters++;
    t->wrong += bad;
    end(&w);
}

static void show(const struct tally *t)
{
    print_message("%u of %u nodes known; a wrong one in %u of %u clusters\n", t->known, t->nodes,
                  t->wrong, t->clusters);
}

/* All nodes do the same, as those of one application do. */
static void same_stage(struct world *w)
{
    all(w, (enum hose_mode)below(3));
}

static void same_stage_unfair(struct world *w)
{
    w->hose.unfair = 8;
    all(w, (enum hose_mode)below(3));
}

/* Connections that share a link get very different parts of it. */
static void unfair_links_do_not_mislead(void **state)
{
    struct tally t = {0};

    (void)state;
    for (unsigned c = 0; c < CLUSTERS; c++)
        run_cluster(&t, same_stage_unfair);
    show(&t);
    assert_true(t.known * 10 >= t.nodes * 3);
    assert_true(t.wrong * 1000 <= t.clusters * 8);
}

static void claims_are_true(void **state)
{
    struct tally t = {0};

    (void)state;
    for (unsigned c = 0; c < CLUSTERS; c++)
        run_cluster(&t, same_stage);
    show(&t);
    assert_true(t.known * 10 >= t.nodes * 3);
    assert_true(t.wrong * 1000 <= t.clusters * 5);
}

/* Nodes that each do something else, or wait for something else than the network, can mislead. */
static void medleys_seldom_mislead(void **state)
{
    struct tally t = {0};

    (void)state;
    for (unsigned c = 0; c < CLUSTERS; c++)
        run_cluster(&t, random_stage);
    show(&t);
    assert_true(t.known * 10 >= t.nodes * 3);
    assert_true(t.wrong * 1000 <= t.clusters * 15);
}

/* The node's link changes while all write, or all read; returns seconds until what is said of it is
 * true again, or nothing is; `known`: nothing is not enough. */
static unsigned until_noticed(struct world *w, uint32_t node, double capacity, bool known)
{
    unsigned s = 0;

    w->hose.node[node].capacity = capacity;
    do {
        second(w);
        s++;
    } while (s < 60 && !right(claim(w, node), capacity) && (known || claim(w, node) > 0));
    return s;
}

/* How fast the whole could go if the node were the only limit. */
static double pace(const struct hose_node *n)
{
    return n->capacity / n->share;
}

/* Is everybody going to wait for the node whose link carries so much? */
static bool slowest(const struct world *w, uint32_t node, double capacity)
{
    for (uint32_t i = 0; i < w->hose.n; i++)
        if (i != node && pace(&w->hose.node[i]) * 0.6 < capacity / w->hose.node[node].share)
            return false;
    return true;
}

struct delays {
    unsigned n, late, never; /* never: not within a minute */
};

static void count(struct delays *d, unsigned s)
{
    d->n++;
    d->late += s > NOTICED;
    d->never += s >= 60;
}

static void fall_and_rise(struct delays *down, struct delays *up)
{
    struct world w;
    uint32_t node;
    double was;

    random_cluster(&w);
    node = below(w.hose.n);
    was = w.hose.node[node].capacity;
    if (slowest(&w, node, was / 10)) {
        all(&w, below(2) ? HOSE_WRITE : HOSE_READ);
        seconds(&w, 10 + below(20));
        count(down, until_noticed(&w, node, was / 10, true));
        if (below(2)) { /* data move away from it */
            w.hose.node[node].share /= 10;
            hose_change(&w.hose);
        }
        seconds(&w, 10 + below(20));
        count(up, until_noticed(&w, node, was, false));
    }
    end(&w);
}

static void changes_are_noticed(void **state)
{
    struct delays down = {0}, up = {0};

    (void)state;
    for (unsigned c = 0; c < CLUSTERS; c++)
        fall_and_rise(&down, &up);
    print_message(
        "later than %u s, not in a minute: %u and %u of %u falls, %u and %u of %u rises\n", NOTICED,
        down.late, down.never, down.n, up.late, up.never, up.n);
    assert_true(down.late * 100 <= down.n * 25 && down.never * 100 <= down.n * 8);
    assert_true(up.late * 100 <= up.n * 5 && up.never * 100 <= up.n * 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slowest_is_known),
        cmocka_unit_test(hot_node_is_not_slow),
        cmocka_unit_test(two_nodes_tell_nothing),
        cmocka_unit_test(equal_nodes_are_not_slow),
        cmocka_unit_test(other_limits_are_not_the_link),
        cmocka_unit_test(idle_stages_change_nothing),
        cmocka_unit_test(nodes_come_and_go),
        cmocka_unit_test(claims_are_true),
        cmocka_unit_test(unfair_links_do_not_mislead),
        cmocka_unit_test(medleys_seldom_mislead),
        cmocka_unit_test(changes_are_noticed),
    };

    return cmocka_run_group_tests(tests, choose_seed, NULL);
}
