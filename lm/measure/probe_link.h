/* One connection of a probe (probe.h): the proof of both ends, then zeros as fast as they go.
 * Non-blocking; belongs to the thread that probes. */
#ifndef MFS_LM_MEASURE_PROBE_LINK_H
#define MFS_LM_MEASURE_PROBE_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/auth.h"

struct mfs_probe_link {
    int fd;                 /* -1: closed */
    struct mfs_auth auth;   /* refers to the secret given at the beginning */
    struct mfs_buf in, out; /* of the proof */
    bool proved;            /* both ends have */
    bool sends;             /* zeros, once the other end has sent something */
    bool started;           /* it has, or need not */
};

/* Takes a connected (or connecting) non-blocking socket, which it owns from then on. `role` is
 * the caller's, NULL at the listening end. 0 or a negative errno, and the socket is closed. */
int mfs_probe_link_open(struct mfs_probe_link *l, int fd, const struct mfs_secret *secret,
                        const char *role);
void mfs_probe_link_close(struct mfs_probe_link *l); /* at once: what is under way is dropped */

/* The listening end: to send zeros itself, or have the caller send them. 0 or -ENOMEM. */
int mfs_probe_link_start(struct mfs_probe_link *l, bool send);

short mfs_probe_link_wants(const struct mfs_probe_link *l); /* for poll(2) */

/* After poll. A link that fails, or whose other end has hung up, is closed then. */
void mfs_probe_link_go(struct mfs_probe_link *l, short happened);

/* Bytes that have arrived at either end so far, by TCP's count; they stay as they are when the link
 * has been closed, or the kernel does not tell. */
void mfs_probe_link_count(const struct mfs_probe_link *l, uint64_t *in, uint64_t *out);

#endif
