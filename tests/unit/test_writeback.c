/* Write-behind step by step: what is sent when, in how many round trips, who is told of errors. */
#include "data_test.h"

#include "data/writeback/writeback_impl.h"

#define STRIPE 65536U
#define NPARTS 3U

struct env {
    struct data_test t;
    struct mfs_writeback *wb;
};

static int open_group(void **state)
{
    struct redis_fixture_opts how = {.nparts = NPARTS, .stripe_size = STRIPE};
    struct mfs_writeback_opts opts = {.max_age = 100 * MFS_MSEC, .full_wait = 100 * MFS_MSEC};
    struct env *e = calloc(1, sizeof *e);

    data_test_open(&e->t, &how, 10 * MFS_SEC);
    assert_int_equal(mfs_writeback_create(&e->wb, e->t.store, &opts), 0);
    *state = e;
    return 0;
}

static int close_group(void **state)
{
    struct env *e = *state;

    mfs_writeback_destroy(e->wb);
    data_test_close(&e->t);
    free(e);
    return 0;
}

static uint64_t new_ino(void)
{
    static uint64_t seq = 100;

    return mfs_ino_make(1, seq++);
}

static void check_stored(struct file *f, uint64_t off, size_t len, unsigned salt)
{
    char *have = malloc(len), *want = malloc(len);

    pattern(want, off, len, salt);
    assert_int_equal(mfs_stripes_read(f->store, f->ino, off, len, have), 0);
    assert_memory_equal(have, want, len);
    free(have);
    free(want);
}

static void write_pattern(struct file *f, uint64_t off, size_t len, unsigned salt)
{
    char *buf = malloc(len);

    pattern(buf, off, len, salt);
    assert_int_equal(mfs_dirty_write(f->d, off, len, buf, false), 0);
    free(buf);
}

static void test_small_file(void **state)
{
    struct env *e = *state;
    struct mfs_store_stats before, after;
    struct file f;

    file_open(&f, e->t.store, e->wb, new_ino());
    assert_false(mfs_dirty_any(f.d));
    mfs_store_stats(e->t.store, &before);
    write_pattern(&f, 0, 100, 1);
    write_pattern(&f, 100, 3000, 1);
    write_pattern(&f, 40000, 10, 1);
    assert_true(mfs_dirty_any(f.d));
    assert_int_equal(file_flush(&f), 0);
    mfs_store_stats(e->t.store, &after);
    assert_false(mfs_dirty_any(f.d));
    assert_int_equal(f.commits, 1);
    assert_int_equal(f.commits_with_parts, 1);
    assert_int_equal(after.round_trips - before.round_trips, 2); /* the test's commit: one a part */
    assert_int_equal(f.size, 40010);
    check_stored(&f, 0, 3100, 1);
    check_stored(&f, 40000, 10, 1);
    assert_int_equal(file_flush(&f), 0);
    assert_int_equal(f.commits, 1);
    file_close(&f);
}

static void test_large_file(void **state)
{
    struct env *e = *state;
    struct mfs_store_stats before, after;
    struct file f;

    file_open(&f, e->t.store, e->wb, new_ino());
    write_pattern(&f, 10, 10 * STRIPE, 2);
    assert_int_equal(file_flush(&f), 0);
    assert_int_equal(f.commits, 1);
    assert_int_equal(f.commits_with_parts, 0);
    assert_int_equal(f.size, 10 * STRIPE + 10);
    assert_int_equal(f.alloc, stored_bytes(f.store, f.ino, f.size));
    check_stored(&f, 10, 10 * STRIPE, 2);
    /* A few parts in several stripes: one round trip for all. */
    for (unsigned i = 0; i < 5; i++)
        write_pattern(&f, i * STRIPE + 77, 500, 3);
    mfs_store_stats(e->t.store, &before);
    assert_int_equal(file_flush(&f), 0);
    mfs_store_stats(e->t.store, &after);
    assert_int_equal(after.round_trips - before.round_trips, 1);
    check_stored(&f, 4 * STRIPE + 77, 500, 3);
    check_stored(&f, 4 * STRIPE + 577, 500, 2);
    file_close(&f);
}

struct await {
    struct file *f;
    uint64_t size;
};

static bool has_size(void *arg)
{
    struct await *a = arg;

    return file_size(a->f) >= a->size;
}

static bool is_clean(void *arg)
{
    return !mfs_dirty_any(arg);
}

