/* The table of messages and their fields, and the envelope around each. */
#include "proto/messages.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cluster/trust.h"
#include "proto/encode.h"
#include "proto/frame.h"
#include "proto/image_schemas.h"
#include "proto/json.h"
#include "proto/metrics_schemas.h"

#define FIELDS (const struct mfs_field[])

static const struct mfs_schema empty_schema = {"nothing", sizeof(struct mfs_msg_empty),
                                               FIELDS{{0}}};

static const struct mfs_schema assign_part_schema = {
    "assigned", sizeof(struct mfs_assign_part),
    FIELDS{{.name = "index", .required = true, MFS_FIELD(U32, struct mfs_assign_part, index)},
           {.name = "format", MFS_FIELD(BOOL, struct mfs_assign_part, format)},
           {.name = "password", .required = true, MFS_FIELD(STR, struct mfs_assign_part, password)},
           {.name = "admin_password",
            .required = true,
            MFS_FIELD(STR, struct mfs_assign_part, admin_password)},
           {.name = "image",
            MFS_FIELD(OBJECT, struct mfs_assign_part, image),
            .sub = &mfs_image_part_schema},
           {0}}};

static const struct mfs_schema assign_schema = {
    "assign", sizeof(struct mfs_msg_assign),
    FIELDS{{.name = "nparts", .required = true, MFS_FIELD(U32, struct mfs_msg_assign, nparts)},
           {.name = "stripe_size",
            .required = true,
            MFS_FIELD(U32, struct mfs_msg_assign, stripe_size)},
           {.name = "memory", .required = true, MFS_FIELD(U64, struct mfs_msg_assign, memory)},
           {.name = "image_dir", MFS_FIELD(STR, struct mfs_msg_assign, image_dir)},
           {.name = "assigned",
            .required = true,
            MFS_FIELD_LIST(struct mfs_msg_assign, assigned, nassigned, &assign_part_schema)},
           {0}}};

static const struct mfs_schema assigned_part_schema = {
    "assigned", sizeof(struct mfs_assigned_part),
    FIELDS{{.name = "index", .required = true, MFS_FIELD(U32, struct mfs_assigned_part, index)},
           {.name = "port", .max = 65535, MFS_FIELD(U32, struct mfs_assigned_part, port)},
           {.name = "unix", MFS_FIELD(STR, struct mfs_assigned_part, unix_path)},
           {0}}};

static const struct mfs_schema assign_reply_schema = {
    "assign reply", sizeof(struct mfs_msg_assign_reply),
    FIELDS{
        {.name = "assigned",
         .required = true,
         MFS_FIELD_LIST(struct mfs_msg_assign_reply, assigned, nassigned, &assigned_part_schema)},
        {0}}};

static const struct mfs_schema table_schema = {
    "table", sizeof(struct mfs_msg_table),
    FIELDS{{.name = "table", MFS_FIELD(TABLE, struct mfs_msg_table, table)},
           {.name = "change",
            MFS_FIELD(OBJECT, struct mfs_msg_table, change),
            .sub = &mfs_table_change_schema},
           {0}}};

static const struct mfs_schema epoch_schema = {
    "epoch", sizeof(struct mfs_msg_epoch),
    FIELDS{{.name = "epoch", .required = true, MFS_FIELD(U64, struct mfs_msg_epoch, epoch)}, {0}}};

static const struct mfs_schema lost_node_schema = {
    "lost", sizeof(struct mfs_lost_node),
    FIELDS{{.name = "node", .required = true, MFS_FIELD(U32, struct mfs_lost_node, node)}, {0}}};

static const struct mfs_schema beat_reply_schema = {
    "beat", sizeof(struct mfs_msg_beat_reply),
    FIELDS{
        {.name = "age_ms", .required = true, MFS_FIELD(U64, struct mfs_msg_beat_reply, age_ms)},
        {.name = "epoch", MFS_FIELD(U64, struct mfs_msg_beat_reply, epoch)},
        {.name = "lost", MFS_FIELD_LIST(struct mfs_msg_beat_reply, lost, nlost, &lost_node_schema)},
        {0}}};

static const struct mfs_schema mount_schema = {
    "mount", sizeof(struct mfs_msg_mount),
    FIELDS{{.name = "path", .required = true, MFS_FIELD(STR, struct mfs_msg_mount, path)},
           {.name = "options", MFS_FIELD(STR, struct mfs_msg_mount, options)},
           {0}}};

