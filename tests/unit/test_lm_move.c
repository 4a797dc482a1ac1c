/* Partitions that come to a node and leave it: a Local Manager (lm_world) on the receiving side and
 * a redis process of the test's own as the source. ctest: timeout=180 long=30 waits */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "move_source.h"
#include "move_writer.h"

#include "base/clock.h"
#include "base/text.h"

#define MIB    MOVE_MIB
#define PART   MOVE_PART
#define STRIPE MOVE_STRIPE

/* ---- whole moves ----------------------------------------------------------------------------- */

static void hot_move(struct move_source *s, uint64_t size)
{
    struct move_writer *writer;
    struct mfs_redis target;

    writer = move_writer_start(s, size);
    move_must(s, MFS_MSG_RECEIVE, &s->ask);
    move_must(s, MFS_MSG_TAKE, &s->take);
    move_writer_end(writer);
    assert_int_equal(writer->rc, -EACCES);
    target = move_target(s);
    move_check_written(writer, &target);
    print_message("%llu writes, %llu bytes copied in %llu us, blocked %llu us\n",
                  (unsigned long long)writer->written, (unsigned long long)s->w->received.bytes,
                  (unsigned long long)s->w->received.duration_us,
                  (unsigned long long)s->w->taken.blocked_us);
}

static void test_hot_move_under_a_writer(void **state)
{
    hot_move(*state, 8192);
}

static void test_a_large_partition_arrives_whole(void **state)
{
    struct move_source *s = *state;
    struct mfs_redis target;
    struct mfs_channel *c;
    char got[16];

    move_fill(s, "50", "1000000");
    hot_move(s, 8192);
    target = move_target(s);
    c = move_client(&target);
    assert_int_equal(move_run(c, "GET", "Sfill50", NULL, got, sizeof got), 0);
    assert_string_equal(got, "xxxxxxxxxxxxxxx");
    mfs_channel_close(c);
}

/* No step of it waits for a timer of redis, which would be felt as 100 ms or a second. */
static void test_an_empty_partition_moves_fast(void **state)
{
    struct move_source *s = *state;
    struct mfs_msg_release release = {.index = PART};
    uint64_t best = UINT64_MAX;

    mfs_text_copy(release.password, sizeof release.password, s->ask.password);
    for (int i = 0; i < 8 && best > 90000; i++) {
        move_must(s, MFS_MSG_RECEIVE, &s->ask);
        if (s->w->received.duration_us < best)
            best = s->w->received.duration_us;
        move_must(s, MFS_MSG_RELEASE, &release);
    }
    print_message("copied in %llu us\n", (unsigned long long)best);
    assert_true(best < 300000);
    move_must(s, MFS_MSG_RECEIVE, &s->ask);
    move_must(s, MFS_MSG_TAKE, &s->take);
    print_message("blocked %llu us\n", (unsigned long long)s->w->taken.blocked_us);
    assert_true(s->w->taken.blocked_us < 500000);
}

/* ---- the life of a copy ---------------------------------------------------------------------- */

static void test_a_node_without_partitions_receives_one(void **state)
{
    struct move_source *s = *state;
    struct mfs_msg_assign none = {
        .nparts = LM_WORLD_PARTS, .stripe_size = STRIPE, .memory = LM_WORLD_MEMORY};

    move_must(s, MFS_MSG_ASSIGN, &none);
    move_receive_slowly(s);
    move_await_some(s);
    assert_int_equal(s->w->report.nparts, 0);
    assert_true(lm_world_wait(s->w, lm_world_answered, 30));
    if (s->w->err.code)
        fail_msg("%s", s->w->err.msg);
    assert_true(s->w->received.duration_us > 4000000); /* 50 MB at 10 MiB/s */
    assert_true(s->w->received.bytes > 50000000);
    assert_int_equal(move_config(&s->redis, "rdb-key-save-delay"), 0);
    move_take_and_check(s, false);
}

static void test_what_is_repeated_is_answered(void **state)
{
    struct move_source *s = *state;
    struct mfs_msg_release release = {.index = PART};
    struct mfs_msg_take_reply first;

    mfs_text_copy(release.password, sizeof release.password, s->ask.password);
    move_fill(s, "50", "1000000");
    move_must(s, MFS_MSG_RECEIVE, &s->ask);
    move_must(s, MFS_MSG_RECEIVE, &s->ask);
    assert_true(s->w->received.bytes > 50000000);
    move_take_and_check(s, false);
    first = s->w->taken;
    move_must(s, MFS_MSG_TAKE, &s->take);
    assert_memory_equal(&first, &s->w->taken, sizeof first);
    move_must(s, MFS_MSG_RECEIVE, &s->ask);
    move_take_and_check(s, false);
    move_must(s, MFS_MSG_RELEASE, &release);
    move_must(s, MFS_MSG_RELEASE, &release);
    assert_int_equal(lm_world_ask(s->w, MFS_MSG_TAKE, &s->take), -ENOENT);
}

