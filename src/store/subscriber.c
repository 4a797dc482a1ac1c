#include "store/subscriber.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/threads/thread.h"
#include "store/internal.h"

#define RETRY_NS    (1 * MFS_MSEC)   /* between attempts to connect, at first … */
#define RETRY_MAX   (500 * MFS_MSEC) /* … and at most; a new address is tried at once */
#define PING_NS     (3 * MFS_SEC)    /* a silent connection is asked … */
#define SILENCE_NS  (8 * MFS_SEC)    /* … and given up after this long */
#define MESSAGE_MAX (1U << 20)

static_assert(RETRY_NS < RETRY_MAX && 2 * PING_NS < SILENCE_NS, "more than one ping is unanswered");

struct mfs_subscriber {
    struct mfs_store *store;
    struct mfs_subscriber_opts opts;
    char channel[MFS_SUBSCRIBER_CHANNEL_MAX];
    struct mfs_store_watch watch;
    int wake; /* an eventfd, the thread's poll: the partition may have moved, or it is to stop */
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows; a leaf */
    pthread_cond_t changed;
    bool stop, up;  /* up: it has listened at least once */
    bool listening; /* now; the thread's own */
};

static bool stopped(struct mfs_subscriber *l)
{
    bool stop;

    pthread_mutex_lock(&l->lock);
    stop = l->stop;
    pthread_mutex_unlock(&l->lock);
    return stop;
}

