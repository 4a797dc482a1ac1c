/* What a client has seen of nodes: how long their partitions took to answer it. */
#ifndef MFS_TRACE_NODES_H
#define MFS_TRACE_NODES_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define MFS_TRACE_NODES_MAX 65536U

struct mfs_trace_node {
    uint32_t node;
    uint32_t partitions;
    uint64_t round_trips; /* since the mount began, as are the next */
    double ms;            /* all of them together */
    double shortest_ms;   /* of the last 10 to 20 s with any; 0: there were none */
    uint32_t under_way;   /* calls that wait for it now … */
    double silent_ms; /* … and for so long nothing has come back from one of its partitions, … */
    uint32_t silent_partition; /* … this one; 0 ms: none is asked */
    uint32_t unreachable;      /* partitions that can't be reached */
    uint32_t moving;           /* partitions that are being moved */
    double full_s_ago;         /* one of its partitions had no memory left; 0: never */
};

struct mfs_trace_nodes {
    uint32_t n;
    struct mfs_trace_node *node; /* by their numbers */
};

void mfs_trace_nodes_free(struct mfs_trace_nodes *nodes); /* not the struct */

/* Appends them. 0 or -ENOMEM. */
int mfs_trace_nodes_text(const struct mfs_trace_nodes *nodes, struct mfs_buf *to);
int mfs_trace_nodes_json(const struct mfs_trace_nodes *nodes, struct mfs_buf *to);

/* 0, -EINVAL, -ENOMEM. */
int mfs_trace_nodes_parse(const char *json, size_t len, struct mfs_trace_nodes *nodes,
                          struct mfs_err *err);

#endif
