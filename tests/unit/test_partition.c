/* The module's commands fed by somebody who has the password and no manners: any arguments, keys of
 * other types, entries and records that are none, or whose numbers make no sense. The server lives
 * on and answers. */
#include "store_test.h"

#include <stdint.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "cluster/table.h"
#include "meta/attr.h"
#include "meta/record.h"
#include "partition/protocol.h"
#include "store/admin/admin.h"

static struct store_test t;

static int setup(void **state)
{
    (void)state;
    store_test_open(&t, &(struct redis_fixture_opts){.nparts = 1, .tcp = true},
                    &(struct mfs_store_opts){.io_timeout = 10 * MFS_SEC});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    store_test_close(&t);
    return 0;
}

static const struct {
    const char *name;
    uint32_t words;
    size_t first;
    enum mfs_effect effect;
} commands[] = {
#define ENTRY(name, words, first, effect) {"mfs_" #name, words, first, MFS_##effect},
    MFS_CLIENT_COMMANDS(ENTRY)};
#define COMMANDS (sizeof commands / sizeof *commands)

static uint64_t seed = 1;

static uint32_t dice(uint32_t n)
{
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(seed >> 33) % n;
}

static int64_t any_number(void)
{
    static const int64_t numbers[] = {0,         1,         -1,        4096,     1 << 20,
                                      1LL << 40, INT64_MIN, INT64_MAX, 64 << 20, 12345};

    return numbers[dice(10)];
}

static void encode_record(char rec[MFS_RECORD_FIXED], uint64_t size, uint64_t end, bool voids)
{
    struct mfs_attr attr = {.mode = S_IFREG | 0644,
                            .nlink = dice(3),
                            .size = size,
                            .data_end = end,
                            .alloc = any_number(),
                            .version = (uint64_t)any_number(),
                            .flags = voids ? MFS_ATTR_VOIDS : 0};

    mfs_meta_record_encode(&attr, rec);
}

static void add_numbers(struct mfs_args *a, char *space)
{
    size_t n = dice(6) * 8;

    for (size_t at = 0; at < n; at += 8)
        mfs_put_le64(space + at, (uint64_t)any_number());
    mfs_args_bin(a, space, n);
}

/* What stands for an inode, a session, a time, a record, ranges, a number, an owner of locks, and
 * none of them. */
static void add_anything(struct mfs_args *a)
{
    static const char zeros[4096];
    static char spaces[64][MFS_RECORD_FIXED];
    static unsigned next;
    char *space = spaces[next++ % 64];
    static const char *const inos[] = {"INODE--1", "INODE--2", "INODE--3"};
    static const size_t lengths[] = {0, 1, 2, 7, 8, 9, 12, 16, 17, 24, 91, 92, 108, 4096};

    switch (dice(10)) {
    case 0:
    case 1:
    case 2:
        mfs_args_bin(a, inos[dice(3)], 8);
        break;
    case 3:
        mfs_args_int(a, any_number());
        break;
    case 4:
        mfs_args_str(a, &"xk\0on\0xn\0op\0x"[3 * dice(5)]);
        break;
    case 5:
        mfs_args_str(a, dice(2) ? "PINODE--1OWNER--1" : "FINODE--2OWNER--1");
        break;
    case 6:
        encode_record(space, (uint64_t)any_number(), (uint64_t)any_number(), dice(2));
        mfs_args_bin(a, space, MFS_RECORD_FIXED);
        break;
    case 7:
        add_numbers(a, space);
        break;
    default:
        mfs_args_bin(a, zeros, lengths[dice(14)]);
    }
}

/* Any answer will do but none. */
static void send(struct mfs_args *a)
{
    struct mfs_cmd cmd = mfs_args_cmd(a, 0);
    int rc = mfs_store_exec(t.store, &cmd, 1);

    if (rc == -ETIMEDOUT || (rc == -EIO && redis_fixture_admin(t.fixture, 0, "PING")))
        fail_msg("%.*s: %d", (int)a->v[0].len, (const char *)a->v[0].p, rc);
    mfs_cmds_fini(&cmd, 1);
}

