/* Partitions that are being moved: the process of such a partition refuses every command of clients
 * (a "fence") until the table says where the partition is now, or until the move is given up.
 *
 *   serving ── a command is refused ──> fenced ──┬── a table with another address ──> serving
 *      ^                                         └── PING is answered ──────────────────┘
 *
 * A fence is not announced, so it costs no round trip and no client can hold it up. A caller that
 * has a command for the partition waits here instead of sending it. One of the waiting callers
 * sends PING to the process every now and then.
 *
 * Invariant: at most one caller probes a partition at a time (mfs_part.probing). */
#include "store/internal.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/phases.h"
#include "base/threads/thread.h"
#include "store/args.h"

#define PROBE_MIN_NS     (1 * MFS_MSEC) /* between questions, at first, … */
#define PROBE_MAX_NS     (50 * MFS_MSEC)
#define PROBE_SHARE      4 /* … then so much of the time since the fence came down */
#define PROBE_TIMEOUT_NS (1 * MFS_SEC)

static_assert(PROBE_MIN_NS < PROBE_MAX_NS && PROBE_MAX_NS < PROBE_TIMEOUT_NS,
              "pauses grow, and a question may take longer than a pause");

bool mfs_fence_refuses(const struct mfs_cmd *cmd, const struct mfs_err *err)
{
    return cmd->rc == -EACCES && strncmp(err->msg, "NOPERM ", 7) == 0;
}

/* The ACL names the command that the module has put in its place. */
bool mfs_fence_is_lapse(const struct mfs_err *err)
{
    return strstr(err->msg, "mfs_term_over") != NULL;
}

/* store->lock is held. */
static void next_probe(struct mfs_part *p, int64_t now)
{
    int64_t pause = (now - p->fenced_since) / PROBE_SHARE;

    pause = pause < PROBE_MIN_NS ? PROBE_MIN_NS : pause > PROBE_MAX_NS ? PROBE_MAX_NS : pause;
    p->probe_at = now + pause;
}

void mfs_fence_seen(struct mfs_store *store, uint32_t part, uint64_t gen, bool lapsed)
{
    struct mfs_part *p = &store->part[part];

    pthread_mutex_lock(&store->lock);
    if (p->gen == gen)
        p->lapsed = lapsed;
    if (p->gen == gen && !p->fenced) {
        p->fenced = true;
        p->fenced_since = mfs_clock_mono();
        next_probe(p, p->fenced_since);
    }
    pthread_mutex_unlock(&store->lock);
}

void mfs_fence_lift(struct mfs_store *store, uint32_t part)
{
    store->part[part].fenced = false;
    pthread_cond_broadcast(&store->changed);
    mfs_post_hurry(store->post);
}

/* Whether the process executes commands. */
static bool ask(struct mfs_store *store, uint32_t part, uint64_t *gen)
{
    struct mfs_channel *conn;
    struct mfs_args args;
    struct mfs_cmd cmd;
    struct mfs_err err;
    int rc;

    if (mfs_pool_connect(store, part, PROBE_TIMEOUT_NS, &conn))
        return false;
    *gen = conn->gen;
    mfs_args_init(&args, "PING");
    cmd = mfs_args_cmd(&args, part);
    rc = mfs_channel_call(conn, &cmd, PROBE_TIMEOUT_NS, &err);
    if (!rc)
        rc = cmd.rc;
    mfs_cmds_fini(&cmd, 1);
    mfs_channel_close(conn);
    return !rc;
}

/* Asks the process whether there still is a fence; the lock is held, and given up meanwhile. */
static void probe(struct mfs_store *store, uint32_t part)
{
    struct mfs_part *p = &store->part[part];
    uint64_t gen = p->gen;
    bool serves;

    p->probing = true;
    pthread_mutex_unlock(&store->lock);
    serves = ask(store, part, &gen);
    pthread_mutex_lock(&store->lock);
    p->probing = false;
    next_probe(p, mfs_clock_mono());
    if (p->fenced && serves && p->gen == gen)
        mfs_fence_lift(store, part);
    else
        pthread_cond_broadcast(&store->changed); /* another one may have to ask next time */
}

static struct mfs_part *first_fenced(struct mfs_store *store, const struct mfs_lane *lanes,
                                     size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (store->part[lanes[i].part].fenced)
            return &store->part[lanes[i].part];
    return NULL;
}

/* Since `start`, as mfs_fence_wait. */
static int wait_unfenced(struct mfs_store *store, const struct mfs_lane *lanes, size_t n,
                         int64_t start)
{
    struct mfs_part *p;
    int64_t now, until;

    mfs_store_asks(store, start);
    while ((p = first_fenced(store, lanes, n))) {
        uint32_t part = (uint32_t)(p - store->part);

        now = mfs_clock_mono();
        until = start + (p->lapsed && store->opts.io_timeout < store->opts.fence_wait
                             ? store->opts.io_timeout
                             : store->opts.fence_wait);
        until = mfs_store_until(store, until, store->opts.io_timeout);
        if (now >= until) {
            mfs_error("store", "partition %u: refused commands for %lld s, and no word of a move",
                      part, (long long)((now - p->fenced_since) / MFS_SEC));
            return -EIO;
        }
        if (!p->probing && now >= p->probe_at) {
            probe(store, part);
            continue;
        }
        if (!p->probing && p->probe_at < until)
            until = p->probe_at;
        mfs_cond_wait(&store->changed, &store->lock, until - now);
    }
    mfs_store_heard(store); /* of a new table, or of its replica's consent */
    return 0;
}

int mfs_fence_wait(struct mfs_store *store, const struct mfs_lane *lanes, size_t n, int64_t *now)
{
    int64_t start;
    int rc;

    if (!first_fenced(store, lanes, n))
        return 0;
    start = mfs_clock_mono();
    mfs_phase_begin(MFS_PHASE_MOVE, (uint32_t)(first_fenced(store, lanes, n) - store->part), start);
    rc = wait_unfenced(store, lanes, n, start);
    *now = mfs_clock_mono();
    mfs_phase_end(0, *now);
    mfs_metric_observe(store->figures.set, MFS_STORE_FENCE_TIME, 0, *now - start);
    return rc;
}

bool mfs_fence_closed(struct mfs_store *store, uint32_t part)
{
    struct mfs_part *p = &store->part[part];
    bool closed;

    pthread_mutex_lock(&store->lock);
    if (p->fenced && !p->probing && mfs_clock_mono() >= p->probe_at)
        probe(store, part);
    closed = p->fenced;
    pthread_mutex_unlock(&store->lock);
    return closed;
}
