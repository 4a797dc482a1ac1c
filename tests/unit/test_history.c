/* What cm keeps of the past: means, gaps, more than there is room for, a clock that jumps, and what
 * is read back. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "cm/history/stages.h"

#define NOON 1700000000LL

static float one(struct mfs_history_ring *r, int64_t t, uint32_t length)
{
    return mfs_history_ring_mean(r, 0, t, length);
}

static void put(struct mfs_history_ring *r, int64_t t, float v)
{
    mfs_history_ring_put(r, t, &v);
}

static void test_means_and_gaps(void **state)
{
    struct mfs_history_ring *r = mfs_history_ring_create(10, 6, 1);

    (void)state;
    assert_true(isnan(one(r, NOON, 10)));
    put(r, NOON + 1, 2);
    put(r, NOON + 9, 4);
    put(r, NOON + 9, NAN);
    put(r, NOON + 30, 7);
    assert_float_equal(one(r, NOON, 10), 3, 0);
    assert_true(isnan(one(r, NOON + 10, 20)));
    assert_float_equal(one(r, NOON, 40), 5, 0);
    assert_int_equal(mfs_history_ring_last(r), NOON + 30);
    mfs_history_ring_destroy(r);
}

static void test_wrap(void **state)
{
    struct mfs_history_ring *r = mfs_history_ring_create(1, 5, 1);

    (void)state;
    for (int i = 0; i < 12; i++)
        put(r, NOON + i, (float)i);
    assert_true(isnan(one(r, NOON + 6, 1)));
    for (int i = 7; i < 12; i++)
        assert_float_equal(one(r, NOON + i, 1), (float)i, 0);
    assert_true(isnan(one(r, NOON + 12, 1)));
    mfs_history_ring_destroy(r);
}

static void test_jumps(void **state)
{
    struct mfs_history_ring *r = mfs_history_ring_create(1, 10, 1);

    (void)state;
    for (int i = 0; i < 10; i++)
        put(r, NOON + i, (float)i);
    put(r, NOON + 4, 40); /* back: what was later is not true any more */
    assert_float_equal(one(r, NOON + 3, 1), 3, 0);
    assert_float_equal(one(r, NOON + 4, 1), 40, 0);
    assert_true(isnan(one(r, NOON + 5, 5)));
    put(r, NOON + 5, 50);
    assert_float_equal(one(r, NOON + 5, 1), 50, 0);
    put(r, NOON + 86400, 1);
    assert_true(isnan(one(r, NOON, 86400)));
    put(r, NOON - 86400, 2);
    assert_float_equal(one(r, NOON - 86400, 1), 2, 0);
    assert_true(isnan(one(r, NOON, 86401)));
    put(r, -5, 3); /* before 1970: not at all */
    assert_int_equal(mfs_history_ring_last(r), NOON - 86400);
    mfs_history_ring_destroy(r);
}

static void test_json(void **state)
{
    static const char *const names[] = {"a", NULL};
    struct mfs_history_ring *r = mfs_history_ring_create(1, 8, 2);
    struct mfs_buf b;

    (void)state;
    mfs_buf_init(&b);
    mfs_history_ring_put(r, NOON + 1, (const float[]){1, 9});
    mfs_history_ring_put(r, NOON + 2, (const float[]){3, 9});
    mfs_history_ring_put(r, NOON + 7, (const float[]){1.5F, 9});
    assert_int_equal(mfs_history_ring_json(r, 2, names, &b), 0);
    mfs_buf_append(&b, "", 1);
    assert_string_equal(mfs_buf_data(&b), "{\"step\":2,\"first\":1700000000,\"a\":[1,3,null,1.5]}");
    mfs_buf_fini(&b);
    mfs_history_ring_destroy(r);
}

static struct mfs_history *some(void)
{
    struct mfs_history *h = mfs_history_create();
    float f[MFS_HISTORY_FIGURES] = {0}, n[MFS_HISTORY_NODE_FIGURES] = {5, 6, 7};

    assert_non_null(h);
    f[MFS_HISTORY_USED] = 42;
    f[MFS_HISTORY_P99] = NAN;
    mfs_history_put(h, NOON, f);
    mfs_history_put_node(h, NOON, "node-0", n);
    return h;
}

