/* The agent's partitions: the list, their processes, and the jobs that start, measure and end them.
 *
 * The list belongs to the loop's thread, the instances to jobs of the redis worker, one after
 * another; a job carries copies and its `done` changes the list. A partition is listed from its
 * assignment or cut until its release; lost says that its process died with its content. */
#include "lm/agent/agent_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "lm/jobs/job_threads.h"
#include "lm/agent/partitions/incoming.h"
#include "lm/redis/health.h"
#include "net/loop.h"

#define AREA "redis"
#define SOON (100 * MFS_MSEC) /* to the next look while a process is near its limit */

/* ---- partitions ------------------------------------------------------------------------------ */

struct mfs_agent_part *mfs_agent_part_find(const struct mfs_agent *a, uint32_t index)
{
    struct mfs_agent_part *p = a->parts;

    while (p && p->redis.part != index)
        p = p->next;
    return p;
}

struct mfs_agent_part *mfs_agent_part_meant(const struct mfs_agent *a, uint32_t index,
                                            const char *password)
{
    struct mfs_agent_part *p = mfs_agent_part_find(a, index);

    return p && !p->lost && !p->releasing && !strcmp(p->redis.password, password) ? p : NULL;
}

void mfs_agent_part_remove(struct mfs_agent *a, struct mfs_agent_part *p)
{
    struct mfs_agent_part **at = &a->parts;

    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    mfs_watch_remove(p->watch);
    mfs_health_end(p->health);
    mfs_metric_change(a->figures, MFS_AGENT_PARTITIONS, 0, -1);
    free(p);
}

void mfs_agent_parts_free(struct mfs_agent *a)
{
    while (a->parts)
        mfs_agent_part_remove(a, a->parts);
}

struct forget_job {
    struct mfs_job job;
    struct mfs_instances *instances;
    uint32_t part;
};

static void run_forget(struct mfs_job *job)
{
    struct forget_job *j = (struct forget_job *)job;

    mfs_instances_forget(j->instances, j->part);
}

static void run_arrived(struct mfs_job *job)
{
    struct forget_job *j = (struct forget_job *)job;

    mfs_instances_arrived(j->instances, j->part);
}

static void run_settle(struct mfs_job *job)
{
    struct forget_job *j = (struct forget_job *)job;

    mfs_instances_settle(j->instances, j->part);
}

static void free_job(struct mfs_job *job)
{
    free(job);
}

static void submit(struct mfs_agent *a, uint32_t part, void (*run)(struct mfs_job *))
{
    struct forget_job *j = calloc(1, sizeof *j);

    if (!j)
        return; /* it counts with what it held on arrival at least */
    *j = (struct forget_job){{run, free_job, NULL}, a->instances, part};
    mfs_worker_submit(a->redis_worker, &j->job);
}

void mfs_agent_arrived(struct mfs_agent *a, uint32_t part)
{
    submit(a, part, run_arrived);
}

void mfs_agent_settle(struct mfs_agent *a, uint32_t part)
{
    submit(a, part, run_settle);
}

void mfs_agent_part_forget(struct mfs_agent *a, uint32_t part)
{
    struct forget_job *j = calloc(1, sizeof *j);

    if (!j)
        return; /* it stays listed and silent, which does no harm but to its share of memory */
    *j = (struct forget_job){{run_forget, free_job, NULL}, a->instances, part};
    mfs_worker_submit(a->redis_worker, &j->job);
}

static void redis_gone(void *arg, pid_t pid, int status)
{
    struct mfs_agent_part *p = arg;

    p->watch = NULL;
    mfs_agent_part_died(p, pid, status);
}

void mfs_agent_part_watch(struct mfs_agent_part *p)
{
    int rc;

    p->watch = mfs_loop_process(p->agent->loop, p->redis.proc.pid, redis_gone, p);
    if (p->watch)
        return;
    rc = -errno;
    if (mfs_proc_alive(&p->redis.proc))
        mfs_warn(AREA, "partition %u: process %d can't be watched yet: %s", p->redis.part,
                 (int)p->redis.proc.pid, strerror(-rc));
    else
        mfs_agent_part_died(p, p->redis.proc.pid, -1);
}

struct mfs_agent_part *mfs_agent_part_add(struct mfs_agent *a, const struct mfs_redis *r, bool lost)
{
    struct mfs_agent_part *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->agent = a;
    p->redis = *r;
    p->lost = lost;
    p->next = a->parts;
    a->parts = p;
    mfs_metric_change(a->figures, MFS_AGENT_PARTITIONS, 0, 1);
    if (!lost)
        mfs_agent_part_watch(p);
    return p;
}

int mfs_agent_instances_open(struct mfs_agent *a, uint32_t nparts, uint32_t stripe_size,
                             uint64_t memory)
{
    struct mfs_instances_opts opts = {.dir = a->path.dir,
                                      .dump_dir = a->path.dump,
                                      .address = a->opts.address,
                                      .deployment = a->opts.name,
                                      .nparts = nparts,
                                      .stripe_size = stripe_size,
                                      .memory = memory};
    int rc = mfs_instances_create(&a->instances, &opts);

    if (!rc) {
        a->nparts = nparts;
        a->stripe_size = stripe_size;
        a->memory = memory;
    }
    return rc;
}

