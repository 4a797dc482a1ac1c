/* Copies that come: what cm asks for before a partition is taken, see docs/design/migration.md. */
#include "lm/agent/partitions/copy_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"

#define AREA "move"

static void run_copy(struct mfs_job *job)
{
    struct mfs_copy_job *j = (struct mfs_copy_job *)job;

    j->rc = mfs_mover_copy(&j->copy->mover, &j->err);
}

static void reply_received(struct mfs_agent_copy *c)
{
    struct mfs_msg_receive_reply m = {.index = c->redis.part,
                                      .port = c->redis.port,
                                      .bytes = atomic_load(&c->mover.bytes),
                                      .duration_us = c->duration_us};

    mfs_deferred_reply(&c->asker, MFS_MSG_RECEIVE, &m);
}

static void copied(struct mfs_job *job)
{
    struct mfs_copy_job *j = (struct mfs_copy_job *)job;
    struct mfs_agent_copy *c = j->copy;

    if (mfs_copy_step_over(c, j))
        goto out;
    c->whole = !j->rc;
    if (!j->rc && mfs_agent_must_save(c->agent, &j->err)) {
        c->whole = false;
        j->rc = j->err.code;
    }
    if (j->rc) {
        mfs_copy_fail(c, &j->err);
        goto out;
    }
    c->step = MFS_COPY_IDLE;
    mfs_agent_arrived(c->agent, c->redis.part);
    c->duration_us = (uint64_t)(mfs_clock_mono() - c->begun) / 1000;
    mfs_info(AREA, "partition %u: %llu bytes are here and follow %s:%u, after %llu ms",
             c->redis.part, (unsigned long long)atomic_load(&c->mover.bytes), c->mover.source_host,
             c->mover.source_port, (unsigned long long)c->duration_us / 1000);
    reply_received(c);
out:
    free(j);
}

static void run_start(struct mfs_job *job)
{
    struct mfs_copy_job *j = (struct mfs_copy_job *)job;

    mfs_instances_set_memory(j->instances, j->memory);
    j->rc = mfs_instances_start(j->instances, &j->redis, 1, &j->err);
    if (!j->rc)
        j->rc = mfs_instances_find(j->instances, j->redis.part, &j->redis);
}

static void started(struct mfs_job *job)
{
    struct mfs_copy_job *j = (struct mfs_copy_job *)job;
    struct mfs_agent_copy *c = j->copy;

    if (!j->rc) {
        c->redis = j->redis;
        c->agent->memory = j->memory;
        mfs_agent_copy_started(c);
        j->rc = mfs_agent_must_save(c->agent, &j->err); /* before it holds anything */
    }
    if (mfs_copy_step_over(c, j))
        goto out;
    if (j->rc)
        mfs_copy_fail(c, &j->err);
    else
        mfs_copy_run(c, MFS_COPY_COPYING, mfs_copy_job_create(c, run_copy, copied));
out:
    free(j);
}

static void run_survey(struct mfs_job *job)
{
    struct mfs_copy_job *j = (struct mfs_copy_job *)job;

    j->rc = mfs_mover_survey(&j->copy->mover, &j->redis.expected, &j->err);
}

static void surveyed(struct mfs_job *job)
{
    struct mfs_copy_job *j = (struct mfs_copy_job *)job, *start;
    struct mfs_agent_copy *c = j->copy;
    struct mfs_agent *a = c->agent;

    if (mfs_copy_step_over(c, j))
        goto out;
    if (j->rc) {
        mfs_copy_fail(c, &j->err);
        goto out;
    }
    if (j->redis.expected > c->redis.expected)
        c->redis.expected = j->redis.expected;
    start = mfs_copy_job_create(c, run_start, started);
    if (!start) {
        mfs_err_set(&j->err, -ENOMEM, "out of memory");
        mfs_copy_fail(c, &j->err);
        goto out;
    }
    start->instances = a->instances;
    start->redis = c->redis;
    start->memory = j->memory;
    c->step = MFS_COPY_STARTING;
    mfs_worker_submit(a->redis_worker, &start->job);
out:
    free(j);
}

