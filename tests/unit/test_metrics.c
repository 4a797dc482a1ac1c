/* Figures: that none is lost when many threads count, where durations fall, what a snapshot has and
 * leaves out, and that it comes through a message as it was.
 * ctest: threaded */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "proto/messages.h"

enum { PLAIN, LABELLED, LEVEL, TIMES, METRICS };

static const char *const colours[] = {"red", "green", "blue"};
static const char *const sizes[] = {"small", "large"};

static const struct mfs_metric table[METRICS] = {
    [PLAIN] = {.name = "memefs_plain_total", .help = "Plain things.", .kind = MFS_METRIC_COUNTER},
    [LABELLED] = {.name = "memefs_labelled_bytes_total",
                  .kind = MFS_METRIC_COUNTER,
                  .label = {{"colour", colours, 3}, {"size", sizes, 2}}},
    [LEVEL] = {.name = "memefs_level", .kind = MFS_METRIC_GAUGE},
    [TIMES] = {.name = "memefs_times_seconds",
               .kind = MFS_METRIC_HISTOGRAM,
               .label = {{"size", sizes, 2}}},
};

struct fixture {
    struct mfs_metrics *registry;
    struct mfs_metric_set *set;
    struct mfs_metric_snapshot snapshot;
};

static int setup(void **state)
{
    static struct fixture f;

    f = (struct fixture){.registry = mfs_metrics_create()};
    *state = &f;
    return f.registry ? mfs_metric_set_create(&f.set, f.registry, table, METRICS) : -1;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    mfs_metric_snapshot_free(&f->snapshot);
    mfs_metric_set_destroy(f->set);
    mfs_metrics_destroy(f->registry);
    return 0;
}

#define THREADS 12
#define ROUNDS  20000

static void *count(void *arg)
{
    struct fixture *f = arg;

    for (int i = 0; i < ROUNDS; i++) {
        mfs_metric_add(f->set, PLAIN, 0, 1);
        mfs_metric_add(f->set, LABELLED, i % 6, 2);
        mfs_metric_change(f->set, LEVEL, 0, i % 2 ? -1 : 1);
        mfs_metric_observe(f->set, TIMES, 0, MFS_MSEC);
    }
    return NULL;
}

static void *watch(void *arg)
{
    struct fixture *f = arg;
    uint64_t last = 0;

    for (int i = 0; i < 200; i++) {
        struct mfs_metric_snapshot s;

        assert_int_equal(mfs_metrics_read(f->registry, &s), 0);
        for (uint32_t k = 0; k < s.n; k++)
            if (!strcmp(s.sample[k].name, "memefs_plain_total")) {
                assert_true(s.sample[k].value >= last);
                last = s.sample[k].value;
            }
        mfs_metric_snapshot_free(&s);
    }
    return NULL;
}

/* Some of them count in the same copy, as there are more threads than copies. */
static void test_many_threads(void **state)
{
    struct fixture *f = *state;
    pthread_t thread[THREADS], watcher;

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, count, f), 0);
    assert_int_equal(pthread_create(&watcher, NULL, watch, f), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    pthread_join(watcher, NULL);
    assert_int_equal(mfs_metric_value(f->set, PLAIN, 0), THREADS * ROUNDS);
    assert_int_equal(mfs_metric_sum(f->set, LABELLED), 2 * THREADS * ROUNDS);
    assert_int_equal(mfs_metric_value(f->set, LEVEL, 0), 0);
    assert_int_equal(mfs_metric_value(f->set, TIMES, 0), THREADS * ROUNDS);
    assert_int_equal(mfs_metric_value(f->set, TIMES, 1), 0);
}

static const struct mfs_metric_sample *find(const struct fixture *f, const char *name,
                                            const char *labels)
{
    for (uint32_t i = 0; i < f->snapshot.n; i++)
        if (!strcmp(f->snapshot.sample[i].name, name) &&
            !strcmp(f->snapshot.sample[i].labels, labels))
            return &f->snapshot.sample[i];
    return NULL;
}

