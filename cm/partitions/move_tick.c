/* How long a move waits for a node, and for a state that can be written. */
#include <assert.h>
#include <errno.h>

#include "base/clock.h"
#include "cm/state/events.h"
#include "cm/partitions/move_impl.h"

#define PATIENCE     (60 * MFS_SEC) /* with a node that is away, or can't do it */
#define PATIENCE_CUT (15 * MFS_SEC) /* while clients wait */

static_assert(PATIENCE_CUT < PATIENCE, "clients wait during a cut");

void mfs_move_node_changed(struct mfs_move *m, uint32_t node)
{
    if (m->step != MFS_AT_WAITING && m->step != MFS_AT_PUSH && m->step != MFS_AT_OVER &&
        mfs_move_node(m) == node) {
        m->again_at = 0;
        mfs_move_send(m);
    }
}

/* Goes on trying, but the list of moves does not wait for it any more. */
static void leave_for_later(struct mfs_move *m, const struct mfs_err *why)
{
    if (!m->why.code)
        m->why = *why;
    mfs_event_add(m->cm->paths->events, "cm", "move-stuck", "partition %u: %s: %s", m->part,
                  mfs_move_shown(m), why->msg);
    mfs_move_settle(m, m->moved);
}

/* The copy, before the source serves: that could not be written. */
static bool ends_first(const struct mfs_move *m)
{
    return m->step == MFS_AT_DROP && m->fenced_since;
}

/* The node is away: what can be undone is, what can't is left for later. */
static void away_too_long(struct mfs_move *m)
{
    struct mfs_err why;

    mfs_err_set(&why, -ENODEV, "%s is not connected", mfs_move_name_of(m, mfs_move_node(m)));
    if (m->step == MFS_AT_RECEIVE || m->step == MFS_AT_TAKE) {
        mfs_move_undo(m, &why);
    } else if (m->step == MFS_AT_MATCH) {
        mfs_move_answer(m, &why, NULL);
    } else if (ends_first(m)) {
        mfs_move_enter(m, MFS_AT_UNFENCE); /* "drop" may be written by now */
    } else if (!m->settled) {
        leave_for_later(m, &why);
    }
}

/* It is there, and does not do what would undo the move (a process that hangs). */
static bool undoes_too_long(const struct mfs_move *m, int64_t now)
{
    return !m->settled && m->step != MFS_AT_RECEIVE && m->step != MFS_AT_TAKE &&
           now - m->step_began > PATIENCE;
}

/* It goes on as soon as the state can be written, and not before. */
static bool unsaved_too_long(const struct mfs_move *m, int64_t now)
{
    return !m->settled && m->unsaved_since && now - m->unsaved_since > PATIENCE;
}

void mfs_move_tick(struct mfs_move *m, int64_t now)
{
    struct mfs_err why;
    bool blocked = m->step == MFS_AT_TAKE || m->step == MFS_AT_MATCH ||
                   (m->step == MFS_AT_RECEIVE && m->cold) || ends_first(m);

    if (m->step == MFS_AT_WAITING || m->step == MFS_AT_PUSH || m->step == MFS_AT_OVER)
        return;
    if (m->away_since && now - m->away_since > (blocked ? PATIENCE_CUT : PATIENCE)) {
        away_too_long(m);
    } else if (unsaved_too_long(m, now)) {
        mfs_move_blame_state(m, &why);
        leave_for_later(m, &why);
    } else if (undoes_too_long(m, now)) {
        mfs_err_set(&why, -ETIMEDOUT, "%s does not do it", mfs_move_name_of(m, mfs_move_node(m)));
        leave_for_later(m, &why);
    } else if (m->again_at && now >= m->again_at) {
        m->again_at = 0;
        mfs_move_send(m);
    }
}
