/* The partition table. */
#include "cluster/table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "cluster/placement.h"

#define STRIPE_MIN 4096U
#define STRIPE_MAX (16U << 20)

static size_t table_size(uint32_t nparts)
{
    return sizeof(struct mfs_table) + (size_t)nparts * sizeof(struct mfs_partition);
}

struct mfs_table *mfs_table_new(uint32_t nparts)
{
    struct mfs_table *t = calloc(1, table_size(nparts));

    if (t)
        t->nparts = nparts;
    return t;
}

struct mfs_table *mfs_table_dup(const struct mfs_table *t)
{
    struct mfs_table *copy = malloc(table_size(t->nparts));

    if (copy)
        memcpy(copy, t, table_size(t->nparts));
    return copy;
}

static int check_partition(const struct mfs_partition *p)
{
    if (!memchr(p->host, 0, sizeof p->host) || !memchr(p->unix_path, 0, sizeof p->unix_path) ||
        !memchr(p->password, 0, sizeof p->password))
        return -EINVAL;
    return p->host[0] && (p->port || p->unix_path[0]) ? 0 : -EINVAL;
}

int mfs_table_check(const struct mfs_table *t)
{
    if (t->nparts < 1 || t->nparts > MFS_PARTITIONS_MAX || !t->epoch)
        return -EINVAL;
    if (!memchr(t->name, 0, sizeof t->name))
        return -EINVAL;
    if (t->stripe_size < STRIPE_MIN || t->stripe_size > STRIPE_MAX)
        return -EINVAL;
    for (uint32_t i = 0; i < t->nparts; i++)
        if (check_partition(&t->part[i]))
            return -EINVAL;
    return 0;
}

/* ---- changes --------------------------------------------------------------------------------- */

bool mfs_partition_equal(const struct mfs_partition *a, const struct mfs_partition *b)
{
    return a->node == b->node && a->port == b->port && a->era == b->era &&
           a->replica == b->replica && strcmp(a->host, b->host) == 0 &&
           strcmp(a->unix_path, b->unix_path) == 0 && strcmp(a->password, b->password) == 0;
}

/* What stands behind a text's end is not said. */
static uint64_t digest_of(const struct mfs_partition *p, uint32_t index)
{
    struct mfs_partition c;

    memset(&c, 0, sizeof c);
    c.node = p->node;
    c.port = p->port;
    c.era = p->era;
    c.replica = p->replica;
    memccpy(c.host, p->host, 0, sizeof c.host);
    memccpy(c.unix_path, p->unix_path, 0, sizeof c.unix_path);
    memccpy(c.password, p->password, 0, sizeof c.password);
    return mfs_hash64(&c, sizeof c, index);
}

uint64_t mfs_table_digest(const struct mfs_table *t)
{
    uint64_t head[] = {t->epoch,   t->nparts,     t->stripe_size,
                       t->growing, t->replicated, t->failovers};
    uint64_t sum = mfs_hash64(head, sizeof head, 0) + mfs_hash64(t->name, strlen(t->name), 1);

    for (uint32_t i = 0; i < t->nparts; i++)
        sum += digest_of(&t->part[i], i);
    return sum;
}

void mfs_table_digest_text(uint64_t digest, char out[MFS_TABLE_DIGEST_TEXT])
{
    snprintf(out, MFS_TABLE_DIGEST_TEXT, "%016" PRIx64, digest);
}

int mfs_table_difference(const struct mfs_table *from, const struct mfs_table *to,
                         struct mfs_table_change *change)
{
    uint32_t n = 0, most = to->nparts / MFS_TABLE_WHOLE_FROM;

    *change = (struct mfs_table_change){0};
    if (from->nparts != to->nparts || from->stripe_size != to->stripe_size ||
        strcmp(from->name, to->name) != 0)
        return 1;
    for (uint32_t i = 0; i < to->nparts; i++)
        n += !mfs_partition_equal(&from->part[i], &to->part[i]);
    if (n > most)
        return 1;
    change->patch = calloc(n + 1, sizeof *change->patch);
    if (!change->patch)
        return -ENOMEM;
    for (uint32_t i = 0; i < to->nparts; i++)
        if (!mfs_partition_equal(&from->part[i], &to->part[i]))
            change->patch[change->npatches++] = (struct mfs_table_patch){i, to->part[i]};
    change->base = from->epoch;
    mfs_table_digest_text(mfs_table_digest(from), change->digest);
    change->epoch = to->epoch;
    change->growing = to->growing;
    change->replicated = to->replicated;
    change->failovers = to->failovers;
    return 0;
}

static bool is_base(const struct mfs_table *held, const struct mfs_table_change *change)
{
    char digest[MFS_TABLE_DIGEST_TEXT];

    if (!held || held->epoch != change->base)
        return false;
    mfs_table_digest_text(mfs_table_digest(held), digest);
    return strcmp(digest, change->digest) == 0;
}

int mfs_table_apply(const struct mfs_table *held, const struct mfs_table_change *change,
                    struct mfs_table **out)
{
    struct mfs_table *t;

    *out = NULL;
    if (!is_base(held, change))
        return -ESTALE;
    t = mfs_table_dup(held);
    if (!t)
        return -ENOMEM;
    t->epoch = change->epoch;
    t->growing = change->growing;
    t->replicated = change->replicated;
    t->failovers = change->failovers;
    for (uint32_t i = 0; i < change->npatches; i++) {
        if (change->patch[i].index >= t->nparts) {
            free(t);
            return -EINVAL;
        }
        t->part[change->patch[i].index] = change->patch[i].part;
    }
    if (mfs_table_check(t)) {
        free(t);
        return -EINVAL;
    }
    *out = t;
    return 0;
}
