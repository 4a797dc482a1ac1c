/* Leases that a client gives back of its own, as another one changes file after file: it goes on to
 * see each change, and the other one need not tell it. ctest: threaded timeout=120 waits */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "leases_test.h"
#include "meta/cache/cache.h"
#include "meta/call.h"

#define FILES 64U

static uint64_t dir, ino[FILES];

static const char *name_of(unsigned i)
{
    static _Thread_local char name[16];

    snprintf(name, sizeof name, "f%u", i);
    return name;
}

/* Of a directory of files, which a has made and b knows. */
static int setup_files(void **state)
{
    struct mfs_attr attr;

    if (setup(state) || meta_client_mkdir(&a, ROOT, "d", &dir))
        return -1;
    for (unsigned i = 0; i < FILES; i++) {
        if (meta_client_file(&a, dir, name_of(i), &ino[i]) ||
            mfs_meta_lookup(b.meta, dir, name_of(i), &attr))
            return -1;
    }
    b.meta->limits.idle_lease = 0;
    return 0;
}

static mode_t seen_by_b(unsigned i)
{
    struct mfs_attr attr;

    assert_int_equal(mfs_meta_lookup(b.meta, dir, name_of(i), &attr), 0);
    return attr.mode & 07777;
}

static bool b_asks(unsigned i)
{
    struct mfs_store_stats before, after;

    mfs_store_stats(b.store, &before);
    seen_by_b(i);
    mfs_store_stats(b.store, &after);
    return after.round_trips > before.round_trips;
}

/* Files of which some partition knows a lease: only b has any. Those of directories count, too. */
static int64_t leases(void)
{
    return meta_client_keys(&a, "Y*");
}

static void await_leases(int64_t most)
{
    for (unsigned i = 0; i < 3000 && leases() > most; i++)
        mfs_clock_sleep(MFS_MSEC);
    assert_in_range(leases(), 0, most);
}

static void test_more_and_more(void **state)
{
    int64_t before = leases();

    (void)state;
    assert_in_range(before, FILES, 2 * FILES);
    chmod_by_a(ino[0], 0600);
    mfs_clock_sleep(20 * MFS_MSEC);
    assert_in_range(leases(), before - 1, before); /* one change says nothing of others */
    chmod_by_a(ino[1], 0600);
    await_leases(before - 8);
    for (unsigned i = 2; i < FILES; i++) {
        chmod_by_a(ino[i], 0600);
        mfs_clock_sleep(MFS_MSEC);
    }
    await_leases(before - FILES + 8); /* those that were told of their change stay registered */
    for (unsigned i = 0; i < FILES; i++)
        assert_int_equal(seen_by_b(i), 0600);
    for (unsigned i = 0; i < FILES; i++) {
        chmod_by_a(ino[i], 0640);
        assert_int_equal(seen_by_b(i), 0640);
    }
}

/* Nothing that was used a moment ago. */
static void test_used(void **state)
{
    int64_t before = leases();

    (void)state;
    b.meta->limits.idle_lease = 10 * MFS_SEC;
    for (unsigned i = 0; i < 16; i++)
        chmod_by_a(ino[i], 0600);
    mfs_clock_sleep(50 * MFS_MSEC);
    assert_int_equal(leases(), before);
    assert_false(b_asks(FILES - 1));
}

/* What was not used is given back, and nothing else. */
static void test_some_used(void **state)
{
    int64_t used;

    (void)state;
    b.meta->limits.idle_lease = MFS_SEC;
    mfs_clock_sleep(MFS_SEC);
    used = mfs_clock_mono();
    for (unsigned i = FILES / 2; i < FILES; i++)
        seen_by_b(i);
    for (unsigned i = 0; i < FILES / 4; i++) {
        chmod_by_a(ino[i], 0600);
        mfs_clock_sleep(2 * MFS_MSEC);
    }
    for (unsigned i = FILES / 2; i < FILES; i++) {
        bool asks = b_asks(i);

        assert_true(!asks || mfs_clock_mono() - used > MFS_SEC / 2);
    }
    assert_true(b_asks(FILES / 2 - 1));
}

