/* Requests are handed over to workers, which serve them, and wait for the next ones in their rings.
 */
#include "fuse/uring/uring_impl.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/fuse.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/threads/thread.h"

#define MOMENT MFS_MSEC /* until the kernel may have memory */
#define SPARE  2U       /* workers beside the most, for what is urgent; one of them never waits */

_Thread_local struct mfs_uring_entry *mfs_uring_served;
static _Thread_local struct worker *self;

static void *work(void *arg);

/* May it be served though as many are as may be? Lock held. */
static bool may_be_beside(const struct mfs_uring *u, const struct mfs_uring_entry *e)
{
    switch (u->source.urgency(u->source.arg, e->request, e->length)) {
    case MFS_WORKERS_AT_ONCE:
        return u->beside < SPARE;
    case MFS_WORKERS_BRIEF:
        return u->beside == 0;
    default:
        return false;
    }
}

/* Takes the first request that is ready and may be served now. NULL: none. Lock held. */
static struct mfs_uring_entry *take_ready(struct mfs_uring *u)
{
    bool beside = u->busy >= u->source.most;
    struct mfs_uring_entry *e = atomic_load(&u->stop) ? NULL : u->ready;

    while (e != NULL && beside && !may_be_beside(u, e))
        e = e->next;
    if (e == NULL)
        return NULL;
    DL_DELETE(u->ready, e);
    e->beside = beside;
    u->beside += beside;
    u->busy++;
    return e;
}

/* Lock held. */
static void put_back(struct mfs_uring *u, struct mfs_uring_entry *e)
{
    DL_PREPEND(u->ready, e);
    u->beside -= e->beside;
    e->beside = false;
    u->busy--;
}

/* Lock held. */
static void make_worker(struct mfs_uring *u, struct mfs_uring_entry *e)
{
    struct worker *w = calloc(1, sizeof *w);
    int rc = -ENOMEM;

    if (w != NULL) {
        w->u = u;
        w->given = e;
        w->ring.fd = -1;
        sem_init(&w->wake, 0, 0);
        rc = mfs_thread_start(&w->thread, "fuse-ring", work, w);
    }
    if (rc < 0) {
        free(w);
        put_back(u, e);
        return;
    }
    LL_PREPEND(u->all, w);
    u->made++;
}

void mfs_uring_use_worker(struct mfs_uring *u)
{
    struct mfs_uring_entry *e = take_ready(u);
    struct worker *w = u->idle;

    if (e == NULL)
        return;
    if (w == NULL) {
        make_worker(u, e);
        return;
    }
    u->idle = w->next_idle;
    w->given = e;
    sem_post(&w->wake);
}

void mfs_uring_hand_over(struct mfs_uring *u, struct mfs_uring_entry *e)
{
    pthread_mutex_lock(&u->lock);
    DL_APPEND(u->ready, e);
    mfs_uring_use_worker(u);
    pthread_mutex_unlock(&u->lock);
}

/* The kernel has given an entry back without a request: as the mount is gone; as it has no memory
 * now, or has not taken that one command, which the dispatcher gives it again; or as it refuses to
 * have any, and then it sends all by /dev/fuse. After a request has come it would not: more entries
 * must be tried then. */
static void end_with(struct mfs_uring *u, struct mfs_uring_entry *e, int result)
{
    bool memory = result == -ENOMEM || result == -EAGAIN;

    if (result == -ENOTCONN || result == -ECONNABORTED || result == -ECANCELED) {
        atomic_store(&u->refused, true);
        return;
    }
    if (result != -EAGAIN && !atomic_exchange(&u->warned, true))
        mfs_warn("fuse", "io_uring: %s", strerror(-result));
    if (!memory && !atomic_load(&u->taken))
        atomic_store(&u->refused, true);
    else if (memory || e->commit_id == 0)
        mfs_uring_submit_again(u, e);
}

