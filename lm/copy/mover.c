/* Moving one partition, by replication of redis 7.0.
 *
 * What redis does by itself only once a second is done here at once: after a full copy the source
 * waits for the replica's acknowledgement before it sends what was written meanwhile, so the
 * replica is asked for one, again and again (mfs_admin_acknowledge). The rest of the handshake
 * needs no timer of redis (repl-diskless-sync-delay is 0), but for the end of the child that dumps
 * or sends, which the source notices in its cron: it is made to run often meanwhile. */
#include "lm/copy/mover_impl.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "store/args.h"

#define AREA        "move"
#define STEP_LIMIT  (30 * MFS_SEC) /* to get in step once all is copied */
#define FULL_LIMIT  (2 * MFS_SEC)  /* above its memory, until the node's memory is divided anew */
#define FULL_SLACK  (16ULL << 20)  /* bytes above its memory that are too many at once */
#define TRIES       3
#define BACK_OFF    (250 * MFS_MSEC) /* after the first failure, doubled by each */
#define FAST_LOOKS  100              /* at first, each FAST_STEP: a small partition is there soon */
#define FAST_STEP   (1 * MFS_MSEC)
#define SOURCE_STEP (50 * MFS_MSEC) /* between two looks at the source while copying */
#define SOURCE_LATE (1 * MFS_SEC)   /* likewise, once it did not answer in time */
#define LAG_SMALL   (1ULL << 20)    /* bytes of commands */
#define HEADROOM    (64ULL << 10)   /* bytes that a partition must have left to serve */
#define KEEP_LIMIT  (300 * MFS_SEC) /* sessions live so long in a cold move */
#define CRON_FAST   "100"           /* per second */

static_assert(FAST_STEP < SOURCE_STEP && SOURCE_STEP < SOURCE_LATE, "looks become rarer");
static_assert(SOURCE_LATE < MFS_MOVER_STALL, "a late source is asked again before it is given up");
static_assert(MFS_MOVER_CALL < MFS_MOVER_STALL, "likewise after a call without an answer");

/* ---- survey ---------------------------------------------------------------------------------- */

int mfs_mover_survey(struct mfs_mover *m, uint64_t *bytes, struct mfs_err *err)
{
    struct mfs_ends e = {.m = m, .err = err};
    struct mfs_admin_replication r = {0};
    int rc = mfs_ends_open_source(&e);

    if (!rc)
        rc = mfs_ends_look_at_source(&e, true, &r);
    if (!rc)
        *bytes = r.used_memory;
    mfs_ends_close(&e);
    return rc;
}

/* ---- copy ------------------------------------------------------------------------------------ */

/* Redis can sleep after each key it saves; a negative number -n makes that a microsecond after each
 * n-th in the mean, where a sleep really takes some SLEEP_US. */
static void rate_delay(const struct mfs_admin_replication *source, uint64_t rate, char *out,
                       size_t n)
{
    enum { SLEEP_US = 60, SLEEP_MOST_US = 5000000 }; /* well within MFS_MOVER_STALL */
    double mean = source->keys ? (double)source->used_memory / (double)source->keys : 0;
    double us = rate ? mean / (double)rate * 1e6 : 0;

    if (us > SLEEP_MOST_US)
        snprintf(out, n, "%d", SLEEP_MOST_US);
    else if (us >= SLEEP_US)
        snprintf(out, n, "%d", (int)(us - SLEEP_US) + 1);
    else if (us > 0.001)
        snprintf(out, n, "%d", -(int)(SLEEP_US / us));
    else
        snprintf(out, n, "0");
}

/* How the source is to send its copy; the child that does it inherits the delay. */
static int prepare_source(struct mfs_ends *e)
{
    struct mfs_admin_replication r = {0};
    bool dumps = e->m->cold && !e->m->diskless;
    char delay[24];
    int rc = mfs_ends_look_at_source(e, true, &r);

    if (rc)
        return rc;
    e->copies_before = r.full_copies;
    rate_delay(&r, e->m->rate, delay, sizeof delay);
    rc = mfs_admin_set(e->source, "rdb-key-save-delay", delay, e->err);
    if (!rc)
        rc = mfs_admin_set(e->source, "repl-diskless-sync", dumps ? "no" : "yes", e->err);
    if (!rc)
        rc = mfs_admin_set(e->source, "hz", CRON_FAST, e->err);
    return rc ? mfs_ends_source_failed(e, rc) : 0;
}

