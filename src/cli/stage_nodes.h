/* Which nodes take part in staging, and by what command memefs is started there. */
#ifndef MFS_CLI_STAGE_NODES_H
#define MFS_CLI_STAGE_NODES_H

#include "stage/nodes.h"

/* `which` is "all" or "NAME,…", NULL: all; `launch` is what precedes the command, with {host} and
 * {node} for each node's, or without, then it is run once; NULL: ssh. `path` is on the mount;
 * `verb` is the memefs verb. 0, or a negative errno with the reason. */
int mfs_stage_nodes_find(struct mfs_stage_nodes *nodes, const char *which, const char *launch,
                         const char *path, const char *verb, struct mfs_err *err);
void mfs_stage_nodes_fini(struct mfs_stage_nodes *nodes);

#endif
