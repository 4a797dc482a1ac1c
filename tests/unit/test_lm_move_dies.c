/* A partition comes to a node, and meanwhile its source, its target or the Local Manager dies, or
 * hangs. ctest: timeout=180 waits long=70 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "move_source.h"
#include "move_writer.h"

#include "base/clock.h"
#include "base/text.h"
#include "lm/copy/mover.h"
#include "store/args.h"
#include "store/reply.h"

#define PART MOVE_PART

static void test_the_source_dies_while_it_is_copied(void **state)
{
    struct move_source *s = *state;

    move_receive_slowly(s);
    move_await_some(s);
    mfs_proc_kill(&s->redis.proc, SIGKILL);
    move_await_failure(s, -EHOSTUNREACH, 3 * MFS_SEC);
    assert_true(lm_world_wait(s->w, move_no_copy_is_left, 5));
    s->take.force = true;
    assert_int_equal(lm_world_ask(s->w, MFS_MSG_TAKE, &s->take), -ENOENT);
}

static void test_the_target_dies_while_it_is_copied(void **state)
{
    struct move_source *s = *state;
    struct mfs_proc p;

    move_receive_slowly(s);
    move_await_some(s);
    p = move_copy_process(s);
    mfs_proc_kill(&p, SIGKILL);
    move_await_failure(s, -EIO, 3 * MFS_SEC);
    assert_true(lm_world_wait(s->w, move_no_copy_is_left, 5));
    assert_true(lm_world_has_event(s->w, "copy-died: partition 1"));
    assert_true(move_serves(&s->redis));
    s->ask.rate = 0;
    move_must(s, MFS_MSG_RECEIVE, &s->ask);
    move_take_and_check(s, false);
}

static void must_arrive(struct move_source *s)
{
    assert_true(lm_world_wait(s->w, lm_world_answered, 30));
    if (s->w->err.code)
        fail_msg("%d: %s", s->w->err.code, s->w->err.msg);
}

/* It is made anew. (The process that sends the copy keeps the broken one open, so that it does not
 * look closed.) What the copy has set on the source is taken back all the same. */
static void test_the_connection_to_the_source_breaks(void **state)
{
    static const char *const words[] = {"CLIENT", "KILL", "TYPE", "normal"};
    struct move_source *s = *state;

    move_receive_slowly(s);
    move_await_some(s);
    assert_int_not_equal(move_config(&s->redis, "rdb-key-save-delay"), 0);
    move_admin_run(&s->redis, 4, words);
    must_arrive(s);
    assert_int_equal(move_config(&s->redis, "rdb-key-save-delay"), 0);
    assert_int_equal(move_config(&s->redis, "hz"), 2);
    move_take_and_check(s, false);
}

/* Later than a call may take, as those do that wait behind what is sent over a slow link. */
static void test_the_source_answers_late_while_it_is_copied(void **state)
{
    struct move_source *s = *state;

    move_receive_slowly(s);
    move_await_some(s);
    mfs_proc_kill(&s->redis.proc, SIGSTOP);
    mfs_clock_sleep(3 * MFS_SEC);
    mfs_proc_kill(&s->redis.proc, SIGCONT);
    must_arrive(s);
    move_take_and_check(s, false);
}

static void test_the_source_hangs_while_it_is_copied(void **state)
{
    struct move_source *s = *state;

    move_receive_slowly(s);
    move_await_some(s);
    mfs_proc_kill(&s->redis.proc, SIGSTOP);
    move_await_failure(s, -EHOSTUNREACH, 35 * MFS_SEC);
    mfs_proc_kill(&s->redis.proc, SIGCONT);
    assert_true(move_serves(&s->redis));
}

static void test_the_source_is_dead_when_it_is_taken(void **state)
{
    struct move_source *s = *state;

    move_fill(s, "50", "1000000");
    move_must(s, MFS_MSG_RECEIVE, &s->ask);
    mfs_proc_kill(&s->redis.proc, SIGKILL);
    assert_int_equal(lm_world_ask(s->w, MFS_MSG_TAKE, &s->take), -EHOSTUNREACH);
    move_take_and_check(s, true);
}

