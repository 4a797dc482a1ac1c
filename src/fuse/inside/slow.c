#include "fuse/inside/slow.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/threads/ticker.h"

#define KEPT  128U
#define LINES 10U     /* of the log … */
#define EACH  MFS_SEC /* … so often */

struct mfs_slow {
    pthread_mutex_t lock; /* guards what follows; a leaf */
    struct mfs_trace_line line[KEPT];
    uint64_t next; /* line i is at i % KEPT */
    int64_t since; /* when the first line of these was written */
    uint32_t written;
    uint64_t more;            /* and so many were not */
    struct mfs_ticker ticker; /* tells of these, when no later request does */
};

/* Lock held. How many lines were left out, if their time is over. */
static uint64_t take_more(struct mfs_slow *s, int64_t now)
{
    uint64_t more = 0;

    if (now - s->since >= EACH) {
        more = s->more;
        s->more = 0;
        s->written = 0;
        s->since = now;
    }
    return more;
}

static void tell_more(uint64_t more)
{
    if (more > 0)
        mfs_warn("slow", "%" PRIu64 " more slow requests", more);
}

static void tick(void *arg)
{
    struct mfs_slow *s = arg;
    uint64_t more = 0;
    bool left;

    pthread_mutex_lock(&s->lock);
    if (s->more > 0)
        more = take_more(s, mfs_clock_mono());
    left = s->more > 0;
    pthread_mutex_unlock(&s->lock);
    tell_more(more);
    if (left)
        mfs_ticker_work(&s->ticker);
}

struct mfs_slow *mfs_slow_create(void)
{
    struct mfs_slow *s = calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    pthread_mutex_init(&s->lock, NULL);
    if (mfs_ticker_start_resting(&s->ticker, "slow", EACH, tick, s) == 0)
        return s;
    mfs_slow_destroy(s);
    return NULL;
}

void mfs_slow_destroy(struct mfs_slow *s)
{
    if (s == NULL)
        return;
    mfs_ticker_stop(&s->ticker);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* To wait for a lock is what was asked for: that is no warning. */
static void tell(const struct mfs_trace_line *l)
{
    bool lock = l->phase_ms[MFS_PHASE_LOCK] > l->ms / 2;
    struct mfs_buf b;
    size_t len;

    mfs_buf_init(&b);
    if (mfs_trace_text(l, &b) == 0) {
        len = mfs_buf_len(&b) - 1; /* its newline */
        mfs_log_write(lock ? MFS_LOG_INFO : MFS_LOG_WARN, "slow", "%.*s", (int)len,
                      mfs_buf_data(&b));
    }
    mfs_buf_fini(&b);
}

void mfs_slow_add(struct mfs_slow *s, const struct mfs_trace_line *l)
{
    uint64_t more;
    bool told;

    pthread_mutex_lock(&s->lock);
    s->line[s->next++ % KEPT] = *l;
    more = take_more(s, mfs_clock_mono());
    told = s->written < LINES;
    s->written += told;
    s->more += !told;
    pthread_mutex_unlock(&s->lock);
    tell_more(more);
    if (told)
        tell(l);
    else
        mfs_ticker_work(&s->ticker);
}

void mfs_slow_each(struct mfs_slow *s, void (*each)(void *arg, const struct mfs_trace_line *l),
                   void *arg)
{
    pthread_mutex_lock(&s->lock);
    for (uint64_t i = s->next > KEPT ? s->next - KEPT : 0; i < s->next; i++)
        each(arg, &s->line[i % KEPT]);
    pthread_mutex_unlock(&s->lock);
}
