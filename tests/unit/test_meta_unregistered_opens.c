/* ctest: threaded waits
 *
 * Opens under leases, of which no partition knows: they cost no round trip, and nobody takes away
 * what is open. */
#include <errno.h>
#include <linux/fs.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/clock.h"
#include "meta/deferred/deferred.h"
#include "meta/internal.h"
#include "meta/session/opens.h"
#include "meta/session/unregistered_opens.h"
#include "meta_fixture.h"

#define ROOT   MFS_ROOT_INO
#define TTL    (2 * MFS_SEC)
#define STRIPE (1020 << 10)

static struct meta_client a, b;

static int setup(void **state)
{
    (void)state;
    return meta_pair_start(&a, &b, TTL);
}

static int teardown(void **state)
{
    (void)state;
    meta_pair_stop(&a, &b);
    return 0;
}

static uint64_t new_file(const char *name)
{
    uint64_t ino = 0;

    assert_int_equal(meta_client_file(&a, ROOT, name, &ino), 0);
    return ino;
}

/* The client looks the name up and opens what it finds, as open(2) does. */
static int open_name(struct meta_client *c, const char *name, uint64_t *ino)
{
    struct mfs_attr attr;
    int rc = mfs_meta_lookup(c->meta, ROOT, name, &attr);

    *ino = rc ? 0 : attr.ino;
    return rc ? rc : mfs_meta_open(c->meta, *ino, NULL, &attr, NULL);
}

/* Under a lease, without asking: so that the partition does not know. */
static uint64_t open_unregistered(struct meta_client *c, const char *name)
{
    struct mfs_attr attr;
    uint64_t ino, before;

    for (int i = 0; i < 20; i++) { /* a notice may come in between that was sent twice */
        assert_int_equal(mfs_meta_lookup(c->meta, ROOT, name, &attr), 0);
        before = meta_client_round_trips(c);
        assert_int_equal(open_name(c, name, &ino), 0);
        if (meta_client_round_trips(c) == before)
            return ino;
        mfs_meta_close(c->meta, ino, true);
    }
    fail_msg("%s is never under a lease", name);
    return 0;
}

static bool is_there(uint64_t ino)
{
    struct mfs_attr attr;
    int rc = mfs_meta_getattr(a.meta, ino, &attr);

    assert_true(rc == 0 || rc == -ESTALE);
    return rc == 0;
}

/* Nothing is open, nothing left: at once, or when threads that tell of closes are through. */
static void check_closed(void)
{
    int64_t until = mfs_clock_mono() + 5 * MFS_SEC;

    while (meta_client_keys(&a, "O*") || meta_client_keys(&a, "I*") != 1)
        if (mfs_clock_mono() > until)
            fail_msg("open: %d, inodes: %d", (int)meta_client_keys(&a, "O*"),
                     (int)meta_client_keys(&a, "I*"));
    assert_int_equal(meta_client_exists(&a, "#orphans"), 0);
}

static void close_file(struct meta_client *c, uint64_t ino)
{
    assert_int_equal(mfs_meta_close(c->meta, ino, false), 0);
    mfs_closes_flush(c->meta);
}

/* --- one at a time ---------------------------------------------------------------------------- */

static void test_nobody_is_asked(void **state)
{
    uint64_t ino, before;

    (void)state;
    new_file("f");
    ino = open_unregistered(&b, "f");
    before = meta_client_round_trips(&b);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(open_name(&b, "f", &ino), 0);
        assert_int_equal(mfs_meta_close(b.meta, ino, false), 0);
    }
    assert_int_equal(meta_client_round_trips(&b), before);
    assert_int_equal(meta_client_keys(&a, "O*"), 0);
    close_file(&b, ino);
    assert_int_equal(mfs_meta_unlink(a.meta, ROOT, "f"), 0);
    check_closed();
}

/* An open that lasts is registered by itself. */
static void test_told_after_a_while(void **state)
{
    int64_t until = mfs_clock_mono() + 10 * MFS_SEC;
    uint64_t ino;

    (void)state;
    new_file("f");
    ino = open_unregistered(&b, "f");
    while (meta_client_keys(&a, "O*") == 0)
        assert_true(mfs_clock_mono() < until);
    assert_int_equal(mfs_meta_unlink(a.meta, ROOT, "f"), 0);
    assert_true(is_there(ino));
    close_file(&b, ino);
    assert_false(is_there(ino));
    check_closed();
}

