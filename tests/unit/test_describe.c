/* What cm describe takes from a status, and which events it finds. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cm/cli/describe.h"
#include "cm/cli/render.h"
#include "show/clients.h"

static struct mfs_status_node nodes[] = {
    {.id = 0, .name = "node-0", .address = "10.0.0.1", .state = "up", .mount = "/mnt/memefs"},
    {.id = 1, .name = "node-1", .address = "10.0.0.2", .state = "up", .mount = "/mnt/memefs"},
    {.id = 2, .name = "node-2", .address = "10.0.0.3", .state = "up"}};
static struct mfs_mount mounts[] = {{.node = "node-0", .path = "/mnt/memefs", .pid = 11},
                                    {.node = "node-2", .path = "/mnt/memefs", .pid = 12},
                                    {.node = "node-2", .path = "/mnt/other", .pid = 13}};
/* The first one's node is none of the list. */
static struct mfs_status_place places[] = {{.partition = 0, .node = "gone", .replica = "node-1"}};

static const struct mfs_status status = {.nnodes = 3,
                                         .node = nodes,
                                         .nmounts = 3,
                                         .mount = mounts,
                                         .nplaces = 1,
                                         .place = places,
                                         .partitions = 1};

static unsigned count(const struct mfs_description *d, const char *words)
{
    struct mfs_buf b;
    unsigned n = 0;

    mfs_buf_init(&b);
    assert_int_equal(mfs_describe_render(d, &b), 0);
    assert_int_equal(mfs_buf_append(&b, "", 1), 0);
    for (const char *at = mfs_buf_data(&b); (at = strstr(at, words)); at++)
        n++;
    mfs_buf_fini(&b);
    return n;
}

static void a_path_that_several_nodes_have(void **state)
{
    struct mfs_description d;
    struct mfs_err err;

    (void)state;
    assert_int_equal(mfs_describe(&status, "/mnt/memefs", &d, &err), 0);
    assert_int_equal(d.nnodes, 3);
    assert_int_equal(d.nclients, 2);
    assert_int_equal(count(&d, "\nNode: "), 3);
    assert_int_equal(count(&d, "process 12 "), 1);
    mfs_schema_clear(&mfs_description_schema, &d);
    assert_int_equal(mfs_describe(&status, "/mnt/other", &d, &err), 0);
    assert_int_equal(d.nnodes, 1);
    assert_string_equal(d.node[0].name, "node-2");
    mfs_schema_clear(&mfs_description_schema, &d);
    assert_int_equal(mfs_describe(&status, "/mnt", &d, &err), -ENOENT);
}

static void a_node_that_is_not_known_has_no_other_in_its_place(void **state)
{
    static const struct mfs_status none = {.nnodes = 0};
    struct mfs_description d;
    struct mfs_err err;

    (void)state;
    assert_int_equal(mfs_describe(&status, "0", &d, &err), 0);
    assert_int_equal(count(&d, "Replica:      node-1"), 1);
    assert_int_equal(count(&d, "Node: "), 0);
    mfs_schema_clear(&mfs_description_schema, &d);
    assert_int_equal(mfs_describe(&none, "0", &d, &err), -ENOENT);
    assert_null(strstr(err.msg, "4294967295"));
}

static bool is_about(const char *kind, const char *name, const char *text)
{
    struct mfs_description d = {0};
    struct mfs_event e = {.who = "cm"};

    snprintf(d.kind, sizeof d.kind, "%s", kind);
    snprintf(d.name, sizeof d.name, "%s", name);
    snprintf(e.text, sizeof e.text, "%s", text);
    return mfs_describe_event(&d, &e);
}

static void events_of_it_alone(void **state)
{
    (void)state;
    assert_true(is_about("mount", "/mnt", "/mnt"));
    assert_true(is_about("mount", "/mnt", "process 7 of /mnt: exited"));
    assert_false(is_about("mount", "/mnt", "/mnt/data: exited"));
    assert_false(is_about("mount", "/mnt", "/mnt-2"));
    assert_false(is_about("mount", "/data", "/mnt/data"));
    assert_true(is_about("node", "node-1", "node-1 -> node-2"));
    assert_false(is_about("node", "node-1", "node-12"));
}

/* Bytes of names, for programs and for a terminal. */
static void nothing_is_for_the_terminal(void **state)
{
    struct mfs_event e = {.text = "m\xff\x1b[2J \xc2\x9b \xc3\xa9 \xf0\x9f"};
    struct mfs_buf b;

    (void)state;
    mfs_buf_init(&b);
    assert_int_equal(mfs_render_json(&mfs_event_schema, &e, &b), 0);
    assert_int_equal(mfs_buf_append(&b, "", 1), 0);
    assert_non_null(
        strstr(mfs_buf_data(&b), "m\\udcff\\u001b[2J \\u009b \xc3\xa9 \\udcf0\\udc9f\"}\n"));
    mfs_buf_clear(&b);
    assert_int_equal(mfs_show_event(&e, &b), 0);
    assert_int_equal(mfs_buf_append(&b, "", 1), 0);
    mfs_render_tame(&b);
    assert_non_null(strstr(mfs_buf_data(&b), "m??[2J ?? \xc3\xa9 ??\n"));
    mfs_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_that_several_nodes_have),
        cmocka_unit_test(a_node_that_is_not_known_has_no_other_in_its_place),
        cmocka_unit_test(events_of_it_alone),
        cmocka_unit_test(nothing_is_for_the_terminal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
