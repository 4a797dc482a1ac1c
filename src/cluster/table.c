/* The partition table. */
#include "cluster/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
