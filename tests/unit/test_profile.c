/* What a profile makes of requests: what counts below a path, to whom it is added, and the
 * sentence, as a table of cases. ctest: single */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "trace/profile.h"
#include "trace/rates.h"

#define CLIENT MFS_PHASES /* as a phase: none */

/* `n` requests of ms each. */
struct kind {
    unsigned n;
    const char *op, *path, *error;
    double ms;
    unsigned phase;
    uint32_t node; /* of the phases partition (with `least`) and room */
    double least;
    bool open;
    uint32_t holder;
    const char *program; /* of the holder; NULL: of another mount */
    double now;          /* `open`: ms of the wait that has not ended; 0: all */
};

static void add(struct mfs_profile *p, const struct kind *k)
{
    struct mfs_trace_line l = {.pid = 4000, .ms = k->ms, .open = k->open};

    snprintf(l.op, sizeof l.op, "%s", k->op);
    snprintf(l.path, sizeof l.path, "%s", k->path);
    snprintf(l.error, sizeof l.error, "%s", k->error != NULL ? k->error : "");
    strcpy(l.program, "python3");
    l.holder_pid = k->holder;
    l.holder_elsewhere = k->holder != 0 && k->program == NULL;
    snprintf(l.holder, sizeof l.holder, "%s", k->program != NULL ? k->program : "");
    if (k->open) {
        l.waits = k->phase + 1;
        l.waits_ms = k->now > 0 ? k->now : k->ms;
        l.phase_ms[k->phase] = k->ms - l.waits_ms;
        l.waits_node = k->node;
        l.waits_partition = 17;
    } else if (k->phase != CLIENT) {
        l.phase_ms[k->phase] = k->ms;
    }
    if (k->phase == MFS_PHASE_PARTITION && !k->open) {
        l.trips = l.nplaces = 1;
        l.place[0] = (struct mfs_trace_place){k->node, 3, 1, k->ms, k->least};
    }
    if (k->phase == MFS_PHASE_ROOM)
        l.full = k->node + 1;
    for (unsigned i = 0; i < k->n; i++)
        assert_int_equal(mfs_profile_add(p, &l, 10000), 0);
}

#define TRIP  MFS_PHASE_PARTITION
#define LOCK  MFS_PHASE_LOCK
#define KINDS 4

