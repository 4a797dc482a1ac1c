#include "cm/nodes/trust.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cluster/trust.h"
#include "cm/nodes/quorum.h"

void mfs_trust_has(struct mfs_node *n, uint64_t epoch)
{
    if (epoch > n->has)
        n->has = epoch;
}

/* A node that got an answer after the push had got the table before. So a node without the table
 * got its last answer before the push, and no later than its last question came. */
static bool may_trust(const struct mfs_node *n, uint64_t epoch, int64_t since, int64_t now)
{
    int64_t from = n->last_contact < since ? n->last_contact : since;

    return n->has < epoch && now - from < MFS_TRUST_OVER;
}

bool mfs_trust_over(const struct mfs_cm *cm, uint64_t epoch, int64_t since, int64_t now)
{
    if (now - since >= MFS_TRUST_OVER)
        return true;
    if (cm->subscribers || now - cm->subscriber_left < MFS_TRUST_OVER)
        return false;
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (may_trust(cm->nodes[i], epoch, since, now))
            return false;
    return true;
}

/* ---- heartbeats ----------------------------------------------------------------------------- */

/* Puts them into the answer, which the caller frees. Without memory: none, which is always true. So
 * it is while others may follow another cm, whose answers would have them rely on what they know.
 */
static void list_lost(struct mfs_cm *cm, int64_t now, struct mfs_msg_beat_reply *m)
{
    if (!mfs_quorum_in_contact(cm, now))
        return;
    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        struct mfs_node *n = cm->nodes[i];
        struct mfs_lost_node *more;

        if (now - n->last_contact < MFS_TRUST_LOST)
            continue;
        more = reallocarray(m->lost, m->nlost + 1, sizeof *more);
        if (!more)
            return;
        m->lost = more;
        m->lost[m->nlost++].node = n->record->id;
        n->lost_at = now;
    }
}

void mfs_trust_on_beat(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    struct mfs_node *n = mfs_conn_data(c);
    struct mfs_msg_beat_reply m = {0};
    struct mfs_cm *cm = arg;
    int64_t now = mfs_clock_mono();

    (void)body;
    if (!n && !strcmp(mfs_conn_role(c), "lm")) {
        mfs_conn_fail(c, id, -EPERM, "join first");
        return;
    }
    if (n)
        n->last_contact = now;
    if (n && now - n->lost_at < MFS_TRUST_OVER) {
        mfs_conn_fail(c, id, -EAGAIN, "others have just been told that this node is lost");
        return;
    }
    m.epoch = cm->state.table ? cm->state.table->epoch : 0;
    list_lost(cm, now, &m);
    mfs_conn_reply(c, MFS_MSG_BEAT, id, &m);
    free(m.lost);
}
