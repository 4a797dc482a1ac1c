/* Written data that can't be stored, with several who have the file open: each is told once, by its
 * own close or fsync, and what a call that said 0 covers is there, on every client. Real memory
 * that is full. ctest: threaded timeout=180 waits */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cluster/placement.h"
#include "data/stripes/stripes.h"
#include "vfs/vfs.h"
#include "vfs_fixture.h"

#define STRIPE (64U << 10)
#define NPARTS 3U

static struct vfs_client a, b;
static struct mfs_file *file; /* of a */
static uint64_t ino;

static int setup_all(void **state)
{
    (void)state;
    return vfs_redis_start(STRIPE);
}

static void set_full(uint32_t part, bool full)
{
    const char *command = full ? "CONFIG SET maxmemory 1" : "CONFIG SET maxmemory 0";

    assert_int_equal(redis_fixture_admin(vfs_redis, part, command), 0);
}

static void forget_full(void)
{
    mfs_clock_sleep(1100 * MFS_MSEC); /* the second for which writes to a full partition fail */
}

static struct mfs_file *open_file(struct vfs_client *c, int flags)
{
    struct mfs_file *f;
    bool keep;

    assert_int_equal(mfs_vfs_open(c->vfs, ino, flags, &f, &keep), 0);
    return f;
}

static int setup(void **state)
{
    (void)state;
    vfs_pair_start(&a, &b, &file, &ino);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < NPARTS; i++)
        set_full(i, false);
    vfs_pair_stop(&a, &b, file);
    return 0;
}

/* --- shorthands ------------------------------------------------------------------------------ */

/* The n-th stripe from 1 on that is (not) where the inode is. */
static uint32_t stripe(bool at_home, unsigned n)
{
    uint32_t home = mfs_placement_home(ino), s = 0;

    while (n > 0)
        n -= (mfs_placement_stripe(ino, ++s, NPARTS) == home) == at_home;
    return s;
}

static int put(struct mfs_file *f, uint64_t off, size_t len, char with)
{
    char buf[STRIPE];
    ssize_t n;

    memset(buf, with, len);
    n = mfs_vfs_write(f, buf, len, off, 0, false);
    return n < 0 ? (int)n : 0;
}

static uint64_t size_by(struct vfs_client *c)
{
    struct mfs_attr attr;

    assert_int_equal(mfs_vfs_getattr(c->vfs, ino, &attr), 0);
    return attr.size;
}

/* The bytes are all the same, as both clients see them. */
static void check(uint64_t off, size_t len, char what)
{
    struct vfs_client *clients[] = {&a, &b};

    for (unsigned i = 0; i < 2; i++) {
        struct mfs_file *f = open_file(clients[i], O_RDONLY);

        vfs_expect_all(f, off, len, what, i ? "b" : "a");
        mfs_vfs_release(f);
    }
}

static void wait_stored(uint64_t off)
{
    int64_t until = mfs_clock_mono() + 10 * MFS_SEC;
    char byte = 0;

    while (!byte) {
        assert_true(mfs_clock_mono() < until);
        assert_int_equal(mfs_stripes_read(b.store, ino, off, 1, &byte), 0);
    }
}

/* --- who is told ----------------------------------------------------------------------------- */

/* The kernel tells of the end of an open file after close(2) has returned: what fails in that
 * flush, which nobody hears of, may be what the next writer is about to close. */
static void not_swallowed_by_a_release(void **state)
{
    uint32_t s = stripe(false, 1), part = mfs_placement_stripe(ino, s, NPARTS);
    struct mfs_file *before = open_file(&a, O_WRONLY);

    (void)state;
    assert_int_equal(mfs_vfs_flush(before, 1), 0);
    set_full(part, true);
    assert_int_equal(put(file, (uint64_t)s * STRIPE, 1000, 'x'), 0);
    mfs_vfs_release(before);
    assert_int_equal(mfs_vfs_flush(file, 2), -ENOSPC);
    assert_int_equal(mfs_vfs_flush(file, 2), 0);
    assert_int_equal(size_by(&a), 0);
    assert_int_equal(size_by(&b), 0);
}

/* A descriptor of somebody else, an append, a lock: none of them takes the error away. */
static void each_open_file_is_told(void **state)
{
    uint32_t s = stripe(false, 1), part = mfs_placement_stripe(ino, s, NPARTS);
    struct mfs_file *other = open_file(&a, O_RDWR), *appender = open_file(&a, O_RDWR | O_APPEND);
    struct mfs_file *late;

    (void)state;
    set_full(part, true);
    assert_int_equal(put(file, (uint64_t)s * STRIPE, 1000, 'x'), 0);
    assert_int_equal(mfs_vfs_fsync(other), -ENOSPC);
    assert_int_equal(mfs_vfs_write(appender, "end", 3, 0, O_APPEND, false), -ENOSPC);
    assert_int_equal(mfs_vfs_write(appender, "end", 3, 0, O_APPEND, false), 3);
    assert_int_equal(mfs_vfs_fsync(file), -ENOSPC);
    assert_int_equal(mfs_vfs_fsync(file), 0);
    assert_int_equal(mfs_vfs_fsync(other), 0);
    late = open_file(&a, O_RDWR);
    assert_int_equal(mfs_vfs_fsync(late), 0);
    mfs_vfs_release(late);
    mfs_vfs_release(other);
    mfs_vfs_release(appender);
}

