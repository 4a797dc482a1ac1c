/* What is said to Slurm's commands, and what they answer. Pure. */
#ifndef MFS_CM_PROVIDER_SLURM_TEXT_H
#define MFS_CM_PROVIDER_SLURM_TEXT_H

#include <stdint.h>

#include "base/buf.h"
#include "cm/provider/provider.h"

#define MFS_SLURM_JOB_MAX 24 /* bytes of a job's number, with its NUL */
#define MFS_SLURM_TAG_MAX 17 /* of a deployment's tag */

/* To the script of a job, which is the lm, and s before its time is up. */
#define MFS_SLURM_SIGNAL  "B:TERM@60"
#define MFS_SLURM_WARNING 60

/* As squeue(1) shows it, in the order of mfs_slurm_format. */
struct mfs_slurm_job {
    char id[MFS_SLURM_JOB_MAX];
    char name[96];
    char state[24]; /* PENDING, RUNNING, … as squeue(1) lists them */
    char reason[64];
    char start[32]; /* expected, or since; "N/A" */
    char host[MFS_HOST_MAX];
    char comment[64]; /* the tag of its deployment, if it is one of ours */
    int64_t end;      /* s since 1970; 0: it is not known, or not asked for */
};

/* For squeue --format. */
extern const char mfs_slurm_format[];

/* One line of squeue's answer, without its end. 0, or -EINVAL: it is none. */
int mfs_slurm_parse(const char *line, size_t len, struct mfs_slurm_job *out);

/* A state that is not known says nothing new: the job is as it was. */
enum mfs_slurm_phase { MFS_SLURM_UNKNOWN, MFS_SLURM_PENDING, MFS_SLURM_RUNNING, MFS_SLURM_ENDED };

enum mfs_slurm_phase mfs_slurm_phase(const char *state);

/* Why it waits, for people: "Resources; expected at 2026-11-26T14:05:00". */
void mfs_slurm_why(const struct mfs_slurm_job *j, char out[MFS_PROVIDER_REASON_MAX]);

/* A node's job has a name of its own, by which it is found where its number was not noted. */
void mfs_slurm_name(const struct mfs_provider_context *c, uint32_t node, char out[96]);

/* The number that `sbatch --parsable` has printed ("12", "12;cluster"). 0 or -EPROTO. */
int mfs_slurm_number(const char *text, char job[MFS_SLURM_JOB_MAX]);

/* MiB that a node's job asks for: what the node gives, and as much again as a mount and programs of
 * ours take beside it. */
uint64_t mfs_slurm_mib(uint64_t memory);

#endif
