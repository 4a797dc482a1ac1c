/* Single changes of which the answer was lost (renames: test_meta_unknown_rename.c): who has the
 * file open, or knows it or its names under leases, shows it as it is as soon as the call has
 * failed. */
#include "unknown_outcomes_test.h"

#include "meta/deferred/deferred.h"

/* --- content ---------------------------------------------------------------------------------- */

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
    content_changed(ino, mfs_meta_open(a.meta, ino, &(struct mfs_cut){.trimmed = 4}, &attr, NULL),
                    0);
}

static void test_append(void **state)
{
    uint64_t ino = known_open(), off, number;
    struct mfs_attr attr;

    (void)state;
    begin("mfs_append");
    content_changed(ino, mfs_meta_append(a.meta, ino, "xyz", 3, 0, &off, &number, NULL, &attr), 3);
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
    mfs_chores_all(a.meta);
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
    end(mfs_meta_setattr(a.meta, ino, MFS_SET_MODE, &attr, NULL));
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
    end(mfs_meta_setxattr(a.meta, ino, "user.x", "1", 1, 0, false, NULL));
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

/* --- who is to be told ------------------------------------------------------------------------ */

/* A file whose home is elsewhere, that b knows under leases. */
static uint64_t known_elsewhere(const char *name)
{
    struct mfs_attr attr;
    char first[32];
    uint64_t ino, before;

    meta_name_at(&a, ROOT, 3, "first", first, sizeof first);
    assert_int_equal(meta_client_file(&a, ROOT, first, &ino), 0);
    assert_int_equal(mfs_meta_rename(a.meta, ROOT, first, ROOT, name, 0), 0);
    assert_int_equal(meta_client_ino(&b, ROOT, name), ino);
    before = meta_client_round_trips(&b);
    assert_int_equal(mfs_meta_lookup(b.meta, ROOT, name, &attr), 0);
    assert_int_equal(meta_client_round_trips(&b), before);
    return ino;
}

/* The rename has happened, and a does not learn whom to tell. */
static void rename_in_the_dark(const char *from, const char *to, const char *command)
{
    begin(command);
    assert_int_equal(mfs_meta_rename(a.meta, ROOT, from, ROOT, to, 0), 0);
    mfs_store_set_fault(a.store, NULL, NULL);
    assert_int_equal(losses, 1);
}

static void test_rename_moved(void **state)
{
    char from[32], to[32];
    uint64_t ino;

    (void)state;
    meta_name_at(&a, ROOT, 2, "from", from, sizeof from);
    name_of("to", to);
    ino = known_elsewhere(from);
    rename_in_the_dark(from, to, "mfs_ctime");
    assert_int_equal(meta_client_ino(&b, ROOT, from), -ENOENT);
    assert_int_equal(meta_client_ino(&b, ROOT, to), ino);
}

/* b has what is replaced open, which only b knows. */
static void test_rename_replaced(void **state)
{
    struct mfs_new new = {.mode = S_IFLNK | 0777, .target = "elsewhere"};
    struct mfs_attr attr;
    char from[32], to[32];
    uint64_t ino, before;

    (void)state;
    meta_name_at(&a, ROOT, 2, "from", from, sizeof from);
    name_of("to", to);
    assert_int_equal(mfs_meta_mknod(a.meta, ROOT, from, &new, &attr), 0);
    ino = known_elsewhere(to);
    before = meta_client_round_trips(&b);
    assert_int_equal(mfs_meta_open(b.meta, ino, NULL, &attr, NULL), 0);
    assert_int_equal(meta_client_round_trips(&b), before);
    rename_in_the_dark(from, to, "mfs_unref");
    assert_int_equal(mfs_meta_getattr(b.meta, ino, &attr), 0);
    assert_int_equal(mfs_meta_close(b.meta, ino, true), 0);
    assert_int_equal(mfs_meta_getattr(b.meta, ino, &attr), -ESTALE);
}

/* a's partitions answer nothing more, for a while. */
static void end_deaf(int rc)
{
    end(rc);
    mute = false;
    mfs_chores_all(a.meta);
}

static void test_create_later(void **state)
{
    char name[32];
    uint64_t ino;

    (void)state;
    name_of("new", name);
    keep_shard(name);
    mute = true;
    begin("mfs_create");
    end_deaf(meta_client_file(&a, ROOT, name, &ino));
    assert_true(meta_client_ino(&b, ROOT, name) > 0);
}

static void test_rename_later(void **state)
{
    char from[32], to[32];
    uint64_t ino;

    (void)state;
    name_of("from", from);
    name_of("to", to);
    ino = known(from, S_IFREG);
    mute = true;
    begin("mfs_rename");
    end_deaf(mfs_meta_rename(a.meta, ROOT, from, ROOT, to, 0));
    assert_int_equal(meta_client_ino(&b, ROOT, from), -ENOENT);
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
        cmocka_unit_test_setup_teardown(test_rename_moved, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rename_replaced, setup, teardown),
        cmocka_unit_test_setup_teardown(test_create_later, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rename_later, setup, teardown),
    };

    return cmocka_run_group_tests(tests, meta_redis_start, meta_redis_stop);
}
