/* Calls of EC2's Query API: signed, and made again while EC2 asks for patience. The loop's thread.
 * Source: Amazon EC2 API reference, "Query requests" and "Request throttling". */
#ifndef MFS_CM_PROVIDER_EC2_API_H
#define MFS_CM_PROVIDER_EC2_API_H

#include "cm/provider/ec2/answer.h"
#include "net/loop.h"

struct mfs_ec2_api;
struct mfs_ec2_call;

/* region: "eu-west-1"; endpoint: a URL, NULL for the region's own. Both outlive it. NULL: ENOMEM.
 */
struct mfs_ec2_api *mfs_ec2_api_create(struct mfs_loop *loop, const char *region,
                                       const char *endpoint);
void mfs_ec2_api_destroy(struct mfs_ec2_api *api); /* drops its calls. Takes NULL */

/* Tells the end, once and from the loop, unless the call is dropped: `why` is NULL, or why there is
 * no good answer; a->code is then EC2's word for it, or "". The answer is the call's. */
typedef void mfs_ec2_done(void *arg, const struct mfs_err *why, const struct mfs_ec2_answer *a);

/* Calls "Action=ACTION" with the form's fields ("&NAME=value…", copied) for at most `limit` ns in
 * all. A call that changes something must be one that may come twice (a client token). NULL with
 * the reason. */
struct mfs_ec2_call *mfs_ec2_begin(struct mfs_ec2_api *api, const char *action,
                                   const struct mfs_buf *form, int64_t limit, mfs_ec2_done *done,
                                   void *arg, struct mfs_err *err);
void mfs_ec2_drop(struct mfs_ec2_call *c); /* takes NULL; not after `done` */

#endif
