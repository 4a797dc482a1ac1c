/* JSON to be read by anybody, and texts that a terminal may show. Pure. */
#ifndef MFS_SHOW_JSON_H
#define MFS_SHOW_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "proto/schema.h"

/* How many bytes there may be shown as they are; 0: that one may not. Reads no further than a NUL.
 */
size_t mfs_show_plain(const char *at);

/* Appends an object and a newline; UTF-8, whatever bytes a name has: as mfs_shown_json. 0 or
 * -ENOMEM. */
int mfs_show_json(const struct mfs_schema *schema, const void *what, bool pretty,
                  struct mfs_buf *out);

#endif
