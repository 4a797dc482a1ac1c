/* The connections: idle ones per partition, and which partitions are known to be unreachable. */
#include "store/internal.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/phases.h"
#include "base/threads/thread.h"
#include "base/waits.h"

#define SILENT_NS                                                                                  \
    (100 * MFS_MSEC) /* given to a process that has just not answered another caller */

/* To connect to a process whose replica takes over within a few seconds when it hangs. */
#define REPLICA_NS (1 * MFS_SEC)

#define LEAST_FOR (10 * MFS_SEC) /* the shortest round trip is that of the last so many, twice */

static_assert(SILENT_NS < REPLICA_NS && REPLICA_NS < MFS_STORE_CONNECT_NS,
              "the less there is to hope for, the shorter a connection is waited for");

/* Waits for `changed`; store->lock is held. */
static int wait_until(struct mfs_store *store, int64_t deadline)
{
    int64_t left = deadline - mfs_clock_mono();

    return left <= 0 ? -ETIMEDOUT : mfs_cond_wait(&store->changed, &store->lock, left);
}

static void count_call(struct mfs_store *store, const struct mfs_lane *lanes, size_t n)
{
    size_t commands = 0;

    for (size_t i = 0; i < n; i++)
        commands += lanes[i].n;
    mfs_metric_add(store->figures.set, MFS_STORE_COMMANDS, 0, commands);
    mfs_metric_add(store->figures.set, MFS_STORE_ROUND_TRIPS, 0, 1);
}

int mfs_pool_enter(struct mfs_store *store, struct mfs_lane *lanes, size_t n, uint64_t *epoch,
                   int64_t *now)
{
    int rc;

    *now = mfs_clock_mono(); /* not with the lock held, if it need not be */
    pthread_mutex_lock(&store->lock);
    rc = mfs_fence_wait(store, lanes, n, now);
    for (size_t i = 0; i < n && !rc; i++) {
        struct mfs_part *part = &store->part[lanes[i].part];

        lanes[i].conn = lanes[i].fresh ? NULL : mfs_idle_pop(store, part);
        lanes[i].gen = part->gen;
        lanes[i].series = part->series;
        if (part->seen.waiting++ == 0)
            part->seen.since = *now;
    }
    *epoch = store->table->epoch;
    pthread_mutex_unlock(&store->lock);
    if (!rc)
        count_call(store, lanes, n);
    return rc;
}

void mfs_pool_full(struct mfs_store *store, uint32_t part)
{
    mfs_phase_full(part);
    pthread_mutex_lock(&store->lock);
    store->part[part].seen.full_at = mfs_clock_mono();
    pthread_mutex_unlock(&store->lock);
}

uint64_t mfs_pool_count_post(struct mfs_store *store, uint32_t part, size_t bytes)
{
    uint64_t gen;
    unsigned series;

    pthread_mutex_lock(&store->lock);
    gen = store->part[part].gen;
    series = store->part[part].series;
    pthread_mutex_unlock(&store->lock);
    mfs_metric_add(store->figures.set, MFS_STORE_COMMANDS, 0, 1);
    mfs_metric_add(store->figures.set, MFS_STORE_SENT, series, bytes);
    return gen;
}

void mfs_pool_close_all(struct mfs_channel *conn)
{
    while (conn) {
        struct mfs_channel *next = conn->next;

        mfs_channel_close(conn);
        conn = next;
    }
}

/* Whether a connection may be used again. When the partition is down, only a new one can tell that
 * it is back. */
static bool worth_keeping(const struct mfs_store *store, const struct mfs_lane *lane)
{
    const struct mfs_part *part = &store->part[lane->part];

    return !lane->rc && !part->down_since && lane->conn->gen == part->gen &&
           part->nidle < store->opts.idle_per_part;
}

void mfs_pool_hold(struct mfs_store *store, struct mfs_lane *lane)
{
    struct mfs_part *part = &store->part[lane->part];
    struct mfs_channel *conn = lane->conn;

    if (!atomic_load_explicit(&store->replicated, memory_order_relaxed))
        return;
    pthread_mutex_lock(&store->lock);
    conn->next = part->busy;
    if (conn->next)
        conn->next->held = &conn->next;
    conn->held = &part->busy;
    part->busy = conn;
    if (conn->era != store->table->part[lane->part].era)
        shutdown(conn->ctx->fd, SHUT_RDWR);
    pthread_mutex_unlock(&store->lock);
}

/* store->lock is held. */
static void let_go(struct mfs_channel *conn)
{
    if (!conn->held)
        return;
    *conn->held = conn->next;
    if (conn->next)
        conn->next->held = conn->held;
    conn->held = NULL;
    conn->next = NULL;
}

