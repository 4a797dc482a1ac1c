/* Options of the Slurm provider, and what an allocation tells of them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "cm/provider/options.h"
#include "cm/provider/slurm/impl.h"

const struct mfs_conf_option mfs_slurm_options[] = {
    {"slurm-job", MFS_CONF_STRING, "JOB", NULL, 1, MFS_SLURM_JOB_MAX - 1,
     "with --provider slurm: the allocation whose hosts are the first nodes (SLURM_JOB_ID)"},
    {"slurm-hosts", MFS_CONF_STRING, "LIST", NULL, 1, 511,
     "likewise: its hosts, as in tux[1-4,7] (SLURM_JOB_NODELIST)"},
    {"slurm-args", MFS_CONF_STRING, "ARGUMENTS", NULL, 1, 511,
     "likewise: for sbatch, which gets nodes beyond the allocation, e.g. '--partition=short "
     "--time=60'"},
    {0}};

int mfs_slurm_check(const struct mfs_conf *conf, struct mfs_err *err)
{
    const char *job = mfs_conf_str(conf, "slurm-job"), *hosts = mfs_conf_str(conf, "slurm-hosts");
    struct mfs_hostlist l;

    if (!job != !hosts)
        return mfs_err_set(err, -EINVAL, "slurm-job, slurm-hosts: give both or neither");
    if (!hosts)
        return 0;
    if (job[strspn(job, "0123456789_+")])
        return mfs_err_set(err, -EINVAL, "slurm-job: %s is no job's number", job);
    if (mfs_hostlist_parse(hosts, &l, err)) {
        mfs_err_prefix(err, "slurm-hosts");
        return err->code = -EINVAL;
    }
    mfs_hostlist_clear(&l);
    return 0;
}

static uint64_t environment_number(const char *name)
{
    const char *text = getenv(name);
    uint64_t n;

    return text && !mfs_text_u64(text, &n) ? n : 0;
}

/* MiB of a node's memory in this allocation; 0: not known. */
static uint64_t allocated_mib(void)
{
    uint64_t node = environment_number("SLURM_MEM_PER_NODE");

    return node
               ? node
               : environment_number("SLURM_MEM_PER_CPU") * environment_number("SLURM_CPUS_ON_NODE");
}

static void set(struct mfs_conf *conf, const char *key, const char *value)
{
    struct mfs_err err;

    if (mfs_provider_complete(conf, key, value, &err))
        mfs_warn("slurm", "%s: %s", key, err.msg);
}

/* Half of what the allocation has of a node is for the application. */
int mfs_slurm_environment(struct mfs_conf *conf, struct mfs_err *err)
{
    uint64_t mib = allocated_mib();
    struct mfs_hostlist l;
    char text[32];

    set(conf, "slurm-job", getenv("SLURM_JOB_ID"));
    set(conf, "slurm-hosts", getenv("SLURM_JOB_NODELIST"));
    if (mib) {
        snprintf(text, sizeof text, "%lluM", (unsigned long long)mib / 2);
        set(conf, "memory", text);
    }
    if (!mfs_conf_str(conf, "slurm-hosts") ||
        mfs_hostlist_parse(mfs_conf_str(conf, "slurm-hosts"), &l, err))
        return 0;
    snprintf(text, sizeof text, "%u", l.n);
    set(conf, "nodes", text);
    mfs_provider_listen_towards(conf, l.host[l.n - 1]);
    mfs_hostlist_clear(&l);
    return 0;
}

bool mfs_slurm_is_here(const struct mfs_conf *conf)
{
    const char *job = getenv("SLURM_JOB_ID"), *hosts = getenv("SLURM_JOB_NODELIST");

    (void)conf;
    return job && *job && hosts && *hosts;
}
