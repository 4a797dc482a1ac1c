/* Stripes on real partitions against a plain buffer: reads, writes, cuts, holes, SEEK_DATA,
 * SEEK_HOLE; what they say of the bytes stored; files of a size that can't be enumerated; full
 * memory. */
#include "data_test.h"

#include <unistd.h>

#include "store/args.h"
#include "store/keys.h"
#include "store/reply.h"

#include "cluster/placement.h"
#include "cluster/table.h"

#define STRIPE 65536U
#define SPACE  (20U * STRIPE)
#define NPARTS 3U

static int open_group(void **state)
{
    struct redis_fixture_opts how = {.nparts = NPARTS, .stripe_size = STRIPE};
    struct data_test *t = calloc(1, sizeof *t);

    data_test_open(t, &how, 10 * MFS_SEC);
    *state = t;
    return 0;
}

static int close_group(void **state)
{
    data_test_close(*state);
    free(*state);
    return 0;
}

/* How many of the first n stripes there are, be they empty or not. */
static int64_t keys(struct mfs_store *store, uint64_t ino, uint32_t n)
{
    int64_t count = 0;

    for (uint32_t i = 0; i < n; i++) {
        char key[MFS_KEY_STRIPE_LEN];
        struct mfs_args a;
        struct mfs_cmd cmd;

        mfs_key_stripe(key, ino, i);
        mfs_args_init(&a, "EXISTS");
        mfs_args_bin(&a, key, sizeof key);
        cmd = mfs_args_cmd(&a, mfs_placement_stripe(ino, i, mfs_store_nparts(store)));
        assert_int_equal(mfs_store_exec(store, &cmd, 1), 0);
        count += mfs_reply_int(cmd.reply);
        mfs_cmds_fini(&cmd, 1);
    }
    return count;
}

struct model {
    struct mfs_store *store;
    uint64_t ino, seed;
    char *want, *have;
    uint64_t end; /* of data */
    int64_t alloc;
};

static void model_write(struct model *m)
{
    size_t len = 1 + rnd_below(&m->seed, rnd_below(&m->seed, 3) ? 3 * STRIPE : 3000);
    uint64_t off = rnd_below(&m->seed, SPACE - len);

    if (rnd_below(&m->seed, 4) == 0)
        off -= off % STRIPE;
    rnd_fill(&m->seed, m->have, len);
    memcpy(m->want + off, m->have, len);
    assert_int_equal(mfs_stripes_write(m->store, m->ino, off, len, m->have, &m->alloc), 0);
    m->end = off + len > m->end ? off + len : m->end;
}

static void model_trim(struct model *m)
{
    uint64_t from = rnd_below(&m->seed, SPACE);

    if (rnd_below(&m->seed, 3) == 0)
        from -= from % STRIPE;
    assert_int_equal(mfs_stripes_trim(m->store, m->ino, from, m->end, true, &m->alloc), 0);
    if (from < m->end) {
        memset(m->want + from, 0, SPACE - from);
        m->end = from;
    }
}

static void model_punch(struct model *m)
{
    uint64_t off = rnd_below(&m->seed, SPACE), len = 1 + rnd_below(&m->seed, 4 * STRIPE);

    if (rnd_below(&m->seed, 4) == 0)
        off -= off % STRIPE;
    if (rnd_below(&m->seed, 4) == 0)
        len += STRIPE - (off + len) % STRIPE;
    assert_int_equal(mfs_stripes_punch(m->store, m->ino, off, len, m->end, &m->alloc), 0);
    if (off < SPACE)
        memset(m->want + off, 0, len < SPACE - off ? len : SPACE - off);
}

static void model_read(struct model *m)
{
    size_t len = 1 + rnd_below(&m->seed, 3 * STRIPE);
    uint64_t off = rnd_below(&m->seed, SPACE - len);

    memset(m->have, 0x55, len);
    assert_int_equal(mfs_stripes_read(m->store, m->ino, off, len, m->have), 0);
    assert_memory_equal(m->have, m->want + off, len);
}

#define BLOCK 4096U

static uint64_t end_of_block(uint64_t at)
{
    return (at + BLOCK - 1) / BLOCK * BLOCK;
}

/* Data may be zeros, holes must be, and begin with a block or where they were asked for. */
static void model_seek(struct model *m)
{
    uint64_t off = rnd_below(&m->seed, SPACE), at = 0;
    int rc = mfs_stripes_seek(m->store, m->ino, off, SEEK_DATA, SPACE, m->end, &at);

    if (rc)
        assert_int_equal(rc, -ENXIO);
    else
        assert_true(at >= off && at < end_of_block(m->end));
    for (uint64_t i = off; i < (rc ? SPACE : at); i++)
        assert_int_equal(m->want[i], 0);
    assert_int_equal(mfs_stripes_seek(m->store, m->ino, off, SEEK_HOLE, SPACE, m->end, &at), 0);
    assert_true(at >= off && at <= SPACE);
    assert_true(at == off || at % BLOCK == 0);
    if (at < SPACE)
        assert_int_equal(m->want[at], 0);
}

