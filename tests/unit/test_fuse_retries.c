/* A thread that was told ESTALE finds a file that stays, though another client removes it at once.
 * ctest: threaded waits */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cluster/placement.h"
#include "fuse/mount/retries.h"
#include "vfs_fixture.h"

#define THREAD 4711
#define LONG   (2 * MFS_SEC) /* than which a moment is shorter */
#define MANY   40            /* threads, more than may try again at one time */

struct client {
    struct mfs_store *store;
    struct mfs_vfs *vfs;
};

static struct client a, b;
static struct mfs_retries *retries;
static const struct mfs_cred root = {.umask = 022, .in_group = true};

static void client_start(struct client *c)
{
    vfs_client_start(&c->store, &c->vfs);
}

static void client_stop(struct client *c)
{
    vfs_client_stop(c->store, c->vfs);
}

static int setup_all(void **state)
{
    (void)state;
    return vfs_redis_start(0);
}

static int setup(void **state)
{
    (void)state;
    assert_int_equal(redis_fixture_reset(vfs_redis), 0);
    client_start(&a);
    client_start(&b);
    retries = mfs_retries_create(a.vfs);
    return retries != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    mfs_retries_destroy(retries);
    client_stop(&a);
    client_stop(&b);
    return 0;
}

/* Not by an open, whose close is posted and would hold the file, too. */
static void make(const char *name)
{
    struct mfs_attr attr;

    assert_int_equal(mfs_vfs_mknod(b.vfs, MFS_ROOT_INO, name, S_IFREG | 0644, 0, &root, &attr), 0);
}

/* A thread's look-up, then the other client removes what it found. */
static uint64_t find_and_remove(pid_t thread, const char *name)
{
    struct mfs_attr attr;

    assert_int_equal(mfs_retries_lookup(retries, thread, MFS_ROOT_INO, name, &attr), 0);
    assert_int_equal(mfs_vfs_unlink(b.vfs, MFS_ROOT_INO, name), 0);
    return attr.ino;
}

static int open_and_close(uint64_t ino)
{
    struct mfs_file *f;
    bool keep;
    int rc = mfs_vfs_open(a.vfs, ino, O_RDONLY, &f, &keep);

    if (rc == 0)
        mfs_vfs_release(f);
    return rc;
}

static bool is_gone(uint64_t ino)
{
    struct mfs_attr attr;

    return mfs_vfs_getattr(b.vfs, ino, &attr) == -ESTALE;
}

/* The file goes when nobody holds it any more: a last close is posted, so a moment later. */
static void must_go(uint64_t ino, bool sweep)
{
    int64_t until = mfs_clock_mono() + 10 * MFS_SEC;

    while (!is_gone(ino)) {
        assert_true(mfs_clock_mono() < until);
        if (sweep)
            mfs_retries_sweep(retries);
        mfs_clock_sleep(10 * MFS_MSEC);
    }
}

static void nothing_is_held(void **state)
{
    struct mfs_attr attr;

    (void)state;
    make("file");
    assert_int_equal(open_and_close(find_and_remove(THREAD, "file")), -ESTALE);
    make("file");
    mfs_retries_stale(retries, 0); /* nobody knows who that is */
    assert_int_equal(open_and_close(find_and_remove(0, "file")), -ESTALE);
    make("file");
    mfs_retries_stale(retries, THREAD);
    assert_int_equal(open_and_close(find_and_remove(THREAD + 1, "file")), -ESTALE);
    assert_int_equal(mfs_retries_lookup(retries, THREAD, MFS_ROOT_INO, "file", &attr), -ENOENT);
}

static void held_for_a_moment(void **state)
{
    uint64_t ino;

    (void)state;
    make("file");
    mfs_retries_stale(retries, THREAD);
    ino = find_and_remove(THREAD, "file");
    mfs_retries_sweep(retries); /* too early for it to let go */
    assert_int_equal(open_and_close(ino), 0);
    assert_int_equal(open_and_close(ino), 0);
    must_go(ino, true);
    make("file");
    assert_int_equal(open_and_close(find_and_remove(THREAD, "file")), -ESTALE); /* it is over */
}

