/* The steps of a move, from its beginning to its end. */
#include "cm/partitions/move.h"

#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "cm/state/events.h"
#include "cm/partitions/move_impl.h"

#define SAVE_AGAIN   (500 * MFS_MSEC)
#define MATCH_BEFORE "prove" /* what cm of an earlier version writes for MFS_MOVE_MATCH */

/* The names of steps: in the state, and for people. */
static const struct {
    const char *saved, *shown;
} steps[] = {
    [MFS_AT_WAITING] = {"", "waiting"},
    [MFS_AT_RECEIVE] = {MFS_MOVE_COPY, "copying"},
    [MFS_AT_TAKE] = {MFS_MOVE_CUT, "cutting"},
    [MFS_AT_PUSH] = {MFS_MOVE_RELEASE, "cutting"},
    [MFS_AT_RELEASE] = {MFS_MOVE_RELEASE, "releasing"},
    [MFS_AT_ASK] = {MFS_MOVE_UNDO, "undoing"},
    [MFS_AT_MATCH] = {MFS_MOVE_MATCH, "matching"},
    [MFS_AT_UNFENCE] = {MFS_MOVE_DROP, "undoing"},
    [MFS_AT_DROP] = {MFS_MOVE_DROP, "undoing"},
    [MFS_AT_UNFENCE_LAST] = {MFS_MOVE_DROP, "undoing"},
    [MFS_AT_END_SOURCE] = {MFS_MOVE_FORCE, "forcing"},
    [MFS_AT_FORCE] = {MFS_MOVE_FORCE, "forcing"},
    [MFS_AT_OVER] = {"", "over"},
};

const char *mfs_move_shown(const struct mfs_move *m)
{
    return steps[m->step].shown;
}

const char *mfs_move_name_of(const struct mfs_move *m, uint32_t id)
{
    const struct mfs_cm_node *n = mfs_cm_state_node(&m->cm->state, id);

    return n ? n->name : "a node that has left";
}

void mfs_move_settle(struct mfs_move *m, bool moved)
{
    m->moved = moved;
    m->settled = true;
    m->changed(m, m->arg);
}

void mfs_move_over(struct mfs_move *m)
{
    m->step = MFS_AT_OVER;
    m->again_at = m->away_since = 0;
    m->changed(m, m->arg);
}

/* ---- a state that can't be written ----------------------------------------------------------- */

/* The step before, once more. */
static void step_back(struct mfs_move *m, struct mfs_cm_move *s, enum mfs_move_step before)
{
    m->step = before;
    mfs_text_copy(s->step, sizeof s->step, steps[before].saved);
    m->again_at = m->step_began + SAVE_AGAIN;
}

/* The source is fenced, and the copy is whole. */
static void note_again_or_undo(struct mfs_move *m, struct mfs_cm_move *s)
{
    if (!mfs_move_unsaved_for_long(m)) {
        step_back(m, s, MFS_AT_RECEIVE);
        return;
    }
    mfs_move_blame_state(m, &m->why);
    m->step = MFS_AT_ASK;
    mfs_text_copy(s->step, sizeof s->step, steps[MFS_AT_ASK].saved);
}

/* The step could not be written down: may one be sent for all the same? The next cm does
 * the step before again, which does no harm. But while the source serves it is not fenced for what
 * could not be written either. And the source does not serve before "drop" is written or,
 * where it can't be, before the copy has ended: what is written then finds nothing to go on with,
 * and clients need not wait until there is room. */
