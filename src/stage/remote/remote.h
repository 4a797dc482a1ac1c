/* Files of servers, by HTTP(S) and S3, as sources and targets of a run.
 *
 * Source: RFC 9110 (ranges, conditions); Amazon S3 API reference, version 2006-03-01. Times and
 * modes of objects are in metadata as rclone has them: mtime (seconds), mode (octal). */
#ifndef MFS_STAGE_REMOTE_REMOTE_H
#define MFS_STAGE_REMOTE_REMOTE_H

#include "stage/impl.h"

bool mfs_stage_is_url(const char *text);
bool mfs_stage_is_prefix(const char *text); /* "s3://BUCKET/…/" or "s3://BUCKET" */
/* The last name of a URL's path, decoded, in out[n]; NULL: none that a file can have. */
const char *mfs_stage_url_name(const char *url, char *out, size_t n);

/* Finds the key, if the plan needs one. *r may become NULL. 0, or a negative errno with the reason.
 */
int mfs_stage_remote_create(struct mfs_stage_remote **r, const struct mfs_stage_plan *plan,
                            struct mfs_err *err);
void mfs_stage_remote_destroy(struct mfs_stage_remote *r); /* takes NULL */

/* The item's `from` is a URL of a file; adds its task. */
void mfs_stage_get(struct mfs_stage_item *i);

/* Calls for each key below the prefix, without it. Blocks. 0, or a negative errno with the reason.
 */
int mfs_stage_each_object(struct mfs_stage *s, const char *prefix,
                          void (*each)(void *arg, const char *key), void *arg, struct mfs_err *err);

/* Adds tasks for all that is at and below the entry's path, with the plan's target, a URL, as the
 * target. */
void mfs_stage_send(struct mfs_stage_dir *top, const struct mfs_stage_entry *e);

#endif
