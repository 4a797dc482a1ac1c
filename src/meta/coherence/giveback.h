/* Leases that this client gives back of its own. Another client's change of a file, of which this
 * one has a lease, waits for a notice and its answer. When another one changes file after file of a
 * directory, this client gives back what it knows there and does not use, before it is asked for
 * it: of few files at first, and of more with each notice of yet another file. Likewise the
 * keeper's right of a directory's shard, to which another client has added a name.
 *
 * A lease that is being given back is relied on no more, and no answer brings it back before the
 * partition has said that it is gone. Of files that are open here by nothing else, or of which the
 * kernel may use something, it is kept.
 *
 * Any thread; does not block, but for the flush. */
#ifndef MFS_META_COHERENCE_GIVEBACK_H
#define MFS_META_COHERENCE_GIVEBACK_H

#include "meta/internal.h"

struct mfs_giveback *mfs_giveback_create(void);
void mfs_giveback_destroy(struct mfs_giveback *g);

/* Another client has changed the file: forgets it (mfs_filecache_revoke). */
void mfs_giveback_revoked(struct mfs_meta *meta, uint64_t ino);
/* Another client has added a name to the shard, which is known here no more. */
void mfs_giveback_keeper(struct mfs_meta *meta, uint64_t dir, uint32_t part);

/* Gives back what is due, but at partitions that do not answer others. One round trip; one thread
 * at a time. */
void mfs_giveback_flush(struct mfs_meta *meta);

#endif
