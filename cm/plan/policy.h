/* When a deployment grows and shrinks by itself. Pure: figures in, a number of nodes and a sentence
 * out; time is the caller's. docs/design/placement.md has the reasons for every number.
 *
 * After: Uta et al., "MemEFS: A network-aware elastic in-memory runtime distributed file system",
 * FGCS 82 (2018): conservative, normal and aggressive scale-out (CSO, NSO, ASO), conservative and
 * aggressive scale-in (CSI, ASI). Theirs is when to act and how far at most. Ours is that a
 * scale-in never goes so far that a scale-out could follow: what stays must be filled to at most
 * `in_to`, clearly below `out_at`. So while the data do not grow by out_at / in_to, no scale-out
 * comes after a scale-in, whatever the parameters. */
#ifndef MFS_CM_PLAN_POLICY_H
#define MFS_CM_PLAN_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "proto/schema.h"

enum mfs_policy_out { MFS_OUT_NONE, MFS_OUT_CSO, MFS_OUT_NSO, MFS_OUT_ASO };
enum mfs_policy_in { MFS_IN_NONE, MFS_IN_CSI, MFS_IN_ASI };

struct mfs_policy {
    enum mfs_policy_out out;
    enum mfs_policy_in in;
};

/* What can be adjusted, as options and in cm.json. Ratios; 0 means the policy's own number. */
struct mfs_policy_settings {
    uint32_t min_nodes; /* of scale-in; 0: as many as at the start */
    uint32_t max_nodes; /* of scale-out; 0: as many as there are partitions */
    double out_at;      /* 0.95: scale out above */
    double out_step;    /* of the nodes at the start (cso 0.5, nso 1) or now (aso 1) */
    double in_at;       /* csi 0.75, asi 0.5: scale in below */
    double in_step;     /* csi 0.25, asi 0.5 of the nodes now */
    double in_to;       /* 0.85: so full may what stays be afterwards, at most */
    double window;      /* seconds without growth before a scale-in, 45 */
    double settle;      /* seconds after a change before a scale-out, 3 */
};

extern const struct mfs_schema mfs_policy_settings_schema;

/* "none", or "cso", "nso", "aso", each alone or with "+csi" or "+asi". 0, or -EINVAL with the
 * reason. */
int mfs_policy_parse(const char *name, struct mfs_policy *p, struct mfs_err *err);

/* The settings with all numbers filled in; n: nodes at the start, parts: partitions. 0, or -EINVAL
 * with the reason when they contradict each other. */
int mfs_policy_settle(const struct mfs_policy *p, const struct mfs_policy_settings *given,
                      uint32_t nodes_at_start, uint32_t parts, struct mfs_policy_settings *out,
                      struct mfs_err *err);

/* Can nodes still come by themselves? */
bool mfs_policy_can_grow(const struct mfs_policy *p, const struct mfs_policy_settings *s,
                         uint32_t nodes);

/* What is seen at one time. */
struct mfs_policy_view {
    double now; /* seconds, monotonic */
    uint32_t nodes, partitions;
    uint64_t used, capacity; /* bytes over all nodes */
    double fullest;          /* used / capacity of the fullest node */
    uint32_t fullest_parts;  /* that it has; 0: not known */
    bool changing;           /* a change of nodes runs: watched, nothing decided */
};

#define MFS_POLICY_SAMPLES 64

/* What it remembers: how much was used over the window. Zero it at the start. */
struct mfs_policy_memory {
    struct {
        double time;
        uint64_t used;            /* most since then, up to the next sample */
    } sample[MFS_POLICY_SAMPLES]; /* a ring, the oldest at `first` */
    uint32_t first, n, nodes;     /* nodes: at the last view */
    double changed;               /* when the last change ended, or watching began */
    bool begun, changing;
};

struct mfs_policy_decision {
    uint32_t target; /* nodes; those there are: nothing to do */
    char why[256];   /* with the figures, "" for nothing to do */
};

/* To be asked about each second; s must come from mfs_policy_settle. */
void mfs_policy_decide(const struct mfs_policy *p, const struct mfs_policy_settings *s,
                       uint32_t nodes_at_start, struct mfs_policy_memory *m,
                       const struct mfs_policy_view *v, struct mfs_policy_decision *d);

#endif
