/* One mount cuts a file that another one writes or appends to: either comes after the other, and
 * what was cut off does not come back, neither as zeros nor as a size.
 * ctest: threaded timeout=180 waits */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cluster/placement.h"
#include "data/stripes/stripes.h"
#include "store/args.h"
#include "store/keys.h"
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

static int setup(void **state)
{
    (void)state;
    vfs_pair_start(&a, &b, &file, &ino);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    vfs_pair_stop(&a, &b, file);
    return 0;
}

/* --- shorthands ------------------------------------------------------------------------------ */

static int write_to(struct mfs_file *f, uint64_t off, size_t len, char with, int flags)
{
    char buf[STRIPE];
    ssize_t n;

    memset(buf, with, len);
    n = mfs_vfs_write(f, buf, len, off, flags, false);
    return n < 0 ? (int)n : 0;
}

static void put_stripe(uint32_t s, char with)
{
    assert_int_equal(write_to(file, (uint64_t)s * STRIPE, STRIPE, with, 0), 0);
}

static struct mfs_file *open_file(struct vfs_client *c, int flags)
{
    struct mfs_file *f;
    bool keep;

    assert_int_equal(mfs_vfs_open(c->vfs, ino, flags, &f, &keep), 0);
    return f;
}

/* What the stripe begins with; 0: there is none. */
static char stored(uint32_t s)
{
    char byte;

    assert_int_equal(mfs_stripes_read(b.store, ino, (uint64_t)s * STRIPE, 1, &byte), 0);
    return byte;
}

static void wait_stored(uint32_t s, char what)
{
    int64_t until = mfs_clock_mono() + 10 * MFS_SEC;

    while (stored(s) != what)
        assert_true(mfs_clock_mono() < until);
}

static void check_size(uint64_t size)
{
    struct vfs_client *clients[] = {&a, &b};
    struct mfs_attr attr;

    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(mfs_vfs_getattr(clients[i]->vfs, ino, &attr), 0);
        assert_int_equal(attr.size, size);
        assert_true(attr.alloc < (int64_t)size + 4096);
    }
}

static void check_stripe(uint32_t s, char what)
{
    struct vfs_client *clients[] = {&a, &b};
    char buf[STRIPE];

    for (unsigned i = 0; i < 2; i++) {
        struct mfs_file *f = open_file(clients[i], O_RDONLY);

        memset(buf, '?', sizeof buf);
        assert_int_equal(mfs_vfs_read(f, buf, STRIPE, (uint64_t)s * STRIPE, true, NULL), STRIPE);
        for (size_t at = 0; at < STRIPE; at++)
            if (buf[at] != what)
                fail_msg("client %u: byte %zu is %d, not %d", i, at, buf[at], what);
        mfs_vfs_release(f);
    }
}

static int truncate_to(struct vfs_client *c, uint64_t size)
{
    struct mfs_attr attr = {.size = size};

    return mfs_vfs_setattr(c->vfs, ino, MFS_VFS_SET_SIZE, &attr, NULL);
}

static int empty_by_open(struct vfs_client *c)
{
    struct mfs_file *f;
    bool keep;
    int rc = mfs_vfs_open(c->vfs, ino, O_WRONLY | O_TRUNC, &f, &keep);

    if (rc == 0)
        mfs_vfs_release(f);
    return rc;
}

static int empty_by_truncate(struct vfs_client *c)
{
    return truncate_to(c, 0);
}

static int (*const empty[])(struct vfs_client *c) = {empty_by_truncate, empty_by_open};
#define WAYS 2U

/* --- written, and not yet committed -------------------------------------------------------- */

static void written_then_emptied(void **state)
{
    (void)state;
    for (unsigned i = 0; i < WAYS; i++) {
        put_stripe(0, 'o');
        put_stripe(1, 'o');
        assert_int_equal(mfs_vfs_fsync(file), 0);
        put_stripe(1, 'n');
        wait_stored(1, 'n');
        assert_int_equal(empty[i](&b), 0);
        assert_int_equal(mfs_vfs_fsync(file), 0);
        check_size(0);
    }
}

