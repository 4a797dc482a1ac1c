/* What a client may still have after an answer was lost, although it has no use for it: the place
 * behind a file's end. It gives it back, so that nobody waits for it. */
#include "doubts_test.h"

/* --- the place behind the end ----------------------------------------------------------------- */

static int append_beyond(uint64_t ino, uint64_t *number)
{
    static char data[(1 << 20) + 1];
    size_t len = a.meta->stripe_size + 1;
    struct mfs_attr attr;
    uint64_t off;

    assert_true(len <= sizeof data);
    return mfs_meta_append(a.meta, ino, data, len, &off, number, NULL, &attr);
}

/* a gives up a place that it may have: others append at once. */
static void test_place_taken(void **state)
{
    uint64_t ino = known_open(), number;

    (void)state;
    begin("mfs_append");
    end(append_beyond(ino, &number));
    assert_int_equal(meta_client_keys(&b, "P*"), 0);
}

static void lose_end(bool happens, bool deaf)
{
    uint64_t ino = known_open(), number;
    const struct mfs_range place = {0, 1};
    struct mfs_attr attr;

    assert_int_equal(append_beyond(ino, &number), 0);
    assert_int_equal(meta_client_keys(&b, "P*"), 1);
    undone = !happens;
    mute = deaf;
    begin("mfs_append_end");
    end(mfs_meta_append_end(a.meta, ino, number, true, &place, 0, NULL, &attr));
    undone = mute = false;
}

static void test_place_kept(void **state)
{
    (void)state;
    lose_end(true, false);
    assert_int_equal(meta_client_keys(&b, "P*"), 0);
}

static void test_place_kept_undone(void **state)
{
    (void)state;
    lose_end(false, false);
    assert_int_equal(meta_client_keys(&b, "P*"), 0);
}

static void test_place_kept_later(void **state)
{
    (void)state;
    lose_end(false, true);
    assert_int_equal(meta_client_keys(&b, "P*"), 1);
    mfs_chores_tick(a.meta);
    assert_int_equal(meta_client_keys(&b, "P*"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_place_taken, setup, teardown),
        cmocka_unit_test_setup_teardown(test_place_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_place_kept_undone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_place_kept_later, setup, teardown),
    };

    return cmocka_run_group_tests(tests, meta_redis_start, meta_redis_stop);
}
