/* What clients may do in a partition: the one list of the commands that MFS_REDIS_USER may use,
 * from which lm makes the user's ACL rules. Everything else is refused: configuration, scripts,
 * other users, replication, whatever touches every key at once.
 *
 * A command that is missing is refused with NOPERM. Add a line, and who needs it; unit tests run
 * under these rules, so one of them will ask for it. Rules apply inside functions, too. */
#ifndef MFS_STORE_RIGHTS_H
#define MFS_STORE_RIGHTS_H

#define MFS_CLIENT_COMMANDS(MAY)                                                                   \
    /* of the connection (auth needs no right) */                                                  \
    MAY("ping")      /* fence.c, subscriber.c */                                                   \
    MAY("subscribe") /* subscriber.c: notices */                                                   \
    MAY("publish")   /* meta/notices.c */                                                          \
    MAY("wait")      /* confirm.c */                                                               \
    /* of the process: room left, for statfs and lm's figures */                                   \
    MAY("info")                                                                                    \
    MAY("dbsize")                                                                                  \
    /* functions, which only lm loads */                                                           \
    MAY("fcall")                                                                                   \
    MAY("fcall_ro")                                                                                \
    /* stripes, records, entries: by clients and in functions */                                   \
    MAY("get")                                                                                     \
    MAY("getrange")                                                                                \
    MAY("set")                                                                                     \
    MAY("setrange")                                                                                \
    MAY("strlen")                                                                                  \
    MAY("incr")                                                                                    \
    MAY("hget")                                                                                    \
    MAY("hmget")                                                                                   \
    MAY("hgetall")                                                                                 \
    MAY("hset")                                                                                    \
    MAY("hdel")                                                                                    \
    MAY("hexists")                                                                                 \
    MAY("hlen")                                                                                    \
    MAY("hkeys")                                                                                   \
    MAY("hincrby")                                                                                 \
    MAY("hscan")                                                                                   \
    MAY("hrandfield")                                                                              \
    MAY("sadd")                                                                                    \
    MAY("srem")                                                                                    \
    MAY("smembers")                                                                                \
    MAY("sscan") /* fsck/scan.c */                                                                 \
    MAY("srandmember")                                                                             \
    MAY("exists")                                                                                  \
    MAY("del")                                                                                     \
    MAY("unlink")                                                                                  \
    MAY("rename")                                                                                  \
    MAY("copy")                                                                                    \
    MAY("expire")                                                                                  \
    MAY("pexpire")                                                                                 \
    MAY("persist")                                                                                 \
    MAY("ttl")                                                                                     \
    MAY("time")                                                                                    \
    MAY("scan")         /* memefs fsck; stripes that nobody knows */                               \
    MAY("memory|usage") /* functions/fsck.lua, stripe_keys.lua */                                  \
    /* src/partition */                                                                            \
    MAY("mfs_lookup")                                                                              \
    MAY("mfs_create")                                                                              \
    MAY("mfs_unlink")                                                                              \
    MAY("mfs_unref")                                                                               \
    MAY("mfs_open")                                                                                \
    MAY("mfs_close")                                                                               \
    MAY("mfs_commit")                                                                              \
    MAY("mfs_commit0")                                                                             \
    MAY("mfs_drop")                                                                                \
    MAY("mfs_disown")                                                                              \
    MAY("mfs_recount")                                                                             \
    MAY("mfs_told")                                                                                \
    MAY("mfs_sput")                                                                                \
    MAY("mfs_lease")                                                                               \
    MAY("mfs_holders")                                                                             \
    MAY("mfs_getlk")                                                                               \
    MAY("mfs_setlk")                                                                               \
    MAY("mfs_in_way")                                                                              \
    MAY("mfs_closing")                                                                             \
    MAY("mfs_unlock_session")                                                                      \
    MAY("mfs_alone") /* confirm.c */                                                               \
    MAY("mfs_scan")

/* The same as ACL rules, separated by blanks, that replace those the user has. The only channels
 * are those of notices to a session. */
#define MFS_CLIENT_MAY(command) " +" command
#define MFS_CLIENT_RIGHTS       "-@all resetchannels &N*" MFS_CLIENT_COMMANDS(MFS_CLIENT_MAY)

/* A fenced process' (src/store/fence.c): nothing. Without channels, connections that subscribed are
 * closed: they would wait for nothing. */
#define MFS_CLIENT_RIGHTS_FENCED "-@all resetchannels"

#endif
