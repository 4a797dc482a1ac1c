/* A probe's connection; see the header. */
#include "lm/measure/probe_link.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "proto/frame.h"

#define AREA   "probe"
#define PIECE  65536
#define PIECES 8 /* of one link before the next has its turn */

int mfs_probe_link_open(struct mfs_probe_link *l, int fd, const struct mfs_secret *secret,
                        const char *role)
{
    int rc;

    *l = (struct mfs_probe_link){.fd = fd};
    mfs_buf_init(&l->in);
    mfs_buf_init(&l->out);
    rc = mfs_auth_begin(&l->auth, secret, role, &l->out);
    if (rc)
        mfs_probe_link_close(l);
    return rc;
}

/* A queue of zeros would take its time on a slow link, and the next measurement would find
 * it there. */
void mfs_probe_link_close(struct mfs_probe_link *l)
{
    struct linger at_once = {.l_onoff = 1};

    if (l->fd < 0)
        return;
    setsockopt(l->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(l->fd);
    l->fd = -1;
    mfs_auth_end(&l->auth);
    mfs_buf_fini(&l->in);
    mfs_buf_fini(&l->out);
}

int mfs_probe_link_start(struct mfs_probe_link *l, bool send)
{
    l->started = true;
    l->sends = send;
    return send ? 0 : mfs_buf_append(&l->out, "", 1);
}

static bool sending(const struct mfs_probe_link *l)
{
    return l->proved && l->started && l->sends;
}

short mfs_probe_link_wants(const struct mfs_probe_link *l)
{
    bool writes = mfs_buf_len(&l->out) > 0 || sending(l);

    return (short)(POLLIN | (writes ? POLLOUT : 0));
}

/* ---- the proof ------------------------------------------------------------------------------- */

/* One byte more than a proof has may be a zero already: frames are taken only until both have
 * proved. 0 or a negative errno. */
static int take_frames(struct mfs_probe_link *l)
{
    struct mfs_err err = {0};
    char *body;
    size_t len;
    int rc = 0;

    while (!l->proved && rc >= 0 &&
           (rc = mfs_frame_next(&l->in, MFS_AUTH_FRAME_MAX, &body, &len)) > 0) {
        rc = mfs_auth_step(&l->auth, body, len, &l->out, &err);
        l->proved = rc == MFS_AUTH_DONE;
        mfs_frame_done(&l->in, len);
    }
    if (rc < 0)
        mfs_warn(AREA, "someone failed to prove who he is: %s", *err.msg ? err.msg : strerror(-rc));
    return rc < 0 ? rc : 0;
}

static int read_proof(struct mfs_probe_link *l)
{
    char *room = mfs_buf_reserve(&l->in, MFS_AUTH_FRAME_MAX);
    ssize_t n;

    if (!room)
        return -ENOMEM;
    n = recv(l->fd, room, MFS_AUTH_FRAME_MAX, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN ? 0 : -errno;
    if (!n)
        return -ECONNRESET;
    mfs_buf_commit(&l->in, (size_t)n);
    return take_frames(l);
}

static int write_out(struct mfs_probe_link *l)
{
    ssize_t n =
        send(l->fd, mfs_buf_data(&l->out), mfs_buf_len(&l->out), MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n < 0)
        return errno == EAGAIN ? 0 : -errno;
    mfs_buf_consume(&l->out, (size_t)n);
    return 0;
}

/* ---- zeros ----------------------------------------------------------------------------------- */

/* How many pieces went; a negative errno when there is no more to expect. */
static int send_zeros(struct mfs_probe_link *l)
{
    static const char zeros[PIECE];

    for (int i = 0; i < PIECES; i++) {
        if (send(l->fd, zeros, sizeof zeros, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
            return errno == EAGAIN ? i : -errno;
    }
    return PIECES;
}

static int take_zeros(struct mfs_probe_link *l)
{
    char room[PIECE]; /* not written to: tcp(7), MSG_TRUNC */

    for (int i = 0; i < PIECES; i++) {
        ssize_t n = recv(l->fd, room, sizeof room, MSG_DONTWAIT | MSG_TRUNC);

        if (n < 0)
            return errno == EAGAIN ? i : -errno;
        if (!n)
            return -ECONNRESET;
    }
    return PIECES;
}

void mfs_probe_link_go(struct mfs_probe_link *l, short happened)
{
    int rc = 0;

    if (!l->proved && happened & (POLLIN | POLLERR | POLLHUP))
        rc = read_proof(l);
    else if (l->proved && happened & (POLLIN | POLLERR | POLLHUP))
        rc = take_zeros(l);
    l->started |= rc > 0;
    if (rc >= 0 && mfs_buf_len(&l->out))
        rc = write_out(l);
    else if (rc >= 0 && sending(l))
        rc = send_zeros(l);
    if (rc < 0)
        mfs_probe_link_close(l);
}

void mfs_probe_link_count(const struct mfs_probe_link *l, uint64_t *in, uint64_t *out)
{
    struct tcp_info info = {0};
    socklen_t n = sizeof info;

    if (l->fd < 0 || getsockopt(l->fd, IPPROTO_TCP, TCP_INFO, &info, &n))
        return;
    *in = info.tcpi_bytes_received;
    *out = info.tcpi_bytes_acked;
}