static void send_any(size_t which)
{
    struct mfs_args a;

    mfs_args_init(&a, commands[which].name);
    for (uint32_t n = dice(12); n > 0; n--)
        add_anything(&a);
    send(&a);
}

/* A key of any kind holds something of any type. */
static void spoil_a_key(void)
{
    static const char *const inos[] = {"INODE--1", "INODE--2", "INODE--3"};
    static const char *const verbs[] = {"SET", "HSET", "SADD", "DEL"};
    char key[9] = {"IDOYKSALPVI"[dice(11)]};
    struct mfs_args a;
    uint32_t verb = dice(4);

    memcpy(key + 1, inos[dice(3)], 8);
    mfs_args_init(&a, verbs[verb]);
    mfs_args_bin(&a, key, sizeof key);
    for (uint32_t n = verb == 3 ? 0 : verb == 1 ? 2 : 1; n > 0; n--)
        add_anything(&a);
    send(&a);
}

/* With so many words, of which the first argument has `first` bytes. What it says, 0 or an errno.
 */
static int say(size_t which, uint32_t words, size_t first)
{
    static const char bytes[4096] = "UNKNOWN!";
    struct mfs_args a;
    struct mfs_cmd cmd;
    int rc;

    mfs_args_init(&a, commands[which].name);
    for (uint32_t i = 1; i < words; i++)
        mfs_args_bin(&a, bytes, i == 1 ? first : 8);
    cmd = mfs_args_cmd(&a, 0);
    rc = mfs_store_exec(t.store, &cmd, 1);
    mfs_cmds_fini(&cmd, 1);
    return rc;
}

/* Each command with too few words, with a first argument of each wrong length, and with inodes,
 * sessions and keys that nobody knows. */
static void test_each_command_refuses_what_is_none(void **state)
{
    static const size_t lengths[] = {0, 1, 7, 9, 16, 4096};

    (void)state;
    for (size_t i = 0; i < COMMANDS; i++) {
        uint32_t least = commands[i].words;
        size_t first = commands[i].first ? commands[i].first : 8;

        for (uint32_t n = 1; n < least; n++)
            assert_int_equal(say(i, n, first), -EIO);
        for (size_t k = 0; k < sizeof lengths / sizeof *lengths && commands[i].first; k++)
            if (lengths[k] != commands[i].first)
                assert_int_equal(say(i, least, lengths[k]), -EIO);
        for (uint32_t n = least; n < least + 4; n++)
            assert_int_not_equal(say(i, n, first), -ETIMEDOUT);
        assert_int_equal(redis_fixture_admin(t.fixture, 0, "PING"), 0);
    }
}

/* There may be replicas, though this partition has none now. */
static void may_have_replicas(void)
{
    struct mfs_table *table = redis_fixture_table(t.fixture);

    table->epoch++;
    table->replicated = true;
    assert_int_equal(mfs_store_set_table(t.store, table), 0);
}

static bool has_flag(const struct mfs_reply *info, const char *flag)
{
    const struct mfs_reply *flags = mfs_reply_at(mfs_reply_at(info, 0), 2);
    bool found = false;

    for (size_t i = 0; i < mfs_reply_count(flags); i++)
        found = found || !strcmp(mfs_reply_str(mfs_reply_at(flags, i), NULL), flag);
    return found;
}

/* How many commands went to the partition for this one: two, when a question about its replica went
 * with it. */
static uint64_t sent_for(size_t which, uint32_t words)
{
    struct mfs_store_stats before, after;

    mfs_store_stats(t.store, &before);
    say(which, words, 8);
    mfs_store_stats(t.store, &after);
    return after.commands - before.commands;
}

/* What may write by the server's account is waited for, but for the marks of sessions; what may not
 * write is not. */
