/* The event loop. What a callback removes stays allocated until the batch of events it was
 * collected with has been gone through: an event may still point at it. */
#include "net/loop.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define BATCH 64

struct mfs_watch {
    struct mfs_loop *loop;
    struct mfs_watch *prev, *next; /* in loop->watches, or (next only) in loop->removed */
    int fd;
    bool removed;
    bool own_fd; /* a pidfd or ours: closed with the watch */
    void (*ready)(void *arg, uint32_t events);
    void *arg;
    pid_t pid;
    void (*gone)(void *arg, pid_t pid, int status);
};

struct mfs_timer {
    struct mfs_loop *loop;
    size_t at; /* index in the heap */
    int64_t due, period;
    void (*fire)(void *arg);
    void *arg;
};

struct posted {
    struct posted *next;
    void (*work)(void *arg);
    void *arg;
};

struct signal_handler {
    void (*caught)(void *arg, int signo);
    void *arg;
};

struct mfs_loop {
    int epoll_fd, wake_fd, signal_fd;
    atomic_bool stop;
    struct mfs_watch *watches, *removed;
    struct mfs_timer **heap; /* by due time, smallest first */
    size_t timers, heap_cap;
    sigset_t signals;
    struct signal_handler handler[NSIG];
    pthread_mutex_t lock; /* guards posted, posted_tail */
    struct posted *posted, **posted_tail;
};

/* ---- timers ---------------------------------------------------------------------------------- */

static void heap_put(struct mfs_loop *loop, size_t at, struct mfs_timer *t)
{
    loop->heap[at] = t;
    t->at = at;
}

static void sift_up(struct mfs_loop *loop, struct mfs_timer *t)
{
    size_t at = t->at;

    while (at && loop->heap[(at - 1) / 2]->due > t->due) {
        heap_put(loop, at, loop->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    heap_put(loop, at, t);
}

static void sift_down(struct mfs_loop *loop, struct mfs_timer *t)
{
    size_t at = t->at;

    for (;;) {
        size_t child = 2 * at + 1;

        if (child + 1 < loop->timers && loop->heap[child + 1]->due < loop->heap[child]->due)
            child++;
        if (child >= loop->timers || loop->heap[child]->due >= t->due)
            break;
        heap_put(loop, at, loop->heap[child]);
        at = child;
    }
    heap_put(loop, at, t);
}

static void heap_remove(struct mfs_timer *t)
{
    struct mfs_loop *loop = t->loop;
    struct mfs_timer *last = loop->heap[--loop->timers];

    if (last == t)
        return;
    heap_put(loop, t->at, last);
    sift_up(loop, last);
    sift_down(loop, last);
}

struct mfs_timer *mfs_loop_timer(struct mfs_loop *loop, int64_t after, int64_t period,
                                 void (*fire)(void *arg), void *arg)
{
    struct mfs_timer *t = malloc(sizeof *t);

    if (!t)
        return NULL;
    if (loop->timers == loop->heap_cap) {
        size_t cap = loop->heap_cap ? 2 * loop->heap_cap : 16;
        struct mfs_timer **heap = reallocarray(loop->heap, cap, sizeof *heap);

        if (!heap) {
            free(t);
            return NULL;
        }
        loop->heap = heap;
        loop->heap_cap = cap;
    }
    *t = (struct mfs_timer){loop, loop->timers, mfs_clock_mono() + after, period, fire, arg};
    loop->timers++;
    sift_up(loop, t);
    return t;
}

void mfs_timer_cancel(struct mfs_timer *t)
{
    if (!t)
        return;
    heap_remove(t);
    free(t);
}

static void fire_timers(struct mfs_loop *loop)
{
    int64_t now = mfs_clock_mono();

    // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a freed timer has left the heap
    while (loop->timers && loop->heap[0]->due <= now) {
        struct mfs_timer *t = loop->heap[0];
        void (*fire)(void *arg) = t->fire;
        void *arg = t->arg;

        if (t->period > 0) {
            t->due += t->period;
            if (t->due <= now)
                t->due = now + t->period;
            sift_down(loop, t);
        } else {
            heap_remove(t);
            free(t);
        }
        fire(arg);
    }
}

static int next_timeout(const struct mfs_loop *loop)
{
    int64_t left;

    if (!loop->timers)
        return -1;
    left = loop->heap[0]->due - mfs_clock_mono();
    if (left <= 0)
        return 0;
    left = (left + MFS_MSEC - 1) / MFS_MSEC;
    return left < 3600000 ? (int)left : 3600000;
}

/* ---- watches --------------------------------------------------------------------------------- */

struct mfs_watch *mfs_loop_watch(struct mfs_loop *loop, int fd, uint32_t events,
                                 void (*ready)(void *arg, uint32_t events), void *arg)
{
    struct mfs_watch *w = calloc(1, sizeof *w);
    struct epoll_event ev = {.events = events, .data.ptr = w};

    if (!w)
        return NULL;
    w->loop = loop;
    w->fd = fd;
    w->ready = ready;
    w->arg = arg;
    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &ev)) {
        free(w);
        return NULL;
    }
    w->next = loop->watches;
    if (w->next)
        w->next->prev = w;
    loop->watches = w;
    return w;
}

