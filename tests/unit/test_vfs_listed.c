/* What a client that has listed a directory finds out about its files: many at once, and never less
 * than a look-up of each would tell. ctest: threaded timeout=120 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "cluster/placement.h"
#include "vfs/vfs.h"
#include "vfs_fixture.h"

#define ROOT  MFS_ROOT_INO
#define FILES 200U

static const struct mfs_cred root = {.umask = 022, .in_group = true};
static struct vfs_client maker, other; /* the second one has leases */
static char names[FILES][16];          /* in the order of the listing */
static unsigned found;

static int start(void **state)
{
    struct mfs_store_opts opts = {.node = REDIS_FIXTURE_NODE};
    struct mfs_attr attr;
    char name[16];

    (void)state;
    assert_int_equal(redis_fixture_reset(vfs_redis), 0);
    vfs_client_start(&maker.store, &maker.vfs);
    assert_int_equal(mfs_store_create(&other.store, redis_fixture_table(vfs_redis), &opts), 0);
    assert_int_equal(
        mfs_vfs_create(&other.vfs, other.store, &(struct mfs_vfs_opts){.leases = true}), 0);
    for (unsigned i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "f%u", i);
        assert_int_equal(mfs_vfs_mknod(maker.vfs, ROOT, name, S_IFREG | 0644, 0, &root, &attr), 0);
    }
    return 0;
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
    };

    return cmocka_run_group_tests(tests, setup_all, vfs_redis_stop);
}