static void test_snapshot(void **state)
{
    struct fixture *f = *state;
    const struct mfs_metric_sample *s;

    assert_int_equal(mfs_metrics_read(f->registry, &f->snapshot), 0);
    assert_int_equal(f->snapshot.n, 2); /* what is zero and has labels is left out */
    s = find(f, "memefs_plain_total", "");
    assert_non_null(s);
    assert_int_equal(s->value, 0);
    assert_string_equal(s->help, "Plain things.");
    mfs_metric_snapshot_free(&f->snapshot);
    mfs_metric_add(f->set, LABELLED, 2 * 2 + 1, 7);
    mfs_metric_change(f->set, LEVEL, 0, 5);
    mfs_metric_change(f->set, LEVEL, 0, -2);
    mfs_metric_observe(f->set, TIMES, 1, 2 * MFS_SEC);
    mfs_metric_observe(f->set, TIMES, 1, MFS_SEC);
    assert_int_equal(mfs_metrics_read(f->registry, &f->snapshot), 0);
    assert_int_equal(f->snapshot.n, 4);
    s = find(f, "memefs_labelled_bytes_total", "colour=\"blue\",size=\"large\"");
    assert_non_null(s);
    assert_int_equal(s->value, 7);
    s = find(f, "memefs_level", "");
    assert_non_null(s);
    assert_int_equal(s->value, 3);
    s = find(f, "memefs_times_seconds", "size=\"large\"");
    assert_non_null(s);
    assert_int_equal(s->value, 2);
    assert_true(s->sum == 3.0 && s->max == 2.0);
}

static uint32_t bucket_of(struct fixture *f, int64_t ns)
{
    struct mfs_metric_set *set;
    struct mfs_metrics *m = mfs_metrics_create();
    struct mfs_metric_snapshot s;
    uint32_t index;

    (void)f;
    assert_int_equal(mfs_metric_set_create(&set, m, table, METRICS), 0);
    mfs_metric_observe(set, TIMES, 0, ns);
    assert_int_equal(mfs_metrics_read(m, &s), 0);
    assert_int_equal(s.n, 3); /* the others have no labels */
    assert_int_equal(s.sample[2].nbuckets, 1);
    index = s.sample[2].bucket[0].index;
    mfs_metric_snapshot_free(&s);
    mfs_metric_set_destroy(set);
    mfs_metrics_destroy(m);
    return index;
}

/* Bounds belong to the bucket below them, as Prometheus has it ("le"). */
static void test_buckets(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(bucket_of(f, -1), 0);
    assert_int_equal(bucket_of(f, 0), 0);
    assert_int_equal(bucket_of(f, 1000), 0);
    assert_int_equal(bucket_of(f, 1001), 1);
    assert_int_equal(bucket_of(f, 2000), 1);
    assert_int_equal(bucket_of(f, 2001), 2);
    assert_int_equal(bucket_of(f, 1024 * 1000), 10);
    assert_int_equal(bucket_of(f, 1024 * 1000 + 1), 11);
    assert_int_equal(bucket_of(f, (1LL << 25) * 1000), 25);
    assert_int_equal(bucket_of(f, (1LL << 25) * 1000 + 1), MFS_METRIC_BUCKETS - 1);
    assert_int_equal(bucket_of(f, INT64_MAX), MFS_METRIC_BUCKETS - 1);
}

static void test_quantiles(void **state)
{
    struct mfs_metric_bucket b[] = {{0, 50}, {10, 40}, {MFS_METRIC_BUCKETS - 1, 10}};
    struct mfs_metric_sample s = {.value = 100, .nbuckets = 3, .bucket = b}, none = {0};

    (void)state;
    assert_true(mfs_metric_quantile(&none, 0.5) == 0);
    assert_true(mfs_metric_quantile(&s, 0.25) == 0.5e-6); /* half of the way through the first */
    assert_true(mfs_metric_quantile(&s, 0.5) == 1e-6);
    assert_true(mfs_metric_quantile(&s, 0.9) == 1024e-6);
    assert_true(mfs_metric_quantile(&s, 0.99) == 33.554432); /* longer; not known how much */
}

static void test_digest(void **state)
{
    struct fixture *f = *state;
    uint64_t before = mfs_metrics_digest(f->registry), up;

    assert_true(before == mfs_metrics_digest(f->registry));
    mfs_metric_change(f->set, LEVEL, 0, 1);
    up = mfs_metrics_digest(f->registry);
    assert_true(up != before);
    mfs_metric_change(f->set, LEVEL, 0, -1);
    mfs_metric_add(f->set, PLAIN, 0, 1); /* the sum of all cells is that of before */
    assert_true(mfs_metrics_digest(f->registry) != up);
    assert_true(mfs_metrics_digest(f->registry) != before);
}

