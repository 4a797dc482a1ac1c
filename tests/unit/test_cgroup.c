/* Limits of control groups, of a made-up tree of both versions. ctest: single */
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

#include "host/cgroup.h"
#include "base/file.h"

static char root[64];

static void put(const char *dir, const char *file, const char *text)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof path, "%s%s", root, dir);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s%s/%s", root, dir, file);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
    (void)state;
    strcpy(root, "/tmp/memefs-cgroup-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return mfs_file_remove_tree(root);
}

/* "DIR LIMIT USED; …", the root left out. */
static void note(void *arg, const char *dir, uint64_t limit, uint64_t used)
{
    char *seen = arg;
    size_t len = strlen(seen);

    snprintf(seen + len, 512 - len, "%s %llu %llu; ", dir + strlen(root), (unsigned long long)limit,
             (unsigned long long)used);
}

static void expect(const char *text, const char *what)
{
    char seen[512] = "";

    assert_int_equal(mfs_cgroup_each(text, root, note, seen), 0);
    assert_string_equal(seen, what);
}

static void version_2(void **state)
{
    (void)state;
    put("/a", "memory.max", "3000000000\n");
    put("/a", "memory.current", "5000\n");
    put("/a", "memory.stat", "inactive_file 4000\nactive_file 995\n");
    put("/a/b", "memory.max", "max\n");
    put("/a/b/c", "memory.max", "1000000\n");
    expect("0::/a/b/c\n", "/a/b/c 1000000 0; /a 3000000000 5; ");
    expect("0::/a/b", "/a 3000000000 5; ");
    expect("0::/elsewhere/x\n", "");
    put("", "memory.max", "77\n"); /* a container's own group, seen as the root */
    expect("0::/\n", " 77 0; ");
    expect("0::/elsewhere/x\n", " 77 0; ");
    expect("0::/../x\n", " 77 0; ");
}

static void version_1(void **state)
{
    (void)state;
    put("/memory", "memory.limit_in_bytes", "9223372036854771712\n");
    put("/memory/d", "memory.limit_in_bytes", "4096\n");
    put("/memory/d", "memory.usage_in_bytes", "4000\n");
    put("/memory/d", "memory.stat",
        "cache 9\ninactive_file 3000\ntotal_inactive_file 700\ntotal_active_file 300\n");
    expect("12:cpu,cpuacct:/d\n11:memory:/d\n1:name=systemd:/d\n", "/memory/d 4096 3000; ");
    expect("3:hugetlb,memory:/d/gone\n", "/memory/d 4096 3000; ");
    expect("3:memoryless:/d\n", "");
}

static void count(void *arg, const char *dir, uint64_t limit, uint64_t used)
{
    (void)used;
    assert_true(dir[0] == '/' && limit > 0);
    ++*(int *)arg;
}

static void nonsense(void **state)
{
    char longest[5000] = "0::/";
    int n = 0;

    (void)state;
    expect("", "");
    expect("\n\n:\n::\nmemory\n1:memory\n", "");
    memset(longest + 4, 'x', sizeof longest - 5);
    assert_true(mfs_cgroup_each(longest, root, count, &n) < 0);
    assert_true(mfs_cgroup_of(0, count, &n) <= 0);
    assert_true(!n == (mfs_cgroup_left() == UINT64_MAX));
    assert_true(mfs_cgroup_of(INT32_MAX, count, &n) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(version_2, setup, teardown),
        cmocka_unit_test_setup_teardown(version_1, setup, teardown),
        cmocka_unit_test_setup_teardown(nonsense, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
