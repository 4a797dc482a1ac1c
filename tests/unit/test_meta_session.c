/* What clients leave behind, and what happens when memory is full. ctest: timeout=120 waits */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/log.h"
#include "meta/call.h"
#include "meta/deferred/deferred.h"
#include "meta/internal.h"
#include "meta/session/opens.h"
#include "meta/session/session.h"
#include "meta_fixture.h"

#define ROOT   MFS_ROOT_INO
#define NPARTS 2
#define STRIPE 65536

static struct redis_fixture *redis;
static struct meta_client a, b;

static int start_all(void **state)
{
    (void)state;
    mfs_log_set_level(MFS_LOG_ERROR);
    return redis_fixture_start(
        &redis, &(struct redis_fixture_opts){.nparts = NPARTS, .stripe_size = STRIPE});
}

static int stop_all(void **state)
{
    (void)state;
    redis_fixture_stop(redis);
    return 0;
}

static int setup(void **state)
{
    (void)state;
    if (redis_fixture_reset(redis) || meta_client_start(&a, redis, 400 * MFS_MSEC) ||
        meta_client_start(&b, redis, 0))
        return -1;
    b.meta->limits.chores_ms = 1;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (a.meta)
        meta_client_stop(&a);
    meta_client_stop(&b);
    return 0;
}

static uint64_t new_file(const char *name)
{
    uint64_t ino = 0;

    assert_int_equal(meta_client_file(&b, ROOT, name, &ino), 0);
    return ino;
}

static void open_file(struct meta_client *c, uint64_t ino)
{
    struct mfs_attr attr;

    assert_int_equal(mfs_meta_open(c->meta, ino, NULL, &attr, NULL), 0);
}

static void grow(uint64_t ino)
{
    struct mfs_range stored = {0, 3 * STRIPE};
    struct mfs_commit c = {
        .end = 3 * STRIPE, .stored = &stored, .nstored = 1, .mtime = mfs_clock_real()};
    struct mfs_attr attr;
    uint64_t old;

    assert_int_equal(mfs_meta_commit(b.meta, ino, &c, &old, &attr), 0);
}

static void do_chores(void)
{
    mfs_clock_sleep(3 * MFS_MSEC);
    mfs_chores_all(b.meta);
    mfs_store_drain(b.store, MFS_SEC);
}

/* A file that a dead client had open lives until somebody looks. */
static void test_orphan_of_the_dead(void **state)
{
    uint64_t f = new_file("f");
    struct mfs_attr attr;

    (void)state;
    grow(f);
    open_file(&a, f);
    open_file(&b, f);
    assert_int_equal(mfs_meta_unlink(b.meta, ROOT, "f"), 0);
    do_chores();
    meta_client_kill(&a);
    do_chores();
    assert_int_equal(mfs_meta_getattr(b.meta, f, &attr), 0);
    assert_int_equal(mfs_meta_close(b.meta, f, true), 0);
    assert_int_equal(mfs_meta_getattr(b.meta, f, &attr), -ESTALE);
    assert_int_equal(b.reaped, 1);
    mfs_store_drain(b.store, MFS_SEC);
    assert_int_equal(meta_client_exists(&b, "#orphans"), 0);
    assert_int_equal(meta_client_exists(&b, "#reap"), 0);
}

static void test_last_opener_dies(void **state)
{
    uint64_t f = new_file("f");
    struct mfs_attr attr;

    (void)state;
    grow(f);
    open_file(&a, f);
    assert_int_equal(mfs_meta_unlink(b.meta, ROOT, "f"), 0);
    meta_client_kill(&a);
    assert_int_equal(mfs_meta_getattr(b.meta, f, &attr), 0);
    do_chores();
    assert_int_equal(mfs_meta_getattr(b.meta, f, &attr), -ESTALE);
    assert_int_equal(b.reaped, 1);
    assert_int_equal(meta_client_exists(&b, "#reap"), 0);
}

/* Closes that nobody waits for go out together, a moment later. */
static void test_closed_later(void **state)
{
    uint64_t f[40];
    char name[16];

    (void)state;
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "f%d", i);
        f[i] = new_file(name);
        grow(f[i]);
        open_file(&b, f[i]);
        open_file(&b, f[i]);
        assert_int_equal(mfs_meta_unlink(a.meta, ROOT, name), 0);
        assert_int_equal(mfs_meta_close(b.meta, f[i], false), 0);
        assert_int_equal(mfs_meta_close(b.meta, f[i], false), 0);
    }
    mfs_closes_flush(b.meta); /* or its thread has done it */
    for (int64_t until = mfs_clock_mono() + 5 * MFS_SEC; b.reaped < 40;)
        assert_true(mfs_clock_mono() < until);
    mfs_store_drain(b.store, MFS_SEC);
    assert_int_equal(meta_client_keys(&b, "O*"), 0);
    assert_int_equal(meta_client_keys(&b, "I*"), 1);
    assert_int_equal(meta_client_exists(&b, "#orphans"), 0);
    assert_int_equal(meta_client_exists(&b, "#reap"), 0);
}

