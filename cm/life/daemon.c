/* The daemon's frame: it opens what the parts need, goes on from the saved phase, runs the loop,
 * and clears away what is left after it. */
#include "cm/life/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "cm/nodes/quorum.h"
#include "host/proc.h"
#include "base/crypto/secure.h"
#include "base/text.h"
#include "base/trusted_dir.h"
#include "cm/nodes/cleanup.h"
#include "cm/change/auto_forget.h"
#include "cm/change/auto_rebalance.h"
#include "cm/change/autoscale.h"
#include "cm/change/bandwidth_estimates.h"
#include "cm/change/checkpoint.h"
#include "cm/change/departures.h"
#include "cm/history/keep.h"
#include "cm/life/deploy.h"
#include "cm/life/handover.h"
#include "cm/life/serve.h"
#include "cm/life/service.h"
#include "cm/life/shutdown.h"
#include "cm/nodes/control.h"
#include "cm/nodes/copies.h"
#include "cm/nodes/follow.h"
#include "cm/nodes/hung.h"
#include "cm/nodes/metrics.h"
#include "cm/nodes/mounts.h"
#include "cm/nodes/provision.h"
#include "cm/nodes/tables.h"
#include "cm/state/events.h"
#include "net/supervisor.h"
#include "cm/state/listen.h"
#include "cm/partitions/migrate.h"
#include "cm/change/probe.h"
#include "cm/partitions/replicas.h"
#include "cm/change/failback.h"
#include "cm/change/scale/scale.h"

#define CONNECTIONS_MOST 8192U

static void on_end_signal(void *arg, int signo)
{
    struct mfs_cm *cm = arg;

    if (signo == SIGTERM && !cm->foreground && mfs_handover_begin(cm)) {
        mfs_info("daemon", "signal %d: a cm on another machine is to take over", signo);
        return;
    }
    mfs_info("daemon", "signal %d: stopping the deployment", signo);
    cm->clears = true;
    mfs_shutdown_begin(cm);
}

static void on_hangup(void *arg, int signo)
{
    int rc = mfs_log_reopen();

    (void)arg;
    (void)signo;
    if (rc < 0)
        mfs_warn("daemon", "the log goes on as it was: %s", strerror(-rc));
    else if (!rc)
        mfs_info("daemon", "log opened anew");
}

static void on_log_metrics(void *arg, int signo)
{
    const struct mfs_cm *cm = arg;

    (void)signo;
    mfs_metrics_log(cm->metrics);
}

static int open_metrics(struct mfs_cm *cm)
{
    cm->metrics = mfs_metrics_create();
    return cm->metrics
               ? mfs_metric_set_create(&cm->figures, cm->metrics, mfs_cm_metrics, MFS_CM_METRICS)
               : -ENOMEM;
}

static int open_signals(struct mfs_cm *cm)
{
    int rc = mfs_loop_signal(cm->loop, SIGTERM, on_end_signal, cm);

    if (!rc)
        rc = mfs_loop_signal(cm->loop, SIGINT, on_end_signal, cm);
    if (!rc)
        rc = mfs_loop_signal(cm->loop, SIGHUP, on_hangup, cm);
    if (!rc)
        rc = mfs_loop_signal(cm->loop, SIGUSR1, on_log_metrics, cm);
    return rc;
}

/* The address of an earlier cm, so that what was connected to it finds the new one at the same
 * place. */
static void former_address(const struct mfs_cm *cm, char out[MFS_ADDRESS_MAX])
{
    struct mfs_buf b;
    size_t len;

    out[0] = '\0';
    mfs_buf_init(&b);
    if (!mfs_trusted_read(cm->paths->address, MFS_ADDRESS_MAX - 1, &b)) {
        len = mfs_buf_len(&b);
        memcpy(out, mfs_buf_data(&b), len);
        out[len] = '\0';
        out[strcspn(out, "\n")] = '\0';
    }
    mfs_buf_fini(&b);
}

