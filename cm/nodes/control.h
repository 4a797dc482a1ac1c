/* Inside the cm daemon: what its parts share. Everything belongs to the loop's thread.
 *
 * struct mfs_cm is the daemon. `state` is what must not be forgotten and stands in cm.json, written
 * before cm acts on it; the rest lives as long as the process. nodes[i] belongs to state.node[i],
 * always: both change together in nodes.c. Parts that are not under way are NULL. */
#ifndef MFS_CM_NODES_CONTROL_H
#define MFS_CM_NODES_CONTROL_H

#include <assert.h>
#include <stdbool.h>

#include "base/clock.h"
#include "args/paths.h"
#include "cm/provider/provider.h"
#include "cm/state/state.h"
#include "net/deferred.h"
#include "proto/times.h"

#define MFS_MOUNT_TIME    (60 * MFS_SEC) /* that a node may take to mount */
#define MFS_RESTART_FIRST MFS_SEC        /* before a Local Manager is started again */
#define MFS_RETURN_TIME   (5 * MFS_SEC)  /* for a Local Manager that runs, to find cm (again) */

static_assert(MFS_CLIENT_READY_TIME < MFS_MOUNT_TIME, "a Local Manager gives up first");

struct mfs_auto_forget;
struct mfs_auto_rebalance;
struct mfs_departures;
struct mfs_failback;
struct mfs_cm;
struct mfs_handover;
struct mfs_hung;
struct mfs_bandwidth_estimates;
struct mfs_checkpointing;
struct mfs_copies;
struct mfs_follow;
struct mfs_cm_probe;
struct mfs_httpd;
struct mfs_cm_mounts;
struct mfs_cm_history;
struct mfs_ui_doctor;
struct mfs_migrate;
struct mfs_quorum;
struct mfs_replicas;
struct mfs_scale;
struct mfs_shutdown;
struct mfs_tables;

/* Of a start, and of a node that comes later. */
enum mfs_cm_step { MFS_STEP_JOIN, MFS_STEP_ASSIGN, MFS_STEP_TABLE, MFS_STEP_MOUNT, MFS_STEP_DONE };

/* A node, as it is just now. Nodes come and go (mfs_nodes_add, mfs_nodes_remove). One that has gone
 * stays in memory, without a connection, so that callbacks may hold on to it; `record` is always
 * good, mfs_nodes_find tells whether the node is still part of the deployment. */
struct mfs_node {
    struct mfs_cm *cm;
    struct mfs_cm_node *record; /* in the state, and moving with it */
    struct mfs_conn *conn;      /* NULL: its Local Manager is not connected */
    enum mfs_provided provided; /* its Local Manager, by the provider: see provision.c */
    bool restarts;              /* what was requested last is to take up what one before it left */
    char what[MFS_PROVIDER_WHAT_MAX];        /* stands for it, for people */
    char waits_for[MFS_PROVIDER_REASON_MAX]; /* in a queue, while it is requested; "": nothing */
    char not_released[200];     /* why it could not be given back; "": it was, or has yet to be */
    int64_t released_since;     /* that it is being given back, mono */
    struct mfs_timer *restart;  /* of its process; during the start: it has hung up, and ends it */
    int64_t delay;              /* before the next restart, ns */
    bool done;                  /* with the present step of the start */
    enum mfs_cm_step step;      /* while it is coming to a running deployment */
    bool stop_sent;             /* as it leaves */
    bool missed;                /* it has ended with what it had, and an event has said so */
    bool brought_back;          /* its lm was started once more, to end what is there */
    bool clientless;            /* at the end: its clients have ended, or it can't be asked */
    uint64_t copy_revision;     /* of the state that it was sent (copies.h); 0: none of this term */
    uint64_t copy_whole;        /* likewise, of the last one that it was sent whole */
    uint64_t copy_held;         /* … and of which it has said that it keeps it */
    int64_t copy_failed;        /* when it last said that it can't; 0: it can */
    int64_t copy_behind;        /* since then it has lacked the newest; 0: it has it */
    uint32_t waiting;           /* requests to it, for a state to be held (quorum.h) */
    uint64_t waits_in;          /* the last look at these that has found one which has to wait */
    bool forgetful;             /* it votes, and has lost its copy (quorum.h) */
    struct mfs_follow *follow;  /* it is being told where cm is (follow.h) */
    int64_t last_contact;       /* when its last message came that tells of its state */
    int64_t begun;              /* when its lm was last started, or killed as hung; 0: never */
    int64_t lost_at;            /* when an answer last named it as lost (trust.h) */
    uint64_t sent;              /* epoch of the newest table on this connection; 0: none */
    uint64_t has;               /* epoch of the newest table that it and its clients have */
    int64_t over_since;         /* it holds more than it may (with replicas only); 0: it does not */
    int64_t relieved_at;        /* when it was last rid of a replica because of that */
    bool reported;              /* figures to this cm */
    uint32_t lacking;           /* reports in a row with fewer partitions than it should run, */
    uint64_t lack_epoch;        /* all of this epoch */
    struct mfs_mounts mounts;   /* its clients, as it told last (mounts.h), … */
    int64_t mounts_at;          /* … mono; 0: it has not */
    bool mounts_asked;          /* it is being asked */
    uint64_t mounts_round;      /* of that */
    struct mfs_msg_report last; /* figures of the last report, without its lists */
    uint32_t parts_seen;        /* partitions in it */
    uint32_t due;               /* that it should run, by the state of … */
    uint64_t due_revision;      /* … this revision */
    double bandwidth_known;     /* of the node, at the last look at it; see bandwidth_estimates.c */
    uint32_t behind;            /* clients in it with an older table than lm's */
    char mount[MFS_PATH_MAX];   /* where it is mounted, "" for nowhere */
    struct mfs_cm_node left;    /* of a node that has gone: what it was */
    struct mfs_node *next_left;
};

