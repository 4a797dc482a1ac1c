/* More of the server's module API (see redis.h): what only the journal needs. Redis 7.0 and Valkey
 * have it. */
#ifndef MFS_PARTITION_JOURNAL_API_H
#define MFS_PARTITION_JOURNAL_API_H

#include <stdint.h>

#include "partition/redis.h"

enum { MFS_EVENT_FLUSHDB = 2, MFS_EVENT_LOADING = 3, MFS_EVENT_LOOP = 15 };
enum { MFS_FLUSHDB_END = 1 };
enum { MFS_LOADING_ENDED = 3, MFS_LOADING_FAILED = 4 }; /* less: it begins */
enum { MFS_LOOP_BEFORE_SLEEP = 0, MFS_LOOP_AFTER_SLEEP = 1 };

/* Classes of notifications: generic, string, set, hash, expired; and a key that was loaded. */
#define MFS_NOTIFY_CHANGES (1 << 2 | 1 << 3 | 1 << 5 | 1 << 6 | 1 << 8)
#define MFS_NOTIFY_LOADED  (1 << 12)

#define MFS_REDIS_NOTOUCH (1 << 16) /* with MFS_REDIS_READ */

typedef int mfs_redis_on_key(struct RedisModuleCtx *ctx, int type, const char *event,
                             struct RedisModuleString *key);
typedef void mfs_redis_on_scan(struct RedisModuleCtx *ctx, struct RedisModuleString *name,
                               struct RedisModuleKey *key, void *arg);

struct mfs_journal_api {
    int (*SubscribeToKeyspaceEvents)(struct RedisModuleCtx *, int types, mfs_redis_on_key *);
    int (*CommandFilterArgsCount)(struct RedisModuleCommandFilterCtx *);
    int (*Scan)(struct RedisModuleCtx *, struct RedisModuleScanCursor *, mfs_redis_on_scan *,
                void *arg);
    long long (*GetAbsExpire)(struct RedisModuleKey *);
    int (*SetAbsExpire)(struct RedisModuleKey *, long long ms);
    void (*Log)(struct RedisModuleCtx *, const char *level, const char *format, ...);
};

extern struct mfs_journal_api mfs_journal_api;

int mfs_journal_api_bind(struct RedisModuleCtx *ctx);

#endif
