/* What the Local Manager does about terms, and about processes that die while they have some: the
 * test is cm, and partition 0's process is taken for the replica of partition 1's.
 * ctest: timeout=120 waits */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "lm_world.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "store/admin/admin.h"
#include "store/args.h"
#include "store/reply.h"

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
    return lm_world_has_event(w, "redis-died: partition 1:");
}

static bool redis_revival_told(struct lm_world *w)
{
    return lm_world_has_event(w, "redis-revived: partition 1:");
}

static void begin_termed(struct lm_world *w)
{
    struct mfs_msg_term on = term_of(w, true);

    assert_int_equal(lm_world_assign(w), 0);
    assert_int_equal(lm_world_push_table(w), 0);
    lm_world_command(w, "SET", "key", 3, "value");
    assert_int_not_equal(lm_world_ask(w, MFS_MSG_TERM, &on), 0); /* it stays noted */
}

static void kill_redis(struct lm_world *w)
{
    struct mfs_proc p = lm_world_redis(w, 1);

    assert_int_equal(mfs_proc_kill(&p, SIGKILL), 0);
}

/* It serves by terms, or was to, and dies: that is the replica's affair … */
static void kill_termed(struct lm_world *w)
{
    begin_termed(w);
    kill_redis(w);
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

static bool is_left_to_its_replica(struct lm_world *w)
{
    struct mfs_state s = lm_world_state(w);
    bool is = false;

    for (uint32_t i = 0; i < s.nredis; i++)
        is |= s.redis[i].index == 1 && s.redis[i].lost && s.redis[i].termed;
    mfs_schema_clear(&mfs_state_schema, &s);
    return is;
}

static bool death_told(struct lm_world *w)
{
    return w->died.index == 1 && !strcmp(w->died.password, w->part[1].password);
}

/* The join has named it, so nobody would have its replica follow it. */
static void test_one_that_dies_before_the_join_is_answered_is_told(void **state)
{
    struct lm_world *w = *state;

    begin_termed(w);
    w->slow_join = true;
    mfs_conn_close(w->lm);
    w->lm = NULL;
    assert_true(lm_world_wait(w, lm_world_joined, 10));
    assert_int_equal(w->join.nassigned, LM_WORLD_PARTS);
    kill_redis(w);
    assert_true(lm_world_wait(w, is_left_to_its_replica, 5));
    assert_false(death_told(w));
    lm_world_answer_join(w);
    assert_true(lm_world_wait(w, death_told, 5));
}

/* The journal is in memory as a rule, and nobody counts it any more. */
static void test_what_it_leaves_goes_when_the_replica_has_taken_over(void **state)
{
    struct lm_world *w = *state;
    struct mfs_msg_release m = {.index = 1};
    char journal[128];

    kill_termed(w);
    snprintf(journal, sizeof journal, "%s/node-%d/redis-1.journal", w->dir, LM_WORLD_NODE);
    assert_int_equal(access(journal, F_OK), 0);
    mfs_text_copy(m.password, sizeof m.password, w->part[1].password);
    assert_int_equal(lm_world_ask(w, MFS_MSG_RELEASE, &m), 0);
    assert_int_not_equal(access(journal, F_OK), 0);
    mfs_random_hex(w->part[1].password, 32);
    assert_int_equal(lm_world_assign(w), 0); /* another one may come */
}

/* ---- words that come late -------------------------------------------------------------------- */

/* Partition 1 serves, and is to by terms of that replica … */
static struct mfs_msg_term prepare_terms(struct lm_world *w)
{
    struct mfs_msg_term on = term_of(w, true);
    char word[MFS_MAC_TEXT];
    struct mfs_admin *admin;
    struct mfs_err err;

    assert_int_equal(lm_world_assign(w), 0);
    assert_int_equal(lm_world_push_table(w), 0);
    on.replica_port = w->assigned[0].port;
    mfs_text_copy(on.replica_admin_password, sizeof on.replica_admin_password,
                  w->part[0].admin_password);
    assert_int_equal(mfs_admin_copy_word(on.replica_admin_password, word), 0);
    assert_int_equal(mfs_admin_open(&admin, w->assigned[1].unix_path, NULL, 0,
                                    w->part[1].admin_password, 5 * MFS_SEC, &err),
                     0);
    assert_int_equal(mfs_admin_admit(admin, word, true, &err), 0);
    mfs_admin_close(admin);
    return on;
}

/* … and does. */
static struct mfs_msg_term begin_terms(struct lm_world *w)
{
    struct mfs_msg_term on = prepare_terms(w);

    assert_int_equal(lm_world_ask(w, MFS_MSG_TERM, &on), 0);
    return on;
}

static bool serves_alone(struct lm_world *w)
{
    struct mfs_admin *admin;
    struct mfs_args args;
    struct mfs_err err;
    struct mfs_cmd cmd;
    bool alone;

    assert_int_equal(mfs_admin_open(&admin, w->assigned[1].unix_path, NULL, 0,
                                    w->part[1].admin_password, 5 * MFS_SEC, &err),
                     0);
    mfs_args_init(&args, "mfs_term");
    cmd = mfs_args_cmd(&args, 1);
    assert_int_equal(mfs_admin_call(admin, &cmd, &err), 0);
    alone = !mfs_reply_int(mfs_reply_at(cmd.reply, 0));
    mfs_cmds_fini(&cmd, 1);
    mfs_admin_close(admin);
    return alone;
}

/* What was meant for a replica that has been given up since leaves the one that is there: it may
 * take over, and then nobody else may serve. */
static void test_a_late_word_about_a_former_replica_changes_nothing(void **state)
{
    struct lm_world *w = *state;
    struct mfs_msg_term late = term_of(w, true);

    begin_terms(w);
    assert_false(serves_alone(w));
    assert_int_not_equal(lm_world_ask(w, MFS_MSG_TERM, &late), 0);
    assert_false(serves_alone(w));
}

/* Without a consent it serves without terms again, as before. */
static void test_terms_that_fail_end_only_themselves(void **state)
{
    struct lm_world *w = *state;
    struct mfs_msg_term on = begin_terms(w), off = term_of(w, false);

    on.replica_port = 1; /* nobody consents there */
    assert_int_equal(lm_world_ask(w, MFS_MSG_TERM, &on), -ETIMEDOUT);
    assert_true(serves_alone(w));
    assert_int_equal(lm_world_ask(w, MFS_MSG_TERM, &off), 0);
}

/* ---- what can't be written down -------------------------------------------------------------- */

static bool noted_as_termed(const struct lm_world *w)
{
    struct mfs_state s = lm_world_state(w);
    bool is = false;

    for (uint32_t i = 0; i < s.nredis; i++)
        is |= s.redis[i].index == 1 && s.redis[i].termed;
    mfs_schema_clear(&mfs_state_schema, &s);
    return is;
}

/* A Local Manager that comes after this one would start the process anew beside its replica. */
static void test_terms_begin_when_that_is_noted(void **state)
{
    struct lm_world *w = *state;
    struct mfs_msg_term on = prepare_terms(w), off = term_of(w, false);

    lm_world_hinder(w, true);
    assert_int_equal(lm_world_ask(w, MFS_MSG_TERM, &on), -EBUSY);
    assert_non_null(strstr(w->err.msg, "lm.json"));
    assert_true(serves_alone(w));
    lm_world_hinder(w, false);
    assert_false(noted_as_termed(w));
    assert_int_equal(lm_world_ask(w, MFS_MSG_TERM, &on), 0);
    assert_true(noted_as_termed(w));
    assert_false(serves_alone(w));
    assert_int_equal(lm_world_ask(w, MFS_MSG_TERM, &off), 0);
}

/* It would leave one that dies to a replica that is no more. */
static void test_terms_end_when_that_is_noted(void **state)
{
    struct lm_world *w = *state;
    struct mfs_msg_term off = term_of(w, false);

    begin_terms(w);
    lm_world_hinder(w, true);
    assert_int_equal(lm_world_ask(w, MFS_MSG_TERM, &off), -EBUSY);
    assert_true(noted_as_termed(w));
    lm_world_hinder(w, false);
    assert_int_equal(lm_world_ask(w, MFS_MSG_TERM, &off), 0);
    assert_false(noted_as_termed(w));
}

static void test_another_process_comes_when_that_is_noted(void **state)
{
    struct lm_world *w = *state;
    struct mfs_msg_term off = term_of(w, false);

    kill_termed(w);
    lm_world_hinder(w, true);
    assert_int_equal(lm_world_ask(w, MFS_MSG_TERM, &off), -EBUSY);
    assert_non_null(strstr(w->err.msg, "lm.json"));
    lm_world_wait(w, redis_revival_told, 1);
    assert_false(redis_revival_told(w));
    lm_world_hinder(w, false);
    end_terms(w);
}

static bool writing_again_told(struct lm_world *w)
{
    return lm_world_has_event(w, "state-written: ");
}

static void test_what_could_not_be_noted_is_later(void **state)
{
    struct lm_world *w = *state;
    struct mfs_proc before, after;

    assert_int_equal(lm_world_assign(w), 0);
    before = lm_world_redis(w, 1);
    lm_world_hinder(w, true);
    assert_int_equal(mfs_proc_kill(&before, SIGKILL), 0);
    assert_true(lm_world_wait(w, redis_revival_told, 10));
    assert_true(lm_world_has_event(w, "state-unwritable: "));
    lm_world_hinder(w, false);
    assert_true(lm_world_wait(w, writing_again_told, 5));
    after = lm_world_redis(w, 1);
    assert_int_not_equal(after.pid, before.pid);
    assert_true(mfs_proc_alive(&after));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, lm_world_setup, lm_world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_one_whose_replica_is_given_up_is_replaced),
        TEST(test_so_it_is_when_lm_was_killed_meanwhile),
        TEST(test_one_that_dies_before_the_join_is_answered_is_told),
        TEST(test_what_it_leaves_goes_when_the_replica_has_taken_over),
        TEST(test_a_late_word_about_a_former_replica_changes_nothing),
        TEST(test_terms_that_fail_end_only_themselves),
        TEST(test_terms_begin_when_that_is_noted),
        TEST(test_terms_end_when_that_is_noted),
        TEST(test_another_process_comes_when_that_is_noted),
        TEST(test_what_could_not_be_noted_is_later),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
