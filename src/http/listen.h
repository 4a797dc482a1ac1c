/* The socket that figures are served at. */
#ifndef MFS_HTTP_LISTEN_H
#define MFS_HTTP_LISTEN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Listens at `address`, `out` gets it with the port that it got; *loopback: only this host's
 * programs reach it. The descriptor, not blocking, or a negative errno with the reason. */
int mfs_httpd_listen(const char *address, char *out, size_t n, bool *loopback, struct mfs_err *err);

#endif
