/* What a key is now, as records; and records as keys again. */
#ifndef MFS_PARTITION_JOURNAL_STATE_H
#define MFS_PARTITION_JOURNAL_STATE_H

#include "partition/journal/format.h"
#include "partition/journal/point.h"

/* All of the key; `over`: the journal may say something else of it so far. */
void mfs_journal_encode(struct RedisModuleCtx *ctx, struct mfs_span name, bool over,
                        struct mfs_answer *batch);
void mfs_journal_encode_field(struct RedisModuleCtx *ctx, struct mfs_span name,
                              struct mfs_span field, struct mfs_answer *batch);
/* A field that a look through a large hash comes across. */
void mfs_journal_encode_pair(struct mfs_span name, const struct RedisModuleString *field,
                             const struct RedisModuleString *value, struct mfs_answer *batch);

struct mfs_journal_found {
    bool fenced;
    struct mfs_journal_point point; /* of the process that died; none: it had no copy */
    uint64_t stripes, bytes;        /* that were there, and are lost */
    uint64_t whole;                 /* bytes of the journal up to the end of its last whole batch */
};

/* Takes up what the journal says, into an empty server. 0 or a negative errno. */
int mfs_journal_replay(struct RedisModuleCtx *ctx, struct mfs_span journal,
                       struct mfs_journal_found *found);

#endif
