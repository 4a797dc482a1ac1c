/* How many operations on names and small files a directory tree takes per second:
 *
 *   md_bench [-s] [-c] [-o OTHER] DIR PROCESSES FILES BYTES
 *
 * PROCESSES share FILES files of BYTES bytes evenly and go through the phases below together, each
 * in a directory of its own or, with -s, all in one. With -c the kernel's entries, attributes and
 * pages are dropped before each phase that is called cold (needs root). With -o OTHER, where
 * another mount has DIR, what was made by one of the two is looked at, moved and removed by the
 * other, but for the second create, as what has just gone is not known there. One line per phase:
 * name, processes, bytes, operations, seconds, operations per second, longest operation in ms.
 * Knows nothing of MemEFS: any file system will do. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES_MAX 64
#define PATHS         768

struct job {
    const char *dir;
    unsigned processes, me;
    unsigned files; /* of one process */
    size_t bytes;
    bool shared;
    const char *other; /* DIR by the other mount; NULL: there is one */
    char *data, home[PATHS - 64];
};

struct phase {
    const char *name;
    void (*each)(const struct job *j, unsigned i); /* one operation */
    unsigned (*all)(const struct job *j);          /* or all at once: their number */
    bool cold, with_data;
    bool here; /* by the mount that makes the files */
};

static struct shared {
    pthread_barrier_t barrier;
    double began[PROCESSES_MAX], ended[PROCESSES_MAX], longest[PROCESSES_MAX];
    unsigned done[PROCESSES_MAX];
} * shared;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static _Noreturn void fail(const char *what, const char *path)
{
    fprintf(stderr, "md_bench: %s %s: %s\n", what, path, strerror(errno));
    exit(1);
}

static void name(const struct job *j, const char *stem, unsigned i, char path[PATHS])
{
    snprintf(path, PATHS, "%s/%s.%u.%u", j->home, stem, j->me, i);
}

/* --- the phases ------------------------------------------------------------------------------ */

static void create(const struct job *j, unsigned i)
{
    char path[PATHS];
    int fd;

    name(j, "file", i, path);
    fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0644);
    if (fd < 0)
        fail("create", path);
    if (j->bytes && write(fd, j->data, j->bytes) != (ssize_t)j->bytes)
        fail("write", path);
    if (close(fd))
        fail("close", path);
}

static void look(const struct job *j, unsigned i)
{
    char path[PATHS];
    struct stat st;

    name(j, "file", i, path);
    if (stat(path, &st))
        fail("stat", path);
    if ((size_t)st.st_size != j->bytes) {
        errno = EIO;
        fail("size of", path);
    }
}

static void fetch(const struct job *j, unsigned i)
{
    char path[PATHS];
    int fd;

    name(j, "file", i, path);
    fd = open(path, O_RDONLY);
    if (fd < 0)
        fail("open", path);
    if (read(fd, j->data, j->bytes + 1) != (ssize_t)j->bytes)
        fail("read", path);
    close(fd);
}

/* As `ls -l` does: the list, and each entry's attributes. */
static unsigned list(const struct job *j)
{
    DIR *dir = opendir(j->home);
    unsigned n = 0;
    struct stat st;

    if (!dir)
        fail("open", j->home);
    for (const struct dirent *e; (e = readdir(dir)); n++)
        if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW))
            fail("stat", e->d_name);
    closedir(dir);
    if (n < j->files * (j->shared ? j->processes : 1)) {
        errno = ENOENT;
        fail("entries of", j->home);
    }
    return n;
}

static void move(const struct job *j, unsigned i)
{
    char from[PATHS], to[PATHS];

    name(j, "file", i, from);
    name(j, "moved", i, to);
    if (rename(from, to))
        fail("rename", from);
}

static void drop(const struct job *j, unsigned i)
{
    char path[PATHS];

    name(j, "file", i, path);
    if (unlink(path))
        fail("unlink", path);
}

static void drop_moved(const struct job *j, unsigned i)
{
    char path[PATHS];

    name(j, "moved", i, path);
    if (unlink(path))
        fail("unlink", path);
}

static void make_dir(const struct job *j, unsigned i)
{
    char path[PATHS];

    name(j, "dir", i, path);
    if (mkdir(path, 0755))
        fail("mkdir", path);
}

static void drop_dir(const struct job *j, unsigned i)
{
    char path[PATHS];

    name(j, "dir", i, path);
    if (rmdir(path))
        fail("rmdir", path);
}

static const struct phase phases[] = {
    {.name = "create", .each = create, .here = true},
    {.name = "stat-cold", .each = look, .cold = true},
    {.name = "read-cold", .each = fetch, .cold = true, .with_data = true},
    {.name = "list-cold", .all = list, .cold = true},
    {.name = "unlink", .each = drop},
    {.name = "create-again", .each = create, .here = true},
    {.name = "rename", .each = move},
    {.name = "unlink-renamed", .each = drop_moved, .here = true},
    {.name = "mkdir", .each = make_dir, .here = true},
    {.name = "rmdir", .each = drop_dir},
};

