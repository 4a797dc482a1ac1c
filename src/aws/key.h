/* The keys that sign requests to AWS, and where users have them: the environment
 * (AWS_ACCESS_KEY_ID, …) and the credentials file. Pure, but for the two that read those. They are
 * never logged.
 *
 * Source: "Standardized credential providers", AWS SDKs and Tools reference guide. */
#ifndef MFS_AWS_KEY_H
#define MFS_AWS_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mfs_aws_key {
    char id[129], secret[257];
    char token[4097]; /* of a session; "": none */
    int64_t expires;  /* s since 1970; 0: never */
};

/* AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN. False: there is none. */
bool mfs_aws_key_of_environment(struct mfs_aws_key *key);

/* AWS_PROFILE, or "default", of AWS_SHARED_CREDENTIALS_FILE or ~/.aws/credentials. False: there is
 * none, and in why[n] the reason; "": there is no such file. */
bool mfs_aws_key_of_file(struct mfs_aws_key *key, char *why, size_t n);

/* A profile of a credentials file's text. 0, or -ENOENT. */
int mfs_aws_key_of_profile(const char *text, const char *profile, struct mfs_aws_key *key);

/* Takes a field, if the name is one of a key's in any place; what is too long is no key. */
void mfs_aws_key_take(struct mfs_aws_key *key, const char *name, size_t len, const char *value);
bool mfs_aws_key_whole(const struct mfs_aws_key *key); /* has it what is needed to sign? */

#endif
