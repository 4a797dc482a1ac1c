/* The managed mount; the header shows its states. Jobs of the worker do what may hang (prepare,
 * probe, end). What their results mean depends on the state and on `ending`, which may have changed
 * meanwhile; the mount comes to UP only by PROBING, and leaves ENDING only to IDLE. */
#include "lm/mount/mounter.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/log.h"
#include "host/mountinfo.h"
#include "base/text.h"
#include "lm/mount/client_proc.h"
#include "lm/mount/mounter_impl.h"
#include "proto/times.h"

#define AREA        "mount"
#define PAUSE_LEAST (1 * MFS_SEC)
#define PAUSE_MOST  (30 * MFS_SEC)
#define UP_STEADY   (60 * MFS_SEC) /* after so long the next death counts as the first */

static_assert(PAUSE_LEAST < PAUSE_MOST, "the pause grows");
static_assert(PAUSE_MOST < UP_STEADY, "a client that dies again and again is never steady");

enum state { IDLE, PREPARING, STARTING, PROBING, UP, WAITING, ENDING };

struct mfs_mounter {
    struct mfs_mounter_opts o;
    struct mfs_client_proc files;
    enum state state;
    bool ending; /* end as soon as the job under way has come back */
    bool keep;   /* was up once: start again when the client dies */
    char path[MFS_PATH_MAX], options[MFS_TEXT_MAX];
    char real[MFS_PATH_MAX];       /* the same without symbolic links, as the kernel lists it */
    struct mfs_proc client;        /* pid 0: none */
    struct mfs_bind_mounts *binds; /* of a mount that died; used by jobs alone */
    struct mfs_timer *timer;       /* STARTING: limit; WAITING: pause */
    int64_t pause, up_since;
    struct mfs_mounter_waiter *starters,
        *stoppers; /* callers that wait for it to be up, to be gone */
};

static void begin_attempt(struct mfs_mounter *m);
static void end_now(struct mfs_mounter *m);

struct mfs_mounter *mfs_mounter_create(const struct mfs_mounter_opts *opts)
{
    struct mfs_mounter *m = calloc(1, sizeof *m);

    if (m)
        m->binds = mfs_bind_mounts_create();
    if (m && !m->binds) {
        free(m);
        return NULL;
    }
    if (m) {
        m->o = *opts;
        m->files = (struct mfs_client_proc){
            .name = opts->name,
            .state_dir = opts->state_dir,
            .dir = opts->dir,
            .address = opts->address,
            .log_format = opts->log_format,
        };
        m->pause = PAUSE_LEAST;
    }
    return m;
}

void mfs_mounter_destroy(struct mfs_mounter *m)
{
    if (!m)
        return;
    mfs_timer_cancel(m->timer);
    mfs_mounter_forget(&m->starters);
    mfs_mounter_forget(&m->stoppers);
    mfs_bind_mounts_destroy(m->binds);
    free(m);
}

void mfs_mounter_client(const struct mfs_mounter *m, struct mfs_client *client)
{
    *client = (struct mfs_client){.proc = m->client};
    memcpy(client->mount, m->real, sizeof client->mount);
}

const char *mfs_mounter_path(const struct mfs_mounter *m)
{
    return m->path;
}

const char *mfs_mounter_options(const struct mfs_mounter *m)
{
    return m->options;
}

bool mfs_mounter_up(const struct mfs_mounter *m)
{
    return m->state == UP;
}