static void test_a_cold_move(void **state)
{
    struct move_source *s = *state;
    struct move_writer *writer;
    struct mfs_redis target;
    char path[160];
    struct stat st;

    move_fill(s, "50", "1000000");
    s->ask.cold = true;
    writer = move_writer_start(s, 8192);
    move_must(s, MFS_MSG_RECEIVE, &s->ask);
    move_writer_end(writer);
    assert_int_equal(writer->rc, -EACCES);
    assert_false(move_serves(&s->redis));
    move_take_and_check(s, false);
    assert_true(s->w->taken.blocked_us >= s->w->received.duration_us / 4);
    target = move_target(s);
    move_check_written(writer, &target);
    print_message("blocked %llu us\n", (unsigned long long)s->w->taken.blocked_us);
    snprintf(path, sizeof path, "%s/redis-%u.rdb", s->dir, PART);
    /* redis looks once a second whether anybody needs it yet. */
    for (unsigned i = 0; i < 1000 && stat(path, &st) == 0; i++)
        mfs_clock_sleep(10 * MFS_MSEC);
    assert_int_equal(stat(path, &st), -1);
}

/* Fenced, but from memory to memory. */
static void test_a_cold_move_without_a_dump(void **state)
{
    struct move_source *s = *state;
    char path[160];
    struct stat st;

    move_fill(s, "50", "1000000");
    s->ask.cold = s->ask.diskless = true;
    snprintf(path, sizeof path, "%s/redis-%u.rdb", s->dir, PART);
    assert_int_equal(mkdir(path, 0700), 0); /* no dump could be put here */
    move_must(s, MFS_MSG_RECEIVE, &s->ask);
    assert_false(move_serves(&s->redis));
    move_take_and_check(s, false);
    assert_int_equal(stat(path, &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    rmdir(path);
}

static void test_a_partition_is_fenced_and_released(void **state)
{
    struct move_source *s = *state;
    struct mfs_msg_fence fence = {.index = PART, .on = true};
    struct mfs_msg_release release = {.index = PART};
    struct mfs_redis r;
    struct mfs_proc p;

    move_fill(s, "50", "1000000");
    move_must(s, MFS_MSG_RECEIVE, &s->ask);
    move_take_and_check(s, false);
    r = move_target(s);
    mfs_text_copy(fence.password, sizeof fence.password, s->ask.password);
    move_must(s, MFS_MSG_FENCE, &fence);
    move_must(s, MFS_MSG_FENCE, &fence);
    assert_false(move_serves(&r));
    fence.on = false;
    move_must(s, MFS_MSG_FENCE, &fence);
    assert_true(move_serves(&r));
    fence.password[0] ^= 1;
    assert_int_equal(lm_world_ask(s->w, MFS_MSG_FENCE, &fence), -ENOENT);
    mfs_text_copy(release.password, sizeof release.password, fence.password);
    move_must(s, MFS_MSG_RELEASE, &release); /* not the one that is meant */
    p = lm_world_redis(s->w, PART);
    assert_true(mfs_proc_alive(&p));
    mfs_text_copy(release.password, sizeof release.password, s->ask.password);
    move_must(s, MFS_MSG_RELEASE, &release);
    assert_false(mfs_proc_alive(&p));
    assert_int_equal(lm_world_redis(s->w, PART).pid, 0);
    assert_false(lm_world_has_event(s->w, "redis-died"));
}

static bool copy_was_cancelled(struct lm_world *w)
{
    return w->err.code == -ECANCELED;
}

static void test_a_copy_is_released_under_way(void **state)
{
    struct move_source *s = *state;
    struct mfs_msg_release release = {.index = PART};
    struct mfs_proc p;
    int64_t start;

    mfs_text_copy(release.password, sizeof release.password, s->ask.password);
    move_receive_slowly(s);
    move_await_some(s);
    p = move_copy_process(s);
    assert_true(mfs_proc_alive(&p));
    start = mfs_clock_mono();
    lm_world_ask(s->w, MFS_MSG_RELEASE, &release);
    assert_true(
        lm_world_wait(s->w, copy_was_cancelled, 5)); /* before RELEASE is answered, or after */
    assert_true(lm_world_wait(s->w, move_no_copy_is_left, 5));
    assert_true(mfs_clock_mono() - start < 5 * MFS_SEC);
    assert_false(mfs_proc_alive(&p));
    assert_int_equal(move_copy_process(s).pid, 0);
    assert_true(move_serves(&s->redis));
    s->ask.rate = 0;
    move_must(s, MFS_MSG_RECEIVE, &s->ask);
    move_take_and_check(s, false);
}

/* ---- refused --------------------------------------------------------------------------------- */

static void test_a_wrong_password_of_the_source(void **state)
{
    struct move_source *s = *state;

    s->ask.source_admin_password[0] ^= 1;
    assert_int_equal(lm_world_ask(s->w, MFS_MSG_RECEIVE, &s->ask), -EACCES);
    s->ask.source_admin_password[0] ^= 1;
    move_must(s, MFS_MSG_RECEIVE, &s->ask);
    s->take.password[0] ^= 1;
    assert_int_equal(lm_world_ask(s->w, MFS_MSG_TAKE, &s->take), -ENOENT);
    s->ask.password[0] ^= 1;
    assert_int_equal(lm_world_ask(s->w, MFS_MSG_RECEIVE, &s->ask), -EBUSY);
}

static void test_what_does_not_fit_is_refused_at_once(void **state)
{
    struct move_source *s = *state;

    move_fill(s, "50", "1000000");
    s->ask.memory = 40 * MIB;
    assert_int_equal(lm_world_ask(s->w, MFS_MSG_RECEIVE, &s->ask), -ENOSPC);
    assert_non_null(strstr(s->w->err.msg, "no memory"));
    assert_true(move_serves(&s->redis));
    s->ask.memory = LM_WORLD_MEMORY;
    move_must(s, MFS_MSG_RECEIVE, &s->ask);
    move_take_and_check(s, false);
}

/* The source grows while it is copied, to more than what the node has. */
static void test_what_outgrows_the_node_is_given_up(void **state)
{
    struct move_source *s = *state;
    struct move_writer *writer;

    s->ask.memory = 110 * MIB;
    move_receive_slowly(s);
    move_await_some(s);
    writer = move_writer_start_some(s, 60000, 600);
    assert_true(lm_world_wait(s->w, lm_world_answered, 30));
    move_writer_end(writer);
    assert_int_equal(writer->written, 600);
    if (!s->w->err.code) /* it was slower than the copy */
        lm_world_ask(s->w, MFS_MSG_TAKE, &s->take);
    assert_int_equal(s->w->err.code, -ENOSPC);
    assert_true(move_serves(&s->redis));
}

static void test_a_link_that_breaks_again_and_again(void **state)
{
    struct move_source *s = *state;
    const char *const limit[] = {"CONFIG", "SET", "client-output-buffer-limit", "replica 1mb 0 0"};
    struct move_writer *writer;

    move_admin_run(&s->redis, 4, limit);
    move_fill(s, "50", "1000000");
    s->ask.rate = 20 * MIB;
    writer = move_writer_start(s, 30000);
    assert_int_equal(lm_world_ask(s->w, MFS_MSG_RECEIVE, &s->ask), -ENOBUFS);
    atomic_store(&writer->stop, true);
    move_writer_end(writer);
    assert_int_equal(writer->rc, 0);
    assert_true(lm_world_wait(s->w, move_no_copy_is_left, 5));
    s->ask.cold = true;
    s->ask.rate = 0;
    move_must(s, MFS_MSG_RECEIVE, &s->ask);
    move_take_and_check(s, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_hot_move_under_a_writer, move_setup, move_teardown),
        cmocka_unit_test_setup_teardown(test_a_large_partition_arrives_whole, move_setup,
                                        move_teardown),
        cmocka_unit_test_setup_teardown(test_an_empty_partition_moves_fast, move_setup,
                                        move_teardown),
        cmocka_unit_test_setup_teardown(test_a_node_without_partitions_receives_one, move_setup,
                                        move_teardown),
        cmocka_unit_test_setup_teardown(test_what_is_repeated_is_answered, move_setup,
                                        move_teardown),
        cmocka_unit_test_setup_teardown(test_a_cold_move, move_setup, move_teardown),
        cmocka_unit_test_setup_teardown(test_a_cold_move_without_a_dump, move_setup, move_teardown),
        cmocka_unit_test_setup_teardown(test_a_partition_is_fenced_and_released, move_setup,
                                        move_teardown),
        cmocka_unit_test_setup_teardown(test_a_copy_is_released_under_way, move_setup,
                                        move_teardown),
        cmocka_unit_test_setup_teardown(test_a_wrong_password_of_the_source, move_setup,
                                        move_teardown),
        cmocka_unit_test_setup_teardown(test_what_does_not_fit_is_refused_at_once, move_setup,
                                        move_teardown),
        cmocka_unit_test_setup_teardown(test_what_outgrows_the_node_is_given_up, move_setup,
                                        move_teardown),
        cmocka_unit_test_setup_teardown(test_a_link_that_breaks_again_and_again, move_setup,
                                        move_teardown),
    };

    return cmocka_run_group_tests_name("lm move", tests, NULL, NULL);
}
