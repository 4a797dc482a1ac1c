/* The division of a node's memory: what must hold for any usage, checked over many random ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "cluster/capacity.h"
#include "lm/redis/memory_plan.h"

#define MIB   (1ULL << 20)
#define PARTS 24

static uint64_t seed = 20260101;

static uint64_t draw(uint64_t below)
{
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (seed >> 33) % below;
}

static uint64_t sum(const uint64_t *v, size_t n)
{
    uint64_t s = 0;

    for (size_t i = 0; i < n; i++)
        s += v[i];
    return s;
}

static size_t random_parts(struct mfs_memory_part *parts, uint64_t most)
{
    size_t n = 1 + draw(PARTS);

    for (size_t i = 0; i < n; i++)
        parts[i] = (struct mfs_memory_part){.used = 1 + draw(most), .max = 1 + draw(most)};
    return n;
}

static void test_sum_never_exceeds_the_usable(void **state)
{
    struct mfs_memory_part parts[PARTS];
    uint64_t want[PARTS];

    (void)state;
    for (int round = 0; round < 20000; round++) {
        uint64_t usable = PARTS + draw(4096 * MIB);
        size_t n = random_parts(parts, 256 * MIB);

        mfs_memory_plan(parts, n, usable, want);
        for (size_t i = 0; i < n; i++)
            assert_true(want[i] >= 1);
        /* A process gets 1 byte where its share is 0, since 0 would mean no limit. */
        assert_true(sum(want, n) <= usable + n);
    }
}

static void test_headroom_is_equal_and_all_of_it(void **state)
{
    struct mfs_memory_part parts[PARTS];
    uint64_t want[PARTS];

    (void)state;
    for (int round = 0; round < 20000; round++) {
        uint64_t used = 0, usable, fair;
        size_t n = random_parts(parts, 256 * MIB);

        for (size_t i = 0; i < n; i++)
            used += parts[i].used;
        usable = used + draw(4096 * MIB);
        fair = (usable - used) / (n ? n : 1);
        mfs_memory_plan(parts, n, usable, want);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(want[i], parts[i].used + fair);
        assert_true(sum(want, n) + n > usable);
    }
}

static void test_same_input_same_plan(void **state)
{
    struct mfs_memory_part parts[PARTS];
    uint64_t a[PARTS], b[PARTS];
    size_t n = random_parts(parts, 256 * MIB);

    (void)state;
    mfs_memory_plan(parts, n, 512 * MIB, a);
    mfs_memory_plan(parts, n, 512 * MIB, b);
    assert_memory_equal(a, b, n * sizeof *a);
}

static void test_too_little_is_shared_by_use(void **state)
{
    struct mfs_memory_part parts[] = {{.used = 30 * MIB}, {.used = 10 * MIB}};
    uint64_t want[2];

    (void)state;
    mfs_memory_plan(parts, 2, 20 * MIB, want);
    assert_int_equal(want[0], 15 * MIB);
    assert_int_equal(want[1], 5 * MIB);
}

static void test_a_silent_process_keeps_what_it_has(void **state)
{
    struct mfs_memory_part parts[] = {{.used = 8 * MIB, .max = 40 * MIB, .fixed = true},
                                      {.used = 10 * MIB, .max = 20 * MIB}};
    uint64_t want[2];

    (void)state;
    mfs_memory_plan(parts, 2, 100 * MIB, want);
    assert_int_equal(want[0], 40 * MIB);
    assert_int_equal(want[1], 60 * MIB);
}

/* From any state, carrying a plan out in the order "shrink, then grow" keeps the sum of the limits
 * from rising above the larger of what it was and what is usable, after each single step. */
static void test_sum_holds_between_changes(void **state)
{
    struct mfs_memory_part parts[PARTS];
    uint64_t want[PARTS];

    (void)state;
    for (int round = 0; round < 5000; round++) {
        uint64_t usable = PARTS * MIB + draw(2048 * MIB), bound = 0;
        size_t n = random_parts(parts, 256 * MIB);

        for (size_t i = 0; i < n; i++)
            bound += parts[i].max;
        bound = bound > usable ? bound : usable;
        mfs_memory_plan(parts, n, usable, want);
        for (int grow = 0; grow <= 1; grow++) {
            for (size_t i = 0; i < n; i++) {
                uint64_t now = 0;

                if ((want[i] > parts[i].max) != grow)
                    continue;
                parts[i].max = mfs_memory_grant(parts, n, usable, i, want[i]);
                for (size_t k = 0; k < n; k++)
                    now += parts[k].max;
                assert_true(now <= bound);
            }
        }
        for (size_t i = 0; i < n; i++)
            assert_int_equal(parts[i].max, want[i]);
    }
}

