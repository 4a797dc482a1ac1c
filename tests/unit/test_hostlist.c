/* Lists of hosts in Slurm's notation: what `scontrol show hostnames` makes of them, and what is
 * refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "cm/provider/hostlist.h"

/* The hosts with blanks between them. */
static const char *hosts(const char *text)
{
    static char out[4096];
    struct mfs_hostlist l;
    struct mfs_err err = {0};
    size_t n = 0;

    out[0] = '\0';
    assert_int_equal(mfs_hostlist_parse(text, &l, &err), 0);
    for (uint32_t i = 0; i < l.n; i++)
        n += (size_t)snprintf(out + n, sizeof out - n, "%s%s", i ? " " : "", l.host[i]);
    mfs_hostlist_clear(&l);
    return out;
}

static void test_lists(void **state)
{
    (void)state;
    assert_string_equal(hosts("tux1"), "tux1");
    assert_string_equal(hosts("tux1,b2,tux1"), "tux1 b2 tux1");
    assert_string_equal(hosts("tux[1-4,7],b2"), "tux1 tux2 tux3 tux4 tux7 b2");
    assert_string_equal(hosts("n[08-11]"), "n08 n09 n10 n11");
    assert_string_equal(hosts("n[9-11]"), "n9 n10 n11");
    assert_string_equal(hosts("r[1-2]n[3,5]-ib.x.org"),
                        "r1n3-ib.x.org r1n5-ib.x.org r2n3-ib.x.org r2n5-ib.x.org");
    assert_string_equal(hosts("10.0.0.[1-2]"), "10.0.0.1 10.0.0.2");
    assert_string_equal(hosts("fd00::[1-2]"), "fd00::1 fd00::2");
}

static void refused(const char *text, int code, const char *words)
{
    struct mfs_hostlist l;
    struct mfs_err err = {0};

    assert_int_equal(mfs_hostlist_parse(text, &l, &err), code);
    assert_non_null(strstr(err.msg, words));
    assert_int_equal(l.n, 0);
}

static void test_refused(void **state)
{
    char name[400];

    (void)state;
    refused("", -EINVAL, "no name");
    refused("a,", -EINVAL, "no name");
    refused("a,,b", -EINVAL, "no name");
    refused("a[1-2", -EINVAL, "']' is missing");
    refused("a1-2]", -EINVAL, "'[' is missing");
    refused("a[]", -EINVAL, "missing");
    refused("a[1,]", -EINVAL, "missing");
    refused("a[1-]", -EINVAL, "no range");
    refused("a[3-2]", -EINVAL, "no range");
    refused("a[x]", -EINVAL, "missing");
    refused("a[1;2]", -EINVAL, "no range");
    refused("a[1234567890]", -EINVAL, "too long");
    refused("a b", -EINVAL, "no name of a host");
    refused("-oProxyCommand=x", -EINVAL, "no name of a host");
    refused("$(reboot)", -EINVAL, "no name of a host");
    refused("a[1-5000]", -E2BIG, "more than 4096");
    refused("a[0-99]b[0-99]c[0-99]", -E2BIG, "more than 4096");
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    refused(name, -EINVAL, "too long");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lists),
                                       cmocka_unit_test(test_refused)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
