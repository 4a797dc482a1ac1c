/* mfs_here: changes of stripes of which a replica gets no more than the length, against real
 * processes. Partition 0 serves, the process of partition 1 follows it: as a replica, or to take
 * its place. ctest: waits */
#include <sys/socket.h>

#include "store/admin/admin.h"
#include "store_test.h"
#include "seeded.h"

#define BOUND  (30 * MFS_SEC)
#define KEYS   5
#define OPS    400
#define LONGER 70000

static struct redis_fixture *fixture;
static struct mfs_table *table;
static struct mfs_admin *admins[2];
static struct mfs_store *clients;

static int setup(void **state)
{
    struct mfs_err err;

    if (choose_seed(state) ||
        redis_fixture_start(
            &fixture, &(struct redis_fixture_opts){.nparts = 2, .tcp = true, .journal = true}))
        return -1;
    table = redis_fixture_table(fixture);
    if (mfs_store_create(&clients, redis_fixture_table(fixture),
                         &(struct mfs_store_opts){.io_timeout = BOUND}))
        return -1;
    for (uint32_t i = 0; i < 2; i++)
        if (mfs_admin_open(&admins[i], NULL, table->part[i].host, table->part[i].port,
                           REDIS_FIXTURE_ADMIN_PASSWORD, BOUND, &err))
            return -1;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    mfs_admin_close(admins[0]);
    mfs_admin_close(admins[1]);
    mfs_store_destroy(clients);
    free(table);
    redis_fixture_stop(fixture);
    return 0;
}

/* ---- commands -------------------------------------------------------------------------------- */

/* Of words without blanks; the reply is the caller's. */
static int ask(uint32_t part, const char *words, struct mfs_cmd *cmd)
{
    char *copy = strdup(words), *at = copy, *word;
    struct mfs_args a;
    struct mfs_err err;
    int rc;

    assert_non_null(copy);
    mfs_args_init(&a, strsep(&at, " "));
    while ((word = strsep(&at, " ")))
        mfs_args_str(&a, word);
    *cmd = mfs_args_cmd(&a, part);
    rc = mfs_admin_call(admins[part], cmd, &err);
    free(copy);
    return rc;
}

static int64_t number(uint32_t part, const char *words)
{
    struct mfs_cmd cmd;
    int rc = ask(part, words, &cmd);
    int64_t n = mfs_reply_int(cmd.reply);

    if (rc)
        print_message("%s: %d\n", words, rc);
    assert_int_equal(rc, 0);
    mfs_cmds_fini(&cmd, 1);
    return n;
}

static int run(uint32_t part, const char *words)
{
    struct mfs_cmd cmd;
    int rc = ask(part, words, &cmd);

    mfs_cmds_fini(&cmd, 1);
    return rc;
}

/* What INFO says behind "name:"; "" when it does not. */
static void info(uint32_t part, const char *section, const char *name, char out[64])
{
    char command[64], *all, *at;
    struct mfs_cmd cmd;
    const char *text;
    size_t n;

    snprintf(command, sizeof command, "INFO %s", section);
    assert_int_equal(ask(part, command, &cmd), 0);
    text = mfs_reply_str(cmd.reply, &n);
    all = strndup(text, n);
    assert_non_null(all);
    at = strstr(all, name);
    out[0] = '\0';
    if (at)
        snprintf(out, 64, "%.*s", (int)strcspn(at + strlen(name), "\r\n"), at + strlen(name));
    free(all);
    mfs_cmds_fini(&cmd, 1);
}

static int64_t info_number(uint32_t part, const char *section, const char *name)
{
    char text[64];

    info(part, section, name, text);
    return strtoll(text, NULL, 10);
}

/* ---- following ------------------------------------------------------------------------------- */

static void await_step(void)
{
    int64_t until = mfs_clock_mono() + BOUND;
    struct mfs_err err;
    char link[64];

    for (;;) {
        int64_t there = info_number(0, "replication", "master_repl_offset:");

        assert_int_equal(mfs_admin_acknowledge(admins[1], &err), 0);
        info(1, "replication", "master_link_status:", link);
        if (!strcmp(link, "up") && info_number(1, "replication", "slave_repl_offset:") >= there)
            return;
        assert_true(mfs_clock_mono() < until);
        mfs_clock_sleep(MFS_MSEC);
    }
}

/* As a process that has just been started does, each of which has a word of its own: it asks for a
 * whole copy. */
