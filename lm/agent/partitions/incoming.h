/* The partitions that are on their way to this node: each with the process that receives it, what
 * is being done with it, and the requests for that. A part of the agent; the loop's thread. */
#ifndef MFS_LM_AGENT_PARTITIONS_INCOMING_H
#define MFS_LM_AGENT_PARTITIONS_INCOMING_H

#include "lm/agent/agent_impl.h"
#include "lm/copy/mover.h"
#include "lm/agent/state.h"

/* SURVEYING → STARTING → COPYING → IDLE (whole) → CUTTING → it becomes a partition. ENDING leads
 * out of every step. A copy that a restarted Local Manager finds is IDLE, whole or not. */
enum mfs_copy_step {
    MFS_COPY_IDLE,
    MFS_COPY_SURVEYING, /* no process yet */
    MFS_COPY_STARTING,
    MFS_COPY_COPYING,
    MFS_COPY_CUTTING,
    MFS_COPY_ENDING
};

struct mfs_agent_copy {
    struct mfs_agent *agent;
    struct mfs_redis redis;
    struct mfs_mover mover; /* a job's thread's while one runs, but for its atomic fields */
    struct mfs_watch *watch;
    struct mfs_health *health; /* NULL: it is not checked */
    enum mfs_copy_step step;
    bool whole;    /* may be promoted */
    bool dead;     /* its process has ended */
    bool taken;    /* the partition that it becomes is listed already */
    int64_t begun; /* mfs_clock_mono */
    uint64_t duration_us;
    struct mfs_deferred asker;    /* of RECEIVE or TAKE */
    struct mfs_deferred releaser; /* of RELEASE */
    struct mfs_agent_copy *next;
};

struct mfs_agent_copy *mfs_agent_copy_find(const struct mfs_agent *a, uint32_t part);
/* In *r: part, passwords and expected. NULL: ENOMEM. */
struct mfs_agent_copy *mfs_agent_copy_add(struct mfs_agent *a, const struct mfs_redis *r);
/* Its process runs: watches it, and has the mover know where it is. */
void mfs_agent_copy_started(struct mfs_agent_copy *c);
/* Does its process live? The first to find out that it does not tells cm. */
bool mfs_agent_copy_alive(struct mfs_agent_copy *c);
/* Takes it off the list and frees it; its process stays. Requests that are
 * still open fail. */
void mfs_agent_copy_remove(struct mfs_agent_copy *c);
void mfs_agent_copies_cancel(struct mfs_agent *a); /* has their jobs return soon */
void mfs_agent_copies_free(struct mfs_agent *a);

/* Ends its process if there is one, then removes it and answers `releaser`. */
void mfs_agent_copy_end(struct mfs_agent_copy *c);

/* For reports and joins: the copies' number, and into out[] unless that is NULL. */
uint32_t mfs_agent_copies_list(const struct mfs_agent *a, struct mfs_report_copy *out);

void mfs_agent_copy_put(const struct mfs_agent_copy *c, struct mfs_state_copy *s);
int mfs_agent_copy_restore(struct mfs_agent *a, const struct mfs_state_copy *s);
/* Ends those whose process was found dead then. When all are restored, as from the first job of the
 * worker on the instances is the worker's. */
void mfs_agent_copies_end_dead(struct mfs_agent *a);

/* agent/resume.c's, for copies */
void mfs_agent_redis_put(const struct mfs_redis *r, struct mfs_state_redis *s);
struct mfs_redis mfs_agent_redis_get(const struct mfs_state_redis *s);

#endif
