/* A rename of which the answer was lost, or whose maker died before he had told anybody: who knew
 * the names under leases shows the new ones as soon as somebody knows, and never the old ones after
 * that. */
#include <errno.h>
#include <linux/fs.h>
#include <setjmp.h>
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
#include "meta_fixture.h"
#include "store/store.h"

#define ROOT MFS_ROOT_INO

/* a renames, b knows the names, c ends what a left. */
static struct meta_client a, b, c;
static struct mfs_store *other; /* of a's, by which commands go whose answers a does not get */
static char from[32], to[32];
static uint64_t moved, replaced;
static atomic_bool dead; /* a: nothing that it sends goes out any more */

static int setup(void **state)
{
    struct mfs_store_opts opts = {.node = REDIS_FIXTURE_NODE};
    int rc = redis_fixture_reset(meta_redis);

    (void)state;
    rc = rc ? rc : meta_client_start_leased(&a, meta_redis, 2 * MFS_SEC);
    rc = rc ? rc : meta_client_start_leased(&b, meta_redis, 20 * MFS_SEC);
    rc = rc ? rc : meta_client_start_leased(&c, meta_redis, 20 * MFS_SEC);
    rc = rc ? rc : mfs_store_create(&other, redis_fixture_table(meta_redis), &opts);
    c.meta->limits.intent_seconds = 0;
    c.meta->limits.chores_ms = 1;
    return rc;
}

static int teardown(void **state)
{
    (void)state;
    mfs_store_set_fault(a.store, NULL, NULL);
    meta_client_stop(&a);
    meta_client_stop(&b);
    meta_client_stop(&c);
    mfs_store_destroy(other);
    return 0;
}

/* --- what happens to a's commands ------------------------------------------------------------- */

/* It happens, and nobody hears of it. */
static int lose_answer(uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    struct mfs_cmd cmd = {.part = part, .argv = argv, .argc = argc};

    assert_int_equal(mfs_store_exec(other, &cmd, 1), 0);
    mfs_cmds_fini(&cmd, 1);
    return -EIO;
}

static bool is(const struct mfs_arg *arg, const char *word)
{
    return arg->len == strlen(word) && memcmp(arg->p, word, arg->len) == 0;
}

static bool renames(const struct mfs_arg *argv, uint32_t argc)
{
    return argc && (is(&argv[0], "mfs_rename") || is(&argv[0], "mfs_rename_commit"));
}

/* The one answer is lost. */
static int lose(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    (void)arg;
    return renames(argv, argc) ? lose_answer(part, argv, argc) : 0;
}

/* It is the last that a does. */
static int die(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    (void)arg;
    if (dead)
        return -EIO;
    dead = renames(argv, argc);
    return dead ? lose_answer(part, argv, argc) : 0;
}

/* --- names ------------------------------------------------------------------------------------ */

static void make(const char *name, mode_t type, uint64_t *ino)
{
    if (S_ISDIR(type))
        assert_int_equal(meta_client_mkdir(&a, ROOT, name, ino), 0);
    else
        assert_int_equal(meta_client_file(&a, ROOT, name, ino), 0);
}

/* The names, of one partition or of two; both are there, and b knows them. */
static void prepare(mode_t type, bool across)
{
    meta_name_at(&a, ROOT, 1, "from", from, sizeof from);
    meta_name_at(&a, ROOT, across ? 2 : 1, "to", to, sizeof to);
    make(from, type, &moved);
    make(to, type, &replaced);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(meta_client_ino(&a, ROOT, to), replaced);
        assert_int_equal(meta_client_ino(&b, ROOT, from), moved);
        assert_int_equal(meta_client_ino(&b, ROOT, to), replaced);
    }
}

static void check(struct meta_client *who, int64_t at_from, int64_t at_to)
{
    assert_int_equal(meta_client_ino(who, ROOT, from), at_from);
    assert_int_equal(meta_client_ino(who, ROOT, to), at_to);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void answer_lost(unsigned flags)
{
    int64_t left = flags & RENAME_EXCHANGE ? (int64_t)replaced : -ENOENT;

    mfs_store_set_fault(a.store, lose, NULL);
    assert_int_equal(mfs_meta_rename(a.meta, ROOT, from, ROOT, to, flags), -EIO);
    mfs_store_set_fault(a.store, NULL, NULL);
    check(&a, left, (int64_t)moved);
    check(&b, left, (int64_t)moved);
}

static void test_answer_lost(void **state)
{
    (void)state;
    prepare(S_IFREG, false);
    answer_lost(0);
}

static void test_answer_lost_across(void **state)
{
    (void)state;
    prepare(S_IFREG, true);
    answer_lost(0);
}

static void test_answer_of_exchange_lost(void **state)
{
    (void)state;
    prepare(S_IFREG, true);
    answer_lost(RENAME_EXCHANGE);
}

/* What it replaced is not known to who ends it; that is told by those who free it, or never. */
static void die_in_rename(unsigned flags)
{
    dead = false;
    mfs_store_set_fault(a.store, die, NULL);
    assert_int_equal(mfs_meta_rename(a.meta, ROOT, from, ROOT, to, flags), -EIO);
    assert_true(dead);
}

static void do_chores(void)
{
    mfs_clock_sleep(3 * MFS_MSEC);
    mfs_chores_all(c.meta);
}

static void test_maker_died(void **state)
{
    (void)state;
    prepare(S_IFREG, true);
    die_in_rename(0);
    do_chores();
    assert_int_equal(meta_client_ino(&b, ROOT, from), -ENOENT);
    check(&c, -ENOENT, (int64_t)moved);
}

static void test_maker_of_exchange_died(void **state)
{
    (void)state;
    prepare(S_IFREG, true);
    die_in_rename(RENAME_EXCHANGE);
    do_chores();
    check(&b, (int64_t)replaced, (int64_t)moved);
    check(&c, (int64_t)replaced, (int64_t)moved);
}

/* Without anybody who could tell, b finds out while it relies on nothing: it must not go back to
 * what it knew when it does so again. */
static void test_never_back(void **state)
{
    struct mfs_table *t = redis_fixture_table(meta_redis);

    (void)state;
    prepare(S_IFREG, true);
    die_in_rename(0);
    check(&b, (int64_t)moved, (int64_t)replaced); /* for 30 s at most, as nobody has told it */
    t->epoch += 1000;
    t->replicated = true;
    assert_int_equal(mfs_store_set_table(b.store, t), 0); /* and nobody of whom it has heard */
    check(&b, -ENOENT, (int64_t)moved);
    mfs_store_set_contact(b.store, mfs_clock_mono() + 60 * MFS_SEC, NULL, 0);
    check(&b, -ENOENT, (int64_t)moved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_answer_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(test_answer_lost_across, setup, teardown),
        cmocka_unit_test_setup_teardown(test_answer_of_exchange_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(test_maker_died, setup, teardown),
        cmocka_unit_test_setup_teardown(test_maker_of_exchange_died, setup, teardown),
        cmocka_unit_test_setup_teardown(test_never_back, setup, teardown),
    };

    return cmocka_run_group_tests(tests, meta_redis_start, meta_redis_stop);
}
