/* What cm knows and must not forget: cm.json in the state directory. Written before cm acts on it;
 * a cm that is killed goes on from it. 0600, as it holds the partitions' passwords. */
#ifndef MFS_CM_STATE_STATE_H
#define MFS_CM_STATE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "cluster/table.h"
#include "cm/plan/policy.h"
#include "cm/plan/rebalance_policy.h"
#include "cm/provider/provider.h"
#include "proto/messages.h"
#include "proto/schema.h"

/* Phases of a deployment's life. */
#define MFS_PHASE_STARTING "starting"
#define MFS_PHASE_RUNNING  "running"
#define MFS_PHASE_STOPPING "stopping"

/* Where a node is in a change of the nodes; "" for one that simply belongs. */
#define MFS_NODE_COMING  "coming"
#define MFS_NODE_LEAVING "leaving"

#define MFS_ON_END_CHECKPOINT "checkpoint:" /* before the directory, in on_end */

/* The voters, and those before the last change of them, until that is held. */
#define MFS_VOTES_NOW    1U
#define MFS_VOTES_BEFORE 2U
#define MFS_VOTES_ALWAYS (MFS_VOTES_NOW | MFS_VOTES_BEFORE)

/* How a node's bandwidth is known. */
#define MFS_BANDWIDTH_CONFIGURED "told"     /* by the operator */
#define MFS_BANDWIDTH_PROBED     "probed"   /* measured at the start, or when it joined */
#define MFS_BANDWIDTH_OBSERVED   "observed" /* from the application's own traffic */

struct mfs_cm_node {
    uint32_t id;      /* never given to another node of this deployment */
    uint32_t control; /* port at which its lm takes what a cm says that it does not know yet, at its
                         address; 0: none */
    uint32_t metrics; /* port at which its lm serves figures; 0: none */
    uint32_t slot;    /* the least that no other node has: its mount's %n, its local address */
    char transition[MFS_STATE_MAX]; /* MFS_NODE_COMING, …, or "" */
    char name[MFS_NAME_MAX];
    char address[MFS_HOST_MAX];
    char handle[MFS_PROVIDER_HANDLE_MAX]; /* what the provider has noted of it */
    char mount[MFS_PATH_MAX];             /* "": none */
    uint64_t memory;                      /* its limit, bytes */
    double bandwidth;                     /* that its link carries each way, bytes/s; 0: unknown */
    char bandwidth_from[MFS_STATE_MAX];   /* how that is known, MFS_BANDWIDTH_…; "" */
    double bandwidth_seen;                /* the most that it was seen to carry, likewise */
    uint64_t leave_by; /* it was told to end, and does so then: real time, us; 0: it was not */
    uint32_t votes;    /* MFS_VOTES_…: in which sets of voters it is (cm/nodes/quorum.h) */
};

/* Of a replica, see replicas.c; "" for none. */
#define MFS_REPLICA_COPY  "copy"
#define MFS_REPLICA_TERM  "term"
#define MFS_REPLICA_READY "ready"
#define MFS_REPLICA_TAKE  "take"
#define MFS_REPLICA_DROP  "drop"

struct mfs_cm_part {
    uint32_t node; /* id */
    char password[MFS_SECRET_MAX];
    char admin_password[MFS_SECRET_MAX];
    uint32_t era;                     /* as in the table */
    char replica_step[MFS_STATE_MAX]; /* MFS_REPLICA_… */
    uint32_t replica_node;            /* id */
    char replica_password[MFS_SECRET_MAX];
    char replica_admin_password[MFS_SECRET_MAX];
};

/* A stale process: one that was the partition or its replica, and must end before its node can take
 * part in anything with that partition again. cm.json calls the list "graves". */
struct mfs_cm_stale {
    uint32_t node, part;
    char password[MFS_SECRET_MAX];
};

