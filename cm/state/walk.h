/* The files in a state directory. Block. */
#ifndef MFS_CM_STATE_WALK_H
#define MFS_CM_STATE_WALK_H

#include <stdbool.h>

#include "args/paths.h"

/* Calls each(path) for the entries of a directory that match the shell's pattern, in no order. What
 * is not there has no entries; no link in the path is followed (-ELOOP). Stops at the first return
 * that is not 0, and returns it. 0 or a negative errno. */
int mfs_walk(const char *dir, const char *pattern, int (*each)(void *arg, const char *path),
             void *arg);

/* Is that what a node's directory is called? */
bool mfs_walk_is_node(const char *path);

/* The directories of all nodes. */
int mfs_walk_node_dirs(const struct mfs_paths *p, int (*each)(void *arg, const char *path),
                       void *arg);

/* The files of all nodes that match. */
int mfs_walk_nodes(const struct mfs_paths *p, const char *pattern,
                   int (*each)(void *arg, const char *path), void *arg);

#endif
