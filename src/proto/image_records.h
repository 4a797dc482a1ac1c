/* The fields of the messages about checkpoints; for messages.c alone. */
#ifndef MFS_PROTO_IMAGE_RECORDS_H
#define MFS_PROTO_IMAGE_RECORDS_H

#include "proto/record.h"

extern const struct mfs_record mfs_image_record, mfs_image_reply_record;
extern const struct mfs_record mfs_checkpoint_ask_record;
extern const struct mfs_record mfs_checkpointed_record;

#endif