static const struct row {
    const char *below;
    struct kind kind[KINDS];
    const char *sentence;
} rows[] = {
    {"data",
     {{0}},
     "nothing happened: no request in 10 s below data (what the kernel has in its "
     "pages already it does not ask for)"},
    {"data",
     {{.n = 9,
       .op = "lookup",
       .path = "database/x",
       .error = "ENOENT",
       .ms = 10,
       .phase = TRIP,
       .node = 0,
       .least = 10}},
     "nothing happened: no request in 10 s below data (what the kernel has in its pages already it "
     "does not ask for)"},
    {".",
     {{.n = 900,
       .op = "lookup",
       .path = "lib/python3.11/x",
       .error = "ENOENT",
       .ms = 1,
       .phase = TRIP,
       .node = 0,
       .least = 1},
      {.n = 100, .op = "read", .path = "big", .ms = 2, .phase = TRIP, .node = 0, .least = 1}},
     "82 % of the time and 90 % of the requests: look-ups of names that do not exist, below "
     "lib/python3.11"},
    {"lib",
     {{.n = 900,
       .op = "lookup",
       .path = "lib/x",
       .error = "ENOENT",
       .ms = 1,
       .phase = TRIP,
       .node = 0,
       .least = 1},
      {.n = 5000, .op = "read", .path = "big", .ms = 2, .phase = TRIP, .node = 0, .least = 1}},
     "100 % of the time and 100 % of the requests: look-ups of names that do not exist, below lib"},
    {".",
     {{.n = 100, .op = "create", .path = "a/b", .ms = 40, .phase = TRIP, .node = 2, .least = 40},
      {.n = 100, .op = "create", .path = "a/c", .ms = 0.4, .phase = TRIP, .node = 0, .least = 0.2},
      {.n = 100, .op = "create", .path = "a/d", .ms = 0.4, .phase = TRIP, .node = 1, .least = 0.3}},
     "98 %: waiting for node 2 (slow link: 40.0 ms per round trip at least, where others take "
     "0.20)"},
    {".",
     {{.n = 100, .op = "create", .path = "a/b", .ms = 40, .phase = TRIP, .node = 2, .least = 0.2},
      {.n = 100, .op = "create", .path = "a/c", .ms = 0.4, .phase = TRIP, .node = 0, .least = 0.2}},
     "99 %: waiting for node 2 (its partitions or its link are busy: 40.00 ms per round trip, "
     "where "
     "the quickest took 0.20)"},
    {".",
     {{.n = 1000,
       .op = "setxattr",
       .path = "a/b",
       .ms = 0.4,
       .phase = TRIP,
       .node = 2,
       .least = 0.2}},
     "100 %: waiting for node 2 (1000 round trips of 0.40 ms)"},
    {".",
     {{.n = 1000, .op = "create", .path = "a/b", .ms = 0.4, .phase = TRIP, .node = 1, .least = 0.2},
      {.n = 1000,
       .op = "create",
       .path = "a/b",
       .ms = 0.4,
       .phase = TRIP,
       .node = 2,
       .least = 0.2}},
     "100 % of the time: round trips to partitions of 2 nodes, most of them create"},
    {".",
     {{.n = 1,
       .op = "setlk",
       .path = "results.db",
       .ms = 9000,
       .phase = LOCK,
       .node = 0,
       .open = true,
       .holder = 4711,
       .program = "snakemake"},
      {.n = 1000,
       .op = "create",
       .path = "a/b",
       .ms = 0.4,
       .phase = TRIP,
       .node = 1,
       .least = 0.2}},
     "96 % of the time: waiting for locks on results.db that process 4711 (snakemake) holds, or "
     "held last"},
    {".",
     {{.n = 5,
       .op = "flock",
       .path = "results.db",
       .ms = 900,
       .phase = LOCK,
       .node = 0,
       .holder = 12}},
     "100 % of the time: waiting for locks on results.db that process 12 on another mount holds, "
     "or "
     "held last"},
    {".",
     {{.n = 3, .op = "getattr", .path = "x", .ms = 5000, .phase = TRIP, .node = 1, .open = true},
      {.n = 1000,
       .op = "lookup",
       .path = "y",
       .error = "ENOENT",
       .ms = 10,
       .phase = TRIP,
       .node = 0,
       .least = 0.2}},
     "partition 17 on node 1 does not answer: 3 requests wait for it, for 5.0 s so far"},
    {".",
     {{.n = 4, .op = "write", .path = "x", .ms = 5000, .phase = MFS_PHASE_ROOM, .node = 1},
      {.n = 2, .op = "flush", .path = "x", .error = "ENOSPC", .ms = 1, .phase = CLIENT}},
     "node 1 is full: writes wait for room (100 % of the time); 2 requests failed with ENOSPC"},
    {".",
     {{.n = 1, .op = "flush", .path = "x", .error = "ENOSPC", .ms = 1, .phase = CLIENT}},
     "a node is full: 1 request failed with ENOSPC"},
    {".",
     {{.n = 10, .op = "write", .path = "x", .ms = 500, .phase = MFS_PHASE_WINDOW}},
     "100 % of the time: writers wait for room in the write window, as data are written faster "
     "than "
     "partitions take them"},
    {".",
     {{.n = 10, .op = "write", .path = "x", .ms = 500, .phase = MFS_PHASE_MOVE}},
     "100 % of the time: waiting for partitions that are being moved, or can't be reached (cm "
     "events tells which)"},
    {".",
     {{.n = 10, .op = "write", .path = "x", .ms = 500, .phase = MFS_PHASE_MOUNTS}},
     "100 % of the time: waiting until other mounts have dropped what they knew of files and "
     "directories that are changed here"},
    {".",
     {{.n = 10, .op = "read", .path = "x", .ms = 500, .phase = MFS_PHASE_DATA}},
     "100 % of the time: waiting until data are stored or fetched"},
    {".",
     {{.n = 1000, .op = "write", .path = "x", .ms = 1, .phase = CLIENT}},
     "100 % of the time in the client itself, for the most part write: 1000 of 1.000 ms"},
    /* One wait in many slices, most of which are over. */
    {".",
     {{.n = 1,
       .op = "write",
       .path = "x",
       .ms = 60000,
       .phase = MFS_PHASE_WINDOW,
       .open = true,
       .now = 50},
      {.n = 1000, .op = "write", .path = "y", .ms = 1, .phase = CLIENT}},
     "91 % of the time: writers wait for room in the write window, as data are written faster than "
     "partitions take them"},
    {".",
     {{.n = 1, .op = "write", .path = "x", .ms = 15, .phase = MFS_PHASE_WINDOW, .open = true}},
     "100 % of the time: writers wait for room in the write window, as data are written faster "
     "than partitions take them"},
    /* It began long before anybody looked. */
    {".",
     {{.n = 1, .op = "setlk", .path = "l", .ms = 3600000, .phase = LOCK, .holder = 7},
      {.n = 1000, .op = "write", .path = "x", .ms = 30, .phase = MFS_PHASE_WINDOW}},
     "75 % of the time: writers wait for room in the write window, as data are written faster than "
     "partitions take them"},
    /* What others wait for. */
    {"a",
     {{.n = 100, .op = "create", .path = "a/b", .ms = 4, .phase = TRIP, .node = 0, .least = 3.5},
      {.n = 100, .op = "create", .path = "b/c", .ms = 400, .phase = TRIP, .node = 1, .least = 2},
      {.n = 1, .op = "create", .path = "b/d", .ms = 5000, .phase = TRIP, .node = 1, .open = true}},
     "100 %: waiting for node 0 (100 round trips of 4.00 ms)"},
    {".",
     {{.n = 9,
       .op = "flock",
       .path = "l",
       .ms = 900,
       .phase = LOCK,
       .holder = 12,
       .program = "\033[2J"}},
     "100 % of the time: waiting for locks on l that process 12 (''$'\\033''[2J') holds, or held "
     "last"},
    {".",
     {{.n = 10, .op = "write", .path = "x", .ms = 1, .phase = CLIENT}},
     "100 % of the time in the client itself, for the most part write: 10 of 1.000 ms; but no "
     "process waited here for more than 0.01 of 10 s: the file system is not what makes them slow"},
};

