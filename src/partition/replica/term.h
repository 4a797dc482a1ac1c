/* Who serves a partition that has a replica: the commands of its terms, for Local Managers only,
 * and the filter that refuses what clients send once the term is over (consent.h). */
#ifndef MFS_PARTITION_REPLICA_TERM_H
#define MFS_PARTITION_REPLICA_TERM_H

struct RedisModuleCtx;

/* Adds the filter to the server: MFS_REDIS_OK or MFS_REDIS_ERR. */
int mfs_term_load(struct RedisModuleCtx *ctx);

#endif
