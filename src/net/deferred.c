#include "net/deferred.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

struct mfs_deferred mfs_reply_later(struct mfs_conn *conn, uint64_t id)
{
    return (struct mfs_deferred){conn ? mfs_conn_get(conn) : NULL, id};
}

void mfs_deferred_drop(struct mfs_deferred *d)
{
    mfs_conn_put(d->conn);
    *d = (struct mfs_deferred){0};
}

void mfs_deferred_reply(struct mfs_deferred *d, enum mfs_msg type, const void *body)
{
    if (d->conn)
        mfs_conn_reply(d->conn, type, d->id, body);
    mfs_deferred_drop(d);
}

void mfs_deferred_fail(struct mfs_deferred *d, int code, const char *fmt, ...)
{
    char why[MFS_ERR_MSG_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    if (d->conn)
        mfs_conn_fail(d->conn, d->id, code, "%s", why);
    mfs_deferred_drop(d);
}

void mfs_deferred_replace(struct mfs_deferred *d, struct mfs_conn *conn, uint64_t id)
{
    mfs_deferred_fail(d, -EALREADY, "it was asked for again");
    *d = mfs_reply_later(conn, id);
}
