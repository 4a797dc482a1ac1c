/* The fields of the messages about figures; for messages.c alone. */
#ifndef MFS_PROTO_METRICS_SCHEMAS_H
#define MFS_PROTO_METRICS_SCHEMAS_H

#include "proto/schema.h"

extern const struct mfs_schema mfs_metrics_schema;     /* struct mfs_metric_snapshot */
extern const struct mfs_schema mfs_mounts_full_schema; /* struct mfs_mounts, with figures */
extern const struct mfs_schema mfs_mounts_ask_schema;  /* struct mfs_msg_mounts */
extern const struct mfs_schema mfs_clients_ask_schema; /* struct mfs_msg_clients */

#endif