/* A set comes and goes with its module. */
static void test_sets(void **state)
{
    struct fixture *f = *state;
    struct mfs_metric_set *second, *alone;

    assert_int_equal(mfs_metric_set_create(&second, f->registry, table, METRICS), 0);
    assert_int_equal(mfs_metric_set_create(&alone, NULL, table, METRICS), 0);
    mfs_metric_add(second, PLAIN, 0, 4);
    mfs_metric_add(alone, PLAIN, 0, 8);
    mfs_metric_add(NULL, PLAIN, 0, 16);
    assert_int_equal(mfs_metric_value(alone, PLAIN, 0), 8);
    assert_int_equal(mfs_metrics_read(f->registry, &f->snapshot), 0);
    assert_int_equal(f->snapshot.n, 4); /* those without labels, of both */
    assert_int_equal(f->snapshot.sample[2].value, 4);
    mfs_metric_snapshot_free(&f->snapshot);
    mfs_metric_set_destroy(second);
    mfs_metric_set_destroy(alone);
    assert_int_equal(mfs_metrics_read(f->registry, &f->snapshot), 0);
    assert_int_equal(f->snapshot.n, 2);
    assert_int_equal(f->snapshot.sample[0].value, 0);
}

static void test_names(void **state)
{
    const struct mfs_metric bad[] = {
        {.name = "memefs_things", .kind = MFS_METRIC_COUNTER},
        {.name = "memefs_things_total", .kind = MFS_METRIC_GAUGE},
        {.name = "memefs_things_ms", .kind = MFS_METRIC_HISTOGRAM},
        {.name = "things_total", .kind = MFS_METRIC_COUNTER},
    };
    struct mfs_metric_set *set;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(mfs_metric_set_create(&set, NULL, &bad[i], 1), -EINVAL);
}

static void assert_same(const struct mfs_metric_snapshot *a, const struct mfs_metric_snapshot *b)
{
    assert_int_equal(a->n, b->n);
    for (uint32_t i = 0; i < a->n; i++) {
        const struct mfs_metric_sample *x = &a->sample[i], *y = &b->sample[i];

        assert_string_equal(x->name, y->name);
        assert_string_equal(x->labels, y->labels);
        assert_int_equal(x->kind, y->kind);
        assert_int_equal(x->value, y->value);
        assert_true(x->p99 == y->p99 && x->max == y->max);
        assert_string_equal(x->help, y->help);
        assert_int_equal(x->nbuckets, y->nbuckets);
        for (uint32_t k = 0; k < x->nbuckets; k++) {
            assert_int_equal(x->bucket[k].index, y->bucket[k].index);
            assert_int_equal(x->bucket[k].count, y->bucket[k].count);
        }
    }
}

static void test_message(void **state)
{
    struct fixture *f = *state;
    struct mfs_metric_snapshot back, copy;
    struct mfs_envelope e;
    struct mfs_buf out;
    struct mfs_err err;

    for (int i = 0; i < 26; i++)
        mfs_metric_observe(f->set, TIMES, i % 2, (1LL << i) * 1000);
    mfs_metric_add(f->set, PLAIN, 0, (1ULL << 53) + 3); /* more than a message can have */
    assert_int_equal(mfs_metrics_read(f->registry, &f->snapshot), 0);
    mfs_buf_init(&out);
    assert_int_equal(mfs_message_put_request(&out, MFS_MSG_METRICS, 1, &f->snapshot), 0);
    assert_int_equal(mfs_envelope_open(&e, mfs_buf_data(&out) + 4, mfs_buf_len(&out) - 4), 0);
    assert_int_equal(e.type, MFS_MSG_METRICS);
    assert_int_equal(mfs_envelope_body(&e, mfs_messages[e.type].body, &back, &err), 0);
    mfs_metric_snapshot_quantiles(&back);
    assert_same(&f->snapshot, &back);
    assert_int_equal(back.sample[0].value, 3);
    assert_int_equal(mfs_metric_snapshot_copy(&copy, &back), 0);
    mfs_schema_clear(mfs_messages[e.type].body, &back);
    assert_same(&f->snapshot, &copy);
    mfs_metric_snapshot_free(&copy);
    mfs_envelope_clear(&e);
    mfs_buf_fini(&out);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_many_threads), TEST(test_snapshot), TEST(test_buckets), TEST(test_quantiles),
        TEST(test_digest),       TEST(test_sets),     TEST(test_names),   TEST(test_message),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
