/* Posted commands: no caller waits for their replies. Each partition has a lane: a queue of encoded
 * commands and one connection of its own, over which they go in order.
 *
 * The thread that posts a command sends it as well, without waiting, when the connection is there:
 * as a rule that is one system call and no thread is woken. Replies may stay in the socket: a later
 * post reads them once WINDOW of them are due, and so does the background thread, which looks every
 * TICK_NS while anything is unanswered. A caller that waits (for a full queue, or in drain) and a
 * new table hurry the thread, which then polls. It alone opens and closes connections; after a
 * failure it sends again what was not sent whole or is idempotent, and gives up on a partition
 * after the time that exec would have taken. While a partition is fenced its lane only grows. A
 * process that has been replaced by its replica is not waited for: commands that it has not
 * answered are treated as after a failure. */
#include "store/post.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/threads/thread.h"

#define QUEUE_BYTES   (4U << 20) /* a lane holds at most so much, */
#define QUEUE_ENTRIES 4096U      /* and so many commands */
#define WINDOW        32U        /* unanswered commands before a post reads replies itself */
#define TICK_NS       (10 * MFS_MSEC)
#define HURRY_NS      (3 * TICK_NS)    /* from the last sign of a waiting caller */
#define POLL_MS       2                /* longest poll while a caller waits */
#define LOOK_NS       (MFS_SEC / 2000) /* and how old they may be before it does */
#define IDLE_NS       (1 * MFS_SEC)
#define RETRY_NS      (50 * MFS_MSEC)

static_assert(POLL_MS * MFS_MSEC < TICK_NS && LOOK_NS < TICK_NS,
              "shorter than the pause without hurry");

/* post->lock is held. */
static void hurry(struct mfs_post *post)
{
    post->hurried = mfs_clock_mono() + HURRY_NS;
    pthread_cond_signal(&post->work);
}

void mfs_post_hurry(struct mfs_post *post)
{
    pthread_mutex_lock(&post->lock);
    hurry(post);
    pthread_mutex_unlock(&post->lock);
}

/* Waits a little for something to be done. */
static void hurry_and_wait(struct mfs_post *post, int64_t ns)
{
    pthread_mutex_lock(&post->lock);
    hurry(post);
    mfs_cond_wait(&post->done, &post->lock, ns < TICK_NS ? ns : TICK_NS);
    pthread_mutex_unlock(&post->lock);
}

/* Replaces the lane's connection; only the background thread comes here, without the lock. */
static void lane_reconnect(struct mfs_post *post, uint32_t part)
{
    struct mfs_post_lane *lane = &post->lane[part];
    struct mfs_store *store = post->store;
    struct mfs_channel *conn = NULL;
    int64_t now = mfs_clock_mono(), timeout = store->opts.io_timeout + store->opts.table_wait;
    bool give_up;
    int rc;

    if (lane->next_try > now && mfs_pool_gen(store, part) == lane->tried)
        return;
    lane->tried = mfs_pool_gen(store, part);
    rc = mfs_pool_connect(store, part, MFS_STORE_CONNECT_NS, &conn);
    now = mfs_clock_mono();
    if (conn)
        conn->deadline = INT64_MAX; /* nothing here waits */
    pthread_mutex_lock(&lane->lock);
    if (rc && !lane->failing)
        lane->failing = now;
    give_up = lane->failing && (rc || lane->fruitless) && now - lane->failing > timeout;
    mfs_post_rewind(post, part, give_up);
    mfs_channel_close(lane->conn); /* before anything is sent again */
    lane->conn = conn;
    lane->broken = false;
    lane->fruitless = !rc;
    lane->progress = now;
    lane->next_try = now + RETRY_NS;
    mfs_post_service(post, part, false);
    pthread_mutex_unlock(&lane->lock);
}

/* Whether a lane whose connection is being left is to be connected anew; only the background thread
 * comes here, without the lock. */
static bool left(struct mfs_post *post, uint32_t part)
{
    struct mfs_post_lane *lane = &post->lane[part];
    bool leaving, over;

    pthread_mutex_lock(&lane->lock);
    leaving = lane->leaving && !lane->broken && !mfs_post_unanswered(lane);
    over = leaving && lane->held && mfs_clock_mono() - lane->held > post->store->opts.fence_wait;
    if (over)
        mfs_post_rewind(post, part, true);
    pthread_mutex_unlock(&lane->lock);
    if (!leaving || (!over && mfs_fence_closed(post->store, part)))
        return false;
    lane->next_try = 0;
    return true;
}

