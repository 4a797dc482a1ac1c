/* The Local Manager as cm sees it: the test is cm, with a listener of its own; lm runs in a process
 * of its own, so that it can be killed; redis processes are real. ctest: timeout=180 */
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

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "lm/agent.h"
#include "lm/state.h"
#include "store/args.h"
#include "store/keys.h"
#include "store/reply.h"
#include "wire/conn.h"
#include "wire/loop.h"
#include "wire/messages.h"

#define MIB   (1ULL << 20)
#define PARTS 2
#define NODE  3

struct world {
    char dir[64], cm[MFS_ADDRESS_MAX], sock[128];
    struct mfs_secret secret;
    struct mfs_loop *loop;
    struct mfs_listener *listener;
    struct mfs_conn *lm; /* the connection, NULL while there is none */
    pid_t pid;           /* of lm */
    struct mfs_assign_part part[PARTS];
    uint64_t epoch;

    /* seen */
    int joins, reports;
    struct mfs_msg_join join;
    struct mfs_assigned_part joined[PARTS];
    struct mfs_msg_report report;
    char events[4096];

    /* the last request's answer */
    bool answered;
    struct mfs_err err;
    uint64_t acked;
    struct mfs_assigned_part assigned[PARTS];

    /* as a client */
    struct mfs_conn *client;
    bool client_up, deaf; /* deaf: does not answer tables */
    uint64_t client_epoch;
};

/* ---- cm's side ------------------------------------------------------------------------------- */

static void on_join(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    struct world *w = arg;

    w->join = *(const struct mfs_msg_join *)body;
    for (uint32_t i = 0; i < w->join.nassigned && i < PARTS; i++)
        w->joined[i] = w->join.assigned[i];
    w->join.assigned = NULL;
    w->joins++;
    w->lm = c;
    mfs_conn_reply(c, MFS_MSG_JOIN, id, &(struct mfs_msg_empty){0});
}

static void on_report(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    struct world *w = arg;

    (void)c;
    (void)id;
    w->report = *(const struct mfs_msg_report *)body;
    w->reports++;
}

static void on_event(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    struct world *w = arg;
    const struct mfs_msg_event *e = body;
    size_t len = strlen(w->events);

    (void)c;
    (void)id;
    snprintf(w->events + len, sizeof w->events - len, "%s: %s\n", e->what, e->text);
}

static void on_down(struct mfs_conn *c, const struct mfs_err *why, void *arg)
{
    struct world *w = arg;

    (void)why;
    if (w->lm == c)
        w->lm = NULL;
}

static const struct mfs_handler cm_handlers[] = {
    {MFS_MSG_JOIN, on_join}, {MFS_MSG_REPORT, on_report}, {MFS_MSG_EVENT, on_event}, {0, NULL}};
static const struct mfs_service cm_service = {cm_handlers, NULL, on_down};

/* ---- running the loop until something holds -------------------------------------------------- */

struct pump {
    struct world *w;
    bool (*holds)(struct world *w);
    int64_t until;
    bool held;
};

static void look(void *arg)
{
    struct pump *p = arg;

    p->held = p->holds(p->w);
    if (p->held || mfs_clock_mono() > p->until)
        mfs_loop_stop(p->w->loop);
}

static bool pump(struct world *w, bool (*holds)(struct world *w), int seconds)
{
    struct pump p = {w, holds, mfs_clock_mono() + seconds * MFS_SEC, false};
    struct mfs_timer *t = mfs_loop_timer(w->loop, 0, 5 * MFS_MSEC, look, &p);

    mfs_loop_run(w->loop);
    mfs_timer_cancel(t);
    return p.held;
}

static bool answered(struct world *w)
{
    return w->answered;
}

static bool joined(struct world *w)
{
    return w->lm != NULL;
}

