#include "show/live.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/threads/thread.h"
#include "show/paint.h"

#define TICK_MS     1000 /* the clock on the screen, and a look whether a signal has come */
#define STEP        (1 * MFS_SEC)
#define END_TIME    (300 * MFS_MSEC)
#define EXIT_SIGNAL 128 /* and its number: as a shell says it */

/* ---- samples --------------------------------------------------------------------------------- */

struct sampler {
    const struct mfs_live *live;
    int wake; /* gets a byte for each sample */
    pthread_t thread;
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t cond;
    bool stop, ended;
    void *fresh; /* NULL: none */
    struct mfs_err why;
};

static void look(struct sampler *t)
{
    struct mfs_err err = {0};
    void *sample = t->live->take(t->live->source, &err);

    pthread_mutex_lock(&t->mutex);
    if (sample) {
        t->live->free_sample(t->fresh);
        t->fresh = sample;
        err.code = 0;
    }
    t->why = err;
    pthread_mutex_unlock(&t->mutex);
}

static void *run(void *arg)
{
    struct sampler *t = arg;

    pthread_mutex_lock(&t->mutex);
    while (!t->stop) {
        pthread_mutex_unlock(&t->mutex);
        look(t);
        if (write(t->wake, "", 1) < 0 && errno != EAGAIN)
            mfs_clock_sleep(STEP); /* the screen looks by itself, too */
        pthread_mutex_lock(&t->mutex);
        if (!t->stop)
            mfs_cond_wait(&t->cond, &t->mutex, STEP);
    }
    t->ended = true;
    pthread_cond_broadcast(&t->cond);
    pthread_mutex_unlock(&t->mutex);
    return NULL;
}

static void destroy(struct sampler *t)
{
    t->live->free_sample(t->fresh);
    t->live->destroy(t->live->source);
    pthread_cond_destroy(&t->cond);
    pthread_mutex_destroy(&t->mutex);
    free(t);
}

static struct sampler *start(const struct mfs_live *live, int wake)
{
    struct sampler *t = calloc(1, sizeof *t);

    if (!t)
        return NULL;
    t->live = live;
    t->wake = wake;
    pthread_mutex_init(&t->mutex, NULL);
    mfs_cond_init(&t->cond);
    if (!mfs_thread_start(&t->thread, "sampler", run, t))
        return t;
    destroy(t);
    return NULL;
}

/* One that waits for what does not answer is left to that, so that nothing waits for it: false. */
static bool end(struct sampler *t)
{
    int64_t until = mfs_clock_mono() + END_TIME;
    bool ended;

    pthread_mutex_lock(&t->mutex);
    t->stop = true;
    pthread_cond_broadcast(&t->cond);
    while (!t->ended && mfs_clock_mono() < until)
        mfs_cond_wait(&t->cond, &t->mutex, END_TIME);
    ended = t->ended;
    pthread_mutex_unlock(&t->mutex);
    if (!ended)
        return false;
    /* What OpenSSL has for the thread is freed as it ends: not beside exit(3), which frees the
     * rest. */
    pthread_join(t->thread, NULL);
    destroy(t);
    return true;
}

/* ---- the screen ------------------------------------------------------------------------------ */

static volatile sig_atomic_t ended_by;

static void on_end(int signo)
{
    ended_by = signo;
}

static void hear_signals(void)
{
    static const int ends[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
    struct sigaction on = {.sa_handler = on_end};

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        sigaction(ends[i], &on, NULL);
}

static void take_fresh(struct sampler *t, void **sample, struct mfs_err *why)
{
    pthread_mutex_lock(&t->mutex);
    *why = t->why;
    if (t->fresh) {
        t->live->free_sample(*sample);
        *sample = t->fresh;
        t->fresh = NULL;
    }
    pthread_mutex_unlock(&t->mutex);
}

static int serve(const struct mfs_live *live, struct sampler *t, int wake)
{
    struct pollfd fds[] = {{STDIN_FILENO, POLLIN, 0}, {wake, POLLIN, 0}};
    enum mfs_live_key key = MFS_LIVE_NONE;
    struct mfs_err why = {0};
    void *sample = NULL;
    char bytes[64];

    while (!ended_by && key != MFS_LIVE_QUIT) {
        live->draw(live->view, sample, why.code ? why.msg : "");
        poll(fds, 2, TICK_MS);
        if (fds[0].revents & (POLLHUP | POLLERR))
            break; /* the terminal has gone */
        while (read(wake, bytes, sizeof bytes) == (ssize_t)sizeof bytes)
            ;
        do
            key = live->key(live->view, sample);
        while (key != MFS_LIVE_NONE && key != MFS_LIVE_QUIT);
        if (!live->paused(live->view))
            take_fresh(t, &sample, &why);
    }
    live->free_sample(sample);
    return ended_by ? EXIT_SIGNAL + ended_by : 0;
}

/* The terminal is taken before there is another thread, which its locale would change under. */
int mfs_live_run(const struct mfs_live *live, struct mfs_err *err)
{
    struct sampler *t;
    int fds[2], rc;

    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
        return mfs_err_set(err, -errno, "pipe: %s", strerror(errno));
    rc = mfs_paint_open(err);
    if (rc) {
        close(fds[0]);
        close(fds[1]);
        return rc;
    }
    hear_signals();
    t = start(live, fds[1]); /* may write to it until the process ends */
    rc = t ? serve(live, t, fds[0]) : mfs_err_set(err, -ENOMEM, "out of memory");
    mfs_paint_close();
    if (t && !end(t))
        _exit(rc);
    return rc;
}
