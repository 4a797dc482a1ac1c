/* What a client finds out about the files of a directory that it has listed, or in which it looks
 * at one after the other: many at once, and never less than a look-up of each would tell.
 * ctest: threaded timeout=120 waits */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/clock.h"
#include "cluster/placement.h"
#include "vfs/names/ahead.h"
#include "vfs/names/streaks.h"
#include "vfs/vfs.h"
#include "vfs/vnode/vnode.h"
#include "vfs_fixture.h"

#define ROOT  MFS_ROOT_INO
#define FILES 200U

#define TIMEOUT (700 * MFS_MSEC)

static const struct mfs_cred root = {.umask = 022, .in_group = true};
static struct vfs_client maker, other; /* the second one has leases */
static char names[FILES][16];          /* in the order of the listing */
static unsigned found;
static int64_t io_timeout; /* the other's; 0: the default */

static const char *counted(char stem, unsigned i)
{
    static _Thread_local char name[16];

    snprintf(name, sizeof name, "%c%u", stem, i);
    return name;
}

/* `files`: that the other client may know; 0: as many as it will. */
static int start_with(uint32_t files)
{
    struct mfs_store_opts opts = {.node = REDIS_FIXTURE_NODE, .io_timeout = io_timeout};
    struct mfs_vfs_opts vfs = {.leases = true, .files = files};
    struct mfs_attr attr;

    assert_int_equal(redis_fixture_reset(vfs_redis), 0);
    vfs_client_start(&maker.store, &maker.vfs);
    assert_int_equal(mfs_store_create(&other.store, redis_fixture_table(vfs_redis), &opts), 0);
    assert_int_equal(mfs_vfs_create(&other.vfs, other.store, &vfs), 0);
    for (unsigned i = 0; i < FILES; i++)
        assert_int_equal(
            mfs_vfs_mknod(maker.vfs, ROOT, counted('f', i), S_IFREG | 0644, 0, &root, &attr), 0);
    return 0;
}

static int start(void **state)
{
    (void)state;
    return start_with(0);
}

static int start_short(void **state)
{
    int rc;

    (void)state;
    io_timeout = TIMEOUT;
    rc = start_with(0);
    io_timeout = 0;
    return rc;
}

static int start_small(void **state)
{
    (void)state;
    return start_with(FILES / 2);
}

static int stop(void **state)
{
    (void)state;
    vfs_client_stop(maker.store, maker.vfs);
    vfs_client_stop(other.store, other.vfs);
    return 0;
}

static bool note(void *arg, const struct mfs_dirent *e, const struct mfs_attr *attr,
                 uint64_t cookie)
{
    (void)arg;
    (void)attr;
    (void)cookie;
    if (e->name[0] == 'f') {
        assert_true(found < FILES);
        snprintf(names[found++], sizeof names[0], "%s", e->name);
    }
    return true;
}

/* As a program does that then goes through the names. */
static void list(void)
{
    struct mfs_dirh *dir;

    found = 0;
    assert_int_equal(mfs_vfs_opendir(other.vfs, ROOT, O_RDONLY, &dir), 0);
    assert_int_equal(mfs_vfs_readdir(dir, 0, false, note, NULL), 0);
    mfs_vfs_releasedir(dir);
    assert_int_equal(found, FILES);
}

static uint64_t round_trips(void)
{
    struct mfs_store_stats s;

    mfs_store_stats(other.store, &s);
    return s.round_trips;
}

static int look(const char *name)
{
    struct mfs_attr attr;

    return mfs_vfs_lookup(other.vfs, ROOT, name, &attr);
}

static void test_in_order(void **state)
{
    uint64_t before;

    (void)state;
    list();
    before = round_trips();
    for (unsigned i = 0; i < FILES; i++)
        assert_int_equal(look(names[i]), 0);
    assert_in_range(round_trips() - before, 1, FILES / 4);
}

static void test_in_any_order(void **state)
{
    uint64_t before;

    (void)state;
    list();
    before = round_trips();
    for (unsigned i = 0; i < FILES; i++)
        assert_int_equal(look(names[i * 77 % FILES]), 0);
    assert_in_range(round_trips() - before, 1, FILES / 2);
}

/* What the other client does meanwhile is seen, whatever was brought along before. */
static void test_changes(void **state)
{
    struct mfs_attr attr;

    (void)state;
    list();
    assert_int_equal(look(names[0]), 0);
    assert_int_equal(look(names[4]), 0); /* brings more along than the first */
    for (unsigned i = 0; i < FILES; i += 2)
        assert_int_equal(mfs_vfs_unlink(maker.vfs, ROOT, names[i]), 0);
    assert_int_equal(mfs_vfs_mknod(maker.vfs, ROOT, "new", S_IFREG | 0644, 0, &root, &attr), 0);
    for (unsigned i = 0; i < FILES; i++)
        assert_int_equal(look(names[i]), i % 2 ? 0 : -ENOENT);
    assert_int_equal(look("new"), 0);
    assert_int_equal(look("neither"), -ENOENT);
}

