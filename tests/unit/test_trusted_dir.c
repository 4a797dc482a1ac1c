/* Directories that others have a hand in, and links that lead elsewhere, are refused; what an
 * operator may well give is not.
 * ctest: single */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/text.h"
#include "base/trusted_dir.h"

#define STRANGER 4711

static char top[64], real[PATH_MAX];
static struct mfs_err err;

static int setup(void **state)
{
    (void)state;
    strcpy(top, "/tmp/mfs-test-trusted-XXXXXX");
    return mkdtemp(top) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return mfs_file_remove_tree(top);
}

static const char *at(const char *name)
{
    static char path[4][PATH_MAX];
    static unsigned turn;
    char *p = path[turn++ % 4];

    assert_int_equal(mfs_text_format(p, PATH_MAX, "%s/%s", top, name), 0);
    return p;
}

static void make_dir(const char *name, mode_t mode)
{
    assert_int_equal(mkdir(at(name), 0700), 0);
    assert_int_equal(chmod(at(name), mode), 0);
}

static void make_file(const char *name)
{
    assert_int_equal(mfs_file_note(at(name), "x", 1, 0600), 0);
}

static void give_away(const char *name)
{
    if (geteuid())
        skip();
    assert_int_equal(lchown(at(name), STRANGER, STRANGER), 0);
}

static int try_flags(const char *name, unsigned flags)
{
    int fd;

    err = (struct mfs_err){0};
    fd = mfs_trusted_dir_open(at(name), flags, real, &err);
    if (fd >= 0)
        close(fd);
    else
        assert_true(err.code == fd && err.msg[0]);
    return fd < 0 ? fd : 0;
}

static int try(const char *name)
{
    return try_flags(name, 0);
}

static void test_a_directory_of_ours(void **state)
{
    char cwd[PATH_MAX];

    (void)state;
    make_dir("d", 0700);
    make_dir("d/e", 0755);
    assert_int_equal(try("d/e"), 0);
    assert_string_equal(real, at("d/e"));
    assert_int_equal(try("d//./e/../../d/e/"), 0);
    assert_string_equal(real, at("d/e"));
    assert_non_null(getcwd(cwd, sizeof cwd));
    assert_int_equal(chdir(at("d")), 0);
    assert_true(mfs_trusted_dir_open("e", 0, real, &err) >= 0);
    assert_string_equal(real, at("d/e"));
    assert_int_equal(chdir(cwd), 0);
}

