/* What a client stored behind the end of a file, and then could not commit, never shows when others
 * make the file longer (decisions/0020); what was committed, or is about to be, always does. The
 * victim's commits fail, as if it died before each. ctest: threaded timeout=180 waits long=30 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "cluster/placement.h"
#include "data/stripes/stripes.h"
#include "vfs_fixture.h"
#include "store/args.h"
#include "store/keys.h"
#include "store/reply.h"
#include "vfs/vfs.h"

#include "seeded.h"

#define STRIPE (64U << 10)
#define SPACE  (12U * STRIPE)
#define VOIDS  4096U /* of one file, at most */

struct client {
    struct mfs_store *store;
    struct mfs_vfs *vfs;
    struct mfs_file *file; /* the one that the tests are about */
};

static struct client a, b, victim;
static uint64_t ino;
static char want[SPACE], have[SPACE];
static const struct mfs_cred root = {.umask = 022, .in_group = true};

static int no_commit(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    (void)arg;
    (void)part;
    (void)argc;
    return argv[0].len >= 10 && memcmp(argv[0].p, "mfs_commit", 10) == 0 ? -EIO : 0;
}

static void client_start(struct client *c)
{
    struct mfs_attr attr;
    bool keep;

    vfs_client_start(&c->store, &c->vfs);
    assert_int_equal(mfs_vfs_create_open(c->vfs, MFS_ROOT_INO, "f", 0644, O_RDWR | O_CREAT, &root,
                                         &attr, &c->file, &keep),
                     0);
    ino = attr.ino;
}

static void client_stop(struct client *c)
{
    mfs_vfs_release(c->file);
    vfs_client_stop(c->store, c->vfs);
}

static int setup_all(void **state)
{
    (void)state;
    return vfs_redis_start(STRIPE);
}

static int setup(void **state)
{
    (void)state;
    assert_int_equal(redis_fixture_reset(vfs_redis), 0);
    client_start(&a);
    client_start(&b);
    client_start(&victim);
    mfs_store_set_fault(victim.store, no_commit, NULL);
    memset(want, 0, sizeof want);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    client_stop(&a);
    client_stop(&b);
    client_stop(&victim);
    return 0;
}

/* --- shorthands ------------------------------------------------------------------------------ */

static void fill(uint64_t off, size_t len, char with)
{
    memset(want + off, with, len);
}

static void put(struct client *c, uint64_t off, size_t len, char with)
{
    fill(off, len, with);
    for (size_t n; len > 0; off += n, len -= n) {
        n = len < 100000 ? len : 100000;
        assert_int_equal(mfs_vfs_write(c->file, want + off, n, off, 0, false), n);
    }
}

static void sync_file(struct client *c)
{
    assert_int_equal(mfs_vfs_fsync(c->file), 0);
}

/* By the victim: all is stored but what would have gone with the commit. */
static void leave_some_behind(uint64_t off, size_t len)
{
    memset(have, 'X', len);
    assert_int_equal(mfs_vfs_write(victim.file, have, len, off, 0, false), len);
    assert_int_equal(mfs_vfs_fsync(victim.file), -EIO);
}

/* That the bytes are in the stripes is made sure. */
static void leave_behind(uint64_t off, size_t len)
{
    char end[10];

    leave_some_behind(off, len);
    assert_int_equal(mfs_stripes_read(a.store, ino, off + len - sizeof end, sizeof end, end), 0);
    assert_memory_equal(end, "XXXXXXXXXX", sizeof end);
}

static void truncate_to(struct client *c, uint64_t size)
{
    struct mfs_attr attr = {.size = size};

    assert_int_equal(mfs_vfs_setattr(c->vfs, ino, MFS_VFS_SET_SIZE, &attr, NULL), 0);
    memset(want + size, 0, SPACE - size);
}

static void check_by(struct client *c, uint64_t size)
{
    struct mfs_attr attr;

    assert_int_equal(mfs_vfs_getattr(c->vfs, ino, &attr), 0);
    assert_int_equal(attr.size, size);
    memset(have, '?', sizeof have);
    for (uint64_t at = 0; at < size; at += 50000) {
        size_t n = size - at < 50000 ? size - at : 50000;

        assert_int_equal(mfs_vfs_read(c->file, have + at, n, at, true, NULL), n);
    }
    for (uint64_t i = 0; i < size; i++)
        if (have[i] != want[i])
            fail_msg("byte %llu of %llu: '%c' for '%c'", (unsigned long long)i,
                     (unsigned long long)size, have[i], want[i] ? want[i] : '0');
}

/* By those who have it open, and by somebody who opens it now. */
static void check(uint64_t size)
{
    struct client fresh;

    check_by(&a, size);
    check_by(&b, size);
    client_start(&fresh);
    check_by(&fresh, size);
    client_stop(&fresh);
}