static const struct mfs_schema report_copy_schema = {
    "copy", sizeof(struct mfs_report_copy),
    FIELDS{{.name = "index", .required = true, MFS_FIELD(U32, struct mfs_report_copy, index)},
           {.name = "bytes", MFS_FIELD(U64, struct mfs_report_copy, bytes)},
           {.name = "silent", MFS_FIELD(BOOL, struct mfs_report_copy, silent)},
           {0}}};

static const struct mfs_schema join_schema = {
    "join", sizeof(struct mfs_msg_join),
    FIELDS{
        {.name = "version", .required = true, MFS_FIELD(U32, struct mfs_msg_join, version)},
        {.name = "node", .required = true, MFS_FIELD(U32, struct mfs_msg_join, node)},
        {.name = "name", .required = true, MFS_FIELD(STR, struct mfs_msg_join, name)},
        {.name = "address", .required = true, MFS_FIELD(STR, struct mfs_msg_join, address)},
        {.name = "pid", MFS_FIELD(U32, struct mfs_msg_join, pid)},
        {.name = "epoch", MFS_FIELD(U64, struct mfs_msg_join, epoch)},
        {.name = "memory", MFS_FIELD(U64, struct mfs_msg_join, memory)},
        {.name = "assigned",
         MFS_FIELD_LIST(struct mfs_msg_join, assigned, nassigned, &assigned_part_schema)},
        {.name = "mount", MFS_FIELD(STR, struct mfs_msg_join, mount)},
        {.name = "copy", MFS_FIELD_LIST(struct mfs_msg_join, copy, ncopies, &report_copy_schema)},
        {.name = "metrics", .max = 65535, MFS_FIELD(U32, struct mfs_msg_join, metrics)},
        {.name = "control", .max = 65535, MFS_FIELD(U32, struct mfs_msg_join, control)},
        {.name = "term", MFS_FIELD(U64, struct mfs_msg_join, term)},
        {.name = "vote_term", MFS_FIELD(U64, struct mfs_msg_join, vote_term)},
        {.name = "copy_term", MFS_FIELD(U64, struct mfs_msg_join, copy_term)},
        {.name = "copy_revision", MFS_FIELD(U64, struct mfs_msg_join, copy_revision)},
        {0}}};

static const struct mfs_schema report_part_schema = {
    "part", sizeof(struct mfs_report_part),
    FIELDS{{.name = "index", .required = true, MFS_FIELD(U32, struct mfs_report_part, index)},
           {.name = "memory_used", MFS_FIELD(U64, struct mfs_report_part, memory_used)},
           {.name = "keys", MFS_FIELD(U64, struct mfs_report_part, keys)},
           {.name = "silent", MFS_FIELD(BOOL, struct mfs_report_part, silent)},
           {.name = "starved", MFS_FIELD(BOOL, struct mfs_report_part, starved)},
           {.name = "inodes", MFS_FIELD(U64, struct mfs_report_part, inodes)},
           {.name = "lost_stripes", MFS_FIELD(U64, struct mfs_report_part, lost_stripes)},
           {0}}};

static const struct mfs_schema report_peer_schema = {
    "peer", sizeof(struct mfs_report_peer),
    FIELDS{{.name = "node", .required = true, MFS_FIELD(U32, struct mfs_report_peer, node)},
           {.name = "rate", MFS_FIELD(F64, struct mfs_report_peer, rate)},
           {.name = "busy", MFS_FIELD(F64, struct mfs_report_peer, busy)},
           {0}}};

static const struct mfs_schema report_client_schema = {
    "client", sizeof(struct mfs_report_client),
    FIELDS{{.name = "pid", .required = true, MFS_FIELD(U32, struct mfs_report_client, pid)},
           {.name = "ready", MFS_FIELD(BOOL, struct mfs_report_client, ready)},
           {.name = "epoch", MFS_FIELD(U64, struct mfs_report_client, epoch)},
           {.name = "mount", MFS_FIELD(STR, struct mfs_report_client, mount)},
           {0}}};

