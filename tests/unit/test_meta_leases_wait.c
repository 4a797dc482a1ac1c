/* A change of what another one shows does not return before he is told, whatever happens meanwhile:
 * he or the process that knows of him dies, somebody replaces it, both change at once. */
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "cluster/trust.h"
#include "leases_test.h"
#include "meta/cache/cache.h"
#include "meta/coherence/leases.h"
#include "meta/session/session.h"

struct mover {
    pthread_t thread;
    struct meta_client *client;
    const char *from, *to;
    struct told *lock;  /* what is held as long as the call lasts */
    struct told *other; /* the one who is told of it */
    atomic_bool done;
    int64_t took;
    unsigned distrusted; /* by him, until it returned */
};

static void *move(void *arg)
{
    struct mover *m = arg;
    int64_t start = mfs_clock_mono();

    assert_int_equal(mfs_meta_rename(m->client->meta, ROOT, m->from, ROOT, m->to, 0), 0);
    m->took = mfs_clock_mono() - start;
    m->distrusted = m->other ? now(m->other).distrusted : 0;
    atomic_store(&m->done, true);
    if (m->lock)
        let_go(m->lock);
    return NULL;
}

static void start_move(struct mover *m)
{
    assert_int_equal(pthread_create(&m->thread, NULL, move, m), 0);
}

/* A change returns when the holder has dropped the name, and not before. */
static void test_waits(void **state)
{
    struct mover m = {.client = &a, .from = "d", .to = "e"};
    uint64_t dir;

    (void)state;
    assert_int_equal(meta_client_mkdir(&a, ROOT, "d", &dir), 0);
    assert_true(leased(ROOT, "d"));
    by_a.hold = true;
    start_move(&m);
    mfs_clock_sleep(300 * MFS_MSEC);
    assert_false(atomic_load(&m.done));
    let_go(&by_a);
    pthread_join(m.thread, NULL);
}

/* Or when he is dead. After that nobody waits for him any more. */
static void test_dead(void **state)
{
    uint64_t dir[2];
    int64_t start;

    (void)state;
    assert_int_equal(meta_client_mkdir(&a, ROOT, "d", &dir[0]), 0);
    assert_int_equal(meta_client_mkdir(&a, ROOT, "e", &dir[1]), 0);
    assert_true(leased(ROOT, "d") && leased(ROOT, "e"));
    by_a.hold = true;
    meta_client_alive(&b, false);
    start = mfs_clock_mono();
    assert_int_equal(mfs_meta_rmdir(a.meta, ROOT, "d"), 0);
    assert_true(mfs_clock_mono() - start < TTL);
    start = mfs_clock_mono();
    assert_int_equal(mfs_meta_rmdir(a.meta, ROOT, "e"), 0);
    assert_true(mfs_clock_mono() - start < TTL / 2);
}

/* Two that wait for each other: as if each kernel's lock were held by the call that waits. Each has
 * the other one's kernel use no name unasked before it returns. */
static void test_crossed(void **state)
{
    struct mover ma = {.client = &a, .from = "d", .to = "e", .lock = &by_b, .other = &by_a};
    struct mover mb = {.client = &b, .from = "g", .to = "h", .lock = &by_a, .other = &by_b};
    struct mfs_attr attr;
    uint64_t dir;

    (void)state;
    assert_int_equal(meta_client_mkdir(&b, ROOT, "d", &dir), 0);
    assert_int_equal(meta_client_mkdir(&a, ROOT, "g", &dir), 0);
    assert_int_equal(mfs_meta_lookup(a.meta, ROOT, "g", &attr), 0);
    by_a.hold = by_b.hold = true;
    start_move(&ma);
    start_move(&mb);
    pthread_join(ma.thread, NULL);
    pthread_join(mb.thread, NULL);
    assert_true(ma.took < TTL && mb.took < TTL);
    assert_true(now(&by_a).names >= 1 && now(&by_b).names >= 1);
    assert_true(ma.distrusted + mb.distrusted >=
                1); /* the other one may have been let go by then */
}

/* A client that was taken for dead keeps nothing. */
static void test_renewed(void **state)
{
    uint64_t dir;

    (void)state;
    assert_int_equal(meta_client_mkdir(&b, ROOT, "d", &dir), 0);
    meta_client_alive(&b, false);
    chmod_by_a(dir, 0700);
    mfs_session_tick(b.meta);
    assert_true(now(&by_a).everything >= 1);
    assert_int_equal(mode_by_b(dir), 0700);
}

