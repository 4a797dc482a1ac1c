/* Read-ahead: what is fetched when, what is served from memory, and that what was dropped is never
 * served. ctest: threaded */
#include "data_test.h"

#include <unistd.h>

#define STRIPE  65536U
#define NPARTS  3U
#define STRIPES 40U
#define SIZE    (STRIPES * (uint64_t)STRIPE - 1000)

struct env {
    struct data_test t;
    struct mfs_readahead_pool *pool;
};

static int open_group(void **state)
{
    struct redis_fixture_opts how = {.nparts = NPARTS, .stripe_size = STRIPE};
    struct mfs_readahead_opts opts = {.max_bytes = 1U << 20, .window = 4};
    struct env *e = calloc(1, sizeof *e);
    char *buf = malloc(SIZE);
    int64_t alloc = 0;

    data_test_open(&e->t, &how, 2 * MFS_SEC);
    assert_int_equal(mfs_readahead_pool_create(&e->pool, e->t.store, &opts), 0);
    pattern(buf, 0, SIZE, 1);
    assert_int_equal(mfs_stripes_write(e->t.store, 1, 0, SIZE, buf, &alloc), 0);
    free(buf);
    *state = e;
    return 0;
}

static int close_group(void **state)
{
    struct env *e = *state;

    mfs_readahead_pool_destroy(e->pool);
    data_test_close(&e->t);
    free(e);
    return 0;
}

static struct mfs_readahead *open_ra(struct env *e)
{
    struct mfs_readahead *ra;

    assert_int_equal(mfs_readahead_create(&ra, e->pool, 1), 0);
    return ra;
}

static int read_check(struct mfs_readahead *ra, uint64_t off, size_t len, unsigned salt)
{
    char *have, *want;
    int rc;

    len = len < SIZE - off ? len : (size_t)(SIZE - off);
    have = malloc(len);
    want = malloc(len);
    rc = mfs_readahead_read(ra, off, len, SIZE, have, NULL);
    pattern(want, off, len, salt);
    if (!rc && memcmp(have, want, len) != 0)
        rc = -EILSEQ;
    free(have);
    free(want);
    return rc;
}

static uint64_t commands(struct env *e)
{
    struct mfs_store_stats s;

    mfs_store_stats(e->t.store, &s);
    return s.commands;
}

static void read_all(struct env *e, size_t step)
{
    struct mfs_readahead *ra = open_ra(e);

    for (uint64_t off = 0; off < SIZE; off += step)
        assert_int_equal(read_check(ra, off, step, 1), 0);
    mfs_readahead_destroy(ra);
}

/* Whatever the size of the reads, about one command per stripe. */
static void test_sequential(void **state)
{
    static const size_t sizes[] = {1000, 4096, 16384, STRIPE, 100000, 4 * STRIPE, SIZE};
    struct env *e = *state;

    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t before = commands(e);

        read_all(e, sizes[i]);
        assert_true(commands(e) - before <= STRIPES + 4);
    }
}

/* As the kernel sends them: neighbours swapped. */
static void test_out_of_order(void **state)
{
    struct env *e = *state;
    struct mfs_readahead *ra = open_ra(e);
    uint64_t before = commands(e);

    for (uint64_t off = 0; off < SIZE; off += 32768) {
        assert_int_equal(read_check(ra, off + 16384 < SIZE ? off + 16384 : off, 16384, 1), 0);
        assert_int_equal(read_check(ra, off, 16384, 1), 0);
    }
    assert_true(commands(e) - before <= STRIPES + 8);
    mfs_readahead_destroy(ra);
}

/* Random reads ask for what they need and nothing more. */
static void test_random(void **state)
{
    struct env *e = *state;
    struct mfs_readahead *ra = open_ra(e);
    struct mfs_store_stats before, after;

    mfs_store_stats(e->t.store, &before);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(read_check(ra, (i * 17 % STRIPES) * (uint64_t)STRIPE + 100, 4096, 1), 0);
    mfs_store_stats(e->t.store, &after);
    assert_int_equal(after.commands - before.commands, 100);
    assert_true(after.bytes_in - before.bytes_in < 100 * 4200);
    mfs_readahead_destroy(ra);
}

/* Of a sequence that leaves most of the file out, only its beginning is fetched whole; where a
 * reader goes on with every byte, all is again. */