static void run_model(struct data_test *t, uint64_t ino, unsigned long n)
{
    struct model m = {.store = t->store, .ino = ino, .seed = rnd_seed()};

    m.want = calloc(1, SPACE);
    m.have = malloc(SPACE);
    for (unsigned long i = 0; i < n; i++) {
        switch (rnd_below(&m.seed, 10)) {
        case 0:
            model_trim(&m);
            break;
        case 1:
            model_punch(&m);
            break;
        case 2:
            model_seek(&m);
            break;
        case 3:
        case 4:
        case 5:
            model_write(&m);
            break;
        default:
            model_read(&m);
            break;
        }
        if (i % 50 == 0)
            assert_int_equal(m.alloc, stored_bytes(t->store, m.ino, SPACE));
    }
    assert_int_equal(mfs_stripes_trim(t->store, m.ino, 0, m.end, true, &m.alloc), 0);
    assert_int_equal(m.alloc, 0);
    free(m.want);
    free(m.have);
}

static void test_model(void **state)
{
    run_model(*state, mfs_ino_make(1, 77), steps(4000));
}

/* A file whose stripes are not the deployment's. */
static void test_model_of_other_stripes(void **state)
{
    run_model(*state, mfs_ino_make(1, 77) | 1ULL << MFS_INO_STRIPE_AT, steps(2000));
}

static void test_trim_leaves_first(void **state)
{
    struct data_test *t = *state;
    static char buf[3 * STRIPE];
    uint64_t ino = 4711;
    int64_t alloc = 0;

    pattern(buf, 0, sizeof buf, 1);
    assert_int_equal(mfs_stripes_write(t->store, ino, 0, sizeof buf, buf, &alloc), 0);
    assert_int_equal(alloc, sizeof buf);
    assert_int_equal(mfs_stripes_trim(t->store, ino, 100, sizeof buf, false, &alloc), 0);
    assert_int_equal(alloc, STRIPE);
    assert_int_equal(mfs_stripes_trim(t->store, ino, 100, sizeof buf, true, NULL), 0);
    assert_int_equal(stored_bytes(t->store, ino, sizeof buf), 100);
    assert_int_equal(mfs_stripes_trim(t->store, ino, 0, sizeof buf, true, NULL), 0);
    assert_int_equal(stored_bytes(t->store, ino, sizeof buf), 0);
}

/* Bytes of the file's stripes: a digit for each part of `part` bytes of them. */
static void check_parts(struct data_test *t, uint64_t ino, size_t part, const char *digits)
{
    static char buf[STRIPE];
    size_t n = strlen(digits) * part;

    assert_int_equal(mfs_stripes_read(t->store, ino, 0, n, buf), 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(buf[i], digits[i / part] == '0' ? 0 : digits[i / part]);
}

/* Behind the end of data that is known there may be what another client has stored: it stays, but
 * what is before it goes, and with it the memory when nothing is behind it. */
static void test_punch_up_to_the_end(void **state)
{
    struct data_test *t = *state;
    static const uint64_t lengths[] = {50, 150, STRIPE - 50, 10 * STRIPE};
    static char buf[STRIPE + 200];
    uint64_t ino = 4713;
    int64_t alloc = 0;

    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        memset(buf, '1', 100);
        memset(buf + 100, '2', 100);
        assert_int_equal(mfs_stripes_write(t->store, ino, 0, 200, buf, &alloc), 0);
        assert_int_equal(mfs_stripes_punch(t->store, ino, 50, lengths[i], 100, &alloc), 0);
        check_parts(t, ino, 50, "10220");
        assert_int_equal(alloc, 200);
        assert_int_equal(mfs_stripes_punch(t->store, ino, 50, lengths[i] + 100, 200, &alloc), 0);
        check_parts(t, ino, 50, "10000");
        assert_int_equal(alloc, 50);
        assert_int_equal(stored_bytes(t->store, ino, STRIPE), 50);
    }
    assert_int_equal(mfs_stripes_write(t->store, ino, 0, sizeof buf, buf, &alloc), 0);
    assert_int_equal(mfs_stripes_punch(t->store, ino, 0, 2 * STRIPE, sizeof buf, &alloc), 0);
    assert_int_equal(alloc, 0);
    assert_int_equal(stored_bytes(t->store, ino, 2 * STRIPE), 0);
    assert_int_equal(keys(t->store, ino, 2), 0);
}

/* Few stripes far apart in a file whose stripes are too many to be named; the inode number has
 * bytes that mean something in patterns. */
