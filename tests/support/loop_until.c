#include "loop_until.h"

#include "base/clock.h"

struct pump {
    struct mfs_loop *loop;
    bool (*holds)(void *arg);
    void *arg;
    int64_t until;
};

static void look(void *arg)
{
    struct pump *p = arg;

    if (p->holds(p->arg) || mfs_clock_mono() > p->until)
        mfs_loop_stop(p->loop);
}

bool loop_until(struct mfs_loop *loop, bool (*holds)(void *arg), void *arg)
{
    struct pump p = {loop, holds, arg, mfs_clock_mono() + 20 * MFS_SEC};
    struct mfs_timer *t = mfs_loop_timer(loop, 0, 5 * MFS_MSEC, look, &p);

    mfs_loop_run(loop);
    mfs_timer_cancel(t);
    return holds(arg);
}
