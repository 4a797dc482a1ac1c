/* The directory that a node's redis processes dump to, which lies where dumps are kept as a rule,
 * and where others tidy up. */
#ifndef MFS_LM_DUMP_DIR_H
#define MFS_LM_DUMP_DIR_H

/* Makes it and the one it is in, 0700, unless they are there. 0, -EPERM when somebody else may have
 * a hand in one of them, or another negative errno. */
int mfs_dump_dir_make(const char *path);

/* For a process that is about to begin: path, which is made again if it has gone, or with a warning
 * `other`, which is there. */
const char *mfs_dump_dir_or(const char *path, const char *other);

#endif