/* Who unlinks what he has just closed frees it at once. */
static void test_unlinked_after_close(void **state)
{
    uint64_t f = new_file("f");
    struct mfs_attr attr;

    (void)state;
    grow(f);
    open_file(&b, f);
    assert_int_equal(mfs_meta_close(b.meta, f, false), 0);
    assert_int_equal(mfs_meta_unlink(b.meta, ROOT, "f"), 0);
    assert_int_equal(mfs_meta_getattr(b.meta, f, &attr), -ESTALE);
    assert_int_equal(b.reaped, 1);
}

/* a is taken for dead, and goes on as another one, which has registered that file. */
static void next_session(uint64_t ino)
{
    uint64_t sid = mfs_meta_session(a.meta);
    int64_t until = mfs_clock_mono() + 10 * MFS_SEC;

    meta_client_alive(&a, false);
    while (mfs_meta_session(a.meta) == sid ||
           mfs_opens_registration(a.meta, ino) != MFS_OPENS_REGISTERED)
        assert_true(mfs_clock_mono() < until);
}

/* The session that a file was closed in has died since: nothing to tell, and nothing kept. */
static void test_closed_by_the_dead(void **state)
{
    uint64_t f = new_file("f");
    struct mfs_attr attr;

    (void)state;
    mfs_ticker_stop(&a.meta->closes_ticker);
    open_file(&a, f);
    open_file(&a, f);
    assert_int_equal(mfs_meta_close(a.meta, f, false), 0);
    next_session(f);
    mfs_closes_flush(a.meta);
    assert_int_equal(mfs_meta_unlink(b.meta, ROOT, "f"), 0);
    do_chores();
    assert_int_equal(mfs_meta_getattr(b.meta, f, &attr), 0);
    assert_int_equal(mfs_meta_close(a.meta, f, true), 0);
    assert_int_equal(mfs_meta_getattr(b.meta, f, &attr), -ESTALE);
}

/* A client that was thought dead comes back with a new session and what it has open. */
static void test_session_lost(void **state)
{
    uint64_t f = new_file("f");
    struct mfs_attr attr;

    (void)state;
    open_file(&a, f);
    open_file(&a, f);
    assert_int_equal(mfs_meta_flock(a.meta, f, 1, 0, F_WRLCK, &attr, NULL), 0);
    assert_int_equal(mfs_meta_flock(b.meta, f, 1, 0, F_WRLCK, &attr, NULL), -EAGAIN);
    next_session(f);
    assert_int_equal(mfs_meta_flock(b.meta, f, 1, 0, F_WRLCK, &attr, NULL), 0);
    assert_int_equal(mfs_meta_unlink(b.meta, ROOT, "f"), 0);
    do_chores();
    assert_int_equal(mfs_meta_close(a.meta, f, true), 0);
    do_chores();
    assert_int_equal(mfs_meta_getattr(b.meta, f, &attr), 0);
    assert_int_equal(mfs_meta_close(a.meta, f, true), 0);
    assert_int_equal(mfs_meta_getattr(b.meta, f, &attr), -ESTALE);
}

/* Others take it for dead by now. */
static void let_expire(struct meta_client *c)
{
    meta_client_alive(c, false);
    c->meta->refreshed_at = mfs_clock_mono() - c->meta->opts.session_ttl;
}

/* A lock that is taken in the name of a session that has died unnoticed would be nobody's. */
static void test_lock_after_silence(void **state)
{
    uint64_t f = new_file("f"), sid = mfs_meta_session(a.meta);
    struct mfs_attr attr;

    (void)state;
    let_expire(&a);
    assert_int_equal(mfs_meta_flock(a.meta, f, 1, 0, F_WRLCK, &attr, NULL), 0);
    assert_int_equal(mfs_meta_flock(b.meta, f, 1, 0, F_WRLCK, &attr, NULL), -EAGAIN);
    assert_int_not_equal(mfs_meta_session(a.meta), sid);
}

