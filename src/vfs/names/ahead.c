#include "vfs/names/ahead.h"

#include <stdlib.h>

#define FEW   4U /* files that the first look-up brings */
#define WRONG 4U /* batches in sequence of little use: another order is tried */
#define VAIN  10U

static void use(struct mfs_ahead *a, const struct mfs_listing *l, enum mfs_order how)
{
    a->how = how;
    if (how != MFS_ORDER_LISTED && a->order[how] == NULL)
        a->order[how] = mfs_order_create(l, how);
    if (a->order[how] == NULL)
        a->how = MFS_ORDER_LISTED;
}

void mfs_ahead_begin(struct mfs_ahead *a, const struct mfs_listing *l, enum mfs_order how)
{
    *a = (struct mfs_ahead){0};
    use(a, l, how);
}

void mfs_ahead_fini(const struct mfs_ahead *a)
{
    for (size_t i = 0; i < MFS_ORDERS; i++)
        free(a->order[i]);
}

static unsigned patience(const struct mfs_ahead *a)
{
    unsigned vain = a->tried / MFS_ORDERS;

    return WRONG << (vain < VAIN ? vain : VAIN);
}

static void reorder(struct mfs_ahead *a, const struct mfs_listing *l)
{
    a->tried++;
    a->wrong = 0;
    use(a, l, (a->how + 1) % MFS_ORDERS);
}

/* Half of what was brought has been used: the program goes through all of it. */
void mfs_ahead_next(struct mfs_ahead *a, const struct mfs_listing *l)
{
    unsigned used = a->hits > a->batch ? a->hits : a->batch;
    bool begins = a->batch == 0;

    a->brought = a->brought / 2 + a->batch;
    a->hit = a->hit / 2 + a->hits;
    a->hits = 0;
    if (begins || 2 * a->hit < a->brought || used < FEW) {
        a->batch = FEW;
        a->wrong += !begins;
    } else {
        a->batch = 2 * used < MFS_META_LEARN ? 2 * used : MFS_META_LEARN;
        a->wrong = a->tried = 0;
    }
    if (a->wrong >= patience(a))
        reorder(a, l);
}
