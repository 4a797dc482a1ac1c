/* Clearing a deployment away without its cm, by what is recorded in the state directory. Blocks,
 * bounded. Of nodes elsewhere (cm/provider/traits.h) nothing is looked at but cm's own files and
 * commands: their Local Managers clear away what is theirs. */
#ifndef MFS_CM_NODES_CLEANUP_H
#define MFS_CM_NODES_CLEANUP_H

#include <stdbool.h>

#include "base/err.h"
#include "args/paths.h"

/* Is this a machine with a node of a deployment whose cm is on another one? Then nothing here is
 * ours to clear away. */
bool mfs_cleanup_is_node(const struct mfs_paths *p);

/* cm has moved to another machine: removes what it kept here, and where there is no node, all. */
void mfs_cleanup_moved(const struct mfs_paths *p);

/* May a deployment have this state directory? It becomes ours alone, and what is called like files
 * of ours is removed in the end. 0, -EEXIST: something else is in it; or another negative errno. */
int mfs_cleanup_check_place(const struct mfs_paths *p, struct mfs_err *err);

/* Is anything recorded there? */
bool mfs_cleanup_needed(const struct mfs_paths *p);

/* Does any recorded redis process still run, whatever the state says? Then there are data, and the
 * deployment is alive without a cm. */
bool mfs_cleanup_living(const struct mfs_paths *p);

/* Ends Local Managers (which end their own), then clients, mounts with their binds, and redis
 * processes that are still there; each is recognised by pid, start time and name. Takes at most
 * some 40 s. 0, or -EBUSY with what could not be ended. Does not touch cm itself. */
int mfs_cleanup_processes(const struct mfs_paths *p, struct mfs_err *err);

/* Kills, without waiting, what is recorded of one node whose Local Manager has ended. True while
 * any of it is alive. Does not block. */
bool mfs_cleanup_node_processes(const struct mfs_paths *p, uint32_t node);

/* Detaches dead mounts of that node and binds of them, and removes its directory. 0 or a negative
 * errno. */
int mfs_cleanup_node_files(const struct mfs_paths *p, uint32_t node, struct mfs_err *err);

/* Removes what cm keeps of the command that it ran to start a node elsewhere. */
void mfs_cleanup_start_files(const struct mfs_paths *p, uint32_t node);

/* Removes the state and, unless keep_logs, the logs and the directory, which stays if there is
 * something else in it. With keep_logs it stays even if empty: a start holds its lock and goes on
 * there. */
int mfs_cleanup_files(const struct mfs_paths *p, bool keep_logs, struct mfs_err *err);

#endif