int mfs_watch_events(struct mfs_watch *w, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = w};

    return epoll_ctl(w->loop->epoll_fd, EPOLL_CTL_MOD, w->fd, &ev) ? -errno : 0;
}

void mfs_watch_remove(struct mfs_watch *w)
{
    if (!w || w->removed)
        return;
    epoll_ctl(w->loop->epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
    if (w->own_fd)
        close(w->fd);
    if (w->prev)
        w->prev->next = w->next;
    else
        w->loop->watches = w->next;
    if (w->next)
        w->next->prev = w->prev;
    w->removed = true;
    w->next = w->loop->removed;
    w->loop->removed = w;
}

static void free_removed(struct mfs_loop *loop)
{
    while (loop->removed) {
        struct mfs_watch *w = loop->removed;

        loop->removed = w->next;
        free(w);
    }
}

static void process_ended(struct mfs_watch *w)
{
    int status = -1;
    pid_t got = waitpid(w->pid, &status, WNOHANG);

    if (got == 0)
        return;
    mfs_watch_remove(w);
    w->gone(w->arg, w->pid, got == w->pid ? status : -1);
}

static void dispatch(struct mfs_watch *w, uint32_t events)
{
    if (w->gone)
        process_ended(w);
    else
        w->ready(w->arg, events);
}

struct mfs_watch *mfs_loop_process(struct mfs_loop *loop, pid_t pid,
                                   void (*gone)(void *arg, pid_t pid, int status), void *arg)
{
    int fd = pidfd_open(pid, 0), saved;
    struct mfs_watch *w;

    if (fd < 0)
        return NULL;
    w = mfs_loop_watch(loop, fd, EPOLLIN, NULL, arg);
    if (!w) {
        saved = errno;
        close(fd);
        errno = saved;
        return NULL;
    }
    w->own_fd = true;
    w->pid = pid;
    w->gone = gone;
    return w;
}

/* ---- signals, posted work -------------------------------------------------------------------- */

static void signals_ready(void *arg, uint32_t events)
{
    struct mfs_loop *loop = arg;
    struct signalfd_siginfo info;

    (void)events;
    while (read(loop->signal_fd, &info, sizeof info) == sizeof info) {
        const struct signal_handler *h = &loop->handler[info.ssi_signo % NSIG];

        if (h->caught)
            h->caught(h->arg, (int)info.ssi_signo);
    }
}

int mfs_loop_signal(struct mfs_loop *loop, int signo, void (*caught)(void *arg, int signo),
                    void *arg)
{
    bool first = loop->signal_fd < 0;
    int fd, rc;

    if (signo <= 0 || signo >= NSIG)
        return -EINVAL;
    sigaddset(&loop->signals, signo);
    rc = pthread_sigmask(SIG_BLOCK, &loop->signals, NULL);
    if (rc)
        return -rc;
    fd = signalfd(loop->signal_fd, &loop->signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return -errno;
    loop->signal_fd = fd;
    loop->handler[signo] = (struct signal_handler){caught, arg};
    if (first && !mfs_loop_watch(loop, fd, EPOLLIN, signals_ready, loop))
        return -errno;
    return 0;
}

static void wake(struct mfs_loop *loop)
{
    uint64_t one = 1;

    /* Only fails when the counter is full, and then the loop is woken anyway. */
    while (write(loop->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

int mfs_loop_post(struct mfs_loop *loop, void (*work)(void *arg), void *arg)
{
    struct posted *p = malloc(sizeof *p);

    if (!p)
        return -ENOMEM;
    *p = (struct posted){NULL, work, arg};
    pthread_mutex_lock(&loop->lock);
    *loop->posted_tail = p;
    loop->posted_tail = &p->next;
    pthread_mutex_unlock(&loop->lock);
    wake(loop);
    return 0;
}

static struct posted *take_posted(struct mfs_loop *loop)
{
    struct posted *p;

    pthread_mutex_lock(&loop->lock);
    p = loop->posted;
    loop->posted = NULL;
    loop->posted_tail = &loop->posted;
    pthread_mutex_unlock(&loop->lock);
    return p;
}

static void wake_ready(void *arg, uint32_t events)
{
    struct mfs_loop *loop = arg;
    struct posted *p;
    uint64_t count;

    (void)events;
    while (read(loop->wake_fd, &count, sizeof count) < 0 && errno == EINTR)
        ;
    p = take_posted(loop);
    while (p) {
        struct posted *next = p->next;

        p->work(p->arg);
        free(p);
        p = next;
    }
}

/* ---- the loop -------------------------------------------------------------------------------- */

struct mfs_loop *mfs_loop_create(void)
{
    struct mfs_loop *loop = calloc(1, sizeof *loop);

    if (!loop)
        return NULL;
    pthread_mutex_init(&loop->lock, NULL);
    loop->posted_tail = &loop->posted;
    loop->signal_fd = -1;
    sigemptyset(&loop->signals);
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->epoll_fd < 0 || loop->wake_fd < 0 ||
        !mfs_loop_watch(loop, loop->wake_fd, EPOLLIN, wake_ready, loop)) {
        int saved = errno;

        mfs_loop_destroy(loop);
        errno = saved;
        return NULL;
    }
    return loop;
}

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

void mfs_loop_destroy(struct mfs_loop *loop)
{
    struct posted *p;

    if (!loop)
        return;
    while (loop->watches)
        mfs_watch_remove(loop->watches);
    free_removed(loop);
    while (loop->timers)
        mfs_timer_cancel(loop->heap[loop->timers - 1]);
    free(loop->heap);
    for (p = take_posted(loop); p;) {
        struct posted *next = p->next;

        free(p);
        p = next;
    }
    close_fd(loop->signal_fd);
    close_fd(loop->wake_fd);
    close_fd(loop->epoll_fd);
    pthread_mutex_destroy(&loop->lock);
    free(loop);
}

int mfs_loop_run(struct mfs_loop *loop)
{
    struct epoll_event ev[BATCH];

    while (!atomic_load(&loop->stop)) {
        int n = epoll_wait(loop->epoll_fd, ev, BATCH, next_timeout(loop));

        if (n < 0 && errno != EINTR)
            return -errno;
        for (int i = 0; i < n; i++) {
            struct mfs_watch *w = ev[i].data.ptr;

            if (!w->removed)
                dispatch(w, ev[i].events);
        }
        fire_timers(loop);
        free_removed(loop);
    }
    atomic_store(&loop->stop, false);
    return 0;
}

void mfs_loop_stop(struct mfs_loop *loop)
{
    atomic_store(&loop->stop, true);
    wake(loop);
}
