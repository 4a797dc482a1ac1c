/* The Local Manager as cm sees it. ctest: timeout=180 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cluster/capacity.h"
#include "lm_world.h"

#define MIB (1ULL << 20)

static bool reported(struct lm_world *w)
{
    return w->report.nparts == LM_WORLD_PARTS && w->report.memory_used > 0 &&
           w->report.epoch == w->epoch;
}

static void test_join_assign_table_report(void **state)
{
    struct lm_world *w = *state;

    assert_int_equal(w->join.version, MFS_PROTOCOL_VERSION);
    assert_int_equal(w->join.node, LM_WORLD_NODE);
    assert_string_equal(w->join.name, LM_WORLD_NAME);
    assert_int_equal(w->join.nassigned, 0);
    assert_int_equal(w->join.epoch, 0);
    assert_true(w->join.memory > 0);
    if (lm_world_assign(w))
        fail_msg("%s", w->err.msg);
    assert_true(w->assigned[0].port && w->assigned[1].port);
    assert_int_equal(lm_world_push_table(w), 0);
    assert_int_equal(w->acked, 1);
    assert_true(lm_world_wait(w, reported, 5));
    /* What can be told before, less what the processes turned out to take beyond that. */
    assert_true(w->report.memory_capacity <= mfs_capacity_used(LM_WORLD_MEMORY, LM_WORLD_PARTS));
    assert_true(w->report.memory_capacity + 8 * MIB >=
                mfs_capacity_used(LM_WORLD_MEMORY, LM_WORLD_PARTS));
}

static void test_assign_again_is_harmless(void **state)
{
    struct lm_world *w = *state;
    struct mfs_assigned_part before[LM_WORLD_PARTS];

    assert_int_equal(lm_world_assign(w), 0);
    memcpy(before, w->assigned, sizeof before);
    assert_int_equal(lm_world_assign(w), 0);
    assert_memory_equal(before, w->assigned, sizeof before);
}

static void test_nonsense_is_refused(void **state)
{
    struct lm_world *w = *state;
    struct mfs_msg_mount m = {.path = "/nowhere"};

    w->part[1].index = LM_WORLD_PARTS;
    assert_int_equal(lm_world_assign(w), -EINVAL);
    w->part[1].index = 1;
    assert_int_equal(lm_world_ask(w, MFS_MSG_MOUNT, &m), -EAGAIN);
    assert_int_equal(lm_world_assign(w), 0);
    assert_int_equal(lm_world_push_table(w), 0);
    mfs_text_copy(m.path, sizeof m.path, "relative");
    assert_int_equal(lm_world_ask(w, MFS_MSG_MOUNT, &m), -EINVAL);
    w->epoch = 0; /* an old table: answered with the one that is held */
    assert_int_equal(lm_world_push_table(w), 0);
    assert_int_equal(w->acked, 1);
}

static void test_a_killed_lm_leaves_the_data_and_the_next_goes_on(void **state)
{
    struct lm_world *w = *state;
    struct mfs_assigned_part before[LM_WORLD_PARTS];

    assert_int_equal(lm_world_assign(w), 0);
    assert_int_equal(lm_world_push_table(w), 0);
    lm_world_command(w, "SET", "key", 3, "value");
    memcpy(before, w->assigned, sizeof before);
    lm_world_kill_lm(w);
    assert_int_equal(lm_world_command(w, "EXISTS", "key", 3, NULL), 1);
    lm_world_start_lm(w);
    assert_true(lm_world_wait(w, lm_world_joined, 10));
    assert_int_equal(w->join.nassigned, LM_WORLD_PARTS);
    assert_int_equal(w->join.epoch, 1);
    assert_int_equal(lm_world_assign(w), 0);
    assert_memory_equal(before, w->assigned, sizeof before);
    assert_int_equal(lm_world_command(w, "EXISTS", "key", 3, NULL), 1);
    assert_true(lm_world_wait(w, reported, 5));
}

/* As when it was killed between starting processes and writing them down. */
static void test_what_a_killed_lm_did_not_note_is_ended(void **state)
{
    struct lm_world *w = *state;
    struct mfs_proc noted, unlisted;
    struct mfs_state s;
    char path[128];

    assert_int_equal(lm_world_assign(w), 0);
    s = lm_world_state(w);
    assert_int_equal(s.nredis, LM_WORLD_PARTS);
    noted = mfs_state_proc_get(&s.redis[0].proc);
    unlisted = mfs_state_proc_get(&s.redis[1].proc);
    lm_world_kill_lm(w);
    s.nredis = 1;
    snprintf(path, sizeof path, "%s/node-%d/lm.json", w->dir, LM_WORLD_NODE);
    assert_int_equal(mfs_state_save(&s, path), 0);
    s.nredis = LM_WORLD_PARTS;
    mfs_schema_clear(&mfs_state_schema, &s);
    lm_world_start_lm(w);
    assert_true(lm_world_wait(w, lm_world_joined, 10));
    assert_int_equal(w->join.nassigned, 1);
    assert_true(mfs_proc_alive(&noted));
    assert_false(mfs_proc_alive(&unlisted));

    lm_world_kill_lm(w);
    assert_int_equal(unlink(path), 0); /* killed in its very first assign */
    lm_world_start_lm(w);
    assert_true(lm_world_wait(w, lm_world_joined, 10));
    assert_int_equal(w->join.nassigned, 0);
    assert_false(mfs_proc_alive(&noted));
    assert_int_equal(lm_world_assign(w), 0);
}

