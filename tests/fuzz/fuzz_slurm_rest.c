/* What slurmrestd may answer, or whatever answers in its place: jobs have a number and a state,
 * texts end, a number of a job is one. A token's claims likewise: the input is one, too. */
#include <stdlib.h>
#include <string.h>

#include "cm/provider/slurm/rest_text.h"
#include "cm/provider/slurm/token.h"
#include "input.h"

static void check(void *arg, const struct mfs_slurm_job *j)
{
    char why[MFS_PROVIDER_REASON_MAX];

    ++*(unsigned *)arg;
    FUZZ_CHECK(j->id[0] && j->state[0] && strspn(j->id, "0123456789") == strlen(j->id));
    FUZZ_CHECK(strlen(j->name) < sizeof j->name && strlen(j->host) < sizeof j->host &&
               strlen(j->comment) < sizeof j->comment && j->start[0]);
    mfs_slurm_phase(j->state);
    mfs_slurm_why(j, why);
}

static void read_token(const uint8_t *p, size_t n)
{
    char token[MFS_SLURM_TOKEN_MAX];
    struct mfs_slurm_claims claims;

    if (mfs_slurm_token_read((const char *)p, n, token))
        return;
    FUZZ_CHECK(token[0] && !strpbrk(token, " \r\n:"));
    mfs_slurm_token_claims(token, &claims);
    FUZZ_CHECK(strlen(claims.sun) < sizeof claims.sun && !strpbrk(claims.sun, "\r\n"));
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct mfs_slurm_answer a;
    struct mfs_err err;
    unsigned jobs = 0;
    int rc = mfs_slurm_rest_read((const char *)p, n, check, &jobs, &a, &err);

    FUZZ_CHECK(!rc || (!jobs && !a.error[0] && !a.job[0]));
    FUZZ_CHECK(strspn(a.job, "0123456789") == strlen(a.job) && !strchr(a.error, '\n'));
    read_token(p, n);
    return 0;
}
