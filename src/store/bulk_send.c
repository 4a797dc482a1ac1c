/* The bulk path, outgoing half: commands become one list of pieces for sendmsg(2). Headers and
 * small arguments are copied, one behind the other, into conn->text (measured: one contiguous
 * buffer beats gathering up to some 64 KiB); an argument of MFS_CHANNEL_GATHER_MIN bytes or more is
 * a piece of its own and is sent from where it is. */
#include "store/channel.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"

#define TEXT_KEEP (256U << 10) /* a larger text buffer is not kept for the next pipeline */

static size_t digits(size_t n)
{
    size_t count = 1;

    for (; n >= 10; n /= 10)
        count++;
    return count;
}

/* "*N\r\n" or "$N\r\n" */
static char *put_header(char *to, char kind, size_t n)
{
    size_t len = digits(n);

    *to = kind;
    for (size_t i = len; i; i--, n /= 10)
        to[i] = (char)('0' + n % 10);
    memcpy(to + 1 + len, "\r\n", 2);
    return to + len + 3;
}

static bool gathered(const struct mfs_arg *arg)
{
    return arg->len >= MFS_CHANNEL_GATHER_MIN;
}

size_t mfs_channel_cmd_size(const struct mfs_cmd *cmd)
{
    size_t size = digits(cmd->argc) + 3;

    for (uint32_t i = 0; i < cmd->argc; i++)
        size += digits(cmd->argv[i].len) + 3 + cmd->argv[i].len + 2;
    return size;
}

void mfs_channel_cmd_encode(const struct mfs_cmd *cmd, char *to)
{
    to = put_header(to, '*', cmd->argc);
    for (uint32_t i = 0; i < cmd->argc; i++) {
        const struct mfs_arg *arg = &cmd->argv[i];

        to = put_header(to, '$', arg->len);
        if (arg->len)
            memcpy(to, arg->p, arg->len);
        memcpy(to + arg->len, "\r\n", 2);
        to += arg->len + 2;
    }
}

/* Makes room for the encoded pipeline: text bytes and pieces. */
static int reserve(struct mfs_channel *conn, struct mfs_cmd *const *cmds, size_t n)
{
    size_t text = 0, pieces = 1;

    for (size_t c = 0; c < n; c++) {
        text += mfs_channel_cmd_size(cmds[c]);
        for (uint32_t i = 0; i < cmds[c]->argc; i++) {
            if (!gathered(&cmds[c]->argv[i]))
                continue;
            text -= cmds[c]->argv[i].len;
            pieces += 2;
        }
    }
    if (text > conn->text_cap || conn->text_cap > TEXT_KEEP) {
        free(conn->text);
        conn->text = malloc(text);
        conn->text_cap = conn->text ? text : 0;
    }
    if (pieces > conn->iov_cap) {
        free(conn->iov);
        conn->iov = calloc(pieces, sizeof *conn->iov);
        conn->iov_cap = conn->iov ? pieces : 0;
    }
    return conn->text && conn->iov ? 0 : -ENOMEM;
}

static void add_piece(struct mfs_channel *conn, const void *p, size_t len)
{
    if (len)
        conn->iov[conn->iov_n++] = (struct iovec){(void *)(uintptr_t)p, len};
}

int mfs_channel_start(struct mfs_channel *conn, struct mfs_cmd *const *cmds, size_t n,
                      int64_t deadline)
{
    char *piece, *to;

    conn->iov_n = conn->iov_at = 0;
    conn->sent = 0;
    conn->deadline = deadline;
    if (reserve(conn, cmds, n))
        return -ENOMEM;
    piece = to = conn->text;
    for (size_t c = 0; c < n; c++) {
        to = put_header(to, '*', cmds[c]->argc);
        for (uint32_t i = 0; i < cmds[c]->argc; i++) {
            const struct mfs_arg *arg = &cmds[c]->argv[i];

            to = put_header(to, '$', arg->len);
            if (gathered(arg)) {
                add_piece(conn, piece, (size_t)(to - piece));
                add_piece(conn, arg->p, arg->len);
                piece = to;
            } else if (arg->len) {
                memcpy(to, arg->p, arg->len);
                to += arg->len;
            }
            memcpy(to, "\r\n", 2);
            to += 2;
        }
    }
    add_piece(conn, piece, (size_t)(to - piece));
    return 0;
}

static void advance(struct mfs_channel *conn, size_t n)
{
    conn->sent += n;
    while (conn->iov_at < conn->iov_n && n >= conn->iov[conn->iov_at].iov_len)
        n -= conn->iov[conn->iov_at++].iov_len;
    if (n) {
        struct iovec *v = &conn->iov[conn->iov_at];

        v->iov_base = (char *)v->iov_base + n;
        v->iov_len -= n;
    }
}

int mfs_channel_overdue(const struct mfs_channel *conn)
{
    return mfs_clock_mono() > conn->deadline ? -ETIMEDOUT : 0;
}

int mfs_channel_send(struct mfs_channel *conn, bool wait)
{
    while (conn->iov_at < conn->iov_n) {
        size_t left = conn->iov_n - conn->iov_at;
        struct msghdr m = {.msg_iov = conn->iov + conn->iov_at,
                           .msg_iovlen = left < IOV_MAX ? left : IOV_MAX};
        ssize_t n = sendmsg(conn->ctx->fd, &m, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT));

        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return wait ? -ETIMEDOUT : 0;
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0)
            advance(conn, (size_t)n);
        if (wait && conn->iov_at < conn->iov_n && mfs_channel_overdue(conn))
            return -ETIMEDOUT;
    }
    return 1;
}

size_t mfs_channel_sent(const struct mfs_channel *conn, struct mfs_cmd *const *cmds, size_t n)
{
    uint64_t end = 0;

    for (size_t c = 0; c < n; c++) {
        end += mfs_channel_cmd_size(cmds[c]);
        if (end > conn->sent)
            return c;
    }
    return n;
}
