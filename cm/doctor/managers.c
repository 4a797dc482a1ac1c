/* cm and the Local Managers: does each run, and answer? */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cm/ask/client.h"
#include "cm/doctor/impl.h"
#include "net/call.h"
#include "proto/times.h"

#define CM_TIME     (2 * MFS_SEC)
#define COPY_OLD_MS 3000U /* a large one is sent each second */
#define REPORT_TIME (1500 * MFS_MSEC)

static_assert(MFS_REPORT_EACH < REPORT_TIME, "a report comes within that time");

/* ---- cm -------------------------------------------------------------------------------------- */

static void no_cm(struct mfs_doctor_case *c)
{
    if (!strcmp(c->state.phase, MFS_PHASE_RUNNING)) {
        mfs_doctor_add(c->d, MFS_DOCTOR_FAIL, "cm",
                       "no process runs; nodes, data and mounts go on without it");
        mfs_doctor_advise(c->d, "cm start%s: a new cm takes the nodes up as they are", c->which);
    } else {
        mfs_doctor_add(c->d, MFS_DOCTOR_FAIL, "cm", "no process runs; it was %s", c->state.phase);
        mfs_doctor_advise(c->d, "cm stop%s: it ends what is left", c->which);
    }
}

/* Nodes report each second: what has changed since is no fault. 0: not told yet. */
static bool is_behind(const struct mfs_status *s)
{
    for (uint32_t i = 0; i < s->nnodes; i++)
        if (mfs_status_clients_behind(&s->node[i]) ||
            (s->node[i].epoch && s->node[i].epoch < s->epoch))
            return true;
    return false;
}

static int get_status(struct mfs_doctor_case *c, struct mfs_err *err)
{
    mfs_schema_clear(&mfs_status_schema, &c->status);
    return mfs_client_call(c->paths, MFS_MSG_STATUS, NULL, CM_TIME, &c->status, err);
}

static void ask_cm(struct mfs_doctor_case *c)
{
    int64_t began = mfs_clock_mono(), took;
    struct mfs_err err;
    int rc = get_status(c, &err);

    took = mfs_clock_mono() - began;
    if (!rc && is_behind(&c->status)) {
        mfs_clock_sleep(REPORT_TIME);
        rc = get_status(c, &err);
    }
    c->answered = !rc;
    if (rc) {
        mfs_doctor_add(c->d, MFS_DOCTOR_FAIL, "cm", "process %d does not answer: %s",
                       (int)c->daemon.pid, err.msg);
        mfs_doctor_advise(c->d, "kill -KILL %d, then cm start%s: nothing is lost by that",
                          (int)c->daemon.pid, c->which);
        return;
    }
    mfs_doctor_add(c->d, MFS_DOCTOR_OK, "cm", "process %d answers in %.1f ms: %s, epoch %llu",
                   (int)c->daemon.pid, (double)took / (double)MFS_MSEC, c->status.state,
                   (unsigned long long)c->status.epoch);
}

static void advise_to_go_on(struct mfs_doctor *d, const struct mfs_proc *p)
{
    mfs_doctor_advise(d, "kill -CONT %d", (int)p->pid);
}

static void check_cm(struct mfs_doctor_case *c)
{
    if (!c->daemon.pid) {
        no_cm(c);
    } else if (mfs_proc_state(&c->daemon) == 'T') {
        mfs_doctor_add(c->d, MFS_DOCTOR_FAIL, "cm", "process %d is stopped by a signal",
                       (int)c->daemon.pid);
        advise_to_go_on(c->d, &c->daemon);
    } else if (!c->secret_ok) {
        mfs_doctor_add(c->d, MFS_DOCTOR_OK, "cm",
                       "process %d runs; not asked, for want of a secret", (int)c->daemon.pid);
    } else {
        ask_cm(c);
    }
}

/* ---- lm -------------------------------------------------------------------------------------- */

static const struct mfs_status_node *status_of(const struct mfs_doctor_case *c, uint32_t id)
{
    for (uint32_t i = 0; c->answered && i < c->status.nnodes; i++)
        if (c->status.node[i].id == id)
            return &c->status.node[i];
    return NULL;
}

/* Its loop answers anything; that it does not know this message is a good answer. */
static int ask_lm(const struct mfs_doctor_case *c, uint32_t id, struct mfs_err *err)
{
    char path[PATH_MAX], address[MFS_ADDRESS_MAX];
    struct mfs_status unused;
    int rc = mfs_paths_node(c->paths, id, "lm.sock", path);

    if (!rc)
        rc = mfs_text_format(address, sizeof address, "unix:%s", path);
    if (rc)
        return mfs_err_set(err, rc, "%s", strerror(-rc));
    rc = mfs_call(address, &c->secret, "cli", MFS_MSG_STATUS, NULL, mfs_doctor_time(c), &unused,
                  err);
    if (!rc)
        mfs_schema_clear(&mfs_status_schema, &unused);
    return rc == -EOPNOTSUPP ? 0 : rc;
}

static void lm_gone(struct mfs_doctor_case *c, const char *check)
{
    mfs_doctor_add(c->d, MFS_DOCTOR_FAIL, check, "no process runs; the node's data go on without");
    if (c->answered)
        mfs_doctor_advise(c->d,
                          "wait: cm starts it again within 30 s; if not, cm events%s tells "
                          "why",
                          c->which);
    else if (c->daemon.pid)
        mfs_doctor_advise(c->d, "mend cm, which starts it again");
    else
        mfs_doctor_advise(c->d, "cm start%s: a new cm starts it again", c->which);
}

