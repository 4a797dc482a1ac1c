/* Lines about requests: as text, as JSON and back; the ring of them, whose readers lose nothing
 * unheard beside writers; and the phases of which they are made. ctest: threaded */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/phases.h"
#include "base/shown.h"
#include "trace/hot.h"
#include "trace/line.h"
#include "trace/rates.h"
#include "trace/ring.h"

static struct mfs_trace_line sample(void)
{
    struct mfs_trace_line l = {.time = 1700000000.25,
                               .pid = 4711,
                               .uid = 1000,
                               .offset = 4096,
                               .bytes = 10,
                               .ms = 12.5,
                               .trips = 2,
                               .nplaces = 1,
                               .place = {{1, 17, 2, 10.0, 4.0}}};

    l.phase_ms[MFS_PHASE_PARTITION] = 10;
    l.phase_ms[MFS_PHASE_WINDOW] = 2;
    strcpy(l.op, "write");
    strcpy(l.path, "a b/\xff\"\\udc41\n");
    strcpy(l.program, "python3");
    return l;
}

static void a_line_comes_back_from_json(void **state)
{
    struct mfs_trace_line l = sample(), back;
    struct mfs_err err;
    struct mfs_buf b;
    uint64_t lost;

    (void)state;
    mfs_buf_init(&b);
    l.full = 1;
    assert_int_equal(mfs_trace_json(&l, &b), 0);
    assert_non_null(strstr(mfs_buf_data(&b), "\\udcff"));
    assert_int_equal(mfs_trace_parse(mfs_buf_data(&b), mfs_buf_len(&b), &back, &lost, &err), 0);
    assert_string_equal(back.path, l.path);
    assert_string_equal(back.op, l.op);
    assert_string_equal(back.program, l.program);
    assert_int_equal(back.pid, l.pid);
    assert_int_equal(back.bytes, l.bytes);
    assert_int_equal(back.full, 1);
    assert_int_equal(back.nplaces, 1);
    assert_int_equal(back.place[0].partition, 17);
    assert_true(back.place[0].least_ms > 3.9 && back.place[0].least_ms < 4.1);
    assert_true(mfs_trace_client_ms(&back) > 0.49 && mfs_trace_client_ms(&back) < 0.51);
    mfs_buf_clear(&b);
    assert_int_equal(mfs_trace_lost_json(7, &b), 0);
    assert_int_equal(mfs_trace_parse(mfs_buf_data(&b), mfs_buf_len(&b), &back, &lost, &err), 1);
    assert_int_equal(lost, 7);
    mfs_buf_fini(&b);
}

/* A line lies in a reader's buffer, without an end of its own. */
static void bytes_are_unescaped_within_the_line(void **state)
{
    static const char text[] = "\"\\udcffa\\udc7f\\udc9\\\"";
    char *line = malloc(sizeof text - 1);

    (void)state;
    assert_non_null(line);
    memcpy(line, text, sizeof text - 1);
    assert_int_equal(mfs_shown_unescape(line, sizeof text - 1), sizeof text - 1 - 5);
    assert_memory_equal(line,
                        "\"\xff"
                        "a\\udc7f\\udc9\\\"",
                        sizeof text - 1 - 5);
    free(line);
}

