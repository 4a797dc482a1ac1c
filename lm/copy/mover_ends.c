/* The two ends of a move. */
#include "lm/copy/mover_impl.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "lm/redis/redis_conf.h"

#define AREA        "move"
#define CRON_NORMAL "2" /* per second, as in redis_conf.c */

int mfs_ends_source_failed(struct mfs_ends *e, int rc)
{
    if (rc == -EACCES)
        return mfs_err_prefix(e->err, "source of partition %u", e->m->part);
    mfs_err_prefix(e->err, "the source of partition %u is out of reach", e->m->part);
    e->err->code = -EHOSTUNREACH;
    return -EHOSTUNREACH;
}

int mfs_ends_target_failed(struct mfs_ends *e)
{
    mfs_err_prefix(e->err, "the receiving process of partition %u is out of reach", e->m->part);
    e->err->code = -EIO;
    return -EIO;
}

/* Opens and names the process that is the source. A sentence in *err is not completed. */
static int connect_source(struct mfs_ends *e, char process[MFS_ADMIN_STREAM])
{
    struct mfs_admin_replication r;
    int rc = mfs_admin_open(&e->source, NULL, e->m->source_host, e->m->source_port,
                            e->m->source_password, MFS_MOVER_CALL, e->err);

    if (!rc)
        rc = mfs_admin_replication(e->source, true, &r, e->err);
    if (!rc)
        mfs_text_copy(process, MFS_ADMIN_STREAM, r.process);
    return rc;
}

int mfs_ends_open_source(struct mfs_ends *e)
{
    int rc = connect_source(e, e->process);

    return rc ? mfs_ends_source_failed(e, rc) : 0;
}

int mfs_ends_open_target(struct mfs_ends *e)
{
    int rc = mfs_admin_open(&e->target, e->m->target_path, NULL, 0, e->m->target_password,
                            MFS_MOVER_CALL, e->err);

    return rc ? mfs_ends_target_failed(e) : 0;
}

void mfs_ends_close(struct mfs_ends *e)
{
    mfs_admin_close(e->source);
    mfs_admin_close(e->target);
}

int mfs_ends_look_at_source(struct mfs_ends *e, bool full, struct mfs_admin_replication *r)
{
    int rc = mfs_admin_replication(e->source, full, r, e->err);

    return rc ? mfs_ends_source_failed(e, rc) : 0;
}

static int connect_source_again(struct mfs_ends *e)
{
    char process[MFS_ADMIN_STREAM];
    int rc = connect_source(e, process);

    if (!rc && strcmp(process, e->process) != 0)
        rc = mfs_err_set(e->err, -ESTALE, "another process is in its place");
    return rc;
}

static int glance_anew(struct mfs_ends *e, bool full, struct mfs_admin_replication *r)
{
    int rc = connect_source_again(e);

    return rc ? rc : mfs_admin_replication(e->source, full, r, e->err);
}

/* A connection that has been closed says nothing of the process. */
int mfs_ends_glance_at_source(struct mfs_ends *e, bool full, struct mfs_admin_replication *r)
{
    bool had = e->source != NULL;
    int rc = had ? mfs_admin_replication(e->source, full, r, e->err) : glance_anew(e, full, r);

    if (rc && rc != -ETIMEDOUT && had) {
        mfs_admin_close(e->source);
        e->source = NULL;
        rc = glance_anew(e, full, r);
    }
    if (!rc)
        return 0;
    mfs_admin_close(e->source);
    e->source = NULL;
    return rc == -ETIMEDOUT ? -EAGAIN : mfs_ends_source_failed(e, rc);
}

int mfs_ends_look_at_target(struct mfs_ends *e, bool full, struct mfs_admin_replication *r)
{
    return mfs_admin_replication(e->target, full, r, e->err) ? mfs_ends_target_failed(e) : 0;
}

int mfs_ends_canceled(const struct mfs_ends *e)
{
    return atomic_load(&e->m->cancel)
               ? mfs_err_set(e->err, -ECANCELED, "moving partition %u was given up", e->m->part)
               : 0;
}

int mfs_ends_settle(struct mfs_admin *source, struct mfs_err *err)
{
    int rc = mfs_admin_send_freely(source, err);

    return rc ? rc : mfs_admin_set(source, "hz", CRON_NORMAL, err);
}

/* *offset: how far the source had got when it was fenced. */
int mfs_ends_fence(struct mfs_ends *e, uint64_t *offset)
{
    int64_t now = mfs_clock_mono();
    int rc = mfs_admin_halt(e->source, mfs_redis_user_rules(true), offset, e->err);

    /* Also when it failed: it may have been executed. */
    if (!e->m->fenced_at)
        e->m->fenced_at = now;
    mfs_text_copy(e->m->fenced, sizeof e->m->fenced, e->process);
    return rc ? mfs_ends_source_failed(e, rc) : 0;
}

/* Over a connection of its own, as the other may be what failed. One that was started in the place
 * of the process that was fenced is cm's to decide about: the copy may have more than that. */
void mfs_ends_unfence(struct mfs_ends *e)
{
    struct mfs_admin_replication r;
    struct mfs_err err = {0};
    struct mfs_admin *admin;
    int rc;

    if (!e->m->fenced_at)
        return;
    rc = mfs_admin_open(&admin, NULL, e->m->source_host, e->m->source_port, e->m->source_password,
                        MFS_MOVER_CALL, &err);
    if (!rc)
        rc = mfs_admin_replication(admin, true, &r, &err);
    if (!rc && strcmp(r.process, e->m->fenced) != 0)
        rc = mfs_err_set(&err, -ESTALE, "another process is in its place");
    if (!rc)
        rc = mfs_admin_set_user(admin, mfs_redis_user_rules(false), &err);
    if (rc)
        mfs_warn(AREA, "partition %u: its source stays fenced: %s", e->m->part, err.msg);
    else
        e->m->fenced_at = 0;
    mfs_admin_close(admin);
}
