/* What makes one text of another. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/edits.h"

static void text(struct mfs_buf *b, const char *s)
{
    mfs_buf_init(b);
    assert_int_equal(mfs_buf_append(b, s, strlen(s)), 0);
}

/* Returns how many bytes the edits bring and cut. */
static size_t check(struct mfs_buf *from, const struct mfs_buf *to)
{
    struct mfs_edit *list;
    size_t bytes = 0;
    uint32_t n;

    assert_int_equal(mfs_edits_make(from, to, &list, &n), 0);
    for (uint32_t i = 0; i < n; i++)
        bytes += list[i].cut + strlen(list[i].text);
    assert_int_equal(mfs_edits_apply(from, list, n), 0);
    assert_int_equal(mfs_buf_len(from), mfs_buf_len(to));
    if (mfs_buf_len(to))
        assert_memory_equal(mfs_buf_data(from), mfs_buf_data(to), mfs_buf_len(to));
    mfs_edits_free(list, n);
    return bytes;
}

static void few_lines(void **state)
{
    static const struct {
        const char *from, *to;
        size_t bytes;
    } tests[] = {{"", "", 0},
                 {"", "a\n", 2},
                 {"a\n", "", 2},
                 {"a\nb\nc\n", "a\nb\nc\n", 0},
                 {"a\nb\nc\n", "a\nx\nc\n", 4},
                 {"a\nb\nc\n", "a\nc\n", 2},
                 {"a\nb\nc\n", "a\nb\nx\ny\nc\n", 4},
                 {"a\nb\nc", "a\nb\ncd", 3},
                 {"a\nb\nc\nd\n", "x\nb\nc\ny\n", 8},
                 {"a\nb\nc\nd\n", "a\nx\nd\n", 6},
                 {"a\nb\nd\n", "a\nx\ny\nd\n", 6}};

    (void)state;
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        struct mfs_buf from, to;

        text(&from, tests[i].from);
        text(&to, tests[i].to);
        assert_int_equal(check(&from, &to), tests[i].bytes);
        mfs_buf_fini(&from);
        mfs_buf_fini(&to);
    }
}

static void random_texts(void **state)
{
    unsigned seed = 7;

    (void)state;
    for (int round = 0; round < 300; round++) {
        struct mfs_buf from, to;
        int lines = rand_r(&seed) % 2000;

        mfs_buf_init(&from);
        mfs_buf_init(&to);
        for (int i = 0; i < lines; i++) {
            int what = rand_r(&seed) % 200;

            if (what)
                mfs_buf_printf(&from, "line %d %d\n", i, rand_r(&seed) % 2);
            if (what > 2 && mfs_buf_len(&from))
                mfs_buf_printf(&to, "line %d %d\n", i, rand_r(&seed) % 2);
            if (what == 7)
                mfs_buf_printf(&to, "more\n");
        }
        check(&from, &to);
        mfs_buf_fini(&from);
        mfs_buf_fini(&to);
    }
}

/* Of a long text only what has changed. */
static void long_text(void **state)
{
    struct mfs_buf from, to;

    (void)state;
    mfs_buf_init(&from);
    mfs_buf_init(&to);
    for (int i = 0; i < 100000; i++) {
        mfs_buf_printf(&from, "partition %d\n", i);
        if (i == 500)
            mfs_buf_printf(&to, "a line more\n");
        if (i != 70000)
            mfs_buf_printf(&to, "partition %d%s\n", i, i == 40000 ? " moves" : "");
    }
    assert_true(check(&from, &to) < 100);
    mfs_buf_fini(&from);
    mfs_buf_fini(&to);
}

static void edits_that_lie_outside(void **state)
{
    static const struct mfs_edit bad[] = {
        {3, 1, NULL}, {4, 0, NULL}, {0, 4, NULL}, {1, UINT64_MAX, NULL}};
    struct mfs_edit good = {3, 0, NULL};
    struct mfs_buf b;

    (void)state;
    text(&b, "abc");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(mfs_edits_apply(&b, &bad[i], 1), -EINVAL);
    assert_int_equal(mfs_edits_apply(&b, &good, 1), 0);
    assert_int_equal(mfs_buf_len(&b), 3);
    mfs_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_lines),
        cmocka_unit_test(random_texts),
        cmocka_unit_test(long_text),
        cmocka_unit_test(edits_that_lie_outside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
