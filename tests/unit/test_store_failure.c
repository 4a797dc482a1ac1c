/* Processes that die, hang, come back or move, and partitions that are suspended: what a caller
 * sees, and when. ctest: threaded */
#include <pthread.h>
#include <signal.h>

#include "base/thread.h"
#include "store_test.h"

#define TIMEOUT (2 * MFS_SEC)
#define NPARTS  2

static struct store_test t;

static void open_with(int64_t io_timeout, int64_t table_wait, bool tcp)
{
    store_test_open(&t, &(struct redis_fixture_opts){.nparts = NPARTS, .tcp = tcp},
                    &(struct mfs_store_opts){.io_timeout = io_timeout, .table_wait = table_wait});
}

static int setup(void **state)
{
    (void)state;
    open_with(TIMEOUT, 0, false);
    return 0;
}

static int setup_tcp(void **state)
{
    (void)state;
    open_with(TIMEOUT, 0, true);
    return 0;
}

static int setup_waiting(void **state)
{
    (void)state;
    open_with(TIMEOUT, 5 * MFS_SEC, false);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    store_test_close(&t);
    return 0;
}

static int incr(uint32_t part)
{
    return run3(t.store, part, "INCR", "counter", NULL, false);
}

static int64_t value_of(uint32_t part, const char *key)
{
    char text[32] = "";
    struct mfs_args a;
    struct mfs_cmd cmd = get_cmd(&a, part, key, text, sizeof text - 1);

    assert_int_equal(mfs_store_exec(t.store, &cmd, 1), 0);
    mfs_cmds_fini(&cmd, 1);
    return cmd.into_len < 0 ? -1 : atoll(text);
}

static void a_dead_process_is_eio_and_others_go_on(void **state)
{
    struct mfs_args a[2];
    struct mfs_cmd cmds[2];

    (void)state;
    assert_int_equal(incr(0), 0);
    redis_fixture_kill(t.fixture, 0);
    for (uint32_t i = 0; i < 2; i++)
        cmds[i] = cmd_of(&a[i], i, "INCR", "counter", NULL);
    assert_int_equal(mfs_store_exec(t.store, cmds, 2), -EIO);
    assert_int_equal(cmds[0].rc, -EIO);
    assert_int_equal(mfs_reply_int(cmds[1].reply), 1);
    mfs_cmds_fini(cmds, 2);
    assert_int_equal(redis_fixture_restart(t.fixture, 0), 0);
    assert_int_equal(incr(0), 0);
    assert_int_equal(value_of(0, "counter"), 1);
}

/* The connections in the pool are all stale after a restart; nobody should notice. */
static void stale_connections_are_replaced(void **state)
{
    (void)state;
    assert_int_equal(incr(0), 0);
    redis_fixture_kill(t.fixture, 0);
    assert_int_equal(redis_fixture_restart(t.fixture, 0), 0);
    assert_int_equal(incr(0), 0);
    assert_int_equal(value_of(0, "counter"), 1);
}

static void *kill_soon(void *arg)
{
    mfs_clock_sleep(*(int64_t *)arg);
    kill(redis_fixture_pid(t.fixture, 0), SIGKILL);
    return NULL;
}

/* Reads 64 MiB while the process is killed: whole values or errors, never torn ones. */
static void killed_in_mid_reply(void **state)
{
    enum { N = 64, SIZE = 1 << 20 };
    unsigned char *value = malloc(SIZE), *in = malloc((size_t)N * SIZE);
    static struct mfs_args a[N];
    struct mfs_cmd cmds[N];

    (void)state;
    fill_pattern(value, SIZE, 5);
    for (int64_t delay = 0; delay < 12 * MFS_MSEC; delay += 2 * MFS_MSEC) {
        pthread_t killer;

        cmds[0] = set_cmd(&a[0], 0, "value", value, SIZE);
        assert_int_equal(mfs_store_exec(t.store, cmds, 1), 0);
        mfs_cmds_fini(cmds, 1);
        for (int i = 0; i < N; i++)
            cmds[i] = get_cmd(&a[i], 0, "value", in + (size_t)i * SIZE, SIZE);
        assert_int_equal(mfs_thread_start(&killer, "killer", kill_soon, &delay), 0);
        mfs_store_exec(t.store, cmds, N);
        for (int i = 0; i < N; i++) {
            assert_true(cmds[i].rc == 0 || cmds[i].rc == -EIO);
            if (!cmds[i].rc)
                assert_memory_equal(in + (size_t)i * SIZE, value, SIZE);
        }
        mfs_cmds_fini(cmds, N);
        pthread_join(killer, NULL);
        redis_fixture_kill(t.fixture, 0);
        assert_int_equal(redis_fixture_restart(t.fixture, 0), 0);
    }
    free(in);
    free(value);
}