/* Ranges that are remembered as voids. */
static size_t voids(void)
{
    char key[MFS_KEY_INO_LEN];
    struct mfs_args args;
    struct mfs_cmd cmd;
    size_t n;

    mfs_key_ino(key, 'V', ino);
    mfs_args_init(&args, "STRLEN");
    mfs_args_bin(&args, key, sizeof key);
    cmd = mfs_args_cmd(&args, mfs_placement_home(ino));
    assert_int_equal(mfs_store_exec(a.store, &cmd, 1), 0);
    n = (size_t)mfs_reply_int(cmd.reply) / 16;
    mfs_cmds_fini(&cmd, 1);
    return n;
}

/* --- what was left behind ----------------------------------------------------------------------
 */

static void truncated_up(void **state)
{
    (void)state;
    put(&a, 0, 1000, 'a');
    sync_file(&a);
    leave_behind(1000, 3 * STRIPE);
    check(1000);
    truncate_to(&b, 5 * STRIPE);
    check(5 * STRIPE);
    assert_int_equal(voids(), 0);
    put(&b, 2 * STRIPE + 10, 20, 'b'); /* the rest of what is there stays hidden */
    sync_file(&b);
    check(5 * STRIPE);
    truncate_to(&a, 2 * STRIPE + 15);
    check(2 * STRIPE + 15);
    truncate_to(&a, 4 * STRIPE);
    check(4 * STRIPE);
}

static void written_beyond(void **state)
{
    (void)state;
    put(&a, 0, STRIPE + 5, 'a');
    sync_file(&a);
    leave_behind(STRIPE + 5, 3 * STRIPE);
    put(&b, 6 * STRIPE, 100, 'b');
    sync_file(&b);
    check(6 * STRIPE + 100);
    assert_int_equal(voids(), 1);
    put(&a, 2 * STRIPE, 100, 'c');
    sync_file(&a);
    check(6 * STRIPE + 100);
    put(&b, STRIPE + 5, 5 * STRIPE, 'd');
    sync_file(&b);
    check(6 * STRIPE + 100);
    assert_int_equal(voids(), 0);
}

/* A small file's content comes with its open, and with a look-up. */
static void in_a_small_file(void **state)
{
    (void)state;
    put(&a, 0, 100, 'a');
    sync_file(&a);
    leave_behind(200, STRIPE);
    truncate_to(&b, 1000);
    check(1000);
    put(&a, 450, 10, 'b');
    sync_file(&a);
    check(1000);
    assert_int_equal(voids(), 2); /* before it, and behind it up to where the cut has left some */
    put(&b, 600, 10, 'c');
    sync_file(&b);
    check(1000);
}

static void appended(void **state)
{
    static const char text[2 * STRIPE] = "appended";

    (void)state;
    put(&a, 0, 100, 'a');
    sync_file(&a);
    leave_behind(100, 5 * STRIPE);
    truncate_to(&b, 200);
    memcpy(want + 200, text, 8);
    assert_int_equal(mfs_vfs_write(a.file, text, 8, 0, O_APPEND, false), 8);
    check(208);
    truncate_to(&b, 3 * STRIPE);
    memcpy(want + 3 * STRIPE, text, sizeof text);
    assert_int_equal(mfs_vfs_write(b.file, text, sizeof text, 0, O_APPEND, false), sizeof text);
    check(5 * STRIPE);
}

static void allocated(void **state)
{
    (void)state;
    put(&a, 0, 100, 'a');
    sync_file(&a);
    leave_behind(100, 4 * STRIPE);
    assert_int_equal(mfs_vfs_fallocate(b.file, 0, 0, 2 * STRIPE, 0), 0);
    check(2 * STRIPE);
    assert_int_equal(mfs_vfs_fallocate(b.file, FALLOC_FL_ZERO_RANGE, STRIPE, 3 * STRIPE, 0), 0);
    check(4 * STRIPE);
}

/* --- what is content ---------------------------------------------------------------------------
 */

/* Who writes the front later than another the back loses nothing. */
static void by_two_writers(void **state)
{
    (void)state;
    put(&a, 0, 2 * STRIPE + 100, 'a');
    put(&b, 5 * STRIPE, 2 * STRIPE, 'b');
    sync_file(&b);
    assert_int_equal(voids(), 1);
    sync_file(&a);
    check(7 * STRIPE);
    put(&a, 2 * STRIPE + 100, 3 * STRIPE - 100, 'c');
    sync_file(&a);
    check(7 * STRIPE);
    assert_int_equal(voids(), 0);
}

/* Whole stripes leave at once, and are committed a second later: their writer sees them all the
 * time, in voids and behind the end that is known. */
static void before_the_commit(void **state)
{
    int64_t end = mfs_clock_mono() + 3 * MFS_SEC / 2;

    (void)state;
    put(&b, 6 * STRIPE, 10, 'b');
    sync_file(&b);
    put(&a, STRIPE, 2 * STRIPE, 'a');
    put(&a, 8 * STRIPE, 2 * STRIPE, 'c');
    while (mfs_clock_mono() < end)
        check_by(&a, 10 * STRIPE);
    sync_file(&a);
    check(10 * STRIPE);
}