/* Over a connection of its own if the other is what failed. Where that fails, too, it is done when
 * the source is let serve again (mfs_mover_fence). */
static void restore_source(struct mfs_ends *e)
{
    struct mfs_admin *anew = NULL;
    struct mfs_err err = {0};
    int rc = e->source ? mfs_ends_settle(e->source, &err) : -ENOTCONN;

    if (rc)
        rc = mfs_admin_open(&anew, NULL, e->m->source_host, e->m->source_port,
                            e->m->source_password, MFS_MOVER_CALL, &err);
    if (anew)
        rc = mfs_ends_settle(anew, &err);
    if (rc)
        mfs_debug(AREA, "partition %u: %s", e->m->part, err.msg);
    mfs_admin_close(anew);
}

/* What is looked at, again and again, until all has arrived. */
struct watch {
    int64_t moved, full_since, source_next; /* mfs_clock_mono; full_since 0: is not */
    uint64_t target_loaded, source_keys;
    unsigned looks;
};

static int no_room(struct mfs_ends *e, const struct mfs_admin_replication *t)
{
    return mfs_err_set(e->err, -ENOSPC,
                       "no memory for partition %u: it takes %" PRIu64 " bytes, %" PRIu64
                       " is what this node has for it",
                       e->m->part, t->used_memory, t->maxmemory);
}

static int check_memory(struct mfs_ends *e, struct watch *w, const struct mfs_admin_replication *t)
{
    int64_t now = mfs_clock_mono();

    if (t->used_memory <= t->maxmemory) {
        w->full_since = 0;
        return 0;
    }
    if (!w->full_since)
        w->full_since = now;
    if (t->used_memory <= t->maxmemory + FULL_SLACK && now - w->full_since <= FULL_LIMIT)
        return 0;
    return no_room(e, t);
}

/* The answer of a source waits in the queue of its link behind what it sends, so that it may come
 * late: whether the copy gets on is then seen at the target. */
static int check_source(struct mfs_ends *e, struct watch *w)
{
    struct mfs_admin_replication r = {0};
    int64_t now = mfs_clock_mono();
    int rc;

    if (now < w->source_next)
        return 0;
    rc = mfs_ends_glance_at_source(e, true, &r);
    w->source_next = mfs_clock_mono() + (rc ? SOURCE_LATE : SOURCE_STEP);
    if (rc)
        return rc == -EAGAIN ? 0 : rc;
    if (r.saved_keys != w->source_keys)
        w->moved = now;
    w->source_keys = r.saved_keys;
    if (r.full_copies > e->copies_before + 1)
        return mfs_err_set(e->err, -ENOBUFS, "the link of partition %u broke while it was copied",
                           e->m->part);
    return 0;
}

/* As mfs_ends_look_at_target, for one that may load and then answers late at times: -EAGAIN. The
 * connection is opened anew after that. */
static int glance_at_target(struct mfs_ends *e, struct mfs_admin_replication *r)
{
    int rc = 0;

    if (!e->target)
        rc = mfs_admin_open(&e->target, e->m->target_path, NULL, 0, e->m->target_password,
                            MFS_MOVER_CALL, e->err);
    if (!rc)
        rc = mfs_admin_replication(e->target, true, r, e->err);
    if (!rc)
        return 0;
    mfs_admin_close(e->target);
    e->target = NULL;
    return rc == -ETIMEDOUT ? -EAGAIN : mfs_ends_target_failed(e);
}

/* 1: all is there. */
static int check_target(struct mfs_ends *e, struct watch *w)
{
    struct mfs_admin_replication t = {0};
    int rc = glance_at_target(e, &t);

    if (rc)
        return rc == -EAGAIN ? 0 : rc;
    /* Not its memory: a large value has it before its bytes come, and questions take some, too. */
    if (t.loaded > w->target_loaded) {
        w->moved = mfs_clock_mono();
        w->target_loaded = t.loaded;
    }
    atomic_store(&e->m->bytes, t.used_memory);
    rc = check_memory(e, w, &t);
    return rc ? rc : t.link_up;
}

static int check_progress(struct mfs_ends *e, const struct watch *w)
{
    if (mfs_clock_mono() - w->moved <= MFS_MOVER_STALL)
        return 0;
    if (!e->source)
        return mfs_err_set(e->err, -EHOSTUNREACH,
                           "the source of partition %u is out of reach: it does not answer, and "
                           "nothing of it arrives",
                           e->m->part);
    return mfs_err_set(e->err, -ETIMEDOUT, "copying partition %u does not get on", e->m->part);
}

