/* Addresses as texts, "HOST:PORT" or "unix:/path". */
#ifndef MFS_NET_ADDRESS_H
#define MFS_NET_ADDRESS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/err.h"

struct mfs_address {
    struct sockaddr_storage sa;
    socklen_t len;
};

/* Numeric hosts, "[v6]:PORT", and "localhost" only: looking up a name would block. */
int mfs_address_parse(const char *text, struct mfs_address *a, struct mfs_err *err);
/* The text of a numeric host, IPv4 or IPv6, and a port. 0 or -ENAMETOOLONG. */
int mfs_address_join(const char *host, uint32_t port, char *out, size_t n);
void mfs_address_format(const struct mfs_address *a, char *out, size_t n);

#endif
