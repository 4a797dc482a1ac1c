/* The bulk path, incoming half. The reply of a command with `into` is looked at here: when it is a
 * bulk string, its payload goes straight to the command's buffer, first what hiredis' reader has
 * already taken from the socket, then by recvmsg(2). Every other reply is parsed by that reader.
 *
 *   HEAD ── bulk string for `into` ──> BODY (or SKIP, when too long) ──> HEAD
 *     └──── anything else ───────────> READER ─────────────────────────> HEAD
 *
 * hiredis' reader (0.14, 1.2) holds the unparsed bytes [pos, len) of `buf`; between replies they
 * may be taken from it by moving pos. */
#include "store/channel.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "store/reply.h"

#define FILL_BYTES  (16U << 10)
#define LARGE       (64U << 10) /* replies for which a system call costs less than a copy */
#define PEEK_BYTES  32U
#define HEADER_MAX  16U /* "$536870912\r\n" fits */
#define NESTED_MAX  7U  /* deepest array */
#define OBJECT_SIZE 64U /* what a reply object costs besides its text */

/* A client that was stopped itself finds its time over and the answer there: it still takes that.
 */
static int how(const struct mfs_channel *conn, bool wait)
{
    return wait && !mfs_channel_overdue(conn) ? 0 : MSG_DONTWAIT;
}

/* 1 when bytes came, 0 when it would block, -ETIMEDOUT, -ECONNRESET, … */
static int received(struct mfs_channel *conn, ssize_t n, bool wait)
{
    if (n > 0) {
        conn->received += (uint64_t)n;
        return 1;
    }
    if (n == 0)
        return -ECONNRESET;
    if (errno == EINTR)
        return 1;
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return wait ? -ETIMEDOUT : 0;
    return -errno;
}

/* Hands what the socket has to the reader, at most `most` bytes (≤ FILL_BYTES). */
static int fill(struct mfs_channel *conn, size_t most, bool wait, struct mfs_err *err)
{
    redisReader *r = conn->ctx->reader;
    char chunk[FILL_BYTES];
    ssize_t n;
    int rc;

    assert(most <= sizeof chunk);
    n = recv(conn->ctx->fd, chunk, most, how(conn, wait));
    rc = received(conn, n, wait);
    if (rc <= 0 || n <= 0)
        return rc;
    if (r->len - r->pos > MFS_CHANNEL_REPLY_MAX)
        return mfs_err_set(err, -EPROTO, "reply too long");
    if (redisReaderFeed(r, chunk, (size_t)n) != REDIS_OK)
        return mfs_err_set(err, -EPROTO, "%s", r->errstr);
    return 1;
}

static void reader_consume(redisReader *r, size_t n)
{
    r->pos += n;
    if (r->pos < r->len)
        return;
    sdsrange(r->buf, (int)r->pos, -1);
    r->pos = r->len = 0;
}

static bool charge(const redisReadTask *task, size_t bytes)
{
    struct mfs_channel *conn = task->privdata;

    if (bytes > conn->budget)
        return false;
    conn->budget -= bytes;
    return true;
}

/* Arrays in arrays are freed by recursion, and newer readers have no bound for them. */
static bool too_deep(const redisReadTask *task)
{
    unsigned depth = 0;

    for (; task->parent && depth <= NESTED_MAX; depth++)
        task = task->parent;
    return depth > NESTED_MAX;
}

static void *limited_string(const redisReadTask *task, char *s, size_t len)
{
    const struct mfs_channel *conn = task->privdata;

    return charge(task, len + OBJECT_SIZE) ? conn->fn->createString(task, s, len) : NULL;
}

/* So hiredis counts the elements of an array. */
#if HIREDIS_MAJOR >= 1
typedef size_t array_length;
#else
typedef int array_length;
#endif

static void *limited_array(const redisReadTask *task, array_length n)
{
    const struct mfs_channel *conn = task->privdata;
    size_t bytes = (size_t)n * sizeof(void *) + OBJECT_SIZE;

    return !too_deep(task) && charge(task, bytes) ? conn->fn->createArray(task, n) : NULL;
}

static void *limited_integer(const redisReadTask *task, long long value)
{
    const struct mfs_channel *conn = task->privdata;

    return charge(task, OBJECT_SIZE) ? conn->fn->createInteger(task, value) : NULL;
}