static int await_copy(struct mfs_ends *e)
{
    struct watch w = {.moved = mfs_clock_mono()};
    int rc;

    for (;;) {
        rc = mfs_ends_canceled(e);
        if (!rc)
            rc = check_source(e, &w);
        if (!rc)
            rc = check_target(e, &w);
        if (!rc)
            rc = check_progress(e, &w);
        if (rc)
            return rc < 0 ? rc : 0;
        mfs_clock_sleep(w.looks++ < FAST_LOOKS ? FAST_STEP : MFS_MOVER_STEP);
    }
}

/* Bytes of commands that the source is ahead, or a negative errno; INT64_MAX: not known. The source
 * is asked first: it then can't be behind. */
static int64_t lag_of(struct mfs_ends *e)
{
    struct mfs_admin_replication s = {0}, t = {0};
    int rc = mfs_ends_glance_at_source(e, false, &s);

    if (rc == -EAGAIN)
        return INT64_MAX;
    if (!rc && mfs_admin_acknowledge(e->target, e->err))
        rc = mfs_ends_target_failed(e);
    if (!rc)
        rc = mfs_ends_look_at_target(e, false, &t);
    if (rc)
        return rc;
    if (!t.link_up)
        return INT64_MAX;
    return t.offset >= s.offset ? 0 : (int64_t)(s.offset - t.offset);
}

/* copying: a link that breaks is an error; else redis may bring it up again. */
int mfs_ends_await_step(struct mfs_ends *e, bool copying, int64_t limit)
{
    int64_t until = mfs_clock_mono() + limit, lag;
    struct watch w = {0};
    int rc;

    for (;;) {
        rc = mfs_ends_canceled(e);
        if (!rc && copying)
            rc = check_source(e, &w);
        if (rc)
            return rc;
        lag = lag_of(e);
        if (lag < 0)
            return (int)lag;
        if (lag <= (int64_t)LAG_SMALL)
            return 0;
        if (mfs_clock_mono() >= until)
            return mfs_err_set(e->err, -ETIMEDOUT,
                               "the copy of partition %u does not get in step with its source",
                               e->m->part);
        mfs_clock_sleep(FAST_STEP);
    }
}

/* Back to an empty process, so that the next attempt goes from memory to memory again. A process
 * that loads refuses this until it notices that its link is broken. */
static int start_over(struct mfs_ends *e)
{
    int64_t until = mfs_clock_mono() + MFS_MOVER_STALL;
    int rc;

    do {
        rc = e->target ? 0 : mfs_ends_open_target(e);
        if (!rc)
            rc = mfs_admin_replicate_none(e->target, e->err);
        if (!rc)
            rc = mfs_admin_flush(e->target, e->err);
        if (rc == -EAGAIN)
            mfs_clock_sleep(FAST_STEP);
    } while (rc == -EAGAIN && mfs_clock_mono() < until && !mfs_ends_canceled(e));
    return rc ? mfs_ends_target_failed(e) : 0;
}

/* The source lets the target follow, and no other process any more. */
static int admit(struct mfs_ends *e, char word[MFS_MAC_TEXT])
{
    int rc = mfs_admin_copy_word(e->m->target_password, word);

    if (rc)
        return mfs_err_set(e->err, rc, "partition %u: %s", e->m->part, strerror(-rc));
    rc = mfs_admin_admit(e->source, word, !e->m->moves, e->err);
    return rc && rc != -EAGAIN ? mfs_ends_source_failed(e, rc) : rc;
}

static int copy_once(struct mfs_ends *e)
{
    char word[MFS_MAC_TEXT];
    int rc = admit(e, word);

    if (rc)
        return rc;
    rc = prepare_source(e);
    if (!rc && mfs_admin_replicate(e->target, e->m->source_host, e->m->source_port, word, e->err))
        rc = mfs_ends_target_failed(e);
    if (!rc)
        rc = await_copy(e);
    if (!rc)
        rc = mfs_ends_await_step(e, true, STEP_LIMIT);
    restore_source(e);
    return rc;
}

