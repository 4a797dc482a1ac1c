/* The directory that a node's redis processes dump to: BASE/memefs-NAME-HASH/node-ID. BASE is where
 * dumps are kept as a rule (/var/tmp), where others work, guess names, and tidy up; the two below
 * are ours alone, and removed by mfs_trusted_dir_remove(). */
#ifndef MFS_LM_REDIS_DUMP_DIR_H
#define MFS_LM_REDIS_DUMP_DIR_H

#include "base/err.h"

/* Makes the two unless they are there. `path`, PATH_MAX bytes: absolute; afterwards without links.
 * 0, -EPERM when another user may change one of them, or another negative errno, with the
 * reason. */
int mfs_dump_dir_make(char *path, struct mfs_err *err);

/* For a process that is about to begin: path, which is made again if it has gone, or with a warning
 * `other`, which is there. */
const char *mfs_dump_dir_or(const char *path, const char *other);

#endif
