/* One blocking request: connect, authenticate, ask, reply. For command line verbs. Any thread. */
#ifndef MFS_NET_CALL_H
#define MFS_NET_CALL_H

#include <stdint.h>

#include "base/err.h"
#include "net/auth.h"
#include "proto/messages.h"

/* Fills *reply (the struct of that message's reply; clear it with mfs_schema_clear) within timeout
 * ns over all. 0 or a negative errno with the reason: -ECONNREFUSED or -ENOENT when nothing
 * listens, -EACCES when either end fails the other's challenge, else the peer's own code. */
int mfs_call(const char *address, const struct mfs_secret *secret, const char *role,
             enum mfs_msg type, const void *body, int64_t timeout, void *reply,
             struct mfs_err *err);

#endif
