/* A list of waiters, and threads that try for their locks. A waiter is on the list (waiting for its
 * next try), with a thread that tries, or with the thread that drops pages for its lock; then it is
 * answered and freed.
 *
 * Invariants: a waiter is on the list or with one thread, never both; asked[0 … nasked) are the
 * partitions that threads are asking now, so that a partition that does not answer holds one thread
 * and the others of its waiters only look again; one idle thread at a time has a look due (`look`).
 */
#include "vfs/locks/lock_wait.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include <utlist.h>

#include "base/clock.h"
#include "base/threads/thread.h"
#include "cluster/placement.h"
#include "vfs/locks/take.h"

#define DELAY_MIN (1 * MFS_MSEC)
#define DELAY_MAX (20 * MFS_MSEC)

#define THREADS_MAX 33U /* while fewer partitions are silent all others are asked */
#define NO_HOME     UINT32_MAX

#define LOOK_AGAIN (5 * MFS_MSEC) /* whether a partition that was being asked has answered */
#define LOOK_LAST  MFS_SEC
#define IDLE       (60 * MFS_SEC)
#define OVERDUE                                                                                    \
    (100 * MFS_MSEC) /* so much too late, a waiter whose partition is being asked gives up */

/* A wait is noted when the same owner has been in the way for so long, as most are shorter; and
 * again after so long. */
#define NOTE_AFTER (100 * MFS_MSEC)
#define NOTE_AGAIN (4 * MFS_SEC)
static_assert(2 * NOTE_AGAIN < MFS_META_WAIT_TTL, "notes live on");
static_assert(NOTE_AFTER < NOTE_AGAIN && DELAY_MIN < DELAY_MAX && LOOK_AGAIN < LOOK_LAST,
              "pauses grow");

struct mfs_lock_waiter {
    struct mfs_lock_wait *lw;
    struct mfs_file *file;
    bool flock;
    struct mfs_meta_wait
        wait; /* for the lock; this and the next two belong to the thread that tries */
    struct mfs_lock_holder blocker; /* since `note` was set */
    int64_t note;                   /* when to note the wait */
    mfs_vfs_lock_fn *done;
    void *arg;
    int64_t end; /* when to give up, INT64_MAX: never */
    atomic_bool cancelled;
    int64_t next, delay;         /* when to try again, ns; guarded by lw->lock once started */
    struct mfs_lock_holder seen; /* likewise: wait.holder as of the last try */
    struct mfs_lock_waiter *prev, *after; /* likewise */
};

struct mfs_lock_wait {
    pthread_mutex_t lock; /* guards all of it; a leaf: nothing is called with it held */
    pthread_cond_t wake;  /* threads that have nothing to do wait here */
    struct mfs_lock_waiter *list;
    pthread_t thread[THREADS_MAX];
    uint32_t nthreads;
    uint32_t asked[THREADS_MAX]; /* of each thread that is at work: the partition, or NO_HOME */
    uint32_t nasked;
    int64_t look; /* when the next of those that have nothing to do looks by itself */
    bool stop;
};

static void *run(void *arg);

/* Wakes an idle thread to look at the list, or starts one more. A thread that can't be started is
 * no error: the others go on. */
static void attend(struct mfs_lock_wait *lw)
{
    if (lw->nasked < lw->nthreads)
        pthread_cond_signal(&lw->wake);
    else if (!lw->stop && lw->nthreads < THREADS_MAX &&
             mfs_thread_start(&lw->thread[lw->nthreads], "lock-wait", run, lw) == 0)
        lw->nthreads++;
}

static uint32_t home_of(const struct mfs_lock_waiter *w)
{
    return mfs_placement_home(mfs_file_ino(w->file));
}

static bool is_asked(const struct mfs_lock_wait *lw, uint32_t home)
{
    for (uint32_t i = 0; i < lw->nasked; i++)
        if (lw->asked[i] == home)
            return true;
    return false;
}

/* What there is to say without asking; 0: nothing. */
static int verdict(const struct mfs_lock_wait *lw, const struct mfs_lock_waiter *w, int64_t now)
{
    if (lw->stop || atomic_load(&w->cancelled))
        return -EINTR;
    return now - OVERDUE >= w->end && is_asked(lw, home_of(w)) ? -EAGAIN : 0;
}

/* In how many ns it is the waiter's turn, 0: now. */
static int64_t due_in(const struct mfs_lock_wait *lw, const struct mfs_lock_waiter *w, int64_t now)
{
    int64_t ns = w->next > now ? w->next - now : 0;

    if (verdict(lw, w, now) != 0)
        return 0;
    return ns < LOOK_AGAIN && is_asked(lw, home_of(w)) ? LOOK_AGAIN : ns;
}

/* The waiter whose turn it is, taken off the list, or NULL. */
static struct mfs_lock_waiter *take_due(struct mfs_lock_wait *lw)
{
    int64_t now = mfs_clock_mono();
    struct mfs_lock_waiter *w;