static void test_sparse(void **state)
{
    struct env *e = *state;
    struct mfs_readahead *ra = open_ra(e);
    struct mfs_store_stats before, after;
    uint64_t off;

    mfs_store_stats(e->t.store, &before);
    for (off = 0; off < SIZE / 2; off += STRIPE / 4)
        assert_int_equal(read_check(ra, off, 1000, 1), 0);
    mfs_store_stats(e->t.store, &after);
    assert_true(after.bytes_in - before.bytes_in < SIZE / 4);
    before = after;
    for (; off < SIZE; off += 16384)
        assert_int_equal(read_check(ra, off, 16384, 1), 0);
    mfs_store_stats(e->t.store, &after);
    assert_true(after.commands - before.commands <= STRIPES / 2 + 16);
    mfs_readahead_destroy(ra);
}

/* The first read of a small file costs one command, in the caller's thread. */
static void test_small_file(void **state)
{
    struct env *e = *state;
    struct mfs_readahead *ra = open_ra(e);
    uint64_t before = commands(e);
    char buf[4096], want[4096];

    assert_int_equal(mfs_readahead_read(ra, 0, sizeof buf, sizeof buf, buf, NULL), 0);
    pattern(want, 0, sizeof want, 1);
    assert_memory_equal(buf, want, sizeof buf);
    assert_int_equal(commands(e) - before, 1);
    mfs_readahead_destroy(ra);
}

static struct mfs_view view_of(struct mfs_readahead *ra, uint64_t off, size_t len, char *buf)
{
    struct mfs_view view = {0};

    assert_int_equal(mfs_readahead_read(ra, off, len, SIZE, buf, &view), 0);
    return view;
}

/* In sequence most of it is shown where it was received; what does not fit the view is copied. */
static void test_view(void **state)
{
    static const size_t sizes[] = {5000, STRIPE, 4 * STRIPE, 12 * STRIPE};
    struct env *e = *state;
    char *buf = malloc(SIZE), *have = malloc(SIZE), *want = malloc(SIZE);

    pattern(want, 0, SIZE, 1);
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct mfs_readahead *ra = open_ra(e);
        unsigned held = 0;

        for (uint64_t off = 0; off < SIZE; off += sizes[i]) {
            size_t len = sizes[i] < SIZE - off ? sizes[i] : (size_t)(SIZE - off);
            struct mfs_view view = view_of(ra, off, len, buf);

            view_copy(&view, len, have);
            assert_memory_equal(have, want + off, len);
            held += view.nheld;
            mfs_view_release(&view);
        }
        assert_true(held >= (i < 3 ? STRIPES / 2 : MFS_VIEW_MAX));
        mfs_readahead_destroy(ra);
    }
    free(buf);
    free(have);
    free(want);
}

/* What a view holds is there until it is released, although all was dropped, and others have read.
 */
static void test_view_holds(void **state)
{
    struct env *e = *state;
    struct mfs_readahead *ra = open_ra(e);
    char *buf = malloc(SIZE), *have = malloc(STRIPE), *want = malloc(STRIPE);
    struct mfs_view view = {0};

    for (unsigned s = 0; s < 10; s++) {
        mfs_view_release(&view);
        view = view_of(ra, s * (uint64_t)STRIPE, STRIPE, buf);
    }
    assert_int_equal(view.nheld, 1);
    mfs_readahead_destroy(ra);
    read_all(e, 4096);
    pattern(want, 9 * (uint64_t)STRIPE, STRIPE, 1);
    view_copy(&view, STRIPE, have);
    assert_memory_equal(have, want, STRIPE);
    mfs_view_release(&view);
    free(buf);
    free(have);
    free(want);
}

static void test_holes(void **state)
{
    struct env *e = *state;
    struct mfs_readahead *ra;
    static char buf[STRIPE], zero[STRIPE];

    assert_int_equal(mfs_readahead_create(&ra, e->pool, 2), 0);
    for (unsigned i = 0; i < 20; i++) {
        memset(buf, 1, sizeof buf);
        assert_int_equal(mfs_readahead_read(ra, i * STRIPE, STRIPE, 100 * STRIPE, buf, NULL), 0);
        assert_memory_equal(buf, zero, sizeof buf);
    }
    mfs_readahead_destroy(ra);
}

