/* Names and records that are put back. 0 or a negative errno. */
#ifndef MFS_FSCK_MEND_ADOPT_H
#define MFS_FSCK_MEND_ADOPT_H

#include <stddef.h>
#include <stdint.h>

#include "meta/record.h"

struct mfs_meta;

/* Gives the inode a name in /lost+found, or, if nothing is in it, lets it go. */
int mfs_adopt(struct mfs_meta *meta, uint64_t ino);
/* Adds a name for an inode that counts it already. -EBUSY: a rename or a removal is in the way. */
int mfs_mend_put_name(struct mfs_meta *meta, uint64_t dir, const char *name, size_t len,
                      const char entry[MFS_ENTRY_LEN]);
/* Only changes what is still as given: the record that `old` is. */
int mfs_mend_record(struct mfs_meta *meta, uint64_t ino, const char *old, const char *new,
                    size_t n);

#endif
