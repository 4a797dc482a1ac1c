/* The bytes of a partition's journal, and the marks that it is written anew by. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "meta_fixture.h"
#include "partition/journal/format.h"
#include "partition/journal/marks.h"

static struct mfs_span text(const char *s)
{
    return (struct mfs_span){s, strlen(s)};
}

static void add(struct mfs_answer *b, const char *key, const char *field, const char *value,
                int64_t number)
{
    struct mfs_journal_record r = {MFS_JOURNAL_FIELD, text(key), text(field), text(value), number};

    mfs_journal_batch_add(b, &r);
}

/* Three batches: of one record, of two, of a long one. */
static struct mfs_buf sample(size_t ends[3])
{
    static char longer[5000];
    struct mfs_answer b = {0};
    struct mfs_buf all;

    memset(longer, 'x', sizeof longer - 1);
    mfs_buf_init(&all);
    for (int i = 0; i < 3; i++) {
        mfs_journal_batch_begin(&b);
        assert_true(mfs_journal_batch_empty(&b));
        add(&b, i == 2 ? longer : "key", "field", "", i);
        if (i == 1)
            add(&b, "", "", "value", -1);
        assert_false(mfs_journal_batch_empty(&b));
        mfs_journal_batch_seal(&b);
        assert_int_equal(mfs_buf_append(&all, b.p, b.n), 0);
        ends[i] = mfs_buf_len(&all);
    }
    free(b.p);
    return all;
}

static int batches(const char *p, size_t n, struct mfs_span *rest)
{
    struct mfs_span batch;
    int count = 0;

    *rest = (struct mfs_span){p, n};
    while (mfs_journal_next_batch(rest, &batch) > 0)
        count++;
    return count;
}

static void test_records_come_back(void **state)
{
    struct mfs_journal_record r;
    struct mfs_span rest, batch;
    size_t ends[3];
    struct mfs_buf all = sample(ends);

    (void)state;
    rest = (struct mfs_span){mfs_buf_data(&all), mfs_buf_len(&all)};
    assert_int_equal(mfs_journal_next_batch(&rest, &batch), 1);
    assert_int_equal(mfs_journal_next(&batch, &r), 1);
    assert_int_equal(r.kind, MFS_JOURNAL_FIELD);
    assert_int_equal(r.key.n, 3);
    assert_memory_equal(r.key.p, "key", 3);
    assert_memory_equal(r.field.p, "field", 5);
    assert_int_equal(r.value.n, 0);
    assert_int_equal(mfs_journal_next(&batch, &r), 0);
    assert_int_equal(mfs_journal_next_batch(&rest, &batch), 1);
    assert_int_equal(mfs_journal_next(&batch, &r), 1);
    assert_int_equal(r.number, 1);
    assert_int_equal(mfs_journal_next(&batch, &r), 1);
    assert_int_equal(r.number, -1);
    assert_memory_equal(r.value.p, "value", 5);
    assert_int_equal(mfs_journal_next(&batch, &r), 0);
    mfs_buf_fini(&all);
}

/* Cut anywhere, it has the whole batches before that, and ends there. */
static void test_every_cut_is_seen(void **state)
{
    size_t ends[3];
    struct mfs_buf all = sample(ends);
    struct mfs_span rest;

    (void)state;
    for (size_t n = 0; n <= mfs_buf_len(&all); n++) {
        int whole = (n >= ends[0]) + (n >= ends[1]) + (n >= ends[2]);

        assert_int_equal(batches(mfs_buf_data(&all), n, &rest), whole);
        assert_int_equal(n - rest.n, whole ? ends[whole - 1] : 0);
    }
    mfs_buf_fini(&all);
}

static void test_every_changed_byte_is_seen(void **state)
{
    size_t ends[3];
    struct mfs_buf all = sample(ends);
    char *p = mfs_buf_data(&all);
    struct mfs_span rest;

    (void)state;
    for (size_t i = 0; i < ends[1]; i++) {
        p[i] = (char)(p[i] ^ 0x10);
        assert_int_equal(batches(p, mfs_buf_len(&all), &rest), i >= ends[0]);
        p[i] = (char)(p[i] ^ 0x10);
    }
    mfs_buf_fini(&all);
}

static void test_marks_are_there_once_and_in_order(void **state)
{
    struct mfs_span key, field, whole = {NULL, 0};
    struct mfs_marks m = {0};
    size_t at = 0;
    char name[16];

    (void)state;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 1000; i++) {
            snprintf(name, sizeof name, "%d", i);
            mfs_marks_add(&m, text(name), i % 2 ? text("f") : whole);
            mfs_marks_add(&m, text("0"), text(""));
        }
    }
    assert_int_equal(m.n, 1001);
    for (int i = 0; i < 1001; i++) {
        snprintf(name, sizeof name, "%d", i > 1 ? i - 1 : 0);
        assert_true(mfs_marks_next(&m, &at, &key, &field));
        assert_int_equal(key.n, strlen(name));
        assert_memory_equal(key.p, name, key.n);
    }
    assert_false(mfs_marks_next(&m, &at, &key, &field));
    mfs_marks_clear(&m);
    at = 0;
    assert_false(mfs_marks_next(&m, &at, &key, &field));
    free(m.bytes.p);
    free(m.slot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records_come_back),
        cmocka_unit_test(test_every_cut_is_seen),
        cmocka_unit_test(test_every_changed_byte_is_seen),
        cmocka_unit_test(test_marks_are_there_once_and_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
