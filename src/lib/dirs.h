/* Listings of directories. */
#ifndef MFS_LIB_DIRS_H
#define MFS_LIB_DIRS_H

struct memefs_dir;

void mfs_lib_closedir(struct memefs_dir *dir);

#endif
