/* What changes with a replica in the state and in the table. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "cm/state/events.h"
#include "cm/nodes/metrics.h"
#include "cm/nodes/push.h"
#include "cm/partitions/replicas_impl.h"
#include "cm/nodes/trust.h"

#define NOTE_AGAIN (200 * MFS_MSEC)

/* A node that has not got it gets it on joining; mfs_trust_over knows what may rely on an older
 * one. */
static void pushed(void *arg, int64_t took, uint32_t missing)
{
    struct mfs_cm *cm = arg;

    (void)took;
    (void)missing;
    if (cm->replicas && mfs_cm_in_phase(cm, MFS_PHASE_RUNNING))
        mfs_replicas_table_pushed(cm->replicas);
}

/* While it can't be written all wait for that, and one tries now and then. */
int mfs_replicas_note(struct mfs_cm *cm)
{
    struct mfs_replicas *g = cm->replicas;
    int64_t now = mfs_clock_mono();
    int rc;

    if (g->unwritable && now < g->note_at)
        return g->unwritable;
    rc = mfs_cm_state_note(&cm->state, cm->paths->state);
    if (rc && !g->unwritable)
        mfs_event_add(cm->paths->events, "cm", "state-unwritable",
                      "%s: %s; until it can be written replicas are neither made nor given up, and "
                      "none takes over",
                      cm->paths->state, strerror(-rc));
    else if (!rc && g->unwritable)
        mfs_event_add(cm->paths->events, "cm", "state-written", "%s", cm->paths->state);
    g->unwritable = rc;
    g->note_at = now + NOTE_AGAIN;
    return rc;
}

/* With a new epoch, for the caller to change and to publish; NULL: ENOMEM. */
static struct mfs_table *next_table(const struct mfs_cm *cm)
{
    struct mfs_table *t = mfs_table_dup(cm->state.table);

    if (t)
        t->epoch++;
    return t;
}

/* Writes it down, then pushes it: what has it may act on it, and the next cm must know of it.
 * Takes t; on failure the state has its former table. */
static int publish(struct mfs_cm *cm, struct mfs_table *t)
{
    struct mfs_table *before = cm->state.table;
    int rc;

    cm->state.table = t;
    rc = mfs_replicas_note(cm);
    if (rc) {
        cm->state.table = before;
        free(t);
        return rc;
    }
    free(before);
    rc = mfs_push_table(cm, pushed, cm);
    if (rc)
        mfs_error("replica", "cannot push the table: %s", strerror(-rc));
    return 0;
}

int mfs_replica_show(struct mfs_replica *r, bool shown)
{
    struct mfs_table *t;

    if (r->cm->state.table->part[r->part].replica == shown)
        return 0;
    t = next_table(r->cm);
    if (!t)
        return -ENOMEM;
    t->part[r->part].replica = shown;
    return publish(r->cm, t);
}

int mfs_replica_add_stale(struct mfs_cm *cm, uint32_t node, uint32_t part, const char *password)
{
    struct mfs_cm_state *s = &cm->state;
    struct mfs_cm_stale *more = reallocarray(s->stale, s->nstale + 1, sizeof *more);

    if (!more)
        return -ENOMEM;
    s->stale = more;
    more[s->nstale] = (struct mfs_cm_stale){.node = node, .part = part};
    mfs_text_copy(more[s->nstale].password, sizeof more->password, password);
    s->nstale++;
    return 0;
}

int mfs_replica_revoke(struct mfs_replica *r, const struct mfs_msg_take_reply *reply)
{
    struct mfs_cm *cm = r->cm;
    struct mfs_table *t = next_table(cm);
    int rc;

    if (!t)
        return -ENOMEM;
    t->failovers++;
    rc = publish(cm, t);
    if (rc)
        return rc;
    mfs_metric_add(cm->figures, MFS_CM_FAILOVERS, 0, 1);
    r->took = *reply;
    r->revoked_epoch = cm->state.table->epoch;
    r->revoked_at = mfs_clock_mono();
    return 0;
}

bool mfs_replica_revoked(const struct mfs_replica *r, int64_t now)
{
    return r->took.port && mfs_trust_over(r->cm, r->revoked_epoch, r->revoked_at, now);
}

/* What was the replica, in the state … */
static void replace(struct mfs_cm_part *p)
{
    p->node = p->replica_node;
    memcpy(p->password, p->replica_password, sizeof p->password);
    memcpy(p->admin_password, p->replica_admin_password, sizeof p->admin_password);
    p->era++;
    p->replica_step[0] = '\0';
}

/* … and in the table. */
static void show_replaced(struct mfs_partition *shown, const struct mfs_cm_part *p,
                          const struct mfs_cm_node *node, const struct mfs_msg_take_reply *t)
{
    shown->node = p->node;
    shown->port = (uint16_t)t->port;
    memcpy(shown->host, node->address, sizeof shown->host);
    memcpy(shown->unix_path, t->unix_path, sizeof shown->unix_path);
    memcpy(shown->password, p->password, sizeof shown->password);
    shown->era = p->era;
    shown->replica = false;
}

int mfs_replica_promote(struct mfs_replica *r)
{
    struct mfs_cm *cm = r->cm;
    struct mfs_cm_part *p = mfs_replica_state(r);
    const struct mfs_cm_part before = *p;
    struct mfs_table *t;
    int rc = -ENOMEM;

    if (mfs_replica_add_stale(cm, p->node, r->part, p->password))
        return rc;
    t = next_table(cm);
    if (t) {
        replace(p);
        show_replaced(&t->part[r->part], p, mfs_cm_state_node(&cm->state, p->node), &r->took);
        rc = publish(cm, t);
    }
    if (rc) {
        *p = before;
        cm->state.nstale--;
        return rc;
    }
    r->took.port = 0;
    return 0;
}
