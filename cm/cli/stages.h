/* The stages of the work, each from its mark (`cm mark`) to the next one, for `cm report`. */
#ifndef MFS_CM_CLI_STAGES_H
#define MFS_CM_CLI_STAGES_H

#include "args/paths.h"
#include "cm/history/history.h"

#define MFS_STAGES_MOST 200 /* the last ones */

struct mfs_stages;

/* What the events and the history say. Blocks as reading files does. 0 or a negative errno; no
 * events, no stages. */
int mfs_stages_read(const struct mfs_paths *p, const struct mfs_history *h,
                    struct mfs_stages **out);
void mfs_stages_free(struct mfs_stages *s); /* takes NULL */

/* Appends them as a table of comma-separated values with a head (RFC 4180, lines end with LF), or
 * as a JSON array. 0 or -ENOMEM. */
int mfs_stages_csv(const struct mfs_stages *s, struct mfs_buf *out);
int mfs_stages_json(const struct mfs_stages *s, struct mfs_buf *out);

#endif