static bool lm_ended(struct world *w)
{
    int status;

    if (waitpid(w->pid, &status, WNOHANG) != w->pid)
        return false;
    w->pid = 0;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void request_done(void *arg, const struct mfs_err *err, const void *reply)
{
    struct world *w = arg;

    (void)reply;
    w->answered = true;
    if (err)
        w->err = *err;
}

static void assign_done(void *arg, const struct mfs_err *err, const void *reply)
{
    const struct mfs_msg_assign_reply *m = reply;
    struct world *w = arg;

    for (uint32_t i = 0; !err && i < m->nassigned && i < PARTS; i++)
        w->assigned[i] = m->assigned[i];
    request_done(arg, err, NULL);
}

static void table_done(void *arg, const struct mfs_err *err, const void *reply)
{
    struct world *w = arg;

    w->acked = err ? 0 : ((const struct mfs_msg_epoch *)reply)->epoch;
    request_done(arg, err, NULL);
}

static int ask(struct world *w, enum mfs_msg type, const void *body,
               void (*done)(void *, const struct mfs_err *, const void *))
{
    w->answered = false;
    w->err = (struct mfs_err){0};
    assert_non_null(w->lm);
    assert_int_equal(mfs_conn_request(w->lm, type, body, 45 * MFS_SEC, done, w), 0);
    assert_true(pump(w, answered, 50));
    return w->err.code;
}

static int assign(struct world *w)
{
    struct mfs_msg_assign m = {.nparts = PARTS,
                               .stripe_size = MIB,
                               .memory = 128 * MIB,
                               .nassigned = PARTS,
                               .assigned = w->part};

    return ask(w, MFS_MSG_ASSIGN, &m, assign_done);
}

static struct mfs_table *table(const struct world *w)
{
    struct mfs_table *t = mfs_table_new(PARTS);

    strcpy(t->name, "agenttest");
    t->epoch = w->epoch;
    t->stripe_size = MIB;
    for (uint32_t i = 0; i < PARTS; i++) {
        t->part[i].node = NODE;
        strcpy(t->part[i].host, "127.0.0.1");
        t->part[i].port = (uint16_t)w->assigned[i].port;
        strcpy(t->part[i].unix_path, w->assigned[i].unix_path);
        strcpy(t->part[i].password, w->part[i].password);
    }
    return t;
}

static int push_table(struct world *w)
{
    struct mfs_msg_table m;
    int rc;

    w->epoch++;
    m.table = table(w);
    rc = ask(w, MFS_MSG_TABLE, &m, table_done);
    free(m.table);
    return rc;
}

/* One command with one binary key at partition 1; the reply as a number. */
static int64_t command(struct world *w, const char *name, const char *key, size_t len,
                       const char *value)
{
    struct mfs_store_opts opts = {.node = NODE, .io_timeout = 5 * MFS_SEC};
    struct mfs_store *store;
    struct mfs_args args;
    struct mfs_cmd cmd;
    int64_t n;

    assert_int_equal(mfs_store_create(&store, table(w), &opts), 0);
    mfs_args_init(&args, name);
    mfs_args_bin(&args, key, len);
    if (value)
        mfs_args_str(&args, value);
    cmd = mfs_args_cmd(&args, 1);
    n = mfs_store_exec(store, &cmd, 1);
    if (!n)
        n = mfs_reply_int(cmd.reply);
    mfs_cmds_fini(&cmd, 1);
    mfs_store_destroy(store);
    return n;
}

/* ---- the world ------------------------------------------------------------------------------- */

static void start_lm(struct world *w)
{
    struct mfs_agent_opts opts = {.name = "agenttest",
                                  .node = NODE,
                                  .address = "127.0.0.1",
                                  .state_dir = w->dir,
                                  .cm = w->cm,
                                  .interval = 200 * MFS_MSEC};
    struct mfs_err err = {0};
    char log[128];

    w->pid = fork();
    assert_true(w->pid >= 0);
    if (w->pid)
        return;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    close_range(3, ~0U, 0); /* the listener is the test's alone */
    snprintf(log, sizeof log, "%s/lm.log", w->dir);
    mfs_log_open("lm", log, MFS_LOG_DEBUG);
    _exit(mfs_agent_run(&opts, NULL, NULL, &err) ? 1 : 0);
}

static void listen_as_cm(struct world *w)
{
    struct mfs_err err = {0};

    w->listener = mfs_listener_create(w->loop, w->cm[0] ? w->cm : "127.0.0.1:0", &w->secret, 8,
                                      &cm_service, w, &err);
    if (!w->listener)
        fail_msg("%s", err.msg);
    mfs_listener_address(w->listener, w->cm);
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    char path[128];

    strcpy(w->dir, "/tmp/memefs-agent-XXXXXX");
    if (!mkdtemp(w->dir))
        return -1;
    snprintf(path, sizeof path, "%s/secret", w->dir);
    if (mfs_secret_create(path, &w->secret))
        return -1;
    snprintf(path, sizeof path, "%s/node-%d", w->dir, NODE);
    if (mfs_file_mkdirs(path, 0700))
        return -1;
    snprintf(w->sock, sizeof w->sock, "unix:%s/node-%d/lm.sock", w->dir, NODE);
    for (uint32_t i = 0; i < PARTS; i++) {
        w->part[i] = (struct mfs_assign_part){.index = i, .format = true};
        mfs_random_hex(w->part[i].password, 32);
        mfs_random_hex(w->part[i].admin_password, 32);
    }
    w->loop = mfs_loop_create();
    listen_as_cm(w);
    start_lm(w);
    *state = w;
    return pump(w, joined, 10) ? 0 : -1;
}

static void show_log(const struct world *w)
{
    char path[128];
    struct mfs_buf text;

    mfs_buf_init(&text);
    snprintf(path, sizeof path, "%s/lm.log", w->dir);
    if (!mfs_file_read(path, MIB, &text))
        fwrite(mfs_buf_data(&text), 1, mfs_buf_len(&text), stderr);
    mfs_buf_fini(&text);
}

/* Whatever a test left behind, SIGTERM must clean up. */
static int teardown(void **state)
{
    struct world *w = *state;
    int rc = 0;

    if (w->client)
        mfs_conn_close(w->client);
    if (w->pid) {
        kill(w->pid, SIGTERM);
        rc = pump(w, lm_ended, 30) ? 0 : -1;
    }
    if (rc || getenv("TEST_SHOW_LOG"))
        show_log(w);
    mfs_listener_destroy(w->listener);
    mfs_loop_destroy(w->loop);
    mfs_file_remove_tree(w->dir);
    free(w);
    return rc;
}

static struct mfs_state state_of(const struct world *w)
{
    struct mfs_state s;
    struct mfs_err err;
    char path[128];

    snprintf(path, sizeof path, "%s/node-%d/lm.json", w->dir, NODE);
    if (mfs_state_load(&s, path, &err))
        fail_msg("%s", err.msg);
    return s;
}

static struct mfs_proc redis_process(const struct world *w, uint32_t index)
{
    struct mfs_state s = state_of(w);
    struct mfs_proc p = {0};

    for (uint32_t i = 0; i < s.nredis; i++) {
        if (s.redis[i].index == index)
            p = mfs_state_proc_get(&s.redis[i].proc);
    }
    mfs_record_clear(&mfs_state_record, &s);
    return p;
}

/* ---- a client's side ------------------------------------------------------------------------- */

static void client_table(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_table *m = body;
    struct world *w = arg;

    w->client_epoch = m->table->epoch;
    if (!w->deaf)
        mfs_conn_reply(c, MFS_MSG_TABLE, id, &(struct mfs_msg_epoch){m->table->epoch});
}

static void client_up(struct mfs_conn *c, void *arg)
{
    struct world *w = arg;

    (void)c;
    w->client_up = true;
}

static void client_down(struct mfs_conn *c, const struct mfs_err *why, void *arg)
{
    struct world *w = arg;

    (void)c;
    (void)why;
    w->client = NULL;
}

static const struct mfs_handler client_handlers[] = {{MFS_MSG_TABLE, client_table}, {0, NULL}};
static const struct mfs_service client_service = {client_handlers, client_up, client_down};

static bool client_is_up(struct world *w)
{
    return w->client_up;
}

static bool client_has_table(struct world *w)
{
    return w->client_epoch == w->epoch;
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
static void connect_client(struct world *w, pid_t pid, const char *session)
{
    struct mfs_msg_client_hello m = {.version = MFS_PROTOCOL_VERSION, .pid = (uint32_t)pid};
    struct mfs_err err;

    strcpy(m.session, session);
    w->client = mfs_conn_connect(w->loop, w->sock, &w->secret, "client", 5 * MFS_SEC,
                                 &client_service, w, &err);
    assert_non_null(w->client);
    assert_true(pump(w, client_is_up, 5));
    w->answered = false;
    assert_int_equal(
        mfs_conn_request(w->client, MFS_MSG_CLIENT_HELLO, &m, 5 * MFS_SEC, request_done, w), 0);
    assert_true(pump(w, answered, 5));
    assert_int_equal(w->err.code, 0);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static bool reported(struct world *w)
{
    return w->report.nparts == PARTS && w->report.memory_used > 0 && w->report.epoch == w->epoch;
}

static void test_join_assign_table_report(void **state)
{
    struct world *w = *state;

    assert_int_equal(w->join.version, MFS_PROTOCOL_VERSION);
    assert_int_equal(w->join.node, NODE);
    assert_string_equal(w->join.name, "agenttest");
    assert_int_equal(w->join.nassigned, 0);
    assert_int_equal(w->join.epoch, 0);
    assert_true(w->join.memory > 0);
    if (assign(w))
        fail_msg("%s", w->err.msg);
    assert_true(w->assigned[0].port && w->assigned[1].port);
    assert_int_equal(push_table(w), 0);
    assert_int_equal(w->acked, 1);
    assert_true(pump(w, reported, 5));
    assert_int_equal(w->report.memory_capacity, 124 * MIB);
}

static void test_assign_again_is_harmless(void **state)
{
    struct world *w = *state;
    struct mfs_assigned_part before[PARTS];

    assert_int_equal(assign(w), 0);
    memcpy(before, w->assigned, sizeof before);
    assert_int_equal(assign(w), 0);
    assert_memory_equal(before, w->assigned, sizeof before);
}

static void test_nonsense_is_refused(void **state)
{
    struct world *w = *state;
    struct mfs_msg_mount m = {.path = "/nowhere"};

    w->part[1].index = PARTS;
    assert_int_equal(assign(w), -EINVAL);
    w->part[1].index = 1;
    assert_int_equal(ask(w, MFS_MSG_MOUNT, &m, request_done), -EAGAIN);
    assert_int_equal(assign(w), 0);
    assert_int_equal(push_table(w), 0);
    strcpy(m.path, "relative");
    assert_int_equal(ask(w, MFS_MSG_MOUNT, &m, request_done), -EINVAL);
    w->epoch = 0; /* an old table: answered with the one that is held */
    assert_int_equal(push_table(w), 0);
    assert_int_equal(w->acked, 1);
}

static void test_a_killed_lm_leaves_the_data_and_the_next_goes_on(void **state)
{
    struct world *w = *state;
    struct mfs_assigned_part before[PARTS];

    assert_int_equal(assign(w), 0);
    assert_int_equal(push_table(w), 0);
    command(w, "SET", "key", 3, "value");
    memcpy(before, w->assigned, sizeof before);
    kill(w->pid, SIGKILL);
    waitpid(w->pid, NULL, 0);
    w->lm = NULL;
    assert_int_equal(command(w, "EXISTS", "key", 3, NULL), 1);
    start_lm(w);
    assert_true(pump(w, joined, 10));
    assert_int_equal(w->join.nassigned, PARTS);
    assert_int_equal(w->join.epoch, 1);
    assert_int_equal(assign(w), 0);
    assert_memory_equal(before, w->assigned, sizeof before);
    assert_int_equal(command(w, "EXISTS", "key", 3, NULL), 1);
    assert_true(pump(w, reported, 5));
}

static void test_cm_may_go_and_come_back(void **state)
{
    struct world *w = *state;

    assert_int_equal(assign(w), 0);
    mfs_listener_destroy(w->listener);
    w->lm = NULL;
    mfs_clock_sleep(300 * MFS_MSEC);
    assert_int_equal(kill(w->pid, 0), 0);
    listen_as_cm(w);
    assert_true(pump(w, joined, 10));
    assert_int_equal(w->joins, 2);
    assert_int_equal(w->join.nassigned, PARTS);
}

static bool redis_death_told(struct world *w)
{
    return strstr(w->events, "redis-died: partition 1:") != NULL;
}

static void test_a_dead_redis_is_reported_and_not_replaced(void **state)
{
    struct world *w = *state;
    struct mfs_proc p;

    assert_int_equal(assign(w), 0);
    p = redis_process(w, 1);
    assert_int_equal(mfs_proc_kill(&p, SIGKILL), 0);
    assert_true(pump(w, redis_death_told, 5));
    assert_non_null(strstr(w->events, "signal 9"));
    assert_int_equal(assign(w), -EIO);
    assert_non_null(strstr(w->err.msg, "partition 1"));
    /* New credentials: cm means it. */
    mfs_random_hex(w->part[1].password, 32);
    assert_int_equal(assign(w), 0);
    p = redis_process(w, 1);
    assert_true(mfs_proc_alive(&p));
}

static void test_a_redis_that_died_while_no_lm_was_there(void **state)
{
    struct world *w = *state;
    struct mfs_proc p;

    assert_int_equal(assign(w), 0);
    p = redis_process(w, 1);
    kill(w->pid, SIGKILL);
    waitpid(w->pid, NULL, 0);
    w->lm = NULL;
    mfs_proc_end(&p, 0);
    start_lm(w);
    assert_true(pump(w, joined, 10));
    assert_int_equal(w->join.nassigned, 1);
    assert_int_equal(w->joined[0].index, 0);
    assert_true(pump(w, redis_death_told, 5));
}

static void test_clients_get_every_table(void **state)
{
    struct world *w = *state;

    assert_int_equal(assign(w), 0);
    assert_int_equal(push_table(w), 0);
    connect_client(w, some_process(), "");
    assert_true(pump(w, client_has_table, 5));
    assert_int_equal(push_table(w), 0);
    assert_int_equal(w->acked, 2);
    assert_int_equal(w->client_epoch, 2);
}

static void test_a_deaf_client_is_named(void **state)
{
    struct world *w = *state;
    pid_t pid = some_process();
    char name[32];

    assert_int_equal(assign(w), 0);
    assert_int_equal(push_table(w), 0);
    connect_client(w, pid, "");
    assert_true(pump(w, client_has_table, 5));
    w->deaf = true;
    assert_int_equal(push_table(w), -ETIMEDOUT);
    snprintf(name, sizeof name, "client %d", (int)pid);
    assert_non_null(strstr(w->err.msg, name));
    assert_non_null(strstr(w->events, "client-behind"));
}

static bool session_is_gone(struct world *w)
{
    char key[MFS_KEY_INO_LEN];

    mfs_key_ino(key, 'Z', 0x0123456789abcdefULL); /* odd: partition 1 */
    return command(w, "EXISTS", key, sizeof key, NULL) == 0;
}

static void test_a_dead_clients_session_ends(void **state)
{
    struct world *w = *state;
    char key[MFS_KEY_INO_LEN];
    pid_t pid;

    assert_int_equal(assign(w), 0);
    assert_int_equal(push_table(w), 0);
    mfs_key_ino(key, 'Z', 0x0123456789abcdefULL);
    command(w, "SET", key, sizeof key, "1");
    pid = some_process();
    connect_client(w, pid, "0123456789abcdef");
    assert_true(pump(w, client_has_table, 5));
    assert_false(session_is_gone(w));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_true(pump(w, session_is_gone, 3));
}

static void test_a_mount_that_fails_says_why(void **state)
{
    struct world *w = *state;
    struct mfs_msg_mount m = {0};
    char note[128];

    assert_int_equal(assign(w), 0);
    assert_int_equal(push_table(w), 0);
    /* The client is looked for beside the running program, and there is none beside a test. */
    snprintf(m.path, sizeof m.path, "%s/mnt", w->dir);
    assert_int_equal(ask(w, MFS_MSG_MOUNT, &m, request_done), -ENOENT);
    assert_non_null(strstr(w->err.msg, "can't mount"));
    snprintf(note, sizeof note, "%s/node-%d/mount", w->dir, NODE);
    mfs_clock_sleep(100 * MFS_MSEC);
    assert_int_not_equal(access(note, F_OK), 0);
    assert_int_equal(ask(w, MFS_MSG_UMOUNT, &m, request_done), 0);
}

static void test_stop_ends_everything(void **state)
{
    struct world *w = *state;
    struct mfs_proc p[PARTS];
    char path[128];

    assert_int_equal(assign(w), 0);
    for (uint32_t i = 0; i < PARTS; i++)
        p[i] = redis_process(w, i);
    assert_int_equal(ask(w, MFS_MSG_STOP, &(struct mfs_msg_empty){0}, request_done), 0);
    for (uint32_t i = 0; i < PARTS; i++) {
        assert_false(mfs_proc_alive(&p[i]));
        assert_int_not_equal(access(w->assigned[i].unix_path, F_OK), 0);
    }
    assert_int_not_equal(access(w->sock + 5, F_OK), 0);
    snprintf(path, sizeof path, "%s/node-%d/lm.json", w->dir, NODE);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_true(pump(w, lm_ended, 5));
}

static void test_stop_ends_a_hung_redis(void **state)
{
    struct world *w = *state;
    struct mfs_proc p;

    assert_int_equal(assign(w), 0);
    p = redis_process(w, 0);
    mfs_proc_kill(&p, SIGSTOP);
    assert_int_equal(ask(w, MFS_MSG_STOP, &(struct mfs_msg_empty){0}, request_done), 0);
    assert_false(mfs_proc_alive(&p));
    assert_true(pump(w, lm_ended, 5));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_join_assign_table_report),
        TEST(test_assign_again_is_harmless),
        TEST(test_nonsense_is_refused),
        TEST(test_a_killed_lm_leaves_the_data_and_the_next_goes_on),
        TEST(test_cm_may_go_and_come_back),
        TEST(test_a_dead_redis_is_reported_and_not_replaced),
        TEST(test_a_redis_that_died_while_no_lm_was_there),
        TEST(test_clients_get_every_table),
        TEST(test_a_deaf_client_is_named),
        TEST(test_a_dead_clients_session_ends),
        TEST(test_a_mount_that_fails_says_why),
        TEST(test_stop_ends_everything),
        TEST(test_stop_ends_a_hung_redis),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
