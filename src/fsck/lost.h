/* The damaged files of a running deployment: those of which a process that died had stripes
 * (decisions/0016). Each stays so until it is removed, cut to nothing, or the stripe is written
 * anew as a whole. */
#ifndef MFS_FSCK_LOST_H
#define MFS_FSCK_LOST_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/store.h"

struct mfs_lost_file {
    char *path;                   /* from the root of the file system; "": it has no name any more,
                                   * or none that can be read */
    uint64_t ino, stripes, bytes; /* that are lost */
    uint32_t *part, nparts;       /* the partitions that had them, ascending */
};

struct mfs_lost_list {
    struct mfs_lost_file *file; /* by path; a file with several names is in it for each of them */
    size_t n;
    uint64_t files, bytes;     /* each file once */
    uint32_t *unread, nunread; /* partitions that can't be read just now, ascending: lost bytes and
                                * names that these have are not in the list */
};

/* One look through all partitions, as memefs fsck takes, while clients go on: what is damaged
 * throughout is in the list. Blocks for as long as that takes; memory: some 100 bytes and the name
 * for each file. 0, also when partitions can't be read, or a negative errno with the reason. */
int mfs_fsck_lost(struct mfs_store *store, struct mfs_lost_list **list, struct mfs_err *err);
void mfs_lost_list_free(struct mfs_lost_list *list); /* takes NULL */

#endif
