/* Who waits for whom, by figures of connections, here made-up ones; see test_lm_sockdiag.c for real
 * ones. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <cmocka.h>

#include "base/clock.h"
#include "lm/measure/peers.h"
#include "peers_test.h"

#define SEGMENT 1448

static struct mfs_peers *peers;

static int set_up(void **state)
{
    struct mfs_table *t = mfs_table_new(5);

    (void)state;
    peers = mfs_peers_create();
    assert_non_null(peers);
    assert_non_null(t);
    for (uint32_t i = 0; i < 5; i++) {
        t->part[i].node = i % 3;
        snprintf(t->part[i].host, sizeof t->part[i].host, "10.0.0.%u", i % 3 + 1);
        t->part[i].port = (uint16_t)(4000 + i);
    }
    assert_int_equal(mfs_peers_know(peers, t, 0, NULL), 0);
    free(t);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    mfs_peers_destroy(peers);
    return 0;
}

/* A connection with figures of one that carries 2 MB/s and waits for the network all the time. */
static struct mfs_sock full(uint64_t cookie, const char *from, uint16_t from_port, const char *to,
                            uint16_t to_port, unsigned second)
{
    struct mfs_sock s = {.family = AF_INET,
                         .cookie = cookie,
                         .local.port = from_port,
                         .remote.port = to_port,
                         .acked = 2000000ULL * second,
                         .busy_us = 1000000ULL * second,
                         .queued = 300000,
                         .unsent = 200000,
                         .segment = SEGMENT,
                         .rtt_us = 40000,
                         .min_us = 100};

    assert_int_equal(mfs_sock_address(from, &s.local.address), 0);
    assert_int_equal(mfs_sock_address(to, &s.remote.address), 0);
    return s;
}

static struct mfs_sock to_node1(unsigned second)
{
    return full(1, "10.0.0.1", 50000, "10.0.0.2", 4001, second);
}

static void look(unsigned second, const struct mfs_sock *s, size_t n)
{
    mfs_peers_look_begin(peers, (int64_t)(10 + second) * MFS_SEC);
    for (size_t i = 0; i < n; i++)
        mfs_peers_see(peers, &s[i]);
    mfs_peers_look_end(peers);
}

/* What two looks at a connection make of it. */
static struct mfs_report_peer after_two(struct mfs_sock first, struct mfs_sock second)
{
    struct mfs_report_peer told[3];

    look(0, &first, 1);
    look(1, &second, 1);
    assert_int_equal(mfs_peers_list(peers, told), 1);
    return told[0];
}

static void test_a_full_link_is_waited_for(void **state)
{
    struct mfs_report_peer told = after_two(to_node1(0), to_node1(1));

    (void)state;
    assert_int_equal(told.node, 1);
    assert_true(told.rate == 2000000);
    assert_true(told.busy == 1);
}

static void test_small_messages_are_not_waited_for(void **state)
{
    struct mfs_sock chatty = to_node1(1);

    (void)state;
    chatty.queued = 300;
    chatty.unsent = 0;
    assert_true(after_two(to_node1(0), chatty).busy == 0);
}

static void test_large_ones_that_arrive_at_once_are_not(void **state)
{
    struct mfs_sock swift = to_node1(1);

    (void)state;
    swift.unsent = 0;
    swift.rtt_us = 350;
    assert_true(after_two(to_node1(0), swift).busy == 0);
}

static void test_a_standing_queue_is_waited_for(void **state)
{
    struct mfs_sock queue = to_node1(1);

    (void)state;
    queue.unsent = 0;
    assert_true(after_two(to_node1(0), queue).busy == 1);
}

static void test_a_slow_receiver_is_not(void **state)
{
    struct mfs_sock slow = to_node1(1);

    (void)state;
    slow.window_us = 800000;
    assert_true(after_two(to_node1(0), slow).busy == 0);
}

static void test_what_is_lost_is_waited_for(void **state)
{
    struct mfs_sock cut = to_node1(1);

    (void)state;
    cut.unsent = 0;
    cut.rtt_us = cut.min_us;
    cut.repeating = true;
    cut.acked = 0;
    assert_true(after_two(to_node1(0), cut).busy == 1);
}

static void test_whose_connections_count(void **state)
{
    struct mfs_sock s[7];
    struct mfs_report_peer told[3];

    (void)state;
    for (unsigned second = 0; second < 2; second++) {
        s[0] = full(9, "10.0.0.1", 50000, "10.0.0.2", 4001, second); /* a client here */
        s[1] = full(3, "10.0.0.1", 4003, "10.0.0.2", 50000, second); /* one of node 1 */
        s[2] = full(5, "10.0.0.1", 4000, "10.0.0.3", 50000, second); /* one of node 2 */
        s[3] = full(7, "10.0.0.1", 50001, "10.0.0.2", 22, second);   /* something else */
        s[4] = full(8, "10.0.0.1", 4000, "10.0.0.9", 50000, second); /* a stranger */
        s[5] = full(2, "10.0.0.1", 50002, "10.0.0.1", 4000, second); /* within the node */
        s[6] = full(1, "10.0.0.1", 22, "10.0.0.3", 50003, second);
        look(second, s, 7);
    }
    assert_int_equal(mfs_peers_list(peers, told), 2);
    assert_true(told[0].node == 1 && told[0].rate == 4000000);
    assert_true(told[1].node == 2 && told[1].rate == 2000000);
}

static void test_counts_from_the_second_look(void **state)
{
    struct mfs_sock s = to_node1(1000);
    struct mfs_report_peer told;

    (void)state;
    look(0, &s, 1);
    assert_int_equal(mfs_peers_list(peers, &told), 0);
    look(1, &s, 1);
    assert_int_equal(mfs_peers_list(peers, &told), 1);
    assert_true(told.rate == 0);
    look(2, NULL, 0);
    assert_int_equal(mfs_peers_list(peers, &told), 0);
}

