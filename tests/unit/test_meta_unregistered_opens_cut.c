/* ctest: threaded waits long=30
 *
 * Opens under leases that can't be registered, as their partition does not answer who has them:
 * nobody takes away what is open, and nobody waits for that who has nothing to do with it. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "meta/call.h"
#include "meta/deferred/deferred.h"
#include "meta/internal.h"
#include "meta/session/opens.h"
#include "meta_fixture.h"
#include "store/args.h"
#include "store/keys.h"
#include "store/reply.h"

#define ROOT MFS_ROOT_INO
#define TTL  (2 * MFS_SEC)
#define NAME 32
#define SOON (1 * MFS_SEC) /* nobody has waited */

static struct meta_client a, b;
static struct mfs_store *other; /* of b's, by which go commands whose answers b does not get */
static uint32_t home, elsewhere;
static char f[NAME], g[NAME], h[NAME]; /* f: at home; the others are not */

/* --- what b can't do -------------------------------------------------------------------------- */

static atomic_bool cut;   /* it gets no answer from that partition, */
static atomic_bool lossy; /* or only none to what it registers, which is done, */
static atomic_bool shut;  /* or not done; */
static atomic_bool dumb;  /* and tells others nothing */
static atomic_uint tries; /* to register something */

static atomic_uint maybe_changed; /* how often anything may have changed of that inode */
static _Atomic uint64_t watched;

static void changed(void *arg, uint64_t ino, uint64_t version, void (*done)(void *), void *done_arg)
{
    (void)arg, (void)version;
    if (ino && ino == atomic_load(&watched))
        atomic_fetch_add(&maybe_changed, 1);
    if (done)
        done(done_arg);
}

static bool is(const struct mfs_arg *arg, const char *word)
{
    return arg->len == strlen(word) && memcmp(arg->p, word, arg->len) == 0;
}

static int fault(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    struct mfs_cmd cmd = {.part = part, .argv = argv, .argc = argc};
    bool registers = is(&argv[0], "mfs_reopen");

    (void)arg;
    if (atomic_load(&dumb) && is(&argv[0], "PUBLISH"))
        return -EIO;
    if (part != home)
        return 0;
    if (registers)
        atomic_fetch_add(&tries, 1);
    if (registers && atomic_load(&lossy)) {
        assert_int_equal(mfs_store_exec(other, &cmd, 1), 0);
        mfs_cmds_fini(&cmd, 1);
        return -EIO;
    }
    return atomic_load(&cut) || (registers && atomic_load(&shut)) ? -EIO : 0;
}

static void heal(void)
{
    atomic_store(&cut, false);
    atomic_store(&lossy, false);
    atomic_store(&shut, false);
    atomic_store(&dumb, false);
}

/* The home is no partition by which the clients talk to each other, nor the root's. */
static void choose_partitions(void)
{
    uint32_t x = (uint32_t)(a.meta->sid % META_REDIS_PARTS);
    uint32_t y = (uint32_t)(b.meta->sid % META_REDIS_PARTS);

    for (home = 0; home == x || home == y || home == mfs_placement_home(ROOT);)
        home++;
    assert_true(home < META_REDIS_PARTS);
    elsewhere = (home + 1) % META_REDIS_PARTS;
    meta_name_at(&a, ROOT, home, "f", f, sizeof f);
    meta_name_at(&a, ROOT, elsewhere, "g", g, sizeof g);
    meta_name_at(&a, ROOT, elsewhere, "h", h, sizeof h);
}

