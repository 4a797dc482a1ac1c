/* Listings of a large directory while names come and go: what exists throughout is there exactly
 * once. ctest: timeout=200 threaded */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/log.h"
#include "cluster/placement.h"
#include "meta_fixture.h"

#define ROOT   MFS_ROOT_INO
#define NPARTS 2
#define KEPT   20000 /* more than one step of a scan per partition */
#define CHURN  2000

static struct redis_fixture *redis;
static struct meta_client a, b;
static uint64_t dir;
static atomic_bool stop;

static void *churn(void *arg)
{
    char name[32], other[32];

    (void)arg;
    for (unsigned i = 0; !atomic_load(&stop); i++) {
        snprintf(name, sizeof name, "churn%u", i % CHURN);
        snprintf(other, sizeof other, "moved%u", i % CHURN);
        if (meta_client_file(&b, dir, name, NULL) == 0)
            mfs_meta_rename(b.meta, dir, name, dir, other, 0);
        if (i >= CHURN / 2) {
            snprintf(other, sizeof other, "moved%u", (i - CHURN / 2) % CHURN);
            mfs_meta_unlink(b.meta, dir, other);
        }
    }
    return NULL;
}

static void check(const struct mfs_listing *l)
{
    unsigned char *seen = calloc(KEPT, 1);
    size_t found = 0;

    assert_non_null(seen);
    for (size_t i = 0; i < mfs_listing_count(l); i++) {
        struct mfs_dirent e = mfs_listing_at(l, i);
        unsigned n;

        if (sscanf(e.name, "keep%u", &n) != 1)
            continue;
        assert_true(n < KEPT && !seen[n]);
        seen[n] = 1;
        found++;
    }
    assert_int_equal(found, KEPT);
    free(seen);
}

static void test_large(void **state)
{
    struct mfs_listing *l;
    pthread_t thread;
    char name[32];

    (void)state;
    assert_int_equal(meta_client_mkdir(&a, ROOT, "d", &dir), 0);
    for (unsigned i = 0; i < KEPT; i++) {
        snprintf(name, sizeof name, "keep%u", i);
        assert_int_equal(meta_client_file(&a, dir, name, NULL), 0);
    }
    assert_int_equal(pthread_create(&thread, NULL, churn, NULL), 0);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(mfs_meta_list(a.meta, dir, &l), 0);
        check(l);
        mfs_listing_free(l);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
}

static int start_all(void **state)
{
    (void)state;
    mfs_log_set_level(MFS_LOG_WARN);
    return redis_fixture_start(&redis, &(struct redis_fixture_opts){.nparts = NPARTS}) ||
           meta_client_start(&a, redis, 0) || meta_client_start(&b, redis, 0);
}

static int stop_all(void **state)
{
    (void)state;
    meta_client_stop(&a);
    meta_client_stop(&b);
    redis_fixture_stop(redis);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_large),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
