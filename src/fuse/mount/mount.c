/* From configuration to unmount, in this order, and back in the reverse:
 *
 *   metrics   that all of them count in
 *   client    control, store, vfs (client/client.h)
 *   kernel    what this kernel has been told
 *   session   /dev/fuse, mount
 *   notify    dropping of pages
 *   client    is started: failovers, what clients that died have left
 *   signals   and the news that the mount answers
 *   workers   until the unmount or a signal
 */
#include "fuse/mount/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "client/client.h"
#include "fuse/inside/inside.h"
#include "fuse/mount/awake.h"
#include "fuse/mount/daemon.h"
#include "fuse/mount/device.h"
#include "fuse/mount/mountpoint.h"
#include "fuse/mount/recaller.h"
#include "fuse/mount/signals.h"
#include "host/proc.h"
#include "fuse/mount/workers.h"
#include "fuse/uring/uring.h"

#define TABLE_WAIT   (30 * MFS_SEC) /* a deployment that is just starting */
#define RELAXED_LIFE 1.0            /* s */

#define TIDY_SHARE 8U /* part of the memory that a search for what others left may take */

#define LITTLE_MEMORY (256U << 20)

/* libfuse's own messages; most are about requests whose callers wait no more. */
static void fuse_says(enum fuse_log_level level, const char *fmt, va_list ap)
{
    char line[256];

    vsnprintf(line, sizeof line, fmt, ap);
    line[strcspn(line, "\n")] = '\0';
    mfs_log_write(level <= FUSE_LOG_WARNING ? MFS_LOG_WARN : MFS_LOG_DEBUG, "fuse", "%s", line);
}

/* How many workers may serve what has to wait for other mounts: seven eighths. */
static unsigned admitted_at_once(const struct mfs_mount_options *o)
{
    return o->workers - (o->workers + 7) / 8;
}

static int start_metrics(struct mfs_fuse *m, struct mfs_err *err)
{
    m->metrics = mfs_metrics_create();
    if (m->metrics == NULL || mfs_request_metrics_create(&m->requests, m->metrics) < 0)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    return 0;
}

static int start_client(struct mfs_fuse *m, struct mfs_err *err)
{
    const struct mfs_mount_config *config = m->config;
    const struct mfs_mount_options *o = &config->options;
    struct mfs_vfs_opts vfs = {.threads = o->threads,
                               .write_window = m->shares.write_window,
                               .read_window = m->shares.read_window,
                               .contents = m->shares.contents,
                               .files = m->shares.files,
                               .names = m->shares.names,
                               .heads = m->shares.heads,
                               .no_atime = o->no_atime,
                               .no_diratime = o->no_diratime,
                               .leases = true,
                               .metrics = m->metrics};
    struct mfs_client_opts opts = {.paths = config->paths,
                                   .lm = config->lm,
                                   .cm = config->cm,
                                   .label = config->path,
                                   .table_wait = TABLE_WAIT,
                                   .io_timeout = o->io_timeout * MFS_SEC,
                                   .full_wait = o->full_wait * MFS_SEC,
                                   .vfs = &vfs,
                                   .metrics = m->metrics};
    int rc = mfs_client_create(&m->client, &opts, err);

    if (rc == 0)
        m->vfs = mfs_client_vfs(m->client);
    return rc;
}

/* What this kernel has been told, and is asking. */
static int start_kernel(struct mfs_fuse *m, struct mfs_err *err)
{
    const struct mfs_mount_options *o = &m->config->options;
    const struct mfs_inside_opts inside = {
        .path = m->config->path, .files = !o->no_stats, .slow = o->slow};

    m->replied = mfs_replied_create();
    m->nodeids = mfs_nodeids_create();
    m->retries = mfs_retries_create(m->vfs);
    m->lookup_attrs = mfs_lookup_attrs_create();
    m->recalls = mfs_recalls_create();
    m->parts = mfs_parts_create();
    m->admission = mfs_admission_create(admitted_at_once(o));
    if (m->replied == NULL || m->nodeids == NULL || m->retries == NULL || m->lookup_attrs == NULL ||
        m->recalls == NULL || m->parts == NULL || m->admission == NULL)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    return mfs_inside_create(m, &inside) < 0 ? mfs_err_set(err, -ENOMEM, "out of memory") : 0;
}

/* libfuse tells the reason to the log alone. The usual one is worth more. */
static int refused(const char *path, struct mfs_err *err)
{
    bool usable = !access("/dev/fuse", R_OK | W_OK);

    if (!usable && errno == EACCES)
        return mfs_err_set(err, -EACCES,
                           "%s: /dev/fuse: this user may not open it; its mode should be 0666, or "
                           "the user in its group",
                           path);
    if (!usable)
        return mfs_err_set(err, -ENODEV,
                           "%s: /dev/fuse: %s; modprobe fuse, in a container "
                           "--device /dev/fuse --cap-add SYS_ADMIN",
                           path, strerror(errno));
    return mfs_err_set(err, -EIO, "%s: the kernel refused the mount, see the log", path);
}