static int open_listener(struct mfs_cm *cm, struct mfs_err *err)
{
    char former[MFS_ADDRESS_MAX], at[MFS_ADDRESS_MAX], line[MFS_ADDRESS_MAX + 1];
    int n, rc;

    former_address(cm, former);
    mfs_listen_again(&cm->state, former, at);
    cm->listener =
        mfs_listener_create(cm->loop, at, &cm->secret, CONNECTIONS_MOST, &mfs_cm_service, cm, err);
    /* Nodes on this machine learn another one from cm.addr; those elsewhere never would. */
    if (!cm->listener && cm->provider->traits->sees_processes)
        cm->listener = mfs_listener_create(cm->loop, cm->state.listen, &cm->secret,
                                           CONNECTIONS_MOST, &mfs_cm_service, cm, err);
    if (!cm->listener)
        return err->code;
    mfs_listener_address(cm->listener, cm->address);
    mfs_listen_reachable(&cm->state, cm->address);
    mfs_text_copy(cm->state.cm, sizeof cm->state.cm, cm->address);
    n = snprintf(line, sizeof line, "%s\n", cm->address);
    rc = mfs_file_write(cm->paths->address, line, (size_t)n, 0644);
    return rc ? mfs_err_set(err, rc, "%s: %s", cm->paths->address, strerror(-rc)) : 0;
}

static int open_all(struct mfs_cm *cm, struct mfs_err *err)
{
    struct mfs_proc self;
    int rc = mfs_cm_state_load(&cm->state, cm->paths->state, err);

    if (!rc)
        rc = mfs_secret_load(cm->paths->secret, &cm->secret, err);
    if (rc)
        return rc;
    mfs_secure_warn();
    cm->provider = mfs_provider_find(cm->state.provider);
    if (!cm->provider)
        return mfs_err_set(err, -EINVAL, "provider: \"%s\" is not known", cm->state.provider);
    cm->loop = mfs_loop_create();
    cm->lm_lost = mfs_service_lm_lost;
    rc = cm->loop ? open_signals(cm) : -errno;
    if (!rc)
        rc = open_metrics(cm);
    if (!rc)
        rc = mfs_nodes_init(cm);
    if (!rc)
        rc = mfs_proc_identify(getpid(), &self);
    if (!rc)
        rc = mfs_proc_save(&self, cm->paths->pid);
    if (rc)
        return mfs_err_set(err, rc, "cannot set up: %s", strerror(-rc));
    rc = mfs_autoscale_init(cm);
    if (!rc)
        rc = mfs_auto_rebalance_init(cm);
    if (!rc)
        rc = mfs_failback_init(cm);
    if (!rc)
        rc = mfs_auto_forget_init(cm);
    if (!rc)
        rc = mfs_bandwidth_estimates_init(cm);
    if (!rc)
        rc = mfs_hung_begin(cm);
    if (!rc)
        rc = mfs_copies_init(cm);
    if (!rc)
        rc = mfs_quorum_init(cm);
    if (!rc)
        rc = mfs_mounts_init(cm);
    if (!rc)
        rc = mfs_follow_begin(cm);
    if (!rc)
        rc = mfs_history_begin(cm);
    if (rc)
        return mfs_err_set(err, rc, "out of memory");
    rc = open_listener(cm, err);
    if (!rc)
        rc = mfs_serve_begin(cm, err);
    return rc ? rc : mfs_provision_open(cm, err);
}