bool mfs_uring_take(struct mfs_uring *u, struct mfs_uring_entry *e, int result)
{
    if (result < 0) {
        end_with(u, e, result);
        return false;
    }
    atomic_store(&u->taken, true);
    if (mfs_uring_entry_take(e) < 0) {
        if (!atomic_exchange(&u->warned, true))
            mfs_warn("fuse", "io_uring: a request of which the lengths contradict each other");
        mfs_uring_entry_refuse(e);
        mfs_uring_leave_to_dispatcher(u, e);
        return false;
    }
    e->admitted = u->source.may_wait(e->request, e->length);
    return !e->admitted || mfs_admission_admit(u->admission, (char *)&e, sizeof e);
}

/* True when the reply is in the entry; else another thread has it, or will. */
static bool serve(struct mfs_uring *u, struct mfs_uring_entry *e)
{
    bool admitted = e->admitted, beside = e->beside, answered;
    struct mfs_uring_entry *next;
    struct fuse_in_header in;

    memcpy(&in, e->request, sizeof in);
    if (in.opcode == FUSE_STATFS)
        atomic_store(&u->queue[e->queue].unanswered, 0);
    mfs_uring_served = e;
    u->source.serve(u->source.arg, e->request, e->length);
    mfs_uring_served = NULL;
    e->beside = false;
    answered = atomic_exchange(&e->state, MFS_URING_LEFT) == MFS_URING_ANSWERED;
    if (!answered && (in.opcode == FUSE_SETLKW || in.opcode == FUSE_READ)) {
        mfs_interrupts_watch(u->interrupts, in.unique, in.pid);
        mfs_uring_tell_dispatcher(u);
    }
    if (admitted && mfs_admission_next(u->admission, (char *)&next) > 0)
        mfs_uring_hand_over(u, next);
    if (beside) {
        pthread_mutex_lock(&u->lock);
        u->beside--;
        pthread_mutex_unlock(&u->lock);
    }
    return answered;
}

/* Has the kernel, for want of memory, not seen what was submitted? Then that completion is gone. */
static bool was_lost(struct worker *w)
{
    uint64_t data;
    int result;

    if (!mfs_ring_peek(&w->ring, &result) || (result != -ENOMEM && result != -EAGAIN))
        return false;
    return mfs_ring_take(&w->ring, &data, &result);
}

/* Returns when the kernel has the reply, or all is over, which is when this is false. */
static bool submit_now(struct mfs_uring *u, struct worker *w, struct mfs_uring_entry *e)
{
    int rc = mfs_ring_enter(&w->ring, false, 0);

    while ((rc < 0 || was_lost(w)) && !atomic_load(&u->stop)) {
        mfs_clock_sleep(MOMENT);
        if (rc == 0)
            mfs_uring_entry_command(e, mfs_ring_next(&w->ring));
        rc = mfs_ring_enter(&w->ring, false, 0);
    }
    return rc == 0;
}

/* Submits the reply, `now` or with the wait that follows. When requests may wait in the kernel's
 * queue, and this reply has found none, they do not. Memory goes back while the entry is free: no
 * request comes to it before the thread waits in its ring. The ring has room, as nothing was left
 * there prepared. */
static void commit(struct mfs_uring *u, struct worker *w, struct mfs_uring_entry *e, bool now)
{
    struct queue *q = &u->queue[e->queue];
    bool suspect = mfs_uring_is_suspect(q);
    unsigned added = atomic_load(&q->added);

    mfs_uring_entry_command(e, mfs_ring_next(&w->ring));
    if (!suspect && e->touched <= u->kept && !now)
        return;
    if (submit_now(u, w, e) && mfs_ring_is_empty(&w->ring)) {
        atomic_store(&q->found_none, added);
        mfs_uring_entry_trim(e, u->kept);
    }
}