/* What nobody was told of is told to who opens the file next. */
static void told_to_who_comes_later(void **state)
{
    uint32_t s = stripe(false, 1), part = mfs_placement_stripe(ino, s, NPARTS);
    struct mfs_file *gone = open_file(&a, O_WRONLY), *late;

    (void)state;
    set_full(part, true);
    assert_int_equal(put(gone, (uint64_t)s * STRIPE, 1000, 'x'), 0);
    mfs_vfs_release(gone);
    late = open_file(&a, O_RDWR);
    assert_int_equal(mfs_vfs_fsync(late), -ENOSPC);
    assert_int_equal(mfs_vfs_fsync(late), 0);
    mfs_vfs_release(late);
}

/* --- what is there --------------------------------------------------------------------------- */

/* The small part of stripe 0 that goes along with the commit finds no room; what was stored before
 * is not lost with it, neither for this fsync nor, with room again, for the next one. */
static void stored_before_a_commit_that_fails(void **state)
{
    uint32_t s = stripe(false, 1), more = stripe(false, 2);
    uint32_t home = mfs_placement_home(ino);

    (void)state;
    assert_int_equal(put(file, (uint64_t)s * STRIPE, STRIPE, 'a'), 0);
    wait_stored((uint64_t)s * STRIPE);
    set_full(home, true);
    assert_int_equal(put(file, 100, 1000, 'b'), 0);
    assert_int_equal(mfs_vfs_fsync(file), -ENOSPC);
    assert_int_equal(size_by(&a), (uint64_t)(s + 1) * STRIPE);
    assert_int_equal(size_by(&b), (uint64_t)(s + 1) * STRIPE);
    check((uint64_t)s * STRIPE, STRIPE, 'a');
    check(0, 2000, 0);
    set_full(home, false);
    forget_full();
    assert_int_equal(put(file, (uint64_t)more * STRIPE, 10, 'c'), 0);
    assert_int_equal(mfs_vfs_fsync(file), 0);
    check((uint64_t)s * STRIPE, STRIPE, 'a');
    check((uint64_t)more * STRIPE, 10, 'c');
    check(0, 2000, 0);
}

/* A stripe that found no room is lost, and reads as it was before. What lies behind it is there. */
static void between_what_is_stored(void **state)
{
    uint32_t full = stripe(false, 1), last;
    uint32_t part = mfs_placement_stripe(ino, full, NPARTS);

    (void)state;
    assert_int_equal(put(file, (uint64_t)full * STRIPE, 100, 'o'), 0);
    assert_int_equal(mfs_vfs_fsync(file), 0);
    for (last = full + 1; mfs_placement_stripe(ino, last, NPARTS) == part;)
        last++;
    set_full(part, true);
    assert_int_equal(put(file, (uint64_t)full * STRIPE, 1000, 'n'), 0);
    assert_int_equal(put(file, (uint64_t)last * STRIPE, 10, 'l'), 0);
    assert_int_equal(mfs_vfs_fsync(file), -ENOSPC);
    set_full(part, false);
    forget_full();
    assert_int_equal(mfs_vfs_fsync(file), 0);
    check((uint64_t)full * STRIPE, 100, 'o');
    check((uint64_t)full * STRIPE + 100, 900, 0);
    check((uint64_t)last * STRIPE, 10, 'l');
}

/* --- what may be there -------------------------------------------------------------------------
 */

/* What is done in a partition is not answered. */
static int lose(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    struct mfs_cmd cmd = {.part = part, .argv = argv, .argc = argc};

    if (part != *(uint32_t *)arg)
        return 0;
    assert_int_equal(mfs_store_exec(b.store, &cmd, 1), 0);
    mfs_cmds_fini(&cmd, 1);
    return -EIO;
}

static uint64_t version_by(struct vfs_client *c)
{
    struct mfs_attr attr;

    assert_int_equal(mfs_vfs_getattr(c->vfs, ino, &attr), 0);
    return attr.version;
}

/* A stripe, not at home, with content that is known; *part loses its answers from here on. */
static uint64_t begin_to_lose(uint32_t *part)
{
    uint32_t s = stripe(false, 1);

    assert_int_equal(put(file, (uint64_t)s * STRIPE, 1000, 'o'), 0);
    assert_int_equal(mfs_vfs_fsync(file), 0);
    *part = mfs_placement_stripe(ino, s, NPARTS);
    mfs_store_set_fault(a.store, lose, part);
    return (uint64_t)s * STRIPE;
}

