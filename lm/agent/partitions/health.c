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

static bool is_checked(const struct mfs_agent_part *p)
{
    return p->agent->phase == MFS_AGENT_RUNNING && p->termed && !p->lost && !p->reviving &&
           !p->releasing;
}

static bool copy_is_checked(const struct mfs_agent_copy *c)
{
    return c->agent->phase == MFS_AGENT_RUNNING && c->whole && !c->dead &&
           c->step != MFS_COPY_ENDING;
}

static void check_all(void *arg)
{
    struct mfs_agent *a = arg;
    int64_t now = mfs_clock_mono();

    for (struct mfs_agent_part *p = a->parts; p; p = p->next)
        check(a, &p->health, &p->redis, is_checked(p), now);
    for (struct mfs_agent_copy *c = a->copies; c; c = c->next)
        check(a, &c->health, &c->redis, copy_is_checked(c), now);
}

/* Where there are replicas it is wanted all the time: what is to be checked may change at any. */
static bool is_wanted(const struct mfs_agent *a)
{
    bool wanted = a->copies || (a->table && a->table->replicated);

    for (const struct mfs_agent_part *p = a->parts; p; p = p->next)
        wanted = wanted || p->health || is_checked(p);
    return wanted;
}

void mfs_agent_health_follow(struct mfs_agent *a)
{
    bool wanted = is_wanted(a);

    if (wanted && !a->health) {
        a->health = mfs_loop_timer(a->loop, MFS_HEALTH_NS, MFS_HEALTH_NS, check_all, a);
    } else if (!wanted) {
        mfs_timer_cancel(a->health);
        a->health = NULL;
    }
}
