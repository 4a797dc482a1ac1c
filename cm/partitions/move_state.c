/* What the state has of a move. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "cm/partitions/move_impl.h"

#define SECRET_BYTES 32
#define PATIENCE     (2 * MFS_SEC) /* while clients wait, with a state that can't be written */

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

    /* Clients may be waiting for this, so not for the disk: the change that asked for the moves
     * saves in full at the end. A state that the machine's death sets back leads to the same steps
     * again. */
    rc = mfs_cm_state_note(&m->cm->state, m->cm->paths->state);
    if (rc)
        mfs_error("move", "%s: %s", m->cm->paths->state, strerror(-rc));
    if (!rc)
        m->unsaved_since = 0;
    else if (!m->unsaved_since)
        m->unsaved_since = mfs_clock_mono();
    return rc;
}

/* While clients wait: it may only have been unwritable for a moment. */
bool mfs_move_unsaved_for_long(const struct mfs_move *m)
{
    return m->unsaved_since && mfs_clock_mono() - m->unsaved_since >= PATIENCE;
}

void mfs_move_blame_state(const struct mfs_move *m, struct mfs_err *why)
{
    mfs_err_set(why, -EIO, "%s: cannot be written", m->cm->paths->state);
}

int mfs_move_state_add(struct mfs_move *m)
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

void mfs_move_state_drop(struct mfs_move *m)
{
    struct mfs_cm_state *s = &m->cm->state;
    struct mfs_cm_move *mine = mfs_move_state(m);

    if (mine)
        *mine = s->move[--s->nmoves];
}