static bool unsaved(struct mfs_move *m, struct mfs_cm_move *s, enum mfs_move_step before)
{
    if (m->step == MFS_AT_UNFENCE) {
        m->step = MFS_AT_DROP;
        mfs_text_copy(s->step, sizeof s->step, steps[MFS_AT_ASK].saved);
        return true;
    }
    if (before == MFS_AT_RECEIVE && m->cold && m->step == MFS_AT_TAKE) {
        note_again_or_undo(m, s);
        return m->step == MFS_AT_ASK;
    }
    if (before == MFS_AT_RECEIVE && !m->cold && (m->step == MFS_AT_TAKE || m->step == MFS_AT_ASK)) {
        step_back(m, s, before);
        return false;
    }
    if (m->step != MFS_AT_RECEIVE)
        return true;
    mfs_move_blame_state(m, &m->why);
    mfs_move_state_drop(m);
    mfs_move_over(m);
    mfs_move_settle(m, false);
    return false;
}

/* ---- from step to step ----------------------------------------------------------------------- */

/* The step fences the source, or may do so. */
static bool fences(const struct mfs_move *m)
{
    return m->step == MFS_AT_TAKE || m->step == MFS_AT_ASK ||
           (m->step == MFS_AT_RECEIVE && m->cold);
}

void mfs_move_enter(struct mfs_move *m, enum mfs_move_step step)
{
    struct mfs_cm_move *s = mfs_move_state(m);
    bool other = s && strcmp(s->step, steps[step].saved) != 0;
    enum mfs_move_step before = m->step;

    mfs_move_forget_call(m);
    m->step = step;
    m->tries = 0;
    m->again_at = m->away_since = 0;
    m->step_began = mfs_clock_mono();
    if (!m->fenced_since && fences(m))
        m->fenced_since = m->step_began;
    if (other) {
        mfs_text_copy(s->step, sizeof s->step, steps[step].saved);
        if (mfs_move_save(m) && !unsaved(m, s, before))
            return;
    }
    mfs_move_send(m);
}

void mfs_move_begin(struct mfs_move *m)
{
    int rc = mfs_move_state_add(m);

    m->began = mfs_clock_mono();
    m->attempts++;
    m->arrived = 0;
    m->why = (struct mfs_err){0};
    if (rc) {
        mfs_err_set(&m->why, rc, "%s", strerror(-rc));
        mfs_move_over(m);
        mfs_move_settle(m, false);
        return;
    }
    mfs_event_add(m->cm->paths->events, "cm", "move-begins", "partition %u: %s to %s, %s, %s",
                  m->part, mfs_move_name_of(m, m->from), mfs_move_name_of(m, m->to),
                  MFS_TEXT_BYTES(m->bytes), m->cold ? "cold" : "hot");
    mfs_move_enter(m, MFS_AT_RECEIVE);
}

void mfs_move_adopt(struct mfs_move *m, const struct mfs_cm_move *of)
{
    static const enum mfs_move_step firsts[] = {MFS_AT_RECEIVE, MFS_AT_TAKE,       MFS_AT_ASK,
                                                MFS_AT_UNFENCE, MFS_AT_END_SOURCE, MFS_AT_RELEASE};

    m->part = of->part;
    m->from = of->from;
    m->to = of->to;
    m->bytes = of->bytes;
    m->cold = of->cold;
    m->diskless = of->diskless;
    m->rate = of->rate;
    m->attempts = 1;
    m->step = MFS_AT_UNFENCE;
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++)
        if (!strcmp(of->step, steps[firsts[i]].saved))
            m->step = firsts[i];
    if (!strcmp(of->step, MFS_MOVE_MATCH) || !strcmp(of->step, MATCH_BEFORE))
        m->step = MFS_AT_ASK; /* how far the source had got is not in the state */
    m->began = m->step_began = m->again_at = mfs_clock_mono();
    m->moved = m->settled = m->step == MFS_AT_RELEASE;
    m->fenced_since = !m->moved && (fences(m) || m->step == MFS_AT_UNFENCE) ? m->began : 0;
    mfs_event_add(m->cm->paths->events, "cm", "move-resumed", "partition %u: %s to %s, step %s",
                  m->part, mfs_move_name_of(m, m->from), mfs_move_name_of(m, m->to), of->step);
}

void mfs_move_fini(struct mfs_move *m)
{
    mfs_move_forget_call(m);
}