static int setup(void **state)
{
    struct mfs_store_opts opts = {.node = REDIS_FIXTURE_NODE};
    int rc = meta_pair_start(&a, &b, TTL);

    (void)state;
    mfs_log_set_level(MFS_LOG_ERROR);
    rc = rc ? rc : mfs_store_create(&other, redis_fixture_table(meta_redis), &opts);
    if (rc)
        return rc;
    a.meta->limits.chores_ms = 1;
    a.meta->limits.intent_seconds = 0;
    choose_partitions();
    heal();
    mfs_store_set_fault(b.store, fault, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    mfs_store_set_fault(b.store, NULL, NULL);
    meta_pair_stop(&a, &b);
    mfs_store_destroy(other);
    return 0;
}

/* --- files ------------------------------------------------------------------------------------ */

/* b opens it, and only b knows. */
static uint64_t open_unregistered(const char *name)
{
    struct mfs_attr attr;
    uint64_t before;

    for (int i = 0; i < 20; i++) { /* a notice may come in between that was sent twice */
        assert_int_equal(mfs_meta_lookup(b.meta, ROOT, name, &attr), 0);
        before = meta_client_round_trips(&b);
        assert_int_equal(mfs_meta_open(b.meta, attr.ino, NULL, &attr, NULL), 0);
        if (meta_client_round_trips(&b) == before)
            return attr.ino;
        mfs_meta_close(b.meta, attr.ino, true);
    }
    fail_msg("%s is never under a lease", name);
    return 0;
}

/* By a at home, open for b. */
static uint64_t new_open_file(void)
{
    assert_int_equal(meta_client_file(&a, ROOT, f, NULL), 0);
    return open_unregistered(f);
}

static bool is_there(uint64_t ino)
{
    struct mfs_attr attr;
    int rc = mfs_meta_getattr(a.meta, ino, &attr);

    assert_true(rc == 0 || rc == -ESTALE);
    return rc == 0;
}

/* How often its home says that b has it open. */
static long registered(uint64_t ino)
{
    struct mfs_ino_arg sid = mfs_ino_arg(b.meta->sid);
    char key[MFS_KEY_INO_LEN];
    struct mfs_call c;
    long n = 0;

    mfs_key_ino(key, 'O', ino);
    mfs_call_command(&c, "HGET");
    mfs_args_bin(&c.args, key, sizeof key);
    mfs_args_bin(&c.args, sid.b, sizeof sid.b);
    assert_int_equal(mfs_call_run(a.meta, &c, mfs_placement_home(ino)), 0);
    if (mfs_call_text(&c).p)
        n = strtol(mfs_call_text(&c).p, NULL, 10);
    mfs_call_fini(&c);
    return n;
}

static void wait_registered(uint64_t ino)
{
    int64_t until = mfs_clock_mono() + 10 * MFS_SEC;

    while (!registered(ino)) {
        assert_true(mfs_clock_mono() < until);
        mfs_clock_sleep(10 * MFS_MSEC);
    }
}

static void wait_tries(unsigned n)
{
    int64_t until = mfs_clock_mono() + 20 * MFS_SEC;

    for (n += atomic_load(&tries); atomic_load(&tries) < n; mfs_clock_sleep(10 * MFS_MSEC))
        assert_true(mfs_clock_mono() < until);
}

/* b closes it, and then it goes, all of it: some of it by a's housekeeping. */
static void check_goes(uint64_t ino)
{
    int64_t until = mfs_clock_mono() + 10 * MFS_SEC;

    assert_int_equal(mfs_meta_close(b.meta, ino, false), 0);
    while (is_there(ino)) {
        if (mfs_clock_mono() > until)
            fail_msg("it is still there, open %ld times", registered(ino));
        mfs_closes_flush(b.meta);
        mfs_chores_all(a.meta);
        mfs_clock_sleep(3 * MFS_MSEC);
    }
    assert_int_equal(meta_client_keys(&a, "O*"), 0);
    assert_int_equal(meta_client_exists(&a, "#orphans"), 0);
}

/* The name goes before return, and nobody has waited for long. */
static void unlink_by(struct meta_client *c, const char *name, int64_t most)
{
    int64_t start = mfs_clock_mono();

    assert_int_equal(mfs_meta_unlink(c->meta, ROOT, name), 0);
    assert_in_range(mfs_clock_mono() - start, 0, most);
    assert_int_equal(meta_client_ino(&a, ROOT, name), -ENOENT);
}

/* b is taken for dead, goes on as another one, and has tried to register something for that. */
static void next_session(void)
{
    uint64_t sid = mfs_meta_session(b.meta);
    int64_t until = mfs_clock_mono() + 20 * MFS_SEC;

    atomic_store(&tries, 0);
    meta_client_alive(&b, false);
    while (mfs_meta_session(b.meta) == sid || !atomic_load(&tries)) {
        assert_true(mfs_clock_mono() < until);
        mfs_clock_sleep(10 * MFS_MSEC);
    }
}

/* --- others remove what is open --------------------------------------------------------------- */

static void test_cut(void **state)
{
    uint64_t ino = new_open_file();

    (void)state;
    atomic_store(&cut, true);
    unlink_by(&a, f, SOON);
    assert_true(is_there(ino));
    mfs_chores_all(a.meta);
    assert_true(is_there(ino));
    heal();
    wait_registered(ino);
    mfs_chores_all(a.meta);
    assert_true(is_there(ino));
    check_goes(ino);
}

/* It has failed before the other one removes it. */
static void test_cut_for_long(void **state)
{
    uint64_t ino = new_open_file();

    (void)state;
    atomic_store(&cut, true);
    wait_tries(2);
    unlink_by(&a, f, SOON);
    assert_true(is_there(ino));
    heal();
    wait_registered(ino);
    assert_int_equal(registered(ino), 1);
    check_goes(ino);
}

/* Closed again, though nobody could be told: nobody waits for it. */
static void test_closed_meanwhile(void **state)
{
    uint64_t ino = new_open_file();

    (void)state;
    atomic_store(&cut, true);
    wait_tries(1);
    assert_int_equal(mfs_meta_close(b.meta, ino, false), 0);
    unlink_by(&a, f, SOON);
    assert_false(is_there(ino));
    heal();
    wait_tries(1);
    mfs_clock_sleep(100 * MFS_MSEC);
    assert_int_equal(meta_client_keys(&a, "O*"), 0);
}

/* Of a file with a lease that would end before the partition answers again. */
static void test_lease_is_prolonged(void **state)
{
    uint64_t ino = new_open_file();
    char key[MFS_KEY_INO_LEN];
    struct mfs_call c;

    (void)state;
    atomic_store(&cut, true);
    mfs_key_ino(key, 'Y', ino);
    mfs_call_command(&c, "PEXPIRE");
    mfs_args_bin(&c.args, key, sizeof key);
    mfs_args_int(&c.args, 1000);
    assert_int_equal(mfs_call_run(a.meta, &c, home), 0);
    mfs_call_fini(&c);
    unlink_by(&a, f, SOON);
    mfs_clock_sleep(1200 * MFS_MSEC);
    mfs_chores_all(a.meta);
    assert_true(is_there(ino));
    heal();
    wait_registered(ino);
    check_goes(ino);
}

/* Nobody hears that b can't: who waits for its answer gives up, and knows that he does not know. */
static void test_no_answer(void **state)
{
    uint64_t ino = new_open_file();

    (void)state;
    atomic_store(&shut, true);
    atomic_store(&dumb, true);
    unlink_by(&a, f, 4 * TTL);
    assert_true(is_there(ino));
    heal();
    wait_registered(ino);
    check_goes(ino);
}

/* Answers are lost, of what is done: it is done once. */
static void test_answers_lost(void **state)
{
    uint64_t ino = new_open_file();

    (void)state;
    atomic_store(&lossy, true);
    wait_tries(3);
    heal();
    assert_int_equal(registered(ino), 1);
    assert_int_equal(open_unregistered(f), ino);
    while (registered(ino) < 2)
        mfs_clock_sleep(10 * MFS_MSEC);
    mfs_clock_sleep(1500 * MFS_MSEC);
    assert_int_equal(registered(ino), 2);
    unlink_by(&a, f, SOON);
    assert_int_equal(mfs_meta_close(b.meta, ino, false), 0);
    mfs_closes_flush(b.meta);
    assert_true(is_there(ino));
    check_goes(ino);
}

/* The next session can't register at once what is open. Nobody is told of what others change until
 * it can: then it is looked at afresh. */
static void test_next_session(void **state)
{
    uint64_t ino = new_open_file();
    int64_t until = mfs_clock_mono() + 60 * MFS_SEC;

    (void)state;
    wait_registered(ino);
    b.meta->opts.changed = changed;
    atomic_store(&watched, ino);
    atomic_store(&shut, true);
    next_session();
    atomic_store(&maybe_changed, 0);
    heal();
    wait_registered(ino);
    while (!atomic_load(&maybe_changed) ||
           mfs_opens_registration(b.meta, ino) != MFS_OPENS_REGISTERED) {
        assert_true(mfs_clock_mono() < until);
        mfs_clock_sleep(10 * MFS_MSEC);
    }
    assert_int_equal(registered(ino), 1);
    unlink_by(&a, f, 4 * TTL);
    mfs_chores_all(a.meta);
    assert_true(is_there(ino));
    check_goes(ino);
}

/* --- who has it open removes something -------------------------------------------------------- */

static void test_unrelated(void **state)
{
    uint64_t ino = new_open_file();

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(meta_client_file(&a, ROOT, g, NULL), 0);
        assert_int_equal(meta_client_file(&a, ROOT, h, NULL), 0);
        atomic_store(&cut, true);
        unlink_by(&b, g, SOON);
        assert_int_equal(mfs_meta_rename(b.meta, ROOT, h, ROOT, g, 0), 0);
        unlink_by(&b, g, SOON);
    }
    heal();
    wait_registered(ino);
    unlink_by(&a, f, SOON);
    assert_true(is_there(ino));
    check_goes(ino);
}

