/* The Local Manager as cm and clients see it. ctest: timeout=180 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "lm_world.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cluster/capacity.h"
#include "store/keys.h"

#define MIB (1ULL << 20)

/* ---- a client's side ------------------------------------------------------------------------- */

struct client {
    struct lm_world *w;
    struct mfs_conn *conn; /* NULL once it is down */
    bool up, greeted;
    bool deaf; /* does not answer tables */
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

static bool reported(struct lm_world *w)
{
    return w->report.nparts == LM_WORLD_PARTS && w->report.memory_used > 0 &&
           w->report.epoch == w->epoch;
}

static void test_join_assign_table_report(void **state)
{
    struct lm_world *w = *state;

    assert_int_equal(w->join.version, MFS_PROTOCOL_VERSION);
    assert_int_equal(w->join.node, LM_WORLD_NODE);
    assert_string_equal(w->join.name, LM_WORLD_NAME);
    assert_int_equal(w->join.nassigned, 0);
    assert_int_equal(w->join.epoch, 0);
    assert_true(w->join.memory > 0);
    if (lm_world_assign(w))
        fail_msg("%s", w->err.msg);
    assert_true(w->assigned[0].port && w->assigned[1].port);
    assert_int_equal(lm_world_push_table(w), 0);
    assert_int_equal(w->acked, 1);
    assert_true(lm_world_wait(w, reported, 5));
    /* What can be told before, less what the processes turned out to take beyond that. */
    assert_true(w->report.memory_capacity <= mfs_capacity_used(LM_WORLD_MEMORY, LM_WORLD_PARTS));
    assert_true(w->report.memory_capacity + 8 * MIB >=
                mfs_capacity_used(LM_WORLD_MEMORY, LM_WORLD_PARTS));
}

static void test_assign_again_is_harmless(void **state)
{
    struct lm_world *w = *state;
    struct mfs_assigned_part before[LM_WORLD_PARTS];

    assert_int_equal(lm_world_assign(w), 0);
    memcpy(before, w->assigned, sizeof before);
    assert_int_equal(lm_world_assign(w), 0);
    assert_memory_equal(before, w->assigned, sizeof before);
}

static void test_nonsense_is_refused(void **state)
{
    struct lm_world *w = *state;
    struct mfs_msg_mount m = {.path = "/nowhere"};

    w->part[1].index = LM_WORLD_PARTS;
    assert_int_equal(lm_world_assign(w), -EINVAL);
    w->part[1].index = 1;
    assert_int_equal(lm_world_ask(w, MFS_MSG_MOUNT, &m), -EAGAIN);
    assert_int_equal(lm_world_assign(w), 0);
    assert_int_equal(lm_world_push_table(w), 0);
    mfs_text_copy(m.path, sizeof m.path, "relative");
    assert_int_equal(lm_world_ask(w, MFS_MSG_MOUNT, &m), -EINVAL);
    w->epoch = 0; /* an old table: answered with the one that is held */
    assert_int_equal(lm_world_push_table(w), 0);
    assert_int_equal(w->acked, 1);
}

static void test_a_killed_lm_leaves_the_data_and_the_next_goes_on(void **state)
{
    struct lm_world *w = *state;
    struct mfs_assigned_part before[LM_WORLD_PARTS];

    assert_int_equal(lm_world_assign(w), 0);
    assert_int_equal(lm_world_push_table(w), 0);
    lm_world_command(w, "SET", "key", 3, "value");
    memcpy(before, w->assigned, sizeof before);
    lm_world_kill_lm(w);
    assert_int_equal(lm_world_command(w, "EXISTS", "key", 3, NULL), 1);
    lm_world_start_lm(w);
    assert_true(lm_world_wait(w, lm_world_joined, 10));
    assert_int_equal(w->join.nassigned, LM_WORLD_PARTS);
    assert_int_equal(w->join.epoch, 1);
    assert_int_equal(lm_world_assign(w), 0);
    assert_memory_equal(before, w->assigned, sizeof before);
    assert_int_equal(lm_world_command(w, "EXISTS", "key", 3, NULL), 1);
    assert_true(lm_world_wait(w, reported, 5));
}

/* As when it was killed between starting processes and writing them down. */
static void test_what_a_killed_lm_did_not_note_is_ended(void **state)
{
    struct lm_world *w = *state;
    struct mfs_proc noted, unlisted;
    struct mfs_state s;
    char path[128];

    assert_int_equal(lm_world_assign(w), 0);
    s = lm_world_state(w);
    assert_int_equal(s.nredis, LM_WORLD_PARTS);
    noted = mfs_state_proc_get(&s.redis[0].proc);
    unlisted = mfs_state_proc_get(&s.redis[1].proc);
    lm_world_kill_lm(w);
    s.nredis = 1;
    snprintf(path, sizeof path, "%s/node-%d/lm.json", w->dir, LM_WORLD_NODE);
    assert_int_equal(mfs_state_save(&s, path), 0);
    s.nredis = LM_WORLD_PARTS;
    mfs_record_clear(&mfs_state_record, &s);
    lm_world_start_lm(w);
    assert_true(lm_world_wait(w, lm_world_joined, 10));
    assert_int_equal(w->join.nassigned, 1);
    assert_true(mfs_proc_alive(&noted));
    assert_false(mfs_proc_alive(&unlisted));

    lm_world_kill_lm(w);
    assert_int_equal(unlink(path), 0); /* killed in its very first assign */
    lm_world_start_lm(w);
    assert_true(lm_world_wait(w, lm_world_joined, 10));
    assert_int_equal(w->join.nassigned, 0);
    assert_false(mfs_proc_alive(&noted));
    assert_int_equal(lm_world_assign(w), 0);
}

static void test_cm_may_go_and_come_back(void **state)
{
    struct lm_world *w = *state;

    assert_int_equal(lm_world_assign(w), 0);
    mfs_listener_destroy(w->listener);
    w->lm = NULL;
    mfs_clock_sleep(300 * MFS_MSEC);
    assert_int_equal(kill(w->pid, 0), 0);
    lm_world_listen(w);
    assert_true(lm_world_wait(w, lm_world_joined, 10));
    assert_int_equal(w->joins, 2);
    assert_int_equal(w->join.nassigned, LM_WORLD_PARTS);
}

static bool redis_loss_told(struct lm_world *w)
{
    return strstr(w->events, "redis-lost: partition 1:") != NULL;
}

static bool redis_revival_told(struct lm_world *w)
{
    return strstr(w->events, "redis-revived: partition 1:") != NULL;
}

/* Without it nothing can take the place of a process that dies. */
static void remove_journal(struct lm_world *w)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/node-%d/redis-1.journal", w->dir, LM_WORLD_NODE);
    assert_int_equal(unlink(path), 0);
}

