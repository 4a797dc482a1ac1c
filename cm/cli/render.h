/* Status for people, or as JSON. Pure, but for mfs_render_print. */
#ifndef MFS_CM_CLI_RENDER_H
#define MFS_CM_CLI_RENDER_H

#include <stdbool.h>

#include "base/buf.h"
#include "proto/messages.h"

int mfs_render_status(const struct mfs_status *s, struct mfs_buf *out); /* 0 or -ENOMEM */
/* One line without an end; empty when nothing is under way. */
int mfs_render_progress(const struct mfs_progress *p, struct mfs_buf *out);
int mfs_render_scale(const char *name, const struct mfs_scale_report *r, bool dry_run,
                     struct mfs_buf *out);
/* UTF-8, whatever bytes a name has: as mfs_shown_json. */
int mfs_render_json(const struct mfs_schema *schema, const void *what, struct mfs_buf *out);

/* Puts "?" for what a terminal may take for an order of its own, and for bytes that are no UTF-8.
 * The text's last byte is a NUL. */
void mfs_render_tame(struct mfs_buf *text);

/* What was rendered goes, tamed, to stdout, if `rc`, the renderer's, is 0; frees the buffer. 0, or
 * `rc` with the sentence. */
int mfs_render_print(int rc, struct mfs_buf *b, struct mfs_err *err);

#endif
