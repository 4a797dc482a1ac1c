/* The session that this client is to the partitions: whether it is alive and is told of what others
 * change, what it has open, and how long it waits for others. Any thread. */
#ifndef MFS_META_SESSION_SESSION_H
#define MFS_META_SESSION_SESSION_H

#include "meta/internal.h"

/* --- backoff ---------------------------------------------------------------------------------- */

/* Bounded waiting for something that another client is about to finish. */
struct mfs_backoff {
    int64_t since;
    unsigned n;
};
/* Sleeps a little longer each time, with jitter; false, at once, when it has been enough. */
bool mfs_backoff_wait(const struct mfs_meta *meta, struct mfs_backoff *p);

/* The same for memory, while some may come, between attempts to add a name. Their commands don't
 * wait for it (full_at_once): what they rely on grows old, and others wait for them
 * (unregistered_opens.h). */
bool mfs_room_wait(const struct mfs_meta *meta, struct mfs_backoff *p);

/* Until when a command may be sent that relies on what is asked from now on. */
#define MFS_STEP_MAX_AGE (60 * MFS_SEC)
int64_t mfs_not_after(const struct mfs_meta *meta);

/* --- failovers and silence, see contact.c -------------------------------------------------------
 */

/* If contact was lost, or a replica has taken over, since the last call: forgets all leases, and
 * after a failover all that is kept by a file's version. To be called before an answer is used that
 * may be the new process'. Any thread, does not block. */
void mfs_contact_check(struct mfs_meta *meta);
/* … and whether the leases there are now can be relied on: other clients wait for this session, and
 * the last contact with cm was within so many ns. */
bool mfs_contact_leases(struct mfs_meta *meta, int64_t within);
/* May the kernel keep for MFS_META_LEASE what was leased by a request of mono time `asked`? */
bool mfs_contact_grants(struct mfs_meta *meta, int64_t asked);
void mfs_contact_tick(void *meta);

/* --- open files and sessions ------------------------------------------------------------------ */

struct mfs_opens *mfs_opens_create(void);
void mfs_opens_destroy(struct mfs_opens *o);
/* Counts an open that was registered for `sid`; it is to be registered again if the session is
 * another by now. */
void mfs_opens_add_registered(struct mfs_meta *meta, uint64_t ino, uint64_t sid);
void mfs_opens_locked(struct mfs_meta *meta, uint64_t ino); /* has, or had, locks */

/* Session `sid` has the inode open no more; posted. Housekeeping frees what that leaves. */
void mfs_session_disown(struct mfs_meta *meta, uint64_t ino, uint64_t sid);

int mfs_session_start(struct mfs_meta *meta);
void mfs_session_end(struct mfs_meta *meta);
void mfs_session_tick(void *meta);
/* Something of this session may be left in partitions: it looks for it, and ends as if it had died.
 */
void mfs_session_leaves(struct mfs_meta *meta);
/* What was asked of a partition ended so; if it is unknown whether it was done, something may be
 * left of it. Returns rc. */
int mfs_session_note_outcome(struct mfs_meta *meta, int rc);
/* Is the session alive, and for a quarter of its time to come? Any thread, does not block. */
bool mfs_session_is_fresh(const struct mfs_meta *meta);
/* … and is it told of what others change? */
bool mfs_session_gets_notices(const struct mfs_meta *meta);
/* Makes sure of the former, under a new session if need be: before anything is taken in its name
 * that others may give away once it is dead. 0, or -EIO after 2 s: unknown. */
int mfs_session_ensure_fresh(struct mfs_meta *meta);
/* alive[i] tells of sids[i]; the unknown (an error) count as alive. */
void mfs_session_alive(struct mfs_meta *meta, const uint64_t *sids, size_t n, bool *alive);
/* … and of which nodes they are; MFS_NO_NODE where that is not known. */
void mfs_session_find(struct mfs_meta *meta, const uint64_t *sids, size_t n, bool *alive,
                      uint32_t *node);

/* --- appending -------------------------------------------------------------------------------- */

struct mfs_place_wait { /* zeros before the first */
    int64_t since, pause;
    int64_t asked; /* the holder, to give its lease back */
};
/* Session `holder` has the place behind the end of the file: pauses, and takes it from one that is
 * dead. -EAGAIN: ask again; -EBUSY: that has taken too long in all. */
int mfs_place_wait(struct mfs_meta *meta, uint64_t ino, uint64_t holder, struct mfs_place_wait *w);

#endif
