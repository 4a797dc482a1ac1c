/* memefs fsck finds every kind of damage, and nothing else; mends it; and leaves the rest as it
 * was. Damage is done by commands to the partitions, as no client would do it.
 * ctest: timeout=200 waits long=30 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/text.h"
#include "fsck/fsck.h"
#include "fsck/tidy.h"
#include "fsck_damage.h"
#include "fsck_world.h"

#define MANY 1500

static struct mfs_fsck_report *fsck(bool mend)
{
    struct mfs_fsck_opts opts = {.mend = mend, .pause = MFS_MSEC};
    struct mfs_fsck_report *r = NULL;
    struct mfs_err err;

    if (mfs_fsck_run(fsck_client.store, &opts, &r, &err))
        fail_msg("%s", err.msg);
    return r;
}

static int by_kind(const void *x, const void *y)
{
    return strcmp(((const struct mfs_fsck_finding *)x)->kind,
                  ((const struct mfs_fsck_finding *)y)->kind);
}

static void print(const struct mfs_fsck_report *r)
{
    for (size_t i = 0; i < r->n; i++)
        print_message("  %s ino %llx part %u path %s: %s (%d %s)\n", r->findings[i].kind,
                      (unsigned long long)r->findings[i].ino, r->findings[i].part,
                      r->findings[i].path, r->findings[i].text, r->findings[i].state,
                      r->findings[i].why);
}

static void expect_kinds(const struct mfs_fsck_report *r, const char *kinds, const char *name)
{
    char have[1024] = "";
    size_t len = 0;

    if (r->n > 1)
        qsort(r->findings, r->n, sizeof *r->findings, by_kind);
    for (size_t i = 0; i < r->n; i++) {
        assert_int_equal(mfs_text_format(have + len, sizeof have - len, "%s%s", i ? " " : "",
                                         r->findings[i].kind),
                         0);
        len += strlen(have + len);
    }
    if (strcmp(have, kinds) == 0)
        return;
    print(r);
    fail_msg("%s: found \"%s\", not \"%s\"", name, have, kinds);
}

static void test_clean(void **state)
{
    struct mfs_fsck_report *r = fsck(false);
    struct mfs_attr attr;

    (void)state;
    expect_kinds(r, "", "nothing");
    assert_int_equal(r->passes, 1);
    assert_int_equal(r->inodes, 10);
    assert_int_equal(r->names, 10);
    assert_int_equal(r->stripes, 5);
    mfs_fsck_report_free(r);
    assert_int_equal(mfs_meta_open(fsck_client.meta, fsck_tree.f, NULL, &attr, NULL),
                     0); /* by who lives */
    assert_int_equal(mfs_meta_unlink(fsck_client.meta, fsck_tree.d, "f"), 0);
    r = fsck(true);
    expect_kinds(r, "", "an orphan");
    mfs_fsck_report_free(r);
    fsck_check_content(fsck_tree.f, 3 * STRIPE);
    assert_int_equal(mfs_meta_close(fsck_client.meta, fsck_tree.f, true), 0);
}

/* Numbers of which a partition has given out more than doubles hold (base/ino.h) do in all
 * respects. */
