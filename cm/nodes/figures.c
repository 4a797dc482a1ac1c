/* What Local Managers report of their nodes, kept for what decides by it. */
#include "cm/nodes/control.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

#define LACKING 3 /* reports: the first may be of before it took a partition over */

bool mfs_nodes_lacks(const struct mfs_node *n)
{
    return n->lacking >= LACKING;
}

void mfs_nodes_counted(struct mfs_node *n, const struct mfs_msg_join *m)
{
    const struct mfs_cm_state *s = &n->cm->state;

    n->lacking = m->nassigned < mfs_cm_state_count(s, n->record->id) ? LACKING : 0;
    n->lack_epoch = s->table ? s->table->epoch : 0;
    n->parts_seen = m->nassigned;
    mfs_text_copy(n->mount, sizeof n->mount, m->mount);
}

/* The node's own mount is what is shown; clients that users have mounted count only without it. */
static void take_mount(struct mfs_node *n, const struct mfs_msg_report *m)
{
    const char *found = "";

    for (uint32_t i = 0; i < m->nclients; i++) {
        if (!m->client[i].ready)
            continue;
        if (!*found || !strcmp(m->client[i].mount, n->record->mount))
            found = m->client[i].mount;
    }
    mfs_text_copy(n->mount, sizeof n->mount, found);
}

/* One that has not said hello yet has none. */
static uint32_t clients_behind(const struct mfs_msg_report *m)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->nclients; i++)
        n += m->client[i].ready && m->client[i].epoch < m->epoch;
    return n;
}

/* Each node reports each second: looking through all partitions for each would be the square of
 * what there is to do. */
static uint32_t due_to(struct mfs_node *n)
{
    const struct mfs_cm_state *s = &n->cm->state;

    if (n->due_revision != s->revision || !s->revision) {
        n->due = mfs_cm_state_count(s, n->record->id);
        n->due_revision = s->revision;
    }
    return n->due;
}

static void take_parts(struct mfs_node *n, const struct mfs_msg_report *m)
{
    struct mfs_cm *cm = n->cm;
    uint32_t due = due_to(n);

    n->reported = true;
    n->parts_seen = m->nparts;
    n->behind = clients_behind(m);
    if (m->nparts >= due || !cm->state.table || m->epoch != cm->state.table->epoch)
        n->lacking = 0;
    else
        n->lacking = n->lack_epoch == m->epoch ? n->lacking + 1 : 1;
    n->lack_epoch = m->epoch;
    for (uint32_t i = 0; i < m->nparts; i++) {
        const struct mfs_report_part *p = &m->part[i];

        if (p->index >= cm->state.nparts || cm->state.part[p->index].node != n->record->id)
            continue;
        /* Of a process that is silent since its lm began there is nothing: what was told stays. */
        if (p->silent && p->memory_used == 0) {
            cm->part_counts[p->index].silent = true;
            continue;
        }
        cm->part_bytes[p->index] = p->memory_used;
        /* A process takes memory: without, it has not answered yet. */
        cm->part_counts[p->index] =
            (struct mfs_part_counts){p->inodes, p->lost_stripes, p->memory_used > 0, p->silent};
    }
}

/* Of two reports in a row the less, as one alone may be of a burst. */
static void take_seen(struct mfs_node *n, const struct mfs_msg_report *m)
{
    double is = fmax(m->bandwidth_in, m->bandwidth_out),
           was = fmax(n->last.bandwidth_in, n->last.bandwidth_out);

    n->record->bandwidth_seen = fmax(n->record->bandwidth_seen, fmin(is, was));
}

void mfs_nodes_reported(struct mfs_node *n, const struct mfs_msg_report *m)
{
    take_seen(n, m);
    n->last = *m;
    n->last.part = NULL;
    n->last.client = NULL;
    n->last.nparts = n->last.nclients = 0;
    n->last.copy = NULL;
    n->last.ncopies = 0;
    n->last.peer = NULL;
    n->last.npeers = 0;
    take_parts(n, m);
    take_mount(n, m);
}
