/* What a Local Manager does to a redis process, against real ones. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "redis_fixture.h"
#include "store/admin/admin.h"
#include "store/args.h"
#include "store/reply.h"

static struct redis_fixture *fixture;

static int setup(void **state)
{
    (void)state;
    return redis_fixture_start(&fixture, &(struct redis_fixture_opts){.nparts = 2});
}

static int teardown(void **state)
{
    (void)state;
    redis_fixture_stop(fixture);
    return 0;
}

static struct mfs_admin *admin_open_for(uint32_t part, int64_t timeout)
{
    struct mfs_table *t = redis_fixture_table(fixture);
    struct mfs_admin *admin;
    struct mfs_err err;

    assert_int_equal(mfs_admin_open(&admin, t->part[part].unix_path, NULL, 0,
                                    REDIS_FIXTURE_ADMIN_PASSWORD, timeout, &err),
                     0);
    free(t);
    return admin;
}

static struct mfs_admin *admin_open(uint32_t part)
{
    return admin_open_for(part, 5 * MFS_SEC);
}

static void set(struct mfs_admin *admin, const char *key, const char *value)
{
    struct mfs_args args;
    struct mfs_cmd cmd;
    struct mfs_err err;

    mfs_args_init(&args, value ? "SET" : "DEL");
    mfs_args_str(&args, key);
    if (value)
        mfs_args_str(&args, value);
    cmd = mfs_args_cmd(&args, 0);
    assert_int_equal(mfs_admin_call(admin, &cmd, &err), 0);
    mfs_cmds_fini(&cmd, 1);
}

static void format_is_repeatable_and_checked(void **state)
{
    struct mfs_admin_format how = {"fixture", 1, 2, 1U << 20};
    struct mfs_admin *admin = admin_open(1);
    struct mfs_err err;

    (void)state;
    assert_int_equal(mfs_admin_format(admin, &how, &err), 0);
    assert_int_equal(mfs_admin_format(admin, &how, &err), 0);
    how.index = 0;
    assert_int_equal(mfs_admin_format(admin, &how, &err), -EINVAL);
    assert_non_null(strstr(err.msg, "index is 1"));
    how.index = 1;
    how.deployment = "other";
    assert_int_equal(mfs_admin_format(admin, &how, &err), -EINVAL);
    mfs_admin_close(admin);
}

static void info_tells_the_process(void **state)
{
    struct mfs_admin *admin = admin_open(0);
    struct mfs_admin_info info;
    struct mfs_err err;

    (void)state;
    assert_int_equal(mfs_admin_set_maxmemory(admin, 64 << 20, &err), 0);
    assert_int_equal(mfs_admin_purge(admin, &err), 0);
    assert_int_equal(mfs_admin_info(admin, &info, &err), 0);
    assert_int_equal(info.pid, redis_fixture_pid(fixture, 0));
    assert_int_equal(info.maxmemory, 64 << 20);
    assert_true(info.used_memory > 0 && info.used_memory_rss > 0);
    assert_true(info.keys >= 1);
    assert_true(info.net_in > 0 && info.net_out > 0);
    assert_int_equal(mfs_admin_set_maxmemory(admin, 0, &err), 0);
    mfs_admin_close(admin);
}

static void counts_come_with_it_when_asked_for(void **state)
{
    struct mfs_admin *admin = admin_open(1);
    struct mfs_admin_counts counts = {7, 8};
    struct mfs_admin_info info;
    struct mfs_err err;

    (void)state;
    set(admin, "#seq", "5");
    set(admin, "#freed", "2");
    assert_int_equal(mfs_admin_ask(admin, false, &err), 0);
    assert_int_equal(mfs_admin_told(admin, &info, &counts, &err), 0);
    assert_int_equal(info.pid, redis_fixture_pid(fixture, 1));
    assert_true(counts.inodes == 7 && counts.losses == 8);
    assert_int_equal(mfs_admin_ask(admin, true, &err), 0);
    assert_int_equal(mfs_admin_told(admin, &info, &counts, &err), 0);
    assert_int_equal(info.pid, redis_fixture_pid(fixture, 1));
    assert_true(counts.inodes == 3 && counts.losses == 0);
    set(admin, "#seq", NULL);
    set(admin, "#freed", NULL);
    mfs_admin_close(admin);
}

/* The time of both is over when the first is given up. */
static void one_that_hangs_does_not_cost_the_answer_of_another(void **state)
{
    struct mfs_admin *hangs = admin_open_for(1, 200 * MFS_MSEC);
    struct mfs_admin *answers = admin_open_for(0, 200 * MFS_MSEC);
    pid_t pid = redis_fixture_pid(fixture, 1);
    struct mfs_admin_counts counts = {0};
    struct mfs_admin_info info;
    struct mfs_err err;

    (void)state;
    assert_int_equal(kill(pid, SIGSTOP), 0);
    assert_int_equal(mfs_admin_ask(hangs, true, &err), 0);
    assert_int_equal(mfs_admin_ask(answers, true, &err), 0);
    assert_int_equal(mfs_admin_told(hangs, &info, &counts, &err), -ETIMEDOUT);
    assert_non_null(strstr(err.msg, "no answer in time"));
    assert_int_equal(mfs_admin_told(answers, &info, &counts, &err), 0);
    assert_int_equal(info.pid, redis_fixture_pid(fixture, 0));
    assert_int_equal(kill(pid, SIGCONT), 0);
    mfs_admin_close(hangs);
    mfs_admin_close(answers);
}

static void error_replies_name_process_and_command(void **state)
{
    struct mfs_admin *admin = admin_open(0);
    struct mfs_args args;
    struct mfs_cmd cmd;
    struct mfs_err err;

    (void)state;
    mfs_args_init(&args, "REPLICAOF");
    cmd = mfs_args_cmd(&args, 0);
    assert_int_equal(mfs_admin_call(admin, &cmd, &err), -EIO);
    assert_non_null(strstr(err.msg, "REPLICAOF: ERR wrong number"));
    mfs_cmds_fini(&cmd, 1);
    mfs_admin_close(admin);
}

static void wrong_password_is_refused(void **state)
{
    struct mfs_table *t = redis_fixture_table(fixture);
    struct mfs_admin *admin;
    struct mfs_err err;

    (void)state;
    assert_int_equal(
        mfs_admin_open(&admin, t->part[0].unix_path, NULL, 0, "nonsense", 5 * MFS_SEC, &err),
        -EACCES);
    assert_null(admin);
    assert_non_null(strstr(err.msg, "WRONGPASS"));
    assert_int_equal(mfs_admin_open(&admin, "/nonexistent", NULL, 0, "", 5 * MFS_SEC, &err),
                     -ECONNREFUSED);
    free(t);
}

static void shutdown_ends_the_process(void **state)
{
    struct mfs_admin *admin = admin_open(1);
    struct mfs_err err;

    (void)state;
    assert_int_equal(mfs_admin_shutdown(admin, &err), 0);
    mfs_admin_close(admin);
    redis_fixture_kill(fixture, 1);
    assert_int_equal(redis_fixture_restart(fixture, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(format_is_repeatable_and_checked),
        cmocka_unit_test(info_tells_the_process),
        cmocka_unit_test(counts_come_with_it_when_asked_for),
        cmocka_unit_test(one_that_hangs_does_not_cost_the_answer_of_another),
        cmocka_unit_test(error_replies_name_process_and_command),
        cmocka_unit_test(wrong_password_is_refused),
        cmocka_unit_test(shutdown_ends_the_process),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
