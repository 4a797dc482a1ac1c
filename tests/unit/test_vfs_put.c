/* Small files that are made whole, where stripes are smaller than what counts as small. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/placement.h"
#include "vfs/vfs.h"
#include "vfs_fixture.h"

#define STRIPE 8192U

static struct vfs_client a, b;
static struct mfs_file *file; /* of a */
static uint64_t ino;

static int setup_all(void **state)
{
    (void)state;
    return vfs_redis_start(STRIPE);
}

static int setup(void **state)
{
    (void)state;
    vfs_pair_start(&a, &b, &file, &ino);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    vfs_pair_stop(&a, &b, file);
    return 0;
}

static int put(const char *name, size_t len)
{
    static const struct mfs_cred root = {.umask = 022, .in_group = true};
    static char buf[STRIPE + 1];
    struct mfs_vfs_put one = {
        .parent = MFS_ROOT_INO, .name = name, .mode = 0644, .buf = buf, .len = len};

    memset(buf, 'x', sizeof buf);
    mfs_vfs_put(a.vfs, &one, 1, &root);
    return one.rc;
}

static void a_stripe_is_the_most(void **state)
{
    struct mfs_attr attr = {0};
    struct mfs_file *f;
    bool keep;

    (void)state;
    assert_int_equal(put("longer", STRIPE + 1), -EAGAIN);
    assert_int_equal(mfs_vfs_lookup(b.vfs, MFS_ROOT_INO, "longer", &attr), -ENOENT);
    assert_int_equal(put("whole", STRIPE), 0);
    assert_int_equal(mfs_vfs_lookup(b.vfs, MFS_ROOT_INO, "whole", &attr), 0);
    assert_int_equal(attr.size, STRIPE);
    assert_int_equal(mfs_vfs_open(b.vfs, attr.ino, O_RDONLY, &f, &keep), 0);
    vfs_expect_all(f, 0, STRIPE, 'x', "the other client");
    mfs_vfs_release(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_stripe_is_the_most, setup, teardown),
    };

    return cmocka_run_group_tests(tests, setup_all, vfs_redis_stop);
}
