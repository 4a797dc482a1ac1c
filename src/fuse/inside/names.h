/* Paths of what requests are for, and names of programs, for who looks at requests: from what
 * look-ups have answered while somebody looked, from the directories and files that are under
 * leases, and from what the kernel tells of a process' open files. Bounded. Any thread; reads
 * /proc, and never a path of the mount. */
#ifndef MFS_FUSE_INSIDE_NAMES_H
#define MFS_FUSE_INSIDE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mfs_names;
struct mfs_meta;
struct mfs_nodeids;

/* `mount`: path of the mount. All must stay. NULL: ENOMEM. */
struct mfs_names *mfs_names_create(struct mfs_nodeids *nodeids, struct mfs_meta *meta,
                                   const char *mount);
void mfs_names_destroy(struct mfs_names *n); /* takes NULL */

void mfs_names_learn(struct mfs_names *n, uint64_t nodeid, uint64_t parent, const char *name);
/* `exchange`: what had the new name has the old one now. */
void mfs_names_renamed(struct mfs_names *n, uint64_t parent, const char *name, uint64_t new_parent,
                       const char *new_name, bool exchange);
/* Nobody looks any more. */
void mfs_names_forget(struct mfs_names *n);

/* Of the name in the directory, or with NULL of the inode, which thread `tid` may have open; from
 * the mount on: "." is the mount. "…/" stands for what is not known or does not fit, "" when
 * nothing is known. */
void mfs_names_path(struct mfs_names *n, uint64_t nodeid, const char *name, uint32_t tid, char *out,
                    size_t size);

/* Of a thread: its process, and that one's name. *pid: tid, and "" when it is gone. */
void mfs_names_program(struct mfs_names *n, uint32_t tid, uint32_t *pid, char *out, size_t size);

#endif
