/* Grouping a call's commands by partition. */
#include "store/internal.h"

#include <errno.h>
#include <stdlib.h>

/* Sorted by these, commands of one partition stand together in the order given. */
struct slot {
    uint32_t part;
    uint32_t index;
};

static int by_part(const void *a, const void *b)
{
    const struct slot *x = a, *y = b;

    if (x->part != y->part)
        return x->part < y->part ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static void add(struct mfs_batch *batch, uint32_t part, struct mfs_cmd **at)
{
    struct mfs_lane *last = batch->nlanes ? &batch->lanes[batch->nlanes - 1] : NULL;

    if (!last || last->part != part) {
        last = &batch->lanes[batch->nlanes++];
        *last = (struct mfs_lane){.part = part, .cmds = at};
    }
    last->n++;
}

static int group(struct mfs_batch *batch, struct mfs_cmd *cmds, size_t n)
{
    struct slot *slots = malloc(n * sizeof *slots);

    batch->cmds = malloc(n * sizeof(struct mfs_cmd *));
    batch->lanes = malloc(n * sizeof *batch->lanes);
    if (!slots || !batch->cmds || !batch->lanes) {
        free(slots);
        return -ENOMEM;
    }
    for (size_t i = 0; i < n; i++)
        slots[i] = (struct slot){cmds[i].part, (uint32_t)i};
    qsort(slots, n, sizeof *slots, by_part);
    for (size_t i = 0; i < n; i++) {
        batch->cmds[i] = &cmds[slots[i].index];
        add(batch, slots[i].part, &batch->cmds[i]);
    }
    free(slots);
    return 0;
}

int mfs_batch_init(struct mfs_batch *batch, struct mfs_cmd *cmds, size_t n, uint32_t nparts)
{
    int rc = 0;

    batch->nlanes = 0;
    batch->lanes = &batch->one_lane;
    batch->cmds = &batch->one_cmd;
    for (size_t i = 0; i < n; i++) {
        if (cmds[i].part >= nparts)
            rc = -EINVAL;
        cmds[i].rc = -EIO;
        cmds[i].into_len = 0;
        cmds[i].reply = NULL;
    }
    if (rc)
        return rc;
    if (n > 1)
        return group(batch, cmds, n);
    batch->one_cmd = cmds;
    add(batch, cmds->part, batch->cmds);
    return 0;
}

void mfs_batch_fini(struct mfs_batch *batch)
{
    if (batch->lanes != &batch->one_lane)
        free(batch->lanes);
    if (batch->cmds != &batch->one_cmd)
        free(batch->cmds);
}
