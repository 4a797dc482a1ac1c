/* What cm knows and must not forget: cm.json in the state directory. Written before cm acts on it;
 * a cm that is killed goes on from it. 0600, as it holds the partitions' passwords. */
#ifndef MFS_CM_STATE_H
#define MFS_CM_STATE_H

#include <stdint.h>

#include "base/err.h"
#include "cluster/table.h"
#include "wire/messages.h"
#include "wire/record.h"

/* Phases of a deployment's life. */
#define MFS_PHASE_STARTING "starting"
#define MFS_PHASE_RUNNING  "running"
#define MFS_PHASE_STOPPING "stopping"

struct mfs_cm_node {
    uint32_t id;
    char name[MFS_NAME_MAX];
    char address[MFS_HOST_MAX];
    char mount[MFS_PATH_MAX]; /* "": none */
    uint64_t memory;          /* its limit, bytes */
};

struct mfs_cm_part {
    uint32_t node; /* id */
    char password[MFS_SECRET_MAX];
    char admin_password[MFS_SECRET_MAX];
};

struct mfs_cm_state {
    char name[MFS_NAME_MAX];
    char phase[MFS_STATE_MAX];
    char provider[MFS_STATE_MAX], policy[MFS_STATE_MAX], migration[MFS_STATE_MAX];
    char weights[MFS_STATE_MAX], log_level[MFS_STATE_MAX];
    char listen[MFS_ADDRESS_MAX];
    char mount[MFS_PATH_MAX]; /* as given, with its %n */
    char mount_options[MFS_TEXT_MAX];
    double beta;
    uint64_t memory; /* per node, bytes */
    uint32_t stripe_size;
    uint32_t nnodes;
    struct mfs_cm_node *node;
    uint32_t nparts;
    struct mfs_cm_part *part;
    struct mfs_table *table; /* the newest; NULL before the first */
};

extern const struct mfs_record mfs_cm_state_record;

/* 0 or a negative errno. Blocks as writing a small file does. */
int mfs_cm_state_save(const struct mfs_cm_state *s, const char *path);

/* 0, -ENOENT when there is none, -EINVAL with the reason when it makes no sense. */
int mfs_cm_state_load(struct mfs_cm_state *s, const char *path, struct mfs_err *err);
void mfs_cm_state_clear(struct mfs_cm_state *s);

const struct mfs_cm_node *mfs_cm_state_node(const struct mfs_cm_state *s, uint32_t id);
uint32_t mfs_cm_state_count(const struct mfs_cm_state *s, uint32_t node); /* its partitions */

#endif
