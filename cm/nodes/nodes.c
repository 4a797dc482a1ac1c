/* The list of nodes: it grows and shrinks, and what has gone stays in memory until the end. */
#include "cm/nodes/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cm/nodes/subscribers.h"

struct mfs_cm_live *mfs_nodes_find(const struct mfs_cm *cm, uint32_t id)
{
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (cm->live[i]->node->id == id)
            return cm->live[i];
    return NULL;
}

/* The array of the state may have moved. */
static void point(struct mfs_cm *cm)
{
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        cm->live[i]->node = &cm->state.node[i];
}

static struct mfs_cm_live *make(struct mfs_cm *cm)
{
    struct mfs_cm_live *l = calloc(1, sizeof *l);

    if (l) {
        l->cm = cm;
        l->delay = MFS_RESTART_FIRST;
        l->heard = l->lost_at = mfs_clock_mono(); /* what a cm before us has said may hold */
    }
    return l;
}

int mfs_nodes_init(struct mfs_cm *cm)
{
    cm->live = calloc(cm->state.nnodes, sizeof *cm->live);
    cm->part_bytes = calloc(cm->state.nparts, sizeof *cm->part_bytes);
    if (!cm->live || !cm->part_bytes)
        return -ENOMEM;
    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        cm->live[i] = make(cm);
        if (!cm->live[i])
            return -ENOMEM;
    }
    point(cm);
    return 0;
}

struct mfs_cm_live *mfs_nodes_add(struct mfs_cm *cm, const struct mfs_cm_node *n)
{
    struct mfs_cm_live **more = reallocarray(cm->live, cm->state.nnodes + 1, sizeof *more);
    struct mfs_cm_live *l = make(cm);

    if (more)
        cm->live = more;
    if (!more || !l || mfs_cm_state_add(&cm->state, n)) {
        free(l);
        return NULL;
    }
    cm->live[cm->state.nnodes - 1] = l;
    point(cm);
    return l;
}

void mfs_nodes_remove(struct mfs_cm *cm, struct mfs_cm_live *l)
{
    struct mfs_conn *c = l->conn;
    uint32_t at = 0;

    mfs_timer_cancel(l->restart);
    mfs_watch_remove(l->watch);
    l->restart = NULL;
    l->watch = NULL;
    l->conn = NULL;
    if (c) {
        mfs_conn_set_data(c, NULL);
        mfs_conn_close(c);
    }
    while (cm->live[at] != l)
        at++;
    l->left = *l->node;
    l->node = &l->left;
    l->next_left = cm->left;
    cm->left = l;
    memmove(&cm->live[at], &cm->live[at + 1], (cm->state.nnodes - at - 1) * sizeof *cm->live);
    mfs_cm_state_drop(&cm->state, cm->state.node[at].id);
    point(cm);
}

void mfs_nodes_fini(struct mfs_cm *cm)
{
    mfs_subscribers_fini(cm);
    for (uint32_t i = 0; cm->live && i < cm->state.nnodes; i++)
        free(cm->live[i]);
    free(cm->live);
    cm->live = NULL;
    free(cm->part_bytes);
    cm->part_bytes = NULL;
    while (cm->left) {
        struct mfs_cm_live *l = cm->left;

        cm->left = l->next_left;
        free(l);
    }
}

bool mfs_nodes_goes(const struct mfs_cm_live *l)
{
    const char *step = l->cm->state.scale.step, *turn = l->node->turn;

    return (!strcmp(step, MFS_SCALE_GO) && !strcmp(turn, MFS_NODE_LEAVING)) ||
           (!strcmp(step, MFS_SCALE_UNDO) && !strcmp(turn, MFS_NODE_COMING));
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
