/* ctest: threaded
 *
 * What a client knows under leases, while several of its threads hear of changes at once: what was
 * asked for before a change that has been taken note of never counts again. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/clock.h"
#include "meta/cache/cache.h"
#include "meta/internal.h"

#define THREADS 4
#define ROUNDS  20000
#define INO     5

static struct mfs_filecache *files;
static struct mfs_dircache *dirs;
static atomic_uint wrong;

static void count(bool is_wrong)
{
    if (is_wrong)
        atomic_fetch_add(&wrong, 1);
}

static void *change_file(void *arg)
{
    struct mfs_attr attr = {.ino = INO, .mode = S_IFREG}, got;

    (void)arg;
    for (unsigned i = 0; i < ROUNDS; i++) {
        int64_t asked = mfs_clock_mono();

        if (i % 2)
            mfs_filecache_revoke(files, INO);
        else
            mfs_filecache_update(files, &attr, asked);
        mfs_filecache_put(files, MFS_ROOT_INO, "f", &attr, asked);
        count(mfs_filecache_attr(files, INO, &got));
    }
    return NULL;
}

static void *change_dir(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < ROUNDS; i++) {
        int64_t asked = mfs_clock_mono();

        mfs_dircache_revoke(dirs, INO);
        count(mfs_dircache_lease(dirs, INO, asked));
    }
    return NULL;
}

static void race(void *(*change)(void *))
{
    pthread_t thread[THREADS];

    atomic_store(&wrong, 0);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, change, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(atomic_load(&wrong), 0);
}

static void test_files(void **state)
{
    (void)state;
    race(change_file);
}

static void test_dirs(void **state)
{
    (void)state;
    race(change_dir);
}

/* What this client has counted itself leaves a lease as it is, but for answers of the same time, of
 * which no client knows whether they are from before. */
static void test_counted(void **state)
{
    struct mfs_attr attr = {.ino = 7, .mode = S_IFDIR, .nlink = 2}, got;
    int64_t asked = mfs_clock_mono(), later;

    (void)state;
    mfs_dircache_put(dirs, &attr, NULL, 0, asked);
    assert_true(mfs_dircache_lease(dirs, attr.ino, asked));
    attr.nlink = 3;
    asked = mfs_clock_mono();
    mfs_dircache_counted(dirs, &attr, NULL, 0, asked);
    attr.nlink = 2;
    mfs_dircache_put(dirs, &attr, NULL, 0, asked);
    assert_false(mfs_dircache_lease(dirs, attr.ino, asked));
    assert_true(mfs_dircache_leased(dirs, attr.ino, &got));
    assert_int_equal(got.nlink, 3);

    asked = mfs_clock_mono();
    while ((later = mfs_clock_mono()) == asked) {
    }
    mfs_dircache_put(dirs, &attr, NULL, 0, later);
    attr.nlink = 4;
    mfs_dircache_counted(dirs, &attr, NULL, 0, asked);
    assert_false(mfs_dircache_leased(dirs, attr.ino, &got));

    assert_true(mfs_dircache_lease(dirs, attr.ino, mfs_clock_mono() + 1));
    asked = mfs_clock_mono();
    mfs_dircache_revoke(dirs, attr.ino);
    mfs_dircache_counted(dirs, &attr, NULL, 0, asked);
    assert_false(mfs_dircache_leased(dirs, attr.ino, &got));
}

static int start(void **state)
{
    (void)state;
    files = mfs_filecache_create(0);
    dirs = mfs_dircache_create();
    return !files || !dirs;
}

static int stop(void **state)
{
    (void)state;
    mfs_filecache_destroy(files);
    mfs_dircache_destroy(dirs);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_dirs),
        cmocka_unit_test(test_counted),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
