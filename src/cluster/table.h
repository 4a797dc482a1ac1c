/* The partition table: partition → node and address, with an epoch. Every change makes a new table
 * with epoch + 1; a table that others can see is never changed, so it needs no lock. */
#ifndef MFS_CLUSTER_TABLE_H
#define MFS_CLUSTER_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#define MFS_NAME_MAX     64
#define MFS_HOST_MAX     64
#define MFS_SECRET_MAX   65  /* 64 hex digits and NUL */
#define MFS_UNIXPATH_MAX 108 /* sun_path */

/* 2^20 − 4096 bytes: a power of two would take redis's allocator a quarter more. */
#define MFS_STRIPE_SIZE_DEFAULT (255U * 4096U)
#define MFS_STRIPE_SIZE_UNIT    4096U

struct mfs_partition {
    uint32_t node;                    /* node id */
    char host[MFS_HOST_MAX];          /* address that redis listens on */
    uint16_t port;                    /* 0: none yet */
    char unix_path[MFS_UNIXPATH_MAX]; /* its UNIX socket on that node, "" for none */
    char password[MFS_SECRET_MAX];    /* of the ACL user MFS_REDIS_USER, this partition's own */
    uint32_t era; /* how often a replica has taken its process' place: what that had acknowledged
                     and no replica has confirmed may be lost */
    bool replica; /* it has a replica now, which confirms what is written */
};

struct mfs_table {
    char name[MFS_NAME_MAX]; /* the deployment's */
    uint64_t epoch;
    uint32_t nparts;
    uint32_t stripe_size; /* bytes */
    bool growing;         /* nodes can still come: a writer that finds no memory waits for them */
    bool replicated;      /* partitions have replicas, or will have: cluster/trust.h applies */
    uint64_t failovers;   /* begun so far; no lease of before this one changed holds any more */
    struct mfs_partition part[];
};

#define MFS_REDIS_USER  "memefs"      /* clients: data and names, no administration */
#define MFS_REDIS_ADMIN "memefs-lm"   /* the node's Local Manager: everything */
#define MFS_REDIS_COPY  "memefs-copy" /* the process that is to have a copy: to follow */

/* A table of nparts zeroed partitions, or NULL (ENOMEM). Free with free(). */
struct mfs_table *mfs_table_new(uint32_t nparts);

/* A copy, to make the next epoch from; NULL (ENOMEM). */
struct mfs_table *mfs_table_dup(const struct mfs_table *t);

/* 0, or -EINVAL when a value is out of range or a partition has no address. */
int mfs_table_check(const struct mfs_table *t);

#endif
