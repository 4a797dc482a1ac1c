/* A partition's process proves itself before it is told a password: who listens at its port
 * instead, or stands in between, is asked for a proof and hears nothing else. ctest: threaded */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "store/channel.h"
#include "store_test.h"
#include "tcp_pair.h"
#include "net/proof.h"

#define BOUND (60 * MFS_SEC)
#define PROOF 71 /* bytes */
#define HEARD 4096

/* Port 0: any, which is then written there. */
static int listen_at(uint16_t *port)
{
    struct sockaddr_in a = tcp_pair_address(*port);
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    *port = ntohs(a.sin_port);
    return fd;
}

static void await(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    assert_int_equal(poll(&p, 1, (int)(BOUND / MFS_MSEC)), 1);
}

static int take_caller(int listener)
{
    int fd;

    await(listener);
    fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

/* Appends what comes until the end of a line or of the connection. */
static void hear_line(int fd, char *heard)
{
    size_t n = strlen(heard);

    while (!n || heard[n - 1] != '\n') {
        ssize_t got;

        await(fd);
        got = recv(fd, heard + n, HEARD - 1 - n, 0);
        if (got <= 0)
            return;
        n += (size_t)got;
        heard[n] = '\0';
    }
}

/* Appends what comes until the end of the connection. */
static void hear_to_end(int fd, char *heard)
{
    size_t n = strlen(heard);
    ssize_t got;

    do {
        await(fd);
        got = recv(fd, heard + n, HEARD - 1 - n, 0);
        n += got > 0 ? (size_t)got : 0;
        heard[n] = '\0';
    } while (got > 0);
}

static void say(int fd, const char *text)
{
    send(fd, text, strlen(text), MSG_NOSIGNAL);
}

/* ---- callers --------------------------------------------------------------------------------- */

/* Somebody who logs on at a port, in a thread. */
struct caller {
    pthread_t thread;
    uint16_t port;
    const char *user, *password;
    int64_t timeout;
    int rc;
    struct mfs_err err;
};

static void *log_on(void *arg)
{
    struct caller *c = arg;
    struct mfs_endpoint ep = {NULL, "127.0.0.1", c->port, c->user, c->password};
    struct mfs_channel *conn;

    c->rc = mfs_channel_open(&conn, &ep, c->timeout, c->timeout, &c->err);
    mfs_channel_close(conn);
    return NULL;
}

static void caller_start(struct caller *c, uint16_t port, int64_t timeout)
{
    *c = (struct caller){.port = port,
                         .user = MFS_REDIS_USER,
                         .password = tcp_pair.table->part[0].password,
                         .timeout = timeout};
    assert_int_equal(pthread_create(&c->thread, NULL, log_on, c), 0);
}

static int caller_join(struct caller *c)
{
    pthread_join(c->thread, NULL);
    return c->rc;
}

/* All that is sent to who can't prove anything. */
static void is_question_alone(const char *heard, const char *user)
{
    char head[64];
    size_t n = (size_t)snprintf(head, sizeof head, "mfs_prove %s ", user);

    assert_memory_equal(heard, head, n);
    assert_int_equal(strspn(heard + n, "0123456789abcdef"), MFS_PROOF_NONCE);
    assert_string_equal(heard + n + MFS_PROOF_NONCE, "\r\n");
}

static int ends_at(uint16_t port, const char *user, const char *password, struct mfs_err *err)
{
    struct caller c = {.port = port, .user = user, .password = password, .timeout = BOUND};

    log_on(&c);
    *err = c.err;
    return c.rc;
}

static void the_process_itself_is_believed(void **state)
{
    struct mfs_err err;

    (void)state;
    assert_int_equal(ends_at(tcp_pair.table->part[0].port, MFS_REDIS_USER,
                             tcp_pair.table->part[0].password, &err),
                     0);
    assert_int_equal(
        ends_at(tcp_pair.table->part[1].port, MFS_REDIS_ADMIN, REDIS_FIXTURE_ADMIN_PASSWORD, &err),
        0);
}

static void another_password_is_not_sent(void **state)
{
    struct mfs_err err;

    (void)state;
    assert_int_equal(ends_at(tcp_pair.table->part[0].port, MFS_REDIS_USER,
                             tcp_pair.table->part[1].password, &err),
                     -EACCES);
    assert_non_null(strstr(err.msg, "not the partition's process"));
    assert_int_equal(ends_at(tcp_pair.table->part[0].port, "nobody", "password", &err), -EIO);
    assert_non_null(strstr(err.msg, "no proof for this user"));
}

/* ---- thieves --------------------------------------------------------------------------------- */

static void a_thief_hears_a_question_and_nothing_else(void **state)
{
    static const struct {
        const char *answer;
        int rc;
    } tries[] = {
        {"+OK\r\n", -EACCES},
        {"$64\r\n0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\r\n", -EACCES},
        {"$64\r\n0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\r\n+OK\r\n",
         -EACCES},
        {"$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-"
         "1\r\n",
         -EACCES},
        {"*1000000\r\n", -EACCES},
        {"-ERR max number of clients reached\r\n", -EIO},
        {"", -EIO}, /* hangs up */
    };
    uint16_t port = 0;
    int listener = listen_at(&port);

    (void)state;
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        char heard[HEARD] = "";
        struct caller c;
        int fd;

        caller_start(&c, port, BOUND);
        fd = take_caller(listener);
        hear_line(fd, heard);
        say(fd, tries[i].answer);
        if (!*tries[i].answer)
            shutdown(fd, SHUT_WR);
        hear_to_end(fd, heard);
        close(fd);
        assert_int_equal(caller_join(&c), tries[i].rc);
        is_question_alone(heard, MFS_REDIS_USER);
    }
    close(listener);
}