/* What is open under its lease alone stays when its name goes. */
static void test_open(void **state)
{
    struct mfs_attr attr;

    (void)state;
    for (unsigned i = 32; i < FILES; i++)
        assert_int_equal(mfs_meta_open(b.meta, ino[i], NULL, &attr, NULL), 0);
    for (unsigned i = 0; i < 32; i++)
        chmod_by_a(ino[i], 0600);
    for (unsigned i = 0; i < FILES; i++)
        assert_int_equal(mfs_meta_unlink(a.meta, dir, name_of(i)), 0);
    for (unsigned i = 32; i < FILES; i++) {
        assert_int_equal(mfs_meta_getattr(b.meta, ino[i], &attr), 0);
        assert_int_equal(attr.nlink, 0);
        mfs_meta_close(b.meta, ino[i], true);
        assert_int_equal(mfs_meta_getattr(b.meta, ino[i], &attr), -ESTALE);
    }
}

/* --- answers that are late, or lost ------------------------------------------------------------
 */

static atomic_bool over;
static atomic_uint gives;
static atomic_int fails;
static atomic_bool held;

#define GIVES 64U

/* What was to be given back. */
static struct given {
    uint32_t part;
    size_t len[3];
    char text[3][8192];
} given[GIVES];

static void note_give(uint32_t part, const struct mfs_arg *argv)
{
    struct given *g = &given[atomic_load(&gives) % GIVES];

    g->part = part;
    for (unsigned i = 0; i < 3; i++) {
        g->len[i] = argv[i + 1].len;
        memcpy(g->text[i], argv[i + 1].p, argv[i + 1].len);
    }
    atomic_fetch_add(&gives, 1);
}

/* What was not executed then is now. */
static void give_late(void)
{
    unsigned n = atomic_load(&gives);

    assert_in_range(n, 1, GIVES);
    for (unsigned k = 0; k < n; k++) {
        struct mfs_call c;

        mfs_call_command(&c, "mfs_unlease");
        for (unsigned i = 0; i < 3; i++)
            mfs_args_bin(&c.args, given[k].text[i], given[k].len[i]);
        assert_int_equal(mfs_call_run(a.meta, &c, given[k].part), 0);
        mfs_call_fini(&c);
    }
}

/* Until nothing more is given back. */
static void await_no_give(void)
{
    unsigned n = atomic_load(&gives);

    for (unsigned same = 0; same < 20; same++) {
        mfs_clock_sleep(5 * MFS_MSEC);
        if (n != atomic_load(&gives))
            same = 0;
        n = atomic_load(&gives);
    }
}

static int on_unlease(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    (void)arg;
    (void)argc;
    if (argv[0].len != strlen("mfs_unlease") || memcmp(argv[0].p, "mfs_unlease", argv[0].len) != 0)
        return 0;
    note_give(part, argv);
    while (atomic_load(&held))
        mfs_clock_sleep(MFS_MSEC);
    return atomic_load(&fails);
}

static void on_gives(bool hold, int fail)
{
    atomic_store(&gives, 0);
    atomic_store(&held, hold);
    atomic_store(&fails, fail);
    mfs_store_set_fault(b.store, on_unlease, NULL);
}

static void begin_giving(void)
{
    for (unsigned i = 0; i < 2 || atomic_load(&gives) == 0; i = (i + 1) % FILES) {
        chmod_by_a(ino[i], 0600);
        mfs_clock_sleep(MFS_MSEC);
    }
}

/* It looks at the files again while their leases are on their way back: what it is told then, it
 * does not keep. */
static void test_asked_meanwhile(void **state)
{
    (void)state;
    on_gives(true, 0);
    begin_giving();
    b.meta->limits.idle_lease = 10 * MFS_SEC; /* no others */
    for (unsigned i = 0; i < FILES; i++)
        seen_by_b(i);
    atomic_store(&held, false);
    mfs_clock_sleep(50 * MFS_MSEC);
    for (unsigned i = 0; i < FILES; i++) {
        chmod_by_a(ino[i], 0611);
        assert_int_equal(seen_by_b(i), 0611);
    }
}

