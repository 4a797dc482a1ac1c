/* The steps of a move and what leads from one to the next. */
#include "cm/move.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "cm/events.h"
#include "cm/move_impl.h"

#define SECRET_BYTES  32
#define ATTEMPTS_MOST 3 /* of the whole; the last one is cold */
#define TAKES_MOST    3
#define AGAIN_FIRST   (500 * MFS_MSEC)
#define AGAIN_MOST    (30 * MFS_SEC)
#define AGAIN_FENCED  (2 * MFS_SEC)  /* while clients wait */
#define MATCH_BEFORE  "prove"        /* what cm of an earlier version writes for MFS_MOVE_MATCH */
#define PATIENCE      (60 * MFS_SEC) /* with a node that is away, or can't do it */
#define PATIENCE_CUT  (15 * MFS_SEC) /* while clients wait */
#define PATIENCE_NOTE (2 * MFS_SEC)  /* likewise, with a state that can't be written */

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
    [MFS_AT_BURY] = {MFS_MOVE_FORCE, "forcing"},
    [MFS_AT_FORCE] = {MFS_MOVE_FORCE, "forcing"},
    [MFS_AT_OVER] = {"", "over"},
};

const char *mfs_move_shown(const struct mfs_move *m)
{
    return steps[m->step].shown;
}

static const char *node_name(const struct mfs_move *m, uint32_t id)
{
    const struct mfs_cm_node *n = mfs_cm_state_node(&m->cm->state, id);

    return n ? n->name : "a node that has left";
}

/* ---- the state ------------------------------------------------------------------------------- */

struct mfs_cm_move *mfs_move_state(const struct mfs_move *m)
{
    struct mfs_cm_state *s = &m->cm->state;

    for (uint32_t i = 0; i < s->nmoves; i++)
        if (s->move[i].part == m->part)
            return &s->move[i];
    return NULL;
}

int mfs_move_save(struct mfs_move *m)
{
    int rc;

    /* Clients may be waiting for this, so not for the disk: who asked for the moves saves in full
     * at the end. A state that the machine's death sets back leads to the same steps again. */
    rc = mfs_cm_state_note(&m->cm->state, m->cm->paths->state);
    if (rc)
        mfs_error("move", "%s: %s", m->cm->paths->state, strerror(-rc));
    if (!rc)
        m->unsaved_since = 0;
    else if (!m->unsaved_since)
        m->unsaved_since = mfs_clock_mono();
    return rc;
}

static int add_state(struct mfs_move *m)
{
    struct mfs_cm_move one = {.part = m->part,
                              .from = m->from,
                              .to = m->to,
                              .cold = m->cold,
                              .diskless = m->diskless,
                              .rate = m->rate,
                              .bytes = m->bytes};
    struct mfs_cm_state *s = &m->cm->state;
    struct mfs_cm_move *more;
    int rc = mfs_random_hex(one.password, SECRET_BYTES);

    if (!rc)
        rc = mfs_random_hex(one.admin_password, SECRET_BYTES);
    if (rc)
        return rc;
    more = reallocarray(s->move, s->nmoves + 1, sizeof *more);
    if (!more)
        return -ENOMEM;
    s->move = more;
    s->move[s->nmoves++] = one;
    return 0;
}

static void drop_state(struct mfs_move *m)
{
    struct mfs_cm_state *s = &m->cm->state;
    struct mfs_cm_move *mine = mfs_move_state(m);

    if (mine)
        *mine = s->move[--s->nmoves];
}

/* ---- from step to step ----------------------------------------------------------------------- */

void mfs_move_settle(struct mfs_move *m, bool moved)
{
    m->moved = moved;
    m->settled = true;
    m->changed(m, m->arg);
}

static void over(struct mfs_move *m)
{
    m->step = MFS_AT_OVER;
    m->again_at = m->away_since = 0;
    m->changed(m, m->arg);
}

/* The step before, once more. */
static void step_back(struct mfs_move *m, struct mfs_cm_move *s, enum mfs_move_step before)
{
    m->step = before;
    mfs_text_copy(s->step, sizeof s->step, steps[before].saved);
    m->again_at = m->step_began + AGAIN_FIRST;
}

/* While clients wait: it may only have been unwritable for a moment. */
static bool unsaved_for_long(const struct mfs_move *m)
{
    return m->unsaved_since && mfs_clock_mono() - m->unsaved_since >= PATIENCE_NOTE;
}

