/* Local Managers come from the provider, and one that ends is started again (after 1 s, doubling up
 * to 30 s); its redis processes and its mount go on meanwhile, and it takes them up again.
 *
 * n->provided is what cm knows of a node's lm by the provider: enum mfs_provided says how that
 * moves. Of a Local Manager that can't be seen (provider/traits.h) the connection tells: what was
 * started for it here may end, or have ended with an earlier cm, while it lives. It is started
 * again when it has neither, and has had the time to connect by itself. */
#include "cm/nodes/provision.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cm/nodes/failure.h"
#include "cm/nodes/metrics.h"
#include "cm/state/events.h"

#define DELAY_MOST (30 * MFS_SEC)

static_assert(MFS_RESTART_FIRST < DELAY_MOST, "the delay grows");

static void restart(void *arg);

static void restart_after(struct mfs_node *n, int64_t delay)
{
    if (!n->restart)
        n->restart = mfs_loop_timer(n->cm->loop, delay, 0, restart, n);
}

/* ---- what the provider is given -------------------------------------------------------------- */

static struct mfs_provider_node describe(const struct mfs_node *n)
{
    const struct mfs_cm_node *r = n->record;

    return (struct mfs_provider_node){.id = r->id,
                                      .slot = r->slot,
                                      .name = r->name,
                                      .address = r->address,
                                      .handle = r->handle,
                                      .memory = r->memory};
}

/* Since `from`, mono; 0: an earlier cm has asked, and it is not known when. */
static void count_call(const struct mfs_cm *cm, enum mfs_cm_provider_call call,
                       enum mfs_cm_provider_result result, int64_t from)
{
    if (from)
        mfs_metric_observe(cm->figures, MFS_CM_PROVIDER_CALLS, mfs_cm_provider_series(call, result),
                           mfs_clock_mono() - from);
}

int mfs_provision_request(struct mfs_cm *cm, struct mfs_node *const *n, uint32_t count,
                          struct mfs_err *err)
{
    struct mfs_provider_node *list = calloc(count, sizeof *list);
    int rc;

    if (!list)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < count; i++) {
        assert(n[i]->provided == MFS_PROVIDED_NONE);
        list[i] = describe(n[i]);
        n[i]->provided = MFS_PROVIDED_REQUESTED;
        n[i]->begun = mfs_clock_mono();
        n[i]->waits_for[0] = '\0';
    }
    mfs_metric_add(cm->figures, MFS_CM_PROVIDER_REQUESTS, 0, count);
    rc = cm->provider->request(cm->provider_state, list, count, err);
    mfs_metric_add(cm->figures, MFS_CM_PROVIDER_FAILURES, 0, rc ? count : 0);
    for (uint32_t i = 0; i < count && rc; i++) {
        n[i]->provided = MFS_PROVIDED_NONE;
        count_call(cm, MFS_CM_CALL_START, MFS_CM_CALL_FAILED, n[i]->begun);
    }
    free(list);
    return rc;
}

int mfs_provision_signal(struct mfs_node *n, int signo)
{
    int64_t now = mfs_clock_mono();
    int rc = n->cm->provider->signal(n->cm->provider_state, n->record->id, signo);

    count_call(n->cm, MFS_CM_CALL_SIGNAL,
               !rc                             ? MFS_CM_CALL_OK
               : rc == -ESRCH || rc == -ENOSYS ? MFS_CM_CALL_NOTHING
                                               : MFS_CM_CALL_FAILED,
               now);
    return rc;
}

void mfs_provision_end(struct mfs_node *n)
{
    if (mfs_provision_signal(n, SIGINT) && n->provided < MFS_PROVIDED_RELEASING)
        n->provided = MFS_PROVIDED_NONE;
}

/* Has there ever been an lm to leave something? */
static bool has_been_there(const struct mfs_node *n)
{
    return n->cm->step == MFS_STEP_DONE &&
           (strcmp(n->record->transition, MFS_NODE_COMING) != 0 || n->step > MFS_STEP_JOIN);
}

bool mfs_provision_brought_back(struct mfs_node *n)
{
    struct mfs_err err;

    if (n->conn)
        return false;
    if (!n->brought_back && !n->stop_sent && n->provided == MFS_PROVIDED_NONE &&
        !n->cm->provider->traits->sees_processes && has_been_there(n)) {
        n->brought_back = true;
        mfs_timer_cancel(n->restart);
        n->restart = NULL;
        if (mfs_provision_request(n->cm, &n, 1, &err))
            mfs_warn("provision", "%s: %s", n->record->name, err.msg);
    }
    return n->brought_back && mfs_provision_runs(n);
}

bool mfs_provision_runs(const struct mfs_node *n)
{
    return n->provided == MFS_PROVIDED_STARTED ||
           (n->provided == MFS_PROVIDED_REQUESTED && !n->waits_for[0]);
}

void mfs_provision_reason(const struct mfs_node *n, char *out, size_t size)
{
    out[0] = '\0';
    if (n->waits_for[0])
        mfs_text_format(out, size, " (%s)", n->waits_for);
}

