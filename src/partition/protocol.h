/* The contract between a partition's module (src/partition) and its clients: the commands and what
 * they answer; layout.h has the bytes of records and entries. What both sides must agree on is
 * here, and only here: the module registers what the table lists, lm derives clients' rights from
 * it (store/rights.h), and the client knows which answers wait for a replica (store/confirm.c). */
#ifndef MFS_PARTITION_PROTOCOL_H
#define MFS_PARTITION_PROTOCOL_H

/* The key that counts how often bytes of files were lost in the partition; it never gets less. */
#define MFS_LOSSES_KEY "#losses"

/* ---- commands -------------------------------------------------------------------------------- */

/* What a command does. From this follow its flags at the server, and from how many words on the
 * client waits until the replica has what it changed. */
#define MFS_CONFIRM_NEVER  0xffffffffU
#define MFS_CONFIRM_ALWAYS 0U
#define MFS_OPEN_MARKS     4 /* words of an open that only marks the session as an opener */

#define MFS_EFFECTS(EACH)                                                                          \
    /* nothing */                                                                                  \
    EACH(READS, "readonly", MFS_CONFIRM_NEVER)                                                     \
    /* nothing, at once */                                                                         \
    EACH(ASKS, "readonly fast", MFS_CONFIRM_NEVER)                                                 \
    /* marks of sessions (what is open, leases): they are made again, or run out */                \
    EACH(MARKS, "write", MFS_CONFIRM_NEVER)                                                        \
    /* marks an opener; with more words it empties the file */                                     \
    EACH(OPENS, "write", MFS_OPEN_MARKS + 1)                                                       \
    /* changes data or names, also when memory is full */                                          \
    EACH(CHANGES, "write", MFS_CONFIRM_ALWAYS)                                                     \
    /* changes data or names, and is refused when memory is full */                                \
    EACH(GROWS, "write deny-oom", MFS_CONFIRM_ALWAYS)                                              \
    /* makes an empty partition, for Local Managers */                                             \
    EACH(FORMATS, "write admin", MFS_CONFIRM_ALWAYS)                                               \
    /* of the process, for Local Managers */                                                       \
    EACH(MANAGES, "readonly admin", MFS_CONFIRM_NEVER)                                             \
    /* likewise, also while it follows another process */                                          \
    EACH(TERMS, "admin allow-loading allow-stale", MFS_CONFIRM_NEVER)                              \
    /* proves the process to a peer that has not logged on */                                      \
    EACH(PROVES, "no-auth allow-loading allow-stale allow-busy deny-script fast", MFS_CONFIRM_NEVER)

#define MFS_EFFECT_NAME(effect, flags, confirm) MFS_##effect,
enum mfs_effect { MFS_EFFECTS(MFS_EFFECT_NAME) MFS_NEFFECTS };

/* The module's commands for clients, without "mfs_": name, how many words a command has at least,
 * how many bytes its first argument has (0: any), effect. Arguments and answers stand above each
 * command's function. */