static void blame_state(const struct mfs_move *m, struct mfs_err *why)
{
    mfs_err_set(why, -EIO, "%s: cannot be written", m->cm->paths->state);
}

/* The source is fenced, and the copy is whole. */
static void note_again_or_undo(struct mfs_move *m, struct mfs_cm_move *s)
{
    if (!unsaved_for_long(m)) {
        step_back(m, s, MFS_AT_RECEIVE);
        return;
    }
    blame_state(m, &m->why);
    m->step = MFS_AT_ASK;
    mfs_text_copy(s->step, sizeof s->step, steps[MFS_AT_ASK].saved);
}

/* The step could not be written down: may one be sent for all the same? A cm that comes after us
 * does the step before again, which no other minds. But while the source serves nobody is fenced
 * for what could not be written either. And the source does not serve before "drop" is written or,
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
    blame_state(m, &m->why);
    drop_state(m);
    over(m);
    mfs_move_settle(m, false);
    return false;
}

/* The step fences the source, or may do so. */
static bool fences(const struct mfs_move *m)
{
    return m->step == MFS_AT_TAKE || m->step == MFS_AT_ASK ||
           (m->step == MFS_AT_RECEIVE && m->cold);
}

/* The source serves again, or never will. */
static void count_fenced(struct mfs_move *m)
{
    if (m->fenced_since)
        m->blocked_us += (uint64_t)(mfs_clock_mono() - m->fenced_since) / 1000;
    m->fenced_since = 0;
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
    int rc = add_state(m);

    m->began = mfs_clock_mono();
    m->attempts++;
    m->arrived = 0;
    m->why = (struct mfs_err){0};
    if (rc) {
        mfs_err_set(&m->why, rc, "%s", strerror(-rc));
        over(m);
        mfs_move_settle(m, false);
        return;
    }
    mfs_event_add(m->cm->paths->events, "cm", "move-begins", "partition %u: %s to %s, %s, %s",
                  m->part, node_name(m, m->from), node_name(m, m->to), MFS_TEXT_BYTES(m->bytes),
                  m->cold ? "cold" : "hot");
    mfs_move_enter(m, MFS_AT_RECEIVE);
}

void mfs_move_adopt(struct mfs_move *m, const struct mfs_cm_move *of)
{
    static const enum mfs_move_step firsts[] = {MFS_AT_RECEIVE, MFS_AT_TAKE, MFS_AT_ASK,
                                                MFS_AT_UNFENCE, MFS_AT_BURY, MFS_AT_RELEASE};

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
                  m->part, node_name(m, m->from), node_name(m, m->to), of->step);
}

static void undo(struct mfs_move *m, const struct mfs_err *why)
{
    m->why = *why;
    mfs_event_add(m->cm->paths->events, "cm", "move-failed", "partition %u: %s to %s: %s", m->part,
                  node_name(m, m->from), node_name(m, m->to), why->msg);
    mfs_move_enter(m, MFS_AT_ASK);
}

/* What left all at once has taken the link it had, and another attempt would have clients wait as
 * long again: whether it is still worth that is cm's to weigh anew. */
static bool worth_another(const struct mfs_move *m)
{
    return m->attempts < ATTEMPTS_MOST && m->why.code != -ENODEV && m->why.code != -EINVAL &&
           m->why.code != -EOWNERDEAD && !(m->diskless && m->why.code == -ETIMEDOUT);
}

/* The source serves, the target has nothing. */
static void undone(struct mfs_move *m)
{
    drop_state(m);
    mfs_move_save(m);
    if (worth_another(m) && !m->settled) {
        m->step = MFS_AT_WAITING;
        m->again_at = mfs_clock_mono() + (MFS_SEC << (m->attempts - 1));
        /* A source that is written to faster than it can be copied. */
        m->cold |= m->why.code == -ENOBUFS || m->attempts + 1 == ATTEMPTS_MOST;
        m->changed(m, m->arg);
        return;
    }
    mfs_event_add(m->cm->paths->events, "cm", "move-undone", "partition %u stays at %s: %s",
                  m->part, node_name(m, m->from), m->why.msg);
    over(m);
    if (!m->settled)
        mfs_move_settle(m, false);
}

