/* Partitions that come and go: what cm asks for, see docs/MIGRATION.md. Each of these requests may
 * come again at any time; what is done is answered, who asked earlier is told so. */
#include "lm/incoming.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "lm/errand.h"

#define AREA "move"

/* ---- work on a copy -------------------------------------------------------------------------- */

struct copy_job {
    struct mfs_job job;
    struct mfs_agent_copy *copy; /* stays as long as its step is not IDLE */
    struct mfs_fleet *fleet;     /* of a start */
    struct mfs_redis redis;      /* likewise */
    uint64_t memory;             /* likewise */
    uint64_t blocked_us;         /* of a cut */
    struct mfs_msg_take take;    /* likewise */
    int rc;
    struct mfs_err err;
};

static struct copy_job *copy_job(struct mfs_agent_copy *c, void (*run)(struct mfs_job *),
                                 void (*done)(struct mfs_job *))
{
    struct copy_job *j = calloc(1, sizeof *j);

    if (j)
        *j = (struct copy_job){.job = {run, done, NULL}, .copy = c};
    return j;
}

static void replace_asker(struct mfs_agent_request *r, struct mfs_conn *conn, uint64_t id)
{
    if (r->conn) {
        mfs_conn_fail(r->conn, r->id, -EALREADY, "it was asked for again");
        mfs_conn_put(r->conn);
    }
    *r = mfs_agent_request_keep(conn, id);
}

static struct mfs_agent_request take_asker(struct mfs_agent_copy *c)
{
    struct mfs_agent_request r = c->asker;

    c->asker = (struct mfs_agent_request){0};
    return r;
}

static void tell_failed(struct mfs_agent_copy *c, const struct mfs_err *err)
{
    struct mfs_agent_request r = take_asker(c);

    mfs_error(AREA, "%s", err->msg);
    if (r.conn)
        mfs_conn_fail(r.conn, r.id, err->code, "node %u: %s", c->agent->opts.node, err->msg);
    mfs_conn_put(r.conn);
}

static void fail_copy(struct mfs_agent_copy *c, const struct mfs_err *err)
{
    tell_failed(c, err);
    mfs_agent_copy_end(c);
}

/* Common to all steps when their work is done: true when the copy is to go no further. */
static bool step_over(struct mfs_agent_copy *c, struct copy_job *j)
{
    if (c->agent->phase != MFS_AGENT_RUNNING) {
        c->step = MFS_COPY_IDLE; /* what ends everything ends its process */
        return true;
    }
    if (c->releaser.conn) {
        mfs_agent_copy_end(c);
        return true;
    }
    if (mfs_agent_copy_alive(c))
        return false;
    j->rc = mfs_err_set(&j->err, -EIO, "the redis-server that was receiving partition %u died",
                        c->redis.part);
    fail_copy(c, &j->err);
    return true;
}

static void run_step(struct mfs_agent_copy *c, enum mfs_copy_step step, struct copy_job *j)
{
    struct mfs_err err;
    char name[16];
    int rc = -ENOMEM;

    c->step = step;
    mfs_text_format(name, sizeof name, "move-%u", c->redis.part);
    if (j)
        rc = mfs_errand_run(c->agent->errands, name, &j->job);
    if (!rc)
        return;
    free(j);
    mfs_err_set(&err, rc, "can't work on partition %u: %s", c->redis.part, strerror(-rc));
    fail_copy(c, &err);
}

/* ---- receive --------------------------------------------------------------------------------- */

static void run_copy(struct mfs_job *job)
{
    struct copy_job *j = (struct copy_job *)job;

    j->rc = mfs_mover_copy(&j->copy->mover, &j->err);
}

static void reply_received(struct mfs_agent_copy *c)
{
    struct mfs_agent_request r = take_asker(c);
    struct mfs_msg_receive_reply m = {.index = c->redis.part,
                                      .port = c->redis.port,
                                      .bytes = atomic_load(&c->mover.bytes),
                                      .duration_us = c->duration_us};

    if (r.conn)
        mfs_conn_reply(r.conn, MFS_MSG_RECEIVE, r.id, &m);
    mfs_conn_put(r.conn);
}

