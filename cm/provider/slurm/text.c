#include "cm/provider/slurm/text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define MIB (1ULL << 20)

const char mfs_slurm_format[] = "%i|%j|%T|%r|%S|%N|%k";

/* Up to the next '|', or, the last one, to the end. False: it is too long. */
static bool field(const char **at, const char *end, bool last, char *out, size_t n)
{
    const char *bar = last ? NULL : memchr(*at, '|', (size_t)(end - *at));
    size_t len = (size_t)((bar ? bar : end) - *at);

    if (len >= n)
        return false;
    memcpy(out, *at, len);
    out[len] = '\0';
    *at = bar ? bar + 1 : end;
    return true;
}

int mfs_slurm_parse(const char *line, size_t len, struct mfs_slurm_job *out)
{
    const struct {
        char *to;
        size_t n;
    } fields[] = {{out->id, sizeof out->id},          {out->name, sizeof out->name},
                  {out->state, sizeof out->state},    {out->reason, sizeof out->reason},
                  {out->start, sizeof out->start},    {out->host, sizeof out->host},
                  {out->comment, sizeof out->comment}};
    const char *at = line, *end = line + len;

    const size_t n = sizeof fields / sizeof *fields;

    for (size_t i = 0; i < n; i++)
        if (!field(&at, end, i + 1 == n, fields[i].to, fields[i].n))
            return -EINVAL;
    return out->id[0] && out->state[0] ? 0 : -EINVAL;
}

enum mfs_slurm_phase mfs_slurm_phase(const char *state)
{
    static const struct {
        const char *state;
        enum mfs_slurm_phase phase;
    } phases[] = {{"PENDING", MFS_SLURM_PENDING},     {"CONFIGURING", MFS_SLURM_PENDING},
                  {"REQUEUED", MFS_SLURM_PENDING},    {"RUNNING", MFS_SLURM_RUNNING},
                  {"SUSPENDED", MFS_SLURM_RUNNING},   {"STOPPED", MFS_SLURM_RUNNING},
                  {"COMPLETING", MFS_SLURM_ENDED},    {"COMPLETED", MFS_SLURM_ENDED},
                  {"CANCELLED", MFS_SLURM_ENDED},     {"FAILED", MFS_SLURM_ENDED},
                  {"TIMEOUT", MFS_SLURM_ENDED},       {"NODE_FAIL", MFS_SLURM_ENDED},
                  {"OUT_OF_MEMORY", MFS_SLURM_ENDED}, {"PREEMPTED", MFS_SLURM_ENDED},
                  {"BOOT_FAIL", MFS_SLURM_ENDED},     {"DEADLINE", MFS_SLURM_ENDED},
                  {"REVOKED", MFS_SLURM_ENDED}};

    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++)
        if (!strcmp(state, phases[i].state))
            return phases[i].phase;
    return MFS_SLURM_UNKNOWN;
}

void mfs_slurm_why(const struct mfs_slurm_job *j, char out[MFS_PROVIDER_REASON_MAX])
{
    bool known = strcmp(j->start, "N/A") && j->start[0];
    const char *reason = !strcmp(j->state, "PENDING") ? j->reason : j->state;

    if (known)
        mfs_text_format(out, MFS_PROVIDER_REASON_MAX, "job %s: %s; expected at %s", j->id, reason,
                        j->start);
    else
        mfs_text_format(out, MFS_PROVIDER_REASON_MAX, "job %s: %s", j->id, reason);
}

void mfs_slurm_name(const struct mfs_provider_context *c, uint32_t node, char out[96])
{
    snprintf(out, 96, "memefs-%s-node-%u", c->paths->name, node);
}

int mfs_slurm_number(const char *text, char job[MFS_SLURM_JOB_MAX])
{
    size_t len = strspn(text, "0123456789");

    if (!len || len >= MFS_SLURM_JOB_MAX || !strchr(";\n", text[len]))
        return -EPROTO;
    memcpy(job, text, len);
    job[len] = '\0';
    return 0;
}

uint64_t mfs_slurm_mib(uint64_t memory)
{
    return memory / MIB + memory / MIB / 4 + 64;
}
