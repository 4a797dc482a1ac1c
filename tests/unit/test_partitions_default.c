/* How many partitions a new deployment gets when nobody says it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cluster/capacity.h"
#include "cluster/placement.h"
#include "cluster/y0.h"
#include "cm/plan/partitions.h"

#define GIB    (1024 * MFS_CAPACITY_MIB)
#define STRIPE (1020U << 10)

static uint32_t elsewhere(uint32_t nodes, uint32_t max_nodes, uint64_t memory)
{
    const struct mfs_partitions_for d = {nodes, max_nodes, memory, STRIPE, false};

    return mfs_partitions_default(&d);
}

static uint32_t here(uint32_t nodes, uint32_t max_nodes, uint64_t memory)
{
    const struct mfs_partitions_for d = {nodes, max_nodes, memory, STRIPE, true};

    return mfs_partitions_default(&d);
}

static void eight_for_each_node_that_may_come(void **state)
{
    (void)state;
    assert_int_equal(elsewhere(1, 0, 64 * GIB), 128); /* 16 nodes */
    assert_int_equal(elsewhere(2, 0, 64 * GIB), 128); /* eightfold */
    assert_int_equal(elsewhere(4, 0, 64 * GIB), 256);
    assert_int_equal(elsewhere(64, 0, 64 * GIB), 4096);
    assert_int_equal(elsewhere(2, 5, 64 * GIB), 40);
    assert_int_equal(elsewhere(2, 100, 64 * GIB), 800);
}

static void one_machine_grows_only_when_told(void **state)
{
    (void)state;
    assert_int_equal(here(1, 0, 16 * GIB), 8);
    assert_int_equal(here(2, 0, 16 * GIB), 16);
    assert_int_equal(here(4, 0, 16 * GIB), 32);
    assert_int_equal(here(2, 8, 16 * GIB), 64);
}

/* The room that they keep for what is being written is a tenth of the nodes' memory at most. */
static void small_nodes_have_fewer(void **state)
{
    (void)state;
    for (uint64_t memory = GIB; memory <= 64 * GIB; memory += GIB / 2)
        for (uint32_t nodes = 1; nodes <= 8; nodes++) {
            uint32_t parts = elsewhere(nodes, 0, memory);

            assert_true(parts * 4ULL * STRIPE <= nodes * memory / 10);
            assert_true(parts >= 16 && parts >= 8 * nodes);
        }
    assert_int_equal(elsewhere(1, 0, GIB), 25);
    assert_int_equal(elsewhere(2, 0, GIB), 50);
    assert_int_equal(elsewhere(1, 0, 4 * GIB), 102);
    assert_int_equal(elsewhere(1, 0, 5 * GIB), 128);
    assert_int_equal(here(2, 8, GIB / 2), 24); /* as many on each of the 8 */
    assert_int_equal(here(2, 8, GIB / 4), 8);
    assert_int_equal(here(2, 6, GIB / 2), 24);
}

/* However small nodes are, and however many there may be. */
static void never_too_few_nor_too_many(void **state)
{
    (void)state;
    assert_int_equal(elsewhere(1, 0, 64 * MFS_CAPACITY_MIB), mfs_y0_partitions(1, MFS_Y0_BETA, 0));
    assert_int_equal(here(4, 0, 128 * MFS_CAPACITY_MIB), mfs_y0_partitions(4, MFS_Y0_BETA, 0));
    assert_int_equal(elsewhere(2, 50, 64 * MFS_CAPACITY_MIB), 50);
    assert_int_equal(elsewhere(1024, 0, 1024 * GIB), MFS_PARTITIONS_MAX);
    assert_int_equal(elsewhere(1, 65535, 1024 * GIB), MFS_PARTITIONS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eight_for_each_node_that_may_come),
        cmocka_unit_test(one_machine_grows_only_when_told),
        cmocka_unit_test(small_nodes_have_fewer),
        cmocka_unit_test(never_too_few_nor_too_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
