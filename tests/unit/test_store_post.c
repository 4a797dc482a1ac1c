/* Commands that nobody waits for: order, draining, bounds, failures. ctest: threaded */
#include <pthread.h>
#include <signal.h>

#include "base/threads/thread.h"
#include "store_test.h"

#define NPARTS  3
#define TIMEOUT (1 * MFS_SEC)

static struct store_test t;

static int setup(void **state)
{
    (void)state;
    store_test_open(&t, &(struct redis_fixture_opts){.nparts = NPARTS},
                    &(struct mfs_store_opts){.io_timeout = TIMEOUT});
    return 0;
}

static int setup_tcp(void **state)
{
    (void)state;
    store_test_open(&t, &(struct redis_fixture_opts){.nparts = NPARTS, .tcp = true},
                    &(struct mfs_store_opts){.io_timeout = 10 * MFS_SEC});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    store_test_close(&t);
    return 0;
}

static int post_number(uint32_t part, const char *command, const char *key, int64_t n,
                       bool idempotent)
{
    struct mfs_args a;
    struct mfs_cmd cmd;

    mfs_args_init(&a, command);
    mfs_args_str(&a, key);
    mfs_args_int(&a, n);
    cmd = mfs_args_cmd(&a, part);
    cmd.idempotent = idempotent;
    return mfs_store_post(t.store, &cmd);
}

/* The list in the partition must be 0, 1, 2 … n−1. */
static void check_list(uint32_t part, const char *key, int64_t n)
{
    struct mfs_args a;
    struct mfs_cmd cmd = cmd_of(&a, part, "LRANGE", key, "0");

    mfs_args_str(&a, "-1");
    cmd.argc++;
    assert_int_equal(mfs_store_exec(t.store, &cmd, 1), 0);
    assert_int_equal(mfs_reply_count(cmd.reply), n);
    for (int64_t i = 0; i < n; i++)
        assert_int_equal(atoll(mfs_reply_str(mfs_reply_at(cmd.reply, (size_t)i), NULL)), i);
    mfs_cmds_fini(&cmd, 1);
}

static void posted_commands_keep_their_order(void **state)
{
    enum { N = 20000 };

    (void)state;
    for (int64_t i = 0; i < N; i++)
        for (uint32_t part = 0; part < NPARTS; part++)
            assert_int_equal(post_number(part, "RPUSH", "list", i, false), 0);
    assert_int_equal(mfs_store_drain(t.store, 10 * MFS_SEC), 0);
    for (uint32_t part = 0; part < NPARTS; part++)
        check_list(part, "list", N);
}

static void large_posts_are_copied(void **state)
{
    enum { SIZE = 1 << 20, N = 32 };
    unsigned char *value = malloc(SIZE), *in = malloc(SIZE);
    struct mfs_args a;
    struct mfs_cmd cmd;

    (void)state;
    for (uint32_t i = 0; i < N; i++) {
        fill_pattern(value, SIZE, i);
        cmd = set_cmd(&a, 0, "large", value, SIZE);
        assert_int_equal(mfs_store_post(t.store, &cmd), 0);
    }
    fill_pattern(in, SIZE, N - 1);
    assert_memory_equal(in, value, SIZE);
    memset(value, 0, SIZE);
    assert_int_equal(mfs_store_drain(t.store, 10 * MFS_SEC), 0);
    cmd = get_cmd(&a, 0, "large", value, SIZE);
    assert_int_equal(mfs_store_exec(t.store, &cmd, 1), 0);
    assert_memory_equal(in, value, SIZE);
    mfs_cmds_fini(&cmd, 1);
    free(in);
    free(value);
}

static void error_replies_do_not_disturb(void **state)
{
    (void)state;
    assert_int_equal(post_number(0, "RPUSH", "list", 0, false), 0);
    assert_int_equal(post_number(0, "INCRBY", "list", 1, false), 0); /* WRONGTYPE */
    assert_int_equal(post_number(0, "RPUSH", "list", 1, false), 0);
    assert_int_equal(mfs_store_drain(t.store, 5 * MFS_SEC), 0);
    check_list(0, "list", 2);
    assert_int_equal(post_number(NPARTS, "INCRBY", "list", 1, false), -EINVAL);
}

static void replies_are_read_without_anybody_waiting(void **state)
{
    int64_t until = mfs_clock_mono() + 5 * MFS_SEC;

    (void)state;
    assert_int_equal(post_number(0, "INCRBY", "n", 1, false), 0);
    while (mfs_store_drain(t.store, 0) && mfs_clock_mono() < until)
        mfs_clock_sleep(MFS_MSEC);
    assert_int_equal(mfs_store_drain(t.store, 0), 0);
    assert_int_equal(run3(t.store, 0, "GET", "n", NULL, true), 0);
}

static void posts_wait_behind_a_fence(void **state)
{
    (void)state;
    for (int64_t i = 0; i < 1000; i++) {
        if (i == 300)
            assert_int_equal(redis_fixture_fence(t.fixture, 0, true), 0);
        assert_int_equal(post_number(0, "RPUSH", "list", i, false), 0);
    }
    assert_int_equal(post_number(1, "RPUSH", "list", 0, false), 0);
    assert_int_equal(mfs_store_drain(t.store, 200 * MFS_MSEC), -ETIMEDOUT);
    assert_int_equal(redis_fixture_fence(t.fixture, 0, false), 0);
    assert_int_equal(mfs_store_drain(t.store, 5 * MFS_SEC), 0);
    check_list(0, "list", 1000);
    check_list(1, "list", 1);
}

