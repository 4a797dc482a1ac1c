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

/* What a number says, and where bytes of such a file are. */
static void test_sizes(void **state)
{
    static const uint32_t bytes[] = {4096,       124 << 10,  252 << 10,  508 << 10,
                                     1020 << 10, 2044 << 10, 4092 << 10, 8188 << 10};

    (void)state;
    for (unsigned which = 0; which <= MFS_INO_STRIPE; which++) {
        uint64_t ino = mfs_ino_make(5, 77) | MFS_INO_TOGETHER | MFS_INO_ALONE |
                       (uint64_t)which << MFS_INO_STRIPE_AT;
        uint32_t size = mfs_ino_stripe_size(ino, 4096);
        uint64_t last = MFS_FILE_SIZE_MAX(size);
        struct mfs_piece p;

        assert_int_equal(mfs_ino_stripe(ino), which);
        assert_int_equal(size, bytes[which]);
        assert_int_equal(mfs_ino_home(ino), 5);
        assert_int_equal(mfs_ino_seq(ino), 77);
        for (uint64_t n = 1; n < 1000; n *= 3) {
            p = mfs_geometry_piece(n * size - 1, 2, size);
            assert_true(p.stripe == n - 1 && p.off == size - 1 && p.len == 1);
            p = mfs_geometry_piece(n * size, size + 1, size);
            assert_true(p.stripe == n && p.off == 0 && p.len == size);
            assert_int_equal(mfs_geometry_stripes(n * size, size), n);
            assert_int_equal(mfs_geometry_stripes(n * size + 1, size), n + 1);
        }
        p = mfs_geometry_piece(last - 1, 1, size);
        assert_true(p.stripe == UINT32_MAX - 1 && p.off == size - 1 && p.len == 1);
    }
}

/* A buffer is never larger than the stripe that its bytes are of. */
static void test_buf_sizes(void **state)
{
    static const size_t usual[] = {4096, 8192, 65536, 200 << 10, MFS_STRIPE_SIZE_DEFAULT, 16 << 20};
    struct mfs_bufs *bufs;

    (void)state;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        assert_int_equal(mfs_bufs_create(&bufs, usual[i], SIZE_MAX), 0);
        for (unsigned which = 0; which <= MFS_INO_STRIPE; which++) {
            size_t stripe = which ? mfs_stripe_bytes(which) : usual[i];

            for (size_t len = 1; len <= stripe; len += len < stripe / 3 ? len : stripe / 3) {
                size_t size = mfs_bufs_size(len, stripe);
                void *buf = mfs_bufs_get(bufs, size);

                assert_true(size >= len && size <= stripe);
                memset(buf, 1, size);
                mfs_bufs_put(bufs, buf, size);
                assert_ptr_equal(mfs_bufs_get(bufs, size), buf);
                mfs_bufs_put(bufs, buf, size);
            }
        }
        mfs_bufs_destroy(bufs);
    }
}

static void test_bufs(void **state)
{
    const size_t stripe = MFS_STRIPE_SIZE_DEFAULT;
    struct mfs_bufs *bufs;
    void *a, *b;

    (void)state;
    assert_int_equal(mfs_bufs_size(1, stripe), 4096);
    assert_int_equal(mfs_bufs_size(4097, stripe), 16384);
    assert_int_equal(mfs_bufs_size(300000, stripe), stripe);
    assert_int_equal(mfs_bufs_create(&bufs, stripe, 1 << 20), 0);
    a = mfs_bufs_get(bufs, 4096);
    mfs_bufs_put(bufs, a, 4096);
    b = mfs_bufs_get(bufs, 4096);
    assert_ptr_equal(a, b);
    mfs_bufs_put(bufs, b, 4096);
    a = mfs_bufs_get(bufs, stripe);
    memset(a, 1, stripe);
    mfs_bufs_put(bufs, a, stripe);
    mfs_bufs_destroy(bufs);
    mfs_bufs_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),    cmocka_unit_test(test_stripes),
        cmocka_unit_test(test_ranges),    cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_buf_sizes), cmocka_unit_test(test_bufs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
