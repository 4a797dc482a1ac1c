/* The messages of the control protocol: each one's name, body and reply, once.
 * docs/design/protocol.md tells what they mean and in which order they come.
 *
 * On the wire: {"type": "assign", "id": 7, "body": {…}} asks, {"reply": 7, "body": {…}} or
 * {"reply": 7, "error": {"code": -22, "message": "…"}} answers; id 0 wants no answer. */
#ifndef MFS_PROTO_MESSAGES_H
#define MFS_PROTO_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/edits.h"
#include "base/metrics.h"
#include "cluster/table.h"
#include "proto/image_sum.h"
#include "proto/schema.h"

/* Also of what partitions hold, as clients read that. 6: inode numbers that say where all stripes
 * are; 7: and how large they are */
#define MFS_PROTOCOL_VERSION 7
#define MFS_PATH_MAX         512
#define MFS_TEXT_MAX         512
#define MFS_MACHINE_MAX      254 /* of a name of a machine, with its NUL (RFC 1035) */
#define MFS_ADDRESS_MAX      128 /* "127.0.0.1:4711" or "unix:/run/…" */
#define MFS_STATE_MAX        16
#define MFS_SESSION_TEXT     17 /* 64 bits in hexadecimal and NUL */
#define MFS_STREAM_MAX       41 /* as redis names a stream of commands, and NUL */

enum mfs_msg {
    MFS_MSG_ASSIGN,       /* cm → lm     which partitions to run       → ports            */
    MFS_MSG_TABLE,        /* cm → lm → client  a new table             → its epoch        */
    MFS_MSG_MOUNT,        /* cm → lm, cli → cm  mount               → when it answers  */
    MFS_MSG_UMOUNT,       /* cm → lm     unmount                       → when it is gone  */
    MFS_MSG_END_CLIENTS,  /* cm → lm     unmount, before `stop`        → when all are gone */
    MFS_MSG_STOP,         /* cm → lm, cli → cm  end everything         → when all is gone */
    MFS_MSG_JOIN,         /* lm → cm     here I am                                        */
    MFS_MSG_REPORT,       /* lm → cm     figures, each second          no reply           */
    MFS_MSG_EVENT,        /* lm → cm     something to remember         no reply           */
    MFS_MSG_CLIENT_HELLO, /* client → lm (or cm)                       → table follows    */
    MFS_MSG_CLIENT_READY, /* client → lm  the mount answers                               */
    MFS_MSG_STATUS,       /* cli → cm                                  → struct mfs_status */
    MFS_MSG_RECEIVE,      /* cm → lm     take a copy of a partition    → when it is in step */
    MFS_MSG_TAKE,         /* cm → lm     become the partition          → when it is        */
    MFS_MSG_FENCE,        /* cm → lm     (do not) serve a partition    → when it is so     */
    MFS_MSG_RELEASE,      /* cm → lm     end a process                 → when it is gone   */
    MFS_MSG_SCALE,    /* cli → cm    change the nodes              → struct mfs_scale_report */
    MFS_MSG_PROGRESS, /* cli → cm    how far a change is           → struct mfs_progress */
    MFS_MSG_POLICY,   /* cli → cm    change the policy             → when it is so     */
    MFS_MSG_IMAGE,    /* cm → lm     a step of a checkpoint        → when it is done   */
    MFS_MSG_CHECKPOINT,   /* cli → cm  write all images              → struct mfs_checkpoint */
    MFS_MSG_CHECKPOINTED, /* cli → cm  that is a checkpoint now    → when it is noted  */
    MFS_MSG_BEAT,         /* lm → cm, client → lm (or cm)  is cm there?  → how long ago    */
    MFS_MSG_TERM,         /* cm → lm     a process serves by terms, or not  → when it is so */
    MFS_MSG_DIED,         /* lm → cm     a redis process has ended     no reply            */
    MFS_MSG_PROBE,        /* cm → lm     a step of measuring a link    → when it is done   */
    MFS_MSG_METRICS,      /* client → lm  its figures, now and then    → when they are noted */
    MFS_MSG_HOT,          /* client → lm  what its requests are of  no reply              */
    MFS_MSG_STATS,        /* cli → lm    all figures of the node       → struct mfs_stats  */
    MFS_MSG_LEAVE,        /* lm → cm     the node is to end soon       → when it is noted  */
    MFS_MSG_STATE,        /* cm → lm     a copy of what cm knows       → when it is kept   */
    MFS_MSG_VOTE,         /* cli → lm    for a cm of the next term?    → its copy          */
    MFS_MSG_FOLLOW,       /* cm → lm     that is your cm               → when it is noted  */
    MFS_MSG_HANDOVER,     /* cli → cm    another cm takes over         → what cm knows     */
    MFS_MSG_ADOPT,        /* cm → lm     start a cm at your node       → when it has begun */
    MFS_MSG_MOUNTS,       /* cm → lm     what have your clients done?  → list of mounts    */
    MFS_MSG_CLIENTS, /* cli → cm, client → lm → cm  the same of all nodes → struct mfs_mounts  */
    MFS_MSG_EVENTS,  /* client → lm → cm  what happened last      → struct mfs_events  */
    MFS_MSG_HISTORY, /* cli → cm    write the history             → when it is written */
    MFS_MSG_MARK,    /* cli → cm    a stage begins                → when it is noted   */
    MFS_MSG_COUNT
};

