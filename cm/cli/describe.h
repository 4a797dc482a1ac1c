/* All that is known of one thing of a deployment: what `cm describe` shows. */
#ifndef MFS_CM_CLI_DESCRIBE_H
#define MFS_CM_CLI_DESCRIBE_H

#include "base/buf.h"
#include "cm/state/events.h"
#include "proto/messages.h"

#define MFS_DESCRIBE_EVENTS 10 /* the last ones of it */

struct mfs_description {
    char kind[MFS_STATE_MAX]; /* node, partition, mount */
    char name[MFS_PATH_MAX];  /* of it */
    uint32_t nnodes;
    struct mfs_status_node *node; /* it, or all that it is at, and then the one of its replica */
    uint32_t nplaces;
    struct mfs_status_place *place; /* of a node: partitions that it serves; or the partition */
    uint32_t nreplicas;
    struct mfs_status_place *replica; /* of a node: partitions of others that it could take over */
    uint32_t nclients;
    struct mfs_mount *client; /* of the node, or that the mount is */
    uint32_t nmoves;
    struct mfs_status_move *move; /* that it has a part in */
    uint32_t nevents;
    struct mfs_event *event;
};

extern const struct mfs_schema mfs_description_schema; /* clears it, too */

/* From a status: `what` is a node's name, a partition's number or a path that is mounted. Without
 * events. 0, -ENOENT with what there is, or -ENOMEM. Pure. */
int mfs_describe(const struct mfs_status *s, const char *what, struct mfs_description *d,
                 struct mfs_err *err);

/* Is the event about it? `d` is a description. */
bool mfs_describe_event(void *d, const struct mfs_event *e);

int mfs_describe_render(const struct mfs_description *d, struct mfs_buf *out); /* 0 or -ENOMEM */

#endif
