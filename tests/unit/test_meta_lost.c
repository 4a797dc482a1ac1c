/* ctest: threaded waits
 *
 * Clients of a node that cm has lost: others do not wait for them, and they rely on nothing of
 * before when they are back. Here a is told that b's node is lost, and b answers nothing. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/clock.h"
#include "cluster/trust.h"
#include "meta/coherence/leases.h"
#include "meta/internal.h"
#include "meta_fixture.h"

#define ROOT  MFS_ROOT_INO
#define TTL   (8 * MFS_SEC)
#define BOUND (40 * MFS_SEC) /* for what housekeeping does */

#define NODE_A 0
#define NODE_B 7

static struct meta_client a, b;

static bool revoked(void *arg, uint64_t ino, bool name, bool own, void (*done)(void *),
                    void *done_arg)
{
    (void)arg, (void)ino, (void)name, (void)own, (void)done, (void)done_arg;
    return true;
}

static int start(struct meta_client *c, uint32_t node)
{
    struct mfs_store_opts store = {.node = node, .io_timeout = 10 * MFS_SEC};
    struct mfs_meta_opts opts = {.revoked = revoked, .session_ttl = TTL};

    memset(c, 0, sizeof *c);
    return mfs_store_create(&c->store, redis_fixture_table(meta_redis), &store) ||
           mfs_meta_create(&c->meta, c->store, &opts);
}

static int setup(void **state)
{
    (void)state;
    return redis_fixture_reset(meta_redis) || start(&a, NODE_A) || start(&b, NODE_B);
}

static int refuse(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    (void)arg, (void)part, (void)argv, (void)argc;
    return -ENOTCONN;
}

static void cut_off(bool cut)
{
    mfs_store_set_fault(b.store, cut ? refuse : NULL, NULL);
}

static int teardown(void **state)
{
    (void)state;
    cut_off(false);
    meta_client_stop(&a);
    meta_client_stop(&b);
    return 0;
}

/* What a's lm says: cm was there so long ago, and had lost that node. */
static void hear(int64_t ago, uint32_t node)
{
    const struct mfs_lost_node lost = {node};

    mfs_store_set_contact(a.store, mfs_clock_mono() - ago, &lost, 1);
}

static void what_is_known_of_lost_nodes_ages(void **state)
{
    int64_t now = mfs_clock_mono();

    (void)state;
    assert_false(mfs_store_lost(a.store, NODE_B, now));
    hear(0, NODE_B);
    now = mfs_clock_mono();
    assert_true(mfs_store_lost(a.store, NODE_B, now));
    assert_true(
        mfs_store_lost(a.store, NODE_B, now - 100 * MFS_SEC)); /* before that, it is so, too */
    assert_false(mfs_store_lost(a.store, NODE_B, now + MFS_TRUST));
    assert_false(mfs_store_lost(a.store, NODE_A, now));
    hear(MFS_TRUST, NODE_B); /* old already */
    now = mfs_clock_mono();
    assert_false(mfs_store_lost(a.store, NODE_B, now));
    assert_true(mfs_store_lost(a.store, NODE_B, now - MFS_TRUST));
    hear(0, MFS_NO_NODE);
    assert_false(mfs_store_lost(a.store, MFS_NO_NODE, mfs_clock_mono()));
    mfs_store_set_contact(a.store, mfs_clock_mono(), NULL, 0); /* it is back */
    assert_false(mfs_store_lost(a.store, NODE_B, mfs_clock_mono()));
}

/* b has a lease of it. */
static uint64_t known_file(const char *name)
{
    struct mfs_attr attr;
    uint64_t ino;

    assert_int_equal(meta_client_file(&a, ROOT, name, &ino), 0);
    assert_int_equal(mfs_meta_lookup(b.meta, ROOT, name, &attr), 0);
    assert_true(mfs_leases_attr(b.meta, ino, &attr));
    return ino;
}

