/* ctest: threaded
 *
 * Content of small files that a client keeps: what it has written, and what look-ups bring when
 * files are being read. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/clock.h"
#include "data/stripes/stripes.h"
#include "meta/cache/contents.h"
#include "meta/internal.h"
#include "meta_fixture.h"

#define ROOT  MFS_ROOT_INO
#define FILES 40
#define BYTES 3000

static struct meta_client a, b;
static uint64_t inos[FILES];
static char text[FILES][BYTES];

/* --- the store of contents -------------------------------------------------------------------- */

static void test_versions(void **state)
{
    struct mfs_contents *c = mfs_contents_create(0);
    char got[8] = "";

    (void)state;
    assert_non_null(c);
    mfs_contents_put(c, 1, 5, "hello", 5);
    assert_false(mfs_contents_get(c, 2, 5, 0, 5, got));
    assert_false(mfs_contents_get(c, 1, 4, 0, 5, got));
    assert_true(mfs_contents_get(c, 1, 5, 1, 3, got));
    assert_memory_equal(got, "ell", 3);
    mfs_contents_put(c, 1, 6, "world", 5);
    assert_false(mfs_contents_get(c, 1, 5, 0, 5, got));
    assert_true(mfs_contents_get(c, 1, 6, 0, 5, got));
    assert_memory_equal(got, "world", 5);
    mfs_contents_destroy(c);
}

/* The file is longer than what is stored of it. */
static void test_holes(void **state)
{
    struct mfs_contents *c = mfs_contents_create(0);
    char got[8];

    (void)state;
    assert_non_null(c);
    mfs_contents_put(c, 1, 1, "hello", 5);
    memset(got, 'x', sizeof got);
    assert_true(mfs_contents_get(c, 1, 1, 3, 4, got));
    assert_memory_equal(got, "lo\0\0xxxx", 8);
    assert_true(mfs_contents_get(c, 1, 1, UINT64_MAX - 10, 8, got));
    assert_memory_equal(got, "\0\0\0\0\0\0\0\0", 8);
    mfs_contents_destroy(c);
}

static void test_bounds(void **state)
{
    struct mfs_contents *c = mfs_contents_create(0);
    char *large = calloc(1, MFS_META_CONTENT + 1), got;
    unsigned kept = 0;

    (void)state;
    assert_non_null(c);
    assert_non_null(large);
    mfs_contents_put(c, 9999, 1, large, MFS_META_CONTENT + 1);
    assert_false(mfs_contents_get(c, 9999, 1, 0, 1, &got));
    for (uint64_t i = 1; i <= 3000; i++)
        mfs_contents_put(c, i, 1, large, MFS_META_CONTENT);
    for (uint64_t i = 1; i <= 3000; i++)
        kept += mfs_contents_get(c, i, 1, 0, 1, &got);
    assert_in_range(kept, 2000, 2048); /* 128 MiB */
    assert_false(mfs_contents_get(c, 1, 1, 0, 1, &got));
    assert_true(mfs_contents_get(c, 3000, 1, 0, 1, &got));
    free(large);
    mfs_contents_destroy(c);
}

/* --- clients ---------------------------------------------------------------------------------- */

static void name_of(int i, char name[16])
{
    snprintf(name, 16, "f%d", i);
}

static struct mfs_attr write_part(struct meta_client *c, int i, uint32_t off, const char *p,
                                  uint32_t len)
{
    struct mfs_part part = {.off = off, .len = len, .p = p};
    struct mfs_commit change = {
        .end = off + len, .mtime = mfs_clock_real(), .parts = &part, .nparts = 1};
    struct mfs_attr attr = {0};

    assert_int_equal(mfs_meta_commit(c->meta, inos[i], &change, NULL, &attr), 0);
    mfs_meta_settle(c->meta, inos[i]);
    memcpy(text[i] + off, p, len);
    return attr;
}

static int setup(void **state)
{
    static char bytes[BYTES];
    char name[16];
    int rc = meta_pair_start(&a, &b, 20 * MFS_SEC);

    (void)state;
    for (int i = 0; i < FILES && !rc; i++) {
        name_of(i, name);
        rc = meta_client_file(&a, ROOT, name, &inos[i]);
        memset(bytes, 'a' + i % 26, sizeof bytes);
        if (!rc)
            write_part(&a, i, 0, bytes, BYTES);
    }
    return rc;
}

static int teardown(void **state)
{
    (void)state;
    meta_pair_stop(&a, &b);
    return 0;
}