/* Replies and bodies without fields. */
struct mfs_msg_empty {
    char unused;
};

/* A partition's content in a file, DIR/partition-INDEX.rdb. */
struct mfs_image_part {
    uint32_t index;
    uint64_t bytes;               /* of the file */
    uint64_t memory;              /* bytes that it takes in a redis process */
    char sum[MFS_IMAGE_SUM_TEXT]; /* of the file, with its key */
    uint64_t losses;              /* grows whenever bytes of files are lost there; 0: never */
};

/* One redis process to run. Instruction cm → lm. */
struct mfs_assign_part {
    uint32_t index;                      /* partition */
    bool format;                         /* new and empty: write the root directory and so on */
    char password[MFS_SECRET_MAX];       /* of MFS_REDIS_USER */
    char admin_password[MFS_SECRET_MAX]; /* of MFS_REDIS_ADMIN */
    struct mfs_image_part image;         /* with `image_dir`: it begins with this */
};

struct mfs_msg_assign {
    uint32_t nparts;              /* P */
    uint32_t stripe_size;         /* bytes */
    uint64_t memory;              /* limit of the node, bytes, over all its partitions */
    char image_dir[MFS_PATH_MAX]; /* a checkpoint, whose images those not running yet begin with;
                                     "": they begin empty */
    uint32_t nassigned;
    struct mfs_assign_part
        *assigned; /* all that the node is to run; running ones stay as they are */
};

struct mfs_assigned_part {
    uint32_t index;
    uint32_t port;
    char unix_path[MFS_UNIXPATH_MAX];
};

struct mfs_msg_assign_reply {
    uint32_t nassigned;
    struct mfs_assigned_part *assigned; /* one for each that was asked for, all answering PING */
};

/* A whole table, or a change of one that the receiver has; to that -ESTALE is the answer when it
 * has not, and the whole comes. */
struct mfs_msg_table {
    struct mfs_table *table; /* in a decoded message: freed with it */
    struct mfs_table_change change;
};

/* *out: the table that comes of a decoded message where `held` (NULL: none) is there, the caller's
 * to free; NULL: `held` is no older. 0, or -ENOMEM, -EINVAL, -ESTALE with the reason. */
int mfs_table_of_message(const struct mfs_msg_table *m, const struct mfs_table *held,
                         struct mfs_table **out, struct mfs_err *err);

struct mfs_msg_epoch {
    uint64_t epoch;
};

struct mfs_msg_beat_reply {
    uint64_t age_ms; /* since cm was certainly there */
    uint64_t epoch;  /* of the sender's table: with an older one the answer does not count */
    uint32_t nlost;
    struct mfs_lost_node *lost; /* nodes that were lost then */
};

struct mfs_msg_mount {
    char path[MFS_PATH_MAX];
    char options[MFS_TEXT_MAX]; /* for memefs mount -o, "" for none */
};

