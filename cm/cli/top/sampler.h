/* Asks cm for samples, in a thread of its own, so that keys are answered while cm is not. */
#ifndef MFS_CM_CLI_TOP_SAMPLER_H
#define MFS_CM_CLI_TOP_SAMPLER_H

#include "args/paths.h"
#include "cm/cli/top/model.h"

struct mfs_top_sampler;

/* One sample now; where something moves or is mounted it takes two, a second apart. Blocks. 0
 * or a negative errno with the reason. */
int mfs_top_sample_once(const struct mfs_paths *p, struct mfs_top_sample *s, struct mfs_err *err);

/* Begins to take one each second. `wake`: a descriptor that gets a byte for each. NULL: out of
 * memory.
 */
struct mfs_top_sampler *mfs_top_sampler_start(const struct mfs_paths *p, int wake);

/* Ends and frees it, before the process ends: one that waits for a cm which does not answer is left
 * to that after 0.3 s, so that nothing waits for it: false, and
 * then exit(3) would take libraries from under it, which _exit(2) does not. */
bool mfs_top_sampler_end(struct mfs_top_sampler *t);

/* The newest sample replaces *s, if there is a newer one: true. *err: why there was none the last
 * time, code 0 for none. */
bool mfs_top_sampler_take(struct mfs_top_sampler *t, struct mfs_top_sample *s, struct mfs_err *err);

#endif
