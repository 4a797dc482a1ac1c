/* TCP's figures from the kernel; see the header. */
#include "host/sockdiag.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define STATE_ESTABLISHED                                                                          \
    1 /* TCP_ESTABLISHED; netinet/tcp.h and linux/tcp.h exclude each other                         \
       */
#define NEEDED     (offsetof(struct tcp_info, tcpi_rwnd_limited) + sizeof(__u64))
#define ROOM       32768 /* a datagram of a list is not larger */
#define STALE_MOST 64    /* answers to earlier questions that are thrown away at most */

/* ---- taking answers apart -------------------------------------------------------------------- */

static struct mfs_sock_end make_end(uint8_t family, const __be32 *raw, __be16 port)
{
    struct mfs_sock_end end = {.port = ntohs(port)};

    if (family == AF_INET6) {
        memcpy(&end.address, raw, sizeof end.address);
    } else {
        end.address.s6_addr[10] = end.address.s6_addr[11] = 0xff;
        memcpy(end.address.s6_addr + 12, raw, 4);
    }
    return end;
}

static void put_names(struct mfs_sock *s, const struct inet_diag_msg *m)
{
    s->family = m->idiag_family;
    s->id = m->id;
    s->cookie = m->id.idiag_cookie[0] | (uint64_t)m->id.idiag_cookie[1] << 32;
    s->local = make_end(m->idiag_family, m->id.idiag_src, m->id.idiag_sport);
    s->remote = make_end(m->idiag_family, m->id.idiag_dst, m->id.idiag_dport);
    s->queued = m->idiag_wqueue;
}

static void put_info(struct mfs_sock *s, const struct tcp_info *t)
{
    s->acked = t->tcpi_bytes_acked;
    s->busy_us = t->tcpi_busy_time;
    s->window_us = t->tcpi_rwnd_limited;
    s->unsent = t->tcpi_notsent_bytes;
    s->segment = t->tcpi_snd_mss;
    s->rtt_us = t->tcpi_rtt;
    s->min_us = t->tcpi_min_rtt;
    s->repeating = t->tcpi_retransmits > 0;
}

/* Kernels differ in how much of TCP_INFO they have; all only append to it. */
static bool find_info(const char *at, size_t left, struct tcp_info *info)
{
    struct rtattr a;

    while (left >= sizeof a) {
        memcpy(&a, at, sizeof a);
        if (a.rta_len < sizeof a || a.rta_len > left)
            return false;
        if (a.rta_type == INET_DIAG_INFO && a.rta_len - sizeof a >= NEEDED) {
            size_t n = a.rta_len - sizeof a;

            *info = (struct tcp_info){0};
            memcpy(info, at + sizeof a, n < sizeof *info ? n : sizeof *info);
            return true;
        }
        if (RTA_ALIGN(a.rta_len) >= left)
            return false;
        at += RTA_ALIGN(a.rta_len);
        left -= RTA_ALIGN(a.rta_len);
    }
    return false;
}

static bool parse_socket(const char *body, size_t n, struct mfs_sock *s)
{
    struct inet_diag_msg m;
    struct tcp_info info;

    if (n < sizeof m)
        return false;
    memcpy(&m, body, sizeof m);
    if (m.idiag_family != AF_INET && m.idiag_family != AF_INET6)
        return false;
    if (!find_info(body + sizeof m, n - sizeof m, &info))
        return false;
    *s = (struct mfs_sock){0};
    put_names(s, &m);
    put_info(s, &info);
    return true;
}

static int parse_error(const char *body, size_t n)
{
    struct nlmsgerr e;

    if (n < sizeof e)
        return -EPROTO;
    memcpy(&e, body, sizeof e);
    return e.error < 0 && e.error > -4096 ? e.error : -EPROTO;
}

