/* The store's contract against real redis processes: values of all sizes both ways, mixed
 * pipelines, error replies, the fault hook. ctest: threaded */
#include "store_test.h"

#define NPARTS 3

static struct store_test t;

static int setup(void **state)
{
    (void)state;
    store_test_open(&t, &(struct redis_fixture_opts){.nparts = NPARTS},
                    &(struct mfs_store_opts){.io_timeout = 10 * MFS_SEC});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    store_test_close(&t);
    return 0;
}

static const size_t sizes[] = {0,     1,         100,     (16 << 10) - 40, (16 << 10) - 1, 16 << 10,
                               16385, 100 << 10, 1 << 20, (1 << 20) + 1,   8 << 20};

static void values_of_all_sizes(void **state)
{
    unsigned char *out = malloc(8 << 20), *in = malloc(8 << 20);

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct mfs_args a;
        struct mfs_cmd cmd = set_cmd(&a, 1, "size", out, sizes[i]);
        size_t len;

        fill_pattern(out, sizes[i], (uint32_t)i);
        assert_int_equal(mfs_store_exec(t.store, &cmd, 1), 0);
        assert_string_equal(mfs_reply_str(cmd.reply, NULL), "OK");
        mfs_cmds_fini(&cmd, 1);

        cmd = get_cmd(&a, 1, "size", in, 8 << 20);
        memset(in, 0x55, sizes[i]);
        assert_int_equal(mfs_store_exec(t.store, &cmd, 1), 0);
        assert_int_equal(cmd.into_len, sizes[i]);
        assert_null(cmd.reply);
        assert_memory_equal(in, out, sizes[i]);
        mfs_cmds_fini(&cmd, 1);

        cmd = get_cmd(&a, 1, "size", NULL, 0);
        assert_int_equal(mfs_store_exec(t.store, &cmd, 1), 0);
        assert_memory_equal(mfs_reply_str(cmd.reply, &len), out, sizes[i]);
        assert_int_equal(len, sizes[i]);
        mfs_cmds_fini(&cmd, 1);
    }
    free(in);
    free(out);
}

/* Any order of small and large, wanted here or there, over several partitions. */
static void mixed_pipelines(void **state)
{
    enum { N = 64 };
    static unsigned char out[N][200 << 10], in[N][200 << 10];
    static struct mfs_args args[3 * N];
    struct mfs_cmd cmds[3 * N];
    char key[N][16];

    (void)state;
    for (unsigned seed = 1; seed <= 20; seed++) {
        size_t len[N], n = 0;

        srand(seed);
        for (int i = 0; i < N; i++) {
            uint32_t part = (uint32_t)rand() % NPARTS;

            len[i] = rand() % 3 ? (size_t)rand() % 2000 : (size_t)rand() % sizeof out[i];
            snprintf(key[i], sizeof key[i], "mix%d", i);
            fill_pattern(out[i], len[i], seed * 100 + (unsigned)i);
            cmds[n] = set_cmd(&args[n], part, key[i], out[i], len[i]);
            n++;
            if (i % 2) {
                cmds[n] = cmd_of(&args[n], part, "STRLEN", key[i], NULL);
                n++;
            }
            cmds[n] = get_cmd(&args[n], part, key[i], i % 5 ? in[i] : NULL, sizeof in[i]);
            n++;
        }
        assert_int_equal(mfs_store_exec(t.store, cmds, n), 0);
        n = 0;
        for (int i = 0; i < N; i++) {
            size_t got = 0;

            n++;
            if (i % 2)
                assert_int_equal(mfs_reply_int(cmds[n++].reply), len[i]);
            if (i % 5) {
                assert_int_equal(cmds[n].into_len, len[i]);
                assert_memory_equal(in[i], out[i], len[i]);
            } else {
                assert_memory_equal(mfs_reply_str(cmds[n].reply, &got), out[i], len[i]);
                assert_int_equal(got, len[i]);
            }
            n++;
        }
        mfs_cmds_fini(cmds, n);
    }
}

static void nil_and_oversize_into(void **state)
{
    static unsigned char value[300 << 10], in[300 << 10];
    struct mfs_args a[6];
    struct mfs_cmd cmds[6];

    (void)state;
    fill_pattern(value, sizeof value, 7);
    cmds[0] = set_cmd(&a[0], 0, "big", value, sizeof value);
    cmds[1] = get_cmd(&a[1], 0, "missing", in, sizeof in);
    cmds[2] = get_cmd(&a[2], 0, "big", in, 1000);
    cmds[3] = get_cmd(&a[3], 0, "big", in, sizeof in - 1);
    cmds[4] = get_cmd(&a[4], 0, "big", in, sizeof in);
    cmds[5] = cmd_of(&a[5], 0, "GET", "missing", NULL);
    assert_int_equal(mfs_store_exec(t.store, cmds, 6), -EMSGSIZE);
    assert_int_equal(cmds[1].rc, 0);
    assert_int_equal(cmds[1].into_len, -1);
    assert_int_equal(cmds[2].rc, -EMSGSIZE);
    assert_int_equal(cmds[3].rc, -EMSGSIZE);
    assert_int_equal(cmds[4].rc, 0);
    assert_int_equal(cmds[4].into_len, sizeof value);
    assert_memory_equal(in, value, sizeof value);
    assert_int_equal(cmds[5].rc, 0);
    assert_int_equal(mfs_reply_type(cmds[5].reply), MFS_REPLY_NIL);
    mfs_cmds_fini(cmds, 6);
}

