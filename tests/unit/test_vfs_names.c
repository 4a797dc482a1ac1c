/* Two clients of one store, without a mount: names, their attributes, and listings.
 * ctest: threaded timeout=120 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/clock.h"
#include "vfs/names/acl.h"
#include "vfs_test.h"

static void inherited(void **state)
{
    /* default:user::rwx default:user:7:rwx default:group::r-x default:mask::rwx default:other::---
     */
    static const unsigned char acl[] = {
        2, 0, 0,    0,    1,    0,    7,    0, 0xff, 0xff, 0xff, 0xff, 2,    0,    7,
        0, 7, 0,    0,    0,    4,    0,    5, 0,    0xff, 0xff, 0xff, 0xff, 0x10, 0,
        7, 0, 0xff, 0xff, 0xff, 0xff, 0x20, 0, 0,    0,    0xff, 0xff, 0xff, 0xff};
    struct mfs_cred cred = {.uid = 5, .gid = 5, .umask = 077, .in_group = false};
    struct mfs_attr dir, attr;
    char value[128];

    (void)state;
    assert_int_equal(mfs_vfs_mknod(a.vfs, MFS_ROOT_INO, "d", S_IFDIR | 02775, 0, &root, &dir), 0);
    assert_int_equal(mfs_vfs_mknod(b.vfs, dir.ino, "f", S_IFREG | 02775, 0, &cred, &attr), 0);
    assert_int_equal(attr.gid, dir.gid);
    assert_int_equal(attr.mode, S_IFREG | 0700); /* the bit is not for strangers; umask */
    assert_int_equal(mfs_vfs_mknod(b.vfs, dir.ino, "e", S_IFDIR | 0755, 0, &cred, &attr), 0);
    assert_int_equal(attr.mode, S_IFDIR | 02700);
    assert_int_equal(mfs_vfs_setxattr(a.vfs, dir.ino, MFS_ACL_DEFAULT, acl, sizeof acl, 0, &root),
                     0);
    assert_int_equal(mfs_vfs_getattr(b.vfs, dir.ino, &attr), 0);
    assert_int_equal(mfs_vfs_mknod(b.vfs, dir.ino, "g", S_IFREG | 0666, 0, &cred, &attr), 0);
    assert_int_equal(attr.mode, S_IFREG | 0660); /* the ACL instead of the umask */
    assert_int_equal(mfs_vfs_getxattr(a.vfs, attr.ino, MFS_ACL_ACCESS, value, sizeof value),
                     sizeof acl);
    assert_int_equal(mfs_vfs_getxattr(a.vfs, attr.ino, MFS_ACL_DEFAULT, value, sizeof value),
                     -ENODATA);
    assert_int_equal(mfs_vfs_mknod(b.vfs, dir.ino, "h", S_IFDIR | 0777, 0, &cred, &attr), 0);
    assert_int_equal(mfs_vfs_getxattr(a.vfs, attr.ino, MFS_ACL_DEFAULT, value, sizeof value),
                     sizeof acl);
}

static void xattr_names(void **state)
{
    char list[256];
    struct mfs_attr attr;

    (void)state;
    assert_int_equal(mfs_vfs_mknod(a.vfs, MFS_ROOT_INO, "f", S_IFREG | 0644, 0, &root, &attr), 0);
    assert_int_equal(mfs_vfs_setxattr(a.vfs, attr.ino, "user.x", "1", 1, 0, &root), 0);
    assert_int_equal(mfs_vfs_setxattr(a.vfs, attr.ino, "trusted.y", "2", 1, 0, &root), 0);
    assert_int_equal(mfs_vfs_setxattr(a.vfs, attr.ino, "system.z", "2", 1, 0, &root), -EOPNOTSUPP);
    assert_int_equal(mfs_vfs_setxattr(a.vfs, attr.ino, "user.", "2", 1, 0, &root), -EINVAL);
    assert_int_equal(mfs_vfs_listxattr(b.vfs, attr.ino, false, list, sizeof list), 7);
    assert_string_equal(list, "user.x");
    assert_int_equal(mfs_vfs_listxattr(b.vfs, attr.ino, false, NULL, 0), 7);
    assert_int_equal(mfs_vfs_listxattr(b.vfs, attr.ino, false, list, 3), -ERANGE);
    assert_int_equal(mfs_vfs_listxattr(b.vfs, attr.ino, true, list, sizeof list), 17);
}

static void unlinked_while_open(void **state)
{
    uint64_t ino;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino);
    struct mfs_attr attr;

    (void)state;
    put(f, "still here", 0);
    assert_int_equal(mfs_vfs_unlink(b.vfs, MFS_ROOT_INO, "file"), 0);
    assert_int_equal(mfs_vfs_lookup(a.vfs, MFS_ROOT_INO, "file", &attr), -ENOENT);
    expect(f, "still here", 0);
    assert_int_equal(getattr(&a, ino).nlink, 0);
    assert_int_equal(mfs_vfs_fsync(f), 0);
    assert_int_equal(mfs_vfs_unlink(a.vfs, MFS_ROOT_INO, "file"), -ENOENT);
    close_file(f); /* something was removed here meanwhile: waits until the inode is gone */
    assert_int_equal(mfs_vfs_getattr(b.vfs, ino, &attr), -ESTALE);
}