static void test_what_is_not_there(void **state)
{
    struct stat st;

    (void)state;
    make_dir("d", 0700);
    assert_int_equal(symlink("d", at("l")), 0);
    assert_int_equal(try("l/a/b"), -ENOENT);
    assert_string_equal(real, at("d/a/b"));
    make_file("d/f");
    assert_int_equal(try("d/f"), -ENOTDIR);
    assert_int_equal(mfs_trusted_dir_open("", MFS_TRUSTED_MAKE, real, &err), -ENOENT);
    assert_int_equal(try_flags("l/a/b", MFS_TRUSTED_MAKE), 0);
    assert_string_equal(real, at("d/a/b"));
    assert_int_equal(stat(real, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(stat(at("d/a"), &st), 0);
    assert_int_equal(st.st_mode & 022, 0);
}

static void test_others_may_write(void **state)
{
    (void)state;
    make_dir("group", 0770);
    make_dir("group/d", 0700);
    make_dir("all", 0707);
    make_dir("sticky", 01777);
    make_dir("sticky/d", 0700);
    assert_int_equal(try("group"), -EPERM);
    assert_non_null(strstr(err.msg, at("group")));
    assert_int_equal(try("group/d"), -EPERM);
    assert_int_equal(try("all"), -EPERM);
    assert_int_equal(try("sticky"), -EPERM);
    assert_int_equal(try_flags("sticky", MFS_TRUSTED_SHARED), 0);
    assert_int_equal(try("sticky/d"), 0);
}

static void test_others_own_it(void **state)
{
    (void)state;
    make_dir("d", 0755);
    make_dir("d/e", 0700);
    give_away("d");
    assert_int_equal(try("d"), -EPERM);
    assert_non_null(strstr(err.msg, "belongs to user 4711"));
    assert_int_equal(try("d/e"), -EPERM);
    assert_int_equal(try_flags("d/new", MFS_TRUSTED_MAKE), -EPERM);
    assert_int_equal(try("d/e/../.."), -EPERM);
}

static void test_links(void **state)
{
    (void)state;
    make_dir("d", 0700);
    assert_int_equal(symlink(at("d"), at("absolute")), 0);
    assert_int_equal(symlink("../d", at("d/relative")), 0);
    assert_int_equal(symlink("absolute/relative", at("twice")), 0);
    assert_int_equal(symlink("loop", at("loop")), 0);
    assert_int_equal(try("twice"), 0);
    assert_string_equal(real, at("d"));
    assert_int_equal(try("loop"), -ELOOP);
    /* One that anybody may have put there. */
    assert_int_equal(linkat(AT_FDCWD, at("absolute"), AT_FDCWD, at("second"), 0), 0);
    assert_int_equal(try("second"), -EPERM);
    assert_int_equal(unlink(at("second")), 0);
    give_away("absolute");
    assert_int_equal(try("twice"), -EPERM);
    assert_non_null(strstr(err.msg, "symbolic link"));
}

static void test_nothing_below_follows_links(void **state)
{
    int dir;

    (void)state;
    make_dir("d", 0700);
    make_dir("d/sub", 0700);
    make_file("d/sub/f");
    make_file("outside");
    assert_int_equal(symlink("sub", at("d/link")), 0);
    assert_int_equal(symlink(at("outside"), at("d/out")), 0);
    dir = mfs_trusted_dir_open(at("d"), 0, NULL, &err);
    assert_true(dir >= 0);
    assert_true(mfs_trusted_open(dir, "sub/f", O_RDONLY, 0) >= 0);
    assert_int_equal(mfs_trusted_open(dir, "link/f", O_RDONLY, 0), -ELOOP);
    assert_int_equal(mfs_trusted_open(dir, "out", O_WRONLY | O_CREAT, 0600), -ELOOP);
    assert_int_equal(mfs_trusted_open(dir, "../outside", O_RDONLY, 0), -EXDEV);
    assert_int_equal(mfs_trusted_open(dir, at("outside"), O_RDONLY, 0), -EXDEV);
    close(dir);
}

static int read_it(const char *name)
{
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    rc = mfs_trusted_read(at(name), 10, &b);
    assert_true(rc || mfs_buf_len(&b) == 1);
    mfs_buf_fini(&b);
    return rc;
}

static void test_files(void **state)
{
    (void)state;
    make_file("f");
    assert_int_equal(read_it("f"), 0);
    assert_int_equal(read_it("g"), -ENOENT);
    assert_int_equal(chmod(at("f"), 0644), 0);
    assert_int_equal(read_it("f"), 0);
    assert_int_equal(chmod(at("f"), 0660), 0);
    assert_int_equal(read_it("f"), -EPERM);
    assert_int_equal(chmod(at("f"), 0600), 0);
    assert_int_equal(symlink("f", at("l")), 0);
    assert_int_equal(read_it("l"), -ELOOP);
    assert_int_equal(mkfifo(at("p"), 0600), 0);
    assert_int_equal(read_it("p"), -EPERM); /* and does not wait for a writer */
    give_away("f");
    assert_int_equal(read_it("f"), -EPERM);
}

static void test_removing(void **state)
{
    (void)state;
    make_dir("victim", 0700);
    make_dir("victim/node-0", 0700);
    make_dir("d", 0700);
    make_dir("d/node-0", 0700);
    make_file("d/node-0/f");
    make_dir("d/node-1", 0755);
    assert_int_equal(symlink("../victim", at("d/node-2")), 0);
    assert_int_equal(symlink("victim", at("memefs-x")), 0);
    assert_int_equal(mfs_trusted_dir_remove(at("memefs-x/node-0")), -ELOOP);
    assert_int_equal(mfs_trusted_dir_remove(at("d/node-1")), -EPERM);
    assert_int_equal(mfs_trusted_dir_remove(at("d/node-2")), -ELOOP);
    assert_int_equal(access(at("victim/node-0"), F_OK), 0);
    assert_int_equal(mfs_trusted_dir_remove(at("d/node-0")), 0);
    assert_int_equal(access(at("d/node-0"), F_OK), -1);
    assert_int_equal(mfs_trusted_dir_remove(at("d/node-0")), 0);
    assert_int_equal(mfs_trusted_dir_remove(at("e/node-0")), 0);
    assert_int_equal(mfs_trusted_dir_remove("d/node-1"), -EINVAL);
    give_away("victim/node-0");
    assert_int_equal(mfs_trusted_dir_remove(at("victim/node-0")), -EPERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_directory_of_ours, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_not_there, setup, teardown),
        cmocka_unit_test_setup_teardown(test_others_may_write, setup, teardown),
        cmocka_unit_test_setup_teardown(test_others_own_it, setup, teardown),
        cmocka_unit_test_setup_teardown(test_links, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_below_follows_links, setup, teardown),
        cmocka_unit_test_setup_teardown(test_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_removing, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