struct mfs_msg_join {
    uint32_t version; /* MFS_PROTOCOL_VERSION */
    uint32_t node;
    char name[MFS_NAME_MAX];    /* of the deployment */
    char address[MFS_HOST_MAX]; /* of the node */
    uint32_t pid;
    uint64_t epoch;  /* of the table it holds, 0 for none: so is a node that was just started */
    uint64_t memory; /* physical memory of the machine, bytes */
    uint32_t nassigned;
    struct mfs_assigned_part *assigned; /* what it runs already */
    char mount[MFS_PATH_MAX];           /* mounted there, "" for none */
    uint32_t ncopies;
    struct mfs_report_copy *copy;      /* partitions it is receiving and has not taken yet */
    uint32_t metrics;                  /* port at which it serves its figures (HTTP); 0: none */
    uint32_t control;                  /* port at which it takes VOTE and FOLLOW; 0: none */
    uint64_t term;                     /* the highest that it knows of */
    uint64_t vote_term;                /* the highest in which it has given its vote */
    uint64_t copy_term, copy_revision; /* of the copy of cm's state that it holds; 0: none */
};

struct mfs_report_part {
    uint32_t index;
    uint64_t memory_used; /* redis used_memory */
    uint64_t keys;
    bool silent;           /* its process does not answer; the rest is of before */
    bool starved;          /* it is about to refuse clients, as its replica does not consent */
    uint64_t inodes;       /* whose home it is */
    uint64_t lost_stripes; /* stripes of it whose bytes were ever lost */
};

/* A copy of a partition that is on its way to this node. */
struct mfs_report_copy {
    uint32_t index;
    uint64_t bytes; /* arrived so far */
    bool silent;    /* its process does not answer */
};

/* What this node's sockets sent to another node since the report before. */
struct mfs_report_peer {
    uint32_t node; /* id */
    double rate;   /* bytes/s that arrived there, by its acknowledgements */
    double busy;   /* 0..1: of the time, how long the network was waited for: bytes for that node
                      were there to be sent, and it had room for them */
};

struct mfs_report_client {
    uint32_t pid;
    bool ready;
    uint64_t epoch; /* of the table it has acknowledged */
    char mount[MFS_PATH_MAX];
};

struct mfs_msg_report {
    uint32_t node;
    uint64_t epoch;           /* of the table it holds */
    uint64_t memory_used;     /* sum of the partitions' used_memory */
    uint64_t memory_capacity; /* what data may take on this node: sum of maxmemory */
    uint64_t rss;             /* of all the node's processes */
    double bandwidth_in;      /* bytes/s of the interface, or of the redis processes */
    double bandwidth_out;
    /* Of these and the next ones what has been counted since lm, or what it measures, began. */
    uint64_t bytes_in, bytes_out;
    uint64_t commands,
        out_of_memory;         /* of all its partitions: executed; refused as they are full */
    uint64_t deaths, revivals; /* of their processes */
    uint32_t npeers;
    struct mfs_report_peer *peer; /* empty where the nodes share an interface */
    uint32_t nparts;
    struct mfs_report_part *part;
    uint32_t nclients;
    struct mfs_report_client *client;
    uint32_t ncopies;
    struct mfs_report_copy *copy;
    uint64_t image_bytes; /* of a checkpoint's images: written so far */
};

struct mfs_msg_event {
    char what[32];           /* a word: "mounted", "redis-died", … */
    char text[MFS_TEXT_MAX]; /* for people, with the figures */
};

struct mfs_msg_client_hello {
    uint32_t version;
    uint32_t pid;
    char mount[MFS_PATH_MAX];
    uint64_t epoch;                 /* of the table it holds, 0 for none */
    char session[MFS_SESSION_TEXT]; /* its session id, 16 hexadecimal digits: lm ends the session,
                                       and with it the locks, when the process dies; "" for none */
    char program[32];               /* the version of MemEFS */
    uint64_t since;                 /* when it began, seconds since 1970 */
    uint32_t instance; /* which of the connections of a program without a mount; 0: of another */
    bool leaves;       /* the last word of such a connection: it does not come back */
};

/* Migration of one partition, see docs/design/migration.md. Every one of these four may be sent
 * again: what is done already is answered at once. `password` names the process that is meant, as
 * two of one partition are alive during its migration, on two nodes. */
struct mfs_msg_receive {
    uint32_t index; /* partition */
    uint32_t nparts, stripe_size;
    uint64_t memory;                     /* limit of the receiving node, bytes */
    char password[MFS_SECRET_MAX];       /* of the new process, for MFS_REDIS_USER */
    char admin_password[MFS_SECRET_MAX]; /* of the new process, for MFS_REDIS_ADMIN */
    char source_host[MFS_HOST_MAX];
    uint32_t source_port;
    char source_admin_password[MFS_SECRET_MAX];
    bool cold;      /* fence the source first, then copy from a dump, */
    bool diskless;  /* or from memory all the same */
    bool moves;     /* the copy is to take the source's place: one that dies then waits for cm */
    uint64_t bytes; /* what the source holds, as far as cm knows */
    uint64_t rate;  /* bytes/s at most, 0: no limit */
};

