/* A client that is stopped in the middle of an operation, which others end, and goes on late. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "meta_test.h"

/* Longer than housekeeping trusts outcomes for (debts.c). */
#define LONG (20 * INT64_C(3600)) /* s */

/* What others do just before a sends a command that decides its transaction; once. */
static struct {
    const char *command;
    size_t txn; /* which of its words that is */
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
    (void)arg;
    if (!pthread_equal(pthread_self(), cut.thread) || cut.met || argc <= cut.txn ||
        !is_word(&argv[1], cut.command))
        return 0;
    cut.met = true;
    assert_int_equal(argv[cut.txn].len, MFS_TXN_LEN);
    cut.others(argv[cut.txn].p, part);
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
    cut_before("mfs_rename_commit", 10, end_it);
    assert_int_equal(mfs_meta_rename(a.meta, d, name, d, other, 0), 0);
    was_cut();
    cut_before("mfs_put", 7, end_it);
    assert_int_equal(mfs_meta_link(a.meta, f, d, elsewhere, &attr), 0);
    was_cut();
    assert_int_equal(mfs_meta_unlink(a.meta, d, other), 0);
    assert_int_equal(mfs_meta_unlink(a.meta, d, elsewhere), 0);
    cut_before("mfs_rmdir_commit", 6, end_it);
    assert_int_equal(mfs_meta_rmdir(a.meta, ROOT, "d"), 0);
    was_cut();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_aborted_is_remembered, setup, teardown),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
