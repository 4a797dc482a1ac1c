/* The moment of a move: what the target has taken becomes the truth. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cm/state/events.h"
#include "cm/partitions/move_impl.h"
#include "cm/nodes/metrics.h"
#include "cm/nodes/push.h"

#define LINGER     (200 * MFS_MSEC) /* for what clients sent before they had the table */
#define TAKE_AGAIN (500 * MFS_MSEC)

static void tell(const struct mfs_move *m, int64_t push)
{
    const struct mfs_cm_state *s = &m->cm->state;
    const struct mfs_cm_node *from = mfs_cm_state_node(s, m->from);
    const struct mfs_cm_node *to = mfs_cm_state_node(s, m->to);
    double seconds = (double)m->copy_us / 1e6;

    mfs_event_add(m->cm->paths->events, "cm", "moved",
                  "partition %u: %s to %s, %s in %.3f s (%s/s), blocked %.1f ms "
                  "(%.1f until taken, %.1f until known)",
                  m->part, from ? from->name : "?", to ? to->name : "?", MFS_TEXT_BYTES(m->bytes),
                  seconds, MFS_TEXT_BYTES(seconds > 0 ? (uint64_t)((double)m->bytes / seconds) : 0),
                  (double)m->blocked_us / 1e3, (double)m->fence_us / 1e3, (double)push / 1e6);
}

static void count(const struct mfs_move *m, int64_t push)
{
    struct mfs_metric_set *figures = m->cm->figures;

    mfs_metric_add(figures, MFS_CM_MOVED_PARTITIONS, 0, 1);
    mfs_metric_add(figures, MFS_CM_MOVED_BYTES, 0, m->bytes);
    mfs_metric_observe(figures, MFS_CM_MOVE_COPY_TIME, 0, (int64_t)m->copy_us * 1000);
    mfs_metric_observe(figures, MFS_CM_MOVE_BLOCKED_TIME, 0, (int64_t)m->blocked_us * 1000);
    mfs_metric_observe(figures, MFS_CM_TABLE_TIME, 0, push);
}

static void pushed(void *arg, int64_t took, uint32_t missing)
{
    struct mfs_move *m = arg;

    if (mfs_cm_in_phase(m->cm, MFS_PHASE_STOPPING))
        return;
    if (missing)
        mfs_warn("move", "partition %u: %u have not taken the table", m->part, missing);
    m->blocked_us += m->fence_us + (uint64_t)took / 1000;
    m->fenced_since = 0;
    tell(m, took);
    count(m, took);
    m->step = MFS_AT_RELEASE;
    m->step_began = mfs_clock_mono();
    m->again_at = m->step_began + LINGER;
    mfs_move_settle(m, true);
}

static struct mfs_table *next_table(const struct mfs_move *m, const struct mfs_msg_take_reply *r,
                                    const char *password)
{
    const struct mfs_cm_node *to = mfs_cm_state_node(&m->cm->state, m->to);
    struct mfs_table *t = mfs_table_dup(m->cm->state.table);
    struct mfs_partition *p;

    if (!t)
        return NULL;
    p = &t->part[m->part];
    p->node = m->to;
    p->port = (uint16_t)r->port;
    memcpy(p->host, to->address, sizeof p->host);
    memcpy(p->unix_path, r->unix_path, sizeof p->unix_path);
    memcpy(p->password, password, sizeof p->password);
    t->epoch++;
    return t;
}

/* The process that goes is from now on the one that the move names. */
static void swap_passwords(struct mfs_cm_part *p, struct mfs_cm_move *s)
{
    struct mfs_cm_part old = *p;

    memcpy(p->password, s->password, sizeof p->password);
    memcpy(p->admin_password, s->admin_password, sizeof p->admin_password);
    memcpy(s->password, old.password, sizeof s->password);
    memcpy(s->admin_password, old.admin_password, sizeof s->admin_password);
}

/* Before any client has the table. The next cm, and has none of this, could undo the move
 * while the target is out of reach: then the source would serve beside it. */
static int write_cut(struct mfs_move *m, struct mfs_table *t)
{
    struct mfs_cm_state *st = &m->cm->state;
    struct mfs_cm_part *p = &st->part[m->part], part_before = *p;
    struct mfs_cm_move *s = mfs_move_state(m), move_before = *s;
    struct mfs_table *before = st->table;
    int rc;

    swap_passwords(p, s);
    p->node = m->to;
    st->table = t;
    strcpy(s->step, MFS_MOVE_RELEASE);
    rc = mfs_move_save(m);
    if (rc) {
        *p = part_before;
        *s = move_before;
        st->table = before;
    }
    free(rc ? t : before);
    return rc;
}

int mfs_move_cut(struct mfs_move *m, const struct mfs_msg_take_reply *r)
{
    struct mfs_table *t = next_table(m, r, mfs_move_state(m)->password);
    int rc = t ? write_cut(m, t) : -ENOMEM;

    if (rc) {
        m->again_at = mfs_clock_mono() + TAKE_AGAIN; /* it will be answered the same way */
        return rc;
    }
    m->fence_us = r->blocked_us;
    m->moved = true;
    m->step = MFS_AT_PUSH;
    if (mfs_push_table(m->cm, pushed, m))
        pushed(m, 0, m->cm->state.nnodes);
    return 0;
}