static void a_stopped_process_times_out(void **state)
{
    static unsigned char big[4 << 20];
    struct mfs_args a;
    struct mfs_cmd cmd;
    int64_t start;
    pid_t pid = redis_fixture_pid(t.fixture, 0);

    (void)state;
    assert_int_equal(incr(0), 0);
    kill(pid, SIGSTOP);
    start = mfs_clock_mono();
    assert_int_equal(incr(0), -ETIMEDOUT); /* waiting for a reply */
    assert_true(mfs_clock_mono() - start < TIMEOUT + MFS_SEC);
    start = mfs_clock_mono();
    cmd = set_cmd(&a, 0, "big", big, sizeof big);
    assert_int_equal(mfs_store_exec(t.store, &cmd, 1), -ETIMEDOUT); /* connecting */
    mfs_cmds_fini(&cmd, 1);
    assert_true(mfs_clock_mono() - start < TIMEOUT + MFS_SEC);
    kill(pid, SIGCONT);
    assert_int_equal(run3(t.store, 0, "PING", NULL, NULL, true), 0);
    kill(pid, SIGSTOP);
    start = mfs_clock_mono();
    assert_int_equal(mfs_store_exec(t.store, &cmd, 1), -ETIMEDOUT); /* sending */
    mfs_cmds_fini(&cmd, 1);
    assert_true(mfs_clock_mono() - start < TIMEOUT + MFS_SEC);
    kill(pid, SIGCONT);
    assert_int_equal(run3(t.store, 0, "PING", NULL, NULL, true), 0);
}

struct waiter {
    int rc;
    int64_t took;
};

static void *incr_waiting(void *arg)
{
    struct waiter *w = arg;
    int64_t start = mfs_clock_mono();

    w->rc = incr(0);
    w->took = mfs_clock_mono() - start;
    return NULL;
}

static void with_table_wait_a_process_may_come_back(void **state)
{
    struct waiter w = {0};
    pthread_t thread;

    (void)state;
    assert_int_equal(incr(0), 0);
    redis_fixture_kill(t.fixture, 0);
    assert_int_equal(mfs_thread_start(&thread, "waiter", incr_waiting, &w), 0);
    mfs_clock_sleep(300 * MFS_MSEC);
    assert_int_equal(redis_fixture_restart(t.fixture, 0), 0);
    pthread_join(thread, NULL);
    assert_int_equal(w.rc, 0);
    assert_int_equal(value_of(0, "counter"), 1);
}

static void with_table_wait_a_newer_table_helps(void **state)
{
    struct waiter w = {0};
    pthread_t thread;

    (void)state;
    assert_int_equal(incr(0), 0);
    redis_fixture_kill(t.fixture, 0);
    assert_int_equal(mfs_thread_start(&thread, "waiter", incr_waiting, &w), 0);
    mfs_clock_sleep(300 * MFS_MSEC);
    assert_int_equal(redis_fixture_move(t.fixture, 0), 0);
    assert_int_equal(mfs_store_set_table(t.store, redis_fixture_table(t.fixture)), 0);
    pthread_join(thread, NULL);
    assert_int_equal(w.rc, 0);
    assert_int_equal(mfs_store_epoch(t.store), 2);
}

static void table_wait_is_bounded(void **state)
{
    int64_t start = mfs_clock_mono();

    (void)state;
    redis_fixture_kill(t.fixture, 0);
    assert_int_equal(incr(0), -EIO);
    assert_in_range(mfs_clock_mono() - start, 5 * MFS_SEC, 6 * MFS_SEC);
}

