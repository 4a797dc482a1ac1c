/* What many byte-range locks and many descriptors of one file cost:
 *
 *   lock_bench DIR [RANGES] [HELD] [DESCRIPTORS] [OTHERS-DIR]
 *
 * One owner sets RANGES (4000) ranges of a byte each and unlocks every second one; one owner who
 * holds HELD (2700) ranges goes on to change them while another process, in OTHERS-DIR (another
 * mount, say), locks and unlocks a byte far away; DESCRIPTORS (19000) of one file are closed, at
 * first without locks, then with a lock of each. One line per figure. Knows nothing of MemEFS: any
 * file system will do. A figure of 0 leaves its part out. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SAMPLES 2000
#define FAR     1000000000

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static _Noreturn void fail(const char *what)
{
    perror(what);
    exit(1);
}

static int open_in(const char *dir, const char *name)
{
    char path[4096];
    int fd;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    fd = open(path, O_RDWR | O_CREAT, 0644);
    if (fd < 0)
        fail(path);
    return fd;
}

static void lock(int fd, short type, off_t at, off_t n)
{
    struct flock fl = {.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = n};

    if (fcntl(fd, F_OFD_SETLK, &fl))
        fail("lock");
}

static void ranges(const char *dir, int n)
{
    int fd = open_in(dir, "ranges");
    double began = now(), half;

    for (int i = 0; i < n; i++)
        lock(fd, F_WRLCK, 2 * i, 1);
    half = now();
    printf("set %d ranges: %.2f s\n", n, half - began);
    for (int i = 0; i < n; i += 2)
        lock(fd, F_UNLCK, 2 * i, 1);
    printf("unlock half of them: %.2f s\n", now() - half);
    close(fd);
}

static pid_t start_holder(const char *dir, int n)
{
    int fd = open_in(dir, "held"), ready[2];
    pid_t pid;
    char c;

    if (pipe(ready) || (pid = fork()) < 0)
        fail("fork");
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0; i < n; i++)
            lock(fd, F_WRLCK, 2 * i, 1);
        if (write(ready[1], "", 1) != 1)
            fail("pipe");
        for (int i = 0;; i = (i + 1) % (n ? n : 1)) {
            lock(fd, F_UNLCK, 2 * i, 1);
            lock(fd, F_WRLCK, 2 * i, 1);
        }
    }
    close(fd);
    close(ready[1]);
    if (read(ready[0], &c, 1) != 1)
        fail("holder");
    close(ready[0]);
    return pid;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void others(const char *dir, const char *others_dir, int held)
{
    static double took[SAMPLES];
    pid_t holder = start_holder(dir, held);
    int fd = open_in(others_dir, "held"), n = 0;
    double end = now() + 10;

    while (n < SAMPLES && now() < end) {
        double began = now();

        lock(fd, F_WRLCK, FAR, 1);
        lock(fd, F_UNLCK, FAR, 1);
        took[n++] = (now() - began) / 2;
        usleep(500);
    }
    kill(holder, SIGKILL);
    waitpid(holder, NULL, 0);
    qsort(took, (size_t)n, sizeof *took, by_value);
    printf("others while one changes %d ranges: median %.3f ms, p99 %.3f ms, most %.3f ms (%d)\n",
           held, took[n / 2] * 1e3, took[n * 99 / 100] * 1e3, took[n - 1] * 1e3, n);
    close(fd);
}

static void descriptors(const char *dir, int n, int locked)
{
    int *fd = malloc(((size_t)n + 1) * sizeof *fd);
    double began = now(), opened;

    if (!fd)
        fail("malloc");
    for (int i = 0; i < n; i++) {
        fd[i] = open_in(dir, "many");
        if (locked)
            lock(fd[i], F_WRLCK, 2 * i, 1);
    }
    opened = now();
    for (int i = 0; i < n; i++)
        close(fd[i]);
    printf("%d descriptors%s: opened in %.2f s, closed in %.2f s\n", n,
           locked ? ", each with a lock" : "", opened - began, now() - opened);
    free(fd);
}

int main(int argc, char **argv)
{
    const int defaults[] = {4000, 2700, 19000};
    int n[3];
    struct rlimit files;

    if (argc < 2) {
        fprintf(stderr, "usage: lock_bench DIR [RANGES] [HELD] [DESCRIPTORS] [OTHERS-DIR]\n");
        return 2;
    }
    for (int i = 0; i < 3; i++)
        n[i] = argc > 2 + i ? atoi(argv[2 + i]) : defaults[i];
    setvbuf(stdout, NULL, _IOLBF, 0);
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (n[0])
        ranges(argv[1], n[0]);
    if (n[1])
        others(argv[1], argc > 5 ? argv[5] : argv[1], n[1]);
    for (int locked = 0; n[2] && locked < 2; locked++)
        descriptors(argv[1], n[2], locked);
    return 0;
}
