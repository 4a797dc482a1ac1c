/* Inside the agent: what its parts share. Everything here belongs to the loop's thread; the list
 * of instances is used by jobs of the `redis` worker only, one after another. */
#ifndef MFS_LM_AGENT_AGENT_IMPL_H
#define MFS_LM_AGENT_AGENT_IMPL_H

#include <limits.h>
#include <stdbool.h>

#include "lm/agent/agent.h"
#include "lm/agent/metrics.h"
#include "lm/mount/clients.h"
#include "lm/redis/instances.h"
#include "lm/measure/meters.h"
#include "lm/mount/mounter.h"
#include "lm/jobs/worker.h"
#include "net/deferred.h"
#include "net/uplink.h"

#define MFS_AGENT_EVENTS_KEPT 64 /* while cm can't be reached */

struct mfs_agent;
struct mfs_agent_images;
struct mfs_agent_probe;
struct mfs_agent_relay;
struct mfs_agent_session;
struct mfs_agent_traffic;
struct mfs_health;

/* A partition that cm has assigned to this node. */
struct mfs_agent_part {
    struct mfs_agent *agent;
    struct mfs_redis redis;
    bool lost;                    /* its process died with its content, for good */
    bool reviving;                /* it died, and another one is being started */
    bool again;                   /* … that could not be, so mfs_agent_look_after does it */
    unsigned tries;               /* that failed, in a row */
    unsigned deaths;              /* in quick succession */
    int64_t died;                 /* the last time: mfs_clock_mono */
    bool termed;                  /* it serves while its replica consents: one that died is
                                     the replica's to follow, and not started anew here until
                                     cm has given the replica up */
    uint64_t blocked_us;          /* while it came here */
    bool releasing;               /* its process is being ended */
    struct mfs_deferred releaser; /* the request for that */
    struct mfs_watch *watch;
    struct mfs_health *health; /* NULL: it is not checked */
    struct mfs_agent_part *next;
};

enum mfs_agent_phase {
    MFS_AGENT_RUNNING,
    MFS_AGENT_UNMOUNTING,
    MFS_AGENT_UNMOUNTED, /* until all is to end: other nodes' clients may still need partitions */
    MFS_AGENT_ENDING,
    MFS_AGENT_ENDED
};

/* Where the node has what. */
struct mfs_agent_paths {
    char dir[PATH_MAX];                   /* node-ID */
    char dump[PATH_MAX];                  /* the redis processes' working directory */
    char state[PATH_MAX];                 /* the state file */
    char copy[PATH_MAX];                  /* of cm's state */
    char adopt_log[PATH_MAX];             /* what `cm start --adopt` says here */
    char client_address[MFS_ADDRESS_MAX]; /* of lm.sock */
};

/* What is said to cm, and heard from it: agent/cm.c, agent/heartbeat.c. */
struct mfs_agent_link {
    struct mfs_uplink *uplink;
    bool joined;                 /* cm has accepted us on the present connection */
    struct mfs_timer *heartbeat; /* while partitions have replicas */
    bool heartbeat_open;         /* cm is being asked whether it is there … */
    int64_t asked;               /* … since then, mono */
    int64_t last_heartbeat;      /* the last such question that it has answered; 0: none */
    struct mfs_lost_node *lost;  /* nodes that were lost then; NULL: none */
    uint32_t nlost;
    struct mfs_timer *rejoin;
    struct mfs_msg_event event[MFS_AGENT_EVENTS_KEPT]; /* not sent yet, oldest first */
    unsigned nevents;
};

/* The node is to end: agent/leave.c. */
struct mfs_agent_leaving {
    struct mfs_timer *timer; /* NULL: it is not */
    int64_t until;           /* mono */
    int64_t contact;         /* when cm was last there */
};

/* Which cm there may be, and where: agent/succession.c. */
struct mfs_agent_succession {
    struct mfs_listener *listener;     /* NULL: cm can only be on this machine */
    uint32_t port;                     /* of it */
    uint64_t term;                     /* the highest of which there is, or was, a cm */
    uint32_t candidate;                /* node at which that one began */
    uint64_t vote_term;                /* the highest in which a vote was given, … */
    uint32_t vote_for;                 /* … to a candidate at that node … */
    int64_t voted;                     /* … then, mono; 0: it means nothing any more */
    uint64_t copy_term, copy_revision; /* of the copy of cm's state; 0: there is none */
    bool copied;                       /* it could be written the last time */
    struct mfs_watch *adopting;        /* of `cm start --adopt`; NULL: it does not run */
    struct mfs_deferred adopter;       /* the request for it */
};

