/* The steps of a checkpoint (the header shows them), and the connection that waits for it.
 *
 * One checkpoint at a time: cm->checkpoint, from the request until its result is committed, has
 * failed, or its connection is gone. begin() waits until no change is under way; begin_step() asks
 * all nodes for a step and step_over() goes on when the last one has answered. `failure` is that of
 * the present attempt: then only `drop` follows, and after it, if it was -EAGAIN, another attempt.
 */
#include "cm/change/checkpoint.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cm/state/events.h"
#include "cm/change/scale/scale.h"

/* ms that partitions may stand still, and twice as long each time again */
#define HALT_FIRST 2000
#define ATTEMPTS   3
#define PAUSE      (300 * MFS_MSEC)
#define STEP_TIME  (30 * MFS_SEC)
#define CHANGES    (60 * MFS_SEC)  /* what has begun before may go on for so long */
#define WRITE_TIME (120 * MFS_SEC) /* and what the bytes take, at worst: */
#define WRITE_SLOW (2ULL << 20)    /* bytes/s */

static_assert(PAUSE < CHANGES, "it is looked more than once");
static_assert(STEP_TIME < WRITE_TIME, "writing takes longest");

struct mfs_checkpointing {
    struct mfs_cm *cm; /* NULL: it is ending, only answers are waited for */
    struct mfs_deferred from;
    char dir[MFS_PATH_MAX];
    const char *step;
    uint32_t waiting;        /* for so many answers to it */
    struct mfs_timer *timer; /* until the first attempt, or the next one, begins */
    struct mfs_err failure;  /* of this attempt; code 0: none */
    bool final;              /* no other attempt */
    int64_t began, write_began;
    struct mfs_checkpoint result;
    uint32_t found; /* partitions in the result */
};

static void begin_step(struct mfs_checkpointing *k, const char *step);

