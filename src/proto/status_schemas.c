/* The fields of what is told of a deployment: its status, and what a change of its size was. */
#include "proto/messages.h"
#include "proto/metrics_schemas.h"

#define FIELDS (const struct mfs_field[])

const struct mfs_schema mfs_status_node_schema = {
    "node", sizeof(struct mfs_status_node),
    FIELDS{
        {.name = "id", MFS_FIELD(U32, struct mfs_status_node, id)},
        {.name = "name", MFS_FIELD(STR, struct mfs_status_node, name)},
        {.name = "address", MFS_FIELD(STR, struct mfs_status_node, address)},
        {.name = "state", MFS_FIELD(STR, struct mfs_status_node, state)},
        {.name = "partitions", MFS_FIELD(U32, struct mfs_status_node, partitions)},
        {.name = "memory_capacity", MFS_FIELD(U64, struct mfs_status_node, memory_capacity)},
        {.name = "memory_used",
         .unknown = true,
         MFS_FIELD(U64, struct mfs_status_node, memory_used)},
        {.name = "bandwidth_in",
         .unknown = true,
         MFS_FIELD(F64, struct mfs_status_node, bandwidth_in)},
        {.name = "bandwidth_out",
         .unknown = true,
         MFS_FIELD(F64, struct mfs_status_node, bandwidth_out)},
        {.name = "bandwidth_capacity", MFS_FIELD(F64, struct mfs_status_node, bandwidth_capacity)},
        {.name = "bandwidth_from", MFS_FIELD(STR, struct mfs_status_node, bandwidth_from)},
        {.name = "share", MFS_FIELD(F64, struct mfs_status_node, share)},
        {.name = "mount", MFS_FIELD(STR, struct mfs_status_node, mount)},
        {.name = "epoch", MFS_FIELD(U64, struct mfs_status_node, epoch)},
        {.name = "waits_for", MFS_FIELD(STR, struct mfs_status_node, waits_for)},
        {.name = "clients_behind",
         .unknown = true,
         MFS_FIELD(U32, struct mfs_status_node, clients_behind)},
        {.name = "replicas", MFS_FIELD(U32, struct mfs_status_node, replicas)},
        {.name = "votes", MFS_FIELD(BOOL, struct mfs_status_node, votes)},
        {.name = "copy_behind_ms", MFS_FIELD(U64, struct mfs_status_node, copy_behind_ms)},
        {0}}};

const struct mfs_schema mfs_status_move_schema = {
    "move", sizeof(struct mfs_status_move),
    FIELDS{
        {.name = "partition", .required = true, MFS_FIELD(U32, struct mfs_status_move, partition)},
        {.name = "from", .required = true, MFS_FIELD(U32, struct mfs_status_move, from)},
        {.name = "to", .required = true, MFS_FIELD(U32, struct mfs_status_move, to)},
        {.name = "step", MFS_FIELD(STR, struct mfs_status_move, step)},
        {.name = "bytes", MFS_FIELD(U64, struct mfs_status_move, bytes)},
        {.name = "bytes_total", MFS_FIELD(U64, struct mfs_status_move, bytes_total)},
        {0}}};

const struct mfs_schema mfs_status_place_schema = {
    "place", sizeof(struct mfs_status_place),
    FIELDS{
        {.name = "partition", .required = true, MFS_FIELD(U32, struct mfs_status_place, partition)},
        {.name = "node", .required = true, MFS_FIELD(STR, struct mfs_status_place, node)},
        {.name = "replica", MFS_FIELD(STR, struct mfs_status_place, replica)},
        {.name = "bytes", .unknown = true, MFS_FIELD(U64, struct mfs_status_place, bytes)},
        {0}}};