void mfs_pool_break(struct mfs_part *part)
{
    for (struct mfs_channel *c = part->busy; c; c = c->next)
        shutdown(c->ctx->fd, SHUT_RDWR);
}

/* Of an attempt that has ended. */
static void count_traffic(struct mfs_store *store, struct mfs_lane *lane)
{
    struct mfs_channel *conn = lane->conn;

    mfs_metric_add(store->figures.set, MFS_STORE_SENT, lane->series, conn->sent);
    mfs_metric_add(store->figures.set, MFS_STORE_RECEIVED, lane->series, conn->received);
    conn->sent = conn->received = 0;
    mfs_metric_observe(store->figures.set, MFS_STORE_PARTITION_TIME, lane->series, lane->took);
}

/* store->lock is held. */
static void note_trip(struct mfs_part *part, const struct mfs_lane *lane, int64_t now)
{
    part->seen.waiting--;
    part->seen.since = now;
    if (lane->rc || !lane->conn)
        return;
    part->seen.trips++;
    part->seen.ns += lane->took;
    if (now - part->seen.least_since > LEAST_FOR) {
        part->seen.least_before = part->seen.least;
        part->seen.least = lane->took;
        part->seen.least_since = now;
    } else if (lane->took < part->seen.least) {
        part->seen.least = lane->took;
    }
}

void mfs_pool_leave(struct mfs_store *store, struct mfs_lane *lane)
{
    struct mfs_part *part = &store->part[lane->part];
    struct mfs_channel *conn = lane->conn, *drop = NULL;
    int64_t now = mfs_clock_mono();

    lane->took = now - lane->began;
    if (conn)
        count_traffic(store, lane);
    pthread_mutex_lock(&store->lock);
    note_trip(part, lane, now);
    if (conn)
        let_go(conn);
    if (conn && worth_keeping(store, lane)) {
        drop = mfs_idle_push(store, part, conn, now);
    } else if (conn) {
        drop = conn;
        drop->next = NULL;
        drop->given_up = lane->rc != 0;
    }
    pthread_mutex_unlock(&store->lock);
    lane->conn = NULL;
    mfs_pool_close_all(drop);
}

void mfs_pool_down(struct mfs_store *store, uint32_t part, uint64_t gen, const char *why)
{
    struct mfs_part *p = &store->part[part];
    struct mfs_channel *drop = NULL;
    bool news = false;

    pthread_mutex_lock(&store->lock);
    if (p->gen == gen) {
        news = !p->down_since;
        if (news)
            p->down_since = mfs_clock_mono();
        drop = mfs_idle_take(store, p);
    }
    pthread_mutex_unlock(&store->lock);
    if (news)
        mfs_warn("store", "partition %u is unreachable: %s", part, why);
    mfs_pool_close_all(drop);
}

static void mark_up(struct mfs_store *store, uint32_t part, uint64_t gen)
{
    struct mfs_part *p = &store->part[part];
    bool news;

    pthread_mutex_lock(&store->lock);
    news = p->gen == gen && p->down_since;
    if (p->gen == gen) /* each of them: another thread whose attempt failed may be half-way */
        p->down_since = p->gone_since = p->silent_until = 0;
    pthread_mutex_unlock(&store->lock);
    if (news)
        mfs_info("store", "partition %u is reachable again", part);
}

/* Is its socket on this machine? Also with nodes that share it, which have loopback addresses; any
 * other address may be of another network namespace, whose limits are to be felt. */
static bool is_near(const struct mfs_store *store, const struct mfs_partition *p)
{
    if (p->node == store->opts.node || !p->port)
        return true;
    return strncmp(p->host, "127.", 4) == 0 && p->unix_path[0] && access(p->unix_path, W_OK) == 0;
}

static void note_failure(struct mfs_store *store, uint32_t part, uint64_t gen, int rc, int64_t ns)
{
    struct mfs_part *p = &store->part[part];
    int64_t now = mfs_clock_mono();

    pthread_mutex_lock(&store->lock);
    if (p->gen == gen && rc == -ETIMEDOUT && p->silent_until < now + ns)
        p->silent_until = now + ns;
    if (p->gen == gen && rc == -ECONNREFUSED && !p->gone_since)
        p->gone_since = now;
    pthread_mutex_unlock(&store->lock);
}

bool mfs_store_gone(struct mfs_store *store, uint32_t part, int64_t ns)
{
    int64_t since;

    pthread_mutex_lock(&store->lock);
    since = store->part[part].gone_since;
    pthread_mutex_unlock(&store->lock);
    return since && mfs_clock_mono() - since >= ns;
}

/* Of the idle connections, as there are no descriptors left; false: there is none. */
static bool give_up_one(struct mfs_store *store)
{
    struct mfs_channel *conn;

    pthread_mutex_lock(&store->lock);
    conn = mfs_idle_give_up(store);
    pthread_mutex_unlock(&store->lock);
    mfs_pool_close_all(conn);
    return conn != NULL;
}