static void test_grant_respects_one_that_did_not_shrink(void **state)
{
    struct mfs_memory_part parts[] = {{.max = 80 * MIB}, {.max = 10 * MIB}};

    (void)state;
    assert_int_equal(mfs_memory_grant(parts, 2, 100 * MIB, 1, 50 * MIB), 20 * MIB);
    assert_int_equal(mfs_memory_grant(parts, 2, 100 * MIB, 1, 5 * MIB), 5 * MIB);
    assert_int_equal(mfs_memory_grant(parts, 2, 60 * MIB, 1, 50 * MIB), 10 * MIB);
}

static void test_small_differences_are_left_alone(void **state)
{
    struct mfs_memory_part parts[] = {{.used = 10 * MIB, .max = 50 * MIB},
                                      {.used = 14 * MIB, .max = 50 * MIB}};
    uint64_t want[2];

    (void)state;
    mfs_memory_plan(parts, 2, 100 * MIB, want);
    assert_false(mfs_memory_worthwhile(parts, 2, 100 * MIB, want, MIB));
    parts[1].used = 45 * MIB;
    mfs_memory_plan(parts, 2, 100 * MIB, want);
    assert_true(mfs_memory_worthwhile(parts, 2, 100 * MIB, want, MIB));
    mfs_memory_plan(parts, 2, 90 * MIB, want);
    assert_true(mfs_memory_worthwhile(parts, 2, 90 * MIB, want, MIB));
}

static void test_urgent_near_a_limit_only_while_there_is_room(void **state)
{
    struct mfs_memory_part parts[] = {{.used = 10 * MIB, .max = 50 * MIB},
                                      {.used = 48 * MIB, .max = 50 * MIB}};

    (void)state;
    assert_true(mfs_memory_urgent(parts, 2, 100 * MIB, MIB, 0));
    parts[1].used = 20 * MIB;
    assert_false(mfs_memory_urgent(parts, 2, 100 * MIB, MIB, 0));
    assert_true(mfs_memory_urgent(parts, 2, 100 * MIB, MIB, MIB)); /* 35 MiB each: soon used up */
    assert_false(mfs_memory_urgent(parts, 2, 250 * MIB, MIB, MIB));
    /* One has room for less than a write, though there is room for one in each. */
    parts[0].used = parts[1].used = 20 * MIB;
    parts[0].max = 20 * MIB + MIB / 10 * 9;
    assert_true(mfs_memory_urgent(parts, 2, 43 * MIB, MIB, 0));
    assert_false(mfs_memory_urgent(parts, 2, 43 * MIB, MIB / 2, 0));
    assert_false(mfs_memory_urgent(parts, 2, 41 * MIB, MIB, 0));
    parts[0].used = parts[1].used = 50 * MIB;
    assert_false(mfs_memory_urgent(parts, 2, 100 * MIB, MIB, 0));
}

/* One partition takes everything that is written: it must come near the whole node's memory. */
static void test_one_partition_can_fill_the_node(void **state)
{
    struct mfs_memory_part parts[8];
    uint64_t want[8], usable = 800 * MIB;

    (void)state;
    for (size_t i = 0; i < 8; i++)
        parts[i] = (struct mfs_memory_part){.used = 1 * MIB, .max = 100 * MIB};
    for (int look = 0; look < 60; look++) {
        parts[3].used = parts[3].max;
        mfs_memory_plan(parts, 8, usable, want);
        for (size_t i = 0; i < 8; i++)
            parts[i].max = want[i];
    }
    assert_true(parts[3].used > usable * 95 / 100);
}

static void test_purge_waits_for_calm_and_does_not_repeat(void **state)
{
    struct mfs_memory_rest rest = {0};

    (void)state;
    assert_false(mfs_memory_purge_due(&rest, 1 * MIB, 11 * MIB));
    assert_false(mfs_memory_purge_due(&rest, 500 * MIB, 520 * MIB));
    assert_false(mfs_memory_purge_due(&rest, 2 * MIB, 520 * MIB)); /* just deleted */
    assert_true(mfs_memory_purge_due(&rest, 2 * MIB, 520 * MIB));
    assert_false(mfs_memory_purge_due(&rest, 2 * MIB, 80 * MIB)); /* all that could be moved */
    assert_false(mfs_memory_purge_due(&rest, 2 * MIB, 80 * MIB));
    assert_false(mfs_memory_purge_due(&rest, 2 * MIB, 80 * MIB));
}

static void test_no_purge_while_memory_is_used_again(void **state)
{
    struct mfs_memory_rest rest = {0};

    (void)state;
    for (uint64_t used = 10 * MIB; used < 400 * MIB; used += 20 * MIB)
        assert_false(mfs_memory_purge_due(&rest, used, 500 * MIB));
}

