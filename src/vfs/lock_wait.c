#include "vfs/lock_wait.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include <utlist.h>

#include "base/clock.h"
#include "base/thread.h"
#include "vfs/file.h"

#define DELAY_MIN (1 * MFS_MSEC)
#define DELAY_MAX (20 * MFS_MSEC)

/* A wait is noted when the same owner has been in the way for so long, as most are shorter; and
 * again after so long. */
#define NOTE_AFTER (100 * MFS_MSEC)
#define NOTE_AGAIN (4 * MFS_SEC)
static_assert(2 * NOTE_AGAIN < MFS_META_WAIT_TTL, "notes live on");

struct mfs_lock_waiter {
    struct mfs_lock_wait *lw;
    struct mfs_file *file;
    bool flock;
    struct mfs_meta_wait wait;     /* for the lock; this and the next two: lw's thread only */
    struct mfs_lock_holder in_way; /* since `note` was set */
    int64_t note;                  /* when to note the wait */
    mfs_vfs_lock_fn *done;
    void *arg;
    int64_t end; /* when to give up, INT64_MAX: never */
    atomic_bool cancelled;
    int64_t next, delay; /* when to try again, ns; guarded by lw->lock once started */
    struct mfs_lock_waiter *prev, *after; /* likewise */
};

struct mfs_lock_wait {
    pthread_t thread;
    pthread_mutex_t lock; /* guards the list; a leaf: nothing is called with it held */
    pthread_cond_t wake;
    struct mfs_lock_waiter *list;
    bool stop;
};

/* The waiter whose turn it is, taken off the list, or NULL and in *sleep how long none is. */
static struct mfs_lock_waiter *take_due(struct mfs_lock_wait *lw, int64_t *sleep)
{
    struct mfs_lock_waiter *w, *due = NULL;
    int64_t now = mfs_clock_mono();

    *sleep = MFS_SEC;
    DL_FOREACH2(lw->list, w, after)
    {
        if (lw->stop || atomic_load(&w->cancelled) || w->next <= now) {
            due = w;
            break;
        }
        if (w->next - now < *sleep)
            *sleep = w->next - now;
    }
    if (due != NULL)
        DL_DELETE2(lw->list, due, prev, after);
    return due;
}

static void finish(void *arg, int rc)
{
    struct mfs_lock_waiter *w = arg;

    w->done(w->arg, rc);
    free(w);
}

/* Deadlocks are looked for among fcntl locks, by who waits for ever. -EAGAIN: go on waiting. */
static int look_for_ring(struct mfs_lock_waiter *w)
{
    const struct mfs_lock_holder *now_in_way = &w->wait.holder;
    int64_t now = mfs_clock_mono();

    if (w->flock || w->end != INT64_MAX)
        return -EAGAIN;
    if (w->note == 0 || w->in_way.session != now_in_way->session ||
        w->in_way.owner != now_in_way->owner) {
        w->in_way = *now_in_way;
        w->note = now + NOTE_AFTER;
    }
    if (now < w->note)
        return -EAGAIN;
    w->note = now + NOTE_AGAIN;
    return mfs_meta_wait_note(w->file->node->vfs->meta, &w->wait) == -EDEADLK ? -EDEADLK : -EAGAIN;
}

static void try_later(struct mfs_lock_wait *lw, struct mfs_lock_waiter *w)
{
    pthread_mutex_lock(&lw->lock);
    w->delay *= 2;
    if (w->delay > DELAY_MAX)
        w->delay = DELAY_MAX;
    w->next = mfs_clock_mono() + w->delay;
    DL_APPEND2(lw->list, w, prev, after);
    pthread_mutex_unlock(&lw->lock);
}

/* Is there a reason to try again, after this refusal? */
static bool goes_on(const struct mfs_lock_waiter *w, int rc)
{
    if (w->end == INT64_MAX)
        return rc == -EAGAIN || rc == -EBUSY;
    return rc == -EBUSY && mfs_clock_mono() < w->end;
}

/* Tries once; the waiter gets its answer now, or from who drops its pages, or goes back to the
 * list.
 */
