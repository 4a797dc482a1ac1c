/* A call is running (its child exists, and its pidfd is open) from begin to end. The pidfd tells
 * the child's end, so no signal handler is needed. Invariant: after end the child has been reaped,
 * or it was killed and cannot die yet; init reaps it then. */
#include "host/timed_call.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "host/mountinfo.h"

#define KILLED_WAIT (1 * MFS_SEC)

static bool ended(int fd, int64_t until)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int rc;

    do {
        int64_t left = until - mfs_clock_mono();

        rc = poll(&p, 1, left > 0 ? (int)(left / MFS_MSEC) + 1 : 0);
    } while (rc < 0 && errno == EINTR);
    return rc > 0;
}

static int collect(const struct mfs_timed_call *b, int64_t until, int64_t grace)
{
    int status;

    if (!ended(b->fd, until)) {
        kill(b->pid, SIGKILL);
        if (ended(b->fd, mfs_clock_mono() + grace))
            waitpid(b->pid, NULL, WNOHANG);
        return -ETIMEDOUT;
    }
    if (waitpid(b->pid, &status, WNOHANG) != b->pid || !WIFEXITED(status))
        return -EINTR;
    return -WEXITSTATUS(status);
}

int mfs_timed_call_begin(struct mfs_timed_call *b, int (*call)(const void *arg), const void *arg)
{
    int rc;

    *b = (struct mfs_timed_call){fork(), -1};
    if (b->pid < 0)
        return -errno;
    if (!b->pid) {
        /* All of them: a child that can't be killed would keep a reader of our output waiting. */
        close_range(0, ~0U, 0);
        _exit(-call(arg) & 0xff);
    }
    b->fd = pidfd_open(b->pid, 0);
    if (b->fd >= 0)
        return 0;
    rc = -errno;
    kill(b->pid, SIGKILL);
    return rc;
}

int mfs_timed_call_end(struct mfs_timed_call *b, int64_t until, int64_t grace)
{
    int rc = collect(b, until, grace);

    close(b->fd);
    return rc;
}

int mfs_timed_call(int (*call)(const void *arg), const void *arg, int64_t ns)
{
    int64_t until = mfs_clock_mono() + ns;
    struct mfs_timed_call b;
    int rc = mfs_timed_call_begin(&b, call, arg);

    return rc ? rc : mfs_timed_call_end(&b, until, KILLED_WAIT);
}

int mfs_timed_stat(const void *path)
{
    struct stat st;

    return stat(path, &st) ? -errno : 0;
}

int mfs_timed_statfs(const void *path)
{
    struct statfs st;

    if (statfs(path, &st))
        return -errno;
    return st.f_type == FUSE_SUPER_MAGIC ? 0 : -ENODEV;
}

static bool is_dot(const char *name)
{
    return !strcmp(name, ".") || !strcmp(name, "..");
}

int mfs_timed_is_empty(const void *path)
{
    _Alignas(struct dirent64) char buf[4096];
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = fd < 0 ? -errno : 0;
    ssize_t n = 1;

    while (!rc && n > 0) {
        n = getdents64(fd, buf, sizeof buf);
        for (ssize_t at = 0; at < n && !rc;) {
            const struct dirent64 *e = (const void *)(buf + at);

            rc = is_dot(e->d_name) ? 0 : -ENOTEMPTY;
            at += e->d_reclen;
        }
    }
    return rc;
}

int mfs_timed_detach(const void *path)
{
    return mfs_mount_detach(path);
}
