#include "world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/threads/thread.h"
#include "meta/cache/cache.h"
#include "meta/cache/contents.h"
#include "meta/deferred/deferred.h"
#include "meta/session/opens.h"
#include "meta/session/session.h"
#include "meta/session/unregistered_opens.h"

static const char subscribed[] = "*3\r\n$9\r\nsubscribe\r\n$1\r\nN\r\n:1\r\n";

/* ---- what meta asks of its user ---------------------------------------------------------------
 */

static int reap(void *arg, uint64_t ino, uint64_t data_end)
{
    (void)arg;
    (void)data_end;
    return ino % 2 ? 0 : -EIO;
}

static void changed(void *arg, uint64_t ino, uint64_t version, void (*done)(void *done_arg),
                    void *done_arg)
{
    (void)arg;
    (void)ino;
    (void)version;
    if (done)
        done(done_arg);
}

static bool revoked(void *arg, uint64_t ino, bool name, bool own, void (*done)(void *done_arg),
                    void *done_arg)
{
    (void)arg;
    (void)ino;
    (void)name;
    (void)own;
    (void)done;
    (void)done_arg;
    return true;
}

/* ---- the subscriber's partition ----------------------------------------------------------------
 */

static void subscribe(int fd)
{
    fuzz_listener_answer(fd, subscribed);
}

int fuzz_world_subscriber(struct fuzz_world *w)
{
    int fd = fuzz_listener_accept(&w->listener);

    subscribe(fd);
    return fd;
}

/* ---- life -------------------------------------------------------------------------------------
 */

/* What meta does every so often, it does when a target says so. */
static void stop_clocks(struct mfs_meta *meta)
{
    mfs_ticker_stop(&meta->session_ticker);
    mfs_ticker_stop(&meta->contact_ticker);
    mfs_ticker_stop(&meta->parents_ticker);
    mfs_ticker_stop(&meta->closes_ticker);
    mfs_ticker_stop(&meta->chores_ticker);
    meta->opts.session_ttl = -1; /* nobody is waited for */
    meta->refreshed_at = INT64_MAX / 2;
    meta->limits.others_wait = -1;
    meta->limits.intent_seconds = meta->limits.holder_seconds = 0;
}

void fuzz_world_init(struct fuzz_world *w, int *fd)
{
    struct mfs_meta_opts opts = {.reap = reap, .changed = changed, .revoked = revoked};

    fuzz_quiet();
    fuzz_listener_open(&w->listener);
    fuzz_partitions_init(&w->parts, w->listener.path, FUZZ_WAIT);
    for (uint32_t i = 0; i < FUZZ_PARTITIONS; i++) /* the session begins in one of them */
        FUZZ_CHECK(fuzz_partition_say(&w->parts, i, "+OK\r\n", 5));
    fuzz_listener_expect(&w->listener, subscribe);
    FUZZ_CHECK(!mfs_meta_create(&w->meta, w->parts.store, &opts));
    *fd = fuzz_listener_accepted(&w->listener);
    stop_clocks(w->meta);
}

/* A subscriber asks when it has heard nothing for some seconds. */
static void *keep_alive(void *arg)
{
    static const char pong[] = "*2\r\n$4\r\npong\r\n$0\r\n\r\n";
    int fd = *(int *)arg;
    char asked[256];

    free(arg);
    while (TEMP_FAILURE_RETRY(recv(fd, asked, sizeof asked, 0)) > 0 &&
           send(fd, pong, sizeof pong - 1, MSG_NOSIGNAL) > 0)
        ;
    close(fd);
    return NULL;
}

void fuzz_world_seclude(struct fuzz_world *w, int fd)
{
    int *arg = malloc(sizeof *arg);
    pthread_t thread;

    FUZZ_CHECK(arg);
    *arg = fd;
    FUZZ_CHECK(!mfs_thread_start(&thread, "fuzz-alive", keep_alive, arg));
    pthread_detach(thread);
    fuzz_listener_close(&w->listener);
}

void fuzz_world_renew(struct fuzz_world *w)
{
    struct mfs_meta *meta = w->meta;

    mfs_unregistered_destroy(meta->unregistered);
    mfs_dircache_destroy(meta->dirs);
    mfs_filecache_destroy(meta->files);
    mfs_contents_destroy(meta->contents);
    mfs_shards_destroy(meta->shards);
    mfs_parents_destroy(meta->parents);
    mfs_opens_destroy(meta->opens);
    meta->dirs = mfs_dircache_create();
    meta->files = mfs_filecache_create(0);
    meta->contents = mfs_contents_create(0);
    meta->shards = mfs_shards_create(0);
    meta->parents = mfs_parents_create();
    meta->opens = mfs_opens_create();
    FUZZ_CHECK(meta->dirs && meta->files && meta->contents && meta->shards && meta->parents &&
               meta->opens && !mfs_unregistered_create(&meta->unregistered, meta));
    memset(meta->hints, 0, sizeof meta->hints);
    meta->room.at = 0;
    fuzz_partitions_renew(&w->parts);
}

bool fuzz_world_posted(struct fuzz_world *w)
{
    static uint64_t counted, asked;
    struct mfs_store_stats stats;

    mfs_store_stats(w->parts.store, &stats);
    if (stats.commands != counted)
        asked = stats.commands - counted;
    counted = stats.commands;
    if (!asked)
        return true;
    asked--;
    return false;
}
