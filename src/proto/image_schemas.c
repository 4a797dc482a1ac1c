/* The fields of the messages about checkpoints. */
#include "proto/image_schemas.h"

#include "proto/messages.h"

#define FIELDS (const struct mfs_field[])

const struct mfs_schema mfs_image_part_schema = {
    "image", sizeof(struct mfs_image_part),
    FIELDS{{.name = "index", MFS_FIELD(U32, struct mfs_image_part, index)},
           {.name = "bytes", MFS_FIELD(U64, struct mfs_image_part, bytes)},
           {.name = "memory", MFS_FIELD(U64, struct mfs_image_part, memory)},
           {.name = "gmac", MFS_FIELD(STR, struct mfs_image_part, sum)},
           {.name = "losses", MFS_FIELD(U64, struct mfs_image_part, losses)},
           {0}}};

static const struct mfs_schema index_schema = {
    "partition", sizeof(struct mfs_image_index),
    FIELDS{{.name = "index", .required = true, MFS_FIELD(U32, struct mfs_image_index, index)},
           {0}}};

const struct mfs_schema mfs_image_schema = {
    "image", sizeof(struct mfs_msg_image),
    FIELDS{{.name = "step", .required = true, MFS_FIELD(STR, struct mfs_msg_image, step)},
           {.name = "dir", MFS_FIELD(STR, struct mfs_msg_image, dir)},
           {.name = "ms", MFS_FIELD(U32, struct mfs_msg_image, ms)},
           {.name = "parts", MFS_FIELD_LIST(struct mfs_msg_image, part, nparts, &index_schema)},
           {0}}};

const struct mfs_schema mfs_image_reply_schema = {
    "image reply", sizeof(struct mfs_msg_image_reply),
    FIELDS{{.name = "halted_us", MFS_FIELD(U64, struct mfs_msg_image_reply, halted_us)},
           {.name = "parts",
            MFS_FIELD_LIST(struct mfs_msg_image_reply, part, nparts, &mfs_image_part_schema)},
           {0}}};

const struct mfs_schema mfs_checkpoint_ask_schema = {
    "checkpoint", sizeof(struct mfs_msg_checkpoint),
    FIELDS{{.name = "dir", .required = true, MFS_FIELD(STR, struct mfs_msg_checkpoint, dir)}, {0}}};

const struct mfs_schema mfs_checkpoint_schema = {
    "checkpoint reply", sizeof(struct mfs_checkpoint),
    FIELDS{{.name = "epoch", MFS_FIELD(U64, struct mfs_checkpoint, epoch)},
           {.name = "nodes", MFS_FIELD(U32, struct mfs_checkpoint, nodes)},
           {.name = "stripe_size", MFS_FIELD(U32, struct mfs_checkpoint, stripe_size)},
           {.name = "halted_ms", MFS_FIELD(F64, struct mfs_checkpoint, halted_ms)},
           {.name = "attempts", MFS_FIELD(U32, struct mfs_checkpoint, attempts)},
           {.name = "duration_ms", MFS_FIELD(F64, struct mfs_checkpoint, duration_ms)},
           {.name = "parts",
            MFS_FIELD_LIST(struct mfs_checkpoint, part, nparts, &mfs_image_part_schema)},
           {0}}};

const struct mfs_schema mfs_checkpointed_schema = {
    "checkpointed", sizeof(struct mfs_msg_checkpointed),
    FIELDS{{.name = "dir", .required = true, MFS_FIELD(STR, struct mfs_msg_checkpointed, dir)},
           {.name = "number", MFS_FIELD(U32, struct mfs_msg_checkpointed, number)},
           {.name = "bytes", MFS_FIELD(U64, struct mfs_msg_checkpointed, bytes)},
           {0}}};
