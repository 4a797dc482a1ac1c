/* Moves of partitions when what happens can't be written down: by a target's Local Manager, which
 * is the test, or by cm, whose own code runs. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "migrate_world.h"

static void has_moved(const struct migrate_world *w)
{
    const struct mfs_cm_state *s = &w->stage.cm.state;

    assert_int_equal(w->err.code, 0);
    assert_int_equal(s->part[0].node, 1);
    assert_int_equal(s->table->part[0].node, 1);
}

/* ---- by the target --------------------------------------------------------------------------- */

/* The source's process has died. As long as the target says that it is busy it has the copy. */
static void be_busy(struct migrate_world *w)
{
    w->peer[1].fail[MFS_MSG_TAKE][0] = -EINVAL;
    for (unsigned i = 1; i < 4; i++)
        w->peer[1].fail[MFS_MSG_TAKE][i] = -EBUSY;
    migrate_world_move(w);
    migrate_world_wait(w, migrate_world_is_calm);
}

static void the_last_copy_is_not_given_up(void **state)
{
    struct migrate_world *w = *state;

    w->peer[0].fail[MFS_MSG_FENCE][0] = -ENOENT;
    be_busy(w);
    assert_string_equal(w->log, "receive1 take1 fence0 release0 force1 force1 force1 force1 "
                                "table0 table1 release0 ");
    has_moved(w);
}

static void nor_is_one_that_has_more_than_the_revived_source(void **state)
{
    struct migrate_world *w = *state;

    w->revived = true;
    be_busy(w);
    assert_string_equal(w->log, "receive1 take1 fence0 match1 match1 match1 match1 "
                                "table0 table1 release0 ");
    has_moved(w);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, migrate_world_setup, migrate_world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_last_copy_is_not_given_up),
        TEST(nor_is_one_that_has_more_than_the_revived_source),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