/* A partition on its way, and the process that is to be it. */
struct mfs_cm_move {
    uint32_t part, from, to; /* partition, node ids */
    char step[MFS_STATE_MAX];
    bool cold, diskless;
    uint64_t rate;                 /* bytes/s, 0: no limit */
    char password[MFS_SECRET_MAX]; /* of the new process */
    char admin_password[MFS_SECRET_MAX];
    uint64_t bytes; /* that it held when the move was planned */
};

/* A partition that is to begin empty, as the node that had it is dead. */
struct mfs_cm_renewal {
    uint32_t part, to; /* partition, node id */
    char password[MFS_SECRET_MAX];
    char admin_password[MFS_SECRET_MAX];
};

/* Steps of a change of the nodes, see scale.c. */
#define MFS_SCALE_COME  "come"
#define MFS_SCALE_MOVE  "move"
#define MFS_SCALE_GO    "go"
#define MFS_SCALE_UNDO  "undo"
#define MFS_SCALE_RENEW "renew"

/* The change under way; step "" for none. Which nodes come and leave stands in the nodes. */
struct mfs_cm_scale {
    char step[MFS_STATE_MAX];
    char who[MFS_TEXT_MAX]; /* decided it, on which figures */
    uint32_t from, to;      /* nodes */
    bool cold, at_once;
    bool drain;     /* nodes that are not there neither give nor take */
    bool urgent;    /* see struct mfs_msg_scale */
    bool forget;    /* those that leave are not there, and hold nothing */
    bool by_bytes;  /* off a full node: bytes come before numbers */
    uint64_t rate;  /* bytes/s per partition, 0: no limit */
    uint64_t began; /* wall clock, us: ns have more digits than JSON keeps */
    /* so far, for the report after a restart of cm */
    uint32_t moved;
    uint64_t bytes;
    double lower_bound_ms;
    uint32_t lost; /* partitions */
    uint64_t lost_bytes;
    double blocked_ms_max, blocked_ms_total;
};