static const struct mfs_schema report_schema = {
    "report", sizeof(struct mfs_msg_report),
    FIELDS{
        {.name = "node", .required = true, MFS_FIELD(U32, struct mfs_msg_report, node)},
        {.name = "epoch", MFS_FIELD(U64, struct mfs_msg_report, epoch)},
        {.name = "memory_used", MFS_FIELD(U64, struct mfs_msg_report, memory_used)},
        {.name = "memory_capacity", MFS_FIELD(U64, struct mfs_msg_report, memory_capacity)},
        {.name = "rss", MFS_FIELD(U64, struct mfs_msg_report, rss)},
        {.name = "bandwidth_in", MFS_FIELD(F64, struct mfs_msg_report, bandwidth_in)},
        {.name = "bandwidth_out", MFS_FIELD(F64, struct mfs_msg_report, bandwidth_out)},
        {.name = "bytes_in", MFS_FIELD(U64, struct mfs_msg_report, bytes_in)},
        {.name = "bytes_out", MFS_FIELD(U64, struct mfs_msg_report, bytes_out)},
        {.name = "commands", MFS_FIELD(U64, struct mfs_msg_report, commands)},
        {.name = "out_of_memory", MFS_FIELD(U64, struct mfs_msg_report, out_of_memory)},
        {.name = "deaths", MFS_FIELD(U64, struct mfs_msg_report, deaths)},
        {.name = "revivals", MFS_FIELD(U64, struct mfs_msg_report, revivals)},
        {.name = "peer", MFS_FIELD_LIST(struct mfs_msg_report, peer, npeers, &report_peer_schema)},
        {.name = "part", MFS_FIELD_LIST(struct mfs_msg_report, part, nparts, &report_part_schema)},
        {.name = "client",
         MFS_FIELD_LIST(struct mfs_msg_report, client, nclients, &report_client_schema)},
        {.name = "copy", MFS_FIELD_LIST(struct mfs_msg_report, copy, ncopies, &report_copy_schema)},
        {.name = "image_bytes", MFS_FIELD(U64, struct mfs_msg_report, image_bytes)},
        {0}}};

static const struct mfs_schema event_schema = {
    "event", sizeof(struct mfs_msg_event),
    FIELDS{{.name = "what", .required = true, MFS_FIELD(STR, struct mfs_msg_event, what)},
           {.name = "text", MFS_FIELD(STR, struct mfs_msg_event, text)},
           {0}}};

static const struct mfs_schema hello_schema = {
    "client_hello", sizeof(struct mfs_msg_client_hello),
    FIELDS{
        {.name = "version", .required = true, MFS_FIELD(U32, struct mfs_msg_client_hello, version)},
        {.name = "pid", .required = true, MFS_FIELD(U32, struct mfs_msg_client_hello, pid)},
        {.name = "mount", MFS_FIELD(STR, struct mfs_msg_client_hello, mount)},
        {.name = "epoch", MFS_FIELD(U64, struct mfs_msg_client_hello, epoch)},
        {.name = "session", MFS_FIELD(STR, struct mfs_msg_client_hello, session)},
        {.name = "program", MFS_FIELD(STR, struct mfs_msg_client_hello, program)},
        {.name = "since", MFS_FIELD(U64, struct mfs_msg_client_hello, since)},
        {.name = "instance", MFS_FIELD(U32, struct mfs_msg_client_hello, instance)},
        {.name = "leaves", MFS_FIELD(BOOL, struct mfs_msg_client_hello, leaves)},
        {0}}};

static const struct mfs_schema receive_schema = {
    "receive", sizeof(struct mfs_msg_receive),
    FIELDS{{.name = "index", .required = true, MFS_FIELD(U32, struct mfs_msg_receive, index)},
           {.name = "nparts", .required = true, MFS_FIELD(U32, struct mfs_msg_receive, nparts)},
           {.name = "stripe_size",
            .required = true,
            MFS_FIELD(U32, struct mfs_msg_receive, stripe_size)},
           {.name = "memory", .required = true, MFS_FIELD(U64, struct mfs_msg_receive, memory)},
           {.name = "password", .required = true, MFS_FIELD(STR, struct mfs_msg_receive, password)},
           {.name = "admin_password",
            .required = true,
            MFS_FIELD(STR, struct mfs_msg_receive, admin_password)},
           {.name = "source_host",
            .required = true,
            MFS_FIELD(STR, struct mfs_msg_receive, source_host)},
           {.name = "source_port",
            .required = true,
            MFS_FIELD(U32, struct mfs_msg_receive, source_port)},
           {.name = "source_admin_password",
            .required = true,
            MFS_FIELD(STR, struct mfs_msg_receive, source_admin_password)},
           {.name = "cold", MFS_FIELD(BOOL, struct mfs_msg_receive, cold)},
           {.name = "diskless", MFS_FIELD(BOOL, struct mfs_msg_receive, diskless)},
           {.name = "moves", MFS_FIELD(BOOL, struct mfs_msg_receive, moves)},
           {.name = "bytes", MFS_FIELD(U64, struct mfs_msg_receive, bytes)},
           {.name = "rate", MFS_FIELD(U64, struct mfs_msg_receive, rate)},
           {0}}};