static void a_text_has_what_it_waits_for(void **state)
{
    struct mfs_trace_line l = sample();
    struct mfs_buf b;

    (void)state;
    mfs_buf_init(&b);
    l.open = true;
    l.waits = MFS_PHASE_LOCK + 1;
    l.waits_ms = 0.1;
    l.phase_ms[MFS_PHASE_LOCK] = 600; /* in slices that are over */
    l.holder_pid = 99;
    strcpy(l.holder, "snakemake");
    assert_int_equal(mfs_trace_text(&l, &b), 0);
    assert_int_equal(mfs_buf_append(&b, "", 1), 0);
    assert_non_null(strstr(mfs_buf_data(&b), "python3[4711]"));
    assert_non_null(strstr(mfs_buf_data(&b), "(node 1 partition 17; 2 round trips)"));
    assert_non_null(strstr(mfs_buf_data(&b), "window 2.000"));
    assert_non_null(strstr(mfs_buf_data(&b), "not ended: waits for lock"));
    assert_non_null(strstr(mfs_buf_data(&b), "held by process 99 (snakemake)"));
    assert_non_null(strstr(mfs_buf_data(&b), "lock 600.000"));
    assert_null(strchr(mfs_buf_data(&b), '\xff'));
    assert_ptr_equal(strchr(mfs_buf_data(&b), '\n'), mfs_buf_data(&b) + mfs_buf_len(&b) - 2);
    mfs_buf_clear(&b);
    strcpy(l.holder, "\033]0;x"); /* a name that a user has chosen */
    assert_int_equal(mfs_trace_text(&l, &b), 0);
    assert_null(memchr(mfs_buf_data(&b), '\033', mfs_buf_len(&b)));
    mfs_buf_fini(&b);
}

static void phases_add_up(void **state)
{
    struct mfs_phases p = {0};

    (void)state;
    mfs_phase_begin(MFS_PHASE_WINDOW, 0, 1); /* nobody notes it */
    mfs_phase_end(0, 2);
    mfs_phases_to(&p);
    for (uint32_t part = 0; part < 6; part++) {
        mfs_phase_begin(MFS_PHASE_PARTITION, part, 100);
        assert_int_equal(atomic_load(&p.waits), MFS_PHASE_PARTITION + 1);
        mfs_phase_end(part, 110);
    }
    mfs_phase_begin(MFS_PHASE_PARTITION, 2, 100);
    mfs_phase_end(3, 105); /* 3 was the last to answer */
    mfs_phase_begin(MFS_PHASE_MOVE, 2, 100);
    mfs_phase_end(0, 101);
    mfs_phase_end(0, 1000);
    mfs_phases_to(NULL);
    assert_int_equal(p.ns[MFS_PHASE_PARTITION], 65);
    assert_int_equal(p.ns[MFS_PHASE_MOVE], 1);
    assert_int_equal(p.ns[MFS_PHASE_WINDOW], 0);
    assert_int_equal(p.trips, 7);
    assert_int_equal(p.nplaces, MFS_PHASE_PLACES);
    assert_int_equal(p.place[3].trips, 2);
    assert_int_equal(p.place[3].least, 5);
    assert_int_equal(p.place[2].trips, 1);
    assert_int_equal(atomic_load(&p.waits), 0);
}

/* ---- the ring -------------------------------------------------------------------------------- */

#define WRITERS 4U
#define LINES   20000U /* of each */
#define SIZE    64U

static struct mfs_trace_ring *ring;
static atomic_uint woken, finished;

static void wake(void *arg)
{
    (void)arg;
    atomic_fetch_add(&woken, 1);
}

static void a_ring_without_a_reader_takes_nothing(void **state)
{
    struct mfs_trace_line l = sample(), got;
    uint64_t at, lost;

    (void)state;
    ring = mfs_trace_ring_create(SIZE, wake, NULL);
    assert_non_null(ring);
    assert_false(mfs_trace_ring_is_read(ring));
    mfs_trace_ring_put(ring, &l);
    assert_int_equal(mfs_trace_ring_open(ring, &at), 0);
    assert_true(mfs_trace_ring_is_read(ring));
    assert_false(mfs_trace_ring_take(ring, &at, &got, &lost));
    assert_true(mfs_trace_ring_want(ring, at));
    mfs_trace_ring_put(ring, &l);
    mfs_trace_ring_put(ring, &l);
    assert_int_equal(atomic_load(&woken), 1);
    assert_false(mfs_trace_ring_want(ring, at));
    assert_true(mfs_trace_ring_take(ring, &at, &got, &lost));
    assert_string_equal(got.path, l.path);
    for (unsigned i = 0; i < SIZE + 9; i++)
        mfs_trace_ring_put(ring, &l);
    assert_true(mfs_trace_ring_take(ring, &at, &got, &lost));
    assert_int_equal(lost, 10);
    mfs_trace_ring_close(ring);
    assert_false(mfs_trace_ring_is_read(ring));
    mfs_trace_ring_destroy(ring);
}