void mfs_uring_flush(struct mfs_uring *u)
{
    struct mfs_uring_entry *e = mfs_uring_served;

    if (e == NULL || self == NULL || self->ring.fd < 0 || self->sent ||
        atomic_load(&e->state) != MFS_URING_ANSWERED)
        return;
    commit(u, self, e, true);
    self->sent = true;
}

/* The reply is prepared or submitted: waits for the next request in the same entry, which is this
 * thread's as long as the command may be under way. NULL: there is none to serve. */
static struct mfs_uring_entry *wait_in_ring(struct mfs_uring *u, struct worker *w,
                                            struct mfs_uring_entry *e)
{
    uint64_t data = 0;
    int result, rc;

    atomic_store(&w->waits, true);
    while (!mfs_ring_take(&w->ring, &data, &result) && !atomic_load(&u->stop)) {
        rc = mfs_ring_enter(&w->ring, true, -1);
        if (rc < 0 && rc != -EINTR)
            mfs_clock_sleep(MOMENT);
    }
    atomic_store(&w->waits, false);
    if (data == 0) /* all is over */
        return NULL;
    assert(data == (uint64_t)(uintptr_t)e);
    if (!mfs_uring_take(u, e, result))
        return NULL;
    pthread_mutex_lock(&u->lock);
    u->busy++;
    pthread_mutex_unlock(&u->lock);
    return e;
}

/* A worker whose entry is free must wait there: another one is to serve what is ready. */
static void pass_ready_on(struct mfs_uring *u)
{
    pthread_mutex_lock(&u->lock);
    u->busy--;
    mfs_uring_use_worker(u);
    pthread_mutex_unlock(&u->lock);
}

/* What a worker that has served a request serves next, without a wait; NULL: it is no longer busy.
 */
static struct mfs_uring_entry *next_ready(struct mfs_uring *u)
{
    struct mfs_uring_entry *e;

    pthread_mutex_lock(&u->lock);
    u->busy--;
    e = take_ready(u);
    pthread_mutex_unlock(&u->lock);
    return e;
}

/* Idle until a request is handed over; NULL: all is over. */
static struct mfs_uring_entry *next_given(struct mfs_uring *u, struct worker *w)
{
    bool over;

    w->given = NULL;
    pthread_mutex_lock(&u->lock);
    over = atomic_load(&u->stop);
    if (!over) {
        w->next_idle = u->idle;
        u->idle = w;
    }
    pthread_mutex_unlock(&u->lock);
    while (!over && sem_wait(&w->wake) < 0)
        ;
    return w->given;
}

static struct mfs_uring_entry *serve_and_wait(struct mfs_uring *u, struct worker *w,
                                              struct mfs_uring_entry *e)
{
    bool answered = serve(u, e);
    struct mfs_uring_entry *next;

    if (w->sent) {
        w->sent = false;
        pass_ready_on(u);
        next = wait_in_ring(u, w, e);
        return next != NULL ? next : next_given(u, w);
    }
    next = next_ready(u);
    if (answered && (next != NULL || w->ring.fd < 0 || atomic_load(&u->stop))) {
        mfs_uring_leave_to_dispatcher(u, e);
    } else if (answered) {
        commit(u, w, e, false);
        next = wait_in_ring(u, w, e);
    }
    return next != NULL ? next : next_given(u, w);
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct mfs_uring *u = w->u;
    struct mfs_uring_entry *e = w->given;
    sigset_t kick;

    self = w;
    sigemptyset(&kick);
    sigaddset(&kick, MFS_URING_KICK);
    pthread_sigmask(SIG_UNBLOCK, &kick, NULL);
    mfs_ring_open(&w->ring, 4, 4, u->fd); /* without, the dispatcher replies */
    while (e != NULL)
        e = serve_and_wait(u, w, e);
    mfs_ring_close(&w->ring);
    pthread_mutex_lock(&u->lock);
    u->over++;
    pthread_cond_signal(&u->ended);
    pthread_mutex_unlock(&u->lock);
    return NULL;
}
