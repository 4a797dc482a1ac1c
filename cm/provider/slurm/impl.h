/* Inside the Slurm provider: places and what the files give each other. The loop's thread. */
#ifndef MFS_CM_PROVIDER_SLURM_IMPL_H
#define MFS_CM_PROVIDER_SLURM_IMPL_H

#include <stdbool.h>

#include "cm/provider/hostlist.h"
#include "cm/provider/children.h"
#include "cm/provider/notices.h"
#include "cm/provider/slurm/text.h"

enum mfs_slurm_state {
    MFS_SLURM_STEP,      /* a step in the allocation; children.h has the rest */
    MFS_SLURM_SUBMITTED, /* a job is being submitted */
    MFS_SLURM_UNWANTED,  /* likewise, and the node is to be given back */
    MFS_SLURM_REFUSED,   /* that failed: what it may have left is cancelled */
    MFS_SLURM_WAITS,     /* a job that does not run yet, or of which nothing has been seen yet */
    MFS_SLURM_RUNS,
    MFS_SLURM_LOST,     /* its job has ended */
    MFS_SLURM_CANCELLED /* its job is being cancelled */
};

struct mfs_slurm_place {
    struct mfs_slurm *of;
    uint32_t node;
    enum mfs_slurm_state state;
    char host[MFS_HOSTLIST_NAME];      /* of a step */
    char job[MFS_SLURM_JOB_MAX];       /* of a job; "": its number is not known (any more) */
    char why[MFS_PROVIDER_REASON_MAX]; /* it waits, as told */
    struct mfs_err refusal;            /* REFUSED: why */
    bool seen;                         /* by the look that is under way, or not expected by it */
    bool asked;                        /* for it alone, in this look */
    bool warned;                       /* its job was sent SIGTERM, as its time is up soon */
    unsigned missed;            /* looks that knew no job of its name; its number is not known */
    struct mfs_timer *patience; /* UNWANTED: until the submission is given up */
    void *doing;                /* of s->way: the submission or cancellation under way */
    struct mfs_slurm_place *next;
};

/* How Slurm is spoken to: by its commands or by its REST API. Of what begins (0) the end is told by
 * the function that is named; a negative errno with the reason: nothing has begun. */
struct mfs_slurm_way {
    int (*open)(struct mfs_slurm *s, struct mfs_err *err); /* sets s->link */
    void (*close)(struct mfs_slurm *s);
    /* mfs_slurm_submitted */
    int (*submit)(struct mfs_slurm_place *p, const struct mfs_provider_node *n,
                  struct mfs_err *err);
    /* mfs_slurm_see for each job of places that are expected, then mfs_slurm_looked */
    int (*look)(struct mfs_slurm *s, struct mfs_err *err);
    /* mfs_slurm_cancelled */
    int (*cancel)(struct mfs_slurm_place *p, struct mfs_err *err);
    /* Nothing is told of p->doing any more: it goes on, or is ended. */
    void (*drop)(struct mfs_slurm_place *p, bool end);
};

extern const struct mfs_slurm_way mfs_slurm_commands, mfs_slurm_rest;

struct mfs_slurm {
    const struct mfs_provider_context *context;
    const struct mfs_slurm_way *way;
    void *link; /* of the way */
    struct mfs_notices *notices;
    struct mfs_children *children;
    struct mfs_hostlist allocation;
    const char *job;             /* of the allocation; NULL: there is none */
    char tag[MFS_SLURM_TAG_MAX]; /* that jobs of this deployment have as their comment */
    struct mfs_slurm_place *first;
    struct mfs_timer *timer;
    bool looking;
    bool failing; /* the last look did */
};

/* slurm.c: appends the script of a node's job, for sh. 0 or a negative errno. */
int mfs_slurm_script(const struct mfs_provider_context *c, const struct mfs_provider_node *n,
                     struct mfs_buf *out);
/* Keeps what was noted of the node, "job NUMBER". 0 or a negative errno. */
int mfs_slurm_note(const struct mfs_slurm_place *p);
/* Tells that there will be no lm: "what: why", or the one of them that is not "". */
void mfs_slurm_failed(const struct mfs_slurm_place *p, int code, const char *what, const char *why);
void mfs_slurm_unlist(struct mfs_slurm_place *p); /* frees it */

/* jobs.c: a place that is a job of its own */
void mfs_slurm_look(void *arg); /* a timer's, every MFS_SLURM_LOOK */
void mfs_slurm_lost(struct mfs_slurm_place *p);
void mfs_slurm_cancel(struct mfs_slurm_place *p);            /* `released` will be told */
bool mfs_slurm_is_expected(const struct mfs_slurm_place *p); /* has it a job to be seen? */

/* What ways tell. `why` is NULL, or why it failed; with -EREMOTEIO Slurm itself has refused, and
 * there is no job. */
void mfs_slurm_submitted(struct mfs_slurm_place *p, const struct mfs_err *why, const char *job);
void mfs_slurm_see(const struct mfs_slurm *s, const struct mfs_slurm_job *j);
void mfs_slurm_looked(struct mfs_slurm *s, const struct mfs_err *why);
void mfs_slurm_cancelled(struct mfs_slurm_place *p, const struct mfs_err *why);

#define MFS_SLURM_LOOK        (2 * MFS_SEC)
#define MFS_SLURM_LOOK_TIME   (20 * MFS_SEC) /* for one look */
#define MFS_SLURM_SUBMIT_TIME (60 * MFS_SEC)
#define MFS_SLURM_CANCEL_TIME (20 * MFS_SEC)

/* options.c */
int mfs_slurm_check(const struct mfs_conf *conf, struct mfs_err *err);
int mfs_slurm_environment(struct mfs_conf *conf, struct mfs_err *err);
bool mfs_slurm_is_here(const struct mfs_conf *conf);

#endif
