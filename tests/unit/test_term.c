/* Terms of a partition's process, against real ones: partition 0 serves, the process of partition 1
 * is taken for its replica. ctest: waits */
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "store/admin/admin.h"
#include "store_test.h"
#include "tcp_pair.h"

#define BOUND (30 * MFS_SEC)

/* A client of partition 0 that says what it likes, and reads when it likes. */
static int client(void)
{
    char line[256];
    int fd = tcp_pair_dial(tcp_pair.table->part[0].port), n;

    assert_true(fd >= 0);
    n = snprintf(line, sizeof line, "AUTH %s %s\r\n", MFS_REDIS_USER,
                 tcp_pair.table->part[0].password);
    assert_int_equal(write(fd, line, (size_t)n), n);
    assert_true(read(fd, line, sizeof line) > 0);
    assert_int_equal(line[0], '+');
    return fd;
}

static void say(int fd, const char *command)
{
    assert_int_equal(write(fd, command, strlen(command)), (ssize_t)strlen(command));
}

static bool is_refused(int fd)
{
    char line[256] = "";
    ssize_t n = read(fd, line, sizeof line - 1);

    assert_true(n > 0);
    return !strncmp(line, "-NOPERM ", 8);
}

static bool says(int fd, const char *command, const char *answer)
{
    char line[256] = "";

    say(fd, command);
    assert_true(read(fd, line, sizeof line - 1) > 0);
    return !strcmp(line, answer);
}

static bool serves(int fd)
{
    say(fd, "SET a b\r\n");
    return !is_refused(fd);
}

static void await(int fd, bool served)
{
    int64_t until = mfs_clock_mono() + BOUND;

    while (serves(fd) != served) {
        assert_true(mfs_clock_mono() < until);
        mfs_clock_sleep(MFS_MSEC);
    }
}

static long long number(uint32_t part, const char *w0, const char *w1, int *rc)
{
    struct mfs_table *t = redis_fixture_table(tcp_pair.fixture);
    struct mfs_admin *admin;
    struct mfs_err err;
    struct mfs_args a;
    struct mfs_cmd cmd = cmd_of(&a, part, w0, w1, NULL);
    long long n = -1;

    assert_int_equal(mfs_admin_open(&admin, NULL, t->part[part].host, t->part[part].port,
                                    REDIS_FIXTURE_ADMIN_PASSWORD, BOUND, &err),
                     0);
    *rc = mfs_admin_call(admin, &cmd, &err);
    if (!*rc)
        n = mfs_reply_int(cmd.reply);
    mfs_cmds_fini(&cmd, 1);
    mfs_admin_close(admin);
    free(t);
    return n;
}

static int try_admit(const char *word)
{
    char command[256];

    snprintf(command, sizeof command, "mfs_term admit %s %s", MFS_REDIS_COPY, word);
    return redis_fixture_admin(tcp_pair.fixture, 0, command);
}

static int try_begin(const char *word)
{
    char command[256];

    snprintf(command, sizeof command, "mfs_term begin %s %u %s %s %s", tcp_pair.table->part[1].host,
             tcp_pair.table->part[1].port, MFS_REDIS_ADMIN, REDIS_FIXTURE_ADMIN_PASSWORD, word);
    return redis_fixture_admin(tcp_pair.fixture, 0, command);
}

static void begin(void)
{
    assert_int_equal(try_admit("word"), 0);
    assert_int_equal(try_begin("word"), 0);
}

static void without_terms_it_serves(void **state)
{
    int fd = client();

    (void)state;
    assert_true(serves(fd));
    assert_int_equal(redis_fixture_admin(tcp_pair.fixture, 0, "mfs_term end"), 0);
    assert_true(serves(fd));
    close(fd);
}