static const struct mfs_schema receive_reply_schema = {
    "receive reply", sizeof(struct mfs_msg_receive_reply),
    FIELDS{{.name = "index", .required = true, MFS_FIELD(U32, struct mfs_msg_receive_reply, index)},
           {.name = "bytes", MFS_FIELD(U64, struct mfs_msg_receive_reply, bytes)},
           {.name = "duration_us", MFS_FIELD(U64, struct mfs_msg_receive_reply, duration_us)},
           {.name = "port", .max = 65535, MFS_FIELD(U32, struct mfs_msg_receive_reply, port)},
           {0}}};

static const struct mfs_schema take_schema = {
    "take", sizeof(struct mfs_msg_take),
    FIELDS{{.name = "index", .required = true, MFS_FIELD(U32, struct mfs_msg_take, index)},
           {.name = "password", .required = true, MFS_FIELD(STR, struct mfs_msg_take, password)},
           {.name = "force", MFS_FIELD(BOOL, struct mfs_msg_take, force)},
           {.name = "quiet_ms", .max = 3600000, MFS_FIELD(U32, struct mfs_msg_take, quiet_ms)},
           {.name = "dead", MFS_FIELD(BOOL, struct mfs_msg_take, dead)},
           {.name = "stream", MFS_FIELD(STR, struct mfs_msg_take, stream)},
           {.name = "offset", MFS_FIELD(U64, struct mfs_msg_take, offset)},
           {0}}};

static const struct mfs_schema take_reply_schema = {
    "take reply", sizeof(struct mfs_msg_take_reply),
    FIELDS{{.name = "index", .required = true, MFS_FIELD(U32, struct mfs_msg_take_reply, index)},
           {.name = "port", .required = true, MFS_FIELD(U32, struct mfs_msg_take_reply, port)},
           {.name = "unix", MFS_FIELD(STR, struct mfs_msg_take_reply, unix_path)},
           {.name = "blocked_us", MFS_FIELD(U64, struct mfs_msg_take_reply, blocked_us)},
           {0}}};

static const struct mfs_schema fence_schema = {
    "fence", sizeof(struct mfs_msg_fence),
    FIELDS{{.name = "index", .required = true, MFS_FIELD(U32, struct mfs_msg_fence, index)},
           {.name = "password", .required = true, MFS_FIELD(STR, struct mfs_msg_fence, password)},
           {.name = "on", .required = true, MFS_FIELD(BOOL, struct mfs_msg_fence, on)},
           {0}}};

static const struct mfs_schema fence_reply_schema = {
    "fence reply", sizeof(struct mfs_msg_fence_reply),
    FIELDS{{.name = "stream", MFS_FIELD(STR, struct mfs_msg_fence_reply, stream)},
           {.name = "offset", MFS_FIELD(U64, struct mfs_msg_fence_reply, offset)},
           {0}}};

static const struct mfs_schema release_schema = {
    "release", sizeof(struct mfs_msg_release),
    FIELDS{{.name = "index", .required = true, MFS_FIELD(U32, struct mfs_msg_release, index)},
           {.name = "password", .required = true, MFS_FIELD(STR, struct mfs_msg_release, password)},
           {0}}};

static const struct mfs_schema scale_node_schema = {
    "node", sizeof(struct mfs_scale_node),
    FIELDS{{.name = "name", .required = true, MFS_FIELD(STR, struct mfs_scale_node, name)}, {0}}};