/* What reports to cm tell of the node. */
struct mfs_agent_measured {
    struct mfs_instances_sample sample; /* the last one; its parts are ours */
    bool under_way;
    struct mfs_timer *soon;
    char iface[MFS_METERS_IFACE_MAX]; /* "" on loopback */
    struct mfs_meter meter;
    struct mfs_agent_traffic *traffic; /* agent/traffic.c; NULL: not measured */
};

struct mfs_agent {
    struct mfs_agent_opts opts;
    struct mfs_agent_paths path;
    struct mfs_secret secret;
    struct mfs_metrics *metrics;    /* of this program */
    struct mfs_metric_set *figures; /* lm/agent/metrics.h */
    struct mfs_loop *loop;
    struct mfs_worker *redis_worker, *mount_worker;
    struct mfs_watch *redis_done, *mount_done;
    struct mfs_job_threads *job_threads;
    struct mfs_agent_leaving leaving;
    struct mfs_agent_link link;
    struct mfs_agent_succession succession;
    struct mfs_agent_measured measured;
    struct mfs_httpd *http; /* agent/serve.c; NULL: figures are not served */
    struct mfs_clients *clients;
    struct mfs_mounter *mounter;
    int failed; /* why the loop was stopped, if not in the regular way */
    void *arg;  /* of started, joined */
    struct mfs_err *err;

    /* assigned */
    struct mfs_instances *instances; /* NULL until the first assign */
    uint32_t nparts, stripe_size;
    uint64_t memory; /* bytes */
    struct mfs_agent_part *parts;
    struct mfs_agent_session *sessions; /* of dead clients, being ended */
    struct mfs_agent_copy *copies;      /* partitions/incoming.h */
    struct mfs_timer *health;           /* partitions/health.c; NULL: nothing is to be checked */
    struct mfs_agent_images *images; /* of a checkpoint under way, see agent/image.c; NULL: none */
    struct mfs_table *table;         /* the newest; NULL for none */

    struct mfs_agent_relay *relay; /* agent/relay.c; NULL: nobody has asked yet */
    struct mfs_agent_probe *probe; /* agent/probe.c; NULL: there was none yet */

    bool unsaved; /* the state file lacks something: it could not be written the last time */

    enum mfs_agent_phase phase;
    bool stopping;                  /* all is to end, not only the clients */
    struct mfs_deferred clientless; /* the request for the clients' end, */
    struct mfs_deferred stop;       /* and for that of all */
};

