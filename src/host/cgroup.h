/* Limits of memory that control groups set, of both versions: `memory.max` (v2) and
 * `memory.limit_in_bytes` (v1) of a process' group and of all above it that can be seen. In a
 * container its own group is often all that can be. Any thread; reads files, which do not block. */
#ifndef MFS_HOST_CGROUP_H
#define MFS_HOST_CGROUP_H

#include <stdint.h>

#define MFS_CGROUP_ROOT "/sys/fs/cgroup"

/* A group, as its directory, that has a limit; `used` is what it has but pages of files, which the
 * kernel takes back. Bytes. */
typedef void mfs_cgroup_limit(void *arg, const char *dir, uint64_t limit, uint64_t used);

/* For a process with this text in /proc/PID/cgroup (cgroups(7)), the groups being mounted at
 * `root`: each that has a limit, the innermost first. 0, or -ENAMETOOLONG. Groups that can't be
 * read are left out. */
int mfs_cgroup_each(const char *text, const char *root, mfs_cgroup_limit *each, void *arg);

/* The same for a process; 0: our own. Another negative errno when there is none. */
int mfs_cgroup_of(int pid, mfs_cgroup_limit *each, void *arg);

/* How many bytes more our own processes may take: what is left in the tightest group. UINT64_MAX:
 * no limit is known. */
uint64_t mfs_cgroup_left(void);

#endif
