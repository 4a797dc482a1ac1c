/* Talking to the daemon. */
#include "cm/ask/client.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/trusted_dir.h"
#include "cm/provider/provider.h"
#include "cm/provider/run.h"
#include "cm/state/node_copy.h"
#include "net/call.h"

#define BEGIN_TIME  (60 * MFS_SEC) /* for a command to run cm */
#define BEGIN_STEP  (5 * MFS_MSEC)
#define BEGIN_GRACE (5 * MFS_SEC)
#define WORDS_MOST  (64U << 10) /* bytes of what it says */

static int take(void *arg, const struct mfs_proc *p)
{
    *(struct mfs_proc *)arg = *p;
    return 0;
}

struct mfs_proc mfs_client_daemon(const struct mfs_paths *p)
{
    struct mfs_proc proc;

    if (!mfs_proc_load(p->pid, &proc) && mfs_proc_alive(&proc))
        return proc;
    /* One that has only just been started has not written the file yet. */
    proc = (struct mfs_proc){0};
    mfs_proc_search("cm", "daemon", "--state-dir", p->dir, take, &proc);
    return proc;
}

/* What the command that was to run it has said last. */
static int not_begun(const char *command, const char *log, const char *what, struct mfs_err *err)
{
    char last[300] = "nothing";
    struct mfs_buf b;

    mfs_buf_init(&b);
    if (!mfs_file_read(log, WORDS_MOST, &b) && mfs_buf_len(&b) && !mfs_buf_append(&b, "", 1))
        mfs_run_last_line(mfs_buf_data(&b), last, sizeof last);
    mfs_buf_fini(&b);
    return mfs_err_set(err, -EREMOTEIO, "%s, by which cm is to run here, %s; it said: %s", command,
                       what, last);
}

static int wait_begun(const struct mfs_paths *p, const char *command, const char *log,
                      const struct mfs_proc *front, struct mfs_proc *daemon, struct mfs_err *err)
{
    int64_t until = mfs_clock_mono() + BEGIN_TIME;
    struct mfs_proc begun;
    bool alive;

    do {
        alive = mfs_proc_alive(front);
        if (!mfs_proc_load(p->pid, &begun)) {
            *daemon = begun; /* if it has ended since, the wait for it finds out */
            return 0;
        }
        if (!access(p->failure, F_OK))
            return 0;
        if (!alive)
            return not_begun(command, log, "has failed", err);
        mfs_clock_sleep(BEGIN_STEP);
    } while (mfs_clock_mono() < until);
    mfs_proc_end(front, BEGIN_GRACE);
    return not_begun(command, log, "has not done so in time", err);
}

static pid_t spawn(const struct mfs_paths *p, const char *const *front, const char *log,
                   struct mfs_err *err)
{
    char self[PATH_MAX];
    const char *const own[] = {self, "daemon", "--name", p->name, "--state-dir", p->dir, NULL};
    const char *argv[MFS_PROVIDER_RUN_DAEMON_MAX + sizeof own / sizeof *own];
    int rc = mfs_proc_sibling("cm", self, sizeof self);
    size_t n = 0;
    pid_t pid;

    while (front && front[n] && n < MFS_PROVIDER_RUN_DAEMON_MAX) {
        argv[n] = front[n];
        n++;
    }
    memcpy(&argv[n], own, sizeof own);
    unlink(p->failure);
    unlink(p->pid);
    pid = rc ? rc : mfs_proc_spawn(argv, log);
    return pid < 0 ? mfs_err_set(err, (int)pid, "%s: %s", argv[0], strerror(-(int)pid)) : pid;
}

int mfs_client_start_daemon(const struct mfs_paths *p, struct mfs_proc *daemon, struct mfs_err *err)
{
    pid_t pid = spawn(p, NULL, p->log, err);

    if (pid < 0)
        return (int)pid;
    /* When it has ended already, the wait for it finds out. */
    mfs_proc_identify(pid, daemon);
    return 0;
}

