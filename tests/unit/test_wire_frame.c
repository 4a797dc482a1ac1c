/* Frames come in pieces of any size, and rubbish is told from frames. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "proto/frame.h"

static void byte_by_byte(void **state)
{
    struct mfs_buf out, in;
    char *body;
    size_t len, got = 0;

    (void)state;
    mfs_buf_init(&out);
    mfs_buf_init(&in);
    assert_int_equal(mfs_frame_put(&out, "first", 5), 0);
    assert_int_equal(mfs_frame_put(&out, "2", 1), 0);
    for (size_t i = 0; i < mfs_buf_len(&out); i++) {
        assert_int_equal(mfs_buf_append(&in, mfs_buf_data(&out) + i, 1), 0);
        if (mfs_frame_next(&in, 5, &body, &len) == 1) {
            assert_memory_equal(body, got ? "2" : "first", len);
            assert_int_equal(len, got ? 1 : 5);
            mfs_frame_done(&in, len);
            got++;
        }
    }
    assert_int_equal(got, 2);
    assert_int_equal(mfs_buf_len(&in), 0);
    mfs_buf_fini(&out);
    mfs_buf_fini(&in);
}

static void refused(void **state)
{
    static const char http[] = "GET / HTTP/1.1\r\n";
    char head[4];
    struct mfs_buf in;
    char *body;
    size_t len;

    (void)state;
    mfs_buf_init(&in);
    mfs_buf_append(&in, http, sizeof http);
    assert_int_equal(mfs_frame_next(&in, MFS_FRAME_MAX, &body, &len), -EMSGSIZE);
    mfs_buf_clear(&in);
    mfs_put_be32(head, 0);
    mfs_buf_append(&in, head, 4);
    assert_int_equal(mfs_frame_next(&in, MFS_FRAME_MAX, &body, &len), -EPROTO);
    mfs_buf_clear(&in);
    mfs_put_be32(head, MFS_FRAME_MAX + 1);
    mfs_buf_append(&in, head, 4);
    assert_int_equal(mfs_frame_next(&in, MFS_FRAME_MAX, &body, &len), -EMSGSIZE);
    mfs_buf_clear(&in);
    mfs_put_be32(head, MFS_FRAME_MAX);
    mfs_buf_append(&in, head, 4);
    assert_int_equal(mfs_frame_next(&in, MFS_FRAME_MAX, &body, &len), 0);
    mfs_buf_fini(&in);
}

static void taken_back(void **state)
{
    struct mfs_buf out;
    size_t mark;

    (void)state;
    mfs_buf_init(&out);
    assert_int_equal(mfs_frame_put(&out, "x", 1), 0);
    assert_int_equal(mfs_frame_begin(&out, &mark), 0);
    assert_int_equal(mfs_frame_seal(&out, mark), -EMSGSIZE);
    assert_int_equal(mfs_buf_len(&out), 5);
    assert_int_equal(mfs_frame_begin(&out, &mark), 0);
    assert_non_null(mfs_buf_reserve(&out, MFS_FRAME_MAX + 1));
    mfs_buf_commit(&out, MFS_FRAME_MAX + 1);
    assert_int_equal(mfs_frame_seal(&out, mark), -EMSGSIZE);
    assert_int_equal(mfs_buf_len(&out), 5);
    mfs_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(byte_by_byte),
        cmocka_unit_test(refused),
        cmocka_unit_test(taken_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