static void follow(const char *word, const char *as)
{
    char command[256];

    assert_int_equal(run(1, "REPLICAOF NO ONE"), 0);
    snprintf(command, sizeof command, "mfs_term admit %s %s%s", MFS_REDIS_COPY, word, as);
    assert_int_equal(run(0, command), 0);
    snprintf(command, sizeof command, "CONFIG SET masteruser %s masterauth %s", MFS_REDIS_COPY,
             word);
    assert_int_equal(run(1, command), 0);
    snprintf(command, sizeof command, "REPLICAOF %s %u", table->part[0].host, table->part[0].port);
    assert_int_equal(run(1, command), 0);
    await_step();
}

static int begin(void **state)
{
    (void)state;
    assert_int_equal(run(1, "REPLICAOF NO ONE"), 0);
    assert_int_equal(run(0, "CONFIG SET maxmemory 0"), 0);
    return run(0, "FLUSHALL") || run(1, "FLUSHALL") || run(1, "CONFIG RESETSTAT");
}

/* All that follows has been executed there without an error. */
static int end(void **state)
{
    char errors[64];

    (void)state;
    info(1, "stats", "total_error_replies:", errors);
    assert_string_equal(errors, "0");
    return 0;
}

enum found { ABSENT, SAME, LOST };

static bool is_lost(const char *key)
{
    char command[64];
    struct mfs_cmd type;
    const char *p;
    bool is;
    size_t n;

    snprintf(command, sizeof command, "TYPE %s", key);
    assert_int_equal(ask(1, command, &type), 0);
    p = mfs_reply_str(type.reply, &n);
    is = p && n == 4 && !memcmp(p, "hash", 4);
    mfs_cmds_fini(&type, 1);
    return is;
}

/* What the follower has of a stripe: never anything but what is here, or nothing and its length. */
static enum found compare(const char *key)
{
    char command[64], text[24] = "";
    struct mfs_cmd here, there;
    const char *p, *q;
    size_t n, m;
    enum found is;

    if (is_lost(key)) {
        snprintf(command, sizeof command, "HGET %s lost", key);
        assert_int_equal(ask(1, command, &there), 0);
        p = mfs_reply_str(there.reply, &n);
        assert_true(p && n < sizeof text);
        memcpy(text, p, n);
        mfs_cmds_fini(&there, 1);
        snprintf(command, sizeof command, "STRLEN %s", key);
        assert_int_equal(strtoll(text, NULL, 10), number(0, command));
        return LOST;
    }
    snprintf(command, sizeof command, "GET %s", key);
    assert_int_equal(ask(0, command, &here), 0);
    assert_int_equal(ask(1, command, &there), 0);
    is = mfs_reply_type(here.reply) == MFS_REPLY_NIL ? ABSENT : SAME;
    assert_int_equal(mfs_reply_type(there.reply), mfs_reply_type(here.reply));
    if (is == SAME) {
        p = mfs_reply_str(here.reply, &n);
        q = mfs_reply_str(there.reply, &m);
        assert_int_equal(m, n);
        assert_memory_equal(q, p, n);
    }
    mfs_cmds_fini(&here, 1);
    mfs_cmds_fini(&there, 1);
    return is;
}

/* ---- the command ----------------------------------------------------------------------------- */

static void same_reply(const struct mfs_reply *a, const struct mfs_reply *b)
{
    size_t n = 0, m = 0;
    const char *p = mfs_reply_str(a, &n), *q = mfs_reply_str(b, &m);

    assert_int_equal(mfs_reply_type(a), mfs_reply_type(b));
    assert_int_equal(mfs_reply_int(a), mfs_reply_int(b));
    assert_int_equal(n, m);
    if (p)
        assert_memory_equal(p, q, n);
    assert_int_equal(mfs_reply_count(a), mfs_reply_count(b));
    for (size_t i = 0; i < mfs_reply_count(a); i++)
        same_reply(mfs_reply_at(a, i), mfs_reply_at(b, i));
}

/* A change of a stripe's bytes, without the key at `at`; `n` bytes of text. */
static void some_change(char *out, size_t cap, const char *key)
{
    static char text[LONGER + 1];
    uint32_t n = 1 + below(below(4) ? 300 : LONGER);

    memset(text, 'a' + (int)below(26), n);
    text[n] = '\0';
    switch (below(3)) {
    case 0:
        snprintf(out, cap, "SET %s %s", key, text);
        break;
    case 1:
        snprintf(out, cap, "SETRANGE %s %u %s", key, below(600), text);
        break;
    default:
        snprintf(out, cap, "mfs_sput %s %u %s %u b", key, below(600), text, below(600));
    }
}