/* Nor does anybody take what others don't respect while nobody can prolong his session's life. */
static void test_nothing_while_silent(void **state)
{
    uint64_t f = new_file("f"), off, number, old;
    struct mfs_attr attr;

    (void)state;
    mfs_ticker_stop(&a.meta->session_ticker);
    a.meta->refreshed_at = mfs_clock_mono();
    assert_int_equal(mfs_meta_flock(a.meta, f, 1, 0, F_WRLCK, &attr, NULL), 0);
    let_expire(&a);
    assert_int_equal(mfs_meta_flock(a.meta, f, 2, 0, F_RDLCK, &attr, NULL), -EIO);
    assert_int_equal(mfs_meta_append(a.meta, f, "x", 1, 0, &off, &number, &old, &attr), -EIO);
    assert_int_equal(mfs_meta_flock(a.meta, f, 1, 0, F_UNLCK, &attr, NULL), 0);
    assert_int_equal(mfs_meta_flock(b.meta, f, 1, 0, F_WRLCK, &attr, NULL), 0);
}

/* A place for an append is no more sure once the session is not, or is another. */
static void test_place_after_silence(void **state)
{
    uint64_t f = new_file("f"), sid = mfs_meta_session(a.meta), off, number;
    int64_t until = mfs_clock_mono() + 10 * MFS_SEC, since = mfs_clock_mono();
    struct mfs_attr attr;

    (void)state;
    assert_int_equal(mfs_meta_append(a.meta, f, NULL, 0, 0, &off, &number, NULL, &attr), 0);
    assert_true(mfs_meta_append_holds(a.meta, since));
    let_expire(&a);
    assert_false(mfs_meta_append_holds(a.meta, since));
    mfs_ticker_hurry(&a.meta->session_ticker);
    while (!mfs_session_is_fresh(a.meta))
        assert_true(mfs_clock_mono() < until);
    assert_int_not_equal(mfs_meta_session(a.meta), sid);
    assert_false(mfs_meta_append_holds(a.meta, since));
    assert_true(mfs_meta_append_holds(a.meta, mfs_clock_mono()));
    assert_int_equal(
        mfs_meta_append_end(a.meta, f, number, true, &(struct mfs_range){0, 100}, 0, NULL, &attr),
        -ECANCELED);
    assert_int_equal(mfs_meta_append(a.meta, f, "x", 1, 0, &off, &number, NULL, &attr), 0);
    assert_int_equal(off, 0);
}

/* A session outlives a fence that is longer than its time to live. */
static void test_kept(void **state)
{
    uint64_t sid = a.meta->sid;
    bool alive = false;

    (void)state;
    for (uint32_t p = 0; p < NPARTS; p++) {
        assert_int_equal(redis_fixture_admin(redis, p, "mfs_sessions_keep 10000"), 0);
        assert_int_equal(redis_fixture_fence(redis, p, true), 0);
    }
    mfs_clock_sleep(1200 * MFS_MSEC); /* three times as long */
    for (uint32_t p = 0; p < NPARTS; p++)
        assert_int_equal(redis_fixture_fence(redis, p, false), 0);
    mfs_session_alive(b.meta, &sid, 1, &alive);
    assert_true(alive);
    mfs_clock_sleep(600 * MFS_MSEC); /* by now it has been refreshed again */
    mfs_session_alive(b.meta, &sid, 1, &alive);
    assert_true(alive);
    assert_int_equal(a.meta->sid, sid);
}

/* Sessions whose leftovers are to be searched for. */
static size_t count_dead(void)
{
    size_t n = 0;

    for (uint32_t p = 0; p < NPARTS; p++) {
        struct mfs_call c;

        mfs_call_command(&c, "mfs_sessions_dead");
        c.cmd.idempotent = true;
        assert_int_equal(mfs_call_run(b.meta, &c, p), 0);
        n += mfs_reply_count(c.cmd.reply);
        mfs_call_fini(&c);
    }
    return n;
}

/* All partitions hang, but the one that keeps the session. */
static int hang_elsewhere(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    const struct mfs_meta *meta = arg;

    (void)argv;
    (void)argc;
    if (part == meta->sid % NPARTS)
        return 0;
    mfs_clock_sleep(600 * MFS_MSEC); /* longer than the session lives */
    return -ETIMEDOUT;
}

/* Who asks for a search does not wait for a partition that hangs while his session dies. */
static void test_search_asked_for(void **state)
{
    uint64_t sid = mfs_meta_session(a.meta);

    (void)state;
    mfs_store_set_fault(a.store, hang_elsewhere, a.meta);
    for (int i = 0; i < 20; i++) {
        mfs_session_note_outcome(a.meta, -ETIMEDOUT);
        mfs_clock_sleep(100 * MFS_MSEC);
        assert_int_equal(mfs_meta_session(a.meta), sid);
    }
    mfs_store_set_fault(a.store, NULL, NULL);
    assert_in_range(count_dead(), 1, 21);
}

