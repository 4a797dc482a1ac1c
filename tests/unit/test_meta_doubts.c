/* Single changes of which the answer was lost (renames: test_meta_doubt.c): who has the file open,
 * or knows it or its names under leases, shows it as it is as soon as the call has failed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/clock.h"
#include "meta/internal.h"
#include "meta_fixture.h"
#include "store/store.h"

#define ROOT MFS_ROOT_INO
#define PART 1 /* of all names */

/* a changes something and does not hear of it, b knows what was before. */
static struct meta_client a, b;
static struct mfs_store *other;   /* of a's, by which commands go whose answers a does not get */
static atomic_uint_fast64_t told; /* version of the file that b has open, as it was told */
static const char *lost;          /* command or function whose answers are */
static atomic_bool mute;          /* after that a hears nothing at all */
static unsigned losses;

static void changed(void *arg, uint64_t ino, uint64_t version, void (*done)(void *), void *done_arg)
{
    (void)arg;
    if (ino)
        atomic_store(&told, version);
    if (done)
        done(done_arg);
}

static bool revoked(void *arg, uint64_t ino, bool name, bool own, void (*done)(void *),
                    void *done_arg)
{
    (void)arg, (void)ino, (void)name, (void)own, (void)done, (void)done_arg;
    return true;
}

static int start(struct meta_client *c, mfs_meta_changed_fn *fn)
{
    struct mfs_store_opts store = {.node = REDIS_FIXTURE_NODE};
    struct mfs_meta_opts opts = {.changed = fn, .revoked = revoked, .session_ttl = 20 * MFS_SEC};

    memset(c, 0, sizeof *c);
    return mfs_store_create(&c->store, redis_fixture_table(meta_redis), &store) ||
           mfs_meta_create(&c->meta, c->store, &opts);
}

static int setup(void **state)
{
    struct mfs_store_opts opts = {.node = REDIS_FIXTURE_NODE};

    (void)state;
    atomic_store(&told, 0);
    return redis_fixture_reset(meta_redis) || start(&a, NULL) || start(&b, changed) ||
           mfs_store_create(&other, redis_fixture_table(meta_redis), &opts);
}

static int teardown(void **state)
{
    (void)state;
    mfs_store_set_fault(a.store, NULL, NULL);
    meta_client_stop(&a);
    meta_client_stop(&b);
    mfs_store_destroy(other);
    return 0;
}

/* --- what happens to a's commands ------------------------------------------------------------- */

static bool is(const struct mfs_arg *arg, const char *word)
{
    return arg->len == strlen(word) && memcmp(arg->p, word, arg->len) == 0;
}

/* It happens, and a does not hear of it. */
static int lose(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    struct mfs_cmd cmd = {.part = part, .argv = argv, .argc = argc};

    (void)arg;
    if (!is(&argv[0], lost) && (argc < 2 || !is(&argv[1], lost)))
        return mute && losses ? -EIO : 0;
    assert_int_equal(mfs_store_exec(other, &cmd, 1), 0);
    mfs_cmds_fini(&cmd, 1);
    losses++;
    return -EIO;
}

static void begin(const char *command)
{
    lost = command;
    losses = 0;
    mfs_store_set_fault(a.store, lose, NULL);
}

static void end(int rc)
{
    mfs_store_set_fault(a.store, NULL, NULL);
    assert_int_equal(rc, -EIO);
    assert_int_equal(losses, 1);
}

/* --- what b knows ----------------------------------------------------------------------------- */

static void name_of(const char *prefix, char out[32])
{
    meta_name_at(&a, ROOT, PART, prefix, out, 32);
}

