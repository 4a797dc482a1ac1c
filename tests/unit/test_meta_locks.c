/* Locks of files, and how a close gives them back. ctest: timeout=120 waits */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "meta_test.h"

static int lk(struct meta_client *c, uint64_t ino, uint64_t owner, int type, uint64_t start,
              uint64_t end)
{
    struct mfs_lock lock = {.type = type, .start = start, .end = end, .owner = owner, .pid = 42};
    struct mfs_attr attr;

    return mfs_meta_setlk(c->meta, ino, &lock, &attr, NULL);
}

static void test_locks(void **state)
{
    uint64_t f = new_file(ROOT, "f");
    struct mfs_lock q = {.type = F_WRLCK, .start = 0, .end = INT64_MAX, .owner = 9};
    struct mfs_attr attr;

    (void)state;
    assert_int_equal(lk(&a, f, 1, F_WRLCK, 10, 19), 0);
    assert_int_equal(lk(&b, f, 1, F_RDLCK, 0, 10), -EAGAIN);
    assert_int_equal(lk(&b, f, 1, F_RDLCK, 0, 9), 0);
    assert_int_equal(lk(&b, f, 1, F_RDLCK, 20, INT64_MAX), 0);
    assert_int_equal(lk(&a, f, 2, F_RDLCK, 0, 5), 0);
    assert_int_equal(lk(&a, f, 2, F_WRLCK, 0, 5), -EAGAIN);
    assert_int_equal(mfs_meta_getlk(b.meta, f, &q, NULL), 0);
    assert_int_not_equal(q.type, F_UNLCK);
    /* Splitting: 14 and 15 become free. */
    assert_int_equal(lk(&a, f, 1, F_UNLCK, 14, 15), 0);
    assert_int_equal(lk(&b, f, 3, F_WRLCK, 14, 15), 0);
    assert_int_equal(lk(&b, f, 3, F_WRLCK, 13, 15), -EAGAIN);
    assert_int_equal(lk(&b, f, 3, F_WRLCK, 14, 16), -EAGAIN);
    q = (struct mfs_lock){.type = F_WRLCK, .start = 16, .end = 17, .owner = 9};
    assert_int_equal(mfs_meta_getlk(b.meta, f, &q, NULL), 0);
    assert_int_equal(q.start, 16);
    assert_int_equal(q.end, 19);
    assert_int_equal(q.type, F_WRLCK);
    q = (struct mfs_lock){.type = F_WRLCK, .start = 100, .end = 100, .owner = 9};
    assert_int_equal(mfs_meta_getlk(a.meta, f, &q, NULL), 0);
    assert_int_equal(q.end, INT64_MAX);
    /* flock is another world. */
    assert_int_equal(mfs_meta_flock(a.meta, f, 1, 0, F_WRLCK, &attr, NULL), 0);
    assert_int_equal(mfs_meta_flock(b.meta, f, 1, 0, F_RDLCK, &attr, NULL), -EAGAIN);
    assert_int_equal(mfs_meta_flock(a.meta, f, 1, 0, F_RDLCK, &attr, NULL), 0);
    assert_int_equal(mfs_meta_flock(b.meta, f, 1, 0, F_RDLCK, &attr, NULL), 0);
    assert_int_equal(mfs_meta_flock(b.meta, f, 1, 0, F_UNLCK, &attr, NULL), 0);
    /* A dead client's locks are nobody's. */
    meta_client_kill(&a);
    assert_int_equal(lk(&b, f, 3, F_WRLCK, 10, 19), 0);
    assert_int_equal(mfs_meta_flock(b.meta, f, 1, 0, F_WRLCK, &attr, NULL), 0);
    assert_int_equal(meta_client_start(&a, redis, 0), 0);
    assert_int_equal(lk(&a, f, 1, F_WRLCK, 15, 15), -EAGAIN);
    meta_client_stop(&b);
    assert_int_equal(lk(&a, f, 1, F_WRLCK, 0, INT64_MAX), 0);
    assert_int_equal(lk(&a, f, 1, F_UNLCK, 0, INT64_MAX), 0);
    assert_int_equal(meta_client_keys(&a, "L*"), 0);
    assert_int_equal(meta_client_start(&b, redis, 0), 0);
}

/* Another client's try: refused; is it only for those who have just closed? */
static bool refused_by_closing(uint64_t ino)
{
    struct mfs_lock_holder holder = {0};
    struct mfs_attr attr;

    assert_int_equal(mfs_meta_flock(b.meta, ino, 1, 0, F_WRLCK, &attr, &holder), -EAGAIN);
    return holder.closing;
}