/* --- without a listing ------------------------------------------------------------------------ */

/* As a program does that counts. */
static void test_unlisted(void **state)
{
    uint64_t before = round_trips();

    (void)state;
    for (unsigned i = 0; i < FILES; i++)
        assert_int_equal(look(counted('f', i)), 0);
    assert_in_range(round_trips() - before, 1, 24);
}

/* Every third, from the end on. */
static void test_unlisted_in_any_order(void **state)
{
    uint64_t before = round_trips();

    (void)state;
    for (unsigned i = 0; i < FILES; i++)
        assert_int_equal(look(counted('f', i * 77 % FILES)), 0);
    assert_in_range(round_trips() - before, 1, FILES / 2);
}

/* A name costs what it did where few are files that are there. */
static void test_few(void **state)
{
    uint64_t before = round_trips();

    (void)state;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(look(counted('f', 50 * i)), 0);
    for (unsigned i = 0; i < 50; i++)
        assert_int_equal(look(counted('n', i)), -ENOENT);
    assert_in_range(round_trips() - before, 53, 56);
}

/* Of more names than are kept it is only asked how many they are. */
static void test_too_many(void **state)
{
    uint64_t before = round_trips();

    (void)state;
    for (unsigned i = 0; i < FILES; i++)
        assert_int_equal(look(counted('f', i)), 0);
    assert_in_range(round_trips() - before, FILES, FILES + 4);
}

/* Of which most have their inode elsewhere. */
static void test_moved(void **state)
{
    uint64_t before;

    (void)state;
    for (unsigned i = 0; i < FILES; i++) {
        char to[16];

        snprintf(to, sizeof to, "m%u", i);
        assert_int_equal(mfs_vfs_rename(maker.vfs, ROOT, counted('f', i), ROOT, to, 0, &root), 0);
    }
    mfs_clock_sleep(300 * MFS_MSEC); /* the old names are settled */
    before = round_trips();
    for (unsigned i = 0; i < FILES; i++)
        assert_int_equal(look(counted('m', i)), 0);
    assert_in_range(round_trips() - before, 1, 40);
}

static atomic_uint modes[FILES]; /* of which the maker's change has returned */
static atomic_bool over;

static void *look_at_all(void *arg)
{
    uintptr_t stale = 0;

    for (unsigned i = (unsigned)(uintptr_t)arg; !atomic_load(&over); i = (i + 1) % FILES) {
        unsigned least = atomic_load(&modes[i]);
        struct mfs_attr attr;

        if (mfs_vfs_lookup(other.vfs, ROOT, counted('f', i), &attr) || (attr.mode & 0777) < least)
            stale++;
    }
    return (void *)stale;
}

/* No look that begins when another client's change has returned sees less, be it brought along. */
static void test_changed_meanwhile(void **state)
{
    int64_t end = mfs_clock_mono() + MFS_SEC;
    pthread_t threads[2];

    (void)state;
    atomic_store(&over, false);
    for (unsigned i = 0; i < FILES; i++)
        atomic_store(&modes[i], 0);
    for (uintptr_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, look_at_all, (void *)(i * 100)), 0);
    for (unsigned mode = 0400; mode < 0777 && mfs_clock_mono() < end; mode++) {
        for (unsigned i = 0; i < FILES && mfs_clock_mono() < end; i++) {
            struct mfs_attr attr = {.mode = mode};

            assert_int_equal(mfs_vfs_lookup(maker.vfs, ROOT, counted('f', i), &attr), 0);
            attr.mode = mode;
            assert_int_equal(mfs_vfs_setattr(maker.vfs, attr.ino, MFS_SET_MODE, &attr, NULL), 0);
            atomic_store(&modes[i], mode);
        }
    }
    atomic_store(&over, true);
    for (unsigned i = 0; i < 2; i++) {
        void *stale;

        pthread_join(threads[i], &stale);
        assert_int_equal((uintptr_t)stale, 0);
    }
}

/* --- a partition that hangs ------------------------------------------------------------------- */

/* Of the two that do not have the directory itself: its names are asked for elsewhere, and that
 * goes on. */
static uint32_t hang(int signal)
{
    uint32_t sick = (mfs_placement_home(ROOT) + 1) % 3;

    kill(redis_fixture_pid(vfs_redis, sick), signal);
    return sick;
}