/* ---- giving back ----------------------------------------------------------------------------- */

static void not_released(struct mfs_node *n, const char *why)
{
    n->provided = MFS_PROVIDED_GONE;
    mfs_metric_add(n->cm->figures, MFS_CM_PROVIDER_FAILURES, 0, 1);
    count_call(n->cm, MFS_CM_CALL_RELEASE, MFS_CM_CALL_FAILED, n->released_since);
    snprintf(n->not_released, sizeof n->not_released, "%.199s", why);
    mfs_warn("provision", "%s: not given back: %s", n->record->name, why);
    mfs_failure_add(n->cm, "%s: not given back: %s", n->record->name, why);
    mfs_event_add(n->cm->paths->events, n->record->name, "release-failed", "%s%s%s", why,
                  n->record->handle[0] ? "; it was " : "", n->record->handle);
}

bool mfs_provision_released(struct mfs_node *n)
{
    int64_t now = mfs_clock_mono();
    char why[64];

    if (n->provided < MFS_PROVIDED_RELEASING) {
        struct mfs_provider_node node = describe(n);

        mfs_timer_cancel(n->restart);
        n->restart = NULL;
        n->waits_for[0] = '\0';
        n->released_since = now;
        n->provided = MFS_PROVIDED_RELEASING;
        if (n->cm->provider->release(n->cm->provider_state, &node)) {
            n->provided = MFS_PROVIDED_GONE;
            count_call(n->cm, MFS_CM_CALL_RELEASE, MFS_CM_CALL_OK, now);
        }
    } else if (n->provided == MFS_PROVIDED_RELEASING &&
               now - n->released_since >= MFS_RELEASE_TIME) {
        snprintf(why, sizeof why, "no answer of the provider in %lld s",
                 (long long)(MFS_RELEASE_TIME / MFS_SEC));
        not_released(n, why);
    }
    return n->provided == MFS_PROVIDED_GONE;
}

/* ---- starting again -------------------------------------------------------------------------- */

/* Each attempt waits longer; one that has joined ends that (life/service.c). */
static void try_again(struct mfs_node *n)
{
    restart_after(n, n->delay);
    n->delay = n->delay * 2 < DELAY_MOST ? n->delay * 2 : DELAY_MOST;
}

static void not_restarted(struct mfs_node *n, const char *why)
{
    mfs_event_add(n->cm->paths->events, n->record->name, "lm-restart-failed", "%s", why);
    try_again(n);
}

static void restart(void *arg)
{
    struct mfs_node *n = arg;
    struct mfs_err err;

    n->restart = NULL;
    if (mfs_node_is_over(n)) /* it was told to end */
        return;
    if (n->provided != MFS_PROVIDED_NONE || (n->conn && !n->cm->provider->traits->sees_processes))
        return;
    n->restarts = true;
    if (mfs_provision_request(n->cm, &n, 1, &err))
        not_restarted(n, err.msg);
}

void mfs_provision_joined(struct mfs_node *n)
{
    const struct mfs_provider *p = n->cm->provider;

    if (n->provided == MFS_PROVIDED_STARTED && p->joined &&
        p->joined(n->cm->provider_state, n->record->id))
        n->provided = MFS_PROVIDED_NONE;
}

void mfs_provision_hung_up(struct mfs_node *n)
{
    if (!n->cm->provider->traits->sees_processes && n->provided == MFS_PROVIDED_NONE)
        restart_after(n, MFS_RETURN_TIME);
}

/* ---- what the provider tells ----------------------------------------------------------------- */

/* NULL: it has been forgotten, or is being given back. */
static struct mfs_node *find(void *arg, uint32_t id)
{
    struct mfs_node *n = mfs_nodes_find(arg, id);

    return n && n->provided < MFS_PROVIDED_RELEASING ? n : NULL;
}

static void waiting(void *arg, uint32_t id, const char *why)
{
    struct mfs_node *n = find(arg, id);

    if (!n || n->provided != MFS_PROVIDED_REQUESTED || !strcmp(n->waits_for, why))
        return;
    mfs_text_copy(n->waits_for, sizeof n->waits_for, why);
    mfs_event_add(n->cm->paths->events, n->record->name, "waiting", "%s", why);
}

static void ready(void *arg, uint32_t id, const char *what)
{
    struct mfs_node *n = find(arg, id);

    if (!n || n->provided != MFS_PROVIDED_REQUESTED)
        return;
    n->provided = n->cm->provider->traits->detached ? MFS_PROVIDED_NONE : MFS_PROVIDED_STARTED;
    n->waits_for[0] = '\0';
    if (n->begun)
        mfs_metric_observe(n->cm->figures, MFS_CM_PROVIDER_TIME, 0, mfs_clock_mono() - n->begun);
    count_call(n->cm, MFS_CM_CALL_START, MFS_CM_CALL_OK, n->begun);
    n->begun = mfs_clock_mono();
    mfs_text_copy(n->what, sizeof n->what, what);
    if (n->restarts)
        mfs_event_add(n->cm->paths->events, n->record->name, "lm-restarted", "%s", what);
}

