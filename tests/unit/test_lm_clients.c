/* The Local Manager as clients see it: the tables that it tells them, and what becomes of a client
 * that dies. ctest: timeout=180 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/text.h"
#include "lm_world.h"
#include "store/keys.h"

/* ---- a client's side ------------------------------------------------------------------------- */

struct client {
    struct lm_world *w;
    struct mfs_conn *conn; /* NULL once it is down */
    bool up, greeted;
    int refused; /* the code of a hello that was */
    bool deaf;   /* does not answer tables */
    uint64_t epoch;
};

static void client_table(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_table *m = body;
    struct client *client = arg;

    client->epoch = m->table->epoch;
    if (!client->deaf)
        mfs_conn_reply(c, MFS_MSG_TABLE, id, &(struct mfs_msg_epoch){m->table->epoch});
}

static void client_up(struct mfs_conn *c, void *arg)
{
    struct client *client = arg;

    (void)c;
    client->up = true;
}

static void client_down(struct mfs_conn *c, const struct mfs_err *why, void *arg)
{
    struct client *client = arg;

    (void)c;
    (void)why;
    client->conn = NULL;
}

static const struct mfs_handler client_handlers[] = {{MFS_MSG_TABLE, client_table}, {0, NULL}};
static const struct mfs_service client_service = {client_handlers, client_up, client_down};

static bool client_is_up(struct lm_world *w)
{
    return ((struct client *)w->data)->up;
}

static bool client_is_greeted(struct lm_world *w)
{
    return ((struct client *)w->data)->greeted;
}

static bool client_has_table(struct lm_world *w)
{
    return ((struct client *)w->data)->epoch == w->epoch;
}

static void hello_done(void *arg, const struct mfs_err *err, const void *reply)
{
    struct client *client = arg;

    (void)reply;
    client->greeted = !err;
    client->refused = err ? err->code : 0;
}

static bool client_is_refused(struct lm_world *w)
{
    return ((struct client *)w->data)->refused != 0;
}

/* A process to be a client, as lm ends its clients when it ends. */
static pid_t some_process(void)
{
    pid_t pid = fork();

    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
        pause();
}

/* Says hello as the process `pid`. */
static void connect_client(struct lm_world *w, struct client *client, pid_t pid,
                           const char *session)
{
    struct mfs_msg_client_hello m = {.version = MFS_PROTOCOL_VERSION, .pid = (uint32_t)pid};
    struct mfs_err err;

    *client = (struct client){.w = w};
    w->data = client;
    mfs_text_copy(m.session, sizeof m.session, session);
    client->conn = mfs_conn_connect(w->loop, w->sock, &w->secret, "client", 5 * MFS_SEC,
                                    &client_service, client, &err);
    assert_non_null(client->conn);
    assert_true(lm_world_wait(w, client_is_up, 5));
    assert_int_equal(
        mfs_conn_request(client->conn, MFS_MSG_CLIENT_HELLO, &m, 5 * MFS_SEC, hello_done, client),
        0);
    assert_true(lm_world_wait(w, client_is_greeted, 5));
}

static void disconnect(struct client *client)
{
    if (client->conn)
        mfs_conn_close(client->conn);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_clients_get_every_table(void **state)
{
    struct lm_world *w = *state;
    struct client client;

    assert_int_equal(lm_world_assign(w), 0);
    assert_int_equal(lm_world_push_table(w), 0);
    connect_client(w, &client, some_process(), "");
    assert_true(lm_world_wait(w, client_has_table, 5));
    assert_int_equal(lm_world_push_table(w), 0);
    assert_int_equal(w->acked, 2);
    assert_int_equal(client.epoch, 2);
    disconnect(&client);
}

/* Else the first one's entry would have a connection that is gone, and be sent tables over it. */
static void test_a_connection_is_one_client(void **state)
{
    struct lm_world *w = *state;
    struct mfs_msg_client_hello m = {.version = MFS_PROTOCOL_VERSION};
    struct client client;

    assert_int_equal(lm_world_assign(w), 0);
    connect_client(w, &client, some_process(), "");
    m.pid = (uint32_t)some_process();
    assert_int_equal(
        mfs_conn_request(client.conn, MFS_MSG_CLIENT_HELLO, &m, 5 * MFS_SEC, hello_done, &client),
        0);
    assert_true(lm_world_wait(w, client_is_refused, 5));
    assert_int_equal(client.refused, -EPROTO);
    assert_int_equal(lm_world_push_table(w), 0);
    assert_int_equal(client.epoch, w->epoch);
    disconnect(&client);
}

static void test_a_deaf_client_is_named(void **state)
{
    struct lm_world *w = *state;
    struct client client;
    pid_t pid = some_process();
    char name[32];

    assert_int_equal(lm_world_assign(w), 0);
    assert_int_equal(lm_world_push_table(w), 0);
    connect_client(w, &client, pid, "");
    assert_true(lm_world_wait(w, client_has_table, 5));
    client.deaf = true;
    assert_int_equal(lm_world_push_table(w), -ETIMEDOUT);
    snprintf(name, sizeof name, "client %d", (int)pid);
    assert_non_null(strstr(w->err.msg, name));
    assert_non_null(strstr(w->events, "client-behind"));
    disconnect(&client);
}

static pid_t client_with_session(struct lm_world *w, struct client *client)
{
    char key[MFS_KEY_INO_LEN];
    pid_t pid = some_process();

    assert_int_equal(lm_world_assign(w), 0);
    assert_int_equal(lm_world_push_table(w), 0);
    mfs_key_ino(key, 'Z', 0x0123456789abcdefULL);
    lm_world_command(w, "SET", key, sizeof key, "1");
    connect_client(w, client, pid, "0123456789abcdef");
    assert_true(lm_world_wait(w, client_has_table, 5));
    return pid;
}

static bool session_is_gone(struct lm_world *w)
{
    char key[MFS_KEY_INO_LEN];

    mfs_key_ino(key, 'Z', 0x0123456789abcdefULL); /* odd: partition 1 */
    return lm_world_command(w, "EXISTS", key, sizeof key, NULL) == 0;
}

static void test_a_dead_clients_session_ends(void **state)
{
    struct lm_world *w = *state;
    struct client client;
    pid_t pid;

    pid = client_with_session(w, &client);
    assert_false(session_is_gone(w));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_true(lm_world_wait(w, session_is_gone, 3));
    disconnect(&client);
}

static int64_t stopped_at;

static bool three_seconds_are_over(struct lm_world *w)
{
    (void)w;
    return mfs_clock_mono() - stopped_at > 3 * MFS_SEC;
}

/* Also when its partition does not answer at first: the two may have had trouble together. */
static void test_a_dead_clients_session_ends_in_the_end(void **state)
{
    struct lm_world *w = *state;
    struct client client;
    struct mfs_proc redis;
    pid_t pid;

    pid = client_with_session(w, &client);
    redis = lm_world_redis(w, 1);
    mfs_proc_kill(&redis, SIGSTOP);
    stopped_at = mfs_clock_mono();
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    lm_world_wait(w, three_seconds_are_over, 10); /* longer than one try */
    mfs_proc_kill(&redis, SIGCONT);
    assert_true(lm_world_wait(w, session_is_gone, 15));
    disconnect(&client);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, lm_world_setup, lm_world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_clients_get_every_table),
        TEST(test_a_connection_is_one_client),
        TEST(test_a_deaf_client_is_named),
        TEST(test_a_dead_clients_session_ends),
        TEST(test_a_dead_clients_session_ends_in_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
