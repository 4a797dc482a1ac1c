#include "fuse/awake.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/thread.h"
#include "fuse/stats.h"

#define DRIVER "/sys/devices/system/cpu/cpuidle/current_driver"
#define DEVICE "/dev/cpu_dma_latency"

#define PERIOD (100 * MFS_MSEC)
#define BEGIN  50U /* requests of a period that are worth it … */
#define STAY   20U /* … and still are */

struct mfs_awake {
    struct mfs_fuse_stats *stats;
    unsigned long before;
    int fd; /* holds the wish; -1: none */
    pthread_t thread;
    pthread_mutex_t lock; /* guards stop */
    pthread_cond_t stopped;
    bool stop;
};

static bool polls_instead_of_halting(void)
{
    struct mfs_buf b;
    bool is;

    mfs_buf_init(&b);
    is = mfs_file_read(DRIVER, 4096, &b) == 0 && mfs_buf_len(&b) >= 8 &&
         memcmp(mfs_buf_data(&b), "haltpoll", 8) == 0;
    mfs_buf_fini(&b);
    return is;
}

/* False: it can't be had. */
static bool wish(struct mfs_awake *a)
{
    int32_t latency = 0;

    a->fd = open(DEVICE, O_WRONLY | O_CLOEXEC);
    if (a->fd < 0)
        return false;
    if (write(a->fd, &latency, sizeof latency) == sizeof latency)
        return true;
    close(a->fd);
    a->fd = -1;
    return false;
}

static void unwish(struct mfs_awake *a)
{
    if (a->fd >= 0)
        close(a->fd);
    a->fd = -1;
}

/* False: there is no point in going on. */
static bool look(struct mfs_awake *a)
{
    unsigned long now = mfs_fuse_stats_requests(a->stats), n = now - a->before;

    a->before = now;
    if (a->fd < 0 && n >= BEGIN)
        return wish(a);
    if (n < STAY)
        unwish(a);
    return true;
}

static void *follow(void *arg)
{
    struct mfs_awake *a = arg;

    pthread_mutex_lock(&a->lock);
    while (!a->stop) {
        mfs_cond_wait(&a->stopped, &a->lock, PERIOD);
        if (!a->stop && !look(a)) {
            mfs_info("awake", DEVICE " can't be used: small files are slower than need be");
            break;
        }
    }
    pthread_mutex_unlock(&a->lock);
    unwish(a);
    return NULL;
}

struct mfs_awake *mfs_awake_start(struct mfs_fuse_stats *stats)
{
    struct mfs_awake *a = polls_instead_of_halting() ? calloc(1, sizeof *a) : NULL;

    if (a == NULL)
        return NULL;
    a->stats = stats;
    a->fd = -1;
    pthread_mutex_init(&a->lock, NULL);
    if (mfs_cond_init(&a->stopped) == 0) {
        if (mfs_thread_start(&a->thread, "mfs-awake", follow, a) == 0)
            return a;
        pthread_cond_destroy(&a->stopped);
    }
    pthread_mutex_destroy(&a->lock);
    free(a);
    return NULL;
}

void mfs_awake_stop(struct mfs_awake *a)
{
    if (a == NULL)
        return;
    pthread_mutex_lock(&a->lock);
    a->stop = true;
    pthread_cond_signal(&a->stopped);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    pthread_cond_destroy(&a->stopped);
    pthread_mutex_destroy(&a->lock);
    free(a);
}
