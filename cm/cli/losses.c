#include "cm/cli/losses.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/proc.h"

#define LOOK_MS 300000

/* The first byte of its output tells. */
static int await_output(int fd, bool *any, struct mfs_err *err)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    ssize_t n;
    char c;
    int rc;

    do
        rc = poll(&p, 1, LOOK_MS);
    while (rc < 0 && errno == EINTR);
    if (rc <= 0)
        return mfs_err_set(err, rc ? -errno : -ETIMEDOUT, "memefs lost: %s",
                           strerror(rc ? errno : ETIMEDOUT));
    n = read(fd, &c, 1);
    *any = n > 0;
    return n < 0 ? mfs_err_set(err, -errno, "memefs lost: %s", strerror(errno)) : 0;
}

static int await_end(pid_t pid, bool wanted, struct mfs_err *err)
{
    int status = 0;

    if (!wanted)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (wanted && status)
        return mfs_err_set(err, -EIO, "memefs lost could not look at all that is stored");
    return 0;
}

int mfs_losses_find(const struct mfs_paths *paths, bool *any, struct mfs_err *err)
{
    char program[PATH_MAX];
    const char *const argv[] = {program,     "lost",        "--null",   "--name",
                                paths->name, "--state-dir", paths->dir, NULL};
    int end[2], rc = mfs_proc_sibling("memefs", program, sizeof program), ended;
    pid_t pid;

    *any = false;
    if (rc || pipe2(end, O_CLOEXEC))
        return mfs_err_set(err, rc ? rc : -errno, "memefs lost: %s", strerror(rc ? -rc : errno));
    pid = mfs_proc_spawn_to(argv, end[1], NULL);
    close(end[1]);
    rc = pid < 0 ? mfs_err_set(err, (int)pid, "%s: %s", program, strerror((int)-pid))
                 : await_output(end[0], any, err);
    close(end[0]);
    if (pid < 0)
        return rc;
    ended = await_end(pid, !rc && !*any, err);
    return rc ? rc : ended;
}
