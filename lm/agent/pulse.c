/* Which processes have their pulse felt: those whose failure a replica is for, or means the loss of
 * one. What is found is reported to cm at once. */
#include "lm/agent/incoming.h"

#include <errno.h>

#include "base/clock.h"
#include "lm/redis/pulse.h"

static void changed(void *arg)
{
    mfs_agent_report(arg);
}

static void feel(struct mfs_agent *a, struct mfs_pulse **pulse, const struct mfs_redis *r,
                 bool wanted, int64_t now)
{
    if (!wanted) {
        mfs_pulse_end(*pulse);
        *pulse = NULL;
        return;
    }
    if (!*pulse) /* without memory: at the next beat */
        *pulse = mfs_pulse_begin(a->loop, r->unix_path, r->admin_password, changed, a);
    if (*pulse)
        mfs_pulse_beat(*pulse, now);
}

static void beat(void *arg)
{
    struct mfs_agent *a = arg;
    int64_t now = mfs_clock_mono();
    bool running = a->phase == MFS_AGENT_RUNNING;

    for (struct mfs_agent_part *p = a->parts; p; p = p->next)
        feel(a, &p->pulse, &p->redis,
             running && p->termed && !p->lost && !p->reviving && !p->releasing, now);
    for (struct mfs_agent_copy *c = a->copies; c; c = c->next)
        feel(a, &c->pulse, &c->redis, running && c->whole && !c->dead && c->step != MFS_COPY_ENDING,
             now);
}

int mfs_agent_pulses_begin(struct mfs_agent *a)
{
    return mfs_loop_timer(a->loop, MFS_PULSE_NS, MFS_PULSE_NS, beat, a) ? 0 : -ENOMEM;
}