/* More readers than the pool has memory for, several of them idle in the middle. */
static void test_memory(void **state)
{
    struct env *e = *state;
    struct mfs_readahead *ra[20];

    for (unsigned i = 0; i < 20; i++)
        ra[i] = open_ra(e);
    for (uint64_t off = 0; off < SIZE; off += 50000)
        for (unsigned i = 0; i < 20; i++)
            if (i < 10 || off < 20 * STRIPE)
                assert_int_equal(read_check(ra[i], off, 50000, 1), 0);
    for (unsigned i = 0; i < 20; i++)
        mfs_readahead_destroy(ra[i]);
}

/* Someone changes the file and says so: what was fetched or on its way before is never seen again.
 */
struct changer {
    pthread_t thread;
    struct env *e;
    struct mfs_readahead *ra;
    _Atomic unsigned *version;
    _Atomic bool *stop;
    int rc;
};

static void *change(void *arg)
{
    struct changer *c = arg;
    unsigned char block[512];
    int64_t alloc = 0;

    for (unsigned n = 1; n < 250 && !c->rc; n++) {
        memset(block, (int)n, sizeof block);
        for (unsigned s = 0; s < 10 && !c->rc; s++)
            c->rc = mfs_stripes_write(c->e->t.store, 3, (uint64_t)s * STRIPE + 40000, sizeof block,
                                      block, &alloc);
        mfs_readahead_drop(c->ra, 0, 10 * STRIPE);
        atomic_store(c->version, n);
    }
    atomic_store(c->stop, true);
    return NULL;
}

static void *follow(void *arg)
{
    struct changer *c = arg;
    unsigned char *buf = malloc(10 * STRIPE);

    while (!c->rc && !atomic_load(c->stop)) {
        for (unsigned s = 0; s < 10 && !c->rc; s++) {
            unsigned least = atomic_load(c->version);

            c->rc = mfs_readahead_read(c->ra, (uint64_t)s * STRIPE, STRIPE, 10 * STRIPE, buf, NULL);
            if (!c->rc && buf[40000] < least)
                c->rc = -ESTALE;
        }
    }
    free(buf);
    return NULL;
}

static void test_drop(void **state)
{
    struct env *e = *state;
    struct mfs_readahead *ra;
    struct changer c[3];
    _Atomic unsigned version = 0;
    _Atomic bool stop = false;

    assert_int_equal(mfs_readahead_create(&ra, e->pool, 3), 0);
    for (unsigned i = 0; i < 3; i++)
        c[i] = (struct changer){.e = e, .ra = ra, .version = &version, .stop = &stop};
    pthread_create(&c[0].thread, NULL, change, &c[0]);
    pthread_create(&c[1].thread, NULL, follow, &c[1]);
    pthread_create(&c[2].thread, NULL, follow, &c[2]);
    for (unsigned i = 0; i < 3; i++) {
        pthread_join(c[i].thread, NULL);
        assert_int_equal(c[i].rc, 0);
    }
    mfs_readahead_destroy(ra);
}

/* Several threads read one handle's sequence together. */
struct team {
    pthread_t thread;
    struct mfs_readahead *ra;
    _Atomic uint64_t *next;
    int rc;
};

static void *read_next(void *arg)
{
    struct team *t = arg;
    uint64_t off;

    while (!t->rc && (off = atomic_fetch_add(t->next, 16384)) < SIZE)
        t->rc = read_check(t->ra, off, 16384, 1);
    return NULL;
}

static void test_threads(void **state)
{
    struct env *e = *state;

    for (unsigned round = 0; round < 20; round++) {
        struct mfs_readahead *ra = open_ra(e);
        _Atomic uint64_t next = 0;
        struct team t[4];

        for (unsigned i = 0; i < 4; i++) {
            t[i] = (struct team){.ra = ra, .next = &next};
            pthread_create(&t[i].thread, NULL, read_next, &t[i]);
        }
        for (unsigned i = 0; i < 4; i++) {
            pthread_join(t[i].thread, NULL);
            assert_int_equal(t[i].rc, 0);
        }
        mfs_readahead_destroy(ra);
    }
}

/* A large read comes straight to the caller's buffer, though what is on its way is dropped all the
 * time and partitions are slow; when the read has returned nothing comes there any more. */
struct dropper {
    pthread_t thread;
    struct mfs_readahead *ra;
    _Atomic bool stop;
};

static void *keep_dropping(void *arg)
{
    struct dropper *d = arg;

    for (unsigned i = 0; !d->stop; i++) {
        mfs_readahead_drop(d->ra, i % STRIPES * (uint64_t)STRIPE, 3 * (uint64_t)STRIPE);
        usleep(50);
    }
    return NULL;
}

