/* What is said to slurmrestd, and what it answers. Pure.
 *
 * Source: "Slurm REST API", v0.0.36 to v0.0.45. Up to v0.0.38 a job is described as by sbatch's
 * options, and a job's state is one word; later ones have types and lists of flags of their own,
 * and numbers that may be {"set", "infinite", "number"}. */
#ifndef MFS_CM_PROVIDER_SLURM_REST_TEXT_H
#define MFS_CM_PROVIDER_SLURM_REST_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "cm/provider/slurm/text.h"

#define MFS_SLURM_API_FIRST 36 /* v0.0.36, of Slurm 20.11 */
#define MFS_SLURM_API_TYPED                                                                        \
    39 /* the first one whose jobs are not described by sbatch's options                           \
        */
#define MFS_SLURM_API_LAST 45

#define MFS_SLURM_NO_SUCH_JOB 2017 /* slurm_errno.h: ESLURM_INVALID_JOB_ID */

/* A job as it is submitted. Texts that may be NULL are marked. */
struct mfs_slurm_submission {
    const char *name, *comment;
    const char *script;
    const char *directory;
    const char *partition, *account, *minutes; /* may be NULL */
    uint64_t mib;                              /* memory of each node */
    const char *const *environment;            /* "NAME=value", the last one NULL; not empty */
};

/* The body of a request in that version. 0 or -ENOMEM. */
int mfs_slurm_rest_body(int version, const struct mfs_slurm_submission *s, struct mfs_buf *out);

struct mfs_slurm_answer {
    char job[MFS_SLURM_JOB_MAX]; /* that has been submitted; "": none */
    int64_t number;              /* Slurm's, of the first error; 0: none is told */
    char error[300];             /* the first error; "": there is none */
    bool has_jobs;               /* it lists jobs, if only none */
};

/* Tells each job that the answer has, when `each` is not NULL. 0, or -EPROTO with the reason: it is
 * no answer of slurmrestd's; or -ENOMEM. */
int mfs_slurm_rest_read(const char *text, size_t len,
                        void (*each)(void *arg, const struct mfs_slurm_job *j), void *arg,
                        struct mfs_slurm_answer *out, struct mfs_err *err);

#endif