static void event(struct mfs_mounter *m, const char *what, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void event(struct mfs_mounter *m, const char *what, const char *fmt, ...)
{
    char text[MFS_TEXT_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    m->o.hooks->event(m->o.arg, what, text);
}

static void set_timer(struct mfs_mounter *m, int64_t after, void (*fire)(void *arg))
{
    mfs_timer_cancel(m->timer);
    m->timer = fire ? mfs_loop_timer(m->o.loop, after, 0, fire, m) : NULL;
}

static void become_idle(struct mfs_mounter *m)
{
    set_timer(m, 0, NULL);
    mfs_client_proc_forget(&m->files);
    m->state = IDLE;
    m->ending = m->keep = false;
    m->client = (struct mfs_proc){0};
    m->path[0] = m->real[0] = m->options[0] = '\0';
    m->pause = PAUSE_LEAST;
    m->o.hooks->changed(m->o.arg);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static void submit(struct mfs_mounter *m, void (*run)(struct mfs_job *),
                   void (*done)(struct mfs_job *))
{
    struct mfs_mount_job *j = calloc(1, sizeof *j);

    if (!j) {
        /* A few hundred bytes: without them nothing at all goes on in this process. */
        mfs_error(AREA, "out of memory");
        abort();
    }
    j->job.run = run;
    j->job.done = done;
    j->m = m;
    j->binds = m->binds;
    j->u.client = m->client;
    memcpy(j->u.path, m->real, sizeof j->u.path);
    mfs_worker_submit(m->o.worker, &j->job);
}

/* ---- attempts -------------------------------------------------------------------------------- */

static void pause_over(void *arg)
{
    struct mfs_mounter *m = arg;

    m->timer = NULL;
    begin_attempt(m);
}

/* What goes for a failed attempt: the first reports and gives up, a later one tries again. */
static void attempt_failed(struct mfs_mounter *m, int code, const char *why)
{
    struct mfs_err err = {0};

    mfs_err_set(&err, code, "can't mount %s: %s", m->path, why);
    mfs_error(AREA, "%s", err.msg);
    mfs_mounter_answer(&m->starters, &err);
    if (m->keep) {
        event(m, "mount-failed", "%s; next attempt in %lld s", err.msg,
              (long long)(m->pause / MFS_SEC));
        m->state = WAITING;
        set_timer(m, m->pause, pause_over);
        m->pause = m->pause * 2 < PAUSE_MOST ? m->pause * 2 : PAUSE_MOST;
        return;
    }
    end_now(m);
}

static void restored(struct mfs_job *job)
{
    struct mfs_mount_job *j = (struct mfs_mount_job *)job;

    if (j->bound.restored)
        event(j->m, "binds-restored", "%s: %u binds of it", j->u.path, j->bound.restored);
    if (j->bound.lost)
        event(j->m, "binds-lost", "%s: %u binds of it; %.300s", j->u.path, j->bound.lost,
              j->bound.example);
    free(j);
}

static void probed(struct mfs_job *job)
{
    struct mfs_mount_job *j = (struct mfs_mount_job *)job;
    struct mfs_mounter *m = j->m;
    int rc = j->rc;

    free(j);
    if (m->state != PROBING)
        return; /* the client died meanwhile, which has been dealt with */
    if (m->ending) {
        end_now(m);
    } else if (rc) {
        attempt_failed(
            m, rc, rc == -ENOENT ? "the client says ready, but nothing is mounted" : strerror(-rc));
    } else {
        set_timer(m, 0, NULL);
        m->state = UP;
        m->keep = true;
        m->up_since = mfs_clock_mono();
        event(m, "mounted", "%s, client %d", m->path, (int)m->client.pid);
        m->o.hooks->changed(m->o.arg);
        mfs_mounter_answer(&m->starters, NULL);
        if (mfs_bind_mounts_any(m->binds))
            submit(m, mfs_mount_restore, restored);
    }
}

void mfs_mounter_ready(struct mfs_mounter *m, const struct mfs_client *client)
{
    if (client->proc.pid != m->client.pid || m->state != STARTING || m->ending)
        return;
    m->state = PROBING;
    submit(m, mfs_mount_probe, probed);
}

static void not_ready(void *arg)
{
    struct mfs_mounter *m = arg;

    m->timer = NULL;
    if (m->state == STARTING || m->state == PROBING) {
        mfs_proc_kill(&m->client, SIGKILL);
        attempt_failed(m, -ETIMEDOUT, "the client did not get ready in 30 s");
    }
}

static int start_client(struct mfs_mounter *m)
{
    struct mfs_client client = {0};
    int rc;

    m->files.memory = m->o.hooks->memory(m->o.arg);
    rc = mfs_client_proc_start(&m->files, m->real, m->options, &m->client);

    if (rc)
        return rc;
    mfs_mounter_client(m, &client);
    return m->o.hooks->started(m->o.arg, &client);
}

static void prepared(struct mfs_job *job)
{
    struct mfs_mount_job *j = (struct mfs_mount_job *)job;
    struct mfs_mounter *m = j->m;
    int rc = j->rc;

    if (!rc)
        memcpy(m->real, j->u.path, sizeof m->real);
    free(j);
    if (m->ending) {
        end_now(m);
        return;
    }
    if (!rc) {
        m->state = STARTING;
        rc = start_client(m);
    }
    if (rc)
        attempt_failed(m, rc, rc == -EBUSY ? "something is mounted there already" : strerror(-rc));
    else
        set_timer(m, MFS_CLIENT_READY_TIME, not_ready);
    m->o.hooks->changed(m->o.arg);
}

static void begin_attempt(struct mfs_mounter *m)
{
    int rc = mfs_client_proc_note(&m->files, m->path);

    m->client = (struct mfs_proc){0};
    memcpy(m->real, m->path, sizeof m->real);
    if (rc) {
        attempt_failed(m, rc, strerror(-rc));
        return;
    }
    m->state = PREPARING;
    submit(m, mfs_mount_prepare, prepared);
}

/* Still mounted? Between an unmount and the end of its client we are UP, but not. */
static bool in_place(const struct mfs_mounter *m)
{
    struct mfs_mountinfo info;

    return mfs_mountinfo_find(m->real, &info) == 0 && !strcmp(info.fstype, "fuse.memefs");
}

void mfs_mounter_start(struct mfs_mounter *m, const char *path, const char *options,
                       mfs_mounter_done *done, void *arg)
{
    struct mfs_err err = {0};

    if (m->state == UP && !strcmp(m->path, path) && in_place(m)) {
        mfs_mounter_answer_later(m->o.loop, done, arg, &err);
        return;
    }
    if (m->state != IDLE && m->state != ENDING && !m->ending && !strcmp(m->path, path)) {
        if (!mfs_mounter_await(&m->starters, done, arg))
            return;
        mfs_err_set(&err, -ENOMEM, "out of memory");
    } else if (m->state != IDLE) {
        mfs_err_set(&err, -EBUSY, "%s is %s here", m->path,
                    m->state == UP ? "mounted" : "being mounted or unmounted");
    } else if (path[0] != '/' || strpbrk(path, "\n") ||
               (strlen(path) > 1 && path[strlen(path) - 1] == '/')) {
        mfs_err_set(&err, -EINVAL, "\"%s\" is no absolute path without a slash at its end", path);
    } else if (mfs_text_copy(m->options, sizeof m->options, options) ||
               mfs_text_copy(m->path, sizeof m->path, path)) {
        mfs_err_set(&err, -ENAMETOOLONG, "path or options are too long");
    } else if (mfs_mounter_await(&m->starters, done, arg)) {
        mfs_err_set(&err, -ENOMEM, "out of memory");
    }
    if (err.code)
        mfs_mounter_answer_later(m->o.loop, done, arg, &err);
    else
        begin_attempt(m);
}

/* ---- death and end --------------------------------------------------------------------------- */

/* How a client ended that an earlier Local Manager has started is unknown. But one that died leaves
 * its mount behind. */
static bool was_unmounted(const struct mfs_mounter *m, int status)
{
    struct mfs_mountinfo info;
    int rc;

    if (status >= 0)
        return WIFEXITED(status) && !WEXITSTATUS(status);
    rc = mfs_mountinfo_find(m->real, &info);
    return rc == -ENOENT || (!rc && strcmp(info.fstype, "fuse.memefs") != 0);
}

bool mfs_mounter_gone(struct mfs_mounter *m, const struct mfs_client *client, int status)
{
    char why[256];

    if (!m->client.pid || client->proc.pid != m->client.pid)
        return false;
    if (m->ending || m->state == ENDING)
        return true;
    m->client = (struct mfs_proc){0};
    if (m->state == STARTING || m->state == PROBING) {
        set_timer(m, 0, NULL);
        mfs_client_proc_last_words(&m->files, why, sizeof why);
        attempt_failed(m, -ECHILD, why);
    } else if (m->state == UP && was_unmounted(m, status)) {
        event(m, "unmounted", "%s: its client ended by itself", m->path);
        if (m->starters)
            begin_attempt(m);
        else
            become_idle(m);
    } else if (m->state == UP) {
        if (WIFSIGNALED(status))
            snprintf(why, sizeof why, "signal %d", WTERMSIG(status));
        else
            mfs_client_proc_last_words(&m->files, why, sizeof why);
        event(m, "client-died", "%s: client %d: %s; mounting again in %lld s", m->path,
              (int)client->proc.pid, why, (long long)(m->pause / MFS_SEC));
        if (mfs_clock_mono() - m->up_since > UP_STEADY)
            m->pause = PAUSE_LEAST;
        m->state = WAITING;
        set_timer(m, m->pause, pause_over);
        m->pause = m->pause * 2 < PAUSE_MOST ? m->pause * 2 : PAUSE_MOST;
    }
    return true;
}

static void ended(struct mfs_job *job)
{
    struct mfs_mount_job *j = (struct mfs_mount_job *)job;
    struct mfs_mounter *m = j->m;
    struct mfs_err err = {0};

    if (j->rc)
        mfs_err_set(&err, j->rc, "%s: client %d can't be ended", m->path, (int)m->client.pid);
    free(j);
    become_idle(m);
    mfs_mounter_answer(&m->stoppers, err.code ? &err : NULL);
}

/* No job is under way. */
static void end_now(struct mfs_mounter *m)
{
    struct mfs_err err = {0};

    mfs_err_set(&err, -ECANCELED, "%s is being unmounted", m->path);
    mfs_mounter_answer(&m->starters, &err);
    set_timer(m, 0, NULL);
    m->state = ENDING;
    submit(m, mfs_mount_end, ended);
}

void mfs_mounter_stop(struct mfs_mounter *m, mfs_mounter_done *done, void *arg)
{
    bool stopping = m->stoppers || m->state == ENDING;
    struct mfs_err err = {0};

    if (m->state != IDLE && mfs_mounter_await(&m->stoppers, done, arg))
        mfs_err_set(&err, -ENOMEM, "out of memory");
    if (m->state == IDLE || err.code) {
        mfs_mounter_answer_later(m->o.loop, done, arg, &err);
        return;
    }
    if (stopping)
        return;
    m->ending = true;
    if (m->state != PREPARING && m->state != PROBING)
        end_now(m);
}

void mfs_mounter_adopt(struct mfs_mounter *m, const char *path, const char *options,
                       const struct mfs_client *client)
{
    mfs_text_copy(m->path, sizeof m->path, path);
    mfs_text_copy(m->options, sizeof m->options, options);
    mfs_text_copy(m->real, sizeof m->real, client->mount);
    m->client = client->proc;
    m->keep = true;
    m->up_since = mfs_clock_mono();
    m->state = UP;
    if (!m->client.pid) {
        m->state = WAITING;
        set_timer(m, 0, pause_over);
    }
}

void mfs_mounter_end_unlisted(struct mfs_mounter *m)
{
    if (!m->client.pid)
        mfs_client_proc_end_unlisted(&m->files);
}
