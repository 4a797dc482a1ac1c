/* Writes wait for a partition's replica: the process of partition 1 is made that of partition 0,
 * which serves while it consents.
 * ctest: threaded waits */
#include <pthread.h>
#include <signal.h>

#include "store/args.h"
#include "store/reply.h"
#include "store_test.h"

#define SHORT   (500 * MFS_MSEC)
#define PATIENT (60 * MFS_SEC)

static struct store_test t;
static struct mfs_store *hasty; /* another client, that does not wait for long */

static void admin(uint32_t part, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void admin(uint32_t part, const char *fmt, ...)
{
    char command[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(command, sizeof command, fmt, ap);
    va_end(ap);
    assert_int_equal(redis_fixture_admin(t.fixture, part, command), 0);
}

/* The fixture's table, of a later epoch. */
static struct mfs_table *table(uint64_t more, uint32_t era, bool replica)
{
    struct mfs_table *n = redis_fixture_table(t.fixture);

    n->epoch += more;
    n->replicated = true;
    n->part[0].era = era;
    n->part[0].replica = replica;
    return n;
}

static void tell(uint64_t more, uint32_t era, bool replica)
{
    assert_int_equal(mfs_store_set_table(t.store, table(more, era, replica)), 0);
    assert_int_equal(mfs_store_set_table(hasty, table(more, era, replica)), 0);
}

static void follow(void)
{
    struct mfs_table *n = redis_fixture_table(t.fixture);

    admin(1, "REPLICAOF %s %u", n->part[0].host, n->part[0].port);
    free(n);
}

/* It lacks what is written from now on, and goes on consenting. */
static void do_not_follow(void)
{
    admin(1, "REPLICAOF NO ONE");
}

static void begin_terms(void)
{
    struct mfs_table *n = redis_fixture_table(t.fixture);

    admin(0, "mfs_term begin %s %u %s %s word", n->part[1].host, n->part[1].port, MFS_REDIS_ADMIN,
          REDIS_FIXTURE_ADMIN_PASSWORD);
    free(n);
}

static int setup(void **state)
{
    const struct redis_fixture_opts how = {.nparts = 2, .tcp = true};

    (void)state;
    store_test_open(&t, &how, &(struct mfs_store_opts){.io_timeout = PATIENT});
    assert_int_equal(
        mfs_store_create(&hasty, redis_fixture_table(t.fixture),
                         &(struct mfs_store_opts){.io_timeout = SHORT, .fence_wait = PATIENT}),
        0);
    admin(0, "mfs_term admit " MFS_REDIS_COPY " word");
    admin(1, "CONFIG SET masteruser " MFS_REDIS_COPY " masterauth word");
    admin(0, "CONFIG SET repl-diskless-sync-delay 0");
    follow();
    begin_terms();
    tell(1, 0, true);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    mfs_store_destroy(hasty);
    store_test_close(&t);
    return 0;
}

static bool is_there(uint32_t part, const char *key)
{
    char value[8];
    struct mfs_args a;
    struct mfs_cmd cmd = get_cmd(&a, part, key, value, sizeof value);
    int rc = mfs_store_exec(hasty, &cmd, 1);
    bool there = !rc && cmd.into_len > 0;

    mfs_cmds_fini(&cmd, 1);
    return there;
}

static void what_is_answered_is_on_the_replica(void **state)
{
    char key[16];

    (void)state;
    for (int i = 0; i < 200; i++) {
        snprintf(key, sizeof key, "k%d", i);
        assert_int_equal(run3(t.store, 0, "SET", key, "v", true), 0);
        assert_true(is_there(1, key));
    }
}

/* Behind so many writes goes a WAIT each, and no question of its own but where the replica is slow.
 */
static void confirmation_travels_with_the_write(void **state)
{
    struct mfs_store_stats before, after;
    struct mfs_args a[8];
    struct mfs_cmd cmds[8];

    (void)state;
    assert_int_equal(run3(t.store, 0, "SET", "warm", "v", true), 0);
    mfs_store_stats(t.store, &before);
    for (int i = 0; i < 100; i++) {
        for (size_t k = 0; k < 8; k++) {
            mfs_args_init(&a[k], "SET");
            mfs_args_str(&a[k], "k");
            mfs_args_int(&a[k], i);
            cmds[k] = mfs_args_cmd(&a[k], 0);
        }
        assert_int_equal(mfs_store_exec(t.store, cmds, 8), 0);
        for (size_t k = 0; k < 8; k++)
            assert_string_equal(mfs_reply_str(cmds[k].reply, NULL), "OK");
        mfs_cmds_fini(cmds, 8);
    }
    mfs_store_stats(t.store, &after);
    assert_true(after.commands - before.commands >= 900);
    assert_true(after.round_trips - before.round_trips < 150);
}

static void without_the_replica_a_write_fails_and_a_read_does_not(void **state)
{
    (void)state;
    assert_int_equal(run3(t.store, 0, "SET", "before", "v", true), 0);
    do_not_follow();
    assert_int_equal(run3(hasty, 0, "SET", "k", "v", true), -ETIMEDOUT);
    assert_true(is_there(0, "before"));
    tell(2, 0, false); /* it is about to be given up */
    assert_int_equal(run3(hasty, 0, "SET", "k", "v", true), -ETIMEDOUT);
    admin(0, "mfs_term end");
    assert_int_equal(run3(hasty, 0, "SET", "k", "v", true), 0);
}

/* Opens a file; `cut`: with O_TRUNC. */
static int open_file(struct mfs_store *store, bool cut)
{
    static const char ino[8], sid[8] = "session", time[12];
    struct mfs_args a;
    struct mfs_cmd cmd;
    int rc;

    mfs_args_init(&a, "mfs_open");
    mfs_args_bin(&a, ino, sizeof ino);
    mfs_args_bin(&a, sid, sizeof sid);
    mfs_args_int(&a, 0);
    if (cut) {
        mfs_args_bin(&a, time, sizeof time);
        mfs_args_int(&a, 0);
        mfs_args_int(&a, 1 << 20);
        mfs_args_int(&a, 0);
    }
    cmd = mfs_args_cmd(&a, 0);
    rc = mfs_store_exec(store, &cmd, 1);
    mfs_cmds_fini(&cmd, 1);
    return rc;
}

/* Who has a file open is a mark that is made again; that it was emptied is not. */
static void an_open_that_empties_a_file_waits_for_the_replica(void **state)
{
    static const char key[9] = "I", record[100] = {1}; /* its format */
    struct mfs_args a;
    struct mfs_cmd cmd;

    (void)state;
    mfs_args_init(&a, "SET");
    mfs_args_bin(&a, key, sizeof key);
    mfs_args_bin(&a, record, sizeof record);
    cmd = mfs_args_cmd(&a, 0);
    assert_int_equal(mfs_store_exec(t.store, &cmd, 1), 0);
    mfs_cmds_fini(&cmd, 1);
    do_not_follow();
    assert_int_equal(open_file(hasty, false), 0);
    assert_int_equal(open_file(hasty, true), -ETIMEDOUT);
    follow();
    assert_int_equal(open_file(t.store, true), 0);
}

/* Whatever a table says that may be old, the process knows (decisions/0023). */
static void who_has_not_heard_of_a_replica_waits_for_it(void **state)
{
    (void)state;
    assert_int_equal(run3(t.store, 0, "SET", "before", "v", true), 0);
    do_not_follow();
    assert_int_equal(mfs_store_set_table(hasty, table(2, 0, false)), 0);
    assert_int_equal(run3(hasty, 0, "SET", "k", "v", true), -ETIMEDOUT);
    follow();
    assert_int_equal(mfs_store_set_table(t.store, table(2, 0, false)), 0);
    assert_int_equal(run3(t.store, 0, "SET", "k", "v", true), 0);
    assert_true(is_there(1, "k"));
}

static void who_has_not_heard_that_it_is_given_up_waits_for_none(void **state)
{
    (void)state;
    assert_int_equal(run3(t.store, 0, "SET", "before", "v", true), 0);
    do_not_follow();
    admin(0, "mfs_term end");
    assert_int_equal(run3(t.store, 0, "SET", "k", "v", true), 0);
    assert_false(is_there(1, "k"));
}

/* The question whether there is one goes with what is written, too. */
static void where_there_is_none_a_write_takes_one_round_trip(void **state)
{
    struct mfs_store_stats before, after;

    (void)state;
    admin(0, "mfs_term end");
    tell(2, 0, false);
    assert_int_equal(run3(t.store, 0, "SET", "warm", "v", true), 0);
    mfs_store_stats(t.store, &before);
    for (int i = 0; i < 100; i++)
        assert_int_equal(run3(t.store, 0, "SET", "k", "v", true), 0);
    mfs_store_stats(t.store, &after);
    assert_int_equal(after.round_trips - before.round_trips, 100);
    assert_int_equal(after.commands - before.commands, 200);
}

struct write {
    const char *command;
    bool idempotent;
    int rc;
};

static void *run_write(void *arg)
{
    struct write *w = arg;

    w->rc = run3(t.store, 0, w->command, "late", "v", w->idempotent);
    return NULL;
}

/* The partition has executed it, the replica has not, and then another process is the partition. */
static void write_across_a_failover(struct write *w)
{
    pthread_t thread;
    int64_t until = mfs_clock_mono() + PATIENT;

    assert_int_equal(run3(t.store, 0, "SET", "before", "v", true), 0);
    do_not_follow();
    assert_int_equal(pthread_create(&thread, NULL, run_write, w), 0);
    while (!is_there(0, "late"))
        assert_true(mfs_clock_mono() < until);
    assert_int_equal(redis_fixture_move(t.fixture, 0), 0);
    tell(2, 1, false);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void what_may_be_done_twice_is_done_again(void **state)
{
    struct write w = {"SET", true, 1};

    (void)state;
    write_across_a_failover(&w);
    assert_int_equal(w.rc, 0);
    assert_true(is_there(0, "late"));
}

static void what_may_not_fails(void **state)
{
    struct write w = {"APPEND", false, 1};

    (void)state;
    write_across_a_failover(&w);
    assert_int_equal(w.rc, -EIO);
    assert_false(is_there(0, "late"));
}

static int post(const char *key)
{
    struct mfs_args a;
    struct mfs_cmd cmd = cmd_of(&a, 0, "SET", key, "v");

    return mfs_store_post(t.store, &cmd);
}

/* Notices to other clients are among them, whose answers are waited for. */
static void what_is_posted_does_not_wait_for_a_process_that_hangs(void **state)
{
    pid_t hangs = redis_fixture_pid(t.fixture, 0);

    (void)state;
    assert_int_equal(post("first"), 0);
    assert_int_equal(mfs_store_drain(t.store, PATIENT), 0);
    assert_int_equal(kill(hangs, SIGSTOP), 0);
    assert_int_equal(post("lost"), 0);
    assert_int_equal(redis_fixture_move(t.fixture, 0), 0);
    tell(2, 1, false);
    assert_int_equal(post("posted"), 0);
    assert_int_equal(mfs_store_drain(t.store, PATIENT / 2), 0);
    assert_true(is_there(0, "posted"));
    assert_int_equal(kill(hangs, SIGCONT), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_answered_is_on_the_replica),
        TEST(confirmation_travels_with_the_write),
        TEST(without_the_replica_a_write_fails_and_a_read_does_not),
        TEST(an_open_that_empties_a_file_waits_for_the_replica),
        TEST(who_has_not_heard_of_a_replica_waits_for_it),
        TEST(who_has_not_heard_that_it_is_given_up_waits_for_none),
        TEST(where_there_is_none_a_write_takes_one_round_trip),
        TEST(what_may_be_done_twice_is_done_again),
        TEST(what_may_not_fails),
        TEST(what_is_posted_does_not_wait_for_a_process_that_hangs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
