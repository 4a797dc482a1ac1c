/* The list of incoming copies, and how one ends. */
#include "lm/agent/partitions/incoming.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/log.h"
#include "base/text.h"
#include "lm/redis/health.h"
#include "net/loop.h"

#define AREA "move"

struct mfs_agent_copy *mfs_agent_copy_find(const struct mfs_agent *a, uint32_t part)
{
    struct mfs_agent_copy *c = a->copies;

    while (c && c->redis.part != part)
        c = c->next;
    return c;
}

struct mfs_agent_copy *mfs_agent_copy_add(struct mfs_agent *a, const struct mfs_redis *r)
{
    struct mfs_agent_copy *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->agent = a;
    c->redis = *r;
    c->redis.incoming = true;
    c->mover.part = r->part;
    mfs_text_copy(c->mover.target_password, sizeof c->mover.target_password, r->admin_password);
    c->next = a->copies;
    a->copies = c;
    mfs_agent_health_follow(a);
    return c;
}

static void died(struct mfs_agent_copy *c, const char *how)
{
    struct mfs_agent *a = c->agent;

    if (!c->dead)
        mfs_agent_event(a, "copy-died",
                        "partition %u: redis-server %d, which was receiving it, ended%s, see "
                        "node-%u/redis-%u.log",
                        c->redis.part, (int)c->redis.proc.pid, how, a->opts.node, c->redis.part);
    if (!c->dead)
        mfs_agent_report_died(a, &c->redis);
    c->dead = true;
}

bool mfs_agent_copy_alive(struct mfs_agent_copy *c)
{
    if (!c->dead && c->redis.proc.pid && !mfs_proc_alive(&c->redis.proc))
        died(c, "");
    return !c->dead;
}

/* What runs for it notices by itself; what does not is ended here. */
static void process_gone(void *arg, pid_t pid, int status)
{
    struct mfs_agent_copy *c = arg;
    struct mfs_agent *a = c->agent;
    char how[32] = "";

    (void)pid;
    c->watch = NULL;
    atomic_store(&c->mover.cancel, true);
    if (a->phase != MFS_AGENT_RUNNING || c->step == MFS_COPY_ENDING)
        return;
    if (status >= 0 && WIFSIGNALED(status))
        mfs_text_format(how, sizeof how, " by signal %d", WTERMSIG(status));
    died(c, how);
    if (c->step == MFS_COPY_IDLE)
        mfs_agent_copy_end(c);
}

void mfs_agent_copy_started(struct mfs_agent_copy *c)
{
    mfs_text_copy(c->mover.target_path, sizeof c->mover.target_path, c->redis.unix_path);
    c->watch = mfs_loop_process(c->agent->loop, c->redis.proc.pid, process_gone, c);
    if (!c->watch)
        mfs_agent_copy_alive(c); /* without, it is looked at when a step is over */
}

static void reply_gone(struct mfs_deferred *d, uint32_t node, uint32_t part)
{
    mfs_deferred_fail(d, -ECANCELED, "node %u: the copy of partition %u was given up", node, part);
}

void mfs_agent_copy_remove(struct mfs_agent_copy *c)
{
    struct mfs_agent_copy **at = &c->agent->copies;

    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    mfs_watch_remove(c->watch);
    mfs_health_end(c->health);
    reply_gone(&c->asker, c->agent->opts.node, c->redis.part);
    reply_gone(&c->releaser, c->agent->opts.node, c->redis.part);
    free(c);
}

void mfs_agent_copies_cancel(struct mfs_agent *a)
{
    for (struct mfs_agent_copy *c = a->copies; c; c = c->next)
        atomic_store(&c->mover.cancel, true);
}

void mfs_agent_copies_free(struct mfs_agent *a)
{
    while (a->copies)
        mfs_agent_copy_remove(a->copies);
}

static void ended(void *arg)
{
    struct mfs_agent_copy *c = arg;
    struct mfs_agent *a = c->agent;

    mfs_deferred_reply(&c->releaser, MFS_MSG_RELEASE, NULL);
    mfs_agent_copy_remove(c);
    if (a->phase == MFS_AGENT_RUNNING)
        mfs_agent_save(a);
}

void mfs_agent_copy_end(struct mfs_agent_copy *c)
{
    c->step = MFS_COPY_ENDING;
    if (c->redis.proc.pid)
        mfs_agent_end_process(c->agent, &c->redis, ended, c);
    else
        ended(c);
}

uint32_t mfs_agent_copies_list(const struct mfs_agent *a, struct mfs_report_copy *out)
{
    uint32_t n = 0;

    for (struct mfs_agent_copy *c = a->copies; c; c = c->next) {
        if (out)
            out[n] = (struct mfs_report_copy){.index = c->redis.part,
                                              .bytes = atomic_load(&c->mover.bytes),
                                              .silent = mfs_health_silent(c->health)};
        n++;
    }
    return n;
}

void mfs_agent_copy_put(const struct mfs_agent_copy *c, struct mfs_state_copy *s)
{
    mfs_agent_redis_put(&c->redis, &s->redis);
    mfs_text_copy(s->source_host, sizeof s->source_host, c->mover.source_host);
    mfs_text_copy(s->source_admin_password, sizeof s->source_admin_password,
                  c->mover.source_password);
    s->source_port = c->mover.source_port;
    s->expected = c->redis.expected;
    s->whole = c->whole;
}

int mfs_agent_copy_restore(struct mfs_agent *a, const struct mfs_state_copy *s)
{
    struct mfs_redis r = mfs_agent_redis_get(&s->redis);
    struct mfs_agent_copy *c;

    r.expected = s->expected;
    r.incoming = true;
    if (mfs_instances_adopt(a->instances, &r))
        return -ENOMEM;
    c = mfs_agent_copy_add(a, &r);
    if (!c)
        return -ENOMEM;
    mfs_text_copy(c->mover.source_host, sizeof c->mover.source_host, s->source_host);
    mfs_text_copy(c->mover.source_password, sizeof c->mover.source_password,
                  s->source_admin_password);
    c->mover.source_port = (uint16_t)s->source_port;
    c->whole = s->whole;
    if (mfs_proc_alive(&r.proc))
        mfs_agent_copy_started(c);
    else
        died(c, " while no lm was there");
    return 0;
}

void mfs_agent_copies_end_dead(struct mfs_agent *a)
{
    for (struct mfs_agent_copy *c = a->copies, *next; c; c = next) {
        next = c->next;
        if (c->dead && c->step == MFS_COPY_IDLE)
            mfs_agent_copy_end(c); /* its files are there still */
    }
}
