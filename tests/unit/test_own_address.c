/* Which address leads somewhere, and where cm listens because of it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cm/cli/options.h"
#include "cm/provider/options.h"
#include "cm/state/listen.h"
#include "cm/state/spec.h"
#include "host/own_address.h"

static void loopback_leads_to_loopback(void **state)
{
    char out[INET6_ADDRSTRLEN];

    (void)state;
    assert_int_equal(mfs_own_address("localhost", out), 0);
    assert_string_equal(out, "127.0.0.1");
    assert_int_equal(mfs_own_address("nowhere", out), -EINVAL);
    assert_int_equal(mfs_own_address_towards("localhost", out), 0);
    assert_true(mfs_own_address_is_loopback(out));
    assert_int_equal(mfs_own_address_towards("no name at all", out), -ENOENT);
    assert_true(mfs_own_address_is_loopback("127.3.4.5"));
    assert_true(mfs_own_address_is_loopback("::1"));
    assert_false(mfs_own_address_is_loopback("128.0.0.1"));
    assert_true(mfs_own_address_is_any("0.0.0.0"));
    assert_true(mfs_own_address_is_any("::"));
    assert_false(mfs_own_address_is_any("10.0.0.0"));
}

static void own_addresses_in_networks(void **state)
{
    static const char *const wrong[] = {
        "",           "127.0.0.1",     "127.0.0.1/",  "127.0.0.1/33",
        "/8",         "127.0.0.1/8x",  "localhost/8", "127.0.0.1/-1",
        "127.0.0/24", "127.0.0.1/8/8", "::/129"};
    char out[INET6_ADDRSTRLEN];

    (void)state;
    assert_int_equal(mfs_own_address_in("127.0.0.0/8", out), 0);
    assert_string_equal(out, "127.0.0.1");
    assert_int_equal(mfs_own_address_in("127.0.0.1/32", out), 0);
    assert_int_equal(mfs_own_address_in("126.0.0.0/7", out), 0);
    assert_int_equal(mfs_own_address_in("0.0.0.0/0", out), 0);
    assert_int_equal(mfs_own_address_in("126.0.0.0/8", out), -EADDRNOTAVAIL);
    assert_int_equal(mfs_own_address_in("127.0.0.2/32", out), -EADDRNOTAVAIL);
    assert_int_equal(mfs_own_address_in("2001:db8::/32", out), -EADDRNOTAVAIL);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(mfs_own_address_in(wrong[i], out), -EINVAL);
}

static void hosts_and_ports_are_split(void **state)
{
    const char *port;
    char host[16];

    (void)state;
    assert_int_equal(mfs_own_address_split("10.0.0.1:80", host, sizeof host, &port), 0);
    assert_string_equal(host, "10.0.0.1");
    assert_string_equal(port, "80");
    assert_int_equal(mfs_own_address_split("[fe80::1]:0", host, sizeof host, &port), 0);
    assert_string_equal(host, "fe80::1");
    assert_string_equal(port, "0");
    assert_int_equal(mfs_own_address_split("", host, sizeof host, &port), -EINVAL);
    assert_int_equal(mfs_own_address_split("]:1", host, sizeof host, &port), 0);
    assert_int_equal(mfs_own_address_split("[:1", host, sizeof host, &port), -EINVAL);
    assert_int_equal(mfs_own_address_split("a-host-with-a-long-name:1", host, sizeof host, &port),
                     -ENAMETOOLONG);
}

static int choose(const char *provider, const char *first, const char *listen,
                  struct mfs_cm_state *s, struct mfs_err *err)
{
    static const struct mfs_conf_option *const groups[] = {
        mfs_cm_start_options, MFS_PROVIDER_OPTIONS, mfs_deployment_options, NULL};
    struct mfs_conf *conf = mfs_conf_create(groups);
    int rc = 0;

    memset(s, 0, sizeof *s);
    snprintf(s->provider, sizeof s->provider, "%s", provider);
    snprintf(s->first_address, sizeof s->first_address, "%s", first);
    if (listen)
        rc = mfs_conf_set(conf, "listen", listen, MFS_CONF_ARGV, err);
    if (!rc)
        rc = mfs_listen_choose(conf, s, err);
    mfs_conf_destroy(conf);
    return rc;
}

static void loopback_is_for_nodes_here(void **state)
{
    struct mfs_cm_state s;
    struct mfs_err err;

    (void)state;
    assert_int_equal(choose("local", "127.0.0.1", NULL, &s, &err), 0);
    assert_string_equal(s.listen, "127.0.0.1:0");
    assert_int_equal(choose("exec", "127.0.7.1", NULL, &s, &err), 0);
    assert_string_equal(s.listen, "127.0.0.1:0");
    assert_int_equal(choose("exec", "127.0.7.1", "127.0.0.1:7", &s, &err), 0);
    assert_string_equal(s.listen, "127.0.0.1:7");
    assert_int_equal(choose("exec", "", "127.0.0.1:7", &s, &err), -EINVAL);
    assert_non_null(strstr(err.msg, "each machine's own"));
    assert_int_equal(choose("exec", "10.9.8.7", "[::1]:0", &s, &err), -EINVAL);
    assert_int_equal(choose("exec", "", "10.9.8.7:0", &s, &err), 0);
}

static void any_address_is_told_as_one(void **state)
{
    char address[MFS_ADDRESS_MAX] = "0.0.0.0:4711", again[MFS_ADDRESS_MAX];
    struct mfs_cm_state s;
    struct mfs_err err;

    (void)state;
    assert_int_equal(choose("local", "127.0.0.1", "0.0.0.0:0", &s, &err), 0);
    mfs_listen_reachable(&s, address);
    assert_string_equal(address, "127.0.0.1:4711");
    mfs_listen_again(&s, address, again);
    assert_string_equal(again, "0.0.0.0:4711");
    mfs_listen_again(&s, "", again);
    assert_string_equal(again, "0.0.0.0:0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loopback_leads_to_loopback), cmocka_unit_test(own_addresses_in_networks),
        cmocka_unit_test(hosts_and_ports_are_split),  cmocka_unit_test(loopback_is_for_nodes_here),
        cmocka_unit_test(any_address_is_told_as_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