struct mfs_msg_receive_reply {
    uint32_t index;
    uint64_t bytes;       /* copied */
    uint64_t duration_us; /* of the copy */
    uint32_t port;        /* of the process that holds it; 0: it serves already */
};

struct mfs_msg_take {
    uint32_t index;
    char password[MFS_SECRET_MAX];
    bool force; /* the source is surely gone: be content with what has arrived */
    /* Of a replica (decisions/0017): it withdraws its consent, unless it has been asked for it
     * less than so many ms ago (-EAGAIN), and waits until the source's term is over. */
    uint32_t quiet_ms;
    bool dead; /* not even that: the source's process has ended */
    /* With force, unless "": only what has executed the stream up to that is whole (-ENODATA). */
    char stream[MFS_STREAM_MAX];
    uint64_t offset;
};

struct mfs_msg_take_reply {
    uint32_t index;
    uint32_t port;
    char unix_path[MFS_UNIXPATH_MAX];
    uint64_t blocked_us; /* since the source was fenced */
};

struct mfs_msg_fence {
    uint32_t index;
    char password[MFS_SECRET_MAX];
    bool on; /* false: serve again */
};

/* The process was started in the place of one of which there was a whole copy, and has not served:
 * how far that one had got (mfs_admin_journal). "": it is not so. */
struct mfs_msg_fence_reply {
    char stream[MFS_STREAM_MAX];
    uint64_t offset;
};

struct mfs_msg_release {
    uint32_t index;
    char password[MFS_SECRET_MAX];
};

/* How the process of a partition may serve, see decisions/0017. */
struct mfs_msg_term {
    uint32_t index;
    char password[MFS_SECRET_MAX]; /* names the process */
    bool on;                       /* only while the replica's process consents; false: always */
    bool whole; /* it does; answered when the replica has all that was executed */
    char replica_host[MFS_HOST_MAX];
    uint32_t replica_port;
    char replica_admin_password[MFS_SECRET_MAX];
};

struct mfs_msg_died {
    uint32_t index;
    char password[MFS_SECRET_MAX]; /* names the process */
};

/* A step of measuring what a node's link carries, see docs/design/network.md, "Probe". */
#define MFS_PROBE_OPEN    "open"    /* the node that is measured opens a port, and tells it */
#define MFS_PROBE_MEASURE "measure" /* … measures, with the nodes that connect there */
#define MFS_PROBE_MEET    "meet"    /* another node connects there */

struct mfs_msg_probe {
    char step[MFS_STATE_MAX];
    char password[MFS_SECRET_MAX]; /* of this measurement, not of "open" */
    char host[MFS_HOST_MAX];       /* of "meet" */
    uint32_t port;                 /* likewise */
    uint32_t peers;                /* of "measure": how many will connect */
    uint32_t ms;                   /* each way; three times as many where little goes */
    uint64_t bytes;                /* each way: then it ends earlier */
};

struct mfs_msg_probe_reply {
    uint32_t port;  /* of "open" */
    double in, out; /* of "measure": bytes/s */
};

struct mfs_scale_node {
    char name[MFS_HOST_MAX]; /* or its address */
};

#define MFS_SCALE_CANCEL  "cancel"  /* the change that is under way */
#define MFS_SCALE_REPLACE "replace" /* a node comes, then the one in `node` goes */
#define MFS_SCALE_RELIEVE "relieve" /* cm's own: as "rebalance", with bytes before numbers */

/* What an operator asks for. */
struct mfs_msg_scale {
    char how[MFS_STATE_MAX]; /* "to", "out", "in": by n; "rebalance": no change of nodes;
                              * "drain": those in `node` leave; "forget": they are
                              * not there, and never will be; or one of MFS_SCALE_… */
    uint32_t n;
    uint32_t nnodes;
    struct mfs_scale_node *node;
    char host[MFS_MACHINE_MAX];    /* of "replace": where the node comes; "": anywhere */
    char migration[MFS_STATE_MAX]; /* "hot", "cold", "": the deployment's */
    bool at_once;  /* begin all moves that memory allows, see cm/partitions/migrate.h */
    uint64_t rate; /* bytes/s per partition, 0: the deployment's */
    bool dry_run;
    bool yes;    /* to forget nodes with partitions that have no replica: these begin empty */
    bool urgent; /* of a drain that cm itself begins, not sent: nodes leave soon, whatever has moved
                  * by then, so what can't move stays, and the smallest partitions are first */
};