static void test_end_gives_back(void **state)
{
    uint64_t f = new_file("f");
    struct mfs_attr attr;

    (void)state;
    open_file(&a, f);
    assert_int_equal(mfs_meta_flock(a.meta, f, 1, 0, F_WRLCK, &attr, NULL), 0);
    meta_client_stop(&a);
    assert_int_equal(meta_client_keys(&b, "O*"), 0);
    assert_int_equal(meta_client_keys(&b, "L*"), 0);
    assert_int_equal(meta_client_keys(&b, "Z*"), 1);
}

static void set_maxmemory(const char *bytes)
{
    char command[64];

    snprintf(command, sizeof command, "CONFIG SET maxmemory %s", bytes);
    for (uint32_t p = 0; p < NPARTS; p++)
        assert_int_equal(redis_fixture_admin(redis, p, command), 0);
}

/* Nothing new, but everything that frees memory and everything that keeps what is there in order.
 */
static void test_memory_full(void **state)
{
    uint64_t f = new_file("f"), d, sid = mfs_meta_session(a.meta), old;
    struct mfs_part part = {0, 5, "12345"};
    struct mfs_commit c = {.end = 5, .mtime = mfs_clock_real(), .parts = &part, .nparts = 1};
    struct mfs_attr attr = {.mode = 0600};

    (void)state;
    assert_int_equal(meta_client_mkdir(&b, ROOT, "d", &d), 0);
    assert_int_equal(meta_client_file(&b, d, "x", NULL), 0);
    set_maxmemory("1");
    assert_int_equal(meta_client_file(&b, ROOT, "g", NULL), -ENOSPC);
    assert_int_equal(meta_client_mkdir(&b, ROOT, "e", NULL), -ENOSPC);
    assert_int_equal(mfs_meta_link(b.meta, f, ROOT, "l", &attr), -ENOSPC);
    assert_int_equal(mfs_meta_commit(b.meta, f, &c, &old, &attr), -ENOSPC);
    assert_int_equal(mfs_meta_setxattr(b.meta, f, "user.a", "1", 1, 0, false, NULL), -ENOSPC);
    open_file(&a, f);
    assert_int_equal(mfs_meta_setattr(b.meta, f, MFS_SET_MODE, &attr, NULL), 0);
    assert_int_equal(attr.nlink, 1);
    c.nparts = 0;
    assert_int_equal(mfs_meta_commit(b.meta, f, &c, &old, &attr), 0);
    assert_int_equal(mfs_meta_truncate(b.meta, f, 0, UINT64_MAX >> 1, 0, &old, &attr), 0);
    assert_int_equal(mfs_meta_flock(a.meta, f, 1, 0, F_WRLCK, &attr, NULL), 0);
    assert_int_equal(mfs_meta_rename(b.meta, ROOT, "f", d, "g", 0), 0);
    assert_int_equal(mfs_meta_rename(b.meta, d, "g", ROOT, "f", 0), 0);
    mfs_session_note_outcome(a.meta, -EIO);
    mfs_clock_sleep(600 * MFS_MSEC); /* longer than the session would live */
    assert_int_equal(mfs_meta_session(a.meta), sid);
    assert_int_equal(count_dead(), 1);
    assert_int_equal(mfs_meta_flock(b.meta, f, 1, 0, F_WRLCK, &attr, NULL), -EAGAIN);
    assert_int_equal(mfs_meta_unlink(b.meta, ROOT, "f"), 0);
    assert_int_equal(mfs_meta_close(a.meta, f, true), 0);
    assert_int_equal(mfs_meta_unlink(b.meta, d, "x"), 0);
    assert_int_equal(mfs_meta_rmdir(b.meta, ROOT, "d"), 0);
    assert_int_equal(mfs_meta_getattr(b.meta, ROOT, &attr), 0);
    mfs_store_drain(b.store, MFS_SEC);
    assert_int_equal(attr.nlink, 2);
    set_maxmemory("0");
    assert_int_equal(meta_client_keys(&b, "I*"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        TEST(test_orphan_of_the_dead),  TEST(test_last_opener_dies),
        TEST(test_closed_later),        TEST(test_unlinked_after_close),
        TEST(test_closed_by_the_dead),  TEST(test_session_lost),
        TEST(test_lock_after_silence),  TEST(test_nothing_while_silent),
        TEST(test_place_after_silence), TEST(test_kept),
        TEST(test_search_asked_for),    TEST(test_end_gives_back),
        TEST(test_memory_full),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
