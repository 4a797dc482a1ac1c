/* Who serves a partition that has a replica: the commands of its terms, for Local Managers only,
 * and the filter that refuses what clients send once the term is over (consent.h). */
#ifndef MFS_PARTITION_REPLICA_TERM_H
#define MFS_PARTITION_REPLICA_TERM_H

#include <stdbool.h>

struct RedisModuleCtx;

/* May what follows this process take its place only when it is lost? Then it need not have all
 * bytes. False: it takes this one's place in a move, or that was not said. */
bool mfs_term_follower_is_replica(void);

/* Adds the filter to the server: MFS_REDIS_OK or MFS_REDIS_ERR. */
int mfs_term_load(struct RedisModuleCtx *ctx);

#endif