enum { UNLINK, REPLACE, REPLACE_ELSEWHERE, LINKED, WAYS };

/* The file f loses its last name. */
static void take_name(struct meta_client *by, int way)
{
    uint32_t part = mfs_placement_entry(ROOT, "f", 1, META_REDIS_PARTS);
    struct mfs_attr attr;
    char other[16];

    meta_name_at(by, ROOT, way == REPLACE ? part : (part + 1) % META_REDIS_PARTS, "g", other,
                 sizeof other);
    switch (way) {
    case UNLINK:
        assert_int_equal(mfs_meta_unlink(by->meta, ROOT, "f"), 0);
        break;
    case LINKED:
        assert_int_equal(mfs_meta_lookup(by->meta, ROOT, "f", &attr), 0);
        assert_int_equal(mfs_meta_link(by->meta, attr.ino, ROOT, other, &attr), 0);
        assert_int_equal(mfs_meta_unlink(by->meta, ROOT, "f"), 0);
        assert_int_equal(mfs_meta_unlink(by->meta, ROOT, other), 0);
        break;
    default:
        assert_int_equal(meta_client_file(by, ROOT, other, NULL), 0);
        assert_int_equal(mfs_meta_rename(by->meta, ROOT, other, ROOT, "f", 0), 0);
    }
}

static void test_loses_its_name(void **state)
{
    struct meta_client *const clients[] = {&a, &b};

    (void)state;
    for (int i = 0; i < WAYS * 4; i++) {
        struct meta_client *opener = clients[i % 2], *by = clients[i / 2 % 2];
        uint64_t ino, again;

        new_file("f");
        ino = open_unregistered(opener, "f");
        assert_int_equal(open_name(opener, "f", &again), 0);
        take_name(by, i / 4);
        if (!is_there(ino))
            fail_msg("way %d, opened by %d, taken by %d: it is gone", i / 4, i % 2, i / 2 % 2);
        close_file(opener, ino);
        assert_true(is_there(ino));
        close_file(opener, ino);
        assert_false(is_there(ino));
        if (i / 4 == REPLACE || i / 4 == REPLACE_ELSEWHERE)
            assert_int_equal(mfs_meta_unlink(b.meta, ROOT, "f"), 0);
        check_closed();
    }
}

static uint64_t create_open(struct meta_client *c, const char *name)
{
    struct mfs_new new = {.mode = S_IFREG | 0644};
    struct mfs_attr attr;
    bool created;

    if (mfs_meta_create_open(c->meta, ROOT, name, &new, false, &attr, &created))
        return 0;
    return attr.ino;
}

/* Files are open for who creates them; no partition is told unless files are being removed, too. */
static void test_created(void **state)
{
    struct meta_client *const clients[] = {&a, &b};

    (void)state;
    for (int i = 0; i < WAYS * 4; i++) {
        struct meta_client *opener = clients[i % 2], *by = clients[i / 2 % 2];
        uint64_t ino;

        mfs_clock_sleep(120 * MFS_MSEC);
        ino = create_open(opener, "f");
        assert_true(is_there(ino));
        assert_int_equal(meta_client_keys(&a, "O*"), 0);
        take_name(by, i / 4);
        if (!is_there(ino))
            fail_msg("way %d, opened by %d, taken by %d: it is gone", i / 4, i % 2, i / 2 % 2);
        close_file(opener, ino);
        assert_false(is_there(ino));
        if (i / 4 == REPLACE || i / 4 == REPLACE_ELSEWHERE)
            assert_int_equal(mfs_meta_unlink(b.meta, ROOT, "f"), 0);
        check_closed();
    }
    assert_int_not_equal(create_open(&b, "f"), 0);
    assert_int_equal(meta_client_keys(&a, "O*"), 1);
}

static atomic_bool unlinked;

static void *unlink_f(void *client)
{
    struct meta_client *c = client;

    assert_int_equal(mfs_meta_unlink(c->meta, ROOT, "f"), 0);
    atomic_store(&unlinked, true);
    return NULL;
}

