/* Promises of the planner over long random histories. MFS_SEED repeats one run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/clock.h"
#include "cm/plan/simulate.h"

static void histories_keep_the_promises(void **state)
{
    const char *given = getenv("MFS_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)mfs_clock_mono();
    uint64_t changes = 0;

    (void)state;
    print_message("MFS_SEED=%llu\n", (unsigned long long)seed);
    for (uint32_t round = 0; round < 60; round++) {
        struct mfs_simulate_opts o = {.nodes = 1 + round % 20,
                                      .max_nodes = 60,
                                      .steps = 200,
                                      .beta = 4,
                                      .spread = round % 3 ? 1 : 1 + round % 7,
                                      .fill = round % 2 ? 0.5 : 0.8,
                                      .seed = seed + round};
        struct mfs_simulate_result r;

        assert_int_equal(mfs_simulate_run(&o, &r, NULL), 0);
        assert_int_equal(r.violations, 0);
        assert_int_equal(r.changes + r.refused, o.steps);
        changes += r.changes;
        assert_true(r.share_worst <= r.share_bound + 1e-6);
        assert_true(r.share_worst < 2 + 1e-6);
    }
    /* One history may begin so full that nearly everything in it is refused; not most. */
    assert_true(changes > 60 * 50);
}

/* The same history twice, and nonsense refused. */
static void a_seed_repeats(void **state)
{
    struct mfs_simulate_opts o = {
        .nodes = 8, .max_nodes = 16, .steps = 100, .beta = 4, .spread = 3, .fill = 0.6, .seed = 5};
    struct mfs_simulate_result a, b;

    (void)state;
    assert_int_equal(mfs_simulate_run(&o, &a, NULL), 0);
    assert_int_equal(mfs_simulate_run(&o, &b, NULL), 0);
    assert_true(a.changes == b.changes && a.moved == b.moved && a.bytes_worst == b.bytes_worst);
    o.max_nodes = 7;
    assert_true(mfs_simulate_run(&o, &a, NULL) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(histories_keep_the_promises),
        cmocka_unit_test(a_seed_repeats),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
