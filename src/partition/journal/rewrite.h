/* Writing the journal anew beside the one that counts, some keys at a time. */
#ifndef MFS_PARTITION_JOURNAL_REWRITE_H
#define MFS_PARTITION_JOURNAL_REWRITE_H

#include "partition/journal/file.h"
#include "partition/journal/format.h"
#include "partition/journal/point.h"

/* Adds what every journal begins with. */
void mfs_journal_add_head(struct mfs_answer *batch, bool fenced,
                          const struct mfs_journal_point *point);

/* Begins one. What changes from now on has to be written to both files. 0 or a negative errno. */
int mfs_journal_rewrite_begin(struct mfs_journal_file *f, bool fenced,
                              const struct mfs_journal_point *point);
/* Goes on with it for a moment, if one is under way (f->next_fd); all that is marked has been
 * written before. 1: it has become the journal; 0; or a negative errno: it was given up. */
int mfs_journal_rewrite_step(struct RedisModuleCtx *ctx, struct mfs_journal_file *f);

#endif