/* What `memefs renew` is given, in a file: partitions that begin empty, as what they had is lost,
 * and a table in which they are those already. */
struct mfs_renewed_part {
    uint32_t index;
};

struct mfs_renewal {
    struct mfs_table *table;
    uint32_t nparts;
    struct mfs_renewed_part *part;
};

extern const struct mfs_schema mfs_renewal_schema;

/* Without a body: not `clear`. */
struct mfs_msg_stop {
    bool clear; /* of an operator on another machine: cm removes its files itself */
};

/* The node has been told to end. */
struct mfs_msg_leave {
    uint64_t ms; /* that it stays, at most; 0: it ends now */
};

/* What cm knows, as it stands in cm.json: for the next cm, should this one or its machine die. */
struct mfs_msg_state {
    uint64_t term, revision; /* of a higher term, or of the same one and a higher revision: newer */
    uint32_t candidate;      /* node at which the cm of that term began; means nothing in term 0 */
    uint64_t base;           /* the term of the state that the cm of this one went on from */
    char *text;              /* the whole, unless: */
    char of[MFS_TABLE_DIGEST_TEXT]; /* … XXH64 of the copy that the node has; -ENODATA is the answer
                                       when it has another one, and the whole comes */
    uint32_t nedits;
    struct mfs_edit *edit; /* what makes this one of that */
};

/* A cm is to begin at that node. An lm whose cm answers it refuses, as one does that knows of a
 * higher term, or has voted for another candidate. */
struct mfs_msg_vote {
    uint64_t term;      /* 0: no vote is wanted */
    uint32_t candidate; /* node */
};

struct mfs_msg_vote_reply {
    uint64_t term;             /* the highest that it knows of */
    char cm[MFS_ADDRESS_MAX];  /* that it follows */
    struct mfs_msg_state copy; /* revision 0: it has none */
};

struct mfs_msg_follow {
    uint64_t term;
    uint32_t candidate;       /* node at which that cm began; means nothing in term 0 */
    char cm[MFS_ADDRESS_MAX]; /* where it listens; "": not known yet, it is about to begin */
};

struct mfs_msg_handover {
    uint32_t candidate; /* node at which another cm is to begin */
};

struct mfs_scale_move {
    uint32_t index, from, to; /* node ids; a node that is yet to come has its future id */
    uint64_t bytes;
};

struct mfs_scale_report {
    uint32_t from, to; /* nodes */
    uint32_t partitions_moved;
    uint64_t bytes_moved;
    double duration_ms;
    double blocked_ms_max, blocked_ms_total;
    double lower_bound_ms;    /* of the copying, see cm/plan/bound.h; 0: link speed unknown */
    uint32_t partitions_lost; /* that begin empty elsewhere */
    uint64_t bytes_lost;      /* that these held, as far as it is known */
    uint32_t nmoves;
    struct mfs_scale_move *move; /* of a dry run */
};

struct mfs_progress {
    char what[MFS_TEXT_MAX]; /* for people: "starting 2 nodes", "moving 14 partitions"; "": none */
    uint64_t bytes, bytes_total;
    uint32_t partitions, partitions_total;
    double rate;   /* bytes/s of late */
    double eta_ms; /* 0: unknown */
};

struct mfs_msg_policy {
    char name[MFS_STATE_MAX]; /* "none", "cso", "nso+asi", … */
};

struct mfs_msg_mark {
    char text[MFS_TEXT_MAX]; /* cm/state/mark.h */
};

/* A step of a checkpoint, see docs/design/checkpoint.md. */
#define MFS_IMAGE_HALT  "halt"  /* the partitions named stand still, bounded */
#define MFS_IMAGE_CUT   "cut"   /* they fork, and go on */
#define MFS_IMAGE_WRITE "write" /* the images are on disk */
#define MFS_IMAGE_DROP  "drop"  /* what was begun is given up */

struct mfs_image_index {
    uint32_t index;
};

