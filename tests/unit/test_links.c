/* Partitions that do not answer, or belong to a slow node, do not keep write-behind's senders
 * from the others (data/links.h, data/crew.h). The I/O timeout is so long
 * that nobody is freed by it; what is waited for comes from the others alone. ctest: threaded */
#include "data_test.h"

#include <signal.h>

#include "cluster/placement.h"
#include "cluster/table.h"
#include "data/links.h"

#define STRIPE  65536U
#define NPARTS  6U
#define THREADS 2U

struct env {
    struct redis_fixture *fixture;
    struct mfs_store *store;
    struct mfs_writeback *wb;
};

/* Each partition on a node of its own, or all on one. */
static void env_open(struct env *e, bool apart)
{
    struct redis_fixture_opts how = {.nparts = NPARTS, .stripe_size = STRIPE};
    struct mfs_store_opts opts = {.node = REDIS_FIXTURE_NODE, .io_timeout = 100 * MFS_SEC};
    struct mfs_writeback_opts wopts = {.threads = THREADS, .max_age = 100 * MFS_MSEC};
    struct mfs_table *table;

    assert_int_equal(redis_fixture_start(&e->fixture, &how), 0);
    table = redis_fixture_table(e->fixture);
    for (uint32_t i = 0; apart && i < NPARTS; i++)
        table->part[i].node = i;
    assert_int_equal(mfs_store_create(&e->store, table, &opts), 0);
    assert_int_equal(mfs_writeback_create(&e->wb, e->store, &wopts), 0);
}

static void env_close(struct env *e)
{
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
        assert_int_equal(mfs_dirty_write(f->d, (uint64_t)n * STRIPE, STRIPE, buf), 0);
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
    assert_int_equal(mfs_dirty_flush(stuck.d), 0);
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
    assert_int_equal(mfs_dirty_flush(stuck.d), 0);
    assert_int_equal(mfs_dirty_flush(free_one.d), 0);
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

/* --- the accounts --- */

static void test_accounts(void **state)
{
    struct mfs_links links;
    struct mfs_table *table;
    struct env e;

    (void)state;
    env_open(&e, false);
    assert_int_equal(mfs_links_init(&links, e.store, THREADS), 0);
    /* Four stripes fill a link of which nothing is known, two a partition. */
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(mfs_links_room(&links, i / 2, MFS_SEC));
        mfs_links_take(&links, i / 2, STRIPE, MFS_SEC);
    }
    assert_false(mfs_links_part_room(&links, 0));
    assert_true(mfs_links_part_room(&links, 2));
    assert_false(mfs_links_room(&links, 2, 2 * MFS_SEC));
    /* What has not come back for long is stuck, and leaves its place to others. */
    assert_true(mfs_links_room(&links, 2, 10 * MFS_SEC));
    assert_false(mfs_links_room(&links, 0, 10 * MFS_SEC));
    mfs_links_take(&links, 2, STRIPE, 10 * MFS_SEC);
    /* One comes back after all: its partition counts again. */
    mfs_links_land(&links, 0, STRIPE, 10 * MFS_SEC);
    assert_int_equal(links.link[0].flying, 2 * STRIPE);
    /* A partition moves, and what is on the way with it. */
    table = redis_fixture_table(e.fixture);
    table->epoch++;
    table->part[2].node = 7;
    assert_int_equal(mfs_store_set_table(e.store, table), 0);
    mfs_links_follow(&links);
    assert_int_equal(links.part[2].link, 2);
    assert_int_equal(links.link[2].flying, STRIPE);
    assert_int_equal(links.link[0].flying, STRIPE);
    mfs_links_land(&links, 2, STRIPE, 11 * MFS_SEC);
    mfs_links_land(&links, 0, STRIPE, 11 * MFS_SEC);
    mfs_links_land(&links, 1, STRIPE, 11 * MFS_SEC);
    mfs_links_land(&links, 1, STRIPE, 11 * MFS_SEC);
    assert_int_equal(links.flying, 0);
    assert_int_equal(links.link[0].flying, 0);
    assert_int_equal(links.link[2].flying, 0);
    mfs_links_fini(&links);
    env_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writes_apart),
        cmocka_unit_test(test_writes_together),
        cmocka_unit_test(test_accounts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