static void test_what_is_idle_stays_with_who_has_it(void **state)
{
    struct mfs_memory_part parts[] = {{.used = 10 * MIB, .idle = 40 * MIB}, {.used = 10 * MIB}};
    uint64_t want[2];

    (void)state;
    mfs_memory_plan(parts, 2, 100 * MIB, want);
    assert_int_equal(want[0], 70 * MIB);
    assert_int_equal(want[1], 30 * MIB);
    assert_false(mfs_memory_short(parts, 2, 100 * MIB));
    /* Less than it has idle: that much, and nobody gets any of what is used. */
    mfs_memory_plan(parts, 2, 30 * MIB, want);
    assert_int_equal(want[0], 20 * MIB);
    assert_int_equal(want[1], 10 * MIB);
    assert_true(mfs_memory_short(parts, 2, 30 * MIB));
}

static void test_idle_memory_never_breaks_the_sum(void **state)
{
    struct mfs_memory_part parts[PARTS];
    uint64_t want[PARTS];

    (void)state;
    for (int round = 0; round < 20000; round++) {
        uint64_t usable = PARTS + draw(4096 * MIB), used = 0;
        size_t n = random_parts(parts, 256 * MIB);

        for (size_t i = 0; i < n; i++) {
            parts[i].idle = draw(128 * MIB);
            used += parts[i].used;
        }
        mfs_memory_plan(parts, n, usable, want);
        assert_true(sum(want, n) <= usable + n);
        for (size_t i = 0; i < n && used <= usable; i++)
            assert_true(want[i] >= parts[i].used);
    }
}

static void test_all_that_is_resident_counts(void **state)
{
    struct mfs_memory_seen seen = {
        .used = 40 * MIB, .anon = 60 * MIB, .active = 46 * MIB, .resident = 57 * MIB};
    uint64_t used, idle;

    (void)state;
    /* 3 MiB are the allocator's tables, and 6 of pages in use are fragments. */
    assert_int_equal(mfs_memory_reckon(&seen, &used, &idle), 12 * MIB);
    assert_int_equal(used, 40 * MIB);
    assert_int_equal(idle, 8 * MIB);
    seen.others = 5 * MIB;
    seen.not_counted = 10 * MIB;
    assert_int_equal(mfs_memory_reckon(&seen, &used, &idle), 27 * MIB);
    assert_int_equal(used, 30 * MIB);
}

static void test_a_process_takes_something_when_nothing_is_known(void **state)
{
    struct mfs_memory_seen seen = {.used = 1 * MIB};
    uint64_t used, idle;

    (void)state;
    assert_int_equal(mfs_memory_reckon(&seen, &used, &idle), MFS_CAPACITY_PROCESS);
    assert_int_equal(idle, 0);
    seen = (struct mfs_memory_seen){.used = 9 * MIB, .anon = 8 * MIB, .resident = 99 * MIB};
    assert_int_equal(mfs_memory_reckon(&seen, &used, &idle), MFS_CAPACITY_PROCESS);
    assert_int_equal(used, 9 * MIB);
    assert_int_equal(idle, 0);
}

static void test_what_is_beyond_comes_off_what_is_usable(void **state)
{
    uint64_t all = mfs_capacity_partitions(1024 * MIB);

    (void)state;
    assert_int_equal(mfs_memory_usable(1024 * MIB, 0), all);
    assert_int_equal(mfs_memory_usable(1024 * MIB, 100 * MIB), all - 100 * MIB);
    assert_int_equal(mfs_memory_usable(1024 * MIB, 4096 * MIB), 128 * MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sum_never_exceeds_the_usable),
        cmocka_unit_test(test_headroom_is_equal_and_all_of_it),
        cmocka_unit_test(test_same_input_same_plan),
        cmocka_unit_test(test_too_little_is_shared_by_use),
        cmocka_unit_test(test_a_silent_process_keeps_what_it_has),
        cmocka_unit_test(test_sum_holds_between_changes),
        cmocka_unit_test(test_grant_respects_one_that_did_not_shrink),
        cmocka_unit_test(test_small_differences_are_left_alone),
        cmocka_unit_test(test_urgent_near_a_limit_only_while_there_is_room),
        cmocka_unit_test(test_one_partition_can_fill_the_node),
        cmocka_unit_test(test_purge_waits_for_calm_and_does_not_repeat),
        cmocka_unit_test(test_no_purge_while_memory_is_used_again),
        cmocka_unit_test(test_what_is_idle_stays_with_who_has_it),
        cmocka_unit_test(test_idle_memory_never_breaks_the_sum),
        cmocka_unit_test(test_all_that_is_resident_counts),
        cmocka_unit_test(test_a_process_takes_something_when_nothing_is_known),
        cmocka_unit_test(test_what_is_beyond_comes_off_what_is_usable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