/* A partition that does not answer keeps up nothing else that is told later. */
static void test_nothing_waits(void **state)
{
    (void)state;
    on_gives(true, 0);
    begin_giving();
    for (unsigned i = 0; i < FILES; i++) {
        char to[16];

        snprintf(to, sizeof to, "to%u", i);
        assert_int_equal(meta_client_rename(&b, dir, name_of(i), dir, to, 0), 0);
    }
    for (unsigned i = 0; i < 2000 && meta_client_keys(&a, "T*") > 0; i++)
        mfs_clock_sleep(MFS_MSEC);
    assert_int_equal(meta_client_keys(&a, "T*"), 0);
    assert_true(atomic_load(&gives) > 0 && atomic_load(&held));
}

static void *change_all(void *arg)
{
    (void)arg;
    for (unsigned i = 0; !atomic_load(&over); i = (i + 1) % FILES)
        chmod_by_a(ino[i], i % 2 ? 0600 : 0640);
    return NULL;
}

/* It ends while others change what it knows. */
static void test_stopped_meanwhile(void **state)
{
    pthread_t thread;

    (void)state;
    atomic_store(&over, false);
    pthread_create(&thread, NULL, change_all, NULL);
    for (unsigned n = 0; n < 4; n++) {
        for (unsigned i = 0; i < FILES; i++)
            seen_by_b(i);
        mfs_clock_sleep(5 * MFS_MSEC);
        meta_client_stop(&b);
        assert_int_equal(start_client(&b, &by_a), 0);
        b.meta->limits.idle_lease = 0;
    }
    atomic_store(&over, true);
    pthread_join(thread, NULL);
}

/* Changes of one file say nothing of others, however many they are. */
static void test_one_file(void **state)
{
    int64_t before = leases();

    (void)state;
    for (unsigned i = 0; i < 30; i++) {
        chmod_by_a(ino[0], i % 2 ? 0600 : 0640);
        assert_int_equal(seen_by_b(0), i % 2 ? 0600 : 0640);
        mfs_clock_sleep(MFS_MSEC);
    }
    mfs_clock_sleep(20 * MFS_MSEC);
    assert_in_range(leases(), before - 1, before);
}

static bool refuse(void *arg, uint64_t file, uint64_t in, const char *name, size_t len)
{
    (void)file;
    (void)in;
    (void)name;
    (void)len;
    return *(bool *)arg;
}

static int64_t later(void)
{
    mfs_clock_sleep(MFS_MSEC);
    return mfs_clock_mono();
}

/* What there is no memory for stays known; what has been lost counts again for the next session. */
static void test_refused(void **state)
{
    struct mfs_filecache *c = mfs_filecache_create(0);
    struct mfs_attr attr = {.ino = 5, .mode = S_IFREG};
    bool may = false;

    (void)state;
    mfs_filecache_put(c, ROOT, "f", &attr, later());
    mfs_filecache_give(c, ROOT, 0, 8, refuse, &may);
    assert_true(mfs_filecache_attr(c, 5, &attr));
    may = true;
    mfs_filecache_give(c, ROOT, 0, 8, refuse, &may);
    assert_false(mfs_filecache_attr(c, 5, &attr));
    mfs_filecache_put(c, ROOT, "f", &attr, later());
    assert_false(mfs_filecache_attr(c, 5, &attr));
    mfs_filecache_lost(c, 5);
    mfs_filecache_put(c, ROOT, "f", &attr, later());
    assert_false(mfs_filecache_attr(c, 5, &attr));
    mfs_filecache_renewed(c);
    mfs_filecache_put(c, ROOT, "f", &attr, later());
    assert_true(mfs_filecache_attr(c, 5, &attr));
    mfs_filecache_destroy(c);
}

