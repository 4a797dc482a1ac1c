/* What was changed since the journal was last written: keys, or single fields of them, each once,
 * in the order in which they came. */
#ifndef MFS_PARTITION_JOURNAL_MARKS_H
#define MFS_PARTITION_JOURNAL_MARKS_H

#include "partition/answer.h"

struct mfs_marks {
    struct mfs_answer bytes; /* the marks */
    uint32_t *slot;          /* 1 + where a mark begins; by its hash, 0: free */
    uint32_t nslots, n;
};

/* A field with p NULL: all of the key. */
void mfs_marks_add(struct mfs_marks *m, struct mfs_span key, struct mfs_span field);
/* The mark at *at, which is led to the next; false: there is none. */
bool mfs_marks_next(const struct mfs_marks *m, size_t *at, struct mfs_span *key,
                    struct mfs_span *field);
void mfs_marks_clear(struct mfs_marks *m);

#endif
