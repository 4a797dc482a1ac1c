/* Runs the probes; see the header. A lane is a group of nodes that are measured one after the
 * other. One measurement: the node opens a port; other nodes are asked to connect to it and the
 * node is asked to measure; it answers. */
#include "cm/change/probe.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "cm/state/events.h"

#define AREA         "probe"
#define OPEN_TIME    (2 * MFS_SEC)
#define MEASURE_TIME (6 * MFS_CM_PROBE_MS * MFS_MSEC + 4 * MFS_SEC)
#define PASSWORD     32 /* bytes, of random */

static_assert(OPEN_TIME + MEASURE_TIME <= 9 * MFS_SEC, "as the header promises");
static_assert(OPEN_TIME + MEASURE_TIME < MFS_CM_PROBE_ALL_NS,
              "a silent node leaves time for others");

struct lane {
    struct mfs_cm_probe *probe;
    const uint32_t *node; /* ids of those to be measured, in order */
    uint32_t n, at;
    bool others_help; /* nodes beside those of the lane */
    struct mfs_msg_probe how;
};

struct mfs_cm_probe {
    struct mfs_cm *cm;
    uint32_t *node, n;
    struct lane *lane;
    uint32_t nlanes, running;
    int64_t until;
    struct mfs_timer *end;
    void (*done)(struct mfs_cm *cm, void *arg);
    void *arg;
};

static void measure_next(struct lane *l);

bool mfs_cm_probe_goes_on(const struct mfs_cm *cm)
{
    return cm->probe;
}

static void destroy(struct mfs_cm_probe *p)
{
    mfs_timer_cancel(p->end);
    free(p->node);
    free(p->lane);
    free(p);
}

void mfs_cm_probe_fini(struct mfs_cm *cm)
{
    if (cm->probe)
        destroy(cm->probe);
    cm->probe = NULL;
}

/* From the loop, as an answer may come from inside of another module's call. */
static void finish(void *arg)
{
    struct mfs_cm_probe *p = arg;
    struct mfs_cm *cm = p->cm;

    p->end = NULL;
    cm->probe = NULL;
    p->done(cm, p->arg);
    destroy(p);
}

static void lane_over(struct mfs_cm_probe *p)
{
    p->running--;
    if (p->running || mfs_cm_in_phase(p->cm, MFS_PHASE_STOPPING))
        return;
    p->end = mfs_loop_timer(p->cm->loop, 0, 0, finish, p);
    if (!p->end)
        mfs_error(AREA, "out of memory: nothing goes on after it");
}

/* ---- the helpers ----------------------------------------------------------------------------- */

static bool in_lane(const struct lane *l, uint32_t id)
{
    for (uint32_t i = 0; i < l->n; i++) {
        if (l->node[i] == id)
            return true;
    }
    return false;
}

/* What is unknown may be fast. */
static double speed(const struct mfs_node *n)
{
    return n->record->bandwidth > 0 ? n->record->bandwidth : INFINITY;
}

/* The fastest others, into help[]; returns their number. */
static uint32_t choose_help(const struct lane *l, uint32_t target,
                            struct mfs_node *help[MFS_CM_PROBE_HELP])
{
    const struct mfs_cm *cm = l->probe->cm;
    uint32_t n = 0;

    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        struct mfs_node *one = cm->nodes[i];
        uint32_t at = n;

        if (!one->conn || one->record->id == target ||
            (!l->others_help && !in_lane(l, one->record->id)))
            continue;
        while (at > 0 && speed(help[at - 1]) < speed(one))
            at--;
        if (at == MFS_CM_PROBE_HELP)
            continue;
        n += n < MFS_CM_PROBE_HELP;
        memmove(help + at + 1, help + at, (n - at - 1) * sizeof(struct mfs_node *));
        help[at] = one;
    }
    return n;
}

/* ---- one measurement ------------------------------------------------------------------------- */

static void note(struct mfs_cm *cm, uint32_t id, double in, double out)
{
    struct mfs_node *n = mfs_nodes_find(cm, id);

    if (!n || !(fmin(in, out) > 0))
        return;
    n->record->bandwidth = fmin(in, out);
    mfs_text_copy(n->record->bandwidth_from, sizeof n->record->bandwidth_from,
                  MFS_BANDWIDTH_PROBED);
    mfs_event_add(cm->paths->events, n->record->name, "probed", "in %s/s, out %s/s",
                  MFS_TEXT_BYTES((uint64_t)in), MFS_TEXT_BYTES((uint64_t)out));
}

static void failed(struct lane *l, const char *why)
{
    const struct mfs_node *node = mfs_nodes_find(l->probe->cm, l->node[l->at]);

    if (node)
        mfs_event_add(l->probe->cm->paths->events, node->record->name, "not-probed", "%s", why);
}

static void measured(void *arg, const struct mfs_err *err, const void *reply)
{
    const struct mfs_msg_probe_reply *r = reply;
    struct lane *l = arg;

    if (err)
        failed(l, err->msg);
    else
        note(l->probe->cm, l->node[l->at], r->in, r->out);
    l->at++;
    measure_next(l);
}

