/* What a client may still have after an answer was lost, although it has no use for it: the place
 * behind a file's end, a lock, an open file. It gives them back, so that nobody waits for them. */
#include "unknown_outcomes_test.h"

#include <fcntl.h>

#include "meta/deferred/deferred.h"

/* --- the place behind the end ----------------------------------------------------------------- */

static int append_beyond(uint64_t ino, uint64_t *number)
{
    static char data[(1 << 20) + 1];
    size_t len = a.meta->stripe_size + 1;
    struct mfs_attr attr;
    uint64_t off;

    assert_true(len <= sizeof data);
    return mfs_meta_append(a.meta, ino, data, len, 0, &off, number, NULL, &attr);
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
    undone = false;
    mute = false;
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
    mfs_chores_all(a.meta);
    assert_int_equal(meta_client_keys(&b, "P*"), 0);
}

/* --- locks ------------------------------------------------------------------------------------ */

static int flock_of(struct meta_client *c, uint64_t ino, int type)
{
    struct mfs_attr attr;

    return mfs_meta_flock(c->meta, ino, 7, 0, type, &attr, NULL);
}

static int fcntl_of(struct meta_client *c, uint64_t ino, int type)
{
    struct mfs_lock all = {.type = type, .start = 0, .end = INT64_MAX, .owner = 7};
    struct mfs_attr attr;

    return mfs_meta_setlk(c->meta, ino, &all, &attr, NULL);
}

typedef int lock_fn(struct meta_client *c, uint64_t ino, int type);

/* a unlocks, as close(2) does, and that does not come to pass. */
static uint64_t unlock_in_vain(lock_fn *fn, bool deaf)
{
    uint64_t ino = known_open();

    assert_int_equal(fn(&a, ino, F_WRLCK), 0);
    undone = true;
    mute = deaf;
    begin("mfs_setlk");
    end(fn(&a, ino, F_UNLCK));
    undone = false;
    mute = false;
    return ino;
}

static void test_unlock(void **state)
{
    uint64_t ino = unlock_in_vain(flock_of, false);

    (void)state;
    assert_int_equal(flock_of(&b, ino, F_WRLCK), 0);
}

static void test_unlock_later(void **state)
{
    uint64_t ino = unlock_in_vain(fcntl_of, true);

    (void)state;
    assert_int_equal(fcntl_of(&b, ino, F_WRLCK), -EAGAIN);
    mfs_chores_all(a.meta);
    assert_int_equal(fcntl_of(&b, ino, F_WRLCK), 0);
}

/* What the owner has taken anew is his. */
static void test_unlock_over(void **state)
{
    uint64_t ino = unlock_in_vain(fcntl_of, true);

    (void)state;
    assert_int_equal(fcntl_of(&a, ino, F_RDLCK), 0);
    mfs_chores_all(a.meta);
    assert_int_equal(fcntl_of(&b, ino, F_WRLCK), -EAGAIN);
    assert_int_equal(fcntl_of(&a, ino, F_UNLCK), 0);
}

/* --- opens -------------------------------------------------------------------------------------
 */

static void chores(void)
{
    a.meta->limits.chores_ms = 1;
    a.meta->limits.stale_open = 0;
    for (int i = 0; i < 3; i++) {
        mfs_clock_sleep(20 * MFS_MSEC);
        mfs_chores_all(a.meta);
    }
}

/* Its last name goes, and with it the file, as nobody has it open. */
static void remove_stale_open(const char *name)
{
    assert_int_equal(mfs_meta_unlink(b.meta, ROOT, name), 0);
    assert_int_equal(meta_client_keys(&b, "I*"), 2);
    chores();
    assert_int_equal(meta_client_keys(&b, "I*"), 1);
}

static void test_open_lost(void **state)
{
    struct mfs_attr attr;
    char name[32];
    uint64_t ino;

    (void)state;
    name_of("file", name);
    assert_int_equal(meta_client_file(&b, ROOT, name, &ino), 0);
    begin("mfs_open");
    end(mfs_meta_open(a.meta, ino, NULL, &attr, NULL));
    remove_stale_open(name);
}

/* The same, while each look at all is another client's. */
static void test_open_lost_never_first(void **state)
{
    struct mfs_attr attr;
    char name[32];
    uint64_t ino;

    (void)state;
    name_of("file", name);
    assert_int_equal(meta_client_file(&b, ROOT, name, &ino), 0);
    begin("mfs_open");
    end(mfs_meta_open(a.meta, ino, NULL, &attr, NULL));
    assert_int_equal(mfs_meta_unlink(b.meta, ROOT, name), 0);
    b.meta->limits.chores_ms = 60000;
    mfs_clock_sleep(20 * MFS_MSEC); /* after the last look of a test before */
    mfs_chores_all(b.meta);
    chores();
    assert_int_equal(meta_client_keys(&b, "I*"), 1);
}

static void test_close_lost(void **state)
{
    struct mfs_attr attr;
    char name[32];
    uint64_t ino;

    (void)state;
    name_of("file", name);
    assert_int_equal(meta_client_file(&b, ROOT, name, &ino), 0);
    assert_int_equal(mfs_meta_open(a.meta, ino, NULL, &attr, NULL), 0);
    undone = true;
    begin("mfs_close");
    end(mfs_meta_close(a.meta, ino, true));
    undone = false;
    remove_stale_open(name);
}

/* What is open stays. */
static void test_open_not_lost(void **state)
{
    struct mfs_attr attr;
    char name[32];
    uint64_t ino;

    (void)state;
    name_of("file", name);
    assert_int_equal(meta_client_file(&b, ROOT, name, &ino), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(mfs_meta_open(a.meta, ino, NULL, &attr, NULL), 0);
    assert_int_equal(mfs_meta_close(a.meta, ino, false), 0);
    assert_int_equal(mfs_meta_unlink(b.meta, ROOT, name), 0);
    chores();
    assert_int_equal(mfs_meta_getattr(a.meta, ino, &attr), 0);
    assert_int_equal(mfs_meta_close(a.meta, ino, true), 0);
    assert_int_equal(mfs_meta_getattr(a.meta, ino, &attr), -ESTALE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_place_taken, setup, teardown),
        cmocka_unit_test_setup_teardown(test_place_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_place_kept_undone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_place_kept_later, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unlock, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unlock_later, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unlock_over, setup, teardown),
        cmocka_unit_test_setup_teardown(test_open_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(test_close_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(test_open_not_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(test_open_lost_never_first, setup, teardown),
    };

    return cmocka_run_group_tests(tests, meta_redis_start, meta_redis_stop);
}