static const struct mfs_schema scale_schema = {
    "scale", sizeof(struct mfs_msg_scale),
    FIELDS{
        {.name = "how", .required = true, MFS_FIELD(STR, struct mfs_msg_scale, how)},
        {.name = "n", MFS_FIELD(U32, struct mfs_msg_scale, n)},
        {.name = "nodes", MFS_FIELD_LIST(struct mfs_msg_scale, node, nnodes, &scale_node_schema)},
        {.name = "host", MFS_FIELD(STR, struct mfs_msg_scale, host)},
        {.name = "migration", MFS_FIELD(STR, struct mfs_msg_scale, migration)},
        {.name = "at_once", MFS_FIELD(BOOL, struct mfs_msg_scale, at_once)},
        {.name = "rate", MFS_FIELD(U64, struct mfs_msg_scale, rate)},
        {.name = "dry_run", MFS_FIELD(BOOL, struct mfs_msg_scale, dry_run)},
        {.name = "yes", MFS_FIELD(BOOL, struct mfs_msg_scale, yes)},
        {0}}};

static const struct mfs_schema progress_schema = {
    "progress", sizeof(struct mfs_progress),
    FIELDS{{.name = "what", MFS_FIELD(STR, struct mfs_progress, what)},
           {.name = "bytes", MFS_FIELD(U64, struct mfs_progress, bytes)},
           {.name = "bytes_total", MFS_FIELD(U64, struct mfs_progress, bytes_total)},
           {.name = "partitions", MFS_FIELD(U32, struct mfs_progress, partitions)},
           {.name = "partitions_total", MFS_FIELD(U32, struct mfs_progress, partitions_total)},
           {.name = "rate", MFS_FIELD(F64, struct mfs_progress, rate)},
           {.name = "eta_ms", MFS_FIELD(F64, struct mfs_progress, eta_ms)},
           {0}}};

static const struct mfs_schema policy_schema = {
    "policy", sizeof(struct mfs_msg_policy),
    FIELDS{{.name = "name", .required = true, MFS_FIELD(STR, struct mfs_msg_policy, name)}, {0}}};

static const struct mfs_schema mark_schema = {
    "mark", sizeof(struct mfs_msg_mark),
    FIELDS{{.name = "text", .required = true, MFS_FIELD(STR, struct mfs_msg_mark, text)}, {0}}};

static const struct mfs_schema term_schema = {
    "term", sizeof(struct mfs_msg_term),
    FIELDS{
        {.name = "index", .required = true, MFS_FIELD(U32, struct mfs_msg_term, index)},
        {.name = "password", .required = true, MFS_FIELD(STR, struct mfs_msg_term, password)},
        {.name = "on", MFS_FIELD(BOOL, struct mfs_msg_term, on)},
        {.name = "whole", MFS_FIELD(BOOL, struct mfs_msg_term, whole)},
        {.name = "replica_host", MFS_FIELD(STR, struct mfs_msg_term, replica_host)},
        {.name = "replica_port", .max = 65535, MFS_FIELD(U32, struct mfs_msg_term, replica_port)},
        {.name = "replica_admin_password",
         MFS_FIELD(STR, struct mfs_msg_term, replica_admin_password)},
        {0}}};

static const struct mfs_schema died_schema = {
    "died", sizeof(struct mfs_msg_died),
    FIELDS{{.name = "index", .required = true, MFS_FIELD(U32, struct mfs_msg_died, index)},
           {.name = "password", .required = true, MFS_FIELD(STR, struct mfs_msg_died, password)},
           {0}}};

static const struct mfs_schema probe_schema = {
    "probe", sizeof(struct mfs_msg_probe),
    FIELDS{{.name = "step", .required = true, MFS_FIELD(STR, struct mfs_msg_probe, step)},
           {.name = "password", MFS_FIELD(STR, struct mfs_msg_probe, password)},
           {.name = "host", MFS_FIELD(STR, struct mfs_msg_probe, host)},
           {.name = "port", .max = 65535, MFS_FIELD(U32, struct mfs_msg_probe, port)},
           {.name = "peers", MFS_FIELD(U32, struct mfs_msg_probe, peers)},
           {.name = "ms", MFS_FIELD(U32, struct mfs_msg_probe, ms)},
           {.name = "bytes", MFS_FIELD(U64, struct mfs_msg_probe, bytes)},
           {0}}};

