/* Options of the EC2 provider, and what the environment tells of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cm/provider/ec2/impl.h"
#include "cm/provider/options.h"

const struct mfs_conf_option mfs_ec2_options[] = {
    {"ec2-image", MFS_CONF_STRING, "AMI", NULL, 1, 63,
     "with --provider ec2: what nodes boot, with MemEFS in it at the path it has here"},
    {"ec2-type", MFS_CONF_STRING, "TYPE", NULL, 1, 63, "likewise: their type, e.g. r6i.large"},
    {"ec2-region", MFS_CONF_STRING, "REGION", NULL, 1, 60, "likewise: e.g. eu-west-1 (AWS_REGION)"},
    {"ec2-subnet", MFS_CONF_STRING, "SUBNET", NULL, 1, 63, "likewise: the subnet they are in"},
    {"ec2-groups", MFS_CONF_STRING, "GROUP,…", NULL, 1, 511,
     "likewise: security groups, which let them and cm reach each other"},
    {"ec2-key", MFS_CONF_STRING, "KEY", NULL, 1, 255, "likewise: the key pair for ssh"},
    {"ec2-profile", MFS_CONF_STRING, "PROFILE", NULL, 1, 128, "likewise: their instance profile"},
    {"ec2-spot", MFS_CONF_FLAG, NULL, NULL, 0, 0,
     "likewise: spot instances; one that is about to be interrupted is drained"},
    {"ec2-setup", MFS_CONF_STRING, "FILE", NULL, 1, 511,
     "likewise: a script of /bin/sh, which runs at a node before its lm"},
    {"ec2-endpoint", MFS_CONF_STRING, "URL", NULL, 1, 255,
     "likewise: of the service, instead of AWS' own (AWS_ENDPOINT_URL_EC2)"},
    {0}};

/* Letters, digits and a few signs: what is part of a host name and of a signature. */
static bool is_plain(const char *text)
{
    return !text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-")];
}

static int check_endpoint(const char *url, struct mfs_err *err)
{
    if (url && strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
        return mfs_err_set(err, -EINVAL,
                           "ec2-endpoint: %s begins with neither http:// nor https://", url);
    return 0;
}

int mfs_ec2_check(const struct mfs_conf *conf, struct mfs_err *err)
{
    static const char *const needed[][2] = {
        {"ec2-image", "the image that nodes boot"},
        {"ec2-type", "the type of instances"},
        {"ec2-region", "the region (or AWS_REGION in the environment)"}};
    const char *setup = mfs_conf_str(conf, "ec2-setup");

    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!mfs_conf_str(conf, needed[i][0]))
            return mfs_err_set(err, -EINVAL, "provider: ec2 needs --%s, %s", needed[i][0],
                               needed[i][1]);
    if (!is_plain(mfs_conf_str(conf, "ec2-region")))
        return mfs_err_set(err, -EINVAL, "ec2-region: %s is no region's name",
                           mfs_conf_str(conf, "ec2-region"));
    if (setup && access(setup, R_OK))
        return mfs_err_set(err, -EINVAL, "ec2-setup: %s: %s", setup, strerror(errno));
    return check_endpoint(mfs_conf_str(conf, "ec2-endpoint"), err);
}

static int complete(struct mfs_conf *conf, const char *key, const char *variable,
                    struct mfs_err *err)
{
    int rc = mfs_provider_complete(conf, key, getenv(variable), err);

    if (rc)
        mfs_err_prefix(err, "%s", variable);
    return rc;
}

int mfs_ec2_environment(struct mfs_conf *conf, struct mfs_err *err)
{
    int rc = complete(conf, "ec2-region", "AWS_REGION", err);

    rc = rc ? rc : complete(conf, "ec2-region", "AWS_DEFAULT_REGION", err);
    rc = rc ? rc : complete(conf, "ec2-endpoint", "AWS_ENDPOINT_URL_EC2", err);
    return rc ? rc : complete(conf, "ec2-endpoint", "AWS_ENDPOINT_URL", err);
}