static void test_large_numbers(void **state)
{
    struct mfs_fsck_report *r = fsck(false);
    struct mfs_meta_space space;
    struct mfs_attr attr;
    uint64_t ino;

    (void)state;
    assert_true(fsck_tree.d >= 1ULL << 52 || fsck_tree.b >= 1ULL << 52);
    expect_kinds(r, "", "nothing");
    mfs_fsck_report_free(r);
    assert_int_equal(mfs_meta_rename(fsck_client.meta, fsck_tree.d, "f", fsck_tree.b, "f", 0), 0);
    assert_int_equal(mfs_meta_rename(fsck_client.meta, ROOT, "n", fsck_tree.x, "y", 0), 0);
    assert_int_equal(mfs_meta_rmdir(fsck_client.meta, fsck_tree.d, "e"), 0);
    assert_int_equal(mfs_meta_unlink(fsck_client.meta, fsck_tree.d, "g"), 0);
    assert_int_equal(mfs_meta_lookup(fsck_client.meta, fsck_tree.d, "h", &attr), 0);
    assert_true(attr.ino == fsck_tree.g && attr.nlink == 1);
    assert_int_equal(mfs_meta_unlink(fsck_client.meta, fsck_tree.d, "h"), 0);
    for (unsigned i = 0; i < 40; i++) {
        char name[8];

        assert_int_equal(mfs_text_format(name, sizeof name, "%u", i), 0);
        assert_int_equal(meta_client_file(&fsck_client, fsck_tree.b, name, &ino), 0);
    }
    assert_true(ino & MFS_INO_LARGE);
    fsck_check_content(fsck_tree.f, 3 * STRIPE);
    fsck_world_flush();
    r = fsck(false);
    expect_kinds(r, "", "what was done");
    mfs_fsck_report_free(r);
    fsck_world_order("SET #seq 7");
    r = fsck(true);
    expect_kinds(r, "low-sequence low-sequence low-sequence low-sequence", "numbers go back");
    assert_int_equal(r->left, 0);
    assert_int_equal(mfs_meta_statfs(fsck_client.meta, &space), 0);
    assert_int_equal(space.files, r->inodes); /* which df -i shows */
    mfs_fsck_report_free(r);
    assert_int_equal(meta_client_file(&fsck_client, fsck_tree.b, "new", &ino), 0);
    assert_true(ino & MFS_INO_LARGE);
    fsck_world_order("SET #seq 140737488355327"); /* 2^47 - 1, the last one */
    assert_int_equal(meta_client_file(&fsck_client, fsck_tree.b, "none", &ino), -ENOSPC);
    fsck_world_order("SET #seq 99999999999999999999");
    assert_int_equal(meta_client_file(&fsck_client, fsck_tree.b, "none", &ino), -ENOSPC);
}

static void neighbours(void)
{
    struct mfs_attr attr;

    assert_int_equal(at(ROOT, "n"), fsck_tree.n);
    assert_int_equal(mfs_meta_getattr(fsck_client.meta, fsck_tree.n, &attr), 0);
    assert_int_equal(attr.size, 2 * STRIPE);
    assert_int_equal(attr.nlink, 1);
    fsck_check_content(fsck_tree.n, 2 * STRIPE);
    fsck_check_content(fsck_tree.f, 3 * STRIPE);
    assert_int_equal(mfs_meta_getattr(fsck_client.meta, fsck_tree.y, &attr), 0);
}

static void do_damage(const struct fsck_damage *d)
{
    struct mfs_fsck_report *r;

    d->plant();
    for (int i = 0; i < 2; i++) { /* looking changes nothing */
        r = fsck(false);
        expect_kinds(r, d->found, d->name);
        assert_int_equal(r->left, r->n);
        mfs_fsck_report_free(r);
    }
    r = fsck(true);
    if (r->left != d->left) {
        print(r);
        fail_msg("%s: %zu left", d->name, r->left);
    }
    mfs_fsck_report_free(r);
    r = fsck(false);
    expect_kinds(r, d->left ? d->found : "", d->name);
    mfs_fsck_report_free(r);
    neighbours();
    if (d->mended)
        d->mended();
    r = fsck(false);
    expect_kinds(r, d->left ? d->found : "", d->name);
    mfs_fsck_report_free(r);
}

static void test_damage(void **state)
{
    const char *only = getenv("MFS_ONLY");

    for (size_t i = 0; i < fsck_ndamages; i++) {
        if (only && strcmp(only, fsck_damages[i].name) != 0)
            continue;
        do_damage(&fsck_damages[i]);
        fsck_world_teardown(state);
        assert_int_equal(fsck_world_setup(state), 0);
    }
}

/* What housekeeping's search ends, and what it leaves exactly as it is: all that a stopped client
 * may be about to do itself, and what is for people. */
static bool is_tidied(const char *found)
{
    static const char *const others[] = {"nameless",  "links-too", "dangling", "type",
                                         "misplaced", "missing",   "shard",    "tomb",
                                         "parent",    "names",     "cycle",    "too-long",
                                         "expiry",    "low",       "bad",      "no-root"};

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strstr(found, others[i]))
            return false;
    return true;
}

/* In slices of the inodes, or all at once. There is no memory meanwhile: what is cleared away may
 * be what it is wanted for. */
