/* Small writes of several processes into one file, as logs and the ranks of a parallel program make
 * them; opened once, and closed at the end.
 *
 *   small_writes append|sequential|shared FILE BYTES COUNT PROCESSES
 *
 * append: O_APPEND. sequential: behind each other, each process into FILE.n. shared: all into
 * FILE, record by record in turn. COUNT is of each process. Prints writes per second, the opens and
 * closes included. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

struct work {
    const char *how, *file;
    size_t bytes;
    unsigned count, processes;
};

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "small_writes: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int open_own(const struct work *w, unsigned process)
{
    int flags = O_WRONLY | O_CREAT | (strcmp(w->how, "append") == 0 ? O_APPEND : 0);
    char path[4096];

    if (strcmp(w->how, "sequential") == 0)
        snprintf(path, sizeof path, "%s.%u", w->file, process);
    else
        snprintf(path, sizeof path, "%s", w->file);
    return open(path, flags, 0644);
}

static void write_all(const struct work *w, unsigned process)
{
    bool shared = strcmp(w->how, "shared") == 0;
    char *record = malloc(w->bytes);
    int fd = open_own(w, process);

    check(record && fd >= 0, "open");
    memset(record, 'a' + (int)(process % 26), w->bytes);
    for (unsigned i = 0; i < w->count; i++) {
        off_t at = (off_t)(((size_t)i * w->processes + process) * w->bytes);
        ssize_t n = shared ? pwrite(fd, record, w->bytes, at) : write(fd, record, w->bytes);

        check(n == (ssize_t)w->bytes, "write");
    }
    check(close(fd) == 0, "close");
    free(record);
}

/* 0: all processes have succeeded. */
static int run(const struct work *w)
{
    int failed = 0, status;

    for (unsigned i = 0; i < w->processes; i++) {
        pid_t pid = fork();

        check(pid >= 0, "fork");
        if (pid == 0) {
            write_all(w, i);
            _exit(0);
        }
    }
    while (wait(&status) > 0)
        failed |= status != 0;
    return failed;
}

int main(int argc, char **argv)
{
    struct work w;
    int64_t since;

    if (argc != 6) {
        fprintf(stderr,
                "usage: small_writes append|sequential|shared FILE BYTES COUNT PROCESSES\n");
        return 2;
    }
    w = (struct work){argv[1], argv[2], strtoul(argv[3], NULL, 10),
                      (unsigned)strtoul(argv[4], NULL, 10), (unsigned)strtoul(argv[5], NULL, 10)};
    since = mfs_clock_mono();
    if (run(&w))
        return 1;
    printf("%.0f\n", (double)w.count * w.processes * MFS_SEC / (double)(mfs_clock_mono() - since));
    return 0;
}
