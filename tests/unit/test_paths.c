/* Where a deployment's state is, when nothing was said, for another user than root. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "args/paths.h"
#include "base/file.h"

#define USER 64321 /* nobody has that */

static char runtime[64], name[32];

static void choose(char dir[PATH_MAX])
{
    static const struct mfs_conf_option *const groups[] = {mfs_deployment_options, NULL};
    struct mfs_conf *conf = mfs_conf_create(groups);
    struct mfs_paths p;
    struct mfs_err err;

    assert_int_equal(mfs_conf_set(conf, "name", name, MFS_CONF_ARGV, &err), 0);
    assert_int_equal(mfs_paths_init(&p, conf, &err), 0);
    snprintf(dir, PATH_MAX, "%s", p.dir);
    mfs_conf_destroy(conf);
}

static int setup(void **state)
{
    (void)state;
    if (geteuid())
        return 0; /* the tests say so */
    snprintf(runtime, sizeof runtime, "/tmp/memefs-unit-XXXXXX");
    if (!mkdtemp(runtime) || chown(runtime, USER, USER))
        return -1;
    snprintf(name, sizeof name, "unit%d", (int)getpid());
    return seteuid(USER);
}

static int teardown(void **state)
{
    (void)state;
    return seteuid(0) || mfs_file_remove_tree(runtime);
}

static void the_runtime_directory_comes_first(void **state)
{
    char dir[PATH_MAX], want[PATH_MAX];

    (void)state;
    if (geteuid() != USER)
        skip();
    setenv("XDG_RUNTIME_DIR", runtime, 1);
    choose(dir);
    snprintf(want, sizeof want, "%s/memefs/%s", runtime, name);
    assert_string_equal(dir, want);
}

static void without_one_there_is_shared_memory(void **state)
{
    char dir[PATH_MAX], want[PATH_MAX];

    (void)state;
    if (geteuid() != USER)
        skip();
    unsetenv("XDG_RUNTIME_DIR");
    choose(dir);
    snprintf(want, sizeof want, "/dev/shm/memefs-%d/%s", USER, name);
    assert_string_equal(dir, want);
    setenv("XDG_RUNTIME_DIR", "/root", 1); /* another user's */
    choose(dir);
    assert_string_equal(dir, want);
}

/* What makes a deployment's directory in `base`. */
static void put_one(const char *base, char there[PATH_MAX])
{
    char secret[PATH_MAX + 8];

    snprintf(there, PATH_MAX, "%.64s/%s", base, name);
    snprintf(secret, sizeof secret, "%s/secret", there);
    assert_int_equal(mkdir(base, 0700), 0);
    assert_int_equal(mkdir(there, 0700), 0);
    assert_int_equal(mfs_file_write(secret, "x", 1, 0600), 0);
}

static int count(void *arg, struct mfs_paths *p)
{
    *(int *)arg += !strcmp(p->name, name);
    return 0;
}

/* Whatever the environment is now: of two, the one that a program without it finds, too. */
static void what_is_there_is_found(void **state)
{
    char dir[PATH_MAX], base[PATH_MAX], there[PATH_MAX], other[PATH_MAX];
    int n = 0;

    (void)state;
    if (geteuid() != USER)
        skip();
    snprintf(base, sizeof base, "%s/memefs", runtime);
    put_one(base, other);
    setenv("XDG_RUNTIME_DIR", runtime, 1);
    choose(dir);
    assert_string_equal(dir, other);
    snprintf(base, sizeof base, "/dev/shm/memefs-%d", USER);
    put_one(base, there);
    choose(dir);
    assert_int_equal(mfs_paths_each(count, &n), 0);
    mfs_file_remove_tree(base);
    assert_string_equal(dir, there);
    assert_int_equal(n, 2);
}

static void a_slash_at_the_end_is_no_part_of_it(void **state)
{
    char dir[PATH_MAX], want[PATH_MAX], with[80];

    (void)state;
    if (geteuid() != USER)
        skip();
    snprintf(with, sizeof with, "%s//", runtime);
    setenv("XDG_RUNTIME_DIR", with, 1);
    choose(dir);
    snprintf(want, sizeof want, "%s/memefs/%s", runtime, name);
    assert_string_equal(dir, want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_runtime_directory_comes_first, setup, teardown),
        cmocka_unit_test_setup_teardown(without_one_there_is_shared_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_there_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(a_slash_at_the_end_is_no_part_of_it, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