static void *writes(void *arg)
{
    struct mfs_trace_line l = {.pid = (uint32_t)(uintptr_t)arg};

    for (l.uid = 0; l.uid < LINES; l.uid++)
        mfs_trace_ring_put(ring, &l);
    atomic_fetch_add(&finished, 1);
    return NULL;
}

/* Every line is taken once, in each writer's order, or counted as lost. */
static void *reads(void *arg)
{
    uint64_t at, lost, all = 0;
    int64_t last[WRITERS] = {-1, -1, -1, -1};
    struct mfs_trace_line l;
    bool any = true;

    at = *(uint64_t *)arg;
    while (any || atomic_load(&finished) < WRITERS) {
        any = mfs_trace_ring_take(ring, &at, &l, &lost);
        all += lost + any;
        if (any) {
            assert_true((int64_t)l.uid > last[l.pid]);
            last[l.pid] = l.uid;
        }
    }
    while (mfs_trace_ring_take(ring, &at, &l, &lost))
        all += lost + 1;
    assert_int_equal(all, WRITERS * LINES);
    mfs_trace_ring_close(ring);
    return NULL;
}

static void readers_beside_writers_lose_nothing_unheard(void **state)
{
    pthread_t writer[WRITERS], reader[2];
    uint64_t at[2];

    (void)state;
    ring = mfs_trace_ring_create(SIZE, wake, NULL);
    assert_non_null(ring);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(mfs_trace_ring_open(ring, &at[i]), 0);
        assert_int_equal(pthread_create(&reader[i], NULL, reads, &at[i]), 0);
    }
    for (unsigned i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&writer[i], NULL, writes, (void *)(uintptr_t)i), 0);
    for (unsigned i = 0; i < WRITERS; i++)
        pthread_join(writer[i], NULL);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(reader[i], NULL);
    mfs_trace_ring_destroy(ring);
}

static void hot_add(struct mfs_hot_sampler *h, const char *op, const char *path, int64_t now)
{
    struct mfs_trace_line l = sample();

    snprintf(l.op, sizeof l.op, "%s", op);
    snprintf(l.path, sizeof l.path, "%s", path);
    mfs_hot_add(h, &l, now);
}

static void what_is_asked_for_most_is_known_among_many(void **state)
{
    struct mfs_hot_sampler *h = mfs_hot_create();
    int64_t now = mfs_clock_mono();
    char path[64];
    struct mfs_hot hot;

    (void)state;
    assert_non_null(h);
    assert_true(mfs_hot_is_due(h, now));
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(path, sizeof path, "once/f%u", i);
        hot_add(h, "lookup", path, now);
        if (i % 2 == 0)
            hot_add(h, "write", "a/often", now);
        if (i % 4 == 0)
            hot_add(h, "readdir", "a/dir", now);
    }
    assert_false(mfs_hot_is_due(h, now));
    mfs_hot_watched(h, now);
    assert_true(mfs_hot_is_due(h, now + 5 * MFS_MSEC));
    assert_int_equal(mfs_hot_take(h, now, 8, &hot), 0);
    assert_int_equal((int)hot.requests, 1750);
    assert_int_equal(hot.nfiles, 8);
    assert_string_equal(hot.file[0].name, "a/often");
    assert_in_range((int)hot.file[0].requests, 500, 500 + 1500 / MFS_HOT_KEYS);
    assert_in_range((int)(hot.file[0].bytes / hot.file[0].requests), 9, 10);
    assert_string_equal(hot.dir[0].name, "once");
    assert_string_equal(hot.dir[1].name, "a");
    assert_string_equal(hot.dir[2].name, "a/dir");
    assert_int_equal((int)hot.dir[2].requests, 250);
    assert_string_equal(hot.program[0].name, "python3[4711]");
    mfs_schema_clear(&mfs_hot_schema, &hot);

    /* What was is forgotten. */
    hot_add(h, "open", "now", now + 21 * MFS_SEC);
    assert_int_equal(mfs_hot_take(h, now + 21 * MFS_SEC, 64, &hot), 0);
    assert_int_equal((int)hot.requests, 1750 / 4 + 1);
    mfs_schema_clear(&mfs_hot_schema, &hot);
    assert_int_equal(mfs_hot_take(h, now + 3600 * MFS_SEC, 64, &hot), 0);
    assert_int_equal(hot.nfiles + hot.ndirs + hot.nprograms, 0);
    mfs_schema_clear(&mfs_hot_schema, &hot);
    mfs_hot_destroy(h);
}

