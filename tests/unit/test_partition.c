/* The module's commands fed by somebody who has the password and no manners: any arguments, keys of
 * other types, entries and records that are none. The server lives on and answers. */
#include "store_test.h"

#include <stdint.h>

static struct store_test t;

static int setup(void **state)
{
    (void)state;
    store_test_open(&t, &(struct redis_fixture_opts){.nparts = 1},
                    &(struct mfs_store_opts){.io_timeout = 10 * MFS_SEC});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    store_test_close(&t);
    return 0;
}

static const char *const commands[] = {
    "mfs_lookup", "mfs_create",  "mfs_unlink",         "mfs_unref",  "mfs_open",
    "mfs_close",  "mfs_commit",  "mfs_commit0",        "mfs_disown", "mfs_told",
    "mfs_sput",   "mfs_lease",   "mfs_holders",        "mfs_getlk",  "mfs_setlk",
    "mfs_in_way", "mfs_closing", "mfs_unlock_session", "mfs_alone",  "mfs_drop"};
#define COMMANDS (sizeof commands / sizeof *commands)

static uint64_t seed = 1;

static uint32_t dice(uint32_t n)
{
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(seed >> 33) % n;
}

/* What stands for an inode, a session, a time, a record, a number, an owner of locks, and none of
 * them. */
static void add_anything(struct mfs_args *a)
{
    static const char zeros[4096];
    static const char *const inos[] = {"INODE--1", "INODE--2", "INODE--3"};
    static const size_t lengths[] = {0, 1, 2, 7, 8, 9, 12, 16, 17, 24, 91, 92, 108, 4096};
    static const int64_t numbers[] = {0,         1,         -1,        4096,     1 << 20,
                                      1LL << 40, INT64_MIN, INT64_MAX, 64 << 20, 12345};

    switch (dice(9)) {
    case 0:
    case 1:
    case 2:
        mfs_args_bin(a, inos[dice(3)], 8);
        break;
    case 3:
        mfs_args_int(a, numbers[dice(10)]);
        break;
    case 4:
        mfs_args_str(a, &"xk\0on\0xn\0op\0x"[3 * dice(5)]);
        break;
    case 5:
        mfs_args_str(a, dice(2) ? "PINODE--1OWNER--1" : "FINODE--2OWNER--1");
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

    mfs_args_init(&a, commands[which]);
    for (uint32_t n = dice(12); n > 0; n--)
        add_anything(&a);
    send(&a);
}

/* A key of any kind holds something of any type. */
static void spoil_a_key(void)
{
    static const char *const inos[] = {"INODE--1", "INODE--2", "INODE--3"};
    static const char *const verbs[] = {"SET", "HSET", "SADD", "DEL"};
    char key[9] = {"IDOYKSALP"[dice(9)]};
    struct mfs_args a;
    uint32_t verb = dice(4);

    memcpy(key + 1, inos[dice(3)], 8);
    mfs_args_init(&a, verbs[verb]);
    mfs_args_bin(&a, key, sizeof key);
    for (uint32_t n = verb == 3 ? 0 : verb == 1 ? 2 : 1; n > 0; n--)
        add_anything(&a);
    send(&a);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_any_arguments, setup, teardown),
        cmocka_unit_test_setup_teardown(test_any_keys, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
