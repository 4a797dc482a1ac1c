/* Has the process of a partition serve by terms, or without (decisions/0017): what cm asks for
 * when the partition has got a replica, or has lost it; and waits for a replica to catch up. May
 * come again at any time. */
#include "lm/agent/request_job.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "store/admin/admin.h"
#include "store/args.h"
#include "store/reply.h"
#include "store/store.h"
#include "proto/times.h"

#define AREA       "term"
#define CALL_LIMIT (2 * MFS_SEC)
#define LOOK       (5 * MFS_MSEC)
#define WAIT_MS    200

static_assert(WAIT_MS * MFS_MSEC < CALL_LIMIT, "the process answers before the call is given up");

struct term_job {
    struct mfs_request_job request;
    struct mfs_redis redis;
    struct mfs_msg_term how;
};

static int call(struct mfs_admin *admin, const struct mfs_args *args, int64_t *left,
                struct mfs_err *err)
{
    struct mfs_cmd cmd = mfs_args_cmd(args, 0);
    int rc = mfs_admin_call(admin, &cmd, err);

    if (left)
        *left = rc ? 0 : mfs_reply_int(mfs_reply_at(cmd.reply, 1));
    mfs_cmds_fini(&cmd, 1);
    return rc;
}

/* Those with the replica of that word; NULL: all. */
static int end_terms(struct mfs_admin *admin, const char *word, struct mfs_err *err)
{
    struct mfs_args args;

    mfs_args_init(&args, "mfs_term");
    mfs_args_str(&args, "end");
    if (word)
        mfs_args_str(&args, word);
    return call(admin, &args, NULL, err);
}

static int await_term(struct mfs_admin *admin, const struct mfs_msg_term *how, struct mfs_err *err)
{
    int64_t until = mfs_clock_mono() + MFS_CONSENT_TIME, left;
    struct mfs_args args;

    for (;;) {
        int rc;

        mfs_args_init(&args, "mfs_term");
        rc = call(admin, &args, &left, err);
        if (rc || left > 0)
            return rc;
        if (mfs_clock_mono() >= until)
            return mfs_err_set(err, -ETIMEDOUT,
                               "partition %u: its replica at %s:%u does not answer", how->index,
                               how->replica_host, how->replica_port);
        mfs_clock_sleep(LOOK);
    }
}

static int begin_terms(struct mfs_admin *admin, const struct mfs_msg_term *how, struct mfs_err *err)
{
    char word[MFS_MAC_TEXT];
    struct mfs_err ignored;
    struct mfs_args args;
    int rc = mfs_admin_copy_word(how->replica_admin_password, word);

    if (rc)
        return mfs_err_set(err, rc, "partition %u: %s", how->index, strerror(-rc));
    mfs_args_init(&args, "mfs_term");
    mfs_args_str(&args, "begin");
    mfs_args_str(&args, how->replica_host);
    mfs_args_int(&args, how->replica_port);
    mfs_args_str(&args, MFS_REDIS_ADMIN);
    mfs_args_str(&args, how->replica_admin_password);
    mfs_args_str(&args, word);
    rc = call(admin, &args, NULL, err);
    if (!rc)
        rc = await_term(admin, how, err);
    /* Else cm ends them when it gives the replica up. If we are late it may have done so, and there
     * is another one now, which takes over while this process still serves if it has no terms. */
    if (rc)
        end_terms(admin, word, &ignored);
    return rc;
}

/* Has it all that was executed before the PING? A replica that has just got its copy may not follow
 * yet: redis sends it nothing more until it has told how far it is, which it does once a second. */
static int await_replica(struct mfs_admin *admin, const struct mfs_msg_term *how,
                         struct mfs_err *err)
{
    int64_t until = mfs_clock_mono() + MFS_CONSENT_TIME;
    struct mfs_args args;
    struct mfs_cmd cmd;
    bool has = false;
    int rc;

