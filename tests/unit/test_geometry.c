/* The pure parts of src/data: stripe arithmetic and interval sets; and the buffers. */
#include "data_test.h"

#include "base/ranges.h"
#include "data/workers/bufs.h"

static void test_pieces(void **state)
{
    struct mfs_piece p;

    (void)state;
    p = mfs_geometry_piece(0, 1, 4096);
    assert_true(p.stripe == 0 && p.off == 0 && p.len == 1);
    p = mfs_geometry_piece(4095, 2, 4096);
    assert_true(p.stripe == 0 && p.off == 4095 && p.len == 1);
    p = mfs_geometry_piece(4096, 1ULL << 40, 4096);
    assert_true(p.stripe == 1 && p.off == 0 && p.len == 4096);
    p = mfs_geometry_piece(MFS_FILE_SIZE_MAX(4096U) - 1, 1, 4096);
    assert_true(p.stripe == UINT32_MAX - 1 && p.off == 4095 && p.len == 1);
}

static void test_stripes(void **state)
{
    (void)state;
    assert_int_equal(mfs_geometry_stripes(0, 4096), 0);
    assert_int_equal(mfs_geometry_stripes(1, 4096), 1);
    assert_int_equal(mfs_geometry_stripes(4096, 4096), 1);
    assert_int_equal(mfs_geometry_stripes(4097, 4096), 2);
    assert_int_equal(mfs_geometry_stripes(MFS_FILE_SIZE_MAX(4096U), 4096), UINT32_MAX);
}

#define SPACE 200U

static void check_ranges(const struct mfs_ranges *r, const bool *model)
{
    uint32_t bytes = 0, i = 0;

    for (uint32_t pos = 0; pos < SPACE; pos++) {
        bool in = i < r->n && pos >= r->v[i].lo;

        assert_true(in == model[pos]);
        bytes += in;
        if (i < r->n && pos + 1 == r->v[i].hi) {
            i++;
            assert_true(i == r->n || r->v[i].lo > pos + 1);
        }
    }
    assert_int_equal(i, r->n);
    assert_int_equal(mfs_ranges_bytes(r), bytes);
}

static void test_ranges(void **state)
{
    uint64_t seed = rnd_seed();

    (void)state;
    for (unsigned round = 0; round < 300; round++) {
        bool model[SPACE] = {false};
        struct mfs_ranges r, moved;

        mfs_ranges_init(&r);
        mfs_ranges_init(&moved);
        for (unsigned step = 0; step < 60; step++) {
            uint32_t lo = (uint32_t)rnd_below(&seed, SPACE);
            uint32_t hi = lo + (uint32_t)rnd_below(&seed, 12);

            hi = hi < SPACE ? hi : SPACE;
            if (rnd_below(&seed, 20) == 0) {
                mfs_ranges_cut(&r, lo);
                memset(model + lo, 0, SPACE - lo);
            } else if (rnd_below(&seed, 4) == 0) {
                assert_int_equal(mfs_ranges_take(&r, lo, hi), 0);
                memset(model + lo, 0, hi - lo);
            } else {
                assert_int_equal(mfs_ranges_add(&r, lo, hi), 0);
                memset(model + lo, 1, hi - lo);
            }
            check_ranges(&r, model);
            if (hi > lo && step % 2)
                assert_true(mfs_ranges_covers(&r, lo, hi) == !memchr(model + lo, 0, hi - lo));
        }
        mfs_ranges_move(&moved, &r);
        check_ranges(&moved, model);
        assert_int_equal(r.n, 0);
        mfs_ranges_fini(&moved);
    }
}

static void test_bufs(void **state)
{
    struct mfs_bufs *bufs;
    void *a, *b;

    (void)state;
    assert_int_equal(mfs_bufs_create(&bufs, MFS_STRIPE_SIZE_DEFAULT, 1 << 20), 0);
    assert_int_equal(mfs_bufs_size(bufs, 1), 4096);
    assert_int_equal(mfs_bufs_size(bufs, 4097), 16384);
    assert_int_equal(mfs_bufs_size(bufs, 300000), MFS_STRIPE_SIZE_DEFAULT);
    a = mfs_bufs_get(bufs, 100);
    mfs_bufs_put(bufs, a, 4096);
    b = mfs_bufs_get(bufs, 4000);
    assert_ptr_equal(a, b);
    mfs_bufs_put(bufs, b, 4000);
    a = mfs_bufs_get(bufs, MFS_STRIPE_SIZE_DEFAULT);
    memset(a, 1, MFS_STRIPE_SIZE_DEFAULT);
    mfs_bufs_put(bufs, a, MFS_STRIPE_SIZE_DEFAULT);
    mfs_bufs_destroy(bufs);
    mfs_bufs_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_stripes),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_bufs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
