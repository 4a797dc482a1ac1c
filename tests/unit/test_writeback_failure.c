/* Write-behind when partitions are full, killed or stopped: errors are told in time and once,
 * memory is given back, and what can be stored is. */
#include "data_test.h"

#include <signal.h>

#include "cluster/placement.h"

#define STRIPE 65536U
#define NPARTS 2U

static void open_env(struct data_test *t, struct mfs_writeback **wb, uint64_t maxmemory,
                     int64_t io_timeout)
{
    struct redis_fixture_opts how = {
        .nparts = NPARTS, .stripe_size = STRIPE, .maxmemory = maxmemory};
    struct mfs_writeback_opts opts = {.max_bytes = 2U << 20,
                                      .max_file_bytes = 1U << 20,
                                      .max_age = 50 * MFS_MSEC,
                                      .full_wait = 300 * MFS_MSEC};

    data_test_open(t, &how, io_timeout);
    assert_int_equal(mfs_writeback_create(wb, t->store, &opts), 0);
}

static int write_stripe(struct file *f, uint32_t n)
{
    char buf[STRIPE];

    pattern(buf, (uint64_t)n * STRIPE, STRIPE, 1);
    return mfs_dirty_write(f->d, (uint64_t)n * STRIPE, STRIPE, buf, false);
}

/* Writes stripes until it is told an error or the limit is reached. */
static int fill(struct file *f, uint32_t from, uint32_t limit)
{
    int rc = 0;

    for (uint32_t n = from; n < limit && !rc; n++)
        rc = write_stripe(f, n);
    return rc;
}

static void test_full(void **state)
{
    struct mfs_writeback *wb;
    struct data_test t;
    struct file f;
    int64_t start = mfs_clock_mono();
    int rc;

    (void)state;
    open_env(&t, &wb, 10U << 20, 10 * MFS_SEC);
    file_open(&f, t.store, wb, 1);
    assert_int_equal(fill(&f, 0, 2000), -ENOSPC);
    rc = file_flush(&f);
    assert_true(rc == 0 || rc == -ENOSPC);
    assert_false(mfs_dirty_any(f.d));
    assert_int_equal(file_flush(&f), 0);
    assert_true(mfs_clock_mono() - start < 20 * MFS_SEC);
    /* Freed memory is of use again after the second for which writes fail. */
    assert_int_equal(mfs_stripes_trim(t.store, f.ino, 0, 2000ULL * STRIPE, true, NULL), 0);
    mfs_clock_sleep(1100 * MFS_MSEC);
    assert_int_equal(fill(&f, 0, 20), 0);
    assert_int_equal(file_flush(&f), 0);
    file_close(&f);
    mfs_writeback_destroy(wb);
    data_test_close(&t);
}

static void *raise_limit(void *arg)
{
    struct data_test *t = arg;

    mfs_clock_sleep(150 * MFS_MSEC);
    for (uint32_t i = 0; i < NPARTS; i++)
        redis_fixture_admin(t->fixture, i, "CONFIG SET maxmemory 100000000");
    return NULL;
}

/* The Local Manager moves memory between partitions: a write that waits for it succeeds. */
static void test_full_for_a_while(void **state)
{
    struct mfs_writeback *wb;
    struct data_test t;
    pthread_t thread;
    struct file f;

    (void)state;
    open_env(&t, &wb, 10U << 20, 10 * MFS_SEC);
    file_open(&f, t.store, wb, 1);
    for (uint32_t i = 0; i < NPARTS; i++)
        redis_fixture_admin(t.fixture, i, "CONFIG SET maxmemory 1000000");
    pthread_create(&thread, NULL, raise_limit, &t);
    assert_int_equal(fill(&f, 0, 10), 0);
    assert_int_equal(file_flush(&f), 0);
    pthread_join(thread, NULL);
    assert_int_equal(stored_bytes(t.store, 1, 10 * STRIPE), 10 * STRIPE);
    file_close(&f);
    mfs_writeback_destroy(wb);
    data_test_close(&t);
}

