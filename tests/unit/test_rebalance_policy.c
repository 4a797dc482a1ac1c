/* When partitions follow the links: what noise, steps and flapping links lead to, over random
 * deployments (MFS_SEED repeats one run), and what a move is worth.
 * ctest: single */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cm/plan/rebalance_policy.h"
#include "seeded.h"

#define NODES_MOST 32

static const struct mfs_rebalance_settings defaults;

/* A deployment whose every plan is carried out. */
struct world {
    struct mfs_rebalance_policy *r;
    struct mfs_rebalance_settings s;
    uint32_t id[NODES_MOST];
    double link[NODES_MOST];
    bool known[NODES_MOST];
    size_t n;
    double now;
    uint32_t plans;
};

static void begin(struct world *w, size_t n)
{
    *w = (struct world){.r = mfs_rebalance_policy_create(), .n = n, .now = 1000 + below(1000)};
    w->s = mfs_rebalance_settle(&defaults);
    assert_non_null(w->r);
    for (uint32_t i = 0; i < n; i++) {
        w->id[i] = 3 * i;
        w->link[i] = 1e6 * (1 + below(100));
        w->known[i] = true;
    }
}

static void end(struct world *w)
{
    mfs_rebalance_policy_destroy(w->r);
}

/* Some seconds; `noise` is how far every figure may be off. */
static uint32_t pass(struct world *w, double seconds, double noise)
{
    uint32_t before = w->plans;

    for (double until = w->now + seconds; w->now < until; w->now += 1) {
        double seen[NODES_MOST];
        struct mfs_rebalance_view v = {w->now, w->n, w->id, seen, w->known};

        for (size_t i = 0; i < w->n; i++)
            seen[i] = w->link[i] * (1 + noise * (2.0 * below(10001) / 10000 - 1));
        if (!mfs_rebalance_policy_watch(w->r, &w->s, &v))
            continue;
        mfs_rebalance_policy_planned(w->r);
        w->plans++;
    }
    return w->plans - before;
}

static void noise_moves_nothing(void **state)
{
    (void)state;
    for (int round = 0; round < 300; round++) {
        struct world w;

        begin(&w, 2 + below(NODES_MOST - 1));
        assert_true(pass(&w, 900, 0.1) <= 1);
        end(&w);
    }
}

/* One node's link changes, and stays so; the figures tremble. */
static void a_step_is_followed_once(void **state)
{
    (void)state;
    for (int round = 0; round < 300; round++) {
        struct world w;
        uint32_t first, then;

        begin(&w, 2 + below(NODES_MOST - 1));
        first = pass(&w, 60 + below(100), 0.05);
        assert_true(first <= 1);
        w.link[below((uint32_t)w.n)] /= 10;
        then = pass(&w, 300, 0.05);
        assert_true(then >= 1 && then <= 2);
        end(&w);
    }
}

static void a_step_is_followed_soon(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 8);
    pass(&w, 100, 0);
    w.link[3] /= 10;
    assert_int_equal(pass(&w, 4, 0), 0);
    assert_int_equal(pass(&w, 6, 0), 1);
    w.link[3] *= 10; /* soon after: it must last as long as the other state did, twice */
    assert_int_equal(pass(&w, 18, 0), 0);
    assert_int_equal(pass(&w, 12, 0), 1);
    end(&w);
}

/* A link that goes up and down faster than the horizon: the first change may be taken for good. */
static void who_alternates_is_not_followed(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        struct world w;
        uint32_t which, first, dwell = 8 + below(37);

        begin(&w, 2 + below(NODES_MOST - 1));
        which = below((uint32_t)w.n);
        pass(&w, 100, 0.03);
        w.link[which] /= 10;
        first = pass(&w, dwell, 0.03);
        assert_true(first <= 1);
        for (int k = 0; k < 20; k++) {
            w.link[which] *= k % 2 ? 0.1 : 10;
            assert_int_equal(pass(&w, dwell + below(dwell / 4 + 1), 0.03), 0);
        }
        end(&w);
    }
}

