/* A client that is stopped in the middle of an operation, which others end, and goes on late.
 * ctest: waits */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "meta_test.h"

#include "meta/cache/cache.h"
#include "meta/call.h"
#include "meta/deferred/deferred.h"
#include "meta/txn/txn.h"

/* Longer than housekeeping trusts outcomes for (link_counts.c). */
#define LONG (20 * INT64_C(3600)) /* s */

/* What others do just before a sends a command; once. */
static struct {
    const char *command;
    size_t txn; /* which of its words is the transaction that it decides; 0: none */
    void (*others)(const char *txn, uint32_t part);
    pthread_t thread;
    bool met;
} cut;

static bool is_word(const struct mfs_arg *arg, const char *word)
{
    return arg->len == strlen(word) && !memcmp(arg->p, word, arg->len);
}

static int interrupt(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    const struct mfs_arg *word = &argv[0];

    (void)arg;
    if (!pthread_equal(pthread_self(), cut.thread) || cut.met || !is_word(word, cut.command))
        return 0;
    cut.met = true;
    assert_true(cut.txn < argc);
    assert_true(!cut.txn || argv[cut.txn].len == MFS_TXN_LEN);
    cut.others(cut.txn ? argv[cut.txn].p : NULL, part);
    return 0;
}

static void cut_before(const char *command, size_t txn, void (*others)(const char *, uint32_t))
{
    cut.command = command;
    cut.txn = txn;
    cut.others = others;
    cut.thread = pthread_self();
    cut.met = false;
    mfs_store_set_fault(a.store, interrupt, NULL);
}

static void was_cut(void)
{
    mfs_store_set_fault(a.store, NULL, NULL);
    assert_true(cut.met);
}

/* Runs a command of redis' with the key of the outcome. */
static int64_t outcome(const char *command, const char *txn, uint32_t part)
{
    char key[1 + MFS_TXN_LEN] = {'T'};
    struct mfs_call c;
    int64_t n;

    memcpy(key + 1, txn, MFS_TXN_LEN);
    mfs_call_command(&c, command);
    mfs_args_bin(&c.args, key, sizeof key);
    assert_int_equal(mfs_call_run(b.meta, &c, part), 0);
    n = mfs_reply_int(c.cmd.reply);
    mfs_call_fini(&c);
    return n;
}

/* That it was aborted is known for longer than anybody is stopped, or he would go on as if it were
 * not. */
static void end_it(const char *txn, uint32_t part)
{
    assert_int_equal(mfs_txn_abort(b.meta, txn, part), 0);
    assert_true(outcome("TTL", txn, part) > LONG);
}

static void test_aborted_is_remembered(void **state)
{
    uint64_t d = new_dir(ROOT, "d"), f;
    char name[16], other[16], elsewhere[16];
    struct mfs_attr attr;

    (void)state;
    meta_name_at(&a, d, 1, "f", name, sizeof name);
    meta_name_at(&a, d, 2, "g", other, sizeof other);
    meta_name_at(&a, d, 3, "h", elsewhere, sizeof elsewhere);
    f = new_file(d, name);
    cut_before("mfs_rename_commit", 8, end_it);
    assert_int_equal(mfs_meta_rename(a.meta, d, name, d, other, 0), 0);
    was_cut();
    cut_before("mfs_put", 5, end_it);
    assert_int_equal(mfs_meta_link(a.meta, f, d, elsewhere, &attr), 0);
    was_cut();
    assert_int_equal(mfs_meta_unlink(a.meta, d, other), 0);
    assert_int_equal(mfs_meta_unlink(a.meta, d, elsewhere), 0);
    cut_before("mfs_rmdir_commit", 4, end_it);
    assert_int_equal(mfs_meta_rmdir(a.meta, ROOT, "d"), 0);
    was_cut();
}

/* --- so late that nothing is remembered ------------------------------------------------------- */

#define LATE (500 * MFS_MSEC)

static struct {
    uint64_t dir; /* "d" in the root */
    uint32_t home;
    char name[16]; /* of a file in it */
} late;

static int setup_late(void **state)
{
    int rc = setup(state);

    a.meta->limits.step_max_age = LATE;
    b.meta->limits.others_wait = 2 * MFS_MSEC;
    b.meta->limits.intent_seconds = -1;
    b.meta->limits.chores_ms = 1;
    mfs_ticker_stop(&b.meta->chores_ticker); /* only when we say so */
    late.dir = new_dir(ROOT, "d");
    late.home = mfs_placement_home(late.dir);
    return rc;
}

static void oversleep(const char *txn, uint32_t part)
{
    assert_int_equal(outcome("DEL", txn, part), 1);
    mfs_clock_sleep(2 * LATE);
}

static void name_at(uint64_t in, uint64_t part, const char *prefix, char out[16])
{
    meta_name_at(&a, in, (uint32_t)part % NPARTS, prefix, out, 16);
}

static void fill(const char *txn, uint32_t part)
{
    assert_int_equal(meta_client_file(&b, late.dir, late.name, NULL), 0);
    oversleep(txn, part);
}