struct mfs_msg_image {
    char step[MFS_STATE_MAX];
    char dir[MFS_PATH_MAX]; /* of "halt" */
    uint32_t ms;            /* of "halt": how long at most */
    uint32_t nparts;
    struct mfs_image_index *part; /* of "halt" */
};

struct mfs_msg_image_reply {
    uint64_t halted_us; /* of "cut": the longest that a partition stood still */
    uint32_t nparts;
    struct mfs_image_part *part; /* of "write" */
};

struct mfs_msg_checkpoint {
    char dir[MFS_PATH_MAX]; /* there, absolute, empty: the images are written into it */
};

struct mfs_checkpoint {
    uint64_t epoch;
    uint32_t nodes, stripe_size;
    double halted_ms;  /* the longest that a partition stood still */
    uint32_t attempts; /* at the cut */
    double duration_ms;
    uint32_t nparts;
    struct mfs_image_part *part; /* every partition, in order */
};

struct mfs_msg_checkpointed {
    char dir[MFS_PATH_MAX];
    uint32_t number;
    uint64_t bytes;
};

/* What cm status tells; DESIGN's contract. */
struct mfs_status_move {
    uint32_t partition, from, to;
    char step[MFS_STATE_MAX]; /* waiting, copying, cutting */
    uint64_t bytes, bytes_total;
};

struct mfs_status_node {
    uint32_t id;
    char name[MFS_NAME_MAX];
    char address[MFS_HOST_MAX];
    char state[MFS_STATE_MAX]; /* starting, up, leaving, lost */
    uint32_t partitions;
    /* Bytes, and bytes/s. Unknown: what it has not told this cm, and rates while it is away. */
    uint64_t memory_capacity, memory_used;
    double bandwidth_in, bandwidth_out;
    double bandwidth_capacity;          /* bytes/s each way that its link carries; 0: unknown */
    char bandwidth_from[MFS_STATE_MAX]; /* how that is known: told, probed, observed; "" */
    double share;                       /* ideal 1 */
    char mount[MFS_PATH_MAX];
    uint64_t epoch;               /* of the table that its lm holds, by its last report */
    char waits_for[MFS_TEXT_MAX]; /* in its provider's queue; "": it does not */
    uint32_t clients_behind;      /* clients connected there that hold an older one than lm;
                                     unknown while its lm is away */
    uint32_t replicas;            /* of other nodes' partitions that it holds and that are whole */
    bool votes;                   /* on where cm is (cm/nodes/quorum.h) */
    uint64_t copy_behind_ms;      /* for so long its copy of cm's state has been an old one; 0: it
                                     is the newest, or there are no copies */
};

/* Where a partition is. */
struct mfs_status_place {
    uint32_t partition;
    char node[MFS_NAME_MAX];    /* that serves it */
    char replica[MFS_NAME_MAX]; /* whose process may take over at once; "": none may */
    uint64_t bytes;             /* that it holds, as told last, or unknown */
};

#define MFS_HOT_NAME 256
#define MFS_HOT_MOST 64U
#define MFS_HOT_TOLD 8U /* that a client tells of each kind */

/* Of samples of requests, in which what is some seconds old counts less. */
struct mfs_hot_item {
    char name[MFS_HOT_NAME];    /* a path from the mount on, or "program[pid]" */
    double requests, bytes, ms; /* together */
};

/* What a mount's requests are of: those with the most of them first. */
struct mfs_hot {
    double requests; /* all */
    uint32_t nfiles;
    struct mfs_hot_item *file;
    uint32_t ndirs;
    struct mfs_hot_item *dir;
    uint32_t nprograms;
    struct mfs_hot_item *program;
};

/* A client, as its lm tells it to cm. */
struct mfs_mount {
    char node[MFS_NAME_MAX]; /* "" when lm tells it */
    char host[MFS_HOST_MAX]; /* the node's address; likewise */
    char path[MFS_PATH_MAX];
    char session[MFS_SESSION_TEXT];
    char version[32];
    uint32_t pid, uid;
    bool connected, ready;
    uint64_t since;  /* seconds since 1970 */
    uint64_t age_ms; /* of what it has told of itself; 0 with `operations` 0: nothing yet */
    uint64_t operations, errors, no_space, io_errors; /* so far */
    uint64_t read_bytes, written_bytes;
    uint64_t sent_bytes, received_bytes; /* to and from partitions */
    double p50, p99, max;                /* s, of all operations together */
    struct mfs_metric_snapshot figures;  /* some of them: mfs_mount_figures */
    struct mfs_hot hot;                  /* MFS_HOT_TOLD of each, as it has told last */
    int64_t at;  /* these two are cm's own: when it told, mono; 0: nothing yet */
    double rate; /* operations each second, between the last two times */
};

