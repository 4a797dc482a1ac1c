/* Clients that have a file open are told of others' changes before the changer goes on.
 * ctest: waits */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/clock.h"
#include "cluster/placement.h"
#include "meta/internal.h"
#include "meta_fixture.h"

#define NPARTS 4
#define ROOT   MFS_ROOT_INO

#define HELD_MAX 32

/* What the second client is told, and when it says that it is done. */
struct told {
    pthread_mutex_t lock;
    unsigned notices, everything;
    uint64_t ino, version;
    bool hold; /* keep `done` for later */
    void (*done)(void *arg);
    void *arg[HELD_MAX];
    unsigned held;
};

static struct redis_fixture *redis;
static struct meta_client a, b;
static struct told told;

static void changed(void *arg, uint64_t ino, uint64_t version, void (*done)(void *), void *done_arg)
{
    struct told *t = arg;

    pthread_mutex_lock(&t->lock);
    if (ino == 0)
        t->everything++;
    else
        t->notices++;
    t->ino = ino;
    t->version = version;
    if (t->hold && t->held < HELD_MAX) {
        t->done = done;
        t->arg[t->held++] = done_arg;
        done = NULL;
    }
    pthread_mutex_unlock(&t->lock);
    if (done)
        done(done_arg);
}

static struct told now_told(void)
{
    struct told copy;

    pthread_mutex_lock(&told.lock);
    copy = told;
    pthread_mutex_unlock(&told.lock);
    return copy;
}

static int start_all(void **state)
{
    (void)state;
    return redis_fixture_start(&redis, &(struct redis_fixture_opts){.nparts = NPARTS, .tcp = true});
}

static int stop_all(void **state)
{
    (void)state;
    redis_fixture_stop(redis);
    return 0;
}

static int setup(void **state)
{
    struct mfs_store_opts store = {.node = REDIS_FIXTURE_NODE, .io_timeout = 10 * MFS_SEC};
    struct mfs_meta_opts opts = {.changed = changed, .arg = &told, .session_ttl = 2 * MFS_SEC};

    (void)state;
    memset(&told, 0, sizeof told);
    pthread_mutex_init(&told.lock, NULL);
    if (redis_fixture_reset(redis) || meta_client_start(&a, redis, 0) ||
        mfs_store_create(&b.store, redis_fixture_table(redis), &store))
        return -1;
    return mfs_meta_create(&b.meta, b.store, &opts);
}

/* b anew, which does not wait long for partitions, and lives long when it does. */
static void start_impatient(void)
{
    struct mfs_store_opts store = {.node = REDIS_FIXTURE_NODE, .io_timeout = 2 * MFS_SEC};
    struct mfs_meta_opts opts = {.changed = changed, .arg = &told, .session_ttl = 60 * MFS_SEC};

    meta_client_stop(&b);
    assert_int_equal(mfs_store_create(&b.store, redis_fixture_table(redis), &store), 0);
    assert_int_equal(mfs_meta_create(&b.meta, b.store, &opts), 0);
}

static int teardown(void **state)
{
    (void)state;
    meta_client_stop(&a);
    meta_client_stop(&b);
    pthread_mutex_destroy(&told.lock);
    return 0;
}

static uint64_t shared_file(void)
{
    struct mfs_attr attr;
    uint64_t ino;

    assert_int_equal(meta_client_file(&a, ROOT, "f", &ino), 0);
    assert_int_equal(mfs_meta_open(a.meta, ino, NULL, &attr, NULL), 0);
    assert_int_equal(mfs_meta_open(b.meta, ino, NULL, &attr, NULL), 0);
    return ino;
}

static uint64_t write_by_a(uint64_t ino, const char *text)
{
    struct mfs_part part = {0, (uint32_t)strlen(text), text};
    struct mfs_commit c = {.end = part.len, .mtime = mfs_clock_real(), .parts = &part, .nparts = 1};
    struct mfs_attr attr;

    assert_int_equal(mfs_meta_commit(a.meta, ino, &c, NULL, &attr), 0);
    return attr.version;
}

