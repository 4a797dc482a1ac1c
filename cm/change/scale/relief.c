/* The plan of a change that makes room on nodes that are nearly full: what nodes tell, put to the
 * planner of relief. */
#include <errno.h>
#include <stdlib.h>

#include "cluster/capacity.h"
#include "cm/change/scale/impl.h"
#include "cm/plan/relief.h"

/* What a partition needs beyond its data counts as used, as writers are refused without. */
static uint64_t kept_free(const struct mfs_cm *cm, uint32_t parts)
{
    return (uint64_t)parts * MFS_CAPACITY_NEXT_WRITES * cm->state.stripe_size;
}

static void list_nodes(const struct mfs_cm *cm, struct mfs_relief_node *out)
{
    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        const struct mfs_node *n = cm->nodes[i];
        uint32_t parts = mfs_cm_state_count(&cm->state, n->record->id);

        out[i] = (struct mfs_relief_node){n->record->id, n->last.memory_used + kept_free(cm, parts),
                                          n->last.memory_capacity};
    }
}

static void list_parts(const struct mfs_cm *cm, struct mfs_relief_part *out)
{
    for (uint32_t i = 0; i < cm->state.nparts; i++)
        out[i] = (struct mfs_relief_part){.node = cm->state.part[i].node,
                                          .replica = MFS_PLAN_NOWHERE,
                                          .bytes = cm->part_bytes[i] + kept_free(cm, 1)};
}

int mfs_scale_plan_relief(const struct mfs_cm *cm, struct mfs_plan *out, struct mfs_err *err)
{
    struct mfs_relief_node *node = calloc(cm->state.nnodes + 1, sizeof *node);
    struct mfs_relief_part *part = calloc(cm->state.nparts + 1, sizeof *part);
    const struct mfs_relief_input in = {node, cm->state.nnodes, part, cm->state.nparts,
                                        MFS_CAPACITY_PROCESS};
    int rc = -ENOMEM;

    if (node && part) {
        list_nodes(cm, node);
        list_parts(cm, part);
        rc = mfs_relief_plan(&in, out);
    }
    for (uint32_t i = 0; i < out->nmoves && !rc; i++) {
        out->move[i].bytes -= kept_free(cm, 1);
        out->bytes -= kept_free(cm, 1);
    }
    free(node);
    free(part);
    return rc ? mfs_err_set(err, rc, "out of memory") : 0;
}