/* The next Local Manager would end them. */
static void test_what_can_not_be_noted_is_not_told(void **state)
{
    struct lm_world *w = *state;
    struct mfs_proc p;

    lm_world_hinder(w, true);
    assert_int_equal(lm_world_assign(w), -EBUSY);
    assert_non_null(strstr(w->err.msg, "lm.json"));
    lm_world_hinder(w, false);
    assert_int_equal(lm_world_assign(w), 0);
    p = lm_world_redis(w, 1);
    assert_true(mfs_proc_alive(&p));
}

static void test_cm_may_go_and_come_back(void **state)
{
    struct lm_world *w = *state;

    assert_int_equal(lm_world_assign(w), 0);
    mfs_listener_destroy(w->listener);
    w->lm = NULL;
    mfs_clock_sleep(300 * MFS_MSEC);
    assert_int_equal(kill(w->pid, 0), 0);
    lm_world_listen(w);
    assert_true(lm_world_wait(w, lm_world_joined, 10));
    assert_int_equal(w->joins, 2);
    assert_int_equal(w->join.nassigned, LM_WORLD_PARTS);
}

static bool redis_loss_told(struct lm_world *w)
{
    return lm_world_has_event(w, "redis-lost: partition 1:");
}

static bool redis_revival_told(struct lm_world *w)
{
    return lm_world_has_event(w, "redis-revived: partition 1:");
}

/* Without it nothing can take the place of a process that dies. */
static void remove_journal(struct lm_world *w)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/node-%d/redis-1.journal", w->dir, LM_WORLD_NODE);
    assert_int_equal(unlink(path), 0);
}

static void test_a_dead_redis_is_replaced(void **state)
{
    struct lm_world *w = *state;
    struct mfs_proc p, q;

    assert_int_equal(lm_world_assign(w), 0);
    p = lm_world_redis(w, 1);
    assert_int_equal(mfs_proc_kill(&p, SIGKILL), 0);
    assert_true(lm_world_wait(w, redis_revival_told, 15));
    assert_true(lm_world_has_event(w, "signal 9"));
    q = lm_world_redis(w, 1);
    assert_true(mfs_proc_alive(&q));
    assert_int_not_equal(p.pid, q.pid);
    assert_int_equal(lm_world_assign(w), 0); /* it is what was asked for */
}

/* What dumps go to, and the one that it is in; as who tidies up below /var/tmp does it. */
static void remove_dump_dir(const struct lm_world *w, char above[PATH_MAX])
{
    char record[PATH_MAX];
    struct mfs_buf text;

    snprintf(record, sizeof record, "%s/node-%d/dumps", w->dir, LM_WORLD_NODE);
    mfs_buf_init(&text);
    assert_int_equal(mfs_file_read(record, PATH_MAX - 1, &text), 0);
    assert_int_equal(mfs_buf_append(&text, "", 1), 0);
    snprintf(above, PATH_MAX, "%s", (const char *)mfs_buf_data(&text));
    mfs_buf_fini(&text);
    *strrchr(above, '/') = '\0';
    assert_non_null(strstr(above, "/memefs-" LM_WORLD_NAME "-"));
    assert_int_equal(mfs_file_remove_tree(above), 0);
}

static void kill_and_await_revival(struct lm_world *w)
{
    struct mfs_proc p = lm_world_redis(w, 1);

    w->events[0] = '\0';
    assert_int_equal(mfs_proc_kill(&p, SIGKILL), 0);
    assert_true(lm_world_wait(w, redis_revival_told, 15));
    p = lm_world_redis(w, 1);
    assert_true(mfs_proc_alive(&p));
}

static void test_a_dead_redis_is_replaced_without_a_dump_directory(void **state)
{
    struct lm_world *w = *state;
    char above[PATH_MAX], dir[PATH_MAX];

    assert_int_equal(lm_world_assign(w), 0);
    remove_dump_dir(w, above);
    kill_and_await_revival(w);
    snprintf(dir, sizeof dir, "%.4000s/node-%d", above, LM_WORLD_NODE);
    assert_int_equal(access(dir, F_OK), 0);
    assert_int_equal(mfs_file_remove_tree(above), 0);
    assert_int_equal(mfs_file_write(above, "x", 1, 0600), 0); /* so it can't be made again */
    kill_and_await_revival(w);
    assert_int_equal(unlink(above), 0);
}

