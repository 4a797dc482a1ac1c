/* Path walks of a client without a kernel: what they find, which rights they ask for, where they
 * end. ctest: timeout=120 */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "client/path.h"
#include "vfs/names/access.h"
#include "vfs_test.h"

static const struct mfs_ids superuser = {0}, user = {.uid = 5, .gid = 5},
                            other = {.uid = 6, .gid = 6};

static uint64_t make(uint64_t parent, const char *name, mode_t mode, uid_t uid)
{
    struct mfs_cred cred = {.uid = uid, .gid = uid, .in_group = true};
    struct mfs_attr attr;

    assert_int_equal(mfs_vfs_mknod(a.vfs, parent, name, mode, 0, &cred, &attr), 0);
    return attr.ino;
}

static void link_to(uint64_t parent, const char *name, const char *target)
{
    struct mfs_attr attr;

    assert_int_equal(mfs_vfs_symlink(a.vfs, target, parent, name, &root, &attr), 0);
}

/* The other client walks. */
static void walk_from(uint64_t from, const char *path, const struct mfs_ids *ids, int want,
                      uint64_t ino)
{
    struct mfs_attr attr;
    int rc = mfs_path_lookup(b.vfs, ids, from, path, true, &attr);

    if (rc != want || (rc == 0 && attr.ino != ino))
        fail_msg("%.40s: %d, not %d", path, rc, want);
}

static void walk(const char *path, int want, uint64_t ino)
{
    walk_from(MFS_ROOT_INO, path, &superuser, want, ino);
}

static void names(void **state)
{
    uint64_t d = make(MFS_ROOT_INO, "d", S_IFDIR | 0755, 0), e = make(d, "e", S_IFDIR | 0755, 0),
             f = make(e, "f", S_IFREG | 0644, 0);
    char text[PATH_MAX + 1];

    (void)state;
    walk("d/e/f", 0, f);
    walk("//d///e/./f", 0, f);
    walk("/", 0, MFS_ROOT_INO);
    walk("..", 0, MFS_ROOT_INO);
    walk("d/e/../..", 0, MFS_ROOT_INO);
    walk("d/e/", 0, e);
    walk_from(d, "e/f", &superuser, 0, f);
    walk_from(e, "/d", &superuser, 0, d);
    walk_from(e, "..", &superuser, 0, d);
    walk("", -ENOENT, 0);
    walk("d/none", -ENOENT, 0);
    walk("d/none/f", -ENOENT, 0);
    walk("d/e/f/", -ENOTDIR, 0);
    walk("d/e/f/g", -ENOTDIR, 0);
    walk("d/e/f/..", -ENOTDIR, 0);
    memset(text, 'n', sizeof text);
    text[NAME_MAX + 1] = '\0';
    walk(text, -ENAMETOOLONG, 0);
    text[NAME_MAX] = '\0';
    walk(text, -ENOENT, 0);
    for (size_t i = 0; i < PATH_MAX; i++)
        text[i] = i % 2 ? '/' : '.';
    text[PATH_MAX] = '\0';
    walk(text, -ENAMETOOLONG, 0);
    text[PATH_MAX - 1] = '\0';
    walk(text, 0, MFS_ROOT_INO);
}

static void links(void **state)
{
    uint64_t d = make(MFS_ROOT_INO, "d", S_IFDIR | 0755, 0), f = make(d, "f", S_IFREG | 0644, 0);
    struct mfs_attr attr;

    (void)state;
    link_to(MFS_ROOT_INO, "to-d", "d");
    link_to(MFS_ROOT_INO, "to-to-d", "./to-d");
    link_to(d, "absolute", "/to-to-d/f");
    link_to(d, "up", "../d/absolute");
    link_to(d, "dangling", "none");
    link_to(d, "loop", "loop");
    walk("to-to-d/f", 0, f);
    walk("d/absolute", 0, f);
    walk("to-d/up", 0, f);
    walk("to-d/", 0, d);
    walk("d/up/", -ENOTDIR, 0);
    walk("d/dangling", -ENOENT, 0);
    walk("d/loop", -ELOOP, 0);
    assert_int_equal(mfs_path_lookup(b.vfs, &superuser, d, "loop", false, &attr), 0);
    assert_true(S_ISLNK(attr.mode));
    assert_int_equal(mfs_path_lookup(b.vfs, &superuser, MFS_ROOT_INO, "to-d/", false, &attr), 0);
    assert_int_equal(attr.ino, d);
}

