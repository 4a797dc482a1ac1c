/* An uplink is waiting (a timer runs), connecting (a connection, not yet proved), or up. Invariant:
 * exactly one of timer and conn is set, but in `attempt`, in `closed`, and without memory for a
 * timer. service->down is called for connections that were up only. */
#include "net/uplink.h"

#include <assert.h>
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

static_assert(DELAY_FIRST < DELAY_MOST, "pauses grow");

struct mfs_uplink {
    struct mfs_conn_owner owner; /* first: the connection knows us by it */
    struct mfs_loop *loop;
    char address[PATH_MAX];
    const struct mfs_secret *secret;
    char role[MFS_AUTH_ROLE_MAX];
    const struct mfs_service *service;
    struct mfs_service current; /* the same, without `down` until a connection is up */
    void *arg;
    void (*failed)(void *arg, const char *why); /* may be NULL */
    struct mfs_conn *conn;
    bool up, complained, ending;
    struct mfs_timer *timer;
    int64_t delay;
};

static void attempt(void *arg);

static void again(struct mfs_uplink *u)
{
    u->timer = mfs_loop_timer(u->loop, u->delay, 0, attempt, u);
    if (!u->timer)
        mfs_error("session", "%s: out of memory, will not connect again", u->address);
    u->delay = u->delay * 2 < DELAY_MOST ? u->delay * 2 : DELAY_MOST;
}

static void complain(struct mfs_uplink *u, const char *why)
{
    if (!u->complained)
        mfs_warn("session", "cannot connect (trying on): %s", why);
    u->complained = true;
    if (u->failed)
        u->failed(u->arg, why);
}

static void authenticated(struct mfs_conn_owner *o, struct mfs_conn *c)
{
    struct mfs_uplink *u = (struct mfs_uplink *)o;

    mfs_info("session", "connected to %s", mfs_conn_peer(c));
    u->up = true;
    u->complained = false;
    u->delay = DELAY_FIRST;
    u->current.down = u->service->down;
}

static void closed(struct mfs_conn_owner *o, struct mfs_conn *c, bool was_authenticated,
                   const char *why)
{
    struct mfs_uplink *u = (struct mfs_uplink *)o;

    u->conn = NULL;
    u->up = false;
    if (u->ending)
        return;
    if (was_authenticated)
        mfs_info("session", "lost %s: %s", mfs_conn_peer(c), why);
    else
        complain(u, why);
    again(u);
}

static int current_address(const struct mfs_uplink *u, char out[MFS_ADDRESS_MAX])
{
    struct mfs_buf b;
    int rc;

    if (strncmp(u->address, "file:", 5))
        return mfs_text_copy(out, MFS_ADDRESS_MAX, u->address);
    mfs_buf_init(&b);
    rc = mfs_trusted_read(u->address + 5, MFS_ADDRESS_MAX - 1, &b);
    if (!rc)
        rc = mfs_text_format(out, MFS_ADDRESS_MAX, "%.*s", (int)mfs_buf_len(&b), mfs_buf_data(&b));
    if (!rc)
        out[strcspn(out, "\r\n")] = '\0';
    mfs_buf_fini(&b);
    return rc;
}

static void attempt(void *arg)
{
    struct mfs_uplink *u = arg;
    char address[MFS_ADDRESS_MAX];
    struct mfs_err err = {0};
    int rc = current_address(u, address);

    u->timer = NULL;
    u->current = *u->service;
    u->current.down = NULL;
    if (rc)
        mfs_err_set(&err, rc, "%s: %s", u->address, strerror(-rc));
    else
        u->conn = mfs_conn_connect(u->loop, address, u->secret, u->role, CONNECT_TIMEOUT,
                                   &u->current, u->arg, &err);
    if (u->conn) {
        mfs_conn_set_owner(u->conn, &u->owner);
    } else {
        complain(u, err.msg);
        again(u);
    }
}

struct mfs_uplink *mfs_uplink_create(struct mfs_loop *loop, const char *address,
                                     const struct mfs_secret *secret, const char *role,
                                     const struct mfs_service *service, void *arg,
                                     struct mfs_err *err)
{
    struct mfs_uplink *u = calloc(1, sizeof *u);

    if (!u) {
        mfs_err_set(err, -ENOMEM, "out of memory");
        return NULL;
    }
    u->owner = (struct mfs_conn_owner){authenticated, closed};
    u->loop = loop;
    u->secret = secret;
    u->service = service;
    u->arg = arg;
    u->delay = DELAY_FIRST;
    if (mfs_text_copy(u->address, sizeof u->address, address) ||
        mfs_text_copy(u->role, sizeof u->role, role)) {
        mfs_err_set(err, -ENAMETOOLONG, "%s: too long", address);
        free(u);
        return NULL;
    }
    u->timer = mfs_loop_timer(loop, 0, 0, attempt, u);
    if (u->timer)
        return u;
    mfs_err_set(err, -ENOMEM, "out of memory");
    free(u);
    return NULL;
}

/* There is neither a connection nor a timer then. */
static void leave(struct mfs_uplink *u, const char *why)
{
    struct mfs_conn *c = u->conn;
    bool was_up = u->up;
    struct mfs_err err;

    mfs_timer_cancel(u->timer);
    u->timer = NULL;
    u->conn = NULL;
    u->up = false;
    if (!c)
        return;
    mfs_conn_get(c);
    mfs_conn_set_owner(c, NULL);
    mfs_conn_close(c);
    mfs_err_set(&err, -ECONNABORTED, "%s", why);
    if (was_up && u->service->down)
        u->service->down(c, &err, u->arg);
    mfs_conn_put(c);
}

int mfs_uplink_redirect(struct mfs_uplink *u, const char *address)
{
    int rc = strlen(address) < MFS_ADDRESS_MAX ? 0 : -ENAMETOOLONG;

    if (rc)
        return rc;
    leave(u, "another address");
    mfs_text_copy(u->address, sizeof u->address, address);
    u->delay = 0;
    again(u);
    u->delay = DELAY_FIRST;
    return 0;
}

void mfs_uplink_again(struct mfs_uplink *u)
{
    leave(u, "no answer");
    again(u);
}

void mfs_uplink_on_failure(struct mfs_uplink *u, void (*failed)(void *arg, const char *why))
{
    u->failed = failed;
}

const char *mfs_uplink_address(const struct mfs_uplink *u)
{
    return u->address;
}

void mfs_uplink_destroy(struct mfs_uplink *u)
{
    if (!u)
        return;
    u->ending = true;
    if (u->conn)
        mfs_conn_close(u->conn);
    mfs_timer_cancel(u->timer);
    free(u);
}

struct mfs_conn *mfs_uplink_conn(const struct mfs_uplink *u)
{
    return u->up ? u->conn : NULL;
}