/* A file in very many places: some voids are forgotten, no content is. */
static void in_very_many_places(void **state)
{
    uint64_t places = VOIDS + 300;
    char byte = 0;

    (void)state;
    for (uint64_t i = 0; i < places; i++)
        assert_int_equal(mfs_vfs_write(a.file, "a", 1, (2 * i + 1) * STRIPE, 0, false), 1);
    sync_file(&a);
    assert_int_equal(voids(), VOIDS);
    for (uint64_t i = 0; i < places; i += 97) {
        assert_int_equal(mfs_vfs_read(b.file, &byte, 1, (2 * i + 1) * STRIPE, true, NULL), 1);
        assert_int_equal(byte, 'a');
        assert_int_equal(mfs_vfs_read(b.file, &byte, 1, (2 * i + 1) * STRIPE - 1, true, NULL), 1);
        assert_int_equal(byte, 0);
    }
    truncate_to(&b, 0);
    put(&b, 0, 10, 'b');
    sync_file(&b);
    check(10);
    assert_int_equal(voids(), 0);
}

/* What is no list of ranges changes nothing. */
static void badly_named(void **state)
{
    static const char lists[][33] = {"one that is too short", "\2\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0",
                                     "\0\0\0\0\0\0\0\377\1\0\0\0\0\0\0\0"};
    static const size_t lengths[] = {21, 16, 16};
    char number[8];

    (void)state;
    mfs_put_be64(number, ino);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct mfs_args args;
        struct mfs_cmd cmd;

        mfs_args_init(&args, "mfs_commit0");
        mfs_args_bin(&args, number, sizeof number);
        mfs_args_str(&args, "");
        mfs_args_int(&args, 100);
        mfs_args_int(&args, 100);
        mfs_args_str(&args, "");
        mfs_args_str(&args, "");
        mfs_args_bin(&args, lists[i], lengths[i]);
        mfs_args_str(&args, "");
        mfs_args_int(&args, 0);
        cmd = mfs_args_cmd(&args, mfs_placement_home(ino));
        assert_int_equal(mfs_store_exec(a.store, &cmd, 1), -EINVAL);
        mfs_cmds_fini(&cmd, 1);
    }
    check(0);
}

/* --- all at once -------------------------------------------------------------------------------
 */

static uint64_t size;

static size_t some_length(uint64_t off)
{
    size_t len = 1 + below(below(2) ? 3000 : 3 * STRIPE);

    return len < SPACE - off ? len : (size_t)(SPACE - off);
}

/* Near the end as a rule, or anywhere. */
static uint64_t some_place(void)
{
    uint64_t near = size + below(2 * STRIPE);

    return below(3) && near < SPACE ? near : below(SPACE);
}

static void step_write(struct client *c)
{
    uint64_t off = some_place();
    size_t len = some_length(off);

    put(c, off, len, (char)('a' + below(26)));
    size = off + len > size ? off + len : size;
}

/* One writes while the other makes the file longer. */
static void step_both(void)
{
    step_write(&a);
    if (size < SPACE) {
        size += 1 + below((uint32_t)(SPACE - size));
        truncate_to(&b, size);
    }
    sync_file(&a);
}

static void step_behind(void)
{
    uint64_t off = size + below(2 * STRIPE);

    if (off < SPACE)
        leave_some_behind(off, some_length(off));
}

static void step_punch(struct client *c)
{
    uint64_t off = some_place();
    size_t len = some_length(off);

    fill(off, len, 0);
    assert_int_equal(
        mfs_vfs_fallocate(c->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, len, 0), 0);
}

static void step_append(struct client *c)
{
    size_t len = some_length(size);

    if (size == SPACE)
        return;
    fill(size, len, 'z');
    assert_int_equal(mfs_vfs_write(c->file, want + size, len, 0, O_APPEND, false), len);
    size += len;
}

static void step(void)
{
    struct client *c = below(2) ? &a : &b;

    switch (below(9)) {
    case 0:
        size = below(SPACE);
        truncate_to(c, size);
        break;
    case 1:
    case 2:
        step_behind();
        break;
    case 3:
        step_punch(c);
        break;
    case 4:
        step_append(c);
        break;
    case 5:
        step_both();
        break;
    default:
        for (uint32_t n = below(3) + 1; n > 0; n--)
            step_write(c);
        sync_file(c);
    }
}

static void in_any_order(void **state)
{
    (void)state;
    choose_seed(NULL);
    size = 0;
    for (unsigned i = 0; i < 200; i++) {
        step();
        check_by(below(2) ? &a : &b, size);
    }
    check(size);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(truncated_up, setup, teardown),
        cmocka_unit_test_setup_teardown(written_beyond, setup, teardown),
        cmocka_unit_test_setup_teardown(in_a_small_file, setup, teardown),
        cmocka_unit_test_setup_teardown(appended, setup, teardown),
        cmocka_unit_test_setup_teardown(allocated, setup, teardown),
        cmocka_unit_test_setup_teardown(by_two_writers, setup, teardown),
        cmocka_unit_test_setup_teardown(before_the_commit, setup, teardown),
        cmocka_unit_test_setup_teardown(in_very_many_places, setup, teardown),
        cmocka_unit_test_setup_teardown(badly_named, setup, teardown),
        cmocka_unit_test_setup_teardown(in_any_order, setup, teardown),
    };

    return cmocka_run_group_tests(tests, setup_all, vfs_redis_stop);
}
