/* Housekeeping that needs a search of all partitions: what clients that died had open or locked,
 * stripes that they stored and never committed, counts of directories that they did not get to. A
 * session that dies stays in #sessions until one client has searched, by looks as memefs fsck makes
 * them, and has mended what is safe to mend while clients go on (fsck.h, `leaks`). So all of it
 * ends by itself, about a minute after the death when partitions answer.
 *
 * One client at a time does so; when that dies, another one begins anew. A thread of its own. */
#ifndef MFS_FSCK_TIDY_H
#define MFS_FSCK_TIDY_H

#include <stdint.h>

#include "meta/meta.h"
#include "store/store.h"

struct mfs_tidy;

struct mfs_tidy_opts {
    uint64_t memory;  /* bytes that a search may take, roughly; 0: any. With less it takes longer */
    int64_t pause;    /* ns between two looks; 0: as in fsck.h */
    int64_t interval; /* ns from one look for dead sessions to the next; 0: 5 s */
};

/* Both have to stay until mfs_tidy_stop. 0 or a negative errno. */
int mfs_tidy_start(struct mfs_tidy **tidy, struct mfs_store *store, struct mfs_meta *meta,
                   const struct mfs_tidy_opts *opts);
/* Waits for commands under way. Takes NULL. */
void mfs_tidy_stop(struct mfs_tidy *tidy);

/* One search, if a session has died whose leftovers no client has searched for yet, and none does.
 * 1: done; -EAGAIN: done, something is left, and it is worth another try; 0: there was nothing to
 * do; or another negative errno. The thread does that when it is due; for tests, whose interval is
 * longer than they take. */
int mfs_tidy_once(struct mfs_tidy *tidy);

#endif