static void test_a_dead_redis_is_replaced(void **state)
{
    struct lm_world *w = *state;
    struct mfs_proc p, q;

    assert_int_equal(lm_world_assign(w), 0);
    p = lm_world_redis(w, 1);
    assert_int_equal(mfs_proc_kill(&p, SIGKILL), 0);
    assert_true(lm_world_wait(w, redis_revival_told, 15));
    assert_non_null(strstr(w->events, "signal 9"));
    q = lm_world_redis(w, 1);
    assert_true(mfs_proc_alive(&q));
    assert_int_not_equal(p.pid, q.pid);
    assert_int_equal(lm_world_assign(w), 0); /* it is what was asked for */
}

static void test_a_lost_redis_is_reported_and_not_replaced(void **state)
{
    struct lm_world *w = *state;
    struct mfs_proc p;

    assert_int_equal(lm_world_assign(w), 0);
    p = lm_world_redis(w, 1);
    remove_journal(w);
    assert_int_equal(mfs_proc_kill(&p, SIGKILL), 0);
    assert_true(lm_world_wait(w, redis_loss_told, 5));
    assert_non_null(strstr(w->events, "signal 9"));
    assert_int_equal(lm_world_assign(w), -EIO);
    assert_non_null(strstr(w->err.msg, "partition 1"));
    /* New credentials: cm means it. */
    mfs_random_hex(w->part[1].password, 32);
    assert_int_equal(lm_world_assign(w), 0);
    p = lm_world_redis(w, 1);
    assert_true(mfs_proc_alive(&p));
}

