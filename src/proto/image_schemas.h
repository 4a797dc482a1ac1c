/* The fields of the messages about checkpoints; for messages.c alone. */
#ifndef MFS_PROTO_IMAGE_SCHEMAS_H
#define MFS_PROTO_IMAGE_SCHEMAS_H

#include "proto/schema.h"

extern const struct mfs_schema mfs_image_schema, mfs_image_reply_schema;
extern const struct mfs_schema mfs_checkpoint_ask_schema;
extern const struct mfs_schema mfs_checkpointed_schema;

#endif
