/* What the kernel tells of real connections over loopback, and who waits for whom by it. Links that
 * are really full: tests/integration/peers.sh. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "lm/measure/peers.h"
#include "peers_test.h"

struct pair {
    int listener, client, server;
    uint16_t port;
};

static void pair_open(struct pair *p)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;

    p->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(p->listener, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(p->listener, 1), 0);
    assert_int_equal(getsockname(p->listener, (struct sockaddr *)&a, &n), 0);
    p->port = ntohs(a.sin_port);
    p->client = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(p->client, (struct sockaddr *)&a, sizeof a), 0);
    p->server = accept(p->listener, NULL, NULL);
    assert_true(p->server >= 0);
}

static void pair_close(struct pair *p)
{
    close(p->client);
    close(p->server);
    close(p->listener);
}

struct search {
    uint16_t port;
    struct mfs_sock found;
    unsigned times;
};

static void find(void *arg, const struct mfs_sock *s)
{
    struct search *search = arg;

    if (s->remote.port == search->port) {
        search->found = *s;
        search->times++;
    }
}

static int open_diag(void)
{
    int fd = mfs_sockdiag_open();

    if (fd < 0)
        skip();
    return fd;
}

static struct mfs_sock look_up(int diag, uint16_t port)
{
    struct search search = {.port = port};
    int rc = mfs_sockdiag_list(diag, AF_INET, 100000, find, &search);

    if (rc == -ENOENT || rc == -EPERM)
        skip();
    assert_int_equal(rc, 0);
    assert_int_equal(search.times, 1);
    return search.found;
}

static void test_the_kernel_tells_of_a_connection(void **state)
{
    int diag = open_diag();
    struct in6_addr loopback;
    struct mfs_sock s, again;
    char text[100] = "";
    struct pair p;

    (void)state;
    pair_open(&p);
    assert_int_equal(write(p.client, text, sizeof text), sizeof text);
    assert_int_equal(read(p.server, text, sizeof text), sizeof text);
    s = look_up(diag, p.port);
    assert_int_equal(mfs_sock_address("127.0.0.1", &loopback), 0);
    assert_memory_equal(&s.remote.address, &loopback, sizeof loopback);
    assert_int_equal(mfs_sockdiag_again(diag, &s, &again), 0);
    assert_true(again.cookie == s.cookie && again.segment > 100);
    assert_true(again.acked >= sizeof text && again.queued == 0);
    pair_close(&p);
    assert_int_equal(mfs_sockdiag_again(diag, &s, &again), -ENOENT);
    close(diag);
}

static void fill(int fd)
{
    static const char zeros[65536];

    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    while (write(fd, zeros, sizeof zeros) > 0) {
    }
    assert_int_equal(errno, EAGAIN);
}

/* The receiver reads nothing: much is queued, and the network is not what is waited for. */
static void test_a_reader_that_sleeps_is_no_slow_link(void **state)
{
    int diag = open_diag();
    struct mfs_peers *peers = mfs_peers_create();
    struct mfs_report_peer told;
    struct mfs_table *t;
    struct mfs_sock s;
    struct pair p;

    (void)state;
    pair_open(&p);
    t = two_nodes("127.0.0.1", p.port);
    assert_int_equal(mfs_peers_know(peers, t, 0, NULL), 0);
    fill(p.client);
    mfs_clock_sleep(50 * MFS_MSEC);
    for (int i = 1; i <= 4; i++) {
        mfs_peers_look_begin(peers, i * MFS_SEC);
        s = look_up(diag, p.port);
        assert_true(s.queued > 2 * s.segment);
        mfs_peers_see(peers, &s);
        mfs_peers_look_end(peers);
        mfs_clock_sleep(50 * MFS_MSEC); /* of the kernel's time, which is counted in ticks */
    }
    assert_int_equal(mfs_peers_list(peers, &told), 1);
    assert_int_equal(told.node, 7);
    assert_true(told.busy == 0);
    pair_close(&p);
    free(t);
    mfs_peers_destroy(peers);
    close(diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_kernel_tells_of_a_connection),
        cmocka_unit_test(test_a_reader_that_sleeps_is_no_slow_link),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
