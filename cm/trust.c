#include "cm/trust.h"

#include "cluster/trust.h"

void mfs_trust_has(struct mfs_cm_live *l, uint64_t epoch)
{
    if (epoch > l->has)
        l->has = epoch;
}

/* Whoever was told after the push that cm is there had got the table before. So he trusts, at the
 * latest, from the push on; and from the last time that his question came, if that is longer ago.
 */
static bool may_trust(const struct mfs_cm_live *l, uint64_t epoch, int64_t since, int64_t now)
{
    int64_t from = l->heard < since ? l->heard : since;

    return l->has < epoch && now - from < MFS_TRUST_OVER;
}

bool mfs_trust_over(const struct mfs_cm *cm, uint64_t epoch, int64_t since, int64_t now)
{
    if (now - since >= MFS_TRUST_OVER)
        return true;
    if (cm->subscribers || now - cm->subscriber_left < MFS_TRUST_OVER)
        return false;
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (may_trust(cm->live[i], epoch, since, now))
            return false;
    return true;
}
