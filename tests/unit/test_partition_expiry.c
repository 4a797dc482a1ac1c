/* A process of a partition dies while keys with a time to live are about to end: its successor
 * reads the journal when some of them have ended, and has to know neither more nor less than what
 * has not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "redis_fixture.h"
#include "store/admin/admin.h"
#include "store/args.h"
#include "store/reply.h"

static struct redis_fixture *redis;

static int start(void **state)
{
    (void)state;
    mfs_log_set_level(MFS_LOG_ERROR);
    return redis_fixture_start(
        &redis, &(struct redis_fixture_opts){.nparts = 1, .stripe_size = 4096, .journal = true});
}

static int stop(void **state)
{
    (void)state;
    redis_fixture_stop(redis);
    return 0;
}

static void order(const char *command)
{
    if (redis_fixture_admin(redis, 0, command))
        fail_msg("%s", command);
}

static long long number(const char *command, const char *key)
{
    char path[108];
    struct mfs_admin *admin;
    struct mfs_args args;
    struct mfs_cmd cmd;
    struct mfs_err err;
    long long n;

    redis_fixture_socket(redis, 0, path, sizeof path);
    if (mfs_admin_open(&admin, path, NULL, 0, REDIS_FIXTURE_ADMIN_PASSWORD, 10 * MFS_SEC, &err))
        fail_msg("%s", err.msg);
    mfs_args_init(&args, command);
    mfs_args_str(&args, key);
    cmd = mfs_args_cmd(&args, 0);
    if (mfs_admin_call(admin, &cmd, &err))
        fail_msg("%s", err.msg);
    n = mfs_reply_int(cmd.reply);
    mfs_cmds_fini(&cmd, 1);
    mfs_admin_close(admin);
    return n;
}

static void die_until(time_t end)
{
    const struct timespec at = {.tv_sec = end};

    redis_fixture_kill(redis, 0);
    clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &at, NULL);
    assert_int_equal(redis_fixture_revive(redis, 0), 0);
}

/* Tombstones of directories are such hashes: told of field by field, also after their time. */
static void test_what_has_ended_does_not_come_back(void **state)
{
    (void)state;
    order("HSET hash a 1");
    order("PEXPIRE hash 2000");
    order("HSET hash b 2");
    order("SADD set a");
    order("PEXPIRE set 2000");
    order("SADD set b");
    order("SREM set a");
    order("SET string a PX 2000");
    die_until(mfs_clock_real().tv_sec + 3);
    assert_int_equal(number("EXISTS", "hash"), 0);
    assert_int_equal(number("EXISTS", "set"), 0);
    assert_int_equal(number("EXISTS", "string"), 0);
}

static void test_what_was_given_more_time_is_whole(void **state)
{
    long long ends;

    (void)state;
    order("HSET longer a 1");
    order("PEXPIRE longer 2000");
    order("HSET longer b 2");
    order("EXPIRE longer 1000");
    order("HSET forever a 1");
    order("PEXPIRE forever 2000");
    order("HSET forever b 2");
    order("PERSIST forever");
    order("HSET again a 1");
    order("PEXPIRE again 2000");
    order("DEL again");
    order("HSET again b 2");
    ends = number("PEXPIRETIME", "longer");
    die_until(mfs_clock_real().tv_sec + 3);
    assert_int_equal(number("HLEN", "longer"), 2);
    assert_int_equal(number("PEXPIRETIME", "longer"), ends);
    assert_int_equal(number("HLEN", "forever"), 2);
    assert_int_equal(number("PEXPIRETIME", "forever"), -1);
    assert_int_equal(number("HLEN", "again"), 1);
    assert_int_equal(number("PEXPIRETIME", "again"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_has_ended_does_not_come_back),
        cmocka_unit_test(test_what_was_given_more_time_is_whole),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