static void replies_of_other_kinds_despite_into(void **state)
{
    char in[16];
    struct mfs_args a[4];
    struct mfs_cmd cmds[4];

    (void)state;
    cmds[0] = cmd_of(&a[0], 2, "RPUSH", "list", "element");
    cmds[1] = cmd_of(&a[1], 2, "LRANGE", "list", "0");
    mfs_args_str(&a[1], "-1");
    cmds[1].argc++;
    cmds[2] = cmd_of(&a[2], 2, "GET", "list", NULL);
    cmds[3] = cmd_of(&a[3], 2, "DEL", "list", NULL);
    for (int i = 0; i < 4; i++) {
        cmds[i].into = in;
        cmds[i].into_cap = sizeof in;
    }
    assert_int_equal(mfs_store_exec(t.store, cmds, 4), -EIO);
    assert_int_equal(mfs_reply_int(cmds[0].reply), 1);
    assert_int_equal(mfs_reply_count(cmds[1].reply), 1);
    assert_string_equal(mfs_reply_str(mfs_reply_at(cmds[1].reply, 0), NULL), "element");
    assert_null(mfs_reply_at(cmds[1].reply, 1));
    assert_int_equal(cmds[2].rc, -EIO); /* WRONGTYPE */
    assert_int_equal(mfs_reply_int(cmds[3].reply), 1);
    mfs_cmds_fini(cmds, 4);
}

static void error_replies_become_errno(void **state)
{
    (void)state;
    assert_int_equal(run3(t.store, 0, "NOSUCH", NULL, NULL, false), -EIO);
    assert_int_equal(run3(t.store, 0, "FLUSHALL", NULL, NULL, false), -EACCES);
    assert_int_equal(run3(t.store, 0, "FUNCTION", "FLUSH", NULL, false), -EACCES);
    assert_int_equal(run3(t.store, NPARTS, "PING", NULL, NULL, false), -EINVAL);
    assert_int_equal(mfs_reply_errno("ERRNO 17 exists", 15), -EEXIST);
    assert_int_equal(mfs_reply_errno("ERRNO 2", 7), -ENOENT);
    assert_int_equal(mfs_reply_errno("ERRNO 0 x", 9), -EIO);
    assert_int_equal(mfs_reply_errno("ERRNO 99999", 11), -EIO);
    assert_int_equal(mfs_reply_errno("ERRNO", 5), -EIO);
    assert_int_equal(mfs_reply_errno("OOM command not allowed", 23), -ENOSPC);
    assert_int_equal(mfs_reply_errno("BUSY running", 12), -EAGAIN);
    assert_int_equal(mfs_reply_errno("BUSYKEY there", 13), -EIO);
    assert_int_equal(mfs_reply_errno("READONLY replica", 16), -EROFS);
    assert_int_equal(mfs_reply_errno("", 0), -EIO);
}

static void the_modules_errors_become_errno(void **state)
{
    (void)state;
    assert_int_equal(run3(t.store, 0, "mfs_kill", "UNKNOWN!", "not a time", true), -EINVAL);
}

static void full_memory_is_enospc(void **state)
{
    static unsigned char value[1 << 20];
    struct mfs_args a;
    struct mfs_cmd cmd;
    int rc = 0;

    (void)state;
    assert_int_equal(redis_fixture_admin(t.fixture, 1, "CONFIG SET maxmemory 24mb"), 0);
    for (int i = 0; i < 64 && !rc; i++) {
        char key[16];

        snprintf(key, sizeof key, "fill%d", i);
        cmd = set_cmd(&a, 1, key, value, sizeof value);
        rc = mfs_store_exec(t.store, &cmd, 1);
        mfs_cmds_fini(&cmd, 1);
    }
    assert_int_equal(rc, -ENOSPC);
    assert_int_equal(run3(t.store, 1, "UNLINK", "fill0", "fill1", false), 0);
    assert_int_equal(redis_fixture_admin(t.fixture, 1, "CONFIG SET maxmemory 0"), 0);
}

static void an_empty_call_is_fine(void **state)
{
    (void)state;
    assert_int_equal(mfs_store_exec(t.store, NULL, 0), 0);
}

