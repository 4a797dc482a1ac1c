/* Marks lie one behind the other in `bytes`: lengths of key and field, whether there is a field,
 * key, field. `slot` is an open hash table over them, a power of two and at most half full, so that
 * each mark is there once. Both are emptied after each batch, and given back if a burst has made
 * them large. */
#include "partition/journal/marks.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS_FIRST 256U
#define SLOTS_KEPT  65536U /* a burst's table is given back */
#define HEAD        9 /* bytes of a mark before its key: lengths, and whether it is of a field */

static uint64_t hash(uint64_t h, struct mfs_span s)
{
    for (size_t i = 0; s.p && i < s.n; i++)
        h = (h ^ (unsigned char)s.p[i]) * 0x100000001b3ULL;
    return h;
}

static uint64_t hash_of(struct mfs_span key, struct mfs_span field)
{
    uint64_t h = hash(hash(0xcbf29ce484222325ULL, key) * 31 + (field.p != NULL), field);

    return h ^ (h >> 29);
}

bool mfs_marks_next(const struct mfs_marks *m, size_t *at, struct mfs_span *key,
                    struct mfs_span *field)
{
    uint32_t nkey, nfield;
    const char *p;

    if (*at >= m->bytes.n)
        return false;
    p = m->bytes.p + *at;
    memcpy(&nkey, p, 4);
    memcpy(&nfield, p + 4, 4);
    *key = (struct mfs_span){p + HEAD, nkey};
    *field = (struct mfs_span){p[8] ? p + HEAD + nkey : NULL, nfield};
    *at += HEAD + (size_t)nkey + nfield;
    return true;
}

static bool same(struct mfs_span a, struct mfs_span b)
{
    return !a.p == !b.p && a.n == b.n && (!a.p || !b.p || !memcmp(a.p, b.p, a.n));
}

/* Where the mark is, or is to be. */
static uint32_t *find(const struct mfs_marks *m, struct mfs_span key, struct mfs_span field)
{
    uint32_t i = (uint32_t)hash_of(key, field) & (m->nslots - 1);
    struct mfs_span k = {0}, f = {0};
    size_t at;

    for (; m->slot[i]; i = (i + 1) & (m->nslots - 1)) {
        at = m->slot[i] - 1;
        mfs_marks_next(m, &at, &k, &f);
        if (same(k, key) && same(f, field))
            break;
    }
    return &m->slot[i];
}

static void grow(struct mfs_marks *m)
{
    uint32_t *old = m->slot;
    struct mfs_span key, field;
    size_t at = 0, began = 0;

    m->nslots = m->nslots ? 2 * m->nslots : SLOTS_FIRST;
    m->slot = calloc(m->nslots, sizeof *m->slot);
    if (!m->slot)
        abort(); /* as the server does */
    for (; mfs_marks_next(m, &at, &key, &field); began = at)
        *find(m, key, field) = (uint32_t)began + 1;
    free(old);
}

void mfs_marks_add(struct mfs_marks *m, struct mfs_span key, struct mfs_span field)
{
    uint32_t nkey = (uint32_t)key.n, nfield = (uint32_t)field.n, *slot;

    if (2 * m->n >= m->nslots)
        grow(m);
    slot = find(m, key, field);
    if (*slot)
        return;
    *slot = (uint32_t)m->bytes.n + 1;
    m->n++;
    mfs_answer_add(&m->bytes, &nkey, 4);
    mfs_answer_add(&m->bytes, &nfield, 4);
    mfs_answer_byte(&m->bytes, field.p != NULL);
    mfs_answer_span(&m->bytes, key);
    mfs_answer_span(&m->bytes, field);
}

void mfs_marks_clear(struct mfs_marks *m)
{
    if (m->nslots > SLOTS_KEPT) {
        free(m->slot);
        free(m->bytes.p);
        *m = (struct mfs_marks){0};
        return;
    }
    if (m->n)
        memset(m->slot, 0, m->nslots * sizeof *m->slot);
    m->bytes.n = m->n = 0;
}
