/* Write-behind under several threads: files that compete for the window, readers and flushers
 * beside a writer of the same file, small files by the thousand. ctest: threaded */
#include "data_test.h"

#define STRIPE  65536U
#define NPARTS  4U
#define WRITERS 4

struct env {
    struct data_test t;
    struct mfs_writeback *wb;
    struct mfs_readahead_pool *pool;
};

static int open_group(void **state)
{
    struct redis_fixture_opts how = {.nparts = NPARTS, .stripe_size = STRIPE};
    struct mfs_writeback_opts wopts = {
        .max_bytes = 4U << 20, .max_file_bytes = 1U << 20, .max_age = 10 * MFS_MSEC};
    struct mfs_readahead_opts ropts = {.max_bytes = 1U << 20, .window = 4};
    struct env *e = calloc(1, sizeof *e);

    data_test_open(&e->t, &how, 10 * MFS_SEC);
    assert_int_equal(mfs_writeback_create(&e->wb, e->t.store, &wopts), 0);
    assert_int_equal(mfs_readahead_pool_create(&e->pool, e->t.store, &ropts), 0);
    *state = e;
    return 0;
}

static int close_group(void **state)
{
    struct env *e = *state;

    mfs_readahead_pool_destroy(e->pool);
    mfs_writeback_destroy(e->wb);
    data_test_close(&e->t);
    free(e);
    return 0;
}

struct worker {
    pthread_t thread;
    struct env *e;
    struct file *f;
    unsigned id;
    uint64_t seed;
    int rc;
    _Atomic bool *stop;
    _Atomic unsigned *version;
};

static void run_all(struct worker *w, unsigned n, void *(*run)(void *))
{
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(pthread_create(&w[i].thread, NULL, run, &w[i]), 0);
}

static void join_all(struct worker *w, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        pthread_join(w[i].thread, NULL);
        assert_int_equal(w[i].rc, 0);
    }
}

/* Each writer has pages of its own, in stripes that it shares with the others. */
static void *write_pages(void *arg)
{
    struct worker *w = arg;
    char page[4096];

    for (unsigned n = 0; n < 2000 && !w->rc; n++) {
        uint64_t at = rnd_below(&w->seed, 256) * WRITERS + w->id;

        pattern(page, at * sizeof page, sizeof page, 11);
        w->rc = mfs_dirty_write(w->f->d, at * sizeof page, sizeof page, page, false);
        if (!w->rc && rnd_below(&w->seed, 100) == 0)
            w->rc = file_flush(w->f);
    }
    for (uint64_t at = w->id; at < 256 * WRITERS && !w->rc; at += WRITERS) {
        pattern(page, at * sizeof page, sizeof page, 11);
        w->rc = mfs_dirty_write(w->f->d, at * sizeof page, sizeof page, page, false);
    }
    if (!w->rc)
        w->rc = file_flush(w->f);
    return NULL;
}

static void test_one_file(void **state)
{
    struct env *e = *state;
    struct worker w[WRITERS];
    size_t size = 256 * WRITERS * 4096;
    char *have = malloc(size), *want = malloc(size);
    uint64_t seed = rnd_seed();
    struct file f;

    file_open(&f, e->t.store, e->wb, mfs_ino_make(1, 1));
    for (unsigned i = 0; i < WRITERS; i++)
        w[i] = (struct worker){.e = e, .f = &f, .id = i, .seed = seed + i * 977};
    run_all(w, WRITERS, write_pages);
    join_all(w, WRITERS);
    assert_int_equal(file_size(&f), size);
    assert_int_equal(mfs_stripes_read(e->t.store, f.ino, 0, size, have), 0);
    pattern(want, 0, size, 11);
    assert_memory_equal(have, want, size);
    assert_int_equal(f.alloc, stored_bytes(e->t.store, f.ino, size));
    file_close(&f);
    free(have);
    free(want);
}

/* A block that is written again and again, each time with one number: a reader never sees a lower
 * number than the writer had written before the read began, nor two numbers in one block. */
#define BLOCK 3000

static void *rewrite(void *arg)
{
    struct worker *w = arg;
    uint32_t block[BLOCK / 4];

    for (uint32_t n = 1; n < 3000 && !w->rc; n++) {
        for (unsigned i = 0; i < BLOCK / 4; i++)
            block[i] = n;
        w->rc = mfs_dirty_write(w->f->d, STRIPE / 2, BLOCK, block, false);
        atomic_store(w->version, n);
        if (!w->rc && n % 3 == 0)
            w->rc = file_flush(w->f);
    }
    atomic_store(w->stop, true);
    return NULL;
}

static void *reread(void *arg)
{
    struct worker *w = arg;
    struct mfs_readahead *ra;
    uint32_t block[BLOCK / 4];

    w->rc = mfs_readahead_create(&ra, w->e->pool, w->f->ino);
    while (!w->rc && !atomic_load(w->stop)) {
        unsigned least = atomic_load(w->version);

        w->rc = mfs_readahead_read_over(ra, w->f->d, NULL, NULL, STRIPE / 2, BLOCK, STRIPE, block,
                                        NULL);
        if (!w->rc && block[0] < least)
            w->rc = -ESTALE;
        if (!w->rc && block[0] != block[BLOCK / 4 - 1])
            w->rc = -EILSEQ;
    }
    mfs_readahead_destroy(ra);
    return NULL;
}