static void test_huge(void **state)
{
    struct data_test *t = *state;
    uint64_t inos[] = {0x202a3f5b5dULL, 0x202a3f5b5cULL}; /* " *?[]" and " *?[\" */
    uint64_t end = MFS_FILE_SIZE_MAX(STRIPE), at;
    uint64_t offs[] = {5, 1ULL << 33, (1ULL << 47) + 3, end - 10};
    int64_t alloc[2] = {0, 0}, start;
    char c;

    for (unsigned f = 0; f < 2; f++)
        for (unsigned i = 0; i < 4; i++)
            assert_int_equal(
                mfs_stripes_write(t->store, inos[f], offs[i], 10, "0123456789", &alloc[f]), 0);
    start = mfs_clock_mono();
    assert_int_equal(mfs_stripes_seek(t->store, inos[0], 5000, SEEK_DATA, end, end, &at), 0);
    assert_int_equal(at, offs[1] / STRIPE * STRIPE);
    assert_int_equal(mfs_stripes_seek(t->store, inos[0], offs[1] + 3, SEEK_HOLE, end, end, &at), 0);
    assert_int_equal(at, end_of_block(offs[1] + 10));
    assert_int_equal(mfs_stripes_punch(t->store, inos[0], 1 << 20, 1ULL << 40, end, &alloc[0]), 0);
    assert_int_equal(mfs_stripes_read(t->store, inos[0], offs[1], 1, &c), 0);
    assert_int_equal(c, 0);
    assert_int_equal(mfs_stripes_read(t->store, inos[0], offs[2], 1, &c), 0);
    assert_int_equal(c, '0');
    assert_int_equal(mfs_stripes_trim(t->store, inos[0], 7, end, true, &alloc[0]), 0);
    assert_int_equal(alloc[0], 7);
    assert_true(mfs_clock_mono() - start < 5 * MFS_SEC);
    assert_int_equal(mfs_stripes_read(t->store, inos[1], offs[2], 1, &c), 0);
    assert_int_equal(c, '0'); /* the other file is untouched */
    assert_int_equal(mfs_stripes_trim(t->store, inos[1], 0, end, true, &alloc[1]), 0);
    assert_int_equal(alloc[1], 0);
}

static int64_t seek_in(struct data_test *t, uint64_t ino, uint64_t off, int whence, uint64_t size,
                       uint64_t data_end)
{
    uint64_t at = 0;
    int rc = mfs_stripes_seek(t->store, ino, off, whence, size, data_end, &at);

    return rc ? rc : (int64_t)at;
}

/* What follows the last byte in its block is data, up to the end of the file. */
static void test_seek_in_blocks(void **state)
{
    struct data_test *t = *state;
    uint64_t ino = 4712, size = 2 * STRIPE;
    uint64_t end = BLOCK + 12; /* of data */
    int64_t alloc = 0;

    assert_int_equal(mfs_stripes_write(t->store, ino, BLOCK, 12, "twelve bytes", &alloc), 0);
    assert_int_equal(seek_in(t, ino, 0, SEEK_HOLE, size, end), 2 * BLOCK);
    assert_int_equal(seek_in(t, ino, 2 * BLOCK - 1, SEEK_DATA, size, end), 2 * BLOCK - 1);
    assert_int_equal(seek_in(t, ino, 2 * BLOCK - 1, SEEK_HOLE, size, end), 2 * BLOCK);
    assert_int_equal(seek_in(t, ino, 2 * BLOCK, SEEK_DATA, size, end), -ENXIO);
    assert_int_equal(seek_in(t, ino, 2 * BLOCK, SEEK_HOLE, size, end), 2 * BLOCK);
    /* The file ends in the block. */
    assert_int_equal(seek_in(t, ino, 0, SEEK_HOLE, BLOCK + 100, end), BLOCK + 100);
    assert_int_equal(seek_in(t, ino, BLOCK + 50, SEEK_DATA, BLOCK + 100, end), BLOCK + 50);
    assert_int_equal(seek_in(t, ino, 0, SEEK_HOLE, BLOCK + 5, end), BLOCK + 5);
    /* The block of the last byte of a stripe is the stripe's last. */
    assert_int_equal(mfs_stripes_write(t->store, ino, STRIPE - 1, 1, "x", &alloc), 0);
    assert_int_equal(seek_in(t, ino, 0, SEEK_HOLE, size, STRIPE), STRIPE);
    assert_int_equal(seek_in(t, ino, STRIPE, SEEK_DATA, size, STRIPE), -ENXIO);
    assert_int_equal(mfs_stripes_trim(t->store, ino, 0, STRIPE, true, &alloc), 0);
    assert_int_equal(seek_in(t, ino, 0, SEEK_DATA, size, 1), -ENXIO); /* the bound is none */
    assert_int_equal(seek_in(t, ino, 0, SEEK_HOLE, size, 1), 0);
}

