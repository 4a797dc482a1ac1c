/* Where nodes come from: the contract between cm and a provider. Whatever starts a Local Manager
 * (lm) at a node is a provider: a fork on this machine, an operator's command, ssh, a batch queue,
 * a cloud's API. A provider is one file that fills in a struct mfs_provider, and a line in
 * provider.c; cm knows it by its traits (traits.h) alone.
 *
 * A provider does two things: it has an lm started for a node (request), and it gives the node back
 * (release). All else goes over the control protocol: the lm connects to cm and joins, is told what
 * to do, and is told to stop. Each node goes through these states:
 *
 *             request                ready                  (the lm joins, works, is stopped)
 *     none ------------> requested ----------> started
 *      ^   failed           |    ^ waiting: again and again     |
 *      +--------------------+                                   |
 *      +--------------------------------------------------------+  ended
 *
 *     any state --release--> releasing --released--> gone
 *
 * Of lms that go into the background (traits->detached) nothing is watched: `ready` says that cm
 * has taken one, and its connection tells the rest.
 *
 * - One request may be for many nodes, and each is answered for itself, by `ready` or `failed`: of
 *   what gives half of them, those that came are used or released, as cm decides. A job that holds
 *   several nodes answers for each; it is given back with the last of them, or made smaller.
 * - A node whose lm has ended, or which failed, may be requested again, with the same id, to start
 *   another lm at the same place: what the first one left running there (redis processes, mounts)
 *   is taken up by the second. Where the place itself is lost (an expired job), say so by `failed`.
 * - release is called for each node once it is not wanted any more, whatever became of it: also for
 *   one that waits in a queue, one that failed, and one that the provider has never heard of (an
 *   earlier cm asked for it and was killed). It may come twice for a node, from one cm and from the
 *   next. As a rule the lm has ended by then; what still runs is ended by force.
 * - Nothing blocks. What takes time is a process that is watched (children.h, run.h), a descriptor
 *   in the loop, or a thread that posts its result.
 * - Callbacks come from the loop's thread, never from inside a call of cm's (notices.h does that),
 *   and for one node in the order of what happened. cm ignores those of nodes that it has
 * forgotten.
 * - Everything is bounded by cm, too: a node that is not `ready` and joined in time is given up and
 *   released; a release that is not answered within MFS_RELEASE_TIME is reported and given up. So a
 *   provider need not guard against what it waits for hanging, but should: it knows the reason.
 * - cm may be killed at any time. What a provider must remember of a node (a job's number, an
 *   instance's id) it gives to `note`, before it relies on it; the next cm hands it to adopt and
 *   release as node.handle. Between asking outside and noting the answer lies a gap: a name or
 * token made of the deployment's name and the node's id, which can be looked for, closes it.
 */
#ifndef MFS_CM_PROVIDER_PROVIDER_H
#define MFS_CM_PROVIDER_PROVIDER_H

#include <stddef.h>
#include <stdint.h>

#include "args/conf.h"
#include "args/paths.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "cm/provider/hostlist.h"
#include "cm/provider/traits.h"
#include "host/proc.h"
#include "net/auth.h"
#include "net/loop.h"
#include "proto/messages.h"

#define MFS_RELEASE_TIME (30 * MFS_SEC) /* that a provider may take to give a node back */

#define MFS_PROVIDER_HANDLE_MAX     128 /* bytes of what is noted of a node, with its NUL */
#define MFS_PROVIDER_RUN_DAEMON_MAX 24  /* words that run cm's daemon, with the NULL after them */
#define MFS_PROVIDER_WHAT_MAX       64  /* of what stands for it, for people */
#define MFS_PROVIDER_REASON_MAX     128 /* of what it waits for; what is longer is cut */

/* A node, as a provider sees it. Everything is cm's, and good during the call alone. */
struct mfs_provider_node {
    uint32_t id;         /* never given to another node of this deployment */
    uint32_t slot;       /* the least that no other node has: it is given again */
    const char *name;    /* "node-ID" */
    const char *address; /* that it is to have, or has; "": its lm finds it out and tells cm */
    const char *handle;  /* what the provider has noted of it; "": nothing */
    uint64_t memory;     /* that it gives, bytes */
};

/* What cm hears. `arg` is the context's. */
struct mfs_provider_calls {
    /* It is on its way, but stands in a queue: why, for people ("Resources; expected 14:05"). Again
     * whenever that changes. Only while requested. */
    void (*waiting)(void *arg, uint32_t node, const char *why);
    /* Its lm has been started: what stands for it, for people ("process 4711", "job 12 on tux3").
     */
    void (*ready)(void *arg, uint32_t node, const char *what);
    /* There will be none, and nothing is left of the request for it. */
    void (*failed)(void *arg, uint32_t node, const struct mfs_err *why);
    /* What was started has ended, and the lm with it as far as the provider can tell, after
     * `ready`; how, after the words "its lm" ("exited with status 7"). Of an lm that can't be seen
     * (traits) cm believes the connection more than this. */
    void (*ended)(void *arg, uint32_t node, const char *how);
    /* It has been given back; or that failed, and why (else NULL): nothing more is tried. */
    void (*released)(void *arg, uint32_t node, const struct mfs_err *why);
    /* Keeps `handle` with the node, on disk when this returns. May be called at any time, also
     * inside a call. 0 or a negative errno. */
    int (*note)(void *arg, uint32_t node, const char *handle);
};

