/* Asks cm for samples. One thread at a time. */
#ifndef MFS_CM_CLI_TOP_SAMPLER_H
#define MFS_CM_CLI_TOP_SAMPLER_H

#include "args/paths.h"
#include "cm/cli/top/model.h"

/* One sample now; where something moves or is mounted it takes two, two seconds apart. Blocks. 0
 * or a negative errno with the reason. */
int mfs_top_sample_once(const struct mfs_paths *p, struct mfs_top_sample *s, struct mfs_err *err);

/* Samples in a row, of which each is compared with the one before; as show/live.h takes them. */
struct mfs_top_sampler;

struct mfs_top_sampler *mfs_top_sampler_create(const struct mfs_paths *p); /* NULL: no memory */
void mfs_top_sampler_destroy(void *sampler);
void *mfs_top_sampler_take(void *sampler, struct mfs_err *err);
void mfs_top_sample_free(void *sample); /* takes NULL */

#endif