int mfs_client_start_daemon_by(const struct mfs_paths *p, const char *const *command,
                               struct mfs_proc *front, struct mfs_proc *daemon, struct mfs_err *err)
{
    char log[PATH_MAX];
    int rc = mfs_text_format(log, sizeof log, "%s/start-cm.log", p->dir);
    pid_t pid =
        rc ? mfs_err_set(err, rc, "%s: %s", p->dir, strerror(-rc)) : spawn(p, command, log, err);

    if (pid < 0)
        return (int)pid;
    mfs_proc_identify(pid, front);
    return wait_begun(p, command[0], log, front, daemon, err);
}

static int read_address(const struct mfs_paths *p, char out[MFS_ADDRESS_MAX])
{
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    rc = mfs_trusted_read(p->address, MFS_ADDRESS_MAX - 1, &b);
    if (!rc) {
        memcpy(out, mfs_buf_data(&b), mfs_buf_len(&b));
        out[mfs_buf_len(&b)] = '\0';
        out[strcspn(out, "\n")] = '\0';
    }
    mfs_buf_fini(&b);
    return rc;
}

bool mfs_client_is_elsewhere(const struct mfs_paths *p, char address[MFS_ADDRESS_MAX])
{
    struct mfs_cm_state st, own;
    struct mfs_err err;
    bool is;

    if (mfs_node_copy_find(p, &st, NULL, &err))
        return false;
    is = st.cm[0] != '\0';
    if (!access(p->state, F_OK)) {
        is = !mfs_cm_state_load(&own, p->state, &err) && st.term > own.term;
        mfs_cm_state_clear(&own);
    }
    memcpy(address, st.cm, MFS_ADDRESS_MAX);
    mfs_cm_state_clear(&st);
    return is;
}

int mfs_client_find(const struct mfs_paths *p, char address[MFS_ADDRESS_MAX],
                    struct mfs_secret *secret, struct mfs_err *err)
{
    bool elsewhere = mfs_client_is_elsewhere(p, address);
    int rc;

    if (!elsewhere && access(p->state, F_OK) && errno == ENOENT)
        return mfs_err_set(err, -ESRCH, "deployment %s is not running (no %s); cm start starts it",
                           p->name, p->state);
    rc = mfs_secret_load(p->secret, secret, err);
    if (rc || elsewhere)
        return rc;
    rc = read_address(p, address);
    if (!rc)
        return 0;
    mfs_secret_free(secret);
    return mfs_err_set(err, rc, "%s: %s", p->address, strerror(-rc));
}

/* Not what cm has said, nor that the wait was too short. */
static bool is_of_connection(int rc)
{
    return rc == -ECONNREFUSED || rc == -ECONNRESET || rc == -ECONNABORTED || rc == -EHOSTUNREACH ||
           rc == -ENETUNREACH || rc == -EACCES || rc == -ETIMEDOUT;
}

int mfs_client_call(const struct mfs_paths *p, enum mfs_msg type, const void *body, int64_t timeout,
                    void *reply, struct mfs_err *err)
{
    char address[MFS_ADDRESS_MAX];
    struct mfs_secret secret;
    int rc = mfs_client_find(p, address, &secret, err);

    if (rc)
        return rc;
    rc = mfs_call(address, &secret, "cli", type, body, timeout, reply, err);
    mfs_secret_free(&secret);
    return rc ? mfs_client_explain(p, rc, "", err) : 0;
}

int mfs_client_explain(const struct mfs_paths *p, int rc, const char *then, struct mfs_err *err)
{
    char address[MFS_ADDRESS_MAX];

    if (rc == -EREMOTEIO) /* the last word of a cm that stops: it may have ended by now */
        return rc;
    if (mfs_client_is_elsewhere(p, address)) {
        if (!is_of_connection(rc))
            return rc;
        return mfs_err_set(err, -ESRCH,
                           "the cm of deployment %s, at %s, does not answer; cm start --adopt "
                           "starts one here%s",
                           p->name, address, then);
    }
    if (mfs_client_daemon(p).pid)
        return rc;
    return mfs_err_set(err, -ESRCH,
                       "the cm of deployment %s does not run; cm start starts it again%s", p->name,
                       then);
}
