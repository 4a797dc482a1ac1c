/* The Local Manager as clients see it: the tables that it tells them, and what becomes of a client
 * that dies. ctest: timeout=180 waits */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/text.h"
#include "lm_world.h"
#include "store/keys.h"

/* ---- a client's side ------------------------------------------------------------------------- */

/* In memory that the client, a process of its own, shares with the test: lm goes by who connects,
 * and ends its clients when it ends. */
struct client {
    pid_t pid;
    atomic_bool greeted;
    atomic_int refused; /* the code of a hello that was */
    _Atomic uint64_t epoch;

    /* orders */
    atomic_bool deaf;            /* does not answer tables */
    atomic_bool forgets;         /* the table that it has, when the next one comes */
    atomic_uint wholes, changes; /* tables, and changes of one, that have come */
    atomic_bool hang_up;         /* and goes on living */
    atomic_uint again;           /* says hello once more, as that process */
};

/* What only its process has. */
struct client_process {
    struct client *shared;
    struct mfs_loop *loop;
    struct mfs_conn *conn; /* NULL once it is down */
    struct mfs_table *held;
    struct mfs_msg_client_hello hello;
};

static void client_table(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_table *m = body;
    struct client_process *p = arg;

    struct mfs_table *table;
    struct mfs_err err;
    int rc;

    if (p->shared->forgets) {
        free(p->held);
        p->held = NULL;
        p->shared->forgets = false;
    }
    p->shared->wholes += m->table != NULL;
    p->shared->changes += !m->table;
    rc = mfs_table_of_message(m, p->held, &table, &err);
    if (rc) {
        mfs_conn_fail(c, id, rc, "%s", err.msg);
        return;
    }
    if (table) {
        free(p->held);
        p->held = table;
        p->shared->epoch = table->epoch;
    }
    if (!p->shared->deaf)
        mfs_conn_reply(c, MFS_MSG_TABLE, id, &(struct mfs_msg_epoch){p->shared->epoch});
}

static void hello_done(void *arg, const struct mfs_err *err, const void *reply)
{
    struct client_process *p = arg;

    (void)reply;
    p->shared->greeted = !err;
    p->shared->refused = err ? err->code : 0;
}

static void say_hello(struct mfs_conn *c, void *arg)
{
    struct client_process *p = arg;

    mfs_conn_request(c, MFS_MSG_CLIENT_HELLO, &p->hello, 5 * MFS_SEC, hello_done, p);
}

static void client_down(struct mfs_conn *c, const struct mfs_err *why, void *arg)
{
    struct client_process *p = arg;

    (void)c;
    (void)why;
    p->conn = NULL;
}

static void obey(void *arg)
{
    struct client_process *p = arg;
    unsigned again = atomic_exchange(&p->shared->again, 0);

    if (again && p->conn) {
        p->hello.pid = again;
        say_hello(p->conn, p);
    }
    if (p->shared->hang_up && p->conn) {
        mfs_conn_close(p->conn);
        p->conn = NULL;
    }
}

static const struct mfs_handler client_handlers[] = {{MFS_MSG_TABLE, client_table}, {0, NULL}};
static const struct mfs_service client_service = {client_handlers, say_hello, client_down};

static _Noreturn void run_client(const struct lm_world *w, struct client_process *p)
{
    struct mfs_err err;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close_range(3, ~0U, 0);
    p->loop = mfs_loop_create();
    if (!p->loop || !mfs_loop_timer(p->loop, 0, 5 * MFS_MSEC, obey, p))
        _exit(1);
    p->conn = mfs_conn_connect(p->loop, w->sock, &w->secret, "client", 5 * MFS_SEC, &client_service,
                               p, &err);
    mfs_loop_run(p->loop);
    _exit(1);
}

static bool client_is_greeted(struct lm_world *w)
{
    return ((struct client *)w->data)->greeted;
}

static bool client_has_table(struct lm_world *w)
{
    return ((struct client *)w->data)->epoch == w->epoch;
}

static bool client_is_refused(struct lm_world *w)
{
    return ((struct client *)w->data)->refused != 0;
}

