/* Threads and condition variables with our habits: monotonic time, names, signals blocked. */
#include "base/threads/thread.h"

#include <errno.h>
#include <signal.h>

#include "base/clock.h"
#include "base/waits.h"

int mfs_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    int rc = pthread_condattr_init(&attr);

    if (rc)
        return -rc;
    rc = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    if (!rc)
        rc = pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
    return -rc;
}

int mfs_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t ns)
{
    struct timespec until = mfs_clock_deadline(ns > 0 ? ns : 0);
    int rc;

    mfs_waits_begin();
    rc = pthread_cond_timedwait(cond, mutex, &until);
    mfs_waits_end();
    return -rc;
}

int mfs_thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *arg)
{
    sigset_t all, old;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc)
        return -rc;
    pthread_setname_np(*thread, name);
    return 0;
}
