/* Two clients of one store, without a mount: locks that both ask for.
 * ctest: threaded timeout=120 waits */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "store/args.h"
#include "vfs_test.h"

struct answer {
    atomic_int rc; /* 1: none yet */
};

static void answered(void *arg, int rc)
{
    struct answer *w = arg;

    atomic_store(&w->rc, rc);
}

static int await(struct answer *w, int64_t ns)
{
    int64_t end = mfs_clock_mono() + ns;

    while (atomic_load(&w->rc) == 1 && mfs_clock_mono() < end)
        mfs_clock_sleep(MFS_MSEC);
    return atomic_load(&w->rc);
}

static void start_waiting(struct mfs_file *f, const struct mfs_lock *lock, int64_t ns,
                          struct answer *w, struct mfs_lock_waiter **waiter)
{
    atomic_store(&w->rc, 1);
    *waiter = mfs_lock_waiter_create(f, lock, false, ns, answered, w);
    assert_non_null(*waiter);
    assert_int_equal(mfs_lock_waiter_start(*waiter), 0);
}

static void lock_waits(void **state)
{
    struct mfs_lock write = {.type = F_WRLCK, .start = 0, .end = 99, .owner = 1, .pid = 7}, off;
    struct mfs_lock_waiter *waiter;
    struct answer w;
    uint64_t ino;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino), *g = open_file(&b, ino, O_RDWR);

    (void)state;
    off = write;
    off.type = F_UNLCK;
    assert_int_equal(mfs_vfs_setlk(f, &write, false, answered, &w), 0);
    assert_int_equal(mfs_vfs_setlk(g, &write, false, answered, &w), -EAGAIN);
    start_waiting(g, &write, 20 * MFS_MSEC, &w, &waiter);
    assert_int_equal(await(&w, 5 * MFS_SEC), -EAGAIN);
    start_waiting(g, &write, -1, &w, &waiter);
    mfs_lock_waiter_cancel(waiter);
    assert_int_equal(await(&w, 5 * MFS_SEC), -EINTR);
    start_waiting(g, &write, -1, &w, &waiter);
    assert_int_equal(await(&w, 30 * MFS_MSEC), 1);
    put(f, "under the lock", 0);
    assert_int_equal(mfs_vfs_setlk(f, &off, false, answered, &w), 0);
    assert_int_equal(await(&w, 5 * MFS_SEC), 0);
    expect(g, "under the lock", 0); /* never closed, never synced */
    write.type = F_WRLCK;
    assert_int_equal(mfs_vfs_getlk(f, &write), 0);
    assert_int_equal(write.type, F_WRLCK);
    close_file(g); /* the owner's locks go with it */
    write = (struct mfs_lock){.type = F_WRLCK, .start = 0, .end = 99, .owner = 1};
    assert_int_equal(mfs_vfs_getlk(f, &write), 0);
    assert_int_equal(write.type, F_UNLCK);
    close_file(f);
}

/* A lock of an open file description (its owner never closes as such) ends with the handle. */
static void locks_of_a_handle(void **state)
{
    struct mfs_lock lock = {.type = F_WRLCK, .start = 0, .end = INT64_MAX, .owner = 4711};
    uint64_t ino;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino), *g = open_file(&b, ino, O_RDWR);
    struct answer w;

    (void)state;
    assert_int_equal(mfs_vfs_setlk(f, &lock, false, answered, &w), 0);
    assert_int_equal(mfs_vfs_setlk(g, &lock, false, answered, &w), -EAGAIN);
    assert_int_equal(mfs_vfs_flush(f, 1), 0);
    assert_int_equal(mfs_vfs_setlk(g, &lock, false, answered, &w), -EBUSY);
    mfs_vfs_release(f);
    assert_int_equal(mfs_vfs_setlk(g, &lock, false, answered, &w), 0);
    close_file(g);
}

static uint64_t round_trips(struct client *c)
{
    struct mfs_store_stats s;

    mfs_store_stats(c->store, &s);
    return s.round_trips;
}

/* Taken, though pages may have to be dropped for it. */
static void take_lock(struct mfs_file *f, const struct mfs_lock *lock, bool flock)
{
    struct answer w = {1};
    int rc = mfs_vfs_setlk(f, lock, flock, answered, &w);

    assert_int_equal(rc == -EINPROGRESS ? await(&w, 5 * MFS_SEC) : rc, 0);
}

/* A round trip or two may be the client's own, which keeps its session alive beside this. */
static void assert_trips(struct client *c, uint64_t before, uint64_t wanted)
{
    uint64_t made = round_trips(c) - before;

    assert_in_range(made, wanted, wanted + wanted / 10);
}

