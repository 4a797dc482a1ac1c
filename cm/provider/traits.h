/* What is true of a deployment because of where its nodes come from (`cm start --provider`): by
 * these, not by names, the rest of cm decides. */
#ifndef MFS_CM_PROVIDER_TRAITS_H
#define MFS_CM_PROVIDER_TRAITS_H

#include <stdbool.h>
#include <stdint.h>

struct mfs_provider_traits {
    const char *name;
    bool sees_processes; /* Local Managers are processes of this machine: pids that were recorded
                            here mean them, and what they leave can be seen and cleared away */
    bool detached;       /* an lm goes into the background when it has joined: nothing stands for it
                            here from then on but its connection */
    bool one_machine;    /* all nodes share a machine: its memory, processors and clock */
    bool own_machines;   /* each node is a machine of its own: all mount at the same path */
    int64_t queue_time;  /* ns that a node may wait in a queue (provider.h, `waiting`), besides the
                            time that each node has to come; 0: there is no queue */
};

/* Of a provider's name. One that is not known has none of them, and the name "". */
const struct mfs_provider_traits *mfs_provider_traits(const char *name);

#endif