static void copied(struct mfs_job *job)
{
    struct copy_job *j = (struct copy_job *)job;
    struct mfs_agent_copy *c = j->copy;

    if (step_over(c, j))
        goto out;
    if (j->rc) {
        fail_copy(c, &j->err);
        goto out;
    }
    c->step = MFS_COPY_IDLE;
    c->whole = true;
    mfs_agent_arrived(c->agent, c->redis.part);
    c->duration_us = (uint64_t)(mfs_clock_mono() - c->begun) / 1000;
    mfs_agent_save(c->agent);
    mfs_info(AREA, "partition %u: %llu bytes are here and follow %s:%u, after %llu ms",
             c->redis.part, (unsigned long long)atomic_load(&c->mover.bytes), c->mover.source_host,
             c->mover.source_port, (unsigned long long)c->duration_us / 1000);
    reply_received(c);
out:
    free(j);
}

static void run_start(struct mfs_job *job)
{
    struct copy_job *j = (struct copy_job *)job;

    mfs_fleet_set_memory(j->fleet, j->memory);
    j->rc = mfs_fleet_start(j->fleet, &j->redis, 1, &j->err);
    if (!j->rc)
        j->rc = mfs_fleet_find(j->fleet, j->redis.part, &j->redis);
}

static void started(struct mfs_job *job)
{
    struct copy_job *j = (struct copy_job *)job;
    struct mfs_agent_copy *c = j->copy;

    if (!j->rc) {
        c->redis = j->redis;
        c->agent->memory = j->memory;
        mfs_agent_copy_started(c);
        mfs_agent_save(c->agent); /* before it holds anything */
    }
    if (step_over(c, j))
        goto out;
    if (j->rc)
        fail_copy(c, &j->err);
    else
        run_step(c, MFS_COPY_COPYING, copy_job(c, run_copy, copied));
out:
    free(j);
}

static void run_survey(struct mfs_job *job)
{
    struct copy_job *j = (struct copy_job *)job;

    j->rc = mfs_mover_survey(&j->copy->mover, &j->redis.expected, &j->err);
}

static void surveyed(struct mfs_job *job)
{
    struct copy_job *j = (struct copy_job *)job, *start;
    struct mfs_agent_copy *c = j->copy;
    struct mfs_agent *a = c->agent;

    if (step_over(c, j))
        goto out;
    if (j->rc) {
        fail_copy(c, &j->err);
        goto out;
    }
    if (j->redis.expected > c->redis.expected)
        c->redis.expected = j->redis.expected;
    start = copy_job(c, run_start, started);
    if (!start) {
        mfs_err_set(&j->err, -ENOMEM, "out of memory");
        fail_copy(c, &j->err);
        goto out;
    }
    start->fleet = a->fleet;
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
    if (a->fleet && (a->nparts != m->nparts || a->stripe_size != m->stripe_size))
        return mfs_err_set(err, -EINVAL, "it serves %u partitions of stripe size %u already",
                           a->nparts, a->stripe_size);
    rc = a->fleet ? 0 : mfs_agent_fleet_open(a, m->nparts, m->stripe_size, m->memory);
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
    struct copy_job *j;

    c->mover.cold = m->cold;
    c->mover.moves = m->moves;
    c->mover.rate = m->rate;
    c->begun = mfs_clock_mono();
    if (c->redis.proc.pid) {
        run_step(c, MFS_COPY_COPYING, copy_job(c, run_copy, copied));
        return;
    }
    j = copy_job(c, run_survey, surveyed);
    if (j)
        j->memory = m->memory;
    run_step(c, MFS_COPY_SURVEYING, j);
}

void mfs_agent_receive(struct mfs_agent *a, const struct mfs_msg_receive *m, struct mfs_conn *conn,
                       uint64_t id)
{
    struct mfs_err err = {0};
    struct mfs_agent_copy *c;
    int rc = check_receive(a, m, &err);

    if (rc < 0) {
        mfs_conn_fail(conn, id, rc, "node %u: %s", a->opts.node, err.msg);
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
        mfs_conn_fail(conn, id, -ENOMEM, "node %u: out of memory", a->opts.node);
        return;
    }
    replace_asker(&c->asker, conn, id);
    if (c->whole)
        reply_received(c);
    else if (c->step == MFS_COPY_IDLE)
        begin(c, m);
}

/* ---- take ------------------------------------------------------------------------------------ */

