/* A worker is reading (waits for a request), working, waiting (for something else, in the midst of
 * a request), or asleep in the stack of idle ones. `reading` counts also those that are woken, or
 * are being made, in order to read: the one that lets another one read counts it. Invariant, except
 * while a wait is not told: reading > 0, or working >= processors, or all threads that there may be
 * serve something.
 *
 * A worker that has read a request serves it as one of `most`, or as one of the spare ones, or puts
 * it into the queue `held` and reads on. The queue is empty while fewer than `most` serve. */
#include "fuse/mount/workers.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utlist.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/threads/thread.h"
#include "base/threads/ticker.h"
#include "base/waits.h"
#include "fuse/kernel/killed.h"

#define READERS 2
#define SPARE   2U /* threads: one serves what is MFS_WORKERS_BRIEF, one what never waits */
#define LOOK    (50 * MFS_MSEC)
#define HELD    MFS_KILLED_LOOK
#define KICK    SIGUSR2 /* gets a worker out of its wait for a request */
#define KICKS   (20 * MFS_MSEC)

struct worker {
    struct mfs_workers *pool;
    pthread_t thread;
    char *buf;
    sem_t wake;                  /* it may read, or all is over */
    bool reads;                  /* may be in source->wait */
    enum mfs_workers_urgency as; /* what it serves counts as */
    struct worker *next;         /* in the stack of idle ones */
    struct mfs_waits waits;
};

struct held {
    struct held *prev, *next;
    bool brief;
    int64_t since; /* mono */
    size_t len;
    char request[];
};

struct mfs_workers {
    const struct mfs_workers_source *source;
    void *arg;
    unsigned most, processors;
    size_t hold; /* bytes of requests that may be held */
    struct mfs_ticker ticker;
    pthread_mutex_t lock; /* guards what follows; a leaf */
    pthread_cond_t ended;
    struct worker *all;  /* `most` and SPARE; the first `made` of them have begun … */
    unsigned made, over; /* … and so many have returned */
    unsigned reading, working;
    unsigned serving; /* requests that are MFS_WORKERS_NORMAL, or served as such, also waiting */
    bool brief;       /* one that is MFS_WORKERS_BRIEF is served beside them */
    struct held *held;
    size_t held_bytes;
    struct worker *idle;  /* the last one first */
    uint64_t taken, seen; /* requests; as of the ticker's last look */
    int64_t looked;       /* at what is held; the ticker's */
    bool stop;
    int rc;
};

static void nothing(int signo)
{
    (void)signo;
}

static void *run(void *arg);

/* One more thread, which is to read. Lock held. */
static int make(struct mfs_workers *p)
{
    struct worker *w = &p->all[p->made];
    int rc;

    w->reads = true;
    rc = mfs_thread_start(&w->thread, "fuse", run, w);
    p->made += rc == 0;
    p->reading += rc == 0;
    return rc;
}

/* Somebody has to read: an idle one, or a new one. Lock held. */
static void let_one_read(struct mfs_workers *p)
{
    struct worker *w = p->idle;

    if (w != NULL) {
        p->idle = w->next;
        w->reads = true;
        p->reading++;
        sem_post(&w->wake);
    } else if (p->made < p->most + SPARE) {
        make(p);
    }
}

/* Lock held. */
static void look_for_readers(struct mfs_workers *p)
{
    if (p->reading == 0 && p->working < p->processors && !p->stop)
        let_one_read(p);
}

static void waits_begin(void *arg)
{
    struct mfs_workers *p = arg;

    pthread_mutex_lock(&p->lock);
    p->working--;
    look_for_readers(p);
    pthread_mutex_unlock(&p->lock);
}

static void waits_end(void *arg)
{
    struct mfs_workers *p = arg;

    pthread_mutex_lock(&p->lock);
    p->working++;
    pthread_mutex_unlock(&p->lock);
}

/* Returns when the worker may read; false: all is over. */
static bool may_read(struct mfs_workers *p, struct worker *w)
{
    bool reads;

    pthread_mutex_lock(&p->lock);
    while (!w->reads && !p->stop) {
        if (p->reading < READERS) {
            w->reads = true;
            p->reading++;
            break;
        }
        w->next = p->idle;
        p->idle = w;
        pthread_mutex_unlock(&p->lock);
        while (sem_wait(&w->wake) < 0)
            ;
        pthread_mutex_lock(&p->lock);
    }
    reads = w->reads && !p->stop;
    pthread_mutex_unlock(&p->lock);
    return reads;
}

