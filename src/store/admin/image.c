/* The stream of an image, in redis' words: a line that tells of the fork, a line with a random
 * mark, the content, and the mark again, which ends it. The bytes that could be the mark are held
 * back until more come. The connection is hiredis' until the question is put, and ours from then
 * on. */
#include "store/admin/image.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "cluster/table.h"
#include "store/args.h"
#include "store/channel.h"

#define MARK  40
#define CHUNK (1U << 20)
#define LINE  1024

enum step { AT_REST, ASKED, FORKED, CONTENT, WHOLE };

struct mfs_image {
    struct mfs_channel *conn;
    char name[MFS_UNIXPATH_MAX];
    enum step step;
    char mark[MARK];
    bool closed;  /* nothing more comes */
    size_t given; /* bytes at the start of buf that the last take has given away */
    size_t n;     /* bytes in buf */
    char buf[CHUNK + LINE];
};

static int replconf(struct mfs_image *im, int64_t timeout_ns, struct mfs_err *err)
{
    struct mfs_args args;
    struct mfs_cmd cmd;
    int rc;

    mfs_args_init(&args, "REPLCONF");
    mfs_args_str(&args, "capa");
    mfs_args_str(&args, "eof");
    mfs_args_str(&args, "rdb-only");
    mfs_args_str(&args, "1");
    cmd = mfs_args_cmd(&args, 0);
    rc = mfs_channel_call(im->conn, &cmd, timeout_ns, err);
    if (!rc)
        rc = cmd.rc;
    mfs_cmds_fini(&cmd, 1);
    return rc;
}

int mfs_image_open(struct mfs_image **out, const char *unix_path, const char *password,
                   int64_t timeout_ns, struct mfs_err *err)
{
    struct mfs_endpoint ep = {unix_path, NULL, 0, MFS_REDIS_ADMIN, password};
    struct mfs_image *im = malloc(sizeof *im);
    int rc;

    *out = NULL;
    if (!im)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    im->conn = NULL;
    im->step = AT_REST;
    im->closed = false;
    im->given = im->n = 0;
    snprintf(im->name, sizeof im->name, "%s", unix_path);
    rc = mfs_channel_open(&im->conn, &ep, timeout_ns, timeout_ns, err);
    if (!rc)
        rc = replconf(im, timeout_ns, err);
    if (rc) {
        mfs_err_prefix(err, "redis at %s", im->name);
        mfs_image_close(im);
        return rc;
    }
    *out = im;
    return 0;
}

void mfs_image_close(struct mfs_image *im)
{
    if (!im)
        return;
    if (im->conn)
        mfs_channel_close(im->conn);
    free(im);
}

int mfs_image_fd(const struct mfs_image *im)
{
    return im->conn->ctx->fd;
}

bool mfs_image_whole(const struct mfs_image *im)
{
    return im->step == WHOLE;
}

int mfs_image_ask(struct mfs_image *im, struct mfs_err *err)
{
    static const char question[] = "PSYNC ? -1\r\n";
    ssize_t n = send(mfs_image_fd(im), question, sizeof question - 1, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n != (ssize_t)(sizeof question - 1))
        return mfs_err_set(err, -EIO, "redis at %s: cannot be asked for an image: %s", im->name,
                           n < 0 ? strerror(errno) : "its socket is full");
    im->step = ASKED;
    return 0;
}

/* As much as there is. 0 also when there is nothing. */
static int receive(struct mfs_image *im, struct mfs_err *err)
{
    size_t room = sizeof im->buf - im->n;
    ssize_t n = room ? recv(mfs_image_fd(im), im->buf + im->n, room, MSG_DONTWAIT) : 0;

    if (!room)
        return 0;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return 0;
    if (n < 0)
        return mfs_err_set(err, -EIO, "redis at %s: the image broke off: %s", im->name,
                           strerror(errno));
    im->closed |= !n;
    im->n += (size_t)n;
    return 0;
}

/* It closes when it has sent everything, which may have come already. */
static int check_closed(const struct mfs_image *im, struct mfs_err *err)
{
    return im->closed ? mfs_err_set(err, -EIO,
                                    "redis at %s: the image broke off: the process closed the "
                                    "connection",
                                    im->name)
                      : 0;
}

static void consume(struct mfs_image *im, size_t n)
{
    memmove(im->buf, im->buf + n, im->n - n);
    im->n -= n;
}

static int take_line(struct mfs_image *im, const char *line, struct mfs_err *err)
{
    static const char forked[] = "+FULLRESYNC ", content[] = "$EOF:";
    size_t len = strlen(line);

    if (!len) /* it shows that it lives */
        return 0;
    if (im->step == ASKED && !strncmp(line, forked, sizeof forked - 1)) {
        im->step = FORKED;
        return 0;
    }
    if (im->step == FORKED && !strncmp(line, content, sizeof content - 1) &&
        len == sizeof content - 1 + MARK) {
        memcpy(im->mark, line + sizeof content - 1, MARK);
        im->step = CONTENT;
        return 0;
    }
    return mfs_err_set(err, *line == '-' ? -EIO : -EPROTO, "redis at %s: gives no image: %.100s",
                       im->name, line);
}

/* The lines before the content that have come. */
static int take_head(struct mfs_image *im, enum step upto, struct mfs_err *err)
{
    char *end;
    int rc = 0;

    while (!rc && im->step < upto && (end = memchr(im->buf, '\n', im->n))) {
        size_t len = (size_t)(end - im->buf) + 1;

        *end = '\0';
        if (len > 1 && end[-1] == '\r')
            end[-1] = '\0';
        rc = take_line(im, im->buf, err);
        consume(im, len);
    }
    if (!rc && im->step < upto && im->n >= LINE)
        rc = mfs_err_set(err, -EPROTO, "redis at %s: gives no image", im->name);
    return rc;
}

int mfs_image_await(struct mfs_image *im, int64_t until, struct mfs_err *err)
{
    struct pollfd p = {.fd = mfs_image_fd(im), .events = POLLIN};
    int64_t left;
    int rc = 0;

    while (!rc && im->step < FORKED) {
        left = until - mfs_clock_mono();
        if (left <= 0)
            return mfs_err_set(err, -ETIMEDOUT, "redis at %s: did not fork in time", im->name);
        if (poll(&p, 1, (int)(left / MFS_MSEC) + 1) > 0)
            rc = receive(im, err);
        if (!rc)
            rc = take_head(im, FORKED, err);
        if (!rc && im->step < FORKED)
            rc = check_closed(im, err);
    }
    return rc;
}

int mfs_image_take(struct mfs_image *im, const char **p, size_t *n, struct mfs_err *err)
{
    int rc;

    *n = 0;
    consume(im, im->given);
    im->given = 0;
    rc = receive(im, err);
    if (!rc && im->step < CONTENT)
        rc = take_head(im, CONTENT, err);
    if (rc)
        return rc;
    if (im->step != CONTENT || im->n < MARK)
        return check_closed(im, err);
    if (!memcmp(im->buf + im->n - MARK, im->mark, MARK))
        im->step = WHOLE;
    *p = im->buf;
    *n = im->given = im->n - MARK;
    return *n || im->step == WHOLE ? 0 : check_closed(im, err);
}