static void tidy(const char *name, uint64_t memory)
{
    struct mfs_tidy_opts opts = {.memory = memory, .pause = MFS_MSEC, .interval = 3600 * MFS_SEC};
    struct mfs_tidy *t;
    const uint64_t dead = NOBODY + NPARTS;
    int rc = -EAGAIN;

    assert_int_equal(mfs_tidy_start(&t, fsck_client.store, fsck_client.meta, &opts), 0);
    RAW(dead % NPARTS, TEXT("SADD"), TEXT("#sessions"), number(dead));
    fsck_world_order("CONFIG SET maxmemory 1");
    for (int i = 0; i < 3 && rc == -EAGAIN; i++)
        rc = mfs_tidy_once(t);
    fsck_world_order("CONFIG SET maxmemory 0");
    if (rc != 1)
        fail_msg("%s: a search: %d", name, rc);
    assert_int_equal(mfs_tidy_once(t), 0); /* nobody is dead any more */
    mfs_tidy_stop(t);
}

static void test_tidy(void **state)
{
    for (size_t i = 0; i < fsck_ndamages; i++) {
        const struct fsck_damage *d = &fsck_damages[i];
        bool tidied = is_tidied(d->found);
        struct mfs_fsck_report *r;

        if (!tidied && strstr(d->found, "directory-links"))
            continue; /* a part of it is */
        d->plant();
        tidy(d->name, i % 2 ? 2000 : 0);
        r = fsck(false);
        expect_kinds(r, tidied ? "" : d->found, d->name);
        mfs_fsck_report_free(r);
        if (tidied) /* a stripe that is too long can't be read */
            neighbours();
        if (tidied && d->mended)
            d->mended();
        fsck_world_teardown(state);
        assert_int_equal(fsck_world_setup(state), 0);
    }
}

/* All at once: each is found, whatever else is wrong. */
static void test_together(void **state)
{
    static const char *const names[] = {"dangling name", "too many links",         "missing bit",
                                        "lost stripes",  "stripes beyond the end", "lost keys",
                                        "stale seal",    "nameless, with data"};
    struct mfs_fsck_report *r;

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        fsck_damage_named(names[i])->plant();
    r = fsck(false);
    expect_kinds(
        r,
        "dangling-name links-too-many lost-key lost-key lost-key lost-key lost-key lost-stripes "
        "missing-bit nameless-inode stale-seal stripes-beyond-end",
        "together");
    mfs_fsck_report_free(r);
    r = fsck(true);
    assert_int_equal(r->left, 0);
    mfs_fsck_report_free(r);
    fsck_damage_named("nameless, with data")->mended();
    neighbours();
}

static void test_paths(void **state)
{
    struct mfs_fsck_report *r;

    (void)state;
    fsck_damage_named("too many links")->plant();
    fsck_damage_named("dangling name")->plant();
    r = fsck(false);
    expect_kinds(r, "dangling-name links-too-many", "paths");
    assert_string_equal(r->findings[0].path, "/d/gone");
    assert_true(!strcmp(r->findings[1].path, "/d/g") || !strcmp(r->findings[1].path, "/d/h"));
    assert_int_equal(r->findings[1].ino, fsck_tree.g);
    assert_int_equal(r->findings[1].part, home(fsck_tree.g));
    assert_true(r->findings[1].leak);
    assert_false(r->findings[0].leak);
    mfs_fsck_report_free(r);
}

/* Shards that no answer holds as a whole. */
static void test_large_directory(void **state)
{
    struct mfs_fsck_report *r;
    char name[16];

    (void)state;
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "m%d", i);
        assert_int_equal(meta_client_file(&fsck_client, fsck_tree.b, name, NULL), 0);
    }
    r = fsck(false);
    expect_kinds(r, "", "many names");
    assert_int_equal(r->names, 10 + MANY);
    mfs_fsck_report_free(r);
    set_entry(fsck_tree.b, "m700", nobody_at(3), S_IFREG);
    r = fsck(true);
    assert_int_equal(r->left, 0);
    mfs_fsck_report_free(r);
    assert_int_equal(at(fsck_tree.b, "m700"), -ENOENT);
    assert_int_equal(at(fsck_tree.b, "m701") > 0, 1);
}

static bool is(const char *command, uint32_t part, const struct mfs_arg *argv)
{
    return part == 0 && argv[0].len == strlen(command) && !memcmp(argv[0].p, command, argv[0].len);
}

static void set_ctime(unsigned n)
{
    char b[MFS_TIME_LEN] = {(char)n};

    patch(fsck_tree.f, "80", b, sizeof b);
}

