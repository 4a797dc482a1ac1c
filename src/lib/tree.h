/* Directories with their parents. */
#ifndef MFS_LIB_TREE_H
#define MFS_LIB_TREE_H

#include <sys/types.h>

struct memefs;

/* Makes those that are not there. 0 also when all are. */
int mfs_lib_makedirs(struct memefs *fs, const char *path, mode_t mode);

/* One directory; what is wrong is not noted for memefs_error. */
int mfs_lib_mkdir(struct memefs *fs, struct memefs_file *at, const char *path, mode_t mode);

#endif