struct mfs_cm_state {
    char name[MFS_NAME_MAX];
    uint64_t term;            /* of this cm: each that begins elsewhere has a higher one */
    uint32_t candidate;       /* node at which it began; means nothing in term 0 */
    uint64_t base;            /* the term of the state that it went on from */
    bool raised;              /* it has raised its term by itself, which is not held yet */
    uint64_t revision;        /* each save has a higher one */
    char cm[MFS_ADDRESS_MAX]; /* where it listens */
    char phase[MFS_STATE_MAX];
    char provider[MFS_STATE_MAX], policy[MFS_STATE_MAX], migration[MFS_STATE_MAX];
    char weights[MFS_STATE_MAX], log_level[MFS_STATE_MAX], log_format[MFS_STATE_MAX];
    char bandwidth[MFS_TEXT_MAX];  /* as given, see mfs_weights_configured */
    char network[MFS_HOST_MAX];    /* in which nodes and cm have their addresses; "": any */
    char interface[MFS_STATE_MAX]; /* of each node, that is measured; "": the address tells */
    bool probe;                    /* links are measured when nodes come, see probe.h */
    char listen[MFS_ADDRESS_MAX];
    char ui[MFS_ADDRESS_MAX];      /* where cm serves its page; "": nowhere */
    bool ui_write;                 /* the page may change nodes and the policy */
    char metrics[MFS_ADDRESS_MAX]; /* where cm serves figures; "": nowhere */
    uint32_t node_metrics;         /* port at which each lm serves its own; 0: none does */
    char node_dir[MFS_PATH_MAX];   /* state directory of nodes elsewhere, as lm's --state-dir; "":
                                      they choose it */
    char first_address[MFS_HOST_MAX]; /* of the node at slot 0 */
    char mount[MFS_PATH_MAX];         /* as given, with its %n */
    char mount_options[MFS_TEXT_MAX];
    struct mfs_policy_settings scaling;      /* of the policy: only what was given, else 0 */
    struct mfs_rebalance_settings balancing; /* likewise */
    double beta;
    uint64_t memory;           /* per node, bytes */
    uint64_t rate;             /* of a partition's move, bytes/s; 0: no limit */
    uint64_t link_rate;        /* of a node's link, bytes/s; 0: unknown */
    uint32_t replicas;         /* of each partition, on other nodes: 0 or 1 */
    uint32_t grace;            /* s from a SIGTERM to the end of an lm */
    char on_end[MFS_TEXT_MAX]; /* as --on-end, "checkpoint:/DIR"; "": nothing is done then */
    uint32_t auto_forget; /* seconds after which a node that is not there, and holds nothing, is
                             forgotten; 0: never */
    uint32_t stripe_size;
    uint64_t events_size;  /* bytes that events take, at most; 0: no bound */
    uint32_t started_with; /* nodes: N of the policies */
    uint32_t next_node;    /* id of the next one that comes */
    uint32_t nprovider_options;
    struct mfs_provider_option *provider_option; /* the provider's own: provider.h */
    uint32_t nnodes;
    struct mfs_cm_node *node;
    uint32_t nparts;
    struct mfs_cm_part *part;
    struct mfs_table *table; /* the newest; NULL before the first */
    struct mfs_cm_scale scale;
    uint32_t nmoves;
    struct mfs_cm_move *move;     /* under way */
    char restored[MFS_PATH_MAX];  /* the directory that --restore named; "": it began empty */
    char image_dir[MFS_PATH_MAX]; /* the checkpoint in it */
    uint64_t image_epoch;
    uint32_t nimages; /* as many as partitions while it starts from them, else 0 */
    struct mfs_image_part *image;
    char checkpoint_dir[MFS_PATH_MAX]; /* the last one of this deployment; "": none yet */
    uint64_t checkpoint_time;          /* seconds since 1970 */
    uint32_t nstale;
    struct mfs_cm_stale *stale;
    uint32_t nrenewals;
    struct mfs_cm_renewal *renewal; /* in step "renew" */
};

extern const struct mfs_schema mfs_cm_state_schema;

/* Counts the revision up. 0 or a negative errno. Blocks as writing a small file does. */
int mfs_cm_state_save(struct mfs_cm_state *s, const char *path);
/* The same without waiting for the disk: what only the machine's death may set back. */
int mfs_cm_state_note(struct mfs_cm_state *s, const char *path);

/* Of two states, or copies of one, is the first newer? */
bool mfs_cm_state_newer(uint64_t term, uint64_t revision, uint64_t than_term,
                        uint64_t than_revision);

/* From text, as mfs_cm_state_load does from a file; `name` stands before the reason. */
int mfs_cm_state_parse(struct mfs_cm_state *s, const char *text, size_t len, const char *name,
                       struct mfs_err *err);

/* 0, -ENOENT when there is none, -EINVAL with the reason when it makes no sense. Moves from or to a
 * node that has gone are dropped. */
int mfs_cm_state_load(struct mfs_cm_state *s, const char *path, struct mfs_err *err);
void mfs_cm_state_clear(struct mfs_cm_state *s);

const struct mfs_cm_node *mfs_cm_state_node(const struct mfs_cm_state *s, uint32_t id);
uint32_t mfs_cm_state_count(const struct mfs_cm_state *s, uint32_t node); /* its partitions */

/* How much longer a start may take for the images that it begins with, ns. */
int64_t mfs_cm_state_load_time(const struct mfs_cm_state *s);
void mfs_cm_state_loaded(struct mfs_cm_state *s); /* forgets them; does not save */

/* These move the array: pointers into s->node are void afterwards. They do not save. */
int mfs_cm_state_add(struct mfs_cm_state *s, const struct mfs_cm_node *n); /* 0 or -ENOMEM */
void mfs_cm_state_drop(struct mfs_cm_state *s, uint32_t id);

#endif