static struct mfs_attr look(struct meta_client *c, int i)
{
    struct mfs_attr attr = {0};
    char name[16];

    name_of(i, name);
    assert_int_equal(mfs_meta_lookup(c->meta, ROOT, name, &attr), 0);
    return attr;
}

/* Is it kept? And then it is what it should be. */
static bool reads(struct meta_client *c, int i, uint64_t version)
{
    char got[BYTES];

    if (!mfs_meta_content(c->meta, inos[i], version, 0, BYTES, got))
        return false;
    assert_memory_equal(got, text[i], BYTES);
    return true;
}

static void test_written(void **state)
{
    struct mfs_attr attr = look(&a, 0);

    (void)state;
    assert_true(reads(&a, 0, attr.version));
    attr = write_part(&a, 0, 0, "whole", 5); /* but not all of it */
    assert_false(reads(&a, 0, attr.version));
    attr = write_part(&a, 1, 10, "part", 4);
    assert_false(reads(&a, 1, attr.version));
    attr = write_part(&b, 2, 0, text[3], BYTES); /* by another: what was kept is another version */
    assert_false(reads(&a, 2, attr.version));
    assert_true(reads(&b, 2, attr.version));
}

static void test_looked_up(void **state)
{
    uint64_t before;
    unsigned brought = 0;

    (void)state;
    assert_false(reads(&b, 0, look(&b, 0).version)); /* nobody has read anything yet */
    before = meta_client_round_trips(&b);
    for (int i = 1; i < 10; i++)
        assert_true(reads(&b, i, look(&b, i).version));
    assert_int_equal(meta_client_round_trips(&b), before + 9);
    for (int i = 10; i < FILES; i++)
        look(&b, i); /* only looked at, so that it stops */
    for (int i = 10; i < FILES; i++)
        brought += reads(&b, i, look(&b, i).version);
    assert_in_range(brought, 1, 25);
}

static void test_changed(void **state)
{
    uint64_t old;

    (void)state;
    reads(&b, 0, look(&b, 0).version);
    old = look(&b, 1).version;
    assert_true(reads(&b, 1, old));
    write_part(&a, 1, 100, "changed", 7);
    assert_int_equal(look(&b, 1).version, old + 1);
    assert_true(reads(&b, 1, old + 1));
    assert_false(reads(&b, 1, old));
}

/* Stripe 0 is not all of a file that a look-up could bring. */
static void test_small_stripes(void **state)
{
    const struct redis_fixture_opts how = {.nparts = 2, .stripe_size = 4096};
    static char bytes[2 * 4096], got[sizeof bytes];
    struct mfs_range stored = {0, sizeof bytes};
    struct mfs_commit change = {
        .end = sizeof bytes, .stored = &stored, .nstored = 1, .mtime = mfs_clock_real()};
    struct redis_fixture *redis;
    struct mfs_attr attr;
    char name[16];

    (void)state;
    assert_int_equal(redis_fixture_start(&redis, &how), 0);
    assert_int_equal(meta_client_start_leased(&a, redis, 20 * MFS_SEC), 0);
    assert_int_equal(meta_client_start_leased(&b, redis, 20 * MFS_SEC), 0);
    memset(bytes, 'x', sizeof bytes);
    for (int i = 0; i < 2; i++) {
        name_of(i, name);
        assert_int_equal(meta_client_file(&a, ROOT, name, &inos[i]), 0);
        assert_int_equal(mfs_stripes_write(a.store, inos[i], 0, sizeof bytes, bytes, &(int64_t){0}),
                         0);
        assert_int_equal(mfs_meta_commit(a.meta, inos[i], &change, NULL, &attr), 0);
    }
    reads(&b, 0, look(&b, 0).version);
    attr = look(&b, 1);
    assert_int_equal(attr.size, sizeof bytes);
    if (mfs_meta_content(b.meta, inos[1], attr.version, 0, sizeof bytes, got))
        assert_memory_equal(got, bytes, sizeof bytes);
    meta_pair_stop(&a, &b);
    redis_fixture_stop(redis);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_holes),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test_setup_teardown(test_written, setup, teardown),
        cmocka_unit_test_setup_teardown(test_looked_up, setup, teardown),
        cmocka_unit_test_setup_teardown(test_changed, setup, teardown),
        cmocka_unit_test(test_small_stripes),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, meta_redis_start, meta_redis_stop);
}
