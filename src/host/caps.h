/* Capabilities of other processes (capabilities(7)), as /proc tells them. */
#ifndef MFS_HOST_CAPS_H
#define MFS_HOST_CAPS_H

#include <stdbool.h>
#include <sys/types.h>

/* Has the thread that capability, in this process' own user namespace? The root of another one has
 * none there. False when that can't be told. */
bool mfs_caps_has(pid_t thread, int capability);

/* Has it that capability over what belongs to this owner and group: in its user namespace, where
 * both of them are? False likewise. */
bool mfs_caps_over(pid_t thread, int capability, uid_t uid, gid_t gid);

#endif
