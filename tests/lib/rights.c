/* What a kernel checks and strips before a file system sees a call, and the library has to: modes,
 * set-group-ID, the values of ACLs and capabilities. */
#include <linux/capability.h>
#include <linux/posix_acl_xattr.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "lib_check.h"

#define ACCESS "system.posix_acl_access"

static struct memefs *fs, *user; /* of uid 1000, group 1000 */

static mode_t mode_of(const char *path)
{
    return fs_stat(path).st_mode;
}

/* What else the word holds is no mode: fsck, which the test ends with, would find it. */
static void test_modes(void)
{
    struct memefs_file *f;

    GOOD(memefs_mkdir(fs, "pub", 0777));
    GOOD(memefs_chmod(fs, "pub", 0777));
    GOOD(memefs_mknod(user, "pub/high", S_IFREG | 0644U | 0xABC10000U, 0));
    EQUAL(S_IFREG | 0644, mode_of("pub/high"));
    GOOD(memefs_mknod(user, "pub/none", 0x10000U | 0600U, 0));
    EQUAL(S_IFREG | 0600, mode_of("pub/none"));
    GOOD(memefs_mkdir(user, "pub/dir", 0xABC10000U | 0755U));
    EQUAL(S_IFDIR | 0755, mode_of("pub/dir"));
    GOOD(memefs_open(user, "pub/open", O_CREAT | O_WRONLY, 0xABC10000U | 0640U, &f));
    GOOD(memefs_close(f));
    EQUAL(S_IFREG | 0640, mode_of("pub/open"));
}

/* In a directory of a group, who is no member can't make programs that run as it. */
static void test_set_group_id(void)
{
    struct memefs_file *f, *at;
    struct stat st;

    GOOD(memefs_mkdir(fs, "group", 0777));
    GOOD(memefs_chown(fs, "group", 0, 50));
    GOOD(memefs_chmod(fs, "group", 02777));
    GOOD(memefs_open(user, "group/open", O_CREAT | O_RDWR, 02775, &f));
    GOOD(memefs_close(f));
    EQUAL(S_IFREG | 0755, mode_of("group/open"));
    EQUAL(50, fs_stat("group/open").st_gid);
    GOOD(memefs_mknod(user, "group/node", S_IFREG | 02775, 0));
    EQUAL(S_IFREG | 0755, mode_of("group/node"));
    GOOD(memefs_open(user, "group", O_TMPFILE | O_RDWR, 02775, &f));
    GOOD(memefs_fstat(f, &st));
    EQUAL(S_IFREG | 0755, st.st_mode);
    GOOD(memefs_close(f));
    GOOD(memefs_open(fs, "group", O_PATH | O_DIRECTORY, 0, &at));
    GOOD(memefs_openat(fs, at, "roots", O_CREAT | O_RDWR, 02775, &f));
    GOOD(memefs_close(f));
    GOOD(memefs_close(at));
    EQUAL(S_IFREG | 02755, mode_of("group/roots"));
}

struct acl {
    struct posix_acl_xattr_header head;
    struct posix_acl_xattr_entry entry[5];
};

/* user::rw-, user:1000:rwx, group::---, mask::mask, other::rwx */
static struct acl acl_of(unsigned mask)
{
    return (struct acl){{POSIX_ACL_XATTR_VERSION},
                        {{0x01, 6, UINT32_MAX},
                         {0x02, 7, 1000},
                         {0x04, 0, UINT32_MAX},
                         {0x10, (uint16_t)mask, UINT32_MAX},
                         {0x20, 7, UINT32_MAX}}};
}

static void test_acl_values(void)
{
    struct acl acl = acl_of(7);

    GOOD(memefs_mknod(fs, "pub/acl", S_IFREG | 0600, 0));
    GOOD(memefs_symlink(fs, "acl", "pub/link"));
    GOOD(memefs_setxattr(fs, "pub/acl", ACCESS, &acl, sizeof acl, 0));
    EQUAL(-EINVAL, memefs_setxattr(fs, "pub/acl", ACCESS, "abc", 3, 0));
    EQUAL(-EINVAL, memefs_setxattr(fs, "pub/acl", ACCESS, &acl, sizeof acl - 1, 0));
    EQUAL(sizeof acl, memefs_getxattr(fs, "pub/acl", ACCESS, NULL, 0));
    EQUAL(-EOPNOTSUPP, memefs_setxattrat(fs, NULL, "pub/link", ACCESS, &acl, sizeof acl, 0,
                                         AT_SYMLINK_NOFOLLOW));
    acl.head.a_version = 1;
    EQUAL(-EOPNOTSUPP, memefs_setxattr(fs, "pub/acl", ACCESS, &acl, sizeof acl, 0));
    /* With an empty mask the mode alone counts, here that of others. */
    acl = acl_of(0);
    GOOD(memefs_setxattr(fs, "pub/acl", ACCESS, &acl, sizeof acl, 0));
    EQUAL(0, memefs_access(user, "pub/acl", R_OK | W_OK));
    acl = acl_of(4);
    GOOD(memefs_setxattr(fs, "pub/acl", ACCESS, &acl, sizeof acl, 0));
    EQUAL(-EACCES, memefs_access(user, "pub/acl", R_OK | W_OK));
    GOOD(memefs_setxattr(fs, "pub/acl", ACCESS, &acl, 0, 0)); /* none any more */
    EQUAL(-ENODATA, memefs_getxattr(fs, "pub/acl", ACCESS, NULL, 0));
}

