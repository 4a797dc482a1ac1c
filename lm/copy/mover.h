/* The work of moving one partition between two redis processes: looking at the source, copying, and
 * the cut-over. Here are no lists and no messages; see agent/partitions/receive.c and
 * agent/partitions/take.c for those and docs/design/migration.md for how it all goes together.
 *
 * All functions block, each wait bounded, and belong into a thread of their own; one at a time per
 * mover. They return 0 or a negative errno with the reason:
 *   -EHOSTUNREACH  the source is gone or does not answer
 *   -EACCES        the source refuses the password
 *   -EIO           the receiving process is gone or does not answer
 *   -ENOSPC        it would take more memory than this node has for it
 *   -ENOBUFS       the link broke too often, as more was written than it can hold: copy it cold
 *   -ETIMEDOUT     it did not get on, or not in step in time
 *   -EAGAIN        the source serves with another replica, which has to be given up first
 *   -ECANCELED     as was asked for */
#ifndef MFS_LM_COPY_MOVER_H
#define MFS_LM_COPY_MOVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "cluster/table.h"
#include "store/admin/admin.h"
#include "proto/messages.h"

struct mfs_mover {
    /* Set before a call, and left alone while one runs. */
    uint32_t part;
    char target_path[MFS_UNIXPATH_MAX];
    char target_password[MFS_SECRET_MAX]; /* of MFS_REDIS_ADMIN */
    char source_host[MFS_HOST_MAX];
    uint16_t source_port;
    char source_password[MFS_SECRET_MAX]; /* of MFS_REDIS_ADMIN */
    bool cold;                            /* fence the source, then copy from a dump, */
    bool diskless;                        /* or from memory all the same */
    bool moves;    /* the copy is to take the source's place, rather than to follow it */
    uint64_t rate; /* bytes/s at most, 0: no limit */

    int64_t fenced_at; /* the calls': mfs_clock_mono; 0: the source is not fenced by us */
    char fenced[MFS_ADMIN_STREAM]; /* which process that was */

    /* For any thread. */
    _Atomic uint64_t bytes; /* arrived */
    atomic_bool cancel;     /* set it to have a call return soon */
};

/* How much memory the source's content takes, in bytes. */
int mfs_mover_survey(struct mfs_mover *m, uint64_t *bytes, struct mfs_err *err);

/* Copies, or goes on with a copy that is under way. When it returns 0 the target has all and
 * follows the source closely; one that moves the source knows of, and it keeps what it has when
 * another process takes the source's place. On failure a source that it has fenced serves again. */
int mfs_mover_copy(struct mfs_mover *m, struct mfs_err *err);

/* The cut-over: fences the source, waits until the target has executed all of its commands, and
 * lets the target serve; also when the source has died, once all has arrived. how->force: there is
 * no source any more, or (quiet_ms) it is to have no more terms: -EAGAIN when it has asked the
 * target for one lately. With how->stream: -ENODATA when the target is not as far as that.
 * *blocked_us: since the fence. A target that was promoted by an earlier call serves; that is 0,
 * too. On failure before the promotion the source serves again; after it, it stays fenced and
 * another call completes what was begun. */
int mfs_mover_cut(struct mfs_mover *m, const struct mfs_msg_take *how, uint64_t *blocked_us,
                  struct mfs_err *err);

/* Lets the process at a UNIX socket serve, or not. What a copy that was not ended has set on it
 * goes when it serves. *journal: what it says after that. */
int mfs_mover_fence(const char *path, const char *admin_password, bool fenced,
                    struct mfs_admin_journal *journal, struct mfs_err *err);

#endif
