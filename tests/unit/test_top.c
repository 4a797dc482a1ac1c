/* What cm top computes from samples. ctest: single */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/text.h"
#include "cm/cli/describe.h"
#include "cm/cli/top/model.h"
#include "cm/nodes/mounts.h"
#include "show/figures.h"

static struct mfs_status make_status(uint32_t nodes, uint32_t moves)
{
    struct mfs_status s = {.nnodes = nodes, .nmoves = moves, .partitions = 8};

    s.node = calloc(nodes + 1, sizeof *s.node);
    s.move = calloc(moves + 1, sizeof *s.move);
    assert_true(s.node && s.move);
    for (uint32_t i = 0; i < nodes; i++) {
        s.node[i].id = i;
        snprintf(s.node[i].name, sizeof s.node[i].name, "node-%u", i);
    }
    return s;
}

static void move_is(struct mfs_status *s, uint32_t i, uint32_t part, uint64_t bytes)
{
    s->move[i] = (struct mfs_status_move){.partition = part,
                                          .from = 0,
                                          .to = 1,
                                          .step = "copying",
                                          .bytes = bytes,
                                          .bytes_total = 1000};
}

static void moves_have_rates_and_time_left(void **state)
{
    struct mfs_status s = make_status(2, 3);
    struct mfs_top_sample first, second;
    char left[16];

    (void)state;
    move_is(&s, 0, 4, 100);
    move_is(&s, 1, 5, 500);
    move_is(&s, 2, 6, 800);
    assert_int_equal(mfs_top_make(&first, 10 * MFS_SEC, &s, NULL, NULL), 0);
    assert_null(s.node);
    assert_true(first.move[0].left_seconds < 0);
    s = make_status(2, 4);
    move_is(&s, 0, 6, 10); /* was begun anew */
    move_is(&s, 1, 4, 300);
    move_is(&s, 2, 5, 500); /* stands */
    move_is(&s, 3, 1, 0);   /* is new */
    strcpy(s.move[3].step, "waiting");
    assert_int_equal(mfs_top_make(&second, 12 * MFS_SEC, &s, NULL, &first), 0);
    assert_string_equal(second.move[0].from, "node-0");
    assert_true(second.move[0].rate == 100 && second.move[0].left_seconds == 7);
    assert_int_equal(second.move[3].partition, 1); /* it waits */
    for (int i = 0; i < 4; i++)
        assert_true(i == 0 || (second.move[i].rate == 0 && second.move[i].left_seconds < 0));
    mfs_top_clear(&first);
    mfs_top_clear(&second);
    assert_string_equal(mfs_top_left(7, left), "7 s");
    assert_string_equal(mfs_top_left(124.2, left), "2:05");
    assert_string_equal(mfs_top_left(3723, left), "1:02:03");
    assert_string_equal(mfs_top_left(-1, left), "-");
    assert_string_equal(mfs_top_left(1e9, left), "-");
}

/* A client tells every few seconds: between, its rates stay. */
static void mounts_have_rates(void **state)
{
    struct mfs_mount clients[] = {
        {.path = "/m/2",
         .node = "node-1",
         .pid = 7,
         .age_ms = 0,
         .operations = 100,
         .read_bytes = 10},
        {.path = "/m/1", .node = "node-0", .pid = 8, .age_ms = 0, .operations = 100}};
    const struct mfs_mounts mounts = {.n = 2, .mount = clients};
    struct mfs_status s = make_status(2, 0);
    struct mfs_top_sample a, b, c, d;
    uint32_t order[2];

    (void)state;
    assert_int_equal(mfs_top_make(&a, 10 * MFS_SEC, &s, &mounts, NULL), 0);
    assert_string_equal(a.mount[0].path, "/m/1");
    clients[0].operations = 300;
    clients[0].read_bytes = 30;
    clients[1].age_ms = 4000;
    s = make_status(2, 0);
    assert_int_equal(mfs_top_make(&b, 14 * MFS_SEC, &s, &mounts, &a), 0);
    assert_true(b.mount[1].operations_rate == 50 && b.mount[1].read_rate == 5);
    assert_true(b.mount[0].operations_rate == 0);
    clients[0].age_ms = 1000;
    clients[1].age_ms = 0;
    clients[1].operations = 1100;
    s = make_status(2, 0);
    assert_int_equal(mfs_top_make(&c, 15 * MFS_SEC, &s, &mounts, &b), 0);
    assert_true(c.mount[1].operations_rate == 50); /* nothing new */
    assert_true(c.mount[0].operations_rate == 200);
    mfs_top_sort(&c, MFS_TOP_BY_OPERATIONS, order);
    assert_int_equal(order[0], 0);
    mfs_top_sort(&b, MFS_TOP_BY_OPERATIONS, order);
    assert_int_equal(order[0], 1);
    mfs_top_sort_mounts(&b, MFS_TOP_BY_OPERATIONS, order);
    assert_int_equal(order[0], 1);
    mfs_top_sort_mounts(&b, MFS_TOP_BY_NAME, order);
    assert_int_equal(order[0], 0);
    clients[1].pid = 9; /* another client at the same place */
    clients[1].operations = 5;
    s = make_status(2, 0);
    assert_int_equal(mfs_top_make(&d, 16 * MFS_SEC, &s, &mounts, &c), 0);
    assert_true(d.mount[0].operations_rate == 0);
    mfs_top_clear(&a);
    mfs_top_clear(&b);
    mfs_top_clear(&c);
    mfs_top_clear(&d);
}