#define MFS_CLIENT_COMMANDS(EACH)                                                                  \
    EACH(lookup, 6, 8, MARKS)                                                                      \
    EACH(glance, 6, 8, READS)                                                                      \
    EACH(create, 8, 8, GROWS)                                                                      \
    EACH(replace, 10, 8, GROWS)                                                                    \
    EACH(unlink, 7, 8, CHANGES)                                                                    \
    EACH(unref, 5, 8, CHANGES)                                                                     \
    EACH(open, 4, 8, OPENS)                                                                        \
    EACH(close, 4, 8, MARKS)                                                                       \
    EACH(commit, 10, 8, GROWS)                                                                     \
    EACH(commit0, 10, 8, CHANGES)                                                                  \
    EACH(setattr, 12, 8, CHANGES)                                                                  \
    EACH(ctime, 4, 8, CHANGES)                                                                     \
    EACH(setxattr, 9, 8, GROWS)                                                                    \
    EACH(removexattr, 7, 8, CHANGES)                                                               \
    EACH(truncate, 8, 8, CHANGES)                                                                  \
    EACH(append, 8, 8, GROWS)                                                                      \
    EACH(append_place, 8, 8, CHANGES)                                                              \
    EACH(append_end, 8, 8, CHANGES)                                                                \
    EACH(append_break, 3, 8, CHANGES)                                                              \
    EACH(sput, 4, 0, GROWS)                                                                        \
    EACH(strim, 3, 0, CHANGES)                                                                     \
    EACH(szero, 4, 0, CHANGES)                                                                     \
    EACH(sdel, 2, 0, CHANGES)                                                                      \
    EACH(sfit, 2, 0, GROWS)                                                                        \
    EACH(disown, 3, 8, MARKS)                                                                      \
    EACH(told, 3, 8, MARKS)                                                                        \
    EACH(drop_entry, 4, 8, CHANGES)                                                                \
    EACH(put, 5, 8, GROWS)                                                                         \
    EACH(link, 6, 8, GROWS)                                                                        \
    EACH(link_begin, 6, 8, GROWS)                                                                  \
    EACH(tmpfile, 4, 2, GROWS)                                                                     \
    EACH(rename, 16, 8, CHANGES)                                                                   \
    EACH(rename_leaving, 16, 8, GROWS)                                                             \
    EACH(rename_begin, 10, 8, CHANGES)                                                             \
    EACH(rename_begin_leaving, 10, 8, GROWS)                                                       \
    EACH(rename_commit, 16, 8, CHANGES)                                                            \
    EACH(rename_commit_leaving, 16, 8, GROWS)                                                      \
    EACH(settle, 5, 8, CHANGES)                                                                    \
    EACH(reparent, 5, 8, CHANGES)                                                                  \
    EACH(move_lock, 3, 16, CHANGES)                                                                \
    EACH(move_unlock, 2, 16, CHANGES)                                                              \
    EACH(rmdir, 6, 8, CHANGES)                                                                     \
    EACH(seal_home, 3, 8, CHANGES)                                                                 \
    EACH(seal, 3, 8, CHANGES)                                                                      \
    EACH(unseal, 3, 8, CHANGES)                                                                    \
    EACH(tomb, 2, 8, CHANGES)                                                                      \
    EACH(kill, 3, 8, CHANGES)                                                                      \
    EACH(rmdir_commit, 6, 8, CHANGES)                                                              \
    EACH(ptime, 4, 8, CHANGES)                                                                     \
    EACH(nlink, 5, 8, CHANGES)                                                                     \
    EACH(dirbit, 3, 8, CHANGES)                                                                    \
    EACH(abort, 2, 16, CHANGES)                                                                    \
    EACH(forget, 2, 16, CHANGES)                                                                   \
    EACH(lease, 3, 8, MARKS)                                                                       \
    EACH(unlease, 4, 8, MARKS)                                                                     \
    EACH(holders, 3, 8, READS)                                                                     \
    EACH(getlk, 6, 8, READS)                                                                       \
    EACH(setlk, 7, 8, CHANGES)                                                                     \
    EACH(in_way, 7, 8, READS)                                                                      \
    EACH(closing, 3, 8, MARKS)                                                                     \
    EACH(unlock_session, 3, 8, CHANGES)                                                            \
    EACH(wait, 4, 16, CHANGES)                                                                     \
    EACH(wait_over, 3, 16, CHANGES)                                                                \
    EACH(session, 4, 8, CHANGES)                                                                   \
    EACH(session_end, 2, 8, CHANGES)                                                               \
    EACH(sessions_dead, 1, 0, READS)                                                               \
    EACH(session_bury, 2, 8, CHANGES)                                                              \
    EACH(sessions_keep, 2, 0, CHANGES)                                                             \
    EACH(reopen, 4, 8, CHANGES)                                                                    \
    EACH(chores, 3, 8, CHANGES)                                                                    \
    EACH(expire, 3, 8, CHANGES)                                                                    \
    EACH(tidy, 3, 8, CHANGES)                                                                      \
    EACH(fsck_record, 4, 8, CHANGES)                                                               \
    EACH(fsck_entry, 5, 8, CHANGES)                                                                \
    EACH(fsck_loose, 3, 1, CHANGES)                                                                \
    EACH(fsck_orphan, 2, 8, CHANGES)                                                               \
    EACH(fsck_expire, 3, 0, CHANGES)                                                               \
    EACH(fsck_seq, 3, 0, CHANGES)                                                                  \
    EACH(fsck_lost, 4, 8, CHANGES)                                                                 \
    EACH(scan, 4, 0, READS)                                                                        \
    EACH(alone, 1, 0, ASKS)                                                                        \
    EACH(reads, 2, 0, MARKS)                                                                       \
    EACH(here, 4, 0, GROWS)

/* Those for others: Local Managers, and the process that a replica follows (slost). */
#define MFS_OTHER_COMMANDS(EACH)                                                                   \
    EACH(slost, 3, 0, CHANGES)                                                                     \
    EACH(format, 7, 0, FORMATS)                                                                    \
    EACH(journal, 1, 0, MANAGES)                                                                   \
    EACH(term, 1, 0, TERMS)                                                                        \
    EACH(term_consent, 1, 0, TERMS)                                                                \
    EACH(term_withdraw, 1, 0, TERMS)                                                               \
    EACH(term_over, 1, 0, TERMS)                                                                   \
    EACH(prove, 1, 0, PROVES)

#define MFS_COMMANDS(EACH) MFS_CLIENT_COMMANDS(EACH) MFS_OTHER_COMMANDS(EACH)