/* A file or directory by a that b knows under a lease. */
static uint64_t known(const char *name, mode_t type)
{
    struct mfs_attr attr;
    uint64_t ino;

    if (S_ISDIR(type))
        assert_int_equal(meta_client_mkdir(&a, ROOT, name, &ino), 0);
    else
        assert_int_equal(meta_client_file(&a, ROOT, name, &ino), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(meta_client_ino(&a, ROOT, name), ino);
        assert_int_equal(meta_client_ino(&b, ROOT, name), ino);
        assert_int_equal(mfs_meta_getattr_leased(b.meta, ino, &attr), 0);
    }
    return ino;
}

static struct mfs_attr seen_by_b(uint64_t ino)
{
    struct mfs_attr attr;

    assert_int_equal(mfs_meta_getattr_leased(b.meta, ino, &attr), 0);
    return attr;
}

/* --- content ---------------------------------------------------------------------------------- */

static uint64_t known_open(void)
{
    struct mfs_attr attr;
    char name[32];
    uint64_t ino;

    name_of("file", name);
    ino = known(name, S_IFREG);
    assert_int_equal(mfs_meta_open(b.meta, ino, NULL, &attr, NULL), 0);
    return ino;
}

static int commit_by_a(uint64_t ino)
{
    struct mfs_part part = {0, 4, "text"};
    struct mfs_commit c = {.end = 4, .mtime = mfs_clock_real(), .parts = &part, .nparts = 1};
    struct mfs_attr attr;

    return mfs_meta_commit(a.meta, ino, &c, NULL, &attr);
}

/* As close(2) does. */
static void content_changed(uint64_t ino, int rc, uint64_t size)
{
    end(rc);
    mfs_meta_settle(a.meta, ino);
    assert_int_equal(seen_by_b(ino).size, size);
    assert_int_equal(atomic_load(&told), seen_by_b(ino).version);
}

static void test_commit(void **state)
{
    uint64_t ino = known_open();

    (void)state;
    begin("mfs_commit");
    content_changed(ino, commit_by_a(ino), 4);
}

static void test_truncate(void **state)
{
    uint64_t ino = known_open();
    struct mfs_attr attr;

    (void)state;
    begin("mfs_truncate");
    content_changed(ino, mfs_meta_truncate(a.meta, ino, 9, 0, 0, NULL, &attr), 9);
}

static void test_open_truncated(void **state)
{
    uint64_t ino = known_open();
    struct mfs_attr attr;

    (void)state;
    assert_int_equal(commit_by_a(ino), 0);
    mfs_meta_settle(a.meta, ino);
    begin("mfs_open");
    content_changed(ino, mfs_meta_open(a.meta, ino, &(uint64_t){4}, &attr, NULL), 0);
}

static void test_append(void **state)
{
    uint64_t ino = known_open(), off, number;
    struct mfs_attr attr;

    (void)state;
    begin("mfs_append");
    content_changed(ino, mfs_meta_append(a.meta, ino, "xyz", 3, &off, &number, NULL, &attr), 3);
}

/* The partition does not answer what it is asked then, either: as soon as it does. */
static void test_told_later(void **state)
{
    uint64_t ino = known_open();

    (void)state;
    mute = true;
    begin("mfs_commit");
    end(commit_by_a(ino));
    mute = false;
    mfs_meta_settle(a.meta, ino);
    assert_int_equal(atomic_load(&told), 0);
    mfs_chores_tick(a.meta);
    assert_int_equal(seen_by_b(ino).size, 4);
    assert_int_equal(atomic_load(&told), seen_by_b(ino).version);
}

/* --- attributes and names --------------------------------------------------------------------- */

static void chmod_by_a(const char *prefix, mode_t type)
{
    struct mfs_attr attr = {.mode = type | 0700};
    char name[32];
    uint64_t ino;

    name_of(prefix, name);
    ino = known(name, type);
    begin("mfs_setattr");
    end(mfs_meta_setattr(a.meta, ino, MFS_SET_MODE, &attr));
    assert_int_equal(seen_by_b(ino).mode, type | 0700);
}

static void test_setattr(void **state)
{
    (void)state;
    chmod_by_a("file", S_IFREG);
    chmod_by_a("dir", S_IFDIR);
}