/* Who keeps pages of it must not go on to show what was there, as others do not see that any more.
 */
static void overwritten_perhaps(void **state)
{
    uint32_t part;
    uint64_t at = begin_to_lose(&part), before = version_by(&b);

    (void)state;
    assert_int_equal(put(file, at, 1000, 'n'), 0);
    assert_int_equal(mfs_vfs_fsync(file), -EIO);
    mfs_store_set_fault(a.store, NULL, NULL);
    check(at, 1000, 'n');
    assert_true(version_by(&b) > before);
    assert_int_equal(mfs_vfs_fsync(file), 0);
}

static void punched_perhaps(void **state)
{
    uint32_t part;
    uint64_t at = begin_to_lose(&part), before = version_by(&b);

    (void)state;
    assert_int_equal(
        mfs_vfs_fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, 1000, 0), -EIO);
    mfs_store_set_fault(a.store, NULL, NULL);
    check(at, 1000, 0);
    assert_true(version_by(&b) > before);
}

/* --- cut ------------------------------------------------------------------------------------- */

static int refuse(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    (void)argv;
    (void)argc;
    return part == *(uint32_t *)arg ? -EIO : 0;
}

static int cut_by_truncate(void)
{
    struct mfs_attr attr = {.size = 0};

    return mfs_vfs_setattr(a.vfs, ino, MFS_VFS_SET_SIZE, &attr, NULL);
}

static int cut_by_open(void)
{
    struct mfs_file *f;
    bool keep;
    int rc = mfs_vfs_open(a.vfs, ino, O_WRONLY | O_TRUNC, &f, &keep);

    if (rc == 0)
        mfs_vfs_release(f);
    return rc;
}

/* What was written is gone, and the file has not been cut: who wrote it hears of that, and others
 * look again at what may have been freed. */
static void told_when_a_cut_fails(void **state)
{
    int (*const cut[])(void) = {cut_by_truncate, cut_by_open};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        uint32_t part;
        uint64_t at = begin_to_lose(&part), before;

        mfs_store_set_fault(a.store, NULL, NULL);
        before = version_by(&b);
        assert_int_equal(put(file, at + STRIPE, 1000, 'x'), 0);
        mfs_store_set_fault(a.store, refuse, &part);
        assert_int_equal(cut[i](), -EIO);
        mfs_store_set_fault(a.store, NULL, NULL);
        assert_int_equal(mfs_vfs_fsync(file), -EIO);
        assert_int_equal(mfs_vfs_fsync(file), 0);
        assert_true(version_by(&b) > before);
    }
}

static void nobody_is_when_it_does_not(void **state)
{
    (void)state;
    assert_int_equal(put(file, 3 * STRIPE, 1000, 'x'), 0);
    assert_int_equal(cut_by_truncate(), 0);
    assert_int_equal(mfs_vfs_fsync(file), 0);
    assert_int_equal(size_by(&b), 0);
}

/* What was stored and not committed before counts no more, and sets no time back. */
static void empty_after_it(void **state)
{
    struct mfs_attr then, now;

    (void)state;
    assert_int_equal(put(file, STRIPE, STRIPE, 'x'), 0);
    wait_stored(STRIPE);
    assert_int_equal(cut_by_truncate(), 0);
    assert_int_equal(mfs_vfs_getattr(a.vfs, ino, &then), 0);
    assert_int_equal(mfs_vfs_fsync(file), 0);
    assert_int_equal(mfs_vfs_getattr(b.vfs, ino, &now), 0);
    assert_int_equal(now.size, 0);
    assert_int_equal(now.alloc, 0);
    assert_memory_equal(&now.mtime, &then.mtime, sizeof now.mtime);
    assert_memory_equal(&now.ctime, &then.ctime, sizeof now.ctime);
}

/* --- cut beside a writer ------------------------------------------------------------------- */

struct writer {
    pthread_t thread;
    uint64_t at;
    atomic_bool begun;
    int rc;
};

static void *write_stripe(void *arg)
{
    struct writer *w = arg;

    w->rc = put(file, w->at, STRIPE, 'n');
    return NULL;
}

/* When the first stripe is about to be freed, somebody writes another one of that partition. */
static int write_beside(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    struct writer *w = arg;

    (void)argv;
    (void)argc;
    if (part != mfs_placement_stripe(ino, (uint32_t)(w->at / STRIPE), NPARTS) ||
        atomic_exchange(&w->begun, true))
        return 0;
    assert_int_equal(pthread_create(&w->thread, NULL, write_stripe, w), 0);
    mfs_clock_sleep(300 * MFS_MSEC); /* it would be stored by then */
    return 0;
}

