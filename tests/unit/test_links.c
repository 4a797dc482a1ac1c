/* Partitions that do not answer, or belong to a slow node, keep neither write-behind's senders nor
 * read-ahead's fetchers from the others (data/workers/links.h, data/workers/workers.h). The I/O
 * timeout is so long that nobody is freed by it; what is waited for comes from the others alone.
 * ctest: threaded */
#include "data_test.h"

#include <signal.h>

#include "cluster/placement.h"
#include "cluster/table.h"
#include "data/workers/links.h"

#define STRIPE  65536U
#define NPARTS  6U
#define THREADS 2U

struct env {
    struct redis_fixture *fixture;
    struct mfs_store *store;
    struct mfs_writeback *wb;
    struct mfs_readahead_pool *pool;
};

/* Each partition on a node of its own, or all on one. */
static void env_open(struct env *e, bool apart)
{
    struct redis_fixture_opts how = {.nparts = NPARTS, .stripe_size = STRIPE};
    struct mfs_store_opts opts = {.node = REDIS_FIXTURE_NODE, .io_timeout = 100 * MFS_SEC};
    struct mfs_writeback_opts wopts = {.threads = THREADS, .max_age = 100 * MFS_MSEC};
    struct mfs_readahead_opts ropts = {.threads = THREADS};
    struct mfs_table *table;

    assert_int_equal(redis_fixture_start(&e->fixture, &how), 0);
    table = redis_fixture_table(e->fixture);
    for (uint32_t i = 0; apart && i < NPARTS; i++)
        table->part[i].node = i;
    assert_int_equal(mfs_store_create(&e->store, table, &opts), 0);
    assert_int_equal(mfs_writeback_create(&e->wb, e->store, &wopts), 0);
    assert_int_equal(mfs_readahead_pool_create(&e->pool, e->store, &ropts), 0);
}

static void env_close(struct env *e)
{
    mfs_readahead_pool_destroy(e->pool);
    mfs_writeback_destroy(e->wb);
    mfs_store_destroy(e->store);
    redis_fixture_stop(e->fixture);
}

static void stop(struct env *e, uint32_t part, bool on)
{
    assert_int_equal(kill(redis_fixture_pid(e->fixture, part), on ? SIGSTOP : SIGCONT), 0);
}

static bool is_on(uint64_t ino, uint32_t stripe, uint32_t parts)
{
    return parts & 1U << mfs_placement_stripe(ino, stripe, NPARTS);
}

/* Writes `count` of the file's stripes that lie on these partitions (bits); returns the end. */
static uint64_t write_on(struct file *f, uint32_t parts, unsigned count)
{
    char buf[STRIPE];
    uint32_t n;

    for (n = 1; count; n++) {
        if (!is_on(f->ino, n, parts))
            continue;
        pattern(buf, (uint64_t)n * STRIPE, STRIPE, 1);
        assert_int_equal(mfs_dirty_write(f->d, (uint64_t)n * STRIPE, STRIPE, buf, false), 0);
        count--;
    }
    return (uint64_t)n * STRIPE;
}

static bool told(void *arg)
{
    return file_size(arg) > 0;
}

/* Nobody flushes: it is senders alone that store the other file, which is told when all of it is.
 */
static void check_writes(struct env *e, uint32_t stopped)
{
    struct file stuck, free_one;

    file_open(&stuck, e->store, e->wb, 1);
    file_open(&free_one, e->store, e->wb, 2);
    /* That the time which is usual is known. */
    write_on(&stuck, (1U << NPARTS) - 1, 24);
    assert_int_equal(file_flush(&stuck), 0);
    for (uint32_t i = 0; i < NPARTS; i++)
        if (stopped & 1U << i)
            stop(e, i, true);
    write_on(&stuck, stopped, 12);
    mfs_clock_sleep(300 * MFS_MSEC); /* so that the senders have that first */
    write_on(&free_one, ~stopped, 24);
    assert_true(wait_for(told, &free_one));
    for (uint32_t i = 0; i < NPARTS; i++)
        if (stopped & 1U << i)
            stop(e, i, false);
    assert_int_equal(file_flush(&stuck), 0);
    assert_int_equal(file_flush(&free_one), 0);
    file_close(&free_one);
    file_close(&stuck);
}

static void test_writes_apart(void **state)
{
    struct env e;

    (void)state;
    env_open(&e, true);
    check_writes(&e, 1U << 1 | 1U << 2);
    env_close(&e);
}

