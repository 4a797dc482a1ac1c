/* Options of the Slurm provider, and what an allocation tells of them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "host/own_address.h"
#include "cm/provider/options.h"
#include "cm/provider/slurm_impl.h"

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

    if (value && *value && !mfs_conf_given(conf, key) &&
        mfs_conf_set(conf, key, value, MFS_CONF_FILE, &err))
        mfs_warn("slurm", "%s: %s", key, err.msg);
}

/* By which this host reaches the last one of the allocation; cm is on the first, as a rule. */
static void set_listen(struct mfs_conf *conf, const char *host)
{
    char address[INET6_ADDRSTRLEN], listen[INET6_ADDRSTRLEN + 8];

    if (mfs_conf_given(conf, "listen") || mfs_own_address_towards(host, address) ||
        mfs_own_address_is_loopback(address))
        return;
    snprintf(listen, sizeof listen, strchr(address, ':') ? "[%s]:0" : "%s:0", address);
    set(conf, "listen", listen);
}

/* Half of what the allocation has of a node is for the application. */
void mfs_slurm_environment(struct mfs_conf *conf)
{
    uint64_t mib = allocated_mib();
    struct mfs_hostlist l;
    struct mfs_err err;
    char text[32];

    set(conf, "slurm-job", getenv("SLURM_JOB_ID"));
    set(conf, "slurm-hosts", getenv("SLURM_JOB_NODELIST"));
    if (mib) {
        snprintf(text, sizeof text, "%lluM", (unsigned long long)mib / 2);
        set(conf, "memory", text);
    }
    if (!mfs_conf_str(conf, "slurm-hosts") ||
        mfs_hostlist_parse(mfs_conf_str(conf, "slurm-hosts"), &l, &err))
        return;
    snprintf(text, sizeof text, "%u", l.n);
    set(conf, "nodes", text);
    set_listen(conf, l.host[l.n - 1]);
    mfs_hostlist_clear(&l);
}

bool mfs_slurm_is_here(void)
{
    const char *job = getenv("SLURM_JOB_ID"), *hosts = getenv("SLURM_JOB_NODELIST");

    return job && *job && hosts && *hosts;
}
