/* cm assigns partitions to the node: their processes are started, or are there already. */
#include "lm/agent/agent_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "lm/agent/partitions/incoming.h"

#define AREA "redis"

struct assign_job {
    struct mfs_job job;
    struct mfs_agent *agent;
    struct mfs_deferred from;
    struct mfs_instances *instances;
    uint64_t memory;
    struct mfs_redis *asked; /* what cm wants here; with ports and processes when it succeeded */
    struct mfs_redis_image *image; /* n of them, or NULL: none begins with one */
    size_t n;
    int rc;
    struct mfs_err err;
};

static void fill_in(const struct mfs_instances *instances, struct mfs_redis *asked, size_t n)
{
    size_t nrunning;
    struct mfs_redis *running = mfs_instances_list(instances, &nrunning);

    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < nrunning; k++) {
            if (running[k].part == asked[i].part)
                asked[i] = running[k];
        }
    }
    free(running);
}

static void run_assign(struct mfs_job *job)
{
    struct assign_job *j = (struct assign_job *)job;

    mfs_instances_set_memory(j->instances, j->memory);
    j->rc = mfs_instances_start(j->instances, j->asked, j->n, &j->err);
    if (!j->rc)
        fill_in(j->instances, j->asked, j->n);
}

static void assign_free(struct assign_job *j)
{
    mfs_deferred_drop(&j->from);
    free(j->asked);
    free(j->image);
    free(j);
}

static void assign_reply(struct assign_job *j)
{
    struct mfs_msg_assign_reply m = {.nassigned = (uint32_t)j->n,
                                     .assigned = calloc(j->n + 1, sizeof *m.assigned)};

    if (!m.assigned) {
        mfs_deferred_fail(&j->from, -ENOMEM, "out of memory");
        return;
    }
    for (size_t i = 0; i < j->n; i++) {
        m.assigned[i].index = j->asked[i].part;
        m.assigned[i].port = j->asked[i].port;
        mfs_text_copy(m.assigned[i].unix_path, sizeof m.assigned[i].unix_path,
                      j->asked[i].unix_path);
    }
    mfs_deferred_reply(&j->from, MFS_MSG_ASSIGN, &m);
    free(m.assigned);
}

static void assign_refuse(struct mfs_agent *a, const struct mfs_err *err, struct mfs_conn *conn,
                          uint64_t id)
{
    mfs_error(AREA, "%s", err->msg);
    mfs_agent_refuse(a, conn, id, err->code, err->msg);
}

static void assigned(struct mfs_job *job)
{
    struct assign_job *j = (struct assign_job *)job;
    struct mfs_agent *a = j->agent;

    for (size_t i = 0; i < j->n && !j->rc; i++) {
        if (!mfs_agent_part_find(a, j->asked[i].part) &&
            !mfs_agent_part_add(a, &j->asked[i], false))
            j->rc = mfs_err_set(&j->err, -ENOMEM, "out of memory");
    }
    if (!j->rc) {
        a->memory = j->memory;
        j->rc = mfs_agent_must_save(a, &j->err); /* before cm hears of it */
    }
    if (!j->rc) {
        mfs_info(AREA, "%zu partitions run here", j->n);
        assign_reply(j);
        mfs_agent_measure(a); /* cm start has returned soon, and cm status is the next command */
    } else {
        assign_refuse(a, &j->err, j->from.conn, j->from.id);
    }
    assign_free(j);
}

/* A lost partition comes back, empty, only when cm gives it new credentials, which it does when it
 * means it. */
static int check_lost(struct mfs_agent *a, const struct mfs_msg_assign *m, struct mfs_err *err)
{
    for (uint32_t i = 0; i < m->nassigned; i++) {
        struct mfs_agent_part *p = mfs_agent_part_find(a, m->assigned[i].index);

        if (!p || !p->lost)
            continue;
        if (!strcmp(p->redis.password, m->assigned[i].password))
            return mfs_err_set(err, -EIO, "partition %u was lost: its process died",
                               m->assigned[i].index);
        if (p->releasing)
            return mfs_err_set(err, -EBUSY, "partition %u is just being ended",
                               m->assigned[i].index);
        mfs_agent_part_remove(a, p);
    }
    return 0;
}

