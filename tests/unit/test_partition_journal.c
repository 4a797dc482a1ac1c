/* What a process takes up from the journal of the one before it is what was there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "cluster/placement.h"
#include "meta_fixture.h"
#include "partition/protocol.h"
#include "partition/span.h"
#include "store/admin/admin.h"
#include "store/args.h"
#include "store/reply.h"

#define STRIPE 65536
#define MANY   3000 /* names in a directory, so that its shard is a large hash */

static struct redis_fixture *redis;
static struct meta_client a;

static int start_all(void **state)
{
    (void)state;
    mfs_log_set_level(MFS_LOG_ERROR);
    return redis_fixture_start(
        &redis, &(struct redis_fixture_opts){.nparts = 1, .stripe_size = STRIPE, .journal = true});
}

static int stop_all(void **state)
{
    (void)state;
    redis_fixture_stop(redis);
    return 0;
}

static int setup(void **state)
{
    (void)state;
    return redis_fixture_reset(redis) || meta_client_start(&a, redis, 0);
}

static int teardown(void **state)
{
    (void)state;
    if (a.meta)
        meta_client_stop(&a);
    return 0;
}

static struct mfs_admin *admin_open(void)
{
    char path[108];
    struct mfs_admin *admin;
    struct mfs_err err;

    redis_fixture_socket(redis, 0, path, sizeof path);
    if (mfs_admin_open(&admin, path, NULL, 0, REDIS_FIXTURE_ADMIN_PASSWORD, 10 * MFS_SEC, &err))
        fail_msg("%s", err.msg);
    return admin;
}

/* A command of up to three words; its reply is freed by mfs_cmds_fini. */
static struct mfs_cmd call(struct mfs_admin *admin, const char *one, const char *two,
                           struct mfs_span three)
{
    struct mfs_args args;
    struct mfs_cmd cmd;
    struct mfs_err err;

    mfs_args_init(&args, one);
    if (two)
        mfs_args_str(&args, two);
    if (three.p)
        mfs_args_bin(&args, three.p, three.n);
    cmd = mfs_args_cmd(&args, 0);
    if (mfs_admin_call(admin, &cmd, &err))
        fail_msg("%s", err.msg);
    return cmd;
}

static int by_text(const void *x, const void *y)
{
    return strcmp(*(char *const *)x, *(char *const *)y);
}

/* Whether it may be gone before the process that died has its successor, as what says that
 * housekeeping was done: on a busy machine that takes a while. */
static bool ends_soon(struct mfs_admin *admin, struct mfs_span key)
{
    struct mfs_cmd ends = call(admin, "PEXPIRETIME", NULL, key);
    long long ms = mfs_reply_int(ends.reply);

    mfs_cmds_fini(&ends, 1);
    return ms == -2 || (ms > 0 && ms < (mfs_clock_real().tv_sec + 60) * 1000LL);
}

/* Which a death makes more, where the process had stripes. */
static bool is_losses(struct mfs_span key)
{
    return key.n == sizeof MFS_LOSSES_KEY - 1 && !memcmp(key.p, MFS_LOSSES_KEY, key.n);
}

static uint64_t losses(void)
{
    struct mfs_admin *admin = admin_open();
    struct mfs_err err;
    uint64_t n;

    if (mfs_admin_losses(admin, &n, &err))
        fail_msg("%s", err.msg);
    mfs_admin_close(admin);
    return n;
}

/* A line for the key: its name, when it ends, and a digest of what it holds. */
static char *describe(struct mfs_admin *admin, struct mfs_span key)
{
    struct mfs_cmd ends = call(admin, "PEXPIRETIME", NULL, key), what;
    char *line = malloc(400), name[80] = "";
    const char *digest = "";

    for (size_t i = 0; i < key.n && i < 30; i++)
        snprintf(name + 2 * i, sizeof name - 2 * i, "%02x", (unsigned char)key.p[i]);
    what = call(admin, "DEBUG", "DIGEST-VALUE", key);
    if (mfs_reply_type(what.reply) == MFS_REPLY_ARRAY)
        digest = mfs_reply_str(mfs_reply_at(what.reply, 0), NULL);
    snprintf(line, 400, "%s ends %lld: %s", name, (long long)mfs_reply_int(ends.reply),
             digest ? digest : "?");
    mfs_cmds_fini(&ends, 1);
    mfs_cmds_fini(&what, 1);
    return line;
}

