#include "host/own_address.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>

#include "base/inet.h"
#include "base/text.h"

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

/* ---- networks -------------------------------------------------------------------------------- */

static const unsigned char *bytes_of(const union mfs_inet *a, unsigned *bits)
{
    bool v4 = a->any.sa_family == AF_INET;

    *bits = v4 ? 32 : 128;
    return v4 ? (const unsigned char *)&a->v4.sin_addr : a->v6.sin6_addr.s6_addr;
}

/* "ADDRESS/BITS" */
static int parse_network(const char *text, union mfs_inet *net, unsigned *prefix)
{
    const char *slash = strchr(text, '/');
    char host[INET6_ADDRSTRLEN];
    unsigned most;
    uint64_t n;

    if (!slash || mfs_text_format(host, sizeof host, "%.*s", (int)(slash - text), text) ||
        mfs_inet_parse(host, 0, net) || mfs_text_u64(slash + 1, &n))
        return -EINVAL;
    bytes_of(net, &most);
    *prefix = (unsigned)n;
    return n <= most ? 0 : -EINVAL;
}

static bool is_within(const union mfs_inet *net, unsigned prefix, const struct sockaddr *address)
{
    const union mfs_inet *a = (const void *)address;
    const unsigned char *x, *y;
    unsigned bits, rest = prefix % 8;

    if (a->any.sa_family != net->any.sa_family)
        return false;
    x = bytes_of(net, &bits);
    y = bytes_of(a, &bits);
    return !memcmp(x, y, prefix / 8) && (!rest || !((x[prefix / 8] ^ y[prefix / 8]) >> (8 - rest)));
}

int mfs_own_address_in(const char *network, char out[INET6_ADDRSTRLEN])
{
    struct ifaddrs *all;
    union mfs_inet net;
    unsigned prefix;
    uint16_t port;
    int rc = parse_network(network, &net, &prefix);

    if (rc)
        return rc;
    if (getifaddrs(&all))
        return -errno;
    rc = -EADDRNOTAVAIL;
    for (const struct ifaddrs *a = all; a && rc; a = a->ifa_next)
        if (a->ifa_addr && (a->ifa_flags & IFF_UP) && is_within(&net, prefix, a->ifa_addr))
            rc = mfs_inet_format((const void *)a->ifa_addr, out, &port);
    freeifaddrs(all);
    return rc;
}

/* ---- kinds of addresses ---------------------------------------------------------------------- */

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
