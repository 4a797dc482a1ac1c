/* Connections: non-blocking, authenticated, carrying requests, replies and notices both ways.
 *
 * All of it belongs to the loop's thread. Callbacks are never called from inside a call of this
 * interface, except that mfs_conn_close fails the requests still open. */
#ifndef MFS_NET_CONN_H
#define MFS_NET_CONN_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "net/auth.h"
#include "net/loop.h"
#include "proto/messages.h"

struct mfs_conn;
struct mfs_listener;

/* Handles a request or (id 0) a notice. `body` is the decoded struct, valid until the return. The
 * handler answers with mfs_conn_reply or mfs_conn_fail, at once or later: to answer later it keeps
 * the connection with mfs_conn_get and drops it with mfs_conn_put afterwards. Every request with
 * an id must be answered once. */
struct mfs_handler {
    enum mfs_msg type;
    void (*handle)(struct mfs_conn *c, uint64_t id, const void *body, void *arg);
};

struct mfs_service {
    const struct mfs_handler *handlers; /* ended by one without handle; others: "unknown type" */
    void (*up)(struct mfs_conn *c, void *arg); /* both ends are authenticated; may be NULL */
    /* It is closed, by whomever, but not by our own mfs_conn_close. The connection may be used no
     * more except for mfs_conn_put by a holder of a reference. May be NULL. */
    void (*down)(struct mfs_conn *c, const struct mfs_err *why, void *arg);
};

/* Listens at "HOST:PORT" (port 0: any free one) or "unix:/path" (a stale socket file is replaced;
 * made 0600). At most `max` connections, of them a quarter (at least 8, at most 128) not yet
 * authenticated, each for at most 10 s; the oldest of them is closed for one that comes. NULL:
 * *err. secret, service and arg must outlive it. */
struct mfs_listener *mfs_listener_create(struct mfs_loop *loop, const char *address,
                                         const struct mfs_secret *secret, unsigned max,
                                         const struct mfs_service *service, void *arg,
                                         struct mfs_err *err);
void mfs_listener_address(const struct mfs_listener *l, char out[MFS_ADDRESS_MAX]);
/* Closes it, its connections too (without `down`), and removes a UNIX socket's file. */
void mfs_listener_destroy(struct mfs_listener *l);

/* Connects and authenticates as `role` within timeout ns; `up` or `down` tells how it went. The
 * caller owns no reference: the pointer is valid until `down` or mfs_conn_close. NULL only when
 * there is no memory or the address makes no sense: *err. HOST must be numeric or "localhost", as
 * resolving names would block. */
struct mfs_conn *mfs_conn_connect(struct mfs_loop *loop, const char *address,
                                  const struct mfs_secret *secret, const char *role,
                                  int64_t timeout, const struct mfs_service *service, void *arg,
                                  struct mfs_err *err);

/* Closes; open requests get -ECONNABORTED; `down` is not called. What was sent but is still in the
 * buffer is lost, unless the close is mfs_conn_finish, which sends it first (at most 2 s). */
void mfs_conn_close(struct mfs_conn *c);
void mfs_conn_finish(struct mfs_conn *c);

struct mfs_conn *mfs_conn_get(struct mfs_conn *c);
void mfs_conn_put(struct mfs_conn *c); /* takes NULL */

bool mfs_conn_is_up(const struct mfs_conn *c);       /* requests can be sent */
const char *mfs_conn_role(const struct mfs_conn *c); /* of the caller's end */
const char *mfs_conn_peer(const struct mfs_conn *c); /* for the log */
/* The process that has connected, of an accepted UNIX socket, as the kernel says: the pid that it
 * has in this process' PID name space. 0: it has none there, or it is another kind of socket. */
pid_t mfs_conn_peer_pid(const struct mfs_conn *c);
void *mfs_conn_data(const struct mfs_conn *c); /* the owner's, NULL at first */
void mfs_conn_set_data(struct mfs_conn *c, void *data);

/* Sends a request. `done` is called exactly once, when the call returned 0: with err NULL and the
 * decoded reply (valid until the return), or with err (also -ETIMEDOUT after timeout ns, and
 * -ECONNABORTED) and reply NULL. Returns 0, -ENOTCONN when closed or not up yet, -ENOBUFS when the
 * peer does not take what was sent before, -EMSGSIZE, -ENOMEM. */
int mfs_conn_request(struct mfs_conn *c, enum mfs_msg type, const void *body, int64_t timeout,
                     void (*done)(void *arg, const struct mfs_err *err, const void *reply),
                     void *arg);

int mfs_conn_notify(struct mfs_conn *c, enum mfs_msg type, const void *body);

/* Answers; on a connection that is closed by now, or to id 0, they do nothing. */
void mfs_conn_reply(struct mfs_conn *c, enum mfs_msg type, uint64_t id, const void *body);
void mfs_conn_fail(struct mfs_conn *c, uint64_t id, int code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