static void try_lock(struct mfs_lock_wait *lw, struct mfs_lock_waiter *w, bool stop)
{
    int rc = -EINTR;

    if (!stop && !atomic_load(&w->cancelled))
        rc = mfs_file_try_lock(w->file, &w->wait.lock, w->flock, &w->wait, finish, w);
    if (rc == -EINPROGRESS)
        return;
    if (goes_on(w, rc)) {
        rc = look_for_ring(w);
        if (rc == -EAGAIN) {
            try_later(lw, w);
            return;
        }
    }
    mfs_meta_wait_over(w->file->node->vfs->meta, &w->wait);
    finish(w, rc == -EBUSY ? -EAGAIN : rc);
}

static void *run(void *arg)
{
    struct mfs_lock_wait *lw = arg;
    struct mfs_lock_waiter *w;
    int64_t sleep;
    bool stop;

    pthread_mutex_lock(&lw->lock);
    while (!lw->stop || lw->list != NULL) {
        w = take_due(lw, &sleep);
        stop = lw->stop;
        if (w == NULL) {
            mfs_cond_wait(&lw->wake, &lw->lock, sleep);
            continue;
        }
        pthread_mutex_unlock(&lw->lock);
        try_lock(lw, w, stop);
        pthread_mutex_lock(&lw->lock);
    }
    pthread_mutex_unlock(&lw->lock);
    return NULL;
}

int mfs_lock_wait_create(struct mfs_lock_wait **out)
{
    struct mfs_lock_wait *lw = calloc(1, sizeof *lw);
    int rc;

    *out = NULL;
    if (lw == NULL)
        return -ENOMEM;
    pthread_mutex_init(&lw->lock, NULL);
    rc = mfs_cond_init(&lw->wake);
    if (rc == 0)
        rc = mfs_thread_start(&lw->thread, "lock-wait", run, lw);
    if (rc < 0) {
        free(lw);
        return rc;
    }
    *out = lw;
    return 0;
}

void mfs_lock_wait_stop(struct mfs_lock_wait *lw)
{
    bool first;

    pthread_mutex_lock(&lw->lock);
    first = !lw->stop;
    lw->stop = true;
    pthread_cond_signal(&lw->wake);
    pthread_mutex_unlock(&lw->lock);
    if (first)
        pthread_join(lw->thread, NULL);
}

void mfs_lock_wait_destroy(struct mfs_lock_wait *lw)
{
    if (lw == NULL)
        return;
    mfs_lock_wait_stop(lw);
    pthread_cond_destroy(&lw->wake);
    pthread_mutex_destroy(&lw->lock);
    free(lw);
}

void mfs_lock_wait_kick(struct mfs_lock_wait *lw, uint64_t ino)
{
    struct mfs_lock_waiter *w;
    bool any = false;

    pthread_mutex_lock(&lw->lock);
    DL_FOREACH2(lw->list, w, after)
    {
        if (mfs_file_ino(w->file) == ino) {
            w->next = 0;
            w->delay = DELAY_MIN;
            any = true;
        }
    }
    if (any)
        pthread_cond_signal(&lw->wake);
    pthread_mutex_unlock(&lw->lock);
}

struct mfs_lock_waiter *mfs_lock_waiter_create(struct mfs_file *file, const struct mfs_lock *lock,
                                               bool flock, int64_t ns, mfs_vfs_lock_fn *done,
                                               void *arg)
{
    struct mfs_lock_waiter *w = calloc(1, sizeof *w);

    if (w == NULL)
        return NULL;
    w->lw = file->node->vfs->waits;
    w->file = file;
    w->wait = (struct mfs_meta_wait){.ino = file->node->ino, .lock = *lock};
    w->flock = flock;
    w->done = done;
    w->arg = arg;
    w->delay = DELAY_MIN;
    w->end = ns < 0 ? INT64_MAX : mfs_clock_mono() + ns;
    return w;
}

int mfs_lock_waiter_start(struct mfs_lock_waiter *w)
{
    struct mfs_lock_wait *lw = w->lw;
    bool stop;

    pthread_mutex_lock(&lw->lock);
    stop = lw->stop;
    if (!stop) {
        w->next = mfs_clock_mono();
        DL_APPEND2(lw->list, w, prev, after);
        pthread_cond_signal(&lw->wake);
    }
    pthread_mutex_unlock(&lw->lock);
    if (!stop)
        return 0;
    free(w);
    return -EINTR;
}

void mfs_lock_waiter_cancel(struct mfs_lock_waiter *w)
{
    pthread_mutex_lock(&w->lw->lock);
    atomic_store(&w->cancelled, true);
    pthread_cond_signal(&w->lw->wake);
    pthread_mutex_unlock(&w->lw->lock);
}
