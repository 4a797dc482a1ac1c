/* Notices: telling other clients that have a file open that its content has changed, and being
 * told.
 *
 * The home of an inode knows the sessions that have it open. A function that changes content gives
 * the other ones back; each is sent a notice through the partition that its session belongs to,
 * drops what it keeps of the file, and answers. mfs_meta_settle waits for the answers, so that a
 * close(2) that has returned is seen by every read(2) that starts later, also through a descriptor
 * that was open all the time. A file that no other client has open costs nothing.
 *
 * Notices may get lost (a connection breaks): a client that waits sends them again, until the other
 * one answers or its session is dead; a client that was not subscribed for a while drops
 * everything. */
#ifndef MFS_META_COHERENCE_NOTICES_H
#define MFS_META_COHERENCE_NOTICES_H

#include "meta/call.h"
#include "meta/internal.h"

int mfs_notices_start(struct mfs_meta *meta); /* once the session is there */
/* No notice is heard any more; before mfs_notices_stop. Nothing else may use the notices' start or
 * rename meanwhile, nor wait for answers. */
void mfs_notices_deafen(struct mfs_meta *meta);
void mfs_notices_stop(struct mfs_meta *meta);

/* The session has another id now: listens for that one, once the store has been waited for for its
 * I/O timeout at most. 0 or -errno: it listens for the old one still. */
int mfs_notices_rename(struct mfs_meta *meta);

/* A regular file's record ends where its fixed part does: cuts off and returns what is behind. */
struct mfs_bytes mfs_record_rest(struct mfs_bytes *record);

/* `sids` (8 bytes each) have the inode open, which is at `version` now. Does not wait. */
void mfs_notices_send(struct mfs_meta *meta, uint64_t ino, uint64_t version, struct mfs_bytes sids);

/* Likewise: it has got privileges. Their holders commit first what they have written. */
void mfs_notices_granted(struct mfs_meta *meta, uint64_t ino, uint64_t version,
                         struct mfs_bytes sids);

/* The same of sessions that have a lease of a directory: of its name, or of its attributes alone.
 */
void mfs_notices_revoke(struct mfs_meta *meta, uint64_t ino, bool name, struct mfs_bytes sids);

/* As mfs_meta_settle. True: all that were told since mono time `since` have answered, or are dead;
 * no node of theirs is lost, and all could register what they have open
 * (meta/session/unregistered_opens.h). */
bool mfs_notices_settle(struct mfs_meta *meta, uint64_t ino, int64_t since);

/* And of a file's name and attributes; one notice to each session of the n lists. */
void mfs_notices_file(struct mfs_meta *meta, uint64_t ino, const struct mfs_bytes *sids, size_t n);

/* And of the keepers of a directory's shard: a name was added. */
void mfs_notices_shard(struct mfs_meta *meta, uint64_t dir, uint32_t part, struct mfs_bytes sids);

/* Asks the session for the lease that it has of the file's end. It need not answer: the caller sees
 * when it is gone. */
void mfs_notices_ask_end(struct mfs_meta *meta, uint64_t ino, uint64_t sid);

#endif