/* Also in stripe 0, which is where the inode is, and where the cut does not know of any data. */
static void the_first_stripe_too(void **state)
{
    (void)state;
    put_stripe(0, 'n');
    wait_stored(0, 'n');
    assert_int_equal(empty_by_truncate(&b), 0);
    assert_int_equal(mfs_vfs_fsync(file), 0);
    check_size(0);
}

static void what_follows_the_cut_stays(void **state)
{
    (void)state;
    for (unsigned i = 0; i < WAYS; i++) {
        for (uint32_t s = 0; s < 4; s++)
            put_stripe(s, 'o');
        assert_int_equal(mfs_vfs_fsync(file), 0);
        put_stripe(1, 'n');
        wait_stored(1, 'n');
        assert_int_equal(empty[i](&b), 0);
        put_stripe(3, 'l');
        assert_int_equal(mfs_vfs_fsync(file), 0);
        check_size(4ULL * STRIPE);
        check_stripe(1, 0);
        check_stripe(3, 'l');
        assert_int_equal(write_to(file, 5ULL * STRIPE, 100, 's', 0),
                         0); /* as if nothing had been */
        assert_int_equal(mfs_vfs_fsync(file), 0);
        check_size(5ULL * STRIPE + 100);
    }
}

static void so_does_what_is_below_it(void **state)
{
    (void)state;
    for (uint32_t s = 0; s < 4; s++)
        put_stripe(s, 'o');
    assert_int_equal(mfs_vfs_fsync(file), 0);
    for (uint32_t s = 1; s < 4; s++)
        put_stripe(s, 'n');
    for (uint32_t s = 1; s < 4; s++)
        wait_stored(s, 'n');
    assert_int_equal(truncate_to(&b, 2ULL * STRIPE + 100), 0);
    assert_int_equal(mfs_vfs_fsync(file), 0);
    check_size(2ULL * STRIPE + 100);
    check_stripe(0, 'o');
    check_stripe(1, 'n');
}

/* A cut that freed none of it: all of it is there, as written after the cut. */
static void nothing_was_freed(void **state)
{
    (void)state;
    put_stripe(1, 'n');
    put_stripe(2, 'n');
    wait_stored(1, 'n');
    wait_stored(2, 'n');
    assert_int_equal(empty_by_truncate(&b), 0);
    assert_int_equal(mfs_vfs_fsync(file), 0);
    check_size(3ULL * STRIPE);
    check_stripe(1, 'n');
    check_stripe(2, 'n');
}

static bool calls(const char *name, const struct mfs_arg *argv, uint32_t argc)
{
    for (uint32_t i = 0; i < argc && i < 2; i++)
        if (argv[i].len == strlen(name) && memcmp(argv[i].p, name, argv[i].len) == 0)
            return true;
    return false;
}

static void set_full(uint32_t part, bool full)
{
    const char *command = full ? "CONFIG SET maxmemory 1" : "CONFIG SET maxmemory 0";

    assert_int_equal(redis_fixture_admin(vfs_redis, part, command), 0);
}

/* The n-th stripe from 1 on that is not where the inode is. */
static uint32_t stripe_elsewhere(unsigned n)
{
    uint32_t home = mfs_placement_home(ino), s = 0;

    while (n > 0)
        n -= mfs_placement_stripe(ino, ++s, NPARTS) != home;
    return s;
}

/* Just before it is cut it grows, once, to where the cut has freed nothing. */
static int outrun(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    (void)part;
    if (!calls("mfs_truncate", argv, argc) || atomic_exchange((atomic_bool *)arg, true))
        return 0;
    put_stripe(stripe_elsewhere(2), 'n');
    assert_int_equal(mfs_vfs_fsync(file), 0);
    return 0;
}

/* Freed in vain, it is cut nevertheless: also when there is no memory for the place of an append.
 */
static void outrun_when_memory_is_full(void **state)
{
    uint32_t home = mfs_placement_home(ino);
    atomic_bool once = false;

    (void)state;
    put_stripe(stripe_elsewhere(1), 'o');
    assert_int_equal(mfs_vfs_fsync(file), 0);
    set_full(home, true);
    mfs_store_set_fault(b.store, outrun, &once);
    assert_int_equal(truncate_to(&b, STRIPE), 0);
    mfs_store_set_fault(b.store, NULL, NULL);
    set_full(home, false);
    assert_true(once);
    check_size(STRIPE);
}

