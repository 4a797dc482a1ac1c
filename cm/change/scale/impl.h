/* Inside the changes of nodes (scale*.c). */
#ifndef MFS_CM_CHANGE_SCALE_IMPL_H
#define MFS_CM_CHANGE_SCALE_IMPL_H

#include "cm/plan/planner.h"
#include "cm/change/scale/scale.h"

/* A caller that waits for the end. */
struct mfs_scale_waiter {
    mfs_scale_done *done;
    void *arg;
    struct mfs_scale_waiter *next;
};

struct mfs_renew;

/* The change under way: what is not in the state (state.scale). */
struct mfs_scale {
    struct mfs_cm *cm;
    struct mfs_timer *timer; /* of the step: to look again, or the next attempt */
    int64_t until;           /* the step's deadline */
    unsigned attempts;       /* to move */
    bool inherited;          /* the moves under way were begun by an earlier cm */
    bool replan;             /* other nodes leave, too: it is planned anew, which is no failure */
    struct mfs_err failure;  /* the first; code 0: none */
    struct mfs_renew *renew; /* NULL: not in that step; renew.c */
    struct mfs_scale_waiter *waiters;
};

/* What is asked for, checked and planned, before anything has changed. */
struct mfs_scale_draft {
    uint32_t from, to; /* nodes */
    bool cold, at_once, drain, forget, urgent, by_bytes;
    uint64_t rate;
    uint32_t ncoming; /* to - from, or 0; 1 in the place of one that leaves */
    struct mfs_cm_node *coming;
    uint32_t nleaving; /* from - to, or 0; 1 that is replaced */
    uint32_t *leaving; /* ids */
    uint32_t nrenewals;
    struct mfs_cm_renewal *renewal;
    uint64_t lost_bytes;
    struct mfs_plan plan;
    uint64_t used, capacity; /* bytes, of all nodes as they are */
    double lower_bound_ms;
};

/* target.c: how many nodes there will be, and which come and leave. Fills in d->from, to,
 * drain, coming and leaving. */
int mfs_scale_target(const struct mfs_cm *cm, const struct mfs_msg_scale *what,
                     struct mfs_scale_draft *d, struct mfs_err *err);
/* Does the draft take this node out, or is it leaving already? */
bool mfs_scale_leaves(const struct mfs_scale_draft *d, const struct mfs_cm_node *n);
/* Are all the nodes that are asked for leaving already? */
bool mfs_scale_drains(const struct mfs_cm *cm, const struct mfs_msg_scale *what);
/* Is each node that the draft needs there, with all its partitions? A drain passes over others that
 * are not. */
int mfs_scale_check_nodes(const struct mfs_cm *cm, const struct mfs_scale_draft *d,
                          struct mfs_err *err);
bool mfs_scale_is_there(const struct mfs_node *n);

/* plan.c: pure but for reading cm and /proc/meminfo */
int mfs_scale_draft_make(const struct mfs_cm *cm, const struct mfs_msg_scale *what,
                         struct mfs_scale_draft *d, struct mfs_err *err);
void mfs_scale_draft_clear(struct mfs_scale_draft *d);
/* The plan for the nodes in the state, those that leave giving everything; by_bytes: that of
 * relief. */
int mfs_scale_plan(const struct mfs_cm *cm, bool by_bytes, struct mfs_plan *plan,
                   struct mfs_err *err);
/* Has every node that runs partitions reported? NULL, or the first that has not. */
const struct mfs_node *mfs_scale_silent(const struct mfs_cm *cm);
/* The first node that is to leave and has partitions still, or NULL. After all moves of a plan: a
 * replica has taken over there meanwhile, or a drain has passed over it, as it is not there. */
const struct mfs_node *mfs_scale_filled(const struct mfs_cm *cm);

/* relief.c: off nodes that are nearly full. Fills what cm/plan/relief.h says. 0 or -ENOMEM. */
int mfs_scale_plan_relief(const struct mfs_cm *cm, struct mfs_plan *out, struct mfs_err *err);

/* urgent.c: of nodes that leave whatever happens, as many partitions as the others have room
 * for now, the smallest first. 0, -ENOSPC: not one, or -ENOMEM. */
int mfs_scale_plan_some(const struct mfs_cm *cm, const struct mfs_scale_draft *d,
                        struct mfs_plan *out, struct mfs_err *err);

/* renew.c: partitions of nodes that are dead begin empty on others. Those that are lost with the
 * nodes that leave, and where each is to be: fills in d->renewal. */
int mfs_renew_choose(const struct mfs_cm *cm, const struct mfs_msg_scale *what,
                     struct mfs_scale_draft *d, struct mfs_err *err);
void mfs_renew_begin(struct mfs_scale *s); /* the step; at its end mfs_scale_renewed */
void mfs_renew_fini(struct mfs_scale *s);

/* nodes.c: nodes come, nodes go */
void mfs_scale_come(struct mfs_scale *s);
void mfs_scale_go(struct mfs_scale *s);
void mfs_scale_give_up_coming(struct mfs_scale *s); /* those that have come go again */

/* cancel.c: gives up the change that is under way; `done` hears its end, with -ECANCELED. 0,
 * or a negative errno with the reason. */
int mfs_scale_cancel(struct mfs_cm *cm, mfs_scale_done *done, void *arg, struct mfs_err *err);

/* scale.c */
int mfs_scale_set_step(struct mfs_scale *s, const char *step); /* saves; a failure is logged */
bool mfs_scale_in(const struct mfs_cm *cm, const char *step);  /* and not stopping */
void mfs_scale_failed(struct mfs_scale *s, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4))); /* remembers the first failure */
int mfs_scale_wait(struct mfs_scale *s, mfs_scale_done *done, void *arg); /* 0 or -ENOMEM */
void mfs_scale_have_come(struct mfs_scale *s);                            /* all of them */
void mfs_scale_moved(struct mfs_scale *s); /* all that moves; what could not be emptied stays */
void mfs_scale_undo(struct mfs_scale *s);  /* because one did not come */
void mfs_scale_have_gone(struct mfs_scale *s);
void mfs_scale_renewed(struct mfs_scale *s);    /* or it has failed, and all is as before */
void mfs_scale_move_again(struct mfs_scale *s); /* some nodes that leave are not empty any more */

#endif
