/* What nodes answer to the steps of a move, and the step that each answer leads to. A loss of the
 * connection is no answer: the message is sent again. Errors that may pass (timeouts, EAGAIN,
 * EBUSY) repeat the step after a pause; others undo the move, as long as the partition is not the
 * target's. */
#include <assert.h>
#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "cm/state/events.h"
#include "cm/partitions/move_impl.h"

#define ATTEMPTS_MOST 3 /* of the whole; the last one is cold */
#define TAKES_MOST    3
#define AGAIN_FIRST   (500 * MFS_MSEC)
#define AGAIN_MOST    (30 * MFS_SEC)
#define AGAIN_FENCED  (2 * MFS_SEC) /* while clients wait */

static_assert(AGAIN_FIRST < AGAIN_MOST, "the pause grows");
static_assert(AGAIN_FENCED < AGAIN_MOST, "clients wait for a fenced partition");

/* ---- undone, or once more -------------------------------------------------------------------- */

void mfs_move_undo(struct mfs_move *m, const struct mfs_err *why)
{
    m->why = *why;
    mfs_event_add(m->cm->paths->events, "cm", "move-failed", "partition %u: %s to %s: %s", m->part,
                  mfs_move_name_of(m, m->from), mfs_move_name_of(m, m->to), why->msg);
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
    mfs_move_state_drop(m);
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
                  m->part, mfs_move_name_of(m, m->from), m->why.msg);
    mfs_move_over(m);
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

/* The source serves again, or never will. */
static void count_fenced(struct mfs_move *m)
{
    if (m->fenced_since)
        m->blocked_us += (uint64_t)(mfs_clock_mono() - m->fenced_since) / 1000;
    m->fenced_since = 0;
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

/* ---- by step --------------------------------------------------------------------------------- */

static void received(struct mfs_move *m, const struct mfs_err *err,
                     const struct mfs_msg_receive_reply *r)
{
    if (err) {
        mfs_move_undo(m, err);
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

    if (!err && mfs_move_cut(m, r) && mfs_move_unsaved_for_long(m)) {
        mfs_move_blame_state(m, &why); /* no client has the table: the source can serve instead */
        mfs_move_undo(m, &why);
    }
    if (!err)
        return;
    if (err->code == -EAGAIN && m->returns++ < TAKES_MOST)
        mfs_move_enter(m, MFS_AT_RECEIVE); /* the copy is not whole: its lm was killed */
    else if (passing(err) && m->tries + 1 < TAKES_MOST)
        later(m, err);
    else
        mfs_move_undo(m, err);
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
        mfs_move_enter(m, MFS_AT_END_SOURCE);
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
                          m->part, mfs_move_name_of(m, m->from), mfs_move_name_of(m, m->to));
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
                  mfs_move_name_of(m, m->from), mfs_move_name_of(m, m->to));
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

static void source_ended(struct mfs_move *m, const struct mfs_err *err)
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
                          m->part, mfs_move_name_of(m, m->to));
    } else if (passing(err) && worth_waiting(m, err)) {
        later(m, err);
    } else {
        mfs_event_add(m->cm->paths->events, "cm", "partition-lost",
                      "partition %u: its process at %s died before %s had the copy (%s)", m->part,
                      mfs_move_name_of(m, m->from), mfs_move_name_of(m, m->to), err->msg);
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
    mfs_move_state_drop(m);
    mfs_move_save(m);
    mfs_move_over(m);
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
    case MFS_AT_END_SOURCE:
        source_ended(m, err);
        break;
    case MFS_AT_FORCE:
        forced(m, err, reply);
        break;
    default:
        break;
    }
}
