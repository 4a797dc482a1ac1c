#include "base/inet.h"

#include <arpa/inet.h>
#include <errno.h>

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

socklen_t mfs_inet_len(const union mfs_inet *a)
{
    return a->any.sa_family == AF_INET ? sizeof a->v4 : sizeof a->v6;
}