static void test_what_writes_is_confirmed(void **state)
{
    char path[108];
    struct mfs_admin *admin;
    struct mfs_args a;
    struct mfs_cmd cmd;
    struct mfs_err err;

    (void)state;
    may_have_replicas();
    redis_fixture_socket(t.fixture, 0, path, sizeof path);
    if (mfs_admin_open(&admin, path, NULL, 0, REDIS_FIXTURE_ADMIN_PASSWORD, 10 * MFS_SEC, &err))
        fail_msg("%s", err.msg);
    for (size_t i = 0; i < COMMANDS; i++) {
        enum mfs_effect effect = commands[i].effect;
        bool marks = effect == MFS_MARKS || effect == MFS_OPENS, writes;

        cmd = cmd_of(&a, 0, "COMMAND", "INFO", commands[i].name);
        assert_int_equal(mfs_admin_call(admin, &cmd, &err), 0);
        writes = has_flag(cmd.reply, "write");
        assert_int_equal(has_flag(cmd.reply, "denyoom"), effect == MFS_GROWS);
        assert_int_not_equal(writes, has_flag(cmd.reply, "readonly"));
        mfs_cmds_fini(&cmd, 1);
        assert_true(writes || !marks);
        if (sent_for(i, commands[i].words) != (writes && !marks ? 2 : 1))
            fail_msg("%s", commands[i].name);
        if (effect == MFS_OPENS)
            assert_int_equal(sent_for(i, MFS_OPEN_MARKS + 1), 2);
    }
    mfs_admin_close(admin);
}

static void test_any_arguments(void **state)
{
    (void)state;
    for (int i = 0; i < 20000; i++)
        send_any(dice(COMMANDS));
    assert_int_equal(redis_fixture_admin(t.fixture, 0, "PING"), 0);
}

static void test_any_keys(void **state)
{
    (void)state;
    for (int i = 0; i < 20000; i++) {
        if (dice(3) == 0)
            spoil_a_key();
        else
            send_any(dice(COMMANDS));
    }
    assert_int_equal(redis_fixture_admin(t.fixture, 0, "PING"), 0);
}

static int ask(const char *command, const char *const *words, uint32_t n)
{
    struct mfs_args a;
    struct mfs_cmd cmd;
    int rc;

    mfs_args_init(&a, command);
    mfs_args_bin(&a, "INODE--1", 8);
    for (uint32_t i = 0; i < n; i++)
        mfs_args_str(&a, words[i]);
    cmd = mfs_args_cmd(&a, 0);
    rc = mfs_store_exec(t.store, &cmd, 1);
    mfs_cmds_fini(&cmd, 1);
    return rc;
}

static void put_key(const char *key, const void *p, size_t n)
{
    struct mfs_args a;

    mfs_args_init(&a, "SET");
    mfs_args_str(&a, key);
    mfs_args_bin(&a, p, n);
    send(&a);
}

/* A record whose end of data or size is negative, or voids that are none: who reads or writes the
 * file is refused, and nothing else happens. */
static void test_damaged_inode(void **state)
{
    static const int64_t ends[][2] = {{5, -1}, {5, INT64_MIN}, {-1, 5}, {INT64_MIN, INT64_MIN}};
    static const char *const open[] = {"SESSION1", "100"};
    static const char *const cut[] = {"SESSION1", "0", "aTimeOf12___", "0", "4096"};
    static const char *const commit[] = {"", "9", "9", "", "SESSION1", "", "", "0"};
    static const char *const store[] = {"", "9", "9", "", "SESSION1", "", "", "0", "0", "bytes"};
    char rec[MFS_RECORD_FIXED], voids[16];

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        encode_record(rec, (uint64_t)ends[i][0], (uint64_t)ends[i][1], i % 2);
        put_key("IINODE--1", rec, sizeof rec);
        assert_int_equal(ask("mfs_open", open, 2), -EIO);
        assert_int_equal(ask("mfs_open", cut, 5), -EIO);
        assert_int_equal(ask("mfs_commit", commit, 8), -EIO);
        assert_int_equal(ask("mfs_commit0", store, 10), -EIO);
    }
    encode_record(rec, 5, 5, true);
    put_key("IINODE--1", rec, sizeof rec);
    mfs_put_le64(voids, 3);
    mfs_put_le64(voids + 8, 2);
    put_key("VINODE--1", voids, sizeof voids);
    assert_int_equal(ask("mfs_commit", store, 10), -EIO);
    put_key("VINODE--1", voids, 7);
    assert_int_equal(ask("mfs_commit", store, 10), -EIO);
    mfs_put_le64(voids, 1);
    put_key("VINODE--1", voids, sizeof voids);
    assert_int_equal(ask("mfs_commit", store, 10), 0);
    rec[1] |= 0x20; /* MFS_FLAG_ROOM */
    put_key("IINODE--1", rec, sizeof rec);
    put_key("FINODE--1", voids, 7);
    assert_int_equal(ask("mfs_commit", store, 10), -EIO);
}