/* A client that is connected to cm itself. */
struct mfs_cm_subscriber {
    struct mfs_conn *conn;
    uint64_t sent; /* epoch of the newest table that it was sent, or said it has; 0: none */
    struct mfs_cm_subscriber *next;
};

/* What only the start of a deployment needs. */
struct mfs_cm_start {
    struct mfs_timer *deadline;
    struct mfs_assigned_part *assigned; /* state.nparts of them, while the table is made */
    struct mfs_err failure;             /* code 0: none */
};

/* Of a partition: inodes whose home it is, stripes whose bytes were ever lost there; has any of it
 * been told to this cm, and did its process answer then? */
struct mfs_part_counts {
    uint64_t inodes, lost_stripes;
    bool told, silent;
};

struct mfs_cm {
    const struct mfs_paths *paths;
    bool foreground;
    struct mfs_cm_state state;
    struct mfs_secret secret;
    struct mfs_metrics *metrics;
    struct mfs_metric_set *figures; /* cm/nodes/metrics.h */
    struct mfs_loop *loop;
    struct mfs_listener *listener;
    char address[MFS_ADDRESS_MAX];
    const struct mfs_provider *provider;
    struct mfs_provider_context provider_context;
    void *provider_state; /* NULL: not open */
    /* A Local Manager has ended, or could not be started. True: all is done about it, it is not
     * started again. */
    bool (*lm_lost)(struct mfs_node *n, int code, const char *why);
    struct mfs_node **nodes; /* state.nnodes of them, in the order of state.node */
    struct mfs_node *left;   /* nodes that have gone, freed at the end */
    struct mfs_cm_subscriber *subscribers;
    int64_t subscriber_left; /* the last one that did, or may have, mono; 0: none has */

    enum mfs_cm_step step; /* of the start; DONE from then on */
    int64_t began;         /* of the daemon */
    struct mfs_cm_start start;
    bool settled;                        /* all nodes have been up at some time */
    uint64_t *part_bytes;                /* state.nparts: what each holds, as reported */
    struct mfs_part_counts *part_counts; /* state.nparts, likewise */
    struct mfs_scale *scale;             /* the change under way, NULL: none; see scale.h */

    struct mfs_tables *tables;   /* sends the table; see tables.h */
    struct mfs_copies *copies;   /* NULL: the nodes have none; see copies.h */
    struct mfs_quorum *quorum;   /* likewise; see quorum.h */
    struct mfs_timer *following; /* likewise: those that are not connected are told; follow.h */
    bool superseded;             /* another cm has taken over: this one ends, and touches nothing */

