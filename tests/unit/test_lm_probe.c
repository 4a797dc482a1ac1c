/* Measuring a link: over loopback, where only the protocol is tried; real rates are those of
 * tests/integration/probe.sh. ctest: threaded */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "lm/measure/probe.h"

#define HELPERS 3

static const char password[] = "0123456789abcdef0123456789abcdef";

static struct mfs_probe_plan plan_with(const char *secret, uint32_t peers)
{
    struct mfs_probe_plan plan = {
        .peers = peers, .time = 300 * MFS_MSEC, .bytes = 64U << 20, .iface = ""};

    plan.secret = (struct mfs_secret){strlen(secret), secret};
    return plan;
}

struct helper {
    pthread_t thread;
    struct mfs_probe_plan plan;
    uint16_t port;
    struct mfs_err err;
    int rc;
};

static void *help(void *arg)
{
    struct helper *h = arg;

    h->rc = mfs_probe_meet("127.0.0.1", h->port, &h->plan, &h->err);
    return NULL;
}

static void helpers_start(struct helper *h, size_t n, uint16_t port, const char *secret)
{
    for (size_t i = 0; i < n; i++) {
        h[i] = (struct helper){.plan = plan_with(secret, (uint32_t)n), .port = port};
        assert_int_equal(pthread_create(&h[i].thread, NULL, help, &h[i]), 0);
    }
}

static void helpers_end(struct helper *h, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_int_equal(pthread_join(h[i].thread, NULL), 0);
}

static int open_port(uint16_t *port)
{
    int fd = mfs_probe_listen("127.0.0.1", port);

    assert_true(fd >= 0);
    assert_true(*port > 0);
    return fd;
}

static void test_rates_are_those_of_the_later_half(void **state)
{
    const struct mfs_probe_count burst[] = {{0, 0},
                                            {100 * MFS_MSEC, 900000},
                                            {200 * MFS_MSEC, 1000000},
                                            {300 * MFS_MSEC, 1100000},
                                            {400 * MFS_MSEC, 1200000}};
    const struct mfs_probe_count back[] = {{0, 10}, {MFS_SEC, 20}, {2 * MFS_SEC, 5}};

    (void)state;
    assert_true(mfs_probe_rate(burst, 5) > 999999 && mfs_probe_rate(burst, 5) < 1000001);
    assert_true(mfs_probe_rate(burst, 2) == 0);
    assert_true(mfs_probe_rate(burst, 0) == 0);
    assert_true(mfs_probe_rate(back, 3) == 0);
}

static int stranger(uint16_t port, const char *says)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    if (*says)
        assert_true(send(fd, says, strlen(says), MSG_NOSIGNAL) > 0);
    return fd;
}

static struct mfs_probe_rates meet(bool strangers)
{
    struct mfs_probe_plan plan = plan_with(password, HELPERS);
    struct helper h[HELPERS];
    struct mfs_probe_rates r = {0, 0};
    struct mfs_err err = {0};
    uint16_t port;
    int fd = open_port(&port), silent = -1, loud = -1;

    if (strangers) {
        silent = stranger(port, "");
        loud = stranger(port, "GET / HTTP/1.1");
    }
    helpers_start(h, HELPERS, port, password);
    assert_int_equal(mfs_probe_measure(fd, &plan, &r, &err), 0);
    helpers_end(h, HELPERS);
    for (int i = 0; i < HELPERS; i++)
        assert_int_equal(h[i].rc, 0);
    if (strangers) {
        close(silent);
        close(loud);
    }
    return r;
}

/* On a busy machine one direction can stand still for all of a later half, which gives no rate. */
static void must_give_rates(bool strangers)
{
    struct mfs_probe_rates r = {0, 0};

    for (int i = 0; i < 10 && !(r.in > 0 && r.out > 0); i++)
        r = meet(strangers);
    assert_true(r.in > 0 && r.out > 0);
}

static void test_several_meet_it(void **state)
{
    (void)state;
    must_give_rates(false);
}

static void test_it_ends_when_enough_has_gone(void **state)
{
    struct mfs_probe_plan plan = plan_with(password, 1);
    struct helper h;
    struct mfs_probe_rates r;
    struct mfs_err err = {0};
    int64_t began;
    uint16_t port;
    int fd = open_port(&port);

    (void)state;
    plan.time = 60 * MFS_SEC;
    plan.bytes = 8U << 20;
    helpers_start(&h, 1, port, password);
    began = mfs_clock_mono();
    assert_int_equal(mfs_probe_measure(fd, &plan, &r, &err), 0);
    assert_true(mfs_clock_mono() - began < 30 * MFS_SEC);
    helpers_end(&h, 1);
}

static void test_who_has_another_password_is_sent_away(void **state)
{
    struct mfs_probe_plan plan = plan_with(password, 1);
    struct helper h;
    struct mfs_probe_rates r;
    struct mfs_err err = {0};
    uint16_t port;
    int fd = open_port(&port);

    (void)state;
    helpers_start(&h, 1, port, "another, of the same length as i");
    assert_int_equal(mfs_probe_measure(fd, &plan, &r, &err), -ETIMEDOUT);
    helpers_end(&h, 1);
    assert_int_equal(h.rc, -ECONNREFUSED);
    assert_non_null(strstr(h.err.msg, "can't be met"));
}

static void test_nobody_comes(void **state)
{
    struct mfs_probe_plan plan = plan_with(password, 2);
    struct mfs_probe_rates r;
    struct mfs_err err = {0};
    uint16_t port;
    int fd = open_port(&port);

    (void)state;
    assert_int_equal(mfs_probe_measure(fd, &plan, &r, &err), -ETIMEDOUT);
    assert_non_null(strstr(err.msg, "nobody came"));
}

static void test_nobody_listens(void **state)
{
    struct mfs_probe_plan plan = plan_with(password, 1);
    struct mfs_err err = {0};
    uint16_t port;
    int fd = open_port(&port);

    (void)state;
    close(fd);
    assert_int_equal(mfs_probe_meet("127.0.0.1", port, &plan, &err), -ECONNREFUSED);
    assert_int_equal(mfs_probe_meet("no address", port, &plan, &err), -EINVAL);
}

/* One says nothing, one talks nonsense: the others are measured with. */
static void test_strangers_do_no_harm(void **state)
{
    (void)state;
    must_give_rates(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates_are_those_of_the_later_half),
        cmocka_unit_test(test_several_meet_it),
        cmocka_unit_test(test_it_ends_when_enough_has_gone),
        cmocka_unit_test(test_who_has_another_password_is_sent_away),
        cmocka_unit_test(test_nobody_comes),
        cmocka_unit_test(test_nobody_listens),
        cmocka_unit_test(test_strangers_do_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