/* What lies around is stored and committed without being asked for. */
static void test_age(void **state)
{
    struct env *e = *state;
    int64_t start = mfs_clock_mono();
    struct file f;

    file_open(&f, e->t.store, e->wb, new_ino());
    write_pattern(&f, 0, 5000, 4);
    write_pattern(&f, 3 * STRIPE, STRIPE, 4);
    assert_int_equal(file_size(&f), 0);
    assert_true(wait_for(has_size, &(struct await){&f, 4 * STRIPE}));
    assert_true(mfs_clock_mono() - start >= 90 * MFS_MSEC);
    assert_true(wait_for(is_clean, f.d));
    check_stored(&f, 0, 5000, 4);
    file_close(&f);
}

static int delay_first(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    (void)arg;
    (void)part;
    if (argc == 3 && argv[0].len == 3 && memcmp((const char *)argv[1].p + 9, "\0\0\0\0", 4) == 0)
        mfs_clock_sleep(600 * MFS_MSEC);
    return 0;
}

/* Who follows the file from another mount never sees a gap that is still on its way. */
static void test_commits_in_order(void **state)
{
    struct env *e = *state;
    int64_t start = mfs_clock_mono();
    struct file f;

    file_open(&f, e->t.store, e->wb, new_ino());
    mfs_store_set_fault(e->t.store, delay_first, NULL);
    write_pattern(&f, 0, 5 * STRIPE, 4);
    while (mfs_clock_mono() - start < 400 * MFS_MSEC) {
        assert_int_equal(file_size(&f), 0);
        mfs_clock_sleep(5 * MFS_MSEC);
    }
    assert_true(wait_for(has_size, &(struct await){&f, 5 * STRIPE}));
    mfs_store_set_fault(e->t.store, NULL, NULL);
    assert_int_equal(file_flush(&f), 0);
    file_close(&f);
}

/* Not at the end of a stripe, where it would be sent at once, and with time enough. */
static void test_attr_and_overlay(void **state)
{
    struct env *e = *state;
    struct mfs_writeback_opts opts = {.max_age = 100 * MFS_SEC};
    struct timespec mtime = {0}, before = mfs_clock_real();
    char buf[200], want[200] = {0};
    struct mfs_writeback *wb;
    uint64_t end = 0;
    struct file f;

    assert_int_equal(mfs_writeback_create(&wb, e->t.store, &opts), 0);
    file_open(&f, e->t.store, wb, new_ino());
    assert_false(mfs_dirty_attr(f.d, &end, NULL, &mtime));
    write_pattern(&f, STRIPE - 50, 40, 5);
    write_pattern(&f, STRIPE + 20, 30, 5);
    assert_true(mfs_dirty_attr(f.d, &end, NULL, &mtime));
    assert_int_equal(end, STRIPE + 50);
    assert_true(mfs_timespec_cmp(before, mtime) <= 0);
    memset(buf, 0, sizeof buf);
    pattern(want + 50, STRIPE - 50, 40, 5);
    pattern(want + 120, STRIPE + 20, 30, 5);
    assert_true(mfs_dirty_overlay(f.d, STRIPE - 100, 200, buf));
    assert_memory_equal(buf, want, sizeof buf);
    assert_false(mfs_dirty_overlay(f.d, 0, 200, buf));
    mfs_dirty_cut(f.d, STRIPE + 30);
    assert_true(mfs_dirty_attr(f.d, &end, NULL, &mtime));
    assert_int_equal(end, STRIPE + 30);
    mfs_dirty_cut(f.d, 0);
    assert_false(mfs_dirty_any(f.d));
    assert_int_equal(file_flush(&f), 0);
    assert_int_equal(f.commits, 0);
    file_close(&f);
    mfs_writeback_destroy(wb);
}

static void test_flush_range(void **state)
{
    struct env *e = *state;
    struct file f;

    file_open(&f, e->t.store, e->wb, new_ino());
    write_pattern(&f, 0, 100, 6);
    write_pattern(&f, 5 * STRIPE, 100, 6);
    mfs_dirty_store_range(f.d, 5 * STRIPE + 50, 1);
    check_stored(&f, 5 * STRIPE, 100, 6);
    assert_int_equal(stored_bytes(f.store, f.ino, STRIPE), 0);
    assert_true(mfs_dirty_any(f.d));
    mfs_dirty_store_range(f.d, 0, UINT64_MAX);
    check_stored(&f, 0, 100, 6);
    assert_int_equal(file_flush(&f), 0);
    assert_int_equal(f.size, 5 * STRIPE + 100);
    file_close(&f);
}