/* 100 GiB in the default stripe size are 10^5 stripes. */
static void test_sparse_is_quick(void **state)
{
    struct data_test *t = *state;
    uint64_t end = 100000ULL * STRIPE;
    int64_t start, alloc = 0;

    for (unsigned i = 0; i < 5000; i++)
        assert_int_equal(
            mfs_stripes_write(t->store, 99, (uint64_t)i * 20 * STRIPE, 3, "abc", &alloc), 0);
    start = mfs_clock_mono();
    assert_int_equal(mfs_stripes_trim(t->store, 99, 0, end, true, &alloc), 0);
    print_message("trim of 100000 possible stripes, 5000 there: %lld ms\n",
                  (long long)((mfs_clock_mono() - start) / MFS_MSEC));
    assert_int_equal(alloc, 0);
}

/* Clients have no right to ask for that, so the test gives it to them. */
static int64_t memory_usage(struct data_test *t, uint64_t ino, uint32_t stripe)
{
    uint32_t part = mfs_placement_stripe(ino, stripe, mfs_store_nparts(t->store));
    char key[MFS_KEY_STRIPE_LEN];
    struct mfs_args a;
    struct mfs_cmd cmd;
    int64_t used;

    mfs_key_stripe(key, ino, stripe);
    mfs_args_init(&a, "MEMORY");
    mfs_args_str(&a, "USAGE");
    mfs_args_bin(&a, key, sizeof key);
    cmd = mfs_args_cmd(&a, part);
    assert_int_equal(
        redis_fixture_admin(t->fixture, part, "ACL SETUSER " MFS_REDIS_USER " +memory|usage"), 0);
    assert_int_equal(mfs_store_exec(t->store, &cmd, 1), 0);
    used = mfs_reply_int(cmd.reply);
    mfs_cmds_fini(&cmd, 1);
    return used;
}

/* Values must not keep the room that redis adds when they grow step by step. */
static void test_no_spare_room(void **state)
{
    struct data_test *t = *state;
    static char buf[STRIPE];
    int64_t alloc = 0;

    pattern(buf, 0, sizeof buf, 2);
    for (unsigned off = 0; off < STRIPE; off += 20480)
        assert_int_equal(mfs_stripes_write(t->store, 5, off,
                                           STRIPE - off < 20480 ? STRIPE - off : 20480, buf + off,
                                           &alloc),
                         0);
    assert_int_equal(mfs_store_drain(t->store, 5 * MFS_SEC), 0);
    assert_int_equal(alloc, STRIPE);
    assert_true(memory_usage(t, 5, 0) < STRIPE * 5 / 4 + 200);
    assert_int_equal(mfs_stripes_read(t->store, 5, 0, STRIPE, buf), 0);
    for (unsigned i = 0; i < STRIPE; i++)
        assert_true(buf[i] != 0);
    assert_int_equal(mfs_stripes_trim(t->store, 5, 0, STRIPE, true, NULL), 0);
}

static void test_full(void **state)
{
    struct redis_fixture_opts how = {.nparts = 2, .stripe_size = STRIPE, .maxmemory = 8U << 20};
    struct data_test t;
    static char buf[STRIPE];
    int64_t alloc = 0;
    uint64_t n = 0;
    int rc = 0;

    (void)state;
    data_test_open(&t, &how, 10 * MFS_SEC);
    pattern(buf, 0, sizeof buf, 3);
    while (!rc && n < 1000)
        rc = mfs_stripes_write(t.store, 3, n++ * STRIPE, STRIPE, buf, &alloc);
    assert_int_equal(rc, -ENOSPC);
    while (mfs_stripes_write(t.store, 3, n * STRIPE, STRIPE, buf, &alloc) == 0 ||
           mfs_stripes_write(t.store, 3, (n + 1) * STRIPE, STRIPE, buf, &alloc) == 0)
        n++;
    assert_int_equal(mfs_stripes_punch(t.store, 3, 100, 3 * STRIPE, n * STRIPE, &alloc), 0);
    assert_int_equal(mfs_stripes_trim(t.store, 3, 50, (n + 2) * STRIPE, true, &alloc), 0);
    assert_int_equal(alloc, 50);
    assert_int_equal(mfs_stripes_write(t.store, 3, 0, STRIPE, buf, &alloc), 0);
    data_test_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_model_of_other_stripes),
        cmocka_unit_test(test_trim_leaves_first),
        cmocka_unit_test(test_punch_up_to_the_end),
        cmocka_unit_test(test_huge),
        cmocka_unit_test(test_seek_in_blocks),
        cmocka_unit_test(test_sparse_is_quick),
        cmocka_unit_test(test_no_spare_room),
        cmocka_unit_test(test_full),
    };

    return cmocka_run_group_tests(tests, open_group, close_group);
}
