/* An operator gives up a change: nodes that were to come go again; where partitions move, no more
 * of them do, and what could not be emptied stays. */
#include <errno.h>
#include <string.h>

#include "cm/partitions/migrate.h"
#include "cm/change/scale/impl.h"

static const char why[] = "cancelled by the operator";

/* Moves that are under way end first, which tells scale.c; between two attempts there are none. */
static void give_up_moving(struct mfs_scale *s)
{
    s->replan = false;
    if (!s->timer) {
        mfs_migrate_cancel(s->cm, why);
        return;
    }
    mfs_timer_cancel(s->timer);
    s->timer = NULL;
    mfs_scale_moved(s);
}

/* From here on there is no way back, or it is the way back. */
static bool is_ending(const struct mfs_cm *cm)
{
    return !mfs_scale_in(cm, MFS_SCALE_COME) && !mfs_scale_in(cm, MFS_SCALE_MOVE);
}

int mfs_scale_cancel(struct mfs_cm *cm, mfs_scale_done *done, void *arg, struct mfs_err *err)
{
    const struct mfs_cm_scale *sc = &cm->state.scale;
    struct mfs_scale *s = cm->scale;

    if (!mfs_cm_changing(cm) || !s)
        return mfs_err_set(err, -ESRCH, "no change of nodes is under way");
    if (sc->urgent)
        return mfs_err_set(err, -EPERM, "the node that leaves will end whatever happens (by %s)",
                           sc->who);
    if (s->failure.code || is_ending(cm))
        return mfs_err_set(err, -EBUSY, "the change is about to end (step %s)", sc->step);
    if (mfs_scale_wait(s, done, arg))
        return mfs_err_set(err, -ENOMEM, "out of memory");
    mfs_scale_failed(s, -ECANCELED, "%s", why);
    if (mfs_scale_in(cm, MFS_SCALE_COME))
        mfs_scale_give_up_coming(s);
    else
        give_up_moving(s);
    return 0;
}