static void reply_taken(const struct mfs_agent_part *p, struct mfs_conn *conn, uint64_t id)
{
    struct mfs_msg_take_reply m = {
        .index = p->redis.part, .port = p->redis.port, .blocked_us = p->blocked_us};

    mfs_text_copy(m.unix_path, sizeof m.unix_path, p->redis.unix_path);
    mfs_conn_reply(conn, MFS_MSG_TAKE, id, &m);
}

static void run_cut(struct mfs_job *job)
{
    struct copy_job *j = (struct copy_job *)job;

    j->rc = mfs_mover_cut(&j->copy->mover, &j->take, &j->blocked_us, &j->err);
}

/* It is a partition from now on. */
static void settle(struct mfs_agent_copy *c, const struct copy_job *j)
{
    struct mfs_agent *a = c->agent;
    struct mfs_agent_request r = take_asker(c);
    struct mfs_redis redis = c->redis;
    struct mfs_agent_part *p;

    redis.incoming = false;
    mfs_agent_copy_remove(c); /* its watch, too: a process has one */
    p = mfs_agent_part_add(a, &redis, false);
    if (p) {
        p->blocked_us = j->blocked_us;
        mfs_agent_settle(a, redis.part);
        mfs_agent_save(a); /* before cm hears of it */
        mfs_info(AREA, "partition %u is here, after %llu us without service", redis.part,
                 (unsigned long long)j->blocked_us);
        if (r.conn)
            reply_taken(p, r.conn, r.id);
    } else if (r.conn) {
        mfs_conn_fail(r.conn, r.id, -ENOMEM, "node %u: out of memory", a->opts.node);
    }
    mfs_conn_put(r.conn);
}

static void cut(struct mfs_job *job)
{
    struct copy_job *j = (struct copy_job *)job;
    struct mfs_agent_copy *c = j->copy;

    if (step_over(c, j))
        goto out;
    if (j->rc) {
        c->step = MFS_COPY_IDLE; /* cm may ask again, by force for one */
        tell_failed(c, &j->err);
    } else {
        settle(c, j);
    }
out:
    free(j);
}

static int check_take(const struct mfs_agent *a, const struct mfs_msg_take *m, struct mfs_err *err)
{
    const struct mfs_agent_copy *c = mfs_agent_copy_find(a, m->index);

    if (a->phase != MFS_AGENT_RUNNING)
        return mfs_err_set(err, -ESHUTDOWN, "it is stopping");
    if (!c || strcmp(c->redis.password, m->password) || c->step == MFS_COPY_ENDING)
        return mfs_err_set(err, -ENOENT, "there is no such copy of partition %u", m->index);
    if (!c->whole)
        return mfs_err_set(err, m->force ? -ENODATA : -EAGAIN,
                           "the copy of partition %u is not complete", m->index);
    return 0;
}

void mfs_agent_take(struct mfs_agent *a, const struct mfs_msg_take *m, struct mfs_conn *conn,
                    uint64_t id)
{
    struct mfs_agent_part *p = mfs_agent_part_meant(a, m->index, m->password);
    struct mfs_err err = {0};
    struct mfs_agent_copy *c;
    struct copy_job *j;

    if (p) {
        reply_taken(p, conn, id);
        return;
    }
    if (check_take(a, m, &err)) {
        mfs_conn_fail(conn, id, err.code, "node %u: %s", a->opts.node, err.msg);
        return;
    }
    c = mfs_agent_copy_find(a, m->index);
    replace_asker(&c->asker, conn, id);
    if (c->step == MFS_COPY_CUTTING)
        return;
    j = copy_job(c, run_cut, cut);
    if (j)
        j->take = *m;
    run_step(c, MFS_COPY_CUTTING, j);
}

/* ---- fence ----------------------------------------------------------------------------------- */

struct fence_job {
    struct mfs_job job;
    struct mfs_agent *agent;
    struct mfs_agent_request from;
    struct mfs_redis redis;
    struct mfs_admin_journal journal;
    bool on;
    int rc;
    struct mfs_err err;
};

static void run_fence(struct mfs_job *job)
{
    struct fence_job *j = (struct fence_job *)job;

    j->rc =
        mfs_mover_fence(j->redis.unix_path, j->redis.admin_password, j->on, &j->journal, &j->err);
}

