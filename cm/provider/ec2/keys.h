/* The keys that sign requests to AWS, from the first place that has some: the environment
 * (AWS_ACCESS_KEY_ID, …), the credentials file, the role of the instance that cm runs on. They are
 * never logged, and asked for anew before they expire. The loop's thread.
 *
 * Source: "Standardized credential providers", AWS SDKs and Tools reference guide; "Use IMDS",
 * Amazon EC2 user guide (version 2). */
#ifndef MFS_CM_PROVIDER_EC2_KEYS_H
#define MFS_CM_PROVIDER_EC2_KEYS_H

#include "aws/key.h"
#include "cm/provider/http.h"

struct mfs_ec2_keys;

struct mfs_ec2_keys *mfs_ec2_keys_create(struct mfs_loop *loop, struct mfs_http *http);
void mfs_ec2_keys_destroy(struct mfs_ec2_keys *k); /* before the http. Takes NULL */

/* Calls `got` with the key, or NULL and why there is none: from the loop, in order of the calls. It
 * is the keys', and good during the call alone. 0 or a negative errno. */
typedef void mfs_ec2_got_key(void *arg, const struct mfs_aws_key *key, const struct mfs_err *why);
int mfs_ec2_keys_get(struct mfs_ec2_keys *k, mfs_ec2_got_key *got, void *arg);
void mfs_ec2_keys_forget(struct mfs_ec2_keys *k, const void *arg); /* no `got` of this arg comes */

/* The key was refused: the next one is looked for anew. */
void mfs_ec2_keys_refused(struct mfs_ec2_keys *k);

/* What an instance's metadata tell of its role's key, JSON. 0, or -EPROTO. Pure. */
int mfs_ec2_key_of_role(const char *text, size_t len, struct mfs_aws_key *key);

#endif