/* What is seen of links of which nothing was known, and then known, is no change of theirs: each
 * step is followed after the window, however short the one before it lasted. */
static void what_is_learned_is_followed_soon(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 8);
    for (size_t i = 0; i < w.n; i++) {
        w.link[i] = 1e6;
        w.known[i] = false;
    }
    pass(&w, 10, 0);
    w.known[3] = true;
    for (int step = 0; step < 4; step++) { /* the others are seen to carry more than that */
        for (size_t i = 0; i < w.n; i++)
            w.link[i] *= i == 3 ? 1 : 1.5;
        assert_int_equal(pass(&w, 12, 0), 1);
    }
    w.known[5] = true; /* at less than it was taken for */
    w.link[5] /= 2;
    assert_int_equal(pass(&w, 12, 0), 1);
    w.link[5] /= 2; /* that is a change, and soon after another */
    assert_int_equal(pass(&w, 18, 0), 0);
    assert_int_equal(pass(&w, 18, 0), 1);
    end(&w);
}

/* A link whose limit is known only while it is slow: the first time it may be taken for good. */
static void what_is_forgotten_is_not_learned_again(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        uint32_t dwell = 8 + below(37), plans;
        struct world w;

        begin(&w, 2 + below(NODES_MOST - 1));
        w.known[0] = false;
        pass(&w, 100, 0.03);
        plans = w.plans;
        for (int k = 0; k < 20; k++) {
            w.link[0] *= k % 2 ? 10 : 0.1;
            w.known[0] = k % 2 == 0;
            pass(&w, dwell + below(dwell / 4 + 1), 0.03);
        }
        assert_true(w.plans <= plans + 1);
        end(&w);
    }
}

/* All links twice as fast: nobody's share changes. */
static void all_alike_is_no_change(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 5);
    pass(&w, 100, 0);
    for (size_t i = 0; i < w.n; i++)
        w.link[i] *= 3;
    assert_int_equal(pass(&w, 100, 0), 0);
    w.n = 4; /* one has gone: that is to be planned, once */
    assert_int_equal(pass(&w, 100, 0), 1);
    end(&w);
}

/* A plan that was not carried out comes again; the caller sees to pauses. */
static void what_failed_comes_again(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 4);
    assert_int_equal(pass(&w, 60, 0), 1);
    mfs_rebalance_policy_failed(w.r);
    assert_int_equal(pass(&w, 60, 0), 1);
    end(&w);
}

static void it_tells_who_has_changed(void **state)
{
    struct world w;
    double times;
    uint32_t id;

    (void)state;
    begin(&w, 6);
    assert_false(mfs_rebalance_policy_changed(w.r, &id, &times));
    pass(&w, 100, 0);
    w.link[2] /= 100;
    pass(&w, 5, 0);
    assert_true(mfs_rebalance_policy_changed(w.r, &id, &times));
    assert_int_equal(id, 6);
    assert_true(times < 0.05);
    end(&w);
}

/* ---- worth ----------------------------------------------------------------------------------- */

static bool worth(double traffic, uint64_t bytes, double before, double after)
{
    const struct mfs_rebalance_settings s = mfs_rebalance_settle(&defaults);
    struct mfs_rebalance_figures f = {.before = before,
                                      .after = after,
                                      .traffic = traffic,
                                      .busiest = (double)bytes / 1e7,
                                      .moves = 8,
                                      .bytes = bytes};
    struct mfs_rebalance_verdict v;

    mfs_rebalance_weigh(&s, &f, &v);
    assert_true(strlen(v.why) > 40 && strlen(v.why) < sizeof v.why - 1);
    assert_true(v.better || !v.worth);
    return v.worth;
}

