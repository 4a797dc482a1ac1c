/* Sizes, numbers, hexadecimal, likeness: what they take and what they refuse. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"

static void sizes(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"0", 0},
                {"4096", 4096},
                {"1k", 1024},
                {"4G", 4ULL << 30},
                {"512MiB", 512ULL << 20},
                {"1.5g", 3ULL << 29},
                {"2TB", 2ULL << 40},
                {"7B", 7},
                {"1P", 1ULL << 50}};
    static const char *const bad[] = {"",     "G",   "-1",  "4X",    "4GG", " 4", "4 ",
                                      "0x10", "inf", "nan", "4Gbit", "+4",  "4i", "1e"};
    uint64_t v;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(mfs_text_size(good[i].text, &v), 0);
        assert_int_equal(v, good[i].bytes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(mfs_text_size(bad[i], &v), -EINVAL);
    assert_int_equal(mfs_text_size("9000P", &v), -ERANGE);
}

static void numbers(void **state)
{
    uint64_t u;
    double d;
    bool b;

    (void)state;
    assert_int_equal(mfs_text_u64("18446744073709551615", &u), 0);
    assert_true(u == UINT64_MAX);
    assert_int_equal(mfs_text_u64("18446744073709551616", &u), -ERANGE);
    assert_int_equal(mfs_text_u64("12abc", &u), -EINVAL);
    assert_int_equal(mfs_text_u64("-1", &u), -EINVAL);
    assert_int_equal(mfs_text_u64("", &u), -EINVAL);
    assert_int_equal(mfs_text_f64("2.5", &d), 0);
    assert_true(d == 2.5);
    assert_int_equal(mfs_text_f64("1e999", &d), -ERANGE);
    assert_int_equal(mfs_text_f64("nan", &d), -EINVAL);
    assert_int_equal(mfs_text_f64("1x", &d), -EINVAL);
    assert_int_equal(mfs_text_bool("Yes", &b), 0);
    assert_true(b);
    assert_int_equal(mfs_text_bool("off", &b), 0);
    assert_false(b);
    assert_int_equal(mfs_text_bool("maybe", &b), -EINVAL);
}

static void human_sizes(void **state)
{
    (void)state;
    assert_string_equal(MFS_TEXT_BYTES(0), "0 B");
    assert_string_equal(MFS_TEXT_BYTES(1023), "1023 B");
    assert_string_equal(MFS_TEXT_BYTES(1024), "1.0 KiB");
    assert_string_equal(MFS_TEXT_BYTES(1048575), "1.0 MiB");
    assert_string_equal(MFS_TEXT_BYTES(200ULL << 30), "200 GiB");
}

static void hexadecimal(void **state)
{
    unsigned char raw[] = {0, 1, 0xab, 0xff}, back[4];
    char text[9];

    (void)state;
    mfs_text_hex(raw, sizeof raw, text);
    assert_string_equal(text, "0001abff");
    assert_int_equal(mfs_text_unhex("0001ABff", back, 4), 0);
    assert_memory_equal(raw, back, 4);
    assert_int_equal(mfs_text_unhex("0001abf", back, 4), -EINVAL);
    assert_int_equal(mfs_text_unhex("0001abfg", back, 4), -EINVAL);
    assert_int_equal(mfs_text_unhex("0001abff00", back, 4), -EINVAL);
}

static void fixed_fields(void **state)
{
    char out[4];

    (void)state;
    assert_int_equal(mfs_text_copy(out, sizeof out, "abc"), 0);
    assert_string_equal(out, "abc");
    assert_int_equal(mfs_text_copy(out, sizeof out, "abcd"), -ENAMETOOLONG);
    assert_string_equal(out, "");
    assert_int_equal(mfs_text_format(out, sizeof out, "%d", 1234), -ENAMETOOLONG);
    assert_int_equal(mfs_text_format(out, sizeof out, "%d", 123), 0);
}

static void what_can_be_shown(void **state)
{
    char out[9];

    (void)state;
    mfs_text_plain(out, sizeof out, "a\x1b\xff");
    assert_string_equal(out, "a\\x1b");
    mfs_text_plain(out, sizeof out, "\xc3\xa9\xc2\x9b\x7f");
    assert_string_equal(out, "\xc3\xa9\\xc2");
    mfs_text_plain(out, sizeof out, "1234567\xc3\xa9"); /* the last one has no room */
    assert_string_equal(out, "1234567");
    mfs_text_plain(out, sizeof out, "123456\xc3\xa9");
    assert_string_equal(out, "123456\xc3\xa9");
}

static void likeness(void **state)
{
    (void)state;
    assert_int_equal(mfs_text_distance("memory", "memory"), 0);
    assert_int_equal(mfs_text_distance("memry", "memory"), 1);
    assert_int_equal(mfs_text_distance("kitten", "sitting"), 3);
    assert_int_equal(mfs_text_distance("", "abc"), 3);
}

static void quoting(void **state)
{
    char out[16];

    (void)state;
    assert_int_equal(mfs_text_quote(out, sizeof out, "/a/b-1.c"), 0);
    assert_string_equal(out, "/a/b-1.c");
    assert_int_equal(mfs_text_quote(out, sizeof out, "a b"), 0);
    assert_string_equal(out, "'a b'");
    assert_int_equal(mfs_text_quote(out, sizeof out, "it's"), 0);
    assert_string_equal(out, "'it'\\''s'");
    assert_int_equal(mfs_text_quote(out, sizeof out, ""), 0);
    assert_string_equal(out, "''");
    assert_int_equal(mfs_text_quote(out, sizeof out, "$(ls)"), 0);
    assert_string_equal(out, "'$(ls)'");
    assert_int_equal(mfs_text_quote(out, sizeof out, "much too long a word"), -ENAMETOOLONG);
    assert_string_equal(out, "");
    assert_int_equal(mfs_text_quote(out, 2, ""), -ENAMETOOLONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),        cmocka_unit_test(numbers),
        cmocka_unit_test(human_sizes),  cmocka_unit_test(hexadecimal),
        cmocka_unit_test(fixed_fields), cmocka_unit_test(likeness),
        cmocka_unit_test(quoting),      cmocka_unit_test(what_can_be_shown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
