/* Inside src/proto: structs to JSON text, by their schemas. */
#ifndef MFS_PROTO_ENCODE_H
#define MFS_PROTO_ENCODE_H

#include "proto/schema.h"

struct mfs_table;

enum mfs_layout {
    MFS_LAYOUT_LINE,
    MFS_LAYOUT_PRETTY, /* over several lines */
    MFS_LAYOUT_LINES,  /* without that, too; each member of the whole and of each list is a line */
    MFS_LAYOUT_LEAN,   /* a line, without what is zero, empty or false and may be left out: what
                          programs of ours send each other */
};

/* Appends one JSON object, which is so deep inside others. 0, or -ENOMEM and nothing. */
int mfs_schema_put(const struct mfs_schema *schema, const void *from, enum mfs_layout layout,
                   unsigned depth, struct mfs_buf *out);
/* Appends it, or null for NULL. 0 or -ENOMEM. */
int mfs_table_encode(const struct mfs_table *t, enum mfs_layout layout, unsigned depth,
                     struct mfs_buf *out);
/* Appends a JSON string. 0 or -ENOMEM. */
int mfs_string_encode(const char *text, struct mfs_buf *out);

#endif
