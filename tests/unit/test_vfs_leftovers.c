/* What is stored and never becomes content lies below the file's end of data, so that it goes with
 * the file. ctest: threaded timeout=120 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cluster/placement.h"
#include "data/stripes/stripe_keys.h"
#include "data/stripes/stripes.h"
#include "vfs/vfs.h"
#include "vfs_fixture.h"

#define STRIPE (64U << 10)
#define HALF   (STRIPE / 2)
#define NPARTS 3U
#define MANY   16U /* stripes that a test may use */

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

/* --- shorthands ------------------------------------------------------------------------------ */

static void write_at(uint64_t off, size_t len)
{
    char buf[STRIPE];

    memset(buf, 'w', len);
    assert_int_equal(mfs_vfs_write(file, buf, len, off, 0, false), (ssize_t)len);
}

static void get_lengths(uint32_t length[MANY])
{
    assert_int_equal(mfs_stripe_lengths(b.store, ino, 0, MANY, length), 0);
}

/* Behind a hole that begins with the stripe, and sent at once, as nothing more can come. */
static void store_second_half(uint32_t s)
{
    int64_t until = mfs_clock_mono() + 10 * MFS_SEC;
    uint32_t length[MANY];

    write_at((uint64_t)s * STRIPE + HALF, HALF);
    do {
        get_lengths(length);
        assert_true(mfs_clock_mono() < until);
    } while (length[s] < STRIPE);
}

static int truncate_by(struct vfs_client *c, uint64_t size)
{
    struct mfs_attr attr = {.size = size};

    return mfs_vfs_setattr(c->vfs, ino, MFS_VFS_SET_SIZE, &attr, NULL);
}

static void check_attr(uint64_t size)
{
    uint32_t length[MANY];
    struct mfs_attr attr;

    get_lengths(length);
    assert_int_equal(mfs_vfs_getattr(b.vfs, ino, &attr), 0);
    assert_int_equal(attr.size, size);
    assert_int_equal(attr.alloc, 0);
    for (uint32_t s = 0; s < MANY; s++)
        if (length[s] > 0 && (uint64_t)s * STRIPE + length[s] > attr.data_end)
            fail_msg("stripe %u has %u bytes, the end of data is %llu", s, length[s],
                     (unsigned long long)attr.data_end);
}

static bool any_stripe(void)
{
    uint32_t length[MANY], sum = 0;

    get_lengths(length);
    for (uint32_t s = 0; s < MANY; s++)
        sum += length[s];
    return sum > 0;
}

/* Removed by the mount that knows of nothing but the record. The teardown has another file. */
static void check_all_goes(void)
{
    const struct mfs_cred root = {.umask = 022, .in_group = true};
    int64_t until = mfs_clock_mono() + 10 * MFS_SEC;
    struct mfs_attr attr;
    bool keep;

    mfs_vfs_release(file);
    assert_int_equal(mfs_vfs_unlink(b.vfs, MFS_ROOT_INO, "f"), 0);
    assert_int_equal(mfs_vfs_create_open(a.vfs, MFS_ROOT_INO, "g", 0644, O_RDWR | O_CREAT, &root,
                                         &attr, &file, &keep),
                     0);
    while (any_stripe()) {
        assert_true(mfs_clock_mono() < until);
        mfs_clock_sleep(MFS_MSEC);
    }
}

static bool calls(const char *name, const struct mfs_arg *argv)
{
    return argv[0].len == strlen(name) && memcmp(argv[0].p, name, argv[0].len) == 0;
}

/* --- cuts ------------------------------------------------------------------------------------ */

/* Into the hole before what was stored and not yet committed. */
static void cut_in_a_hole(void **state)
{
    const uint64_t sizes[] = {2 * STRIPE + 1000, 1000, STRIPE, 2 * STRIPE};

    (void)state;
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        store_second_half(2);
        assert_int_equal(truncate_by(&a, sizes[i]), 0);
        assert_int_equal(mfs_vfs_fsync(file), 0);
        check_attr(sizes[i]);
        assert_int_equal(truncate_by(&b, 0), 0);
        assert_false(any_stripe());
    }
}

static void cut_in_a_hole_and_removed(void **state)
{
    (void)state;
    store_second_half(2);
    assert_int_equal(truncate_by(&a, 2 * STRIPE + 1000), 0);
    check_all_goes();
}

/* The stripe where the inode is. */
static void the_first_stripe_too(void **state)
{
    struct vfs_client *clients[] = {&a, &b};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        store_second_half(0);
        assert_int_equal(truncate_by(clients[i], 1000), 0);
        assert_int_equal(mfs_vfs_fsync(file), 0);
        check_attr(1000);
        assert_int_equal(truncate_by(&b, 0), 0);
        assert_false(any_stripe());
    }
}

static int empty_by_b(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    (void)part;
    (void)argc;
    if (calls("mfs_commit0", argv) && !atomic_exchange((atomic_bool *)arg, true))
        assert_int_equal(truncate_by(&b, 0), 0);
    return 0;
}

/* The other mount frees nothing, as it knows of nothing. */
static void emptied_by_another_mount_meanwhile(void **state)
{
    atomic_bool once = false;

    (void)state;
    store_second_half(2);
    mfs_store_set_fault(a.store, empty_by_b, &once);
    assert_int_equal(truncate_by(&a, 2 * STRIPE + 1000), 0);
    mfs_store_set_fault(a.store, NULL, NULL);
    assert_true(once);
    check_attr(2 * STRIPE + 1000);
    check_all_goes();
}

/* --- appends --------------------------------------------------------------------------------- */

static void set_full(uint32_t part, bool full)
{
    const char *command = full ? "CONFIG SET maxmemory 1" : "CONFIG SET maxmemory 0";

    assert_int_equal(redis_fixture_admin(vfs_redis, part, command), 0);
}

/* Not the home, where the end of data is told. */
static uint32_t full_partition(void)
{
    return (mfs_placement_home(ino) + 1) % NPARTS;
}

/* Some of the stripes have room, one has not: nothing is appended, and some of it is stored. */
static void appended_in_part(void **state)
{
    static const char bytes[8 * STRIPE];

    (void)state;
    set_full(full_partition(), true);
    assert_int_equal(mfs_vfs_write(file, bytes, sizeof bytes, 0, O_APPEND, false), -ENOSPC);
    set_full(full_partition(), false);
    assert_true(any_stripe());
    check_attr(0);
    check_all_goes();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(cut_in_a_hole, setup, teardown),
        cmocka_unit_test_setup_teardown(cut_in_a_hole_and_removed, setup, teardown),
        cmocka_unit_test_setup_teardown(the_first_stripe_too, setup, teardown),
        cmocka_unit_test_setup_teardown(emptied_by_another_mount_meanwhile, setup, teardown),
        cmocka_unit_test_setup_teardown(appended_in_part, setup, teardown),
    };

    return cmocka_run_group_tests(tests, setup_all, vfs_redis_stop);
}