static void look_at_healthy(uint32_t sick)
{
    int64_t began = mfs_clock_mono();
    unsigned n = 0;

    for (unsigned i = 0; i < FILES; i++) {
        const char *name = counted('f', i);

        if (mfs_placement_entry(ROOT, name, strlen(name), 3) == sick)
            continue;
        assert_int_equal(look(name), 0);
        n++;
    }
    hang(SIGCONT);
    assert_true(n > FILES / 2);
    assert_true(mfs_clock_mono() - began < 2 * TIMEOUT);
}

static void test_hangs_listed(void **state)
{
    (void)state;
    list();
    look_at_healthy(hang(SIGSTOP));
}

static void test_hangs_unlisted(void **state)
{
    (void)state;
    look_at_healthy(hang(SIGSTOP));
}

/* --- when it pays ------------------------------------------------------------------------------
 */

#define MOST 65536

/* Files until it is listed, of so many names. */
static unsigned files_until_due(struct mfs_streaks *s, int64_t size, int64_t now)
{
    for (unsigned n = 1; n < 100000; n++) {
        mfs_streaks_found(s, ROOT, now);
        if (mfs_streaks_due(s, ROOT) && mfs_streaks_sized(s, ROOT, size, MOST))
            return n;
    }
    return 0;
}

static void test_streaks(void **state)
{
    struct mfs_streaks s = {0};

    (void)state;
    assert_int_equal(files_until_due(&s, 10, MFS_SEC), 4);
    assert_false(mfs_streaks_due(&s, ROOT)); /* it is being listed */
    mfs_streaks_listed(&s, ROOT, -1);
    assert_int_equal(files_until_due(&s, 6400, MFS_SEC), 100);
    mfs_streaks_listed(&s, ROOT, 5); /* which was not worth it */
    assert_int_equal(files_until_due(&s, 6400, MFS_SEC), 200);
    mfs_streaks_listed(&s, ROOT, 6000);
    assert_int_equal(files_until_due(&s, 6400, 100 * MFS_SEC), 100); /* after a pause */
    mfs_streaks_listed(&s, ROOT, 6000);
    assert_int_equal(files_until_due(&s, 64, 200 * MFS_SEC), 4);
    mfs_streaks_listed(&s, ROOT, 6000);
    assert_int_equal(files_until_due(&s, MOST + 1, 300 * MFS_SEC), 0);
}

/* Looks in no order: each order is made once, and they are changed ever more rarely; one in order
 * then brings as many as before. */
static void test_no_order(void **state)
{
    struct mfs_listing *l;
    struct mfs_ahead a;
    uint32_t *made[MFS_ORDERS];
    unsigned changes = 0;

    (void)state;
    assert_int_equal(mfs_meta_list(other.vfs->meta, ROOT, &l), 0);
    mfs_ahead_begin(&a, l, MFS_ORDER_NUMBERS);
    for (unsigned i = 0; i < 20000; i++) {
        enum mfs_order before = a.how;

        mfs_ahead_next(&a, l);
        assert_int_equal(a.batch, 4);
        changes += a.how != before;
        if (i == 100)
            memcpy(made, a.order, sizeof made);
    }
    assert_memory_equal(made, a.order, sizeof made);
    assert_in_range(changes, 3, 40);
    for (unsigned i = 0; i < 12; i++) {
        a.hits = a.batch;
        mfs_ahead_next(&a, l);
    }
    assert_int_equal(a.batch, MFS_META_LEARN);
    mfs_ahead_fini(&a);
    mfs_listing_free(l);
}

static int setup_all(void **state)
{
    (void)state;
    return vfs_redis_start(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_in_order, start, stop),
        cmocka_unit_test_setup_teardown(test_in_any_order, start, stop),
        cmocka_unit_test_setup_teardown(test_changes, start, stop),
        cmocka_unit_test_setup_teardown(test_unlisted, start, stop),
        cmocka_unit_test_setup_teardown(test_unlisted_in_any_order, start, stop),
        cmocka_unit_test_setup_teardown(test_few, start, stop),
        cmocka_unit_test_setup_teardown(test_too_many, start_small, stop),
        cmocka_unit_test_setup_teardown(test_moved, start, stop),
        cmocka_unit_test_setup_teardown(test_changed_meanwhile, start, stop),
        cmocka_unit_test_setup_teardown(test_hangs_listed, start_short, stop),
        cmocka_unit_test_setup_teardown(test_hangs_unlisted, start_short, stop),
        cmocka_unit_test_setup_teardown(test_no_order, start, stop),
        cmocka_unit_test(test_streaks),
    };

    return cmocka_run_group_tests(tests, setup_all, vfs_redis_stop);
}