/* A client that says that it is the process `said`; 0: the one that it is. */
static struct client *start_client(struct lm_world *w, pid_t said, const char *session)
{
    struct client *client =
        mmap(NULL, sizeof *client, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct client_process p = {.shared = client};
    pid_t pid;

    assert_true(client != MAP_FAILED);
    w->data = client;
    pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        p.hello = (struct mfs_msg_client_hello){.version = MFS_PROTOCOL_VERSION,
                                                .pid = (uint32_t)(said ? said : getpid())};
        mfs_text_copy(p.hello.session, sizeof p.hello.session, session);
        run_client(w, &p);
    }
    client->pid = pid;
    assert_true(lm_world_wait(w, client_is_greeted, 10));
    return client;
}

static void kill_client(struct client *client)
{
    kill(client->pid, SIGKILL);
    waitpid(client->pid, NULL, 0);
}

static void end_client(struct client *client)
{
    kill_client(client);
    munmap(client, sizeof *client);
}

/* Somebody who has nothing to do with it. */
static pid_t some_process(void)
{
    pid_t pid = fork();

    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
        pause();
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_clients_get_every_table(void **state)
{
    struct lm_world *w = *state;
    struct client *client;

    assert_int_equal(lm_world_assign(w), 0);
    assert_int_equal(lm_world_push_table(w), 0);
    client = start_client(w, 0, "");
    assert_true(lm_world_wait(w, client_has_table, 5));
    assert_int_equal(lm_world_push_table(w), 0);
    assert_int_equal(w->acked, 2);
    assert_int_equal(client->epoch, 2);
    end_client(client);
}

/* Else the first one's entry would have a connection that is gone, and be sent tables over it. */
static void test_a_connection_is_one_client(void **state)
{
    struct lm_world *w = *state;
    struct client *client;

    assert_int_equal(lm_world_assign(w), 0);
    client = start_client(w, 0, "");
    client->again = (unsigned)getpid();
    assert_true(lm_world_wait(w, client_is_refused, 5));
    assert_int_equal(client->refused, -EPROTO);
    assert_int_equal(lm_world_push_table(w), 0);
    assert_int_equal(client->epoch, w->epoch);
    end_client(client);
}

static void test_a_client_gets_what_has_changed_or_the_whole(void **state)
{
    struct lm_world *w = *state;
    struct client *client;

    assert_int_equal(lm_world_assign(w), 0);
    assert_int_equal(lm_world_push_table(w), 0);
    client = start_client(w, 0, "");
    assert_true(lm_world_wait(w, client_has_table, 5));
    assert_int_equal(client->wholes, 1);
    assert_int_equal(lm_world_push_table(w), 0);
    assert_int_equal(client->epoch, w->epoch);
    assert_int_equal(client->wholes, 1);
    assert_int_equal(client->changes, 1);
    client->forgets = true;
    assert_int_equal(lm_world_push_table(w), 0);
    assert_int_equal(client->epoch, w->epoch);
    assert_int_equal(client->wholes, 2);
    assert_int_equal(client->changes, 2);
    end_client(client);
}

static void test_a_deaf_client_is_named(void **state)
{
    struct lm_world *w = *state;
    struct client *client;
    char name[32];

    assert_int_equal(lm_world_assign(w), 0);
    assert_int_equal(lm_world_push_table(w), 0);
    client = start_client(w, 0, "");
    assert_true(lm_world_wait(w, client_has_table, 5));
    client->deaf = true;
    assert_int_equal(lm_world_push_table(w), -ETIMEDOUT);
    snprintf(name, sizeof name, "client %d", (int)client->pid);
    assert_non_null(strstr(w->err.msg, name));
    assert_true(lm_world_has_event(w, "client-behind"));
    end_client(client);
}

static struct client *client_with_session(struct lm_world *w, pid_t said)
{
    char key[MFS_KEY_INO_LEN];
    struct client *client;

    assert_int_equal(lm_world_assign(w), 0);
    assert_int_equal(lm_world_push_table(w), 0);
    mfs_key_ino(key, 'Z', 0x0123456789abcdefULL);
    lm_world_command(w, "SET", key, sizeof key, "1");
    client = start_client(w, said, "0123456789abcdef");
    assert_true(lm_world_wait(w, client_has_table, 5));
    return client;
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
    struct client *client = client_with_session(w, 0);

    assert_false(session_is_gone(w));
    kill_client(client);
    assert_true(lm_world_wait(w, session_is_gone, 3));
    munmap(client, sizeof *client);
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
    struct client *client = client_with_session(w, 0);
    struct mfs_proc redis = lm_world_redis(w, 1);

    mfs_proc_kill(&redis, SIGSTOP);
    stopped_at = mfs_clock_mono();
    kill_client(client);
    lm_world_wait(w, three_seconds_are_over, 10); /* longer than one try */
    mfs_proc_kill(&redis, SIGCONT);
    assert_true(lm_world_wait(w, session_is_gone, 15));
    munmap(client, sizeof *client);
}

/* ---- clients in containers ------------------------------------------------------------------- */

/* The pid that one takes for its own is somebody else's here. */

static void test_a_bystander_is_not_ended(void **state)
{
    struct lm_world *w = *state;
    pid_t bystander = some_process();
    struct client *client;
    int status = 0;

    assert_int_equal(lm_world_assign(w), 0);
    client = start_client(w, bystander, "");
    assert_int_equal(lm_world_ask(w, MFS_MSG_STOP, &(struct mfs_msg_empty){0}), 0);
    assert_int_equal(waitpid(bystander, NULL, WNOHANG), 0);
    assert_int_equal(waitpid(client->pid, &status, 0), client->pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    kill(bystander, SIGKILL);
    waitpid(bystander, NULL, 0);
    munmap(client, sizeof *client);
    assert_true(lm_world_wait(w, lm_world_lm_ended, 5));
}

static void test_a_bystanders_death_is_not_the_clients(void **state)
{
    struct lm_world *w = *state;
    pid_t bystander = some_process();
    struct client *client = client_with_session(w, bystander);

    kill(bystander, SIGKILL);
    waitpid(bystander, NULL, 0);
    assert_false(lm_world_wait(w, session_is_gone, 3));
    assert_int_equal(lm_world_push_table(w), 0);
    assert_int_equal(client->epoch, w->epoch);
    kill_client(client);
    assert_true(lm_world_wait(w, session_is_gone, 10));
    munmap(client, sizeof *client);
}

static void test_a_lost_connection_is_no_death(void **state)
{
    struct lm_world *w = *state;
    pid_t nobody = some_process();
    struct client *client;

    kill(nobody, SIGKILL);
    waitpid(nobody, NULL, 0);
    client = client_with_session(w, nobody);
    client->hang_up = true;
    assert_false(lm_world_wait(w, session_is_gone, 3));
    kill_client(client);
    assert_true(lm_world_wait(w, session_is_gone, 10));
    munmap(client, sizeof *client);
}

/* As when lm runs in a container, too. */
static void test_a_client_that_is_not_seen(void **state)
{
    struct lm_world *w = *state;
    struct client *client;

    if (!lm_world_can_be_apart())
        skip();
    lm_world_kill_lm(w);
    w->apart = true;
    lm_world_start_lm(w);
    assert_true(lm_world_wait(w, lm_world_joined, 10));
    client = client_with_session(w, 0);
    assert_int_equal(lm_world_push_table(w), 0);
    assert_int_equal(client->epoch, w->epoch);
    client->hang_up = true;
    assert_false(lm_world_wait(w, session_is_gone, 3));
    assert_int_equal(lm_world_push_table(w), 0); /* nobody is behind */
    end_client(client);
    client = start_client(w, 0, "");
    assert_int_equal(lm_world_ask(w, MFS_MSG_STOP, &(struct mfs_msg_empty){0}), 0);
    assert_int_equal(waitpid(client->pid, NULL, WNOHANG), 0);
    end_client(client);
    assert_true(lm_world_wait(w, lm_world_lm_ended, 5));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, lm_world_setup, lm_world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_clients_get_every_table),
        TEST(test_a_connection_is_one_client),
        TEST(test_a_client_gets_what_has_changed_or_the_whole),
        TEST(test_a_deaf_client_is_named),
        TEST(test_a_dead_clients_session_ends),
        TEST(test_a_dead_clients_session_ends_in_the_end),
        TEST(test_a_bystander_is_not_ended),
        TEST(test_a_bystanders_death_is_not_the_clients),
        TEST(test_a_lost_connection_is_no_death),
        TEST(test_a_client_that_is_not_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