static void it_answers_as_what_it_runs(void **state)
{
    static char plain[LONGER + 100], here[LONGER + 120], change[LONGER + 100];

    (void)state;
    for (int i = 0; i < OPS; i++) {
        struct mfs_cmd p, h;
        uint64_t was;
        int rc;

        if (!below(20))
            assert_int_equal(run(0, below(2) ? "DEL S0 S1" : "mfs_slost S0 7"), 0);
        assert_int_equal(run(0, "DEL S1"), 0);
        rc = run(0, "COPY S0 S1");
        assert_int_equal(rc, 0);
        was = seed;
        some_change(plain, sizeof plain, "S0");
        seed = was;
        some_change(change, sizeof change, "S1");
        snprintf(here, sizeof here, "mfs_here %s", change);
        rc = ask(0, plain, &p);
        assert_int_equal(ask(0, here, &h), rc);
        if (!rc)
            same_reply(p.reply, h.reply);
        mfs_cmds_fini(&p, 1);
        mfs_cmds_fini(&h, 1);
        if (rc)
            continue;
        assert_int_equal(ask(0, "GET S0", &p), 0);
        assert_int_equal(ask(0, "GET S1", &h), 0);
        same_reply(p.reply, h.reply);
        mfs_cmds_fini(&p, 1);
        mfs_cmds_fini(&h, 1);
    }
}

/* A whole stripe takes no more memory than when it is set by itself. */
static void it_takes_no_more_memory(void **state)
{
    static char bytes[1044480];
    struct mfs_cmd cmd;
    struct mfs_args a;
    struct mfs_err err;

    (void)state;
    memset(bytes, 'x', sizeof bytes);
    mfs_args_init(&a, "SET");
    mfs_args_str(&a, "S0");
    mfs_args_bin(&a, bytes, sizeof bytes);
    cmd = mfs_args_cmd(&a, 0);
    assert_int_equal(mfs_admin_call(admins[0], &cmd, &err), 0);
    mfs_cmds_fini(&cmd, 1);
    mfs_args_init(&a, "mfs_here");
    mfs_args_str(&a, "SET");
    mfs_args_str(&a, "S1");
    mfs_args_bin(&a, bytes, sizeof bytes);
    cmd = mfs_args_cmd(&a, 0);
    assert_int_equal(mfs_admin_call(admins[0], &cmd, &err), 0);
    mfs_cmds_fini(&cmd, 1);
    assert_int_equal(number(0, "MEMORY USAGE S1"), number(0, "MEMORY USAGE S0"));
}

static void only_bytes_of_stripes_are_changed(void **state)
{
    static const char *const words[] = {"mfs_here SET S0",
                                        "mfs_here SET S0 x EX 1",
                                        "mfs_here SETRANGE S0 0",
                                        "mfs_here SETRANGE S0 0 x y",
                                        "mfs_here SETRANGE S0 z x",
                                        "mfs_here mfs_sput S0 1",
                                        "mfs_here mfs_sput S0 -1 x",
                                        "mfs_here DEL S0 x",
                                        "mfs_here FLUSHALL a b",
                                        "mfs_here mfs_here SET S0 x",
                                        "mfs_here mfs_strim S0 1 2",
                                        "mfs_here SET #seq 5",
                                        "mfs_here SETRANGE I0 0 x",
                                        "mfs_slost #seq 1",
                                        "mfs_slost S0",
                                        "mfs_slost S0 -1"};

    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_int_not_equal(run(0, words[i]), 0);
    assert_int_equal(number(0, "DBSIZE"), 0);
}

static int as_client(const char *a, const char *b, const char *c, const char *d)
{
    struct mfs_args args;
    struct mfs_cmd cmd;
    int rc;

    mfs_args_init(&args, a);
    mfs_args_str(&args, b);
    mfs_args_str(&args, c);
    if (d)
        mfs_args_str(&args, d);
    cmd = mfs_args_cmd(&args, 0);
    cmd.full_at_once = true;
    rc = mfs_store_exec(clients, &cmd, 1);
    mfs_cmds_fini(&cmd, 1);
    return rc;
}

static void clients_may_change_and_not_lose(void **state)
{
    (void)state;
    assert_int_equal(as_client("mfs_here", "SET", "S0", "bytes"), 0);
    assert_int_equal(as_client("mfs_slost", "S0", "5", NULL), -EACCES);
    assert_int_equal(number(0, "STRLEN S0"), 5);
}

