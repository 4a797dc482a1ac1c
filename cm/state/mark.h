/* The name of a stage, which `cm mark` notes as an event. Pure. */
#ifndef MFS_CM_STATE_MARK_H
#define MFS_CM_STATE_MARK_H

#include "base/err.h"

#define MFS_MARK_EVENT "mark"
#define MFS_MARK_MAX   200 /* bytes */

/* 1 to MFS_MARK_MAX bytes of UTF-8 without control characters, not only blanks. 0, or -EINVAL with
 * the reason. */
int mfs_mark_check(const char *text, struct mfs_err *err);

#endif