static void *limited_nil(const redisReadTask *task)
{
    const struct mfs_channel *conn = task->privdata;

    return charge(task, OBJECT_SIZE) ? conn->fn->createNil(task) : NULL;
}

/* Only RESP3 has doubles and booleans, and nobody here has asked for that. Without functions for
 * them newer readers return what is no reply object. */
#if HIREDIS_MAJOR >= 1
static void *no_double(const redisReadTask *task, double value, char *s, size_t len)
{
    (void)task, (void)value, (void)s, (void)len;
    return NULL;
}

static void *no_bool(const redisReadTask *task, int value)
{
    (void)task, (void)value;
    return NULL;
}
#endif

void mfs_channel_limit(struct mfs_channel *conn)
{
    redisReader *r = conn->ctx->reader;

    conn->fn = r->fn;
    conn->fn_limited = (redisReplyObjectFunctions){.createString = limited_string,
                                                   .createArray = limited_array,
                                                   .createInteger = limited_integer,
                                                   .createNil = limited_nil,
                                                   .freeObject = conn->fn->freeObject};
#if HIREDIS_MAJOR >= 1
    conn->fn_limited.createDouble = no_double;
    conn->fn_limited.createBool = no_bool;
#endif
    conn->budget = MFS_CHANNEL_REPLY_MAX;
    r->fn = &conn->fn_limited;
    r->privdata = conn;
}

static void finish(struct mfs_channel *conn, struct mfs_cmd *cmd, redisReply *reply,
                   struct mfs_err *err)
{
    conn->in = MFS_IN_HEAD;
    conn->budget = MFS_CHANNEL_REPLY_MAX;
    cmd->rc = 0;
    if (reply->type == REDIS_REPLY_ERROR) {
        cmd->rc = mfs_reply_errno(reply->str, reply->len);
        mfs_err_set(err, cmd->rc, "%s", reply->str);
    } else if (reply->type == REDIS_REPLY_NIL && (cmd->into || cmd->room)) {
        cmd->into_len = -1;
    } else {
        cmd->reply = (struct mfs_reply *)reply;
        return;
    }
    freeReplyObject(reply);
}

static int recv_reader(struct mfs_channel *conn, struct mfs_cmd *cmd, bool wait,
                       struct mfs_err *err)
{
    redisReader *r = conn->ctx->reader;

    conn->in = MFS_IN_READER;
    for (;;) {
        void *reply = NULL;
        int rc;

        if (redisReaderGetReply(r, &reply) != REDIS_OK)
            return mfs_err_set(err, -EPROTO, "%s", r->errstr);
        if (reply) {
            finish(conn, cmd, reply, err);
            return 1;
        }
        rc = fill(conn, FILL_BYTES, wait, err);
        if (rc <= 0)
            return rc;
    }
}

/* Looks at the first line of a reply, which is consumed when it is a bulk string's: 1 and its
 * length (-1: nil); 0 when more bytes are needed; -ENOMSG when it is of another kind; -EPROTO. */
static int bulk_header(redisReader *r, int64_t *len)
{
    const char *p = r->buf + r->pos, *eol;
    size_t have = r->len - r->pos;
    char *end;

    if (!have)
        return 0;
    if (*p != '$')
        return -ENOMSG;
    eol = memchr(p, '\n', have < HEADER_MAX ? have : HEADER_MAX);
    if (!eol)
        return have < HEADER_MAX ? 0 : -EPROTO;
    *len = strtoll(p + 1, &end, 10);
    if ((p[1] != '-' && (p[1] < '0' || p[1] > '9')) || end + 1 != eol || *end != '\r' ||
        *len < -1 || *len > MFS_CHANNEL_REPLY_MAX)
        return -EPROTO;
    reader_consume(r, (size_t)(eol + 1 - p));
    return 1;
}

/* n bytes of payload and CRLF have arrived in their places. */
static void body_advance(struct mfs_channel *conn, struct mfs_cmd *cmd, size_t n)
{
    size_t payload = conn->in_left > 2 ? conn->in_left - 2 : 0;

    if (conn->in == MFS_IN_BODY)
        cmd->into_len += (ssize_t)(n < payload ? n : payload);
    conn->in_left -= n;
}

