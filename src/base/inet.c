#include "base/inet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

int mfs_inet_parse(const char *host, uint16_t port, union mfs_inet *a)
{
    *a = (union mfs_inet){.v6 = {0}}; /* the largest */
    if (inet_pton(AF_INET, host, &a->v4.sin_addr) == 1) {
        a->v4.sin_family = AF_INET;
        a->v4.sin_port = htons(port);
        return 0;
    }
    if (inet_pton(AF_INET6, host, &a->v6.sin6_addr) == 1) {
        a->v6.sin6_family = AF_INET6;
        a->v6.sin6_port = htons(port);
        return 0;
    }
    return -EINVAL;
}

int mfs_inet_format(const union mfs_inet *a, char host[INET6_ADDRSTRLEN], uint16_t *port)
{
    const void *address = a->any.sa_family == AF_INET ? (const void *)&a->v4.sin_addr
                                                      : (const void *)&a->v6.sin6_addr;

    if (a->any.sa_family != AF_INET && a->any.sa_family != AF_INET6)
        return -EINVAL;
    *port = ntohs(a->any.sa_family == AF_INET ? a->v4.sin_port : a->v6.sin6_port);
    return inet_ntop(a->any.sa_family, address, host, INET6_ADDRSTRLEN) ? 0 : -EINVAL;
}

bool mfs_inet_same(const char *host, const char *other)
{
    char canonical[2][INET6_ADDRSTRLEN];
    union mfs_inet a, b;
    uint16_t port;

    if (!strcasecmp(host, other))
        return true;
    return !mfs_inet_parse(host, 0, &a) && !mfs_inet_parse(other, 0, &b) &&
           !mfs_inet_format(&a, canonical[0], &port) && !mfs_inet_format(&b, canonical[1], &port) &&
           !strcmp(canonical[0], canonical[1]);
}

socklen_t mfs_inet_len(const union mfs_inet *a)
{
    return a->any.sa_family == AF_INET ? sizeof a->v4 : sizeof a->v6;
}