/* Also not for longer when bytes come one by one: each is in time, all of them are not. */
static void a_thief_who_says_little_is_not_waited_for(void **state)
{
    uint16_t port = 0;
    int listener = listen_at(&port);
    int64_t began = mfs_clock_mono();
    struct caller c;
    int fd;

    (void)state;
    caller_start(&c, port, 500 * MFS_MSEC);
    fd = take_caller(listener);
    while (send(fd, "$", 1, MSG_NOSIGNAL) == 1 && mfs_clock_mono() - began < BOUND)
        mfs_clock_sleep(100 * MFS_MSEC);
    assert_int_equal(caller_join(&c), -ETIMEDOUT);
    assert_true(mfs_clock_mono() - began < BOUND);
    close(fd);
    close(listener);
}

/* A proof, or what is said instead. */
static void hear_answer(int fd, char *heard)
{
    size_t n = 0;

    do {
        ssize_t got;

        await(fd);
        got = recv(fd, heard + n, HEARD - 1 - n, 0);
        assert_true(got > 0);
        n += (size_t)got;
        heard[n] = '\0';
    } while (heard[n - 1] != '\n' || (heard[0] == '$' && n < PROOF));
}

/* Passes on what the caller asks and what the process answers. */
static void relay(int from, int to, char *heard, char *answered)
{
    hear_line(from, heard);
    say(to, heard);
    hear_answer(to, answered);
    say(from, answered);
    hear_to_end(from, heard);
}

static void check_relayed(struct caller *c, const char *heard, const char *answered)
{
    assert_int_equal(caller_join(c), -EACCES);
    assert_memory_equal(answered, "$64\r\n", 5); /* it did prove itself, to him */
    is_question_alone(heard, MFS_REDIS_USER);
}

/* The process lives, with that password, elsewhere. */
static void a_relay_hears_a_question_and_nothing_else(void **state)
{
    char heard[HEARD] = "", answered[HEARD] = "";
    uint16_t port = 0;
    int listener = listen_at(&port), from, to;
    struct caller c;

    (void)state;
    caller_start(&c, port, BOUND);
    from = take_caller(listener);
    to = tcp_pair_dial(tcp_pair.table->part[0].port);
    assert_true(to >= 0);
    relay(from, to, heard, answered);
    check_relayed(&c, heard, answered);
    close(from);
    close(to);
    close(listener);
}

/* He was there first, has taken the caller's connection, and has let the port go: the process that
 * is started anew has the very address that the caller has connected to. */
static void a_relay_in_front_of_the_right_port_hears_no_more(void **state)
{
    char heard[HEARD] = "", answered[HEARD] = "";
    uint16_t port = tcp_pair.table->part[0].port;
    struct caller c;
    int listener, from, to;

    (void)state;
    redis_fixture_kill(tcp_pair.fixture, 0);
    listener = listen_at(&port);
    caller_start(&c, port, BOUND);
    from = take_caller(listener);
    close(listener);
    assert_int_equal(redis_fixture_restart(tcp_pair.fixture, 0), 0);
    to = tcp_pair_dial(port);
    assert_true(to >= 0);
    relay(from, to, heard, answered);
    check_relayed(&c, heard, answered);
    close(from);
    close(to);
}

/* ---- clients of a deployment ----------------------------------------------------------------- */

struct thief {
    pthread_t thread;
    int listener;
    unsigned callers; /* that have all heard the same of us */
};

static void *steal(void *arg)
{
    struct thief *t = arg;

    for (;;) {
        char heard[HEARD] = "";
        int fd = accept4(t->listener, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0)
            return NULL;
        hear_line(fd, heard);
        say(fd, "+OK\r\n");
        hear_to_end(fd, heard);
        close(fd);
        is_question_alone(heard, MFS_REDIS_USER);
        t->callers++;
    }
}