/* agent.c */
void mfs_agent_event(struct mfs_agent *a, const char *what, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void mfs_agent_end_clients(struct mfs_agent *a, struct mfs_conn *conn, uint64_t id);
void mfs_agent_stop(struct mfs_agent *a, struct mfs_conn *conn, uint64_t id);
void mfs_agent_fail(struct mfs_agent *a, const struct mfs_err *err); /* ends the loop */
/* Fails a request, with the node's number before the reason. */
void mfs_agent_refuse(const struct mfs_agent *a, struct mfs_conn *conn, uint64_t id, int code,
                      const char *why);

/* agent/leave.c: SIGTERM; and what cm is told of that after each join */
void mfs_agent_leave(struct mfs_agent *a);
void mfs_agent_tell_leave(struct mfs_agent *a);

/* agent/partitions/assign.c: partitions that cm wants here */
void mfs_agent_assign(struct mfs_agent *a, const struct mfs_msg_assign *m, struct mfs_conn *conn,
                      uint64_t id);

/* agent/partitions/redis.c: partitions and their processes */
int mfs_agent_instances_open(struct mfs_agent *a, uint32_t nparts, uint32_t stripe_size,
                             uint64_t memory);
/* Lists a partition and watches its process. NULL: ENOMEM. */
struct mfs_agent_part *mfs_agent_part_add(struct mfs_agent *a, const struct mfs_redis *r,
                                          bool lost);
struct mfs_agent_part *mfs_agent_part_find(const struct mfs_agent *a, uint32_t index);
/* … and the process that cm means by this password, unless it is lost or being released; or NULL.
 */
struct mfs_agent_part *mfs_agent_part_meant(const struct mfs_agent *a, uint32_t index,
                                            const char *password);
void mfs_agent_part_remove(struct mfs_agent *a, struct mfs_agent_part *p);
void mfs_agent_parts_free(struct mfs_agent *a);
/* When its process ends, or has ended already: mfs_agent_part_died. What can't be watched just now
 * (no descriptors) is by mfs_agent_look_after. */
void mfs_agent_part_watch(struct mfs_agent_part *p);
/* Has the instances forget a partition that is lost. */
void mfs_agent_part_forget(struct mfs_agent *a, uint32_t part);
/* Has the instances count it as a partition that serves. */
void mfs_agent_settle(struct mfs_agent *a, uint32_t part);
void mfs_agent_arrived(struct mfs_agent *a, uint32_t part); /* mfs_instances_arrived, in time */
/* Ends a process that is to be no more, in a thread of its own, and removes its files. `ended` is
 * called when it is gone, also when that could not be brought about (which is logged). */
void mfs_agent_end_process(struct mfs_agent *a, const struct mfs_redis *r, void (*ended)(void *arg),
                           void *arg);
void mfs_agent_measure(struct mfs_agent *a);
void mfs_agent_stop_redis(struct mfs_agent *a, void (*done)(struct mfs_agent *a));

/* agent/sessions.c: ends a dead client's session in the store, so that nothing waits for it; tries
 * again until that is done, or it must have ended by itself. */
void mfs_agent_end_session(struct mfs_agent *a, const char *session);
void mfs_agent_sessions_free(struct mfs_agent *a); /* none is under way any more */

/* agent/heartbeat.c: is cm there? Asked while the table says that partitions have replicas. To be
 * called when it has changed, and each interval, as memory may be short. */
void mfs_agent_heartbeat_follow(struct mfs_agent *a);

/* agent/succession.c: which cm the node follows. Before the uplink; that it can't listen is logged.
 */
void mfs_agent_succession_begin(struct mfs_agent *a);
void mfs_agent_succession_end(struct mfs_agent *a);
/* A copy of what cm knows. A failure to write it is an event. */
int mfs_agent_take_copy(struct mfs_agent *a, const struct mfs_msg_state *m, struct mfs_err *err);
/* cm says which one comes after it. */
void mfs_agent_succeeded(struct mfs_agent *a, const struct mfs_msg_follow *m);
/* How long no cm may be joined because of a vote, ns; 0: one may. */
int64_t mfs_agent_vote_left(const struct mfs_agent *a);
void mfs_agent_has_joined(struct mfs_agent *a);
/* Runs `cm start --adopt` here, and answers when it has ended. */
void mfs_agent_adopt(struct mfs_agent *a, struct mfs_conn *conn, uint64_t id);

/* agent/partitions/revive.c: the process of a partition has ended. */
void mfs_agent_part_died(struct mfs_agent_part *p, pid_t pid, int status);
/* If it was left to its replica: that does not take its place, as cm has given it up, so another
 * process is to. 0, or -EBUSY when that can't be written down, and nothing is begun. */
int mfs_agent_part_recall(struct mfs_agent *a, uint32_t index, const char *password,
                          struct mfs_err *err);
/* Of all whose process is not watched: they have died while no Local Manager was there, or have to
 * be started once more, or could not be watched yet; and of a state file that could not be written.
 * At the beginning, then about once a second. */
void mfs_agent_look_after(struct mfs_agent *a);

/* Partitions that come and go (docs/design/migration.md). Each of these requests of cm may come
 * again at any time; what is done is answered, an earlier request is refused then. In
 * agent/partitions/receive.c: */
void mfs_agent_receive(struct mfs_agent *a, const struct mfs_msg_receive *m, struct mfs_conn *conn,
                       uint64_t id);
/* agent/partitions/take.c */
void mfs_agent_take(struct mfs_agent *a, const struct mfs_msg_take *m, struct mfs_conn *conn,
                    uint64_t id);
/* agent/partitions/leave.c */
void mfs_agent_fence(struct mfs_agent *a, const struct mfs_msg_fence *m, struct mfs_conn *conn,
                     uint64_t id);
void mfs_agent_release(struct mfs_agent *a, const struct mfs_msg_release *m, struct mfs_conn *conn,
                       uint64_t id);
/* What was waiting for the revival to be over: its end. */
void mfs_agent_part_release(struct mfs_agent_part *p);

/* agent/image.c: steps of a checkpoint */
void mfs_agent_image(struct mfs_agent *a, const struct mfs_msg_image *m, struct mfs_conn *conn,
                     uint64_t id);
void mfs_agent_images_drop(struct mfs_agent *a);              /* gives up what is under way */
uint64_t mfs_agent_images_written(const struct mfs_agent *a); /* bytes; 0: none under way */

/* agent/probe.c: what the node's link carries, measured */
void mfs_agent_probe(struct mfs_agent *a, const struct mfs_msg_probe *m, struct mfs_conn *conn,
                     uint64_t id);
void mfs_agent_probe_end(
    struct mfs_agent *a); /* when no job runs in a thread of its own any more */

/* agent/partitions/term.c: partitions that have replicas */
void mfs_agent_term(struct mfs_agent *a, const struct mfs_msg_term *m, struct mfs_conn *conn,
                    uint64_t id);

/* agent/partitions/health.c: whether processes with replicas, and replicas, are there. Looked at
 * while there may be any: to be called when that may begin, and each interval. */
void mfs_agent_health_follow(struct mfs_agent *a);

/* agent/traffic.c: what the node's link carries, and to which nodes */
void mfs_agent_traffic_begin(struct mfs_agent *a); /* a failure is logged */
void mfs_agent_traffic_end(struct mfs_agent *a);
void mfs_agent_traffic_table(struct mfs_agent *a);   /* it has changed */
void mfs_agent_traffic_measure(struct mfs_agent *a); /* each interval */
/* Of the last interval, for the caller to free; *n is their number. NULL: none, or ENOMEM. */
struct mfs_report_peer *mfs_agent_traffic_peers(const struct mfs_agent *a, uint32_t *n);

/* agent/cm.c: the connection to cm */
extern const struct mfs_service mfs_agent_cm_service;
void mfs_agent_report(struct mfs_agent *a);
void mfs_agent_send_events(struct mfs_agent *a);
int mfs_agent_expect_cm(struct mfs_agent *a); /* ends the loop when cm isn't there. 0 or -ENOMEM */
/* A process has ended; a cm that has not been joined yet learns it from the join, or right after.
 */
void mfs_agent_report_died(struct mfs_agent *a, const struct mfs_redis *r);

/* agent/serve.c: figures, to who asks over HTTP, and to cm. That they can't be served is logged. */
void mfs_agent_serve_begin(struct mfs_agent *a);
uint32_t mfs_agent_serve_port(const struct mfs_agent *a); /* 0: none */
void mfs_agent_mounts(struct mfs_agent *a, const struct mfs_msg_mounts *m, struct mfs_conn *conn,
                      uint64_t id);

/* agent/relay.c: what clients ask, and cm knows. It is asked, and answers them all; when it does
 * not they get what it told last. */
void mfs_agent_relay(void *agent, enum mfs_msg type, struct mfs_conn *conn, uint64_t id);
void mfs_agent_relay_end(struct mfs_agent *a);

/* agent/clients.c: clients and mounts */
int mfs_agent_clients_open(struct mfs_agent *a, struct mfs_err *err);
void mfs_agent_clients_unmount(struct mfs_agent *a, void (*done)(struct mfs_agent *a));

/* agent/resume.c: the state file */
/* 0 or a negative errno, which is logged the first time; mfs_agent_look_after tries again. Enough
 * where a Local Manager that comes after us would find out by itself. */
int mfs_agent_save(struct mfs_agent *a);
/* For what it would not, and the caller is about to act upon or has been asked for: 0, or -EBUSY
 * with the reason. Then the caller takes it back; cm may ask again. */
int mfs_agent_must_save(struct mfs_agent *a, struct mfs_err *err);
/* Takes up what an earlier Local Manager of this node left running. 0 also when there is nothing.
 */
int mfs_agent_restore(struct mfs_agent *a, struct mfs_err *err);

#endif