/* A refusal takes one round trip, and one more to ask whether another client that is in the way
 * lives; a close takes none for locks when there are none. */
static void refused_at_once(void **state)
{
    struct mfs_lock lock = {.type = F_WRLCK, .start = 0, .end = INT64_MAX, .owner = 11},
                    other = lock, off = lock;
    uint64_t ino, before;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino), *same = open_file(&a, ino, O_RDONLY),
                    *g = open_file(&b, ino, O_RDONLY);
    struct answer w;

    (void)state;
    other.owner = 12;
    off.type = F_UNLCK;
    for (unsigned flock = 0; flock < 2; flock++) {
        take_lock(f, &lock, flock);
        before = round_trips(&a);
        for (unsigned i = 0; i < 100; i++)
            assert_int_equal(mfs_vfs_setlk(same, &other, flock, answered, &w), -EAGAIN);
        assert_trips(&a, before, 100);
        before = round_trips(&b);
        for (unsigned i = 0; i < 100; i++)
            assert_int_equal(mfs_vfs_setlk(g, &other, flock, answered, &w), -EAGAIN);
        assert_trips(&b, before, 200);
        assert_int_equal(mfs_vfs_setlk(f, &off, flock, answered, &w), 0);
        if (flock) {
            before = round_trips(&b);
            assert_int_equal(mfs_vfs_flush(g, 12), 0);
            take_lock(g, &lock, true);
            assert_int_equal(mfs_vfs_setlk(g, &off, true, answered, &w), 0);
            assert_int_equal(mfs_vfs_flush(g, 12), 0);
            assert_int_equal(round_trips(&b) - before, 3); /* the fcntl owner's end, once */
        }
    }
    close_file(g);
    close_file(same);
    close_file(f);
}

/* An flock is waited for when a descriptor of its file was closed: it goes, or the file lives on.
 */
static void closing_flock(void **state)
{
    struct mfs_lock lock = {.type = F_WRLCK, .start = 0, .end = INT64_MAX, .owner = 21};
    uint64_t ino;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino), *g = open_file(&b, ino, O_RDWR);
    struct mfs_lock_waiter *waiter;
    struct answer w = {1};

    (void)state;
    assert_int_equal(mfs_vfs_setlk(f, &lock, true, answered, &w), 0);
    assert_int_equal(mfs_vfs_flush(f, 1), 0);
    assert_int_equal(mfs_vfs_setlk(g, &lock, true, answered, &w), -EBUSY);
    waiter = mfs_lock_waiter_create(g, &lock, true, 20 * MFS_SEC, answered, &w);
    assert_non_null(waiter);
    assert_int_equal(mfs_lock_waiter_start(waiter), 0);
    assert_int_equal(await(&w, 15 * MFS_SEC), -EAGAIN); /* f lives, that was a duplicate */
    assert_int_equal(mfs_vfs_setlk(g, &lock, true, answered, &w), -EAGAIN);
    assert_int_equal(mfs_vfs_flush(f, 1), 0);
    atomic_store(&w.rc, 1);
    waiter = mfs_lock_waiter_create(g, &lock, true, 20 * MFS_SEC, answered, &w);
    assert_non_null(waiter);
    assert_int_equal(mfs_lock_waiter_start(waiter), 0);
    mfs_vfs_release(f);
    assert_int_equal(await(&w, 5 * MFS_SEC), 0);
    mfs_vfs_release(g);
}

/* The kernel's number of an open file goes to the next one while the release of the first is on its
 * way: that gives back nothing of the new one's. */
static void owner_used_again(void **state)
{
    struct mfs_lock lock = {.type = F_WRLCK, .start = 0, .end = INT64_MAX, .owner = 31};
    uint64_t ino;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino), *again = open_file(&a, ino, O_RDWR),
                    *g = open_file(&b, ino, O_RDWR);
    struct answer w;

    (void)state;
    take_lock(f, &lock, false);
    assert_int_equal(mfs_vfs_flush(f, 1), 0);
    take_lock(again, &lock, false);
    mfs_vfs_release(f);
    assert_int_equal(mfs_vfs_setlk(g, &lock, false, answered, &w), -EAGAIN);
    take_lock(again, &lock, true);
    f = open_file(&a, ino, O_RDWR);
    assert_int_equal(mfs_vfs_setlk(f, &lock, true, answered, &w), -EAGAIN);
    mfs_vfs_release(f);
    assert_int_equal(mfs_vfs_setlk(g, &lock, true, answered, &w), -EAGAIN);
    mfs_vfs_release(again);
    take_lock(g, &lock, false);
    take_lock(g, &lock, true);
    mfs_vfs_release(g);
}

