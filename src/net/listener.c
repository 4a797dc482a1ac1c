/* Listening, and the limits on connections that take up room: so many connections, of them so many
 * that have not proved anything yet. When there is one too many of these, the one that has had the
 * longest time to prove itself goes: a peer that holds the secret needs a round trip, so a flood of
 * strangers can't keep it out by waiting. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/address.h"
#include "net/conn_impl.h"

#define BACKLOG    128
#define PAUSE      (100 * MFS_MSEC) /* when there are no descriptors left */
#define LEAST_OPEN 8
#define MOST_OPEN  128            /* far below what descriptors a process may have */
#define COMPLAIN   (10 * MFS_SEC) /* the log is not for strangers to fill */

struct mfs_listener {
    struct mfs_conn_owner owner; /* first: the connections know us by it */
    struct mfs_loop *loop;
    int fd;
    struct mfs_watch *watch;
    struct mfs_timer *pause;
    struct mfs_address address;
    const struct mfs_secret *secret;
    const struct mfs_service *service;
    void *arg;
    unsigned max, n;
    struct mfs_conn **conn; /* n of max */
    unsigned unproved;
    struct mfs_conn *stranger[MOST_OPEN + 1]; /* the unproved, the oldest first */
    int64_t complained;
    unsigned dropped; /* since then */
};

static void proved_or_gone(struct mfs_listener *l, const struct mfs_conn *c)
{
    unsigned i = 0;

    while (i < l->unproved && l->stranger[i] != c)
        i++;
    if (i == l->unproved)
        return;
    l->unproved--;
    memmove(&l->stranger[i], &l->stranger[i + 1], (l->unproved - i) * sizeof l->stranger[0]);
}

static void authenticated(struct mfs_conn_owner *o, struct mfs_conn *c)
{
    proved_or_gone((struct mfs_listener *)o, c);
}

static void closed(struct mfs_conn_owner *o, struct mfs_conn *c, bool was_authenticated,
                   const char *why)
{
    struct mfs_listener *l = (struct mfs_listener *)o;

    (void)why;
    if (!was_authenticated)
        proved_or_gone(l, c);
    for (unsigned i = 0; i < l->n; i++) {
        if (l->conn[i] == c) {
            l->conn[i] = l->conn[--l->n];
            break;
        }
    }
}

static unsigned unproved_max(const struct mfs_listener *l)
{
    unsigned quarter = l->max / 4;

    return quarter < LEAST_OPEN ? LEAST_OPEN : quarter > MOST_OPEN ? MOST_OPEN : quarter;
}

static void complain(struct mfs_listener *l, const char *peer)
{
    int64_t now = mfs_clock_mono();

    l->dropped++;
    if (l->complained && now - l->complained < COMPLAIN)
        return;
    mfs_warn("wire", "too many connections that prove nothing: %u closed, the last from %s",
             l->dropped, peer);
    l->complained = now;
    l->dropped = 0;
}

/* False: there is no room, and no connection may be closed to make it. */
static bool make_room(struct mfs_listener *l)
{
    if (l->unproved && (l->unproved >= unproved_max(l) || l->n >= l->max)) {
        complain(l, mfs_conn_peer(l->stranger[0]));
        mfs_conn_close(l->stranger[0]);
    }
    return l->n < l->max;
}

static void take(struct mfs_listener *l, int fd, const struct mfs_address *from)
{
    char peer[MFS_ADDRESS_MAX];
    struct mfs_conn *c;

    mfs_address_format(from, peer, sizeof peer);
    if (!make_room(l)) {
        complain(l, peer);
        close(fd);
        return;
    }
    c = mfs_conn_accepted(l->loop, fd, peer, l->secret, l->service, l->arg, &l->owner);
    if (!c)
        return;
    l->conn[l->n++] = c;
    l->stranger[l->unproved++] = c;
}

static void resume(void *arg)
{
    struct mfs_listener *l = arg;

    l->pause = NULL;
    mfs_watch_events(l->watch, EPOLLIN);
}

static void incoming(void *arg, uint32_t events)
{
    struct mfs_listener *l = arg;

    (void)events;
    for (int i = 0; i < BACKLOG; i++) {
        struct mfs_address from = {.len = sizeof from.sa};
        int fd =
            accept4(l->fd, (struct sockaddr *)&from.sa, &from.len, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0) {
            take(l, fd, &from);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return;
        } else if (errno != ECONNABORTED && errno != EINTR) {
            mfs_warn("wire", "accept: %s", strerror(errno));
            l->pause = mfs_loop_timer(l->loop, PAUSE, 0, resume, l);
            if (l->pause)
                mfs_watch_events(l->watch, 0);
            return;
        }
    }
}

static int open_socket(struct mfs_listener *l)
{
    const struct sockaddr *sa = (const struct sockaddr *)&l->address.sa;
    bool is_unix = sa->sa_family == AF_UNIX;
    int one = 1;

    l->fd = socket(sa->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (l->fd < 0)
        return -errno;
    if (is_unix)
        unlink(((const struct sockaddr_un *)sa)->sun_path);
    else if (setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one))
        return -errno;
    /* The mode of a socket file is set before any process can connect: listen comes after. */
    if (bind(l->fd, sa, l->address.len) ||
        (is_unix && chmod(((const struct sockaddr_un *)sa)->sun_path, 0600)) ||
        listen(l->fd, BACKLOG))
        return -errno;
    l->address.len = sizeof l->address.sa;
    return getsockname(l->fd, (struct sockaddr *)&l->address.sa, &l->address.len) ? -errno : 0;
}

struct mfs_listener *mfs_listener_create(struct mfs_loop *loop, const char *address,
                                         const struct mfs_secret *secret, unsigned max,
                                         const struct mfs_service *service, void *arg,
                                         struct mfs_err *err)
{
    struct mfs_listener *l = calloc(1, sizeof *l);
    int rc = -ENOMEM;

    if (!l)
        goto fail;
    *l = (struct mfs_listener){.owner = {authenticated, closed},
                               .loop = loop,
                               .fd = -1,
                               .secret = secret,
                               .service = service,
                               .arg = arg,
                               .max = max};
    l->conn = calloc(max, sizeof(struct mfs_conn *));
    if (!l->conn)
        goto fail;
    if (mfs_address_parse(address, &l->address, err))
        goto out;
    rc = open_socket(l);
    if (rc)
        goto fail;
    l->watch = mfs_loop_watch(loop, l->fd, EPOLLIN, incoming, l);
    if (l->watch)
        return l;
    rc = -errno;
fail:
    mfs_err_set(err, rc, "cannot listen at %s: %s", address, strerror(-rc));
out:
    mfs_listener_destroy(l);
    return NULL;
}

void mfs_listener_address(const struct mfs_listener *l, char out[MFS_ADDRESS_MAX])
{
    mfs_address_format(&l->address, out, MFS_ADDRESS_MAX);
}

void mfs_listener_destroy(struct mfs_listener *l)
{
    if (!l)
        return;
    while (l->n)
        mfs_conn_close(l->conn[l->n - 1]);
    mfs_watch_remove(l->watch);
    mfs_timer_cancel(l->pause);
    if (l->watch && l->address.sa.ss_family == AF_UNIX)
        unlink(((const struct sockaddr_un *)&l->address.sa)->sun_path);
    if (l->fd >= 0)
        close(l->fd);
    free(l->conn);
    free(l);
}