/* Hung at first, so that it is in the cut that it dies. */
static void test_the_source_dies_in_the_cut(void **state)
{
    struct move_source *s = *state;

    move_fill(s, "50", "1000000");
    move_must(s, MFS_MSG_RECEIVE, &s->ask);
    mfs_proc_kill(&s->redis.proc, SIGSTOP);
    move_begin_to_take(s);
    mfs_clock_sleep(100 * MFS_MSEC);
    mfs_proc_kill(&s->redis.proc, SIGKILL);
    move_await_failure(s, -EHOSTUNREACH, 3 * MFS_SEC);
    move_take_and_check(s, true);
}

/* ---- a source that has died and was revived -------------------------------------------------- */

/* As its Local Manager does it. */
static struct mfs_admin_journal die_and_revive(struct move_source *s)
{
    struct mfs_revived how;
    struct mfs_err err = {0};

    mfs_proc_kill(&s->redis.proc, SIGKILL);
    if (mfs_redis_revive(&s->node, &s->redis, &how, &err))
        fail_msg("%s", err.msg);
    return how.journal;
}

static int take_if_it_matches(struct move_source *s, const struct mfs_admin_journal *j,
                              uint64_t offset)
{
    s->take.force = true;
    mfs_text_copy(s->take.stream, sizeof s->take.stream, j->stream);
    s->take.offset = offset;
    return lm_world_ask(s->w, MFS_MSG_TAKE, &s->take);
}

static struct mfs_admin_journal serve_source(const struct move_source *s)
{
    struct mfs_admin_journal j;
    struct mfs_err err = {0};

    if (mfs_mover_fence(s->redis.unix_path, s->redis.admin_password, false, &j, &err))
        fail_msg("%s", err.msg);
    return j;
}

/* Has a connection with a wrong password been refused there? */
static bool has_refused(const struct mfs_redis *r)
{
    struct mfs_admin *admin = move_admin(r);
    struct mfs_args args;
    struct mfs_cmd cmd;
    struct mfs_err err;
    bool has = false;

    mfs_args_init(&args, "ACL");
    mfs_args_str(&args, "LOG");
    cmd = mfs_args_cmd(&args, PART);
    if (mfs_admin_call(admin, &cmd, &err))
        fail_msg("%s", err.msg);
    for (size_t i = 0; i < mfs_reply_count(cmd.reply); i++) {
        const char *reason = mfs_reply_str(mfs_reply_at(mfs_reply_at(cmd.reply, i), 3), NULL);

        has |= reason && !strcmp(reason, "auth");
    }
    mfs_cmds_fini(&cmd, 1);
    mfs_admin_close(admin);
    return has;
}

/* It is revived without the bytes of stripes. The copy does not follow it, and has all of them. */
static void copy_outlives_source(struct move_source *s, bool cold)
{
    struct mfs_admin_journal j;
    struct move_writer *writer;
    struct mfs_redis target;

    move_fill(s, "50", "1000000");
    writer = move_writer_start_some(s, 512, 2000);
    move_writer_end(writer);
    s->ask.moves = true;
    s->ask.cold = cold;
    move_must(s, MFS_MSG_RECEIVE, &s->ask);
    j = die_and_revive(s);
    assert_true(j.fenced);
    assert_int_equal(strlen(j.stream), 40);
    assert_int_equal(j.stripes, 50 + 512);
    assert_int_equal(lm_world_ask(s->w, MFS_MSG_TAKE, &s->take), -EHOSTUNREACH);
    assert_false(move_serves(&s->redis));
    for (int i = 0; i < 2000 && !has_refused(&s->redis); i++)
        mfs_clock_sleep(10 * MFS_MSEC); /* redis tries once a second */
    assert_true(has_refused(&s->redis));
    j = die_and_revive(s); /* once more, which is no matter */
    assert_int_equal(take_if_it_matches(s, &j, j.offset), 0);
    target = move_target(s);
    move_check_filled(&target);
    move_check_written(writer, &target);
    assert_true(move_serves(&target));
    assert_false(move_serves(&s->redis));
}