/* Where the next bytes go: payload, then CRLF. Returns the number of pieces. */
static int body_places(struct mfs_channel *conn, struct mfs_cmd *cmd, char *scratch,
                       struct iovec v[2])
{
    size_t payload = conn->in_left > 2 ? conn->in_left - 2 : 0;
    size_t tail = conn->in_left - payload;
    int n = 0;

    if (payload && conn->in == MFS_IN_SKIP) {
        v[0] = (struct iovec){scratch, payload < FILL_BYTES ? payload : FILL_BYTES};
        return 1;
    }
    if (payload)
        v[n++] = (struct iovec){(char *)cmd->into + cmd->into_len, payload};
    v[n++] = (struct iovec){conn->crlf + 2 - tail, tail};
    return n;
}

/* Moves what the reader already holds of the body. */
static void body_from_reader(struct mfs_channel *conn, struct mfs_cmd *cmd)
{
    redisReader *r = conn->ctx->reader;
    char scratch[FILL_BYTES];

    while (conn->in_left && r->len > r->pos) {
        struct iovec v[2];
        size_t n = r->len - r->pos;

        body_places(conn, cmd, scratch, v);
        n = n < v[0].iov_len ? n : v[0].iov_len;
        memcpy(v[0].iov_base, r->buf + r->pos, n);
        reader_consume(r, n);
        body_advance(conn, cmd, n);
    }
}

static int recv_body(struct mfs_channel *conn, struct mfs_cmd *cmd, bool wait, struct mfs_err *err)
{
    char scratch[FILL_BYTES];

    while (conn->in_left) {
        struct iovec v[2];
        struct msghdr m = {.msg_iov = v};
        ssize_t n;
        int rc;

        m.msg_iovlen = (size_t)body_places(conn, cmd, scratch, v);
        n = recvmsg(conn->ctx->fd, &m, how(conn, wait));
        rc = received(conn, n, wait);
        if (rc <= 0)
            return rc;
        if (n > 0)
            body_advance(conn, cmd, (size_t)n);
    }
    if (memcmp(conn->crlf, "\r\n", 2) != 0)
        return mfs_err_set(err, -EPROTO, "bulk string without end");
    cmd->rc = conn->in == MFS_IN_SKIP ? -EMSGSIZE : 0;
    if (cmd->rc)
        mfs_err_set(err, cmd->rc, "reply does not fit the buffer of %zu bytes", cmd->into_cap);
    conn->in = MFS_IN_HEAD;
    return 1;
}

static int recv_head(struct mfs_channel *conn, struct mfs_cmd *cmd, bool wait, struct mfs_err *err)
{
    int64_t len = 0;
    int rc;

    while (!(rc = bulk_header(conn->ctx->reader, &len))) {
        rc = fill(conn, cmd->into_cap >= LARGE ? PEEK_BYTES : FILL_BYTES, wait, err);
        if (rc <= 0)
            return rc;
    }
    if (rc == -ENOMSG)
        return recv_reader(conn, cmd, wait, err);
    if (rc < 0)
        return mfs_err_set(err, rc, "malformed bulk string");
    if (cmd->room && len >= 0) {
        cmd->into = cmd->room(cmd->arg, (size_t)len);
        if (!cmd->into)
            return -ENOMEM;
    }
    cmd->into_len = len < 0 ? -1 : 0;
    if (len < 0) {
        cmd->rc = 0;
        return 1;
    }
    conn->in = (uint64_t)len <= cmd->into_cap ? MFS_IN_BODY : MFS_IN_SKIP;
    conn->in_left = (size_t)len + 2;
    body_from_reader(conn, cmd);
    return recv_body(conn, cmd, wait, err);
}

int mfs_channel_recv(struct mfs_channel *conn, struct mfs_cmd *cmd, bool wait, struct mfs_err *err)
{
    switch (conn->in) {
    case MFS_IN_HEAD:
        if (cmd->into || cmd->room)
            return recv_head(conn, cmd, wait, err);
        return recv_reader(conn, cmd, wait, err);
    case MFS_IN_READER:
        return recv_reader(conn, cmd, wait, err);
    default:
        return recv_body(conn, cmd, wait, err);
    }
}
