/* A directory with many entries: every one is found, listed exactly once, and can be removed.
 * ctest: timeout=300
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

static void list_all(const char *path, long n)
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
        found++;
    }
    EQUAL(0, errno);
    EQUAL(n, found);
    OK(closedir(dir));
    free(seen);
}

static void stat_and_remove(long n)
{
    char name[32];

    for (long i = 0; i < n; i++) {
        snprintf(name, sizeof name, "entry-%ld", i);
        EQUAL(0, fs_stat(name).st_size);
        OK(unlink(name));
    }
}

int main(int argc, char **argv)
{
    long n = argc > 3 ? atol(argv[3]) : 20000;
    char here[2048], there[4200];

    fs_enter(argc, argv);
    CHECK(getcwd(here, sizeof here));
    create_all(n);
    list_all(".", n);
    if (argc > 2) {
        snprintf(there, sizeof there, "%s%s", argv[2], strrchr(here, '/'));
        list_all(there, n);
    }
    FAILS(ENOTEMPTY, rmdir(here));
    stat_and_remove(n);
    list_all(".", 0);
    fs_leave();
    return 0;
}
