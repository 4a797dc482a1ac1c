/* A copy becomes a partition: the cut-over, see docs/design/migration.md. */
#include "lm/agent/partitions/copy_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"

#define AREA "move"

static void reply_taken(const struct mfs_agent_part *p, struct mfs_deferred *to)
{
    struct mfs_msg_take_reply m = {
        .index = p->redis.part, .port = p->redis.port, .blocked_us = p->blocked_us};

    mfs_text_copy(m.unix_path, sizeof m.unix_path, p->redis.unix_path);
    mfs_deferred_reply(to, MFS_MSG_TAKE, &m);
}

static void run_cut(struct mfs_job *job)
{
    struct mfs_copy_job *j = (struct mfs_copy_job *)job;

    j->rc = mfs_mover_cut(&j->copy->mover, &j->take, &j->blocked_us, &j->err);
}

/* In the state file it is a partition from now on, which is not watched yet, as a process has one
 * watch. NULL, with the reason: it is a copy still. */
static struct mfs_agent_part *note_taken(struct mfs_agent_copy *c, struct mfs_err *err)
{
    struct mfs_redis redis = c->redis;
    struct mfs_agent_part *p;

    redis.incoming = false;
    p = mfs_agent_part_add(c->agent, &redis, true);
    if (!p) {
        mfs_err_set(err, -EBUSY, "out of memory"); /* it is to be asked for again */
        return NULL;
    }
    p->lost = false;
    c->taken = true;
    if (!mfs_agent_must_save(c->agent, err))
        return p;
    c->taken = false;
    mfs_agent_part_remove(c->agent, p);
    return NULL;
}

static void settle(struct mfs_agent_copy *c, struct mfs_agent_part *p, uint64_t blocked_us)
{
    struct mfs_agent *a = c->agent;
    struct mfs_deferred asker = c->asker;

    c->asker = (struct mfs_deferred){0}; /* it is not refused with the copy */
    mfs_agent_copy_remove(c);
    p->blocked_us = blocked_us;
    mfs_agent_part_watch(p);
    mfs_agent_settle(a, p->redis.part);
    mfs_info(AREA, "partition %u is here, after %llu us without service", p->redis.part,
             (unsigned long long)blocked_us);
    reply_taken(p, &asker);
}

static void cut(struct mfs_job *job)
{
    struct mfs_copy_job *j = (struct mfs_copy_job *)job;
    struct mfs_agent_copy *c = j->copy;
    struct mfs_agent_part *p;

    if (mfs_copy_step_over(c, j))
        goto out;
    p = j->rc ? NULL : note_taken(c, &j->err); /* before cm hears of it */
    if (p) {
        settle(c, p, j->blocked_us);
    } else {
        c->step = MFS_COPY_IDLE; /* cm may ask again, by force for one */
        mfs_copy_report_failed(c, &j->err);
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
    struct mfs_deferred asker;
    struct mfs_err err = {0};
    struct mfs_agent_copy *c;
    struct mfs_copy_job *j;

    if (p) {
        asker = mfs_reply_later(conn, id);
        reply_taken(p, &asker);
        return;
    }
    if (check_take(a, m, &err)) {
        mfs_agent_refuse(a, conn, id, err.code, err.msg);
        return;
    }
    c = mfs_agent_copy_find(a, m->index);
    mfs_deferred_replace(&c->asker, conn, id);
    if (c->step == MFS_COPY_CUTTING)
        return;
    j = mfs_copy_job_create(c, run_cut, cut);
    if (j)
        j->take = *m;
    mfs_copy_run(c, MFS_COPY_CUTTING, j);
}