/* Nobody knows whether it will be executed yet. */
static void test_lost(void **state)
{
    uint64_t sid = b.meta->sid;
    unsigned asked = 0;

    (void)state;
    on_gives(false, -EIO);
    begin_giving();
    await_no_give();
    b.meta->limits.idle_lease = 10 * MFS_SEC; /* no others */
    for (unsigned i = 0; i < FILES; i++) {
        seen_by_b(i);
        asked += b_asks(i);
    }
    assert_in_range(asked, 1, FILES);
    give_late();
    for (unsigned i = 0; i < FILES; i++) {
        chmod_by_a(ino[i], 0611);
        assert_int_equal(seen_by_b(i), 0611);
    }
    on_gives(false, 0);
    meta_client_alive(&b, false);
    for (unsigned i = 0; i < 500 && b.meta->sid == sid; i++) {
        mfs_ticker_hurry(&b.meta->session_ticker);
        mfs_clock_sleep(10 * MFS_MSEC);
    }
    for (unsigned i = 0; i < 100; i++) {
        asked = 0;
        for (unsigned k = 0; k < FILES; k++)
            asked += b_asks(k);
        if (asked == 0)
            break;
        mfs_clock_sleep(10 * MFS_MSEC);
    }
    assert_int_equal(asked, 0);
}

/* Refused is not lost. */
static void test_full(void **state)
{
    unsigned asked = 0;

    (void)state;
    on_gives(false, -ENOSPC);
    begin_giving();
    await_no_give();
    b.meta->limits.idle_lease = 10 * MFS_SEC;
    for (unsigned i = 0; i < FILES; i++) {
        seen_by_b(i);
        asked += b_asks(i);
    }
    assert_int_equal(asked, 0);
}

static void *let_go_soon(void *arg)
{
    mfs_clock_sleep(200 * MFS_MSEC);
    atomic_store(&held, false);
    return arg;
}

/* One that is killed in between is waited for until its session is dead. */
static void test_killed(void **state)
{
    int64_t began;
    pthread_t thread;

    on_gives(true, -EIO);
    begin_giving();
    assert_int_equal(pthread_create(&thread, NULL, let_go_soon, NULL), 0);
    meta_client_kill(&b); /* the command is never sent */
    pthread_join(thread, NULL);
    began = mfs_clock_mono();
    for (unsigned i = 0; i < FILES; i++)
        chmod_by_a(ino[i], 0611);
    assert_true(mfs_clock_mono() - began < 3 * TTL);
    meta_client_stop(&a);
    assert_int_equal(setup(state), 0); /* for teardown */
}

/* --- other places ----------------------------------------------------------------------------- */

/* Does the partition know of a lease of b's? */
static bool is_held_by_b(uint64_t file, uint32_t part)
{
    struct mfs_ino_arg key = mfs_ino_arg(file), sid = mfs_ino_arg(a.meta->sid);
    struct mfs_call c;
    bool held_there;

    mfs_call_command(&c, "mfs_holders");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_bin(&c.args, sid.b, sizeof sid.b);
    assert_int_equal(mfs_call_run(a.meta, &c, part), 0);
    held_there = mfs_call_text(&c).n > 0;
    mfs_call_fini(&c);
    return held_there;
}

/* A file whose inode is elsewhere has two leases. */
static void test_elsewhere(void **state)
{
    unsigned at_home = 0, at_name = 0;
    struct mfs_attr attr;
    char name[16];

    (void)state;
    b.meta->limits.idle_lease = 10 * MFS_SEC;
    for (unsigned i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "m%u", i);
        assert_int_equal(meta_client_rename(&a, dir, name_of(i), dir, name, 0), 0);
        assert_int_equal(mfs_meta_lookup(b.meta, dir, name, &attr), 0);
    }
    b.meta->limits.idle_lease = 0;
    for (unsigned i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "m%u", i);
        chmod_by_a(ino[i], 0611);
        mfs_clock_sleep(MFS_MSEC);
        assert_int_equal(mfs_meta_lookup(b.meta, dir, i % 8 ? "none" : name, &attr),
                         i % 8 ? -ENOENT : 0);
    }
    mfs_clock_sleep(100 * MFS_MSEC);
    for (unsigned i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "m%u", i);
        at_home += is_held_by_b(ino[i], mfs_placement_home(ino[i]));
        at_name +=
            is_held_by_b(ino[i], mfs_placement_entry(dir, name, strlen(name), META_REDIS_PARTS));
    }
    assert_in_range(at_home, 0, FILES / 2);
    assert_in_range(at_name, 0, FILES / 2);
}

