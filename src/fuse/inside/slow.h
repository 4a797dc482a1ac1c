/* Requests that took long: the last so many, and the log's lines of them, of which only so many
 * come each second. Any thread. */
#ifndef MFS_FUSE_INSIDE_SLOW_H
#define MFS_FUSE_INSIDE_SLOW_H

#include <stdint.h>

#include "trace/line.h"

struct mfs_slow;

struct mfs_slow *mfs_slow_create(void);    /* NULL: ENOMEM, or no thread */
void mfs_slow_destroy(struct mfs_slow *s); /* takes NULL; nothing is added any more */

/* How many lines were left out is told within two seconds. */
void mfs_slow_add(struct mfs_slow *s, const struct mfs_trace_line *l);

/* Calls `each` for them, the oldest first; it must not call back. */
void mfs_slow_each(struct mfs_slow *s, void (*each)(void *arg, const struct mfs_trace_line *l),
                   void *arg);

#endif