const struct mfs_schema mfs_status_schema = {
    "status", sizeof(struct mfs_status),
    FIELDS{
        {.name = "name", .required = true, MFS_FIELD(STR, struct mfs_status, name)},
        {.name = "state", .required = true, MFS_FIELD(STR, struct mfs_status, state)},
        {.name = "epoch", MFS_FIELD(U64, struct mfs_status, epoch)},
        {.name = "term", MFS_FIELD(U64, struct mfs_status, term)},
        {.name = "will_lose", MFS_FIELD(U64, struct mfs_status, will_lose)},
        {.name = "partitions", MFS_FIELD(U32, struct mfs_status, partitions)},
        {.name = "beta", MFS_FIELD(F64, struct mfs_status, beta)},
        {.name = "policy", MFS_FIELD(STR, struct mfs_status, policy)},
        {.name = "migration", MFS_FIELD(STR, struct mfs_status, migration)},
        {.name = "weights", MFS_FIELD(STR, struct mfs_status, weights)},
        {.name = "by_bandwidth", MFS_FIELD(BOOL, struct mfs_status, by_bandwidth)},
        {.name = "utilization", .unknown = true, MFS_FIELD(F64, struct mfs_status, utilization)},
        {.name = "replicas", MFS_FIELD(U32, struct mfs_status, replicas)},
        {.name = "unprotected", MFS_FIELD(U32, struct mfs_status, unprotected)},
        {.name = "nodes", MFS_FIELD_LIST(struct mfs_status, node, nnodes, &mfs_status_node_schema)},
        {.name = "placement",
         MFS_FIELD_LIST(struct mfs_status, place, nplaces, &mfs_status_place_schema)},
        {.name = "moves", MFS_FIELD_LIST(struct mfs_status, move, nmoves, &mfs_status_move_schema)},
        {.name = "checkpoint_dir", MFS_FIELD(STR, struct mfs_status, checkpoint_dir)},
        {.name = "checkpoint_time", MFS_FIELD(STR, struct mfs_status, checkpoint_time)},
        {.name = "timestamp", MFS_FIELD(STR, struct mfs_status, timestamp)},
        {.name = "version", MFS_FIELD(STR, struct mfs_status, version)},
        {.name = "uptime_s", MFS_FIELD(F64, struct mfs_status, uptime_s)},
        {.name = "restarts", MFS_FIELD(U64, struct mfs_status, restarts)},
        {.name = "out_of_memory", MFS_FIELD(U64, struct mfs_status, out_of_memory)},
        {.name = "failovers", MFS_FIELD(U64, struct mfs_status, failovers)},
        {.name = "lost_partitions", MFS_FIELD(U64, struct mfs_status, lost_partitions)},
        {.name = "lost_bytes", MFS_FIELD(U64, struct mfs_status, lost_bytes)},
        {.name = "inodes", .unknown = true, MFS_FIELD(U64, struct mfs_status, inodes)},
        {.name = "silent_nodes", MFS_FIELD(U32, struct mfs_status, silent_nodes)},
        {.name = "silent_partitions", MFS_FIELD(U32, struct mfs_status, silent_partitions)},
        {.name = "unknown_partitions", MFS_FIELD(U32, struct mfs_status, unknown_partitions)},
        {.name = "lost_stripes", .unknown = true, MFS_FIELD(U64, struct mfs_status, lost_stripes)},
        {.name = "errors", MFS_FIELD(U64, struct mfs_status, errors)},
        {.name = "no_space", MFS_FIELD(U64, struct mfs_status, no_space)},
        {.name = "io_errors", MFS_FIELD(U64, struct mfs_status, io_errors)},
        {.name = "mounts", MFS_FIELD_LIST(struct mfs_status, mount, nmounts, &mfs_mount_schema)},
        {0}}};

static const struct mfs_schema scale_move_schema = {
    "move", sizeof(struct mfs_scale_move),
    FIELDS{{.name = "partition", .required = true, MFS_FIELD(U32, struct mfs_scale_move, index)},
           {.name = "from", .required = true, MFS_FIELD(U32, struct mfs_scale_move, from)},
           {.name = "to", .required = true, MFS_FIELD(U32, struct mfs_scale_move, to)},
           {.name = "bytes", MFS_FIELD(U64, struct mfs_scale_move, bytes)},
           {0}}};

const struct mfs_schema mfs_scale_report_schema = {
    "scale report", sizeof(struct mfs_scale_report),
    FIELDS{{.name = "from", MFS_FIELD(U32, struct mfs_scale_report, from)},
           {.name = "to", MFS_FIELD(U32, struct mfs_scale_report, to)},
           {.name = "partitions_moved", MFS_FIELD(U32, struct mfs_scale_report, partitions_moved)},
           {.name = "bytes_moved", MFS_FIELD(U64, struct mfs_scale_report, bytes_moved)},
           {.name = "duration_ms", MFS_FIELD(F64, struct mfs_scale_report, duration_ms)},
           {.name = "blocked_ms_max", MFS_FIELD(F64, struct mfs_scale_report, blocked_ms_max)},
           {.name = "blocked_ms_total", MFS_FIELD(F64, struct mfs_scale_report, blocked_ms_total)},
           {.name = "lower_bound_ms", MFS_FIELD(F64, struct mfs_scale_report, lower_bound_ms)},
           {.name = "partitions_lost", MFS_FIELD(U32, struct mfs_scale_report, partitions_lost)},
           {.name = "bytes_lost", MFS_FIELD(U64, struct mfs_scale_report, bytes_lost)},
           {.name = "moves",
            MFS_FIELD_LIST(struct mfs_scale_report, move, nmoves, &scale_move_schema)},
           {0}}};

uint32_t mfs_status_clients_behind(const struct mfs_status_node *n)
{
    return n->clients_behind == MFS_UNKNOWN_U32 ? 0 : n->clients_behind;
}

void mfs_status_memory(const struct mfs_status *s, uint64_t *used, uint64_t *capacity)
{
    *used = *capacity = 0;
    for (uint32_t i = 0; i < s->nnodes; i++) {
        if (s->node[i].memory_used == MFS_UNKNOWN_U64)
            continue;
        *used += s->node[i].memory_used;
        *capacity += s->node[i].memory_capacity;
    }
}