static void a_new_table_moves_all_later_commands(void **state)
{
    struct mfs_table *same;

    (void)state;
    assert_int_equal(incr(0), 0);
    assert_int_equal(redis_fixture_move(t.fixture, 0), 0);
    assert_int_equal(incr(0), 0);
    assert_int_equal(value_of(0, "counter"), 2); /* the old process, still */
    assert_int_equal(mfs_store_set_table(t.store, redis_fixture_table(t.fixture)), 0);
    assert_int_equal(value_of(0, "counter"), -1);
    assert_int_equal(mfs_store_set_table(t.store, redis_fixture_table(t.fixture)), -ESTALE);
    same = redis_fixture_table(t.fixture);
    same->epoch++;
    same->stripe_size *= 2;
    assert_int_equal(mfs_store_set_table(t.store, same), -EINVAL);
    assert_int_equal(incr(0), 0);
    assert_int_equal(value_of(0, "counter"), 1);
}

static void suspended_commands_wait_for_resume(void **state)
{
    struct waiter w = {0};
    pthread_t thread;

    (void)state;
    assert_int_equal(incr(0), 0);
    assert_int_equal(mfs_store_suspend(t.store, 0, MFS_SEC), 0);
    assert_int_equal(incr(1), 0);
    assert_int_equal(mfs_thread_start(&thread, "waiter", incr_waiting, &w), 0);
    mfs_clock_sleep(200 * MFS_MSEC);
    mfs_store_resume(t.store, 0);
    pthread_join(thread, NULL);
    assert_int_equal(w.rc, 0);
    assert_true(w.took >= 150 * MFS_MSEC);
    assert_int_equal(value_of(0, "counter"), 2);
}

static void suspension_has_its_bounds(void **state)
{
    pid_t pid = redis_fixture_pid(t.fixture, 0);
    struct waiter w = {0};
    pthread_t thread;

    (void)state;
    assert_int_equal(mfs_store_suspend(t.store, NPARTS, 0), -EINVAL);
    assert_int_equal(mfs_store_suspend(t.store, 0, 0), 0);
    assert_int_equal(incr(0), -ETIMEDOUT);
    mfs_store_resume(t.store, 0);
    kill(pid, SIGSTOP);
    assert_int_equal(mfs_thread_start(&thread, "waiter", incr_waiting, &w), 0);
    mfs_clock_sleep(100 * MFS_MSEC);
    assert_int_equal(mfs_store_suspend(t.store, 0, 200 * MFS_MSEC), -ETIMEDOUT);
    kill(pid, SIGCONT);
    assert_int_equal(mfs_store_suspend(t.store, 0, MFS_SEC), 0);
    pthread_join(thread, NULL);
    assert_int_equal(w.rc, 0);
    mfs_store_resume(t.store, 0);
    assert_int_equal(incr(0), 0);
}

static void a_move_in_full_swing(void **state)
{
    (void)state;
    assert_int_equal(incr(0), 0);
    assert_int_equal(mfs_store_suspend(t.store, 0, MFS_SEC), 0);
    assert_int_equal(redis_fixture_move(t.fixture, 0), 0);
    assert_int_equal(mfs_store_set_table(t.store, redis_fixture_table(t.fixture)), 0);
    mfs_store_resume(t.store, 0);
    assert_int_equal(value_of(0, "counter"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_dead_process_is_eio_and_others_go_on, setup, teardown),
        cmocka_unit_test_setup_teardown(stale_connections_are_replaced, setup, teardown),
        cmocka_unit_test_setup_teardown(stale_connections_are_replaced, setup_waiting, teardown),
        cmocka_unit_test_setup_teardown(killed_in_mid_reply, setup, teardown),
        cmocka_unit_test_setup_teardown(killed_in_mid_reply, setup_tcp, teardown),
        cmocka_unit_test_setup_teardown(a_stopped_process_times_out, setup, teardown),
        cmocka_unit_test_setup_teardown(a_stopped_process_times_out, setup_tcp, teardown),
        cmocka_unit_test_setup_teardown(with_table_wait_a_process_may_come_back, setup_waiting,
                                        teardown),
        cmocka_unit_test_setup_teardown(with_table_wait_a_newer_table_helps, setup_waiting,
                                        teardown),
        cmocka_unit_test_setup_teardown(table_wait_is_bounded, setup_waiting, teardown),
        cmocka_unit_test_setup_teardown(a_new_table_moves_all_later_commands, setup, teardown),
        cmocka_unit_test_setup_teardown(a_new_table_moves_all_later_commands, setup_tcp, teardown),
        cmocka_unit_test_setup_teardown(suspended_commands_wait_for_resume, setup, teardown),
        cmocka_unit_test_setup_teardown(suspension_has_its_bounds, setup, teardown),
        cmocka_unit_test_setup_teardown(a_move_in_full_swing, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
