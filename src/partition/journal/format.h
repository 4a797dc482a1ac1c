/* The journal of a partition as bytes: batches, each with its length and a checksum before it, of
 * records that each say what something *is* now. So what is said twice does no harm, the last one
 * counts, and a batch that was cut short is recognised and left out whole (decisions/0016). */
#ifndef MFS_PARTITION_JOURNAL_FORMAT_H
#define MFS_PARTITION_JOURNAL_FORMAT_H

#include <stdint.h>

#include "partition/answer.h"

#define MFS_JOURNAL_NAME     "memefs-journal-1" /* key of the first record of all */
#define MFS_JOURNAL_BATCH    8                  /* bytes before a batch */
#define MFS_JOURNAL_FOREVER  (-1)               /* as an expiry */
#define MFS_JOURNAL_BATCHMAX (1U << 30)         /* bytes of one, more than any has */

enum mfs_journal_kind {
    MFS_JOURNAL_HEAD = 'H',      /* key: MFS_JOURNAL_NAME */
    MFS_JOURNAL_LOADING = 'L',   /* from here to … */
    MFS_JOURNAL_LOADED = 'C',    /* … here it tells only a part */
    MFS_JOURNAL_FENCED = 'W',    /* number: 1 fenced, 0 serving */
    MFS_JOURNAL_STRING = 'V',    /* key, value; number: ms since the epoch when it ends */
    MFS_JOURNAL_GONE = 'G',      /* key */
    MFS_JOURNAL_FIELD = 'F',     /* key, field, value: of a hash */
    MFS_JOURNAL_NO_FIELD = 'f',  /* key, field */
    MFS_JOURNAL_MEMBER = 'A',    /* key, field: of a set */
    MFS_JOURNAL_NO_MEMBER = 'a', /* key, field */
    MFS_JOURNAL_EXPIRE = 'E',    /* key; number: when it ends */
    MFS_JOURNAL_STRIPE = 'S',    /* key; number: so many bytes, which are not told */
    MFS_JOURNAL_POINT = 'O',     /* key: stream, number: offset (journal/point.h) */
};

struct mfs_journal_record {
    enum mfs_journal_kind kind;
    struct mfs_span key, field, value;
    int64_t number;
};

/* A batch: begun in an empty answer, filled, sealed, and then its bytes are what is stored. */
void mfs_journal_batch_begin(struct mfs_answer *batch);
void mfs_journal_batch_add(struct mfs_answer *batch, const struct mfs_journal_record *r);
bool mfs_journal_batch_empty(const struct mfs_answer *batch);
void mfs_journal_batch_seal(struct mfs_answer *batch);

/* Takes the next batch from the front of *rest: 1 and what is in it, 0: nothing is left, -1: it is
 * not whole, or not what was written; *rest stays there. */
int mfs_journal_next_batch(struct mfs_span *rest, struct mfs_span *batch);
/* Likewise the next record of a batch. */
int mfs_journal_next(struct mfs_span *batch, struct mfs_journal_record *r);

#endif
