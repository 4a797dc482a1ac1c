/* Numeric addresses of IPv4 and IPv6 with a port, in one type. Nothing is looked up: nothing
 * blocks. Any thread. */
#ifndef MFS_BASE_INET_H
#define MFS_BASE_INET_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

union mfs_inet {
    struct sockaddr any; /* sa_family: which of the two it is */
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* 0, or -EINVAL when the host is neither kind of address. */
int mfs_inet_parse(const char *host, uint16_t port, union mfs_inet *a);

/* The other way. 0, or -EINVAL when it is of another family. */
int mfs_inet_format(const union mfs_inet *a, char host[INET6_ADDRSTRLEN], uint16_t *port);

/* Do both name one machine: as names, whatever their letters' case, or as addresses, however they
 * are written? */
bool mfs_inet_same(const char *host, const char *other);

/* Bytes, for connect(2) and bind(2). */
socklen_t mfs_inet_len(const union mfs_inet *a);

#endif
