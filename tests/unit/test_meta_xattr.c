/* Extended attributes, and access lists as they are inherited. ctest: timeout=120 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "meta_test.h"

static void put_acl(char *p, unsigned tag, unsigned perm, uint32_t id)
{
    p[0] = (char)tag;
    p[1] = 0;
    p[2] = (char)perm;
    p[3] = 0;
    mfs_put_le32(p + 4, id);
}

static void test_xattr(void **state)
{
    uint64_t f = new_file(ROOT, "f");
    char buf[64];

    (void)state;
    assert_int_equal(mfs_meta_getxattr(a.meta, f, "user.a", buf, sizeof buf), -ENODATA);
    assert_int_equal(mfs_meta_getxattr(a.meta, f + 77, "user.a", buf, sizeof buf), -ESTALE);
    assert_int_equal(mfs_meta_listxattr(a.meta, f, buf, sizeof buf), 0);
    assert_int_equal(mfs_meta_setxattr(a.meta, f, "user.a", "1", 1, XATTR_REPLACE, false, NULL),
                     -ENODATA);
    assert_int_equal(mfs_meta_setxattr(a.meta, f, "user.a", "one", 3, XATTR_CREATE, false, NULL),
                     0);
    assert_int_equal(mfs_meta_setxattr(a.meta, f, "user.a", "1", 1, XATTR_CREATE, false, NULL),
                     -EEXIST);
    assert_int_equal(mfs_meta_setxattr(a.meta, f, "user.e", "", 0, 0, false, NULL), 0);
    assert_int_equal(getattr(&b, f).flags & MFS_ATTR_XATTR, MFS_ATTR_XATTR);
    assert_int_equal(mfs_meta_getxattr(b.meta, f, "user.a", NULL, 0), 3);
    assert_int_equal(mfs_meta_getxattr(b.meta, f, "user.a", buf, 2), -ERANGE);
    assert_int_equal(mfs_meta_getxattr(b.meta, f, "user.a", buf, sizeof buf), 3);
    assert_memory_equal(buf, "one", 3);
    assert_int_equal(mfs_meta_getxattr(b.meta, f, "user.e", buf, sizeof buf), 0);
    assert_int_equal(mfs_meta_listxattr(b.meta, f, NULL, 0), 14);
    assert_int_equal(mfs_meta_listxattr(b.meta, f, buf, 13), -ERANGE);
    assert_int_equal(mfs_meta_listxattr(b.meta, f, buf, sizeof buf), 14);
    assert_int_equal(mfs_meta_removexattr(b.meta, f, "user.a", NULL), 0);
    assert_int_equal(mfs_meta_removexattr(b.meta, f, "user.a", NULL), -ENODATA);
    assert_int_equal(mfs_meta_removexattr(b.meta, f, "user.e", NULL), 0);
    assert_int_equal(getattr(&b, f).flags & MFS_ATTR_XATTR, 0);
}

static void test_acl(void **state)
{
    uint64_t f = new_file(ROOT, "f");
    const char *name = "system.posix_acl_access";
    struct mfs_attr attr = {.mode = 0};
    char acl[44] = {2}, buf[64];

    (void)state;
    put_acl(acl + 4, 1, 7, UINT32_MAX);   /* u::rwx */
    put_acl(acl + 12, 2, 6, 1000);        /* u:1000:rw- */
    put_acl(acl + 20, 4, 5, UINT32_MAX);  /* g::r-x */
    put_acl(acl + 28, 16, 4, UINT32_MAX); /* m::r-- */
    put_acl(acl + 36, 32, 1, UINT32_MAX); /* o::--x */
    assert_int_equal(mfs_meta_setxattr(a.meta, f, name, acl, 44, 0, false, NULL), 0);
    attr = getattr(&b, f);
    assert_int_equal(attr.mode, S_IFREG | 0741);
    assert_true(attr.flags & MFS_ATTR_ACL);
    attr.mode = S_IFREG | 0620;
    assert_int_equal(mfs_meta_setattr(b.meta, f, MFS_SET_MODE, &attr, NULL), 0);
    assert_int_equal(mfs_meta_getxattr(b.meta, f, name, buf, sizeof buf), 44);
    assert_int_equal(buf[4 + 2], 6);
    assert_int_equal(buf[12 + 2], 6);
    assert_int_equal(buf[20 + 2], 5); /* the mask took the group's bits */
    assert_int_equal(buf[28 + 2], 2);
    assert_int_equal(buf[36 + 2], 0);

    put_acl(acl + 12, 4, 5, UINT32_MAX); /* no more than a mode */
    put_acl(acl + 20, 32, 1, UINT32_MAX);
    assert_int_equal(mfs_meta_setxattr(a.meta, f, name, acl, 28, 0, false, NULL), 0);
    attr = getattr(&b, f);
    assert_int_equal(attr.mode, S_IFREG | 0751);
    assert_false(attr.flags & (MFS_ATTR_ACL | MFS_ATTR_XATTR));
    assert_int_equal(mfs_meta_getxattr(b.meta, f, name, buf, sizeof buf), -ENODATA);
    assert_int_equal(mfs_meta_setxattr(a.meta, f, name, acl, 20, 0, false, NULL), -EINVAL);
    assert_int_equal(
        mfs_meta_setxattr(a.meta, f, "system.posix_acl_default", acl, 28, 0, false, NULL), -EACCES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        TEST(test_xattr),
        TEST(test_acl),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