static void a_store_fails_beside_a_thief_and_goes_on_when_he_is_gone(void **state)
{
    struct mfs_store_opts opts = {.node = 1, .io_timeout = BOUND};
    uint16_t port = tcp_pair.table->part[0].port;
    struct mfs_store *store;
    struct thief thief = {0};

    (void)state;
    assert_int_equal(mfs_store_create(&store, redis_fixture_table(tcp_pair.fixture), &opts), 0);
    assert_int_equal(run3(store, 0, "SET", "a", "b", false), 0);
    redis_fixture_kill(tcp_pair.fixture, 0);
    thief.listener = listen_at(&port);
    assert_int_equal(pthread_create(&thief.thread, NULL, steal, &thief), 0);
    assert_int_equal(run3(store, 0, "SET", "a", "b", true), -EIO);
    assert_int_equal(run3(store, 1, "SET", "a", "b", true), 0);
    shutdown(thief.listener, SHUT_RDWR);
    pthread_join(thief.thread, NULL);
    close(thief.listener);
    assert_true(thief.callers > 0);
    assert_int_equal(redis_fixture_restart(tcp_pair.fixture, 0), 0);
    assert_int_equal(run3(store, 0, "SET", "a", "b", true), 0);
    mfs_store_destroy(store);
}

/* A partition's process tells who has the address of its replica no more than clients tell him. */
static void a_thief_at_the_replicas_port_hears_no_password(void **state)
{
    char heard[HEARD] = "", command[256];
    uint16_t port = 0;
    int listener = listen_at(&port), fd;

    (void)state;
    assert_int_equal(
        redis_fixture_admin(tcp_pair.fixture, 0, "mfs_term admit " MFS_REDIS_COPY " word"), 0);
    snprintf(command, sizeof command, "mfs_term begin 127.0.0.1 %u %s %s word", port,
             MFS_REDIS_ADMIN, REDIS_FIXTURE_ADMIN_PASSWORD);
    assert_int_equal(redis_fixture_admin(tcp_pair.fixture, 0, command), 0);
    fd = take_caller(listener);
    hear_line(fd, heard);
    say(fd, "+OK\r\n");
    hear_to_end(fd, heard);
    is_question_alone(heard, MFS_REDIS_ADMIN);
    assert_int_equal(redis_fixture_admin(tcp_pair.fixture, 0, "mfs_term end"), 0);
    close(fd);
    close(listener);
}

/* ---- what strangers may ask ------------------------------------------------------------------ */

static const char nonce[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

static void ask(int fd, const char *words, const char *about, char *heard)
{
    char question[256];

    snprintf(question, sizeof question, "%s%s\r\n", words, about);
    say(fd, question);
    hear_answer(fd, heard);
}

static void one_question_per_connection(void **state)
{
    int fd = tcp_pair_dial(tcp_pair.table->part[0].port);
    char heard[HEARD];

    (void)state;
    ask(fd, "mfs_prove memefs ", nonce, heard);
    assert_int_equal(heard[0], '$');
    ask(fd, "mfs_prove memefs ", nonce, heard);
    assert_memory_equal(heard, "-ERR one question", 17);
    assert_int_equal(recv(fd, heard, HEARD, 0), 0);
    close(fd);
}

static void nonsense_is_no_question(void **state)
{
    static const char *const words[] = {
        "mfs_prove",          "mfs_prove memefs",   "mfs_prove memefs 0123",
        "mfs_prove memefs X", "mfs_prove default ", "mfs_prove memefs x "};
    char heard[HEARD];

    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        int fd = tcp_pair_dial(tcp_pair.table->part[0].port);

        assert_true(fd >= 0);

        ask(fd, words[i], words[i][strlen(words[i]) - 1] == ' ' ? nonce : "", heard);
        assert_memory_equal(heard, "-ERR", 4);
        close(fd);
    }
}

static void a_unix_socket_proves_nothing(void **state)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char heard[HEARD];
    int fd;

    (void)state;
    redis_fixture_socket(tcp_pair.fixture, 0, a.sun_path, sizeof a.sun_path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    ask(fd, "mfs_prove memefs ", nonce, heard);
    assert_memory_equal(heard, "-ERR a proof is for", 19);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_process_itself_is_believed),
        cmocka_unit_test(another_password_is_not_sent),
        cmocka_unit_test(a_thief_hears_a_question_and_nothing_else),
        cmocka_unit_test(a_thief_who_says_little_is_not_waited_for),
        cmocka_unit_test(a_relay_hears_a_question_and_nothing_else),
        cmocka_unit_test(a_relay_in_front_of_the_right_port_hears_no_more),
        cmocka_unit_test(a_store_fails_beside_a_thief_and_goes_on_when_he_is_gone),
        cmocka_unit_test(a_thief_at_the_replicas_port_hears_no_password),
        cmocka_unit_test(one_question_per_connection),
        cmocka_unit_test(nonsense_is_no_question),
        cmocka_unit_test(a_unix_socket_proves_nothing),
    };

    return cmocka_run_group_tests(tests, tcp_pair_setup, tcp_pair_teardown);
}