static void a_move_must_pay_back(void **state)
{
    (void)state;
    assert_true(worth(5e7, 100000000, 2e-8, 1e-8));   /* saves 30 s, takes 10 */
    assert_false(worth(5e7, 1000000000, 2e-8, 1e-8)); /* takes 100 */
    assert_false(worth(1e6, 100000000, 2e-8, 1e-8));  /* saves 0.6 s, as nobody writes */
    assert_true(worth(0, 0, 2e-8, 1e-8));             /* costs nothing */
    assert_false(worth(5e7, 0, 1e-8, 1e-8));          /* and is no better */
    assert_false(worth(5e7, 0, 1.1e-8, 1e-8));
    assert_true(worth(1e12, 300000000, 2e-8, 1e-8) ==
                worth(5e7, 300000000, 2e-8, 1e-8)); /* more than the links carry can't be */
}

/* Traffic is small where everything waits for one link: that is no reason to leave it so. */
static void a_full_link_is_waited_for(void **state)
{
    const struct mfs_rebalance_settings s = mfs_rebalance_settle(&defaults);
    struct mfs_rebalance_figures f = {
        .before = 2e-8, .after = 1e-8, .traffic = 1e6, .busiest = 15, .moves = 8};
    struct mfs_rebalance_verdict v;

    (void)state;
    mfs_rebalance_weigh(&s, &f, &v);
    assert_true(v.better && !v.worth);
    f.full = true; /* saves 30 s */
    mfs_rebalance_weigh(&s, &f, &v);
    assert_true(v.worth);
    f.cold = true; /* as it goes then, in any case */
    mfs_rebalance_weigh(&s, &f, &v);
    assert_true(v.worth);
    f.busiest = 25;
    mfs_rebalance_weigh(&s, &f, &v);
    assert_false(v.worth);
}

/* Clients wait for a partition, but not for ever: however much is to be gained. */
static void nor_is_it_waited_for_too_long(void **state)
{
    struct mfs_rebalance_settings s = mfs_rebalance_settle(&defaults);
    struct mfs_rebalance_figures f = {
        .before = 2e-8, .after = 1e-8, .traffic = 1e6, .full = true, .busiest = 50, .moves = 8};
    struct mfs_rebalance_verdict v;

    (void)state;
    s.horizon = 1000; /* saves 500 s */
    mfs_rebalance_weigh(&s, &f, &v);
    assert_true(v.worth);
    f.busiest = 70;
    mfs_rebalance_weigh(&s, &f, &v);
    assert_true(v.better && !v.worth);
    assert_non_null(strstr(v.why, "too long"));
    f.full = false;
    f.traffic = 1e8; /* beside the work, which goes on */
    mfs_rebalance_weigh(&s, &f, &v);
    assert_true(v.worth);
}

static void the_slowest_sets_the_pace(void **state)
{
    const uint32_t count[] = {2, 2, 4};
    const double link[] = {1e6, 4e6, 4e6};

    (void)state;
    assert_true(fabs(mfs_rebalance_pace(count, link, 3, 8) - 0.25e-6) < 1e-15);
    assert_int_equal(mfs_rebalance_last(count, link, 3), 0);
    assert_int_equal(mfs_rebalance_last(count + 1, link, 2), 0);
    assert_int_equal(mfs_rebalance_last(count + 1, link + 1, 2), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(noise_moves_nothing),
        cmocka_unit_test(a_step_is_followed_once),
        cmocka_unit_test(a_step_is_followed_soon),
        cmocka_unit_test(who_alternates_is_not_followed),
        cmocka_unit_test(what_is_learned_is_followed_soon),
        cmocka_unit_test(what_is_forgotten_is_not_learned_again),
        cmocka_unit_test(all_alike_is_no_change),
        cmocka_unit_test(what_failed_comes_again),
        cmocka_unit_test(it_tells_who_has_changed),
        cmocka_unit_test(a_move_must_pay_back),
        cmocka_unit_test(a_full_link_is_waited_for),
        cmocka_unit_test(nor_is_it_waited_for_too_long),
        cmocka_unit_test(the_slowest_sets_the_pace),
    };

    return cmocka_run_group_tests(tests, choose_seed, NULL);
}