static void full_memory_takes_nothing_more(void **state)
{
    (void)state;
    assert_int_equal(as_client("mfs_here", "SET", "S0", "bytes"), 0);
    assert_int_equal(run(0, "CONFIG SET maxmemory 1"), 0);
    assert_int_equal(as_client("mfs_here", "SET", "S0", "other"), -ENOSPC);
    assert_int_equal(run(0, "CONFIG SET maxmemory 0"), 0);
    assert_int_equal(number(0, "STRLEN S0"), 5);
}

/* ---- what follows ---------------------------------------------------------------------------- */

/* Some change of some stripe, of any kind that clients make. */
static void change_any(void)
{
    static char change[LONGER + 100], command[LONGER + 120];
    char key[8];

    snprintf(key, sizeof key, "S%u", below(KEYS));
    switch (below(8)) {
    case 0:
        snprintf(command, sizeof command, "mfs_strim %s %u", key, below(700));
        break;
    case 1:
        snprintf(command, sizeof command, "mfs_szero %s %u %u", key, below(700), below(700));
        break;
    case 2:
        snprintf(command, sizeof command, "mfs_sfit %s", key);
        break;
    case 3:
        snprintf(command, sizeof command, "%s %s", below(2) ? "mfs_sdel" : "DEL", key);
        break;
    default:
        some_change(change, sizeof change, key);
        snprintf(command, sizeof command, "mfs_here %s", change);
    }
    if (run(0, command))
        fail_msg("%.60s", command);
}

static void count(enum found is, unsigned n[3])
{
    n[is]++;
}

static void compare_all(unsigned n[3])
{
    char key[8];

    await_step();
    for (unsigned i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "S%u", i);
        count(compare(key), n);
    }
}

static void what_moves_gets_everything(void **state)
{
    unsigned n[3] = {0};

    (void)state;
    for (int i = 0; i < OPS / 4; i++)
        change_any();
    follow("move", "");
    for (int i = 0; i < OPS; i++) {
        change_any();
        if (!below(20))
            compare_all(n);
    }
    compare_all(n);
    assert_int_equal(n[LOST], 0);
    assert_true(n[SAME] > 0);
}

static void a_replica_knows_what_it_lacks(void **state)
{
    unsigned n[3] = {0};

    (void)state;
    for (int i = 0; i < OPS / 4; i++)
        change_any();
    follow("one", " replica");
    compare_all(n);
    assert_int_equal(n[LOST], 0);
    for (int i = 0; i < OPS; i++) {
        change_any();
        if (!below(20))
            compare_all(n);
    }
    compare_all(n);
    assert_true(n[LOST] > 0);
}

/* It has had the former bytes with its copy, and its successor has the present ones. */
static void overwritten_bytes_are_lost_until_copied_again(void **state)
{
    (void)state;
    assert_int_equal(run(0, "mfs_here SET S0 old"), 0);
    assert_int_equal(run(0, "mfs_here SET S1 old"), 0);
    follow("two", " replica");
    assert_int_equal(compare("S0"), SAME);
    assert_int_equal(run(0, "mfs_here SET S0 new"), 0);
    assert_int_equal(run(0, "mfs_here SETRANGE S1 0 n"), 0);
    await_step();
    assert_int_equal(compare("S0"), LOST);
    assert_int_equal(compare("S1"), LOST);
    assert_int_equal(number(1, "EXISTS #losses"), 1);
    assert_int_equal(number(0, "EXISTS #losses"), 0);
    follow("three", " replica");
    assert_int_equal(compare("S0"), SAME);
    assert_int_equal(compare("S1"), SAME);
}

/* A mark takes some 60 bytes, whatever the stripe has. */
static void a_replica_is_sent_little(void **state)
{
    static char here[LONGER + 100], text[LONGER + 1];
    int64_t before;

    (void)state;
    follow("four", " replica");
    memset(text, 'x', LONGER);
    snprintf(here, sizeof here, "mfs_here SET S0 %s", text);
    before = info_number(0, "replication", "master_repl_offset:");
    for (int i = 0; i < 100; i++)
        assert_int_equal(run(0, here), 0);
    assert_true(info_number(0, "replication", "master_repl_offset:") - before < 100 * 200);
    await_step();
    assert_int_equal(compare("S0"), LOST);
}

