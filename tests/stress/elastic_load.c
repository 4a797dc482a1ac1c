/* Load on two mounts of one deployment while it changes, with a shadow of all that was
 * acknowledged:
 *
 *   elastic_load [-m MEGABYTES] [-p PAUSE_US] DIR_A DIR_B SECONDS SEED
 *
 * Large sequential files, small files, rewrites in place, a tree of names, appends and locked
 * counters from both mounts, each by threads of their own that verify what they find all the time,
 * through the other mount, too, and everything once more at the end. Every second a line tells the
 * throughput and the longest single call. Exit status 1 upon any wrong byte, name or errno, or a
 * call that hangs. SIGTERM ends it early, with all checks. -m bounds the data held at one time
 * (default 256), -p slows every thread down. Works in a directory of its own, which it removes when
 * all was well. */
#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elastic_load.h"

#define HANG 180U /* s that the last calls and checks may take */

struct load load = {.budget = 256};

static void *(*const kinds[])(void *) = {load_large_files, load_small_files, load_rewrites,
                                         load_names,       load_appends,     load_counters};
#define COUNTERS 5U
#define WORKERS  12U

static struct worker worker[WORKERS];

static void report(int second)
{
    static unsigned long long w0, r0, c0;
    unsigned long long w = atomic_load(&load.written), r = atomic_load(&load.fetched),
                       c = atomic_load(&load.calls);
    int64_t most = 0;
    unsigned kind = 0;

    for (unsigned k = 0; k < KINDS; k++) {
        int64_t ns = atomic_exchange(&load.longest_now[k], 0);

        if (ns > most) {
            most = ns;
            kind = k;
        }
    }
    printf("%4d s: written %7.1f MB/s, read %7.1f MB/s, %6llu calls/s, longest %8.2f ms (%s)\n",
           second, (double)(w - w0) / 1e6, (double)(r - r0) / 1e6, c - c0, (double)most / 1e6,
           load_kind_name[kind]);
    fflush(stdout);
    w0 = w;
    r0 = r;
    c0 = c;
}

static void end_early(int signo)
{
    (void)signo;
    atomic_store(&load.stop, true);
}

static void summary(int64_t start)
{
    int64_t most = 0;
    unsigned kind = 0;

    printf("longest by kind (ms):");
    for (unsigned k = 0; k < KINDS; k++) {
        int64_t ns = atomic_load(&load.longest[k]);

        printf(" %s %.2f", load_kind_name[k], (double)ns / 1e6);
        if (ns > most) {
            most = ns;
            kind = k;
        }
    }
    printf("\n%s: %.1f s, %.1f MB written, %.1f MB read, %llu calls, longest %.2f ms (%s)\n",
           atomic_load(&load.failed) ? "FAILED" : "OK", (double)(load_now_ns() - start) / 1e9,
           (double)atomic_load(&load.written) / 1e6, (double)atomic_load(&load.fetched) / 1e6,
           (unsigned long long)atomic_load(&load.calls), (double)most / 1e6, load_kind_name[kind]);
}

static void launch(void)
{
    pthread_barrier_init(&load.append_barrier, NULL, 2);
    for (unsigned i = 0; i < WORKERS; i++) {
        struct worker *w = &worker[i];

        *w = (struct worker){.id = i, .mount = i % 2, .random = load_mix(load.seed + i)};
        w->peer = &worker[i ^ 1];
        w->buf = malloc(CHUNK + 64);
        if (!w->buf)
            abort();
    }
    for (unsigned i = 0; i < WORKERS; i++)
        if (pthread_create(&worker[i].thread, NULL, kinds[i / 2], &worker[i]))
            abort();
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void hung(int signo)
{
    static const char text[] = "WRONG: hangs\n";

    (void)signo;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(2);
    _exit(1);
}

/* A directory of our own, as both mounts name it. */
static bool make_root(char *const dirs[2])
{
    for (unsigned m = 0; m < 2; m++)
        snprintf(load.root[m], sizeof load.root[m], "%s/load-%llu-%d", dirs[m],
                 (unsigned long long)load.seed, (int)getpid());
    return load_mkdir(load.root[0]);
}

static int usage(void)
{
    fputs("usage: elastic_load [-m MEGABYTES] [-p PAUSE_US] DIR_A DIR_B SECONDS SEED\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    int64_t start = load_now_ns();
    int seconds, c;

    while ((c = getopt(argc, argv, "m:p:")) != -1) {
        if (c == 'm')
            load.budget = strtoull(optarg, NULL, 10);
        else if (c == 'p')
            load.pause_us = (unsigned)strtoul(optarg, NULL, 10);
        else
            return usage();
    }
    if (argc - optind != 4 || load.budget < 16)
        return usage();
    seconds = atoi(argv[optind + 2]);
    load.seed = strtoull(argv[optind + 3], NULL, 10);
    load.budget <<= 20;
    printf("seed %llu\n", (unsigned long long)load.seed);
    if (!make_root(argv + optind))
        return 1;
    signal(SIGALRM, hung);
    signal(SIGTERM, end_early);
    alarm((unsigned)seconds + HANG);
    launch();
    for (int s = 1; s <= seconds && !atomic_load(&load.stop); s++) {
        while (load_now_ns() < start + (int64_t)s * 1000000000 && !atomic_load(&load.stop))
            usleep(10000);
        report(s);
    }
    atomic_store(&load.stop, true);
    alarm(HANG);
    for (unsigned i = 0; i < WORKERS; i++) {
        pthread_join(worker[i].thread, NULL);
        free(worker[i].buf);
    }
    if (!atomic_load(&load.failed))
        load_check_counter(&worker[2 * COUNTERS], &worker[2 * COUNTERS + 1]);
    summary(start);
    if (!atomic_load(&load.failed) && nftw(load.root[0], remove_one, 16, FTW_DEPTH | FTW_PHYS))
        load_wrong("remove %s: %s", load.root[0], strerror(errno));
    return atomic_load(&load.failed) ? 1 : 0;
}