/* Just before it is cut a stripe that the cut has freed is written again, so many times. */
static int refill(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    bool opens = calls("mfs_open", argv, argc) && argc > 4;
    int *times = arg;

    (void)part;
    if (!(opens || calls("mfs_truncate", argv, argc)) || *times == 0)
        return 0;
    --*times;
    put_stripe(1, 'n');
    assert_int_equal(mfs_vfs_fsync(file), 0);
    return 0;
}

static void empty_while_refilled(unsigned way, int times)
{
    int left = times;

    for (uint32_t s = 0; s < 3; s++)
        put_stripe(s, 'o');
    assert_int_equal(mfs_vfs_fsync(file), 0);
    mfs_store_set_fault(b.store, refill, &left);
    assert_int_equal(empty[way](&b), 0);
    mfs_store_set_fault(b.store, NULL, NULL);
    assert_true(left < times);
    check_size(0);
}

/* It is freed again: below the end of data that was, where nobody would ever look for it. */
static void refilled_before_the_cut(void **state)
{
    (void)state;
    for (unsigned i = 0; i < WAYS; i++) {
        empty_while_refilled(i, 1);
        assert_int_equal(stored(1), 0);
    }
}

/* The cut does not try for ever. What is left nobody sees, and the next one frees it. */
static void refilled_each_time(void **state)
{
    (void)state;
    for (unsigned i = 0; i < WAYS; i++) {
        empty_while_refilled(i, INT_MAX);
        assert_int_equal(stored(1), 'n');
        assert_int_equal(truncate_to(&b, 3ULL * STRIPE), 0);
        check_stripe(1, 0);
        put_stripe(2, 'l');
        assert_int_equal(mfs_vfs_fsync(file), 0);
        check_stripe(1, 0);
        check_stripe(2, 'l');
        assert_int_equal(empty[i](&b), 0);
        check_size(0);
        assert_int_equal(stored(1), 0);
    }
}

/* When what was written is forgotten, and before the inode is looked at, all of it goes. */
static int remove_file(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    (void)part;
    if (!calls("GET", argv, argc) || argv[1].len != MFS_KEY_INO_LEN ||
        *(const char *)argv[1].p != 'I' || atomic_exchange((atomic_bool *)arg, true))
        return 0;
    mfs_vfs_release(file);
    assert_int_equal(mfs_vfs_unlink(a.vfs, MFS_ROOT_INO, "f"), 0);
    return 0;
}

/* Who removed it knew of no stripes, and who cut it had stored some. */
static void removed_before_the_cut(void **state)
{
    const struct mfs_cred root = {.umask = 022, .in_group = true};
    atomic_bool once = false;
    struct mfs_attr attr;
    bool keep;

    (void)state;
    put_stripe(1, 'n');
    wait_stored(1, 'n');
    mfs_store_set_fault(a.store, remove_file, &once);
    assert_int_equal(empty_by_truncate(&a), -ESTALE);
    mfs_store_set_fault(a.store, NULL, NULL);
    assert_true(once);
    assert_int_equal(mfs_vfs_create_open(a.vfs, MFS_ROOT_INO, "g", 0644, O_RDWR | O_CREAT, &root,
                                         &attr, &file, &keep),
                     0); /* for the teardown */
    assert_int_equal(stored(1), 0);
}

/* A stripe that can't be looked at, and that is none of those that were written. */
static int refuse_stripe(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    (void)part;
    return argc == 2 && argv[0].len == 6 && memcmp(argv[0].p, "STRLEN", 6) == 0 &&
                   argv[1].len == MFS_KEY_STRIPE_LEN && memcmp(argv[1].p, arg, argv[1].len) == 0
               ? -EIO
               : 0;
}

static void only_what_was_written_is_looked_at(void **state)
{
    char key[MFS_KEY_STRIPE_LEN];

    (void)state;
    put_stripe(1, 'n');
    put_stripe(5, 'n');
    wait_stored(1, 'n');
    wait_stored(5, 'n');
    assert_int_equal(empty_by_truncate(&b), 0);
    mfs_key_stripe(key, ino, 3);
    mfs_store_set_fault(a.store, refuse_stripe, key);
    assert_int_equal(mfs_vfs_fsync(file), 0);
    mfs_store_set_fault(a.store, NULL, NULL);
    check_size(6ULL * STRIPE);
    check_stripe(1, 'n');
    check_stripe(5, 'n');
}

