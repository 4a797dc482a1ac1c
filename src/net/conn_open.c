/* How connections begin: connecting to an address, and taking over what a listener accepted. Both
 * have a deadline until the peers have proved themselves to each other. */
#include "net/conn_impl.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/address.h"

#define PROVE_TIMEOUT (10 * MFS_SEC)

static void setup_late(void *arg)
{
    struct mfs_conn *c = arg;

    c->deadline = NULL;
    if (!c->why.code)
        mfs_err_set(&c->why, -ETIMEDOUT, "%s: does not answer", c->peer);
    mfs_conn_lost(c, &c->why);
}

static void tune(int fd, int family)
{
    int one = 1, idle = 10, interval = 5, count = 3;

    if (family == AF_UNIX)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

static int start_connect(struct mfs_conn *c, const struct mfs_address *to)
{
    c->fd = socket(to->sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        return -errno;
    tune(c->fd, to->sa.ss_family);
    if (connect(c->fd, (const struct sockaddr *)&to->sa, to->len) && errno != EINPROGRESS)
        return -errno;
    c->events = EPOLLOUT;
    c->watch = mfs_loop_watch(c->loop, c->fd, c->events, mfs_conn_ready, c);
    return c->watch ? 0 : -errno;
}

struct mfs_conn *mfs_conn_connect(struct mfs_loop *loop, const char *address,
                                  const struct mfs_secret *secret, const char *role,
                                  int64_t timeout, const struct mfs_service *service, void *arg,
                                  struct mfs_err *err)
{
    struct mfs_address to;
    struct mfs_conn *c;
    int rc;

    if (mfs_address_parse(address, &to, err))
        return NULL;
    c = mfs_conn_new(loop, service, arg, address);
    if (!c || mfs_auth_begin(&c->auth, secret, role, NULL))
        goto fail;
    rc = start_connect(c, &to);
    /* A refusal is known at once, but told from the loop, as every other. */
    if (rc)
        mfs_err_set(&c->why, rc, "%s: %s", c->peer, strerror(-rc));
    c->deadline = mfs_loop_timer(loop, rc ? 0 : timeout, 0, setup_late, c);
    if (c->deadline)
        return c;
fail:
    mfs_err_set(err, -ENOMEM, "%s: out of memory", address);
    if (c)
        mfs_conn_drop(c, "");
    return NULL;
}

pid_t mfs_conn_peer_pid(const struct mfs_conn *c)
{
    struct ucred peer = {0};
    socklen_t len = sizeof peer;

    return getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) ? 0 : peer.pid;
}

struct mfs_conn *mfs_conn_accepted(struct mfs_loop *loop, int fd, const char *peer,
                                   const struct mfs_secret *secret,
                                   const struct mfs_service *service, void *arg,
                                   struct mfs_conn_owner *owner)
{
    struct mfs_conn *c = mfs_conn_new(loop, service, arg, peer);

    if (!c) {
        close(fd);
        return NULL;
    }
    c->fd = fd;
    c->state = MFS_CONN_PROVING;
    tune(fd, strncmp(peer, "unix:", 5) ? AF_INET : AF_UNIX);
    c->events = EPOLLIN;
    c->watch = mfs_loop_watch(loop, fd, c->events, mfs_conn_ready, c);
    c->deadline = mfs_loop_timer(loop, PROVE_TIMEOUT, 0, setup_late, c);
    if (!c->watch || !c->deadline || mfs_auth_begin(&c->auth, secret, NULL, &c->out)) {
        mfs_conn_drop(c, "");
        return NULL;
    }
    c->owner = owner;
    mfs_conn_flush(c);
    return c;
}
