#include "store/dial.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "net/address.h"

/* A socket without a listener, or none at all, tells that the process is gone. */
static int dial_errno(int cause)
{
    if (cause == ECONNREFUSED || cause == ENOENT)
        return -ECONNREFUSED;
    if (cause == EMFILE || cause == ENFILE)
        return -EMFILE;
    return cause == ETIMEDOUT ? -ETIMEDOUT : -EIO;
}

static int find(const char *unix_path, const char *host, uint16_t port, struct mfs_address *a,
                struct mfs_err *err)
{
    char text[sizeof "unix:" + sizeof((struct sockaddr_un *)NULL)->sun_path];
    bool is_unix = unix_path && unix_path[0];
    int rc = is_unix ? mfs_text_format(text, sizeof text, "unix:%s", unix_path)
                     : mfs_address_join(host, port, text, sizeof text);

    if (rc)
        return mfs_err_set(err, -EIO, "%s: is too long", is_unix ? unix_path : host);
    return mfs_address_parse(text, a, err) ? -EIO : 0;
}

/* What has become of a connection under way; an errno. */
static int outcome(int fd, int64_t until)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    socklen_t len = sizeof(int);
    int cause = 0, n;

    do {
        int64_t left = until - mfs_clock_mono();

        n = poll(&p, 1, left > 0 ? (int)((left + MFS_MSEC - 1) / MFS_MSEC) : 0);
    } while (n < 0 && errno == EINTR);
    if (n == 0)
        return ETIMEDOUT;
    if (n < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &cause, &len))
        return errno;
    return cause;
}

/* A UNIX socket whose listener is behind refuses at once instead of telling later, so it is waited
 * for. */
static int attempt(int fd, const struct mfs_address *to, int64_t until)
{
    while (connect(fd, (const struct sockaddr *)&to->sa, to->len)) {
        if (errno == EINPROGRESS || (errno == EINTR && to->sa.ss_family != AF_UNIX))
            return outcome(fd, until);
        if (errno != EINTR && errno != EAGAIN)
            return errno;
        if (mfs_clock_mono() >= until)
            return ETIMEDOUT;
        mfs_clock_sleep(MFS_MSEC);
    }
    return 0;
}

static int block(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0 ? errno : 0;
}

int mfs_dial(const char *unix_path, const char *host, uint16_t port, int64_t timeout_ns,
             bool *is_unix, struct mfs_err *err)
{
    int64_t until = mfs_clock_mono() + timeout_ns;
    struct mfs_address to = {0};
    int fd, cause, rc = find(unix_path, host, port, &to, err);

    if (rc)
        return rc;
    *is_unix = to.sa.ss_family == AF_UNIX;
    fd = socket(to.sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    cause = fd < 0 ? errno : attempt(fd, &to, until);
    if (!cause)
        cause = block(fd);
    if (!cause)
        return fd;
    if (fd >= 0)
        close(fd);
    return mfs_err_set(err, dial_errno(cause), "%s", strerror(cause));
}
