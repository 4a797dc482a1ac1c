/* A directory with many entries: every one is found, listed exactly once, and can be removed. Their
 * inode numbers differ for programs that keep them in doubles, too: node-tar, which asks node.js
 * for them, takes files of the same number for links of one and writes another file's content. More
 * than 32 partitions, which 5 nodes have, are what it takes to show.
 * ctest: release timeout=300 nodes=5 memory=400M long=50
 *
 * The number of entries is argv[3], 20000 unless given. */
#include "fs_check.h"
#include <dirent.h>

static void create_all(long n)
{
    char name[32];

    for (long i = 0; i < n; i++) {
        int fd;

        snprintf(name, sizeof name, "entry-%ld", i);
        fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0644);
        OK(fd);
        OK(close(fd));
    }
}

/* Leaves the numbers in ino[n]. */
static void list_all(const char *path, long n, double *ino)
{
    unsigned char *seen = calloc(1, (size_t)n + 1);
    struct dirent *entry;
    DIR *dir = opendir(path);
    long found = 0, i;

    CHECK(seen && dir);
    while ((errno = 0, entry = readdir(dir))) {
        if (entry->d_name[0] == '.')
            continue;
        EQUAL(1, sscanf(entry->d_name, "entry-%ld", &i));
        CHECK(i >= 0 && i < n);
        if (seen[i]++)
            fs_fail(__FILE__, __LINE__, "%s is listed twice", entry->d_name);
        CHECK(entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN);
        ino[i] = (double)entry->d_ino;
        found++;
    }
    EQUAL(0, errno);
    EQUAL(n, found);
    OK(closedir(dir));
    free(seen);
}

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void expect_distinct(double *ino, long n)
{
    qsort(ino, (size_t)n, sizeof *ino, by_number);
    for (long i = 0; i < n; i++)
        if (i && ino[i] == ino[i - 1])
            fs_fail(__FILE__, __LINE__, "two files have number %.0f as a double", ino[i]);
}

static void stat_and_remove(long n, const double *ino)
{
    char name[32];

    for (long i = 0; i < n; i++) {
        snprintf(name, sizeof name, "entry-%ld", i);
        EQUAL(0, fs_stat(name).st_size);
        CHECK((double)fs_stat(name).st_ino == ino[i]);
        OK(unlink(name));
    }
}

int main(int argc, char **argv)
{
    long n = argc > 3 ? atol(argv[3]) : 20000;
    char here[2048], there[4200];
    double *ino = calloc((size_t)n, sizeof *ino), *other = calloc((size_t)n, sizeof *other);

    fs_enter(argc, argv);
    CHECK(ino && other && getcwd(here, sizeof here));
    create_all(n);
    list_all(".", n, ino);
    if (argc > 2) {
        snprintf(there, sizeof there, "%s%s", argv[2], strrchr(here, '/'));
        list_all(there, n, other);
        CHECK(!memcmp(ino, other, (size_t)n * sizeof *ino));
        expect_distinct(other, n);
    }
    FAILS(ENOTEMPTY, rmdir(here));
    stat_and_remove(n, ino);
    expect_distinct(ino, n);
    list_all(".", 0, ino);
    free(ino);
    free(other);
    fs_leave();
    return 0;
}