/* --- running them ---------------------------------------------------------------------------- */

static void drop_caches(void)
{
    int fd;

    sync();
    fd = open("/proc/sys/vm/drop_caches", O_WRONLY);
    if (fd < 0 || write(fd, "3", 1) != 1)
        fail("write", "/proc/sys/vm/drop_caches");
    close(fd);
}

static void together(void)
{
    pthread_barrier_wait(&shared->barrier);
}

static void go_through(const struct job *j, const struct phase *p)
{
    double longest = 0, began = now(), last = began;
    unsigned n = j->files;

    if (p->all)
        n = p->all(j);
    for (unsigned i = 0; p->each && i < n; i++) {
        double t;

        p->each(j, i);
        t = now();
        longest = t - last > longest ? t - last : longest;
        last = t;
    }
    shared->began[j->me] = began;
    shared->ended[j->me] = now();
    shared->longest[j->me] = longest;
    shared->done[j->me] = n;
}

static void tell(const struct job *j, const struct phase *p)
{
    double began = shared->began[0], ended = 0, longest = 0;
    unsigned done = 0;

    for (unsigned i = 0; i < j->processes; i++) {
        began = shared->began[i] < began ? shared->began[i] : began;
        ended = shared->ended[i] > ended ? shared->ended[i] : ended;
        longest = shared->longest[i] > longest ? shared->longest[i] : longest;
        done += shared->done[i];
    }
    printf("%s %u %zu %u %.4f %.0f %.2f\n", p->name, j->processes, j->bytes, done, ended - began,
           done / (ended - began), longest * 1e3);
    fflush(stdout);
}

/* By the mount that makes files, or by the other one. */
static void go_home(struct job *j, bool here)
{
    const char *dir = here || j->other == NULL ? j->dir : j->other;

    if (!j->shared)
        snprintf(j->home, sizeof j->home, "%s/md.%u", dir, j->me);
    else
        snprintf(j->home, sizeof j->home, "%s/md", dir);
}

static void run(struct job *j, bool cold)
{
    go_home(j, true);
    if (mkdir(j->home, 0755) && errno != EEXIST)
        fail("mkdir", j->home);
    for (size_t k = 0; k < sizeof phases / sizeof *phases; k++) {
        const struct phase *p = &phases[k];

        if (p->with_data && !j->bytes)
            continue;
        together();
        if (!j->me && p->cold && cold)
            drop_caches();
        go_home(j, p->here);
        together();
        go_through(j, p);
        together();
        if (!j->me)
            tell(j, p);
    }
    go_home(j, true);
    if (rmdir(j->home) && errno != ENOENT && errno != ENOTEMPTY)
        fail("rmdir", j->home);
}

/* One that fails leaves the others waiting for it: they end with it. */
static int wait_for(const pid_t *child, unsigned n)
{
    int status, rc = 0;

    while (wait(&status) > 0) {
        if (!status)
            continue;
        rc = 1;
        for (unsigned i = 0; i < n; i++)
            kill(child[i], SIGKILL);
    }
    return rc;
}

static int start(struct job *j, bool cold)
{
    pid_t child[PROCESSES_MAX];
    pthread_barrierattr_t attr;

    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    j->data = malloc(j->bytes + 1);
    if (shared == MAP_FAILED || !j->data)
        fail("memory for", j->dir);
    memset(j->data, 'x', j->bytes + 1);
    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &attr, j->processes);
    for (unsigned i = 0; i < j->processes; i++) {
        child[i] = fork();
        if (child[i] < 0)
            fail("fork for", j->dir);
        if (!child[i]) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            j->me = i;
            run(j, cold);
            exit(0);
        }
    }
    return wait_for(child, j->processes);
}

int main(int argc, char **argv)
{
    struct job j = {0};
    bool cold = false;
    int c;

    while ((c = getopt(argc, argv, "sco:")) != -1) {
        j.shared |= c == 's';
        cold |= c == 'c';
        if (c == 'o')
            j.other = optarg;
        if (c == '?')
            return 2;
    }
    if (argc - optind == 4) {
        j.dir = argv[optind];
        j.processes = (unsigned)strtoul(argv[optind + 1], NULL, 10);
        j.bytes = strtoul(argv[optind + 3], NULL, 10);
    }
    if (j.processes < 1 || j.processes > PROCESSES_MAX || strlen(j.dir) > sizeof j.home - 16 ||
        (j.other != NULL && strlen(j.other) > sizeof j.home - 16)) {
        fprintf(stderr, "usage: md_bench [-s] [-c] [-o OTHER] DIR PROCESSES FILES BYTES\n");
        return 2;
    }
    j.files = (unsigned)strtoul(argv[optind + 2], NULL, 10) / j.processes;
    return start(&j, cold);
}
