/* What a new file inherits from a default ACL, against examples worked out by hand from POSIX.1e.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "vfs/names/acl.h"

enum { USER_OBJ = 0x01, USER = 0x02, GROUP_OBJ = 0x04, GROUP = 0x08, MASK = 0x10, OTHER = 0x20 };

struct entry {
    uint16_t tag, perm;
    uint32_t id;
};

struct acl {
    unsigned char bytes[4 + 8 * 8];
    size_t len;
};

static struct acl make(const struct entry *e, size_t n)
{
    struct acl a = {.len = 4 + 8 * n};

    mfs_put_le32(a.bytes, 2);
    for (size_t i = 0; i < n; i++) {
        mfs_put_le16(a.bytes + 4 + 8 * i, e[i].tag);
        mfs_put_le16(a.bytes + 6 + 8 * i, e[i].perm);
        mfs_put_le32(a.bytes + 8 + 8 * i, e[i].id);
    }
    return a;
}

static unsigned perm_at(const struct acl *a, size_t i)
{
    return mfs_get_le16(a->bytes + 6 + 8 * i);
}

static void minimal(void **state)
{
    const struct entry e[] = {{USER_OBJ, 7, 0}, {GROUP_OBJ, 5, 0}, {OTHER, 1, 0}};
    struct acl a = make(e, 3);
    mode_t mode = 0100666;
    bool needed = true;

    (void)state;
    assert_int_equal(mfs_acl_inherit(a.bytes, a.len, &mode, &needed), 0);
    assert_false(needed);
    assert_int_equal(mode, 0100640);
}

static void with_mask(void **state)
{
    const struct entry e[] = {
        {USER_OBJ, 7, 0}, {USER, 7, 1000}, {GROUP_OBJ, 5, 0}, {MASK, 7, 0}, {OTHER, 0, 0}};
    struct acl a = make(e, 5);
    mode_t mode = 0100664;
    bool needed = false;

    (void)state;
    assert_int_equal(mfs_acl_inherit(a.bytes, a.len, &mode, &needed), 0);
    assert_true(needed);
    assert_int_equal(mode, 0100660); /* the group's bits are the mask's */
    assert_int_equal(perm_at(&a, 0), 6);
    assert_int_equal(perm_at(&a, 1), 7); /* named ones stay, the mask bounds them */
    assert_int_equal(perm_at(&a, 2), 5);
    assert_int_equal(perm_at(&a, 3), 6);
    assert_int_equal(perm_at(&a, 4), 0);
}

static void other_bits_stay(void **state)
{
    const struct entry e[] = {{USER_OBJ, 0, 0}, {GROUP_OBJ, 0, 0}, {OTHER, 7, 0}};
    struct acl a = make(e, 3);
    mode_t mode = 0042777;
    bool needed;

    (void)state;
    assert_int_equal(mfs_acl_inherit(a.bytes, a.len, &mode, &needed), 0);
    assert_int_equal(mode, 0042007);
}

static void malformed(void **state)
{
    const struct entry e[] = {{USER_OBJ, 7, 0}, {GROUP_OBJ, 5, 0}, {OTHER, 1, 0}, {0x40, 1, 0}};
    struct acl a = make(e, 4);
    mode_t mode = 0644;
    bool needed;

    (void)state;
    assert_int_equal(mfs_acl_inherit(a.bytes, a.len, &mode, &needed), -EINVAL); /* unknown tag */
    assert_int_equal(mfs_acl_inherit(a.bytes, a.len - 16, &mode, &needed), -EINVAL); /* no other */
    assert_int_equal(mfs_acl_inherit(a.bytes, a.len - 9, &mode, &needed), -EINVAL);
    for (size_t n = 0; n < 4; n++)
        assert_int_equal(mfs_acl_inherit(a.bytes, n, &mode, &needed), -EINVAL);
    mfs_put_le32(a.bytes, 1);
    assert_int_equal(mfs_acl_inherit(a.bytes, a.len - 8, &mode, &needed), -EINVAL); /* version */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(minimal),
        cmocka_unit_test(with_mask),
        cmocka_unit_test(other_bits_stay),
        cmocka_unit_test(malformed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
