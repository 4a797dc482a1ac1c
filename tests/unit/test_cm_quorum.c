/* What half of the nodes keep, and what more than half of them elect, always share a node: for
 * every two sets of voters, as they are, while one follows the other, and after that. ctest: single
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "cm/ask/vote.h"
#include "cm/nodes/quorum.h"

#define NODES   5U
#define SUBSETS (1U << NODES)

struct world {
    struct mfs_cm cm;
    struct mfs_node node[NODES], *nodes[NODES];
    struct mfs_cm_node record[NODES];
};

static void setup(struct world *w)
{
    memset(w, 0, sizeof *w);
    w->cm.nodes = w->nodes;
    w->cm.state.node = w->record;
    w->cm.state.nnodes = NODES;
    for (uint32_t i = 0; i < NODES; i++) {
        w->nodes[i] = &w->node[i];
        w->node[i].record = &w->record[i];
    }
}

static uint32_t votes_in(uint32_t i, uint32_t now, uint32_t before)
{
    return (now >> i & 1 ? MFS_VOTES_NOW : 0) | (before >> i & 1 ? MFS_VOTES_BEFORE : 0);
}

static bool held(struct world *w, uint32_t now, uint32_t before, uint32_t by)
{
    for (uint32_t i = 0; i < NODES; i++) {
        w->record[i].votes = votes_in(i, now, before);
        w->node[i].copy_held = by >> i & 1 ? 7 : 6;
    }
    return mfs_quorum_has(&w->cm, 7);
}

static bool elected(uint32_t now, uint32_t before, uint32_t by)
{
    struct mfs_ballot b = {0};

    b.now.all = (uint32_t)__builtin_popcount(now);
    b.now.granted = (uint32_t)__builtin_popcount(now & by);
    b.before.all = (uint32_t)__builtin_popcount(before);
    b.before.granted = (uint32_t)__builtin_popcount(before & by);
    return mfs_ballot_won(&b);
}

/* A state with these sets is held by `by`: may nodes that do not have it elect a cm, knowing sets
 * of before? */
static void check(struct world *w, uint32_t now, uint32_t before, uint32_t by)
{
    uint32_t others = (SUBSETS - 1) & ~by;

    if (!held(w, now, before, by))
        return;
    if (elected(now, before, others))
        fail_msg("sets %x and before %x, held by %x", now, before, by);
    if (before && elected(before, before, others)) /* they have not heard of the change */
        fail_msg("set %x after %x, held by %x", now, before, by);
    if (before && elected(now, now, others)) /* the next step: the change is over */
        fail_msg("set %x settled after %x, held by %x", now, before, by);
}

static void test_held_and_elected_share_a_node(void **state)
{
    struct world w;

    (void)state;
    setup(&w);
    for (uint32_t now = 1; now < SUBSETS; now++)
        for (uint32_t before = 0; before < SUBSETS; before++)
            for (uint32_t by = 0; by < SUBSETS; by++)
                check(&w, now, before, by);
}

static void test_one_of_two_is_enough_to_act_and_too_few_to_elect(void **state)
{
    struct world w;

    (void)state;
    setup(&w);
    assert_true(held(&w, 3, 3, 1));
    assert_false(held(&w, 3, 3, 0));
    assert_false(elected(3, 3, 2));
    assert_true(elected(3, 3, 3));
    assert_false(held(&w, 7, 7, 1)); /* of three: two */
    assert_true(held(&w, 7, 7, 5));
    assert_false(elected(0, 0, 31)); /* nobody has ever had a vote */
}

static void test_a_raised_term_takes_more_than_half(void **state)
{
    struct world w;

    (void)state;
    setup(&w);
    w.cm.state.raised = true;
    assert_false(held(&w, 3, 3, 1));
    assert_false(held(&w, 15, 15, 3));
    assert_true(held(&w, 15, 15, 7));
    for (uint32_t by = 0; by < SUBSETS; by++) /* so no two of them are held */
        assert_false(held(&w, 31, 31, by) && held(&w, 31, 31, (SUBSETS - 1) & ~by));
}

static void test_what_is_lost_does_not_count(void **state)
{
    struct world w;

    (void)state;
    setup(&w);
    assert_true(held(&w, 7, 7, 3));
    w.node[0].forgetful = true;
    assert_false(held(&w, 7, 7, 3));
    w.node[0].forgetful = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_held_and_elected_share_a_node),
        cmocka_unit_test(test_one_of_two_is_enough_to_act_and_too_few_to_elect),
        cmocka_unit_test(test_a_raised_term_takes_more_than_half),
        cmocka_unit_test(test_what_is_lost_does_not_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
