/* What a Local Manager writes down so that one that comes after it (the first may have been killed)
 * goes on with the processes that run: node-ID/lm.json, replaced atomically, 0600 as it holds
 * passwords. Written before cm or a client gets to know what is in it. */
#ifndef MFS_LM_AGENT_STATE_H
#define MFS_LM_AGENT_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/proc.h"
#include "cluster/table.h"
#include "proto/messages.h"

struct mfs_state_proc {
    uint32_t pid;
    uint64_t start;
    char comm[MFS_PROC_NAME_MAX];
};

struct mfs_state_redis {
    uint32_t index, port;
    bool lost;   /* it died with its content; not to be replaced by an empty one */
    bool termed; /* its replica follows it when it dies */
    char unix_path[MFS_UNIXPATH_MAX];
    char password[MFS_SECRET_MAX], admin_password[MFS_SECRET_MAX];
    struct mfs_state_proc proc;
};

/* A partition on its way to this node. */
struct mfs_state_copy {
    struct mfs_state_redis redis; /* the process that receives it */
    char source_host[MFS_HOST_MAX];
    uint32_t source_port;
    char source_admin_password[MFS_SECRET_MAX];
    uint64_t expected; /* bytes */
    bool whole;        /* all of it has been here and followed the source; it may be promoted */
};

struct mfs_state_client {
    char mount[MFS_PATH_MAX];
    char session[MFS_SESSION_TEXT];
    struct mfs_state_proc proc;
    uint32_t instance;
};

struct mfs_state {
    char name[MFS_NAME_MAX]; /* of the deployment */
    uint32_t node;
    uint32_t nparts, stripe_size;
    uint64_t memory;              /* bytes; 0: nothing assigned yet */
    uint32_t control;             /* port for VOTE and FOLLOW; 0: none */
    uint64_t term, vote_term;     /* of which there was a cm; in which a vote was given, */
    uint32_t candidate, vote_for; /* and the nodes at which they began, or may */
    char mount[MFS_PATH_MAX];     /* what cm wants mounted, "" for none */
    char options[MFS_TEXT_MAX];
    struct mfs_state_client mounter; /* the client that mounts it; pid 0: none yet */
    uint32_t nredis;
    struct mfs_state_redis *redis;
    uint32_t ncopies;
    struct mfs_state_copy *copy;
    uint32_t nclients;
    struct mfs_state_client *client;
    struct mfs_table *table; /* NULL for none */
};

extern const struct mfs_schema mfs_state_schema;

/* 0 or a negative errno. Blocks as writing a small file does. */
int mfs_state_save(const struct mfs_state *s, const char *path);

/* 0, -ENOENT when there is none, or another negative errno with the reason. Clear it with
 * mfs_schema_clear(&mfs_state_schema, s). */
int mfs_state_load(struct mfs_state *s, const char *path, struct mfs_err *err);

void mfs_state_proc_set(struct mfs_state_proc *to, const struct mfs_proc *from);
struct mfs_proc mfs_state_proc_get(const struct mfs_state_proc *from);

#endif