/* ---- ending one ------------------------------------------------------------------------------ */

struct end_job {
    struct mfs_job job;
    struct mfs_agent *agent;
    struct mfs_redis_node node;
    struct mfs_instances *instances;
    struct mfs_redis redis;
    void (*ended)(void *arg);
    void *arg;
};

static void run_end(struct mfs_job *job)
{
    struct end_job *j = (struct end_job *)job;

    mfs_redis_end(&j->node, &j->redis);
}

static void end_done(struct mfs_job *job)
{
    struct end_job *j = (struct end_job *)job;

    j->ended(j->arg);
    free(j);
}

static void run_leave(struct mfs_job *job)
{
    struct end_job *j = (struct end_job *)job;

    mfs_instances_forget(j->instances, j->redis.part);
}

static void left(struct mfs_job *job)
{
    struct end_job *j = (struct end_job *)job;
    int rc;

    j->job = (struct mfs_job){run_end, end_done, NULL};
    rc = mfs_job_threads_run(j->agent->job_threads, "end", &j->job);
    if (!rc)
        return;
    mfs_warn(AREA, "partition %u: ending it holds everything up: %s", j->redis.part, strerror(-rc));
    run_end(job);
    end_done(job);
}

void mfs_agent_end_process(struct mfs_agent *a, const struct mfs_redis *r, void (*ended)(void *arg),
                           void *arg)
{
    struct end_job *j = calloc(1, sizeof *j);

    if (!j) {
        mfs_error(AREA, "partition %u: out of memory, its process stays", r->part);
        ended(arg);
        return;
    }
    *j = (struct end_job){.job = {run_leave, left, NULL},
                          .agent = a,
                          .node = {.dir = a->path.dir, .dump_dir = a->path.dump},
                          .instances = a->instances,
                          .redis = *r,
                          .ended = ended,
                          .arg = arg};
    mfs_worker_submit(a->redis_worker, &j->job);
}

/* ---- measuring ------------------------------------------------------------------------------- */

struct measure_job {
    struct mfs_job job;
    struct mfs_agent *agent;
    struct mfs_instances *instances;
    struct mfs_instances_sample sample;
};

static void run_measure(struct mfs_job *job)
{
    struct measure_job *j = (struct measure_job *)job;

    mfs_instances_measure(j->instances, &j->sample);
}

static void look_again(void *arg)
{
    struct mfs_agent *a = arg;

    a->measured.soon = NULL;
    mfs_agent_measure(a);
}

static size_t count_silent(const struct mfs_instances_sample *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        n += s->part[i].silent;
    return n;
}

static size_t count_told(const struct mfs_instances_sample *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        n += s->part[i].told && !s->part[i].incoming;
    return n;
}

static void measured(struct mfs_job *job)
{
    struct measure_job *j = (struct measure_job *)job;
    struct mfs_agent *a = j->agent;
    const struct mfs_instances_sample *before = &a->measured.sample;
    /* A silent process, of which cm may have a replica; or one that tells for the first time. */
    bool news = count_silent(&j->sample) > count_silent(before) ||
                count_told(&j->sample) > count_told(before);

    free(a->measured.sample.part);
    a->measured.sample = j->sample;
    a->measured.under_way = false;
    if (news)
        mfs_agent_report(a);
    if (a->measured.sample.urgent && !a->measured.soon && a->phase == MFS_AGENT_RUNNING)
        a->measured.soon = mfs_loop_timer(a->loop, SOON, 0, look_again, a);
    free(j);
}

void mfs_agent_measure(struct mfs_agent *a)
{
    struct measure_job *j;

    if (!a->instances || a->measured.under_way || a->phase != MFS_AGENT_RUNNING)
        return;
    j = calloc(1, sizeof *j);
    if (!j)
        return;
    *j = (struct measure_job){
        .job = {run_measure, measured, NULL}, .agent = a, .instances = a->instances};
    a->measured.under_way = true;
    mfs_worker_submit(a->redis_worker, &j->job);
}

/* ---- the end --------------------------------------------------------------------------------- */

struct stop_job {
    struct mfs_job job;
    struct mfs_agent *agent;
    struct mfs_instances *instances;
    void (*done)(struct mfs_agent *a);
};

static void run_stop(struct mfs_job *job)
{
    struct stop_job *j = (struct stop_job *)job;

    if (j->instances)
        mfs_instances_stop_all(j->instances);
}

static void stopped(struct mfs_job *job)
{
    struct stop_job *j = (struct stop_job *)job;

    j->done(j->agent);
    free(j);
}

void mfs_agent_stop_redis(struct mfs_agent *a, void (*done)(struct mfs_agent *a))
{
    struct stop_job *j = calloc(1, sizeof *j);

    mfs_agent_copies_cancel(a);
    mfs_agent_images_drop(a);
    if (!j) {
        mfs_error(AREA, "out of memory, redis processes are left running");
        done(a);
        return;
    }
    *j = (struct stop_job){{run_stop, stopped, NULL}, a, a->instances, done};
    mfs_worker_submit(a->redis_worker, &j->job);
}