static int fail_eio(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    (void)part;
    (void)argc;
    return argv[0].len == 3 && memcmp(argv[0].p, "SET", 3) == 0 ? *(int *)arg : 0;
}

/* An error is told once by write and once by flush; after that the file works again. */
static void test_errors(void **state)
{
    struct env *e = *state;
    int fail = -EIO;
    char buf[STRIPE];
    struct file f;

    pattern(buf, 0, sizeof buf, 7);
    file_open(&f, e->t.store, e->wb, new_ino());
    mfs_store_set_fault(e->t.store, fail_eio, &fail);
    write_pattern(&f, STRIPE, STRIPE, 7);
    assert_int_equal(file_flush(&f), -EIO);
    assert_int_equal(file_flush(&f), 0);
    assert_int_equal(mfs_dirty_write(f.d, STRIPE, STRIPE, buf, false), 0);
    assert_true(wait_for(is_clean, f.d));
    assert_int_equal(mfs_dirty_write(f.d, 0, 1, buf, false), -EIO);
    assert_false(mfs_dirty_any(f.d));
    assert_int_equal(mfs_dirty_write(f.d, 0, 1, buf, false), 0);
    assert_int_equal(file_flush(&f), -EIO);
    mfs_store_set_fault(e->t.store, NULL, NULL);
    write_pattern(&f, STRIPE, STRIPE, 7);
    assert_int_equal(file_flush(&f), 0);
    check_stored(&f, STRIPE, STRIPE, 7);
    f.fail = -ESTALE;
    write_pattern(&f, 0, 10, 8);
    assert_int_equal(file_flush(&f), -ESTALE);
    assert_false(mfs_dirty_any(f.d));
    f.fail = -ENOSPC;
    write_pattern(&f, 0, 10, 8);
    assert_int_equal(file_flush(&f), -ENOSPC);
    f.fail = 0;
    mfs_clock_sleep(1100 * MFS_MSEC); /* the second for which writes to a full partition fail */
    file_close(&f);
}

static size_t bytes_held(struct mfs_writeback *wb)
{
    size_t bytes;

    pthread_mutex_lock(&wb->lock);
    bytes = wb->bytes;
    pthread_mutex_unlock(&wb->lock);
    return bytes;
}

/* Many files, each with a little in many stripes, are more than the window holds. */
static void test_window(void **state)
{
    struct env *e = *state;
    struct mfs_writeback_opts opts = {
        .max_bytes = 1U << 20, .max_file_bytes = 512U << 10, .max_age = 100 * MFS_SEC};
    struct mfs_writeback *wb;
    struct file f[8];

    assert_int_equal(mfs_writeback_create(&wb, e->t.store, &opts), 0);
    for (unsigned i = 0; i < 8; i++)
        file_open(&f[i], e->t.store, wb, new_ino());
    for (unsigned n = 0; n < 100; n++)
        for (unsigned i = 0; i < 8; i++) {
            write_pattern(&f[i], (uint64_t)n * STRIPE + 3, 9000, i);
            assert_true(bytes_held(wb) <= opts.max_bytes);
        }
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(file_flush(&f[i]), 0);
        for (unsigned n = 0; n < 100; n++)
            check_stored(&f[i], (uint64_t)n * STRIPE + 3, 9000, i);
        file_close(&f[i]);
    }
    assert_int_equal(bytes_held(wb), 0);
    mfs_writeback_destroy(wb);
}

/* Bits and pieces all over a stripe. */
static void test_many_ranges(void **state)
{
    struct env *e = *state;
    static char want[STRIPE], have[STRIPE];
    struct file f;

    memset(want, 0, sizeof want);
    file_open(&f, e->t.store, e->wb, new_ino());
    for (unsigned i = 0; i < 500; i++) {
        unsigned off = i * 7919 % (STRIPE - 20);

        write_pattern(&f, off, 20, 9);
        pattern(want + off, off, 20, 9);
    }
    assert_int_equal(file_flush(&f), 0);
    assert_int_equal(mfs_stripes_read(f.store, f.ino, 0, STRIPE, have), 0);
    assert_memory_equal(have, want, STRIPE);
    assert_int_equal(f.alloc, stored_bytes(f.store, f.ino, STRIPE));
    file_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_file),
        cmocka_unit_test(test_large_file),
        cmocka_unit_test(test_age),
        cmocka_unit_test(test_commits_in_order),
        cmocka_unit_test(test_attr_and_overlay),
        cmocka_unit_test(test_flush_range),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_many_ranges),
    };

    return cmocka_run_group_tests(tests, open_group, close_group);
}
