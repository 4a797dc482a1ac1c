/* What cm doctor has found, as text and as JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "cm/doctor/doctor.h"

static struct mfs_doctor *sample(void)
{
    struct mfs_doctor *d = mfs_doctor_create();

    assert_non_null(d);
    mfs_doctor_add(d, MFS_DOCTOR_OK, "clock", "%s", "right");
    mfs_doctor_add(d, MFS_DOCTOR_FAIL, "cm", "process %d is \"gone\"", 7);
    mfs_doctor_advise(d, "cm start --name %s", "x");
    mfs_doctor_add(d, MFS_DOCTOR_WARN, "memory", "90 %% used");
    mfs_doctor_advise(d, "delete files");
    return d;
}

static void expect(const struct mfs_doctor *d, bool json, const char *text)
{
    struct mfs_buf b;

    mfs_buf_init(&b);
    assert_int_equal(mfs_doctor_render(d, json, &b), 0);
    assert_int_equal(mfs_buf_append(&b, "", 1), 0);
    assert_string_equal(mfs_buf_data(&b), text);
    mfs_buf_fini(&b);
}

static void test_text(void **state)
{
    struct mfs_doctor *d = sample();

    (void)state;
    expect(d, false,
           "ok    clock: right\n"
           "FAIL  cm: process 7 is \"gone\"\n"
           "      -> cm start --name x\n"
           "warn  memory: 90 % used\n"
           "      -> delete files\n");
    mfs_doctor_destroy(d);
}

static void test_json(void **state)
{
    struct mfs_doctor *d = sample(), *none = mfs_doctor_create();

    (void)state;
    expect(d, true,
           "[\n"
           "{\"check\":\"clock\",\"status\":\"ok\",\"found\":\"right\",\"advice\":\"\"},\n"
           "{\"check\":\"cm\",\"status\":\"FAIL\",\"found\":\"process 7 is \\\"gone\\\"\","
           "\"advice\":\"cm start --name x\"},\n"
           "{\"check\":\"memory\",\"status\":\"warn\",\"found\":\"90 % used\","
           "\"advice\":\"delete files\"}\n"
           "]\n");
    expect(none, true, "[\n]\n");
    mfs_doctor_destroy(d);
    mfs_doctor_destroy(none);
}

static void test_count(void **state)
{
    struct mfs_doctor *d = sample();

    (void)state;
    assert_int_equal(mfs_doctor_count(d, MFS_DOCTOR_OK), 1);
    assert_int_equal(mfs_doctor_count(d, MFS_DOCTOR_WARN), 1);
    assert_int_equal(mfs_doctor_count(d, MFS_DOCTOR_FAIL), 1);
    mfs_doctor_destroy(d);
    mfs_doctor_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
