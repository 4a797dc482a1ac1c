#include "cm/change/auto_forget.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cm/change/pause.h"
#include "cm/change/scale/scale.h"

#define LOOK MFS_SEC

struct mfs_auto_forget {
    struct mfs_cm *cm;
    struct mfs_timer *timer;
    struct mfs_pause pause; /* after one that failed */
};

static void done(void *arg, const struct mfs_err *err, const struct mfs_scale_report *r)
{
    struct mfs_auto_forget *a = arg;

    (void)r;
    if (mfs_cm_in_phase(a->cm, MFS_PHASE_STOPPING))
        return;
    if (err)
        mfs_pause_begin(&a->pause, a->cm, "forget-failed", err->msg);
    else
        a->pause = (struct mfs_pause){0};
}

/* What is refused now may be possible a second later: its replicas take over. */
static void forget(struct mfs_auto_forget *a, const struct mfs_node *n, int64_t silence)
{
    struct mfs_scale_node name;
    struct mfs_msg_scale what = {.how = "forget", .nnodes = 1, .node = &name};
    struct mfs_err err = {0};
    char why[MFS_NAME_MAX + 96];

    mfs_text_copy(name.name, sizeof name.name, n->record->name);
    snprintf(why, sizeof why, "--auto-forget: %s has been away for %lld s", n->record->name,
             (long long)(silence / MFS_SEC));
    mfs_scale_begin(a->cm, &what, why, done, a, &err);
}

static void look(void *arg)
{
    struct mfs_auto_forget *a = arg;
    struct mfs_cm *cm = a->cm;
    int64_t now = mfs_clock_mono();

    if (!mfs_cm_in_phase(cm, MFS_PHASE_RUNNING) || cm->step != MFS_STEP_DONE ||
        mfs_cm_exclusive(cm) || now < a->pause.until)
        return;
    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        const struct mfs_node *n = cm->nodes[i];

        if (now - n->last_contact < cm->state.auto_forget * MFS_SEC ||
            mfs_cm_state_count(&cm->state, n->record->id) || n->record->votes)
            continue;
        forget(a, n, now - n->last_contact);
        return;
    }
}

int mfs_auto_forget_init(struct mfs_cm *cm)
{
    struct mfs_auto_forget *a;

    if (!cm->state.auto_forget)
        return 0;
    a = cm->auto_forget = calloc(1, sizeof *a);
    if (!a)
        return -ENOMEM;
    a->cm = cm;
    a->timer = mfs_loop_timer(cm->loop, LOOK, LOOK, look, a);
    return a->timer ? 0 : -ENOMEM;
}

void mfs_auto_forget_fini(struct mfs_cm *cm)
{
    if (!cm->auto_forget)
        return;
    mfs_timer_cancel(cm->auto_forget->timer);
    free(cm->auto_forget);
    cm->auto_forget = NULL;
}
