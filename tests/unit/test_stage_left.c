/* What a run of stage-in that was killed has left under a temporary name beside a copy that is
 * there is removed by the next one, whatever it is of. Any directory will do as a target. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "stage/impl.h"

struct seen {
    const char *dir;
    uint64_t id; /* of the call: in the name of its lock */
};

/* While the run goes on, which has found something that is not there. */
static void failed(void *arg, const char *path, int code, const char *why)
{
    struct seen *seen = arg;
    DIR *names = opendir(seen->dir);
    const struct dirent *e;

    (void)why;
    assert_int_equal(-ENOENT, code);
    assert_non_null(strstr(path, "vanished"));
    assert_non_null(names);
    while ((e = readdir(names)))
        if (strncmp(e->d_name, MFS_STAGE_TEMPORARY, strlen(MFS_STAGE_TEMPORARY)) == 0 &&
            strstr(e->d_name, ".lock"))
            seen->id = strtoull(e->d_name + strlen(MFS_STAGE_TEMPORARY), NULL, 16);
    closedir(names);
}

static void told(void *arg, const struct mfs_stage_counts *c)
{
    (void)arg;
    (void)c;
}

static struct mfs_stage_result run(struct seen *seen, const struct mfs_stage_list *list)
{
    atomic_bool stop = false;
    const struct mfs_stage_watch watch = {failed, told, seen};
    const struct mfs_stage_plan plan = {
        .list = list, .target = seen->dir, .threads = 4, .watch = &watch, .stop = &stop};
    struct mfs_stage_result result = {0};
    struct mfs_err err = {0};

    assert_int_equal(0, mfs_stage_run(&plan, &result, &err));
    assert_int_equal(1, result.counts.failed);
    return result;
}

static void make_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(0, fclose(f));
}

/* As mfs_stage_temporary has it for `name` in `dir`; with a file there. */
static void leave(uint64_t id, const char *dir, const char *name, char path[PATH_MAX])
{
    struct mfs_stage stage = {.id = id};
    const struct mfs_stage_dir d = {.stage = &stage};
    char temporary[MFS_STAGE_TEMPORARY_MAX];

    mfs_stage_temporary(&d, name, temporary);
    snprintf(path, PATH_MAX, "%s/%s", dir, temporary);
    make_file(path, "unfinished");
}

static void what_is_left_beside_a_copy_goes(void **state)
{
    char top[] = "/tmp/mfs.stage.XXXXXX", dst[64], in[80], path[4][PATH_MAX];
    struct seen seen = {.dir = dst};
    struct mfs_stage_list list = {0};
    struct mfs_stage_result result;

    (void)state;
    assert_non_null(mkdtemp(top));
    assert_int_equal(0, chdir(top));
    assert_int_equal(0, mkdir("src", 0755));
    make_file("src/file", "content");
    assert_int_equal(0, link("src/file", "src/other"));
    assert_int_equal(0, symlink("nowhere", "src/symbolic"));
    make_file("single", "content");
    snprintf(dst, sizeof dst, "%s/dst", top);
    snprintf(in, sizeof in, "%s/src", dst);
    assert_int_equal(0, mfs_stage_list_add(&list, "src", NULL));
    assert_int_equal(0, mfs_stage_list_add(&list, "single", NULL));
    assert_int_equal(0, mfs_stage_list_add(&list, "vanished", NULL));

    result = run(&seen, &list);
    assert_int_equal(2, result.counts.files);
    mfs_stage_result_fini(&result);
    assert_true(seen.id != 0);
    leave(seen.id, in, "file", path[0]);
    leave(seen.id, in, "other", path[1]);
    leave(seen.id, in, "symbolic", path[2]);
    leave(seen.id, dst, "single", path[3]);
    result = run(&seen, &list);
    assert_int_equal(0, result.counts.files);
    assert_int_equal(2, result.counts.skipped);
    mfs_stage_result_fini(&result);
    for (int i = 0; i < 4; i++)
        assert_int_equal(-1, access(path[i], F_OK));
    mfs_stage_list_fini(&list);

    assert_int_equal(0, chdir(dst));
    assert_int_equal(0, unlink("src/file"));
    assert_int_equal(0, unlink("src/other"));
    assert_int_equal(0, unlink("src/symbolic"));
    assert_int_equal(0, rmdir("src"));
    assert_int_equal(0, unlink("single"));
    assert_int_equal(0, chdir(top));
    assert_int_equal(0, rmdir("dst"));
    assert_int_equal(0, unlink("src/file"));
    assert_int_equal(0, unlink("src/other"));
    assert_int_equal(0, unlink("src/symbolic"));
    assert_int_equal(0, rmdir("src"));
    assert_int_equal(0, unlink("single"));
    assert_int_equal(0, chdir("/"));
    assert_int_equal(0, rmdir(top));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_left_beside_a_copy_goes)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
