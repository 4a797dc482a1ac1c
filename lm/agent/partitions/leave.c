/* Partitions that are fenced, and partitions and copies that go, see docs/design/migration.md. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "lm/agent/partitions/incoming.h"
#include "lm/agent/request_job.h"

#define AREA "move"

/* ---- fence ----------------------------------------------------------------------------------- */

struct fence_job {
    struct mfs_request_job request;
    struct mfs_redis redis;
    struct mfs_admin_journal journal;
    bool on;
};

static void run_fence(struct mfs_job *job)
{
    struct fence_job *j = (struct fence_job *)job;

    j->request.rc = mfs_mover_fence(j->redis.unix_path, j->redis.admin_password, j->on, &j->journal,
                                    &j->request.err);
}

static void fenced(struct mfs_job *job)
{
    struct fence_job *j = (struct fence_job *)job;
    struct mfs_msg_fence_reply m = {.offset = j->journal.offset};

    mfs_text_copy(m.stream, sizeof m.stream, j->journal.stream);
    if (j->request.rc)
        mfs_error(AREA, "can't fence partition %u: %s", j->redis.part, j->request.err.msg);
    else
        mfs_info(AREA, "partition %u %s", j->redis.part, j->on ? "is fenced" : "serves");
    mfs_request_job_end(&j->request, MFS_MSG_FENCE, &m);
}

void mfs_agent_fence(struct mfs_agent *a, const struct mfs_msg_fence *m, struct mfs_conn *conn,
                     uint64_t id)
{
    struct mfs_agent_part *p = mfs_agent_part_meant(a, m->index, m->password);
    struct fence_job *j;

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
    if (j)
        *j = (struct fence_job){
            .request.job = {run_fence, fenced, NULL}, .redis = p->redis, .on = m->on};
    mfs_request_job_run(a, "fence", j ? &j->request : NULL, conn, id);
}

/* ---- release --------------------------------------------------------------------------------- */

static void part_ended(void *arg)
{
    struct mfs_agent_part *p = arg;
    struct mfs_agent *a = p->agent;
    struct mfs_deferred releaser = p->releaser;

    mfs_info(AREA, "partition %u has left", p->redis.part);
    mfs_agent_part_remove(a, p);
    if (a->phase == MFS_AGENT_RUNNING)
        mfs_agent_save(a);
    mfs_deferred_reply(&releaser, MFS_MSG_RELEASE, NULL);
}

void mfs_agent_part_release(struct mfs_agent_part *p)
{
    mfs_agent_end_process(p->agent, &p->redis, part_ended, p); /* its files, too, if it is lost */
}

static void release_part(struct mfs_agent_part *p, struct mfs_conn *conn, uint64_t id)
{
    bool under_way = p->releasing;

    mfs_deferred_replace(&p->releaser, conn, id);
    p->releasing = true;
    if (!under_way && !p->reviving)
        mfs_agent_part_release(p);
}

/* What runs for it is told to stop, and ends it then. */
static void release_copy(struct mfs_agent_copy *c, struct mfs_conn *conn, uint64_t id)
{
    mfs_deferred_replace(&c->releaser, conn, id);
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
