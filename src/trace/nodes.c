#include "trace/nodes.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include "proto/schema.h"

#define FIELDS (const struct mfs_field[])

static const struct mfs_schema node_schema = {
    "node", sizeof(struct mfs_trace_node),
    FIELDS{{.name = "node", .required = true, MFS_FIELD(U32, struct mfs_trace_node, node)},
           {.name = "partitions", MFS_FIELD(U32, struct mfs_trace_node, partitions)},
           {.name = "round_trips", MFS_FIELD(U64, struct mfs_trace_node, round_trips)},
           {.name = "ms", MFS_FIELD(F64, struct mfs_trace_node, ms)},
           {.name = "shortest_ms", MFS_FIELD(F64, struct mfs_trace_node, shortest_ms)},
           {.name = "under_way", MFS_FIELD(U32, struct mfs_trace_node, under_way)},
           {.name = "silent_ms", MFS_FIELD(F64, struct mfs_trace_node, silent_ms)},
           {.name = "silent_partition", MFS_FIELD(U32, struct mfs_trace_node, silent_partition)},
           {.name = "unreachable", MFS_FIELD(U32, struct mfs_trace_node, unreachable)},
           {.name = "moving", MFS_FIELD(U32, struct mfs_trace_node, moving)},
           {.name = "full_s_ago", MFS_FIELD(F64, struct mfs_trace_node, full_s_ago)},
           {0}}};

static const struct mfs_schema nodes_schema = {
    "nodes", sizeof(struct mfs_trace_nodes),
    FIELDS{{.name = "nodes",
            .required = true,
            MFS_FIELD_LIST(struct mfs_trace_nodes, node, n, &node_schema),
            .max = MFS_TRACE_NODES_MAX},
           {0}}};

void mfs_trace_nodes_free(struct mfs_trace_nodes *nodes)
{
    free(nodes->node);
    *nodes = (struct mfs_trace_nodes){0};
}

static int put_node(const struct mfs_trace_node *n, struct mfs_buf *to)
{
    double mean = n->round_trips > 0 ? n->ms / (double)n->round_trips : 0;
    int rc =
        mfs_buf_printf(to, "%5u %10u %12" PRIu64 " %9.3f %11.3f %9u %10.1f", n->node, n->partitions,
                       n->round_trips, mean, n->shortest_ms, n->under_way, n->silent_ms / 1e3);

    if (rc == 0 && n->silent_ms > 1e3)
        rc = mfs_buf_printf(to, "  partition %u does not answer", n->silent_partition);
    if (rc == 0 && n->unreachable > 0)
        rc = mfs_buf_printf(to, "  %u unreachable", n->unreachable);
    if (rc == 0 && n->moving > 0)
        rc = mfs_buf_printf(to, "  %u being moved", n->moving);
    if (rc == 0 && n->full_s_ago > 0)
        rc = mfs_buf_printf(to, "  had no memory %.1f s ago", n->full_s_ago);
    return rc < 0 ? rc : mfs_buf_append(to, "\n", 1);
}

int mfs_trace_nodes_text(const struct mfs_trace_nodes *nodes, struct mfs_buf *to)
{
    int rc = mfs_buf_printf(to, "%5s %10s %12s %9s %11s %9s %10s\n", "node", "partitions",
                            "round trips", "mean ms", "shortest ms", "under way", "silent s");

    for (uint32_t i = 0; i < nodes->n && rc == 0; i++)
        rc = put_node(&nodes->node[i], to);
    return rc;
}

int mfs_trace_nodes_json(const struct mfs_trace_nodes *nodes, struct mfs_buf *to)
{
    int rc = mfs_schema_encode(&nodes_schema, nodes, true, to);

    return rc < 0 ? rc : mfs_buf_append(to, "\n", 1);
}

int mfs_trace_nodes_parse(const char *json, size_t len, struct mfs_trace_nodes *nodes,
                          struct mfs_err *err)
{
    return mfs_schema_decode(&nodes_schema, json, len, nodes, err);
}