static int64_t change_mode(uint64_t ino, uint32_t mode)
{
    struct mfs_attr attr = {.mode = S_IFREG | mode};
    int64_t start = mfs_clock_mono();

    assert_int_equal(mfs_meta_setattr(a.meta, ino, MFS_SET_MODE, &attr, NULL), 0);
    return mfs_clock_mono() - start;
}

static void a_lost_nodes_leases_are_not_waited_for(void **state)
{
    uint64_t ino = known_file("f");
    int64_t quickest = MFS_SEC;

    (void)state;
    cut_off(true);
    hear(0, NODE_B);
    assert_true(change_mode(ino, 0600) < TTL / 2);
    for (uint32_t i = 0; i < 50 && quickest >= 100 * MFS_MSEC; i++) {
        int64_t took;

        hear(0, NODE_B);
        took = change_mode(ino, 0700 + (i & 7));
        quickest = took < quickest ? took : quickest;
    }
    assert_true(quickest < 100 * MFS_MSEC);
}

static void whoever_is_not_lost_is_waited_for(void **state)
{
    uint64_t ino = known_file("f");

    (void)state;
    cut_off(true);
    hear(0, NODE_B + 1);
    assert_true(change_mode(ino, 0600) > TTL / 2);
}

/* What it has open, and has told nobody of, is not freed: it may come back. */
static void what_a_lost_node_has_open_stays(void **state)
{
    uint64_t ino = known_file("f");
    struct mfs_attr attr;
    int64_t start, until;

    (void)state;
    assert_int_equal(mfs_meta_open(b.meta, ino, NULL, &attr, NULL), 0);
    assert_int_equal(meta_client_keys(&a, "O*"), 0);
    cut_off(true);
    hear(0, NODE_B);
    start = mfs_clock_mono();
    assert_int_equal(mfs_meta_unlink(a.meta, ROOT, "f"), 0);
    assert_true(mfs_clock_mono() - start < TTL / 2);
    assert_int_equal(meta_client_keys(&a, "I*"), 2); /* the root, and this one */
    cut_off(false);
    assert_int_equal(mfs_meta_getattr(b.meta, ino, &attr), 0);
    assert_int_equal(mfs_meta_close(b.meta, ino, true), 0);
    for (until = mfs_clock_mono() + BOUND; meta_client_keys(&a, "I*") > 1; poll(NULL, 0, 50))
        assert_true(mfs_clock_mono() < until);
}

/* It may have been taken for lost. */
static void who_heard_nothing_forgets_before_he_relies_on_anything(void **state)
{
    struct mfs_table *t = redis_fixture_table(meta_redis);
    struct mfs_attr attr;
    uint64_t ino;

    (void)state;
    t->epoch += 1000;
    t->replicated = true;
    assert_int_equal(mfs_store_set_table(b.store, t), 0);
    mfs_store_set_contact(b.store, mfs_clock_mono(), NULL, 0);
    ino = known_file("f");
    mfs_store_set_contact(b.store, mfs_clock_mono() - MFS_TRUST, NULL, 0);
    mfs_store_set_contact(b.store, mfs_clock_mono() + BOUND, NULL, 0);
    assert_true(mfs_store_in_contact(b.store, MFS_TRUST));
    assert_false(mfs_meta_in_contact(b.meta)); /* nor on what the kernel has of open files */
    assert_false(mfs_leases_attr(b.meta, ino, &attr));
    for (int64_t until = mfs_clock_mono() + BOUND; !mfs_meta_in_contact(b.meta); poll(NULL, 0, 10))
        assert_true(mfs_clock_mono() < until);
    assert_int_equal(mfs_meta_lookup(b.meta, ROOT, "f", &attr), 0);
    assert_true(mfs_leases_attr(b.meta, ino, &attr));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_known_of_lost_nodes_ages),
        TEST(a_lost_nodes_leases_are_not_waited_for),
        TEST(whoever_is_not_lost_is_waited_for),
        TEST(what_a_lost_node_has_open_stays),
        TEST(who_heard_nothing_forgets_before_he_relies_on_anything),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, meta_redis_start, meta_redis_stop);
}