static void a_long_path_keeps_its_end(void **state)
{
    struct mfs_hot_sampler *h = mfs_hot_create();
    char path[MFS_TRACE_PATH] = "";
    struct mfs_hot hot;
    size_t len = 0;

    (void)state;
    assert_non_null(h);
    for (unsigned i = 0; i < 40; i++)
        len += (size_t)snprintf(path + len, sizeof path - len, "directory/");
    snprintf(path + len, sizeof path - len, "end");
    hot_add(h, "write", path, mfs_clock_mono());
    assert_int_equal(mfs_hot_take(h, mfs_clock_mono(), 8, &hot), 0);
    assert_true(strlen(hot.file[0].name) < MFS_HOT_NAME);
    assert_memory_equal(hot.file[0].name, "…/directory/", strlen("…/directory/"));
    assert_string_equal(hot.file[0].name + strlen(hot.file[0].name) - 4, "/end");
    mfs_schema_clear(&mfs_hot_schema, &hot);
    mfs_hot_destroy(h);
}

#define DURATION "memefs_operation_duration_seconds"

static void rates_are_told_by_operation(void **state)
{
    struct mfs_metric_bucket was[] = {{3, 10}}, is[] = {{3, 10}, {10, 20}};
    struct mfs_metric_sample old = {.name = DURATION,
                                    .labels = "operation=\"write\"",
                                    .kind = MFS_METRIC_HISTOGRAM,
                                    .value = 10,
                                    .sum = 0.1,
                                    .nbuckets = 1,
                                    .bucket = was};
    struct mfs_metric_sample now[] = {old,
                                      {.name = "memefs_operation_errors_total",
                                       .labels = "operation=\"write\",errno=\"ENOSPC\"",
                                       .value = 4},
                                      {.name = "memefs_operation_errors_total",
                                       .labels = "operation=\"lookup\",errno=\"ENOENT\"",
                                       .value = 4}};
    const struct mfs_metric_snapshot before = {1, &old}, after = {3, now};
    struct mfs_rates_op *op;
    uint32_t n;

    (void)state;
    now[0].value = 30;
    now[0].sum = 1.1;
    now[0].nbuckets = 2;
    now[0].bucket = is;
    assert_int_equal(mfs_rates_operations(&before, &after, 2, &op, &n), 0);
    assert_int_equal(n, 1);
    assert_string_equal(op->name, "write");
    assert_true(op->rate == 10 && op->errors == 2);
    assert_true(op->busy > 0.49 && op->busy < 0.51);
    assert_true(op->p50_ms > 0.512 && op->p50_ms <= 1.024); /* of those since alone */
    assert_int_equal(op->all, 30);
    free(op);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_comes_back_from_json),
        cmocka_unit_test(bytes_are_unescaped_within_the_line),
        cmocka_unit_test(a_text_has_what_it_waits_for),
        cmocka_unit_test(phases_add_up),
        cmocka_unit_test(what_is_asked_for_most_is_known_among_many),
        cmocka_unit_test(a_long_path_keeps_its_end),
        cmocka_unit_test(rates_are_told_by_operation),
        cmocka_unit_test(a_ring_without_a_reader_takes_nothing),
        cmocka_unit_test(readers_beside_writers_lose_nothing_unheard),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
