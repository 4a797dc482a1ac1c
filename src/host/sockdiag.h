/* What the kernel knows of this network namespace's TCP connections: sock_diag(7) with TCP_INFO.
 * Taking its answers apart does no I/O; asking is a call into the kernel that does not wait.
 * Field meanings are those of Linux' linux/tcp.h and net/ipv4/tcp.c (tcp_get_info). */
#ifndef MFS_HOST_SOCKDIAG_H
#define MFS_HOST_SOCKDIAG_H

#include <linux/inet_diag.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One end of a connection, as text or kernel have it: IPv4 is ::ffff:a.b.c.d here. */
struct mfs_sock_end {
    struct in6_addr address;
    uint16_t port;
};

struct mfs_sock {
    uint8_t family;             /* AF_INET or AF_INET6: as the socket was made */
    struct inet_diag_sockid id; /* the kernel's own name for it */
    uint64_t cookie;            /* never given to another socket */
    struct mfs_sock_end local, remote;
    uint64_t acked;          /* bytes that have arrived there, ever */
    uint64_t busy_us;        /* so long there was something on its way, or waiting to be */
    uint64_t window_us;      /* … and so long of this the receiver had no room */
    uint32_t queued;         /* bytes written by the program and not acknowledged */
    uint32_t unsent;         /* … and of these, not sent for the first time yet */
    uint32_t segment;        /* bytes that go into one segment */
    uint32_t rtt_us, min_us; /* smoothed round trip, and the shortest of late */
    bool repeating;          /* what was sent got lost: it waits before it tries again */
};

/* Reading the kernel's answers: set to a received datagram, then asked for one socket after
 * another. */
struct mfs_sockdiag_reader {
    const char *at;
    size_t left;
};

/* 1: *s is the next socket. 0: nothing more in this datagram. -ENODATA: the list is complete.
 * Another negative errno: the kernel's answer, or -EPROTO for what is no answer. Sockets without
 * the figures needed (older kernels than 4.10) are passed over. */
int mfs_sockdiag_next(struct mfs_sockdiag_reader *r, struct mfs_sock *s);

/* An address in text, numeric. 0 or -EINVAL. */
int mfs_sock_address(const char *text, struct in6_addr *address);

int mfs_sockdiag_open(void); /* a descriptor, closed on exec; or a negative errno */

/* Every connected socket of a family, one call of `each` for each; stops after `most`. 0, or a
 * negative errno: -ENOENT and the like where the kernel has no such list. Takes some 0.5 ms, as the
 * kernel goes through its whole table. */
int mfs_sockdiag_list(int fd, int family, size_t most,
                      void (*each)(void *arg, const struct mfs_sock *s), void *arg);

/* The same socket again, which takes some µs. 0, or -ENOENT when it is closed, or another. */
int mfs_sockdiag_again(int fd, const struct mfs_sock *which, struct mfs_sock *now);

#endif