/* Of one that answers, or that is on another machine: what cm knows of it. */
static bool check_connected(struct mfs_doctor_case *c, const struct mfs_status_node *s,
                            const char *check)
{
    if (!s)
        return true;
    if (!strcmp(s->state, "lost")) {
        mfs_doctor_add(c->d, MFS_DOCTOR_FAIL, check, "it is not connected to cm");
        mfs_doctor_advise(c->d,
                          "see %s/%s/lm.log; it tries again for ever, and cm starts it anew "
                          "if it ends",
                          c->paths->dir, s->name);
        return false;
    }
    if (s->epoch && s->epoch < c->status.epoch && !c->state.nmoves) {
        mfs_doctor_add(c->d, MFS_DOCTOR_WARN, check, "it holds table %llu, and cm's is %llu",
                       (unsigned long long)s->epoch, (unsigned long long)c->status.epoch);
        mfs_doctor_advise(c->d, "if it stays so, cm events%s tells why", c->which);
    }
    return true;
}

static void check_clients(struct mfs_doctor_case *c, const struct mfs_status_node *s)
{
    char check[MFS_NAME_MAX + 16];

    if (!s || !mfs_status_clients_behind(s))
        return;
    snprintf(check, sizeof check, "%s: clients", s->name);
    mfs_doctor_add(c->d, MFS_DOCTOR_WARN, check, "%u hold an older table than the node's",
                   mfs_status_clients_behind(s));
    mfs_doctor_advise(c->d,
                      "cm events%s names one that stays behind "
                      "(client-behind): kill -CONT or -KILL it",
                      c->which);
}

/* Of a node on this machine: true when its process answers. */
static bool check_process(struct mfs_doctor_case *c, uint32_t id, const char *check,
                          const struct mfs_proc *p)
{
    struct mfs_err err;

    if (!mfs_proc_alive(p)) {
        lm_gone(c, check);
    } else if (mfs_proc_state(p) == 'T') {
        mfs_doctor_add(c->d, MFS_DOCTOR_FAIL, check, "process %d is stopped by a signal",
                       (int)p->pid);
        advise_to_go_on(c->d, p);
    } else if (c->secret_ok && !mfs_doctor_time(c)) {
        mfs_doctor_add(c->d, MFS_DOCTOR_WARN, check, "process %d runs; no time was left to ask it",
                       (int)p->pid);
        mfs_doctor_advise(c->d, "mend the others first");
    } else if (c->secret_ok && ask_lm(c, id, &err)) {
        mfs_doctor_add(c->d, MFS_DOCTOR_FAIL, check, "process %d does not answer: %s", (int)p->pid,
                       err.msg);
        mfs_doctor_advise(c->d, "kill -KILL %d: its data and mounts go on, and cm starts it again",
                          (int)p->pid);
    } else {
        return true;
    }
    return false;
}

static void check_lm(struct mfs_doctor_case *c, uint32_t i)
{
    const struct mfs_cm_node *node = &c->state.node[i];
    const struct mfs_status_node *s = status_of(c, node->id);
    struct mfs_proc p = mfs_doctor_noted(c, node->id, "lm.pid");
    struct mfs_doctor_node *n = &c->node[i];
    char check[MFS_NAME_MAX + 16];

    snprintf(check, sizeof check, "%s: lm", n->name);
    if (n->here && !check_process(c, node->id, check, &p))
        return;
    n->lm_good = check_connected(c, s, check);
    if (!n->lm_good)
        return;
    if (n->here)
        mfs_doctor_add(c->d, MFS_DOCTOR_OK, check, "process %d %s%s", (int)p.pid,
                       c->secret_ok ? "answers" : "runs", s ? ", connected to cm" : "");
    else
        mfs_doctor_add(c->d, MFS_DOCTOR_OK, check, "on another machine, %s",
                       s ? "connected to cm" : "not asked");
    check_clients(c, s);
}

/* Copies of cm's state, from which a cm on another machine goes on. */
static void check_copies(struct mfs_doctor_case *c)
{
    const struct mfs_status *s = &c->status;
    uint32_t fresh = 0, votes = 0;
    const struct mfs_status_node *oldest = NULL;

    if (!c->answered || mfs_provider_traits(c->state.provider)->sees_processes)
        return;
    for (uint32_t i = 0; i < s->nnodes; i++) {
        const struct mfs_status_node *n = &s->node[i];

        votes += n->votes;
        fresh += n->copy_behind_ms < COPY_OLD_MS;
        if (!oldest || n->copy_behind_ms > oldest->copy_behind_ms)
            oldest = n;
    }
    mfs_doctor_add(c->d, fresh < s->nnodes ? MFS_DOCTOR_WARN : MFS_DOCTOR_OK,
                   "copies of cm's state", "term %llu; %u of %u nodes have a fresh one, %u vote",
                   (unsigned long long)s->term, fresh, s->nnodes, votes);
    if (fresh < s->nnodes)
        mfs_doctor_advise(c->d,
                          "%s has had none for %.0f s: see whether it is there and its directory "
                          "can be written",
                          oldest->name, (double)oldest->copy_behind_ms / 1e3);
}

void mfs_doctor_managers(struct mfs_doctor_case *c)
{
    check_cm(c);
    check_copies(c);
    for (uint32_t i = 0; i < c->state.nnodes; i++)
        check_lm(c, i);
}