    mfs_args_init(&args, "PING");
    rc = call(admin, &args, NULL, err);
    while (!rc && !has) {
        if (mfs_clock_mono() >= until)
            return mfs_err_set(err, -ETIMEDOUT,
                               "partition %u: its replica at %s:%u does not follow", how->index,
                               how->replica_host, how->replica_port);
        mfs_args_init(&args, "WAIT");
        mfs_args_int(&args, 1);
        mfs_args_int(&args, WAIT_MS);
        cmd = mfs_args_cmd(&args, 0);
        rc = mfs_admin_call(admin, &cmd, err);
        has = !rc && mfs_reply_int(cmd.reply) > 0;
        mfs_cmds_fini(&cmd, 1);
    }
    return rc;
}

static int do_term(struct mfs_admin *admin, const struct mfs_msg_term *how, struct mfs_err *err)
{
    if (!how->on)
        return end_terms(admin, NULL, err);
    return how->whole ? await_replica(admin, how, err) : begin_terms(admin, how, err);
}

static void run_term(struct mfs_job *job)
{
    struct term_job *j = (struct term_job *)job;
    struct mfs_admin *admin;
    int *rc = &j->request.rc;

    *rc = mfs_admin_open(&admin, j->redis.unix_path, NULL, 0, j->redis.admin_password, CALL_LIMIT,
                         &j->request.err);
    if (!*rc)
        *rc = do_term(admin, &j->how, &j->request.err);
    mfs_admin_close(admin);
}

/* Whether another process takes the place of one that dies, or its replica does, must be known to a
 * Local Manager that comes after us, too. */
static int set_termed(struct mfs_agent_part *p, bool termed, struct mfs_err *err)
{
    if (p->termed == termed)
        return 0;
    p->termed = termed;
    if (mfs_agent_must_save(p->agent, err))
        p->termed = !termed;
    return p->termed == termed ? 0 : err->code;
}

static void term_done(struct mfs_job *job)
{
    struct term_job *j = (struct term_job *)job;
    struct mfs_request_job *r = &j->request;
    struct mfs_agent_part *p = mfs_agent_part_find(r->agent, j->how.index);

    if (!r->rc && !j->how.on && p && !strcmp(p->redis.password, j->how.password) &&
        r->agent->phase == MFS_AGENT_RUNNING)
        r->rc = p->lost ? mfs_err_set(&r->err, -EAGAIN, "partition %u: its process has just ended",
                                      j->how.index)
                        : set_termed(p, false, &r->err);
    mfs_request_job_end(r, MFS_MSG_TERM, NULL);
}

static int check_term(const struct mfs_agent_part *p, const struct mfs_msg_term *m,
                      struct mfs_err *err)
{
    if (!p)
        return mfs_err_set(err, -ENOENT, "there is no such process of partition %u", m->index);
    if (p->reviving)
        return mfs_err_set(err, -EBUSY, "partition %u: its process is being started", m->index);
    if (m->on && (!m->replica_host[0] || !m->replica_port || !m->replica_admin_password[0]))
        return mfs_err_set(err, -EINVAL, "term: the replica of partition %u makes no sense",
                           m->index);
    return 0;
}

void mfs_agent_term(struct mfs_agent *a, const struct mfs_msg_term *m, struct mfs_conn *conn,
                    uint64_t id)
{
    struct mfs_agent_part *p;
    struct mfs_err err = {0};
    struct term_job *j;
    int rc = 0;

    if (!m->on) /* cm asks again until it runs */
        rc = mfs_agent_part_recall(a, m->index, m->password, &err);
    p = mfs_agent_part_meant(a, m->index, m->password);
    if (!rc)
        rc = check_term(p, m, &err);
    if (!rc && m->on)
        rc = set_termed(p, true, &err); /* before the replica may take its place */
    if (rc) {
        mfs_agent_refuse(a, conn, id, rc, err.msg);
        return;
    }
    j = calloc(1, sizeof *j);
    if (j)
        *j = (struct term_job){
            .request.job = {run_term, term_done, NULL}, .redis = p->redis, .how = *m};
    mfs_request_job_run(a, "term", j ? &j->request : NULL, conn, id);
}