/* A word for the provider that cm.json keeps: an option of its own, as given to `cm start`. One of
 * several lines has an entry for each, in their order. */
struct mfs_provider_option {
    char key[32];
    char value[MFS_TEXT_MAX];
};

/* What a provider works with. All of it outlives the provider's state. */
struct mfs_provider_context {
    struct mfs_loop *loop;
    const struct mfs_paths *paths;
    const char *cm;                  /* HOST:PORT at which nodes reach cm */
    bool moved;                      /* cm has begun on another machine than at the start */
    bool here;                       /* traits->sees_processes: lms leave their files to cm */
    bool detached;                   /* traits->detached: lms go into the background */
    const char *node_dir;            /* --state-dir of the lms; "": they choose it (args/paths.h) */
    const struct mfs_secret *secret; /* for mfs_provider_input */
    const char *network;             /* of the nodes' addresses (lm --network); "": any */
    const char *interface;           /* of each node, that its lm measures; "": it finds it out */
    uint32_t grace;                  /* s that an lm may stay after SIGTERM */
    const char *log_format;          /* of lms and mounts; "": their default */
    uint32_t metrics;                /* port at which it serves figures; 0: none */
    const struct mfs_provider_option *option;
    uint32_t noptions;
    const struct mfs_provider_calls *calls;
    void *arg; /* of the calls */
};

/* What was said of the place of a node before there is one. */
struct mfs_provider_place {
    char host[MFS_HOSTLIST_NAME]; /* its machine, as an operator names it; "": not known */
    char address[MFS_HOST_MAX];   /* "": none */
    uint64_t memory;              /* bytes; 0: as all others */
    bool further;                 /* the machine is that of another node, too, which mounts there */
};

/* A command that finds out whether a place can be used: its exit status is 0, or what it prints
 * tells why not. argv points into the struct. */
struct mfs_provider_probe {
    char host[256], program[512]; /* for messages */
    char advice[2048];            /* a command that must work */
    char command[1024], line[1100];
    const char *argv[6];
};

enum mfs_provided {
    MFS_PROVIDED_NONE,
    MFS_PROVIDED_REQUESTED,
    MFS_PROVIDED_STARTED,
    MFS_PROVIDED_RELEASING,
    MFS_PROVIDED_GONE
};

struct mfs_provider {
    const struct mfs_provider_traits *traits;

    /* Options of `cm start` that are this provider's alone; NULL: none. Those that are given stand
     * in the context from then on. */
    const struct mfs_conf_option *options;

    /* Does the environment say that this provider is meant where --provider does not? NULL: never.
     */
    bool (*is_here)(const struct mfs_conf *conf);

    /* Completes what was not given from the environment, and reads what files were named. Of the
     * provider that is meant, once; may block. 0 or a negative errno with the reason. NULL:
     * nothing.
     */
    int (*environment)(struct mfs_conf *conf, struct mfs_err *err);

    /* Is what was given enough? 0, or -EINVAL with what is missing. Pure. NULL: it is. */
    int (*check)(const struct mfs_conf *conf, struct mfs_err *err);

    /* The place of the node that will have this index (slot). 0, or -EINVAL with the reason: there
     * are no more. Pure. NULL: there is any number of places, and nothing is known of them. */
    int (*place)(const struct mfs_provider_option *option, uint32_t noptions, uint32_t slot,
                 struct mfs_provider_place *out, struct mfs_err *err);

    /* Is that place to be taken only when all others are, as there was no lm to be had there last
     * time? NULL: no. */
    bool (*avoids)(const void *state, uint32_t slot);

    /* Does the node of that handle end when what cm was started in does, so that cm can't go on
     * there? NULL: none does. */
    bool (*ends_with_cm)(const void *state, const char *handle);

    /* The command that runs cm's daemon on this machine so that it outlives what calls it here,
     * before cm's own words: out is ended by NULL. Its process is killed once cm runs. Returns how
     * many words; 0: cm needs none. Reads the environment. NULL: it never does. */
    uint32_t (*run_daemon)(const struct mfs_provider_option *option, uint32_t noptions,
                           const char *out[MFS_PROVIDER_RUN_DAEMON_MAX]);

