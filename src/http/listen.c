#include "http/listen.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/inet.h"
#include "net/address.h"

#define BACKLOG 64

static bool is_loopback(const struct mfs_address *a)
{
    const union mfs_inet *i = (const union mfs_inet *)&a->sa;

    if (i->any.sa_family == AF_INET)
        return ntohl(i->v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    return IN6_IS_ADDR_LOOPBACK(&i->v6.sin6_addr) ||
           (IN6_IS_ADDR_V4MAPPED(&i->v6.sin6_addr) &&
            i->v6.sin6_addr.s6_addr[12] == IN_LOOPBACKNET);
}

int mfs_httpd_listen(const char *address, char *out, size_t n, bool *loopback, struct mfs_err *err)
{
    struct mfs_address a;
    int on = 1, fd, rc = mfs_address_parse(address, &a, err);

    if (!rc && a.sa.ss_family == AF_UNIX)
        rc = mfs_err_set(err, -EINVAL, "\"%s\" is not an address like 127.0.0.1:9470", address);
    if (rc)
        return rc;
    *loopback = is_loopback(&a);
    fd = socket(a.sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return mfs_err_set(err, -errno, "%s: %s", address, strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&a.sa, a.len) || listen(fd, BACKLOG) ||
        getsockname(fd, (struct sockaddr *)&a.sa, &a.len)) {
        rc = mfs_err_set(err, -errno, "can't listen at %s: %s", address, strerror(errno));
        close(fd);
        return rc;
    }
    mfs_address_format(&a, out, n);
    return fd;
}
