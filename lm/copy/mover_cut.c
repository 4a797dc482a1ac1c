/* The cut of a move: the target has all that the source has executed, and takes its place. */
#include "lm/copy/mover_impl.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "lm/redis/redis_conf.h"
#include "store/args.h"
#include "store/reply.h"

#define CUT_LIMIT (2 * MFS_SEC)  /* to get to the exact offset */
#define CUT_STEP  (100 * 1000LL) /* ns */
#define TERM_MOST 5000           /* ms that a term is taken to have left, at most */

static_assert(CUT_STEP < CUT_LIMIT, "the offset is looked at many times");

/* Without a link nothing arrives any more, as the target does not connect again
 * (mfs_ends_hold_copy). */
static int await_offset(struct mfs_ends *e, const char *stream, uint64_t offset)
{
    int64_t until = mfs_clock_mono() + CUT_LIMIT;
    struct mfs_admin_replication t = {0};
    int rc;

    for (unsigned looks = 0;; looks++) {
        rc = mfs_ends_look_at_target(e, false, &t);
        if (!rc && strcmp(t.stream, stream) != 0)
            rc = mfs_err_set(e->err, -ENODATA, "the copy of partition %u is of another process",
                             e->m->part);
        if (rc || t.offset >= offset)
            return rc;
        if (!t.link_up)
            return mfs_err_set(e->err, -ENODATA,
                               "the copy of partition %u is at %" PRIu64 ", its source was at "
                               "%" PRIu64 " when the link broke",
                               e->m->part, t.offset, offset);
        if (looks % 16 == 15 && mfs_admin_acknowledge(e->target, e->err))
            return mfs_ends_target_failed(e);
        if (mfs_clock_mono() >= until)
            return mfs_err_set(e->err, -ETIMEDOUT,
                               "the copy of partition %u is at %" PRIu64 ", its source at %" PRIu64,
                               e->m->part, t.offset, offset);
        mfs_clock_sleep(CUT_STEP);
    }
}

/* From here on the copy is exact. */
static int stop_source(struct mfs_ends *e)
{
    uint64_t offset = 0;
    int rc = mfs_ends_open_source(e);

    if (!rc)
        rc = mfs_ends_same_process(e, false);
    if (!rc)
        rc = mfs_ends_await_step(e, false, CUT_LIMIT);
    if (!rc)
        rc = mfs_ends_hold_copy(e);
    if (!rc)
        rc = mfs_ends_fence(e, &offset);
    if (!rc)
        rc = await_offset(e, e->stream, offset);
    if (rc)
        mfs_ends_unfence(e);
    return rc;
}

/* The source is gone: whatever the target reads still, it reads to the end. */
static int await_loaded(struct mfs_ends *e)
{
    int64_t until = mfs_clock_mono() + MFS_MOVER_STALL;
    struct mfs_admin_replication t = {0};
    int rc;

    for (;;) {
        rc = mfs_ends_look_at_target(e, true, &t);
        if (rc || !t.loading)
            return rc;
        if (mfs_clock_mono() >= until)
            return mfs_err_set(e->err, -ETIMEDOUT, "partition %u is still being loaded",
                               e->m->part);
        mfs_clock_sleep(MFS_MOVER_STEP);
    }
}

/* The target consents no more to what the source does. *left: ms until that has its effect. */
static int withdraw(struct mfs_ends *e, uint32_t quiet_ms, int64_t *left)
{
    struct mfs_args args;
    struct mfs_cmd cmd;
    int rc;

    mfs_args_init(&args, "mfs_term_withdraw");
    mfs_args_int(&args, quiet_ms);
    cmd = mfs_args_cmd(&args, e->m->part);
    rc = mfs_admin_call(e->target, &cmd, e->err);
    *left = rc ? 0 : mfs_reply_int(cmd.reply);
    mfs_cmds_fini(&cmd, 1);
    return rc == -EAGAIN ? rc : rc ? mfs_ends_target_failed(e) : 0;
}

/* Until the source can't serve any more. */
static int end_terms(struct mfs_ends *e, const struct mfs_msg_take *how)
{
    int64_t left = 0;
    int rc = withdraw(e, how->dead ? 0 : how->quiet_ms, &left);

    if (!rc && !how->dead && left > 0)
        mfs_clock_sleep((left < TERM_MOST ? left : TERM_MOST) * MFS_MSEC);
    return rc ? rc : await_loaded(e);
}

int mfs_mover_cut(struct mfs_mover *m, const struct mfs_msg_take *how, uint64_t *blocked_us,
                  struct mfs_err *err)
{
    struct mfs_ends e = {.m = m, .err = err};
    struct mfs_admin_replication t = {0};
    int rc = mfs_ends_open_target(&e);

    if (!rc)
        rc = mfs_ends_look_at_target(&e, true, &t);
    if (!rc && t.replica && !how->force)
        rc = mfs_ends_await_room(&e);
    if (!rc && t.replica)
        rc = !how->force      ? stop_source(&e)
             : how->stream[0] ? await_offset(&e, how->stream, how->offset)
                              : end_terms(&e, how);
    if (!rc && mfs_admin_promote(e.target, mfs_redis_user_rules(false), err))
        rc = mfs_ends_target_failed(&e);
    *blocked_us = m->fenced_at ? (uint64_t)(mfs_clock_mono() - m->fenced_at) / 1000 : 0;
    mfs_ends_close(&e);
    return rc;
}

/* ---- fence ----------------------------------------------------------------------------------- */

int mfs_mover_fence(const char *path, const char *admin_password, bool fenced,
                    struct mfs_admin_journal *journal, struct mfs_err *err)
{
    struct mfs_admin *admin;
    int rc = mfs_admin_open(&admin, path, NULL, 0, admin_password, MFS_MOVER_CALL, err);

    if (!rc)
        rc = mfs_admin_set_user(admin, mfs_redis_user_rules(fenced), err);
    if (!rc && !fenced)
        rc = mfs_ends_settle(admin, err);
    if (!rc)
        rc = mfs_admin_journal(admin, journal, err);
    mfs_admin_close(admin);
    return rc;
}
