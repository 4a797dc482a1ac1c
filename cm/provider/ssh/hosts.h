/* The machines of a deployment, as `cm start --hosts` tells them, and the places for nodes on them.
 * A host has one line in a file:
 *
 *     NAME [slots=N] [memory=SIZE] [address=ADDRESS]     # a comment
 *
 * or stands in a list in Slurm's notation (cm/provider/hostlist.h). It has a place for each of its
 * slots; places are numbered in rounds, the first ones of all hosts before any second one, so that
 * nodes spread over the hosts. The node at place P is that with the index (slot) P. A place is kept
 * as a line, too: what stands in cm.json. */
#ifndef MFS_CM_PROVIDER_SSH_HOSTS_H
#define MFS_CM_PROVIDER_SSH_HOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "cm/provider/hostlist.h"
#include "proto/messages.h"

#define MFS_HOSTS_FILE_MAX  (1U << 20) /* bytes */
#define MFS_HOSTS_SLOTS_MAX 64

struct mfs_host {
    char name[MFS_HOSTLIST_NAME]; /* what ssh is given */
    char address[MFS_HOST_MAX];   /* of its nodes, numeric; "": they find it out */
    uint64_t memory;              /* of each node, bytes; 0: not told */
    uint32_t slots;               /* nodes that it takes */
    bool place;                   /* this is one of its places: `round` of them come before it */
    uint32_t round;
    uint32_t line; /* of the file; 0: there is none */
};

struct mfs_hosts {
    uint32_t n;
    struct mfs_host *host;
};

/* `given` is a list, "-" for a file on standard input, or a file's name: that is what has a '/' in
 * it, or exists. Blocks. 0, or -EINVAL or another negative errno with the file, the line and the
 * reason; *out is then empty. */
int mfs_hosts_read(const char *given, struct mfs_hosts *out, struct mfs_err *err);
void mfs_hosts_clear(struct mfs_hosts *h);

/* A file's text, of len bytes; `file` stands in messages. As mfs_hosts_read. Pure. */
int mfs_hosts_parse(const char *text, size_t len, const char *file, struct mfs_hosts *out,
                    struct mfs_err *err);

uint32_t mfs_hosts_places(const struct mfs_hosts *h); /* of all hosts */

/* A line for each place, appended in their order. 0 or -ENOMEM. Pure. */
int mfs_hosts_put_places(const struct mfs_hosts *h, struct mfs_buf *out);

/* Such a line. 0 or -EINVAL with the reason. Pure. */
int mfs_hosts_place(const char *line, struct mfs_host *out, struct mfs_err *err);

/* The name without a user before it ("alice@tux1"): points into the struct. */
const char *mfs_host_machine(const struct mfs_host *h);

#endif
