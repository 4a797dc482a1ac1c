/* The windows of stripes on their way (data/workers/pace.h), on links that are computed: a link of
 * some rate and delay carries what is on the way to it in equal parts. ctest: single */
#include "data_test.h"

#include "data/workers/pace.h"

#define STRIPE 1e6 /* bytes */
#define LOWEST 2U
#define MOST   8U

struct link {
    double rate;  /* bytes/s */
    double delay; /* s */
};

/* What a stripe takes while f are on the way, in s. */
static double takes(const struct link *l, double f)
{
    double alone = l->delay + STRIPE / l->rate, shared = f * STRIPE / l->rate;

    return alone > shared ? alone : shared;
}

static void took(struct mfs_pace *pace, double f, int64_t ns)
{
    mfs_pace_took(pace, f, ns, (double)mfs_pace_least(pace, ns));
}

static void run(struct mfs_pace *pace, const struct link *l, unsigned stripes)
{
    while (stripes--) {
        double f = mfs_pace_window(pace);

        took(pace, f, (int64_t)(takes(l, f) * 1e9));
        assert_in_range(mfs_pace_window(pace), LOWEST, MOST);
    }
}

static struct link random_link(uint64_t *seed)
{
    /* 1 MB/s to 1 GB/s, 0.1 ms to 100 ms */
    return (struct link){1e6 * (double)(1ULL << rnd_below(seed, 11)),
                         1e-4 * (double)(1ULL << rnd_below(seed, 11))};
}

/* Part of what the link carries at best. */
static double used(const struct link *l, double f, double most)
{
    double best = l->rate, bound = most * STRIPE / takes(l, most), have = f * STRIPE / takes(l, f);

    return have / (best < bound ? best : bound);
}

static void test_link_is_busy(void **state)
{
    uint64_t seed = rnd_seed();

    (void)state;
    for (unsigned long i = 0; i < steps(2000); i++) {
        struct link l = random_link(&seed);
        struct mfs_pace pace;

        mfs_pace_init(&pace, LOWEST, LOWEST + (uint32_t)rnd_below(&seed, 7), MOST);
        /* Even when the least that is known was seen on the way, it was with few. */
        took(&pace, 1, (int64_t)(takes(&l, 1) * 1e9));
        run(&pace, &l, 500);
        assert_true(used(&l, mfs_pace_window(&pace), MOST) > 0.9);
    }
}

static void test_little_waits(void **state)
{
    uint64_t seed = rnd_seed();

    (void)state;
    for (unsigned long i = 0; i < steps(2000); i++) {
        struct link l = random_link(&seed);
        struct mfs_pace pace;
        double fit, window;

        mfs_pace_init(&pace, LOWEST, MOST, MOST);
        took(&pace, 1, (int64_t)(takes(&l, 1) * 1e9));
        run(&pace, &l, 500);
        fit = (l.delay + STRIPE / l.rate) * l.rate / STRIPE;
        window = mfs_pace_window(&pace);
        assert_true(window <= LOWEST || window <= fit + 3);
    }
}

/* A link becomes slower by ten, or faster, and the window follows once its least time is renewed.
 */
static void test_change(void **state)
{
    struct link slow = {5e6, 0.05}, fast = {50e6, 0.05};
    struct mfs_pace pace;
    uint32_t before;

    (void)state;
    mfs_pace_init(&pace, LOWEST, 4, MOST);
    took(&pace, 1, (int64_t)(takes(&fast, 1) * 1e9));
    run(&pace, &fast, 500);
    before = mfs_pace_window(&pace);
    assert_true(before >= 3); /* 50 ms are two and a half stripes, and one is sent */
    run(&pace, &slow, 500);
    assert_int_equal(mfs_pace_window(&pace), LOWEST);
    mfs_pace_renew(&pace);
    run(&pace, &fast, 500);
    assert_true(mfs_pace_window(&pace) >= before);
}

/* A window that others do not fill says nothing, and does not grow. */
static void test_unused(void **state)
{
    struct mfs_pace pace;

    (void)state;
    mfs_pace_init(&pace, LOWEST, 4, MOST);
    for (unsigned i = 0; i < 1000; i++)
        took(&pace, 1, MFS_MSEC);
    assert_int_equal(mfs_pace_window(&pace), 4);
}

static void test_reach(void **state)
{
    uint64_t seed = rnd_seed();
    struct mfs_pace pace;

    (void)state;
    mfs_pace_init(&pace, LOWEST, 4, MOST);
    assert_int_equal(mfs_pace_reach(&pace, 3, MFS_MSEC, 64), 0);
    took(&pace, 1, 100 * MFS_MSEC);
    assert_int_equal(mfs_pace_reach(&pace, 3, 0, 64), 0);
    for (unsigned long i = 0; i < steps(2000); i++) {
        uint32_t n = (uint32_t)rnd_below(&seed, 20);
        int64_t step = 1 + (int64_t)rnd_below(&seed, 1000 * MFS_MSEC);
        uint32_t reach = mfs_pace_reach(&pace, n, step, 64);

        assert_true(reach <= 64);
        assert_true(reach == 64 || (reach + 1) * step >= (int64_t)(n + 2) * 100 * MFS_MSEC);
        assert_true(mfs_pace_reach(&pace, n + 1, step, 64) >= reach);
        assert_true(mfs_pace_reach(&pace, n, step * 2, 64) <= reach);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_link_is_busy), cmocka_unit_test(test_little_waits),
        cmocka_unit_test(test_change),       cmocka_unit_test(test_unused),
        cmocka_unit_test(test_reach),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