static int check_assign(struct mfs_agent *a, const struct mfs_msg_assign *m, struct mfs_err *err)
{
    int rc;

    if (a->phase != MFS_AGENT_RUNNING)
        return mfs_err_set(err, -ESHUTDOWN, "it is stopping");
    if (!m->nparts || !m->stripe_size || !m->memory)
        return mfs_err_set(err, -EINVAL, "assign without partitions, stripe size or memory");
    for (uint32_t i = 0; i < m->nassigned; i++) {
        if (m->assigned[i].index >= m->nparts || !m->assigned[i].password[0] ||
            !m->assigned[i].admin_password[0])
            return mfs_err_set(err, -EINVAL, "assign: partition %u makes no sense",
                               m->assigned[i].index);
        if (mfs_agent_copy_find(a, m->assigned[i].index))
            return mfs_err_set(err, -EBUSY, "partition %u is on its way here",
                               m->assigned[i].index);
    }
    if (a->instances && (a->nparts != m->nparts || a->stripe_size != m->stripe_size))
        return mfs_err_set(err, -EINVAL, "it serves %u partitions of stripe size %u already",
                           a->nparts, a->stripe_size);
    if (a->instances)
        return check_lost(a, m, err);
    rc = mfs_agent_instances_open(a, m->nparts, m->stripe_size, m->memory);
    return rc ? mfs_err_set(err, rc, "%s", strerror(-rc)) : 0;
}

/* Those that begin with an image. */
static int take_images(struct assign_job *j, const struct mfs_msg_assign *m)
{
    int rc = 0;

    if (!m->image_dir[0])
        return 0;
    j->image = calloc(j->n + 1, sizeof *j->image);
    if (!j->image)
        return -ENOMEM;
    for (uint32_t i = 0; i < m->nassigned && !rc; i++) {
        const struct mfs_image_part *from = &m->assigned[i].image;
        struct mfs_redis_image *image = &j->image[i];

        rc = mfs_text_format(image->path, sizeof image->path, "%s/partition-%u.rdb", m->image_dir,
                             m->assigned[i].index);
        if (!rc)
            rc = mfs_text_copy(image->sum, sizeof image->sum, from->sum);
        image->bytes = from->bytes;
        j->asked[i].image = image;
        j->asked[i].expected = from->memory;
    }
    return rc;
}

static struct assign_job *assign_job(struct mfs_agent *a, const struct mfs_msg_assign *m)
{
    struct assign_job *j = calloc(1, sizeof *j);

    if (!j)
        return NULL;
    *j = (struct assign_job){.job = {run_assign, assigned, NULL},
                             .agent = a,
                             .instances = a->instances,
                             .memory = m->memory,
                             .n = m->nassigned,
                             .asked = calloc(m->nassigned + 1, sizeof *j->asked)};
    if (!j->asked) {
        free(j);
        return NULL;
    }
    for (uint32_t i = 0; i < m->nassigned; i++) {
        struct mfs_redis *r = &j->asked[i];

        r->part = m->assigned[i].index;
        r->format = m->assigned[i].format;
        mfs_text_copy(r->password, sizeof r->password, m->assigned[i].password);
        mfs_text_copy(r->admin_password, sizeof r->admin_password, m->assigned[i].admin_password);
    }
    return j;
}

void mfs_agent_assign(struct mfs_agent *a, const struct mfs_msg_assign *m, struct mfs_conn *conn,
                      uint64_t id)
{
    struct mfs_err err = {0};
    struct assign_job *j;
    int rc;

    if (check_assign(a, m, &err)) {
        assign_refuse(a, &err, conn, id);
        return;
    }
    j = assign_job(a, m);
    rc = j ? take_images(j, m) : -ENOMEM;
    if (rc) {
        if (j)
            assign_free(j);
        mfs_err_set(&err, rc, "assign: %s", strerror(-rc));
        assign_refuse(a, &err, conn, id);
        return;
    }
    j->from = mfs_reply_later(conn, id);
    mfs_worker_submit(a->redis_worker, &j->job);
}
