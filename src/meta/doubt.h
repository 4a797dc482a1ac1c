/* Changes of names whose fate, or whose maker, is unknown. Who changes something tells the holders
 * of leases; when the answer to the change was lost, or its maker died before, others go on to show
 * what was before. So who learns of such a change tells everybody as if he had made it. */
#ifndef MFS_META_DOUBT_H
#define MFS_META_DOUBT_H

#include <errno.h>

#include "meta/rename.h"

/* A call failed with this: it may have happened nevertheless. */
static inline bool mfs_is_doubtful(int rc)
{
    return rc == -EIO || rc == -ETIMEDOUT;
}

/* The inode, of that type, has lost a name in partition `part`, or has been given another: nobody
 * shows it as it was on return. 0, or -errno: its partition can't be asked. Waits for the holders
 * as mfs_meta_settle does. */
int mfs_doubt_tell(struct mfs_meta *meta, uint64_t ino, mode_t type, uint32_t part);

/* A rename whose answer was lost: it is ended, one way or the other, if it is not yet, what is
 * known here of its names is forgotten, and the holders of what the names mean, or meant as far as
 * this client knew, are told. Gives up at the first partition that does not answer; then
 * housekeeping does what it can, and leases run out. */
void mfs_doubt_rename(const struct mfs_rename *r);

#endif
