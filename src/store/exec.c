/* A call: all its commands go out, one pipeline per partition ("lane"), then the replies come in;
 * what was surely not executed, or may be executed twice, is tried again where that can help.
 *
 *   enter the pool ─> connect ─> send all ─> receive all ─> leave ─┬─> every result is set
 *        ^                                                         │
 *        ├── at once: a pooled connection had been closed, or the  │
 *        │   partition has moved (entering waits while it does) ───┤
 *        ├── after a table, or some milliseconds, while a new      │
 *        │   address may help (opts.table_wait) ───────────────────┤
 *        └── likewise while memory may come (opts.full_wait) ──────┘
 *
 * What is tried again goes out in the order given; a command behind a refused one that was executed
 * (the fence was lifted in between) is repeated behind it if it may be.
 *
 * A call for a single partition, the everyday case, makes two system calls: a blocking send and a
 * blocking receive. With several partitions neither may wait for the slowest of them: both go on
 * wherever something is possible. */
#include "store/internal.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/phases.h"
#include "base/waits.h"
#include "store/reply.h"

/* A connection used less than this ago is taken to be alive without asking the kernel. */
#define TRUSTED_NS     (1 * MFS_MSEC)
#define BACKOFF_MIN_NS (5 * MFS_MSEC)
#define BACKOFF_MAX_NS (200 * MFS_MSEC)
#define FULL_MAX_NS    (500 * MFS_MSEC) /* the same while there is no memory */

static_assert(BACKOFF_MIN_NS < BACKOFF_MAX_NS && BACKOFF_MAX_NS < FULL_MAX_NS, "pauses grow");

struct call {
    struct mfs_store *store;
    struct mfs_batch batch;
    int64_t deadline; /* of this attempt */
    uint64_t epoch;   /* of the table that it used */
    int64_t give_up;  /* when no further attempt is made; 0 until something failed */
    int64_t full_end; /* the same for want of memory */
    int64_t backoff;
    uint32_t attempts; /* begun so far */
    bool heard;        /* something has answered in this attempt */
};

/* The connection is of no use any more. */
static void lane_fail(struct call *call, struct mfs_lane *lane, int rc, const char *why)
{
    lane->rc = rc;
    if (rc == -ENOMEM)
        return;
    if (rc == -ETIMEDOUT)
        why = "no answer in time";
    else if (!why)
        why = strerror(-rc);
    mfs_pool_down(call->store, lane->part, lane->gen, why);
}

/* A pooled connection that its peer has closed says nothing about the partition: no log line, just
 * another connection. */
static bool was_stale(const struct mfs_lane *lane)
{
    return lane->conn && lane->conn->reused && !lane->fresh && lane->rc != -ETIMEDOUT &&
           lane->done == 0;
}

static void lane_broken(struct call *call, struct mfs_lane *lane, int rc, const char *why)
{
    lane->rc = rc;
    if (!was_stale(lane))
        lane_fail(call, lane, rc, why);
}

/* The caller may have been stopped, or waited for long, since it asked for what it relies on. */
static bool is_late(const struct mfs_cmd *cmd)
{
    return cmd->not_after && mfs_clock_mono() > cmd->not_after;
}

/* Takes commands out of the lane of which `check` says an errno. */
static void lane_sift(struct call *call, struct mfs_lane *lane,
                      int (*check)(struct call *call, const struct mfs_lane *lane,
                                   const struct mfs_cmd *cmd))
{
    size_t keep = 0;

    for (size_t i = 0; i < lane->n; i++) {
        struct mfs_cmd *cmd = lane->cmds[i];
        int rc = check(call, lane, cmd);

        if (rc)
            cmd->rc = rc;
        else
            lane->cmds[keep++] = cmd;
    }
    lane->n = keep;
}

static int check_fault(struct call *call, const struct mfs_lane *lane, const struct mfs_cmd *cmd)
{
    int rc = mfs_store_fault(call->store, cmd);

    (void)lane;
    return !rc && is_late(cmd) ? -ECANCELED : rc;
}

/* Is it the process that the command is for? By the connection: what the table says may change. */
static int check_era(struct call *call, const struct mfs_lane *lane, const struct mfs_cmd *cmd)
{
    (void)call;
    return cmd->in_era && cmd->only_era != lane->conn->era ? -ECANCELED : 0;
}