/* Names in a directory that is gone do not exist; the directory itself is stale. */
static void gone_directory(void **state)
{
    struct mfs_attr dir, attr;
    struct mfs_file *f;
    bool keep;

    (void)state;
    assert_int_equal(mfs_vfs_mknod(a.vfs, MFS_ROOT_INO, "d", S_IFDIR | 0755, 0, &root, &dir), 0);
    assert_int_equal(mfs_vfs_rmdir(b.vfs, MFS_ROOT_INO, "d"), 0);
    assert_int_equal(mfs_vfs_getattr(a.vfs, dir.ino, &attr), -ESTALE);
    assert_int_equal(mfs_vfs_lookup(a.vfs, dir.ino, "f", &attr), -ENOENT);
    assert_int_equal(mfs_vfs_unlink(a.vfs, dir.ino, "f"), -ENOENT);
    assert_int_equal(mfs_vfs_mknod(a.vfs, dir.ino, "f", S_IFREG, 0, &root, &attr), -ENOENT);
    assert_int_equal(
        mfs_vfs_create_open(a.vfs, dir.ino, "f", 0644, O_RDWR | O_CREAT, &root, &attr, &f, &keep),
        -ENOENT);
}

/* The kernel asks for no rights of what it takes for new: for a file that another mount has made
 * meanwhile only the owner gets it so. */
static void found_when_created(void **state)
{
    static const struct mfs_cred other = {.uid = 1000, .gid = 1000};
    const int flags = O_RDWR | O_CREAT | O_TRUNC;
    struct mfs_attr attr;
    struct mfs_file *f;
    bool keep;

    (void)state;
    assert_int_equal(
        mfs_vfs_create_open(a.vfs, MFS_ROOT_INO, "f", 0600, flags, &root, &attr, &f, &keep), 0);
    assert_int_equal(mfs_vfs_write(f, "secret", 6, 0, flags, false), 6);
    close_file(f);
    assert_int_equal(
        mfs_vfs_create_open(b.vfs, MFS_ROOT_INO, "f", 0600, flags, &other, &attr, &f, &keep),
        -ESTALE);
    assert_int_equal(mfs_vfs_lookup(b.vfs, MFS_ROOT_INO, "f", &attr), 0);
    assert_int_equal(attr.size, 6);
    assert_int_equal(
        mfs_vfs_create_open(b.vfs, MFS_ROOT_INO, "f", 0600, flags, &root, &attr, &f, &keep), 0);
    assert_int_equal(attr.size, 0);
    close_file(f);
    assert_int_equal(mfs_vfs_unlink(b.vfs, MFS_ROOT_INO, "f"), 0);
    assert_true(gone_in_time(&b, attr.ino)); /* nobody has it open */
}

struct seen {
    unsigned count, stop_after;
    uint64_t cookie;
    char names[40][16];
};

static bool see(void *arg, const struct mfs_dirent *e, const struct mfs_attr *attr, uint64_t cookie)
{
    struct seen *s = arg;

    (void)attr;
    if (s->count == s->stop_after)
        return false;
    snprintf(s->names[s->count++], sizeof s->names[0], "%s", e->name);
    s->cookie = cookie;
    return true;
}

static void listed(void **state)
{
    struct seen all = {.stop_after = 40}, some = {.stop_after = 7};
    struct mfs_dirh *dir;
    struct mfs_attr attr;
    char name[16];

    (void)state;
    for (unsigned i = 0; i < 30; i++) {
        snprintf(name, sizeof name, "f%u", i);
        assert_int_equal(mfs_vfs_mknod(a.vfs, MFS_ROOT_INO, name, S_IFREG, 0, &root, &attr), 0);
    }
    assert_int_equal(mfs_vfs_opendir(b.vfs, MFS_ROOT_INO, O_RDONLY, &dir), 0);
    assert_int_equal(mfs_vfs_readdir(dir, 0, false, see, &some), 0);
    assert_int_equal(some.count, 7);
    assert_string_equal(some.names[0], ".");
    assert_int_equal(mfs_vfs_unlink(a.vfs, MFS_ROOT_INO, "f3"), 0);
    some.stop_after = 40; /* goes on where it stopped, in the same listing */
    assert_int_equal(mfs_vfs_readdir(dir, some.cookie, true, see, &some), 0);
    assert_int_equal(some.count, 32);
    assert_int_equal(mfs_vfs_readdir(dir, 0, true, see, &all), 0);
    assert_int_equal(all.count, 31);
    mfs_vfs_releasedir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(inherited, setup, teardown),
        cmocka_unit_test_setup_teardown(xattr_names, setup, teardown),
        cmocka_unit_test_setup_teardown(unlinked_while_open, setup, teardown),
        cmocka_unit_test_setup_teardown(gone_directory, setup, teardown),
        cmocka_unit_test_setup_teardown(found_when_created, setup, teardown),
        cmocka_unit_test_setup_teardown(listed, setup, teardown),
    };

    return cmocka_run_group_tests(tests, setup_all, vfs_redis_stop);
}
