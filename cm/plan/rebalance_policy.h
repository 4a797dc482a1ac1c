/* When partitions move because links have changed. Pure:
 * figures in, decisions and sentences out; time is the caller's. docs/design/network.md, "Weights
 * and re-planning", has the reasons for every number.
 *
 * Capacities are looked at as parts of their sum (that all of them change alike changes nothing),
 * each the median of the last samples of a window. While all stay within `at` of what they were,
 * that is one state of the network. A state that differs from the one last planned for is a reason
 * to plan when it has lasted: as long as the window if the state before it was a long one, up to
 * twice as long as that one lasted if it was short. So a link that alternates is not followed,
 * and one that changes once is followed soon. A state that differs only by what has become known of
 * nodes of which nothing was known before is no other state of the network: that is followed soon,
 * too.
 *
 * A plan is carried out if it pays back within the horizon (mfs_rebalance_weigh). */
#ifndef MFS_CM_PLAN_REBALANCE_POLICY_H
#define MFS_CM_PLAN_REBALANCE_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/schema.h"

/* What can be adjusted, as options and in cm.json; 0 means the number given here. */
struct mfs_rebalance_settings {
    bool off;       /* never by itself */
    double at;      /* 0.2: capacities that differ so much have changed; likewise gains */
    double window;  /* s, 5: that a change must have lasted */
    double horizon; /* s, 60: in which a move must pay back */
    double factor;  /* 1.5: so many times */
};

extern const struct mfs_schema mfs_rebalance_settings_schema;

/* The settings with all numbers filled in. */
struct mfs_rebalance_settings mfs_rebalance_settle(const struct mfs_rebalance_settings *given);

/* ---- when to plan ---------------------------------------------------------------------------- */

/* What is seen at one time. */
struct mfs_rebalance_view {
    double now; /* seconds, monotonic */
    size_t n;   /* nodes */
    const uint32_t *id;
    const double *bandwidth; /* of each, bytes/s, > 0 (mfs_weights_bandwidth) */
    const bool *known;       /* of each, that this is its limit, not only what is seen of it */
};

struct mfs_rebalance_policy; /* what it remembers */

/* NULL: ENOMEM. */
struct mfs_rebalance_policy *mfs_rebalance_policy_create(void);
void mfs_rebalance_policy_destroy(struct mfs_rebalance_policy *r);

/* To be shown each view, about each second; s comes from mfs_rebalance_settle. True: it is time to
 * plan. With other nodes than before everything begins anew, and is to be planned once it has
 * lasted. Without memory: false. */
bool mfs_rebalance_policy_watch(struct mfs_rebalance_policy *r,
                                const struct mfs_rebalance_settings *s,
                                const struct mfs_rebalance_view *v);

/* Planned for what was seen last, and done with it: nothing to do, or about to be done. */
void mfs_rebalance_policy_planned(struct mfs_rebalance_policy *r);
/* What was about to be done was not: it is to be planned again. */
void mfs_rebalance_policy_failed(struct mfs_rebalance_policy *r);

/* Which node has changed most since the last plan, and its part of all bandwidth now over its part
 * then: for people. False: nothing was planned yet. */
bool mfs_rebalance_policy_changed(const struct mfs_rebalance_policy *r, uint32_t *id,
                                  double *times);

/* ---- whether to do it ------------------------------------------------------------------------ */

/* Seconds that a byte takes when what is written and read is spread over `parts` partitions, of
 * which node i has count[i]: those of the node that is last. */
double mfs_rebalance_pace(const uint32_t *count, const double *bandwidth, size_t n, uint32_t parts);
size_t mfs_rebalance_last(const uint32_t *count, const double *bandwidth, size_t n); /* that node */

struct mfs_rebalance_figures {
    double before, after; /* seconds per byte, mfs_rebalance_pace */
    double traffic;       /* bytes/s of late, over all nodes */
    bool full;      /* the link that sets the pace carries all that it can: work waits for it */
    double busiest; /* s that the moves take of the link that they need most */
    uint32_t moves;
    uint64_t bytes;
    bool cold;
};

struct mfs_rebalance_verdict {
    bool worth, better; /* better: the plan is faster by more than `at`, worth it or not */
    char why[256];      /* with the figures */
};

void mfs_rebalance_weigh(const struct mfs_rebalance_settings *s,
                         const struct mfs_rebalance_figures *f, struct mfs_rebalance_verdict *v);

#endif
