/* One connection to a partition's redis process: a hiredis context for connecting and for parsing
 * ordinary replies, and the bulk path (bulk_send.c, bulk_recv.c) for everything that is large.
 *
 * One thread at a time. Functions that wait do so at most until the deadline given at
 * mfs_channel_start (a single read or write at most the timeout given at open). After any negative
 * return but from mfs_channel_open the state of the conversation is unknown: close the connection.
 */
#ifndef MFS_STORE_CHANNEL_H
#define MFS_STORE_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <hiredis/hiredis.h>

#include "base/err.h"
#include "store/store.h"

#define MFS_CHANNEL_GATHER_MIN (16U << 10)  /* arguments from this size on are not copied */
#define MFS_CHANNEL_REPLY_MAX  (512U << 20) /* bytes that one reply may make us hold */

struct mfs_endpoint {
    const char *unix_path; /* NULL or "": host and port */
    const char *host;
    uint16_t port;
    const char *user, *password;
};

/* Where the reply that comes next stands. */
enum mfs_channel_in {
    MFS_IN_HEAD,   /* nothing of it consumed */
    MFS_IN_READER, /* left to the hiredis reader */
    MFS_IN_BODY,   /* payload on its way into the command's buffer */
    MFS_IN_SKIP    /* payload that does not fit, to be dropped */
};

struct mfs_channel {
    redisContext *ctx;
    bool is_unix;              /* a UNIX socket, else TCP */
    int64_t connect_ns, io_ns; /* what a read or write takes at most until it has logged on, then */
    int64_t deadline;          /* monotonic ns */

    /* Outgoing pipeline: iov[iov_at … iov_n) is still to be sent; `text` holds headers and small
     * arguments. */
    char *text;
    size_t text_cap;
    struct iovec *iov;
    size_t iov_n, iov_cap, iov_at;
    uint64_t sent; /* bytes since mfs_channel_start */

    enum mfs_channel_in in;
    size_t in_left; /* of the payload and its CRLF */
    char crlf[2];
    size_t budget;                        /* bytes the reply being parsed may still allocate */
    const redisReplyObjectFunctions *fn;  /* hiredis' own … */
    redisReplyObjectFunctions fn_limited; /* … and with the budget applied */
    uint64_t received;                    /* bytes since open */
    bool given_up;                        /* with commands unanswered: see mfs_channel_close */

    /* The pool's. */
    struct mfs_channel *next;
    struct mfs_channel **held; /* in the list of the busy ones; NULL: in none */
    uint64_t gen;
    uint32_t era;
    int64_t idle_since;
    bool reused;
};

/* Connects, demands a proof from what listens at a TCP port, and only then logs on, each within
 * connect_ns; from then on a single read or write takes at most io_ns. -EACCES when the process
 * refuses user and password, -ETIMEDOUT, -EMFILE when there is no descriptor, -EIO for everything
 * else, also for a process that is not the partition's; *err says why. */
int mfs_channel_open(struct mfs_channel **conn, const struct mfs_endpoint *ep, int64_t connect_ns,
                     int64_t io_ns, struct mfs_err *err);
/* The same in two steps, so that several processes can be at it at once: begin sends user and
 * password, ready waits for what the process says to that, until connect_ns after they were sent.
 * Nothing else may be sent in between. When ready fails, close the connection. */
int mfs_channel_begin(struct mfs_channel **conn, const struct mfs_endpoint *ep, int64_t connect_ns,
                      int64_t io_ns, struct mfs_err *err);
int mfs_channel_ready(struct mfs_channel *conn, struct mfs_err *err);
/* One that was given up is reset: what has not reached the process by then never will, however late
 * it wakes up. What lies in its socket's receive buffer it may still execute. */
void mfs_channel_close(struct mfs_channel *conn);

/* Whether an idle connection has been closed by the peer or carries bytes that were not asked for.
 */
bool mfs_channel_stale(const struct mfs_channel *conn);

/* One command and its reply, cmd->rc and the results set as by mfs_store_exec. Returns 0, or
 * negative when the connection is broken. *err is filled for that and for an error reply. */
int mfs_channel_call(struct mfs_channel *conn, struct mfs_cmd *cmd, int64_t timeout_ns,
                     struct mfs_err *err);

/* For channel.c and bulk_recv.c only: puts the limits on what the peer can make us allocate. */
void mfs_channel_limit(struct mfs_channel *conn);

/* Encodes the commands as one pipeline; they and what they point to must stay until it is sent.
 * Returns 0 or -ENOMEM (the connection stays usable). */
int mfs_channel_start(struct mfs_channel *conn, struct mfs_cmd *const *cmds, size_t n,
                      int64_t deadline);

/* Sends on; returns 1 when all is sent, 0 when it would block (never when `wait`). */
int mfs_channel_send(struct mfs_channel *conn, bool wait);

/* Receives the reply of the oldest unanswered command; returns 1 when it is complete and the
 * command's results are set, 0 when it would block (never when `wait`). */
int mfs_channel_recv(struct mfs_channel *conn, struct mfs_cmd *cmd, bool wait, struct mfs_err *err);

/* How many of the commands given to mfs_channel_start have been sent whole: the others were not
 * executed, whatever happened to the connection. */
size_t mfs_channel_sent(const struct mfs_channel *conn, struct mfs_cmd *const *cmds, size_t n);

/* Bytes of one command as it is sent. */
size_t mfs_channel_cmd_size(const struct mfs_cmd *cmd);

/* Writes a whole command, large arguments included, to `to` (mfs_channel_cmd_size bytes). */
void mfs_channel_cmd_encode(const struct mfs_cmd *cmd, char *to);

/* -ETIMEDOUT once the deadline has passed. */
int mfs_channel_overdue(const struct mfs_channel *conn);

#endif
