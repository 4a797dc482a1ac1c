/* Inside the Slurm provider: places and what the files give each other. The loop's thread. */
#ifndef MFS_CM_PROVIDER_SLURM_IMPL_H
#define MFS_CM_PROVIDER_SLURM_IMPL_H

#include <stdbool.h>

#include "cm/provider/hostlist.h"
#include "cm/provider/children.h"
#include "cm/provider/run.h"
#include "cm/provider/slurm/text.h"

enum mfs_slurm_state {
    MFS_SLURM_STEP,      /* a step in the allocation; children.h has the rest */
    MFS_SLURM_SUBMITTED, /* sbatch runs */
    MFS_SLURM_WAITS,     /* a job that does not run yet, or of which nothing has been seen yet */
    MFS_SLURM_RUNS,
    MFS_SLURM_LOST,     /* its job has ended */
    MFS_SLURM_CANCELLED /* scancel runs */
};

struct mfs_slurm_place {
    struct mfs_slurm *of;
    uint32_t node;
    enum mfs_slurm_state state;
    char host[MFS_HOSTLIST_NAME];      /* of a step */
    char job[MFS_SLURM_JOB_MAX];       /* of a job; "": its number is not known (any more) */
    char why[MFS_PROVIDER_REASON_MAX]; /* it waits, as told */
    bool seen;                         /* by the last squeue */
    struct mfs_run *run;               /* sbatch or scancel */
    struct mfs_slurm_place *next;
};

struct mfs_slurm {
    const struct mfs_provider_context *context;
    struct mfs_notices *notices;
    struct mfs_children *children;
    struct mfs_hostlist allocation;
    const char *job; /* of the allocation; NULL: there is none */
    struct mfs_slurm_place *first;
    struct mfs_timer *timer;
    struct mfs_run *look; /* squeue */
    bool failing;         /* it did last time */
};

/* slurm.c: keeps what was noted of the node, "job NUMBER". 0 or a negative errno. */
int mfs_slurm_note(const struct mfs_slurm_place *p);
/* Tells that there will be no lm: "what: why", or the one of them that is not "". */
void mfs_slurm_failed(const struct mfs_slurm_place *p, int code, const char *what, const char *why);
void mfs_slurm_unlist(struct mfs_slurm_place *p); /* frees it */

/* jobs.c: a place that is a job of its own */
int mfs_slurm_submit(struct mfs_slurm_place *p, const struct mfs_provider_node *n,
                     struct mfs_err *err); /* 0 or a negative errno with the reason */
void mfs_slurm_look(void *arg);            /* a timer's, every MFS_SLURM_LOOK */
void mfs_slurm_lost(struct mfs_slurm_place *p);
/* `released` will be told. 0 or a negative errno with the reason. */
int mfs_slurm_cancel(struct mfs_slurm_place *p, struct mfs_err *err);

#define MFS_SLURM_LOOK (2 * MFS_SEC)

/* options.c */
int mfs_slurm_check(const struct mfs_conf *conf, struct mfs_err *err);
int mfs_slurm_environment(struct mfs_conf *conf, struct mfs_err *err);
bool mfs_slurm_is_here(const struct mfs_conf *conf);

#endif