static void nodes_are_sorted(void **state)
{
    struct mfs_top_sample sample = {.status = make_status(12, 0)};
    struct mfs_status s = sample.status;
    uint32_t order[12];

    (void)state;
    for (uint32_t i = 0; i < s.nnodes; i++)
        s.node[i].memory_capacity = 1000;
    s.node[11].memory_used = 10; /* 1 % */
    s.node[3].memory_used = 20;
    s.node[3].memory_capacity = 10000; /* 0.2 % */
    s.node[4].bandwidth_in = 5;
    s.node[5].bandwidth_out = 5;
    mfs_top_sort(&sample, MFS_TOP_BY_NAME, order);
    for (uint32_t i = 0; i < s.nnodes; i++)
        assert_int_equal(order[i], i); /* node-2 before node-10 */
    mfs_top_sort(&sample, MFS_TOP_BY_MEMORY, order);
    assert_int_equal(order[0], 11);
    assert_int_equal(order[1], 3);
    assert_int_equal(order[2], 0);
    mfs_top_sort(&sample, MFS_TOP_BY_IN, order);
    assert_int_equal(order[0], 4);
    mfs_top_sort(&sample, MFS_TOP_BY_OUT, order);
    assert_int_equal(order[0], 5);
    mfs_schema_clear(&mfs_status_schema, &s);
}

static void bars_have_cells(void **state)
{
    (void)state;
    assert_int_equal(mfs_show_cells(0, 100, 10), 0);
    assert_int_equal(mfs_show_cells(0.1, 100, 10), 1); /* something is not nothing */
    assert_int_equal(mfs_show_cells(50, 100, 10), 5);
    assert_int_equal(mfs_show_cells(200, 100, 10), 10);
    assert_int_equal(mfs_show_cells(1, 0, 10), 0);
    assert_int_equal(mfs_show_cells(1, 1, 0), 0);
}

static void a_thing_is_described(void **state)
{
    struct mfs_status s = make_status(11, 1);
    struct mfs_description d;
    struct mfs_err err;
    struct mfs_event e = {.who = "cm", .what = "moved", .text = "partition 1: node-0 to node-10"};

    (void)state;
    move_is(&s, 0, 1, 5);
    s.place = calloc(2, sizeof *s.place);
    assert_non_null(s.place);
    s.nplaces = 2;
    for (uint32_t i = 0; i < 2; i++)
        s.place[i] = (struct mfs_status_place){i, "node-0", "node-1", 7};
    assert_int_equal(mfs_describe(&s, "node-1", &d, &err), 0);
    assert_true(d.nplaces == 0 && d.nreplicas == 2 && d.nmoves == 1);
    assert_false(mfs_describe_event(&d, &e)); /* it is of node-10 */
    mfs_schema_clear(&mfs_description_schema, &d);
    assert_int_equal(mfs_describe(&s, "1", &d, &err), 0);
    assert_string_equal(d.kind, "partition");
    assert_true(d.nplaces == 1 && d.nnodes == 2 && d.nmoves == 1 && mfs_describe_event(&d, &e));
    strcpy(e.text, "partition 12: node-0 to node-10");
    assert_false(mfs_describe_event(&d, &e));
    mfs_schema_clear(&mfs_description_schema, &d);
    assert_int_equal(mfs_describe(&s, "2", &d, &err), -ENOENT);
    assert_int_equal(mfs_describe(&s, "", &d, &err), -ENOENT);
    assert_int_equal(mfs_describe(&s, "/mnt", &d, &err), -ENOENT);
    mfs_schema_clear(&mfs_status_schema, &s);
}

#define DURATION "memefs_operation_duration_seconds"