static int slow_or_failing(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    unsigned *calls = arg, n = __atomic_fetch_add(calls, 1, __ATOMIC_RELAXED);

    (void)part;
    (void)argv;
    (void)argc;
    usleep(n % 5 * 200);
    return n % 97 == 96 ? -EIO : 0;
}

static void test_straight(void **state)
{
    struct env *e = *state;
    struct dropper d = {.ra = open_ra(e)};
    unsigned calls = 0, good = 0;
    char *have = malloc(SIZE), *want = malloc(SIZE);

    pattern(want, 0, SIZE, 1);
    mfs_store_set_fault(e->t.store, slow_or_failing, &calls);
    pthread_create(&d.thread, NULL, keep_dropping, &d);
    for (unsigned i = 0; i < 30; i++) {
        int rc = mfs_readahead_read(d.ra, 0, SIZE, SIZE, have, NULL);

        assert_true(rc == -EIO || (rc == 0 && memcmp(have, want, SIZE) == 0));
        good += rc == 0;
        memset(have, 0xee, SIZE);
        usleep(2000);
        assert_true((unsigned char)have[0] == 0xee && memcmp(have, have + 1, SIZE - 1) == 0);
    }
    d.stop = true;
    pthread_join(d.thread, NULL);
    mfs_store_set_fault(e->t.store, NULL, NULL);
    assert_true(good > 0);
    assert_int_equal(mfs_readahead_read(d.ra, 0, SIZE, SIZE, have, NULL), 0);
    assert_memory_equal(have, want, SIZE);
    mfs_readahead_destroy(d.ra);
    free(have);
    free(want);
}

static int fail_some(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    (void)argv;
    (void)argc;
    return part == *(uint32_t *)arg ? -EIO : 0;
}

struct refusal {
    uint32_t part;
    _Atomic unsigned n;
};

static int count_failures(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    struct refusal *r = arg;

    (void)argv;
    (void)argc;
    r->n += part == r->part;
    return part == r->part ? -EIO : 0;
}

/* A partition that does not answer keeps a reader for one I/O timeout, not for two. */
static void test_fails_once(void **state)
{
    struct env *e = *state;
    struct refusal r = {.part = 1};
    unsigned failed = 0;

    mfs_store_set_fault(e->t.store, count_failures, &r);
    for (uint64_t s = 1; s + 3 < STRIPES; s += 3) {
        for (unsigned n = 1; n <= 3; n += 2) {
            struct mfs_readahead *ra = open_ra(e);
            unsigned before = r.n;
            int rc = read_check(ra, s * STRIPE, n * (size_t)STRIPE, 1);

            assert_int_equal(rc, r.n > before ? -EIO : 0);
            assert_true(r.n - before <= n);
            failed += rc != 0;
            mfs_readahead_destroy(ra);
        }
    }
    assert_true(failed > 0);
    mfs_store_set_fault(e->t.store, NULL, NULL);
}

static void test_failure(void **state)
{
    struct env *e = *state;
    struct mfs_readahead *ra = open_ra(e);
    uint32_t part = 1;
    unsigned failed = 0;

    mfs_store_set_fault(e->t.store, fail_some, &part);
    for (uint64_t off = 0; off < SIZE; off += 16384) {
        int rc = read_check(ra, off, 16384, 1);

        assert_true(rc == 0 || rc == -EIO);
        failed += rc != 0;
    }
    assert_true(failed > 0);
    mfs_store_set_fault(e->t.store, NULL, NULL);
    for (uint64_t off = 0; off < SIZE; off += 16384)
        assert_int_equal(read_check(ra, off, 16384, 1), 0);
    mfs_readahead_destroy(ra);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sequential), cmocka_unit_test(test_out_of_order),
        cmocka_unit_test(test_random),     cmocka_unit_test(test_sparse),
        cmocka_unit_test(test_small_file), cmocka_unit_test(test_holes),
        cmocka_unit_test(test_memory),     cmocka_unit_test(test_drop),
        cmocka_unit_test(test_threads),    cmocka_unit_test(test_failure),
        cmocka_unit_test(test_fails_once), cmocka_unit_test(test_view),
        cmocka_unit_test(test_view_holds), cmocka_unit_test(test_straight),
    };

    return cmocka_run_group_tests(tests, open_group, close_group);
}