static const struct mfs_schema probe_reply_schema = {
    "probe", sizeof(struct mfs_msg_probe_reply),
    FIELDS{{.name = "port", .max = 65535, MFS_FIELD(U32, struct mfs_msg_probe_reply, port)},
           {.name = "in", MFS_FIELD(F64, struct mfs_msg_probe_reply, in)},
           {.name = "out", MFS_FIELD(F64, struct mfs_msg_probe_reply, out)},
           {0}}};

static const struct mfs_schema renewed_part_schema = {
    "partition", sizeof(struct mfs_renewed_part),
    FIELDS{{.name = "index", .required = true, MFS_FIELD(U32, struct mfs_renewed_part, index)},
           {0}}};

const struct mfs_schema mfs_renewal_schema = {
    "renewal", sizeof(struct mfs_renewal),
    FIELDS{{.name = "table", .required = true, MFS_FIELD(TABLE, struct mfs_renewal, table)},
           {.name = "parts",
            .required = true,
            MFS_FIELD_LIST(struct mfs_renewal, part, nparts, &renewed_part_schema)},
           {0}}};

static const struct mfs_schema stop_schema = {
    "stop", sizeof(struct mfs_msg_stop),
    FIELDS{{.name = "clear", MFS_FIELD(BOOL, struct mfs_msg_stop, clear)}, {0}}};

static const struct mfs_schema leave_schema = {
    "leave", sizeof(struct mfs_msg_leave),
    FIELDS{{.name = "ms", .required = true, MFS_FIELD(U64, struct mfs_msg_leave, ms)}, {0}}};

static const struct mfs_schema edit_schema = {
    "edit", sizeof(struct mfs_edit),
    FIELDS{{.name = "at", MFS_FIELD(U64, struct mfs_edit, at)},
           {.name = "cut", MFS_FIELD(U64, struct mfs_edit, cut)},
           {.name = "text", MFS_FIELD(TEXT, struct mfs_edit, text)},
           {0}}};

static const struct mfs_schema state_schema = {
    "state", sizeof(struct mfs_msg_state),
    FIELDS{{.name = "term", .required = true, MFS_FIELD(U64, struct mfs_msg_state, term)},
           {.name = "revision", .required = true, MFS_FIELD(U64, struct mfs_msg_state, revision)},
           {.name = "candidate", MFS_FIELD(U32, struct mfs_msg_state, candidate)},
           {.name = "base", MFS_FIELD(U64, struct mfs_msg_state, base)},
           {.name = "text", .required = true, MFS_FIELD(TEXT, struct mfs_msg_state, text)},
           {.name = "of", MFS_FIELD(STR, struct mfs_msg_state, of)},
           {.name = "edits", MFS_FIELD_LIST(struct mfs_msg_state, edit, nedits, &edit_schema)},
           {0}}};

static const struct mfs_schema vote_schema = {
    "vote", sizeof(struct mfs_msg_vote),
    FIELDS{{.name = "term", .required = true, MFS_FIELD(U64, struct mfs_msg_vote, term)},
           {.name = "candidate", .required = true, MFS_FIELD(U32, struct mfs_msg_vote, candidate)},
           {0}}};

static const struct mfs_schema vote_reply_schema = {
    "vote reply", sizeof(struct mfs_msg_vote_reply),
    FIELDS{{.name = "term", .required = true, MFS_FIELD(U64, struct mfs_msg_vote_reply, term)},
           {.name = "cm", MFS_FIELD(STR, struct mfs_msg_vote_reply, cm)},
           {.name = "copy",
            .required = true,
            MFS_FIELD(OBJECT, struct mfs_msg_vote_reply, copy),
            .sub = &state_schema},
           {0}}};

static const struct mfs_schema follow_schema = {
    "follow", sizeof(struct mfs_msg_follow),
    FIELDS{
        {.name = "term", .required = true, MFS_FIELD(U64, struct mfs_msg_follow, term)},
        {.name = "candidate", .required = true, MFS_FIELD(U32, struct mfs_msg_follow, candidate)},
        {.name = "cm", MFS_FIELD(STR, struct mfs_msg_follow, cm)},
        {0}}};

static const struct mfs_schema handover_schema = {
    "handover", sizeof(struct mfs_msg_handover),
    FIELDS{
        {.name = "candidate", .required = true, MFS_FIELD(U32, struct mfs_msg_handover, candidate)},
        {0}}};