/* What a client is told of that, and not once the term is over. */
static void it_says_whether_it_serves_alone(void **state)
{
    pid_t replica = redis_fixture_pid(tcp_pair.fixture, 1);
    int fd = client();

    (void)state;
    assert_true(says(fd, "mfs_alone\r\n", ":1\r\n"));
    begin();
    await(fd, true);
    assert_true(says(fd, "mfs_alone\r\n", ":0\r\n"));
    assert_int_equal(kill(replica, SIGSTOP), 0);
    await(fd, false);
    say(fd, "mfs_alone\r\n");
    assert_true(is_refused(fd));
    assert_int_equal(redis_fixture_admin(tcp_pair.fixture, 0, "mfs_term end"), 0);
    assert_true(says(fd, "mfs_alone\r\n", ":1\r\n"));
    assert_int_equal(kill(replica, SIGCONT), 0);
    close(fd);
}

static void clients_have_no_say(void **state)
{
    static const char *const words[] = {"mfs_term\r\n", "mfs_term end\r\n", "mfs_term_consent\r\n",
                                        "mfs_term_withdraw 0\r\n", "mfs_term_over\r\n"};
    int fd = client();

    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        say(fd, words[i]);
        assert_true(is_refused(fd));
    }
    close(fd);
}

static void nonsense_is_refused(void **state)
{
    static const char *const words[] = {"mfs_term begin",
                                        "mfs_term admit",
                                        "mfs_term admit copier",
                                        "mfs_term admit copier word more",
                                        "mfs_term begin 127.0.0.1 1 u p",
                                        "mfs_term begin nowhere 1 u p word",
                                        "mfs_term begin 127.0.0.1 0 u p word",
                                        "mfs_term begin 127.0.0.1 65536 u p word",
                                        "mfs_term begin 127.0.0.1 1 u \"p word",
                                        "mfs_term on",
                                        "mfs_term_withdraw"};
    int fd = client();

    (void)state;
    assert_int_equal(try_admit("word"), 0);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_int_not_equal(redis_fixture_admin(tcp_pair.fixture, 0, words[i]), 0);
    assert_true(serves(fd));
    close(fd);
}

static void it_serves_while_the_replica_consents(void **state)
{
    pid_t replica = redis_fixture_pid(tcp_pair.fixture, 1);
    int fd = client();

    (void)state;
    begin();
    await(fd, true);
    assert_int_equal(kill(replica, SIGSTOP), 0);
    await(fd, false);
    assert_int_equal(redis_fixture_admin(tcp_pair.fixture, 0, "INFO server"), 0);
    assert_int_equal(kill(replica, SIGCONT), 0);
    await(fd, true);
    assert_int_equal(kill(replica, SIGSTOP), 0);
    await(fd, false);
    assert_int_equal(redis_fixture_admin(tcp_pair.fixture, 0, "mfs_term end"), 0);
    assert_true(serves(fd));
    assert_int_equal(kill(replica, SIGCONT), 0);
    close(fd);
}

/* What was sent before the end of the term, too. */
static void a_paused_process_refuses_when_it_goes_on(void **state)
{
    pid_t primary = redis_fixture_pid(tcp_pair.fixture, 0);
    int64_t until = mfs_clock_mono() + BOUND;
    int fd = client(), rc;

    (void)state;
    begin();
    await(fd, true);
    number(1, "mfs_term_withdraw", "100000", &rc);
    assert_int_not_equal(rc, 0); /* it has just been heard of */
    assert_true(serves(fd));
    assert_int_equal(kill(primary, SIGSTOP), 0);
    say(fd, "SET a c\r\n");
    while (number(1, "mfs_term_withdraw", "300", &rc), rc) {
        assert_true(mfs_clock_mono() < until);
        mfs_clock_sleep(10 * MFS_MSEC);
    }
    while (number(1, "mfs_term_withdraw", "300", &rc) > 0) {
        assert_true(mfs_clock_mono() < until);
        mfs_clock_sleep(10 * MFS_MSEC);
    }
    assert_int_equal(kill(primary, SIGCONT), 0);
    assert_true(is_refused(fd));
    assert_false(serves(fd));
    close(fd);
}