/* What hangs is one process, not the node: its link is there for the others. */
static void test_writes_together(void **state)
{
    struct env e;

    (void)state;
    env_open(&e, false);
    check_writes(&e, 1U << 1 | 1U << 2);
    env_close(&e);
}

struct reading {
    struct env *e;
    uint64_t bytes;
};

static bool has_come(void *arg)
{
    struct reading *r = arg;
    struct mfs_store_stats s;

    mfs_store_stats(r->e->store, &s);
    return s.bytes_in >= r->bytes;
}

/* Reads two small pieces at a stripe's begin: the next stripes are fetched in the background. */
static void start_reading(struct mfs_readahead *ra, uint32_t stripe, uint64_t size)
{
    char piece[100];

    assert_int_equal(
        mfs_readahead_read(ra, (uint64_t)stripe * STRIPE, sizeof piece, size, piece, NULL), 0);
    assert_int_equal(mfs_readahead_read(ra, (uint64_t)stripe * STRIPE + sizeof piece, sizeof piece,
                                        size, piece, NULL),
                     0);
}

/* A stripe that is not on a stopped partition, while the next one is on one of `next`. */
static uint32_t stripe_before(uint64_t ino, uint32_t stopped, uint32_t next)
{
    uint32_t n = 1;

    while (is_on(ino, n, stopped) || !is_on(ino, n + 1, next))
        n++;
    return n;
}

static void test_reads(void **state)
{
    uint32_t stopped = 0;
    struct mfs_readahead *stuck[THREADS], *ra;
    uint64_t size = 200 * (uint64_t)STRIPE;
    char *buf = calloc(1, size);
    struct mfs_store_stats s;
    struct reading r;
    int64_t alloc = 0;
    struct env e;

    (void)state;
    env_open(&e, true);
    for (uint64_t ino = 1; ino <= THREADS + 1; ino++)
        assert_int_equal(mfs_stripes_write(e.store, ino, 0, size, buf, &alloc), 0);
    /* One each: there is a connection to it, and no new one that would fail early. */
    for (uint32_t i = 0; i < THREADS; i++) {
        stop(&e, i, true);
        stopped |= 1U << i;
    }
    for (uint64_t i = 0; i < THREADS; i++) {
        assert_int_equal(mfs_readahead_create(&stuck[i], e.pool, i + 1), 0);
        start_reading(stuck[i], stripe_before(i + 1, stopped, 1U << i), size);
    }
    mfs_clock_sleep(300 * MFS_MSEC); /* so that the fetchers have that first */
    r = (struct reading){.e = &e};
    assert_int_equal(mfs_readahead_create(&ra, e.pool, THREADS + 1), 0);
    mfs_store_stats(e.store, &s);
    r.bytes = s.bytes_in + 2 * STRIPE; /* the stripe itself, and the next one */
    start_reading(ra, stripe_before(THREADS + 1, stopped, ~stopped), size);
    assert_true(wait_for(has_come, &r));
    for (uint32_t i = 0; i < THREADS; i++)
        stop(&e, i, false);
    mfs_readahead_destroy(ra);
    for (uint64_t i = 0; i < THREADS; i++)
        mfs_readahead_destroy(stuck[i]);
    env_close(&e);
    free(buf);
}

/* --- many readers at once --- */

#define READERS 12U
#define WHOLE   4U /* stripes that each reads in one go */

struct reader {
    pthread_t thread;
    struct env *e;
    uint64_t ino;
    int rc;
};

static void *read_whole(void *arg)
{
    struct reader *r = arg;
    size_t len = WHOLE * (size_t)STRIPE;
    char *have = malloc(len), *want = malloc(len);
    struct mfs_readahead *ra;

    r->rc = mfs_readahead_create(&ra, r->e->pool, r->ino);
    if (!r->rc)
        r->rc = mfs_readahead_read(ra, 0, len, len, have, NULL);
    pattern(want, 0, len, (unsigned)r->ino);
    if (!r->rc && memcmp(have, want, len) != 0)
        r->rc = -EILSEQ;
    mfs_readahead_destroy(ra);
    free(have);
    free(want);
    return NULL;
}

static void write_whole(struct env *e, uint64_t ino)
{
    size_t len = WHOLE * (size_t)STRIPE;
    char *buf = malloc(len);
    int64_t alloc = 0;

    pattern(buf, 0, len, (unsigned)ino);
    assert_int_equal(mfs_stripes_write(e->store, ino, 0, len, buf, &alloc), 0);
    free(buf);
}

