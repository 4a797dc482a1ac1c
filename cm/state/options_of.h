/* A deployment as options of `cm start`: what one that is like it has to be told. */
#ifndef MFS_CM_STATE_OPTIONS_OF_H
#define MFS_CM_STATE_OPTIONS_OF_H

#include "cm/state/manifest.h"
#include "cm/state/state.h"

/* Of the state as it is now: nodes that came count, those that left do not. First of all the
 * provider. Without what belongs to a place (name, directories, where cm listens) and what a
 * checkpoint has itself. Values are as an option takes them. *list is the caller's to free. 0 or
 * -ENOMEM. */
int mfs_options_of(const struct mfs_cm_state *s, struct mfs_manifest_option **list, uint32_t *n);

#endif
