/* What a Local Manager does to one redis process, as its ACL user MFS_REDIS_ADMIN. Blocking, each
 * call bounded by the timeout given at open; one thread at a time per connection. The sentence in
 * *err names the process and the cause. */
#ifndef MFS_STORE_ADMIN_ADMIN_H
#define MFS_STORE_ADMIN_ADMIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/crypto/mac.h"

struct mfs_admin;
struct mfs_cmd;

/* Connects to unix_path, or to host:port when that is NULL, and authenticates. */
int mfs_admin_open(struct mfs_admin **admin, const char *unix_path, const char *host, uint16_t port,
                   const char *password, int64_t timeout_ns, struct mfs_err *err);
void mfs_admin_close(struct mfs_admin *admin);

/* Makes the partition ready: where there is none yet, writes #super and, on partition 0, the root
 * directory (mode 01777, root's). An existing #super of another deployment, shape or format is
 * -EINVAL. Safe to repeat. */
struct mfs_admin_format {
    const char *deployment;
    uint32_t index, nparts, stripe_size;
};
int mfs_admin_format(struct mfs_admin *admin, const struct mfs_admin_format *f,
                     struct mfs_err *err);

struct mfs_admin_info {
    uint64_t used_memory, used_memory_rss, maxmemory; /* bytes */
    uint64_t not_counted;                             /* of used_memory, for maxmemory */
    uint64_t active, resident; /* of the allocator: pages in use, and all that it keeps; bytes */
    uint64_t copied;           /* by a fork that is at work; bytes */
    uint64_t keys;
    uint64_t net_in, net_out; /* bytes since start */
    /* since its start: executed; answered with an error; of these as memory is full */
    uint64_t commands, errors, out_of_memory;
    uint32_t pid, connections;
};
int mfs_admin_info(struct mfs_admin *admin, struct mfs_admin_info *info, struct mfs_err *err);

/* Of a partition's own counts. */
struct mfs_admin_counts {
    uint64_t inodes; /* that are there and have their home in it */
    uint64_t losses; /* of MFS_LOSSES_KEY */
};
/* The same in two steps, so that many processes are asked before the first is waited for, and with
 * the counts where they are wanted. After `ask` has returned 0 the next call for this process is
 * `told`, which waits until the timeout after `ask`. *counts (counts may be NULL) stays as it is
 * when it was not asked for, or the process does not tell, as it loads. */
int mfs_admin_ask(struct mfs_admin *admin, bool counts, struct mfs_err *err);
int mfs_admin_told(struct mfs_admin *admin, struct mfs_admin_info *info,
                   struct mfs_admin_counts *counts, struct mfs_err *err);

/* A process' name for the stream of commands that its replicas execute, from when there is one on;
 * a replica whose copy is whole has its source's. Another process has another one, also in the same
 * place. */
#define MFS_ADMIN_STREAM 41

/* How a process stands in replication. It answers that while it loads, too, with a delay. */
struct mfs_admin_replication {
    bool replica;                   /* of another; else it is its own master */
    bool link_up;                   /* a replica's: it has all, and follows */
    bool loading;                   /* reads a copy */
    char process[MFS_ADMIN_STREAM]; /* names it; "" unless `full` */
    char stream[MFS_ADMIN_STREAM];
    uint64_t offset;      /* what has been executed here, in bytes of the stream of commands */
    uint64_t used_memory; /* bytes; 0 unless `full` */
    uint64_t maxmemory;   /* bytes; 0 unless `full` */
    uint64_t keys;        /* 0 unless `full` */
    uint64_t full_copies; /* begun since its start, for replicas of it; 0 unless `full` */
    uint64_t saved_keys;  /* of the copy or dump it is making; 0 unless `full` */
    uint64_t loaded;      /* bytes of the copy that it reads; 0 unless `full` and `loading` */
};
int mfs_admin_replication(struct mfs_admin *admin, bool full, struct mfs_admin_replication *r,
                          struct mfs_err *err);

/* By what a process with that password of MFS_REDIS_ADMIN logs on to the one that it is to be a
 * copy of, as MFS_REDIS_COPY. 0 or a negative errno. */
int mfs_admin_copy_word(const char *password, char word[MFS_MAC_TEXT]);
/* From now on only a process that has that word may be a copy of this process; the links of all
 * others are closed. `replica`: it is to follow, and need not have bytes of files of which no
 * replica is wanted (decisions/0046); else it is sent everything. Harmless to repeat, which does
 * not make it the other. Refused (-EAGAIN) while this process serves by terms with
 * another replica (src/partition/replica/term.h). */
int mfs_admin_admit(struct mfs_admin *admin, const char *word, bool replica, struct mfs_err *err);
/* Makes the process a copy of host:port, to which it logs on as MFS_REDIS_COPY with that word.
 * Returns at once; the copy is whole when `link_up` says so. */