static void what_is_written_beside_an_open_stays(void **state)
{
    uint32_t s = stripe(false, 1);
    struct writer w = {.at = (uint64_t)s * STRIPE};

    (void)state;
    assert_int_equal(put(file, w.at, STRIPE, 'o'), 0);
    assert_int_equal(mfs_vfs_fsync(file), 0);
    mfs_store_set_fault(a.store, write_beside, &w);
    assert_int_equal(cut_by_open(), 0);
    assert_true(atomic_load(&w.begun));
    pthread_join(w.thread, NULL);
    mfs_store_set_fault(a.store, NULL, NULL);
    assert_int_equal(w.rc, 0);
    assert_int_equal(mfs_vfs_fsync(file), 0);
    assert_int_equal(size_by(&b), w.at + STRIPE);
    check(w.at, STRIPE, 'n');
}

static void *open_and_cut(void *arg)
{
    *(int *)arg = cut_by_open();
    return NULL;
}

struct cutter {
    pthread_t thread;
    atomic_bool begun;
    int rc;
};

/* When an append has stored its bytes, and is about to tell the file's new end. */
static int cut_beside(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    static const char end[] = "mfs_append_end";
    struct cutter *c = arg;
    bool tells = false;

    (void)part;
    for (uint32_t i = 0; i < argc && i < 2; i++)
        tells |= argv[i].len == sizeof end - 1 && !memcmp(argv[i].p, end, sizeof end - 1);
    if (!tells || atomic_exchange(&c->begun, true))
        return 0;
    assert_int_equal(pthread_create(&c->thread, NULL, open_and_cut, &c->rc), 0);
    mfs_clock_sleep(300 * MFS_MSEC);
    return 0;
}

static void so_does_what_is_appended(void **state)
{
    struct mfs_file *appender = open_file(&a, O_WRONLY | O_APPEND);
    struct cutter c = {0};
    char bytes[100];

    (void)state;
    memset(bytes, 'n', sizeof bytes);
    assert_int_equal(put(file, 0, STRIPE, 'o'), 0);
    assert_int_equal(put(file, STRIPE, STRIPE / 2, 'o'), 0);
    assert_int_equal(mfs_vfs_fsync(file), 0);
    mfs_store_set_fault(a.store, cut_beside, &c);
    assert_int_equal(mfs_vfs_write(appender, bytes, sizeof bytes, 0, O_APPEND, false),
                     sizeof bytes);
    assert_true(atomic_load(&c.begun));
    pthread_join(c.thread, NULL);
    mfs_store_set_fault(a.store, NULL, NULL);
    assert_int_equal(c.rc, 0);
    assert_int_equal(size_by(&b), 0); /* appended, then cut */
    mfs_vfs_release(appender);
}

static atomic_bool enough;

static void *write_on(void *arg)
{
    (void)arg;
    for (uint64_t n = 0; !atomic_load(&enough); n = (n + 1) % 64)
        assert_int_equal(put(file, n * STRIPE, STRIPE, 'w'), 0);
    return NULL;
}

static void an_open_does_not_wait_for_a_pause(void **state)
{
    pthread_t writer;
    int64_t began;

    (void)state;
    atomic_store(&enough, false);
    assert_int_equal(pthread_create(&writer, NULL, write_on, NULL), 0);
    mfs_clock_sleep(100 * MFS_MSEC);
    for (int i = 0; i < 20; i++) {
        began = mfs_clock_mono();
        assert_int_equal(cut_by_open(), 0);
        assert_true(mfs_clock_mono() - began < 20 * MFS_SEC);
    }
    atomic_store(&enough, true);
    pthread_join(writer, NULL);
    assert_int_equal(mfs_vfs_fsync(file), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(not_swallowed_by_a_release, setup, teardown),
        cmocka_unit_test_setup_teardown(each_open_file_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(told_to_who_comes_later, setup, teardown),
        cmocka_unit_test_setup_teardown(stored_before_a_commit_that_fails, setup, teardown),
        cmocka_unit_test_setup_teardown(between_what_is_stored, setup, teardown),
        cmocka_unit_test_setup_teardown(overwritten_perhaps, setup, teardown),
        cmocka_unit_test_setup_teardown(punched_perhaps, setup, teardown),
        cmocka_unit_test_setup_teardown(told_when_a_cut_fails, setup, teardown),
        cmocka_unit_test_setup_teardown(nobody_is_when_it_does_not, setup, teardown),
        cmocka_unit_test_setup_teardown(empty_after_it, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_written_beside_an_open_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(so_does_what_is_appended, setup, teardown),
        cmocka_unit_test_setup_teardown(an_open_does_not_wait_for_a_pause, setup, teardown),
    };

    return cmocka_run_group_tests(tests, setup_all, vfs_redis_stop);
}
