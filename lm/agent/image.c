/* A checkpoint's steps on this node: HALTING → HALTED → CUTTING → CUT → WRITING → (over). One
 * checkpoint at a time; what fails, is dropped, or has lost its cm is over when its thread has
 * returned. cm asks for the steps one after another. */
#include "lm/agent/agent_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "lm/jobs/job_threads.h"
#include "lm/copy/imager.h"

#define AREA    "image"
#define MS_MOST 15000 /* that clients may be made to wait: sessions live 20 s */

struct mfs_agent_images {
    struct mfs_agent *agent;
    struct mfs_imager *imager; /* a job's thread's while one runs, but for cancel and written */
    const char *step;          /* the last one begun */
    bool busy;                 /* a job of it runs */
    bool dropped;
    struct mfs_deferred asker;
};

struct image_job {
    struct mfs_job job;
    struct mfs_agent_images *images;
    uint32_t ms;
    uint64_t halted_us;
    int rc;
    struct mfs_err err;
};

struct end_job {
    struct mfs_job job;
    struct mfs_imager *imager;
};

static void run_end(struct mfs_job *job)
{
    mfs_imager_destroy(((struct end_job *)job)->imager);
}

static void ended(struct mfs_job *job)
{
    free(job);
}

/* Closing its connections ends the children, and what is halted goes on. A process that does not
 * answer keeps only a thread waiting. */
static void over(struct mfs_agent_images *im)
{
    struct mfs_agent *a = im->agent;
    struct end_job *j = calloc(1, sizeof *j);

    a->images = NULL;
    if (j)
        *j = (struct end_job){{run_end, ended, NULL}, im->imager};
    if (!j || mfs_job_threads_run(a->job_threads, "image-end", &j->job)) {
        mfs_imager_destroy(im->imager);
        free(j);
    }
    mfs_deferred_drop(&im->asker);
    free(im);
}

void mfs_agent_images_drop(struct mfs_agent *a)
{
    struct mfs_agent_images *im = a->images;

    if (!im)
        return;
    im->dropped = true;
    mfs_imager_cancel(im->imager);
    if (!im->busy)
        over(im);
}