    DL_FOREACH2(lw->list, w, after)
    {
        if (due_in(lw, w, now) == 0)
            break;
    }
    if (w != NULL)
        DL_DELETE2(lw->list, w, prev, after);
    return w;
}

/* When a thread has to look at the list next. */
static int64_t next_look(const struct mfs_lock_wait *lw)
{
    int64_t now = mfs_clock_mono(), sleep = lw->list != NULL ? LOOK_LAST : IDLE;
    struct mfs_lock_waiter *w;

    DL_FOREACH2(lw->list, w, after)
    {
        int64_t ns = due_in(lw, w, now);

        sleep = ns < sleep ? ns : sleep;
    }
    return now + sleep;
}

/* Sleeps until the next look, unless another thread does that. */
static void rest(struct mfs_lock_wait *lw)
{
    int64_t look = next_look(lw), sleep = look - mfs_clock_mono();

    if (look >= lw->look) {
        mfs_cond_wait(&lw->wake, &lw->lock, IDLE);
        return;
    }
    lw->look = look;
    if (sleep > 0)
        mfs_cond_wait(&lw->wake, &lw->lock, sleep);
    if (lw->look == look)
        lw->look = INT64_MAX;
}

static void finish(void *arg, int rc)
{
    struct mfs_lock_waiter *w = arg;

    w->done(w->arg, rc);
    free(w);
}

static void answer(struct mfs_lock_waiter *w, int rc)
{
    mfs_meta_wait_over(w->file->node->vfs->meta, &w->wait);
    finish(w, rc);
}

/* Deadlocks are looked for among fcntl locks, by waiters without a time limit. -EAGAIN: go on
 * waiting. */
static int detect_deadlock(struct mfs_lock_waiter *w)
{
    const struct mfs_lock_holder *holder = &w->wait.holder;
    int64_t now = mfs_clock_mono();

    if (w->flock || w->end != INT64_MAX)
        return -EAGAIN;
    if (w->note == 0 || w->blocker.session != holder->session ||
        w->blocker.owner != holder->owner) {
        w->blocker = *holder;
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
    w->seen = w->wait.holder;
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

/* Tries once; the waiter gets its answer now, or from the thread that drops its pages, or goes back
 * to the list. */
static void try_lock(struct mfs_lock_wait *lw, struct mfs_lock_waiter *w)
{
    int rc = mfs_file_try_lock(w->file, &w->wait.lock, w->flock, &w->wait, finish, w);

    if (rc == -EINPROGRESS)
        return;
    if (goes_on(w, rc)) {
        rc = detect_deadlock(w);
        if (rc == -EAGAIN) {
            try_later(lw, w);
            return;
        }
    }
    answer(w, rc == -EBUSY ? -EAGAIN : rc);
}

/* The lock is held, and given up meanwhile. */
static void serve(struct mfs_lock_wait *lw, struct mfs_lock_waiter *w)
{
    int rc = verdict(lw, w, mfs_clock_mono());
    uint32_t home = rc == 0 ? home_of(w) : NO_HOME, i = 0;

    lw->asked[lw->nasked++] = home;
    if (lw->list != NULL && next_look(lw) < lw->look)
        attend(lw);
    pthread_mutex_unlock(&lw->lock);
    if (rc == 0)
        try_lock(lw, w);
    else
        answer(w, rc);
    pthread_mutex_lock(&lw->lock);
    while (lw->asked[i] != home)
        i++;
    lw->asked[i] = lw->asked[--lw->nasked];
}

static void *run(void *arg)
{
    struct mfs_lock_wait *lw = arg;

    pthread_mutex_lock(&lw->lock);
    while (!lw->stop || lw->list != NULL) {
        struct mfs_lock_waiter *w = take_due(lw);

        if (w != NULL)
            serve(lw, w);
        else
            rest(lw);
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
    lw->look = INT64_MAX;
    lw->nthreads = 1;
    rc = mfs_cond_init(&lw->wake);
    if (rc == 0)
        rc = mfs_thread_start(&lw->thread[0], "lock-wait", run, lw);
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
    pthread_cond_broadcast(&lw->wake);
    pthread_mutex_unlock(&lw->lock);
    for (uint32_t i = 0; first && i < lw->nthreads; i++) /* none is started any more */
        pthread_join(lw->thread[i], NULL);
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
        attend(lw);
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
        attend(lw);
    }
    pthread_mutex_unlock(&lw->lock);
    return stop ? -EINTR : 0;
}

void mfs_lock_waiter_destroy(struct mfs_lock_waiter *w)
{
    free(w);
}

struct mfs_lock_holder mfs_lock_waiter_holder(struct mfs_lock_waiter *w)
{
    struct mfs_lock_holder holder;

    pthread_mutex_lock(&w->lw->lock);
    holder = w->seen;
    pthread_mutex_unlock(&w->lw->lock);
    return holder;
}

void mfs_lock_waiter_cancel(struct mfs_lock_waiter *w)
{
    pthread_mutex_lock(&w->lw->lock);
    atomic_store(&w->cancelled, true);
    attend(w->lw);
    pthread_mutex_unlock(&w->lw->lock);
}