/* A request that the partitions, stopped for long, answer late. */
struct late {
    pthread_t thread;
    uint64_t ino; /* 0: a look-up of "file", which fills it; else an open */
    int rc;
};

static void *ask(void *arg)
{
    struct late *late = arg;
    struct mfs_attr attr = {0};
    struct mfs_file *f;
    bool keep;

    if (late->ino == 0) {
        late->rc = mfs_retries_lookup(retries, THREAD, MFS_ROOT_INO, "file", &attr);
        late->ino = attr.ino;
        return NULL;
    }
    late->rc = mfs_retries_open(retries, THREAD, late->ino, O_RDONLY, &f, &keep);
    if (late->rc == 0)
        mfs_vfs_release(f);
    return NULL;
}

static void signal_partitions(int sig)
{
    for (uint32_t part = 0; part < 3; part++)
        assert_int_equal(kill(redis_fixture_pid(vfs_redis, part), sig), 0);
}

static void ask_late(struct late *late)
{
    int64_t until = mfs_clock_mono() + LONG;

    signal_partitions(SIGSTOP);
    assert_int_equal(pthread_create(&late->thread, NULL, ask, late), 0);
    while (mfs_clock_mono() < until) {
        mfs_retries_sweep(retries);
        mfs_clock_sleep(20 * MFS_MSEC);
    }
    signal_partitions(SIGCONT);
    pthread_join(late->thread, NULL);
    assert_int_equal(late->rc, 0);
}

static void held_however_late_the_answer(void **state)
{
    struct late late = {0};

    (void)state;
    make("file");
    mfs_retries_stale(retries, THREAD);
    ask_late(&late);
    assert_int_equal(mfs_vfs_unlink(b.vfs, MFS_ROOT_INO, "file"), 0);
    assert_int_equal(open_and_close(late.ino), 0);
    ask_late(&late);
    must_go(late.ino, true);
}

/* What is found next takes the place of what was held. */
static void one_at_a_time(void **state)
{
    uint64_t first, second;

    (void)state;
    make("first");
    make("second");
    mfs_retries_stale(retries, THREAD);
    first = find_and_remove(THREAD, "first");
    second = find_and_remove(THREAD, "second");
    assert_int_equal(open_and_close(second), 0);
    must_go(first, false);
    mfs_retries_destroy(retries);
    retries = NULL;
    must_go(second, false);
}

static void too_many_do_without(void **state)
{
    unsigned held = 0;

    (void)state;
    for (pid_t i = 0; i < MANY; i++)
        mfs_retries_stale(retries, THREAD + i);
    for (pid_t i = 0; i < MANY; i++) {
        int rc;

        make("file");
        rc = open_and_close(find_and_remove(THREAD + i, "file"));
        assert_true(rc == 0 || rc == -ESTALE);
        held += rc == 0;
    }
    assert_in_range(held, 1, MANY - 1);
}

static void only_files(void **state)
{
    struct mfs_attr attr;

    (void)state;
    assert_int_equal(
        mfs_vfs_mknod(b.vfs, MFS_ROOT_INO, "directory", S_IFDIR | 0755, 0, &root, &attr), 0);
    mfs_retries_stale(retries, THREAD);
    assert_int_equal(mfs_retries_lookup(retries, THREAD, MFS_ROOT_INO, "directory", &attr), 0);
    assert_int_equal(mfs_vfs_rmdir(b.vfs, MFS_ROOT_INO, "directory"), 0);
    assert_true(is_gone(attr.ino));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_held, setup, teardown),
        cmocka_unit_test_setup_teardown(held_for_a_moment, setup, teardown),
        cmocka_unit_test_setup_teardown(held_however_late_the_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(one_at_a_time, setup, teardown),
        cmocka_unit_test_setup_teardown(too_many_do_without, setup, teardown),
        cmocka_unit_test_setup_teardown(only_files, setup, teardown),
    };

    return cmocka_run_group_tests(tests, setup_all, vfs_redis_stop);
}