int mfs_sockdiag_next(struct mfs_sockdiag_reader *r, struct mfs_sock *s)
{
    struct nlmsghdr h;

    while (r->left >= sizeof h) {
        const char *body = r->at + sizeof h;
        size_t step;

        memcpy(&h, r->at, sizeof h);
        if (h.nlmsg_len < sizeof h || h.nlmsg_len > r->left)
            return -EPROTO;
        step = NLMSG_ALIGN(h.nlmsg_len) < r->left ? NLMSG_ALIGN(h.nlmsg_len) : r->left;
        r->at += step;
        r->left -= step;
        if (h.nlmsg_type == NLMSG_DONE)
            return -ENODATA;
        if (h.nlmsg_type == NLMSG_ERROR)
            return parse_error(body, h.nlmsg_len - sizeof h);
        if (h.nlmsg_type == SOCK_DIAG_BY_FAMILY && parse_socket(body, h.nlmsg_len - sizeof h, s))
            return 1;
    }
    return 0;
}

int mfs_sock_address(const char *text, struct in6_addr *address)
{
    struct in_addr four;

    if (inet_pton(AF_INET6, text, address) == 1)
        return 0;
    if (inet_pton(AF_INET, text, &four) != 1)
        return -EINVAL;
    *address = make_end(AF_INET, &four.s_addr, 0).address;
    return 0;
}

/* ---- asking ---------------------------------------------------------------------------------- */

struct request {
    struct nlmsghdr header;
    struct inet_diag_req_v2 body;
};

int mfs_sockdiag_open(void)
{
    int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);

    return fd < 0 ? -errno : fd;
}

/* The kernel works while it is sent to, and its answer is there when that returns: so what is in
 * the queue before is of an earlier question that was given up. */
static int ask(int fd, struct request *q, int flags)
{
    char stale;

    for (int i = 0; i < STALE_MOST && recv(fd, &stale, 1, MSG_TRUNC) >= 0; i++) {
    }
    q->header = (struct nlmsghdr){.nlmsg_len = sizeof *q,
                                  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                                  .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags)};
    q->body.sdiag_protocol = IPPROTO_TCP;
    q->body.idiag_ext = 1 << (INET_DIAG_INFO - 1);
    q->body.idiag_states = 1 << STATE_ESTABLISHED;
    return send(fd, q, sizeof *q, 0) < 0 ? -errno : 0;
}

static int answer(int fd, char *room, size_t n, struct mfs_sockdiag_reader *r)
{
    ssize_t got = recv(fd, room, n, 0);

    if (got < 0)
        return -errno;
    *r = (struct mfs_sockdiag_reader){room, (size_t)got};
    return got ? 0 : -EPROTO;
}

int mfs_sockdiag_list(int fd, int family, size_t most,
                      void (*each)(void *arg, const struct mfs_sock *s), void *arg)
{
    struct request q = {.body.sdiag_family = (uint8_t)family};
    struct mfs_sockdiag_reader r = {0};
    struct mfs_sock s;
    char room[ROOM];
    int rc = ask(fd, &q, NLM_F_DUMP);

    for (size_t n = 0; !rc && n < most;) {
        rc = mfs_sockdiag_next(&r, &s);
        if (rc == 1) {
            each(arg, &s);
            n++;
            rc = 0;
        } else if (!rc) {
            rc = answer(fd, room, sizeof room, &r);
        }
    }
    return rc == -ENODATA ? 0 : rc;
}

int mfs_sockdiag_again(int fd, const struct mfs_sock *which, struct mfs_sock *now)
{
    struct request q = {.body = {.sdiag_family = which->family, .id = which->id}};
    struct mfs_sockdiag_reader r = {0};
    char room[ROOM];
    int rc = ask(fd, &q, 0);

    if (!rc)
        rc = answer(fd, room, sizeof room, &r);
    if (!rc)
        rc = mfs_sockdiag_next(&r, now);
    return rc == 1 && now->cookie == which->cookie ? 0 : rc < 0 ? rc : -ENOENT;
}
