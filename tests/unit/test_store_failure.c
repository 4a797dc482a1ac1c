/* Processes that die, hang, come back or move, and partitions that are fenced: what a caller sees,
 * and when. ctest: threaded waits */
#include <stdatomic.h>
#include <pthread.h>
#include <signal.h>

#include "base/threads/thread.h"
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
    int rc;

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
    start = mfs_clock_mono();
    assert_int_equal(incr(0), -ETIMEDOUT); /* soon, as it has just said nothing */
    assert_true(mfs_clock_mono() - start < TIMEOUT / 2);
    kill(pid, SIGCONT);
    for (unsigned i = 0; (rc = run3(t.store, 0, "PING", NULL, NULL, true)) == -ETIMEDOUT; i++)
        assert_true(i < 20); /* what has been silent gets little time */
    assert_int_equal(rc, 0);
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
    atomic_bool done;
};

static void *incr_waiting(void *arg)
{
    struct waiter *w = arg;

    w->rc = incr(0);
    atomic_store(&w->done, true);
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

static void fenced_commands_wait_until_it_is_lifted(void **state)
{
    struct waiter w = {0};
    pthread_t thread;

    (void)state;
    assert_int_equal(incr(0), 0);
    assert_int_equal(redis_fixture_fence(t.fixture, 0, true), 0);
    assert_int_equal(mfs_thread_start(&thread, "waiter", incr_waiting, &w), 0);
    mfs_clock_sleep(200 * MFS_MSEC);
    assert_int_equal(incr(1), 0);
    assert_false(atomic_load(&w.done));
    assert_int_equal(redis_fixture_fence(t.fixture, 0, false), 0);
    pthread_join(thread, NULL);
    assert_int_equal(w.rc, 0);
    assert_int_equal(value_of(0, "counter"), 2);
}

static void waiting_for_a_fence_is_bounded(void **state)
{
    int64_t start;

    (void)state;
    assert_int_equal(incr(0), 0);
    assert_int_equal(redis_fixture_fence(t.fixture, 0, true), 0);
    start = mfs_clock_mono();
    assert_int_equal(incr(0), -EIO);
    assert_in_range(mfs_clock_mono() - start, TIMEOUT, TIMEOUT + MFS_SEC);
    assert_int_equal(incr(1), 0);
    assert_int_equal(redis_fixture_fence(t.fixture, 0, false), 0);
    assert_int_equal(incr(0), 0);
    assert_int_equal(value_of(0, "counter"), 2);
}

/* The old process ends before the table is here: what it refused still goes to the new place, and
 * does so as soon as that is known. */
static void commands_follow_a_partition_whose_process_is_gone(void **state)
{
    struct waiter w = {0};
    pthread_t thread;

    (void)state;
    assert_int_equal(incr(0), 0);
    assert_int_equal(redis_fixture_migrate(t.fixture, 0), 0);
    assert_int_equal(mfs_thread_start(&thread, "waiter", incr_waiting, &w), 0);
    mfs_clock_sleep(50 * MFS_MSEC);
    redis_fixture_release(t.fixture);
    mfs_clock_sleep(150 * MFS_MSEC);
    assert_false(atomic_load(&w.done));
    assert_int_equal(mfs_store_set_table(t.store, redis_fixture_table(t.fixture)), 0);
    pthread_join(thread, NULL);
    assert_int_equal(w.rc, 0);
    assert_int_equal(value_of(0, "counter"), 2);
}

static void *table_soon(void *arg)
{
    mfs_clock_sleep(100 * MFS_MSEC);
    mfs_store_set_table(t.store, arg);
    return NULL;
}

/* One call with commands of all kinds for two partitions, one of which is being moved. */
static void calls_for_several_partitions_are_completed(void **state)
{
    static unsigned char big[64 << 10];
    struct mfs_args a[5];
    struct mfs_cmd cmds[5];
    pthread_t thread;

    (void)state;
    fill_pattern(big, sizeof big, 3);
    assert_int_equal(incr(0), 0);
    assert_int_equal(redis_fixture_migrate(t.fixture, 0), 0);
    cmds[0] = cmd_of(&a[0], 0, "INCR", "counter", NULL);
    cmds[1] = cmd_of(&a[1], 1, "INCR", "counter", NULL);
    cmds[2] = set_cmd(&a[2], 0, "big", big, sizeof big);
    cmds[3] = cmd_of(&a[3], 0, "INCR", "counter", NULL);
    cmds[4] = cmd_of(&a[4], 0, "STRLEN", "big", NULL);
    assert_int_equal(mfs_thread_start(&thread, "table", table_soon, redis_fixture_table(t.fixture)),
                     0);
    assert_int_equal(mfs_store_exec(t.store, cmds, 5), 0);
    pthread_join(thread, NULL);
    assert_int_equal(mfs_reply_int(cmds[0].reply), 2);
    assert_int_equal(mfs_reply_int(cmds[1].reply), 1);
    assert_int_equal(mfs_reply_int(cmds[3].reply), 3);
    assert_int_equal(mfs_reply_int(cmds[4].reply), sizeof big);
    mfs_cmds_fini(cmds, 5);
}

static int setup_full(void **state)
{
    (void)state;
    store_test_open(&t, &(struct redis_fixture_opts){.nparts = NPARTS},
                    &(struct mfs_store_opts){.io_timeout = 10 * MFS_SEC, .full_wait = 1 * MFS_SEC});
    return 0;
}

static int fill_with(const unsigned char *big, size_t len)
{
    struct mfs_args a;
    struct mfs_cmd cmd = set_cmd(&a, 0, "big", big, len);
    int rc = mfs_store_exec(t.store, &cmd, 1);

    mfs_cmds_fini(&cmd, 1);
    return rc;
}

static void *make_room(void *arg)
{
    (void)arg;
    mfs_clock_sleep(300 * MFS_MSEC);
    redis_fixture_admin(t.fixture, 0, "CONFIG SET maxmemory 100mb");
    return NULL;
}

/* ENOSPC comes at once, or, while the deployment grows, after a while without room. */
static void full_partitions_are_waited_for_while_there_is_hope(void **state)
{
    unsigned char *big = calloc(1, 4U << 20);
    struct mfs_table *table;
    pthread_t thread;
    int64_t start;

    (void)state;
    assert_int_equal(fill_with(big, 4U << 20), 0);
    assert_int_equal(redis_fixture_admin(t.fixture, 0, "CONFIG SET maxmemory 3mb"), 0);
    start = mfs_clock_mono();
    assert_int_equal(fill_with(big, 1000), -ENOSPC);
    assert_true(mfs_clock_mono() - start < 500 * MFS_MSEC);
    table = redis_fixture_table(t.fixture);
    table->epoch = 2;
    table->growing = true;
    assert_int_equal(mfs_store_set_table(t.store, table), 0);
    start = mfs_clock_mono();
    assert_int_equal(fill_with(big, 1000), -ENOSPC);
    assert_in_range(mfs_clock_mono() - start, MFS_SEC, 2 * MFS_SEC);
    assert_int_equal(mfs_thread_start(&thread, "room", make_room, NULL), 0);
    assert_int_equal(fill_with(big, 1000), 0);
    pthread_join(thread, NULL);
    free(big);
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
        cmocka_unit_test_setup_teardown(fenced_commands_wait_until_it_is_lifted, setup, teardown),
        cmocka_unit_test_setup_teardown(waiting_for_a_fence_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(commands_follow_a_partition_whose_process_is_gone,
                                        setup_tcp, teardown),
        cmocka_unit_test_setup_teardown(calls_for_several_partitions_are_completed, setup_tcp,
                                        teardown),
        cmocka_unit_test_setup_teardown(full_partitions_are_waited_for_while_there_is_hope,
                                        setup_full, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
