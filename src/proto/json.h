/* JSON trees, for what has no schema: inside src/proto, and texts of others (Slurm). */
#ifndef MFS_PROTO_JSON_H
#define MFS_PROTO_JSON_H

#include <cjson/cJSON.h>

#include "base/buf.h"
#include "base/err.h"
#include "cluster/table.h"
#include "proto/schema.h"

/* One object and nothing behind it. NULL: no memory or no such text; *err (may be NULL) tells line
 * and column. */
cJSON *mfs_json_parse(const char *text, size_t len, struct mfs_err *err);

/* Appends the tree's text; frees the tree; a NULL tree counts as -ENOMEM. */
int mfs_json_print(cJSON *json, bool pretty, struct mfs_buf *out);

int mfs_schema_from_json(const struct mfs_schema *schema, const cJSON *json, void *to,
                         struct mfs_err *err);

extern const struct mfs_schema mfs_table_change_schema; /* struct mfs_table_change */
int mfs_table_from_json(const cJSON *json, struct mfs_table **t, struct mfs_err *err);

#endif
