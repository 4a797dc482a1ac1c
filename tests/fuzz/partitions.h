/* A store whose partitions say what a fuzz target wants them to. Its connections are socket pairs
 * that stand in the pool, as if they had been used before; a new one cannot be made, so who loses
 * one gets -EIO. Nothing waits: what is not there to be read when it is awaited never comes. */
#ifndef MFS_FUZZ_PARTITIONS_H
#define MFS_FUZZ_PARTITIONS_H

#include "input.h"
#include "store/channel.h"
#include "store/store.h"

#define FUZZ_PARTITIONS 3

struct fuzz_partitions {
    struct mfs_store *store;
    int64_t wait;
    int fd[FUZZ_PARTITIONS]; /* the partitions' ends */
    struct mfs_channel *conn[FUZZ_PARTITIONS];
};

/* A connection, whose other end is *fd. Both are the caller's. */
#define FUZZ_WAIT 20000000000 /* ns: longer than scripts/fuzz lets an input take */
struct mfs_channel *fuzz_channel(int *fd, int64_t wait);

/* Makes the store, whose partitions are at `path` for who is not content with these connections. A
 * reply that does not come is waited for so many ns. */
void fuzz_partitions_init(struct fuzz_partitions *f, const char *path, int64_t wait);

/* New connections for all partitions, of which nothing bad is known. */
void fuzz_partitions_renew(struct fuzz_partitions *f);

/* The partition says that; false: it has no connection any more. */
bool fuzz_partition_say(struct fuzz_partitions *f, uint32_t part, const void *p, size_t n);

/* Appends the next reply of the input to *out, as a partition sends it: a byte for its kind, then
 *   0 nil   1, 2 integer (1, 8 bytes)   3, 4 string (length: 1, 2 bytes)   5 array (length: 1 byte)
 *   6 error (length: 1 byte)   7 a string of 8 bytes   8 "OK"   9 an inode's record, see below
 * Of 9 follow: type and permissions (2 bytes), size (2), then as for 3 what is behind the fixed
 * part. */
void fuzz_reply(struct fuzz_input *in, struct mfs_buf *out);

#endif