static void test_a_copy_outlives_its_source(void **state)
{
    copy_outlives_source(*state, false);
}

static void test_a_cold_copy_outlives_its_source(void **state)
{
    copy_outlives_source(*state, true);
}

/* Killed while it is written to: the copy serves only with all that was acknowledged. */
static void test_a_source_dies_under_a_writer(void **state)
{
    struct move_source *s = *state;
    struct mfs_admin_journal j;
    struct move_writer *writer;
    struct mfs_redis target;
    int rc;

    s->ask.moves = true;
    writer = move_writer_start(s, 8192);
    move_must(s, MFS_MSG_RECEIVE, &s->ask);
    mfs_proc_kill(&s->redis.proc, SIGKILL);
    move_writer_end(writer);
    j = die_and_revive(s);
    assert_true(j.fenced);
    rc = take_if_it_matches(s, &j, j.offset);
    print_message("%llu writes, %s\n", (unsigned long long)writer->written,
                  rc ? s->w->err.msg : "all there");
    assert_true(!rc || rc == -ENODATA);
    target = move_target(s);
    if (!rc)
        move_check_written(writer, &target);
}

static void test_a_copy_that_is_behind_is_refused(void **state)
{
    struct move_source *s = *state;
    struct mfs_admin_journal j, after;

    move_fill(s, "50", "1000000");
    s->ask.moves = true;
    move_must(s, MFS_MSG_RECEIVE, &s->ask);
    j = die_and_revive(s);
    assert_int_equal(take_if_it_matches(s, &j, j.offset + 1), -ENODATA);
    j.stream[0] ^= 1;
    assert_int_equal(take_if_it_matches(s, &j, j.offset), -ENODATA);
    after = serve_source(s); /* from here on the copy is older than the source */
    assert_string_equal(after.stream, "");
    assert_true(move_serves(&s->redis));
    assert_string_equal(die_and_revive(s).stream, "");
    assert_true(move_serves(&s->redis));
}

/* Of a replica that is made nobody decides who goes on: its source serves again at once. */
static void test_a_source_that_does_not_move_serves_again(void **state)
{
    struct move_source *s = *state;

    move_fill(s, "5", "1000");
    move_must(s, MFS_MSG_RECEIVE, &s->ask);
    assert_string_equal(die_and_revive(s).stream, "");
    assert_true(move_serves(&s->redis));
}

/* ---- targets and Local Managers -------------------------------------------------------------- */

static void test_the_target_dies_in_the_cut(void **state)
{
    struct move_source *s = *state;
    struct mfs_proc p;

    move_fill(s, "50", "1000000");
    move_must(s, MFS_MSG_RECEIVE, &s->ask);
    p = move_copy_process(s);
    mfs_proc_kill(&p, SIGSTOP);
    move_begin_to_take(s);
    mfs_clock_sleep(100 * MFS_MSEC);
    mfs_proc_kill(&p, SIGKILL);
    move_await_failure(s, -EIO, 3 * MFS_SEC);
    assert_true(move_serves(&s->redis));
    assert_true(lm_world_wait(s->w, move_no_copy_is_left, 5));
    move_must(s, MFS_MSG_RECEIVE, &s->ask);
    move_take_and_check(s, false);
}

/* It can't get in step: the source goes on, and so may the copy, later. */
static void test_a_target_that_hangs_does_not_stop_the_source(void **state)
{
    struct move_source *s = *state;
    struct mfs_proc p;

    move_fill(s, "50", "1000000");
    move_must(s, MFS_MSG_RECEIVE, &s->ask);
    p = move_copy_process(s);
    mfs_proc_kill(&p, SIGSTOP);
    assert_int_equal(lm_world_ask(s->w, MFS_MSG_TAKE, &s->take), -EIO);
    assert_true(move_serves(&s->redis));
    mfs_proc_kill(&p, SIGCONT);
    move_take_and_check(s, false);
}

