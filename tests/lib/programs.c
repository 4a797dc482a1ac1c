/* Programs and how a deployment knows them: labels, and with `hold N LABEL` a program for
 * integration/library_programs.sh, with N connections, of which it ends all but one after the first
 * line of its input and goes on until there is no more. With `end MS` it has files open in which
 * something is not written back, waits for a line, and ends the connection, whose partitions are
 * given MS to answer. `lost N` gets N small files at once and says how many are lost. */
#include <stdio.h>
#include <time.h>

#include "lib_check.h"

static int refused(const char *label)
{
    struct memefs_options o = lib_options();
    struct memefs *fs;
    int rc;

    o.label = label;
    rc = memefs_connect(&o, &fs);
    GOOD(memefs_disconnect(fs));
    return rc;
}

static void test_labels(void)
{
    EQUAL(-EINVAL, refused("/tmp/prog"));
    CHECK(strstr(memefs_error(), "label") != NULL);
    EQUAL(-EINVAL, refused("two\nlines"));
    EQUAL(-EINVAL, refused("\033[31m"));
    EQUAL(0, refused("my program, 2"));
    EQUAL(0, refused(""));
}

static int hold(int n, const char *label)
{
    struct memefs_options o = lib_options();
    struct memefs **fs = calloc((size_t)n, sizeof *fs);
    char line[8];

    CHECK(fs != NULL && n > 0);
    o.label = label;
    for (int i = 0; i < n; i++)
        GOOD(memefs_connect(&o, &fs[i]));
    OK(puts("connected"));
    OK(fflush(stdout));
    CHECK(fgets(line, sizeof line, stdin) != NULL);
    for (int i = 1; i < n; i++)
        GOOD(memefs_disconnect(fs[i]));
    OK(puts("one left"));
    OK(fflush(stdout));
    while (fgets(line, sizeof line, stdin) != NULL)
        ;
    OK(puts("goes on"));
    free(fs);
    return 0;
}

#define OPEN 12 /* files, each with stripes in several partitions */

static time_t seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

static int end(uint32_t ms)
{
    struct memefs_options o = lib_options();
    struct memefs_file *f[OPEN];
    struct memefs *fs;
    char path[32], line[8];
    time_t began;
    int rc;

    o.io_ms = ms;
    GOOD(memefs_connect(&o, &fs));
    for (int i = 0; i < OPEN; i++) {
        snprintf(path, sizeof path, "/end%d", i);
        GOOD(memefs_open(fs, path, O_CREAT | O_WRONLY, 0644, &f[i]));
    }
    OK(puts("connected"));
    OK(fflush(stdout));
    CHECK(fgets(line, sizeof line, stdin) != NULL);
    for (int i = 0; i < OPEN; i++)
        for (off_t at = 0; at < 3; at++)
            memefs_pwrite(f[i], "not written back", 16, at << 20);
    began = seconds();
    rc = memefs_disconnect(fs);
    printf("ended %s after %lld s: %s\n", rc < 0 ? "incomplete" : "complete",
           (long long)(seconds() - began), memefs_error());
    return 0;
}

/* Of files "/small/1" to N full of 'x': all that is not as it was is an error. */
static int look_for_lost(int n)
{
    struct memefs_item *items = calloc((size_t)n, sizeof *items);
    char(*path)[32] = calloc((size_t)n, sizeof *path);
    struct memefs *fs = lib_connect();
    int lost = 0;

    CHECK(items != NULL && path != NULL);
    for (int i = 0; i < n; i++) {
        snprintf(path[i], sizeof path[i], "/small/%d", i + 1);
        items[i].path = path[i];
    }
    EQUAL(0, memefs_mget(fs, items, 0));
    CHECK(memefs_mget(fs, items, (size_t)n) >= 0);
    for (int i = 0; i < n; i++) {
        const char *buf = items[i].buf;

        lost += items[i].result == -EIO;
        if (items[i].result == -EIO)
            continue;
        CHECK(items[i].result == 3000);
        for (int k = 0; k < 3000; k++)
            CHECK(buf[k] == 'x');
        memefs_free(items[i].buf);
    }
    GOOD(memefs_disconnect(fs));
    printf("%d lost\n", lost);
    free(items);
    free(path);
    return 0;
}

int main(int argc, char **argv)
{
    CHECK(argc > 1);
    if (strcmp(argv[1], "end") == 0 && argc == 3)
        return end((uint32_t)atoi(argv[2]));
    if (strcmp(argv[1], "lost") == 0 && argc == 3)
        return look_for_lost(atoi(argv[2]));
    if (strcmp(argv[1], "hold") == 0 && argc == 4)
        return hold(atoi(argv[2]), argv[3]);
    test_labels();
    return 0;
}