/* Closes a connection over which nothing has gone for long. The lane's lock is held. */
static void lane_rest(struct mfs_post *post, struct mfs_post_lane *lane)
{
    if (!lane->conn || lane->head || lane->broken || lane->leaving ||
        mfs_clock_mono() - lane->progress < post->store->opts.idle_time)
        return;
    mfs_channel_close(lane->conn);
    lane->conn = NULL;
}

/* Whether the lane is waiting for its socket, and what for; else *connect says if it has something
 * to do but no connection for it. */
static bool lane_busy(struct mfs_post *post, uint32_t part, struct pollfd *fd, bool *connect)
{
    struct mfs_post_lane *lane = &post->lane[part];
    int64_t timeout = post->store->opts.io_timeout;
    uint64_t gen = mfs_pool_gen(post->store, part);
    bool busy, waits;

    pthread_mutex_lock(&lane->lock);
    lane_rest(post, lane);
    busy = lane->head;
    if (lane->conn && lane->conn->gen != gen)
        lane->leaving = true;
    waits = lane->conn && !lane->broken && mfs_post_unanswered(lane);
    if (waits && mfs_pool_replaced(post->store, part, lane->conn))
        mfs_post_broken(post, part, -ECONNRESET);
    else if (waits && mfs_clock_mono() - lane->progress > timeout)
        mfs_post_broken(post, part, -ETIMEDOUT);
    *connect = busy && (!lane->conn || lane->broken);
    busy = busy && !*connect && (waits || !lane->leaving);
    if (busy) {
        fd->fd = lane->conn->ctx->fd;
        fd->events = (short)(POLLIN | (lane->unsent && !lane->leaving ? POLLOUT : 0));
    }
    pthread_mutex_unlock(&lane->lock);
    if (!*connect && !busy)
        *connect = left(post, part);
    return busy;
}

/* One look at all lanes. */
static void look(struct mfs_post *post, bool hurried)
{
    nfds_t n = 0;

    for (uint32_t i = 0; i < post->store->nparts; i++) {
        bool connect;

        if (lane_busy(post, i, &post->fds[n], &connect))
            post->parts[n++] = i;
        if (connect)
            lane_reconnect(post, i);
    }
    if (hurried)
        poll(post->fds, n, POLL_MS);
    for (nfds_t i = 0; i < n; i++) {
        struct mfs_post_lane *lane = &post->lane[post->parts[i]];

        pthread_mutex_lock(&lane->lock);
        mfs_post_service(post, post->parts[i], true);
        pthread_mutex_unlock(&lane->lock);
    }
}

/* Sleeps until it is time to look. Returns false when it is time to end. */
static bool wait_work(struct mfs_post *post, bool *hurried)
{
    bool go_on;

    pthread_mutex_lock(&post->lock);
    if (!post->pending && !post->stop)
        mfs_cond_wait(&post->work, &post->lock, IDLE_NS);
    if (post->pending && !post->stop && mfs_clock_mono() >= post->hurried)
        mfs_cond_wait(&post->work, &post->lock, TICK_NS);
    *hurried = mfs_clock_mono() < post->hurried;
    go_on = !post->stop;
    pthread_mutex_unlock(&post->lock);
    return go_on;
}

static void *post_main(void *arg)
{
    struct mfs_post *post = arg;
    bool hurried;

    while (wait_work(post, &hurried))
        look(post, hurried);
    return NULL;
}

static bool lane_full(const struct mfs_post_lane *lane, size_t len)
{
    return lane->head &&
           (lane->bytes + len > QUEUE_BYTES || lane->posted - lane->answered >= QUEUE_ENTRIES);
}

/* Waits until the lane has room; its lock is held, and given up meanwhile. */
static int wait_room(struct mfs_post *post, struct mfs_post_lane *lane, size_t len,
                     int64_t deadline)
{
    while (lane_full(lane, len)) {
        int64_t left = deadline - mfs_clock_mono();

        if (left <= 0)
            return -ETIMEDOUT;
        pthread_mutex_unlock(&lane->lock);
        hurry_and_wait(post, left);
        pthread_mutex_lock(&lane->lock);
    }
    return 0;
}

/* Announces a command to the background thread, which is started when it is the first. */
static int count_pending(struct mfs_post *post, bool urgent)
{
    int rc = 0;

    pthread_mutex_lock(&post->lock);
    if (!post->started)
        rc = mfs_thread_start(&post->thread, "store-post", post_main, post);
    post->started = !rc;
    if (!rc && (post->pending++ == 0 || urgent))
        pthread_cond_signal(&post->work);
    if (!rc && urgent)
        hurry(post);
    pthread_mutex_unlock(&post->lock);
    return rc;
}