/* How old an answer is that came by way of others, each of which gives what it was told last when
 * it is not answered. */
struct mfs_told {
    uint64_t age_ms;
    bool stale;   /* the one who knows does not answer now */
    bool nothing; /* … and never has */
};

/* A kind of operation, so far. */
struct mfs_mounts_op {
    char name[24];
    uint64_t operations, errors; /* errors: without look-ups of what is not there */
    double seconds, max;         /* that they took; the longest one, s */
};

/* By path, on all mounts: operations each second, estimated from samples. */
struct mfs_mounts_hot {
    char name[MFS_HOT_NAME];
    double rate;
    uint32_t mounts;
};

#define MFS_MOUNTS_HOT 16U

struct mfs_mounts {
    struct mfs_told told;
    uint32_t left_out; /* behind the last one, as only so many were asked for */
    uint32_t n;
    struct mfs_mount *mount;
    /* What cm makes of all of them, those that are left out among them. */
    uint32_t nops, nfiles, ndirs;
    struct mfs_mounts_op *op;
    struct mfs_mounts_hot *file, *dir;
};

struct mfs_msg_mounts {
    bool buckets; /* of each operation's durations, too */
};

struct mfs_msg_clients {
    uint32_t most; /* so many; 0: all */
};

#define MFS_CLIENTS_TOLD 1024U /* to a client */

/* Something that has happened. */
struct mfs_event {
    char time[32];           /* 2026-01-31T12:00:00.000Z */
    char who[MFS_NAME_MAX];  /* "cm" or a node */
    char what[32];           /* a word */
    char text[MFS_TEXT_MAX]; /* with the figures */
};

#define MFS_EVENTS_RECENT 40U

struct mfs_events {
    struct mfs_told told;
    uint32_t n;              /* MFS_EVENTS_RECENT at most */
    struct mfs_event *event; /* oldest first */
};

/* Of a client's figures those that cm is told, NULL at the end: without help and buckets. */
extern const char *const mfs_mount_figures[];
/* What cm is told besides: a histogram of all of its operations together. */
#define MFS_MOUNT_DURATIONS "memefs_mount_durations"
/* `all` gets `list`, with the buckets of all operations. */
void mfs_mount_durations(const struct mfs_metric_snapshot *figures, struct mfs_metric_sample *all,
                         struct mfs_metric_bucket list[MFS_METRIC_BUCKETS]);
/* Makes operations, errors, bytes and times of a client's figures. */
void mfs_mount_sum_up(struct mfs_mount *m, const struct mfs_metric_snapshot *figures);
/* A copy with figures of its own, and what both of them have. 0 or -ENOMEM. */
int mfs_mount_copy(struct mfs_mount *to, const struct mfs_mount *m);
void mfs_mount_free(struct mfs_mount *m); /* not the struct */
int mfs_hot_copy(struct mfs_hot *to, const struct mfs_hot *hot);

struct mfs_status {
    char name[MFS_NAME_MAX];
    char state[MFS_STATE_MAX]; /* starting, running, scaling, degraded, stopping */
    uint64_t epoch;
    uint64_t term;      /* of cm */
    uint64_t will_lose; /* bytes of nodes that were told to end for which others have no room */
    uint32_t partitions;
    double beta;
    char policy[MFS_STATE_MAX];
    char migration[MFS_STATE_MAX];
    char weights[MFS_STATE_MAX]; /* memory, bandwidth, auto */
    bool by_bandwidth;           /* what the shares follow just now; else memory */
    double utilization;          /* 0..1, of the nodes that have told; unknown: none has */
    uint32_t replicas;           /* that each partition is to have */
    uint32_t unprotected;        /* partitions that have none just now */
    uint32_t nplaces;
    struct mfs_status_place *place; /* of each partition, in order */
    uint32_t nnodes;
    struct mfs_status_node *node;
    uint32_t nmoves;
    struct mfs_status_move *move;      /* migrations under way */
    char checkpoint_dir[MFS_PATH_MAX]; /* the last one of this deployment's; "": none yet */
    char checkpoint_time[32];          /* 2026-01-31T12:00:00Z */
    char timestamp[32], version[32];   /* of this answer, likewise; of cm */
    double uptime_s;                   /* of cm */
    uint64_t restarts, out_of_memory;  /* of partitions' processes, since their lms began: ends that
                                          nobody asked for; commands refused as memory was full */
    uint64_t failovers, lost_partitions, lost_bytes; /* since cm began */
    uint32_t silent_nodes;       /* whose lm is not there, or has told this cm nothing yet */
    uint32_t silent_partitions;  /* theirs, and those whose process does not answer */
    uint32_t unknown_partitions; /* of these, such that nothing is known of: they are in no sum */
    uint64_t inodes;             /* of files, directories and all else, as last reported */
    uint64_t lost_stripes;       /* whose bytes were ever lost, likewise */
    uint64_t errors, no_space, io_errors; /* of all that is in `mount` */
    uint32_t nmounts;
    struct mfs_mount *mount; /* cm leaves these four out: they are CLIENTS' */
};