/* Each pass misses the name, which is moved from where it is yet to come to where it has been: of
 * every other one before it reads the inode's new time, else after that. And a file is created when
 * the first pass has looked for its inode, and removed when the second has seen its stripes. */
static int change_meanwhile(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    unsigned *passes = arg;
    const uint64_t ino = nobody_at(1);

    (void)argc;
    if (is("mfs_scan", part, argv) && argv[1].len == 0) { /* nothing has been read yet */
        drop_entry(fsck_tree.d, "f");
        if (++*passes % 2 == 1)
            set_ctime(*passes);
        if (*passes == 1)
            fsck_damage_named("lost stripes")->plant();
    } else if (is("SSCAN", part, argv)) { /* all keys have been read */
        set_entry(fsck_tree.d, "f", fsck_tree.f, S_IFREG);
        if (*passes % 2 == 0)
            set_ctime(*passes);
        for (uint32_t n = 0; *passes == 2 && n < 40; n += 13)
            RAW(mfs_placement_stripe(ino, n, NPARTS), TEXT("DEL"), stripe(ino, n));
    }
    return 0;
}

static void test_change_in_each_pass(void **state)
{
    struct mfs_fsck_report *r;
    unsigned passes = 0;

    (void)state;
    mfs_store_set_fault(fsck_client.store, change_meanwhile, &passes);
    r = fsck(false);
    mfs_store_set_fault(fsck_client.store, NULL, NULL);
    expect_kinds(r, "", "changes in each pass");
    assert_true(r->passes > 2 && r->passes == passes);
    mfs_fsck_report_free(r);
    neighbours();
}

/* Of a partition whose data are lost nothing is mended: everything would look wrong. */
static void test_lost_partition(void **state)
{
    struct mfs_fsck_opts opts = {.mend = true, .pause = MFS_MSEC};
    struct mfs_fsck_report *r;
    struct mfs_err err;

    (void)state;
    RAW(2, TEXT("DEL"), TEXT("#super"));
    assert_int_equal(mfs_fsck_run(fsck_client.store, &opts, &r, &err), -EINVAL);
    assert_null(r);
    assert_non_null(strstr(err.msg, "partition 2"));
    neighbours();
}

/* A cursor is of one process. */
static void test_scan_of_another_process(void **state)
{
    static const char other[8] = "another";
    const struct mfs_arg argv[] = {TEXT("mfs_scan"), BYTES(other), TEXT("0"), TEXT("10")};
    const struct mfs_arg odd[] = {TEXT("mfs_scan"), TEXT(""), TEXT("x"), TEXT("10")};
    struct mfs_cmd cmd = {.argv = argv, .argc = 4};

    (void)state;
    assert_int_equal(mfs_store_exec(fsck_client.store, &cmd, 1), -ECANCELED);
    mfs_cmds_fini(&cmd, 1);
    cmd = (struct mfs_cmd){.argv = odd, .argc = 4};
    assert_int_equal(mfs_store_exec(fsck_client.store, &cmd, 1), -EINVAL);
    mfs_cmds_fini(&cmd, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_clean, fsck_world_setup, fsck_world_teardown),
        cmocka_unit_test_setup_teardown(test_large_numbers, fsck_world_setup_large,
                                        fsck_world_teardown),
        cmocka_unit_test_setup_teardown(test_paths, fsck_world_setup, fsck_world_teardown),
        cmocka_unit_test_setup_teardown(test_damage, fsck_world_setup, fsck_world_teardown),
        cmocka_unit_test_setup_teardown(test_tidy, fsck_world_setup, fsck_world_teardown),
        cmocka_unit_test_setup_teardown(test_together, fsck_world_setup, fsck_world_teardown),
        cmocka_unit_test_setup_teardown(test_large_directory, fsck_world_setup,
                                        fsck_world_teardown),
        cmocka_unit_test_setup_teardown(test_change_in_each_pass, fsck_world_setup,
                                        fsck_world_teardown),
        cmocka_unit_test_setup_teardown(test_lost_partition, fsck_world_setup, fsck_world_teardown),
        cmocka_unit_test_setup_teardown(test_scan_of_another_process, fsck_world_setup,
                                        fsck_world_teardown),
    };

    return cmocka_run_group_tests(tests, fsck_redis_start, fsck_redis_stop);
}