/* An answer that was on its way when a lease was revoked gives none. */
static void test_overtaken(void **state)
{
    int64_t before = mfs_clock_mono();
    struct mfs_attr attr;
    uint64_t dir;

    (void)state;
    assert_int_equal(meta_client_mkdir(&b, ROOT, "d", &dir), 0);
    mfs_dircache_revoke(b.meta->dirs, dir);
    assert_true(mfs_dircache_revoked(b.meta->dirs, dir, before));
    assert_false(mfs_dircache_lease(b.meta->dirs, dir, before));
    assert_false(mfs_dircache_leased(b.meta->dirs, dir, &attr));
    assert_true(leased(ROOT, "d"));
    assert_true(mfs_dircache_leased(b.meta->dirs, dir, &attr));
}

/* Nor does one that has come, and whose lease goes before anybody is shown it. */
static void test_overtaken_late(void **state)
{
    struct mfs_attr attr = {0};
    uint64_t dir;

    (void)state;
    assert_int_equal(meta_client_mkdir(&a, ROOT, "d", &dir), 0);
    assert_false(mfs_meta_is_leased(b.meta, &attr));
    assert_true(leased(ROOT, "d"));
    assert_int_equal(mfs_meta_lookup(b.meta, ROOT, "d", &attr), 0);
    assert_true(mfs_meta_is_leased(b.meta, &attr));
    assert_int_equal(mfs_meta_rename(a.meta, ROOT, "d", ROOT, "e", 0), 0);
    assert_true(attr.leased);
    assert_false(mfs_meta_is_leased(b.meta, &attr));
}

static void await_everything(unsigned times)
{
    for (int64_t end = mfs_clock_mono() + 10 * MFS_SEC;
         now(&by_a).everything < times && mfs_clock_mono() < end;)
        poll(NULL, 0, 10);
    assert_true(now(&by_a).everything >= times);
}

/* Nor one whose partition is another process now: that may not know of the last leases. As where a
 * link is cut, leases are given by the former process, and the replica takes its place. */
static void test_replaced_process(void **state)
{
    struct mfs_table *t = redis_fixture_table(meta_redis);
    struct mfs_attr attr;
    uint64_t dir;
    char byte;

    (void)state;
    assert_int_equal(meta_client_mkdir(&b, ROOT, "d", &dir), 0);
    assert_true(leased(ROOT, "d"));
    assert_true(mfs_dircache_leased(b.meta->dirs, dir, &attr));
    mfs_contents_put(b.meta->contents, 4711, 1, "x", 1);
    t->epoch += 1000;
    t->failovers++;
    assert_int_equal(mfs_store_set_table(b.store, t), 0);
    assert_false(mfs_leases_attr(b.meta, dir, &attr));
    assert_false(mfs_dircache_leased(b.meta->dirs, dir, &attr));
    assert_false(mfs_contents_get(b.meta->contents, 4711, 1, 0, 1, &byte)); /* nor any version */
    await_everything(1);            /* the kernel keeps some, too */
    assert_true(leased(ROOT, "d")); /* of the new one */
    assert_false(mfs_leases_attr(b.meta, dir, &attr));
    assert_true(mfs_dircache_leased(b.meta->dirs, dir, &attr));
}

static void set_replicated(struct meta_client *c)
{
    struct mfs_table *t = redis_fixture_table(meta_redis);

    t->epoch += 1000;
    t->replicated = true;
    assert_int_equal(mfs_store_set_table(c->store, t), 0);
}

/* Until the kernel has dropped what it kept. */
static void await_contact(void)
{
    for (int64_t end = mfs_clock_mono() + 10 * MFS_SEC;
         !mfs_meta_in_contact(b.meta) && mfs_clock_mono() < end;)
        poll(NULL, 0, 10);
    assert_true(mfs_meta_in_contact(b.meta));
}

/* With replicas a lease is good for as long as cm was there a moment ago: it would have told that a
 * process that does not know of the lease is about to serve. */