/* The server's own commands that clients may use, with their effects. */
#define MFS_SERVER_COMMANDS(EACH)                                                                  \
    /* of the connection (auth needs no right) */                                                  \
    EACH("ping", READS)      /* store/fence.c, subscriber.c */                                     \
    EACH("subscribe", READS) /* store/subscriber.c: notices */                                     \
    EACH("publish", READS)   /* meta/coherence/notices.c */                                        \
    EACH("wait", READS)      /* store/confirm.c */                                                 \
    /* of the process: room left, for statfs and lm's figures */                                   \
    EACH("info", READS)                                                                            \
    EACH("dbsize", READS)                                                                          \
    /* stripes, records, entries */                                                                \
    EACH("get", READS)                                                                             \
    EACH("getrange", READS)                                                                        \
    EACH("set", CHANGES)                                                                           \
    EACH("setrange", CHANGES)                                                                      \
    EACH("strlen", READS)                                                                          \
    EACH("hget", READS)                                                                            \
    EACH("hmget", READS)                                                                           \
    EACH("hdel", CHANGES)                                                                          \
    EACH("hexists", READS)                                                                         \
    EACH("hkeys", READS)                                                                           \
    EACH("hlen", READS)                                                                            \
    EACH("hscan", READS)                                                                           \
    EACH("sscan", READS) /* fsck/scan/scan.c */                                                    \
    EACH("exists", READS)                                                                          \
    EACH("del", CHANGES)                                                                           \
    EACH("pexpire", MARKS)                                                                         \
    EACH("persist", MARKS)                                                                         \
    EACH("scan", READS) /* memefs fsck; stripes that belong to no inode */

/* ---- answers --------------------------------------------------------------------------------- */

/* How an answer begins that says more than that it is done: a byte, or the first element of an
 * array. Not each command has each; what follows stands above the command's function. */
enum mfs_answer_status {
    MFS_ANSWER_DONE = 0,
    MFS_ANSWER_OPENED = 1,     /* create: the name was there, and the file is open now */
    MFS_ANSWER_ELSEWHERE = 1,  /* unlink, rmdir: the inode's home is another partition */
    MFS_ANSWER_EXISTS = 2,     /* create: the name was there */
    MFS_ANSWER_INTENT = 3,     /* the intent of a rename is in the way */
    MFS_ANSWER_SEALED = 4,     /* the directory is, or may be, being removed */
    MFS_ANSWER_SPREAD = 5,     /* rmdir: it is sealed here, and has other shards */
    MFS_ANSWER_LEFTOVER = 6,   /* all that is left in the shard is the source of a rename */
    MFS_ANSWER_NEEDS_LOCK = 7, /* rename: the lock on moves is to be held for these directories */
    MFS_ANSWER_NEEDS_SEAL = 8  /* rename: the directory that is replaced is to be sealed */
};

/* What has become of an inode that has a name or an opener less. */
enum mfs_unref_status {
    MFS_UNREF_STAYS = 0,
    MFS_UNREF_STRIPES = 1, /* freed, but for stripes 1 …, which the client deletes */
    MFS_UNREF_FREED = 2,
    MFS_UNREF_GONE = 3,          /* it was not there */
    MFS_UNREF_REVOKE_PENDING = 4 /* no name is left; stays until mfs_told: leases are revoked */
};

/* What glance says of a name. */
enum mfs_glance_status {
    MFS_GLANCE_ABSENT = 0,
    MFS_GLANCE_FILE = 1, /* and the file follows */
    MFS_GLANCE_LOOK = 2, /* it is there, and takes a look-up */
    MFS_GLANCE_ROOM = 3  /* a file, for which there was no room */
};

/* Beside MFS_DROP_*: the appender keeps the place behind the end when its bytes are stored, for its
 * next append (metadata.md, "Leases of a file's end"). */
enum { MFS_APPEND_KEEP = 256 };

/* P ino: a session, a number, and this when the place is kept so. */
enum { MFS_PLACE_LEN = 16, MFS_PLACE_LEASED = 'L' };

/* A value of #reads, and an item of mfs_reads. */
enum { MFS_READS_LEN = 12, MFS_READS_ITEM = 20 };

/* How an answer of append ends. */
enum mfs_append_status { MFS_APPEND_STORED = 'S', MFS_APPEND_PLACE = 'P' };

/* How a transaction's outcome begins. */
enum mfs_outcome { MFS_OUTCOME_ABORTED = 'A', MFS_OUTCOME_COMMITTED = 'C' };

/* ---- times and limits ------------------------------------------------------------------------ */

/* So long after it was last granted a partition knows of a lease. */
#define MFS_LEASE_MS 120000

/* So long the shards of a removed directory take no names. */
#define MFS_TOMBSTONE_MS 120000

/* How long an outcome is remembered that no client should ask for any more: longer than a client
 * may be stopped before it sends what was decided. */
#define MFS_TXN_LIFE_MS (24LL * 3600 * 1000)

/* From one owner that waits for a lock to the next, at most, when a cycle is searched for. */
#define MFS_WAIT_STEPS 16

#endif