static int lane_connect(struct call *call, struct mfs_lane *lane)
{
    int64_t left = call->deadline - mfs_clock_mono();

    if (left <= 0)
        return -ETIMEDOUT;
    return mfs_pool_begin(call->store, lane->part,
                          left < MFS_STORE_CONNECT_NS ? left : MFS_STORE_CONNECT_NS, &lane->conn);
}

/* Gets the lane a connection, which may have to log on yet. */
static void lane_dial(struct call *call, struct mfs_lane *lane, int64_t now)
{
    lane_sift(call, lane, check_fault);
    if (!lane->n)
        return;
    if (lane->conn && now - lane->conn->idle_since > TRUSTED_NS && mfs_channel_stale(lane->conn)) {
        mfs_channel_close(lane->conn);
        lane->conn = NULL;
    }
    if (lane->conn)
        lane->conn->reused = true;
    else
        lane->rc = lane_connect(call, lane);
    lane->dialled = lane->conn && !lane->conn->reused;
}

/* The pipeline is ready to be sent. */
static void lane_start(struct call *call, struct mfs_lane *lane)
{
    if (!lane->n)
        return;
    if (lane->dialled)
        lane->rc = mfs_pool_ready(call->store, lane->part, &lane->conn);
    lane->dialled = false;
    if (lane->conn) {
        lane->gen = lane->conn->gen;
        mfs_pool_hold(call->store, lane);
        lane_sift(call, lane, check_era);
    }
    if (!lane->rc && lane->n)
        lane->rc = mfs_channel_start(lane->conn, lane->cmds, lane->n, call->deadline);
}

static void lane_send(struct call *call, struct mfs_lane *lane, bool wait)
{
    int rc = mfs_channel_send(lane->conn, wait);

    if (rc < 0)
        lane_broken(call, lane, rc, NULL);
}

/* An error reply; what is to be tried again gets -EAGAIN. */
static void lane_error(struct call *call, struct mfs_lane *lane, struct mfs_cmd *cmd,
                       const struct mfs_err *err)
{
    if (mfs_fence_refuses(cmd, err) && lane->refusals < MFS_FENCE_REFUSALS) {
        lane->refused = true;
        lane->lapsed = mfs_fence_is_lapse(err);
        cmd->rc = -EAGAIN;
    }
    if (cmd->rc == -ENOSPC)
        mfs_pool_full(call->store, cmd->part);
    if (cmd->rc == -ENOSPC && !cmd->full_at_once && mfs_store_full_wait(call->store))
        lane->full = true;
    if (cmd->rc == -EIO)
        mfs_store_complain(call->store, cmd, err->msg);
}

static void lane_receive(struct call *call, struct mfs_lane *lane, bool wait)
{
    struct mfs_err err;

    while (lane->done < lane->n) {
        struct mfs_cmd *cmd = lane->cmds[lane->done];
        int rc;

        err.code = 0;
        rc = mfs_channel_recv(lane->conn, cmd, wait, &err);
        if (rc < 0)
            lane_broken(call, lane, rc, err.code ? err.msg : NULL);
        if (rc <= 0)
            return;
        cmd->era = lane->conn->era;
        cmd->attempt = call->attempts;
        if (cmd->rc)
            lane_error(call, lane, cmd, &err);
        else if (cmd->taken)
            cmd->taken(cmd->arg, cmd);
        lane->done++;
    }
}

/* Whether an answered command is to be sent again; `behind` a refused one. */
static bool is_open(const struct mfs_lane *lane, struct mfs_cmd *cmd, bool behind)
{
    if (cmd->rc == -EAGAIN || (lane->full && cmd->rc == -ENOSPC && !cmd->full_at_once))
        return true;
    if (!behind || cmd->rc || !cmd->idempotent)
        return false;
    mfs_cmds_fini(cmd, 1);
    return true;
}

/* Sets the results of what did not get its reply, and keeps in the lane what is worth another
 * attempt: refused for the moment, never sent, or harmless to repeat. */