/* False: no room, so that the worker has to serve it. Lock held. */
static bool hold(struct mfs_workers *p, const char *request, size_t len, bool brief)
{
    struct held *h = p->held_bytes + len <= p->hold ? malloc(sizeof *h + len) : NULL;

    if (h == NULL)
        return false;
    h->brief = brief;
    h->since = mfs_clock_mono();
    h->len = len;
    memcpy(h->request, request, len);
    DL_APPEND(p->held, h);
    p->held_bytes += len;
    return true;
}

/* Is the worker to serve what it has read? Lock held. */
static bool may_serve(struct mfs_workers *p, struct worker *w, size_t len,
                      enum mfs_workers_urgency urgency)
{
    w->as = MFS_WORKERS_NORMAL;
    if (p->serving >= p->most) {
        if (urgency == MFS_WORKERS_AT_ONCE || (urgency == MFS_WORKERS_BRIEF && !p->brief))
            w->as = urgency;
        else if (hold(p, w->buf, len, urgency == MFS_WORKERS_BRIEF))
            return false;
    }
    p->serving += w->as == MFS_WORKERS_NORMAL;
    p->brief |= w->as == MFS_WORKERS_BRIEF;
    return true;
}

/* The worker no longer reads, as it has a request, or as there is none (len <= 0). True: it is to
 * serve one. */
static bool has_read(struct mfs_workers *p, struct worker *w, ssize_t len)
{
    enum mfs_workers_urgency urgency = MFS_WORKERS_NORMAL;
    bool serves;

    if (len > 0)
        urgency = p->source->urgency(p->arg, w->buf, (size_t)len);
    pthread_mutex_lock(&p->lock);
    w->reads = false;
    p->reading--;
    serves = len > 0 && may_serve(p, w, (size_t)len, urgency);
    p->taken += len > 0;
    if (serves) {
        p->working++;
        look_for_readers(p);
    }
    if (p->reading == 0 || p->held != NULL)
        mfs_ticker_work(&p->ticker);
    pthread_mutex_unlock(&p->lock);
    return serves;
}

/* The first request held that the worker may serve next, as what it served last. NULL: none. Lock
 * held. */
static struct held *take_held(struct mfs_workers *p, const struct worker *w)
{
    struct held *h = w->as == MFS_WORKERS_AT_ONCE || p->stop ? NULL : p->held;

    while (h != NULL && w->as == MFS_WORKERS_BRIEF && !h->brief)
        h = h->next;
    if (h != NULL) {
        DL_DELETE(p->held, h);
        p->held_bytes -= h->len;
    }
    return h;
}

/* A request was served. The length of the next one, or 0. */
static size_t has_served(struct mfs_workers *p, struct worker *w)
{
    struct held *h;
    size_t len = 0;

    pthread_mutex_lock(&p->lock);
    h = p->serving <= p->most || w->as != MFS_WORKERS_NORMAL ? take_held(p, w) : NULL;
    if (h == NULL) {
        p->working--;
        p->serving -= w->as == MFS_WORKERS_NORMAL;
        p->brief &= w->as != MFS_WORKERS_BRIEF;
    }
    pthread_mutex_unlock(&p->lock);
    if (h != NULL) {
        len = h->len;
        memcpy(w->buf, h->request, len);
    }
    free(h);
    return len;
}

static void end_with(struct mfs_workers *p, int rc)
{
    pthread_mutex_lock(&p->lock);
    if (p->rc == 0)
        p->rc = rc;
    p->stop = true;
    for (; p->idle != NULL; p->idle = p->idle->next)
        sem_post(&p->idle->wake);
    pthread_cond_signal(&p->ended);
    pthread_mutex_unlock(&p->lock);
}

static bool is_over(struct mfs_workers *p)
{
    bool over;

    pthread_mutex_lock(&p->lock);
    over = p->stop;
    pthread_mutex_unlock(&p->lock);
    return over;
}

/* And those that were waiting for it to be served, unless all is over: the kernel has failed these,
 * or will. */
static void serve(struct mfs_workers *p, struct worker *w, size_t len)
{
    while (len > 0) {
        p->source->serve(p->arg, w->buf, len);
        len = p->source->ready(p->arg, w->buf);
        if (len == 0 || is_over(p))
            len = has_served(p, w);
    }
}

