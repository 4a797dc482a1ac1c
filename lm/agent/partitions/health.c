/* Which processes are checked for health: those that have a replica, and replicas. What is found is
 * reported to cm at once. */
#include "lm/agent/partitions/incoming.h"

#include <errno.h>

#include "base/clock.h"
#include "lm/redis/health.h"

static void changed(void *arg)
{
    mfs_agent_report(arg);
}

static void check(struct mfs_agent *a, struct mfs_health **health, const struct mfs_redis *r,
                  bool wanted, int64_t now)
{
    if (!wanted) {
        mfs_health_end(*health);
        *health = NULL;
        return;
    }
    if (!*health) /* without memory: at the next check */
        *health = mfs_health_begin(a->loop, r->unix_path, r->admin_password, changed, a);
    if (*health)
        mfs_health_check(*health, now);
}

static void check_all(void *arg)
{
    struct mfs_agent *a = arg;
    int64_t now = mfs_clock_mono();
    bool running = a->phase == MFS_AGENT_RUNNING;

    for (struct mfs_agent_part *p = a->parts; p; p = p->next)
        check(a, &p->health, &p->redis,
              running && p->termed && !p->lost && !p->reviving && !p->releasing, now);
    for (struct mfs_agent_copy *c = a->copies; c; c = c->next)
        check(a, &c->health, &c->redis,
              running && c->whole && !c->dead && c->step != MFS_COPY_ENDING, now);
}

int mfs_agent_health_begin(struct mfs_agent *a)
{
    return mfs_loop_timer(a->loop, MFS_HEALTH_NS, MFS_HEALTH_NS, check_all, a) ? 0 : -ENOMEM;
}
