#include "lm_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/log.h"
#include "lm/agent/agent.h"
#include "store/args.h"
#include "store/admin/module.h"
#include "store/reply.h"

#define STRIPE (1U << 20)

/* ---- cm's side ------------------------------------------------------------------------------- */

static void on_join(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    struct lm_world *w = arg;

    w->join = *(const struct mfs_msg_join *)body;
    for (uint32_t i = 0; i < w->join.nassigned && i < LM_WORLD_PARTS; i++)
        w->joined[i] = w->join.assigned[i];
    for (uint32_t i = 0; i < w->join.ncopies && i < LM_WORLD_PARTS; i++)
        w->joined_copy[i] = w->join.copy[i];
    w->join.assigned = NULL;
    w->join.copy = NULL;
    w->joins++;
    w->lm = c;
    if (w->slow_join) {
        mfs_conn_put(w->joins_conn);
        w->joins_conn = mfs_conn_get(c);
        w->joins_id = id;
        return;
    }
    mfs_conn_reply(c, MFS_MSG_JOIN, id, &(struct mfs_msg_empty){0});
}

void lm_world_answer_join(struct lm_world *w)
{
    w->slow_join = false;
    mfs_conn_reply(w->joins_conn, MFS_MSG_JOIN, w->joins_id, &(struct mfs_msg_empty){0});
    mfs_conn_put(w->joins_conn);
    w->joins_conn = NULL;
}

static void on_report(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    struct lm_world *w = arg;

    (void)c;
    (void)id;
    w->report = *(const struct mfs_msg_report *)body;
    for (uint32_t i = 0; i < w->report.ncopies && i < LM_WORLD_PARTS; i++)
        w->copy[i] = w->report.copy[i];
}

static void on_event(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    struct lm_world *w = arg;
    const struct mfs_msg_event *e = body;
    size_t len = strlen(w->events);

    (void)c;
    (void)id;
    snprintf(w->events + len, sizeof w->events - len, "%s: %s\n", e->what, e->text);
}

static void on_died(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    struct lm_world *w = arg;

    (void)c;
    (void)id;
    w->died = *(const struct mfs_msg_died *)body;
}

static void on_down(struct mfs_conn *c, const struct mfs_err *why, void *arg)
{
    struct lm_world *w = arg;

    (void)why;
    if (w->lm == c)
        w->lm = NULL;
}

static const struct mfs_handler cm_handlers[] = {{MFS_MSG_JOIN, on_join},
                                                 {MFS_MSG_REPORT, on_report},
                                                 {MFS_MSG_EVENT, on_event},
                                                 {MFS_MSG_DIED, on_died},
                                                 {0, NULL}};
static const struct mfs_service cm_service = {cm_handlers, NULL, on_down};

/* ---- running the loop until something holds -------------------------------------------------- */

struct pump {
    struct lm_world *w;
    bool (*holds)(struct lm_world *w);
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

bool lm_world_wait(struct lm_world *w, bool (*holds)(struct lm_world *w), int seconds)
{
    struct pump p = {w, holds, mfs_clock_mono() + seconds * MFS_SEC, false};
    struct mfs_timer *t = mfs_loop_timer(w->loop, 0, 5 * MFS_MSEC, look, &p);

    mfs_loop_run(w->loop);
    mfs_timer_cancel(t);
    return p.held;
}

bool lm_world_has_event(const struct lm_world *w, const char *event)
{
    return strstr(w->events, event) != NULL;
}

bool lm_world_answered(struct lm_world *w)
{
    return w->answered;
}

bool lm_world_joined(struct lm_world *w)
{
    return w->lm != NULL;
}

bool lm_world_lm_ended(struct lm_world *w)
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
    struct lm_world *w = arg;

    (void)reply;
    w->answered = true;
    if (err)
        w->err = *err;
}

static void assign_done(void *arg, const struct mfs_err *err, const void *reply)
{
    const struct mfs_msg_assign_reply *m = reply;
    struct lm_world *w = arg;

    for (uint32_t i = 0; !err && i < m->nassigned && i < LM_WORLD_PARTS; i++)
        w->assigned[i] = m->assigned[i];
    request_done(arg, err, NULL);
}

static void table_done(void *arg, const struct mfs_err *err, const void *reply)
{
    struct lm_world *w = arg;

    w->acked = err ? 0 : ((const struct mfs_msg_epoch *)reply)->epoch;
    request_done(arg, err, NULL);
}

static void receive_done(void *arg, const struct mfs_err *err, const void *reply)
{
    struct lm_world *w = arg;

    if (!err)
        w->received = *(const struct mfs_msg_receive_reply *)reply;
    request_done(arg, err, NULL);
}

static void take_done(void *arg, const struct mfs_err *err, const void *reply)
{
    struct lm_world *w = arg;

    if (!err)
        w->taken = *(const struct mfs_msg_take_reply *)reply;
    request_done(arg, err, NULL);
}

