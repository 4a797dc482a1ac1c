/* The journal of what a partition knows: everything but the bytes of stripes. When the process is
 * killed, another one replays it and knows it again, and of each stripe that it had so many bytes,
 * which are lost (decisions/0016).
 *
 * What was changed is marked when it is changed: by our own commands (keys.h), by
 * all others through the server's notifications. Before the server sleeps, which is before it sends
 * the answers, the present state of all that is marked is written, in one batch: so whatever was
 * answered is in the journal. The file is in memory (lm chooses where), nothing is synchronised.
 *
 * A journal that has grown beyond twice its content is written anew, some keys at a time, while
 * changes go to both; the new one replaces the old one when it is whole. One that can't be written
 * (no space) is emptied, which is said in the log, and begun anew once a second: a process that
 * dies meanwhile is lost with all it held. */
#ifndef MFS_PARTITION_JOURNAL_JOURNAL_H
#define MFS_PARTITION_JOURNAL_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "partition/journal/point.h"
#include "partition/span.h"

struct mfs_journal_status {
    bool fenced;       /* clients were refused when the last process died, or it had a whole copy:
                        * this one was not to serve by itself */
    bool whole;        /* could be replayed now */
    uint64_t stripes;  /* that the replay found, and their bytes: what was lost */
    uint64_t lost;     /* bytes */
    uint64_t bytes;    /* of the journal */
    uint64_t rewrites; /* how often it was written anew */
    /* How far the last process had got, of which there was a whole copy, when it gave its last
     * answer; a copy that is as far has all that was acknowledged. None once clients were served
     * since. */
    struct mfs_journal_point died_at;
};

/* Has the server tell of changes and keeps the journal at `path` from now on: a new one, or
 * (`replay`) that of a process that has died, whose state this one takes up first. MFS_REDIS_ERR
 * with a line in the log. Called while the module is loaded; at most once. */
int mfs_journal_open(struct RedisModuleCtx *ctx, struct mfs_span path, bool replay);

/* A command of ours is done: its answer may leave before the server tells us that it sleeps. */
void mfs_journal_settle(struct RedisModuleCtx *ctx);

struct mfs_journal_status mfs_journal_status(void);

/* There is a whole copy of this process, which is to take its place: from now on the journal tells
 * how far each batch is in the copy's stream, and the process that replays it lets no client in.
 * Until clients are let in after they were refused: then the copy counts no more. */
void mfs_journal_copied(struct RedisModuleCtx *ctx);

#endif
