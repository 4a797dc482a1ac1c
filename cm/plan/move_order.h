/* In which order the moves of a list begin. Pure.
 *
 * What is scarce decides: a source forks to copy, so one copy leaves it at a time unless its memory
 * is half empty; a target takes only what it has memory for, now, not after what it still has to
 * give away; and all together share the network. Among the moves that may begin, those come first
 * that free memory which others wait for, then those between nodes whose links have the fewest
 * copies on them, so that no link is idle, then those that lie on the busiest node, as it is the
 * one that the whole change waits for at the end. Where time is short (small_first) only size
 * counts: each partition has about as many names as any other, so most are saved so. */
#ifndef MFS_CM_PLAN_MOVE_ORDER_H
#define MFS_CM_PLAN_MOVE_ORDER_H

#include <stdbool.h>
#include <stdint.h>

struct mfs_order_node {
    uint64_t used, capacity; /* bytes */
    bool up;

    /* computed by mfs_order_next */
    uint32_t outgoing, incoming; /* copies under way */
    uint64_t promised;           /* bytes that those bring */
    uint64_t give, take;         /* bytes that are still to go and come, waiting ones too */
};

enum mfs_order_state { MFS_ORDER_WAITING, MFS_ORDER_HELD, MFS_ORDER_UNDER_WAY, MFS_ORDER_OVER };

struct mfs_order_move {
    uint32_t from, to; /* indices into the nodes */
    uint64_t bytes;
    bool cold;   /* takes no memory of the source */
    bool copied; /* under way, and its copy is whole: neither fork nor traffic is left of it */
    enum mfs_order_state state;
};

struct mfs_order_limits {
    uint32_t per_source, per_target, all; /* moves at once */
    bool small_first;                     /* before anything else */
};

/* The move to begin now, or -1. */
int mfs_order_next(struct mfs_order_node *nodes, uint32_t nnodes,
                   const struct mfs_order_move *moves, uint32_t nmoves,
                   const struct mfs_order_limits *limits);

#endif
