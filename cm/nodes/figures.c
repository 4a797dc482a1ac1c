/* What Local Managers tell of their nodes, kept for whoever decides by it. */
#include "cm/nodes/control.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

#define LACKING 3 /* reports: the first may be of before it took a partition over */

bool mfs_nodes_lacks(const struct mfs_cm_live *l)
{
    return l->lacking >= LACKING;
}

void mfs_nodes_counted(struct mfs_cm_live *l, const struct mfs_msg_join *m)
{
    const struct mfs_cm_state *s = &l->cm->state;

    l->lacking = m->nassigned < mfs_cm_state_count(s, l->node->id) ? LACKING : 0;
    l->lack_epoch = s->table ? s->table->epoch : 0;
    l->parts_seen = m->nassigned;
    mfs_text_copy(l->mount, sizeof l->mount, m->mount);
}

/* The node's own mount is what is shown; clients that users have mounted count only without it. */
static void take_mount(struct mfs_cm_live *l, const struct mfs_msg_report *m)
{
    const char *found = "";

    for (uint32_t i = 0; i < m->nclients; i++) {
        if (!m->client[i].ready)
            continue;
        if (!*found || !strcmp(m->client[i].mount, l->node->mount))
            found = m->client[i].mount;
    }
    mfs_text_copy(l->mount, sizeof l->mount, found);
}

/* One that has not said hello yet has none. */
static uint32_t clients_behind(const struct mfs_msg_report *m)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->nclients; i++)
        n += m->client[i].ready && m->client[i].epoch < m->epoch;
    return n;
}

static void take_parts(struct mfs_cm_live *l, const struct mfs_msg_report *m)
{
    struct mfs_cm *cm = l->cm;
    uint32_t due = mfs_cm_state_count(&cm->state, l->node->id);

    l->reported = true;
    l->parts_seen = m->nparts;
    l->behind = clients_behind(m);
    if (m->nparts >= due || !cm->state.table || m->epoch != cm->state.table->epoch)
        l->lacking = 0;
    else
        l->lacking = l->lack_epoch == m->epoch ? l->lacking + 1 : 1;
    l->lack_epoch = m->epoch;
    for (uint32_t i = 0; i < m->nparts; i++)
        if (m->part[i].index < cm->state.nparts &&
            cm->state.part[m->part[i].index].node == l->node->id)
            cm->part_bytes[m->part[i].index] = m->part[i].memory_used;
}

/* Of two reports in a row the less, as one alone may be of a burst. */
static void take_seen(struct mfs_cm_live *l, const struct mfs_msg_report *m)
{
    double is = fmax(m->bandwidth_in, m->bandwidth_out),
           was = fmax(l->last.bandwidth_in, l->last.bandwidth_out);

    l->node->bandwidth_seen = fmax(l->node->bandwidth_seen, fmin(is, was));
}

void mfs_nodes_reported(struct mfs_cm_live *l, const struct mfs_msg_report *m)
{
    take_seen(l, m);
    l->last = *m;
    l->last.part = NULL;
    l->last.client = NULL;
    l->last.nparts = l->last.nclients = 0;
    l->last.copy = NULL;
    l->last.ncopies = 0;
    l->last.peer = NULL;
    l->last.npeers = 0;
    take_parts(l, m);
    take_mount(l, m);
}
