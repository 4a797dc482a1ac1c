/* What an application notices of a fault: small files are written, closed and read all the time on
 * one mount, and each call that fails or takes long is told.
 *
 *   fault_probe DIRECTORY TROUBLE
 *
 * Eight threads each write a file of 16 KiB and read one that they have closed before, every few
 * milliseconds, until SIGTERM. TROUBLE gets a line for each such round that failed or took longer
 * than half a second: when it began (µs of the wall clock), how long it took (µs), what it was, the
 * error's name or "slow". Then, within a minute, every file that was closed without an error is
 * read once more, past the kernel's cache; stdout gets one JSON object: rounds, closed, lost (files
 * that can't be read), lost_bytes, wrong (files with other content). */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define THREADS 8U
#define FILES   400U /* of one thread, one after another; then the first is overwritten */
#define SIZE    16384U
#define SLOW    500000 /* us */
#define SETTLE  60     /* s */

struct prober {
    pthread_t thread;
    unsigned id;
    uint32_t number;        /* of the next write: what the file has */
    uint32_t closed[FILES]; /* number that was closed without an error; 0: none */
    uint32_t tried[FILES];  /* at last */
    unsigned char *buf;
};

static const char *root;
static FILE *trouble;
static atomic_bool stop;
static atomic_ullong rounds;

static int64_t now_us(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void fill(unsigned char *p, unsigned id, uint32_t number)
{
    for (uint32_t i = 0; i < SIZE / 4; i++) {
        uint32_t word = i == 0 ? number : (id << 20 ^ number) * 2654435761U + i;

        memcpy(p + 4 * (size_t)i, &word, 4);
    }
}

static void path_of(const struct prober *p, unsigned file, char out[512])
{
    snprintf(out, 512, "%s/%u-%u", root, p->id, file);
}

static int put(struct prober *p, unsigned file)
{
    char path[512];
    int fd, rc = 0;

    path_of(p, file, path);
    p->tried[file] = ++p->number;
    fill(p->buf, p->id, p->number);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return -errno;
    if (pwrite(fd, p->buf, SIZE, 0) != SIZE)
        rc = errno ? -errno : -EIO;
    if (close(fd) < 0 && rc == 0)
        rc = -errno;
    if (rc == 0)
        p->closed[file] = p->number;
    return rc;
}

/* 0; 1: the content is neither what was closed nor, when a write failed since, what was tried. */
static int get(struct prober *p, unsigned file, int flags)
{
    static _Thread_local unsigned char want[SIZE];
    char path[512];
    uint32_t number;
    int fd, rc = 0;
    ssize_t n;

    path_of(p, file, path);
    fd = open(path, O_RDONLY | O_CLOEXEC | flags);
    if (fd < 0)
        return -errno;
    n = pread(fd, p->buf, SIZE, 0);
    if (n < 0)
        rc = -errno;
    close(fd);
    if (rc < 0)
        return rc;
    memcpy(&number, p->buf, 4);
    fill(want, p->id, number);
    return n == SIZE && number >= p->closed[file] && number <= p->tried[file] &&
                   memcmp(want, p->buf, SIZE) == 0
               ? 0
               : 1;
}

static void tell(int64_t wall, int64_t us, const char *what, int rc)
{
    if (rc != 0 || us > SLOW)
        fprintf(trouble, "%lld\t%lld\t%s\t%s\n", (long long)wall, (long long)us, what,
                rc < 0   ? strerrorname_np(-rc)
                : rc > 0 ? "WRONG"
                         : "slow");
}

static void *probe(void *arg)
{
    struct prober *p = arg;

    for (unsigned i = 0; !atomic_load(&stop); i = (i + 1) % FILES) {
        int64_t wall = now_us(CLOCK_REALTIME), start = now_us(CLOCK_MONOTONIC);
        unsigned other = i * 7919 % FILES;
        int rc = put(p, i);

        tell(wall, now_us(CLOCK_MONOTONIC) - start, "write", rc);
        if (p->closed[other]) {
            wall = now_us(CLOCK_REALTIME);
            start = now_us(CLOCK_MONOTONIC);
            rc = get(p, other, 0);
            tell(wall, now_us(CLOCK_MONOTONIC) - start, "read", rc);
        }
        atomic_fetch_add(&rounds, 1);
        usleep(4000);
    }
    return NULL;
}

static void end_now(int signo)
{
    (void)signo;
    atomic_store(&stop, true);
}

static void look_at_all(struct prober *probers)
{
    int64_t until = now_us(CLOCK_MONOTONIC) + SETTLE * 1000000LL;
    unsigned closed = 0, lost = 0, wrong = 0;

    for (unsigned i = 0; i < THREADS * FILES; i++) {
        struct prober *p = &probers[i / FILES];
        int rc;

        if (!p->closed[i % FILES])
            continue;
        closed++;
        while ((rc = get(p, i % FILES, O_DIRECT)) < 0 && rc != -EIO && rc != -ENOENT &&
               now_us(CLOCK_MONOTONIC) < until)
            usleep(100000);
        lost += rc < 0;
        wrong += rc > 0;
    }
    printf("{\"rounds\":%llu,\"closed\":%u,\"lost\":%u,\"lost_bytes\":%u,\"wrong\":%u}\n",
           atomic_load(&rounds), closed, lost, lost * SIZE, wrong);
}

int main(int argc, char **argv)
{
    static struct prober probers[THREADS];

    if (argc != 3) {
        fputs("usage: fault_probe DIRECTORY TROUBLE\n", stderr);
        return 2;
    }
    root = argv[1];
    trouble = fopen(argv[2], "w");
    if (!trouble || (mkdir(root, 0755) && errno != EEXIST)) {
        perror(trouble ? root : argv[2]);
        return 1;
    }
    setvbuf(trouble, NULL, _IOLBF, 0);
    signal(SIGTERM, end_now);
    for (unsigned i = 0; i < THREADS; i++) {
        probers[i].id = i;
        probers[i].buf = aligned_alloc(4096, SIZE);
        if (!probers[i].buf || pthread_create(&probers[i].thread, NULL, probe, &probers[i]))
            abort();
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(probers[i].thread, NULL);
    look_at_all(probers);
    return 0;
}
