#include "host/own_address.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>

#include "base/inet.h"

#define ANY_PORT 9 /* nothing goes there; Linux wants one */

/* Addresses of documentation networks (RFC 5737, RFC 3849): no route but the default one leads
 * there. */
static const char *const elsewhere[] = {"192.0.2.1", "2001:db8::1"};

int mfs_own_address(const char *peer, char out[INET6_ADDRSTRLEN])
{
    union mfs_inet to, from;
    socklen_t len = sizeof from;
    uint16_t port;
    int rc, fd;

    if (!strcmp(peer, "localhost"))
        peer = "127.0.0.1";
    rc = mfs_inet_parse(peer, ANY_PORT, &to);
    if (rc)
        return rc;
    fd = socket(to.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, &to.any, mfs_inet_len(&to)) || getsockname(fd, &from.any, &len))
        rc = -errno;
    close(fd);
    return rc ? rc : mfs_inet_format(&from, out, &port);
}

int mfs_own_address_towards(const char *name, char out[INET6_ADDRSTRLEN])
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    char peer[NI_MAXHOST];
    struct addrinfo *found;
    int rc = -ENOENT;

    if (getaddrinfo(name, NULL, &hints, &found))
        return -ENOENT;
    for (const struct addrinfo *a = found; a && rc; a = a->ai_next)
        if (!getnameinfo(a->ai_addr, a->ai_addrlen, peer, sizeof peer, NULL, 0, NI_NUMERICHOST))
            rc = mfs_own_address(peer, out);
    freeaddrinfo(found);
    return rc;
}

int mfs_own_address_default(char out[INET6_ADDRSTRLEN])
{
    int rc = -ENETUNREACH;

    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere && rc; i++) {
        rc = mfs_own_address(elsewhere[i], out);
        if (!rc && mfs_own_address_is_loopback(out))
            rc = -ENETUNREACH;
    }
    return rc;
}

bool mfs_own_address_is_loopback(const char *host)
{
    union mfs_inet a;

    if (!strcmp(host, "localhost"))
        return true;
    if (mfs_inet_parse(host, 0, &a))
        return false;
    if (a.any.sa_family == AF_INET)
        return ntohl(a.v4.sin_addr.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
    return IN6_IS_ADDR_LOOPBACK(&a.v6.sin6_addr);
}

bool mfs_own_address_is_any(const char *host)
{
    union mfs_inet a;

    if (mfs_inet_parse(host, 0, &a))
        return false;
    return a.any.sa_family == AF_INET ? a.v4.sin_addr.s_addr == htonl(INADDR_ANY)
                                      : IN6_IS_ADDR_UNSPECIFIED(&a.v6.sin6_addr);
}

int mfs_own_address_split(const char *text, char *host, size_t n, const char **port)
{
    const char *end = strrchr(text, ':'), *from = text;
    size_t len;

    if (!end)
        return -EINVAL;
    *port = end + 1;
    if (*text == '[') {
        if (end == text || end[-1] != ']')
            return -EINVAL;
        from++;
        end--;
    }
    len = (size_t)(end - from);
    if (len >= n)
        return -ENAMETOOLONG;
    memcpy(host, from, len);
    host[len] = '\0';
    return 0;
}