/* Each kind of change is told, with its version, before settle returns. */
static void test_told(void **state)
{
    uint64_t ino = shared_file(), version = write_by_a(ino, "one"), off, number;
    struct mfs_attr attr;

    (void)state;
    mfs_meta_settle(a.meta, ino);
    assert_true(now_told().notices >= 1); /* more when the answer took long */
    assert_int_equal(now_told().ino, ino);
    assert_int_equal(now_told().version, version);
    assert_int_equal(mfs_meta_truncate(a.meta, ino, 1, UINT64_MAX >> 1, 0, NULL, &attr), 0);
    mfs_meta_settle(a.meta, ino);
    assert_int_equal(now_told().version, attr.version);
    assert_int_equal(mfs_meta_append(a.meta, ino, "x", 1, 0, &off, &number, NULL, &attr), 0);
    mfs_meta_settle(a.meta, ino);
    assert_int_equal(now_told().version, attr.version);
    assert_int_equal(
        mfs_meta_open(a.meta, ino, &(struct mfs_cut){.trimmed = UINT64_MAX >> 1}, &attr, NULL), 0);
    mfs_meta_settle(a.meta, ino);
    assert_int_equal(now_told().version, attr.version);
}

/* Nobody is told, and nobody waited for, when nobody else has it open. */
static void test_alone(void **state)
{
    uint64_t ino = shared_file();

    (void)state;
    assert_int_equal(mfs_meta_close(b.meta, ino, true), 0);
    write_by_a(ino, "alone");
    mfs_meta_settle(a.meta, ino);
    assert_int_equal(now_told().notices, 0);
}

static void *let_go(void *arg)
{
    struct told *t = arg;

    mfs_clock_sleep(300 * MFS_MSEC);
    pthread_mutex_lock(&t->lock);
    t->hold = false;
    pthread_mutex_unlock(&t->lock);
    for (unsigned i = 0; i < t->held; i++)
        t->done(t->arg[i]);
    return NULL;
}

/* Settle waits for the answer, however often it has to ask. */
static void test_waits(void **state)
{
    uint64_t ino = shared_file();
    int64_t start = mfs_clock_mono();
    pthread_t thread;

    (void)state;
    told.hold = true;
    write_by_a(ino, "held");
    while (!now_told().held)
        mfs_clock_sleep(MFS_MSEC);
    assert_int_equal(pthread_create(&thread, NULL, let_go, &told), 0);
    mfs_meta_settle(a.meta, ino);
    assert_true(mfs_clock_mono() - start > 250 * MFS_MSEC);
    assert_true(now_told().notices >= 1);
    pthread_join(thread, NULL);
}

/* Who is dead is not waited for, and does not count as an opener any more. */
static void test_dead(void **state)
{
    uint64_t ino = shared_file();
    int64_t start, quickest = MFS_SEC;

    (void)state;
    meta_client_kill(&b);
    memset(&b, 0, sizeof b);
    start = mfs_clock_mono();
    write_by_a(ino, "dead");
    mfs_meta_settle(a.meta, ino);
    assert_true(mfs_clock_mono() - start < 3 * MFS_SEC);
    assert_int_equal(mfs_store_drain(a.store, 5 * MFS_SEC), 0);
    /* One that is not known to be dead would cost 200 ms each time; a busy machine does so
     * sometimes. */
    for (int i = 0; i < 50 && quickest >= 200 * MFS_MSEC; i++) {
        start = mfs_clock_mono();
        write_by_a(ino, "still");
        mfs_meta_settle(a.meta, ino);
        start = mfs_clock_mono() - start;
        quickest = start < quickest ? start : quickest;
    }
    assert_true(quickest < 200 * MFS_MSEC);
    assert_int_equal(mfs_meta_close(a.meta, ino, true), 0);
    assert_int_equal(meta_client_keys(&a, "O*"), 0);
    assert_int_equal(mfs_meta_unlink(a.meta, ROOT, "f"), 0);
    assert_int_equal(meta_client_keys(&a, "I*"), 1); /* the root */
}

static void order_all(const char *command)
{
    for (uint32_t p = 0; p < NPARTS; p++)
        assert_int_equal(redis_fixture_admin(redis, p, command), 0);
}