/* Nothing brings a consent back. The process that serves is not paused here: it is told no. */
static void a_withdrawn_consent_ends_the_service(void **state)
{
    int fd = client(), rc;

    (void)state;
    redis_fixture_kill(tcp_pair.fixture, 1);
    assert_int_equal(redis_fixture_restart(tcp_pair.fixture, 1), 0);
    free(tcp_pair.table);
    tcp_pair.table = redis_fixture_table(tcp_pair.fixture);
    begin();
    await(fd, true);
    while (number(1, "mfs_term_withdraw", "0", &rc) > 0)
        mfs_clock_sleep(10 * MFS_MSEC);
    assert_int_equal(rc, 0);
    assert_false(serves(fd));
    begin();
    assert_false(serves(fd));
    number(1, "mfs_term_consent", NULL, &rc);
    assert_int_not_equal(rc, 0);
    assert_int_equal(redis_fixture_admin(tcp_pair.fixture, 0, "mfs_term end"), 0);
    assert_true(serves(fd));
    close(fd);
}

/* ---- who follows ----------------------------------------------------------------------------- */

/* So many follow partition 0, by what WAIT counts. */
static bool has_followers(long long n)
{
    int64_t until = mfs_clock_mono() + BOUND;
    int fd = client();
    char line[256] = "";

    do {
        say(fd, "SET a b\r\n");
        assert_true(read(fd, line, sizeof line - 1) > 0);
        memset(line, 0, sizeof line);
        say(fd, "WAIT 2 100\r\n");
        assert_true(read(fd, line, sizeof line - 1) > 0);
    } while (strtoll(line + 1, NULL, 10) != n && mfs_clock_mono() < until);
    close(fd);
    return strtoll(line + 1, NULL, 10) == n;
}

static void follow(const char *word)
{
    char command[256];

    snprintf(command, sizeof command, "CONFIG SET masteruser %s masterauth %s", MFS_REDIS_COPY,
             word);
    assert_int_equal(redis_fixture_admin(tcp_pair.fixture, 1, command), 0);
    snprintf(command, sizeof command, "REPLICAOF %s %u", tcp_pair.table->part[0].host,
             tcp_pair.table->part[0].port);
    assert_int_equal(redis_fixture_admin(tcp_pair.fixture, 1, command), 0);
}

/* Who was given up, and has not heard of it, neither stays nor comes again (decisions/0026). */
static void only_who_was_admitted_follows(void **state)
{
    (void)state;
    assert_int_equal(redis_fixture_admin(tcp_pair.fixture, 0, "mfs_term end"), 0);
    assert_int_equal(try_admit("old"), 0);
    follow("old");
    assert_true(has_followers(1));
    assert_int_equal(try_admit("old"), 0);
    assert_int_not_equal(try_begin("new"), 0);
    assert_int_equal(try_begin("old"), 0);
    assert_int_not_equal(try_admit("new"), 0);
    assert_int_equal(try_admit("old"), 0);
    assert_int_not_equal(redis_fixture_admin(tcp_pair.fixture, 0, "mfs_term end new"), 0);
    assert_int_not_equal(try_admit("new"), 0);
    assert_int_equal(redis_fixture_admin(tcp_pair.fixture, 0, "mfs_term end old"), 0);
    assert_true(has_followers(1));

    assert_int_equal(try_admit("new"), 0);
    assert_true(has_followers(0));
    assert_int_not_equal(try_begin("old"), 0);
    mfs_clock_sleep(1500 * MFS_MSEC); /* redis tries again once a second */
    assert_true(has_followers(0));
    follow("new");
    assert_true(has_followers(1));
    assert_int_equal(redis_fixture_admin(tcp_pair.fixture, 1, "REPLICAOF NO ONE"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_terms_it_serves),
        cmocka_unit_test(it_says_whether_it_serves_alone),
        cmocka_unit_test(clients_have_no_say),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(it_serves_while_the_replica_consents),
        cmocka_unit_test(a_paused_process_refuses_when_it_goes_on),
        cmocka_unit_test(a_withdrawn_consent_ends_the_service),
        cmocka_unit_test(only_who_was_admitted_follows),
    };

    return cmocka_run_group_tests(tests, tcp_pair_setup, tcp_pair_teardown);
}