static void go_on(struct mfs_cm *cm)
{
    mfs_event_bound(cm->state.events_size);
    if (mfs_cm_in_phase(cm, MFS_PHASE_RUNNING)) {
        mfs_event_add(cm->paths->events, "cm", "restarted", "process %d at %s, term %llu",
                      (int)getpid(), cm->address, (unsigned long long)cm->state.term);
        cm->step = MFS_STEP_DONE;
        mfs_supervisor_ready(cm->loop);
        mfs_migrate_resume(cm);
        if (mfs_replicas_begin(cm))
            mfs_error("daemon", "out of memory: there will be no replicas");
        mfs_provision_adopt(cm);
        mfs_scale_resume(cm);
        mfs_departures_resume(cm);
    } else if (mfs_cm_in_phase(cm, MFS_PHASE_STOPPING)) {
        mfs_shutdown_begin(cm); /* of a start that was killed: its nodes are given back */
    } else {
        mfs_event_add(cm->paths->events, "cm", "starting", "process %d at %s, %s", (int)getpid(),
                      cm->address, MFS_TEXT_COUNT(cm->state.nnodes, "node"));
        mfs_deploy_begin(cm);
    }
}

static void close_all(struct mfs_cm *cm)
{
    mfs_serve_end(cm); /* its pages are made of all that ends below */
    mfs_history_end(cm, !cm->superseded && mfs_cm_in_phase(cm, MFS_PHASE_RUNNING));
    mfs_shutdown_fini(cm);
    mfs_checkpoint_fini(cm);
    mfs_tables_end(cm);
    mfs_listener_destroy(cm->listener);
    mfs_mounts_fini(cm);
    mfs_quorum_fini(cm);
    mfs_handover_fini(cm); /* requests that were open have failed by now */
    mfs_auto_rebalance_fini(cm);
    mfs_failback_fini(cm);
    mfs_auto_forget_fini(cm);
    mfs_departures_fini(cm);
    mfs_cm_probe_fini(cm);
    mfs_autoscale_fini(cm);
    mfs_bandwidth_estimates_fini(cm);
    mfs_hung_fini(cm);
    mfs_follow_fini(cm);
    mfs_copies_fini(cm);
    mfs_scale_fini(cm);
    mfs_migrate_fini(cm);
    mfs_replicas_fini(cm);
    mfs_provision_close(cm);
    mfs_loop_destroy(cm->loop);
    mfs_metric_set_destroy(cm->figures);
    mfs_metrics_destroy(cm->metrics);
    mfs_secret_free(&cm->secret);
    mfs_nodes_fini(cm);
    mfs_cm_state_clear(&cm->state);
    free(cm->start.assigned);
}

/* Only a deployment that has been told to end is cleared away: when cm itself is in trouble, the
 * nodes go on without it. */
static void clear_away(const struct mfs_cm *cm)
{
    struct mfs_err left;

    if (mfs_cleanup_processes(cm->paths, &left))
        mfs_error("daemon", "%s", left.msg);
    if (cm->clears && mfs_cleanup_files(cm->paths, false, &left))
        mfs_error("daemon", "%s", left.msg);
}

int mfs_daemon_run(const struct mfs_paths *p, bool foreground, struct mfs_err *err)
{
    struct mfs_cm cm = {.paths = p, .foreground = foreground, .began = mfs_clock_mono()};
    bool stopping, superseded;
    int rc;

    umask(027);
    mfs_supervisor_init();
    mfs_proc_raise_files();
    mfs_proc_prefer();
    rc = open_all(&cm, err);
    if (!rc) {
        go_on(&cm);
        rc = mfs_loop_run(cm.loop);
        if (rc)
            mfs_err_set(err, rc, "event loop: %s", strerror(-rc));
    } else if (!foreground) {
        mfs_file_write(p->failure, err->msg, strlen(err->msg), 0600);
    }
    if (!rc && cm.start.failure.code) {
        *err = cm.start.failure;
        rc = err->code;
    }
    superseded = cm.superseded;
    stopping = !superseded && mfs_cm_in_phase(&cm, MFS_PHASE_STOPPING);
    close_all(&cm);
    if (superseded)
        mfs_cleanup_moved(p);
    else if (stopping)
        clear_away(&cm);
    return rc;
}
