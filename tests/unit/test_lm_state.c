/* lm's state file, the worker thread, and calls that are given up when they hang. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "host/timed_call.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "lm/agent/state.h"
#include "lm/mount/unmount.h"
#include "lm/jobs/worker.h"

static int make_dir(void **state)
{
    char *dir = strdup("/tmp/memefs-lm-XXXXXX");

    *state = dir;
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    int rc = mfs_file_remove_tree(*state);

    free(*state);
    return rc;
}

static const char *in_dir(void **state, const char *name, char path[PATH_MAX])
{
    assert_int_equal(mfs_text_format(path, PATH_MAX, "%s/%s", (const char *)*state, name), 0);
    return path;
}

/* ---- state ----------------------------------------------------------------------------------- */

static void test_state_comes_back_as_it_was(void **state)
{
    struct mfs_state_redis redis[2] = {
        {.index = 4,
         .port = 6001,
         .unix_path = "/run/x/redis-4.sock",
         .password = "p",
         .admin_password = "a",
         .proc = {.pid = 11, .start = 1234567890123ULL, .comm = "r"}},
        {.index = 5, .lost = true}};
    struct mfs_state_client client = {
        .mount = "/mnt/a b", .session = "0123456789abcdef", .instance = 7};
    struct mfs_state s = {.name = "n",
                          .node = 7,
                          .nparts = 9,
                          .stripe_size = 1 << 20,
                          .memory = 1ULL << 40,
                          .mount = "/mnt/m",
                          .options = "noatime",
                          .nredis = 2,
                          .redis = redis,
                          .nclients = 1,
                          .client = &client};
    struct mfs_state back;
    struct mfs_err err = {0};
    struct stat st;
    char path[PATH_MAX];

    s.table = mfs_table_new(1);
    mfs_text_copy(s.table->name, sizeof s.table->name, "n");
    s.table->epoch = 3;
    s.table->stripe_size = 1 << 20;
    mfs_text_copy(s.table->part[0].host, sizeof s.table->part[0].host, "127.0.0.1");
    mfs_text_copy(s.table->part[0].password, sizeof s.table->part[0].password, "p");
    s.table->part[0].port = 6001;
    in_dir(state, "lm.json", path);
    assert_int_equal(mfs_state_save(&s, path), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    if (mfs_state_load(&back, path, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(back.node, 7);
    assert_true(back.memory == 1ULL << 40);
    assert_string_equal(back.options, "noatime");
    assert_int_equal(back.nredis, 2);
    assert_memory_equal(back.redis, redis, sizeof redis);
    assert_string_equal(back.client[0].mount, "/mnt/a b");
    assert_int_equal(back.client[0].instance, 7);
    assert_int_equal(back.table->epoch, 3);
    mfs_schema_clear(&mfs_state_schema, &back);
    free(s.table);
}

static void test_no_state_and_a_broken_one(void **state)
{
    static const char *const broken[] = {"",
                                         "{",
                                         "[]",
                                         "{\"name\": 1, \"node\": 2}",
                                         "{\"name\": \"n\"}",
                                         "{\"name\": \"n\", \"node\": 1, \"redis\": 3}"};
    struct mfs_state s;
    struct mfs_err err = {0};
    char path[PATH_MAX];

    in_dir(state, "lm.json", path);
    assert_int_equal(mfs_state_load(&s, path, &err), -ENOENT);
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        assert_int_equal(mfs_file_write(path, broken[i], strlen(broken[i]), 0600), 0);
        if (!mfs_state_load(&s, path, &err))
            fail_msg("\"%s\" was taken", broken[i]);
        assert_non_null(strstr(err.msg, path));
    }
}

/* ---- worker ---------------------------------------------------------------------------------- */

struct number {
    struct mfs_job job;
    int value, *sum;
};

static void run_double(struct mfs_job *job)
{
    ((struct number *)job)->value *= 2;
}

static void add_up(struct mfs_job *job)
{
    struct number *n = (struct number *)job;

    *n->sum = *n->sum * 10 + n->value; /* shows the order */
    free(n);
}

static void submit(struct mfs_worker *w, int value, int *sum)
{
    struct number *n = calloc(1, sizeof *n);

    *n = (struct number){{run_double, add_up, NULL}, value, sum};
    mfs_worker_submit(w, &n->job);
}

static void test_jobs_come_back_in_order(void **state)
{
    struct mfs_worker *w;
    struct pollfd p = {.events = POLLIN};
    int sum = 0;

    (void)state;
    assert_int_equal(mfs_worker_create(&w, "test"), 0);
    p.fd = mfs_worker_fd(w);
    for (int i = 1; i <= 4; i++)
        submit(w, i, &sum);
    while (mfs_worker_pending(w)) {
        assert_int_equal(poll(&p, 1, 5000), 1);
        mfs_worker_collect(w);
    }
    assert_int_equal(sum, 2468);
    mfs_worker_destroy(w);
}

static void test_destroying_finishes_the_jobs(void **state)
{
    struct mfs_worker *w;
    int sum = 0;

    (void)state;
    assert_int_equal(mfs_worker_create(&w, "test"), 0);
    submit(w, 1, &sum);
    submit(w, 2, &sum);
    mfs_worker_destroy(w);
    assert_int_equal(sum, 24);
    mfs_worker_destroy(NULL);
}

/* ---- bounded calls --------------------------------------------------------------------------- */

static int hang(const void *arg)
{
    (void)arg;
    pause();
    return 0;
}

static void test_a_call_that_hangs_is_given_up(void **state)
{
    int64_t begin = mfs_clock_mono();

    (void)state;
    assert_int_equal(mfs_timed_call(hang, NULL, 100 * MFS_MSEC), -ETIMEDOUT);
    assert_true(mfs_clock_mono() - begin < 2 * MFS_SEC);
}

static void test_a_call_gives_its_result(void **state)
{
    char path[PATH_MAX];

    assert_int_equal(mfs_timed_call(mfs_timed_stat, *state, MFS_SEC), 0);
    in_dir(state, "none", path);
    assert_int_equal(mfs_timed_call(mfs_timed_stat, path, MFS_SEC), -ENOENT);
    assert_int_equal(mfs_timed_call(mfs_timed_statfs, *state, MFS_SEC), -ENODEV);
    assert_int_equal(mfs_timed_call(mfs_timed_statfs, path, MFS_SEC), -ENOENT);
}

/* The one that hangs takes the time of none of the others. */
static void test_calls_side_by_side(void **state)
{
    int64_t begin = mfs_clock_mono(), until = begin + 200 * MFS_MSEC;
    struct mfs_timed_call calls[3];

    assert_int_equal(mfs_timed_call_begin(&calls[0], hang, NULL), 0);
    assert_int_equal(mfs_timed_call_begin(&calls[1], hang, NULL), 0);
    assert_int_equal(mfs_timed_call_begin(&calls[2], mfs_timed_stat, *state), 0);
    assert_int_equal(mfs_timed_call_end(&calls[0], until, MFS_SEC), -ETIMEDOUT);
    assert_int_equal(mfs_timed_call_end(&calls[1], until, MFS_SEC), -ETIMEDOUT);
    assert_int_equal(mfs_timed_call_end(&calls[2], until, MFS_SEC), 0);
    assert_true(mfs_clock_mono() - begin < 2 * MFS_SEC);
}

/* A child that cannot be killed must not keep who reads our output waiting for its end. */
static int is_open(const void *arg)
{
    return fcntl(*(const int *)arg, F_GETFD) < 0 ? 0 : -EBUSY;
}

static void test_a_call_has_no_files_open(void **state)
{
    int out = STDOUT_FILENO;

    (void)state;
    assert_int_equal(mfs_timed_call(is_open, &out, MFS_SEC), 0);
}

static void test_a_place_for_a_mount_is_made(void **state)
{
    struct stat st;
    char path[PATH_MAX];

    in_dir(state, "a/b/c", path);
    assert_int_equal(mfs_unmount_prepare(path, NULL), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(mfs_unmount_prepare(path, NULL), 0);
    assert_int_equal(mfs_unmount_dead(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_state_comes_back_as_it_was, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_no_state_and_a_broken_one, make_dir, remove_dir),
        cmocka_unit_test(test_jobs_come_back_in_order),
        cmocka_unit_test(test_destroying_finishes_the_jobs),
        cmocka_unit_test(test_a_call_that_hangs_is_given_up),
        cmocka_unit_test_setup_teardown(test_a_call_gives_its_result, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_calls_side_by_side, make_dir, remove_dir),
        cmocka_unit_test(test_a_call_has_no_files_open),
        cmocka_unit_test_setup_teardown(test_a_place_for_a_mount_is_made, make_dir, remove_dir),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
