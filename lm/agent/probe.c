/* Steps of a probe, as cm asks for them: the node that is to be measured opens a port, then it
 * measures while others meet it (probe.h). Both take place in threads of their own. */
#include "lm/agent/request_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "lm/measure/probe.h"

#define AREA      "probe"
#define OPEN_TIME (10 * MFS_SEC) /* a port that is not used is closed then */
#define TIME_MOST 10000          /* ms */

struct mfs_agent_probe {
    int listener; /* -1: a measurement has it */
    unsigned running;
    struct mfs_timer *forget;
};

struct probe_job {
    struct mfs_request_job request;
    struct mfs_msg_probe how;
    struct mfs_probe_plan plan;
    int listener;
    struct mfs_probe_rates rates;
};

static void run_probe(struct mfs_job *job)
{
    struct probe_job *j = (struct probe_job *)job;

    j->request.rc =
        j->listener >= 0
            ? mfs_probe_measure(j->listener, &j->plan, &j->rates, &j->request.err)
            : mfs_probe_meet(j->how.host, (uint16_t)j->how.port, &j->plan, &j->request.err);
}

static void probe_done(struct mfs_job *job)
{
    struct probe_job *j = (struct probe_job *)job;
    struct mfs_msg_probe_reply r = {.in = j->rates.in, .out = j->rates.out};

    j->request.agent->probe->running--;
    mfs_request_job_end(&j->request, MFS_MSG_PROBE, &r);
}

static void forget(void *arg)
{
    struct mfs_agent_probe *p = arg;

    p->forget = NULL;
    if (p->listener >= 0)
        close(p->listener);
    p->listener = -1;
}

static void forget_now(struct mfs_agent_probe *p)
{
    mfs_timer_cancel(p->forget);
    forget(p);
}

static void open_port(struct mfs_agent *a, struct mfs_conn *conn, uint64_t id)
{
    struct mfs_agent_probe *p = a->probe;
    uint16_t port = 0;

    forget_now(p);
    p->listener = mfs_probe_listen(a->opts.address, &port);
    if (p->listener < 0) {
        mfs_conn_fail(conn, id, p->listener, "node %u: can't listen at %s: %s", a->opts.node,
                      a->opts.address, strerror(-p->listener));
        p->listener = -1;
        return;
    }
    p->forget = mfs_loop_timer(a->loop, OPEN_TIME, 0, forget, p);
    mfs_conn_reply(conn, MFS_MSG_PROBE, id, &(struct mfs_msg_probe_reply){.port = port});
}

static struct probe_job *make_job(struct mfs_agent *a, const struct mfs_msg_probe *m)
{
    struct probe_job *j = calloc(1, sizeof *j);
    uint32_t ms = m->ms < TIME_MOST ? m->ms : TIME_MOST;

    if (!j)
        return NULL;
    j->request.job = (struct mfs_job){run_probe, probe_done, NULL};
    j->how = *m;
    j->plan = (struct mfs_probe_plan){.peers = m->peers,
                                      .time = (int64_t)ms * MFS_MSEC,
                                      .bytes = m->bytes,
                                      .iface = a->measured.iface};
    j->plan.secret = (struct mfs_secret){strlen(j->how.password), j->how.password};
    j->listener = -1;
    return j;
}

/* One that measures takes the port over. */
static void start(struct mfs_agent *a, const struct mfs_msg_probe *m, struct mfs_conn *conn,
                  uint64_t id)
{
    struct mfs_agent_probe *p = a->probe;
    struct probe_job *j = make_job(a, m);
    int listener = -1;

    if (j && !strcmp(m->step, MFS_PROBE_MEASURE)) {
        listener = j->listener = p->listener;
        p->listener = -1;
        forget_now(p);
    }
    if (mfs_request_job_run(a, "probe", j ? &j->request : NULL, conn, id))
        p->running++;
    else if (listener >= 0)
        close(listener);
}

static int check(const struct mfs_agent *a, const struct mfs_msg_probe *m, struct mfs_err *err)
{
    bool measure = !strcmp(m->step, MFS_PROBE_MEASURE);

    if (a->phase != MFS_AGENT_RUNNING)
        return mfs_err_set(err, -ESHUTDOWN, "it is stopping");
    if (!measure && strcmp(m->step, MFS_PROBE_MEET))
        return mfs_err_set(err, -EINVAL, "probe: there is no step \"%s\"", m->step);
    if (strlen(m->password) < 32)
        return mfs_err_set(err, -EINVAL, "probe: without a password");
    if (measure && a->probe->listener < 0)
        return mfs_err_set(err, -ENOTCONN, "probe: no port is open");
    if (a->probe->running >= MFS_PROBE_PEERS_MAX)
        return mfs_err_set(err, -EBUSY, "probe: too many at once");
    return 0;
}

void mfs_agent_probe(struct mfs_agent *a, const struct mfs_msg_probe *m, struct mfs_conn *conn,
                     uint64_t id)
{
    struct mfs_err err;

    if (!a->probe && (a->probe = calloc(1, sizeof *a->probe)))
        a->probe->listener = -1;
    if (!a->probe) {
        mfs_conn_fail(conn, id, -ENOMEM, "out of memory");
        return;
    }
    if (!strcmp(m->step, MFS_PROBE_OPEN)) {
        open_port(a, conn, id);
        return;
    }
    if (check(a, m, &err))
        mfs_agent_refuse(a, conn, id, err.code, err.msg);
    else
        start(a, m, conn, id);
}

void mfs_agent_probe_end(struct mfs_agent *a)
{
    if (!a->probe)
        return;
    forget_now(a->probe);
    free(a->probe);
    a->probe = NULL;
}