static void test_lm_restarts_while_it_copies(void **state)
{
    struct move_source *s = *state;
    struct mfs_proc p;

    move_receive_slowly(s);
    move_await_some(s);
    p = move_copy_process(s);
    move_restart_lm(s);
    assert_int_equal(s->w->join.ncopies, 1);
    assert_int_equal(s->w->joined_copy[0].index, PART);
    assert_int_equal(s->w->join.nassigned, 0);
    assert_int_equal(lm_world_ask(s->w, MFS_MSG_TAKE, &s->take), -EAGAIN);
    move_must(s, MFS_MSG_RECEIVE, &s->ask);
    assert_int_equal(move_copy_process(s).pid, p.pid);
    assert_int_equal(move_config(&s->redis, "rdb-key-save-delay"), 0);
    move_take_and_check(s, false);
    move_restart_lm(s);
    assert_int_equal(s->w->join.ncopies, 0);
    assert_int_equal(s->w->join.nassigned, 1);
    move_must(s, MFS_MSG_TAKE, &s->take);
}

/* Files of a copy: its socket, configuration, pid file, …; not its log. */
static unsigned count_files(const struct move_source *s)
{
    char dir[PATH_MAX];
    unsigned n = 0;
    DIR *d;

    snprintf(dir, sizeof dir, "%s/node-%d", s->w->dir, LM_WORLD_NODE);
    d = opendir(dir);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));)
        n += !strncmp(e->d_name, "redis-1.", 8) && strcmp(e->d_name, "redis-1.log");
    closedir(d);
    return n;
}

static bool end_without_lm_told(struct lm_world *w)
{
    return lm_world_has_event(w, "ended while no lm was there");
}

static void test_the_copy_dies_while_no_lm_is_there(void **state)
{
    struct move_source *s = *state;
    struct mfs_proc p;

    move_receive_slowly(s);
    move_await_some(s);
    p = move_copy_process(s);
    assert_true(count_files(s) > 0);
    lm_world_kill_lm(s->w);
    assert_int_equal(mfs_proc_kill(&p, SIGKILL), 0);
    while (mfs_proc_alive(&p))
        mfs_clock_sleep(MFS_MSEC);
    lm_world_start_lm(s->w);
    assert_true(lm_world_wait(s->w, lm_world_joined, 10));
    assert_true(lm_world_wait(s->w, move_no_copy_is_left, 5));
    assert_true(lm_world_wait(s->w, end_without_lm_told, 5));
    assert_int_equal(count_files(s), 0);
    assert_int_not_equal(move_config(&s->redis, "rdb-key-save-delay"), 0);
    serve_source(s); /* as cm has it done when it gives the move up */
    assert_int_equal(move_config(&s->redis, "rdb-key-save-delay"), 0);
    assert_int_equal(move_config(&s->redis, "hz"), 2);
    s->ask.rate = 0;
    move_must(s, MFS_MSG_RECEIVE, &s->ask);
    move_take_and_check(s, false);
}

/* The second of them is made up. The first must not be ended while that is taken up, which a
 * sanitizer of threads sees. */
static void test_so_do_two_copies(void **state)
{
    struct move_source *s = *state;
    struct mfs_proc p;
    struct mfs_state st;
    char path[128];

    move_receive_slowly(s);
    move_await_some(s);
    p = move_copy_process(s);
    lm_world_kill_lm(s->w);
    assert_int_equal(mfs_proc_kill(&p, SIGKILL), 0);
    while (mfs_proc_alive(&p))
        mfs_clock_sleep(MFS_MSEC);
    st = lm_world_state(s->w);
    assert_int_equal(st.ncopies, 1);
    st.copy = reallocarray(st.copy, 2, sizeof *st.copy);
    st.copy[st.ncopies++] = st.copy[0];
    st.copy[1].redis.index = !PART;
    snprintf(path, sizeof path, "%s/node-%d/lm.json", s->w->dir, LM_WORLD_NODE);
    assert_int_equal(mfs_state_save(&st, path), 0);
    mfs_schema_clear(&mfs_state_schema, &st);
    lm_world_start_lm(s->w);
    assert_true(lm_world_wait(s->w, lm_world_joined, 10));
    assert_true(lm_world_wait(s->w, move_no_copy_is_left, 5));
    s->ask.rate = 0;
    move_must(s, MFS_MSG_RECEIVE, &s->ask);
    move_take_and_check(s, false);
}