    struct mfs_hung *hung; /* NULL: its nodes' processes can't be seen; see hung.h */

    struct mfs_cm_probe *probe; /* under way, NULL: none; see probe.h */

    struct mfs_checkpointing *checkpoint; /* being written, NULL: none; see checkpoint.h */

    struct mfs_cm_mounts *mounts;    /* mounts.h */
    struct mfs_cm_history *history;  /* history/keep.h */
    struct mfs_ui_doctor *ui_doctor; /* NULL: there is no page; life/ui_doctor.h */
    struct mfs_httpd *ui;            /* likewise, where the page has an address of its own */
    struct mfs_httpd *http;          /* NULL: no figures are served; life/serve.h */
    struct mfs_timer *serve;         /* it is tried again */

    struct mfs_autoscale *autoscale;
    struct mfs_departures *departures;         /* NULL: no node was told to end; departures.h */
    struct mfs_auto_forget *auto_forget;       /* NULL: dead nodes stay until cm forget */
    struct mfs_auto_rebalance *auto_rebalance; /* NULL: partitions move only by cm rebalance */
    struct mfs_failback *failback;             /* likewise, after failovers */
    struct mfs_bandwidth_estimates *bandwidth_estimates; /* bandwidth_estimates.h */
    struct mfs_migrate *migrate;   /* partitions under way, migrate.h; NULL: none ever were */
    struct mfs_replicas *replicas; /* replicas.h; NULL: there are none */

    struct mfs_handover *handover; /* it has been told to end; life/handover.h. NULL: it was not */
    struct mfs_shutdown *shutdown; /* NULL: it is not being stopped; see life/shutdown.c */
    bool clears;                   /* nobody else removes its files when it has been stopped */
};

static inline bool mfs_cm_in_phase(const struct mfs_cm *cm, const char *phase)
{
    return !__builtin_strcmp(cm->state.phase, phase);
}

/* Is a change of the nodes, or of what they hold, under way? */
static inline bool mfs_cm_changing(const struct mfs_cm *cm)
{
    return cm->state.scale.step[0] != '\0';
}

/* Likewise, and when the change is over, while processes that partitions have left still end. */
static inline bool mfs_cm_unsettled(const struct mfs_cm *cm)
{
    return mfs_cm_changing(cm) || cm->state.nmoves;
}

/* Does what is under way exclude everything that cm begins by itself? An operator may do more: a
 * change joins an equal one and does not wait for processes to end, and a dry run is possible
 * beside a checkpoint (mfs_scale_begin); a checkpoint waits until all is settled. */
static inline bool mfs_cm_exclusive(const struct mfs_cm *cm)
{
    return mfs_cm_unsettled(cm) || cm->checkpoint;
}

/* Changes the phase and saves. A failure is logged and returned. */
int mfs_cm_set_phase(struct mfs_cm *cm, const char *phase);

/* nodes.c: the list */
int mfs_nodes_init(struct mfs_cm *cm); /* makes cm->nodes */
void mfs_nodes_fini(struct mfs_cm *cm);
struct mfs_node *mfs_nodes_find(const struct mfs_cm *cm, uint32_t id); /* or NULL */
/* Puts one more at the end of state.node and nodes; neither starts it nor saves. NULL: no memory.
 */
struct mfs_node *mfs_nodes_add(struct mfs_cm *cm, const struct mfs_cm_node *n);
/* Was it told to end, and has the time for that passed? Then its lm is not started again. */
bool mfs_node_is_over(const struct mfs_node *n);
/* Takes it out of both and closes its connection, whose requests fail; does not save. */
void mfs_nodes_remove(struct mfs_cm *cm, struct mfs_node *n);
/* Is this node on its way out, so that its end is expected? */
bool mfs_nodes_goes(const struct mfs_node *n);

/* figures.c: a node's figures, at its JOIN and then in each REPORT */
void mfs_nodes_counted(struct mfs_node *n, const struct mfs_msg_join *m);
void mfs_nodes_reported(struct mfs_node *n, const struct mfs_msg_report *m);
bool mfs_nodes_lacks(const struct mfs_node *n); /* partitions that it should run */
/* Has cm begun so lately that nodes which it does not see may be about to join? */
bool mfs_nodes_awaited(const struct mfs_cm *cm);

#endif