static void sentences(void **state)
{
    struct mfs_trace_node node = {.node = 99};
    const struct mfs_trace_nodes none = {0}, idle = {1, &node};

    (void)state;
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct mfs_profile *p = mfs_profile_create(rows[i].below);
        struct mfs_buf b;

        assert_non_null(p);
        /* One that nobody has asked. */
        assert_int_equal(mfs_profile_nodes(p, &none, &idle), 0);
        for (unsigned k = 0; k < KINDS && rows[i].kind[k].n > 0; k++)
            add(p, &rows[i].kind[k]);
        mfs_buf_init(&b);
        assert_int_equal(mfs_profile_sentence(p, 10, &b), 0);
        assert_int_equal(mfs_buf_append(&b, "", 1), 0);
        assert_string_equal(mfs_buf_data(&b), rows[i].sentence);
        mfs_buf_clear(&b);
        assert_int_equal(mfs_profile_text(p, 10, &b), 0);
        assert_int_equal(mfs_profile_json(p, 10, &b), 0);
        mfs_buf_fini(&b);
        mfs_profile_destroy(p);
    }
}

/* The node that keeps senders and fetchers waiting is known by what the client saw of all. */
static void nodes_of_data(void **state)
{
    struct mfs_trace_node was[] = {{.node = 0, .round_trips = 100, .ms = 100},
                                   {.node = 1, .round_trips = 100, .ms = 9000}};
    struct mfs_trace_node is[] = {
        {.node = 0, .round_trips = 200, .ms = 9100, .shortest_ms = 50},
        {.node = 1, .round_trips = 200, .ms = 9100, .shortest_ms = 0.5},
    };
    struct mfs_trace_nodes before = {2, was}, after = {2, is};
    const struct kind k = {.n = 10, .op = "read", .path = "x", .ms = 500, .phase = MFS_PHASE_DATA};
    struct mfs_profile *p = mfs_profile_create(".");
    struct mfs_buf b;

    (void)state;
    assert_non_null(p);
    add(p, &k);
    assert_int_equal(mfs_profile_nodes(p, &before, &after), 0);
    mfs_buf_init(&b);
    assert_int_equal(mfs_profile_sentence(p, 10, &b), 0);
    assert_int_equal(mfs_buf_append(&b, "", 1), 0);
    assert_string_equal(mfs_buf_data(&b),
                        "100 % of the time: waiting until data are stored or fetched, for the most "
                        "part by node 0 (90.0 ms per round trip; slow link: 50.0 at least, where "
                        "others take 0.5)");
    mfs_buf_fini(&b);
    mfs_profile_destroy(p);
}

