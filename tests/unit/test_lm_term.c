/* What the Local Manager does about processes that die while they have terms: the test is cm.
 * ctest: timeout=120 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <cmocka.h>

#include "lm_world.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"

/* ---- processes that die ---------------------------------------------------------------------- */

/* With a replica that is nowhere. */
static struct mfs_msg_term term_of(const struct lm_world *w, bool on)
{
    struct mfs_msg_term m = {.index = 1, .on = on};

    mfs_text_copy(m.password, sizeof m.password, w->part[1].password);
    if (on) {
        mfs_text_copy(m.replica_host, sizeof m.replica_host, "127.0.0.1");
        m.replica_port = 1;
        mfs_random_hex(m.replica_admin_password, 32);
    }
    return m;
}

static bool redis_death_told(struct lm_world *w)
{
    return strstr(w->events, "redis-died: partition 1:") != NULL;
}

static bool redis_revival_told(struct lm_world *w)
{
    return strstr(w->events, "redis-revived: partition 1:") != NULL;
}

/* It serves by terms, or was to, and dies: that is the replica's affair … */
static void kill_termed(struct lm_world *w)
{
    struct mfs_msg_term on = term_of(w, true);
    struct mfs_proc p;

    assert_int_equal(lm_world_assign(w), 0);
    assert_int_equal(lm_world_push_table(w), 0);
    lm_world_command(w, "SET", "key", 3, "value");
    lm_world_ask(w, MFS_MSG_TERM, &on);
    p = lm_world_redis(w, 1);
    assert_int_equal(mfs_proc_kill(&p, SIGKILL), 0);
    assert_true(lm_world_wait(w, redis_death_told, 5));
    lm_world_wait(w, redis_revival_told, 1);
    assert_false(redis_revival_told(w));
}

/* … until cm has given that up. */
static void end_terms(struct lm_world *w)
{
    struct mfs_msg_term off = term_of(w, false);
    int64_t until = mfs_clock_mono() + 15 * MFS_SEC;
    int rc;

    while ((rc = lm_world_ask(w, MFS_MSG_TERM, &off)) == -EBUSY && mfs_clock_mono() < until)
        mfs_clock_sleep(50 * MFS_MSEC);
    assert_int_equal(rc, 0);
    assert_true(lm_world_wait(w, redis_revival_told, 5));
    assert_int_equal(lm_world_command(w, "EXISTS", "key", 3, NULL), 1);
}

static void test_one_whose_replica_is_given_up_is_replaced(void **state)
{
    struct lm_world *w = *state;

    kill_termed(w);
    end_terms(w);
}

static void test_so_it_is_when_lm_was_killed_meanwhile(void **state)
{
    struct lm_world *w = *state;

    kill_termed(w);
    lm_world_kill_lm(w);
    lm_world_start_lm(w);
    assert_true(lm_world_wait(w, lm_world_joined, 10));
    assert_int_equal(w->join.nassigned, 1);
    end_terms(w);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, lm_world_setup, lm_world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_one_whose_replica_is_given_up_is_replaced),
        TEST(test_so_it_is_when_lm_was_killed_meanwhile),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
