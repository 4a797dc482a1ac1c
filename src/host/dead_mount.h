/* Dead mounts: of FUSE clients that are gone. They stay until they are detached. */
#ifndef MFS_HOST_DEAD_MOUNT_H
#define MFS_HOST_DEAD_MOUNT_H

#include <stdbool.h>
#include <stdint.h>

/* Is that the answer of a dead mount? `rc` is what a call that asked the mount gave: 0 or a
 * negative errno. Pure. */
bool mfs_dead_mount_says(int rc);

/* Asks what is mounted on `path`, in a child process: at most `ns`, and another second where the
 * child can't be killed. One that does not answer in that time is not known to be dead. Blocks. */
bool mfs_dead_mount(const char *path, int64_t ns);

#endif
