/* A redis process has died. Another one takes its place at once, with all that its journal tells:
 * names, inodes, sessions, locks (decisions/0016). Only the bytes of stripes are lost. Where that
 * can't be (there is no journal that is whole, or the new ones die, too), the partition is lost: an
 * empty process in its place would look like a file system that forgot its files, so that is
 * reported and left to the operator. One that has a replica is left to that, until cm has given the
 * replica up. */
#include "lm/agent/agent_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"

#define AREA        "redis"
#define DEATHS_MOST 5              /* each … */
#define QUICK       (10 * MFS_SEC) /* … so soon after the one before: it will not live */
#define TRIES_MOST  5              /* to start one, a second or more apart */

struct revive_job {
    struct mfs_job job;
    struct mfs_agent_part *part; /* stays as long as it is reviving */
    struct mfs_instances *instances;
    struct mfs_redis redis;
    struct mfs_revived how;
    int rc;
    struct mfs_err err;
};

static void run_revive(struct mfs_job *job)
{
    struct revive_job *j = (struct revive_job *)job;

    /* The instances have forgotten one that was left to its replica. */
    if (mfs_instances_adopt(j->instances, &j->redis))
        j->rc = mfs_err_set(&j->err, -ENOMEM, "out of memory");
    else
        j->rc = mfs_instances_revive(j->instances, j->redis.part, &j->redis, &j->how, &j->err);
}

static void lose(struct mfs_agent_part *p, const char *why)
{
    struct mfs_agent *a = p->agent;

    p->reviving = false;
    p->lost = true;
    mfs_agent_event(a, "redis-lost",
                    "partition %u: what it held is lost, names and all (%s), see "
                    "node-%u/redis-%u.log",
                    p->redis.part, why, a->opts.node, p->redis.part);
    mfs_agent_part_forget(a, p->redis.part);
    mfs_agent_measure(a); /* for the next report to be without it */
    mfs_agent_save(a);
}

/* One in its place would be a second one beside the replica, which cm has take over. */
static void leave_to_replica(struct mfs_agent_part *p)
{
    struct mfs_agent *a = p->agent;

    p->lost = true;
    mfs_agent_part_forget(a, p->redis.part);
    mfs_agent_measure(a); /* for the next report to be without it */
    mfs_agent_save(a);
}

static void report_revived(struct mfs_agent_part *p, const struct mfs_revived *how)
{
    mfs_metric_observe(p->agent->figures, MFS_AGENT_REVIVAL_TIME, 0, (int64_t)how->us * 1000);
    mfs_agent_event(p->agent, "redis-revived",
                    "partition %u: %s again after %" PRIu64 " ms; %" PRIu64
                    " stripes with %s are lost (memefs lost lists the files)",
                    p->redis.part, how->journal.fenced ? "runs, fenced," : "serves", how->us / 1000,
                    how->journal.stripes, MFS_TEXT_BYTES(how->journal.lost));
}

/* What failed may be of the moment: no memory for a fork, or its port in use. */
static void try_later(struct mfs_agent_part *p, const struct mfs_err *err)
{
    mfs_warn(AREA, "partition %u: can't be started again yet: %s", p->redis.part, err->msg);
    p->reviving = p->again = true;
}

static void revived(struct mfs_job *job)
{
    struct revive_job *j = (struct revive_job *)job;
    struct mfs_agent_part *p = j->part;
    struct mfs_agent *a = p->agent;

    if (a->phase != MFS_AGENT_RUNNING)
        goto out; /* what ends everything ends its process */
    p->reviving = false;
    if (!j->rc)
        p->redis = j->redis;
    if (p->releasing) {
        p->lost = j->rc != 0;
        mfs_agent_part_release(p);
        goto out;
    }
    if (j->rc && j->rc != -ENODATA && ++p->tries < TRIES_MOST) {
        try_later(p, &j->err);
        goto out;
    }
    p->tries = 0;
    if (j->rc) {
        lose(p, j->err.msg);
        goto out;
    }
    mfs_agent_save(a); /* before cm is told; else as soon as it can be, by look_after */
    report_revived(p, &j->how);
    mfs_agent_part_watch(p);
out:
    free(j);
}

static void revive(struct mfs_agent_part *p)
{
    struct mfs_redis_node node = {.dir = p->agent->path.dir};
    struct revive_job *j = calloc(1, sizeof *j);

    p->reviving = true;
    if (!j || !mfs_redis_journal_bytes(&node, p->redis.part)) {
        lose(p, j ? "there is no journal" : "out of memory");
        free(j);
        return;
    }
    *j = (struct revive_job){.job = {run_revive, revived, NULL},
                             .part = p,
                             .instances = p->agent->instances,
                             .redis = p->redis};
    j->redis.maxmemory =
        0; /* what it had is divided among the others by now, if it was forgotten */
    mfs_worker_submit(p->agent->redis_worker, &j->job);
}

void mfs_agent_part_died(struct mfs_agent_part *p, pid_t pid, int status)
{
    struct mfs_agent *a = p->agent;
    int64_t now = mfs_clock_mono();
    char how[64] = "";

    if (a->phase != MFS_AGENT_RUNNING || p->releasing)
        return;
    if (status >= 0 && WIFSIGNALED(status))
        mfs_text_format(how, sizeof how, " by signal %d", WTERMSIG(status));
    else if (status >= 0 && WIFEXITED(status))
        mfs_text_format(how, sizeof how, " with status %d", WEXITSTATUS(status));
    mfs_metric_add(a->figures, MFS_AGENT_DEATHS, 0, 1);
    mfs_agent_event(a, "redis-died", "partition %u: redis-server %d ended%s", p->redis.part,
                    (int)pid, how);
    mfs_agent_report_died(a, &p->redis);
    if (p->termed) {
        leave_to_replica(p);
        return;
    }
    p->deaths = p->died && now - p->died < QUICK ? p->deaths + 1 : 1;
    p->died = now;
    if (p->deaths > DEATHS_MOST)
        lose(p, "its processes die again and again");
    else
        revive(p);
}

int mfs_agent_part_recall(struct mfs_agent *a, uint32_t index, const char *password,
                          struct mfs_err *err)
{
    struct mfs_agent_part *p = mfs_agent_part_find(a, index);

    if (!p || !p->lost || !p->termed || p->releasing || a->phase != MFS_AGENT_RUNNING ||
        strcmp(p->redis.password, password) != 0)
        return 0;
    p->lost = p->termed = false;
    if (mfs_agent_must_save(a, err)) {
        p->lost = p->termed = true;
        return err->code;
    }
    revive(p);
    return 0;
}

static void look_after(struct mfs_agent_part *p)
{
    if (p->again) {
        p->again = false;
        revive(p);
    } else if (p->lost || p->watch || p->reviving || p->releasing) {
        return;
    } else if (mfs_proc_alive(&p->redis.proc)) {
        mfs_agent_part_watch(p);
    } else {
        mfs_agent_part_died(p, p->redis.proc.pid, -1);
    }
}

void mfs_agent_look_after(struct mfs_agent *a)
{
    if (a->phase != MFS_AGENT_RUNNING)
        return;
    if (a->unsaved)
        mfs_agent_save(a);
    for (struct mfs_agent_part *p = a->parts; p; p = p->next)
        look_after(p);
}