/* Is the partition fenced meanwhile, or may it be? */
static bool may_be_fenced(const struct mfs_move *m)
{
    return m->fenced_since || (m->step != MFS_AT_DROP && m->step != MFS_AT_RELEASE);
}

static void later(struct mfs_move *m, const struct mfs_err *err)
{
    int64_t pause = AGAIN_FIRST << (m->tries < 6 ? m->tries : 6),
            most = may_be_fenced(m) ? AGAIN_FENCED : AGAIN_MOST;

    if (m->tries++ == 0)
        mfs_warn("move", "partition %u: %s: %s; trying again", m->part, mfs_move_shown(m),
                 err->msg);
    m->again_at = mfs_clock_mono() + (pause < most ? pause : most);
}

/* Does the answer of a node say that there is no such process any more? */
static bool is_gone(const struct mfs_err *err)
{
    return err->code == -ENOENT || err->code == -ESRCH || err->code == -ECHILD ||
           err->code == -ENODEV;
}

static bool passing(const struct mfs_err *err)
{
    return err->code == -ETIMEDOUT || err->code == -EAGAIN || err->code == -EBUSY;
}

/* The target may be all that there is of the partition, and can't take it just now. */
static bool worth_waiting(const struct mfs_move *m, const struct mfs_err *err)
{
    return err->code == -EBUSY || m->tries + 1 < TAKES_MOST;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void received(struct mfs_move *m, const struct mfs_err *err,
                     const struct mfs_msg_receive_reply *r)
{
    if (err) {
        undo(m, err);
        return;
    }
    if (r->bytes) /* none when it has been taken already */
        m->bytes = m->arrived = r->bytes;
    m->copy_us = (uint64_t)(mfs_clock_mono() - m->began) / 1000;
    mfs_move_enter(m, MFS_AT_TAKE);
    m->changed(m, m->arg);
}

static void taken(struct mfs_move *m, const struct mfs_err *err, const struct mfs_msg_take_reply *r)
{
    struct mfs_err why;

    if (!err && mfs_move_cut(m, r) && unsaved_for_long(m)) {
        blame_state(m, &why); /* nobody has the table: the source can serve instead */
        undo(m, &why);
    }
    if (!err)
        return;
    if (err->code == -EAGAIN && m->returns++ < TAKES_MOST)
        mfs_move_enter(m, MFS_AT_RECEIVE); /* the copy is not whole: its lm was killed */
    else if (passing(err) && m->tries + 1 < TAKES_MOST)
        later(m, err);
    else
        undo(m, err);
}

static void dropped(struct mfs_move *m, const struct mfs_err *err)
{
    if (err && !is_gone(err))
        later(m, err);
    else if (m->why.code == -EOWNERDEAD)
        undone(m);
    else
        mfs_move_enter(m, MFS_AT_UNFENCE_LAST);
}

static void asked(struct mfs_move *m, const struct mfs_err *err,
                  const struct mfs_msg_fence_reply *r)
{
    if (!err && r->stream[0]) {
        m->died_at = *r;
        mfs_move_enter(m, MFS_AT_MATCH);
    } else if (!err)
        mfs_move_enter(m, MFS_AT_UNFENCE);
    else if (is_gone(err))
        mfs_move_enter(m, MFS_AT_BURY);
    else
        later(m, err);
}

/* A target that is not exact, or does not tell, is left: the revived source goes on. */
static void matched(struct mfs_move *m, const struct mfs_err *err,
                    const struct mfs_msg_take_reply *r)
{
    if (!err) {
        if (!mfs_move_cut(m, r))
            mfs_event_add(m->cm->paths->events, "cm", "completed",
                          "partition %u: its process at %s died; all that it had acknowledged is "
                          "at %s and goes on there",
                          m->part, node_name(m, m->from), node_name(m, m->to));
        return;
    }
    if (err->code != -ENODATA && !is_gone(err) && worth_waiting(m, err)) {
        later(m, err);
        return;
    }
    mfs_warn("move", "partition %u: its copy is not used: %s", m->part, err->msg);
    mfs_move_enter(m, MFS_AT_UNFENCE);
}

static void source_lost(struct mfs_move *m)
{
    mfs_event_add(m->cm->paths->events, "cm", "partition-lost",
                  "partition %u: its process at %s died after its move to %s was given up", m->part,
                  node_name(m, m->from), node_name(m, m->to));
    mfs_err_set(&m->why, -EOWNERDEAD, "its process died");
}

/* The source has served, or may have, and the target need not have followed. */
static void unfenced(struct mfs_move *m, const struct mfs_err *err)
{
    if (err && !is_gone(err)) {
        later(m, err);
        return;
    }
    if (err)
        source_lost(m);
    count_fenced(m);
    mfs_move_enter(m, MFS_AT_DROP);
}

static void unfenced_last(struct mfs_move *m, const struct mfs_err *err)
{
    if (err && !is_gone(err)) {
        later(m, err);
        return;
    }
    if (err && m->fenced_since) /* it has not served before */
        source_lost(m);
    count_fenced(m);
    undone(m);
}

static void buried(struct mfs_move *m, const struct mfs_err *err)
{
    if (err && !is_gone(err))
        later(m, err);
    else
        mfs_move_enter(m, MFS_AT_FORCE);
}

static void forced(struct mfs_move *m, const struct mfs_err *err,
                   const struct mfs_msg_take_reply *r)
{
    if (!err) {
        if (!mfs_move_cut(m, r))
            mfs_event_add(m->cm->paths->events, "cm", "forced",
                          "partition %u: its process died during the cut-over; what had arrived at "
                          "%s goes on",
                          m->part, node_name(m, m->to));
    } else if (passing(err) && worth_waiting(m, err)) {
        later(m, err);
    } else {
        mfs_event_add(m->cm->paths->events, "cm", "partition-lost",
                      "partition %u: its process at %s died before %s had the copy (%s)", m->part,
                      node_name(m, m->from), node_name(m, m->to), err->msg);
        mfs_err_set(&m->why, -EOWNERDEAD, "its process died while it was copied");
        mfs_move_enter(m, MFS_AT_DROP);
    }
}

static void released(struct mfs_move *m, const struct mfs_err *err)
{
    if (err && !is_gone(err)) {
        later(m, err);
        return;
    }
    drop_state(m);
    mfs_move_save(m);
    over(m);
}

void mfs_move_answer(struct mfs_move *m, const struct mfs_err *err, const void *reply)
{
    switch (m->step) {
    case MFS_AT_RECEIVE:
        received(m, err, reply);
        break;
    case MFS_AT_TAKE:
        taken(m, err, reply);
        break;
    case MFS_AT_RELEASE:
        released(m, err);
        break;
    case MFS_AT_ASK:
        asked(m, err, reply);
        break;
    case MFS_AT_MATCH:
        matched(m, err, reply);
        break;
    case MFS_AT_UNFENCE:
        unfenced(m, err);
        break;
    case MFS_AT_DROP:
        dropped(m, err);
        break;
    case MFS_AT_UNFENCE_LAST:
        unfenced_last(m, err);
        break;
    case MFS_AT_BURY:
        buried(m, err);
        break;
    case MFS_AT_FORCE:
        forced(m, err, reply);
        break;
    default:
        break;
    }
}

/* ---- time ------------------------------------------------------------------------------------ */

void mfs_move_node_changed(struct mfs_move *m, uint32_t node)
{
    if (m->step != MFS_AT_WAITING && m->step != MFS_AT_PUSH && m->step != MFS_AT_OVER &&
        mfs_move_node(m) == node) {
        m->again_at = 0;
        mfs_move_send(m);
    }
}

/* Goes on trying, but nobody waits for it any more. */
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

    mfs_err_set(&why, -ENODEV, "%s is not connected", node_name(m, mfs_move_node(m)));
    if (m->step == MFS_AT_RECEIVE || m->step == MFS_AT_TAKE) {
        undo(m, &why);
    } else if (m->step == MFS_AT_MATCH) {
        matched(m, &why, NULL);
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
        blame_state(m, &why);
        leave_for_later(m, &why);
    } else if (undoes_too_long(m, now)) {
        mfs_err_set(&why, -ETIMEDOUT, "%s does not do it", node_name(m, mfs_move_node(m)));
        leave_for_later(m, &why);
    } else if (m->again_at && now >= m->again_at) {
        m->again_at = 0;
        mfs_move_send(m);
    }
}

void mfs_move_fini(struct mfs_move *m)
{
    mfs_move_forget_call(m);
}
