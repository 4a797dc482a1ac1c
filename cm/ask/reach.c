#include "cm/ask/reach.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/inet.h"
#include "host/proc.h"

/* A socket that is being connected, or -1. */
static int begin(const struct mfs_partition *p)
{
    union mfs_inet to;
    int fd;

    if (mfs_inet_parse(p->host, p->port, &to))
        return -1;
    fd = socket(to.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, &to.any, mfs_inet_len(&to)) && errno != EINPROGRESS) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static bool is_connected(int fd)
{
    socklen_t len = sizeof(int);
    int rc;

    return !getsockopt(fd, SOL_SOCKET, SO_ERROR, &rc, &len) && !rc;
}

/* Of those that poll has named. Others that it has named have failed, and are not asked again. */
static bool any_connected(struct pollfd *fds, uint32_t n)
{
    bool any = false;

    for (uint32_t i = 0; i < n; i++) {
        if (fds[i].fd < 0 || !fds[i].revents)
            continue;
        any |= is_connected(fds[i].fd);
        close(fds[i].fd);
        fds[i].fd = -1;
    }
    return any;
}

static uint32_t count_open(const struct pollfd *fds, uint32_t n)
{
    uint32_t open = 0;

    for (uint32_t i = 0; i < n; i++)
        open += fds[i].fd >= 0;
    return open;
}

bool mfs_reach_any(const struct mfs_table *t, int64_t timeout)
{
    struct pollfd *fds = t ? calloc(t->nparts, sizeof *fds) : NULL;
    int64_t until = mfs_clock_mono() + timeout, left;
    bool any = false;

    if (!fds)
        return false;
    mfs_proc_raise_files();
    for (uint32_t i = 0; i < t->nparts; i++)
        fds[i] = (struct pollfd){begin(&t->part[i]), POLLOUT, 0};
    while (!any && count_open(fds, t->nparts) && (left = until - mfs_clock_mono()) > 0)
        if (poll(fds, t->nparts, (int)(left / MFS_MSEC) + 1) > 0)
            any = any_connected(fds, t->nparts);
    for (uint32_t i = 0; i < t->nparts; i++)
        if (fds[i].fd >= 0)
            close(fds[i].fd);
    free(fds);
    return any;
}
