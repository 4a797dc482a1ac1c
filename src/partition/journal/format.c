/* A record: kind (1), lengths of key (2), field (4) and value (4), number (8), key, field, value;
 * a batch: length (4) and checksum (4) of what follows. All in the byte order of the machine, which
 * the journal never leaves. */
#include "partition/journal/format.h"

#include <stdlib.h>
#include <string.h>

#define RECORD 19 /* bytes before the key */

static const char kinds[] = "HLCWVGFfAaESO";

static uint32_t checksum(const char *p, size_t n)
{
    uint64_t h = (n + 1) * 0x9e3779b97f4a7c15ULL, v;

    for (; n >= sizeof v; p += sizeof v, n -= sizeof v) {
        memcpy(&v, p, sizeof v);
        h = (h ^ v) * 0xff51afd7ed558ccdULL;
        h ^= h >> 32;
    }
    v = 0;
    if (n)
        memcpy(&v, p, n);
    h = (h ^ v) * 0xc4ceb9fe1a85ec53ULL;
    return (uint32_t)(h ^ (h >> 32));
}

void mfs_journal_batch_begin(struct mfs_answer *batch)
{
    static const char head[MFS_JOURNAL_BATCH];

    batch->n = 0;
    mfs_answer_add(batch, head, sizeof head);
}

bool mfs_journal_batch_empty(const struct mfs_answer *batch)
{
    return batch->n <= MFS_JOURNAL_BATCH;
}

void mfs_journal_batch_add(struct mfs_answer *batch, const struct mfs_journal_record *r)
{
    uint16_t key = (uint16_t)r->key.n;
    uint32_t field = (uint32_t)r->field.n, value = (uint32_t)r->value.n;
    char head[RECORD] = {(char)r->kind};

    if (r->key.n > UINT16_MAX)
        return; /* none of ours */
    memcpy(head + 1, &key, 2);
    memcpy(head + 3, &field, 4);
    memcpy(head + 7, &value, 4);
    memcpy(head + 11, &r->number, 8);
    mfs_answer_add(batch, head, sizeof head);
    mfs_answer_span(batch, r->key);
    mfs_answer_span(batch, r->field);
    mfs_answer_span(batch, r->value);
}

void mfs_journal_batch_seal(struct mfs_answer *batch)
{
    uint32_t n = (uint32_t)(batch->n - MFS_JOURNAL_BATCH);
    uint32_t sum = checksum(batch->p + MFS_JOURNAL_BATCH, n);

    memcpy(batch->p, &n, 4);
    memcpy(batch->p + 4, &sum, 4);
}

static void skip(struct mfs_span *s, size_t n)
{
    s->p += n;
    s->n -= n;
}

int mfs_journal_next_batch(struct mfs_span *rest, struct mfs_span *batch)
{
    uint32_t n, sum;

    if (!rest->n)
        return 0;
    if (rest->n < MFS_JOURNAL_BATCH)
        return -1;
    memcpy(&n, rest->p, 4);
    memcpy(&sum, rest->p + 4, 4);
    if (n > MFS_JOURNAL_BATCHMAX || n > rest->n - MFS_JOURNAL_BATCH ||
        checksum(rest->p + MFS_JOURNAL_BATCH, n) != sum)
        return -1;
    *batch = (struct mfs_span){rest->p + MFS_JOURNAL_BATCH, n};
    skip(rest, MFS_JOURNAL_BATCH + (size_t)n);
    return 1;
}

static struct mfs_span cut(struct mfs_span *s, size_t n)
{
    struct mfs_span first = {s->p, n};

    skip(s, n);
    return first;
}

int mfs_journal_next(struct mfs_span *batch, struct mfs_journal_record *r)
{
    uint32_t field, value;
    uint16_t key;

    if (!batch->n)
        return 0;
    if (batch->n < RECORD || !batch->p[0] || !strchr(kinds, batch->p[0]))
        return -1;
    memcpy(&key, batch->p + 1, 2);
    memcpy(&field, batch->p + 3, 4);
    memcpy(&value, batch->p + 7, 4);
    if ((uint64_t)key + field + value > batch->n - RECORD)
        return -1;
    r->kind = (enum mfs_journal_kind)batch->p[0];
    memcpy(&r->number, batch->p + 11, 8);
    skip(batch, RECORD);
    r->key = cut(batch, key);
    r->field = cut(batch, field);
    r->value = cut(batch, value);
    return 1;
}