static void fenced(struct mfs_job *job)
{
    struct fence_job *j = (struct fence_job *)job;
    struct mfs_msg_fence_reply m = {.offset = j->journal.offset};

    mfs_text_copy(m.stream, sizeof m.stream, j->journal.stream);
    if (j->rc) {
        mfs_error(AREA, "can't fence partition %u: %s", j->redis.part, j->err.msg);
        mfs_conn_fail(j->from.conn, j->from.id, j->rc, "node %u: %s", j->agent->opts.node,
                      j->err.msg);
    } else {
        mfs_info(AREA, "partition %u %s", j->redis.part, j->on ? "is fenced" : "serves");
        mfs_conn_reply(j->from.conn, MFS_MSG_FENCE, j->from.id, &m);
    }
    mfs_conn_put(j->from.conn);
    free(j);
}

void mfs_agent_fence(struct mfs_agent *a, const struct mfs_msg_fence *m, struct mfs_conn *conn,
                     uint64_t id)
{
    struct mfs_agent_part *p = mfs_agent_part_meant(a, m->index, m->password);
    struct fence_job *j;
    int rc = -ENOMEM;

    if (!p) {
        mfs_conn_fail(conn, id, -ENOENT, "node %u: there is no such process of partition %u",
                      a->opts.node, m->index);
        return;
    }
    if (p->reviving) {
        mfs_conn_fail(conn, id, -EAGAIN, "node %u: partition %u is being started again",
                      a->opts.node, m->index);
        return;
    }
    j = calloc(1, sizeof *j);
    if (j) {
        *j = (struct fence_job){.job = {run_fence, fenced, NULL},
                                .agent = a,
                                .from = mfs_agent_request_keep(conn, id),
                                .redis = p->redis,
                                .on = m->on};
        rc = mfs_errand_run(a->errands, "fence", &j->job);
    }
    if (!rc)
        return;
    mfs_conn_fail(conn, id, rc, "node %u: %s", a->opts.node, strerror(-rc));
    if (j)
        mfs_conn_put(j->from.conn);
    free(j);
}

/* ---- release --------------------------------------------------------------------------------- */

static void part_ended(void *arg)
{
    struct mfs_agent_part *p = arg;
    struct mfs_agent *a = p->agent;
    struct mfs_agent_request r = p->releaser;

    mfs_info(AREA, "partition %u has left", p->redis.part);
    mfs_agent_part_remove(a, p);
    if (a->phase == MFS_AGENT_RUNNING)
        mfs_agent_save(a);
    if (r.conn)
        mfs_conn_reply(r.conn, MFS_MSG_RELEASE, r.id, &(struct mfs_msg_empty){0});
    mfs_conn_put(r.conn);
}

void mfs_agent_part_release(struct mfs_agent_part *p)
{
    if (p->lost)
        part_ended(p);
    else
        mfs_agent_end_process(p->agent, &p->redis, part_ended, p);
}

static void release_part(struct mfs_agent_part *p, struct mfs_conn *conn, uint64_t id)
{
    bool under_way = p->releasing;

    replace_asker(&p->releaser, conn, id);
    p->releasing = true;
    if (!under_way && !p->reviving)
        mfs_agent_part_release(p);
}

/* What runs for it is told to stop, and ends it then. */
static void release_copy(struct mfs_agent_copy *c, struct mfs_conn *conn, uint64_t id)
{
    replace_asker(&c->releaser, conn, id);
    atomic_store(&c->mover.cancel, true);
    if (c->step == MFS_COPY_IDLE)
        mfs_agent_copy_end(c);
}

void mfs_agent_release(struct mfs_agent *a, const struct mfs_msg_release *m, struct mfs_conn *conn,
                       uint64_t id)
{
    struct mfs_agent_part *p = mfs_agent_part_find(a, m->index);
    struct mfs_agent_copy *c = mfs_agent_copy_find(a, m->index);

    if (p && !strcmp(p->redis.password, m->password))
        release_part(p, conn, id);
    else if (c && !strcmp(c->redis.password, m->password))
        release_copy(c, conn, id);
    else
        mfs_conn_reply(conn, MFS_MSG_RELEASE, id, &(struct mfs_msg_empty){0});
}