static void test_readers_see_writes(void **state)
{
    struct env *e = *state;
    struct worker w[4];
    _Atomic bool stop = false;
    _Atomic unsigned version = 0;
    struct file f;

    file_open(&f, e->t.store, e->wb, mfs_ino_make(1, 2));
    for (unsigned i = 0; i < 4; i++)
        w[i] = (struct worker){.e = e, .f = &f, .stop = &stop, .version = &version};
    run_all(w, 1, rewrite);
    run_all(w + 1, 3, reread);
    join_all(w, 4);
    assert_int_equal(file_flush(&f), 0);
    file_close(&f);
}

static void *write_files(void *arg)
{
    struct worker *w = arg;
    char buf[5000], have[5000];

    for (unsigned n = 0; n < 500 && !w->rc; n++) {
        size_t len = 1 + rnd_below(&w->seed, sizeof buf);
        struct file f;

        file_open(&f, w->e->t.store, w->e->wb, mfs_ino_make(n % NPARTS, 1000 + w->id * 1000 + n));
        pattern(buf, 0, len, n);
        w->rc = mfs_dirty_write(f.d, 0, len, buf, false);
        if (!w->rc)
            w->rc = file_flush(&f);
        if (!w->rc)
            w->rc = mfs_stripes_read(f.store, f.ino, 0, len, have);
        if (!w->rc && (memcmp(buf, have, len) != 0 || f.size != len))
            w->rc = -EILSEQ;
        file_close(&f);
    }
    return NULL;
}

static void test_small_files(void **state)
{
    struct env *e = *state;
    struct worker w[WRITERS];

    for (unsigned i = 0; i < WRITERS; i++)
        w[i] = (struct worker){.e = e, .id = i, .seed = 12345 + i};
    run_all(w, WRITERS, write_files);
    join_all(w, WRITERS);
}

/* More than the window, by several large files at once; one is given up half-way. */
static void *stream(void *arg)
{
    struct worker *w = arg;
    size_t len = 100000;
    char *buf = malloc(len), *have = malloc(len);
    struct file f;

    file_open(&f, w->e->t.store, w->e->wb, mfs_ino_make(2, 5000 + w->id));
    for (unsigned n = 0; n < 100 && !w->rc; n++) {
        pattern(buf, n * len, len, w->id);
        w->rc = mfs_dirty_write(f.d, n * len, len, buf, false);
    }
    if (w->id == 0)
        goto out;
    if (!w->rc)
        w->rc = file_flush(&f);
    for (unsigned n = 0; n < 100 && !w->rc; n++) {
        pattern(buf, n * len, len, w->id);
        w->rc = mfs_stripes_read(f.store, f.ino, n * len, len, have);
        if (!w->rc && memcmp(buf, have, len) != 0)
            w->rc = -EILSEQ;
    }
out:
    file_close(&f);
    free(buf);
    free(have);
    return NULL;
}

static void test_streams(void **state)
{
    struct env *e = *state;
    struct worker w[WRITERS];

    for (unsigned i = 0; i < WRITERS; i++)
        w[i] = (struct worker){.e = e, .id = i};
    run_all(w, WRITERS, stream);
    join_all(w, WRITERS);
}

/* Cuts beside a writer that goes on behind them. */
static void *cut_and_cut(void *arg)
{
    struct worker *w = arg;

    while (!atomic_load(w->stop))
        mfs_dirty_cut(w->f->d, 8 * STRIPE + rnd_below(&w->seed, 8 * STRIPE));
    return NULL;
}

static void test_cut_beside_writes(void **state)
{
    struct env *e = *state;
    static char buf[10 * STRIPE], want[8 * STRIPE];
    struct worker w;
    _Atomic bool stop = false;
    struct file f;

    file_open(&f, e->t.store, e->wb, mfs_ino_make(3, 9));
    w = (struct worker){.e = e, .f = &f, .stop = &stop, .seed = 4242};
    run_all(&w, 1, cut_and_cut);
    for (unsigned n = 0; n < 200; n++) {
        pattern(buf, 0, sizeof buf, n);
        assert_int_equal(mfs_dirty_write(f.d, 0, sizeof buf, buf, false), 0);
        if (n % 7 == 0)
            assert_int_equal(file_flush(&f), 0);
    }
    atomic_store(&stop, true);
    join_all(&w, 1);
    assert_int_equal(file_flush(&f), 0);
    pattern(want, 0, sizeof want, 199);
    assert_int_equal(mfs_stripes_read(f.store, f.ino, 0, sizeof want, buf), 0);
    assert_memory_equal(buf, want, sizeof want);
    file_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_file),          cmocka_unit_test(test_readers_see_writes),
        cmocka_unit_test(test_small_files),       cmocka_unit_test(test_streams),
        cmocka_unit_test(test_cut_beside_writes),
    };

    return cmocka_run_group_tests(tests, open_group, close_group);
}
