/* The lower bounds of a change of nodes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cm/plan/lower_bound.h"

#define GIB (1024.0 * 1024 * 1024)

static void near(double got, double want)
{
    assert_true(fabs(got - want) <= 1e-9 * fmax(1, fabs(want)));
}

static void nodes_that_come(void **state)
{
    (void)state;
    near(mfs_lower_bound_grow(100, 10, 2, 2), 5); /* half of the data, two links at once */
    near(mfs_lower_bound_grow(100, 10, 4, 1), 8); /* the new node's link takes in a fifth of 400 */
    near(mfs_lower_bound_grow(100, 10, 1, 4), 8); /* the old node's link gives four fifths of 100 */
    near(mfs_lower_bound_grow(GIB, GIB / 8, 3, 0), 0);
    near(mfs_lower_bound_grow(0, 10, 3, 2), 0);
    assert_true(isinf(mfs_lower_bound_grow(1, 0, 3, 2)));
}

static void nodes_that_go(void **state)
{
    (void)state;
    near(mfs_lower_bound_shrink(100, 10, 8, 4), 10);
    near(mfs_lower_bound_shrink(100, 10, 4, 1), 10); /* a leaving node's link: all it has */
    near(mfs_lower_bound_shrink(100, 10, 4, 3), 30); /* the last node takes three times 100 in */
    near(mfs_lower_bound_shrink(100, 10, 4, 0), 0);
    assert_true(isinf(mfs_lower_bound_shrink(100, 10, 4, 4)));
    near(mfs_lower_bound_shrink(0, 10, 4, 4), 0);
}

/* The formulas are what given moves between equal nodes come to. */
static void moves_agree_with_the_formulas(void **state)
{
    struct mfs_scale_move m[64];
    size_t n = 0;

    (void)state;
    for (uint32_t from = 0; from < 4; from++) /* 4 nodes of 70 bytes, 3 come: 30 each go */
        for (uint32_t to = 4; to < 7; to++)
            m[n++] = (struct mfs_scale_move){(uint32_t)n, from, to, 10};
    near(mfs_lower_bound_moves(m, n, 2), mfs_lower_bound_grow(70, 2, 4, 3));
    n = 0;
    for (uint32_t from = 0; from < 4; from++) /* 6 nodes of 70, the first four go */
        for (uint32_t k = 0; k < 7; k++)
            m[n++] = (struct mfs_scale_move){(uint32_t)n, from, 4 + (from + k) % 2, 10};
    near(mfs_lower_bound_moves(m, n, 2), mfs_lower_bound_shrink(70, 2, 6, 4));
    near(mfs_lower_bound_moves(m, 0, 2), 0);
    assert_true(isinf(mfs_lower_bound_moves(m, n, 0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_that_come),
        cmocka_unit_test(nodes_that_go),
        cmocka_unit_test(moves_agree_with_the_formulas),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
