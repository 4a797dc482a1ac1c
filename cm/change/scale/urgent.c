/* What can be moved off nodes that leave soon when the others have no room for all of it. */
#include <errno.h>
#include <stdlib.h>

#include "base/text.h"
#include "cluster/capacity.h"
#include "cm/change/scale/impl.h"

struct candidate {
    uint32_t part;
    uint64_t bytes;
};

static int by_bytes(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    return x->bytes != y->bytes ? (x->bytes < y->bytes ? -1 : 1)
                                : (x->part > y->part) - (x->part < y->part);
}

/* The partitions that leave, the smallest first. */
static uint32_t list(const struct mfs_cm *cm, const struct mfs_scale_draft *d,
                     struct candidate *out)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < cm->state.nparts; i++) {
        const struct mfs_node *node = mfs_nodes_find(cm, cm->state.part[i].node);

        if (node && mfs_scale_is_there(node) && mfs_scale_leaves(d, node->record))
            out[n++] = (struct candidate){i, cm->part_bytes[i]};
    }
    qsort(out, n, sizeof *out, by_bytes);
    return n;
}

static void measure(const struct mfs_cm *cm, const struct mfs_scale_draft *d, uint64_t *room)
{
    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        const struct mfs_msg_report *r = &cm->nodes[i]->last;

        if (mfs_scale_is_there(cm->nodes[i]) && !mfs_scale_leaves(d, &cm->state.node[i]) &&
            r->memory_capacity > r->memory_used)
            room[i] = r->memory_capacity - r->memory_used;
    }
}

static uint32_t roomiest(const uint64_t *room, uint32_t n)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < n; i++)
        best = room[i] > room[best] ? i : best;
    return best;
}

/* Until one does not fit: those behind it are larger. */
static void place(const struct mfs_cm *cm, const struct candidate *c, uint32_t n, uint64_t *room,
                  struct mfs_plan *out)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t to = roomiest(room, cm->state.nnodes);
        uint64_t need = c[i].bytes + MFS_CAPACITY_PROCESS;

        if (room[to] < need)
            return;
        room[to] -= need;
        out->move[out->nmoves++] = (struct mfs_scale_move){
            c[i].part, cm->state.part[c[i].part].node, cm->state.node[to].id, c[i].bytes};
        out->bytes += c[i].bytes;
    }
}

int mfs_scale_plan_some(const struct mfs_cm *cm, const struct mfs_scale_draft *d,
                        struct mfs_plan *out, struct mfs_err *err)
{
    struct candidate *c = calloc(cm->state.nparts, sizeof *c);
    uint64_t *room = calloc(cm->state.nnodes, sizeof *room);
    int rc = -ENOMEM;
    uint32_t n;

    *out = (struct mfs_plan){.move = calloc(cm->state.nparts, sizeof *out->move)};
    if (c && room && out->move) {
        n = list(cm, d, c);
        measure(cm, d, room);
        place(cm, c, n, room, out);
        rc = n && !out->nmoves
                 ? mfs_err_set(err, -ENOSPC, "no other node has room for any of the %s",
                               MFS_TEXT_COUNT(n, "partition"))
                 : 0;
    } else {
        mfs_err_set(err, rc, "out of memory");
    }
    free(c);
    free(room);
    return rc;
}
