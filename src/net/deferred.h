/* A request that is answered later, once, and the connection that it came by, which it holds until
 * then. Zeros are none; to answer none does nothing, nor does it when the connection is closed by
 * then. Loop thread. */
#ifndef MFS_NET_DEFERRED_H
#define MFS_NET_DEFERRED_H

#include "net/conn.h"

struct mfs_deferred {
    struct mfs_conn *conn; /* referenced; NULL: none */
    uint64_t id;
};

struct mfs_deferred mfs_reply_later(struct mfs_conn *conn, uint64_t id); /* conn may be NULL */

/* These answer as those of conn.h do, and leave none behind. */
void mfs_deferred_reply(struct mfs_deferred *d, enum mfs_msg type, const void *body);
void mfs_deferred_fail(struct mfs_deferred *d, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Without an answer, as its connection ends with this process. */
void mfs_deferred_drop(struct mfs_deferred *d);

/* The request comes again: the former one is refused. */
void mfs_deferred_replace(struct mfs_deferred *d, struct mfs_conn *conn, uint64_t id);

#endif
