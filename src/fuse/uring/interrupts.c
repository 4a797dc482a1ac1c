#include "fuse/uring/interrupts.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"

#define HELD   MFS_SEC         /* for so long a request may come after its interrupt */
#define MOMENT (50 * MFS_MSEC) /* until a signal has been taken by another thread */

struct interrupt {
    struct interrupt *next;
    uint64_t unique;
    uint32_t thread; /* 0: it was sent */
    int64_t due;
};

struct mfs_interrupts {
    atomic_bool any;
    pthread_mutex_t lock; /* guards what follows; a leaf */
    struct interrupt *all;
};

struct mfs_interrupts *mfs_interrupts_create(void)
{
    struct mfs_interrupts *i = calloc(1, sizeof *i);

    if (i != NULL)
        pthread_mutex_init(&i->lock, NULL);
    return i;
}

void mfs_interrupts_destroy(struct mfs_interrupts *i)
{
    struct interrupt *one, *next;

    if (i == NULL)
        return;
    LL_FOREACH_SAFE(i->all, one, next)
    free(one);
    pthread_mutex_destroy(&i->lock);
    free(i);
}

static void put(struct mfs_interrupts *i, struct interrupt *one)
{
    pthread_mutex_lock(&i->lock);
    LL_PREPEND(i->all, one);
    atomic_store(&i->any, true);
    pthread_mutex_unlock(&i->lock);
}

static void add(struct mfs_interrupts *i, struct interrupt what)
{
    struct interrupt *one = malloc(sizeof *one);

    if (one == NULL)
        return;
    *one = what;
    put(i, one);
}

void mfs_interrupts_hold(struct mfs_interrupts *i, uint64_t unique)
{
    add(i, (struct interrupt){.unique = unique, .due = mfs_clock_mono() + HELD});
}

void mfs_interrupts_watch(struct mfs_interrupts *i, uint64_t unique, uint32_t thread)
{
    if (thread != 0) /* else of another PID namespace: nothing is known */
        add(i, (struct interrupt){
                   .unique = unique, .thread = thread, .due = mfs_clock_mono() + MOMENT});
}

bool mfs_interrupts_any(struct mfs_interrupts *i)
{
    return atomic_load(&i->any);
}

static uint64_t signals(const char *status, const char *name)
{
    const char *at = strstr(status, name);

    return at != NULL ? strtoull(at + strlen(name), NULL, 16) : 0;
}

/* proc_pid_status(5). Signals of the whole process are not this thread's, unless it has noticed
 * one: then it waits for the reply killably, which is D. */
static bool has_signal(uint32_t thread)
{
    struct mfs_buf b;
    char path[64];
    bool has = false;

    mfs_buf_init(&b);
    if (mfs_text_format(path, sizeof path, "/proc/%u/status", thread) == 0 &&
        mfs_file_read(path, 16384, &b) == 0 && mfs_buf_printf(&b, "%c", 0) >= 0) {
        const char *status = mfs_buf_data(&b);

        has = strstr(status, "\nState:\tD") != NULL &&
              (signals(status, "\nSigPnd:") | signals(status, "\nShdPnd:")) &
                  ~signals(status, "\nSigBlk:");
    }
    mfs_buf_fini(&b);
    return has;
}

static struct interrupt *take_all(struct mfs_interrupts *i)
{
    struct interrupt *all;

    pthread_mutex_lock(&i->lock);
    all = i->all;
    i->all = NULL;
    atomic_store(&i->any, false);
    pthread_mutex_unlock(&i->lock);
    return all;
}

/* What is sent may be held anew, by the time that `send` returns. */
void mfs_interrupts_send(struct mfs_interrupts *i, bool (*known)(void *arg, uint64_t unique),
                         void (*send)(void *arg, uint64_t unique), void *arg)
{
    struct interrupt *all = take_all(i), *one, *next;

    LL_FOREACH_SAFE(all, one, next)
    {
        bool early = mfs_clock_mono() < one->due;
        bool is_known = (one->thread == 0 || !early) && known(arg, one->unique);

        if (early && !is_known) {
            put(i, one);
            continue;
        }
        if (is_known && (one->thread == 0 || has_signal(one->thread)))
            send(arg, one->unique);
        free(one);
    }
}