static void test_a_lost_redis_is_reported_and_not_replaced(void **state)
{
    struct lm_world *w = *state;
    struct mfs_proc p;

    assert_int_equal(lm_world_assign(w), 0);
    p = lm_world_redis(w, 1);
    remove_journal(w);
    assert_int_equal(mfs_proc_kill(&p, SIGKILL), 0);
    assert_true(lm_world_wait(w, redis_loss_told, 5));
    assert_true(lm_world_has_event(w, "signal 9"));
    assert_int_equal(lm_world_assign(w), -EIO);
    assert_non_null(strstr(w->err.msg, "partition 1"));
    /* New credentials: cm means it. */
    mfs_random_hex(w->part[1].password, 32);
    assert_int_equal(lm_world_assign(w), 0);
    p = lm_world_redis(w, 1);
    assert_true(mfs_proc_alive(&p));
}

static void test_a_redis_that_died_while_no_lm_was_there(void **state)
{
    struct lm_world *w = *state;
    struct mfs_proc p;

    assert_int_equal(lm_world_assign(w), 0);
    p = lm_world_redis(w, 1);
    lm_world_kill_lm(w);
    mfs_proc_end(&p, 0);
    lm_world_start_lm(w);
    assert_true(lm_world_wait(w, redis_revival_told, 15));
    assert_int_equal(w->join.nassigned, 2);
    p = lm_world_redis(w, 1);
    assert_true(mfs_proc_alive(&p));
}

static void test_a_redis_that_was_lost_while_no_lm_was_there(void **state)
{
    struct lm_world *w = *state;
    struct mfs_proc p;

    assert_int_equal(lm_world_assign(w), 0);
    p = lm_world_redis(w, 1);
    lm_world_kill_lm(w);
    remove_journal(w);
    mfs_proc_end(&p, 0);
    lm_world_start_lm(w);
    assert_true(lm_world_wait(w, redis_loss_told, 15));
}

static void test_a_mount_that_fails_says_why(void **state)
{
    struct lm_world *w = *state;
    struct mfs_msg_mount m = {0};
    char note[128];

    assert_int_equal(lm_world_assign(w), 0);
    assert_int_equal(lm_world_push_table(w), 0);
    /* The client is looked for beside the running program, and there is none beside a test. */
    snprintf(m.path, sizeof m.path, "%s/mnt", w->dir);
    assert_int_equal(lm_world_ask(w, MFS_MSG_MOUNT, &m), -ENOENT);
    assert_non_null(strstr(w->err.msg, "can't mount"));
    snprintf(note, sizeof note, "%s/node-%d/mount", w->dir, LM_WORLD_NODE);
    mfs_clock_sleep(100 * MFS_MSEC);
    assert_int_not_equal(access(note, F_OK), 0);
    assert_int_equal(lm_world_ask(w, MFS_MSG_UMOUNT, &m), 0);
}

static void test_stop_ends_everything(void **state)
{
    struct lm_world *w = *state;
    struct mfs_proc p[LM_WORLD_PARTS];
    char path[128];

    assert_int_equal(lm_world_assign(w), 0);
    for (uint32_t i = 0; i < LM_WORLD_PARTS; i++)
        p[i] = lm_world_redis(w, i);
    assert_int_equal(lm_world_ask(w, MFS_MSG_STOP, &(struct mfs_msg_empty){0}), 0);
    for (uint32_t i = 0; i < LM_WORLD_PARTS; i++) {
        assert_false(mfs_proc_alive(&p[i]));
        assert_int_not_equal(access(w->assigned[i].unix_path, F_OK), 0);
    }
    assert_int_not_equal(access(w->sock + 5, F_OK), 0);
    snprintf(path, sizeof path, "%s/node-%d/lm.json", w->dir, LM_WORLD_NODE);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_true(lm_world_wait(w, lm_world_lm_ended, 5));
}

static void test_stop_ends_a_hung_redis(void **state)
{
    struct lm_world *w = *state;
    struct mfs_proc p;

    assert_int_equal(lm_world_assign(w), 0);
    p = lm_world_redis(w, 0);
    mfs_proc_kill(&p, SIGSTOP);
    assert_int_equal(lm_world_ask(w, MFS_MSG_STOP, &(struct mfs_msg_empty){0}), 0);
    assert_false(mfs_proc_alive(&p));
    assert_true(lm_world_wait(w, lm_world_lm_ended, 5));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, lm_world_setup, lm_world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_join_assign_table_report),
        TEST(test_assign_again_is_harmless),
        TEST(test_nonsense_is_refused),
        TEST(test_a_killed_lm_leaves_the_data_and_the_next_goes_on),
        TEST(test_what_a_killed_lm_did_not_note_is_ended),
        TEST(test_what_can_not_be_noted_is_not_told),
        TEST(test_cm_may_go_and_come_back),
        TEST(test_a_dead_redis_is_replaced),
        TEST(test_a_dead_redis_is_replaced_without_a_dump_directory),
        TEST(test_a_lost_redis_is_reported_and_not_replaced),
        TEST(test_a_redis_that_died_while_no_lm_was_there),
        TEST(test_a_redis_that_was_lost_while_no_lm_was_there),
        TEST(test_a_mount_that_fails_says_why),
        TEST(test_stop_ends_everything),
        TEST(test_stop_ends_a_hung_redis),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
