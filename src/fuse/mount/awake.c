#include "fuse/mount/awake.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/threads/ticker.h"
#include "fuse/mount/request_metrics.h"

#define DRIVER "/sys/devices/system/cpu/cpuidle/current_driver"
#define DEVICE "/dev/cpu_dma_latency"

#define PERIOD (100 * MFS_MSEC)
#define BEGIN  50U /* requests of a period that are worth it … */
#define STAY   20U /* … and still are */

struct mfs_awake {
    struct mfs_ticker ticker; /* its thread's is what follows */
    const struct mfs_metric_set *requests;
    uint64_t before;
    int fd; /* holds the wish; -1: none */
    bool refused;
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

static void unwish(struct mfs_awake *a)
{
    if (a->fd >= 0)
        close(a->fd);
    a->fd = -1;
}

static void wish(struct mfs_awake *a)
{
    int32_t latency = 0;

    a->fd = open(DEVICE, O_WRONLY | O_CLOEXEC);
    if (a->fd >= 0 && write(a->fd, &latency, sizeof latency) == sizeof latency)
        return;
    unwish(a);
    a->refused = true;
    mfs_info("awake", DEVICE " can't be used: small files are slower than need be");
}

static void look(void *arg)
{
    struct mfs_awake *a = arg;
    uint64_t now = mfs_metric_sum(a->requests, MFS_FUSE_DURATION), n = now - a->before;

    a->before = now;
    if (a->fd < 0 && n >= BEGIN && !a->refused)
        wish(a);
    else if (n < STAY)
        unwish(a);
    if (n > 0 || a->fd >= 0)
        mfs_ticker_work(&a->ticker);
}

void mfs_awake_request(struct mfs_awake *a)
{
    if (a != NULL)
        mfs_ticker_work(&a->ticker);
}

struct mfs_awake *mfs_awake_start(const struct mfs_metric_set *requests)
{
    struct mfs_awake *a = polls_instead_of_halting() ? calloc(1, sizeof *a) : NULL;

    if (a == NULL)
        return NULL;
    a->requests = requests;
    a->fd = -1;
    if (mfs_ticker_start_resting(&a->ticker, "mfs-awake", PERIOD, look, a) == 0)
        return a;
    free(a);
    return NULL;
}

void mfs_awake_stop(struct mfs_awake *a)
{
    if (a == NULL)
        return;
    mfs_ticker_stop(&a->ticker);
    unwish(a);
    free(a);
}
