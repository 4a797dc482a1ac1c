/* EC2's answers and forms, and the places of keys: as they are, cut off, and of ill will. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cm/provider/ec2/answer.h"
#include "cm/provider/ec2/keys.h"

#define HEAD "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"

static const char described[] =
    HEAD "<DescribeInstancesResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">"
         "<reservationSet><item><instancesSet>"
         "<item><instanceId>i-1</instanceId><instanceState><code>16</code><name>running</name>"
         "</instanceState><privateIpAddress>10.0.0.7</privateIpAddress>"
         "<networkInterfaceSet><item><privateIpAddress>10.9.9.9</privateIpAddress></item>"
         "</networkInterfaceSet><tagSet><item><key>Name</key><value>x</value></item>"
         "<item><key>memefs:node</key><value>12</value></item></tagSet></item>"
         "</instancesSet></item><item><instancesSet>"
         "<item><instanceId>i-2</instanceId><instanceState><name>terminated</name></instanceState>"
         "<stateReason><message>Server.SpotInstanceTermination &amp; more</message></stateReason>"
         "</item></instancesSet></item></reservationSet></DescribeInstancesResponse>";

static int answer(const char *text, struct mfs_ec2_answer *a)
{
    struct mfs_err err;

    return mfs_ec2_read(text, strlen(text), a, &err);
}

static void instances_are_read(void **state)
{
    struct mfs_ec2_answer a;

    (void)state;
    assert_int_equal(answer(described, &a), 0);
    assert_int_equal(a.n, 2);
    assert_string_equal(a.instance[0].id, "i-1");
    assert_string_equal(a.instance[0].state, "running");
    assert_string_equal(a.instance[0].address, "10.0.0.7");
    assert_string_equal(a.instance[0].node, "12");
    assert_string_equal(a.instance[1].state, "terminated");
    assert_string_equal(a.instance[1].why, "Server.SpotInstanceTermination & more");
    assert_string_equal(a.instance[1].node, "");
    assert_string_equal(a.code, "");
    mfs_ec2_free(&a);
}

static void errors_are_read(void **state)
{
    struct mfs_ec2_answer a;

    (void)state;
    assert_int_equal(answer(HEAD "<Response><Errors><Error><Code>RequestLimitExceeded</Code>"
                                 "<Message>slower</Message></Error></Errors></Response>",
                            &a),
                     0);
    assert_string_equal(a.code, "RequestLimitExceeded");
    assert_string_equal(a.message, "slower");
    mfs_ec2_free(&a);
    assert_true(mfs_ec2_try_again(503, "RequestLimitExceeded"));
    assert_true(mfs_ec2_try_again(500, "InternalError"));
    assert_true(mfs_ec2_try_again(502, ""));
    assert_false(mfs_ec2_try_again(500, "InsufficientInstanceCapacity"));
    assert_false(mfs_ec2_try_again(400, "InvalidAMIID.NotFound"));
    assert_false(mfs_ec2_try_again(401, ""));
    assert_true(mfs_ec2_throttled("RequestLimitExceeded"));
    assert_false(mfs_ec2_throttled("InternalError"));
    assert_non_null(strstr(mfs_ec2_advice("RequestExpired"), "clock"));
    assert_string_equal(mfs_ec2_advice("InvalidAMIID.NotFound"), "");
}

/* Every beginning of an answer is none, and leaves nothing. */
static void cut_off_answers_are_none(void **state)
{
    struct mfs_ec2_answer a;
    struct mfs_err err;

    (void)state;
    for (size_t n = 0; n < sizeof described - 1; n++) {
        assert_int_equal(mfs_ec2_read(described, n, &a, &err), -EPROTO);
        assert_null(a.instance);
    }
}

static void ill_will(void **state)
{
    static const char *const texts[] = {
        "",
        "{\"Response\": 1}",
        "<html><body>Sign in</body></html>",
        "<Response><Errors></Response>",
        "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;\">]><Response>&b;</Response>",
        "<!DOCTYPE x SYSTEM \"file:///etc/passwd\"><Response/>"};
    struct mfs_ec2_answer a;
    char *deep = malloc(200000), *at = deep;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(answer(texts[i], &a), -EPROTO);
    at += sprintf(at, "<Response>");
    for (int i = 0; i < 20000; i++)
        at += sprintf(at, "<item>");
    assert_int_equal(answer(deep, &a), -EPROTO);
    free(deep);
}

static void long_texts_are_cut(void **state)
{
    char text[3000], word[2000];
    struct mfs_ec2_answer a;

    (void)state;
    memset(word, 'x', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    snprintf(text, sizeof text,
             "<RunInstancesResponse><instancesSet><item><instanceId>%s</instanceId></item></"
             "instancesSet></RunInstancesResponse>",
             word);
    assert_int_equal(answer(text, &a), 0);
    assert_int_equal(strlen(a.instance[0].id), MFS_EC2_ID_MAX - 1);
    mfs_ec2_free(&a);
}

static void forms_are_encoded(void **state)
{
    struct mfs_buf form;

    (void)state;
    mfs_buf_init(&form);
    assert_int_equal(mfs_ec2_form(&form, "A", "a b&c=d+/\xc3\xa4-_.~9"), 0);
    assert_int_equal(mfs_buf_append(&form, "", 1), 0);
    assert_string_equal(mfs_buf_data(&form), "&A=a%20b%26c%3Dd%2B%2F%C3%A4-_.~9");
    mfs_buf_fini(&form);
}

static void keys_of_files(void **state)
{
    static const char text[] = "# mine\n[default]\naws_access_key_id=AK1\n\n"
                               "[ other ]\naws_access_key_id=AKX\r\naws_secret_access_key=x\n"
                               "[work]\r\n aws_secret_access_key = a=b/c \r\n"
                               "aws_access_key_id\t=\tAK2\r\n#aws_session_token=no\n[next]\n"
                               "aws_session_token=no";
    struct mfs_aws_key key;

    (void)state;
    assert_int_equal(mfs_aws_key_of_profile(text, "work", &key), 0);
    assert_string_equal(key.id, "AK2");
    assert_string_equal(key.secret, "a=b/c");
    assert_string_equal(key.token, "");
    assert_int_equal(mfs_aws_key_of_profile(text, "default", &key), -ENOENT); /* it is not whole */
    assert_int_equal(mfs_aws_key_of_profile(text, "wor", &key), -ENOENT);
    assert_int_equal(mfs_aws_key_of_profile("", "default", &key), -ENOENT);
}

static void keys_of_roles(void **state)
{
    static const char text[] =
        "{\"Code\":\"Success\",\"AccessKeyId\":\"ASIA1\",\"SecretAccessKey\":\"s\",\"Token\":\"t\","
        "\"Expiration\":\"2026-11-26T18:30:00Z\"}";
    struct mfs_aws_key key;

    (void)state;
    assert_int_equal(mfs_ec2_key_of_role(text, strlen(text), &key), 0);
    assert_string_equal(key.id, "ASIA1");
    assert_string_equal(key.token, "t");
    assert_int_equal(key.expires, 1795717800);
    assert_int_equal(mfs_ec2_key_of_role("<html>", 6, &key), -EPROTO);
    assert_int_equal(mfs_ec2_key_of_role("{}", 2, &key), -EPROTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instances_are_read),
        cmocka_unit_test(errors_are_read),
        cmocka_unit_test(cut_off_answers_are_none),
        cmocka_unit_test(ill_will),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(forms_are_encoded),
        cmocka_unit_test(keys_of_files),
        cmocka_unit_test(keys_of_roles),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