/* Others have ended the removal and filled the directory. */
static void test_rmdir(void **state)
{
    (void)state;
    name_at(late.dir, late.home + 1, "f", late.name);
    new_file(late.dir, late.name); /* it has two shards */
    assert_int_equal(mfs_meta_unlink(a.meta, late.dir, late.name), 0);
    cut_before("mfs_rmdir_commit", 4, fill);
    assert_int_equal(mfs_meta_rmdir(a.meta, ROOT, "d"), -ENOTEMPTY);
    was_cut();
    assert_int_equal(meta_client_ino(&b, ROOT, "d"), late.dir);
    assert_true(meta_client_ino(&b, late.dir, late.name) > 0);
    assert_int_equal(meta_client_file(&b, late.dir, "more", NULL), 0);
}

static void undo_rename(const char *txn, uint32_t part)
{
    assert_int_equal(mfs_intent_end_of(b.meta, late.dir, late.name, txn), 0);
    oversleep(txn, part);
}

/* A file, and a name for it that another partition has. */
static uint64_t new_file_and_name(char other[16])
{
    name_at(late.dir, late.home, "f", late.name);
    name_at(late.dir, late.home + 1, "f", other);
    return new_file(late.dir, late.name);
}

/* Others have taken the intent out. */
static void test_rename(void **state)
{
    char other[16];
    uint64_t f = new_file_and_name(other);

    (void)state;
    cut_before("mfs_rename_commit", 8, undo_rename);
    assert_int_equal(mfs_meta_rename(a.meta, late.dir, late.name, late.dir, other, 0), 0);
    was_cut();
    assert_int_equal(meta_client_ino(&b, late.dir, late.name), -ENOENT);
    assert_int_equal(meta_client_ino(&b, late.dir, other), f);
}

static void keep_house(const char *txn, uint32_t part)
{
    mfs_clock_sleep(3 * MFS_MSEC);
    mfs_chores_all(b.meta);
    oversleep(txn, part);
}

/* Others have counted the name less that had not come. */
static void test_link(void **state)
{
    struct mfs_attr attr;
    char other[16];
    uint64_t f = new_file_and_name(other);

    (void)state;
    cut_before("mfs_put", 5, keep_house);
    assert_int_equal(mfs_meta_link(a.meta, f, late.dir, other, &attr), 0);
    was_cut();
    assert_int_equal(meta_client_ino(&b, late.dir, other), f);
    assert_int_equal(getattr(&b, f).nlink, 2);
}

/* The directory is removed, its tombstones are gone as well. */
static void remove_it(const char *txn, uint32_t part)
{
    char key[MFS_KEY_INO_LEN];

    (void)txn;
    (void)part;
    assert_int_equal(mfs_meta_rmdir(b.meta, ROOT, "d"), 0);
    settle();
    mfs_key_ino(key, 'D', late.dir);
    for (uint32_t p = 0; p < NPARTS; p++) {
        struct mfs_call c;

        mfs_call_command(&c, "DEL");
        mfs_args_bin(&c.args, key, sizeof key);
        assert_int_equal(mfs_call_run(b.meta, &c, p), 0);
        mfs_call_fini(&c);
    }
    mfs_dircache_drop(a.meta->dirs, late.dir);
    mfs_clock_sleep(2 * LATE);
}

static int create(uint64_t ino, const char *from, const char *to)
{
    (void)ino;
    (void)from;
    return meta_client_file(&a, late.dir, to, NULL);
}

static int add_link(uint64_t ino, const char *from, const char *to)
{
    struct mfs_attr attr;

    (void)from;
    return mfs_meta_link(a.meta, ino, late.dir, to, &attr);
}

static int move(uint64_t ino, const char *from, const char *to)
{
    (void)ino;
    return mfs_meta_rename(a.meta, ROOT, from, late.dir, to, 0);
}

static const struct {
    const char *command;
    int (*run)(uint64_t ino, const char *from, const char *to);
    uint32_t far; /* how many partitions from the new name's the old one is */
} ways[] = {{"mfs_create", create, 0},
            {"mfs_link", add_link, 0},
            {"mfs_put", add_link, 1},
            {"mfs_rename", move, 0},
            {"mfs_rename_commit", move, 1}};

/* Nothing comes into it any more. */
static void test_new_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char from[16], to[16];
        uint64_t f;

        name_at(late.dir, late.home + 1, "x", to);
        name_at(ROOT, late.home + 1 + ways[i].far, "f", from);
        f = new_file(ROOT, from);
        cut_before(ways[i].command, 0, remove_it);
        assert_int_equal(ways[i].run(f, from, to), -ENOENT);
        was_cut();
        mfs_clock_sleep(3 * MFS_MSEC);
        mfs_chores_all(b.meta); /* of a link counts are to follow */
        assert_int_equal(meta_client_ino(&b, ROOT, from), f);
        assert_int_equal(getattr(&b, f).nlink, 1);
        assert_int_equal(meta_client_keys(&b, "I*"), 2);
        assert_int_equal(meta_client_keys(&b, "D*"), 1);
        assert_int_equal(mfs_meta_unlink(a.meta, ROOT, from), 0);
        late.dir = new_dir(ROOT, "d");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_aborted_is_remembered, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rmdir, setup_late, teardown),
        cmocka_unit_test_setup_teardown(test_rename, setup_late, teardown),
        cmocka_unit_test_setup_teardown(test_link, setup_late, teardown),
        cmocka_unit_test_setup_teardown(test_new_names, setup_late, teardown),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
