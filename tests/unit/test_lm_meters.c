/* Meters and the list of mounts: sample texts in, values out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <errno.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <cmocka.h>

#include "base/clock.h"
#include "host/mountinfo.h"
#include "lm/measure/meters.h"

static const char net_dev[] =
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop "
    "fifo colls carrier compressed\n"
    "    lo: 3482938    4000    0    0    0     0          0         0  3482938    4000    0    0  "
    " "
    " 0     0       0          0\n"
    "  eth0:18446744073709551615 9 1 2 3 4 5 6 1234567890123 8 7 6 5 4 3 2\n"
    "eth0.5: 7 1 0 0 0 0 0 0 9 1 0 0 0 0 0 0\n"
    "  bad0: what 1\n";

static void test_net_dev_gives_both_directions(void **state)
{
    struct mfs_meter_count count;

    (void)state;
    assert_int_equal(mfs_meters_parse_net_dev(net_dev, "lo", &count), 0);
    assert_int_equal(count.in, 3482938);
    assert_int_equal(count.out, 3482938);
    assert_int_equal(mfs_meters_parse_net_dev(net_dev, "eth0", &count), 0);
    assert_true(count.in == UINT64_MAX);
    assert_true(count.out == 1234567890123ULL);
    assert_int_equal(mfs_meters_parse_net_dev(net_dev, "eth0.5", &count), 0);
    assert_int_equal(count.out, 9);
}

static void test_net_dev_errors(void **state)
{
    struct mfs_meter_count count;

    (void)state;
    assert_int_equal(mfs_meters_parse_net_dev(net_dev, "eth", &count), -ENOENT);
    assert_int_equal(mfs_meters_parse_net_dev(net_dev, "", &count), -ENOENT);
    assert_int_equal(mfs_meters_parse_net_dev("", "lo", &count), -ENOENT);
    assert_int_equal(mfs_meters_parse_net_dev(net_dev, "bad0", &count), -EINVAL);
}

static void test_loopback_has_no_interface_of_its_own(void **state)
{
    char iface[MFS_METERS_IFACE_MAX];
    struct mfs_meter_count count;

    (void)state;
    assert_int_equal(mfs_meters_iface("127.0.0.1", iface), -ENOENT);
    assert_int_equal(mfs_meters_iface("no address", iface), -ENOENT);
    assert_int_equal(mfs_meters_read("lo", &count), 0);
}

static void test_rate_of_growing_counters(void **state)
{
    struct mfs_meter m = {0};

    (void)state;
    mfs_meter_update(&m, 10 * MFS_SEC, &(struct mfs_meter_count){1000, 500});
    assert_true(m.in == 0 && m.out == 0);
    mfs_meter_update(&m, 12 * MFS_SEC, &(struct mfs_meter_count){5000, 500});
    assert_true(m.in == 2000 && m.out == 0);
}

static void test_restarted_counters_give_no_rate(void **state)
{
    struct mfs_meter m = {0};

    (void)state;
    mfs_meter_update(&m, 1 * MFS_SEC, &(struct mfs_meter_count){1000, 1000});
    mfs_meter_update(&m, 2 * MFS_SEC, &(struct mfs_meter_count){3000, 4000});
    mfs_meter_update(&m, 3 * MFS_SEC, &(struct mfs_meter_count){10, 5000});
    assert_true(m.in == 2000 && m.out == 3000);
    mfs_meter_update(&m, 4 * MFS_SEC, &(struct mfs_meter_count){110, 5000});
    assert_true(m.in == 100 && m.out == 0);
    mfs_meter_update(&m, 4 * MFS_SEC, &(struct mfs_meter_count){999, 9999}); /* no time passed */
    assert_true(m.in == 100 && m.out == 0);
}

static const char mountinfo[] =
    "21 1 0:20 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"
    "36 21 0:44 / /mnt/a\\040b rw,nosuid - fuse.memefs memefs rw,user_id=0\n"
    "37 21 0:45 / /mnt/memefs rw,relatime shared:9 master:2 - tmpfs tmpfs rw\n"
    "38 37 0:46 / /mnt/memefs rw,nosuid,nodev - fuse.memefs memefs rw,allow_other\n"
    "39 21 8:1 /a\\040b /mnt/memefs2 ro - ext4 /dev/sda1 rw\n";

static void test_mountinfo_finds_the_topmost(void **state)
{
    struct mfs_mountinfo info;

    (void)state;
    assert_int_equal(mfs_mountinfo_parse(mountinfo, "/mnt/memefs", &info), 0);
    assert_int_equal(info.minor, 46);
    assert_string_equal(info.source, "memefs");
    assert_string_equal(info.root, "/");
    assert_int_equal(info.flags, MS_NOSUID | MS_NODEV);
    assert_string_equal(info.fstype, "fuse.memefs");
    assert_int_equal(mfs_mountinfo_parse(mountinfo, "/mnt/a b", &info), 0);
    assert_int_equal(info.minor, 44);
    assert_int_equal(mfs_mountinfo_parse(mountinfo, "/mnt/memefs2", &info), 0);
    assert_string_equal(info.root, "/a b");
    assert_int_equal(info.flags, MS_RDONLY);
    assert_int_equal(mfs_mountinfo_parse(mountinfo, "/mnt", &info), -ENOENT);
    assert_int_equal(mfs_mountinfo_parse("garbage\n\n1 2 3\n", "/mnt", &info), -ENOENT);
    assert_int_equal(mfs_mountinfo_find("/proc", &info), 0);
    assert_string_equal(info.fstype, "proc");
}

static void test_mountinfo_knows_what_bears_mounts(void **state)
{
    static const char text[] = "21 1 0:20 / / rw - ext4 /dev/vda1 rw\n"
                               "37 21 0:45 / /mnt/one rw - fuse.memefs memefs rw\n"
                               "38 21 0:46 / /mnt/two rw - fuse.memefs memefs rw\n"
                               "39 21 0:47 / /mnt/one.old rw - tmpfs tmpfs rw\n"
                               "40 21 0:46 /root /srv/bound rw - fuse.memefs memefs rw\n"
                               "41 40 0:5 / /srv/bound/proc rw - proc proc rw\n";

    (void)state;
    assert_false(mfs_mountinfo_bears(text, makedev(0, 45))); /* that name only begins alike */
    assert_true(mfs_mountinfo_bears(text, makedev(0, 46)));
    assert_false(mfs_mountinfo_bears(text, makedev(0, 47)));
    assert_false(mfs_mountinfo_bears(text, makedev(0, 99)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_net_dev_gives_both_directions),
        cmocka_unit_test(test_net_dev_errors),
        cmocka_unit_test(test_loopback_has_no_interface_of_its_own),
        cmocka_unit_test(test_rate_of_growing_counters),
        cmocka_unit_test(test_restarted_counters_give_no_rate),
        cmocka_unit_test(test_mountinfo_finds_the_topmost),
        cmocka_unit_test(test_mountinfo_knows_what_bears_mounts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