bool mfs_checkpoint_busy(const struct mfs_cm *cm)
{
    return cm->checkpoint != NULL;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void destroy(struct mfs_checkpointing *k)
{
    if (k->cm)
        k->cm->checkpoint = NULL;
    mfs_timer_cancel(k->timer);
    mfs_deferred_drop(&k->from);
    free(k->result.part);
    free(k);
}

static void report_failure(struct mfs_checkpointing *k)
{
    mfs_event_add(k->cm->paths->events, "cm", "checkpoint-failed", "%s: %s", k->dir,
                  k->failure.msg);
    mfs_deferred_fail(&k->from, k->failure.code, "%s", k->failure.msg);
    mfs_deferred_drop(&k->from);
}

static void finish(struct mfs_checkpointing *k)
{
    k->result.duration_ms = (double)(mfs_clock_mono() - k->began) / 1e6;
    mfs_deferred_reply(&k->from, MFS_MSG_CHECKPOINT, &k->result);
    destroy(k);
}

static void failed(struct mfs_checkpointing *k, int code, const char *who, const char *why)
{
    if (k->failure.code && (k->failure.code != -EAGAIN || code == -EAGAIN))
        return; /* the first, but rather one that another attempt would meet, too */
    mfs_err_set(&k->failure, code, "%s%s%s", who, *who ? ": " : "", why);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void again(void *arg)
{
    struct mfs_checkpointing *k = arg;

    k->timer = NULL;
    begin_step(k, MFS_IMAGE_HALT);
}

static void dropped(struct mfs_checkpointing *k)
{
    if (k->failure.code == -EAGAIN && !k->final && k->result.attempts < ATTEMPTS) {
        mfs_info("checkpoint", "cutting anew: %s", k->failure.msg);
        k->timer = mfs_loop_timer(k->cm->loop, PAUSE, 0, again, k);
        if (k->timer)
            return;
    }
    report_failure(k);
    destroy(k);
}

static void step_over(struct mfs_checkpointing *k)
{
    if (!strcmp(k->step, MFS_IMAGE_DROP)) {
        dropped(k);
        return;
    }
    if (!k->failure.code && !strcmp(k->step, MFS_IMAGE_WRITE) && k->found < k->result.nparts)
        failed(k, -EIO, "", "not every partition has an image");
    if (k->failure.code)
        begin_step(k, MFS_IMAGE_DROP);
    else if (!strcmp(k->step, MFS_IMAGE_HALT))
        begin_step(k, MFS_IMAGE_CUT);
    else if (!strcmp(k->step, MFS_IMAGE_CUT))
        begin_step(k, MFS_IMAGE_WRITE);
    else
        finish(k);
}

static void take_images(struct mfs_checkpointing *k, const struct mfs_msg_image_reply *r)
{
    for (uint32_t i = 0; i < r->nparts; i++) {
        const struct mfs_image_part *p = &r->part[i];

        if (p->index >= k->result.nparts || k->result.part[p->index].sum[0])
            continue;
        k->result.part[p->index] = *p;
        k->found += p->sum[0] != '\0';
    }
}

static void answered(void *arg, const struct mfs_err *err, const void *reply)
{
    struct mfs_checkpointing *k = arg;
    const struct mfs_msg_image_reply *r = reply;
    bool drop = !strcmp(k->step, MFS_IMAGE_DROP);

    if (!k->cm) {
        if (!--k->waiting)
            destroy(k);
        return;
    }
    if (err && !drop)
        failed(k, err->code, "", err->msg);
    if (!err && !strcmp(k->step, MFS_IMAGE_WRITE))
        take_images(k, r);
    if (!err && (double)r->halted_us / 1e3 > k->result.halted_ms)
        k->result.halted_ms = (double)r->halted_us / 1e3;
    if (!--k->waiting)
        step_over(k);
}

static void name_parts(const struct mfs_cm *cm, uint32_t node, struct mfs_msg_image *m)
{
    for (uint32_t i = 0; i < cm->state.nparts; i++)
        if (cm->state.part[i].node == node)
            m->part[m->nparts++].index = i;
}

static int ask(struct mfs_checkpointing *k, struct mfs_node *n, int64_t limit)
{
    struct mfs_msg_image m = {0};
    int rc = 0;

    mfs_text_copy(m.step, sizeof m.step, k->step);
    if (!strcmp(k->step, MFS_IMAGE_HALT)) {
        mfs_text_copy(m.dir, sizeof m.dir, k->dir);
        m.ms = HALT_FIRST << (k->result.attempts - 1);
        m.part = calloc(k->cm->state.nparts, sizeof *m.part);
        rc = m.part ? 0 : -ENOMEM;
        if (!rc)
            name_parts(k->cm, n->record->id, &m);
    }
    if (!rc)
        rc = n->conn ? mfs_conn_request(n->conn, MFS_MSG_IMAGE, &m, limit, answered, k) : -ENOTCONN;
    free(m.part);
    return rc;
}

static int64_t limit_of(const struct mfs_checkpointing *k)
{
    uint64_t bytes = 0;

    if (strcmp(k->step, MFS_IMAGE_WRITE))
        return STEP_TIME;
    for (uint32_t i = 0; i < k->cm->state.nparts; i++)
        bytes += k->cm->part_bytes[i];
    return WRITE_TIME + (int64_t)(bytes / WRITE_SLOW) * MFS_SEC;
}

static void begin_step(struct mfs_checkpointing *k, const char *step)
{
    struct mfs_cm *cm = k->cm;
    int64_t limit;
    int rc;

    k->step = step;
    if (!strcmp(step, MFS_IMAGE_HALT)) {
        k->failure = (struct mfs_err){0};
        k->result.attempts++;
    }
    if (!strcmp(step, MFS_IMAGE_WRITE))
        k->write_began = mfs_clock_mono();
    limit = limit_of(k);
    k->waiting = 1; /* ours */
    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        struct mfs_node *n = cm->nodes[i];

        /* One whose partitions have been taken over meanwhile has images all the same. */
        if (!mfs_cm_state_count(&cm->state, n->record->id) && strcmp(step, MFS_IMAGE_DROP))
            continue;
        rc = ask(k, n, limit);
        if (!rc)
            k->waiting++;
        else if (strcmp(step, MFS_IMAGE_DROP))
            failed(k, rc, n->record->name, rc == -ENOTCONN ? "it is not connected" : strerror(-rc));
    }
    if (!--k->waiting)
        step_over(k);
}

/* ---- the beginning --------------------------------------------------------------------------- */

static int check(const struct mfs_cm *cm, const struct mfs_msg_checkpoint *m, struct mfs_err *err)
{
    if (!mfs_cm_in_phase(cm, MFS_PHASE_RUNNING) || cm->step != MFS_STEP_DONE)
        return mfs_err_set(err, -EBUSY, "the deployment is %s", cm->state.phase);
    if (cm->checkpoint)
        return mfs_err_set(err, -EBUSY, "a checkpoint is being written to %s", cm->checkpoint->dir);
    if (m->dir[0] != '/')
        return mfs_err_set(err, -EINVAL, "not an absolute path: %s", m->dir);
    return 0;
}

static struct mfs_checkpointing *make(struct mfs_cm *cm, const char *dir)
{
    struct mfs_checkpointing *k = calloc(1, sizeof *k);

    if (!k)
        return NULL;
    k->cm = cm;
    k->step = MFS_IMAGE_HALT;
    k->began = mfs_clock_mono();
    k->result = (struct mfs_checkpoint){.stripe_size = cm->state.stripe_size,
                                        .nparts = cm->state.nparts,
                                        .part = calloc(cm->state.nparts, sizeof *k->result.part)};
    mfs_text_copy(k->dir, sizeof k->dir, dir);
    if (k->result.part)
        return k;
    free(k);
    return NULL;
}

/* No change of nodes or partitions begins while there is a checkpoint, but one may be under way:
 * `cm scale` returns while the last process that has left still ends. */
static void begin(void *arg)
{
    struct mfs_checkpointing *k = arg;
    struct mfs_cm *cm = k->cm;

    k->timer = NULL;
    if (!mfs_cm_unsettled(cm)) {
        k->result.epoch = cm->state.table->epoch;
        k->result.nodes = cm->state.nnodes;
        mfs_event_add(cm->paths->events, "cm", "checkpoint", "%s of %s, to %s",
                      MFS_TEXT_COUNT(k->result.nparts, "partition"),
                      MFS_TEXT_COUNT(k->result.nodes, "node"), k->dir);
        begin_step(k, MFS_IMAGE_HALT);
        return;
    }
    if (mfs_clock_mono() - k->began < CHANGES)
        k->timer = mfs_loop_timer(cm->loop, PAUSE, 0, begin, k);
    if (k->timer)
        return;
    failed(k, -EBUSY, "",
           "nodes or partitions are being changed; try again when that is done "
           "(cm status)");
    report_failure(k);
    destroy(k);
}

void mfs_checkpoint_on_ask(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_checkpoint *m = body;
    struct mfs_checkpointing *k;
    struct mfs_cm *cm = arg;
    struct mfs_err err;

    if (strcmp(mfs_conn_role(c), "cli")) {
        mfs_conn_fail(c, id, -EPERM, "only an operator may have a checkpoint");
        return;
    }
    if (check(cm, m, &err)) {
        mfs_conn_fail(c, id, err.code, "%s", err.msg);
        return;
    }
    k = make(cm, m->dir);
    if (!k) {
        mfs_conn_fail(c, id, -ENOMEM, "out of memory");
        return;
    }
    k->from = mfs_reply_later(c, id);
    cm->checkpoint = k;
    begin(k);
}

void mfs_checkpoint_on_committed(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_checkpointed *m = body;
    struct timespec t = mfs_clock_real();
    struct mfs_cm *cm = arg;
    int rc;

    if (strcmp(mfs_conn_role(c), "cli")) {
        mfs_conn_fail(c, id, -EPERM, "only an operator may have a checkpoint");
        return;
    }
    mfs_text_copy(cm->state.checkpoint_dir, sizeof cm->state.checkpoint_dir, m->dir);
    cm->state.checkpoint_time = (uint64_t)t.tv_sec;
    rc = mfs_cm_state_save(&cm->state, cm->paths->state);
    mfs_event_add(cm->paths->events, "cm", "checkpointed", "%s, %s", m->dir,
                  MFS_TEXT_BYTES(m->bytes));
    if (rc)
        mfs_conn_fail(c, id, rc, "%s: %s", cm->paths->state, strerror(-rc));
    else
        mfs_conn_reply(c, MFS_MSG_CHECKPOINTED, id, NULL);
}

/* ---- for the others -------------------------------------------------------------------------- */

static void nobody_waits(void *arg, const struct mfs_err *err, const void *reply)
{
    (void)arg;
    (void)err;
    (void)reply;
}

/* Has the nodes answer soon to what they were asked, which then leads to the end. */
static void give_up(struct mfs_checkpointing *k, const char *why)
{
    struct mfs_msg_image m = {.step = MFS_IMAGE_DROP};
    struct mfs_cm *cm = k->cm;

    k->final = true;
    k->failure.code = 0;
    failed(k, -ECANCELED, "", why);
    if (k->timer) { /* between two attempts */
        report_failure(k);
        destroy(k);
        return;
    }
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (cm->nodes[i]->conn)
            mfs_conn_request(cm->nodes[i]->conn, MFS_MSG_IMAGE, &m, STEP_TIME, nobody_waits, NULL);
}

void mfs_checkpoint_hung_up(struct mfs_cm *cm, const struct mfs_conn *c)
{
    struct mfs_checkpointing *k = cm->checkpoint;

    if (!k || k->from.conn != c)
        return;
    mfs_deferred_drop(&k->from);
    give_up(k, "who asked for it has gone");
}

void mfs_checkpoint_stop(struct mfs_cm *cm)
{
    if (cm->checkpoint)
        give_up(cm->checkpoint, "the deployment is being stopped");
}

void mfs_checkpoint_fini(struct mfs_cm *cm)
{
    struct mfs_checkpointing *k = cm->checkpoint;

    if (!k)
        return;
    cm->checkpoint = NULL;
    k->cm = NULL;
    if (!k->waiting)
        destroy(k);
}

void mfs_checkpoint_progress(const struct mfs_cm *cm, struct mfs_progress *p)
{
    const struct mfs_checkpointing *k = cm->checkpoint;
    double seconds;

    *p = (struct mfs_progress){0};
    if (!k)
        return;
    mfs_text_copy(p->what, sizeof p->what, "writing a checkpoint");
    if (strcmp(k->step, MFS_IMAGE_WRITE))
        return;
    for (uint32_t i = 0; i < cm->state.nparts; i++)
        p->bytes_total += cm->part_bytes[i];
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        p->bytes += cm->nodes[i]->last.image_bytes;
    seconds = (double)(mfs_clock_mono() - k->write_began) / 1e9;
    if (seconds > 0)
        p->rate = (double)p->bytes / seconds;
    if (p->rate > 0 && p->bytes_total > p->bytes)
        p->eta_ms = 1e3 * (double)(p->bytes_total - p->bytes) / p->rate;
}
