/* Inside the EC2 provider: nodes' instances and what the files give each other. The loop's thread.
 */
#ifndef MFS_CM_PROVIDER_EC2_IMPL_H
#define MFS_CM_PROVIDER_EC2_IMPL_H

#include "cm/provider/ec2/api.h"
#include "cm/provider/notices.h"
#include "cm/provider/provider.h"
#include "base/crypto/mac.h"

enum mfs_ec2_state {
    MFS_EC2_NONE,   /* there is no instance, for certain */
    MFS_EC2_ASKED,  /* RunInstances is under way, and id is "" */
    MFS_EC2_WAITS,  /* it does not run yet; id "": an earlier cm may have asked for it */
    MFS_EC2_RUNS,   /* `ready` is told */
    MFS_EC2_LOST,   /* it is terminated; what ended it is told */
    MFS_EC2_LEAVING /* it is to be terminated; id "": once it is known */
};

struct mfs_ec2_place {
    struct mfs_ec2 *of;
    uint32_t node;
    enum mfs_ec2_state state;
    char id[MFS_EC2_ID_MAX];
    char other[MFS_EC2_ID_MAX]; /* a second instance of the node; "", unless EC2 errs */
    char why[160];              /* what EC2 said last */
    unsigned unseen;            /* so many times in a row, EC2 has not named it */
    struct mfs_ec2_call *call;  /* RunInstances or TerminateInstances */
    struct mfs_ec2_place *next;
};

struct mfs_ec2 {
    const struct mfs_provider_context *context;
    struct mfs_notices *notices;
    struct mfs_ec2_api *api;
    char tag[33]; /* MFS_EC2_TAG_OF of its instances: made of the secret, so no other's */
    struct mfs_ec2_place *first;
    struct mfs_timer *timer;
    struct mfs_ec2_call *look; /* DescribeInstances */
    bool failing;              /* it did last time */
};

#define MFS_EC2_LOOK (3 * MFS_SEC)

/* ec2.c */
int mfs_ec2_note(const struct mfs_ec2_place *p); /* keeps "instance ID". 0 or a negative errno */
void mfs_ec2_unlist(struct mfs_ec2_place *p);    /* frees it */

/* instances.c */
int mfs_ec2_run(struct mfs_ec2_place *p, const struct mfs_provider_node *n, struct mfs_err *err);
void mfs_ec2_look(void *arg); /* a timer's */
/* `released` will be told. */
void mfs_ec2_terminate(struct mfs_ec2_place *p);

/* user_data.c: what an instance runs when it has booted, base64. 0 or a negative errno with the
 * reason. It holds the secret. */
int mfs_ec2_user_data(const struct mfs_provider_context *c, const struct mfs_provider_node *n,
                      struct mfs_buf *out, struct mfs_err *err);

/* options.c */
int mfs_ec2_check(const struct mfs_conf *conf, struct mfs_err *err);
int mfs_ec2_environment(struct mfs_conf *conf, struct mfs_err *err);

#endif