const struct mfs_message mfs_messages[MFS_MSG_COUNT] = {
    [MFS_MSG_ASSIGN] = {"assign", &assign_schema, &assign_reply_schema},
    [MFS_MSG_TABLE] = {"table", &table_schema, &epoch_schema},
    [MFS_MSG_MOUNT] = {"mount", &mount_schema, &empty_schema},
    [MFS_MSG_UMOUNT] = {"umount", &mount_schema, &empty_schema},
    [MFS_MSG_END_CLIENTS] = {"end_clients", &empty_schema, &empty_schema},
    [MFS_MSG_STOP] = {"stop", &stop_schema, &empty_schema},
    [MFS_MSG_JOIN] = {"join", &join_schema, &empty_schema},
    [MFS_MSG_REPORT] = {"report", &report_schema, &empty_schema},
    [MFS_MSG_EVENT] = {"event", &event_schema, &empty_schema},
    [MFS_MSG_CLIENT_HELLO] = {"client_hello", &hello_schema, &empty_schema},
    [MFS_MSG_CLIENT_READY] = {"client_ready", &empty_schema, &empty_schema},
    [MFS_MSG_STATUS] = {"status", &empty_schema, &mfs_status_schema},
    [MFS_MSG_RECEIVE] = {"receive", &receive_schema, &receive_reply_schema},
    [MFS_MSG_TAKE] = {"take", &take_schema, &take_reply_schema},
    [MFS_MSG_FENCE] = {"fence", &fence_schema, &fence_reply_schema},
    [MFS_MSG_RELEASE] = {"release", &release_schema, &empty_schema},
    [MFS_MSG_SCALE] = {"scale", &scale_schema, &mfs_scale_report_schema},
    [MFS_MSG_PROGRESS] = {"progress", &empty_schema, &progress_schema},
    [MFS_MSG_POLICY] = {"policy", &policy_schema, &empty_schema},
    [MFS_MSG_IMAGE] = {"image", &mfs_image_schema, &mfs_image_reply_schema},
    [MFS_MSG_CHECKPOINT] = {"checkpoint", &mfs_checkpoint_ask_schema, &mfs_checkpoint_schema},
    [MFS_MSG_CHECKPOINTED] = {"checkpointed", &mfs_checkpointed_schema, &empty_schema},
    [MFS_MSG_BEAT] = {"beat", &empty_schema, &beat_reply_schema},
    [MFS_MSG_TERM] = {"term", &term_schema, &empty_schema},
    [MFS_MSG_DIED] = {"died", &died_schema, &empty_schema},
    [MFS_MSG_PROBE] = {"probe", &probe_schema, &probe_reply_schema},
    [MFS_MSG_METRICS] = {"metrics", &mfs_metrics_schema, &empty_schema},
    [MFS_MSG_HOT] = {"hot", &mfs_hot_schema, &empty_schema},
    [MFS_MSG_STATS] = {"stats", &empty_schema, &mfs_stats_schema},
    [MFS_MSG_MOUNTS] = {"mounts", &mfs_mounts_ask_schema, &mfs_mounts_full_schema},
    [MFS_MSG_CLIENTS] = {"clients", &mfs_clients_ask_schema, &mfs_mounts_schema},
    [MFS_MSG_EVENTS] = {"events", &empty_schema, &mfs_events_schema},
    [MFS_MSG_HISTORY] = {"history", &empty_schema, &empty_schema},
    [MFS_MSG_MARK] = {"mark", &mark_schema, &empty_schema},
    [MFS_MSG_LEAVE] = {"leave", &leave_schema, &empty_schema},
    [MFS_MSG_STATE] = {"state", &state_schema, &empty_schema},
    [MFS_MSG_VOTE] = {"vote", &vote_schema, &vote_reply_schema},
    [MFS_MSG_FOLLOW] = {"follow", &follow_schema, &empty_schema},
    [MFS_MSG_HANDOVER] = {"handover", &handover_schema, &state_schema},
    [MFS_MSG_ADOPT] = {"adopt", &empty_schema, &empty_schema},
};

/* ---- envelopes ------------------------------------------------------------------------------- */

