/* Making, checking and closing connections, and the single command of callers that talk to one
 * process only. The socket is a blocking one, with both of its timeouts set. */
#include "store/channel.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/proof.h"
#include "store/dial.h"

static struct timeval timeval_of(int64_t ns)
{
    int64_t us = ns / 1000 > 0 ? ns / 1000 : 1; /* 0 would mean for ever */

    return (struct timeval){.tv_sec = us / 1000000, .tv_usec = us % 1000000};
}

static int dial(struct mfs_channel *conn, const struct mfs_endpoint *ep, int64_t timeout_ns,
                struct mfs_err *err)
{
    int one = 1, fd;

    fd = mfs_dial(ep->unix_path, ep->host, ep->port, timeout_ns, &conn->is_unix, err);
    if (fd < 0)
        return fd;
    conn->ctx = redisConnectFd(fd);
    if (!conn->ctx) {
        close(fd);
        return mfs_err_set(err, -ENOMEM, "out of memory");
    }
    if (redisSetTimeout(conn->ctx, timeval_of(timeout_ns)) != REDIS_OK)
        return mfs_err_set(err, -EIO, "%s", conn->ctx->errstr);
    if (conn->is_unix)
        return 0;
    if (redisEnableKeepAlive(conn->ctx) != REDIS_OK)
        return mfs_err_set(err, -EIO, "%s", conn->ctx->errstr);
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one))
        return mfs_err_set(err, -EIO, "%s", strerror(errno));
    return 0;
}

static int describe(int rc, struct mfs_err *err)
{
    if (err && err->code == rc)
        return rc; /* a sentence is there already */
    if (rc == -ECONNRESET)
        return mfs_err_set(err, rc, "connection closed by the process");
    if (rc == -ETIMEDOUT)
        return mfs_err_set(err, rc, "no answer in time");
    return mfs_err_set(err, rc, "%s", strerror(-rc));
}

static int log_on(struct mfs_channel *conn, const struct mfs_endpoint *ep, int64_t timeout_ns,
                  struct mfs_err *err)
{
    struct mfs_arg argv[] = {
        {"AUTH", 4}, {ep->user, strlen(ep->user)}, {ep->password, strlen(ep->password)}};
    struct mfs_cmd cmd = {.argc = 3, .argv = argv}, *cmds = &cmd;
    int rc = mfs_channel_start(conn, &cmds, 1, mfs_clock_mono() + timeout_ns);

    if (!rc)
        rc = mfs_channel_send(conn, true);
    if (rc >= 0)
        return 0;
    describe(rc, err);
    return rc == -ETIMEDOUT ? rc : -EIO;
}

/* A UNIX socket needs none: only its owner can put one there. */
static int demand_proof(struct mfs_channel *conn, const struct mfs_endpoint *ep, int64_t timeout_ns,
                        struct mfs_err *err)
{
    char says[MFS_PROOF_SAYS];
    struct mfs_err why = {0};
    int rc;

    if (conn->is_unix)
        return 0;
    rc = mfs_proof_demand(conn->ctx->fd, ep->user, ep->password, timeout_ns, says);
    if (rc == -EACCES && says[0] == '-')
        return mfs_err_set(err, -EIO, "%s (instead of a proof that it knows the password)",
                           says + 1);
    if (rc == -EACCES)
        return mfs_err_set(err, -EACCES,
                           "who listens there is not the partition's process: it doesn't know the "
                           "password, and wasn't told");
    if (!rc)
        return 0;
    describe(rc, &why);
    return mfs_err_set(err, rc == -ETIMEDOUT ? rc : -EIO, "%s", why.msg);
}

int mfs_channel_begin(struct mfs_channel **out, const struct mfs_endpoint *ep, int64_t connect_ns,
                      int64_t io_ns, struct mfs_err *err)
{
    struct mfs_channel *conn = calloc(1, sizeof *conn);
    int rc;

    *out = NULL;
    if (!conn)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    rc = dial(conn, ep, connect_ns, err);
    if (rc)
        goto out;
    conn->connect_ns = connect_ns;
    conn->io_ns = io_ns;
    mfs_channel_limit(conn);
    rc = demand_proof(conn, ep, connect_ns, err);
    if (!rc)
        rc = log_on(conn, ep, connect_ns, err);
out:
    if (rc)
        mfs_channel_close(conn);
    else
        *out = conn;
    return rc;
}

int mfs_channel_ready(struct mfs_channel *conn, struct mfs_err *err)
{
    struct mfs_cmd cmd = {.rc = -EIO};
    struct mfs_err why = {0};
    int rc = mfs_channel_recv(conn, &cmd, true, &why);

    if (rc < 0) {
        conn->given_up = true;
        describe(rc, &why);
    } else {
        rc = cmd.rc;
    }
    mfs_cmds_fini(&cmd, 1);
    if (rc)
        return mfs_err_set(err, rc == -EACCES || rc == -ETIMEDOUT ? rc : -EIO, "%s", why.msg);
    if (redisSetTimeout(conn->ctx, timeval_of(conn->io_ns)) != REDIS_OK)
        return mfs_err_set(err, -EIO, "%s", conn->ctx->errstr);
    return 0;
}

int mfs_channel_open(struct mfs_channel **conn, const struct mfs_endpoint *ep, int64_t connect_ns,
                     int64_t io_ns, struct mfs_err *err)
{
    int rc = mfs_channel_begin(conn, ep, connect_ns, io_ns, err);

    if (*conn)
        rc = mfs_channel_ready(*conn, err);
    if (rc) {
        mfs_channel_close(*conn);
        *conn = NULL;
    }
    return rc;
}

/* The kernel would go on sending for a closed socket. A UNIX socket has nothing to send: what was
 * written is with the peer. */
static void reset(const struct mfs_channel *conn)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    if (setsockopt(conn->ctx->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once))
        mfs_warn("store", "a connection can't be reset: %s", strerror(errno));
}

void mfs_channel_close(struct mfs_channel *conn)
{
    if (!conn)
        return;
    if (conn->given_up && conn->ctx)
        reset(conn);
    if (conn->ctx)
        redisFree(conn->ctx);
    free(conn->text);
    free(conn->iov);
    free(conn);
}

bool mfs_channel_stale(const struct mfs_channel *conn)
{
    char byte;

    return recv(conn->ctx->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 ||
           (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

int mfs_channel_call(struct mfs_channel *conn, struct mfs_cmd *cmd, int64_t timeout_ns,
                     struct mfs_err *err)
{
    struct mfs_err local = {0};
    int rc;

    cmd->rc = -EIO;
    cmd->reply = NULL;
    cmd->into_len = 0;
    rc = mfs_channel_start(conn, &cmd, 1, mfs_clock_mono() + timeout_ns);
    if (!rc)
        rc = mfs_channel_send(conn, true);
    if (rc > 0)
        rc = mfs_channel_recv(conn, cmd, true, &local);
    if (rc < 0) {
        conn->given_up = true;
        describe(rc, &local);
    }
    if (local.code)
        mfs_err_set(err, local.code, "%s", local.msg);
    return rc < 0 ? rc : 0;
}
