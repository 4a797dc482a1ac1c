/* The configuration of a redis process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "lm/redis/instances.h"
#include "lm/redis/redis_conf.h"

static const char *rendered(const struct mfs_redis_conf *c, struct mfs_buf *out)
{
    mfs_buf_clear(out);
    assert_int_equal(mfs_redis_conf_render(c, out), 0);
    assert_int_equal(mfs_buf_append(out, "", 1), 0);
    return mfs_buf_data(out);
}

static const struct mfs_redis_conf sample = {.dir = "/run/a \"b\"",
                                             .dump_dir = "/var/tmp/a",
                                             .module = "/usr/lib/a\"b.so",
                                             .part = 7,
                                             .address = "127.0.0.3",
                                             .port = 4711,
                                             .maxmemory = 12345678,
                                             .user_password = "abc",
                                             .admin_password = "def"};

static void test_conf_has_what_matters(void **state)
{
    struct mfs_buf out;
    const char *text;

    (void)state;
    mfs_buf_init(&out);
    text = rendered(&sample, &out);
    assert_non_null(strstr(text, "\nbind 127.0.0.3\nport 4711\n"));
    assert_non_null(strstr(text, "\nunixsocket \"/run/a \\\"b\\\"/redis-7.sock\"\n"));
    assert_non_null(
        strstr(text, "\nloadmodule \"/usr/lib/a\\\"b.so\" at 127.0.0.3 4711 key memefs "));
    assert_non_null(strstr(text, "\nmaxmemory 12345678\n"));
    assert_non_null(strstr(text, "\nmaxmemory-policy noeviction\n"));
    assert_non_null(strstr(text, "\nsave \"\"\n"));
    assert_non_null(strstr(text, "\nuser default reset off\n"));
    mfs_buf_fini(&out);
}

static void test_conf_holds_no_password(void **state)
{
    struct mfs_buf out;
    const char *text;

    (void)state;
    mfs_buf_init(&out);
    text = rendered(&sample, &out);
    assert_null(strstr(text, ">abc"));
    assert_null(strstr(text, "#abc"));
    /* SHA-256 of "abc" */
    assert_non_null(strstr(text,
                           "user memefs reset on "
                           "#ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad "));
    mfs_buf_fini(&out);
}

static void test_conf_refuses_what_would_break_out(void **state)
{
    struct mfs_redis_conf bad[] = {sample, sample, sample, sample, sample, sample};
    struct mfs_buf out;

    (void)state;
    mfs_buf_init(&out);
    bad[0].address = "127.0.0.1\nport 1";
    bad[1].dir = "/run/a\nport 1";
    bad[2].user_password = "";
    bad[3].maxmemory = 0;
    bad[4].dir = "relative";
    bad[5].module = "/lib/a\nport 1";
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(mfs_redis_conf_render(&bad[i], &out), -EINVAL);
    mfs_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conf_has_what_matters),
        cmocka_unit_test(test_conf_holds_no_password),
        cmocka_unit_test(test_conf_refuses_what_would_break_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
