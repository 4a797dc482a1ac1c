/* What a provider has to tell, told from the loop: never inside a call of cm's, and in the order in
 * which it was given. For providers; the loop's thread. */
#ifndef MFS_CM_PROVIDER_NOTICES_H
#define MFS_CM_PROVIDER_NOTICES_H

#include "cm/provider/provider.h"

struct mfs_notices;

struct mfs_notices *mfs_notices_create(const struct mfs_provider_context *c); /* NULL: ENOMEM */
void mfs_notices_destroy(struct mfs_notices *n); /* what is not told yet is not told. Takes NULL */

/* As the calls of these names in provider.h; texts are copied. One for which there is no memory is
 * logged and lost: cm's own bounds end the wait for it. */
void mfs_notices_ready(struct mfs_notices *n, uint32_t node, const char *what);
void mfs_notices_failed(struct mfs_notices *n, uint32_t node, const struct mfs_err *why);
void mfs_notices_ended(struct mfs_notices *n, uint32_t node, const char *how);
void mfs_notices_released(struct mfs_notices *n, uint32_t node, const struct mfs_err *why);

#endif