/* Notes it of the address of that generation. */
static int failed(struct mfs_store *store, uint32_t part, uint64_t gen, int64_t timeout_ns, int rc,
                  const struct mfs_err *err)
{
    note_failure(store, part, gen, rc, timeout_ns);
    mfs_pool_down(store, part, gen, err->msg);
    return rc;
}

int mfs_pool_begin(struct mfs_store *store, uint32_t part, int64_t timeout_ns,
                   struct mfs_channel **conn)
{
    struct mfs_partition p;
    struct mfs_endpoint ep;
    struct mfs_err err;
    uint64_t gen;
    bool silent;
    int rc;

    *conn = NULL;
    pthread_mutex_lock(&store->lock);
    p = store->table->part[part];
    gen = store->part[part].gen;
    if (p.replica && timeout_ns > REPLICA_NS)
        timeout_ns = REPLICA_NS;
    silent = mfs_clock_mono() < store->part[part].silent_until;
    pthread_mutex_unlock(&store->lock);
    if (silent && timeout_ns > SILENT_NS)
        timeout_ns = SILENT_NS;
    ep = (struct mfs_endpoint){
        .host = p.host, .port = p.port, .user = MFS_REDIS_USER, .password = p.password};
    if (is_near(store, &p))
        ep.unix_path = p.unix_path;
    mfs_waits_begin();
    rc = mfs_channel_begin(conn, &ep, timeout_ns, store->opts.io_timeout, &err);
    if (rc == -EMFILE && give_up_one(store))
        rc = mfs_channel_begin(conn, &ep, timeout_ns, store->opts.io_timeout, &err);
    mfs_waits_end();
    if (rc == -EMFILE) {
        mfs_warn("store", "no connection to partition %u: %s", part, err.msg);
        return -EIO; /* which says nothing of the partition */
    }
    if (rc)
        return failed(store, part, gen, timeout_ns, rc, &err);
    (*conn)->gen = gen;
    (*conn)->era = p.era;
    return 0;
}

int mfs_pool_ready(struct mfs_store *store, uint32_t part, struct mfs_channel **conn)
{
    uint64_t gen = (*conn)->gen;
    int64_t timeout_ns = (*conn)->connect_ns;
    struct mfs_err err;
    int rc;

    mfs_waits_begin();
    rc = mfs_channel_ready(*conn, &err);
    mfs_waits_end();
    if (!rc) {
        mark_up(store, part, gen);
        return 0;
    }
    mfs_channel_close(*conn);
    *conn = NULL;
    return failed(store, part, gen, timeout_ns, rc, &err);
}

int mfs_pool_connect(struct mfs_store *store, uint32_t part, int64_t timeout_ns,
                     struct mfs_channel **conn)
{
    int rc = mfs_pool_begin(store, part, timeout_ns, conn);

    return rc ? rc : mfs_pool_ready(store, part, conn);
}

uint64_t mfs_pool_gen(struct mfs_store *store, uint32_t part)
{
    uint64_t gen;

    pthread_mutex_lock(&store->lock);
    gen = store->part[part].gen;
    pthread_mutex_unlock(&store->lock);
    return gen;
}

bool mfs_pool_replaced(struct mfs_store *store, uint32_t part, const struct mfs_channel *conn)
{
    bool replaced;

    pthread_mutex_lock(&store->lock);
    replaced = conn->era != store->table->part[part].era;
    pthread_mutex_unlock(&store->lock);
    return replaced;
}

static bool moved(const struct mfs_store *store, const struct mfs_lane *lanes, size_t n,
                  uint64_t epoch)
{
    for (size_t i = 0; i < n; i++)
        if (store->part[lanes[i].part].gen != lanes[i].gen)
            return true;
    return epoch && store->table->epoch != epoch;
}

bool mfs_pool_wait_moved(struct mfs_store *store, const struct mfs_lane *lanes, size_t n,
                         uint64_t epoch, int64_t ns)
{
    int64_t deadline = mfs_clock_mono() + ns;
    bool is;

    pthread_mutex_lock(&store->lock);
    while (!(is = moved(store, lanes, n, epoch)) && !wait_until(store, deadline))
        ;
    pthread_mutex_unlock(&store->lock);
    return is;
}

int64_t mfs_pool_give_up(struct mfs_store *store, const struct mfs_lane *lanes, size_t n)
{
    int64_t now = mfs_clock_mono(), since = 0;

    pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < n; i++) {
        int64_t down = store->part[lanes[i].part].down_since;

        if (!down)
            down = now;
        since = down > since ? down : since;
    }
    pthread_mutex_unlock(&store->lock);
    return since + store->opts.table_wait;
}