static void many_links(void **state)
{
    uint64_t f = make(MFS_ROOT_INO, "0", S_IFREG | 0644, 0);
    char name[16], target[16];

    (void)state;
    for (unsigned i = 1; i <= MFS_PATH_LINKS_MAX + 1; i++) {
        snprintf(name, sizeof name, "%u", i);
        snprintf(target, sizeof target, "%u", i - 1);
        link_to(MFS_ROOT_INO, name, target);
    }
    snprintf(name, sizeof name, "%u", MFS_PATH_LINKS_MAX);
    walk(name, 0, f);
    snprintf(name, sizeof name, "%u", MFS_PATH_LINKS_MAX + 1);
    walk(name, -ELOOP, 0);
}

static void search_permission(void **state)
{
    uint64_t d = make(MFS_ROOT_INO, "d", S_IFDIR | 0700, 5), f = make(d, "f", S_IFREG | 0, 5);

    (void)state;
    walk_from(MFS_ROOT_INO, "d/f", &user, 0, f);
    walk_from(MFS_ROOT_INO, "d/f", &superuser, 0, f);
    walk_from(MFS_ROOT_INO, "d", &other, 0, d);
    walk_from(MFS_ROOT_INO, "d/f", &other, -EACCES, 0);
    walk_from(MFS_ROOT_INO, "d/none", &other, -EACCES, 0);
    walk_from(MFS_ROOT_INO, "d/..", &other, -EACCES, 0);
    walk_from(d, "f", &other, -EACCES, 0);
}

/* user::rw- user:7:rw- group::r-- group:8:--x mask::r-x other::-w- */
static size_t make_acl(unsigned char *acl)
{
    static const struct {
        uint16_t tag, perm;
        uint32_t id;
    } entries[] = {{1, 6, UINT32_MAX}, {2, 6, 7},           {4, 4, UINT32_MAX},
                   {8, 1, 8},          {16, 5, UINT32_MAX}, {32, 2, UINT32_MAX}};
    size_t n = 4;

    mfs_put_le32(acl, 2);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++, n += 8) {
        mfs_put_le16(acl + n, entries[i].tag);
        mfs_put_le16(acl + n + 2, entries[i].perm);
        mfs_put_le32(acl + n + 4, entries[i].id);
    }
    return n;
}

static void rights(void **state)
{
    const gid_t both[] = {8, 5};
    static const struct {
        uid_t uid;
        gid_t gid;
        bool both;
        unsigned want;
        int rc;
    } cases[] = {{5, 9, false, R_OK | W_OK, 0}, {5, 8, true, X_OK, -EACCES},
                 {7, 9, false, R_OK, 0},        {7, 9, false, W_OK, -EACCES},
                 {6, 5, false, R_OK, 0},        {6, 5, false, X_OK, -EACCES},
                 {6, 8, false, X_OK, 0},        {6, 9, true, X_OK, 0},
                 {6, 9, true, R_OK, 0},         {6, 9, true, R_OK | X_OK, -EACCES},
                 {6, 9, false, W_OK, 0},        {6, 9, false, R_OK, -EACCES},
                 {6, 9, true, W_OK, -EACCES},   {0, 0, false, R_OK | W_OK | X_OK, 0}};
    uint64_t f = make(MFS_ROOT_INO, "f", S_IFREG | 0640, 5);
    unsigned char acl[64];
    size_t n = make_acl(acl);
    struct mfs_attr attr;

    (void)state;
    assert_int_equal(mfs_vfs_setxattr(a.vfs, f, MFS_ACL_ACCESS, acl, n, 0, &root), 0);
    assert_int_equal(mfs_vfs_getattr(b.vfs, f, &attr), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mfs_ids ids = {.uid = cases[i].uid,
                              .gid = cases[i].gid,
                              .groups = both,
                              .ngroups = cases[i].both ? 2 : 0};
        int rc = mfs_vfs_access(b.vfs, &attr, &ids, cases[i].want);

        if (rc != cases[i].rc)
            fail_msg("case %zu: %d", i, rc);
    }
    attr.flags = 0;
    attr.mode = S_IFREG | 0640;
    assert_int_equal(mfs_vfs_access(b.vfs, &attr, &superuser, X_OK), -EACCES);
    assert_int_equal(mfs_vfs_access(b.vfs, &attr, &user, R_OK | W_OK), 0);
    assert_int_equal(mfs_vfs_access(b.vfs, &attr, &other, R_OK), -EACCES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(names, setup, teardown),
        cmocka_unit_test_setup_teardown(links, setup, teardown),
        cmocka_unit_test_setup_teardown(many_links, setup, teardown),
        cmocka_unit_test_setup_teardown(search_permission, setup, teardown),
        cmocka_unit_test_setup_teardown(rights, setup, teardown),
    };

    return cmocka_run_group_tests(tests, setup_all, vfs_redis_stop);
}