/* What is cut before it was counted is counted, as the cut has taken it off. */
static void what_it_takes_is_not_negative(void **state)
{
    struct mfs_attr attr;

    (void)state;
    put_stripe(5, 'o');
    assert_int_equal(mfs_vfs_fsync(file), 0);
    for (uint32_t s = 1; s < 5; s++)
        put_stripe(s, 'n');
    for (uint32_t s = 1; s < 5; s++)
        wait_stored(s, 'n');
    assert_int_equal(truncate_to(&b, STRIPE), 0);
    assert_int_equal(mfs_vfs_fsync(file), 0);
    assert_int_equal(mfs_vfs_getattr(b.vfs, ino, &attr), 0);
    assert_int_equal(attr.size, STRIPE);
    assert_int_equal(attr.alloc, 0);
}

/* --- appended ------------------------------------------------------------------------------ */

struct cutter {
    pthread_t thread;
    unsigned way;
    atomic_bool begun, done;
    int rc;
};

static void *cut(void *arg)
{
    struct cutter *c = arg;

    c->rc = empty[c->way](&b);
    atomic_store(&c->done, true);
    return NULL;
}

/* When an append has its place, and has stored its bytes there or is about to. */
static int cut_beside(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    struct cutter *c = arg;

    (void)part;
    if (!calls("mfs_append_end", argv, argc) || atomic_exchange(&c->begun, true))
        return 0;
    assert_int_equal(pthread_create(&c->thread, NULL, cut, c), 0);
    mfs_clock_sleep(300 * MFS_MSEC);
    assert_false(atomic_load(&c->done)); /* it waits for the append */
    return 0;
}

static void appended_then_emptied(void **state)
{
    (void)state;
    for (unsigned i = 0; i < WAYS; i++) {
        struct mfs_file *appender = open_file(&a, O_WRONLY | O_APPEND);
        struct cutter c = {.way = i};

        put_stripe(0, 'o');
        assert_int_equal(write_to(file, STRIPE, STRIPE / 2, 'o', 0), 0);
        assert_int_equal(mfs_vfs_fsync(file), 0);
        mfs_store_set_fault(a.store, cut_beside, &c);
        assert_int_equal(write_to(appender, 0, 100, 'n', O_APPEND), 0);
        assert_true(atomic_load(&c.begun));
        pthread_join(c.thread, NULL);
        mfs_store_set_fault(a.store, NULL, NULL);
        assert_int_equal(c.rc, 0);
        check_size(0);
        mfs_vfs_release(appender);
    }
}

/* Somebody who is not there any more has the place. */
static void leave_place(void)
{
    static const char who[16] = "goneyesterday...";
    char key[MFS_KEY_INO_LEN];
    struct mfs_args args;
    struct mfs_cmd cmd;

    mfs_key_ino(key, 'P', ino);
    mfs_args_init(&args, "SET");
    mfs_args_bin(&args, key, sizeof key);
    mfs_args_bin(&args, who, sizeof who);
    cmd = mfs_args_cmd(&args, mfs_placement_home(ino));
    assert_int_equal(mfs_store_exec(a.store, &cmd, 1), 0);
    mfs_cmds_fini(&cmd, 1);
}

static void a_dead_appender_is_not_waited_for(void **state)
{
    (void)state;
    for (unsigned i = 0; i < WAYS; i++) {
        put_stripe(0, 'o');
        assert_int_equal(mfs_vfs_fsync(file), 0);
        leave_place();
        assert_int_equal(empty[i](&b), 0);
        check_size(0);
    }
}

static atomic_bool enough;

/* Until it fails, or is enough. */
static void *append_on(void *rc)
{
    struct mfs_file *f = open_file(&a, O_WRONLY | O_APPEND);

    do
        *(int *)rc = write_to(f, 0, STRIPE, 'w', O_APPEND);
    while (*(int *)rc == 0 && !atomic_load(&enough));
    mfs_vfs_release(f);
    return NULL;
}

