/* The names of what a partition stores: one letter for the kind, then binary ids, big-endian.
 *
 *   I ino         inode record (string; layout: meta/record.h)
 *   D ino         this partition's shard of a directory (hash: name → entry)
 *   S ino n       stripe n of a file (string; bytes missing at its end are zeros)
 *   A ino         extended attributes (hash)
 *   O ino         its openers (hash: session → count, number of its last mfs_reopen)
 *   L ino         record locks and flocks (hash)
 *   P ino         its appender, where that takes more than one step (session, number)
 *   T txn         outcome of a rename across partitions
 *   Z sid         a client's session (string with a time to live)
 *   W sid owner   what an owner of fcntl locks waits for (string with a time to live; partition 0)
 *   #name         one per partition: #super #seq #freed #orphans #reap #intents #sessions #tidy
 * #ttl #reads #losses, and #nothing never
 *
 * docs/design/metadata.md tells what is in each and in which order they change. */
#ifndef MFS_STORE_KEYS_H
#define MFS_STORE_KEYS_H

#include <stdint.h>

#include "base/bytes.h"

#define MFS_KEY_NOTHING    "#nothing" /* never exists */
#define MFS_KEY_INO_LEN    9          /* letter, ino */
#define MFS_KEY_STRIPE_LEN 13         /* letter, ino, n */

static inline void mfs_key_ino(char key[MFS_KEY_INO_LEN], char kind, uint64_t ino)
{
    key[0] = kind;
    mfs_put_be64(key + 1, ino);
}

static inline void mfs_key_stripe(char key[MFS_KEY_STRIPE_LEN], uint64_t ino, uint32_t n)
{
    key[0] = 'S';
    mfs_put_be64(key + 1, ino);
    mfs_put_be32(key + 9, n);
}

#endif