static uint32_t stripe_on(uint64_t ino, uint32_t part)
{
    uint32_t n = 1;

    while (mfs_placement_stripe(ino, n, NPARTS) != part)
        n++;
    return n;
}

static void test_killed(void **state)
{
    struct mfs_writeback *wb;
    struct data_test t;
    struct file f, g;
    int rc;

    (void)state;
    open_env(&t, &wb, 0, 2 * MFS_SEC);
    file_open(&f, t.store, wb, 1);
    file_open(&g, t.store, wb, 2);
    redis_fixture_kill(t.fixture, 1);
    rc = fill(&f, 0, 200);
    assert_true(rc == 0 || rc == -EIO || rc == -ETIMEDOUT);
    rc = file_flush(&f);
    assert_true(rc == -EIO || rc == -ETIMEDOUT);
    assert_false(mfs_dirty_any(f.d));
    /* Files on the living partition are none the worse for it. */
    assert_int_equal(write_stripe(&g, stripe_on(2, 0)), 0);
    assert_int_equal(file_flush(&g), 0);
    assert_int_equal(redis_fixture_restart(t.fixture, 1), 0);
    assert_int_equal(fill(&f, 0, 20), 0);
    assert_int_equal(file_flush(&f), 0);
    assert_int_equal(stored_bytes(t.store, 1, 20 * STRIPE), 20 * STRIPE);
    file_close(&f);
    file_close(&g);
    mfs_writeback_destroy(wb);
    data_test_close(&t);
}

/* A stopped process takes what is sent and never answers: the whole queue must not take the I/O
 * timeout once for each stripe. */
static void test_stopped(void **state)
{
    struct mfs_writeback *wb;
    struct data_test t;
    struct file f, g;
    int64_t start;
    int rc;

    (void)state;
    open_env(&t, &wb, 0, 1500 * MFS_MSEC);
    file_open(&f, t.store, wb, 1);
    file_open(&g, t.store, wb, 2);
    kill(redis_fixture_pid(t.fixture, 1), SIGSTOP);
    start = mfs_clock_mono();
    rc = fill(&f, 0, 30);
    assert_true(rc == 0 || rc == -EIO || rc == -ETIMEDOUT);
    assert_int_equal(write_stripe(&g, stripe_on(2, 0)), 0);
    assert_int_equal(file_flush(&g), 0);
    rc = file_flush(&f);
    assert_true(rc == -EIO || rc == -ETIMEDOUT);
    assert_true(mfs_clock_mono() - start < 8 * MFS_SEC);
    assert_false(mfs_dirty_any(f.d));
    kill(redis_fixture_pid(t.fixture, 1), SIGCONT);
    assert_int_equal(fill(&f, 0, 20), 0);
    assert_int_equal(file_flush(&f), 0);
    file_close(&f);
    file_close(&g);
    mfs_writeback_destroy(wb);
    data_test_close(&t);
}

/* A file that is dropped while its partition is stopped or full does not hang. */
static void test_destroy(void **state)
{
    struct mfs_writeback *wb;
    struct data_test t;
    struct file f;
    int64_t start;

    (void)state;
    open_env(&t, &wb, 10U << 20, 1500 * MFS_MSEC);
    kill(redis_fixture_pid(t.fixture, 0), SIGSTOP);
    start = mfs_clock_mono();
    file_open(&f, t.store, wb, 1);
    fill(&f, 0, 10);
    file_close(&f);
    assert_true(mfs_clock_mono() - start < 8 * MFS_SEC);
    kill(redis_fixture_pid(t.fixture, 0), SIGCONT);
    for (uint32_t i = 0; i < NPARTS; i++)
        redis_fixture_admin(t.fixture, i, "CONFIG SET maxmemory 1000000");
    file_open(&f, t.store, wb, 1);
    fill(&f, 0, 10);
    file_close(&f);
    assert_true(mfs_clock_mono() - start < 10 * MFS_SEC);
    mfs_writeback_destroy(wb);
    data_test_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full),    cmocka_unit_test(test_full_for_a_while),
        cmocka_unit_test(test_killed),  cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_destroy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
