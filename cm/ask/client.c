/* Talking to the daemon. */
#include "cm/ask/client.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/trusted_dir.h"
#include "cm/state/node_copy.h"
#include "net/call.h"

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

int mfs_client_start_daemon(const struct mfs_paths *p, struct mfs_proc *daemon, struct mfs_err *err)
{
    char self[PATH_MAX];
    const char *argv[] = {self, "daemon", "--name", p->name, "--state-dir", p->dir, NULL};
    int rc = mfs_proc_sibling("cm", self, sizeof self);
    pid_t pid;

    unlink(p->failure);
    unlink(p->pid);
    pid = rc ? rc : mfs_proc_spawn(argv, p->log);
    if (pid < 0)
        return mfs_err_set(err, (int)pid, "%s: %s", self, strerror(-(int)pid));
    /* When it has ended already, the wait for it finds out. */
    mfs_proc_identify(pid, daemon);
    return 0;
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