/* Far more ranges than a client names: refused before it takes memory and time. */
static void test_very_many_ranges(void **state)
{
    enum { RANGES = 1 << 20 };
    char *list = malloc(16 * (size_t)RANGES), rec[MFS_RECORD_FIXED];
    struct mfs_args a;
    struct mfs_cmd cmd;

    (void)state;
    assert_non_null(list);
    for (uint64_t i = 0; i < RANGES; i++) {
        mfs_put_le64(list + 16 * i, 4 * i);
        mfs_put_le64(list + 16 * i + 8, 4 * i + 1);
    }
    encode_record(rec, 5, 5, false);
    put_key("IINODE--1", rec, sizeof rec);
    mfs_args_init(&a, "mfs_commit0");
    mfs_args_bin(&a, "INODE--1", 8);
    mfs_args_str(&a, "");
    mfs_args_int(&a, 5);
    mfs_args_int(&a, 5);
    mfs_args_str(&a, "");
    mfs_args_str(&a, "SESSION1");
    mfs_args_bin(&a, list, 16 * (size_t)RANGES);
    mfs_args_str(&a, "");
    mfs_args_int(&a, 0);
    cmd = mfs_args_cmd(&a, 0);
    assert_int_equal(mfs_store_exec(t.store, &cmd, 1), -EINVAL);
    mfs_cmds_fini(&cmd, 1);
    free(list);
}

static uint64_t count_in(const char *key)
{
    struct mfs_args a;
    struct mfs_cmd cmd = cmd_of(&a, 0, "GET", key, NULL);
    const char *text;
    uint64_t count;

    assert_int_equal(mfs_store_exec(t.store, &cmd, 1), 0);
    text = mfs_reply_str(cmd.reply, NULL);
    assert_non_null(text);
    count = strtoull(text, NULL, 10);
    mfs_cmds_fini(&cmd, 1);
    return count;
}

static void promote_a_replica(void)
{
    assert_int_equal(redis_fixture_migrate(t.fixture, 0), 0);
    assert_int_equal(mfs_store_set_table(t.store, redis_fixture_table(t.fixture)), 0);
    redis_fixture_release(t.fixture);
}

/* A replica that takes over may lack creations of which a kernel knows the number, by which it
 * keeps the text of a symbolic link. */
static void test_numbers_after_a_promotion(void **state)
{
    (void)state;
    redis_fixture_admin(t.fixture, 0, "SET #seq 7");
    redis_fixture_admin(t.fixture, 0, "SET #freed 3");
    assert_int_equal(redis_fixture_admin(t.fixture, 0, "REPLICAOF NO ONE"), 0);
    assert_int_equal(count_in("#seq"), 7); /* it followed nobody */
    promote_a_replica();
    assert_int_equal(count_in("#seq"), 7 + (1 << 20));
    assert_int_equal(count_in("#freed"), 3 + (1 << 20)); /* df -i shows as many as before */
    redis_fixture_admin(t.fixture, 0, "SET #seq 4398046511096");
    promote_a_replica();
    assert_int_equal(count_in("#seq"), (1ULL << 42) - 1);
    promote_a_replica();
    assert_int_equal(count_in("#seq"), (1ULL << 42) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_command_refuses_what_is_none, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_writes_is_confirmed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_any_arguments, setup, teardown),
        cmocka_unit_test_setup_teardown(test_any_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damaged_inode, setup, teardown),
        cmocka_unit_test_setup_teardown(test_very_many_ranges, setup, teardown),
        cmocka_unit_test_setup_teardown(test_numbers_after_a_promotion, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
