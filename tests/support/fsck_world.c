#include "fsck_world.h"

#include "base/clock.h"
#include "base/log.h"
#include "data/stripes/stripes.h"
#include "meta/deferred/deferred.h"
#include "meta/ops/ops.h"

struct meta_client fsck_client;
struct fsck_tree fsck_tree;
char fsck_content[FSCK_CONTENT];

static struct redis_fixture *redis;

static void store(uint64_t ino, size_t len)
{
    struct mfs_range stored = {0, len};
    struct mfs_commit c = {.end = len, .stored = &stored, .nstored = 1, .mtime = mfs_clock_real()};
    struct mfs_attr attr;

    assert_int_equal(mfs_stripes_write(fsck_client.store, ino, 0, len, fsck_content, &(int64_t){0}),
                     0);
    assert_int_equal(mfs_meta_commit(fsck_client.meta, ino, &c, NULL, &attr), 0);
}

void fsck_check_content(uint64_t ino, size_t len)
{
    static char buf[sizeof fsck_content];

    memset(buf, 0, sizeof buf);
    assert_int_equal(mfs_stripes_read(fsck_client.store, ino, 0, len, buf), 0);
    assert_memory_equal(buf, fsck_content, len);
}

void fsck_know_everywhere(uint64_t dir)
{
    for (uint32_t part = 0; part < NPARTS; part++)
        assert_int_equal(mfs_meta_spread(fsck_client.meta, dir, part), 0);
}

void fsck_world_flush(void)
{
    mfs_parents_flush(fsck_client.meta);
    mfs_settles_flush(fsck_client.meta);
    mfs_link_counts_flush(fsck_client.meta);
    assert_int_equal(mfs_store_drain(fsck_client.store, 5 * MFS_SEC), 0);
}

static void build(void)
{
    struct mfs_attr attr;

    for (size_t i = 0; i < sizeof fsck_content; i++)
        fsck_content[i] = (char)('a' + i % 23);
    assert_int_equal(meta_client_mkdir(&fsck_client, ROOT, "d", &fsck_tree.d), 0);
    assert_int_equal(meta_client_mkdir(&fsck_client, ROOT, "b", &fsck_tree.b), 0);
    assert_int_equal(meta_client_file(&fsck_client, ROOT, "n", &fsck_tree.n), 0);
    assert_int_equal(meta_client_file(&fsck_client, fsck_tree.b, "z", &fsck_tree.z), 0);
    assert_int_equal(meta_client_file(&fsck_client, fsck_tree.d, "f", &fsck_tree.f), 0);
    assert_int_equal(meta_client_file(&fsck_client, fsck_tree.d, "g", &fsck_tree.g), 0);
    assert_int_equal(meta_client_mkdir(&fsck_client, fsck_tree.d, "e", &fsck_tree.e), 0);
    assert_int_equal(meta_client_mkdir(&fsck_client, fsck_tree.d, "x", &fsck_tree.x), 0);
    assert_int_equal(meta_client_file(&fsck_client, fsck_tree.x, "y", &fsck_tree.y), 0);
    assert_int_equal(mfs_meta_link(fsck_client.meta, fsck_tree.g, fsck_tree.d, "h", &attr), 0);
    fsck_know_everywhere(ROOT);
    fsck_know_everywhere(fsck_tree.d);
    store(fsck_tree.n, 2 * STRIPE);
    store(fsck_tree.f, 3 * STRIPE);
    fsck_world_flush();
}

static int setup(const char *last_number)
{
    if (redis_fixture_reset(redis) || meta_client_start(&fsck_client, redis, 0))
        return -1;
    for (uint32_t part = 0; last_number && part < NPARTS; part++)
        RAW(part, TEXT("SET"), TEXT("#seq"), TEXT(last_number));
    build();
    return 0;
}

int fsck_world_setup(void **state)
{
    (void)state;
    return setup(NULL);
}

int fsck_world_setup_large(void **state)
{
    (void)state;
    return setup("137438953470"); /* 2^37 - 2 */
}

int fsck_world_teardown(void **state)
{
    (void)state;
    meta_client_stop(&fsck_client);
    return 0;
}

int fsck_redis_start(void **state)
{
    (void)state;
    mfs_log_set_level(MFS_LOG_ERROR);
    return redis_fixture_start(
        &redis, &(struct redis_fixture_opts){.nparts = NPARTS, .stripe_size = STRIPE});
}

void fsck_world_order(const char *command)
{
    for (uint32_t part = 0; part < NPARTS; part++)
        assert_int_equal(redis_fixture_admin(redis, part, command), 0);
}

int fsck_redis_stop(void **state)
{
    (void)state;
    redis_fixture_stop(redis);
    return 0;
}