static int new_session(struct mfs_fuse *m, const char *options, struct mfs_err *err)
{
    struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
    int rc = -ENOMEM;

    if (fuse_opt_add_arg(&args, "memefs") == 0 && fuse_opt_add_arg(&args, "-o") == 0 &&
        fuse_opt_add_arg(&args, options) == 0) {
        m->se = fuse_session_new(&args, &mfs_fuse_ops, sizeof mfs_fuse_ops, m);
        rc = m->se != NULL ? 0 : -EINVAL;
    }
    fuse_opt_free_args(&args);
    if (rc < 0)
        return mfs_err_set(err, rc, "mount options %s: refused by libfuse", options);
    if (fuse_session_mount(m->se, m->config->path) < 0)
        return refused(m->config->path, err);
    rc = mfs_device_attach(m->se, m->shares.kept);
    return rc < 0 ? mfs_err_set(err, rc, "/dev/fuse: %s", strerror(-rc)) : 0;
}

static int start_session(struct mfs_fuse *m, struct mfs_err *err)
{
    const struct mfs_buf *given = &m->config->options.kernel;
    struct mfs_buf options;
    int rc;

    mfs_buf_init(&options);
    rc = mfs_buf_printf(&options, "default_permissions,fsname=%s,subtype=memefs%s%.*s",
                        m->config->paths->name, geteuid() == 0 ? ",allow_other" : "",
                        (int)mfs_buf_len(given), mfs_buf_data(given));
    if (rc < 0)
        return mfs_err_set(err, rc, "out of memory");
    rc = new_session(m, mfs_buf_data(&options), err);
    mfs_buf_fini(&options);
    if (rc < 0)
        return rc;
    rc = mfs_notify_create(&m->notify, m);
    if (rc == 0)
        rc = mfs_notify_create(&m->names, m);
    if (rc == 0)
        rc = mfs_notify_create(&m->writes, m);
    if (rc == 0)
        rc = mfs_recaller_create(&m->recaller, m);
    if (rc < 0)
        return mfs_err_set(err, rc, "thread: %s", strerror(-rc));
    mfs_vfs_on_invalidate(m->vfs, mfs_notify_invalidate, m->notify);
    mfs_vfs_on_revoke(m->vfs, mfs_notify_revoke, mfs_notify_distrust, m->names);
    mfs_vfs_on_recall(m->vfs, mfs_recaller_recall, m->recaller);
    return 0;
}

/* Without it requests come by /dev/fuse. */
static void start_uring(struct mfs_fuse *m)
{
    const struct mfs_mount_options *o = &m->config->options;
    const struct mfs_uring_source source = {.path = m->config->path,
                                            .most = o->workers,
                                            .admitted = admitted_at_once(o),
                                            .kept = (size_t)m->shares.kept * o->workers,
                                            .may_wait = mfs_device_may_wait,
                                            .urgency = mfs_device_urgency,
                                            .serve = mfs_device_serve,
                                            .arg = m};
    int rc;

    if (o->uring != MFS_MOUNT_URING_ON)
        return;
    rc = mfs_uring_create(&m->uring, fuse_session_fd(m->se), &source);
    if (rc < 0)
        mfs_warn("mount",
                 "uring: this process may not use io_uring: %s; requests come by /dev/fuse",
                 strerror(-rc));
}

static int serve(struct mfs_fuse *m, int channel, struct mfs_err *err)
{
    struct mfs_signals signals;
    int rc = mfs_workers_create(&m->workers, m->config->options.workers, m->shares.held,
                                &mfs_device_source, m);

    start_uring(m);
    if (rc == 0)
        rc = mfs_signals_start(&signals, m, channel);
    if (rc == 0) {
        m->awake = m->config->options.no_awake ? NULL : mfs_awake_start(m->requests);
        rc = mfs_workers_run(m->workers);
        mfs_inside_stop(m); /* its last answers may go by the rings */
        mfs_uring_stop(m->uring);
        mfs_awake_stop(m->awake);
        mfs_signals_stop(&signals);
    }
    if (rc < 0)
        return mfs_err_set(err, rc, "serving requests: %s", strerror(-rc));
    return 0;
}

/* Lets go of the device, which ends the connection: each call that still waits for an answer gets
 * an error. In its place comes a pipe that is never read, on which poll(2) says what libfuse takes
 * as "unmounted already"; else it would unmount whatever is at the path by now. */
static void let_go(struct fuse_session *se)
{
    int fd[2];

    if (pipe2(fd, O_CLOEXEC) < 0)
        return;
    close(fd[0]);
    dup3(fd[1], fuse_session_fd(se), O_CLOEXEC);
    close(fd[1]);
}

/* Has the kernel ended the connection? What is at the path then is not ours, although it may have
 * got the device number that was. */
static bool is_unmounted(struct fuse_session *se)
{
    struct pollfd device = {.fd = fuse_session_fd(se)};

    return poll(&device, 1, 0) == 1 && (device.revents & POLLERR);
}