static void lane_settle(struct call *call, struct mfs_lane *lane)
{
    size_t sent = 0, keep = 0;
    bool timed_out = lane->rc == -ETIMEDOUT, final;

    if (lane->rc && lane->conn)
        sent = mfs_channel_sent(lane->conn, lane->cmds, lane->n);
    /* Time is up; but to have waited for a connection leaves the hope for another address. */
    final = lane->rc == -ENOMEM || (timed_out && lane->conn);
    for (size_t i = 0; i < lane->n; i++) {
        struct mfs_cmd *cmd = lane->cmds[i];

        if (i >= lane->done)
            cmd->rc = timed_out || lane->rc == -ENOMEM ? lane->rc : -EIO;
        if (i < lane->done ? is_open(lane, cmd, lane->refused && keep)
                           : !final && (i >= sent || cmd->idempotent))
            lane->cmds[keep++] = cmd;
    }
    if (lane->refused) {
        lane->refusals++;
        mfs_fence_seen(call->store, lane->part, lane->gen, lane->lapsed);
    }
    lane->stale = lane->rc && was_stale(lane);
    if (lane->stale && keep < lane->n)
        lane_fail(call, lane, lane->rc, "connection lost with commands unanswered");
    lane->n = keep;
}

/* Ends the lane's part in this attempt once everything is answered or the connection has failed. */
static void lane_finish(struct call *call, struct mfs_lane *lane)
{
    if (!lane->open || (!lane->rc && lane->done < lane->n))
        return;
    lane->open = false;
    call->heard = call->heard || lane->done;
    lane_settle(call, lane);
    mfs_pool_leave(call->store, lane);
}

static bool lane_sending(const struct mfs_lane *lane)
{
    return lane->open && lane->conn->iov_at < lane->conn->iov_n;
}

static size_t count_open(const struct mfs_batch *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->nlanes; i++)
        n += b->lanes[i].open;
    return n;
}

/* Waits until some lane can go on. */
static int poll_lanes(struct call *call, struct pollfd *fds)
{
    struct mfs_batch *b = &call->batch;
    int64_t left = call->deadline - mfs_clock_mono();
    int ms = left > 0 ? (int)(left / MFS_MSEC) + 1 : 0; /* what is there is still taken */
    int rc;

    for (size_t i = 0; i < b->nlanes; i++) {
        struct mfs_lane *lane = &b->lanes[i];

        fds[i].fd = lane->open ? lane->conn->ctx->fd : -1;
        fds[i].events = (short)(POLLIN | (lane_sending(lane) ? POLLOUT : 0));
        fds[i].revents = 0;
    }
    mfs_waits_begin();
    rc = poll(fds, b->nlanes, ms);
    mfs_waits_end();
    if (rc < 0)
        return errno == EINTR ? 0 : -errno;
    return rc ? 0 : -ETIMEDOUT;
}

/* Sends and receives on several lanes, wherever something is possible, until one of them is left.
 */
static void pump(struct call *call)
{
    struct mfs_batch *b = &call->batch;
    struct pollfd *fds = malloc(b->nlanes * sizeof *fds);

    for (size_t i = 0; i < b->nlanes; i++) {
        if (b->lanes[i].open)
            lane_send(call, &b->lanes[i], false);
        lane_finish(call, &b->lanes[i]);
    }
    while (count_open(b) > 1) {
        int rc = fds ? poll_lanes(call, fds) : -ENOMEM;

        for (size_t i = 0; i < b->nlanes; i++) {
            struct mfs_lane *lane = &b->lanes[i];

            if (rc && lane->open)
                lane_broken(call, lane, rc, NULL);
            if (!rc && fds[i].revents & ~POLLOUT)
                lane_receive(call, lane, false);
            if (!rc && fds[i].revents & POLLOUT && !lane->rc && lane_sending(lane))
                lane_send(call, lane, false);
            lane_finish(call, lane);
        }
    }
    free(fds);
}

/* Sends what is left of the lane and waits for its replies. */
static void lane_complete(struct call *call, struct mfs_lane *lane)
{
    mfs_phase_at(lane->part);
    mfs_waits_begin();
    if (lane_sending(lane))
        lane_send(call, lane, true);
    if (!lane->rc)
        lane_receive(call, lane, true);
    mfs_waits_end();
    lane_finish(call, lane);
}

/* One round trip: to the partition that was the last to answer. */
static void end_phase(const struct mfs_batch *b)
{
    const struct mfs_lane *last = &b->lanes[0];

    for (size_t i = 1; i < b->nlanes; i++)
        if (b->lanes[i].took > last->took)
            last = &b->lanes[i];
    mfs_phase_end(last->part, last->began + last->took);
}