    /* For `cm doctor`: whether that place can be used, one for each machine in turn. 0, or a
     * negative errno when there are no more. Pure. NULL: there is nothing to ask. */
    int (*probe)(const struct mfs_provider_option *option, uint32_t noptions, uint32_t place,
                 struct mfs_provider_probe *out);

    /* What it means that such a command has ended like that ("exited with status 3"). Pure. */
    void (*explain)(const struct mfs_provider_probe *p, const struct mfs_err *how,
                    const char *output, struct mfs_err *out);

    /* Begins to work, for one cm: *state is what all other calls get. Starts nothing. 0 or a
     * negative errno with the reason. */
    int (*open)(const struct mfs_provider_context *c, void **state, struct mfs_err *err);

    /* Frees the state. What was started goes on, for the next cm to adopt. No call comes after,
     * and this one never from inside a callback. */
    void (*close)(void *state);

    /* A new cm asks for each node that an earlier one may have requested: what is there of it?
     * NONE: nothing, or nothing that can be seen. STARTED: as after `ready`, with what stands for
     * it in `what`; `ended` comes when it has. REQUESTED: it waits still, or that takes time to
     * find out: callbacks follow as after a request. */
    enum mfs_provided (*adopt)(void *state, const struct mfs_provider_node *n,
                               char what[MFS_PROVIDER_WHAT_MAX]);

    /* Has an lm started for each of these nodes. 0: each will be answered. A negative errno with
     * the reason: none has been begun, none will be answered. */
    int (*request)(void *state, const struct mfs_provider_node *n, uint32_t count,
                   struct mfs_err *err);

    /* Its lm has joined, and the connection tells the rest. True: what was started for it here is
     * not watched any more, and may be gone. NULL: it is. */
    bool (*joined)(void *state, uint32_t node);

    /* Passes a signal on to what was started for the node: SIGINT asks its lm to end all that is
     * on the node (SIGTERM: to leave, once its partitions have moved), SIGKILL ends the lm alone,
     * SIGCONT lets one that was stopped go on. 0, -ESRCH when there is nothing, or -ENOSYS when it
     * can't be done: then the end of the connection, or the release, has to do. */
    int (*signal)(void *state, uint32_t node, int signo);

    /* Gives a node back. 1: it is done, there was nothing to wait for. 0: `released` will tell. */
    int (*release)(void *state, const struct mfs_provider_node *n);
};

extern const struct mfs_provider mfs_provider_local, mfs_provider_exec, mfs_provider_slurm,
    mfs_provider_ssh, mfs_provider_ec2;

/* NULL when there is none of that name. */
const struct mfs_provider *mfs_provider_find(const char *name);

/* What `cm start` was not given and the environment tells: which provider, and options for it. 0 or
 * a negative errno with the reason. */
int mfs_provider_environment(struct mfs_conf *conf, struct mfs_err *err);

/* Of one provider's options those that are given, for the state; *list is for the caller to free.
 * -EINVAL with the reason when one of another provider's is given. 0 or a negative errno. */
int mfs_provider_take_options(const struct mfs_provider *p, const struct mfs_conf *conf,
                              struct mfs_provider_option **list, uint32_t *n, struct mfs_err *err);

/* For providers: an option's value; NULL when it was not given. */
const char *mfs_provider_option(const struct mfs_provider_context *c, const char *key);

/* For providers: sets an option that was not given; NULL and "" set nothing, nor is one set that
 * the command does not have. 0 or -EINVAL with the reason. */
int mfs_provider_complete(struct mfs_conf *conf, const char *key, const char *value,
                          struct mfs_err *err);

/* For providers: has cm listen at the address by which this machine reaches that one (a name or an
 * address), unless --listen was given. False: there is none but that which each machine has for
 * itself. Blocks as long as the name is looked up. */
bool mfs_provider_listen_towards(struct mfs_conf *conf, const char *machine);

/* For providers: the Local Manager's command line. argv points into the struct, the context and the
 * node. */
struct mfs_lm_command {
    char lm[PATH_MAX], id[16], grace[16], metrics[16];
    const char *argv[28];
};

int mfs_provider_command(const struct mfs_provider_context *c, const struct mfs_provider_node *n,
                         struct mfs_lm_command *out); /* 0 or -errno */

/* For providers: the command as one line for a shell, appended. 0 or a negative errno. */
int mfs_provider_quote(const struct mfs_lm_command *c, struct mfs_buf *out);

/* For providers: the secret, for the command that runs the Local Manager's (proto/secret.h). An lm
 * takes it from its environment or, where that is not passed on (ssh), from its standard input.
 * Nothing else may have it: no command line, no file that others can read, no log. */
struct mfs_provider_input {
    char value[256], line[257];
    struct mfs_proc_input input; /* of both */
};

int mfs_provider_input(const struct mfs_provider_context *c,
                       struct mfs_provider_input *out); /* 0 or -EINVAL: it has odd bytes */
void mfs_provider_input_wipe(struct mfs_provider_input *in);

#endif