/* First no call waits for this mount any more. */
static void end_session(struct mfs_fuse *m)
{
    bool later;

    mfs_inside_stop(m);
    if (m->client != NULL)
        mfs_client_stop_waiting(m->client);
    if (m->notify != NULL)
        mfs_notify_stop(m->notify);
    if (m->names != NULL)
        mfs_notify_stop(m->names);
    if (m->writes != NULL)
        mfs_notify_stop(m->writes);
    if (m->recaller != NULL)
        mfs_recaller_stop(m->recaller);
    if (m->device != 0 && geteuid() == 0 && !is_unmounted(m->se)) {
        mfs_mountpoint_release(m->config->path, m->device, &later);
        let_go(m->se);
    }
    mfs_device_end_notices();
    if (m->se != NULL)
        fuse_session_unmount(m->se);
}

/* Then what is dirty goes out. */
static void tear_down(struct mfs_fuse *m)
{
    end_session(m);
    if (m->client != NULL)
        mfs_metrics_log(m->metrics);
    mfs_workers_destroy(m->workers);
    mfs_retries_destroy(m->retries);
    mfs_client_destroy(m->client);
    mfs_uring_destroy(m->uring);
    mfs_inside_destroy(m);
    mfs_admission_destroy(m->admission);
    mfs_parts_destroy(m->parts);
    mfs_recalls_destroy(m->recalls);
    mfs_lookup_attrs_destroy(m->lookup_attrs);
    mfs_nodeids_destroy(m->nodeids);
    mfs_replied_destroy(m->replied);
    mfs_recaller_destroy(m->recaller);
    mfs_notify_destroy(m->writes);
    mfs_notify_destroy(m->names);
    mfs_notify_destroy(m->notify);
    if (m->se != NULL)
        fuse_session_destroy(m->se);
    mfs_metric_set_destroy(m->requests);
    mfs_metrics_destroy(m->metrics);
}

static int run(struct mfs_fuse *m, int channel, struct mfs_err *err)
{
    int rc = start_metrics(m, err);

    if (rc == 0)
        rc = start_client(m, err);
    if (rc == 0)
        rc = start_kernel(m, err);
    if (rc == 0)
        rc = start_session(m, err);
    if (rc == 0)
        rc = mfs_client_start(m->client, m->config->options.memory / TIDY_SHARE, err);
    return rc < 0 ? rc : serve(m, channel, err);
}

/* Many threads and stripes that come and go make glibc keep several times what is in use: where
 * that would be a large part of what the client may take, large buffers go back at once when they
 * are freed, and threads share arenas. */
static void keep_within(uint64_t memory)
{
    if (memory >= LITTLE_MEMORY)
        return;
    mallopt(M_MMAP_THRESHOLD, 128 << 10);
    mallopt(M_TRIM_THRESHOLD, 256 << 10);
    mallopt(M_ARENA_MAX, 2);
}

/* To the log as it is, which is stderr before its file is opened. */
static void say_covered(const struct mfs_mount_config *config)
{
    mfs_warn("mount", "%s: is not empty: what is in it is out of sight until the unmount",
             config->path);
}

static int open_log(const struct mfs_mount_config *config, bool covers, struct mfs_err *err)
{
    int rc;

    mfs_log_set_format(config->options.log_format);
    rc = mfs_log_open("memefs", config->log, config->options.log_level);

    if (rc < 0)
        return mfs_err_set(err, rc, "%s: %s", config->log, strerror(-rc));
    if (covers)
        say_covered(config);
    return 0;
}

int mfs_mount_run(const struct mfs_mount_config *config, struct mfs_err *err)
{
    struct mfs_fuse m = {.config = config,
                         .shares = {.write_window = config->options.write_window,
                                    .read_window = config->options.read_window},
                         .timeout = config->options.relaxed ? RELAXED_LIFE : 0};
    int channel = -1, rc;
    bool logged, /* else the log is stderr, where the caller will say it */
        covers;

    if (config->log)
        mfs_signals_block_hangup();
    mfs_proc_raise_files(); /* there may be a connection to each partition */
    keep_within(config->options.memory);
    mfs_capacity_divide(config->options.memory, config->options.workers, &m.shares);
    rc = mfs_mountpoint_prepare(config->path, err);
    covers = rc == 0 && mfs_mountpoint_covers(config->path);
    if (covers && !config->foreground)
        say_covered(config);
    if (rc == 0 && !config->foreground)
        rc = mfs_daemon_fork(&channel, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    rc = open_log(config, covers && (config->foreground || config->log != NULL), err);
    logged = rc == 0 && (channel < 0 || config->log != NULL);
    fuse_set_log_func(fuse_says);
    mfs_signals_block();
    if (rc == 0 && chdir("/") == 0)
        rc = run(&m, channel, err);
    if (rc < 0) {
        if (logged)
            mfs_error("mount", "%s", err->msg);
        if (!atomic_load(&m.answers))
            mfs_daemon_ready(channel, err);
    }
    tear_down(&m);
    if (logged)
        mfs_info("mount", "%s: unmounted", config->path);
    if (rc < 0 && channel >= 0)
        _exit(EXIT_FAILURE); /* the process that we come from tells why */
    return rc;
}