static void posts_follow_a_moved_partition(void **state)
{
    (void)state;
    for (int64_t i = 0; i < 100; i++)
        assert_int_equal(post_number(0, "RPUSH", "list", i, false), 0);
    assert_int_equal(redis_fixture_migrate(t.fixture, 0), 0);
    for (int64_t i = 100; i < 200; i++)
        assert_int_equal(post_number(0, "RPUSH", "list", i, false), 0);
    assert_int_equal(mfs_store_drain(t.store, 100 * MFS_MSEC), -ETIMEDOUT);
    assert_int_equal(mfs_store_set_table(t.store, redis_fixture_table(t.fixture)), 0);
    assert_int_equal(mfs_store_drain(t.store, 5 * MFS_SEC), 0);
    for (int64_t i = 200; i < 300; i++)
        assert_int_equal(post_number(0, "RPUSH", "list", i, false), 0);
    assert_int_equal(mfs_store_drain(t.store, 5 * MFS_SEC), 0);
    check_list(0, "list", 300);
}

static void unsent_posts_survive_a_restart(void **state)
{
    (void)state;
    assert_int_equal(post_number(0, "SET", "before", 1, true), 0);
    assert_int_equal(mfs_store_drain(t.store, MFS_SEC), 0);
    redis_fixture_kill(t.fixture, 0);
    for (int64_t i = 0; i < 100; i++)
        assert_int_equal(post_number(0, "RPUSH", "list", i, false), 0);
    assert_int_equal(redis_fixture_restart(t.fixture, 0), 0);
    assert_int_equal(mfs_store_drain(t.store, 5 * MFS_SEC), 0);
    check_list(0, "list", 100);
}

static void a_partition_that_stays_away_is_given_up(void **state)
{
    int64_t start = mfs_clock_mono();

    (void)state;
    redis_fixture_kill(t.fixture, 0);
    for (int64_t i = 0; i < 100; i++)
        assert_int_equal(post_number(0, "RPUSH", "list", i, false), 0);
    assert_int_equal(post_number(1, "RPUSH", "list", 0, false), 0);
    assert_int_equal(mfs_store_drain(t.store, 10 * MFS_SEC), 0);
    assert_in_range(mfs_clock_mono() - start, TIMEOUT, TIMEOUT + 2 * MFS_SEC);
    check_list(1, "list", 1);
}

static void a_full_queue_makes_posts_wait_but_not_for_ever(void **state)
{
    pid_t pid = redis_fixture_pid(t.fixture, 0);
    static unsigned char value[256 << 10];
    struct mfs_args a;
    struct mfs_cmd cmd = set_cmd(&a, 0, "value", value, sizeof value);
    int64_t start;
    int rc = 0;

    (void)state;
    cmd.idempotent = true;
    assert_int_equal(run3(t.store, 0, "PING", NULL, NULL, true), 0);
    kill(pid, SIGSTOP);
    for (int i = 0; i < 100 && !rc; i++) {
        start = mfs_clock_mono();
        rc = mfs_store_post(t.store, &cmd);
    }
    assert_int_equal(rc, -ETIMEDOUT);
    assert_true(mfs_clock_mono() - start < TIMEOUT + MFS_SEC);
    kill(pid, SIGCONT);
    assert_int_equal(mfs_store_drain(t.store, 5 * MFS_SEC), 0);
    assert_int_equal(mfs_store_post(t.store, &cmd), 0);
}

struct poster {
    pthread_t thread;
    char key[16];
    int rc;
};

static void *post_many(void *arg)
{
    struct poster *p = arg;

    for (int64_t i = 0; i < 3000 && !p->rc; i++)
        p->rc = post_number((uint32_t)(i % NPARTS), "RPUSH", p->key, i / NPARTS, false);
    return NULL;
}

static void many_threads_post(void **state)
{
    struct poster p[6] = {0};

    (void)state;
    for (int i = 0; i < 6; i++) {
        snprintf(p[i].key, sizeof p[i].key, "list%d", i);
        assert_int_equal(mfs_thread_start(&p[i].thread, "poster", post_many, &p[i]), 0);
    }
    for (int i = 0; i < 6; i++) {
        pthread_join(p[i].thread, NULL);
        assert_int_equal(p[i].rc, 0);
    }
    assert_int_equal(mfs_store_drain(t.store, 10 * MFS_SEC), 0);
    for (int i = 0; i < 6; i++)
        for (uint32_t part = 0; part < NPARTS; part++)
            check_list(part, p[i].key, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(posted_commands_keep_their_order, setup, teardown),
        cmocka_unit_test_setup_teardown(large_posts_are_copied, setup, teardown),
        cmocka_unit_test_setup_teardown(error_replies_do_not_disturb, setup, teardown),
        cmocka_unit_test_setup_teardown(replies_are_read_without_anybody_waiting, setup, teardown),
        cmocka_unit_test_setup_teardown(posts_wait_behind_a_fence, setup, teardown),
        cmocka_unit_test_setup_teardown(posts_follow_a_moved_partition, setup_tcp, teardown),
        cmocka_unit_test_setup_teardown(unsent_posts_survive_a_restart, setup, teardown),
        cmocka_unit_test_setup_teardown(a_partition_that_stays_away_is_given_up, setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_queue_makes_posts_wait_but_not_for_ever, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(many_threads_post, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
