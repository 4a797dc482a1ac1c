/* Programs and how a deployment knows them: labels, and with `hold N LABEL` a program for
 * integration/library_programs.sh, with N connections, of which it ends all but one after the first
 * line of its input and goes on until there is no more. */
#include <stdio.h>

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

int main(int argc, char **argv)
{
    CHECK(argc > 1);
    if (strcmp(argv[1], "hold") == 0 && argc == 4)
        return hold(atoi(argv[2]), argv[3]);
    test_labels();
    return 0;
}
