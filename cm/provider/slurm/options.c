/* Options of the Slurm provider, and what an allocation tells of them. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "cm/provider/options.h"
#include "cm/provider/slurm/impl.h"
#include "cm/provider/slurm/link.h"

const struct mfs_conf_option mfs_slurm_options[] = {
    {"slurm-job", MFS_CONF_STRING, "JOB", NULL, 1, MFS_SLURM_JOB_MAX - 1,
     "with --provider slurm: the allocation whose hosts are the first nodes (SLURM_JOB_ID)"},
    {"slurm-hosts", MFS_CONF_STRING, "LIST", NULL, 1, 511,
     "likewise: its hosts, as in tux[1-4,7] (SLURM_JOB_NODELIST)"},
    {"slurm-args", MFS_CONF_STRING, "ARGUMENTS", NULL, 1, 511,
     "likewise: for sbatch, which gets nodes beyond the allocation, e.g. '--qos=short "
     "--exclude=tux9'"},
    {"slurm-partition", MFS_CONF_STRING, "NAME", NULL, 1, 255, "likewise: where they come from"},
    {"slurm-account", MFS_CONF_STRING, "NAME", NULL, 1, 255, "likewise: the account for them"},
    {"slurm-time", MFS_CONF_UINT, "MINUTES", NULL, 1, 1e6, "likewise: how long they may stay"},
    {"slurm-rest", MFS_CONF_STRING, "URL", NULL, 1, 255,
     "likewise: they are asked for by slurmrestd: http://HOST:PORT or unix:/PATH (SLURM_REST_URL "
     "and SLURM_JWT)"},
    {"slurm-token-file", MFS_CONF_STRING, "FILE", NULL, 1, 511,
     "likewise: its token, read anew when it ends (else SLURM_JWT)"},
    {0}};

static bool has_token(const struct mfs_conf *conf)
{
    const char *given = getenv("SLURM_JWT");

    return mfs_conf_str(conf, "slurm-token-file") || (given && *given);
}

static int check_rest(const struct mfs_conf *conf, struct mfs_err *err)
{
    const char *url = mfs_conf_str(conf, "slurm-rest");

    if (!url && mfs_conf_str(conf, "slurm-token-file"))
        return mfs_err_set(err, -EINVAL, "slurm-token-file: only with slurm-rest");
    if (!url)
        return 0;
    if (mfs_slurm_link_check(url, err))
        return err->code;
    if (mfs_conf_str(conf, "slurm-args"))
        return mfs_err_set(err, -EINVAL,
                           "slurm-args: these are for sbatch, which is not used with slurm-rest; "
                           "there are slurm-partition, slurm-account and slurm-time");
    if (*url == 'h' && !has_token(conf))
        return mfs_err_set(err, -EINVAL,
                           "slurm-rest: a token is needed: give slurm-token-file, or set SLURM_JWT "
                           "(scontrol token)");
    return 0;
}

int mfs_slurm_check(const struct mfs_conf *conf, struct mfs_err *err)
{
    const char *job = mfs_conf_str(conf, "slurm-job"), *hosts = mfs_conf_str(conf, "slurm-hosts");
    struct mfs_hostlist l;

    if (check_rest(conf, err))
        return err->code;
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

/* cm does not stay in this directory. */
static void make_absolute(struct mfs_conf *conf, const char *key)
{
    const char *given = mfs_conf_str(conf, key);
    char path[PATH_MAX];
    struct mfs_err err;

    if (given && !mfs_file_absolute(given, path, sizeof path))
        mfs_conf_set(conf, key, path, MFS_CONF_ARGV, &err);
}

/* Half of what the allocation has of a node is for the application. */
int mfs_slurm_environment(struct mfs_conf *conf, struct mfs_err *err)
{
    uint64_t mib = allocated_mib();
    struct mfs_hostlist l;
    char text[32];

    make_absolute(conf, "slurm-token-file");
    set(conf, "slurm-job", getenv("SLURM_JOB_ID"));
    set(conf, "slurm-hosts", getenv("SLURM_JOB_NODELIST"));
    if (has_token(conf) && !mfs_conf_given(conf, "slurm-args"))
        set(conf, "slurm-rest", getenv("SLURM_REST_URL"));
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