/* Who knows all names of a shard gives that right back when others add some. */
static void test_keeper(void **state)
{
    uint64_t sub, file;
    struct mfs_attr attr;
    int64_t before;

    (void)state;
    assert_int_equal(meta_client_mkdir(&b, ROOT, "sub", &sub), 0);
    for (unsigned i = 0; i < 32; i++) {
        struct mfs_attr made = {0};
        struct mfs_new new = {.mode = S_IFREG | 0644};

        bool created;

        assert_int_equal(mfs_meta_create_open(b.meta, sub, name_of(i), &new, true, &made, &created),
                         0);
        mfs_meta_close(b.meta, made.ino, false);
    }
    before = meta_client_keys(&a, "K*");
    assert_in_range(before, 1, META_REDIS_PARTS + 1);
    for (unsigned i = 32; i < FILES; i++) {
        assert_int_equal(mfs_meta_lookup(b.meta, sub, name_of(i), &attr), -ENOENT);
        assert_int_equal(meta_client_file(&a, sub, name_of(i), &file), 0);
        assert_int_equal(mfs_meta_lookup(b.meta, sub, name_of(i), &attr), 0);
    }
    for (unsigned i = 0; i < 1000 && meta_client_keys(&a, "K*") >= before; i++)
        mfs_clock_sleep(MFS_MSEC);
    assert_true(meta_client_keys(&a, "K*") < before);
}

/* --- all at once ------------------------------------------------------------------------------ */

static atomic_uint modes[FILES]; /* of which a's change has returned */

static void *look_at_all(void *arg)
{
    uintptr_t stale = 0;

    for (unsigned i = (unsigned)(uintptr_t)arg; !atomic_load(&over); i = (i + 7) % FILES) {
        unsigned least = atomic_load(&modes[i]);
        struct mfs_attr attr;

        if (mfs_meta_lookup(b.meta, dir, name_of(i), &attr) || (attr.mode & 0777) < least)
            stale++;
    }
    return (void *)stale;
}

/* No look that begins when a change has returned sees less. */
static void test_race(void **state)
{
    int64_t end = mfs_clock_mono() + MFS_SEC;
    pthread_t threads[3];

    (void)state;
    atomic_store(&over, false);
    for (unsigned i = 0; i < FILES; i++)
        atomic_store(&modes[i], 0);
    for (uintptr_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, look_at_all, (void *)i), 0);
    for (unsigned mode = 0400; mode < 0777 && mfs_clock_mono() < end; mode++) {
        for (unsigned i = 0; i < FILES; i++) {
            chmod_by_a(ino[i], mode);
            atomic_store(&modes[i], mode);
        }
    }
    atomic_store(&over, true);
    for (unsigned i = 0; i < 3; i++) {
        void *stale;

        pthread_join(threads[i], &stale);
        assert_int_equal((uintptr_t)stale, 0);
    }
}

static int stop(void **state)
{
    atomic_store(&held, false);
    if (b.store)
        mfs_store_set_fault(b.store, NULL, NULL);
    return teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_more_and_more, setup_files, stop),
        cmocka_unit_test_setup_teardown(test_used, setup_files, stop),
        cmocka_unit_test_setup_teardown(test_some_used, setup_files, stop),
        cmocka_unit_test_setup_teardown(test_open, setup_files, stop),
        cmocka_unit_test_setup_teardown(test_asked_meanwhile, setup_files, stop),
        cmocka_unit_test_setup_teardown(test_nothing_waits, setup_files, stop),
        cmocka_unit_test_setup_teardown(test_stopped_meanwhile, setup_files, stop),
        cmocka_unit_test_setup_teardown(test_lost, setup_files, stop),
        cmocka_unit_test_setup_teardown(test_full, setup_files, stop),
        cmocka_unit_test(test_refused),
        cmocka_unit_test_setup_teardown(test_one_file, setup_files, stop),
        cmocka_unit_test_setup_teardown(test_killed, setup_files, stop),
        cmocka_unit_test_setup_teardown(test_elsewhere, setup_files, stop),
        cmocka_unit_test_setup_teardown(test_keeper, setup_files, stop),
        cmocka_unit_test_setup_teardown(test_race, setup_files, stop),
    };

    return cmocka_run_group_tests(tests, meta_redis_start, meta_redis_stop);
}