static void test_a_redis_that_died_while_no_lm_was_there(void **state)
{
    struct lm_world *w = *state;
    struct mfs_proc p;

    assert_int_equal(lm_world_assign(w), 0);
    p = lm_world_redis(w, 1);
    lm_world_kill_lm(w);
    mfs_proc_end(&p, 0);
    lm_world_start_lm(w);
    assert_true(lm_world_wait(w, redis_revival_told, 15));
    assert_int_equal(w->join.nassigned, 2);
    p = lm_world_redis(w, 1);
    assert_true(mfs_proc_alive(&p));
}

static void test_a_redis_that_was_lost_while_no_lm_was_there(void **state)
{
    struct lm_world *w = *state;
    struct mfs_proc p;

    assert_int_equal(lm_world_assign(w), 0);
    p = lm_world_redis(w, 1);
    lm_world_kill_lm(w);
    remove_journal(w);
    mfs_proc_end(&p, 0);
    lm_world_start_lm(w);
    assert_true(lm_world_wait(w, redis_loss_told, 15));
}

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

static void test_a_mount_that_fails_says_why(void **state)
{
    struct lm_world *w = *state;
    struct mfs_msg_mount m = {0};
    char note[128];

    assert_int_equal(lm_world_assign(w), 0);
    assert_int_equal(lm_world_push_table(w), 0);
    /* The client is looked for beside the running program, and there is none beside a test. */
    snprintf(m.path, sizeof m.path, "%s/mnt", w->dir);
    assert_int_equal(lm_world_ask(w, MFS_MSG_MOUNT, &m), -ENOENT);
    assert_non_null(strstr(w->err.msg, "can't mount"));
    snprintf(note, sizeof note, "%s/node-%d/mount", w->dir, LM_WORLD_NODE);
    mfs_clock_sleep(100 * MFS_MSEC);
    assert_int_not_equal(access(note, F_OK), 0);
    assert_int_equal(lm_world_ask(w, MFS_MSG_UMOUNT, &m), 0);
}

static void test_stop_ends_everything(void **state)
{
    struct lm_world *w = *state;
    struct mfs_proc p[LM_WORLD_PARTS];
    char path[128];

    assert_int_equal(lm_world_assign(w), 0);
    for (uint32_t i = 0; i < LM_WORLD_PARTS; i++)
        p[i] = lm_world_redis(w, i);
    assert_int_equal(lm_world_ask(w, MFS_MSG_STOP, &(struct mfs_msg_empty){0}), 0);
    for (uint32_t i = 0; i < LM_WORLD_PARTS; i++) {
        assert_false(mfs_proc_alive(&p[i]));
        assert_int_not_equal(access(w->assigned[i].unix_path, F_OK), 0);
    }
    assert_int_not_equal(access(w->sock + 5, F_OK), 0);
    snprintf(path, sizeof path, "%s/node-%d/lm.json", w->dir, LM_WORLD_NODE);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_true(lm_world_wait(w, lm_world_lm_ended, 5));
}

static void test_stop_ends_a_hung_redis(void **state)
{
    struct lm_world *w = *state;
    struct mfs_proc p;

    assert_int_equal(lm_world_assign(w), 0);
    p = lm_world_redis(w, 0);
    mfs_proc_kill(&p, SIGSTOP);
    assert_int_equal(lm_world_ask(w, MFS_MSG_STOP, &(struct mfs_msg_empty){0}), 0);
    assert_false(mfs_proc_alive(&p));
    assert_true(lm_world_wait(w, lm_world_lm_ended, 5));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, lm_world_setup, lm_world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_join_assign_table_report),
        TEST(test_assign_again_is_harmless),
        TEST(test_nonsense_is_refused),
        TEST(test_a_killed_lm_leaves_the_data_and_the_next_goes_on),
        TEST(test_what_a_killed_lm_did_not_note_is_ended),
        TEST(test_cm_may_go_and_come_back),
        TEST(test_a_dead_redis_is_replaced),
        TEST(test_a_lost_redis_is_reported_and_not_replaced),
        TEST(test_a_redis_that_died_while_no_lm_was_there),
        TEST(test_a_redis_that_was_lost_while_no_lm_was_there),
        TEST(test_clients_get_every_table),
        TEST(test_a_deaf_client_is_named),
        TEST(test_a_dead_clients_session_ends),
        TEST(test_a_dead_clients_session_ends_in_the_end),
        TEST(test_a_mount_that_fails_says_why),
        TEST(test_stop_ends_everything),
        TEST(test_stop_ends_a_hung_redis),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
