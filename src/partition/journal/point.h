/* How far a process has got in the stream of commands that its replicas execute: by this it is
 * known, after its death, whether a copy has all that was acknowledged (docs/design/migration.md).
 */
#ifndef MFS_PARTITION_JOURNAL_POINT_H
#define MFS_PARTITION_JOURNAL_POINT_H

#include <stdbool.h>
#include <stdint.h>

#include "partition/answer.h"

#define MFS_POINT_STREAM  40                 /* characters */
#define MFS_POINT_UNKNOWN ((int64_t)1 << 52) /* an offset that no copy reaches */

struct mfs_journal_point {
    char stream[MFS_POINT_STREAM + 1]; /* the process' own name for it; "": there is no copy */
    int64_t offset;                    /* bytes */
};

/* Where the server is now; MFS_POINT_UNKNOWN in a stream "?" when it does not say. */
struct mfs_journal_point mfs_point_now(struct RedisModuleCtx *ctx);

bool mfs_point_same(const struct mfs_journal_point *a, const struct mfs_journal_point *b);

/* As a record of the journal, and back. */
void mfs_point_add(struct mfs_answer *batch, const struct mfs_journal_point *p);
struct mfs_journal_point mfs_point_of(struct mfs_span stream, int64_t offset);

#endif
