/* A copy becomes a partition: the cut-over, see docs/MIGRATION.md. */
#include "lm/copy_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"

#define AREA "move"

static void reply_taken(const struct mfs_agent_part *p, struct mfs_conn *conn, uint64_t id)
{
    struct mfs_msg_take_reply m = {
        .index = p->redis.part, .port = p->redis.port, .blocked_us = p->blocked_us};

    mfs_text_copy(m.unix_path, sizeof m.unix_path, p->redis.unix_path);
    mfs_conn_reply(conn, MFS_MSG_TAKE, id, &m);
}

static void run_cut(struct mfs_job *job)
{
    struct mfs_copy_job *j = (struct mfs_copy_job *)job;

    j->rc = mfs_mover_cut(&j->copy->mover, &j->take, &j->blocked_us, &j->err);
}

/* It is a partition from now on. */
static void settle(struct mfs_agent_copy *c, const struct mfs_copy_job *j)
{
    struct mfs_agent *a = c->agent;
    struct mfs_agent_request r = mfs_copy_take_asker(c);
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
    struct mfs_copy_job *j = (struct mfs_copy_job *)job;
    struct mfs_agent_copy *c = j->copy;

    if (mfs_copy_step_over(c, j))
        goto out;
    if (j->rc) {
        c->step = MFS_COPY_IDLE; /* cm may ask again, by force for one */
        mfs_copy_tell_failed(c, &j->err);
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
    struct mfs_copy_job *j;

    if (p) {
        reply_taken(p, conn, id);
        return;
    }
    if (check_take(a, m, &err)) {
        mfs_conn_fail(conn, id, err.code, "node %u: %s", a->opts.node, err.msg);
        return;
    }
    c = mfs_agent_copy_find(a, m->index);
    mfs_agent_request_replace(&c->asker, conn, id);
    if (c->step == MFS_COPY_CUTTING)
        return;
    j = mfs_copy_job_create(c, run_cut, cut);
    if (j)
        j->take = *m;
    mfs_copy_run(c, MFS_COPY_CUTTING, j);
}
