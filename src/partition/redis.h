/* The part of Redis' module API that is used here (redis.io/docs/reference/modules/modules-api-ref,
 * version 1, which every Redis since 6.0 and Valkey have). A module asks the server for each
 * function by its name; so no header of the server's is needed.
 *
 * One thread runs all of it: the server's. Pointers into the server's memory are good until the key
 * is written to or closed. */
#ifndef MFS_PARTITION_REDIS_H
#define MFS_PARTITION_REDIS_H

#include <stddef.h>
#include <stdint.h>

struct RedisModuleCtx;
struct RedisModuleString;
struct RedisModuleKey;
struct RedisModuleCallReply;
struct RedisModuleScanCursor;
struct RedisModuleCommandFilterCtx;

typedef int mfs_redis_command(struct RedisModuleCtx *ctx, struct RedisModuleString **argv,
                              int argc);
typedef void mfs_redis_filter(struct RedisModuleCommandFilterCtx *f);
typedef void mfs_redis_scan(struct RedisModuleKey *key, struct RedisModuleString *field,
                            struct RedisModuleString *value, void *arg);

struct mfs_redis_event {
    uint64_t id, version;
};
typedef void mfs_redis_on_event(struct RedisModuleCtx *ctx, struct mfs_redis_event event,
                                uint64_t sub, void *data);

enum { MFS_REDIS_OK = 0, MFS_REDIS_ERR = 1 };
enum { MFS_REDIS_READ = 1, MFS_REDIS_WRITE = 2 };
enum { MFS_REDIS_STRING = 1, MFS_REDIS_HASH = 3, MFS_REDIS_SET = 4 }; /* types of keys */
enum { MFS_REDIS_REPLY_ERROR = 1 };     /* type of what a call answers */
#define MFS_REDIS_CLIENT_UNIX (1U << 4) /* flag of a client: by the UNIX socket */
#define MFS_REDIS_OOM         (1 << 10) /* flag of a context: memory is full */
#define MFS_REDIS_REPLICATED  (1 << 12) /* likewise: the command came from the process copied */
enum { MFS_EVENT_ROLE = 0 };            /* it follows another process, or does not any more */
enum { MFS_ROLE_MASTER = 0 };
#define MFS_REDIS_API       1
#define MFS_REDIS_POSTPONED (-1L)                            /* length of an array */
#define MFS_REDIS_DELETE    ((struct RedisModuleString *)1L) /* as a hash's value */

/* What the server tells of a connection; version 1 of its structure. */
struct mfs_redis_client {
    uint64_t version, flags, id;
    char address[46];
    uint16_t port, db;
};

/* Named as in the server, without RedisModule_. */
struct mfs_redis_api {
    int (*SetModuleAttribs)(struct RedisModuleCtx *, const char *name, int version, int api);
    int (*CreateCommand)(struct RedisModuleCtx *, const char *name, mfs_redis_command *,
                         const char *flags, int first_key, int last_key, int step);
    struct RedisModuleString *(*CreateString)(struct RedisModuleCtx *, const char *, size_t);
    void (*FreeString)(struct RedisModuleCtx *, struct RedisModuleString *);
    void *(*Alloc)(size_t); /* never NULL: the server ends instead */
    void (*Free)(void *);
    const char *(*StringPtrLen)(const struct RedisModuleString *, size_t *);
    struct RedisModuleKey *(*OpenKey)(struct RedisModuleCtx *, struct RedisModuleString *,
                                      int mode);
    void (*CloseKey)(struct RedisModuleKey *);
    size_t (*ValueLength)(struct RedisModuleKey *);
    int (*DeleteKey)(struct RedisModuleKey *);
    int (*KeyType)(struct RedisModuleKey *); /* MFS_REDIS_STRING … */
    const struct RedisModuleString *(*GetKeyNameFromModuleKey)(struct RedisModuleKey *);
    long long (*GetExpire)(struct RedisModuleKey *); /* ms, -1: never */
    int (*SetExpire)(struct RedisModuleKey *, long long ms);
    char *(*StringDMA)(struct RedisModuleKey *, size_t *, int mode);
    int (*StringSet)(struct RedisModuleKey *, struct RedisModuleString *);
    int (*StringTruncate)(struct RedisModuleKey *, size_t);
    int (*HashGet)(struct RedisModuleKey *, int flags, ...);
    int (*HashSet)(struct RedisModuleKey *, int flags, ...);
    struct RedisModuleScanCursor *(*ScanCursorCreate)(void);
    void (*ScanCursorDestroy)(struct RedisModuleScanCursor *);
    int (*ScanKey)(struct RedisModuleKey *, struct RedisModuleScanCursor *, mfs_redis_scan *,
                   void *arg);
    struct RedisModuleCallReply *(*Call)(struct RedisModuleCtx *, const char *command,
                                         const char *format, ...);
    struct RedisModuleCallReply *(*CallReplyArrayElement)(struct RedisModuleCallReply *, size_t);
    size_t (*CallReplyLength)(struct RedisModuleCallReply *);
    const char *(*CallReplyStringPtr)(struct RedisModuleCallReply *, size_t *);
    int (*CallReplyType)(struct RedisModuleCallReply *);
    long long (*CallReplyInteger)(struct RedisModuleCallReply *);
    void (*FreeCallReply)(struct RedisModuleCallReply *);
    int (*ReplyWithStringBuffer)(struct RedisModuleCtx *, const char *, size_t);
    int (*ReplyWithNull)(struct RedisModuleCtx *);
    int (*ReplyWithError)(struct RedisModuleCtx *, const char *);
    int (*ReplyWithLongLong)(struct RedisModuleCtx *, long long);
    int (*ReplyWithCallReply)(struct RedisModuleCtx *, struct RedisModuleCallReply *);
    int (*ReplyWithArray)(struct RedisModuleCtx *, long);
    void (*ReplySetArrayLength)(struct RedisModuleCtx *, long);
    int (*Replicate)(struct RedisModuleCtx *, const char *command, const char *format, ...);
    int (*ReplicateVerbatim)(struct RedisModuleCtx *);
    int (*SubscribeToServerEvent)(struct RedisModuleCtx *, struct mfs_redis_event,
                                  mfs_redis_on_event *);
    void *(*RegisterCommandFilter)(struct RedisModuleCtx *, mfs_redis_filter *, int flags);
    const struct RedisModuleString *(*CommandFilterArgGet)(struct RedisModuleCommandFilterCtx *,
                                                           int at);
    int (*CommandFilterArgReplace)(struct RedisModuleCommandFilterCtx *, int at,
                                   struct RedisModuleString *);
    int (*GetContextFlags)(struct RedisModuleCtx *);
    unsigned long long (*GetClientId)(struct RedisModuleCtx *);
    int (*GetClientInfoById)(void *info, uint64_t id);
    int (*DeauthenticateAndCloseClient)(struct RedisModuleCtx *, uint64_t id);
};

extern struct mfs_redis_api mfs_redis;

/* A function of the server's: its name, and where its pointer belongs in a table of such. */
struct mfs_redis_want {
    const char *name;
    size_t at;
};
#define MFS_REDIS_WANT(table, f)                                                                   \
    {                                                                                              \
        "RedisModule_" #f, offsetof(table, f)                                                      \
    }

/* Asks for n functions and writes their pointers into the table; MFS_REDIS_ERR: the server lacks
 * one. */
int mfs_redis_take(struct RedisModuleCtx *ctx, void *table, const struct mfs_redis_want *want,
                   size_t n);

/* Likewise for all of mfs_redis. */
int mfs_redis_bind(struct RedisModuleCtx *ctx);

#endif
