/* Transactions: their outcomes, and what another client may have to end.
 *
 * A transaction's outcome, T txn, is at the partition that decides it: absent (open), 'A' (aborted,
 * for a day), or 'C', the length of what the source entry becomes (1 byte), that (an entry, or a
 * whiteout), and what is left to do, which only the client reads.
 *
 * #intents holds what another client may have to end, transaction → since when (8 bytes), and
 *   nothing: decided here, with more to do
 *   directory, name: the source of a rename, here
 *   ino: of a name that has gone here, which its home is yet to know (mfs_unref)
 *   zeros (8 bytes), partition (2), ino: this counts a name that is yet to come there
 *     (mfs_link_begin)
 * Since when is by the clock that housekeeping here is going to ask, not the client's; so a replica
 * notes its own time. */
#ifndef MFS_PARTITION_NAMES_TXN_H
#define MFS_PARTITION_NAMES_TXN_H

#include <stdbool.h>

#include "partition/request.h"

/* Is an argument a transaction? */
bool mfs_txn_is(const struct mfs_request *r, int txn);

bool mfs_txn_is_decided(const struct mfs_request *r, int txn);
/* Decides it: ms 0: remembered until mfs_forget. */
void mfs_txn_decide(const struct mfs_request *r, int txn, const void *outcome, size_t n,
                    int64_t ms);
/* Likewise: committed, the source entry becomes `becomes`, and `todo` is left to do. */
void mfs_txn_commit(const struct mfs_request *r, int txn, struct mfs_span becomes,
                    struct mfs_span todo, int64_t ms);

/* Notes it in #intents, with what stands behind the time; and takes it out. */
void mfs_txn_note(const struct mfs_request *r, int txn, const void *what, size_t n);
void mfs_txn_unnote(const struct mfs_request *r, int txn);

#endif