/* A partition that takes its time to set locks. */
struct slow {
    uint32_t part;
    atomic_uint asked, at_once; /* now, and at most */
    atomic_bool over;
};

static int be_slow(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    int64_t end = mfs_clock_mono() + 30 * MFS_SEC;
    struct slow *s = arg;
    unsigned now;

    if (part != s->part || argc == 0 || argv[0].len != 9 || memcmp(argv[0].p, "mfs_setlk", 9) != 0)
        return 0;
    now = atomic_fetch_add(&s->asked, 1) + 1;
    if (now > atomic_load(&s->at_once))
        atomic_store(&s->at_once, now);
    while (!atomic_load(&s->over) && mfs_clock_mono() < end)
        mfs_clock_sleep(MFS_MSEC);
    atomic_fetch_sub(&s->asked, 1);
    return 0;
}

static void await_asked(struct slow *s)
{
    int64_t end = mfs_clock_mono() + 10 * MFS_SEC;

    while (atomic_load(&s->asked) == 0 && mfs_clock_mono() < end)
        mfs_clock_sleep(MFS_MSEC);
    assert_int_equal(atomic_load(&s->asked), 1);
}

/* A new file that has its inode elsewhere than in that partition. */
static struct mfs_file *create_elsewhere(uint32_t part, uint64_t *ino)
{
    char name[2] = "a";

    for (;; name[0]++) {
        struct mfs_file *f = create(&a, name, O_RDWR, ino);

        if (mfs_placement_home(*ino) != part)
            return f;
        close_file(f);
    }
}

/* Who waits for a lock elsewhere gets it meanwhile; who waits for it behind another one can be
 * interrupted, or hears in time that he has waited long enough. */
static void one_partition_is_slow(void **state)
{
    struct mfs_lock lock = {.type = F_WRLCK, .start = 0, .end = INT64_MAX, .owner = 41}, off = lock,
                    other = lock;
    struct mfs_lock_waiter *waiter, *second;
    struct mfs_file *f[2], *g[2];
    struct answer w[4];
    static struct slow s; /* also after a failure */
    uint64_t ino[2];

    (void)state;
    off.type = F_UNLCK;
    other.owner = 42;
    f[0] = create(&a, "file", O_RDWR, &ino[0]);
    s.part = mfs_placement_home(ino[0]);
    f[1] = create_elsewhere(s.part, &ino[1]);
    for (unsigned i = 0; i < 2; i++) {
        g[i] = open_file(&b, ino[i], O_RDWR);
        take_lock(f[i], &lock, false);
    }
    mfs_store_set_fault(b.store, be_slow, &s);
    start_waiting(g[0], &lock, -1, &w[0], &waiter);
    await_asked(&s);
    start_waiting(g[0], &other, -1, &w[1], &second);
    start_waiting(g[0], &other, 20 * MFS_MSEC, &w[3], &waiter);
    start_waiting(g[1], &lock, -1, &w[2], &waiter);
    assert_int_equal(await(&w[2], 50 * MFS_MSEC), 1);
    assert_int_equal(mfs_vfs_setlk(f[1], &off, false, answered, &w[2]), 0);
    assert_int_equal(await(&w[2], 10 * MFS_SEC), 0);
    assert_int_equal(await(&w[3], 10 * MFS_SEC), -EAGAIN);
    mfs_lock_waiter_cancel(second);
    assert_int_equal(await(&w[1], 10 * MFS_SEC), -EINTR);
    assert_int_equal(atomic_load(&w[0].rc), 1);
    assert_int_equal(atomic_load(&s.at_once), 1);
    atomic_store(&s.over, true);
    assert_int_equal(mfs_vfs_setlk(f[0], &off, false, answered, &w[0]), 0);
    assert_int_equal(await(&w[0], 10 * MFS_SEC), 0);
    mfs_store_set_fault(b.store, NULL, NULL);
    for (unsigned i = 0; i < 2; i++) {
        close_file(g[i]);
        close_file(f[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lock_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(locks_of_a_handle, setup, teardown),
        cmocka_unit_test_setup_teardown(refused_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(closing_flock, setup, teardown),
        cmocka_unit_test_setup_teardown(owner_used_again, setup, teardown),
        cmocka_unit_test_setup_teardown(one_partition_is_slow, setup, teardown),
    };

    return cmocka_run_group_tests(tests, setup_all, vfs_redis_stop);
}
