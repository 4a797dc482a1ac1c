/* Write-behind and read-ahead together against a plain buffer: random writes, reads, flushes, cuts
 * and holes on one file, with chunks and commits that age while that goes on. STEPS and SEED in the
 * environment change its length and repeat a run. ctest: long=80 */
#include "data_test.h"

#define STRIPE 65536U
#define SPACE  (24U * STRIPE)

struct model {
    struct file f;
    struct mfs_readahead *ra;
    uint64_t seed;
    char *want, *have, *spare;
    uint64_t size;     /* as the program sees it */
    uint64_t data_end; /* as committed, or more */
};

static void step_write(struct model *m)
{
    size_t len = 1 + rnd_below(&m->seed, rnd_below(&m->seed, 4) ? 6000 : 4 * STRIPE);
    uint64_t off = rnd_below(&m->seed, SPACE - len);

    if (rnd_below(&m->seed, 3) == 0 && m->size + len < SPACE)
        off = m->size;
    if (rnd_below(&m->seed, 4) == 0)
        off -= off % 4096;
    rnd_fill(&m->seed, m->have, len < 64 ? len : 64);
    for (size_t i = 64; i < len; i++)
        m->have[i] = (char)(m->have[i - 64] + 1);
    memcpy(m->want + off, m->have, len);
    assert_int_equal(mfs_dirty_write(m->f.d, off, len, m->have, false), 0);
    m->size = off + len > m->size ? off + len : m->size;
}

static void step_read(struct model *m)
{
    uint64_t off = m->size ? rnd_below(&m->seed, m->size) : 0;
    size_t len = 1 + rnd_below(&m->seed, rnd_below(&m->seed, 2) ? 4 * STRIPE : 4096);
    unsigned reads = rnd_below(&m->seed, 4) ? 1 : 12;

    for (; reads && off < m->size; reads--) {
        struct mfs_view view = {0};
        bool by_view = rnd_below(&m->seed, 2);

        len = len < m->size - off ? len : m->size - off;
        memset(m->have, 0x55, len);
        assert_int_equal(mfs_readahead_read_over(m->ra, m->f.d, NULL, NULL, off, len, m->size,
                                                 by_view ? m->spare : m->have,
                                                 by_view ? &view : NULL),
                         0);
        if (by_view)
            view_copy(&view, len, m->have);
        mfs_view_release(&view);
        assert_memory_equal(m->have, m->want + off, len);
        off += len;
    }
}

/* As a truncate does it: what is dirty first, then the stripes, then the attributes. */
static void step_truncate(struct model *m)
{
    uint64_t size = rnd_below(&m->seed, SPACE), end = 0;
    struct timespec mtime;
    int64_t alloc = 0;

    if (mfs_dirty_attr(m->f.d, &end, NULL, &mtime) && end > m->data_end)
        m->data_end = end;
    pthread_mutex_lock(&m->f.lock);
    m->data_end = m->f.size > m->data_end ? m->f.size : m->data_end;
    pthread_mutex_unlock(&m->f.lock);
    mfs_dirty_cut(m->f.d, size);
    mfs_readahead_drop(m->ra, 0, UINT64_MAX);
    assert_int_equal(mfs_stripes_trim(m->f.store, m->f.ino, size, m->data_end, true, &alloc), 0);
    pthread_mutex_lock(&m->f.lock);
    m->f.size = size;
    m->f.alloc += alloc;
    pthread_mutex_unlock(&m->f.lock);
    m->data_end = m->data_end < size ? m->data_end : size;
    memset(m->want + size, 0, SPACE - size);
    m->size = size;
}

static void step_punch(struct model *m)
{
    uint64_t off = rnd_below(&m->seed, SPACE), len = 1 + rnd_below(&m->seed, 3 * STRIPE);
    int64_t alloc = 0;

    len = len < SPACE - off ? len : SPACE - off;
    mfs_dirty_store_range(m->f.d, off, len);
    assert_int_equal(mfs_stripes_punch(m->f.store, m->f.ino, off, len, SPACE, &alloc), 0);
    mfs_readahead_drop(m->ra, off, len);
    memset(m->want + off, 0, len);
    pthread_mutex_lock(&m->f.lock);
    m->f.alloc += alloc;
    pthread_mutex_unlock(&m->f.lock);
}

static void step_flush(struct model *m)
{
    assert_int_equal(file_flush(&m->f), 0);
    assert_false(mfs_dirty_any(m->f.d));
    assert_int_equal(file_size(&m->f), m->size);
}

static void check_all(struct model *m)
{
    step_flush(m);
    assert_int_equal(mfs_stripes_read(m->f.store, m->f.ino, 0, SPACE, m->have), 0);
    assert_memory_equal(m->have, m->want, SPACE);
    assert_int_equal(m->f.alloc, stored_bytes(m->f.store, m->f.ino, SPACE));
}

static void step(struct model *m)
{
    uint64_t dice = rnd_below(&m->seed, 100);

    if (dice < 60)
        step_write(m);
    else if (dice < 85)
        step_read(m);
    else if (dice < 90)
        step_flush(m);
    else if (dice < 95)
        step_truncate(m);
    else
        step_punch(m);
}

/* A sanitizer of threads sees in a quarter of them what the threads do, and is slow. */
#ifdef __SANITIZE_THREAD__
#define STEPS 5000
#else
#define STEPS 20000
#endif

static void run(uint32_t stripe_size, uint64_t ino, unsigned long n)
{
    struct redis_fixture_opts how = {.nparts = 3, .stripe_size = stripe_size};
    struct mfs_writeback_opts wopts = {
        .max_bytes = 2U << 20, .max_file_bytes = 1U << 20, .max_age = 4 * MFS_MSEC};
    struct mfs_readahead_opts ropts = {.max_bytes = 1U << 20, .window = 4};
    struct mfs_readahead_pool *pool;
    struct mfs_writeback *wb;
    struct model m = {.seed = rnd_seed()};
    struct data_test t;

    data_test_open(&t, &how, 10 * MFS_SEC);
    assert_int_equal(mfs_writeback_create(&wb, t.store, &wopts), 0);
    assert_int_equal(mfs_readahead_pool_create(&pool, t.store, &ropts), 0);
    m.want = calloc(1, SPACE);
    m.have = malloc(SPACE);
    m.spare = malloc(SPACE);
    file_open(&m.f, t.store, wb, ino);
    assert_int_equal(mfs_readahead_create(&m.ra, pool, m.f.ino), 0);
    for (unsigned long i = 0; i < n; i++) {
        step(&m);
        if (i % 500 == 499)
            check_all(&m);
    }
    check_all(&m);
    mfs_readahead_destroy(m.ra);
    file_close(&m.f);
    mfs_readahead_pool_destroy(pool);
    mfs_writeback_destroy(wb);
    data_test_close(&t);
    free(m.want);
    free(m.have);
    free(m.spare);
}

static void test_model(void **state)
{
    (void)state;
    run(STRIPE, mfs_ino_make(2, 5), steps(STEPS));
}

/* Of 124 KiB, where the deployment's have 508 KiB. */
static void test_model_of_small_stripes(void **state)
{
    (void)state;
    run(8 * STRIPE - 4 * 4096, mfs_ino_make(2, 5) | 1ULL << MFS_INO_STRIPE_AT, steps(STEPS / 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_model),
                                       cmocka_unit_test(test_model_of_small_stripes)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