static void nodes_come_back_from_json(void **state)
{
    struct mfs_trace_node node[] = {{.node = 3, .partitions = 8, .round_trips = 5, .ms = 1.5},
                                    {.node = 4, .silent_ms = 2000, .silent_partition = 9}};
    struct mfs_trace_nodes nodes = {2, node}, back;
    struct mfs_err err;
    struct mfs_buf b;

    (void)state;
    mfs_buf_init(&b);
    assert_int_equal(mfs_trace_nodes_json(&nodes, &b), 0);
    assert_int_equal(mfs_trace_nodes_parse(mfs_buf_data(&b), mfs_buf_len(&b), &back, &err), 0);
    assert_int_equal(back.n, 2);
    assert_int_equal(back.node[0].partitions, 8);
    assert_int_equal(back.node[1].silent_partition, 9);
    mfs_trace_nodes_free(&back);
    mfs_buf_clear(&b);
    assert_int_equal(mfs_trace_nodes_text(&nodes, &b), 0);
    assert_int_equal(mfs_buf_append(&b, "", 1), 0);
    assert_non_null(strstr(mfs_buf_data(&b), "partition 9 does not answer"));
    mfs_buf_fini(&b);
}

static void below(void **state)
{
    (void)state;
    assert_true(mfs_profile_is_below("a/b", "."));
    assert_true(mfs_profile_is_below("a/b", "a"));
    assert_true(mfs_profile_is_below("a", "a"));
    assert_false(mfs_profile_is_below("ab", "a"));
    assert_false(mfs_profile_is_below("a", "a/b"));
    assert_false(mfs_profile_is_below("", "a"));
}

/* ---- rates ----------------------------------------------------------------------------------- */

#define DURATION "memefs_operation_duration_seconds"

static struct mfs_metric_sample figure(const char *name, const char *labels, uint64_t value,
                                       struct mfs_metric_bucket *bucket)
{
    struct mfs_metric_sample s = {.value = value, .bucket = bucket, .nbuckets = bucket != NULL};

    snprintf(s.name, sizeof s.name, "%s", name);
    snprintf(s.labels, sizeof s.labels, "%s", labels);
    if (bucket != NULL) {
        bucket->count = value;
        s.kind = MFS_METRIC_HISTOGRAM;
    }
    return s;
}

static void rates_are_of_the_time_between(void **state)
{
    struct mfs_metric_bucket b[6] = {{.index = 4}, {.index = 10}, {.index = 4},
                                     {.index = 4}, {.index = 10}, {.index = 12}};
    struct mfs_metric_sample was[] = {
        figure(DURATION, "operation=\"read\"", 100, &b[0]),
        figure(DURATION, "operation=\"mkdir\"", 100, &b[1]),
        figure("memefs_lookups_total", "answered_by=\"partition\"", 10, NULL)};
    struct mfs_metric_sample is[] = {
        figure(DURATION, "operation=\"read\"", 300, &b[3]),
        figure(DURATION, "operation=\"mkdir\"", 102, &b[4]),
        figure(DURATION, "operation=\"lookup\"", 98, &b[5]),
        figure("memefs_lookups_total", "answered_by=\"partition\"", 35, NULL),
        figure("memefs_lookups_total", "answered_by=\"lease\"", 75, NULL),
        figure("memefs_read_bytes_total", "", 2000000, NULL),
        figure("memefs_operation_errors_total", "operation=\"lookup\",errno=\"ENOENT\"", 50, NULL),
        figure("memefs_operation_errors_total", "operation=\"mkdir\",errno=\"ENOSPC\"", 4, NULL)};
    const struct mfs_metric_snapshot before = {3, was}, after = {8, is}, none = {0, NULL};
    struct mfs_rates r;
    struct mfs_buf text;

    (void)state;
    mfs_rates_between(&before, &after, 2, &r);
    assert_float_equal(r.read, 100, 1e-6);
    assert_float_equal(r.write, 0, 1e-6);
    assert_float_equal(r.meta, 50, 1e-6);
    assert_float_equal(r.read_bytes, 1e6, 1e-3);
    assert_float_equal(r.errors, 2, 1e-6);
    assert_float_equal(r.hits, 75, 1e-6);
    assert_true(r.p50_ms > 0.008 && r.p50_ms <= 0.016); /* of 300, 200 in bucket 4 */
    assert_true(r.p99_ms > 2.048 && r.p99_ms <= 4.096);
    mfs_rates_between(&after, &none, 2, &r);
    assert_float_equal(r.read, 0, 1e-6);
    assert_true(r.hits < 0);
    mfs_buf_init(&text);
    assert_int_equal(mfs_rates_head(&text), 0);
    assert_int_equal(mfs_rates_text(&r, &text), 0);
    assert_int_equal(mfs_rates_json(&r, 1, &text), 0);
    mfs_buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sentences),
        cmocka_unit_test(nodes_of_data),
        cmocka_unit_test(nodes_come_back_from_json),
        cmocka_unit_test(below),
        cmocka_unit_test(rates_are_of_the_time_between),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