/* All that the process knows, but for what is in stripes; stripes that are lost apart. */
static void dump(struct mfs_buf *out, uint64_t *lost)
{
    struct mfs_admin *admin = admin_open();
    struct mfs_cmd keys = call(admin, "KEYS", "*", (struct mfs_span){0});
    size_t nkeys = mfs_reply_count(keys.reply), n = 0;
    char **lines = calloc(nkeys + 1, sizeof *lines);

    *lost = 0;
    for (size_t i = 0; i < nkeys; i++) {
        struct mfs_span key;
        struct mfs_cmd type;

        key.p = mfs_reply_str(mfs_reply_at(keys.reply, i), &key.n);
        if (ends_soon(admin, key) || is_losses(key))
            continue;
        type = call(admin, "TYPE", NULL, key);
        *lost += key.p[0] == 'S' && !strcmp(mfs_reply_str(type.reply, NULL), "hash");
        lines[n++] = key.p[0] == 'S' ? strdup("stripe") : describe(admin, key);
        mfs_cmds_fini(&type, 1);
    }
    qsort(lines, n, sizeof *lines, by_text);
    mfs_buf_clear(out);
    for (size_t i = 0; i < n; i++) {
        assert_true(mfs_buf_printf(out, "%s\n", lines[i]) >= 0);
        free(lines[i]);
    }
    assert_int_equal(mfs_buf_append(out, "", 1), 0);
    free(lines);
    mfs_cmds_fini(&keys, 1);
    mfs_admin_close(admin);
}

static struct mfs_admin_journal journal_now(void)
{
    struct mfs_admin *admin = admin_open();
    struct mfs_admin_journal j;
    struct mfs_err err;

    if (mfs_admin_journal(admin, &j, &err))
        fail_msg("%s", err.msg);
    mfs_admin_close(admin);
    return j;
}

/* It dies, and what its successor knows is what it knew. The clients are gone before, so that
 * nothing changes but by time: what ends meanwhile may be missing. */
static void die_and_compare(uint64_t lost_before, uint64_t stripes)
{
    struct mfs_buf before, after;
    uint64_t lost;

    mfs_buf_init(&before);
    mfs_buf_init(&after);
    dump(&before, &lost);
    assert_int_equal(lost, lost_before);
    redis_fixture_kill(redis, 0);
    assert_int_equal(redis_fixture_revive(redis, 0), 0);
    dump(&after, &lost);
    assert_int_equal(lost, stripes);
    assert_string_equal(mfs_buf_data(&before), mfs_buf_data(&after));
    mfs_buf_fini(&before);
    mfs_buf_fini(&after);
}

static void order(const char *command)
{
    if (redis_fixture_admin(redis, 0, command))
        fail_msg("%s", command);
}

/* Every command that changes what it keeps, as clients and functions give them. */
static void test_commands_are_replayed(void **state)
{
    uint64_t so_far;

    (void)state;
    assert_int_equal(losses(), 0);
    meta_client_stop(&a);
    a.meta = NULL;
    order("SET one 1");
    order("SET two 2 PX 100000");
    order("SET gone 3");
    order("DEL gone");
    order("INCR #seq");
    order("INCR #seq");
    order("HSET h a 1 b 2 c 3");
    order("HSET h a 4");
    order("HDEL h b");
    order("HINCRBY h n 5");
    order("HSET emptied a 1");
    order("HDEL emptied a");
    order("HSET ends a 1");
    order("EXPIRE ends 1000");
    order("HSET ends b 2");
    order("SET stays 1 PX 100000");
    order("PERSIST stays");
    order("SADD s a b c");
    order("SREM s b");
    order("SADD none a");
    order("SREM none a");
    order("SET was string");
    order("DEL was");
    order("HSET was a 1");
    order("SET other 1");
    order("RENAME other renamed");
    order("SET S0123456700ab long-and-lost");
    order("SETRANGE S0123456700ac 100 x");
    order("SET S0123456700ad x");
    order("UNLINK S0123456700ad");
    die_and_compare(0, 2);
    so_far = losses();
    assert_true(so_far >= 2);
    order("SET one again");
    order("SET S0123456700ab anew");
    order("DEL S0123456700ac");
    die_and_compare(0, 1);
    assert_true(losses() > so_far);
    order("DEL S0123456700ab");
    die_and_compare(0, 0);
}

static void use_names(uint64_t dir)
{
    struct mfs_attr attr;
    uint64_t ino, sub;
    char name[32];

    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "file-%d", i);
        assert_int_equal(meta_client_file(&a, dir, name, &ino), 0);
        if (i % 3 == 0) {
            assert_int_equal(mfs_meta_unlink(a.meta, dir, name), 0);
            continue;
        }
        if (i % 7 == 1)
            assert_int_equal(mfs_meta_rename(a.meta, dir, name, MFS_ROOT_INO, name, 0), 0);
        if (i % 11 == 1)
            assert_int_equal(mfs_meta_link(a.meta, ino, MFS_ROOT_INO, "again", &attr), 0);
        if (i % 11 == 1)
            assert_int_equal(mfs_meta_unlink(a.meta, MFS_ROOT_INO, "again"), 0);
    }
    assert_int_equal(meta_client_mkdir(&a, dir, "sub", &sub), 0);
    assert_int_equal(meta_client_file(&a, sub, "below", &ino), 0);
    assert_int_equal(meta_client_mkdir(&a, dir, "empty", &sub), 0);
    assert_int_equal(mfs_meta_rmdir(a.meta, dir, "empty"), 0);
}

