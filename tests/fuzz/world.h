/* A client's metadata over partitions that a fuzz target speaks for. Its threads that look after
 * things are stopped, nothing waits, and what is only posted is dropped: so a run depends on its
 * input alone. The one connection that it makes, to hear notices, is the subscriber's. */
#ifndef MFS_FUZZ_WORLD_H
#define MFS_FUZZ_WORLD_H

#include "listener.h"
#include "meta/coherence/notices.h"
#include "partitions.h"

struct fuzz_world {
    struct fuzz_partitions parts;
    struct mfs_meta *meta;
    struct fuzz_listener listener; /* where the subscriber connects */
};

/* Once. *fd is the partition's end of the subscriber's connection, which listens. */
void fuzz_world_init(struct fuzz_world *w, int *fd);

/* Lets the subscriber connect again: the partition's end of the new connection, which listens. */
int fuzz_world_subscriber(struct fuzz_world *w);

/* Nobody can connect any more; the subscriber's connection says that it is alive, from now on. */
void fuzz_world_seclude(struct fuzz_world *w, int fd);

/* Forgets all that was learned, and renews the partitions. */
void fuzz_world_renew(struct fuzz_world *w);

/* Whether the command that the fault hook of the world's store is asked about is only posted.
 * A command that is awaited is counted before the hook is asked, one that is posted after. */
bool fuzz_world_posted(struct fuzz_world *w);

#endif
