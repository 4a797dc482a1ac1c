/* Checksums of images: the same bytes have the same one under its key, however they come in pieces,
 * and no other; nothing but such a text is taken for one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/image_sum.h"

#define BYTES 5000

static char image[BYTES];

static void sum(const char *like, size_t piece, char out[MFS_IMAGE_SUM_TEXT])
{
    struct mfs_image_sum *s = mfs_image_sum_create(like);

    assert_non_null(s);
    for (size_t at = 0; at < BYTES; at += piece)
        assert_int_equal(mfs_image_sum_add(s, image + at, piece < BYTES - at ? piece : BYTES - at),
                         0);
    assert_int_equal(mfs_image_sum_text(s, out), 0);
    assert_true(mfs_image_sum_valid(out));
    mfs_image_sum_destroy(s);
}

static void test_the_same_bytes(void **state)
{
    char first[MFS_IMAGE_SUM_TEXT], again[MFS_IMAGE_SUM_TEXT];

    (void)state;
    memset(image, 'x', sizeof image);
    sum(NULL, BYTES, first);
    for (size_t piece = 1; piece < BYTES; piece = 3 * piece + 1) {
        sum(first, piece, again);
        assert_true(mfs_image_sum_equal(first, again));
    }
}

static void test_other_bytes(void **state)
{
    char first[MFS_IMAGE_SUM_TEXT], again[MFS_IMAGE_SUM_TEXT];

    (void)state;
    sum(NULL, BYTES, first);
    for (size_t at = 0; at < BYTES; at += 97) {
        image[at] ^= 1;
        sum(first, BYTES, again);
        assert_false(mfs_image_sum_equal(first, again));
        image[at] ^= 1;
    }
}

/* Without the key nobody can tell what the checksum of any bytes is. */
static void test_each_has_its_own_key(void **state)
{
    char first[MFS_IMAGE_SUM_TEXT], second[MFS_IMAGE_SUM_TEXT];
    const size_t key = 64;

    (void)state;
    sum(NULL, BYTES, first);
    sum(NULL, BYTES, second);
    assert_int_not_equal(memcmp(first, second, key), 0);
    assert_string_not_equal(first + key, second + key);
}

static void test_what_is_no_checksum(void **state)
{
    char text[MFS_IMAGE_SUM_TEXT + 1];

    (void)state;
    sum(NULL, BYTES, text);
    assert_false(mfs_image_sum_valid(""));
    assert_false(mfs_image_sum_valid(text + 1));
    text[5] = 'g';
    assert_false(mfs_image_sum_valid(text));
    errno = 0;
    assert_null(mfs_image_sum_create(text));
    assert_int_equal(errno, EINVAL);
    assert_false(mfs_image_sum_equal(text, text + 1));
    mfs_image_sum_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_bytes),
        cmocka_unit_test(test_other_bytes),
        cmocka_unit_test(test_each_has_its_own_key),
        cmocka_unit_test(test_what_is_no_checksum),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
