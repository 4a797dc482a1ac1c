#include "fuse/mount/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

/* The child's verdict goes through the pipe as a struct mfs_err; code 0 is success. */
static int await(int fd, struct mfs_err *err)
{
    struct mfs_err verdict;
    size_t got = 0;

    while (got < sizeof verdict) {
        ssize_t n = read(fd, (char *)&verdict + got, sizeof verdict - got);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return mfs_err_set(err, -ECHILD, "the mount process ended without a word, see its log");
        got += (size_t)n;
    }
    if (verdict.code == 0)
        return 1;
    return mfs_err_set(err, verdict.code, "%s", verdict.msg);
}

int mfs_daemon_fork(int *channel, struct mfs_err *err)
{
    int fd[2], rc;
    pid_t pid;

    if (pipe2(fd, O_CLOEXEC) < 0)
        return mfs_err_set(err, -errno, "pipe: %s", strerror(errno));
    pid = fork();
    if (pid < 0) {
        rc = mfs_err_set(err, -errno, "fork: %s", strerror(errno));
        close(fd[0]);
        close(fd[1]);
        return rc;
    }
    if (pid == 0) {
        close(fd[0]);
        setsid();
        *channel = fd[1];
        return 0;
    }
    close(fd[1]);
    rc = await(fd[0], err);
    close(fd[0]);
    return rc;
}

void mfs_daemon_ready(int channel, const struct mfs_err *err)
{
    struct mfs_err verdict = {0};
    int null;

    if (channel < 0)
        return;
    if (err != NULL)
        verdict = *err;
    null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0 && err == NULL) {
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
    }
    if (null > STDERR_FILENO)
        close(null);
    mfs_file_write_all(channel, &verdict, sizeof verdict);
    close(channel);
}
