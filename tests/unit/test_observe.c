/* Partitions that follow what traffic shows of links, told nothing: the model of links and clients
 * (hose_model.h), the estimator, weights and re-planning in a loop, as in cm. MFS_SEED repeats one
 * run.
 * ctest: single timeout=300 long=35 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "cluster/hose.h"
#include "cluster/y0.h"
#include "cm/plan/estimator.h"
#include "cm/plan/rebalance_policy.h"
#include "cm/state/weights.h"
#include "hose_model.h"
#include "seeded.h"

#define MB     1e6
#define EACH   40  /* partitions per node */
#define BYTES  2e5 /* of a partition */
#define GIB    (1ULL << 30)
#define MOVING 6 /* s until the next plan can be made */

#define CLUSTERS 40
#define STAGES   20
#define STAGE    15  /* s */
#define HARM     1.2 /* so many times slower than before nobody is, whatever was believed */

static const struct mfs_rebalance_settings defaults;

struct world {
    struct hose hose;
    struct mfs_estimator *e;
    struct mfs_rebalance_policy *watch;
    struct mfs_rebalance_settings s;
    struct mfs_cm_state st;
    struct mfs_cm_node node[HOSE_NODES];
    const struct mfs_cm_node *at[HOSE_NODES];
    uint32_t id[HOSE_NODES], count[HOSE_NODES];
    double last[HOSE_NODES]; /* rate in the report before */
    double bandwidth[HOSE_NODES];
    bool known[HOSE_NODES];
    uint32_t plans;
    double planned; /* when */
};

static void begin(struct world *w, uint32_t n)
{
    *w = (struct world){.st = {.nnodes = n, .nparts = EACH * n, .stripe_size = 1 << 18}};
    hose_init(&w->hose, ((uint64_t)below(1U << 31) << 31) + below(1U << 31), n, 0.25 * MB);
    w->hose.rate_noise = 0.03;
    w->hose.busy_noise = 0.03;
    w->hose.lost = 0.03;
    w->e = mfs_estimator_create();
    w->watch = mfs_rebalance_policy_create();
    w->s = mfs_rebalance_settle(&defaults);
    snprintf(w->st.weights, sizeof w->st.weights, "%s", MFS_WEIGHTS_AUTO);
    assert_true(w->e && w->watch);
    for (uint32_t i = 0; i < n; i++) {
        w->node[i] = (struct mfs_cm_node){.id = i, .memory = GIB};
        w->at[i] = &w->node[i];
        w->id[i] = i;
        w->count[i] = EACH;
        assert_int_equal(mfs_estimator_add(w->e, i), 0);
    }
}

static void end(struct world *w)
{
    mfs_estimator_destroy(w->e);
    mfs_rebalance_policy_destroy(w->watch);
}

static void all(struct world *w, enum hose_mode mode)
{
    for (uint32_t i = 0; i < w->hose.n; i++)
        w->hose.node[i].mode = mode;
    hose_change(&w->hose);
}

/* ---- what cm does ---------------------------------------------------------------------------- */

static void hand_over(void *arg, double now, uint32_t node, double in, double out,
                      const struct mfs_report_peer *peer, uint32_t npeers)
{
    struct world *w = arg;
    double is = fmax(in, out);

    w->node[node].bandwidth_seen = fmax(w->node[node].bandwidth_seen, fmin(is, w->last[node]));
    w->last[node] = is;
    mfs_estimator_report(w->e, now, node, in, out, peer, npeers);
}

static void listen(struct world *w)
{
    hose_second(&w->hose, hand_over, w);
    mfs_estimator_look(w->e, w->hose.now);
    for (uint32_t i = 0; i < w->hose.n; i++) {
        w->node[i].bandwidth = mfs_estimator_capacity(w->e, i);
        w->known[i] = w->node[i].bandwidth > 0;
    }
}

static void picture(struct world *w)
{
    double most = 0;

    mfs_weights_bandwidth(w->at, w->hose.n, w->bandwidth);
    for (uint32_t i = 0; i < w->hose.n; i++)
        most = fmax(most, w->node[i].bandwidth_seen);
    for (uint32_t i = 0; i < w->hose.n && !(w->bandwidth[i] > 0); i++)
        w->bandwidth[i] = most;
}

/* Partitions that leave nodes, and how long the link that has most to carry takes for them. */
static uint32_t price(const struct world *w, const uint32_t *count, double *seconds)
{
    uint32_t moves = 0;

    *seconds = 0;
    for (uint32_t i = 0; i < w->hose.n; i++) {
        double parts = fabs((double)count[i] - w->count[i]);

        moves += count[i] < w->count[i] ? w->count[i] - count[i] : 0;
        *seconds = fmax(*seconds, parts * BYTES / w->bandwidth[i]);
    }
    return moves;
}

static void carry_out(struct world *w, const uint32_t *count)
{
    w->plans++;
    w->planned = w->hose.now;
    for (uint32_t i = 0; i < w->hose.n; i++) {
        w->count[i] = count[i];
        w->hose.node[i].share = count[i];
    }
    hose_change(&w->hose);
    mfs_rebalance_policy_planned(w->watch);
}

