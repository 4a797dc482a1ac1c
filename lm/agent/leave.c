/* The node is to end: a job's time is over, a machine is taken away, an operator stops it. SIGTERM
 * says so. The Local Manager tells cm, which has the partitions move to other nodes and then says
 * `stop`. It ends at once, with what is still here, when its grace is over, at a second SIGTERM,
 * when cm refuses, or when cm has not been there for AWAY_MOST: then there is nobody to wait for.
 */
#include "lm/agent/agent_impl.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "proto/times.h"

#define AREA      "lm"
#define LOOK      (100 * MFS_MSEC)
#define AWAY_MOST (10 * MFS_SEC)
#define TELL_TIME (10 * MFS_SEC)

static struct mfs_conn *joined(const struct mfs_agent *a)
{
    return a->link.uplink && a->link.joined ? mfs_uplink_conn(a->link.uplink) : NULL;
}

/* Partitions that are still here, and their bytes. */
static uint32_t left_behind(const struct mfs_agent *a, uint64_t *bytes)
{
    uint32_t n = 0;

    *bytes = 0;
    for (const struct mfs_agent_part *p = a->parts; p; p = p->next)
        n += !p->lost;
    for (size_t i = 0; i < a->measured.sample.n; i++)
        if (!a->measured.sample.part[i].incoming)
            *bytes += a->measured.sample.part[i].used;
    return n;
}

static void leave_now(struct mfs_agent *a, const char *why)
{
    struct mfs_conn *conn = joined(a);
    struct mfs_msg_leave m = {0};
    uint64_t bytes;
    uint32_t n = left_behind(a, &bytes);

    mfs_timer_cancel(a->leaving.timer);
    a->leaving.timer = NULL;
    if (n)
        mfs_agent_event(a, "left-behind", "%s: %s, %s, have not moved", why,
                        MFS_TEXT_COUNT(n, "partition"), MFS_TEXT_BYTES(bytes));
    if (conn)
        mfs_conn_notify(conn, MFS_MSG_LEAVE, &m);
    mfs_agent_stop(a, NULL, 0);
}

static void told(void *arg, const struct mfs_err *err, const void *reply)
{
    struct mfs_agent *a = arg;

    (void)reply;
    if (!err || a->phase != MFS_AGENT_RUNNING || !a->leaving.timer)
        return;
    if (err->code == -ECONNABORTED)
        return; /* it is told again after the next join */
    leave_now(a, err->msg);
}

void mfs_agent_tell_leave(struct mfs_agent *a)
{
    int64_t left = a->leaving.until - mfs_clock_mono();
    struct mfs_msg_leave m = {.ms = left > 0 ? (uint64_t)(left / MFS_MSEC) : 0};
    struct mfs_conn *conn = joined(a);

    if (a->leaving.timer && conn)
        mfs_conn_request(conn, MFS_MSG_LEAVE, &m, TELL_TIME, told, a);
}

static void look(void *arg)
{
    struct mfs_agent *a = arg;
    int64_t now = mfs_clock_mono();

    if (a->phase != MFS_AGENT_RUNNING) {
        mfs_timer_cancel(a->leaving.timer);
        a->leaving.timer = NULL;
        return;
    }
    if (joined(a))
        a->leaving.contact = now;
    if (now >= a->leaving.until)
        leave_now(a, "the grace is over");
    else if (now - a->leaving.contact >= AWAY_MOST)
        leave_now(a, "cm is not there");
}

void mfs_agent_leave(struct mfs_agent *a)
{
    int64_t now = mfs_clock_mono();

    if (a->phase != MFS_AGENT_RUNNING)
        return;
    if (a->leaving.timer) {
        if (now + a->opts.grace - a->leaving.until >= MFS_TOLD_ONCE)
            leave_now(a, "told to end twice");
        return;
    }
    if (!a->opts.grace || (!joined(a) && !a->parts)) {
        leave_now(a, "told to end");
        return;
    }
    a->leaving.until = now + a->opts.grace;
    a->leaving.contact = now;
    a->leaving.timer = mfs_loop_timer(a->loop, LOOK, LOOK, look, a);
    mfs_info(AREA, "told to end: leaves within %lld s", (long long)(a->opts.grace / MFS_SEC));
    if (!a->leaving.timer)
        leave_now(a, "out of memory");
    mfs_agent_tell_leave(a);
}