static void mounts_are_added_up(void **state)
{
    struct mfs_metric_sample one[] = {
        {.name = DURATION, .labels = "operation=\"write\"", .value = 10, .sum = 1, .max = 0.5},
        {.name = DURATION, .labels = "operation=\"lookup\"", .value = 5, .sum = 2, .max = 1}};
    struct mfs_metric_sample two[] = {
        {.name = DURATION, .labels = "operation=\"write\"", .value = 30, .sum = 3, .max = 0.7},
        {.name = "memefs_operation_errors_total",
         .labels = "operation=\"write\",errno=\"ENOSPC\"",
         .value = 4},
        {.name = "memefs_operation_errors_total",
         .labels = "operation=\"lookup\",errno=\"ENOENT\"",
         .value = 5}};
    struct mfs_hot_item files[] = {{.name = "a", .requests = 3}, {.name = "b", .requests = 1}};
    struct mfs_mount mount[] = {
        {.figures = {2, one}, .rate = 100, .hot = {.requests = 4, .nfiles = 2, .file = files}},
        {.figures = {3, two}, .rate = 40, .hot = {.requests = 4, .nfiles = 1, .file = &files[1]}}};
    struct mfs_mounts list = {.n = 2, .mount = calloc(2, sizeof *list.mount)};

    (void)state;
    assert_non_null(list.mount);
    memcpy(list.mount, mount, sizeof mount);
    assert_int_equal(mfs_mounts_sum_up(&list), 0);
    assert_int_equal(list.nops, 2);
    assert_string_equal(list.op[0].name, "write");
    assert_int_equal(list.op[0].operations, 40);
    assert_int_equal(list.op[0].errors, 4);
    assert_true(list.op[0].seconds > 3.9 && list.op[0].max > 0.69 && list.op[0].max < 0.71);
    assert_int_equal(list.op[1].errors, 0); /* what is not there is none */
    assert_int_equal(list.nfiles, 2);
    assert_string_equal(list.file[0].name, "a");
    assert_true(list.file[0].rate > 74 && list.file[0].rate < 76 && list.file[0].mounts == 1);
    assert_true(list.file[1].rate > 34 && list.file[1].rate < 36 && list.file[1].mounts == 2);
    assert_int_equal(list.ndirs, 0);
    mfs_mounts_list_free(&list);
}

/* A rate is over the time between what the clients told, not between the samples. */
static void operations_have_rates(void **state)
{
    struct mfs_mount client = {.path = "/m", .node = "node-0", .pid = 7, .operations = 10};
    struct mfs_mounts_op op = {.name = "write", .operations = 10, .seconds = 1};
    struct mfs_mounts mounts = {.n = 1, .mount = &client, .nops = 1, .op = &op};
    struct mfs_status s = make_status(1, 0);
    struct mfs_top_sample before, soon, now, silent;

    (void)state;
    client.age_ms = 1500;
    assert_int_equal(mfs_top_make(&before, 10 * MFS_SEC, &s, &mounts, NULL), 0);
    client.age_ms = 2500; /* it has not told anew */
    s = make_status(1, 0);
    assert_int_equal(mfs_top_make(&soon, 11 * MFS_SEC, &s, &mounts, &before), 0);
    assert_true(soon.op[0].operations_rate <= 0);
    assert_int_equal(soon.ops_at, before.ops_at);
    client.age_ms = 0;
    client.operations = op.operations = 50;
    op.seconds = 1.4;
    s = make_status(1, 0);
    assert_int_equal(mfs_top_make(&now, 12500 * MFS_MSEC, &s, &mounts, &soon), 0);
    assert_true(now.op[0].operations_rate > 9.9 &&
                now.op[0].operations_rate < 10.1); /* 40 in 4 s */
    assert_true(now.mount[0].operations_rate > 9.9 && now.mount[0].operations_rate < 10.1);
    assert_true(now.op[0].mean > 0.009 && now.op[0].mean < 0.011);
    client.age_ms = 11000;
    s = make_status(1, 0);
    assert_int_equal(mfs_top_make(&silent, 23500 * MFS_MSEC, &s, &mounts, &now), 0);
    assert_true(silent.op[0].operations_rate <= 0 && silent.mount[0].operations_rate <= 0);
    mfs_top_clear(&before);
    mfs_top_clear(&soon);
    mfs_top_clear(&now);
    mfs_top_clear(&silent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(moves_have_rates_and_time_left),
                                       cmocka_unit_test(mounts_have_rates),
                                       cmocka_unit_test(nodes_are_sorted),
                                       cmocka_unit_test(bars_have_cells),
                                       cmocka_unit_test(a_thing_is_described),
                                       cmocka_unit_test(mounts_are_added_up),
                                       cmocka_unit_test(operations_have_rates)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