static void test_setxattr(void **state)
{
    char name[32];
    uint64_t ino;

    (void)state;
    name_of("file", name);
    ino = known(name, S_IFREG);
    begin("mfs_setxattr");
    end(mfs_meta_setxattr(a.meta, ino, "user.x", "1", 1, 0, false));
    assert_true(seen_by_b(ino).flags & MFS_ATTR_XATTR);
}

static void test_unlink(void **state)
{
    char name[32];

    (void)state;
    name_of("file", name);
    known(name, S_IFREG);
    begin("mfs_unlink");
    end(mfs_meta_unlink(a.meta, ROOT, name));
    assert_int_equal(meta_client_ino(&b, ROOT, name), -ENOENT);
    assert_int_equal(meta_client_keys(&a, "I*"), 1); /* the root: the file is freed */
}

/* b does not find it; true: it has asked for it, or done something else meanwhile. */
static bool asks(const char *absent)
{
    uint64_t before = meta_client_round_trips(&b);

    assert_int_equal(meta_client_ino(&b, ROOT, absent), -ENOENT);
    return meta_client_round_trips(&b) > before;
}

/* b knows all names of the shard. */
static void keep_shard(const char *absent)
{
    struct mfs_new new = {.mode = S_IFREG | 0644};
    struct mfs_attr attr;
    char name[32];
    bool created;

    name_of("first", name);
    assert_int_equal(mfs_meta_create_open(b.meta, ROOT, name, &new, true, &attr, &created), 0);
    assert_int_equal(mfs_meta_close(b.meta, attr.ino, false), 0);
    for (unsigned i = 0; asks(absent); i++)
        assert_true(i < 20);
}

static void test_create(void **state)
{
    char name[32];
    uint64_t ino;

    (void)state;
    name_of("new", name);
    keep_shard(name);
    begin("mfs_create");
    end(meta_client_file(&a, ROOT, name, &ino));
    assert_true(meta_client_ino(&b, ROOT, name) > 0);
}

static void add_link(uint32_t from, const char *function)
{
    char old[32], name[32];
    struct mfs_attr attr;
    uint64_t ino;

    meta_name_at(&a, ROOT, from, "old", old, sizeof old);
    name_of("new", name);
    keep_shard(name);
    ino = known(old, S_IFREG);
    begin(function);
    end(mfs_meta_link(a.meta, ino, ROOT, name, &attr));
    assert_int_equal(meta_client_ino(&b, ROOT, name), ino);
    assert_int_equal(seen_by_b(ino).nlink, 2);
}

static void test_link(void **state)
{
    (void)state;
    add_link(2, "mfs_put");
}

static void test_rename(void **state)
{
    char from[32], to[32];
    uint64_t ino;

    (void)state;
    meta_name_at(&a, ROOT, 2, "from", from, sizeof from);
    name_of("to", to);
    keep_shard(to);
    ino = known(from, S_IFREG);
    begin("mfs_rename_commit");
    end(mfs_meta_rename(a.meta, ROOT, from, ROOT, to, 0));
    assert_int_equal(meta_client_ino(&b, ROOT, to), ino);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_commit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_truncate, setup, teardown),
        cmocka_unit_test_setup_teardown(test_open_truncated, setup, teardown),
        cmocka_unit_test_setup_teardown(test_append, setup, teardown),
        cmocka_unit_test_setup_teardown(test_told_later, setup, teardown),
        cmocka_unit_test_setup_teardown(test_setattr, setup, teardown),
        cmocka_unit_test_setup_teardown(test_setxattr, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unlink, setup, teardown),
        cmocka_unit_test_setup_teardown(test_create, setup, teardown),
        cmocka_unit_test_setup_teardown(test_link, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rename, setup, teardown),
    };

    return cmocka_run_group_tests(tests, meta_redis_start, meta_redis_stop);
}