static void test_locks_closing(void **state)
{
    const uint64_t one = 1, two = 2, both[] = {2, 1};
    uint64_t f = new_file(ROOT, "f"), many[100];
    struct mfs_attr attr;

    (void)state;
    assert_int_equal(mfs_meta_flock(a.meta, f, 1, 0, F_WRLCK, &attr, NULL), 0);
    assert_false(refused_by_closing(f));
    assert_trips(1, mfs_meta_closing(a.meta, f, &one, 1));
    assert_true(refused_by_closing(f));
    /* It is open, as somebody uses it. */
    assert_int_equal(mfs_meta_flock(a.meta, f, 1, 0, F_RDLCK, &attr, NULL), 0);
    assert_false(refused_by_closing(f));
    /* Who stays counts, wherever he stands in the list. */
    assert_int_equal(mfs_meta_flock(a.meta, f, 2, 0, F_RDLCK, &attr, NULL), 0);
    assert_int_equal(mfs_meta_closing(a.meta, f, &one, 1), 0);
    assert_false(refused_by_closing(f));
    assert_int_equal(mfs_meta_flock(a.meta, f, 1, 0, F_RDLCK, &attr, NULL), 0);
    assert_int_equal(mfs_meta_closing(a.meta, f, &two, 1), 0);
    assert_false(refused_by_closing(f));
    for (unsigned i = 0; i < 100; i++) /* most of them have nothing */
        many[i] = 100 - i;
    assert_trips(1, mfs_meta_closing(a.meta, f, many, 100));
    assert_true(refused_by_closing(f));
    assert_int_equal(mfs_meta_flock(a.meta, f, 2, 0, F_UNLCK, &attr, NULL), 0);
    assert_true(refused_by_closing(f));
    assert_int_equal(mfs_meta_flock(a.meta, f, 1, 0, F_UNLCK, &attr, NULL), 0);
    assert_int_equal(mfs_meta_closing(a.meta, f, both, 2), 0);
    assert_int_equal(meta_client_keys(&a, "L*"), 0);
    assert_int_equal(mfs_meta_flock(b.meta, f, 1, 0, F_WRLCK, &attr, NULL), 0);
}

static void test_ranges_closing(void **state)
{
    struct mfs_lock q = {.type = F_WRLCK, .start = 0, .end = INT64_MAX, .owner = 9}, found;
    uint64_t f = new_file(ROOT, "f"), one = 1;
    struct mfs_lock_holder holder;

    (void)state;
    assert_int_equal(lk(&a, f, 1, F_WRLCK, 10, 19), 0);
    assert_int_equal(lk(&a, f, 1, F_RDLCK, 30, 39), 0);
    for (unsigned i = 0; i < 2; i++) { /* a mark replaces the one before */
        assert_int_equal(mfs_meta_closing(a.meta, f, &one, 1), 0);
        found = q;
        assert_int_equal(mfs_meta_getlk(b.meta, f, &found, &holder), 0);
        assert_true(holder.closing);
        assert_int_equal(found.start, 10);
        assert_int_equal(found.end, 19);
    }
    assert_int_equal(lk(&b, f, 1, F_RDLCK, 19, 29), -EAGAIN);
    assert_int_equal(lk(&b, f, 1, F_RDLCK, 20, 39), 0);
    assert_int_equal(lk(&a, f, 1, F_UNLCK, 10, 12), 0);
    found = q;
    assert_int_equal(mfs_meta_getlk(b.meta, f, &found, &holder), 0);
    assert_false(holder.closing);
    assert_int_equal(found.start, 13);
    /* A dead client that stays drops out; what is left is closing. */
    assert_int_equal(lk(&b, f, 2, F_WRLCK, 100, 100), 0);
    meta_client_kill(&a);
    assert_int_equal(mfs_meta_closing(b.meta, f, (uint64_t[]){1, 2}, 2), 0);
    found = q;
    assert_int_equal(mfs_meta_getlk(b.meta, f, &found, &holder), 0);
    assert_true(holder.closing);
    assert_int_equal(meta_client_start(&a, redis, 0), 0);
}

static void test_closing_ages(void **state)
{
    uint64_t f = new_file(ROOT, "f"), one = 1;
    int64_t start = mfs_clock_mono(), age;
    struct mfs_attr attr;

    (void)state;
    assert_int_equal(mfs_meta_flock(a.meta, f, 1, 0, F_WRLCK, &attr, NULL), 0);
    assert_int_equal(mfs_meta_closing(a.meta, f, &one, 1), 0);
    while (refused_by_closing(f)) {
        assert_true(mfs_clock_mono() - start < 15 * MFS_SEC);
        mfs_clock_sleep(5 * MFS_MSEC);
    }
    age = mfs_clock_mono() - start;
    assert_true(age > MFS_META_CLOSING - 100 * MFS_MSEC);
    assert_int_equal(mfs_meta_closing(a.meta, f, &one, 1), 0); /* the next close */
    assert_true(refused_by_closing(f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        TEST(test_locks),
        TEST(test_locks_closing),
        TEST(test_ranges_closing),
        TEST(test_closing_ages),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
