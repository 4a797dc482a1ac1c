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
    uint32_t port;                    /* 0: none yet */
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

/* Of all that it says: equal tables have equal ones. */
uint64_t mfs_table_digest(const struct mfs_table *t);

/* What makes a newer table of one that the receiver has. */
struct mfs_table_patch {
    uint32_t index;
    struct mfs_partition part;
};

#define MFS_TABLE_WHOLE_FROM                                                                       \
    2 /* where more than one partition of so many is another, it goes whole */
#define MFS_TABLE_DIGEST_TEXT 17 /* 64 bits in hexadecimal and NUL */

struct mfs_table_change {
    uint64_t base;                      /* epoch of that table; 0: this is no change */
    char digest[MFS_TABLE_DIGEST_TEXT]; /* … its digest: the epoch alone may be that of another
                                          table, whose save cm's machine has forgotten */
    uint64_t epoch;
    bool growing, replicated;
    uint64_t failovers;
    uint32_t npatches;
    struct mfs_table_patch *patch;
};

/* Do they say the same? */
bool mfs_partition_equal(const struct mfs_partition *a, const struct mfs_partition *b);

void mfs_table_digest_text(uint64_t digest, char out[MFS_TABLE_DIGEST_TEXT]);

/* What makes `to` of `from`: *change, whose patches the caller frees. 0; 1 when the whole is no
 * longer (the change has no base then); or -ENOMEM. */
int mfs_table_difference(const struct mfs_table *from, const struct mfs_table *to,
                         struct mfs_table_change *change);

/* *out: the table that comes of it, the caller's to free. 0, -ENOMEM, -ESTALE when `held` (NULL:
 * none) is not what the change is of, -EINVAL when nothing valid comes of it. */
int mfs_table_apply(const struct mfs_table *held, const struct mfs_table_change *change,
                    struct mfs_table **out);

/* 0, or -EINVAL when a value is out of range or a partition has no address. */
int mfs_table_check(const struct mfs_table *t);

#endif
