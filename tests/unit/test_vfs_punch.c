/* One mount punches a hole into a file, or zeroes a part of it, while another one writes to it or
 * appends: who writes elsewhere in the file loses nothing. ctest: threaded timeout=120 */
#include <errno.h>
#include <linux/falloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "store/args.h"
#include "vfs_test.h"

#define PUNCH (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)
#define ZERO  (FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE)
#define EDIT  "mfs_szero" /* of a stripe */

/* What b does to the file just before a sends a command, once. */
struct other {
    const char *before; /* the begin of the command's name */
    int (*act)(struct mfs_file *f, const struct other *o);
    uint64_t ino, off, len;
    int mode; /* of fallocate */
    atomic_bool begun;
    int rc;
};

static void by_b(struct other *o)
{
    struct mfs_file *f;
    bool keep;

    o->rc = mfs_vfs_open(b.vfs, o->ino, O_RDWR, &f, &keep);
    if (o->rc < 0)
        return;
    o->rc = o->act(f, o);
    mfs_vfs_release(f);
}

static bool calls(const char *begin, const struct mfs_arg *argv, uint32_t argc)
{
    for (uint32_t i = 0; i < argc && i < 2; i++)
        if (argv[i].len >= strlen(begin) && memcmp(argv[i].p, begin, strlen(begin)) == 0)
            return true;
    return false;
}

static int beside(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    struct other *o = arg;

    (void)part;
    if (calls(o->before, argv, argc) && !atomic_exchange(&o->begun, true))
        by_b(o);
    return 0;
}

static void begin_beside(struct other *o)
{
    atomic_store(&o->begun, false);
    mfs_store_set_fault(a.store, beside, o);
}

static void end_beside(struct other *o)
{
    mfs_store_set_fault(a.store, NULL, NULL);
    assert_true(atomic_load(&o->begun));
    assert_int_equal(o->rc, 0);
}

static int punches(struct mfs_file *f, const struct other *o)
{
    return mfs_vfs_fallocate(f, o->mode, o->off, o->len, 0);
}

static int writes(struct mfs_file *f, const struct other *o)
{
    char buf[STRIPE];
    ssize_t n;

    memset(buf, 'n', o->len);
    n = mfs_vfs_write(f, buf, o->len, o->off, o->mode, false);
    return n < 0 ? (int)n : mfs_vfs_fsync(f);
}

static void fill(struct mfs_file *f, uint64_t off, size_t len, char with, int flags)
{
    char buf[STRIPE];

    memset(buf, with, len);
    assert_int_equal(mfs_vfs_write(f, buf, len, off, flags, false), len);
}

static void check(uint64_t ino, uint64_t off, size_t len, char what)
{
    struct client *clients[] = {&a, &b};

    for (unsigned i = 0; i < 2; i++) {
        struct mfs_file *f = open_file(clients[i], ino, O_RDONLY);

        vfs_expect_all(f, off, len, what, i ? "b" : "a");
        mfs_vfs_release(f);
    }
}

static void empty(uint64_t ino)
{
    struct mfs_attr attr = {.size = 0};

    assert_int_equal(mfs_vfs_setattr(a.vfs, ino, MFS_VFS_SET_SIZE, &attr, NULL), 0);
}

/* What is stored behind the end that the other one knows, and about to be committed, stays. */
static void up_to_the_end_beside_a_writer(void **state)
{
    static const int modes[] = {PUNCH, ZERO, FALLOC_FL_ZERO_RANGE};
    static const uint64_t lengths[] = {50, 2 * STRIPE};
    uint64_t ino;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino);

    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        struct other o = {"mfs_commit",   punches,      ino,   STRIPE + 50,
                          lengths[i % 2], modes[i / 2], false, 0};

        fill(f, STRIPE, 100, 'o', 0);
        assert_int_equal(mfs_vfs_fsync(f), 0);
        fill(f, STRIPE + 100, STRIPE - 100, 'n', 0);
        begin_beside(&o);
        assert_int_equal(mfs_vfs_fsync(f), 0);
        end_beside(&o);
        check(ino, STRIPE, 50, 'o');
        check(ino, STRIPE + 50, 50, 0);
        check(ino, STRIPE + 100, STRIPE - 100, 'n');
        empty(ino);
    }
    close_file(f);
}

/* Nor is anything lost that is known by then, but was not when it was asked how far the file goes:
 * written and synced, or appended. */
static void while_the_file_grows(void **state)
{
    static const int flags[] = {0, O_APPEND};
    uint64_t ino;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino);

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct other o = {EDIT, writes, ino, 100, 100, flags[i], false, 0};

        fill(f, 0, 100, 'o', 0);
        assert_int_equal(mfs_vfs_fsync(f), 0);
        begin_beside(&o);
        assert_int_equal(mfs_vfs_fallocate(f, PUNCH, 50, 2 * STRIPE, 0), 0);
        end_beside(&o);
        check(ino, 0, 50, 'o');
        check(ino, 50, 50, 0);
        check(ino, 100, 100, 'n');
        empty(ino);
    }
    close_file(f);
}

/* As fsck does where a client that died has left bytes behind the end. */
static void raise_end(uint64_t ino, uint64_t end)
{
    struct mfs_args args;
    struct mfs_cmd cmd;
    char number[8];

    mfs_put_be64(number, ino);
    mfs_args_init(&args, "mfs_commit0");
    mfs_args_bin(&args, number, sizeof number);
    mfs_args_str(&args, "");
    mfs_args_int(&args, 0);
    mfs_args_int(&args, (int64_t)end);
    for (unsigned i = 0; i < 5; i++)
        mfs_args_str(&args, "");
    cmd = mfs_args_cmd(&args, mfs_placement_home(ino));
    assert_int_equal(mfs_store_exec(b.store, &cmd, 1), 0);
    mfs_cmds_fini(&cmd, 1);
}

/* An append has the place behind the size. So nobody needs to wait for it who zeroes only what is
 * below that: it is not torn, however far the range goes. */
static void beside_an_append(void **state)
{
    static const int modes[] = {PUNCH, ZERO};
    uint64_t ino, end = 2 * STRIPE - 50;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino),
                    *appender = open_file(&a, ino, O_WRONLY | O_APPEND);

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct other o = {"mfs_append_end", punches,      ino,   STRIPE + 10,
                          8 * STRIPE,       modes[i % 2], false, 0};

        fill(f, 0, STRIPE, 'o', 0);
        fill(f, STRIPE, end - STRIPE, 'o', 0);
        assert_int_equal(mfs_vfs_fsync(f), 0);
        if (i >= 2)
            raise_end(ino, 2 * STRIPE + 20);
        begin_beside(&o);
        fill(appender, 0, 100, 'n', O_APPEND);
        end_beside(&o);
        check(ino, 0, STRIPE, 'o');
        check(ino, STRIPE, 10, 'o');
        check(ino, STRIPE + 10, end - STRIPE - 10, 0);
        check(ino, end, 100, 'n');
        assert_int_equal(getattr(&b, ino).size, end + 100);
        empty(ino);
    }
    close_file(appender);
    close_file(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(up_to_the_end_beside_a_writer, setup, teardown),
        cmocka_unit_test_setup_teardown(while_the_file_grows, setup, teardown),
        cmocka_unit_test_setup_teardown(beside_an_append, setup, teardown),
    };

    return cmocka_run_group_tests(tests, setup_all, vfs_redis_stop);
}
