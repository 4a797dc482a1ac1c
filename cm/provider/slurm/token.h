/* The token (JWT) that slurmrestd asks for: from a file, which is read anew when the token is
 * refused or about to end, so that it may be renewed; or from cm's environment (SLURM_JWT). Never
 * logged. The loop's thread.
 *
 * Source: "JSON Web Tokens (JWT) Authentication", Slurm's documentation; RFC 7519. */
#ifndef MFS_CM_PROVIDER_SLURM_TOKEN_H
#define MFS_CM_PROVIDER_SLURM_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define MFS_SLURM_TOKEN_MAX 8192 /* bytes, with its NUL */

struct mfs_slurm_token;

/* `file` may be NULL. Takes SLURM_JWT out of the environment, as commands of Slurm would use it
 * too. NULL with the reason: no memory, or no token in the file. */
struct mfs_slurm_token *mfs_slurm_token_create(const char *file, struct mfs_err *err);
void mfs_slurm_token_destroy(struct mfs_slurm_token *t); /* takes NULL */

/* It, for the next request; "": there is none. Good until the next call. */
const char *mfs_slurm_token_text(struct mfs_slurm_token *t);
const char *mfs_slurm_token_user(const struct mfs_slurm_token *t); /* whose it is; "": no token */

bool mfs_slurm_token_has_ended(const struct mfs_slurm_token *t); /* as far as it says */

/* It was refused. Is there another one now? */
bool mfs_slurm_token_refused(struct mfs_slurm_token *t);

/* What an operator does about a token that is refused. */
const char *mfs_slurm_token_advice(const struct mfs_slurm_token *t);

/* What a file holds: the token, or what `scontrol token` prints. 0, or -EINVAL: it is none. Pure.
 */
int mfs_slurm_token_read(const char *text, size_t len, char out[MFS_SLURM_TOKEN_MAX]);

/* When it ends, s since 1970 (0: it does not say), and whose it is. Not verified. Pure. */
struct mfs_slurm_claims {
    uint64_t exp;
    char sun[64];
};

void mfs_slurm_token_claims(const char *token, struct mfs_slurm_claims *out);

#endif