/* What was said when it was admitted holds for what it asks for once more, too. */
static void a_broken_link_changes_nothing(const char *word, const char *as, enum found is)
{
    char again[256];
    int64_t until = mfs_clock_mono() + BOUND;
    int64_t partial = info_number(0, "stats", "sync_partial_ok:");

    assert_int_equal(run(0, "CONFIG SET repl-backlog-size 4mb"), 0);
    assert_int_equal(run(0, "mfs_here SET S0 old"), 0);
    follow(word, as);
    while (info_number(0, "stats", "sync_partial_ok:") == partial) {
        assert_true(mfs_clock_mono() < until);
        assert_int_equal(run(0, "CLIENT KILL TYPE replica"), 0);
        assert_int_equal(run(0, "mfs_here SET S0 new"), 0);
        assert_int_equal(run(0, "mfs_here SETRANGE S0 2 more"), 0);
        await_step();
    }
    assert_int_equal(compare("S0"), is);
    snprintf(again, sizeof again, "mfs_term admit %s %s%s", MFS_REDIS_COPY, word,
             is == LOST ? "" : " replica");
    assert_int_equal(run(0, again), 0);
    assert_int_equal(run(0, "mfs_here SET S0 newer"), 0);
    await_step();
    assert_int_equal(compare("S0"), is);
}

static void a_broken_link_of_a_replica(void **state)
{
    (void)state;
    a_broken_link_changes_nothing("five", " replica", LOST);
}

static void a_broken_link_of_what_moves(void **state)
{
    (void)state;
    a_broken_link_changes_nothing("six", "", SAME);
}

/* That a replica was admitted before does not count. */
static void another_that_moves_gets_everything(void **state)
{
    unsigned n[3] = {0};

    (void)state;
    follow("seven", " replica");
    for (int i = 0; i < OPS / 8; i++)
        change_any();
    follow("eight", "");
    for (int i = 0; i < OPS / 4; i++)
        change_any();
    compare_all(n);
    assert_int_equal(n[LOST], 0);
}

/* A process that has taken over has what it lacks as lost: what the next one follows is that. */
static void a_replica_that_serves_refuses_parts(void **state)
{
    (void)state;
    follow("nine", " replica");
    assert_int_equal(run(0, "mfs_here SET S0 bytes"), 0);
    assert_int_equal(run(0, "mfs_here SET S1 bytes"), 0);
    await_step();
    assert_int_equal(run(1, "REPLICAOF NO ONE"), 0);
    assert_int_equal(run(1, "mfs_here SETRANGE S0 1 x"), -EIO);
    assert_int_equal(run(1, "mfs_here mfs_sput S0 1 x"), -EIO);
    assert_int_equal(run(1, "GET S0"), -EIO);
    assert_int_equal(run(1, "mfs_here SET S0 whole"), 0);
    assert_int_equal(number(1, "STRLEN S0"), 5);
    assert_int_equal(number(1, "mfs_sdel S0 S1"), 10);
    assert_int_equal(run(1, "CONFIG RESETSTAT"), 0);
}

/* The journal has the lengths. */
static void a_process_that_dies_knows_what_it_lost(void **state)
{
    struct mfs_err err;

    (void)state;
    assert_int_equal(run(0, "mfs_here SET S0 bytes"), 0);
    assert_int_equal(run(0, "mfs_here SETRANGE S1 10 bytes"), 0);
    assert_int_equal(run(0, "mfs_here mfs_sput S2 20 bytes"), 0);
    redis_fixture_kill(fixture, 0);
    mfs_admin_close(admins[0]);
    admins[0] = NULL;
    assert_int_equal(redis_fixture_revive(fixture, 0), 0);
    assert_int_equal(mfs_admin_open(&admins[0], NULL, table->part[0].host, table->part[0].port,
                                    REDIS_FIXTURE_ADMIN_PASSWORD, BOUND, &err),
                     0);
    assert_int_equal(run(0, "GET S0"), -EIO);
    assert_int_equal(number(0, "mfs_sdel S0"), 5);
    assert_int_equal(number(0, "mfs_sdel S1"), 15);
    assert_int_equal(number(0, "mfs_sdel S2"), 25);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_answers_as_what_it_runs),
        TEST(it_takes_no_more_memory),
        TEST(only_bytes_of_stripes_are_changed),
        TEST(clients_may_change_and_not_lose),
        TEST(full_memory_takes_nothing_more),
        TEST(what_moves_gets_everything),
        TEST(a_replica_knows_what_it_lacks),
        TEST(overwritten_bytes_are_lost_until_copied_again),
        TEST(a_replica_is_sent_little),
        TEST(a_broken_link_of_a_replica),
        TEST(a_broken_link_of_what_moves),
        TEST(another_that_moves_gets_everything),
        TEST(a_replica_that_serves_refuses_parts),
        TEST(a_process_that_dies_knows_what_it_lost),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
