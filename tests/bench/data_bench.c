/* Sequential write and cold read of a large file, and small files, through write-behind and
 * read-ahead on real partitions of this machine, without FUSE and metadata: what src/data itself
 * costs.
 *
 *   data_bench [MiB [partitions]]        default 1024 4
 *
 * One line per case: name, MB/s (or files/s), CPU seconds per GiB of this process. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "data/stripes/geometry.h"
#include "data/readahead/readahead.h"
#include "data/stripes/stripes.h"
#include "data/writeback/writeback.h"
#include "redis_fixture.h"

#define INO 77ULL

struct bench {
    struct redis_fixture *fixture;
    struct mfs_store *store;
    struct mfs_writeback *wb;
    struct mfs_readahead_pool *pool;
    uint64_t bytes;
    int64_t started;
    double cpu;
};

static void check(int rc, const char *what)
{
    if (rc < 0) {
        fprintf(stderr, "data_bench: %s: %s\n", what, strerror(-rc));
        exit(1);
    }
}

static double cpu_seconds(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static void start(struct bench *b)
{
    b->cpu = cpu_seconds();
    b->started = mfs_clock_mono();
}

static void report(struct bench *b, const char *name, size_t step)
{
    double seconds = (double)(mfs_clock_mono() - b->started) * 1e-9;

    printf("%-6s %8zu  %8.0f MB/s  %6.3f CPU s/GiB\n", name, step, (double)b->bytes / 1e6 / seconds,
           (cpu_seconds() - b->cpu) / ((double)b->bytes / (1 << 30)));
    fflush(stdout);
}

static int commit(void *arg, const struct mfs_dirty_commit *c)
{
    struct bench *b = arg;
    int64_t alloc = 0;
    int rc = 0;

    for (size_t i = 0; i < c->nparts && !rc; i++)
        rc = mfs_stripes_write(b->store, INO + 1, c->parts[i].off, c->parts[i].len, c->parts[i].p,
                               &alloc);
    return rc;
}

static void write_file(struct bench *b, size_t step)
{
    char *buf = malloc(step);
    struct mfs_dirty *d;

    memset(buf, 'x', step);
    start(b);
    check(mfs_dirty_create(&d, b->wb, INO, commit, b), "create");
    for (uint64_t off = 0; off < b->bytes; off += step)
        check(mfs_dirty_write(d, off, step, buf, false), "write");
    check(mfs_dirty_flush(d, NULL), "flush");
    mfs_dirty_destroy(d);
    report(b, "write", step);
    free(buf);
}

static void read_file(struct bench *b, size_t step)
{
    char *buf = malloc(step);
    struct mfs_readahead *ra;

    memset(buf, 0, step);
    start(b);
    check(mfs_readahead_create(&ra, b->pool, INO), "create");
    for (uint64_t off = 0; off < b->bytes; off += step)
        check(mfs_readahead_read(ra, off, step, b->bytes, buf, NULL), "read");
    mfs_readahead_destroy(ra);
    report(b, "read", step);
    free(buf);
}

/* Small writes all over the file, which exists. */
static void write_random(struct bench *b, size_t step)
{
    uint64_t n = 50000, at = 1, file = b->bytes;
    char *buf = malloc(step);
    struct mfs_dirty *d;

    memset(buf, 'z', step);
    b->bytes = n * step;
    start(b);
    check(mfs_dirty_create(&d, b->wb, INO, commit, b), "create");
    for (uint64_t i = 0; i < n; i++) {
        at = at * 6364136223846793005ULL + 1442695040888963407ULL;
        check(mfs_dirty_write(d, (at >> 20) % (file / step) * step, step, buf, false), "write");
    }
    check(mfs_dirty_flush(d, NULL), "flush");
    mfs_dirty_destroy(d);
    report(b, "random", step);
    b->bytes = file;
    free(buf);
}

static void small_files(struct bench *b, size_t len)
{
    unsigned n = 20000;
    char *buf = malloc(len);
    double seconds;

    memset(buf, 'y', len);
    start(b);
    for (unsigned i = 0; i < n; i++) {
        struct mfs_dirty *d;

        check(mfs_dirty_create(&d, b->wb, INO + 1, commit, b), "create");
        check(mfs_dirty_write(d, 0, len, buf, false), "write");
        check(mfs_dirty_flush(d, NULL), "flush");
        mfs_dirty_destroy(d);
    }
    seconds = (double)(mfs_clock_mono() - b->started) * 1e-9;
    printf("%-6s %8zu  %8.0f files/s  %6.1f us CPU each\n", "small", len, n / seconds,
           (cpu_seconds() - b->cpu) * 1e6 / n);
    free(buf);
}

int main(int argc, char **argv)
{
    static const size_t steps[] = {1U << 20, 128U << 10, 4096};
    struct redis_fixture_opts how = {.nparts = argc > 2 ? (uint32_t)atoi(argv[2]) : 4,
                                     .stripe_size = MFS_STRIPE_SIZE_DEFAULT};
    struct mfs_store_opts opts = {.node = REDIS_FIXTURE_NODE};
    struct bench b = {.bytes = (argc > 1 ? strtoull(argv[1], NULL, 0) : 1024) << 20};

    check(redis_fixture_start(&b.fixture, &how), "redis");
    check(mfs_store_create(&b.store, redis_fixture_table(b.fixture), &opts), "store");
    check(mfs_writeback_create(&b.wb, b.store, NULL), "write-behind");
    check(mfs_readahead_pool_create(&b.pool, b.store, NULL), "read-ahead");
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 3; i++) {
            write_file(&b, steps[i]);
            read_file(&b, steps[i]);
        }
        write_random(&b, 4096);
        small_files(&b, 4096);
    }
    mfs_readahead_pool_destroy(b.pool);
    mfs_writeback_destroy(b.wb);
    mfs_store_destroy(b.store);
    redis_fixture_stop(b.fixture);
    return 0;
}