struct kernel {
    unsigned second, asked;
    bool waits, gone;
};

static int answer(void *arg, const struct mfs_sock *which, struct mfs_sock *now)
{
    struct kernel *k = arg;

    k->asked++;
    if (k->gone)
        return -ENOENT;
    *now = to_node1(k->second);
    now->cookie = which->cookie;
    if (!k->waits)
        now->queued = now->unsent = 0;
    return 0;
}

static void test_samples_tell_how_much_of_the_time(void **state)
{
    struct mfs_sock s = to_node1(0);
    struct kernel k = {.second = 1};
    struct mfs_report_peer told;

    (void)state;
    look(0, &s, 1);
    s = to_node1(1);
    look(1, &s, 1);
    assert_true(mfs_peers_active(peers));
    for (int i = 0; i < 19; i++) {
        k.waits = i % 4 == 0; /* 5 of them, and the look at the end */
        mfs_peers_sample(peers, answer, &k);
    }
    assert_int_equal(k.asked, 19);
    s = to_node1(2);
    look(2, &s, 1);
    assert_int_equal(mfs_peers_list(peers, &told), 1);
    assert_true(told.busy > 0.29 && told.busy < 0.31);
    assert_true(told.rate == 2000000);
}

static void test_one_that_waits_is_answer_enough(void **state)
{
    struct mfs_sock s[20];
    struct kernel k = {.second = 1, .waits = true};

    (void)state;
    for (unsigned second = 0; second < 2; second++) {
        for (unsigned i = 0; i < 20; i++)
            s[i] = full(100 + i, "10.0.0.1", (uint16_t)(50000 + i), "10.0.0.2", 4001, second);
        look(second, s, 20);
    }
    mfs_peers_sample(peers, answer, &k);
    assert_int_equal(k.asked, 1);
    k.waits = false;
    mfs_peers_sample(peers, answer, &k);
    assert_int_equal(k.asked, 1 + MFS_PEERS_ASKED_MAX);
}

static void test_closed_connections_are_asked_for_once(void **state)
{
    struct mfs_sock s[2] = {to_node1(0), to_node1(1)};
    struct kernel k = {.gone = true};

    (void)state;
    look(0, &s[0], 1);
    look(1, &s[1], 1);
    mfs_peers_sample(peers, answer, &k);
    mfs_peers_sample(peers, answer, &k);
    assert_int_equal(k.asked, 1);
    assert_false(mfs_peers_active(peers));
}

static void test_an_idle_connection_is_not_asked_for(void **state)
{
    struct mfs_sock s = to_node1(1);

    (void)state;
    s.queued = s.unsent = 0;
    look(0, &s, 1);
    look(1, &s, 1);
    assert_false(mfs_peers_active(peers));
}

static void test_another_table(void **state)
{
    struct mfs_sock s = to_node1(0);
    struct mfs_table *t = two_nodes("10.0.0.2", 4444);
    struct mfs_report_peer told;

    (void)state;
    look(0, &s, 1);
    assert_int_equal(mfs_peers_know(peers, t, 0, NULL), 0); /* node 1 is 7 now */
    s = to_node1(1);
    look(1, &s, 1);
    assert_int_equal(mfs_peers_list(peers, &told), 0);
    s.remote.port = 4444;
    look(2, &s, 1);
    look(3, &s, 1);
    assert_int_equal(mfs_peers_list(peers, &told), 1);
    assert_true(told.node == 7 && told.rate == 0);
    free(t);
}

static bool all_are_near(const char *address)
{
    return address[0] != '\0';
}

static void test_nodes_on_the_same_machine_are_no_peers(void **state)
{
    struct mfs_table *t = two_nodes("10.0.0.2", 4001);
    struct mfs_sock s = to_node1(0);

    (void)state;
    assert_true(mfs_peers_any(peers));
    assert_true(mfs_peers_family(peers, AF_INET) && !mfs_peers_family(peers, AF_INET6));
    assert_int_equal(mfs_peers_know(peers, t, 0, all_are_near), 0);
    assert_false(mfs_peers_any(peers));
    look(0, &s, 1);
    look(1, &s, 1);
    assert_int_equal(mfs_peers_list(peers, NULL), 0);
    free(t);
}

static void test_more_sockets_than_there_is_room_for(void **state)
{
    struct mfs_sock s = to_node1(0);
    struct mfs_report_peer told;

    (void)state;
    for (unsigned second = 0; second < 2; second++) {
        mfs_peers_look_begin(peers, (int64_t)(10 + second) * MFS_SEC);
        for (uint64_t i = 0; i < 2 * MFS_PEERS_SOCKETS_MAX; i++) {
            s = to_node1(second);
            s.cookie = i;
            mfs_peers_see(peers, &s);
        }
        mfs_peers_look_end(peers);
    }
    assert_int_equal(mfs_peers_list(peers, &told), 1);
    assert_true(told.rate == 2000000.0 * MFS_PEERS_SOCKETS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_full_link_is_waited_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_small_messages_are_not_waited_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_large_ones_that_arrive_at_once_are_not, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_standing_queue_is_waited_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_slow_receiver_is_not, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_lost_is_waited_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_whose_connections_count, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_counts_from_the_second_look, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_samples_tell_how_much_of_the_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_that_waits_is_answer_enough, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_closed_connections_are_asked_for_once, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_an_idle_connection_is_not_asked_for, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_another_table, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nodes_on_the_same_machine_are_no_peers, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_more_sockets_than_there_is_room_for, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