static int attempt(struct call *call)
{
    struct mfs_batch *b = &call->batch;
    int64_t now;
    int rc = mfs_pool_enter(call->store, b->lanes, b->nlanes, &call->epoch, &now);

    if (rc)
        return rc;
    call->heard = false;
    mfs_store_asks(call->store, now);
    call->deadline = mfs_store_until(call->store, now + call->store->opts.io_timeout,
                                     call->store->opts.io_timeout);
    call->attempts++;
    mfs_phase_begin(MFS_PHASE_PARTITION, b->lanes[0].part, now);
    for (size_t i = 0; i < b->nlanes; i++) {
        struct mfs_lane *lane = &b->lanes[i];

        lane->open = true;
        lane->began = now;
        lane->refused = lane->full = false;
        lane->rc = 0;
        lane->done = 0;
        lane_dial(call, lane, now);
    }
    /* Those that were dialled log on at the same time. */
    for (size_t i = 0; i < b->nlanes; i++) {
        lane_start(call, &b->lanes[i]);
        lane_finish(call, &b->lanes[i]);
    }
    if (b->nlanes > 1)
        pump(call);
    for (size_t i = 0; i < b->nlanes; i++)
        if (b->lanes[i].open)
            lane_complete(call, &b->lanes[i]);
    if (call->heard)
        mfs_store_heard(call->store);
    end_phase(b);
    return 0;
}

/* Waits where that is due before the lanes, of which some are `full`, are tried again; false: it is
 * time to give up. */
static bool wait_turn(struct call *call, bool full)
{
    struct mfs_batch *b = &call->batch;
    int64_t now = mfs_clock_mono(), *end = full ? &call->full_end : &call->give_up;
    int64_t left, pause = call->backoff;

    if (!*end)
        *end = full ? now + call->store->opts.full_wait
                    : mfs_pool_give_up(call->store, b->lanes, b->nlanes);
    left = mfs_store_until(call->store, *end, call->store->opts.table_wait) - now;
    if (left <= 0)
        return mfs_pool_wait_moved(call->store, b->lanes, b->nlanes, 0, 0);
    mfs_phase_begin(full ? MFS_PHASE_ROOM : MFS_PHASE_MOVE, b->lanes[0].part, now);
    if (call->backoff < (full ? FULL_MAX_NS : BACKOFF_MAX_NS))
        call->backoff *= 2;
    mfs_pool_wait_moved(call->store, b->lanes, b->nlanes, full ? call->epoch : 0,
                        left < pause ? left : pause);
    mfs_phase_over();
    return true;
}

/* After an attempt: drops the lanes that are done. Returns whether to try the others again. */
static bool again(struct call *call)
{
    struct mfs_batch *b = &call->batch;
    size_t keep = 0;
    bool at_once = true, full = false;

    for (size_t i = 0; i < b->nlanes; i++) {
        struct mfs_lane *lane = &b->lanes[i];

        if (!lane->n)
            continue;
        at_once = at_once && (lane->stale || lane->refused);
        full = full || lane->full;
        lane->fresh = lane->stale || lane->rc;
        b->lanes[keep++] = *lane;
    }
    b->nlanes = keep;
    if (!keep || at_once)
        return keep > 0;
    return wait_turn(call, full);
}

static int first_error(const struct mfs_cmd *cmds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (cmds[i].rc)
            return cmds[i].rc;
    return 0;
}

static void fail_rest(struct mfs_batch *b, int rc)
{
    for (size_t i = 0; i < b->nlanes; i++)
        for (size_t c = 0; c < b->lanes[i].n; c++)
            b->lanes[i].cmds[c]->rc = rc;
}

static void run(struct call *call)
{
    int rc;

    do {
        rc = attempt(call);
        if (rc) {
            fail_rest(&call->batch, rc);
            return;
        }
    } while (again(call));
}

int mfs_exec_once(struct mfs_store *store, struct mfs_cmd *cmds, size_t n)
{
    struct call call = {.store = store, .backoff = BACKOFF_MIN_NS};
    int rc;

    if (!n)
        return 0;
    rc = mfs_batch_init(&call.batch, cmds, n, store->nparts);
    if (!rc)
        run(&call);
    for (size_t i = 0; i < n && rc; i++)
        cmds[i].rc = rc;
    mfs_batch_fini(&call.batch);
    return first_error(cmds, n);
}

int mfs_store_exec(struct mfs_store *store, struct mfs_cmd *cmds, size_t n)
{
    if (!atomic_load_explicit(&store->replicated, memory_order_relaxed))
        return mfs_exec_once(store, cmds, n);
    mfs_exec_confirmed(store, cmds, n);
    return first_error(cmds, n);
}
