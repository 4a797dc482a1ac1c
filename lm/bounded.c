/* Bounded calls; see the header. The child's pidfd tells its end, so no signal is needed. */
#include "lm/bounded.h"

#include <errno.h>
#include <stdbool.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "lm/mountinfo.h"

#define KILLED_WAIT (1 * MFS_SEC)

static bool ended(int fd, int64_t ns)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int64_t until = mfs_clock_mono() + ns;
    int rc;

    do {
        int64_t left = until - mfs_clock_mono();

        rc = poll(&p, 1, left > 0 ? (int)(left / MFS_MSEC) + 1 : 0);
    } while (rc < 0 && errno == EINTR);
    return rc > 0;
}

static int collect(pid_t pid, int fd, int64_t ns)
{
    int status;

    if (!ended(fd, ns)) {
        kill(pid, SIGKILL);
        /* In an uninterruptible wait it can't even be killed; it is reaped by init, some day. */
        if (ended(fd, KILLED_WAIT))
            waitpid(pid, NULL, WNOHANG);
        return -ETIMEDOUT;
    }
    if (waitpid(pid, &status, WNOHANG) != pid || !WIFEXITED(status))
        return -EINTR;
    return -WEXITSTATUS(status);
}

int mfs_bounded(int (*call)(const void *arg), const void *arg, int64_t ns)
{
    pid_t pid = fork();
    int fd, rc;

    if (pid < 0)
        return -errno;
    if (!pid) {
        close_range(3, ~0U, 0);
        _exit(-call(arg) & 0xff);
    }
    fd = pidfd_open(pid, 0);
    if (fd < 0) {
        rc = -errno;
        kill(pid, SIGKILL);
        return rc;
    }
    rc = collect(pid, fd, ns);
    close(fd);
    return rc;
}

int mfs_bounded_stat(const void *path)
{
    struct stat st;

    return stat(path, &st) ? -errno : 0;
}

int mfs_bounded_detach(const void *path)
{
    return mfs_mount_detach(path);
}