/* A file loses its name while who creates it does not know yet that he has it open. */
static void test_being_created(void **state)
{
    struct meta_client *const clients[] = {&a, &b};

    (void)state;
    for (int i = 0; i < 2; i++) {
        uint64_t ino = new_file("f");
        struct mfs_unregistered_creation creation;
        struct mfs_attr attr;
        pthread_t thread;

        mfs_clock_sleep(120 * MFS_MSEC);
        assert_int_equal(mfs_meta_lookup(b.meta, ROOT, "f", &attr), 0);
        assert_true(
            mfs_unregistered_creating(b.meta->unregistered, &creation, mfs_placement_home(ino)));
        atomic_store(&unlinked, false);
        pthread_create(&thread, NULL, unlink_f, clients[i]);
        mfs_clock_sleep(50 * MFS_MSEC);
        assert_false(atomic_load(&unlinked));
        mfs_unregistered_created(b.meta->unregistered, &creation, ino);
        pthread_join(thread, NULL);
        assert_true(is_there(ino));
        close_file(&b, ino);
        assert_false(is_there(ino));
        check_closed();
    }
}

/* Closed before the other one takes the name: it goes at once, all of it. */
static void test_freed_at_once(void **state)
{
    struct mfs_range stored = {0, 3 * STRIPE};
    struct mfs_commit c = {
        .end = 3 * STRIPE, .stored = &stored, .nstored = 1, .mtime = mfs_clock_real()};
    uint64_t ino = new_file("f"), old;
    struct mfs_attr attr;

    (void)state;
    assert_int_equal(mfs_meta_commit(a.meta, ino, &c, &old, &attr), 0);
    open_unregistered(&b, "f");
    close_file(&b, ino);
    assert_int_equal(mfs_meta_unlink(a.meta, ROOT, "f"), 0);
    assert_false(is_there(ino));
    assert_int_equal(a.reaped, 1);
    mfs_store_drain(a.store, MFS_SEC);
    assert_int_equal(meta_client_exists(&a, "#reap"), 0);
    check_closed();
}

/* --- who dies --------------------------------------------------------------------------------- */

static int not_told(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    (void)arg;
    (void)part;
    return argc && argv[0].len == 8 && memcmp(argv[0].p, "mfs_told", 8) == 0 ? -EIO : 0;
}

static void do_chores(struct meta_client *c)
{
    c->meta->limits.chores_ms = 1;
    mfs_clock_sleep(3 * MFS_MSEC);
    mfs_chores_all(c->meta);
}

/* Who took the name died before all others knew: housekeeping tells them, and itself. What they
 * have open stays until they close it. */
static void test_unlinker_dies(struct meta_client *keeper)
{
    uint64_t ino;

    new_file("f");
    ino = open_unregistered(&b, "f");
    mfs_store_set_fault(a.store, not_told, NULL);
    assert_int_equal(mfs_meta_unlink(a.meta, ROOT, "f"), 0);
    mfs_store_set_fault(a.store, NULL, NULL);
    do_chores(keeper);
    assert_true(is_there(ino));
    close_file(&b, ino);
    do_chores(keeper);
    assert_false(is_there(ino));
    check_closed();
}

static void test_unlinker_dies_opener_keeps_house(void **state)
{
    (void)state;
    test_unlinker_dies(&b);
}

static void test_unlinker_dies_other_keeps_house(void **state)
{
    (void)state;
    test_unlinker_dies(&a);
}

/* Both die, who took the name and who had it open. */
static void test_both_die(void **state)
{
    uint64_t ino = new_file("f");

    (void)state;
    open_unregistered(&b, "f");
    mfs_store_set_fault(a.store, not_told, NULL);
    assert_int_equal(mfs_meta_unlink(a.meta, ROOT, "f"), 0);
    mfs_store_set_fault(a.store, NULL, NULL);
    meta_client_kill(&b);
    assert_int_equal(meta_client_start_leased(&b, meta_redis, TTL), 0);
    do_chores(&a);
    assert_false(is_there(ino));
    check_closed();
}