/* Again and again, while three threads do that. */
static void empty_beside(void *(*work)(void *))
{
    pthread_t thread[3];
    int rc[3] = {0};

    atomic_store(&enough, false);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, work, &rc[i]), 0);
    for (unsigned i = 0; i < 20; i++) {
        mfs_clock_sleep(20 * MFS_MSEC);
        assert_int_equal(empty[i % WAYS](&b), 0);
    }
    atomic_store(&enough, true);
    for (unsigned i = 0; i < 3; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(rc[i], 0);
    }
}

/* Nor do those who append all the time keep it out. What is left has no hole: each record was
 * appended before the last cut, or after it. */
static void beside_appenders(void **state)
{
    struct mfs_attr attr;

    (void)state;
    empty_beside(append_on);
    assert_int_equal(mfs_vfs_getattr(b.vfs, ino, &attr), 0);
    assert_int_equal(attr.size % STRIPE, 0);
    for (uint32_t s = 0; s < attr.size / STRIPE; s++)
        check_stripe(s, 'w');
}

#define MANY 50U /* stripes */

/* One stripe after the other, each committed at once; until it fails, or is enough. */
static void *write_on(void *rc)
{
    struct mfs_file *f = open_file(&a, O_WRONLY);

    for (uint32_t s = 1; *(int *)rc == 0 && !atomic_load(&enough); s = s % MANY + 1) {
        *(int *)rc = write_to(f, (uint64_t)s * STRIPE, STRIPE, 'w', 0);
        if (*(int *)rc == 0)
            *(int *)rc = mfs_vfs_fsync(f);
    }
    mfs_vfs_release(f);
    return NULL;
}

/* Nor do those who write below the end; and the last cut leaves nothing. */
static void beside_writers(void **state)
{
    (void)state;
    put_stripe(MANY, 'o');
    assert_int_equal(mfs_vfs_fsync(file), 0);
    empty_beside(write_on);
    assert_int_equal(empty_by_truncate(&b), 0);
    check_size(0);
    for (uint32_t s = 1; s <= MANY; s++)
        assert_int_equal(stored(s), 0);
}

/* --- the end --------------------------------------------------------------------------------- */

static atomic_bool cutting;

static void *cut_again_and_again(void *arg)
{
    (void)arg;
    for (uint64_t n = 0; atomic_load(&cutting); n++)
        truncate_to(&b, n % 2 * STRIPE);
    return NULL;
}

/* a ends while it is told that b has cut what it has just closed. */
static void ended_while_cut(void **state)
{
    pthread_t cutter;

    (void)state;
    for (int round = 0; round < 60; round++) {
        atomic_store(&cutting, true);
        assert_int_equal(pthread_create(&cutter, NULL, cut_again_and_again, NULL), 0);
        for (uint32_t n = 0; n < 8; n++)
            put_stripe(n % 4, 'a');
        mfs_vfs_release(file);
        vfs_client_stop(a.store, a.vfs);
        atomic_store(&cutting, false);
        pthread_join(cutter, NULL);
        vfs_client_start(&a.store, &a.vfs);
        file = open_file(&a, O_RDWR);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(written_then_emptied, setup, teardown),
        cmocka_unit_test_setup_teardown(the_first_stripe_too, setup, teardown),
        cmocka_unit_test_setup_teardown(what_follows_the_cut_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(so_does_what_is_below_it, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_was_freed, setup, teardown),
        cmocka_unit_test_setup_teardown(outrun_when_memory_is_full, setup, teardown),
        cmocka_unit_test_setup_teardown(refilled_before_the_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(refilled_each_time, setup, teardown),
        cmocka_unit_test_setup_teardown(removed_before_the_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(only_what_was_written_is_looked_at, setup, teardown),
        cmocka_unit_test_setup_teardown(what_it_takes_is_not_negative, setup, teardown),
        cmocka_unit_test_setup_teardown(appended_then_emptied, setup, teardown),
        cmocka_unit_test_setup_teardown(a_dead_appender_is_not_waited_for, setup, teardown),
        cmocka_unit_test_setup_teardown(beside_appenders, setup, teardown),
        cmocka_unit_test_setup_teardown(beside_writers, setup, teardown),
        cmocka_unit_test_setup_teardown(ended_while_cut, setup, teardown),
    };

    return cmocka_run_group_tests(tests, setup_all, vfs_redis_stop);
}