int mfs_admin_replicate(struct mfs_admin *admin, const char *host, uint16_t port, const char *word,
                        struct mfs_err *err);
/* A replica that is whole does not connect again when its link breaks: it keeps what it has when
 * another process takes its source's place. */
int mfs_admin_hold_copy(struct mfs_admin *admin, struct mfs_err *err);
/* Makes it its own master, with what has arrived. */
int mfs_admin_replicate_none(struct mfs_admin *admin, struct mfs_err *err);
/* Lets a replica tell its master now how far it is; by itself it does so once a second. After a
 * full copy the master waits for that before it sends what was written meanwhile. */
int mfs_admin_acknowledge(struct mfs_admin *admin, struct mfs_err *err);

/* Closes the connections by which no client has logged on. A client that was just about to tries
 * again. */
int mfs_admin_drop_strangers(struct mfs_admin *admin, struct mfs_err *err);

/* Gives MFS_REDIS_USER other rights: ACL rules separated by blanks. */
int mfs_admin_set_user(struct mfs_admin *admin, const char *rules, struct mfs_err *err);

/* Both in one round trip, as clients wait: gives MFS_REDIS_USER other rights and tells the offset
 * after that … */
int mfs_admin_halt(struct mfs_admin *admin, const char *rules, uint64_t *offset,
                   struct mfs_err *err);
/* … and replicate_none and set_user together. */
int mfs_admin_promote(struct mfs_admin *admin, const char *rules, struct mfs_err *err);

/* What a cut through all partitions needs (image.h). `changes` counts whatever changes the data. */
struct mfs_admin_cut {
    uint64_t changes;
    uint64_t used_memory; /* bytes */
};
/* No client's command that changes anything is executed for at most `ms`; clients that sent one
 * wait. One round trip, *cut is as of after that. */
int mfs_admin_hold(struct mfs_admin *admin, uint32_t ms, struct mfs_admin_cut *cut,
                   struct mfs_err *err);
/* Such commands are executed again; *cut is as of before that. Harmless when nothing is held. */
int mfs_admin_resume(struct mfs_admin *admin, struct mfs_admin_cut *cut, struct mfs_err *err);

/* What stands under MFS_LOSSES_KEY; 0: nothing was ever lost in this partition. */
int mfs_admin_losses(struct mfs_admin *admin, uint64_t *losses, struct mfs_err *err);

/* After a process has loaded an image: it belongs to that deployment, whatever the name of the one
 * that the image is of, and the sessions in it are dead: with their opens, locks and leases they
 * go. Several calls, each bounded. */
int mfs_admin_restored(struct mfs_admin *admin, const char *deployment, struct mfs_err *err);

int mfs_admin_set(struct mfs_admin *admin, const char *option, const char *value,
                  struct mfs_err *err); /* CONFIG SET */
/* What a process sends to replicas from now on goes from memory, and as fast as it can. */
int mfs_admin_send_freely(struct mfs_admin *admin, struct mfs_err *err);
int mfs_admin_flush(struct mfs_admin *admin,
                    struct mfs_err *err); /* drops all data, functions stay */

int mfs_admin_set_maxmemory(struct mfs_admin *admin, uint64_t bytes, struct mfs_err *err);
int mfs_admin_purge(struct mfs_admin *admin, struct mfs_err *err); /* MEMORY PURGE */

/* Any other command: cmd->argc and argv are given, part is ignored, the results are set as by
 * mfs_store_exec and released by mfs_cmds_fini, in any case. Returns cmd->rc. */
int mfs_admin_call(struct mfs_admin *admin, struct mfs_cmd *cmd, struct mfs_err *err);

/* Asks the process to exit without saving; 0 when the connection ended. */
int mfs_admin_shutdown(struct mfs_admin *admin, struct mfs_err *err);

/* What the journal of a partition says (src/partition/journal/journal.h, decisions/0016). */
struct mfs_admin_journal {
    bool fenced;            /* this process was not to serve by itself when it was revived */
    uint64_t stripes, lost; /* that were lost with it, and their bytes */
    bool whole;             /* this process could be revived now */
    uint64_t bytes;         /* of the journal, in memory beside the data */
    /* The process before this one had a whole copy, and nothing was served since: a copy that is
     * as far in that stream has all that was acknowledged. "": it is not so. */
    char stream[MFS_ADMIN_STREAM];
    uint64_t offset;
};
int mfs_admin_journal(struct mfs_admin *admin, struct mfs_admin_journal *j, struct mfs_err *err);
/* Tells it that there is a whole copy of this process, which is to take its place: then it keeps
 * note of how far it is. Until it serves again after it was fenced. */
int mfs_admin_copied(struct mfs_admin *admin, struct mfs_err *err);

#endif