static void test_lm_restarts_before_the_cut(void **state)
{
    struct move_source *s = *state;

    move_fill(s, "50", "1000000");
    move_must(s, MFS_MSG_RECEIVE, &s->ask);
    move_restart_lm(s);
    assert_int_equal(s->w->join.ncopies, 1);
    move_take_and_check(s, false);
}

/* At any moment of the cut: the next TAKE completes it, and nothing is lost. */
static void test_lm_dies_in_the_cut(void **state)
{
    struct move_source *s = *state;
    struct move_writer *writer;
    struct mfs_redis target;

    move_must(s, MFS_MSG_RECEIVE, &s->ask);
    writer = move_writer_start(s, 512);
    for (int i = 0; i < 6; i++) {
        move_begin_to_take(s);
        mfs_clock_sleep(i * MFS_MSEC);
        move_restart_lm(s);
    }
    move_must(s, MFS_MSG_TAKE, &s->take);
    move_writer_end(writer);
    target = move_target(s);
    move_check_written(writer, &target);
    assert_true(move_serves(&target));
    assert_false(move_serves(&s->redis));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_source_dies_while_it_is_copied, move_setup,
                                        move_teardown),
        cmocka_unit_test_setup_teardown(test_the_target_dies_while_it_is_copied, move_setup,
                                        move_teardown),
        cmocka_unit_test_setup_teardown(test_the_connection_to_the_source_breaks, move_setup,
                                        move_teardown),
        cmocka_unit_test_setup_teardown(test_the_source_answers_late_while_it_is_copied, move_setup,
                                        move_teardown),
        cmocka_unit_test_setup_teardown(test_the_source_hangs_while_it_is_copied, move_setup,
                                        move_teardown),
        cmocka_unit_test_setup_teardown(test_the_source_is_dead_when_it_is_taken, move_setup,
                                        move_teardown),
        cmocka_unit_test_setup_teardown(test_the_source_dies_in_the_cut, move_setup, move_teardown),
        cmocka_unit_test_setup_teardown(test_a_copy_outlives_its_source, move_setup, move_teardown),
        cmocka_unit_test_setup_teardown(test_a_cold_copy_outlives_its_source, move_setup,
                                        move_teardown),
        cmocka_unit_test_setup_teardown(test_a_source_dies_under_a_writer, move_setup,
                                        move_teardown),
        cmocka_unit_test_setup_teardown(test_a_copy_that_is_behind_is_refused, move_setup,
                                        move_teardown),
        cmocka_unit_test_setup_teardown(test_a_source_that_does_not_move_serves_again, move_setup,
                                        move_teardown),
        cmocka_unit_test_setup_teardown(test_the_target_dies_in_the_cut, move_setup, move_teardown),
        cmocka_unit_test_setup_teardown(test_a_target_that_hangs_does_not_stop_the_source,
                                        move_setup, move_teardown),
        cmocka_unit_test_setup_teardown(test_lm_restarts_while_it_copies, move_setup,
                                        move_teardown),
        cmocka_unit_test_setup_teardown(test_the_copy_dies_while_no_lm_is_there, move_setup,
                                        move_teardown),
        cmocka_unit_test_setup_teardown(test_so_do_two_copies, move_setup, move_teardown),
        cmocka_unit_test_setup_teardown(test_lm_restarts_before_the_cut, move_setup, move_teardown),
        cmocka_unit_test_setup_teardown(test_lm_dies_in_the_cut, move_setup, move_teardown),
    };

    return cmocka_run_group_tests_name("lm move, with deaths", tests, NULL, NULL);
}
