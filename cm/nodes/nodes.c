/* The list of nodes: it grows and shrinks, and what has gone stays in memory until the end. */
#include "cm/nodes/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cm/nodes/mounts.h"
#include "cm/nodes/subscribers.h"
#include "cm/nodes/tables.h"

struct mfs_node *mfs_nodes_find(const struct mfs_cm *cm, uint32_t id)
{
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (cm->nodes[i]->record->id == id)
            return cm->nodes[i];
    return NULL;
}

bool mfs_nodes_awaited(const struct mfs_cm *cm)
{
    return !cm->settled && mfs_clock_mono() - cm->began < MFS_RETURN_TIME;
}

/* The array of the state may have moved. */
static void point(struct mfs_cm *cm)
{
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        cm->nodes[i]->record = &cm->state.node[i];
}

static struct mfs_node *make(struct mfs_cm *cm)
{
    struct mfs_node *n = calloc(1, sizeof *n);

    if (n) {
        n->cm = cm;
        n->delay = MFS_RESTART_FIRST;
        n->last_contact = n->lost_at = mfs_clock_mono(); /* what a cm before us has said may hold */
    }
    return n;
}

int mfs_nodes_init(struct mfs_cm *cm)
{
    cm->nodes = calloc(cm->state.nnodes, sizeof *cm->nodes);
    cm->part_bytes = calloc(cm->state.nparts, sizeof *cm->part_bytes);
    cm->part_counts = calloc(cm->state.nparts, sizeof *cm->part_counts);
    if (!cm->nodes || !cm->part_bytes || !cm->part_counts || mfs_tables_init(cm))
        return -ENOMEM;
    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        cm->nodes[i] = make(cm);
        if (!cm->nodes[i])
            return -ENOMEM;
    }
    point(cm);
    return 0;
}

struct mfs_node *mfs_nodes_add(struct mfs_cm *cm, const struct mfs_cm_node *n)
{
    struct mfs_node **more = reallocarray(cm->nodes, cm->state.nnodes + 1, sizeof *more);
    struct mfs_node *node = make(cm);

    if (more)
        cm->nodes = more;
    if (!more || !node || mfs_cm_state_add(&cm->state, n)) {
        free(node);
        return NULL;
    }
    cm->nodes[cm->state.nnodes - 1] = node;
    point(cm);
    return node;
}

void mfs_nodes_remove(struct mfs_cm *cm, struct mfs_node *n)
{
    struct mfs_conn *c = n->conn;
    uint32_t at = 0;

    mfs_timer_cancel(n->restart);
    n->restart = NULL;
    n->conn = NULL;
    if (c) {
        mfs_conn_set_data(c, NULL);
        mfs_conn_close(c);
    }
    while (cm->nodes[at] != n)
        at++;
    mfs_mounts_forget(n);
    n->left = *n->record;
    n->record = &n->left;
    n->next_left = cm->left;
    cm->left = n;
    memmove(&cm->nodes[at], &cm->nodes[at + 1], (cm->state.nnodes - at - 1) * sizeof *cm->nodes);
    mfs_cm_state_drop(&cm->state, cm->state.node[at].id);
    point(cm);
}

void mfs_nodes_fini(struct mfs_cm *cm)
{
    mfs_tables_fini(cm);
    mfs_subscribers_fini(cm);
    for (uint32_t i = 0; cm->nodes && i < cm->state.nnodes; i++) {
        if (cm->nodes[i])
            mfs_mounts_forget(cm->nodes[i]);
        free(cm->nodes[i]);
    }
    free(cm->nodes);
    cm->nodes = NULL;
    free(cm->part_bytes);
    free(cm->part_counts);
    cm->part_bytes = NULL;
    cm->part_counts = NULL;
    while (cm->left) {
        struct mfs_node *n = cm->left;

        cm->left = n->next_left;
        mfs_mounts_forget(n);
        free(n);
    }
}

bool mfs_node_is_over(const struct mfs_node *n)
{
    struct timespec t = mfs_clock_real();

    return n->record->leave_by &&
           (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000 >= n->record->leave_by;
}

bool mfs_nodes_goes(const struct mfs_node *n)
{
    const char *step = n->cm->state.scale.step, *transition = n->record->transition;

    return (!strcmp(step, MFS_SCALE_GO) && !strcmp(transition, MFS_NODE_LEAVING)) ||
           (!strcmp(step, MFS_SCALE_UNDO) && !strcmp(transition, MFS_NODE_COMING));
}

int mfs_cm_set_phase(struct mfs_cm *cm, const char *phase)
{
    int rc;

    snprintf(cm->state.phase, sizeof cm->state.phase, "%s", phase);
    rc = mfs_cm_state_save(&cm->state, cm->paths->state);
    if (rc)
        mfs_error("nodes", "%s: %s", cm->paths->state, strerror(-rc));
    return rc;
}
