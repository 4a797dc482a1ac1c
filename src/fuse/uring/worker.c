/* Requests are handed over to workers, which serve them, and wait for the next ones in their rings.
 */
#include "fuse/uring/uring_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/fuse.h>
#include <utlist.h>

#include "base/log.h"
#include "base/threads/thread.h"

_Thread_local struct mfs_uring_entry *mfs_uring_served;
static _Thread_local struct worker *self;

static void *work(void *arg);

/* Lock held. */
static void make_worker(struct mfs_uring *u, struct mfs_uring_entry *e)
{
    struct worker *w = calloc(1, sizeof *w);

    if (w == NULL)
        return;
    w->u = u;
    w->given = e;
    w->ring.fd = -1;
    sem_init(&w->wake, 0, 0);
    if (mfs_thread_start(&w->thread, "fuse-ring", work, w) < 0) {
        free(w);
        return;
    }
    DL_DELETE(u->ready, e);
    LL_PREPEND(u->all, w);
    u->made++;
    u->busy++;
}

void mfs_uring_use_worker(struct mfs_uring *u)
{
    struct mfs_uring_entry *e = u->ready;
    struct worker *w = u->idle;

    if (e == NULL || u->busy >= u->source.most || atomic_load(&u->stop))
        return;
    if (w == NULL) {
        make_worker(u, e);
        return;
    }
    DL_DELETE(u->ready, e);
    u->idle = w->next_idle;
    w->given = e;
    u->busy++;
    sem_post(&w->wake);
}

void mfs_uring_hand_over(struct mfs_uring *u, struct mfs_uring_entry *e)
{
    pthread_mutex_lock(&u->lock);
    DL_APPEND(u->ready, e);
    mfs_uring_use_worker(u);
    pthread_mutex_unlock(&u->lock);
}

/* The kernel has given an entry back without a request: as the mount is gone, or as it refuses to
 * have one, and then it sends all by /dev/fuse. Or this thread is to stop. */
static void end_with(struct mfs_uring *u, int result)
{
    if (result == -EINTR || atomic_exchange(&u->refused, true))
        return;
    if (result != -ENOTCONN && result != -ECONNABORTED && result != -ECANCELED)
        mfs_warn("fuse", "io_uring: %s", strerror(-result));
}

bool mfs_uring_take(struct mfs_uring *u, struct mfs_uring_entry *e, int result)
{
    if (result == 0)
        result = mfs_uring_entry_take(e);
    if (result < 0) {
        end_with(u, result);
        return false;
    }
    e->admitted = u->source.may_wait(e->request, e->length);
    return !e->admitted || mfs_admission_admit(u->admission, (char *)&e, sizeof e);
}

/* True when the reply is in the entry; else another thread has it, or will. */
static bool serve(struct mfs_uring *u, struct mfs_uring_entry *e)
{
    bool admitted = e->admitted, answered;
    struct mfs_uring_entry *next;
    struct fuse_in_header in;

    memcpy(&in, e->request, sizeof in);
    mfs_uring_served = e;
    u->source.serve(u->source.arg, e->request, e->length);
    mfs_uring_served = NULL;
    answered = atomic_exchange(&e->state, MFS_URING_LEFT) == MFS_URING_ANSWERED;
    if (!answered) {
        mfs_interrupts_watch(u->interrupts, in.unique, in.pid);
        mfs_uring_tell_dispatcher(u);
    }
    if (admitted && mfs_admission_next(u->admission, (char *)&next) > 0)
        mfs_uring_hand_over(u, next);
    return answered;
}

/* Submits the reply, `now` or with the wait that follows. When requests may wait in the kernel's
 * queue, and this reply has found none, they do not. Memory goes back while the entry is free: no
 * request comes to it before the thread waits in its ring. */
static int commit(struct mfs_uring *u, struct worker *w, struct mfs_uring_entry *e, bool now)
{
    atomic_uint *suspect = &u->queue[e->queue].suspect;
    unsigned seen = atomic_load(suspect);
    struct io_uring_sqe *sqe = mfs_ring_next(&w->ring);
    int rc = 0;

    if (sqe == NULL)
        return -EBUSY;
    mfs_uring_entry_commit(e, sqe);
    if (seen == 0 && e->touched <= u->kept && !now)
        return 0;
    rc = mfs_ring_enter(&w->ring, false, 0);
    if (rc == 0 && mfs_ring_is_empty(&w->ring)) {
        atomic_compare_exchange_strong(suspect, &seen, 0);
        mfs_uring_entry_trim(e, u->kept);
    }
    return rc;
}

void mfs_uring_flush(struct mfs_uring *u)
{
    struct mfs_uring_entry *e = mfs_uring_served;

    if (e == NULL || self == NULL || self->ring.fd < 0 || self->sent ||
        atomic_load(&e->state) != MFS_URING_ANSWERED)
        return;
    self->rc = commit(u, self, e, true);
    self->sent = true;
}

/* The reply was submitted, to that effect: waits for the next request in the same entry. NULL:
 * there is none to serve. */
static struct mfs_uring_entry *wait_in_ring(struct mfs_uring *u, struct worker *w,
                                            struct mfs_uring_entry *e, int rc)
{
    int result = -EINTR;
    uint64_t data;

    atomic_store(&w->waits, true);
    while ((rc == 0 || rc == -EINTR) && !mfs_ring_take(&w->ring, &data, &result) &&
           !atomic_load(&u->stop))
        rc = mfs_ring_enter(&w->ring, true, -1);
    atomic_store(&w->waits, false);
    if (!mfs_uring_take(u, e, rc < 0 && rc != -EINTR ? rc : result))
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
    e = atomic_load(&u->stop) ? NULL : u->ready;
    if (e != NULL)
        DL_DELETE(u->ready, e);
    else
        u->busy--;
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
        next = wait_in_ring(u, w, e, w->rc);
        return next != NULL ? next : next_given(u, w);
    }
    next = next_ready(u);
    if (answered && (next != NULL || w->ring.fd < 0 || atomic_load(&u->stop)))
        mfs_uring_leave_to_dispatcher(u, e);
    else if (answered)
        next = wait_in_ring(u, w, e, commit(u, w, e, false));
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
