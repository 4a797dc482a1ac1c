/* Which move begins next: bounds on what runs at once, memory, and the node that everyone waits
 * for. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cm/plan/move_order.h"

#define G (1ULL << 30)

static const struct mfs_order_limits limits = {.per_source = 2, .per_target = 2, .all = 4};

static int next(struct mfs_order_node *n, uint32_t nn, const struct mfs_order_move *m, uint32_t nm)
{
    return mfs_order_next(n, nn, m, nm, &limits);
}

static void nothing_to_do(void **state)
{
    struct mfs_order_node n[2] = {{.capacity = G, .up = true}, {.capacity = G, .up = true}};
    struct mfs_order_move m[1] = {{.from = 0, .to = 1, .bytes = 1, .state = MFS_ORDER_OVER}};

    (void)state;
    assert_int_equal(next(n, 2, m, 0), -1);
    assert_int_equal(next(n, 2, m, 1), -1);
    m[0].state = MFS_ORDER_HELD;
    assert_int_equal(next(n, 2, m, 1), -1);
    m[0].state = MFS_ORDER_WAITING;
    assert_int_equal(next(n, 2, m, 1), 0);
    n[1].up = false;
    assert_int_equal(next(n, 2, m, 1), -1);
}

static void one_hot_copy_leaves_a_full_source(void **state)
{
    struct mfs_order_node n[3] = {{.used = 6 * G / 10, .capacity = G, .up = true},
                                  {.capacity = G, .up = true},
                                  {.capacity = G, .up = true}};
    struct mfs_order_move m[2] = {{.from = 0, .to = 1, .bytes = 1, .state = MFS_ORDER_UNDER_WAY},
                                  {.from = 0, .to = 2, .bytes = 1}};

    (void)state;
    assert_int_equal(next(n, 3, m, 2), -1);
    m[1].cold = true; /* nothing is written while it is copied: no memory is needed */
    assert_int_equal(next(n, 3, m, 2), 1);
    m[1].cold = false;
    n[0].used = G / 2;
    assert_int_equal(next(n, 3, m, 2), 1);
}

static void bounds_hold(void **state)
{
    struct mfs_order_node n[8];
    struct mfs_order_move m[7];

    (void)state;
    for (int i = 0; i < 8; i++)
        n[i] = (struct mfs_order_node){.capacity = G, .up = true};
    for (uint32_t i = 0; i < 7; i++)
        m[i] = (struct mfs_order_move){
            .from = i, .to = i < 3 ? 7 : (i + 1) % 7, .bytes = 1, .state = MFS_ORDER_WAITING};
    m[0].state = m[1].state = MFS_ORDER_UNDER_WAY;
    assert_true(next(n, 8, m, 3) == -1); /* the third to node 7 */
    assert_true(next(n, 8, m, 7) > 2);
    m[3].state = m[4].state = MFS_ORDER_UNDER_WAY;
    assert_int_equal(next(n, 8, m, 7), -1); /* four in all */
}

/* Node 1 is full and gives to 2; what goes to 1 has to wait for that, and that comes first. */
static void a_full_target_gives_first(void **state)
{
    struct mfs_order_node n[3] = {{.used = 9 * G / 10, .capacity = G, .up = true},
                                  {.used = 9 * G / 10, .capacity = G, .up = true},
                                  {.capacity = G, .up = true}};
    struct mfs_order_move m[3] = {{.from = 0, .to = 1, .bytes = G / 4},
                                  {.from = 0, .to = 2, .bytes = G / 3},
                                  {.from = 1, .to = 2, .bytes = G / 4}};

    (void)state;
    assert_int_equal(next(n, 3, m, 3), 2);
    m[2].state = MFS_ORDER_UNDER_WAY;
    assert_int_equal(next(n, 3, m, 3), 1); /* never 0: there is no room yet */
    m[1].state = MFS_ORDER_OVER;
    assert_int_equal(next(n, 3, m, 3), -1);
    m[2].state = MFS_ORDER_OVER;
    n[1].used -= G / 4;
    assert_int_equal(next(n, 3, m, 3), 0);
}

static void what_is_promised_counts(void **state)
{
    struct mfs_order_node n[3] = {{.used = G / 10, .capacity = G, .up = true},
                                  {.used = G / 10, .capacity = G, .up = true},
                                  {.used = G / 2, .capacity = G, .up = true}};
    struct mfs_order_move m[2] = {
        {.from = 0, .to = 2, .bytes = G / 3, .state = MFS_ORDER_UNDER_WAY},
        {.from = 1, .to = 2, .bytes = G / 3}};

    (void)state;
    assert_int_equal(next(n, 3, m, 2), -1);
    m[1].bytes = G / 10;
    assert_int_equal(next(n, 3, m, 2), 1);
}