static void test_own(void **state)
{
    uint64_t ino = new_open_file();

    (void)state;
    atomic_store(&shut, true);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(mfs_meta_unlink(b.meta, ROOT, f), -EIO);
        assert_int_equal(meta_client_ino(&a, ROOT, f), ino);
    }
    heal();
    unlink_by(&b, f, SOON);
    assert_true(is_there(ino));
    check_goes(ino);
}

/* Its only name is not where the inode is, and b has it open, and can't say so. */
static uint64_t open_elsewhere(void)
{
    struct mfs_attr attr;
    uint64_t ino = 0;

    assert_int_equal(meta_client_file(&a, ROOT, f, &ino), 0);
    assert_int_equal(mfs_meta_link(a.meta, ino, ROOT, g, &attr), 0);
    assert_int_equal(open_unregistered(f), ino);
    atomic_store(&shut, true);
    unlink_by(&a, f, SOON);
    return ino;
}

/* The name is gone; the inode goes when it may. */
static void check_kept(uint64_t ino)
{
    mfs_chores_all(a.meta);
    assert_true(is_there(ino));
    heal();
    wait_registered(ino);
    mfs_chores_all(a.meta);
    assert_true(is_there(ino));
    check_goes(ino);
    assert_int_equal(meta_client_exists(&a, "#intents"), 0);
}

static void test_own_elsewhere(void **state)
{
    uint64_t ino = open_elsewhere();

    (void)state;
    assert_int_equal(mfs_meta_unlink(b.meta, ROOT, g), -EIO);
    assert_int_equal(mfs_meta_unlink(b.meta, ROOT, g), -ENOENT);
    check_kept(ino);
}

static void test_own_replaced(void **state)
{
    uint64_t ino = open_elsewhere();

    (void)state;
    assert_int_equal(meta_client_file(&a, ROOT, h, NULL), 0);
    assert_int_equal(mfs_meta_rename(b.meta, ROOT, h, ROOT, g, 0), 0);
    check_kept(ino);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cut_for_long, setup, teardown),
        cmocka_unit_test_setup_teardown(test_closed_meanwhile, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lease_is_prolonged, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_answers_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(test_next_session, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unrelated, setup, teardown),
        cmocka_unit_test_setup_teardown(test_own, setup, teardown),
        cmocka_unit_test_setup_teardown(test_own_elsewhere, setup, teardown),
        cmocka_unit_test_setup_teardown(test_own_replaced, setup, teardown),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, meta_redis_start, meta_redis_stop);
}