static void *run(void *arg)
{
    struct worker *w = arg;
    struct mfs_workers *p = w->pool;
    sigset_t kick;

    sigemptyset(&kick);
    sigaddset(&kick, KICK);
    pthread_sigmask(SIG_UNBLOCK, &kick, NULL);
    mfs_waits_tell(&w->waits);
    while (may_read(p, w)) {
        ssize_t n = p->source->wait(p->arg, w->buf);

        if (has_read(p, w, n))
            serve(p, w, (size_t)n);
        else if (n <= 0 && n != -EINTR)
            end_with(p, (int)n);
    }
    mfs_waits_tell(NULL);
    pthread_mutex_lock(&p->lock);
    p->over++;
    pthread_cond_signal(&p->ended);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* True: it is to be called again. */
static bool drop_what_is_gone(struct mfs_workers *p)
{
    int64_t now = mfs_clock_mono();
    struct held *h, *next;

    if (now < p->looked + HELD)
        return true;
    p->looked = now;
    pthread_mutex_lock(&p->lock);
    DL_FOREACH_SAFE(p->held, h, next)
    if (!p->stop && now >= h->since + HELD && p->source->gone(p->arg, h->request, h->len)) {
        DL_DELETE(p->held, h);
        p->held_bytes -= h->len;
        free(h);
    }
    pthread_mutex_unlock(&p->lock);
    return p->source->look(p->arg);
}

/* Do all those that work wait for something, without having told? */
static void look(void *arg)
{
    struct mfs_workers *p = arg;
    bool again = drop_what_is_gone(p);

    pthread_mutex_lock(&p->lock);
    if (p->reading == 0 && p->taken == p->seen && !p->stop)
        let_one_read(p);
    p->seen = p->taken;
    again |= p->reading == 0 || p->held != NULL;
    pthread_mutex_unlock(&p->lock);
    if (again)
        mfs_ticker_work(&p->ticker);
}

void mfs_workers_deferred(struct mfs_workers *p)
{
    mfs_ticker_work(&p->ticker);
}

/* Lock held. Of those that serve, none is disturbed. */
static void kick_readers(struct mfs_workers *p)
{
    for (unsigned i = 0; i < p->made; i++)
        if (p->all[i].reads)
            pthread_kill(p->all[i].thread, KICK);
}

/* A signal gets nobody out of a wait that it is only about to begin: hence again and again. */
static void wait_for_all(struct mfs_workers *p)
{
    pthread_mutex_lock(&p->lock);
    while (!p->stop)
        pthread_cond_wait(&p->ended, &p->lock);
    while (p->over < p->made) {
        kick_readers(p);
        mfs_cond_wait(&p->ended, &p->lock, KICKS);
    }
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->made; i++)
        pthread_join(p->all[i].thread, NULL);
}

int mfs_workers_run(struct mfs_workers *p)
{
    int rc;

    pthread_mutex_lock(&p->lock);
    rc = make(p);
    pthread_mutex_unlock(&p->lock);
    if (rc == 0)
        rc = mfs_ticker_start_resting(&p->ticker, "fuse-look", LOOK, look, p);
    if (rc < 0)
        end_with(p, rc);
    wait_for_all(p);
    mfs_ticker_stop(&p->ticker);
    return p->rc;
}

void mfs_workers_stop(struct mfs_workers *p)
{
    end_with(p, 0);
}

static unsigned processors(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) < 0 ? READERS : (unsigned)CPU_COUNT(&set);
}

static int make_buffers(struct mfs_workers *p)
{
    for (unsigned i = 0; i < p->most + SPARE; i++) {
        struct worker *w = &p->all[i];

        w->pool = p;
        w->waits = (struct mfs_waits){waits_begin, waits_end, p};
        sem_init(&w->wake, 0, 0);
        w->buf =
            mmap(NULL, p->source->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (w->buf == MAP_FAILED) {
            w->buf = NULL;
            return -ENOMEM;
        }
    }
    return 0;
}

int mfs_workers_create(struct mfs_workers **workers, unsigned most, size_t held,
                       const struct mfs_workers_source *source, void *arg)
{
    struct sigaction kick = {.sa_handler = nothing};
    struct mfs_workers *p = calloc(1, sizeof *p);
    int rc = p != NULL ? mfs_cond_init(&p->ended) : -ENOMEM;

    *workers = NULL;
    if (rc < 0) {
        free(p);
        return rc;
    }
    pthread_mutex_init(&p->lock, NULL);
    p->source = source;
    p->arg = arg;
    p->most = most;
    p->hold = held;
    p->processors = processors();
    p->all = calloc(most + SPARE, sizeof *p->all);
    rc = p->all != NULL ? make_buffers(p) : -ENOMEM;
    if (rc == 0 && sigaction(KICK, &kick, NULL) < 0)
        rc = -errno;
    if (rc < 0)
        mfs_workers_destroy(p);
    else
        *workers = p;
    return rc;
}

void mfs_workers_destroy(struct mfs_workers *p)
{
    struct held *h, *next;

    if (p == NULL)
        return;
    DL_FOREACH_SAFE(p->held, h, next)
    free(h);
    for (unsigned i = 0; p->all != NULL && i < p->most + SPARE; i++)
        if (p->all[i].buf != NULL)
            munmap(p->all[i].buf, p->source->size);
    free(p->all);
    pthread_cond_destroy(&p->ended);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
