/* Inside the replicas: what their parts share. */
#ifndef MFS_CM_PARTITIONS_REPLICAS_IMPL_H
#define MFS_CM_PARTITIONS_REPLICAS_IMPL_H

#include "cm/partitions/replicas.h"

struct mfs_replica_call;

/* A partition's replica, as it is just now; what must not be forgotten stands in the state. */
struct mfs_replica {
    struct mfs_cm *cm;
    uint32_t part;
    struct mfs_replica_call *call;  /* unanswered; NULL: none */
    int64_t again_at;               /* nothing is asked before that */
    int64_t trouble_at;             /* since the partition's process is in trouble; 0: it is not */
    uint16_t port;                  /* of the replica's process, as it told */
    bool dead;                      /* the partition's process has ended, … */
    bool silent;                    /* … or does not answer its Local Manager */
    bool replica_dead;              /* the replica's has ended */
    int64_t replica_silent_since;   /* … or does not answer its Local Manager; 0: it does */
    int64_t starved_since;          /* the partition's lacks its consent; 0: it does not */
    uint32_t avoided;               /* a node at which a copy has failed, … */
    int64_t avoided_until;          /* … until then, if another one may hold it */
    int64_t wanting_since;          /* no node has had room for it; 0: it has one, or may get one */
    bool shown;                     /* its partition serves by terms, and the table says so */
    bool table_due;                 /* the table does not say yet what the state says */
    struct mfs_msg_take_reply took; /* it has taken over; port 0: not that we know */
    uint64_t revoked_epoch;         /* the table by which all are asked to forget … */
    int64_t revoked_at;             /* … since then */
};

struct mfs_replicas {
    struct mfs_cm *cm;
    struct mfs_timer *tick;
    struct mfs_replica *one; /* state.nparts */
    struct mfs_replica_call *stale_call;
    int64_t stale_at;
    int64_t move_at;  /* when it is next looked whether one should be elsewhere */
    int64_t moved_at; /* when the last one was given up for that; 0: none yet */
    bool whole;       /* every partition had its replica when that was last looked at */
    int unwritable;   /* why the state could not be written the last time; 0: it could */
    int64_t note_at;  /* then it is not tried again before that */
};

/* replicas.c: notes the step, forgets what was asked for the one before. What can't be noted is not
 * begun: then all stays as it is, the caller sends no message, and a negative errno is
 * returned. What led to the step does so again, a moment later. */
int mfs_replica_enter(struct mfs_replica *r, const char *step);
void mfs_replica_step(struct mfs_replica *r, int64_t now); /* what is due now */
/* Every node and client that could be reached has the newest table. */
void mfs_replicas_table_pushed(struct mfs_replicas *g);

static inline struct mfs_cm_part *mfs_replica_state(const struct mfs_replica *r)
{
    return &r->cm->state.part[r->part];
}

static inline bool mfs_replica_in(const struct mfs_replica *r, const char *step)
{
    return !__builtin_strcmp(mfs_replica_state(r)->replica_step, step);
}

/* replicas_ask.c: sends the step's message unless it is being answered, or the node is away (then
 * false). Answers come to mfs_replica_answer, in replicas.c. */
bool mfs_replica_ask(struct mfs_replica *r);
void mfs_replica_forget_call(struct mfs_replica *r);
void mfs_replica_answer(struct mfs_replica *r, const struct mfs_err *err, const void *reply);
void mfs_replicas_end_stale(struct mfs_replicas *g, int64_t now); /* one process after the other */
void mfs_replicas_forget_stale_call(struct mfs_replicas *g);
bool mfs_replicas_silent(const struct mfs_cm *cm, uint32_t node, int64_t now);
int64_t mfs_replicas_silence(const struct mfs_cm *cm, uint32_t node, int64_t now); /* since, ns */

/* replicas_news.c: what is known. Has the partition's process ended, or is it or its node out of
 * reach? */
bool mfs_replica_in_trouble(const struct mfs_replica *r, int64_t now);
bool mfs_replica_stays(const struct mfs_replica *r); /* its process and node are there, and stay */
const char *mfs_replica_fault(const struct mfs_replica *r, int64_t now); /* NULL: it can stay */

/* replicas_room.c: where a replica goes: 0, -ENODEV (there is none), -ENOSPC (none has room), or
 * what random numbers gave. */
int mfs_replica_choose(struct mfs_replica *r, int64_t now);
/* A replica takes what its partition takes, whatever its node may hold. Is the node beyond that,
 * and this the replica to go? */
bool mfs_replica_crowds(const struct mfs_replica *r, int64_t now);
void mfs_replicas_weigh(struct mfs_node *n); /* at each report */
/* So many bytes are to come to a node. The replica there to make room for them: the smallest that
 * is enough, or the largest. NULL: none is needed, or all together would not do. */
struct mfs_replica *mfs_replica_to_yield(struct mfs_replicas *g, const struct mfs_node *n,
                                         uint64_t bytes);
/* Has one gone there so lately, or is one going, that its memory may still be counted? */
bool mfs_replica_yields(const struct mfs_replicas *g, const struct mfs_node *n, int64_t now);
/* The replica on a node that is nearly full which should rather be on another (cm/plan/relief.h);
 * NULL: there is none. */
struct mfs_replica *mfs_replicas_to_move(struct mfs_replicas *g, int64_t now);

/* replicas_change.c. Writes the state: 0 or a negative errno, which is logged, the first time. */
int mfs_replicas_note(struct mfs_cm *cm);
/* Each of these writes the state and the table together and then pushes the table: 0, or a negative
 * errno and nothing has changed.
 * Has the table say that there is a replica to be waited for, or that there is none. A client that
 * has not got it asks the partition's process (store/confirm.c). */
int mfs_replica_show(struct mfs_replica *r, bool shown);
/* The replica has taken over: has all clients forget what the process before it may have granted
 * without its knowledge. No client knows the replica as the partition yet. Then, when
 * mfs_replica_revoked says so … */
int mfs_replica_revoke(struct mfs_replica *r, const struct mfs_msg_take_reply *t);
bool mfs_replica_revoked(const struct mfs_replica *r, int64_t now);
/* … it is the partition from now on, and what was the partition is stale: it is to be ended. */
int mfs_replica_promote(struct mfs_replica *r);
/* Does not write the state. 0 or -ENOMEM. */
int mfs_replica_add_stale(struct mfs_cm *cm, uint32_t node, uint32_t part, const char *password);

#endif