static void test_restart(void **state)
{
    struct mfs_history *h = some(), *again = mfs_history_create();
    struct mfs_buf b;

    (void)state;
    mfs_buf_init(&b);
    assert_int_equal(mfs_history_save(h, &b), 0);
    assert_true(mfs_buf_len(&b) < MFS_HISTORY_FILE_MAX);
    assert_int_equal(mfs_history_load(again, mfs_buf_data(&b), mfs_buf_len(&b)), 0);
    assert_float_equal(mfs_history_ring_mean(again->hour, MFS_HISTORY_USED, NOON, 1), 42, 0);
    assert_true(isnan(mfs_history_ring_mean(again->day, MFS_HISTORY_P99, NOON - 60, 120)));
    assert_int_equal(again->nnodes, 1);
    assert_float_equal(mfs_history_ring_mean(again->node[0].ring, MFS_HISTORY_NODE_OUT, NOON, 10),
                       7, 0);
    mfs_history_destroy(again);
    mfs_history_destroy(h);
    mfs_buf_fini(&b);
}

/* By seconds, or by minutes where the stage began before the last hour; what is not known is NaN.
 */
static void test_stages(void **state)
{
    struct mfs_history *h = mfs_history_create();
    float f[MFS_HISTORY_FIGURES] = {0};
    struct mfs_stage_figures s;

    (void)state;
    assert_non_null(h);
    mfs_stage_measure(h, NOON, NOON + 10, &s);
    assert_true(isnan(s.memory) && isnan(s.node_hours));
    for (int i = 0; i < 7200; i++) {
        f[MFS_HISTORY_PAID] = i < 7000 ? 2 : 4;
        f[MFS_HISTORY_USED] = (float)i;
        f[MFS_HISTORY_WRITTEN] = i >= 7000 && i < 7010 ? 100 : 0;
        f[MFS_HISTORY_READ] = NAN;
        mfs_history_put(h, NOON + i, f);
    }
    mfs_stage_measure(h, NOON + 6990, NOON + 7005, &s);
    assert_float_equal(s.written, 500, 1e-6);
    assert_true(isnan(s.read));
    assert_float_equal(s.memory, 7004, 1e-6);
    assert_float_equal(s.nodes, 4, 1e-6);
    assert_float_equal(s.node_hours, (10 * 2 + 5 * 4) / 3600.0, 1e-6);
    mfs_stage_measure(h, NOON + 40, NOON + 40 + 3600, &s);
    assert_float_equal(s.node_hours, 2, 0.04);
    assert_float_equal(s.nodes, 2, 1e-6);
    mfs_stage_measure(h, NOON + 7190, NOON + 100000, &s);
    assert_float_equal(s.node_hours, 10 * 4 / 3600.0, 1e-6);
    mfs_stage_measure(h, NOON + 5, NOON + 5, &s);
    assert_true(isnan(s.memory));
    mfs_history_destroy(h);
}

static void test_torn(void **state)
{
    struct mfs_history *h = some(), *again = some();
    struct mfs_buf b;
    size_t n;

    (void)state;
    mfs_buf_init(&b);
    assert_int_equal(mfs_history_save(h, &b), 0);
    n = mfs_buf_len(&b);
    assert_int_equal(mfs_history_load(again, mfs_buf_data(&b), 1), -EINVAL);
    assert_int_equal(mfs_history_ring_last(again->hour), -1);
    assert_int_equal(mfs_history_ring_last(again->day), -1);
    for (size_t cut = 0; cut < n; cut += cut < 64 ? 1 : 4099)
        assert_int_equal(mfs_history_load(again, mfs_buf_data(&b), cut), -EINVAL);
    mfs_buf_data(&b)[n / 2] ^= 1;
    assert_int_equal(mfs_history_load(again, mfs_buf_data(&b), n), -EINVAL);
    assert_int_equal(again->nnodes, 0);
    mfs_history_destroy(again);
    mfs_history_destroy(h);
    mfs_buf_fini(&b);
}

static void test_many_nodes(void **state)
{
    const float f[MFS_HISTORY_NODE_FIGURES] = {1, 2, 3};
    struct mfs_history *h = mfs_history_create();
    char name[MFS_NAME_MAX];

    (void)state;
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "node-%d", i);
        mfs_history_put_node(h, NOON + (i < 10 ? 0 : 60), name, f);
    }
    assert_int_equal(h->nnodes, MFS_HISTORY_NODES);
    assert_string_equal(h->node[0].name, "node-0");
    mfs_history_put_node(h, NOON + 3600, "late", f); /* node-0 has been silent for an hour */
    assert_string_equal(h->node[0].name, "late");
    mfs_history_destroy(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_means_and_gaps), cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_jumps),          cmocka_unit_test(test_json),
        cmocka_unit_test(test_restart),        cmocka_unit_test(test_stages),
        cmocka_unit_test(test_torn),           cmocka_unit_test(test_many_nodes)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
