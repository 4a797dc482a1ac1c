/* The arithmetic of a node's memory: what is promised adds up to the limit, for any limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cluster/capacity.h"

#define MIB MFS_CAPACITY_MIB
#define GIB (1024 * MIB)

/* From 16 MiB to 1 TiB, with odd ones between. */
#define EACH_LIMIT(limit) for (uint64_t limit = 16 * MIB; limit < 1024 * GIB; limit += limit / 7)

static void the_clients_share_is_bounded(void **state)
{
    (void)state;
    assert_int_equal(mfs_capacity_client(64 * MIB), 24 * MIB);
    assert_int_equal(mfs_capacity_client(1 * GIB), 128 * MIB);
    assert_int_equal(mfs_capacity_client(64 * GIB), 512 * MIB);
}

static void parts_add_up_to_the_limit(void **state)
{
    (void)state;
    EACH_LIMIT(limit)
    {
        uint64_t partitions = mfs_capacity_partitions(limit);

        assert_true(partitions >= limit / 4);
        if (limit >= mfs_capacity_least(1))
            assert_true(partitions + mfs_capacity_client(limit) < limit);
        for (uint32_t n = 1; n <= 1024; n *= 2) {
            assert_true(mfs_capacity_used(limit, n) >= limit / 8);
            if (limit >= mfs_capacity_least(n))
                assert_int_equal(mfs_capacity_used(limit, n) + n * MFS_CAPACITY_PROCESS,
                                 partitions);
        }
    }
}

/* What is not content is a small part where nodes are of a usual size. */
static void large_nodes_lose_little(void **state)
{
    (void)state;
    assert_true(mfs_capacity_used(4 * GIB, 8) > 4 * GIB / 100 * 83);
    assert_true(mfs_capacity_used(64 * GIB, 32) > 64 * GIB / 100 * 95);
}

static void more_is_never_less(void **state)
{
    uint64_t before = 0;

    (void)state;
    EACH_LIMIT(limit)
    {
        uint64_t used = mfs_capacity_used(limit, 8);

        assert_true(used > before);
        before = used;
    }
    assert_true(mfs_capacity_least(48) > mfs_capacity_least(8));
}

static uint64_t taken(const struct mfs_capacity_shares *s, uint32_t workers)
{
    return s->write_window + s->read_window + s->held + s->contents + s->heads +
           (uint64_t)s->kept * workers;
}

static void a_client_divides_no_more_than_it_has(void **state)
{
    (void)state;
    for (uint64_t memory = MFS_CAPACITY_CLIENT_LEAST; memory < 64 * GIB; memory += memory / 9) {
        struct mfs_capacity_shares s = {0};

        mfs_capacity_divide(memory, 32, &s);
        assert_true(taken(&s, 32) + s.files * 384ULL + s.names * 128ULL <= memory);
        assert_true(s.write_window >= 8 * MIB && s.read_window >= 4 * MIB);
        assert_true(s.contents >= MIB && s.heads > 0 && s.files >= 1000 && s.names >= 1000);
        assert_true(s.kept >= 65536 && s.kept <= MIB && !(s.kept & (s.kept - 1)));
    }
}

static void much_is_divided_as_ever(void **state)
{
    struct mfs_capacity_shares s = {0};

    (void)state;
    mfs_capacity_divide(GIB, 32, &s);
    assert_int_equal(s.write_window, 128 * MIB);
    assert_int_equal(s.read_window, 128 * MIB);
    assert_int_equal(s.contents, 128 * MIB);
    assert_int_equal(s.heads, 32 * MIB);
    assert_int_equal(s.kept, MIB);
    assert_int_equal(s.files, 65536);
    assert_int_equal(s.names, 1 << 18);
}

static void given_windows_stay(void **state)
{
    struct mfs_capacity_shares s = {.write_window = 64 * MIB};

    (void)state;
    mfs_capacity_divide(24 * MIB, 32, &s);
    assert_int_equal(s.write_window, 64 * MIB);
    assert_int_equal(s.read_window, 6 * MIB);
    assert_true(taken(&s, 32) <= 64 * MIB + 15 * MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_clients_share_is_bounded),
        cmocka_unit_test(parts_add_up_to_the_limit),
        cmocka_unit_test(large_nodes_lose_little),
        cmocka_unit_test(more_is_never_less),
        cmocka_unit_test(a_client_divides_no_more_than_it_has),
        cmocka_unit_test(much_is_divided_as_ever),
        cmocka_unit_test(given_windows_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
