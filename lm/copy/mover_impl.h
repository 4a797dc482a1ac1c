/* What the parts of mover.c share. Errors go into *err of the ends, with a sentence. */
#ifndef MFS_LM_COPY_MOVER_IMPL_H
#define MFS_LM_COPY_MOVER_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "lm/copy/mover.h"
#include "store/admin/admin.h"

#define MFS_MOVER_CALL  (2 * MFS_SEC)
#define MFS_MOVER_STALL (20 * MFS_SEC)  /* without any progress */
#define MFS_MOVER_STEP  (10 * MFS_MSEC) /* between two looks at what takes its time */

/* The two ends of a move, connected. */
struct mfs_ends {
    struct mfs_mover *m;
    struct mfs_admin *source, *target; /* NULL: not connected */
    char process[MFS_ADMIN_STREAM];    /* the source's */
    char stream[MFS_ADMIN_STREAM];     /* likewise */
    uint64_t copies_before;            /* full ones that the source had sent */
    struct mfs_err *err;
};

/* --- mover_ends.c --------------------------------------------------------------------------- */

/* Connect, and note the process that the source is. */
int mfs_ends_open_source(struct mfs_ends *e);
int mfs_ends_open_target(struct mfs_ends *e);
void mfs_ends_close(struct mfs_ends *e);

/* What *err says, completed: -EACCES or -EHOSTUNREACH; -EIO. */
int mfs_ends_source_failed(struct mfs_ends *e, int rc);
int mfs_ends_target_failed(struct mfs_ends *e);

int mfs_ends_look_at_source(struct mfs_ends *e, bool full, struct mfs_admin_replication *r);
int mfs_ends_look_at_target(struct mfs_ends *e, bool full, struct mfs_admin_replication *r);
/* As mfs_ends_look_at_source, for one that may answer late, as what it sends fills its link: then
 * -EAGAIN, and the source is NULL until another glance reaches the same process. */
int mfs_ends_glance_at_source(struct mfs_ends *e, bool full, struct mfs_admin_replication *r);
int mfs_ends_canceled(const struct mfs_ends *e); /* -ECANCELED: the move was given up */

/* Takes back what a copy sets on its source while it is on its way. */
int mfs_ends_settle(struct mfs_admin *source, struct mfs_err *err);

/* *offset: how far the source had got when it was fenced. */
int mfs_ends_fence(struct mfs_ends *e, uint64_t *offset);
/* Has the source serve again, if it was fenced and is the same process; else that is logged. */
void mfs_ends_unfence(struct mfs_ends *e);

/* --- mover.c -------------------------------------------------------------------------------- */

/* Until the target is no more than a little behind. `copying`: a link that breaks is an error; else
 * redis may bring it up again. */
int mfs_ends_await_step(struct mfs_ends *e, bool copying, int64_t limit);

/* A target that could not take writes is useless, which is found out before a client has to wait
 * for it: until it can, or -ENOSPC. */
int mfs_ends_await_room(struct mfs_ends *e);

/* Is what the target has of the process that is the source now (and does it follow)? Else
 * -EHOSTUNREACH. */
int mfs_ends_same_process(struct mfs_ends *e, bool linked);

/* From now on the target keeps what it has when its link breaks, and the source's journal names how
 * far it has got (docs/design/migration.md, "A source that dies"). */
int mfs_ends_hold_copy(struct mfs_ends *e);

#endif
