/* Figures as text: what is special in labels, numbers of any size, empty and full histograms, what
 * several programs tell of one metric, and both formats. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "http/exposition.h"

static struct mfs_buf out;
static struct mfs_exposition e;

static int setup(void **state)
{
    (void)state;
    mfs_buf_init(&out);
    e = (struct mfs_exposition){.out = &out};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    mfs_buf_fini(&out);
    return 0;
}

static const char *text(void)
{
    static char copy[65536];

    assert_int_equal(e.rc, 0);
    assert_true(mfs_buf_len(&out) < sizeof copy);
    memcpy(copy, mfs_buf_data(&out), mfs_buf_len(&out));
    copy[mfs_buf_len(&out)] = '\0';
    return copy;
}

static void test_labels(void **state)
{
    char labels[64] = "";

    (void)state;
    assert_int_equal(mfs_exposition_label(labels, sizeof labels, "a", "x\"y\\z\nw"), 0);
    assert_string_equal(labels, "a=\"x\\\"y\\\\z\\nw\"");
    assert_int_equal(mfs_exposition_label(labels, sizeof labels, "b", "\xc3\xa9\xff\xc3"), 0);
    assert_string_equal(labels, "a=\"x\\\"y\\\\z\\nw\",b=\"\xc3\xa9??\"");
    assert_int_equal(mfs_exposition_label(labels, sizeof labels, "c",
                                          "0123456789012345678901234567890123456789"),
                     -ENAMETOOLONG);
    assert_string_equal(labels, "a=\"x\\\"y\\\\z\\nw\",b=\"\xc3\xa9??\"");
}

/* Neither too long a form of a character, nor half of a pair, nor what is beyond Unicode. */
static void test_no_utf8(void **state)
{
    static const char *const bad[] = {"\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
                                      "\xf4\x90\x80\x80", "\x80"};
    char labels[64];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        labels[0] = '\0';
        assert_int_equal(mfs_exposition_label(labels, sizeof labels, "a", bad[i]), 0);
        assert_null(strpbrk(labels, bad[i]));
        assert_non_null(strchr(labels, '?'));
    }
}

static void test_numbers(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0"},          {-3, "-3"},
                 {0.25, "0.25"},    {9007199254740992.0, "9007199254740992"},
                 {1e300, "1e+300"}, {1.0 / 3, "0.333333333"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[64];

        mfs_buf_clear(&out);
        mfs_exposition_number(&e, "memefs_x", "", cases[i].value);
        snprintf(line, sizeof line, "memefs_x %s\n", cases[i].text);
        assert_string_equal(text(), line);
    }
}

static void test_families(void **state)
{
    (void)state;
    mfs_exposition_one(&e, "memefs_a_bytes_total", MFS_METRIC_COUNTER, "Help\\me.", 7);
    mfs_exposition_end(&e);
    assert_string_equal(text(), "# HELP memefs_a_bytes_total Help\\\\me.\n"
                                "# TYPE memefs_a_bytes_total counter\nmemefs_a_bytes_total 7\n");
    mfs_buf_clear(&out);
    e.open = true;
    mfs_exposition_one(&e, "memefs_a_bytes_total", MFS_METRIC_COUNTER, "Help.", 7);
    mfs_exposition_end(&e);
    assert_string_equal(text(), "# HELP memefs_a_bytes Help.\n# TYPE memefs_a_bytes counter\n"
                                "# UNIT memefs_a_bytes bytes\nmemefs_a_bytes_total 7\n# EOF\n");
}

static const char *const sizes[] = {"small", "large"};

static const struct mfs_metric table[] = {
    {.name = "memefs_times_seconds", .help = "Times.", .kind = MFS_METRIC_HISTOGRAM},
    {.name = "memefs_things_total",
     .help = "Things.",
     .kind = MFS_METRIC_COUNTER,
     .label = {{"size", sizes, 2}}}};

/* Two programs that have counted the same: each family is there once. */
static void test_sources(void **state)
{
    struct mfs_exposition_source s[2] = {{"node=\"a\"", NULL}, {"", NULL}};
    struct mfs_metric_snapshot snapshot[2];
    struct mfs_metrics *registry[2];
    struct mfs_metric_set *set[2];
    const char *said;

    (void)state;
    for (int i = 0; i < 2; i++) {
        registry[i] = mfs_metrics_create();
        assert_int_equal(mfs_metric_set_create(&set[i], registry[i], table, 2), 0);
        mfs_metric_add(set[i], 1, 1, UINT64_C(1) << 52);
    }
    mfs_metric_observe(set[1], 0, 0, 3 * MFS_MSEC);
    mfs_metric_observe(set[1], 0, 0, 100 * MFS_SEC);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(mfs_metrics_read(registry[i], &snapshot[i]), 0);
        s[i].figures = &snapshot[i];
    }
    mfs_exposition_sources(&e, s, 2);
    said = text();
    assert_non_null(strstr(said, "# TYPE memefs_times_seconds histogram\n"
                                 "memefs_times_seconds_bucket{node=\"a\",le=\"1e-06\"} 0\n"));
    assert_non_null(strstr(said, "memefs_times_seconds_count{node=\"a\"} 0\n"));
    assert_non_null(strstr(said, "memefs_times_seconds_bucket{le=\"0.002048\"} 0\n"
                                 "memefs_times_seconds_bucket{le=\"0.004096\"} 1\n"));
    assert_non_null(strstr(said, "memefs_times_seconds_bucket{le=\"33.554432\"} 1\n"
                                 "memefs_times_seconds_bucket{le=\"+Inf\"} 2\n"
                                 "memefs_times_seconds_sum 100.003000000\n"
                                 "memefs_times_seconds_count 2\n"));
    assert_non_null(strstr(said, "# TYPE memefs_things_total counter\n"
                                 "memefs_things_total{node=\"a\",size=\"small\"} 0\n"
                                 "memefs_things_total{node=\"a\",size=\"large\"} 4503599627370496\n"
                                 "memefs_things_total{size=\"small\"} 0\n"
                                 "memefs_things_total{size=\"large\"} 4503599627370496\n"));
    said = strstr(said, "# HELP memefs_times_seconds Times.\n");
    assert_non_null(said);
    assert_null(strstr(said + 1, "# HELP memefs_times_seconds"));
    for (int i = 0; i < 2; i++) {
        mfs_metric_snapshot_free(&snapshot[i]);
        mfs_metric_set_destroy(set[i]);
        mfs_metrics_destroy(registry[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_labels, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_utf8, setup, teardown),
        cmocka_unit_test_setup_teardown(test_numbers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_families, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sources, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