/* The helpers' answers are of no interest: the node measures with those that connect. */
static void met(void *arg, const struct mfs_err *err, const void *reply)
{
    (void)arg;
    (void)reply;
    if (err)
        mfs_info(AREA, "%s", err->msg);
}

static uint32_t call_help(const struct lane *l, const struct mfs_node *target, uint32_t port)
{
    struct mfs_node *help[MFS_CM_PROBE_HELP];
    struct mfs_msg_probe m = l->how;
    uint32_t n = choose_help(l, target->record->id, help), called = 0;

    mfs_text_copy(m.step, sizeof m.step, MFS_PROBE_MEET);
    mfs_text_copy(m.host, sizeof m.host, target->record->address);
    m.port = port;
    for (uint32_t i = 0; i < n; i++)
        called += !mfs_conn_request(help[i]->conn, MFS_MSG_PROBE, &m, MEASURE_TIME, met, NULL);
    return called;
}

static void opened(void *arg, const struct mfs_err *err, const void *reply)
{
    const struct mfs_msg_probe_reply *r = reply;
    struct lane *l = arg;
    const struct mfs_node *target = mfs_nodes_find(l->probe->cm, l->node[l->at]);
    int rc = -ENOTCONN;

    if (err)
        failed(l, err->msg);
    if (!err && target && target->conn && (l->how.peers = call_help(l, target, r->port))) {
        mfs_text_copy(l->how.step, sizeof l->how.step, MFS_PROBE_MEASURE);
        rc = mfs_conn_request(target->conn, MFS_MSG_PROBE, &l->how, MEASURE_TIME, measured, l);
    }
    if (rc) {
        l->at++;
        measure_next(l);
    }
}

/* Begins with the node at l->at, if it can be measured. */
static int begin_measurement(struct lane *l)
{
    const struct mfs_node *target = mfs_nodes_find(l->probe->cm, l->node[l->at]);
    struct mfs_msg_probe open = {0};
    int rc;

    if (!target || !target->conn)
        return -ENOTCONN;
    l->how = (struct mfs_msg_probe){.ms = MFS_CM_PROBE_MS, .bytes = MFS_CM_PROBE_BYTES};
    rc = mfs_random_hex(l->how.password, PASSWORD);
    if (rc)
        return rc;
    mfs_text_copy(open.step, sizeof open.step, MFS_PROBE_OPEN);
    return mfs_conn_request(target->conn, MFS_MSG_PROBE, &open, OPEN_TIME, opened, l);
}

static void measure_next(struct lane *l)
{
    const struct mfs_cm_probe *p = l->probe;

    while (l->at < l->n && !mfs_cm_in_phase(p->cm, MFS_PHASE_STOPPING) &&
           mfs_clock_mono() < p->until) {
        if (!begin_measurement(l))
            return;
        l->at++;
    }
    lane_over(l->probe);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static uint32_t choose_nodes(const struct mfs_cm *cm, const uint32_t *node, uint32_t n,
                             uint32_t *out)
{
    uint32_t chosen = 0;

    for (uint32_t i = 0; i < n; i++) {
        const struct mfs_node *there = mfs_nodes_find(cm, node[i]);

        if (there && there->conn && strcmp(there->record->bandwidth_from, MFS_BANDWIDTH_CONFIGURED))
            out[chosen++] = node[i];
    }
    return cm->state.nnodes > 1 ? chosen : 0;
}

/* Groups of the same size, or nearly so. */
static void make_lanes(struct mfs_cm_probe *p)
{
    for (uint32_t i = 0; i < p->nlanes; i++) {
        uint32_t from = (uint32_t)((uint64_t)p->n * i / p->nlanes);
        uint32_t to = (uint32_t)((uint64_t)p->n * (i + 1) / p->nlanes);

        p->lane[i] = (struct lane){
            .probe = p, .node = p->node + from, .n = to - from, .others_help = p->nlanes == 1};
    }
}

int mfs_cm_probe_begin(struct mfs_cm *cm, const uint32_t *node, uint32_t n,
                       void (*done)(struct mfs_cm *cm, void *arg), void *arg)
{
    struct mfs_cm_probe *p;

    if (cm->probe)
        return -EBUSY;
    p = calloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    *p = (struct mfs_cm_probe){.cm = cm, .done = done, .arg = arg};
    p->node = calloc(n + 1, sizeof *p->node);
    p->lane = calloc(n / MFS_CM_PROBE_HELP + 1, sizeof *p->lane);
    p->n = p->node ? choose_nodes(cm, node, n, p->node) : 0;
    if (!p->node || !p->lane || !p->n) {
        int rc = p->node && p->lane ? -ENOTCONN : -ENOMEM;

        destroy(p);
        return rc;
    }
    p->nlanes = p->running = (p->n + MFS_CM_PROBE_HELP) / (MFS_CM_PROBE_HELP + 1);
    p->until = mfs_clock_mono() + MFS_CM_PROBE_ALL_NS;
    make_lanes(p);
    cm->probe = p;
    mfs_event_add(cm->paths->events, "cm", "probing", "%s", MFS_TEXT_COUNT(p->n, "node"));
    for (uint32_t i = 0; i < p->nlanes; i++)
        measure_next(&p->lane[i]);
    return 0;
}