void lm_world_begin(struct lm_world *w, enum mfs_msg type, const void *body)
{
    void (*done)(void *, const struct mfs_err *, const void *) =
        type == MFS_MSG_ASSIGN    ? assign_done
        : type == MFS_MSG_TABLE   ? table_done
        : type == MFS_MSG_RECEIVE ? receive_done
        : type == MFS_MSG_TAKE    ? take_done
                                  : request_done;

    w->answered = false;
    w->err = (struct mfs_err){0};
    assert_non_null(w->lm);
    assert_int_equal(mfs_conn_request(w->lm, type, body, 45 * MFS_SEC, done, w), 0);
}

int lm_world_ask(struct lm_world *w, enum mfs_msg type, const void *body)
{
    lm_world_begin(w, type, body);
    assert_true(lm_world_wait(w, lm_world_answered, 50));
    return w->err.code;
}

int lm_world_assign(struct lm_world *w)
{
    struct mfs_msg_assign m = {.nparts = LM_WORLD_PARTS,
                               .stripe_size = STRIPE,
                               .memory = LM_WORLD_MEMORY,
                               .nassigned = LM_WORLD_PARTS,
                               .assigned = w->part};

    return lm_world_ask(w, MFS_MSG_ASSIGN, &m);
}

struct mfs_table *lm_world_table(const struct lm_world *w)
{
    struct mfs_table *t = mfs_table_new(LM_WORLD_PARTS);

    mfs_text_copy(t->name, sizeof t->name, LM_WORLD_NAME);
    t->epoch = w->epoch;
    t->stripe_size = STRIPE;
    for (uint32_t i = 0; i < LM_WORLD_PARTS; i++) {
        t->part[i].node = LM_WORLD_NODE;
        mfs_text_copy(t->part[i].host, sizeof t->part[i].host, "127.0.0.1");
        t->part[i].port = (uint16_t)w->assigned[i].port;
        mfs_text_copy(t->part[i].unix_path, sizeof t->part[i].unix_path, w->assigned[i].unix_path);
        mfs_text_copy(t->part[i].password, sizeof t->part[i].password, w->part[i].password);
    }
    return t;
}

int lm_world_push_table(struct lm_world *w)
{
    struct mfs_msg_table m = {0};
    int rc;

    w->epoch++;
    m.table = lm_world_table(w);
    rc = lm_world_ask(w, MFS_MSG_TABLE, &m);
    free(m.table);
    return rc;
}

