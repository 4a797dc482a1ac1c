/* The agent's life: setting up, running, and the end.
 *
 * The end goes in steps, each bounded: clients and mounts first (programs get errors rather than a
 * mount that hangs on dead partitions), then the redis processes, then the files; only then is
 * `stop` answered. */
#include "lm/agent/partitions/incoming.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/crypto/secure.h"
#include "base/text.h"
#include "base/trusted_dir.h"
#include "cluster/placement.h"
#include "http/httpd.h"
#include "lm/redis/dump_dir.h"
#include "lm/jobs/job_threads.h"
#include "net/loop.h"
#include "net/supervisor.h"

#define AREA        "lm"
#define REPLY_PAUSE (100 * MFS_MSEC) /* for the reply to `stop` to leave */

/* ---- events ---------------------------------------------------------------------------------- */

void mfs_agent_event(struct mfs_agent *a, const char *what, const char *fmt, ...)
{
    struct mfs_msg_event *e;
    va_list ap;

    if (a->link.nevents == MFS_AGENT_EVENTS_KEPT) {
        memmove(a->link.event, a->link.event + 1,
                (MFS_AGENT_EVENTS_KEPT - 1) * sizeof *a->link.event);
        a->link.nevents--;
    }
    e = &a->link.event[a->link.nevents++];
    mfs_text_copy(e->what, sizeof e->what, what);
    va_start(ap, fmt);
    vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    mfs_info(AREA, "event %s: %s", e->what, e->text);
    mfs_agent_send_events(a);
}

void mfs_agent_refuse(const struct mfs_agent *a, struct mfs_conn *conn, uint64_t id, int code,
                      const char *why)
{
    mfs_conn_fail(conn, id, code, "node %u: %s", a->opts.node, why);
}