/* The figures of one program; a client's are a struct mfs_metric_snapshot when it sends them. */
struct mfs_stats_source {
    char program[MFS_STATE_MAX]; /* client, lm */
    uint32_t pid;                /* 0: not seen by lm */
    char mount[MFS_PATH_MAX];    /* of a client; or the command's name */
    uint64_t age_ms;             /* since they came; 0: of now */
    struct mfs_metric_snapshot figures;
};

struct mfs_stats {
    uint32_t nsources;
    struct mfs_stats_source *source;
};

struct mfs_message {
    const char *name;
    const struct mfs_schema *body, *reply;
};

extern const struct mfs_message mfs_messages[MFS_MSG_COUNT];
extern const struct mfs_schema mfs_status_schema;      /* also for cm status --json */
extern const struct mfs_schema mfs_status_node_schema; /* and cm describe --json */
/* What the nodes use of which it is known, and what may be used there. */
void mfs_status_memory(const struct mfs_status *s, uint64_t *used, uint64_t *capacity);

/* Clients of the node that are known to hold an older table; 0 also when nothing is known. */
uint32_t mfs_status_clients_behind(const struct mfs_status_node *n);
extern const struct mfs_schema mfs_status_move_schema;
extern const struct mfs_schema mfs_status_place_schema;
extern const struct mfs_schema mfs_mount_schema;        /* without figures */
extern const struct mfs_schema mfs_scale_report_schema; /* also for cm scale --json */
extern const struct mfs_schema mfs_image_part_schema;   /* also for manifests */
extern const struct mfs_schema mfs_checkpoint_schema;
extern const struct mfs_schema mfs_mounts_schema; /* also for cm clients --json, without figures */
extern const struct mfs_schema mfs_mounts_hot_schema;
extern const struct mfs_schema mfs_hot_schema;   /* also for .memefs/hot.json */
extern const struct mfs_schema mfs_event_schema; /* also for cm events --json */
extern const struct mfs_schema mfs_events_schema;
extern const struct mfs_schema mfs_stats_schema; /* also for memefs stats --json */

/* The largest body or reply struct, to have room for any. */
#define MFS_MSG_SIZE_MAX 4096

/* Frames one message into *out. body NULL: an empty one. 0, -EMSGSIZE or -ENOMEM. */
int mfs_message_put_request(struct mfs_buf *out, enum mfs_msg type, uint64_t id, const void *body);
int mfs_message_put_reply(struct mfs_buf *out, enum mfs_msg type, uint64_t id, const void *body);
int mfs_message_put_error(struct mfs_buf *out, uint64_t id, int code, const char *text);

/* A frame's body, taken apart so far that its receiver is known. */
struct mfs_envelope {
    bool is_reply;
    uint64_t id;
    enum mfs_msg type; /* of a request; MFS_MSG_COUNT when unknown */
    char type_name[32];
    struct mfs_err error; /* of a reply; code 0: none */
    void *json;           /* internal; freed by mfs_envelope_clear */
};

/* 0, -EPROTO when it is no message, or -ENOMEM. */
int mfs_envelope_open(struct mfs_envelope *e, const char *text, size_t len);
void mfs_envelope_clear(struct mfs_envelope *e);

/* Decodes the body by `schema`. Clear *to with mfs_schema_clear. 0, -EINVAL with the reason, … */
int mfs_envelope_body(const struct mfs_envelope *e, const struct mfs_schema *schema, void *to,
                      struct mfs_err *err);

#endif
