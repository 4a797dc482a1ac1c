/* Connecting to a partition's process. hiredis can do that, too, but a child that a program starts
 * meanwhile would have the connection, logged on as it is: only socket(2) closes it in time. Any
 * thread. */
#ifndef MFS_STORE_DIAL_H
#define MFS_STORE_DIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* To that UNIX socket, or, when unix_path is NULL or "", to host and port. A blocking socket, the
 * caller's, which no child gets; *is_unix: which of the two. Within timeout_ns, or -ETIMEDOUT;
 * -ECONNREFUSED: nothing listens there, so that the process is gone; -EMFILE: no descriptor; -EIO
 * for all else. *err says why. */
int mfs_dial(const char *unix_path, const char *host, uint16_t port, int64_t timeout_ns,
             bool *is_unix, struct mfs_err *err);

#endif
