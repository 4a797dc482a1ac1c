/* Bandwidth and latency of the store against redis processes of its own.
 *
 *   store_bench set|get|fanset|fanget|ping|post [options]
 *
 * Options: --size BYTES --threads N --depth N --parts N --seconds S --tcp
 *
 * set, get: each thread goes round the partitions, `depth` commands per call, one partition per
 * call; fanset, fanget: the values of a call are on as many partitions; ping: the smallest command;
 * post: small commands that nobody waits for. Prints one line of CSV: mode, bytes, threads, depth,
 * partitions, MB/s, calls/s, p50 µs, p99 µs, client CPU seconds per GiB. */
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "redis_fixture.h"
#include "store/args.h"
#include "store/store.h"

#define DEPTH_MAX 64
#define KEYS      64 /* per thread and partition */
#define SAMPLES   (1 << 18)

struct bench {
    const char *mode;
    size_t size;
    unsigned threads, depth, parts;
    double seconds;
    struct mfs_store *store;
    atomic_bool stop, failed;
};

struct worker {
    struct bench *bench;
    pthread_t thread;
    unsigned id;
    uint64_t calls, values;
    double *us;
};

static bool is_get(const struct bench *b)
{
    return strstr(b->mode, "get");
}

static struct mfs_cmd make(struct worker *w, struct mfs_args *a, unsigned i, char *buffer)
{
    struct bench *b = w->bench;
    bool fan = !strncmp(b->mode, "fan", 3), get = is_get(b);
    uint64_t turn = w->calls + w->id;
    struct mfs_cmd cmd;

    if (!strcmp(b->mode, "ping")) {
        mfs_args_init(a, "PING");
        return mfs_args_cmd(a, (uint32_t)(turn % b->parts));
    }
    mfs_args_init(a, get ? "GET" : "SET");
    mfs_args_int(a, (int64_t)(w->id * KEYS + (w->calls * b->depth + i) / b->parts % KEYS));
    if (!get)
        mfs_args_bin(a, buffer, b->size);
    cmd = mfs_args_cmd(a, (uint32_t)((fan ? turn + i : turn) % b->parts));
    if (get) {
        cmd.into = buffer;
        cmd.into_cap = b->size;
    }
    return cmd;
}

static int call(struct worker *w, struct mfs_cmd *cmds)
{
    struct bench *b = w->bench;
    int rc = 0;

    if (!strcmp(b->mode, "post")) {
        for (unsigned i = 0; i < b->depth && !rc; i++)
            rc = mfs_store_post(b->store, &cmds[i]);
        return rc;
    }
    rc = mfs_store_exec(b->store, cmds, b->depth);
    for (unsigned i = 0; i < b->depth && is_get(b); i++)
        if (!rc && cmds[i].into_len != (ssize_t)b->size)
            rc = -1;
    mfs_cmds_fini(cmds, b->depth);
    return rc;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct bench *b = w->bench;
    char *buffer = aligned_alloc(4096, (b->size * b->depth + 4096) & ~(size_t)4095);
    struct mfs_args *args = malloc(b->depth * sizeof *args);
    struct mfs_cmd cmds[DEPTH_MAX];

    memset(buffer, 'a' + (int)w->id, b->size * b->depth);
    while (!b->stop) {
        int64_t start = mfs_clock_mono();

        for (unsigned i = 0; i < b->depth; i++)
            cmds[i] = make(w, &args[i], i, buffer + i * b->size);
        if (call(w, cmds)) {
            b->failed = true;
            break;
        }
        w->us[w->calls++ % SAMPLES] = (double)(mfs_clock_mono() - start) / 1e3;
        w->values += b->depth;
    }
    free(args);
    free(buffer);
    return NULL;
}

static int prepare(struct bench *b)
{
    char *value = calloc(1, b->size + 1);
    int rc = 0;

    for (unsigned k = 0; k < KEYS * b->threads; k++)
        for (uint32_t p = 0; p < b->parts && !rc; p++) {
            struct mfs_args a;
            struct mfs_cmd cmd;

            mfs_args_init(&a, "SET");
            mfs_args_int(&a, k);
            mfs_args_bin(&a, value, b->size);
            cmd = mfs_args_cmd(&a, p);
            rc = mfs_store_exec(b->store, &cmd, 1);
            mfs_cmds_fini(&cmd, 1);
        }
    free(value);
    return rc;
}

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;

    return a < b ? -1 : a > b;
}

