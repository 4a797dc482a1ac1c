/* Sessions. Between two attempts a timer runs; it is NULL while a connection is being made or up.
 */
#include "net/session.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "base/trusted_dir.h"
#include "net/conn_impl.h"

#define DELAY_FIRST     (50 * MFS_MSEC)
#define DELAY_MOST      (2 * MFS_SEC)
#define CONNECT_TIMEOUT (5 * MFS_SEC)

struct mfs_session {
    struct mfs_conn_owner owner; /* first: the connection knows us by it */
    struct mfs_loop *loop;
    char address[PATH_MAX];
    const struct mfs_secret *secret;
    char role[MFS_AUTH_ROLE_MAX];
    const struct mfs_service *service;
    struct mfs_service current; /* the same, without `down` until a connection is up */
    void *arg;
    struct mfs_conn *conn;
    bool up, complained, ending;
    struct mfs_timer *timer;
    int64_t delay;
};

static void attempt(void *arg);

static void again(struct mfs_session *s)
{
    s->timer = mfs_loop_timer(s->loop, s->delay, 0, attempt, s);
    if (!s->timer)
        mfs_error("session", "%s: out of memory, will not connect again", s->address);
    s->delay = s->delay * 2 < DELAY_MOST ? s->delay * 2 : DELAY_MOST;
}

static void complain(struct mfs_session *s, const char *why)
{
    if (!s->complained)
        mfs_warn("session", "cannot connect (trying on): %s", why);
    s->complained = true;
}

static void authenticated(struct mfs_conn_owner *o, struct mfs_conn *c)
{
    struct mfs_session *s = (struct mfs_session *)o;

    mfs_info("session", "connected to %s", mfs_conn_peer(c));
    s->up = true;
    s->complained = false;
    s->delay = DELAY_FIRST;
    s->current.down = s->service->down;
}

static void closed(struct mfs_conn_owner *o, struct mfs_conn *c, bool was_authenticated,
                   const char *why)
{
    struct mfs_session *s = (struct mfs_session *)o;

    s->conn = NULL;
    s->up = false;
    if (s->ending)
        return;
    if (was_authenticated)
        mfs_info("session", "lost %s: %s", mfs_conn_peer(c), why);
    else
        complain(s, why);
    again(s);
}

static int current_address(const struct mfs_session *s, char out[MFS_ADDRESS_MAX])
{
    struct mfs_buf b;
    int rc;

    if (strncmp(s->address, "file:", 5))
        return mfs_text_copy(out, MFS_ADDRESS_MAX, s->address);
    mfs_buf_init(&b);
    rc = mfs_trusted_read(s->address + 5, MFS_ADDRESS_MAX - 1, &b);
    if (!rc)
        rc = mfs_text_format(out, MFS_ADDRESS_MAX, "%.*s", (int)mfs_buf_len(&b), mfs_buf_data(&b));
    if (!rc)
        out[strcspn(out, "\r\n")] = '\0';
    mfs_buf_fini(&b);
    return rc;
}

static void attempt(void *arg)
{
    struct mfs_session *s = arg;
    char address[MFS_ADDRESS_MAX];
    struct mfs_err err = {0};
    int rc = current_address(s, address);

    s->timer = NULL;
    s->current = *s->service;
    s->current.down = NULL;
    if (rc)
        mfs_err_set(&err, rc, "%s: %s", s->address, strerror(-rc));
    else
        s->conn = mfs_conn_connect(s->loop, address, s->secret, s->role, CONNECT_TIMEOUT,
                                   &s->current, s->arg, &err);
    if (s->conn) {
        mfs_conn_set_owner(s->conn, &s->owner);
    } else {
        complain(s, err.msg);
        again(s);
    }
}

struct mfs_session *mfs_session_create(struct mfs_loop *loop, const char *address,
                                       const struct mfs_secret *secret, const char *role,
                                       const struct mfs_service *service, void *arg,
                                       struct mfs_err *err)
{
    struct mfs_session *s = calloc(1, sizeof *s);

    if (!s) {
        mfs_err_set(err, -ENOMEM, "out of memory");
        return NULL;
    }
    s->owner = (struct mfs_conn_owner){authenticated, closed};
    s->loop = loop;
    s->secret = secret;
    s->service = service;
    s->arg = arg;
    s->delay = DELAY_FIRST;
    if (mfs_text_copy(s->address, sizeof s->address, address) ||
        mfs_text_copy(s->role, sizeof s->role, role)) {
        mfs_err_set(err, -ENAMETOOLONG, "%s: too long", address);
        free(s);
        return NULL;
    }
    s->timer = mfs_loop_timer(loop, 0, 0, attempt, s);
    if (s->timer)
        return s;
    mfs_err_set(err, -ENOMEM, "out of memory");
    free(s);
    return NULL;
}

void mfs_session_destroy(struct mfs_session *s)
{
    if (!s)
        return;
    s->ending = true;
    if (s->conn)
        mfs_conn_close(s->conn);
    mfs_timer_cancel(s->timer);
    free(s);
}

struct mfs_conn *mfs_session_conn(const struct mfs_session *s)
{
    return s->up ? s->conn : NULL;
}
