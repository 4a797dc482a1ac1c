#include "cm/history/keep.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/trusted_dir.h"
#include "cm/nodes/metrics.h"
#include "cm/nodes/mounts.h"

#define AREA    "history"
#define TICK    MFS_SEC
#define WRITES  60 /* s between two */
#define ROUND   5  /* s between two looks at mounts, which tell as rarely */
#define CURRENT (12 * MFS_SEC)

struct mfs_cm_history {
    struct mfs_cm *cm;
    struct mfs_history *history;
    struct mfs_timer *timer;
    uint64_t ticks;
    struct mfs_mounts_done before;  /* at the last look, of which `when` is */
    float rate, p99, read, written; /* of the last round */
    bool fails;                     /* the file could not be written, which the log has said */
};

/* ---- operations ------------------------------------------------------------------------------ */

static void look_at_mounts(struct mfs_cm_history *h)
{
    const struct mfs_mounts_done *done = mfs_mounts_done(h->cm);
    struct mfs_metric_bucket list[MFS_METRIC_BUCKETS];
    struct mfs_metric_sample since = {.bucket = list};
    int64_t now = mfs_clock_mono();
    bool known = done->when && now - done->when <= CURRENT, was = h->before.when != 0;

    h->rate = h->p99 = h->read = h->written = NAN;
    for (uint32_t i = 0; i < MFS_METRIC_BUCKETS && known && was; i++) {
        uint64_t n = done->bucket[i] - h->before.bucket[i];

        since.value += n;
        if (n)
            list[since.nbuckets++] = (struct mfs_metric_bucket){i, n};
    }
    if (known && was) {
        double s = (double)(now - h->before.when) / MFS_SEC;

        h->rate = (float)((double)since.value / s);
        h->read = (float)((double)(done->read - h->before.read) / s);
        h->written = (float)((double)(done->written - h->before.written) / s);
    }
    if (since.value)
        h->p99 = (float)mfs_metric_quantile(&since, 0.99);
    h->before = *done;
    h->before.when = known ? now : 0;
}

/* ---- each second ----------------------------------------------------------------------------- */

static void look_at_nodes(struct mfs_cm_history *h, int64_t time, float f[MFS_HISTORY_FIGURES])
{
    const struct mfs_cm *cm = h->cm;

    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        const struct mfs_node *n = cm->nodes[i];
        float of[MFS_HISTORY_NODE_FIGURES];

        f[MFS_HISTORY_ALLOCATED] += (float)n->record->memory;
        if (!n->conn || !n->reported)
            continue;
        of[MFS_HISTORY_NODE_USED] = (float)n->last.memory_used;
        of[MFS_HISTORY_NODE_IN] = (float)n->last.bandwidth_in;
        of[MFS_HISTORY_NODE_OUT] = (float)n->last.bandwidth_out;
        f[MFS_HISTORY_NODES_THERE]++;
        f[MFS_HISTORY_USED] += of[MFS_HISTORY_NODE_USED];
        f[MFS_HISTORY_CAPACITY] += (float)n->last.memory_capacity;
        f[MFS_HISTORY_IN] += of[MFS_HISTORY_NODE_IN];
        f[MFS_HISTORY_OUT] += of[MFS_HISTORY_NODE_OUT];
        mfs_history_put_node(h->history, time, n->record->name, of);
    }
}

static int save(struct mfs_cm_history *h)
{
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    rc = mfs_history_save(h->history, &b);
    if (!rc)
        rc = mfs_file_note(h->cm->paths->history, mfs_buf_data(&b), mfs_buf_len(&b), 0600);
    mfs_buf_fini(&b);
    if (rc && !h->fails)
        mfs_warn(AREA, "%s: %s", h->cm->paths->history, strerror(-rc));
    h->fails = rc != 0;
    return rc;
}

static void tick(void *arg)
{
    struct mfs_cm_history *h = arg;
    float f[MFS_HISTORY_FIGURES] = {0};
    int64_t now = mfs_clock_real().tv_sec;

    if (!mfs_cm_in_phase(h->cm, MFS_PHASE_RUNNING))
        return;
    if (h->ticks++ % ROUND == 0)
        look_at_mounts(h);
    look_at_nodes(h, now, f);
    f[MFS_HISTORY_OPERATIONS] = h->rate;
    f[MFS_HISTORY_P99] = h->p99;
    f[MFS_HISTORY_READ] = h->read;
    f[MFS_HISTORY_WRITTEN] = h->written;
    f[MFS_HISTORY_MOVES] = (float)h->cm->state.nmoves;
    f[MFS_HISTORY_PAID] = (float)h->cm->state.nnodes;
    if (f[MFS_HISTORY_NODES_THERE] > 0)
        mfs_history_put(h->history, now, f);
    if (h->ticks % WRITES == 0)
        save(h);
}

void mfs_history_on_ask(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    struct mfs_cm *cm = arg;
    int rc = save(cm->history);

    (void)body;
    if (rc)
        mfs_conn_fail(c, id, rc, "%s: %s", cm->paths->history, strerror(-rc));
    else
        mfs_conn_reply(c, MFS_MSG_HISTORY, id, NULL);
}

/* ---- its life -------------------------------------------------------------------------------- */

static void load(struct mfs_cm_history *h)
{
    const char *path = h->cm->paths->history;
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    rc = mfs_trusted_read(path, MFS_HISTORY_FILE_MAX, &b);
    if (!rc)
        rc = mfs_history_load(h->history, mfs_buf_data(&b), mfs_buf_len(&b));
    mfs_buf_fini(&b);
    if (rc == -EINVAL)
        mfs_info(AREA, "%s is torn, or of another version: it begins anew", path);
    else if (rc && rc != -ENOENT)
        mfs_warn(AREA, "%s: %s", path, strerror(-rc));
}

int mfs_history_begin(struct mfs_cm *cm)
{
    struct mfs_cm_history *h = calloc(1, sizeof *h);

    if (!h)
        return -ENOMEM;
    cm->history = h;
    h->cm = cm;
    h->rate = h->p99 = NAN;
    h->history = mfs_history_create();
    h->timer = h->history ? mfs_loop_timer(cm->loop, TICK, TICK, tick, h) : NULL;
    if (!h->timer)
        return -ENOMEM;
    if (mfs_cm_in_phase(cm, MFS_PHASE_RUNNING))
        load(h);
    return 0;
}

void mfs_history_end(struct mfs_cm *cm, bool keep)
{
    struct mfs_cm_history *h = cm->history;

    if (!h)
        return;
    if (keep && h->history)
        save(h);
    mfs_timer_cancel(h->timer);
    mfs_history_destroy(h->history);
    free(h);
    cm->history = NULL;
}

const struct mfs_history *mfs_history_of(const struct mfs_cm *cm)
{
    return cm->history->history;
}