/* Who has it open dies: the other one waits for that, then it goes. */
static void test_opener_dies(void **state)
{
    uint64_t ino = new_file("f");

    (void)state;
    open_unregistered(&b, "f");
    meta_client_kill(&b);
    assert_int_equal(mfs_meta_unlink(a.meta, ROOT, "f"), 0);
    assert_false(is_there(ino));
    assert_int_equal(meta_client_start_leased(&b, meta_redis, TTL), 0);
    check_closed();
}

/* The session it was opened in is dead: registered for the next one. */
static void test_session_lost(void **state)
{
    uint64_t ino = new_file("f"), sid = mfs_meta_session(b.meta);
    int64_t until = mfs_clock_mono() + 10 * MFS_SEC;

    (void)state;
    open_unregistered(&b, "f");
    meta_client_alive(&b, false);
    while (mfs_meta_session(b.meta) == sid ||
           mfs_opens_registration(b.meta, ino) != MFS_OPENS_REGISTERED)
        assert_true(mfs_clock_mono() < until);
    assert_int_equal(mfs_meta_unlink(a.meta, ROOT, "f"), 0);
    assert_true(is_there(ino));
    close_file(&b, ino);
    assert_false(is_there(ino));
    check_closed();
}

/* --- all at once ------------------------------------------------------------------------------ */

#define NAMES  3
#define ROUNDS 1500

static atomic_uint missed, opened;

/* Creates files, or opens whatever is there; what is open stays. */
static void *reader(void *client)
{
    struct meta_client *c = client;
    struct mfs_attr attr;
    char name[8];
    uint64_t ino;

    for (unsigned i = 0; i < ROUNDS; i++) {
        snprintf(name, sizeof name, "f%u", i % NAMES);
        if (i % 7 == 0)
            ino = create_open(c, name);
        else if (open_name(c, name, &ino))
            ino = 0;
        if (!ino)
            continue;
        atomic_fetch_add(&opened, 1);
        for (unsigned n = 0; n < 1 + i % 3; n++)
            if (mfs_meta_getattr(c->meta, ino, &attr))
                atomic_fetch_add(&missed, 1);
        mfs_meta_close(c->meta, ino, i % 5 == 0);
    }
    return NULL;
}

static void *remover(void *client)
{
    struct meta_client *c = client;
    char name[8], other[24];

    snprintf(other, sizeof other, "new-%lx", (unsigned long)pthread_self());
    for (unsigned i = 0; i < ROUNDS / 3; i++) {
        if (i % 50 == 0) /* so that what is created is not always registered */
            mfs_clock_sleep(150 * MFS_MSEC);
        snprintf(name, sizeof name, "f%u", i % NAMES);
        meta_client_file(c, ROOT, i % 2 ? other : name, NULL);
        if (i % 2)
            mfs_meta_rename(c->meta, ROOT, other, ROOT, name, 0);
        if (i % 3 == 0)
            mfs_meta_unlink(c->meta, ROOT, name);
    }
    return NULL;
}

static void test_race(void **state)
{
    pthread_t thread[8];
    char name[8];

    (void)state;
    for (int i = 0; i < 8; i++)
        pthread_create(&thread[i], NULL, i < 5 ? reader : remover, i % 2 ? &a : &b);
    for (int i = 0; i < 8; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(atomic_load(&missed), 0);
    assert_in_range(atomic_load(&opened), 20, UINT32_MAX);
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "f%d", i);
        mfs_meta_unlink(a.meta, ROOT, name);
    }
    check_closed();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nobody_is_asked, setup, teardown),
        cmocka_unit_test_setup_teardown(test_told_after_a_while, setup, teardown),
        cmocka_unit_test_setup_teardown(test_loses_its_name, setup, teardown),
        cmocka_unit_test_setup_teardown(test_created, setup, teardown),
        cmocka_unit_test_setup_teardown(test_being_created, setup, teardown),
        cmocka_unit_test_setup_teardown(test_freed_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unlinker_dies_opener_keeps_house, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unlinker_dies_other_keeps_house, setup, teardown),
        cmocka_unit_test_setup_teardown(test_both_die, setup, teardown),
        cmocka_unit_test_setup_teardown(test_opener_dies, setup, teardown),
        cmocka_unit_test_setup_teardown(test_session_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(test_race, setup, teardown),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, meta_redis_start, meta_redis_stop);
}