static void test_a_tree_is_replayed(void **state)
{
    uint64_t dir;

    (void)state;
    assert_int_equal(meta_client_mkdir(&a, MFS_ROOT_INO, "dir", &dir), 0);
    use_names(dir);
    meta_client_stop(&a);
    a.meta = NULL;
    die_and_compare(0, 0);
    die_and_compare(0, 0);
    assert_int_equal(meta_client_start(&a, redis, 0), 0);
    assert_int_equal(meta_client_ino(&a, MFS_ROOT_INO, "dir"), dir);
    assert_true(meta_client_ino(&a, dir, "file-2") > 0);
    assert_int_equal(meta_client_ino(&a, dir, "file-3"), -ENOENT);
}

static struct mfs_admin_replication replication_now(void)
{
    struct mfs_admin *admin = admin_open();
    struct mfs_admin_replication r;
    struct mfs_err err;

    if (mfs_admin_replication(admin, true, &r, &err))
        fail_msg("%s", err.msg);
    mfs_admin_close(admin);
    return r;
}

static void copied(void)
{
    struct mfs_admin *admin = admin_open();
    struct mfs_err err;

    if (mfs_admin_copied(admin, &err))
        fail_msg("%s", err.msg);
    mfs_admin_close(admin);
}

/* Of a process with a whole copy the next ones tell how far it was, until clients are served. */
static void test_how_far_it_was_is_told(void **state)
{
    struct mfs_admin_replication was;

    (void)state;
    meta_client_stop(&a);
    a.meta = NULL;
    copied();
    assert_string_equal(journal_now().stream, ""); /* it lives */
    order("SET one 1");
    was = replication_now();
    assert_string_not_equal(was.stream, "");
    die_and_compare(0, 0);
    for (int i = 0; i < 2; i++) {
        struct mfs_admin_journal j = journal_now();

        assert_true(j.fenced);
        assert_string_equal(j.stream, was.stream);
        assert_string_not_equal(j.stream, replication_now().stream);
        assert_int_equal(j.offset, was.offset);
        order("SET two 2");
        die_and_compare(0, 0);
    }
    order("ACL WHOAMI"); /* which has it look: clients are served */
    assert_string_equal(journal_now().stream, "");
    die_and_compare(0, 0);
    assert_string_equal(journal_now().stream, "");
    assert_false(journal_now().fenced);
}

/* More than is worth keeping is written anew, while names go on to change. */
static void test_it_is_written_anew(void **state)
{
    static char bytes[100000];
    struct mfs_admin *admin = admin_open();
    int64_t until = mfs_clock_mono() + 60 * MFS_SEC;
    struct mfs_admin_replication was;
    uint64_t dir, ino;
    char name[32];

    (void)state;
    copied();
    assert_int_equal(meta_client_mkdir(&a, MFS_ROOT_INO, "dir", &dir), 0);
    use_names(dir);
    for (int i = 0; i < 100; i++) {
        struct mfs_cmd cmd;

        memset(bytes, 'a' + i % 26, sizeof bytes);
        cmd = call(admin, "SET", "T0123456789abcdef", (struct mfs_span){bytes, sizeof bytes});
        mfs_cmds_fini(&cmd, 1);
    }
    for (int i = 0; journal_now().bytes > 5000000; i++) {
        snprintf(name, sizeof name, "more-%d", i);
        assert_int_equal(meta_client_file(&a, dir, name, &ino), 0);
        assert_true(mfs_clock_mono() < until);
    }
    assert_true(journal_now().whole);
    mfs_admin_close(admin);
    meta_client_stop(&a);
    a.meta = NULL;
    was = replication_now();
    die_and_compare(0, 0);
    assert_string_equal(journal_now().stream, was.stream);
    order("ACL WHOAMI");
}

/* What was cut off had not been answered; without a journal, or with a part of one, there is no
 * successor. */
static void test_a_journal_that_is_torn(void **state)
{
    char path[108];
    struct stat st;
    int fd;

    (void)state;
    meta_client_stop(&a);
    a.meta = NULL;
    redis_fixture_journal(redis, 0, path, sizeof path);
    order("SET kept 1");
    redis_fixture_kill(redis, 0);
    fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_int_equal(write(fd, "\x20\0\0\0torn", 8), 8);
    assert_int_equal(redis_fixture_revive(redis, 0), 0);
    order("SET more 1");
    die_and_compare(0, 0);
    redis_fixture_kill(redis, 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_true(st.st_size > 0);
    assert_int_equal(ftruncate(fd, 0), 0);
    close(fd);
    assert_int_not_equal(redis_fixture_revive(redis, 0), 0);
    assert_int_equal(redis_fixture_restart(redis, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_commands_are_replayed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_tree_is_replayed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_how_far_it_was_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(test_it_is_written_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_journal_that_is_torn, setup, teardown),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