/* A client whose connection was cut learns that it may have missed something, and listens again. */
static void test_cut(void **state)
{
    uint64_t ino = shared_file();
    unsigned before = now_told().everything;
    int64_t deadline = mfs_clock_mono() + 10 * MFS_SEC;

    (void)state;
    order_all("CLIENT KILL TYPE pubsub");
    write_by_a(ino, "cut");
    mfs_meta_settle(a.meta, ino);
    assert_true(now_told().notices >= 1);
    while (now_told().everything == before && mfs_clock_mono() < deadline)
        mfs_clock_sleep(10 * MFS_MSEC);
    assert_true(now_told().everything > before);
}

/* b's session's thread has found, since mono time `since`, that the session lives. */
static void wait_refreshed(int64_t since)
{
    int64_t until = mfs_clock_mono() + 30 * MFS_SEC;

    while (b.meta->refreshed_at < since) {
        assert_true(mfs_clock_mono() < until);
        mfs_ticker_hurry(&b.meta->session_ticker);
        mfs_clock_sleep(10 * MFS_MSEC);
    }
}

/* A client that can't listen for its new session relies on nothing, and listens when it can. */
static void test_deaf(void **state)
{
    int64_t until = mfs_clock_mono() + 60 * MFS_SEC, start;
    uint64_t ino, sid;
    bool relied;

    (void)state;
    start_impatient();
    ino = shared_file();
    sid = mfs_meta_session(b.meta);
    order_all("ACL SETUSER " MFS_REDIS_USER " -subscribe");
    meta_client_alive(&b, false);
    wait_refreshed(mfs_clock_mono());
    assert_int_not_equal(mfs_meta_session(b.meta), sid);
    wait_refreshed(mfs_clock_mono()); /* it has tried to listen in between */
    relied = mfs_meta_in_contact(b.meta);
    order_all("ACL SETUSER " MFS_REDIS_USER " +subscribe");
    while (!mfs_meta_in_contact(b.meta) && mfs_clock_mono() < until)
        wait_refreshed(mfs_clock_mono());
    start = mfs_clock_mono();
    write_by_a(ino, "heard");
    mfs_meta_settle(a.meta, ino);
    assert_true(mfs_clock_mono() - start < 10 * MFS_SEC);
    assert_true(now_told().notices >= 1);
    assert_false(relied);
}

struct teller {
    pthread_t thread;
    uint64_t ino, version;
    unsigned count;
    int64_t longest; /* ns */
    atomic_bool stop;
};

static void *tell_on(void *arg)
{
    struct teller *t = arg;

    while (!atomic_load(&t->stop)) {
        int64_t start = mfs_clock_mono(), took;

        t->version = write_by_a(t->ino, "moving");
        mfs_meta_settle(a.meta, t->ino);
        took = mfs_clock_mono() - start;
        t->longest = took > t->longest ? took : t->longest;
        t->count++;
    }
    return NULL;
}

/* Whatever moves meanwhile, everything is told, and soon. */
static void test_moved(void **state)
{
    struct teller t = {.ino = shared_file()};

    (void)state;
    assert_int_equal(pthread_create(&t.thread, NULL, tell_on, &t), 0);
    for (uint32_t p = 0; p < NPARTS; p++) {
        assert_int_equal(redis_fixture_migrate(redis, p), 0);
        assert_int_equal(mfs_store_set_table(b.store, redis_fixture_table(redis)), 0);
        mfs_clock_sleep(10 * MFS_MSEC);
        assert_int_equal(mfs_store_set_table(a.store, redis_fixture_table(redis)), 0);
    }
    mfs_clock_sleep(50 * MFS_MSEC);
    atomic_store(&t.stop, true);
    pthread_join(t.thread, NULL);
    assert_true(now_told().notices >= t.count);
    assert_int_equal(now_told().version, t.version);
    assert_true(now_told().everything >= 1);
    assert_true(t.longest < 2 * MFS_SEC);
    print_message("%u notices, the slowest took %lld ms\n", t.count,
                  (long long)(t.longest / MFS_MSEC));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_told, setup, teardown),
        cmocka_unit_test_setup_teardown(test_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dead, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(test_deaf, setup, teardown),
        cmocka_unit_test_setup_teardown(test_moved, setup, teardown),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, start_all, stop_all);
}
