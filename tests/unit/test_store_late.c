/* What a process that wakes up late executes of the commands that its clients have given up; and
 * what a client that wakes up late makes of answers that were there in time. ctest: waits */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store_test.h"

#define TIMEOUT (300 * MFS_MSEC)
#define PATIENT (30 * MFS_SEC)
#define STRIPE  (1020U << 10)

static struct store_test t;
static struct mfs_store *patient; /* another client, that waits */

static int open_with(bool tcp)
{
    store_test_open(&t, &(struct redis_fixture_opts){.nparts = 1, .tcp = tcp},
                    &(struct mfs_store_opts){.io_timeout = TIMEOUT});
    return mfs_store_create(&patient, redis_fixture_table(t.fixture),
                            &(struct mfs_store_opts){.io_timeout = PATIENT});
}

static int setup_unix(void **state)
{
    (void)state;
    return open_with(false);
}

static int setup_tcp(void **state)
{
    (void)state;
    return open_with(true);
}

static int teardown(void **state)
{
    (void)state;
    mfs_store_destroy(patient);
    store_test_close(&t);
    return 0;
}

static void stop(bool yes)
{
    kill(redis_fixture_pid(t.fixture, 0), yes ? SIGSTOP : SIGCONT);
}

/* As another client: its connection is there before, its question comes after. */
static int64_t ask(const char *command, const char *key)
{
    struct mfs_args a;
    struct mfs_cmd cmd = cmd_of(&a, 0, command, key, NULL);
    int64_t n;

    assert_int_equal(mfs_store_exec(patient, &cmd, 1), 0);
    n = mfs_reply_int(cmd.reply);
    mfs_cmds_fini(&cmd, 1);
    return n;
}

static int64_t connections(void)
{
    static const char label[] = "connected_clients:";
    char info[4096] = "";
    struct mfs_args a;
    struct mfs_cmd cmd = cmd_of(&a, 0, "INFO", "clients", NULL);
    const char *at;

    cmd.into = info;
    cmd.into_cap = sizeof info - 1;
    assert_int_equal(mfs_store_exec(patient, &cmd, 1), 0);
    mfs_cmds_fini(&cmd, 1);
    at = strstr(info, label);
    assert_non_null(at);
    return atoll(at + sizeof label - 1);
}

/* The process has seen the end of a connection, and so has read all that was to come by it. */
static void wait_for_connections(int64_t n)
{
    int64_t until = mfs_clock_mono() + PATIENT;

    while (connections() > n) {
        assert_true(mfs_clock_mono() < until);
        mfs_clock_sleep(MFS_MSEC);
    }
}

static int set(const char *key, const void *value, size_t len)
{
    struct mfs_args a;
    struct mfs_cmd cmd = set_cmd(&a, 0, key, value, len);
    int rc = mfs_store_exec(t.store, &cmd, 1);

    mfs_cmds_fini(&cmd, 1);
    return rc;
}

/* More than a receive buffer holds: by TCP the rest is in our kernel when the call has failed,
 * which must not go on sending for us. */
static void test_large(void **state)
{
    static unsigned char value[2 << 20];
    const size_t len[] = {512U << 10, STRIPE, sizeof value};
    int64_t before = connections();

    (void)state;
    for (size_t i = 0; i < sizeof len / sizeof *len; i++) {
        assert_int_equal(set("warm", "x", 1), 0);
        stop(true);
        assert_int_equal(set("late", value, len[i]), -ETIMEDOUT);
        stop(false);
        wait_for_connections(before);
        assert_int_equal(ask("STRLEN", "late"), 0);
    }
}

/* What has reached the process can't be taken back; but it comes before all that is answered
 * later. */
static void test_small(void **state)
{
    int64_t before = connections(), then;

    (void)state;
    assert_int_equal(set("warm", "x", 1), 0);
    stop(true);
    assert_int_equal(run3(t.store, 0, "INCR", "counter", NULL, false), -ETIMEDOUT);
    stop(false);
    then = ask("STRLEN", "counter");
    wait_for_connections(before);
    assert_int_equal(ask("STRLEN", "counter"), then);
    print_message("what had arrived was executed: %s\n", then ? "yes" : "no");
}

/* --- the client is stopped ------------------------------------------------------------------- */

#define STOPPED  (2 * MFS_SEC) /* the client's patience: it is stopped for longer */
#define COUNTERS 2U

static int setup_two(void **state)
{
    (void)state;
    store_test_open(&t, &(struct redis_fixture_opts){.nparts = COUNTERS},
                    &(struct mfs_store_opts){.io_timeout = TIMEOUT});
    return mfs_store_create(&patient, redis_fixture_table(t.fixture),
                            &(struct mfs_store_opts){.io_timeout = PATIENT});
}

/* Counts at so many partitions, once and not again. Never returns. */
static void be_client(unsigned parts, int ready)
{
    struct mfs_args a[COUNTERS];
    struct mfs_cmd cmd[COUNTERS];
    struct mfs_store *store;
    int rc = mfs_store_create(&store, redis_fixture_table(t.fixture),
                              &(struct mfs_store_opts){.io_timeout = STOPPED});

    for (unsigned i = 0; i < parts; i++)
        cmd[i] = cmd_of(&a[i], i, "INCR", "counter", NULL);
    for (unsigned i = 0; i < parts && rc == 0; i++)
        rc = run3(store, i, "GET", "warm", NULL, true); /* there is a connection */
    if (rc == 0 && write(ready, "", 1) == 1)
        rc = mfs_store_exec(store, cmd, parts);
    for (unsigned i = 0; i < parts && rc == 0; i++)
        rc = mfs_reply_int(cmd[i].reply) == 1 ? 0 : 1;
    _exit(rc != 0);
}

static void stop_all(bool yes)
{
    for (unsigned i = 0; i < COUNTERS; i++)
        kill(redis_fixture_pid(t.fixture, i), yes ? SIGSTOP : SIGCONT);
}

/* The answers come while the client is stopped; when it goes on its time is long over. */
static void count_while_stopped(unsigned parts)
{
    int ready[2], status;
    pid_t client;
    char byte;

    assert_int_equal(pipe(ready), 0);
    client = fork();
    assert_true(client >= 0);
    if (client == 0)
        be_client(parts, ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    stop_all(true);
    mfs_clock_sleep(STOPPED / 10); /* it has asked by then, or asks when it goes on */
    kill(client, SIGSTOP);
    stop_all(false);
    mfs_clock_sleep(STOPPED + STOPPED / 2);
    kill(client, SIGCONT);
    assert_int_equal(waitpid(client, &status, 0), client);
    assert_int_equal(status, 0);
    close(ready[0]);
    close(ready[1]);
}

static void test_client_stopped(void **state)
{
    (void)state;
    count_while_stopped(1);
}

static void test_client_of_several_stopped(void **state)
{
    (void)state;
    count_while_stopped(COUNTERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_large, setup_unix, teardown),
        cmocka_unit_test_setup_teardown(test_large, setup_tcp, teardown),
        cmocka_unit_test_setup_teardown(test_small, setup_unix, teardown),
        cmocka_unit_test_setup_teardown(test_small, setup_tcp, teardown),
        cmocka_unit_test_setup_teardown(test_client_stopped, setup_two, teardown),
        cmocka_unit_test_setup_teardown(test_client_of_several_stopped, setup_two, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