/* A cold copy takes its time, and no client can refresh its session meanwhile. */
static void keep_sessions(struct mfs_ends *e)
{
    struct mfs_err err = {0};
    struct mfs_args args;
    struct mfs_cmd cmd;

    mfs_args_init(&args, "mfs_sessions_keep");
    mfs_args_int(&args, KEEP_LIMIT / MFS_MSEC);
    cmd = mfs_args_cmd(&args, e->m->part);
    if (mfs_admin_call(e->source, &cmd, &err))
        mfs_warn(AREA, "partition %u: sessions may expire on the way: %s", e->m->part, err.msg);
    mfs_cmds_fini(&cmd, 1);
}

static int copy_anew(struct mfs_ends *e)
{
    uint64_t offset;
    int rc = 0;

    if (e->m->cold) {
        keep_sessions(e);
        rc = mfs_ends_fence(e, &offset);
    }

    for (int tries = 1; !rc; tries++) {
        rc = copy_once(e);
        if (rc != -ENOBUFS || tries == TRIES)
            return rc;
        mfs_warn(AREA, "partition %u: %s; trying again", e->m->part, e->err->msg);
        rc = start_over(e);
        if (!rc)
            mfs_clock_sleep(BACK_OFF << (tries - 1));
    }
    return rc;
}

/* An earlier Local Manager has begun it, and set what a copy sets on its source. */
static int go_on(struct mfs_ends *e)
{
    struct mfs_admin_replication r = {0};
    char word[MFS_MAC_TEXT];
    int rc = admit(e, word); /* once more, as the source may have been started anew */

    if (!rc)
        rc = mfs_ends_look_at_source(e, true, &r);
    e->copies_before = r.full_copies;
    if (!rc)
        rc = await_copy(e);
    if (!rc)
        rc = mfs_ends_await_step(e, true, STEP_LIMIT);
    restore_source(e);
    return rc;
}

/* A target that could not take writes is useless, which is found out before a client has to wait
 * for it. Its limit follows what it holds, with a delay (instances.h). Little is enough: where many
 * processes share what is free each has a small part of it, and redis looks before a command, not
 * at what it brings. */
int mfs_ends_await_room(struct mfs_ends *e)
{
    int64_t until = mfs_clock_mono() + FULL_LIMIT;
    struct mfs_admin_replication t = {0};
    int rc;

    for (;;) {
        rc = mfs_ends_canceled(e);
        if (!rc)
            rc = mfs_ends_look_at_target(e, true, &t);
        if (rc || t.used_memory + HEADROOM <= t.maxmemory)
            return rc;
        if (mfs_clock_mono() >= until)
            return no_room(e, &t);
        mfs_clock_sleep(MFS_MOVER_STEP);
    }
}

/* What the target has is of the process that is the source now. */
int mfs_ends_same_process(struct mfs_ends *e, bool linked)
{
    struct mfs_admin_replication s = {0}, t = {0};
    int rc = mfs_ends_look_at_source(e, false, &s);

    if (!rc)
        rc = mfs_ends_look_at_target(e, false, &t);
    if (rc)
        return rc;
    mfs_text_copy(e->stream, sizeof e->stream, s.stream);
    if (!strcmp(t.stream, s.stream) && (t.link_up || !linked))
        return 0;
    mfs_err_set(e->err, -EHOSTUNREACH,
                "the process that the copy of partition %u is of has ended, or the link to it",
                e->m->part);
    return -EHOSTUNREACH;
}

/* From now on the target does not follow once its link breaks: what takes the place of a source
 * that dies has less. It must have a link then, as it may begin anew without. Then the source is
 * told. */
int mfs_ends_hold_copy(struct mfs_ends *e)
{
    int rc = mfs_admin_hold_copy(e->target, e->err) ? mfs_ends_target_failed(e) : 0;

    if (!rc)
        rc = mfs_ends_same_process(e, true);
    if (!rc && mfs_admin_copied(e->source, e->err))
        rc = mfs_ends_source_failed(e, e->err->code);
    return rc;
}

int mfs_mover_copy(struct mfs_mover *m, struct mfs_err *err)
{
    struct mfs_ends e = {.m = m, .err = err};
    struct mfs_admin_replication t = {0};
    int rc = mfs_ends_open_target(&e);

    if (!rc)
        rc = mfs_ends_open_source(&e);
    if (!rc)
        rc = mfs_ends_look_at_target(&e, false, &t);
    if (!rc)
        rc = t.replica ? go_on(&e) : copy_anew(&e);
    if (!rc)
        rc = mfs_ends_await_room(&e);
    if (!rc && m->moves)
        rc = mfs_ends_hold_copy(&e);
    if (rc)
        mfs_ends_unfence(&e);
    mfs_ends_close(&e);
    return rc;
}