void mfs_agent_fail(struct mfs_agent *a, const struct mfs_err *err)
{
    if (!a->failed)
        *a->err = *err;
    a->failed = err->code;
    mfs_loop_stop(a->loop);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void finish(void *arg)
{
    struct mfs_agent *a = arg;

    mfs_loop_stop(a->loop);
}

static void remove_dump_dir(const struct mfs_agent *a)
{
    char above[PATH_MAX];
    int rc;

    if (!strcmp(a->path.dump, a->path.dir))
        return;
    rc = mfs_trusted_dir_remove(a->path.dump);
    if (rc) {
        mfs_warn(AREA, "can't remove %s: %s", a->path.dump, strerror(-rc));
        return;
    }
    mfs_text_copy(above, sizeof above, a->path.dump);
    *strrchr(above, '/') = '\0';
    rmdir(above); /* the deployment's last node on this machine succeeds in that */
    if (!mfs_text_format(above, sizeof above, "%s/dumps", a->path.dir))
        unlink(above);
}

static void redis_ended(struct mfs_agent *a)
{
    a->phase = MFS_AGENT_ENDED;
    remove_dump_dir(a);
    mfs_clients_close(a->clients); /* removes lm.sock */
    unlink(a->path.state);
    unlink(a->path.copy);
    mfs_info(AREA, "everything has ended");
    mfs_deferred_reply(&a->stop, MFS_MSG_STOP, NULL);
    if (!mfs_loop_timer(a->loop, REPLY_PAUSE, 0, finish, a))
        mfs_loop_stop(a->loop);
}

static void end_redis(struct mfs_agent *a)
{
    a->phase = MFS_AGENT_ENDING;
    mfs_agent_stop_redis(a, redis_ended);
}

static void clients_ended(struct mfs_agent *a)
{
    a->phase = MFS_AGENT_UNMOUNTED;
    mfs_deferred_reply(&a->clientless, MFS_MSG_END_CLIENTS, NULL);
    if (a->stopping)
        end_redis(a);
}

static void unmount(struct mfs_agent *a)
{
    mfs_info(AREA, "stopping");
    mfs_supervisor_stopping();
    a->phase = MFS_AGENT_UNMOUNTING;
    mfs_timer_cancel(a->measured.soon);
    a->measured.soon = NULL;
    mfs_agent_clients_unmount(a, clients_ended);
}

void mfs_agent_end_clients(struct mfs_agent *a, struct mfs_conn *conn, uint64_t id)
{
    mfs_deferred_replace(&a->clientless, conn, id);
    if (a->phase == MFS_AGENT_RUNNING)
        unmount(a);
    else if (a->phase != MFS_AGENT_UNMOUNTING)
        mfs_deferred_reply(&a->clientless, MFS_MSG_END_CLIENTS, NULL);
}

void mfs_agent_stop(struct mfs_agent *a, struct mfs_conn *conn, uint64_t id)
{
    if (conn && a->stop.conn) {
        mfs_conn_fail(conn, id, -EALREADY, "node %u: it is stopping already", a->opts.node);
        return;
    }
    if (conn)
        a->stop = mfs_reply_later(conn, id);
    a->stopping = true;
    if (a->phase == MFS_AGENT_RUNNING)
        unmount(a);
    else if (a->phase == MFS_AGENT_UNMOUNTED)
        end_redis(a);
}

/* ---- setting up ------------------------------------------------------------------------------ */

static void told_to_leave(void *arg, int signo)
{
    mfs_info(AREA, "signal %d", signo);
    mfs_agent_leave(arg);
}

static void ended_by_signal(void *arg, int signo)
{
    mfs_info(AREA, "signal %d", signo);
    mfs_agent_stop(arg, NULL, 0);
}

static void hangup(void *arg, int signo)
{
    int rc = mfs_log_reopen();

    (void)arg;
    (void)signo;
    if (rc < 0)
        mfs_warn(AREA, "the log goes on as it was: %s", strerror(-rc));
    else if (!rc)
        mfs_info(AREA, "log opened anew");
}

static void log_metrics(void *arg, int signo)
{
    const struct mfs_agent *a = arg;

    (void)signo;
    mfs_metrics_log(a->metrics);
}

static void tick(void *arg)
{
    struct mfs_agent *a = arg;

    if (a->phase == MFS_AGENT_ENDED)
        return;
    mfs_agent_look_after(a);
    mfs_agent_heartbeat_follow(a);
    mfs_agent_health_follow(a);
    mfs_agent_traffic_measure(a);
    mfs_agent_report(a);
    mfs_agent_measure(a);
}

static void redis_results(void *arg, uint32_t events)
{
    struct mfs_agent *a = arg;

    (void)events;
    mfs_worker_collect(a->redis_worker);
}

static void mount_results(void *arg, uint32_t events)
{
    struct mfs_agent *a = arg;

    (void)events;
    mfs_worker_collect(a->mount_worker);
}

static int open_workers(struct mfs_agent *a)
{
    int rc = mfs_worker_create(&a->redis_worker, "redis");

    if (!rc)
        rc = mfs_worker_create(&a->mount_worker, "mount");
    if (rc)
        return rc;
    a->redis_done =
        mfs_loop_watch(a->loop, mfs_worker_fd(a->redis_worker), EPOLLIN, redis_results, a);
    a->mount_done =
        mfs_loop_watch(a->loop, mfs_worker_fd(a->mount_worker), EPOLLIN, mount_results, a);
    return a->redis_done && a->mount_done ? 0 : -errno;
}

static int open_loop(struct mfs_agent *a)
{
    int rc;

    a->loop = mfs_loop_create();
    if (!a->loop)
        return -errno;
    /* Signals first, so that the workers are born with them blocked. */
    rc = mfs_loop_signal(a->loop, SIGTERM, told_to_leave, a);
    if (!rc)
        rc = mfs_loop_signal(a->loop, SIGINT, ended_by_signal, a);
    if (!rc)
        rc = mfs_loop_signal(a->loop, SIGHUP, hangup, a);
    if (!rc)
        rc = mfs_loop_signal(a->loop, SIGUSR1, log_metrics, a);
    if (!rc)
        rc = open_workers(a);
    if (!rc && !(a->job_threads = mfs_job_threads_create(a->loop)))
        rc = -ENOMEM;
    if (!rc && !mfs_loop_timer(a->loop, 0, a->opts.interval, tick, a))
        rc = -ENOMEM;
    return rc;
}

static int name_files(struct mfs_agent *a, struct mfs_err *err)
{
    char probe[MFS_UNIXPATH_MAX];
    int rc;

    rc = mfs_text_format(a->path.dir, sizeof a->path.dir, "%s/node-%u", a->opts.state_dir,
                         a->opts.node);
    if (!rc)
        rc = mfs_text_format(a->path.state, sizeof a->path.state, "%s/lm.json", a->path.dir);
    if (!rc)
        rc = mfs_text_format(a->path.copy, sizeof a->path.copy, "%s/cm.json", a->path.dir);
    if (!rc)
        rc = mfs_text_format(a->path.adopt_log, sizeof a->path.adopt_log, "%s/adopt.log",
                             a->path.dir);
    if (!rc)
        rc = mfs_text_format(a->path.client_address, sizeof a->path.client_address,
                             "unix:%s/lm.sock", a->path.dir);
    if (!rc)
        rc = mfs_redis_unix_path(a->path.dir, MFS_PARTITIONS_MAX, probe);
    return rc ? mfs_err_set(err, rc,
                            "the path %s is too long for sockets, choose a shorter "
                            "--state-dir",
                            a->opts.state_dir)
              : 0;
}

/* Where it is, for cm to remove it when there is no Local Manager any more. */
static int note_dump_dir(const struct mfs_agent *a)
{
    char record[PATH_MAX], line[PATH_MAX];
    int rc = mfs_text_format(record, sizeof record, "%s/dumps", a->path.dir);

    if (!rc)
        rc = mfs_text_format(line, sizeof line, "%s\n", a->path.dump);
    return rc ? rc : mfs_file_note(record, line, strlen(line), 0640);
}

/* Dumps are for disks: the state directory is in memory as a rule, where a dump would need the very
 * memory that a migration is to free. */
static void open_dump_dir(struct mfs_agent *a)
{
    const char *base = a->opts.dump_dir ? a->opts.dump_dir : "/var/tmp";
    unsigned long long id = mfs_hash64(a->opts.state_dir, strlen(a->opts.state_dir), 0);
    struct mfs_err err = {0};
    int rc = mfs_text_format(a->path.dump, sizeof a->path.dump, "%s/memefs-%s-%08llx/node-%u", base,
                             a->opts.name, id & 0xffffffff, a->opts.node);

    if (rc)
        mfs_err_set(&err, rc, "%s: %s", base, strerror(-rc));
    else
        rc = mfs_dump_dir_make(a->path.dump, &err);
    if (!rc && (rc = note_dump_dir(a)))
        mfs_err_set(&err, rc, "%s/dumps: %s", a->path.dir, strerror(-rc));
    if (!rc)
        return;
    mfs_warn(AREA, "dumps go to %s: %s", a->path.dir, err.msg);
    mfs_text_copy(a->path.dump, sizeof a->path.dump, a->path.dir);
}

/* cm writes its address into the state directory, where there is one in common; that is the truth
 * after cm came back elsewhere. */
static void cm_address(const struct mfs_agent *a, char *out, size_t n)
{
    char file[PATH_MAX];

    if (!mfs_text_format(file, sizeof file, "%s/cm.addr", a->opts.state_dir) &&
        !access(file, R_OK) && !mfs_text_format(out, n, "file:%s", file))
        return;
    mfs_text_copy(out, n, a->opts.cm);
}

static int open_metrics(struct mfs_agent *a)
{
    a->metrics = mfs_metrics_create();
    return a->metrics ? mfs_metric_set_create(&a->figures, a->metrics, mfs_agent_metrics,
                                              MFS_AGENT_METRICS)
                      : -ENOMEM;
}

static int open_agent(struct mfs_agent *a, struct mfs_err *err)
{
    char cm[PATH_MAX], secret[PATH_MAX];
    int rc;

    rc = name_files(a, err);
    if (rc)
        return rc;
    open_dump_dir(a);
    rc = mfs_text_format(secret, sizeof secret, "%s/secret", a->opts.state_dir);
    if (!rc)
        rc = mfs_secret_load(secret, &a->secret, err);
    if (rc == -ENOENT)
        return mfs_err_set(err, rc,
                           "no secret: %s is not there; on another machine than cm's it is handed "
                           "over (--secret given)",
                           secret);
    if (rc)
        return rc;
    mfs_secure_warn();
    rc = open_metrics(a);
    if (!rc)
        rc = open_loop(a);
    if (rc)
        return mfs_err_set(err, rc, "can't set up the event loop: %s", strerror(-rc));
    mfs_agent_traffic_begin(a);
    mfs_agent_serve_begin(a);
    rc = mfs_agent_clients_open(a, err);
    if (!rc)
        rc = mfs_agent_restore(a, err);
    if (!rc)
        mfs_agent_succession_begin(a);
    if (!rc && mfs_agent_expect_cm(a))
        rc = mfs_err_set(err, -ENOMEM, "out of memory");
    if (rc)
        return rc;
    cm_address(a, cm, sizeof cm);
    a->link.uplink =
        mfs_uplink_create(a->loop, cm, &a->secret, "lm", &mfs_agent_cm_service, a, err);
    return a->link.uplink ? 0 : err->code;
}

/* Workers first: their jobs refer to everything else. */
static void close_agent(struct mfs_agent *a)
{
    a->phase = MFS_AGENT_ENDED; /* results that come now lead to nothing new */
    mfs_agent_copies_cancel(a);
    mfs_agent_images_drop(a);
    mfs_worker_destroy(a->mount_worker);
    mfs_worker_destroy(a->redis_worker);
    mfs_job_threads_destroy(a->job_threads);
    mfs_agent_sessions_free(a);
    mfs_agent_probe_end(a);
    mfs_agent_copies_free(a);
    mfs_deferred_drop(&a->clientless);
    mfs_deferred_drop(&a->stop);
    mfs_agent_succession_end(a);
    mfs_uplink_destroy(a->link.uplink);
    mfs_agent_relay_end(a);
    mfs_httpd_destroy(a->http);
    mfs_clients_destroy(a->clients);
    mfs_mounter_destroy(a->mounter);
    mfs_agent_traffic_end(a);
    mfs_agent_parts_free(a);
    mfs_instances_destroy(a->instances);
    mfs_loop_destroy(a->loop);
    mfs_secret_free(&a->secret);
    free(a->table);
    free(a->measured.sample.part);
    free(a->link.lost);
    mfs_metric_set_destroy(a->figures);
    mfs_metrics_destroy(a->metrics);
    free(a);
}

int mfs_agent_run(const struct mfs_agent_opts *opts, void (*started)(void *arg), void *arg,
                  struct mfs_err *err)
{
    struct mfs_agent *a = calloc(1, sizeof *a);
    int rc;

    if (!a)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    a->opts = *opts;
    a->arg = arg;
    a->err = err;
    rc = open_agent(a, err);
    if (!rc) {
        if (started)
            started(arg);
        mfs_supervisor_ready(a->loop);
        rc = mfs_loop_run(a->loop);
        if (rc)
            mfs_err_set(err, rc, "event loop: %s", strerror(-rc));
        else
            rc = a->failed;
    }
    if (rc && a->path.dump[0] && !a->parts && !a->copies)
        remove_dump_dir(a); /* nothing is in it, and nobody may come after us */
    close_agent(a);
    return rc;
}