static void say_up(struct mfs_subscriber *l)
{
    l->opts.up(l->opts.arg);
    l->listening = true;
    pthread_mutex_lock(&l->lock);
    l->up = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

static bool is_text(const redisReply *r, const char *text)
{
    return r->type == REDIS_REPLY_STRING && !strcmp(r->str, text);
}

/* 0, or -EPROTO for what a subscriber is never sent. */
static int take(struct mfs_subscriber *l, const redisReply *r)
{
    if (r->type != REDIS_REPLY_ARRAY || r->elements < 2)
        return -EPROTO;
    if (is_text(r->element[0], "subscribe"))
        say_up(l);
    else if (is_text(r->element[0], "message") && r->elements == 3 &&
             r->element[2]->type == REDIS_REPLY_STRING)
        l->opts.message(l->opts.arg, r->element[2]->str, r->element[2]->len);
    else if (!is_text(r->element[0], "pong"))
        return -EPROTO;
    return 0;
}

/* Reads what has come and hands on every whole reply. What is not whole yet is limited like what
 * is: the length that it announces may be any. */
static int read_replies(struct mfs_subscriber *l, struct mfs_channel *conn)
{
    const redisReader *reader = conn->ctx->reader;

    if (redisBufferRead(conn->ctx) != REDIS_OK)
        return -ECONNRESET;
    for (;;) {
        void *reply = NULL;
        int rc;

        conn->budget = MESSAGE_MAX;
        if (redisGetReplyFromReader(conn->ctx, &reply) != REDIS_OK)
            return -EPROTO;
        if (!reply)
            return reader->len - reader->pos > MESSAGE_MAX ? -EPROTO : 0;
        rc = take(l, reply);
        freeReplyObject(reply);
        if (rc)
            return rc;
    }
}

static int send_command(struct mfs_channel *conn, uint32_t argc, const struct mfs_arg *argv)
{
    struct mfs_cmd cmd = {.argc = argc, .argv = argv}, *cmds = &cmd;
    int rc = mfs_channel_start(conn, &cmds, 1, mfs_clock_mono() + MFS_SEC);

    if (!rc)
        rc = mfs_channel_send(conn, true);
    return rc < 0 ? rc : 0;
}

/* Any thread, also with the store's lock held. */
static void wake(void *arg)
{
    struct mfs_subscriber *l = arg;

    eventfd_write(l->wake, 1); /* fails only when it is not read: then it is readable */
}

/* Waits until something has come, or has changed, or for so long. True: something has come. */
static bool wait_for_more(struct mfs_subscriber *l, const struct mfs_channel *conn, int64_t ns)
{
    struct pollfd fd[] = {{.fd = conn->ctx->fd, .events = POLLIN},
                          {.fd = l->wake, .events = POLLIN}};
    eventfd_t ignored;

    if (poll(fd, 2, (int)(ns / MFS_MSEC) + 1) <= 0)
        return false;
    if (fd[1].revents)
        eventfd_read(l->wake, &ignored); /* does not block */
    return fd[0].revents != 0;
}

/* Listens until the connection breaks or falls silent or the partition has moved; 0 when it is time
 * to stop. */
static int listen_on(struct mfs_subscriber *l, struct mfs_channel *conn)
{
    const struct mfs_arg subscribe[] = {{"SUBSCRIBE", 9}, {l->channel, l->opts.channel_len}};
    const struct mfs_arg ping[] = {{"PING", 4}};
    int rc = send_command(conn, 2, subscribe);
    int64_t heard = mfs_clock_mono();
    bool asked = false;

    while (!rc && !stopped(l)) {
        int64_t silent = mfs_clock_mono() - heard;

        if (silent > SILENCE_NS)
            return -ETIMEDOUT;
        if (mfs_pool_gen(l->store, l->opts.part) != conn->gen)
            return -ESTALE;
        if (silent > PING_NS && !asked) {
            rc = send_command(conn, 1, ping);
            asked = true;
        }
        if (!rc && wait_for_more(l, conn, (asked ? SILENCE_NS : PING_NS) - silent)) {
            rc = read_replies(l, conn);
            heard = mfs_clock_mono();
            asked = false;
        }
    }
    return rc;
}

/* Waits at most ns, or until the partition is elsewhere than at the address of that generation. */
static void pause_for(struct mfs_subscriber *l, uint64_t gen, int64_t ns)
{
    struct mfs_lane lane = {.part = l->opts.part, .gen = gen};

    mfs_pool_wait_moved(l->store, &lane, 1, 0, ns);
}

/* Connects and listens. Returns whether it came to listening. */
static bool try_to_listen(struct mfs_subscriber *l)
{
    struct mfs_channel *conn;
    int rc;

    l->listening = false;
    if (mfs_pool_connect(l->store, l->opts.part, MFS_STORE_CONNECT_NS, &conn))
        return false;
    rc = listen_on(l, conn);
    mfs_channel_close(conn);
    if (rc && l->listening)
        mfs_info("store", "partition %u: no messages for now: %s", l->opts.part, strerror(-rc));
    return l->listening;
}

static void *run(void *arg)
{
    struct mfs_subscriber *l = arg;
    int64_t retry = RETRY_NS;

    while (!stopped(l)) {
        uint64_t gen = mfs_pool_gen(l->store, l->opts.part);

        if (try_to_listen(l))
            retry = RETRY_NS;
        if (stopped(l))
            break;
        pause_for(l, gen, retry);
        retry = 2 * retry < RETRY_MAX ? 2 * retry : RETRY_MAX;
    }
    return NULL;
}

static int wait_up(struct mfs_subscriber *l)
{
    int64_t deadline = mfs_clock_mono() + l->store->opts.io_timeout;
    int rc = 0;

    pthread_mutex_lock(&l->lock);
    while (!l->up && !rc)
        rc = mfs_cond_wait(&l->changed, &l->lock, deadline - mfs_clock_mono());
    pthread_mutex_unlock(&l->lock);
    return rc;
}

/* No thread runs. */
static void free_subscriber(struct mfs_subscriber *l)
{
    mfs_store_unwatch(l->store, &l->watch);
    close(l->wake);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

int mfs_subscriber_create(struct mfs_subscriber **out, struct mfs_store *store,
                          const struct mfs_subscriber_opts *opts)
{
    struct mfs_subscriber *l = calloc(1, sizeof *l);
    int rc;

    *out = NULL;
    if (!l)
        return -ENOMEM;
    l->store = store;
    l->opts = *opts;
    memcpy(l->channel, opts->channel, opts->channel_len);
    pthread_mutex_init(&l->lock, NULL);
    l->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    rc = l->wake < 0 ? -errno : mfs_cond_init(&l->changed);
    if (rc) {
        if (l->wake >= 0)
            close(l->wake);
        pthread_mutex_destroy(&l->lock);
        free(l);
        return rc;
    }
    l->watch = (struct mfs_store_watch){.fn = wake, .arg = l};
    mfs_store_watch(store, &l->watch); /* before the thread can have looked at the table */
    rc = mfs_thread_start(&l->thread, "store-listen", run, l);
    if (rc) {
        free_subscriber(l);
        return rc;
    }
    rc = wait_up(l);
    if (rc)
        mfs_subscriber_destroy(l);
    else
        *out = l;
    return rc;
}

void mfs_subscriber_destroy(struct mfs_subscriber *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    wake(l);
    pthread_join(l->thread, NULL);
    free_subscriber(l);
}