static int fail_part1(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    (void)argv;
    assert_true(argc > 0);
    ++*(int *)arg;
    return part == 1 ? -EIO : 0;
}

static void faults_are_results_and_nothing_is_sent(void **state)
{
    struct mfs_args a[3];
    struct mfs_cmd cmds[3];
    int asked = 0;

    (void)state;
    for (uint32_t i = 0; i < 3; i++)
        cmds[i] = cmd_of(&a[i], i, "INCR", "faults", NULL);
    mfs_store_set_fault(t.store, fail_part1, &asked);
    assert_int_equal(mfs_store_exec(t.store, cmds, 3), -EIO);
    assert_int_equal(asked, 3);
    assert_int_equal(mfs_reply_int(cmds[0].reply), 1);
    assert_int_equal(cmds[1].rc, -EIO);
    assert_int_equal(mfs_reply_int(cmds[2].reply), 1);
    mfs_cmds_fini(cmds, 3);
    assert_int_equal(mfs_store_post(t.store, &cmds[1]), -EIO);
    mfs_store_set_fault(t.store, NULL, NULL);
    assert_int_equal(mfs_store_exec(t.store, &cmds[1], 1), 0);
    assert_int_equal(mfs_reply_int(cmds[1].reply), 1);
    mfs_cmds_fini(&cmds[1], 1);
}

/* Payloads larger than all socket buffers, both ways, to all partitions in one call. */
static void large_fan_out(void **state)
{
    enum { N = 12, SIZE = 1 << 20 };
    unsigned char *out = malloc((size_t)N * SIZE), *in = malloc((size_t)N * SIZE);
    struct mfs_args a[2 * N];
    struct mfs_cmd cmds[2 * N];
    struct mfs_store_stats before, after;
    char key[N][16];

    (void)state;
    fill_pattern(out, (size_t)N * SIZE, 3);
    for (uint32_t i = 0; i < N; i++) {
        snprintf(key[i], sizeof key[i], "fan%u", i);
        cmds[2 * i] = set_cmd(&a[2 * i], i % NPARTS, key[i], out + (size_t)i * SIZE, SIZE);
        cmds[2 * i + 1] = get_cmd(&a[2 * i + 1], i % NPARTS, key[i], in + (size_t)i * SIZE, SIZE);
    }
    mfs_store_stats(t.store, &before);
    assert_int_equal(mfs_store_exec(t.store, cmds, 2 * N), 0);
    mfs_store_stats(t.store, &after);
    assert_memory_equal(in, out, (size_t)N * SIZE);
    assert_int_equal(after.round_trips - before.round_trips, 1);
    assert_int_equal(after.commands - before.commands, 2 * N);
    assert_true(after.bytes_out - before.bytes_out > (uint64_t)N * SIZE);
    assert_true(after.bytes_in - before.bytes_in > (uint64_t)N * SIZE);
    mfs_cmds_fini(cmds, 2 * N);
    free(in);
    free(out);
}

/* What is too late stays, what goes with it does not. */
static void nothing_is_sent_too_late(void **state)
{
    struct mfs_args a[3];
    struct mfs_cmd cmds[3];

    (void)state;
    cmds[0] = cmd_of(&a[0], 0, "SET", "late", "1");
    cmds[1] = cmd_of(&a[1], 0, "EXISTS", "late", NULL);
    cmds[2] = cmd_of(&a[2], 1, "SET", "late", "1");
    cmds[0].not_after = cmds[2].not_after = mfs_clock_mono() - 1;
    assert_int_equal(mfs_store_exec(t.store, cmds, 3), -ECANCELED);
    assert_int_equal(cmds[0].rc, -ECANCELED);
    assert_int_equal(cmds[1].rc, 0);
    assert_int_equal(mfs_reply_int(cmds[1].reply), 0);
    assert_int_equal(cmds[2].rc, -ECANCELED);
    mfs_cmds_fini(cmds, 3);
    cmds[0].not_after = cmds[2].not_after = mfs_clock_mono() + 600 * MFS_SEC;
    assert_int_equal(mfs_store_exec(t.store, cmds, 3), 0);
    assert_int_equal(mfs_reply_int(cmds[1].reply), 1);
    mfs_cmds_fini(cmds, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_all_sizes),
        cmocka_unit_test(mixed_pipelines),
        cmocka_unit_test(nil_and_oversize_into),
        cmocka_unit_test(replies_of_other_kinds_despite_into),
        cmocka_unit_test(error_replies_become_errno),
        cmocka_unit_test(the_modules_errors_become_errno),
        cmocka_unit_test(full_memory_is_enospc),
        cmocka_unit_test(an_empty_call_is_fine),
        cmocka_unit_test(faults_are_results_and_nothing_is_sent),
        cmocka_unit_test(nothing_is_sent_too_late),
        cmocka_unit_test(large_fan_out),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
