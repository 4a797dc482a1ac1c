/* Requests whose callers are being killed.
 *
 * What a mount has read, and holds until a worker has time, is the mount's to the kernel: its
 * caller waits for the answer whatever signal comes, while one that the kernel still has it takes
 * back when its caller is killed. So the mount does likewise: it answers EINTR.
 *
 * FUSE_INTERRUPT does not tell what this needs: it comes for any first signal, also those that end
 * no program, for which no call of stat(2) may fail; it does not come again for the next one; and
 * it may come before its request. So whoever holds requests looks from time to time. */
#ifndef MFS_FUSE_KERNEL_KILLED_H
#define MFS_FUSE_KERNEL_KILLED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/fuse.h>

#include "base/clock.h"

#define MFS_KILLED_LOOK (250 * MFS_MSEC) /* between looks, at what was held for so long */

/* Is the request's caller being killed, and may it be answered EINTR instead of being served? Not
 * what has to be done though nobody waits for it (release, flush, which gives locks back), and not
 * when the caller is in a PID namespace that this process does not see. Reads /proc, which does not
 * wait. Any thread. */
bool mfs_killed(const char *request, size_t len);

/* That answer, to the request. */
struct fuse_out_header mfs_killed_answer(const char *request);

#endif
