/* All of our signals are blocked in every thread, and taken by this one with sigtimedwait. It ends
 * the mount in two steps: the kernel is asked to unmount while requests are still served, and then
 * the workers are stopped. */
#include "fuse/mount/signals.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/threads/thread.h"
#include "client/client.h"
#include "fuse/mount/daemon.h"
#include "fuse/mount/mount.h"
#include "fuse/mount/mountpoint.h"
#include "fuse/mount/workers.h"

#define TICK      (50 * MFS_MSEC)
#define UMOUNTING (1 * MFS_SEC) /* time for the kernel to end the session after an unmount */

static void fill(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGHUP);
    sigaddset(set, SIGUSR1);
}

void mfs_signals_block_hangup(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

void mfs_signals_block(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigset_t set;

    fill(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
}

/* Waits for one of our signals, until the mount is announced only a little; 0 when none came. */
static int next_signal(bool announced)
{
    const struct timespec tick = {0, TICK};
    sigset_t set;
    int signo;

    fill(&set);
    signo = announced ? sigwaitinfo(&set, NULL) : sigtimedwait(&set, NULL, &tick);
    return signo > 0 ? signo : 0;
}

/* With requests still being served, so that pages written through mmap come in. Where programs
 * still use the mount it only goes out of sight, and they get errors. */
static void end_mount(struct mfs_signals *s, int signo)
{
    const char *path = s->m->config->path;
    int64_t end;
    bool later;
    int rc;

    mfs_info("mount", "%s: ending on signal %d", path, signo);
    mfs_notify_stop(s->m->notify); /* the kernel may need answers to let it go */
    rc = mfs_mountpoint_release(path, s->m->device, &later);
    if (rc < 0)
        mfs_info("mount", "%s: unmount: %s", path, strerror(-rc));
    end = mfs_clock_mono() + (rc < 0 || later ? 0 : UMOUNTING);
    while (!atomic_load(&s->stop) && mfs_clock_mono() < end)
        mfs_clock_sleep(TICK);
    if (!atomic_load(&s->stop))
        mfs_workers_stop(s->m->workers);
}

/* Without a log file it is that of the terminal that has gone. */
static void hang_up(struct mfs_signals *s)
{
    int rc;

    if (s->m->config->log == NULL) {
        end_mount(s, SIGHUP);
        return;
    }
    rc = mfs_log_reopen();
    if (rc < 0)
        mfs_warn("mount", "%s: the log goes on as it was: %s", s->m->config->log, strerror(-rc));
    else
        mfs_info("mount", "%s: log opened anew", s->m->config->path);
}

static void announce(struct mfs_signals *s)
{
    struct mfs_fuse *m = s->m;
    dev_t device = 0;
    int rc = mfs_mountpoint_tune(m->config->path, MFS_CAPACITY_REQUEST, &device);

    atomic_store(&m->device, device);
    if (rc < 0) {
        struct mfs_err err;

        mfs_err_set(&err, rc, "%s: the mount does not answer: %s", m->config->path, strerror(-rc));
        mfs_error("mount", "%s", err.msg);
        mfs_daemon_ready(s->channel, &err);
        end_mount(s, 0);
        return;
    }
    mfs_info("mount", "%s: mounted", m->config->path);
    mfs_client_ready(m->client);
    mfs_daemon_ready(s->channel, NULL);
}

static void *run(void *arg)
{
    struct mfs_signals *s = arg;
    bool announced = false;

    while (!atomic_load(&s->stop)) {
        int signo = next_signal(announced);

        if (atomic_load(&s->stop)) /* the signal may be that of mfs_signals_stop */
            break;
        if (signo == SIGUSR1)
            mfs_metrics_log(s->m->metrics);
        else if (signo == SIGHUP)
            hang_up(s);
        else if (signo != 0)
            end_mount(s, signo);
        if (!announced && atomic_load(&s->m->answers)) {
            announced = true;
            announce(s);
        }
    }
    return NULL;
}

int mfs_signals_start(struct mfs_signals *s, struct mfs_fuse *m, int channel)
{
    s->m = m;
    s->channel = channel;
    atomic_init(&s->stop, false);
    return mfs_thread_start(&s->thread, "signals", run, s);
}

void mfs_signals_stop(struct mfs_signals *s)
{
    atomic_store(&s->stop, true);
    pthread_kill(s->thread, SIGUSR1); /* which it waits for with all others */
    pthread_join(s->thread, NULL);
}
