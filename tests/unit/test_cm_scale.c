/* What becomes of a node that is to leave, with cm's own code and the test in the place of two
 * Local Managers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "cm/change/failback.h"
#include "cm/change/scale/scale.h"
#include "migrate_world.h"

static bool goes_or_is_told(void *world)
{
    const struct migrate_world *w = world;

    return w->done || !strcmp(w->stage.cm.state.scale.step, MFS_SCALE_GO);
}

static void scaled(void *arg, const struct mfs_err *err, const struct mfs_scale_report *r)
{
    struct migrate_world *w = arg;

    (void)r;
    w->done = true;
    w->err = err ? *err : (struct mfs_err){0};
}

/* Each node has a partition, and has told how much it holds. */
static void fill(struct migrate_world *w)
{
    struct mfs_cm *cm = &w->stage.cm;

    cm->state.part[1].node = cm->state.table->part[1].node = 1;
    for (uint32_t i = 0; i < MIGRATE_WORLD_NODES; i++) {
        cm->part_bytes[i] = 100;
        cm->nodes[i]->reported = true;
        cm->nodes[i]->lacking = 0;
        cm->nodes[i]->last.memory_capacity = 1 << 30;
    }
}

static void leave(struct migrate_world *w)
{
    struct mfs_msg_scale what = {.how = "to", .n = 1, .migration = "hot"};
    struct mfs_err err = {0};

    w->source = 1;
    if (mfs_scale_begin(&w->stage.cm, &what, "test", scaled, w, &err))
        fail_msg("%s", err.msg);
}

static unsigned copies(const struct migrate_world *w)
{
    unsigned n = 0;

    for (const char *at = w->log; (at = strstr(at, "receive0 ")); at++)
        n++;
    return n;
}

/* It is empty, and about to end or gone. */
static void check_it_leaves(const struct migrate_world *w)
{
    const struct mfs_cm_state *s = &w->stage.cm.state;

    assert_int_equal(w->err.code, 0);
    assert_int_equal(mfs_cm_state_count(s, 0), MIGRATE_WORLD_PARTS);
    if (w->done)
        assert_int_equal(s->nnodes, 1);
    else
        assert_string_equal(s->node[1].transition, MFS_NODE_LEAVING);
}

static void what_it_has_goes_elsewhere(void **state)
{
    struct migrate_world *w = *state;

    fill(w);
    leave(w);
    migrate_world_wait(w, goes_or_is_told);
    check_it_leaves(w);
    assert_int_equal(copies(w), 1);
    mfs_scale_fini(&w->stage.cm);
}

/* The plan knew nothing of that one. */
static void so_does_what_it_gets_meanwhile(void **state)
{
    struct migrate_world *w = *state;

    fill(w);
    w->fails_over = true;
    leave(w);
    migrate_world_wait(w, goes_or_is_told);
    assert_false(w->fails_over);
    check_it_leaves(w);
    assert_int_equal(copies(w), 2);
    mfs_scale_fini(&w->stage.cm);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, migrate_world_setup, migrate_world_teardown)

/* After failovers: only when much is out of place. */
static void shares_are_made_even_when_they_are_far_apart(void **state)
{
    static const uint32_t planned[] = {8, 8, 8, 8}, few[] = {1, 1};
    static const uint32_t faults[] = {23, 9, 0, 0}, one_came_back[] = {11, 11, 10, 0};
    static const uint32_t nearly[] = {11, 8, 7, 6}, together[] = {2, 0};

    (void)state;
    assert_true(mfs_failback_due(faults, planned, 4));
    assert_true(mfs_failback_due(one_came_back, planned, 4));
    assert_false(mfs_failback_due(nearly, planned, 4));
    assert_false(mfs_failback_due(planned, planned, 4));
    assert_false(mfs_failback_due(together, few, 2)); /* not worth a copy */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_it_has_goes_elsewhere),
        TEST(so_does_what_it_gets_meanwhile),
        cmocka_unit_test(shares_are_made_even_when_they_are_far_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