static void test_capabilities(void)
{
    const struct vfs_cap_data two = {.magic_etc = VFS_CAP_REVISION_2};
    const char *name = "security.capability";

    EQUAL(-EINVAL, memefs_setxattr(fs, "pub/acl", name, "garbage", 7, 0));
    EQUAL(-EINVAL, memefs_setxattr(fs, "pub/acl", name, &two, XATTR_CAPS_SZ_1, 0));
    EQUAL(-EPERM, memefs_setxattr(user, "pub/high", name, &two, XATTR_CAPS_SZ_2, 0));
    GOOD(memefs_setxattr(fs, "pub/acl", name, &two, XATTR_CAPS_SZ_2, 0));
    EQUAL(XATTR_CAPS_SZ_2, memefs_getxattr(fs, "pub/acl", name, NULL, 0));
}

static void test_whiteouts(void)
{
    struct stat st;

    GOOD(memefs_mknod(user, "pub/dir/white", S_IFCHR | 0600, 0));
    EQUAL(-EPERM, memefs_mknod(user, "pub/dir/null", S_IFCHR | 0600, makedev(1, 3)));
    EQUAL(-EPERM, memefs_mknod(user, "pub/dir/block", S_IFBLK | 0600, 0));
    GOOD(memefs_mknod(user, "pub/dir/from", S_IFREG | 0600, 0));
    GOOD(memefs_rename(user, "pub/dir/from", "pub/dir/to", RENAME_WHITEOUT));
    GOOD(memefs_lstat(user, "pub/dir/from", &st));
    CHECK(S_ISCHR(st.st_mode) && st.st_rdev == 0);
}

/* Of several reasons to refuse a call Linux tells the first in its order. */
static void test_order(void)
{
    GOOD(memefs_mkdir(fs, "closed", 0755));
    GOOD(memefs_mknod(fs, "closed/a", S_IFREG | 0600, 0));
    GOOD(memefs_link(fs, "closed/a", "closed/b"));
    GOOD(memefs_mkdir(fs, "closed/d", 0755));
    EQUAL(0, memefs_rename(user, "closed/a", "closed/a", 0));
    EQUAL(0, memefs_rename(user, "closed/a", "closed/b", 0));
    EQUAL(-EEXIST, memefs_rename(user, "closed/a", "closed/d", RENAME_NOREPLACE));
    EQUAL(-ENOTDIR, memefs_rename(user, "closed/a/", "closed/c", 0));
    EQUAL(-EINVAL, memefs_rename(user, "closed/d", "closed/d/x", 0));
    EQUAL(-EACCES, memefs_rename(user, "closed/a", "closed/c", 0));
    EQUAL(-EEXIST, memefs_link(user, "closed/a", "closed/d"));
    EQUAL(-EEXIST, memefs_link(user, "closed/a", "closed/."));
    EQUAL(-ENOENT, memefs_link(user, "closed/a", "none/c"));
    EQUAL(-EPERM, memefs_link(user, "closed/a", "pub/dir/c"));
    EQUAL(-EPERM, memefs_link(user, "closed/d", "pub/dir/c"));
}

static void test_options(void)
{
    struct memefs_options o = lib_options();
    struct memefs *none;

    o.threads = 257;
    EQUAL(-EINVAL, memefs_connect(&o, &none));
    CHECK(strstr(memefs_error(), "at most 256") != NULL);
    o.threads = UINT32_MAX;
    EQUAL(-EINVAL, memefs_connect(&o, &none));
    CHECK(none == NULL);
}

int main(int argc, char **argv)
{
    CHECK(argc > 1);
    OK(chdir(argv[1]));
    umask(022);
    fs = lib_connect();
    user = lib_connect_as(1000, 1000);
    test_modes();
    test_set_group_id();
    test_acl_values();
    test_capabilities();
    test_whiteouts();
    test_order();
    test_options();
    GOOD(memefs_disconnect(user));
    GOOD(memefs_disconnect(fs));
    return 0;
}