static void the_busiest_node_goes_first(void **state)
{
    struct mfs_order_node n[4];
    struct mfs_order_move m[4] = {{.from = 0, .to = 3, .bytes = 30},
                                  {.from = 1, .to = 2, .bytes = 20},
                                  {.from = 1, .to = 2, .bytes = 25},
                                  {.from = 1, .to = 2, .bytes = 10}};

    (void)state;
    for (int i = 0; i < 4; i++)
        n[i] = (struct mfs_order_node){.capacity = G, .up = true};
    assert_int_equal(next(n, 4, m, 4), 2);
}

/* A source whose copies are whole may send the next, but the memory that they bring is taken. */
static void what_is_copied_makes_way(void **state)
{
    struct mfs_order_node n[2] = {{.used = 6 * G / 10, .capacity = G, .up = true},
                                  {.used = G / 2, .capacity = G, .up = true}};
    struct mfs_order_move m[2] = {
        {.from = 0, .to = 1, .bytes = G / 4, .state = MFS_ORDER_UNDER_WAY},
        {.from = 0, .to = 1, .bytes = G / 5}};

    (void)state;
    assert_int_equal(next(n, 2, m, 2), -1);
    m[0].copied = true;
    assert_int_equal(next(n, 2, m, 2), 1);
    m[1].bytes = G / 3;
    assert_int_equal(next(n, 2, m, 2), -1);
}

/* Node 0 has most to give, but one copy leaves it already and none leaves node 1. */
static void no_link_is_idle(void **state)
{
    struct mfs_order_node n[4];
    struct mfs_order_move m[4] = {{.from = 0, .to = 2, .bytes = 50, .state = MFS_ORDER_UNDER_WAY},
                                  {.from = 0, .to = 2, .bytes = 40},
                                  {.from = 0, .to = 3, .bytes = 30},
                                  {.from = 1, .to = 3, .bytes = 20}};

    (void)state;
    for (int i = 0; i < 4; i++)
        n[i] = (struct mfs_order_node){.capacity = G, .up = true};
    assert_int_equal(next(n, 4, m, 4), 3);
    m[3].state = MFS_ORDER_OVER;
    assert_int_equal(next(n, 4, m, 4), 2);
}

/* Whatever the list, when each move in turn ends, all get their turn and no node overflows. */
static void all_get_their_turn(void **state)
{
    enum { NODES = 6, MOVES = 60 };
    struct mfs_order_node n[NODES];
    struct mfs_order_move m[MOVES];

    (void)state;
    for (unsigned seed = 1; seed <= 200; seed++) {
        int left = MOVES, i;

        srand(seed);
        for (int k = 0; k < NODES; k++)
            n[k] = (struct mfs_order_node){.used = 4000, .capacity = 8000, .up = true};
        for (int k = 0; k < MOVES; k++) {
            m[k] = (struct mfs_order_move){.from = (uint32_t)rand() % NODES,
                                           .bytes = (uint64_t)rand() % 60};
            m[k].to = (m[k].from + 1 + (uint32_t)rand() % (NODES - 1)) % NODES;
        }
        while ((i = next(n, NODES, m, MOVES)) >= 0) {
            uint64_t promised = n[m[i].to].promised;

            assert_int_equal(m[i].state, MFS_ORDER_WAITING);
            assert_true(n[m[i].to].used + promised + m[i].bytes <= n[m[i].to].capacity);
            m[i].state = MFS_ORDER_UNDER_WAY;
            if (rand() % 2 && next(n, NODES, m, MOVES) >= 0)
                continue;
            for (int k = 0; k < MOVES; k++) {
                if (m[k].state != MFS_ORDER_UNDER_WAY)
                    continue;
                m[k].state = MFS_ORDER_OVER;
                n[m[k].to].used += m[k].bytes;
                n[m[k].from].used -= m[k].bytes;
                left--;
            }
        }
        if (left)
            fail_msg("seed %u: %d moves never begin", seed, left);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_to_do),
        cmocka_unit_test(one_hot_copy_leaves_a_full_source),
        cmocka_unit_test(bounds_hold),
        cmocka_unit_test(a_full_target_gives_first),
        cmocka_unit_test(what_is_promised_counts),
        cmocka_unit_test(the_busiest_node_goes_first),
        cmocka_unit_test(what_is_copied_makes_way),
        cmocka_unit_test(no_link_is_idle),
        cmocka_unit_test(all_get_their_turn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
