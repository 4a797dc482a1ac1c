#include "cm/nodes/hung.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cm/nodes/provision.h"
#include "cm/state/events.h"

#define LOOK_EACH (2 * MFS_SEC)
#define LATE      (2 * LOOK_EACH) /* a look that comes so late: cm itself was stopped, or starved */

static_assert(2 * MFS_REPORT_EACH < MFS_HUNG_TIME, "reports come within that time");
static_assert(MFS_RETURN_TIME < MFS_HUNG_TIME, "so does a Local Manager that looks for cm");

struct mfs_hung {
    int64_t looked;    /* mono; 0: not yet */
    int64_t attentive; /* since then cm hears what comes */
};

/* One that comes or goes has its own time limit (change/scale.h). */
static bool is_watched(const struct mfs_node *n)
{
    return n->provided == MFS_PROVIDED_STARTED && !n->record->transition[0];
}

static void end_hung(struct mfs_node *n, int64_t silent)
{
    int rc;

    n->begun = mfs_clock_mono();
    mfs_event_add(n->cm->paths->events, n->record->name, "lm-hung",
                  "%s has said nothing for %lld s: it is killed, and started again", n->what,
                  (long long)(silent / MFS_SEC));
    rc = mfs_provision_signal(n, SIGKILL);
    if (rc)
        mfs_warn("hung", "%s: %s: %s", n->record->name, n->what, strerror(-rc));
}

/* Silence counts from when cm last had reason to expect a word. */
static int64_t silence(const struct mfs_hung *h, const struct mfs_node *n, int64_t now)
{
    int64_t from = n->last_contact > h->attentive ? n->last_contact : h->attentive;

    return now - (from > n->begun ? from : n->begun);
}

/* What came while cm could not look may not have been read yet. */
static void look(void *arg)
{
    struct mfs_cm *cm = arg;
    struct mfs_hung *h = cm->hung;
    int64_t now = mfs_clock_mono();

    if (now - h->looked > LATE || cm->step != MFS_STEP_DONE ||
        !mfs_cm_in_phase(cm, MFS_PHASE_RUNNING))
        h->attentive = now;
    h->looked = now;
    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        struct mfs_node *n = cm->nodes[i];
        int64_t silent = silence(h, n, now);

        if (is_watched(n) && silent >= MFS_HUNG_TIME)
            end_hung(n, silent);
    }
}

int mfs_hung_begin(struct mfs_cm *cm)
{
    if (!cm->provider->traits->sees_processes)
        return 0;
    cm->hung = calloc(1, sizeof *cm->hung);
    return cm->hung && mfs_loop_timer(cm->loop, LOOK_EACH, LOOK_EACH, look, cm) ? 0 : -ENOMEM;
}

void mfs_hung_fini(struct mfs_cm *cm)
{
    free(cm->hung);
    cm->hung = NULL;
}
