/* What is known of a replica and of its partition's process, and whether that is trouble. */
#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "cm/partitions/replicas_impl.h"

#define SILENCE_MOST (10 * MFS_SEC) /* a replica that does no harm is given up after so long … */
#define STARVED      (2 * MFS_SEC)  /* … and one whose consent does not arrive */

static_assert(STARVED < SILENCE_MOST, "a replica without consent delays every write");

/* Is there a node for the replica, and may it stay there? */
bool mfs_replica_stays(const struct mfs_replica *r)
{
    const struct mfs_node *n = mfs_nodes_find(r->cm, mfs_replica_state(r)->replica_node);

    return n && !n->record->transition[0] && !r->replica_dead;
}

/* Is what began at `since` (0: it has not) so old? */
static bool lasts(int64_t since, int64_t now, int64_t limit)
{
    return since && now - since >= limit;
}

/* Why the replica can't stay; NULL: it can. As long as the partition's process has its consent it
 * does no harm, even when cm or its Local Manager hears nothing of it: it may be busy, and no
 * replica is the greater harm. Without its consent the partition is refused. */
const char *mfs_replica_fault(const struct mfs_replica *r, int64_t now)
{
    uint32_t node = mfs_replica_state(r)->replica_node;
    bool starved = r->starved_since;

    if (starved ? mfs_replicas_silent(r->cm, node, now)
                : mfs_replicas_silence(r->cm, node, now) >= SILENCE_MOST)
        return "its node is out of reach";
    if (starved ? r->replica_silent_since : lasts(r->replica_silent_since, now, SILENCE_MOST))
        return "its process does not answer";
    if (lasts(r->starved_since, now, STARVED))
        return "the partition's process does not hear from it";
    return mfs_replica_stays(r) ? NULL : "its node leaves";
}

bool mfs_replica_in_trouble(const struct mfs_replica *r, int64_t now)
{
    return r->dead || r->silent || mfs_replicas_silent(r->cm, mfs_replica_state(r)->node, now);
}

/* ---- news ------------------------------------------------------------------------------------ */

static struct mfs_replica *find(const struct mfs_cm *cm, uint32_t part)
{
    return cm->replicas && part < cm->state.nparts ? &cm->replicas->one[part] : NULL;
}

static bool assigned(const struct mfs_msg_join *m, uint32_t part)
{
    for (uint32_t i = 0; i < m->nassigned; i++)
        if (m->assigned[i].index == part)
            return true;
    return false;
}

static bool copied_there(const struct mfs_msg_join *m, uint32_t part)
{
    for (uint32_t i = 0; i < m->ncopies; i++)
        if (m->copy[i].index == part)
            return true;
    return assigned(m, part); /* it may have become the partition without our knowledge */
}

void mfs_replicas_joined(struct mfs_cm *cm, struct mfs_node *n, const struct mfs_msg_join *m)
{
    n->last_contact = mfs_clock_mono();
    for (uint32_t i = 0; i < cm->state.nparts && cm->replicas; i++) {
        const struct mfs_cm_part *p = &cm->state.part[i];
        struct mfs_replica *r = &cm->replicas->one[i];

        if (p->node == n->record->id) {
            r->dead = !assigned(m, i);
            r->silent = false;
            r->starved_since = 0;
        } else if (p->replica_step[0] && p->replica_node == n->record->id &&
                   !mfs_replica_in(r, MFS_REPLICA_COPY)) {
            r->replica_dead = !copied_there(m, i);
        }
    }
}

static void note_since(int64_t *since, bool is, int64_t now)
{
    if (!is)
        *since = 0;
    else if (!*since)
        *since = now;
}

void mfs_replicas_reported(struct mfs_cm *cm, struct mfs_node *n, const struct mfs_msg_report *m)
{
    n->last_contact = mfs_clock_mono();
    mfs_replicas_weigh(n);
    for (uint32_t i = 0; i < m->nparts; i++) {
        struct mfs_replica *r = find(cm, m->part[i].index);

        if (!r || mfs_replica_state(r)->node != n->record->id)
            continue;
        r->silent = m->part[i].silent;
        note_since(&r->starved_since, m->part[i].starved, n->last_contact);
        if (mfs_replica_in(r, ""))
            r->dead = false; /* another one has been started in its place */
    }
    for (uint32_t i = 0; i < m->ncopies; i++) {
        struct mfs_replica *r = find(cm, m->copy[i].index);

        if (!r || mfs_replica_state(r)->replica_node != n->record->id)
            continue;
        note_since(&r->replica_silent_since, m->copy[i].silent, n->last_contact);
    }
}

void mfs_replicas_died(struct mfs_cm *cm, const struct mfs_msg_died *m)
{
    struct mfs_replica *r = find(cm, m->index);

    if (!r || !mfs_cm_in_phase(cm, MFS_PHASE_RUNNING))
        return;
    if (!strcmp(mfs_replica_state(r)->password, m->password))
        r->dead = true;
    else if (mfs_replica_state(r)->replica_step[0] &&
             !strcmp(mfs_replica_state(r)->replica_password, m->password))
        r->replica_dead = true;
    else
        return;
    if (mfs_replica_in(r, MFS_REPLICA_TAKE))
        mfs_replica_forget_call(r); /* it need not wait for a term any more */
    r->again_at = 0;
    mfs_replica_step(r, mfs_clock_mono());
}