/* Commands so far, beyond those of `before`. */
static uint64_t asked(struct env *e, uint64_t before)
{
    struct mfs_store_stats s;

    mfs_store_stats(e->store, &s);
    return s.commands - before;
}

static bool more_than_links_carry(void *arg)
{
    struct reading *r = arg;

    return asked(r->e, r->bytes) > 2 * (uint64_t)NPARTS;
}

/* What readers wait for is asked for as links have room, or it would be lost where all of it meets;
 * but for no longer than a moment, as a process that hangs leaves its link none. */
static void test_front(void **state)
{
    struct reader reader[READERS];
    struct reading r;
    uint64_t most = 0;
    int64_t until;
    struct env e;

    (void)state;
    env_open(&e, true);
    for (uint64_t i = 0; i < READERS; i++)
        write_whole(&e, i + 1);
    r = (struct reading){&e, asked(&e, 0)};
    for (uint32_t i = 0; i < NPARTS; i++)
        stop(&e, i, true);
    until = mfs_clock_mono() + 800 * MFS_MSEC;
    for (uint64_t i = 0; i < READERS; i++) {
        reader[i] = (struct reader){.e = &e, .ino = i + 1};
        assert_int_equal(pthread_create(&reader[i].thread, NULL, read_whole, &reader[i]), 0);
    }
    for (uint64_t n = 0; mfs_clock_mono() < until; mfs_clock_sleep(5 * MFS_MSEC)) {
        n = asked(&e, r.bytes);
        most = mfs_clock_mono() < until ? n : most;
    }
    assert_true(most <= 2 * NPARTS); /* of each link nothing is known: two */
    assert_true(wait_for(more_than_links_carry, &r));
    for (uint32_t i = 0; i < NPARTS; i++)
        stop(&e, i, false);
    for (unsigned i = 0; i < READERS; i++) {
        assert_int_equal(pthread_join(reader[i].thread, NULL), 0);
        assert_int_equal(reader[i].rc, 0);
    }
    assert_int_equal(asked(&e, r.bytes), READERS * WHOLE); /* none twice */
    env_close(&e);
}

/* --- the accounts --- */

static void test_accounts(void **state)
{
    struct mfs_links links;
    struct mfs_table *table;
    struct env e;

    (void)state;
    env_open(&e, false);
    assert_int_equal(mfs_links_init(&links, e.store, THREADS), 0);
    /* Two stripes fill a link of which nothing is known. */
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(mfs_links_room(&links, i, MFS_SEC));
        mfs_links_begin(&links, i, STRIPE, MFS_SEC);
    }
    assert_true(mfs_links_part_room(&links, 0));
    assert_false(mfs_links_room(&links, 2, 2 * MFS_SEC));
    /* What has not come back for long is stuck, and leaves its place to others. */
    assert_true(mfs_links_room(&links, 2, 10 * MFS_SEC));
    mfs_links_begin(&links, 0, STRIPE, 10 * MFS_SEC);
    assert_false(mfs_links_room(&links, 0, 10 * MFS_SEC)); /* two are enough for one process */
    mfs_links_begin(&links, 2, STRIPE, 10 * MFS_SEC);
    /* One comes back after all: its partition counts again. */
    mfs_links_end(&links, 0, STRIPE, 10 * MFS_SEC);
    assert_int_equal(links.link[0].in_flight, 2 * STRIPE);
    /* A partition moves, and what is on the way with it. */
    table = redis_fixture_table(e.fixture);
    table->epoch++;
    table->part[2].node = 7;
    assert_int_equal(mfs_store_set_table(e.store, table), 0);
    mfs_links_follow(&links);
    assert_int_equal(links.part[2].link, 2);
    assert_int_equal(links.link[2].in_flight, STRIPE);
    assert_int_equal(links.link[0].in_flight, STRIPE);
    mfs_links_end(&links, 2, STRIPE, 11 * MFS_SEC);
    mfs_links_end(&links, 0, STRIPE, 11 * MFS_SEC);
    mfs_links_end(&links, 1, STRIPE, 11 * MFS_SEC);
    assert_int_equal(links.in_flight, 0);
    assert_int_equal(links.link[0].in_flight, 0);
    assert_int_equal(links.link[2].in_flight, 0);
    mfs_links_fini(&links);
    env_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writes_apart), cmocka_unit_test(test_writes_together),
        cmocka_unit_test(test_reads),        cmocka_unit_test(test_front),
        cmocka_unit_test(test_accounts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
