/* A client dies in the middle of an operation: just before each command that it would send. What
 * others see then must be the tree before or after the operation, nothing may be lost, and
 * housekeeping (or just going on) must be able to clear up. What memefs fsck finds then are leaks,
 * none of them in names and counts of files, and housekeeping's search ends them all: looked at
 * after every fourth death, or, with EVERY_DEATH in the environment, after each.
 * ctest: timeout=300 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/log.h"
#include "fsck/fsck.h"
#include "meta/deferred/deferred.h"
#include "meta/internal.h"
#include "meta_world.h"

#define NPARTS 3

static struct redis_fixture *redis;
static struct meta_client victim, other;

static struct {
    pthread_t thread;
    unsigned at, count;
    atomic_bool dead; /* housekeeping's threads look, too */
} death;

static int die(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    (void)arg;
    (void)part;
    (void)argv;
    (void)argc;
    if (pthread_equal(pthread_self(), death.thread) && death.count++ >= death.at)
        death.dead = true;
    return death.dead ? -EIO : 0;
}

static void dump(struct mfs_buf *out)
{
    mfs_buf_init(out);
    assert_int_equal(meta_world_dump(&other, META_NO_LINKS, out), 0);
}

/* The tree before and after the operation. */
static void rehearse(const struct meta_op *op, struct mfs_buf *before, struct mfs_buf *after)
{
    struct meta_where where;

    assert_int_equal(meta_world_make(&other), 0);
    dump(before);
    meta_op_find(&other, op, &where);
    meta_op_run(&other, op, &where);
    dump(after);
    assert_int_equal(meta_world_remove(&other, 0), 0);
}

static void expect(const struct meta_op *op, unsigned n, const char *when,
                   const struct mfs_buf *before, const struct mfs_buf *after)
{
    struct mfs_buf now;

    dump(&now);
    if (strcmp(mfs_buf_data(&now), mfs_buf_data(before)) &&
        strcmp(mfs_buf_data(&now), mfs_buf_data(after)))
        fail_msg("%s, dead before command %u, %s:\n%sneither\n%snor\n%s", op->name, n, when,
                 mfs_buf_data(&now), mfs_buf_data(before), mfs_buf_data(after));
    mfs_buf_fini(&now);
}

/* Runs it with the death before its nth command; false when it had none. */
static bool perish(const struct meta_op *op, unsigned n)
{
    struct meta_where where;

    meta_op_find(&victim, op, &where);
    death.thread = pthread_self();
    death.at = n;
    death.count = 0;
    death.dead = false;
    mfs_store_set_fault(victim.store, die, NULL);
    meta_op_run(&victim, op, &where);
    mfs_store_set_fault(victim.store, NULL, NULL);
    mfs_store_drain(victim.store, MFS_SEC);
    meta_client_alive(&victim, !death.dead);
    return death.dead;
}

static void clear_up(void)
{
    for (int i = 0; i < 2; i++) {
        mfs_chores_all(other.meta);
        mfs_store_drain(other.store, MFS_SEC);
        mfs_clock_sleep(2 * MFS_MSEC);
    }
    assert_int_equal(meta_client_exists(&other, "#intents"), 0);
    assert_int_equal(meta_client_exists(&other, "#moving"), 0);
    assert_int_equal(meta_client_exists(&other, "#orphans"), 0);
}

/* Looks only, or searches as housekeeping does. */
static struct mfs_fsck_report *fsck(bool tidy)
{
    struct mfs_fsck_opts opts = {
        .mend = tidy, .leaks = tidy, .meta = tidy ? other.meta : NULL, .pause = MFS_MSEC};
    struct mfs_fsck_report *r = NULL;
    struct mfs_err err;

    if (mfs_fsck_run(other.store, &opts, &r, &err))
        fail_msg("%s", err.msg);
    return r;
}

/* After a death leaks only; without one, nothing. */
static void check_and_tidy(const struct meta_op *op, unsigned n, bool died)
{
    struct mfs_fsck_report *r = fsck(false);

    for (size_t i = 0; i < r->n; i++) {
        if (!died || !r->findings[i].leak)
            fail_msg("%s, dead before command %u: %s: %s: %s", op->name, n, r->findings[i].kind,
                     r->findings[i].path, r->findings[i].text);
    }
    mfs_fsck_report_free(r);
    r = fsck(true);
    for (size_t i = 0; i < r->n && r->left; i++)
        print_message("%s: %s: %s (%s)\n", r->findings[i].kind, r->findings[i].path,
                      r->findings[i].text, r->findings[i].why);
    if (r->left)
        fail_msg("%s, dead before command %u: housekeeping leaves something", op->name, n);
    mfs_fsck_report_free(r);
    r = fsck(false);
    if (r->n)
        fail_msg("%s, dead before command %u: tidy, and still %s: %s", op->name, n,
                 r->findings[0].kind, r->findings[0].text);
    mfs_fsck_report_free(r);
}

static bool every_death(void)
{
    return getenv("EVERY_DEATH") != NULL;
}

/* What others have left, whose deaths were not looked at, is there, too. */
static bool looked_at(unsigned n, bool died)
{
    return every_death() || (died && n % 4 == 1);
}

static void try_op(const struct meta_op *op)
{
    struct mfs_buf before, after;
    bool more = true;

    rehearse(op, &before, &after);
    for (unsigned n = 0; more; n++) {
        assert_int_equal(meta_world_make(&other), 0);
        more = perish(op, n);
        expect(op, n, "at once", &before, &after);
        if (n % 2) {
            clear_up();
            expect(op, n, "cleared up", &before, &after);
            if (meta_world_check(&other, more))
                fail_msg("%s, dead before command %u", op->name, n);
            if (looked_at(n, more)) {
                check_and_tidy(op, n, more);
                expect(op, n, "tidy", &before, &after);
            }
        }
        if (meta_world_remove(&other, more))
            fail_msg("%s, dead before command %u", op->name, n);
        clear_up();
        if (more && every_death())
            check_and_tidy(op, n, true); /* what is left is not to be found the next time */
    }
    mfs_buf_fini(&before);
    mfs_buf_fini(&after);
}

static void test_all(void **state)
{
    const char *only = getenv("MFS_ONLY");

    (void)state;
    for (size_t i = 0; i < meta_nops; i++) {
        if (!only || !strcmp(only, meta_ops[i].name))
            try_op(&meta_ops[i]);
    }
}

static int start(struct meta_client *c)
{
    int rc = meta_client_start(c, redis, 0);

    if (rc)
        return rc;
    c->meta->limits.others_wait = 2 * MFS_MSEC;
    c->meta->limits.intent_seconds = -1;
    c->meta->limits.holder_seconds = -1;
    c->meta->limits.chores_ms = 1;
    return 0;
}

static int start_all(void **state)
{
    (void)state;
    mfs_log_set_level(MFS_LOG_ERROR);
    return redis_fixture_start(&redis, &(struct redis_fixture_opts){.nparts = NPARTS}) ||
           start(&victim) || start(&other);
}

static int stop_all(void **state)
{
    (void)state;
    meta_client_stop(&victim);
    meta_client_stop(&other);
    redis_fixture_stop(redis);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