static double cpu_seconds(void)
{
    struct rusage r;

    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

static void report(struct bench *b, struct worker *w, double seconds, double cpu)
{
    double *all = malloc(sizeof *all * SAMPLES * b->threads), bytes;
    uint64_t calls = 0, values = 0;
    size_t n = 0;

    for (unsigned i = 0; i < b->threads; i++) {
        size_t have = w[i].calls < SAMPLES ? w[i].calls : SAMPLES;

        memcpy(all + n, w[i].us, have * sizeof *all);
        n += have;
        calls += w[i].calls;
        values += w[i].values;
    }
    qsort(all, n, sizeof *all, by_value);
    bytes = (double)values * (double)b->size;
    printf("%s,%zu,%u,%u,%u,%.0f,%.0f,%.1f,%.1f,%.3f\n", b->mode, b->size, b->threads, b->depth,
           b->parts, bytes / 1e6 / seconds, (double)calls / seconds, n ? all[n / 2] : 0,
           n ? all[n * 99 / 100] : 0, bytes > 0 ? cpu / (bytes / (1 << 30)) : 0);
    free(all);
}

static int run(struct bench *b)
{
    struct worker *w = calloc(b->threads, sizeof *w);
    double cpu = cpu_seconds();
    int64_t start = mfs_clock_mono();

    for (unsigned i = 0; i < b->threads; i++) {
        w[i] = (struct worker){.bench = b, .id = i, .us = malloc(sizeof(double) * SAMPLES)};
        pthread_create(&w[i].thread, NULL, work, &w[i]);
    }
    mfs_clock_sleep((int64_t)(b->seconds * 1e9));
    b->stop = true;
    for (unsigned i = 0; i < b->threads; i++)
        pthread_join(w[i].thread, NULL);
    if (mfs_store_drain(b->store, 30 * MFS_SEC))
        b->failed = true;
    report(b, w, (double)(mfs_clock_mono() - start) / 1e9, cpu_seconds() - cpu);
    for (unsigned i = 0; i < b->threads; i++)
        free(w[i].us);
    free(w);
    return b->failed ? 1 : 0;
}

static int parse(int argc, char **argv, struct bench *b, struct redis_fixture_opts *how)
{
    static const struct option options[] = {
        {"size", 1, NULL, 's'},  {"threads", 1, NULL, 't'}, {"depth", 1, NULL, 'd'},
        {"parts", 1, NULL, 'p'}, {"seconds", 1, NULL, 'n'}, {"tcp", 0, NULL, 'c'},
        {NULL, 0, NULL, 0},
    };
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        switch (c) {
        case 's':
            b->size = strtoul(optarg, NULL, 0);
            break;
        case 't':
            b->threads = (unsigned)atoi(optarg);
            break;
        case 'd':
            b->depth = (unsigned)atoi(optarg);
            break;
        case 'p':
            b->parts = (unsigned)atoi(optarg);
            break;
        case 'n':
            b->seconds = atof(optarg);
            break;
        case 'c':
            how->tcp = true;
            break;
        default:
            return -1;
        }
    }
    how->nparts = b->parts;
    b->mode = argv[optind];
    return optind == argc - 1 && b->depth >= 1 && b->depth <= DEPTH_MAX ? 0 : -1;
}

int main(int argc, char **argv)
{
    struct bench b = {.size = 1 << 20, .threads = 1, .depth = 1, .parts = 4, .seconds = 3};
    struct redis_fixture_opts how = {0};
    struct redis_fixture *fixture;
    int rc;

    if (parse(argc, argv, &b, &how)) {
        fprintf(stderr,
                "usage: store_bench set|get|fanset|fanget|ping|post [--size B] [--threads N] "
                "[--depth N] [--parts N] [--seconds S] [--tcp]\n");
        return 2;
    }
    if (redis_fixture_start(&fixture, &how))
        return 1;
    rc = mfs_store_create(&b.store, redis_fixture_table(fixture), &(struct mfs_store_opts){0});
    if (!rc)
        rc = prepare(&b);
    if (!rc)
        rc = run(&b);
    mfs_store_destroy(b.store);
    redis_fixture_stop(fixture);
    return rc ? 1 : 0;
}