int64_t lm_world_command(struct lm_world *w, const char *name, const char *key, size_t len,
                         const char *value)
{
    struct mfs_store_opts opts = {.node = LM_WORLD_NODE, .io_timeout = 5 * MFS_SEC};
    struct mfs_store *store;
    struct mfs_args args;
    struct mfs_cmd cmd;
    int64_t n;

    assert_int_equal(mfs_store_create(&store, lm_world_table(w), &opts), 0);
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

static _Noreturn void run_library(const struct lm_world *w)
{
    struct mfs_agent_opts opts = {.name = LM_WORLD_NAME,
                                  .node = LM_WORLD_NODE,
                                  .address = "127.0.0.1",
                                  .state_dir = w->dir,
                                  .dump_dir = w->dir,
                                  .cm = w->cm,
                                  .interval = 200 * MFS_MSEC};
    struct mfs_err err = {0};

    _exit(mfs_agent_run(&opts, NULL, NULL, &err) ? 1 : 0);
}

static _Noreturn void run_program(const struct lm_world *w)
{
    char lm[PATH_MAX], node[16];

    snprintf(lm, sizeof lm, "%s/lm", w->bin);
    snprintf(node, sizeof node, "%d", LM_WORLD_NODE);
    execl(lm, "lm", "--name", LM_WORLD_NAME, "--node", node, "--address", "127.0.0.1",
          "--state-dir", w->dir, "--cm", w->cm, "--interval", "200", "--log-level", "debug",
          "--dump-dir", w->dir, "--foreground", NULL);
    _exit(127);
}

/* Into a new PID name space; the next ones are of this one again. In a chroot, "/" may be no mount;
 * /proc is one. */
static pid_t fork_apart(void)
{
    char path[PATH_MAX];
    int here = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    pid_t pid;

    assert_int_equal(mfs_module_path(path, sizeof path), 0); /* not found from there, in a chroot */
    pid = here < 0 || unshare(CLONE_NEWPID) ? -1 : fork();
    if (!pid && (unshare(CLONE_NEWNS) || mount(NULL, "/proc", NULL, MS_PRIVATE, NULL) ||
                 mount("proc", "/proc", "proc", 0, NULL)))
        _exit(1);
    if (pid && here >= 0) {
        assert_int_equal(setns(here, CLONE_NEWPID), 0);
        close(here);
    }
    return pid;
}

bool lm_world_can_be_apart(void)
{
    pid_t pid = fork_apart();
    int status;

    if (!pid)
        _exit(0);
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

void lm_world_start_lm(struct lm_world *w)
{
    char log[128];
    int fd;

    w->pid = w->apart ? fork_apart() : fork();
    assert_true(w->pid >= 0);
    if (w->pid)
        return;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    close_range(3, ~0U, 0); /* the listener is the test's alone */
    snprintf(log, sizeof log, "%s/lm.log", w->dir);
    fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(fd, 1);
    dup2(fd, 2);
    if (w->bin)
        run_program(w);
    mfs_log_open("lm", NULL, MFS_LOG_DEBUG);
    run_library(w);
}

void lm_world_kill_lm(struct lm_world *w)
{
    kill(w->pid, SIGKILL);
    waitpid(w->pid, NULL, 0);
    w->lm = NULL;
}

/* What it writes beside the file and then renames has this name (base/file.c). A directory in its
 * place is in the way of root as well. */
void lm_world_hinder(struct lm_world *w, bool on)
{
    char path[128];

    snprintf(path, sizeof path, "%s/node-%d/lm.json.new.%d", w->dir, LM_WORLD_NODE, (int)w->pid);
    assert_int_equal(on ? mkdir(path, 0700) : rmdir(path), 0);
}

void lm_world_listen(struct lm_world *w)
{
    struct mfs_err err = {0};

    w->listener = mfs_listener_create(w->loop, w->cm[0] ? w->cm : "127.0.0.1:0", &w->secret, 8,
                                      &cm_service, w, &err);
    if (!w->listener)
        fail_msg("%s", err.msg);
    mfs_listener_address(w->listener, w->cm);
}

static int make_files(struct lm_world *w)
{
    struct mfs_err err;
    char path[128];

    mfs_text_copy(w->dir, sizeof w->dir, "/tmp/memefs-lm-XXXXXX");
    if (!mkdtemp(w->dir))
        return -1;
    snprintf(path, sizeof path, "%s/secret", w->dir);
    if (mfs_secret_create(path) || mfs_secret_load(path, &w->secret, &err))
        return -1;
    snprintf(path, sizeof path, "%s/node-%d", w->dir, LM_WORLD_NODE);
    snprintf(w->sock, sizeof w->sock, "unix:%s/node-%d/lm.sock", w->dir, LM_WORLD_NODE);
    return mfs_file_mkdirs(path, 0700);
}

static int setup(void **state, const char *bin)
{
    struct lm_world *w = calloc(1, sizeof *w);

    w->bin = bin;
    if (make_files(w))
        return -1;
    for (uint32_t i = 0; i < LM_WORLD_PARTS; i++) {
        w->part[i] = (struct mfs_assign_part){.index = i, .format = true};
        mfs_random_hex(w->part[i].password, 32);
        mfs_random_hex(w->part[i].admin_password, 32);
    }
    w->loop = mfs_loop_create();
    lm_world_listen(w);
    lm_world_start_lm(w);
    *state = w;
    return lm_world_wait(w, lm_world_joined, 10) ? 0 : -1;
}

int lm_world_setup(void **state)
{
    return setup(state, NULL);
}

int lm_world_setup_programs(void **state)
{
    const char *bin = getenv("MEMEFS_BIN");
    char lm[PATH_MAX], memefs[PATH_MAX];

    *state = NULL;
    if (!bin || access("/dev/fuse", R_OK | W_OK))
        return 0;
    snprintf(lm, sizeof lm, "%s/lm", bin);
    snprintf(memefs, sizeof memefs, "%s/memefs", bin);
    if (access(lm, X_OK) || access(memefs, X_OK))
        return 0;
    return setup(state, bin);
}

static void show_log(const struct lm_world *w)
{
    char path[128];
    struct mfs_buf text;

    mfs_buf_init(&text);
    snprintf(path, sizeof path, "%s/lm.log", w->dir);
    if (!mfs_file_read(path, 1U << 24, &text))
        fwrite(mfs_buf_data(&text), 1, mfs_buf_len(&text), stderr);
    mfs_buf_fini(&text);
}

/* Whatever a test left behind, SIGTERM must clean up. */
int lm_world_teardown(void **state)
{
    struct lm_world *w = *state;
    int rc = 0;

    if (!w)
        return 0;
    if (w->pid) {
        kill(w->pid, SIGTERM);
        rc = lm_world_wait(w, lm_world_lm_ended, 30) ? 0 : -1;
    }
    if (rc || getenv("TEST_SHOW_LOG"))
        show_log(w);
    mfs_conn_put(w->joins_conn);
    mfs_listener_destroy(w->listener);
    mfs_loop_destroy(w->loop);
    mfs_secret_free(&w->secret);
    mfs_file_remove_tree(w->dir);
    free(w);
    return rc;
}

struct mfs_state lm_world_state(const struct lm_world *w)
{
    struct mfs_state s;
    struct mfs_err err;
    char path[128];

    snprintf(path, sizeof path, "%s/node-%d/lm.json", w->dir, LM_WORLD_NODE);
    if (mfs_state_load(&s, path, &err))
        fail_msg("%s", err.msg);
    return s;
}

struct mfs_proc lm_world_redis(const struct lm_world *w, uint32_t index)
{
    struct mfs_state s = lm_world_state(w);
    struct mfs_proc p = {0};

    for (uint32_t i = 0; i < s.nredis; i++) {
        if (s.redis[i].index == index)
            p = mfs_state_proc_get(&s.redis[i].proc);
    }
    mfs_schema_clear(&mfs_state_schema, &s);
    return p;
}