/* Queues the command and sends it if that is possible now. */
static int enqueue(struct mfs_post *post, uint32_t part, uint64_t gen, struct mfs_post_entry *e,
                   int64_t deadline)
{
    struct mfs_post_lane *lane = &post->lane[part];
    int rc;

    pthread_mutex_lock(&lane->lock);
    rc = wait_room(post, lane, e->len, deadline);
    if (rc)
        goto out;
    if (lane->conn && lane->conn->gen != gen)
        lane->leaving = true;
    /* A fence that is lifted again must not let this one overtake those that it refused. */
    if (mfs_post_unanswered(lane) && mfs_clock_mono() - lane->progress > LOOK_NS)
        mfs_post_service(post, part, true);
    rc = count_pending(post, !lane->conn || lane->broken || lane->leaving);
    if (rc)
        goto out;
    mfs_post_append(lane, e);
    mfs_post_service(post, part, lane->posted - lane->answered >= WINDOW);
out:
    pthread_mutex_unlock(&lane->lock);
    return rc;
}

int mfs_store_post(struct mfs_store *store, const struct mfs_cmd *cmd)
{
    int64_t deadline = mfs_clock_mono() + store->opts.io_timeout;
    struct mfs_post_entry *e;
    uint64_t gen;
    int rc;

    if (cmd->part >= store->nparts)
        return -EINVAL;
    rc = mfs_store_fault(store, cmd);
    if (rc)
        return rc;
    e = mfs_post_entry(cmd);
    if (!e)
        return -ENOMEM;
    gen = mfs_pool_count_post(store, cmd->part, e->len);
    rc = enqueue(store->post, cmd->part, gen, e, deadline);
    if (rc)
        free(e);
    return rc;
}

static uint64_t answered(struct mfs_post_lane *lane)
{
    uint64_t n;

    pthread_mutex_lock(&lane->lock);
    n = lane->answered;
    pthread_mutex_unlock(&lane->lock);
    return n;
}

static int drain_lane(struct mfs_post *post, struct mfs_post_lane *lane, int64_t deadline)
{
    uint64_t target;

    pthread_mutex_lock(&lane->lock);
    target = lane->posted;
    pthread_mutex_unlock(&lane->lock);
    while (answered(lane) < target) {
        int64_t left = deadline - mfs_clock_mono();

        if (left <= 0)
            return -ETIMEDOUT;
        hurry_and_wait(post, left);
    }
    return 0;
}

int mfs_store_drain(struct mfs_store *store, int64_t ns)
{
    int64_t deadline = mfs_store_until(store, mfs_clock_mono() + ns, store->opts.table_wait);
    int rc = 0;

    for (uint32_t i = 0; i < store->nparts && !rc; i++)
        rc = drain_lane(store->post, &store->post->lane[i], deadline);
    return rc;
}

uint64_t mfs_store_posts_lost(struct mfs_store *store)
{
    return atomic_load(&store->posts_lost);
}

int mfs_post_create(struct mfs_post **out, struct mfs_store *store)
{
    struct mfs_post *post = calloc(1, sizeof *post);
    uint32_t nparts = store->nparts;

    *out = NULL;
    if (!post)
        return -ENOMEM;
    post->store = store;
    post->lane = calloc(nparts, sizeof *post->lane);
    post->fds = calloc(nparts, sizeof *post->fds);
    post->parts = calloc(nparts, sizeof *post->parts);
    pthread_mutex_init(&post->lock, NULL);
    for (uint32_t i = 0; post->lane && i < nparts; i++)
        pthread_mutex_init(&post->lane[i].lock, NULL);
    if (!post->lane || !post->fds || !post->parts || mfs_cond_init(&post->work) ||
        mfs_cond_init(&post->done)) {
        mfs_post_destroy(post);
        return -ENOMEM;
    }
    *out = post;
    return 0;
}

static void lane_fini(struct mfs_post_lane *lane)
{
    mfs_channel_close(lane->conn);
    while (lane->head) {
        struct mfs_post_entry *next = lane->head->next;

        free(lane->head);
        lane->head = next;
    }
    pthread_mutex_destroy(&lane->lock);
}

void mfs_post_destroy(struct mfs_post *post)
{
    if (!post)
        return;
    pthread_mutex_lock(&post->lock);
    post->stop = true;
    pthread_cond_signal(&post->work);
    pthread_mutex_unlock(&post->lock);
    if (post->started)
        pthread_join(post->thread, NULL);
    if (post->pending)
        mfs_warn("store", "closed with %llu posted commands unanswered",
                 (unsigned long long)post->pending);
    for (uint32_t i = 0; post->lane && i < post->store->nparts; i++)
        lane_fini(&post->lane[i]);
    pthread_cond_destroy(&post->work);
    pthread_cond_destroy(&post->done);
    pthread_mutex_destroy(&post->lock);
    free(post->parts);
    free(post->fds);
    free(post->lane);
    free(post);
}