uint64_t mfs_agent_images_written(const struct mfs_agent *a)
{
    return a->images ? mfs_imager_written(a->images->imager) : 0;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void refuse(struct mfs_agent_images *im, int code, const char *why)
{
    mfs_deferred_fail(&im->asker, code, "node %u: %s", im->agent->opts.node, why);
}

static void reply_written(struct mfs_agent_images *im)
{
    size_t n;
    const struct mfs_imager_part *p = mfs_imager_parts(im->imager, &n);
    struct mfs_msg_image_reply m = {.nparts = (uint32_t)n, .part = calloc(n + 1, sizeof *m.part)};

    if (!m.part) {
        refuse(im, -ENOMEM, "out of memory");
        return;
    }
    for (size_t i = 0; i < n; i++) {
        m.part[i] = (struct mfs_image_part){
            .index = p[i].part, .bytes = p[i].bytes, .memory = p[i].memory, .losses = p[i].losses};
        memcpy(m.part[i].sum, p[i].sum, sizeof m.part[i].sum);
    }
    mfs_info(AREA, "%zu images are written", n);
    mfs_deferred_reply(&im->asker, MFS_MSG_IMAGE, &m);
    free(m.part);
}

static void step_done(struct mfs_job *job)
{
    struct image_job *j = (struct image_job *)job;
    struct mfs_agent_images *im = j->images;
    bool last = !strcmp(im->step, MFS_IMAGE_WRITE);
    struct mfs_msg_image_reply m = {.halted_us = j->halted_us};

    im->busy = false;
    if (im->dropped && !j->rc)
        j->rc = mfs_err_set(&j->err, -ECANCELED, "the checkpoint was given up");
    if (j->rc) {
        mfs_warn(AREA, "%s: %s", im->step, j->err.msg);
        refuse(im, j->rc, j->err.msg);
    } else if (last) {
        reply_written(im);
    } else {
        mfs_deferred_reply(&im->asker, MFS_MSG_IMAGE, &m);
    }
    if (j->rc || last)
        over(im);
    free(j);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void run_halt(struct mfs_job *job)
{
    struct image_job *j = (struct image_job *)job;

    j->rc = mfs_imager_halt(j->images->imager, j->ms, &j->err);
}

static void run_cut(struct mfs_job *job)
{
    struct image_job *j = (struct image_job *)job;

    j->rc = mfs_imager_cut(j->images->imager, &j->halted_us, &j->err);
}

static void run_write(struct mfs_job *job)
{
    struct image_job *j = (struct image_job *)job;

    j->rc = mfs_imager_write(j->images->imager, &j->err);
}

static void begin_step(struct mfs_agent_images *im, const char *step, void (*run)(struct mfs_job *),
                       uint32_t ms, struct mfs_conn *conn, uint64_t id)
{
    struct image_job *j = calloc(1, sizeof *j);
    int rc = -ENOMEM;

    mfs_deferred_drop(&im->asker);
    im->asker = mfs_reply_later(conn, id);
    im->step = step;
    if (j) {
        *j = (struct image_job){.job = {run, step_done, NULL}, .images = im, .ms = ms};
        im->busy = true;
        rc = mfs_job_threads_run(im->agent->job_threads, "image", &j->job);
    }
    if (!rc)
        return;
    im->busy = false;
    refuse(im, rc, strerror(-rc));
    over(im);
    free(j);
}

/* The processes of the partitions that cm names, for the caller to free. */
static struct mfs_redis *select_parts(struct mfs_agent *a, const struct mfs_msg_image *m,
                                      struct mfs_err *err)
{
    struct mfs_redis *r = calloc(m->nparts + 1, sizeof *r);

    if (!r)
        mfs_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < m->nparts && r; i++) {
        const struct mfs_agent_part *p = mfs_agent_part_find(a, m->part[i].index);

        if (p && !p->lost && !p->releasing) {
            r[i] = p->redis;
            continue;
        }
        mfs_err_set(err, -EIO, "partition %u does not run here", m->part[i].index);
        free(r);
        r = NULL;
    }
    return r;
}

static void halt(struct mfs_agent *a, const struct mfs_msg_image *m, struct mfs_conn *conn,
                 uint64_t id)
{
    struct mfs_agent_images *im = NULL;
    struct mfs_err err = {0};
    struct mfs_redis *r;

    if (a->images) {
        mfs_agent_images_drop(a);
        if (a->images) {
            mfs_agent_refuse(a, conn, id, -EAGAIN, "an earlier checkpoint is just being given up");
            return;
        }
    }
    r = select_parts(a, m, &err);
    if (r && (im = calloc(1, sizeof *im)))
        im->imager = mfs_imager_create(a->opts.name, m->dir, r, m->nparts);
    free(r);
    if (!im || !im->imager) {
        free(im);
        if (!err.code)
            mfs_err_set(&err, -ENOMEM, "out of memory");
        mfs_agent_refuse(a, conn, id, err.code, err.msg);
        return;
    }
    im->agent = a;
    a->images = im;
    begin_step(im, MFS_IMAGE_HALT, run_halt, m->ms < MS_MOST ? m->ms : MS_MOST, conn, id);
}

static void drop(struct mfs_agent *a, struct mfs_conn *conn, uint64_t id)
{
    mfs_agent_images_drop(a);
    mfs_conn_reply(conn, MFS_MSG_IMAGE, id, &(struct mfs_msg_image_reply){0});
}

void mfs_agent_image(struct mfs_agent *a, const struct mfs_msg_image *m, struct mfs_conn *conn,
                     uint64_t id)
{
    struct mfs_agent_images *im = a->images;
    const char *after = im && !im->busy && !im->dropped ? im->step : "";

    if (a->phase != MFS_AGENT_RUNNING)
        mfs_agent_refuse(a, conn, id, -ESHUTDOWN, "it is stopping");
    else if (!strcmp(m->step, MFS_IMAGE_HALT))
        halt(a, m, conn, id);
    else if (!strcmp(m->step, MFS_IMAGE_DROP))
        drop(a, conn, id);
    else if (!strcmp(m->step, MFS_IMAGE_CUT) && !strcmp(after, MFS_IMAGE_HALT))
        begin_step(im, MFS_IMAGE_CUT, run_cut, 0, conn, id);
    else if (!strcmp(m->step, MFS_IMAGE_WRITE) && !strcmp(after, MFS_IMAGE_CUT))
        begin_step(im, MFS_IMAGE_WRITE, run_write, 0, conn, id);
    else
        mfs_agent_refuse(a, conn, id, -EINVAL, "a step of a checkpoint that is not under way");
}