static void test_out_of_contact(void **state)
{
    struct mfs_attr attr, shown;
    uint64_t dir, file;

    (void)state;
    assert_int_equal(meta_client_mkdir(&b, ROOT, "d", &dir), 0);
    assert_int_equal(meta_client_file(&b, ROOT, "f", &file), 0);
    assert_int_equal(mfs_meta_lookup(b.meta, ROOT, "f", &attr), 0);
    assert_true(mfs_leases_attr(b.meta, file, &attr));
    assert_true(leased(ROOT, "d"));
    assert_int_equal(mfs_meta_lookup(b.meta, ROOT, "d", &shown), 0);
    assert_true(mfs_meta_in_contact(b.meta) && mfs_meta_is_leased(b.meta, &shown));
    set_replicated(&b);
    assert_false(mfs_leases_attr(b.meta, file, &attr));
    assert_false(mfs_leases_name(b.meta, ROOT, "f", &attr));
    assert_false(mfs_meta_in_contact(b.meta) || mfs_meta_is_leased(b.meta, &shown));
    await_everything(2); /* each tick: answers may be on their way to the kernel */

    mfs_store_set_contact(b.store, mfs_clock_mono() + 60 * MFS_SEC, NULL,
                          0);                           /* as if without end */
    assert_false(mfs_leases_attr(b.meta, file, &attr)); /* nobody may have told it of changes */
    assert_false(mfs_meta_is_leased(b.meta, &shown));
    await_contact();
    assert_int_equal(mfs_meta_lookup(b.meta, ROOT, "f", &attr), 0);
    assert_int_equal(mfs_meta_lookup(b.meta, ROOT, "d", &shown), 0);
    assert_true(mfs_leases_attr(b.meta, file, &attr) && mfs_meta_is_leased(b.meta, &shown));
    mfs_store_set_contact(b.store, mfs_clock_mono() - MFS_TRUST_KEPT, NULL, 0);
    assert_false(mfs_meta_is_leased(b.meta, &shown));
    mfs_store_set_contact(b.store, mfs_clock_mono() - MFS_TRUST, NULL, 0);
    assert_false(mfs_leases_attr(b.meta, file, &attr));
    assert_int_equal(mfs_meta_lookup(b.meta, ROOT, "f", &attr), 0); /* asks */
}

static void *let_go_soon(void *arg)
{
    poll(NULL, 0, 200);
    let_go(arg);
    return NULL;
}

/* Who pushes the table hears of it when nothing is kept outside any more. */
static void test_failed_over(void **state)
{
    struct mfs_table *t = redis_fixture_table(meta_redis);
    int64_t began = mfs_clock_mono();
    pthread_t thread;
    uint64_t dir;

    (void)state;
    mfs_meta_failed_over(b.meta, 10 * MFS_SEC); /* there was none */
    assert_int_equal(now(&by_a).everything, 0);
    assert_int_equal(meta_client_mkdir(&b, ROOT, "d", &dir), 0);
    pthread_mutex_lock(&by_a.lock);
    by_a.hold = true;
    pthread_mutex_unlock(&by_a.lock);
    t->epoch += 1000;
    t->failovers++;
    assert_int_equal(mfs_store_set_table(b.store, t), 0);
    assert_false(mfs_meta_in_contact(b.meta));
    mfs_meta_failed_over(b.meta, 100 * MFS_MSEC); /* it waits no longer than that */
    assert_true(mfs_clock_mono() - began >= 100 * MFS_MSEC);
    assert_false(mfs_meta_in_contact(b.meta));
    t = redis_fixture_table(meta_redis);
    t->epoch += 1001;
    t->failovers += 2;
    assert_int_equal(mfs_store_set_table(b.store, t), 0);
    mfs_meta_failed_over(b.meta, 3600 * MFS_SEC); /* nor again for what is stuck still */
    let_go(&by_a);
    await_contact();

    pthread_mutex_lock(&by_a.lock);
    by_a.hold = true;
    pthread_mutex_unlock(&by_a.lock);
    t = redis_fixture_table(meta_redis);
    t->epoch += 1002;
    t->failovers += 3;
    assert_int_equal(mfs_store_set_table(b.store, t), 0);
    assert_int_equal(pthread_create(&thread, NULL, let_go_soon, &by_a), 0);
    mfs_meta_failed_over(b.meta, 60 * MFS_SEC);
    assert_true(mfs_meta_in_contact(b.meta));
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dead, setup, teardown),
        cmocka_unit_test_setup_teardown(test_crossed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_renewed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_overtaken, setup, teardown),
        cmocka_unit_test_setup_teardown(test_overtaken_late, setup, teardown),
        cmocka_unit_test_setup_teardown(test_replaced_process, setup, teardown),
        cmocka_unit_test_setup_teardown(test_out_of_contact, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failed_over, setup, teardown),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, meta_redis_start, meta_redis_stop);
}
