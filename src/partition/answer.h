/* Bytes put together piece by piece: what a command answers, a batch of the journal. */
#ifndef MFS_PARTITION_ANSWER_H
#define MFS_PARTITION_ANSWER_H

#include "partition/span.h"

struct mfs_answer {
    char *p; /* heap */
    size_t n, room;
};
/* Room for n bytes more. */
void mfs_answer_reserve(struct mfs_answer *a, size_t n);
void mfs_answer_add(struct mfs_answer *a, const void *p, size_t n);
void mfs_answer_byte(struct mfs_answer *a, size_t byte);
void mfs_answer_span(struct mfs_answer *a, struct mfs_span s);
void mfs_answer_fini(struct mfs_answer *a);
/* Sends it as one string, and frees it. */
int mfs_answer_send(struct mfs_answer *a, struct RedisModuleCtx *ctx);

#endif