/* `head` and the body make a frame; on failure nothing of it stays. */
static int put(struct mfs_buf *out, const char *head, const struct mfs_schema *schema,
               const void *body)
{
    size_t mark, len = mfs_buf_len(out);
    int rc = mfs_frame_begin(out, &mark);

    if (!rc)
        rc = mfs_buf_append(out, head, strlen(head));
    if (!rc)
        rc = body ? mfs_schema_put(schema, body, MFS_LAYOUT_LEAN, 0, out)
                  : mfs_buf_append(out, "{}", 2);
    if (!rc)
        rc = mfs_buf_append(out, "}", 1);
    if (!rc)
        rc = mfs_frame_seal(out, mark);
    if (rc)
        out->end = out->start + len;
    return rc;
}

int mfs_message_put_request(struct mfs_buf *out, enum mfs_msg type, uint64_t id, const void *body)
{
    char head[96];

    snprintf(head, sizeof head, "{\"type\":\"%s\",\"id\":%llu,\"body\":", mfs_messages[type].name,
             (unsigned long long)id);
    return put(out, head, mfs_messages[type].body, body);
}

int mfs_message_put_reply(struct mfs_buf *out, enum mfs_msg type, uint64_t id, const void *body)
{
    char head[64];

    snprintf(head, sizeof head, "{\"reply\":%llu,\"body\":", (unsigned long long)id);
    return put(out, head, mfs_messages[type].reply, body);
}

int mfs_message_put_error(struct mfs_buf *out, uint64_t id, int code, const char *text)
{
    size_t mark, len = mfs_buf_len(out);
    int rc = mfs_frame_begin(out, &mark);

    if (!rc)
        rc = mfs_buf_printf(out, "{\"reply\":%llu,\"error\":{\"code\":%d,\"message\":",
                            (unsigned long long)id, code);
    if (rc >= 0)
        rc = mfs_string_encode(text, out);
    if (!rc)
        rc = mfs_buf_append(out, "}}", 2);
    if (!rc)
        rc = mfs_frame_seal(out, mark);
    if (rc)
        out->end = out->start + len;
    return rc;
}

static int take_id(const cJSON *item, uint64_t *id)
{
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) || item->valuedouble > 9e15)
        return -EPROTO;
    *id = (uint64_t)item->valuedouble;
    return 0;
}

static void take_type(struct mfs_envelope *e, const cJSON *type)
{
    snprintf(e->type_name, sizeof e->type_name, "%s", type->valuestring);
    for (int i = 0; i < MFS_MSG_COUNT; i++)
        if (!strcmp(type->valuestring, mfs_messages[i].name))
            e->type = (enum mfs_msg)i;
}

static void take_error(struct mfs_envelope *e, const cJSON *error)
{
    const cJSON *code = cJSON_GetObjectItemCaseSensitive(error, "code");
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(error, "message");
    bool sane = cJSON_IsNumber(code) && code->valuedouble < 0 && code->valuedouble > -4096;

    mfs_err_set(&e->error, sane ? (int)code->valuedouble : -EIO, "%s",
                cJSON_IsString(text) ? text->valuestring : "no reason given");
}

int mfs_envelope_open(struct mfs_envelope *e, const char *text, size_t len)
{
    const cJSON *reply, *type, *error;
    cJSON *json = mfs_json_parse(text, len, NULL);
    int rc;

    *e = (struct mfs_envelope){.type = MFS_MSG_COUNT, .json = json};
    if (!json)
        return -EPROTO;
    reply = cJSON_GetObjectItemCaseSensitive(json, "reply");
    type = cJSON_GetObjectItemCaseSensitive(json, "type");
    error = cJSON_GetObjectItemCaseSensitive(json, "error");
    if (reply) {
        e->is_reply = true;
        rc = take_id(reply, &e->id);
        if (error)
            take_error(e, error);
    } else if (cJSON_IsString(type)) {
        rc = take_id(cJSON_GetObjectItemCaseSensitive(json, "id"), &e->id);
        take_type(e, type);
    } else {
        rc = -EPROTO;
    }
    if (rc)
        mfs_envelope_clear(e);
    return rc;
}

void mfs_envelope_clear(struct mfs_envelope *e)
{
    cJSON_Delete(e->json);
    e->json = NULL;
}

int mfs_envelope_body(const struct mfs_envelope *e, const struct mfs_schema *schema, void *to,
                      struct mfs_err *err)
{
    return mfs_schema_from_json(schema, cJSON_GetObjectItemCaseSensitive(e->json, "body"), to, err);
}