/* There is no lm any more, or there will be none. Of one that has joined and went into the
 * background what started it may have failed since (a connection that broke): that means nothing.
 */
static void lost(struct mfs_node *n, int code, const char *why)
{
    n->provided = MFS_PROVIDED_NONE;
    n->waits_for[0] = '\0';
    if (n->conn && n->cm->provider->traits->detached)
        return;
    if (!mfs_cm_in_phase(n->cm, MFS_PHASE_STOPPING) && !n->cm->lm_lost(n, code, why))
        try_again(n);
}

static void failed(void *arg, uint32_t id, const struct mfs_err *why)
{
    struct mfs_node *n = find(arg, id);

    if (!n)
        return;
    mfs_metric_add(n->cm->figures, MFS_CM_PROVIDER_FAILURES, 0, 1);
    count_call(n->cm, MFS_CM_CALL_START, MFS_CM_CALL_FAILED, n->begun);
    if (n->restarts)
        mfs_event_add(n->cm->paths->events, n->record->name, "lm-restart-failed", "%s", why->msg);
    lost(n, why->code, why->msg);
}

static void ended(void *arg, uint32_t id, const char *how)
{
    struct mfs_node *n = find(arg, id);
    char why[MFS_ERR_MSG_MAX];

    if (!n)
        return;
    if (!mfs_cm_in_phase(n->cm, MFS_PHASE_STOPPING) && !mfs_nodes_goes(n))
        mfs_event_add(n->cm->paths->events, n->record->name, "lm-gone", "%s %s", n->what, how);
    mfs_text_format(why, sizeof why, "its lm %s", how);
    lost(n, -ECHILD, why);
}

static void released(void *arg, uint32_t id, const struct mfs_err *why)
{
    struct mfs_node *n = mfs_nodes_find(arg, id);

    if (!n || n->provided != MFS_PROVIDED_RELEASING)
        return;
    if (why)
        not_released(n, why->msg);
    else
        count_call(n->cm, MFS_CM_CALL_RELEASE, MFS_CM_CALL_OK, n->released_since);
    n->provided = MFS_PROVIDED_GONE;
}

static int note(void *arg, uint32_t id, const char *handle)
{
    struct mfs_cm *cm = arg;
    struct mfs_node *n = mfs_nodes_find(cm, id);
    int rc = n ? mfs_text_copy(n->record->handle, sizeof n->record->handle, handle) : -ENOENT;

    return rc ? rc : mfs_cm_state_save(&cm->state, cm->paths->state);
}

/* ---- its life -------------------------------------------------------------------------------- */

static const struct mfs_provider_calls calls = {.waiting = waiting,
                                                .ready = ready,
                                                .failed = failed,
                                                .ended = ended,
                                                .released = released,
                                                .note = note};

int mfs_provision_open(struct mfs_cm *cm, struct mfs_err *err)
{
    bool here = cm->provider->traits->sees_processes;

    cm->provider_context =
        (struct mfs_provider_context){.loop = cm->loop,
                                      .paths = cm->paths,
                                      .cm = cm->address,
                                      .moved = cm->state.term > 0,
                                      .here = here,
                                      .detached = cm->provider->traits->detached,
                                      .node_dir = here ? cm->paths->dir : cm->state.node_dir,
                                      .secret = &cm->secret,
                                      .network = cm->state.network,
                                      .interface = cm->state.interface,
                                      .grace = cm->state.grace,
                                      .log_format = cm->state.log_format,
                                      .metrics = cm->state.node_metrics,
                                      .option = cm->state.provider_option,
                                      .noptions = cm->state.nprovider_options,
                                      .calls = &calls,
                                      .arg = cm};
    return cm->provider->open(&cm->provider_context, &cm->provider_state, err);
}

void mfs_provision_close(struct mfs_cm *cm)
{
    if (cm->provider_state)
        cm->provider->close(cm->provider_state);
    cm->provider_state = NULL;
}

void mfs_provision_adopt(struct mfs_cm *cm)
{
    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        struct mfs_node *n = cm->nodes[i];
        struct mfs_provider_node node = describe(n);
        int64_t now = mfs_clock_mono();

        n->provided = cm->provider->adopt(cm->provider_state, &node, n->what);
        count_call(cm, MFS_CM_CALL_ADOPT,
                   n->provided == MFS_PROVIDED_NONE ? MFS_CM_CALL_NOTHING : MFS_CM_CALL_OK, now);
        if (n->provided != MFS_PROVIDED_NONE)
            continue;
        if (!cm->provider->traits->sees_processes && !mfs_nodes_goes(n))
            restart_after(n, MFS_RETURN_TIME); /* it may be about to find us */
        else if (!n->record->transition[0] || !strcmp(cm->state.scale.step, MFS_SCALE_MOVE))
            restart(n); /* to one that comes or goes scale.c sees */
    }
}