/* A partition that is here already: done, or in the way. 1: done. */
static int check_here(struct mfs_agent *a, const struct mfs_msg_receive *m, struct mfs_err *err)
{
    struct mfs_agent_part *p = mfs_agent_part_find(a, m->index);
    struct mfs_agent_copy *c = mfs_agent_copy_find(a, m->index);

    if (p && p->releasing)
        return mfs_err_set(err, -EBUSY, "partition %u is just being ended here", m->index);
    if (p && !p->lost && !strcmp(p->redis.password, m->password))
        return 1;
    if (p && !p->lost)
        return mfs_err_set(err, -EEXIST, "partition %u runs here", m->index);
    if (c && (strcmp(c->redis.password, m->password) || c->step == MFS_COPY_ENDING))
        return mfs_err_set(err, -EBUSY, "another copy of partition %u is here; release it first",
                           m->index);
    if (c && c->step == MFS_COPY_CUTTING)
        return mfs_err_set(err, -EBUSY, "partition %u is being taken", m->index);
    if (p)
        mfs_agent_part_remove(a, p); /* what was lost here does not matter any more */
    return 0;
}

static int check_receive(struct mfs_agent *a, const struct mfs_msg_receive *m, struct mfs_err *err)
{
    int rc;

    if (a->phase != MFS_AGENT_RUNNING)
        return mfs_err_set(err, -ESHUTDOWN, "it is stopping");
    if (m->index >= m->nparts || !m->stripe_size || !m->memory || !m->password[0] ||
        !m->admin_password[0] || !m->source_host[0] || !m->source_port)
        return mfs_err_set(err, -EINVAL, "receive: partition %u makes no sense", m->index);
    if (a->instances && (a->nparts != m->nparts || a->stripe_size != m->stripe_size))
        return mfs_err_set(err, -EINVAL, "it serves %u partitions of stripe size %u already",
                           a->nparts, a->stripe_size);
    rc = a->instances ? 0 : mfs_agent_instances_open(a, m->nparts, m->stripe_size, m->memory);
    return rc ? mfs_err_set(err, rc, "%s", strerror(-rc)) : check_here(a, m, err);
}

static struct mfs_agent_copy *new_copy(struct mfs_agent *a, const struct mfs_msg_receive *m)
{
    struct mfs_redis r = {.part = m->index, .expected = m->bytes};
    struct mfs_agent_copy *c;

    mfs_text_copy(r.password, sizeof r.password, m->password);
    mfs_text_copy(r.admin_password, sizeof r.admin_password, m->admin_password);
    c = mfs_agent_copy_add(a, &r);
    if (!c)
        return NULL;
    mfs_text_copy(c->mover.source_host, sizeof c->mover.source_host, m->source_host);
    mfs_text_copy(c->mover.source_password, sizeof c->mover.source_password,
                  m->source_admin_password);
    c->mover.source_port = (uint16_t)m->source_port;
    return c;
}

/* Begins, or goes on with what an earlier Local Manager began. */
static void begin(struct mfs_agent_copy *c, const struct mfs_msg_receive *m)
{
    struct mfs_copy_job *j;

    c->mover.cold = m->cold;
    c->mover.diskless = m->diskless;
    c->mover.moves = m->moves;
    c->mover.rate = m->rate;
    c->begun = mfs_clock_mono();
    if (c->redis.proc.pid) {
        mfs_copy_run(c, MFS_COPY_COPYING, mfs_copy_job_create(c, run_copy, copied));
        return;
    }
    j = mfs_copy_job_create(c, run_survey, surveyed);
    if (j)
        j->memory = m->memory;
    mfs_copy_run(c, MFS_COPY_SURVEYING, j);
}

void mfs_agent_receive(struct mfs_agent *a, const struct mfs_msg_receive *m, struct mfs_conn *conn,
                       uint64_t id)
{
    struct mfs_err err = {0};
    struct mfs_agent_copy *c;
    int rc = check_receive(a, m, &err);

    if (rc < 0) {
        mfs_agent_refuse(a, conn, id, rc, err.msg);
        return;
    }
    if (rc) {
        mfs_conn_reply(conn, MFS_MSG_RECEIVE, id,
                       &(struct mfs_msg_receive_reply){.index = m->index});
        return;
    }
    c = mfs_agent_copy_find(a, m->index);
    if (!c)
        c = new_copy(a, m);
    if (!c) {
        mfs_agent_refuse(a, conn, id, -ENOMEM, "out of memory");
        return;
    }
    mfs_deferred_replace(&c->asker, conn, id);
    if (c->whole)
        reply_received(c);
    else if (c->step == MFS_COPY_IDLE)
        begin(c, m);
}