static void plan(struct world *w)
{
    double weight[HOSE_NODES];
    uint32_t count[HOSE_NODES];
    struct mfs_rebalance_figures f = {.full = true};
    struct mfs_rebalance_verdict v;

    mfs_weights_make(&w->st, w->at, w->hose.n, 0, weight);
    assert_int_equal(mfs_y0_counts(weight, w->hose.n, w->st.nparts, count), 0);
    f.before = mfs_rebalance_pace(w->count, w->bandwidth, w->hose.n, w->st.nparts);
    f.after = mfs_rebalance_pace(count, w->bandwidth, w->hose.n, w->st.nparts);
    f.moves = price(w, count, &f.busiest);
    mfs_rebalance_weigh(&w->s, &f, &v);
    if (v.worth)
        carry_out(w, count);
    else if (!v.better)
        mfs_rebalance_policy_planned(w->watch);
}

static void second(struct world *w)
{
    struct mfs_rebalance_view v = {0, w->hose.n, w->id, w->bandwidth, w->known};

    listen(w);
    picture(w);
    v.now = w->hose.now;
    if (w->bandwidth[0] > 0 && w->hose.now >= w->planned + MOVING &&
        mfs_rebalance_policy_watch(w->watch, &w->s, &v))
        plan(w);
}

static void seconds(struct world *w, unsigned n)
{
    while (n--)
        second(w);
}

/* ---- what comes of it ------------------------------------------------------------------------ */

/* How much slower it goes than it could. */
static double off(const struct world *w)
{
    double link[HOSE_NODES], share[HOSE_NODES], is = 0, best = 0;

    for (uint32_t i = 0; i < w->hose.n; i++)
        link[i] = w->hose.node[i].capacity;
    assert_int_equal(mfs_hose_shares(link, w->hose.n, share), 0);
    for (uint32_t i = 0; i < w->hose.n; i++) {
        is = fmax(is, w->count[i] / (double)w->st.nparts / link[i]);
        best = fmax(best, share[i] / link[i]);
    }
    return is / best;
}

static void random_cluster(struct world *w, double differ)
{
    begin(w, 4 + below(HOSE_NODES - 3));
    for (uint32_t i = 0; i < w->hose.n; i++) {
        w->hose.node[i].capacity = 4 * MB * pow(differ, hose_random(&w->hose));
        w->hose.node[i].window = 8 + below(25);
    }
}

/* A quarter of a minute each. */
static void writing_and_reading(struct world *w, unsigned stage)
{
    all(w, stage % 2 ? HOSE_READ : HOSE_WRITE);
}

static void with_idle_stages(struct world *w, unsigned stage)
{
    (void)stage;
    all(w, (enum hose_mode)below(3));
}

/* In some stages all read what is on one node. */
static void with_a_hot_node(struct world *w, unsigned stage)
{
    for (uint32_t i = 0; i < w->hose.n; i++)
        w->hose.node[i].share = w->count[i] * (i == 1 && stage % 4 == 2 ? 20 : 1);
    all(w, HOSE_READ);
}

typedef void on_stage(struct world *w, unsigned stage);

static on_stage *const stages[] = {writing_and_reading, with_idle_stages, with_a_hot_node};

#define KINDS (sizeof stages / sizeof *stages)

static void run(struct world *w, on_stage *stage)
{
    for (unsigned s = 0; s < STAGES; s++) {
        stage(w, s);
        seconds(w, STAGE);
    }
}

static void equal_links_move_nothing(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < KINDS; kind++)
        for (unsigned c = 0; c < CLUSTERS; c++) {
            struct world w;

            random_cluster(&w, 1);
            run(&w, stages[kind]);
            assert_int_equal(w.plans, 0);
            end(&w);
        }
}

struct tally {
    unsigned plans, most, late; /* late: the last one in the last third of the time */
    double before, after;       /* how much slower than it could, summed */
};

static void count(struct tally *t, const struct world *w, double before)
{
    t->plans += w->plans;
    t->most = w->plans > t->most ? w->plans : t->most;
    t->late += w->planned > STAGES * STAGE * 2 / 3.0;
    t->before += before - 1;
    t->after += off(w) - 1;
    assert_true(off(w) < before * HARM);
}

/* Links that differ from the beginning: shares come near to them, in a few steps. */
static void different_links_are_followed(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        struct tally t = {0};

        for (unsigned c = 0; c < CLUSTERS; c++) {
            struct world w;
            double before;

            random_cluster(&w, 2 + below(4));
            before = off(&w);
            run(&w, stages[kind]);
            count(&t, &w, before);
            end(&w);
        }
        print_message("%.0f %% slower than they could be, then %.0f %%; %.1f plans, %u at most, "
                      "%u late\n",
                      100 * t.before / CLUSTERS, 100 * t.after / CLUSTERS,
                      t.plans / (double)CLUSTERS, t.most, t.late);
        assert_true(t.after < t.before / 2);
        assert_true(t.most <= 8 && t.plans <= 3 * CLUSTERS && t.late * 10 <= CLUSTERS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_links_move_nothing),
        cmocka_unit_test(different_links_are_followed),
    };

    return cmocka_run_group_tests(tests, choose_seed, NULL);
}
